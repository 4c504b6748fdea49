"""How the rows of a run are divided into blocks for several processes; this depends only on the number of rows.

This module needs no PyTorch.
"""

MOST_BLOCKS = 64
"""Largest number of blocks; if there are more processes, some are idle."""
LEAST_ROWS = 1024
"""Smallest number of rows of a block, if there are several blocks. A change of this number or of `MOST_BLOCKS` changes
the bits of runs with several blocks.
"""


def cut(rows: int) -> list[slice]:
    """Return the blocks into which rows are divided.

    The number of blocks is a power of two, and the lengths of the blocks differ by at most one row.

    >>> cut(1437)
    [slice(0, 1437, None)]
    >>> [block.stop for block in cut(11_982)]
    [1497, 2995, 4493, 5991, 7488, 8986, 10484, 11982]
    """
    blocks = 1
    while 2 * blocks <= min(MOST_BLOCKS, rows // LEAST_ROWS):
        blocks *= 2
    return [slice(rows * block // blocks, rows * (block + 1) // blocks) for block in range(blocks)]
