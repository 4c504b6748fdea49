"""Trees of prefix sums: which nodes an edit tests, and how often it is rejected on average over positions."""

import math

import numpy as np
import numpy.typing as npt

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.accounting.tv.tree import heights
from certified_unlearning.errors import ParameterError


def nodes_of_position(position: int, nodes: int) -> list[int]:
    """Return the nodes that sum a position, in the order in which they are tested; none if ``position > nodes``.

    Args:
        position: ``j``, counted from 1.
        nodes: The last node: after a deletion from ``n`` records, ``n - 1``; an insertion into ``n`` tests ``n``.
    """
    require_count(least=1, position=position)
    require_count(least=0, nodes=nodes)
    found = []
    while position <= nodes:
        found.append(position)
        position += position & -position
    return found


def tested_nodes(n: int) -> npt.NDArray[np.int64]:
    """Return how many nodes a deletion from ``n`` records tests, for positions 1 to ``n``; shape ``(n,)``.

    An insertion into ``n - 1`` records tests as many, for its new position.
    """
    require_count(least=1, n=n)
    nodes = np.arange(1, n + 1, dtype=np.int64)
    counts = np.zeros(n, dtype=np.int64)
    while (tested := nodes < n).any():
        counts += tested
        nodes += nodes & -nodes
    return counts


def calibrated_sigma(*, n: int, rho: float, sensitivity: float) -> float:
    """Return ``L B / (sqrt(2 pi) rho)`` with ``L`` `heights`: no edit of up to ``n`` records costs more than ``rho``.

    It bounds the stability of the tree and the probability of a recomputation, whatever the record's position
    (derived).
    """
    require_count(least=1, n=n)
    require_positive(rho=rho, sensitivity=sensitivity)
    return heights(n) * sensitivity / (math.sqrt(2 * math.pi) * rho)


def mean_recompute_probability(*, n: int, sigma: float, sensitivity: float) -> float:
    """Return the probability that a deletion from ``n`` records in random order computes again.

    Exact where the replacement moves every sum by ``sensitivity``, an upper bound where by that at most. An insertion
    into ``n - 1`` records computes again with the same probability.

    Args:
        n: Number of records before the deletion.
        sigma: Standard deviation of a node's noise, per coordinate.
        sensitivity: ``B``.
    """
    require_count(least=1, n=n)
    require_positive(sigma=sigma, sensitivity=sensitivity)
    return recompute_probability_of_taus([gaussian_tv(sensitivity / sigma)] * heights(n), n=n)


def recompute_probability_of_taus(taus: list[float], *, n: int) -> float:
    """Return `mean_recompute_probability` where a node of height ``h`` is rejected with probability ``taus[h]``.

    Each power of 2 in ``n``'s binary form, from the highest, has a block of so many positions. All but the last
    block pass the node that closes theirs. Sums of *rejected* shares keep small probabilities precise.

    Args:
        taus: Probabilities, one for each of the `heights` of ``n``.
        n: Number of records before the deletion.
    """
    require_count(least=1, n=n)
    if len(taus) < heights(n):
        raise ParameterError(f"taus must hold one probability for each of {heights(n)} heights, got {len(taus)}")
    within = 0.0  # Mean probability that a block of 2^height positions rejects below its closing node.
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
        length: ``t``.
        sigmas: Noise of a node by height, leaves first.
    """
    require_count(least=0, length=length)
    if len(sigmas) < length.bit_length():
        raise ParameterError(f"sigmas must hold one for each of {length.bit_length()} heights, got {len(sigmas)}")
    return math.hypot(*(sigma for height, sigma in enumerate(sigmas) if length >> height & 1))
