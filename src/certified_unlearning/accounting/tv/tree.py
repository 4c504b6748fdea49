"""Noisy prefix sums of records in random order: how often edits are rejected, and the noise that makes this rare.

Source: chapter 5 (Theorem 25, Lemma 38, section 5.6). Node ``t`` of the tree sums the increments of positions ``t -
lb(t) + 1`` to ``t``, where ``lb(t)`` is the lowest set bit of ``t``. The node's *height* is the binary logarithm of
``lb(t)``. An edit at position ``j`` tests the nodes ``j, j + lb(j), ...`` above this position, at most one per height.
A prefix sum up to ``t`` reads one node for each set bit of ``t``. A record's position is uniform, so the cost of an
edit is a mean over positions.

All tight bounds in this module are derived: they are not in the source. Let nodes at height ``h`` accept with
probability ``1 - tau_h``. For an edit at a uniform position from ``1`` to ``2^a``, all nodes below ``2^a`` accept with
probability ``prod_{h < a} (1 - tau_h / 2)``, because half of the positions test a node of each height.

`Budget` determines how heights share stability, for trees whose size is not known when noise is first drawn.
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
    """Return the nodes whose values add up to the prefix sum of positions 1 to ``length``, largest first."""
    require_count(least=0, length=length)
    found = []
    while length > 0:
        found.append(length)
        length -= length & -length
    return found


def heights(n: int) -> int:
    """Return the number of heights of nodes 1 to ``n``, ``floor(log2 n) + 1``. No edit tests more nodes."""
    require_count(least=1, n=n)
    return n.bit_length()


def theorem_25_sigma(*, n: int, rho: float, sensitivity: float, logarithm: Logarithm = "2") -> float:
    """Return the published noise ``8 B log(n) / rho`` of a node.

    Theorem 25 prints ``sigma^2`` with ``rho``, where Lemma 34 and Theorems 26 and 27 have ``rho^2``. The base of the
    logarithm is not stated. Base 2 gives the larger noise.

    Args:
        n: Number of records.
        rho: Target stability.
        sensitivity: Largest distance ``B`` by which replacing a record moves a sum, given the models.
        logarithm: Base of the logarithm.
    """
    require_count(least=2, n=n)
    require_positive(rho=rho, sensitivity=sensitivity)
    return 8 * sensitivity * _logarithm(n, logarithm) / rho


def lemma_38(*, n: int, rho: float, logarithm: Logarithm = "2") -> float:
    """Return Lemma 38's bound on the probability of recomputation after one edit, ``rho log n``, but at most 1.

    The bound holds for the noise of Theorem 25.
    """
    require_count(least=1, n=n)
    require_positive(rho=rho)
    return min(1.0, rho * _logarithm(n, logarithm))


def worst_recompute_probability(*, n: int, sigma: float, sensitivity: float) -> float:
    """Return the probability that a deletion causes a recomputation, at the position that tests the most nodes.

    This is the relevant probability for records in order of arrival.

    Args:
        n: Number of records before the deletion.
        sigma: Standard deviation of a node's noise, per coordinate.
        sensitivity: Largest distance ``B`` by which replacing a record moves a sum.
    """
    require_count(least=1, n=n)
    require_positive(sigma=sigma, sensitivity=sensitivity)
    tau = gaussian_tv(sensitivity / sigma)
    return -math.expm1(heights(n - 1) * math.log1p(-tau)) if n > 1 and tau < 1 else float(n > 1)


def recompute_probability_up_to(n: int, tau: float) -> float:
    """Return a bound on the probability of a recomputation for all numbers of records from 1 to ``n``.

    The bound is ``1 - (1 - tau) (1 - tau / 2)^a`` with ``a = floor(log2(n - 1))``. The probability's mean over
    positions is not monotone in the number of records. This mean is largest just after a power of 2, where it differs
    from this bound by up to ``1 / n``.

    Args:
        n: Largest number of records before a deletion or after an insertion.
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
    """Return the mean number of positions that are relearned after a deletion, for records in random order (derived).

    After a rejection at node ``t``, positions ``t + 1`` to ``n - 1`` are relearned. Memory and time are proportional to
    ``n``.
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
    """Return the mean number of increments that a deletion computes, for records in random order (derived).

    Divided by ``n``, this is the relative unlearning complexity. Theorem 25 bounds this complexity by ``2 / n`` plus
    the probability of a recomputation. The arguments are those of `worst_recompute_probability`.
    """
    return (n - 1) / n + positions_run_again(n=n, sigma=sigma, sensitivity=sensitivity)


def height_budgets(budget: Budget, *, rho: float, count: int) -> list[float]:
    """Return the share of stability that each height may use, leaves first. The sum of all shares is at most ``rho``.

    Args:
        budget: `printed`: ``rho / 2^(h + 1)`` (section 5.6); the noise of the top node then grows as fast as the sum,
            and accuracy is lost. `quadratic`: ``6 rho / (pi (h + 1))^2``, for trees of any size. `equal`:
            ``rho / count``, the most accurate choice, for trees whose largest size is known.
        rho: Largest sum of all shares.
        count: Number of heights. `heights` computes this number from the largest size of the tree.
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
    """Return the noise of the nodes at each height, from the leaves upwards: ``B / (sqrt(2 pi) rho_h)`` (derived).

    An edit tests at most one node of each height. So at every size, the sum of `height_budgets` bounds the stability of
    the tree and the probability that an edit causes a recomputation.
    """
    require_positive(sensitivity=sensitivity)
    shares = height_budgets(budget, rho=rho, count=count)
    return [sensitivity / (math.sqrt(2 * math.pi) * share) for share in shares]


def _logarithm(n: int, base: Logarithm) -> float:
    if base not in get_args(Logarithm):
        raise ParameterError(f"logarithm must be '2' or 'e', got {base!r}")
    return math.log2(n) if base == "2" else math.log(n)
