"""How the rows of a run over several processes are cut into blocks: by their number alone. It needs no PyTorch."""

MOST_BLOCKS = 64
"""Largest number of blocks: more processes than this would be idle."""
LEAST_ROWS = 1024
"""Least number of rows of a block, if there are several. Changing either number changes the bits of such runs."""


def cut(rows: int) -> list[slice]:
    """Return the blocks that rows are cut into: a power of two, of equal length up to one row.

    >>> cut(1437)
    [slice(0, 1437, None)]
    >>> [block.stop for block in cut(11_982)]
    [1497, 2995, 4493, 5991, 7488, 8986, 10484, 11982]
    """
    blocks = 1
    while 2 * blocks <= min(MOST_BLOCKS, rows // LEAST_ROWS):
        blocks *= 2
    return [slice(rows * block // blocks, rows * (block + 1) // blocks) for block in range(blocks)]
