"""Trees of prefix sums: the nodes that an edit tests, and the probability that a test rejects at a random position."""

import math

import numpy as np
import numpy.typing as npt

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.accounting.tv.tree import heights
from certified_unlearning.errors import ParameterError


def nodes_of_position(position: int, nodes: int) -> list[int]:
    """Return the nodes whose sums include a position, in the order of the tests; none if ``position > nodes``.

    Args:
        position: The position ``j``, counted from 1.
        nodes: The last node: ``n - 1`` for a deletion from ``n`` records, and ``n`` for an insertion into ``n``
            records.
    """
    require_count(least=1, position=position)
    require_count(least=0, nodes=nodes)
    found = []
    while position <= nodes:
        found.append(position)
        position += position & -position
    return found


def tested_nodes(n: int) -> npt.NDArray[np.int64]:
    """Return the number of nodes that a deletion from ``n`` records tests, for positions 1 to ``n``; shape ``(n,)``.

    An insertion into ``n - 1`` records, at any position from 1 to ``n``, tests as many nodes as a deletion from ``n``
    records at the same position.
    """
    require_count(least=1, n=n)
    nodes = np.arange(1, n + 1, dtype=np.int64)
    counts = np.zeros(n, dtype=np.int64)
    while (tested := nodes < n).any():
        counts += tested
        nodes += nodes & -nodes
    return counts


def calibrated_sigma(*, n: int, rho: float, sensitivity: float) -> float:
    """Return the noise ``L B / (sqrt(2 pi) rho)`` for a tree of up to ``n`` records, which has ``L`` `heights`.

    With this noise, ``rho`` bounds the stability of the tree and the probability that an edit causes a recomputation,
    whatever the record's position is (derived).
    """
    require_count(least=1, n=n)
    require_positive(rho=rho, sensitivity=sensitivity)
    return heights(n) * sensitivity / (math.sqrt(2 * math.pi) * rho)


def mean_recompute_probability(*, n: int, sigma: float, sensitivity: float) -> float:
    """Return the probability that a deletion from ``n`` records in random order causes a recomputation.

    The value is exact if the replacement of the deleted record moves every sum by ``sensitivity``, and an upper bound
    if it moves every sum by at most ``sensitivity``. An insertion into ``n - 1`` records causes a recomputation with
    the same probability.

    Args:
        n: The number of records before the deletion.
        sigma: The standard deviation of a node's noise in each coordinate.
        sensitivity: The sensitivity ``B``.
    """
    require_count(least=1, n=n)
    require_positive(sigma=sigma, sensitivity=sensitivity)
    return recompute_probability_of_taus([gaussian_tv(sensitivity / sigma)] * heights(n), n=n)


def recompute_probability_of_taus(taus: list[float], *, n: int) -> float:
    """Return `mean_recompute_probability` if a node of height ``h`` is rejected with probability ``taus[h]``.

    The positions are divided into blocks, one for each power of 2 in the binary form of ``n``, from the highest power
    to the lowest. The size of a block is its power of 2. A position in any block but the last is also tested at the
    node that closes its block. Small probabilities stay precise because the code sums probabilities of *rejection*.

    Args:
        taus: The probabilities, one for each of the `heights` of ``n``.
        n: The number of records before the deletion.
    """
    require_count(least=1, n=n)
    if len(taus) < heights(n):
        raise ParameterError(
            f"taus must contain at least {heights(n)} probabilities, one for each height, got {len(taus)}"
        )
    within = 0.0  # The mean probability that a block of 2^height positions rejects below its closing node.
    rejected = 0.0
    lowest = (n & -n).bit_length() - 1
    for height in range(heights(n)):
        if n >> height & 1:
            closed = within if height == lowest else within + taus[height] - within * taus[height]
            rejected += 2**height / n * closed
        within += taus[height] / 2 - within * taus[height] / 2
    return rejected


def prefix_noise(length: int, sigmas: list[float]) -> float:
    """Return the standard deviation, per coordinate, of the noise in the sum of positions 1 to ``length``.

    Args:
        length: The length ``t``.
        sigmas: The noise of a node by height, leaves first.
    """
    require_count(least=0, length=length)
    if len(sigmas) < length.bit_length():
        raise ParameterError(
            f"sigmas must contain at least {length.bit_length()} numbers, one for each height, got {len(sigmas)}"
        )
    return math.hypot(*(sigma for height, sigma in enumerate(sigmas) if length >> height & 1))
