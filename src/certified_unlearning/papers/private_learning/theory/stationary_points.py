"""Ullah (2024), chapter 3: parameters and bounds of private stationary points, as printed and as corrected.

Notation: ``G`` bounds a record's gradient, ``H`` is the gradient's Lipschitz constant, and ``L_0`` is the gap of the
loss at the start. Constants of rates are 1.
"""

import math
from dataclasses import dataclass


def rate_unit(*, n: int, d: int, epsilon: float, delta: float) -> float:
    """Return ``alpha bar = sqrt(d log(1 / delta)) / (n epsilon)``."""
    return math.sqrt(d * math.log(1 / delta)) / (n * epsilon)


def descent_bound(*, n: int, d: int, mu: float, lipschitz: float, smoothness: float, gap: float) -> float:
    """Return the guarantee of plain noisy descent, the square root of ``4 sqrt(2 L_0 H d) G / (n mu)`` (derived)."""
    return math.sqrt(4 * math.sqrt(2 * gap * smoothness * d) * lipschitz / (n * mu))


def oracle_barrier(*, queries: float, gap: float, gradient: float, difference: float) -> float:
    """Return the sum of Theorem 43's two terms: ``(L_0 tau_1 tau_2 / Q)^(1/3) + tau_1 / sqrt(Q)``."""
    return math.cbrt(gap * gradient * difference / queries) + gradient / math.sqrt(queries)


@dataclass(frozen=True)
class TreeSpider:
    """The parameters of Theorem 19, for the tree-based private Spider.

    Attributes:
        batch: The batch size ``b`` of the root.
        depth: The depth ``D`` with ``D 2^(D + 1) = b``, not rounded.
        rounds: The number ``T`` of rounds, not rounded.
        accuracy: The accuracy ``alpha``.
        step: The step ``beta``.
        constant: The factor ``C~`` by which the guarantee multiplies `accuracy`; this factor makes the guarantee void
            (E28).
        length: The length of every step: ``beta / (2^(D/2) H)``.
    """

    batch: float
    depth: float
    rounds: float
    accuracy: float
    step: float
    constant: float
    length: float


def tree_spider(
    *,
    n: int,
    d: int,
    epsilon: float,
    delta: float,
    lipschitz: float,
    smoothness: float,
    gap: float,
    failure: float,
) -> TreeSpider:
    """Return Theorem 19's parameters.

    Args:
        n: The number of records.
        d: The number of weights.
        epsilon: The epsilon of privacy.
        delta: The delta of privacy.
        lipschitz: The bound ``G`` on a record's gradient.
        smoothness: The smoothness ``H``.
        gap: The gap ``L_0``.
        failure: The probability ``p`` with which the guarantee may fail.
    """
    batch = max(math.pow(n, 2 / 3), math.sqrt(n) * math.pow(d, 0.25) / math.sqrt(epsilon))
    low, high = 0.0, math.log2(batch) + 1
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * 2 ** (middle + 1) < batch else (low, middle)
    whole = math.floor(high)
    whole -= whole * 2 ** (whole + 1) > batch
    rounds = n / (batch * (whole / 2 + 1))
    accuracy = math.sqrt(2) * lipschitz * max(1 / math.cbrt(n), math.sqrt(math.sqrt(d) / (n * epsilon)))
    step = accuracy * min(1.0, math.sqrt(batch) * epsilon / math.sqrt(d))
    log = math.log(1.25 / delta)
    likely = 256 * log * math.log(2 * rounds * 2 ** (whole + 1) / failure)
    descending = 8 * smoothness * gap * math.sqrt(2 * whole) * (whole / 2 + 1) / (2 * lipschitz**2)
    return TreeSpider(
        batch=batch,
        depth=high,
        rounds=rounds,
        accuracy=accuracy,
        step=step,
        constant=likely + descending,
        length=step / (2 ** (whole / 2) * smoothness),
    )


def tree_batches(batch: int, depth: int) -> list[int]:
    """Return the number of records of a node at each level below the root: ``floor(b / 2^level)``."""
    return [batch // 2**level for level in range(1, depth + 1)]


def strong_convexity(*, n: int, d: int, epsilon: float, lipschitz: float, smoothness: float, radius: float) -> float:
    """Return Theorem 20's ``lambda``, corrected (E23): ``G^2 / (H |w*|^2) max(1 / n, d / (n^2 epsilon^2))``.

    The printed lambda has the smaller of the two terms, which makes it needlessly small.
    """
    return lipschitz**2 / (smoothness * radius**2) * max(1 / n, d / (n * epsilon) ** 2)


def stages(smoothness: float, strength: float) -> int:
    """Return the number of stages of recursive regularisation: ``ceil(log2(H / lambda))``."""
    return math.ceil(math.log2(smoothness / strength))


def least_steps(smoothness: float, strength: float) -> float:
    """Return the first term of Theorem 20's ``K_t``: ``x log x`` with ``x = (H + lambda_t) / lambda_t``."""
    condition = (smoothness + strength) / strength
    return condition * math.log(condition)


def lemma_21_sigma(*, steps: int, records: int, epsilon: float, delta: float, lipschitz: float) -> float:
    """Return the printed noise of a stage of noisy descent, ``8 G sqrt(K log(1 / delta)) / (m epsilon)``."""
    return 8 * lipschitz * math.sqrt(steps * math.log(1 / delta)) / (records * epsilon)


def lemma_23_sigma(*, step_size: float, epsilon: float, delta: float, lipschitz: float) -> float:
    """Return the printed noise on the output of one pass, ``8 G eta sqrt(log(1 / delta)) / epsilon``."""
    return 8 * lipschitz * step_size * math.sqrt(math.log(1 / delta)) / epsilon


def linear_time_strength(
    *, n: int, d: int, epsilon: float, lipschitz: float, smoothness: float, radius: float
) -> float:
    """Return the ``lambda`` of Theorem 20, part 2: ``max(G^2 / (H |w*|^2) min(1/n, d/(n epsilon)^2), H log n / n)``."""
    least = lipschitz**2 / (smoothness * radius**2) * min(1 / n, d / (n * epsilon) ** 2)
    return max(least, smoothness * math.log(n) / n)
