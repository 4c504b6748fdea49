"""Noisy prefix sums of records in random order: how often an edit is rejected, and the noise that keeps this rare.

Source: chapter 5 (Theorem 25, Lemma 38, section 5.6). Node ``t`` of the tree sums the increments of positions
``t - lb(t) + 1`` to ``t``, where ``lb(t)`` is ``t``'s lowest set bit, and the logarithm of ``lb(t)`` is its *height*.
An edit at position ``j`` tests the nodes above it, ``j, j + lb(j), ...``, at most one per height; a prefix sum reads
one node for each set bit of ``t``. A record's position is uniform, so the cost of an edit is a mean over positions.

All sharp forms are derived. With acceptance probability ``1 - tau_h`` at height ``h``, positions ``1`` to ``2^a`` keep
all nodes below ``2^a`` with probability ``prod_{h < a} (1 - tau_h / 2)`` on average, since half of them pass a node of
each height.

`Budget` determines how stability is shared among heights, for trees whose size is not known when noise is first drawn.
"""

import math
from typing import Literal, get_args

import numpy as np

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.errors import ParameterError

Budget = Literal["printed", "quadratic", "equal"]
Logarithm = Literal["2", "e"]


def nodes_of_prefix(length: int) -> list[int]:
    """Return the nodes whose sum is the sum of positions 1 to ``length``, largest first."""
    require_count(least=0, length=length)
    found = []
    while length > 0:
        found.append(length)
        length -= length & -length
    return found


def heights(n: int) -> int:
    """Return the heights that nodes 1 to ``n`` have, ``floor(log2 n) + 1``: no edit tests more nodes."""
    require_count(least=1, n=n)
    return n.bit_length()


def theorem_25_sigma(*, n: int, rho: float, sensitivity: float, logarithm: Logarithm = "2") -> float:
    """Return the published noise ``8 B log(n) / rho`` of a node.

    Theorem 25 prints ``sigma^2`` with ``rho`` in the place of ``rho^2``, which Lemma 34 and Theorems 26 and 27 have;
    the base of the logarithm is not stated, and 2 is the larger reading.

    Args:
        n: Number of records.
        rho: Target stability.
        sensitivity: Largest move ``B`` of a sum by replacing a record, given the models.
        logarithm: Its base.
    """
    require_count(least=2, n=n)
    require_positive(rho=rho, sensitivity=sensitivity)
    return 8 * sensitivity * _logarithm(n, logarithm) / rho


def lemma_38(*, n: int, rho: float, logarithm: Logarithm = "2") -> float:
    """Return Lemma 38's bound ``rho log n``, at most 1, on recomputation after one edit, at Theorem 25's noise."""
    require_count(least=1, n=n)
    require_positive(rho=rho)
    return min(1.0, rho * _logarithm(n, logarithm))


def worst_recompute_probability(*, n: int, sigma: float, sensitivity: float) -> float:
    """Return the probability that a deletion from ``n`` records recomputes, at the position that tests most nodes.

    This is the relevant probability for the order of arrival.

    Args:
        n: Number of records before the deletion.
        sigma: Standard deviation of a node's noise, per coordinate.
        sensitivity: Largest move ``B`` of a sum by replacing a record.
    """
    require_count(least=1, n=n)
    require_positive(sigma=sigma, sensitivity=sensitivity)
    tau = gaussian_tv(sensitivity / sigma)
    return -math.expm1(heights(n - 1) * math.log1p(-tau)) if n > 1 and tau < 1 else float(n > 1)


def recompute_probability_up_to(n: int, tau: float) -> float:
    """Return ``1 - (1 - tau) (1 - tau / 2)^a``, ``a = floor(log2(n - 1))``: a bound for all sizes from 1 to ``n``.

    The mean over positions is not monotone in the size: it is largest just after a power of 2, where it differs from
    this bound by up to ``1 / n``.

    Args:
        n: The most records before a deletion, or after an insertion.
        tau: Probability that a node rejects.
    """
    require_count(least=1, n=n)
    if not 0 <= tau <= 1:
        raise ParameterError(f"tau must lie between 0 and 1, got {tau!r}")
    if n == 1:
        return 0.0
    if tau == 1:
        return 1.0
    return -math.expm1(math.log1p(-tau) + (heights(n - 1) - 1) * math.log1p(-tau / 2))


def positions_run_again(*, n: int, sigma: float, sensitivity: float) -> float:
    """Return how many positions a deletion from ``n`` records in random order relearns, on average (derived).

    After a rejection at node ``t`` these are ``t + 1`` to ``n - 1``. Takes memory and time in proportion to ``n``.
    """
    require_count(least=1, n=n)
    require_positive(sigma=sigma, sensitivity=sensitivity)
    tau = gaussian_tv(sensitivity / sigma)
    nodes = np.arange(1, n, dtype=np.int64)
    kept, total = 1.0, 0.0
    while len(nodes):
        total += tau * kept * float((n - 1 - nodes).sum())
        kept *= 1 - tau
        nodes = nodes + (nodes & -nodes)
        nodes = nodes[nodes < n]
    return total / n


def deletion_queries(*, n: int, sigma: float, sensitivity: float) -> float:
    """Return how many increments a deletion from ``n`` records in random order computes, on average (derived).

    Divided by ``n``, it is the relative unlearning complexity. Theorem 25 bounds that by ``2 / n`` plus the probability
    of a recomputation. Arguments are those of `worst_recompute_probability`.
    """
    return (n - 1) / n + positions_run_again(n=n, sigma=sigma, sensitivity=sensitivity)


def height_budgets(budget: Budget, *, rho: float, count: int) -> list[float]:
    """Return the stability that each height may cost, leaves first: their sum is at most ``rho``.

    Args:
        budget: `printed`: ``rho / 2^(h + 1)``, section 5.6; the noise of the top node then grows as the sum itself, and
            accuracy is lost. `quadratic`: ``6 rho / (pi (h + 1))^2``, for trees of any size. `equal`: ``rho / count``,
            for trees whose largest size is known, and the most accurate.
        rho: Their sum, at most.
        count: Heights; `heights` of the largest size.
    """
    require_positive(rho=rho)
    require_count(least=1, count=count)
    if budget not in get_args(Budget):
        raise ParameterError(f"budget must be one of {', '.join(get_args(Budget))}, got {budget!r}")
    if budget == "equal":
        return [rho / count] * count
    if budget == "printed":
        return [rho / 2.0 ** (height + 1) for height in range(count)]
    return [6 * rho / (math.pi * (height + 1)) ** 2 for height in range(count)]


def height_sigmas(budget: Budget, *, rho: float, sensitivity: float, count: int) -> list[float]:
    """Return the noise of nodes by height, ``B / (sqrt(2 pi) rho_h)``, leaves first (derived).

    A path tests at most one node of each height, so the sum of `height_budgets` bounds the stability of the tree and
    the probability that an edit causes a recomputation, at every size.
    """
    require_positive(sensitivity=sensitivity)
    shares = height_budgets(budget, rho=rho, count=count)
    return [sensitivity / (math.sqrt(2 * math.pi) * share) for share in shares]


def _logarithm(n: int, base: Logarithm) -> float:
    if base not in get_args(Logarithm):
        raise ParameterError(f"logarithm must be '2' or 'e', got {base!r}")
    return math.log2(n) if base == "2" else math.log(n)
