"""Ullah (2024), chapter 3: parameters and bounds of private stationary points, as printed and as corrected.

Notation: ``G`` and ``H`` bound a record's gradient and its Lipschitz constant, ``L_0`` the gap of the loss at the
start. Constants of rates are 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


def rate_unit(*, n: int, d: int, epsilon: float, delta: float) -> float:
    """Return ``alpha bar = sqrt(d log(1 / delta)) / (n epsilon)``."""
    return math.sqrt(d * math.log(1 / delta)) / (n * epsilon)


def descent_bound(*, n: int, d: int, mu: float, lipschitz: float, smoothness: float, gap: float) -> float:
    """Return what plain noisy descent guarantees, the root of ``4 sqrt(2 L_0 H d) G / (n mu)`` (derived)."""
    return math.sqrt(4 * math.sqrt(2 * gap * smoothness * d) * lipschitz / (n * mu))


def theorem_17(*, n: int, d: int, epsilon: float, delta: float, lipschitz: float) -> float:
    """Return the lower bound ``G min{1, alpha bar}`` on an empirical gradient."""
    return lipschitz * min(1.0, rate_unit(n=n, d=d, epsilon=epsilon, delta=delta))


def theorem_17_gradient(
    weights: npt.NDArray[np.float64], centres: npt.NDArray[np.float64], *, lipschitz: float, smoothness: float
) -> npt.NDArray[np.float64]:
    """Return the gradient of Theorem 17's instance: the mean Huber loss of the distances to centres.

    With centres within ``G / (4 H)`` of 0 it is ``H (w - mean)`` where no record's gradient is cut, and at least
    ``G / 2`` long from ``G / (2 H)`` off the mean on.

    Args:
        weights: Shape ``(d,)``.
        centres: The records, shape ``(n, d)``.
        lipschitz: ``G``.
        smoothness: ``H``.
    """
    pulls = smoothness * (weights - centres)
    norms = np.linalg.norm(pulls, axis=1, keepdims=True)
    mean: npt.NDArray[np.float64] = (pulls * np.minimum(1.0, lipschitz / np.maximum(norms, 1e-300))).mean(axis=0)
    return mean


def theorem_40(*, n: int, lipschitz: float) -> tuple[float, float]:
    """Return the scale ``G / sqrt(n)`` of the lower bound without privacy, and its instance's bias."""
    return lipschitz / math.sqrt(n), 1 / math.sqrt(16 * n)


def oracle_barrier(*, queries: float, gap: float, gradient: float, difference: float) -> float:
    """Return Theorem 43's two terms, added: ``(L_0 tau_1 tau_2 / Q)^(1/3) + tau_1 / sqrt(Q)``."""
    return math.cbrt(gap * gradient * difference / queries) + gradient / math.sqrt(queries)


@dataclass(frozen=True)
class TreeSpider:
    """Parameters of Theorem 19, of the tree-based private Spider.

    Attributes:
        batch: ``b``, of the root.
        depth: ``D``, real, with ``D 2^(D + 1) = b``.
        whole_depth: The largest whole one that fits.
        rounds: ``T``, real.
        accuracy: ``alpha``.
        step: ``beta``.
        constant: ``C~``: what `accuracy` is multiplied by for the guarantee, which makes it say nothing (E28).
        constant_parts: Its two terms: of probability, and of how far the loss can fall.
        root_noise: ``sigma`` of the root as printed, with ``G`` where ``L_0`` stands (E7).
        node_noise: ``sigma`` of right children as printed.
        length: Of every step: ``beta / (2^(D/2) H)``.
    """

    batch: float
    depth: float
    whole_depth: int
    rounds: float
    accuracy: float
    step: float
    constant: float
    constant_parts: tuple[float, float]
    root_noise: float
    node_noise: float
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
        n: Records.
        d: Weights.
        epsilon: Of privacy.
        delta: Of privacy.
        lipschitz: ``G``.
        smoothness: ``H``.
        gap: ``L_0``.
        failure: ``p``, with which its guarantee may fail.
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
        whole_depth=whole,
        rounds=rounds,
        accuracy=accuracy,
        step=step,
        constant=likely + descending,
        constant_parts=(likely, descending),
        root_noise=math.sqrt(8 * lipschitz**2 * log) / (batch * epsilon),
        node_noise=math.sqrt(8 * 2**whole * step**2 * log) / (batch * epsilon),
        length=step / (2 ** (whole / 2) * smoothness),
    )


def tree_batches(batch: int, depth: int) -> list[int]:
    """Return the records of a node at each level below the root: ``floor(b / 2^level)``."""
    return [batch // 2**level for level in range(1, depth + 1)]


def records_per_round(batch: int, depth: int) -> int:
    """Return the records that a round of the tree takes: the root's, and those of right children at each level."""
    return batch + sum(size << (level - 1) for level, size in enumerate(tree_batches(batch, depth), start=1))


def strong_convexity(*, n: int, d: int, epsilon: float, lipschitz: float, smoothness: float, radius: float) -> float:
    """Return Theorem 20's ``lambda``, corrected (E23): ``G^2 / (H |w*|^2) max(1 / n, d / (n^2 epsilon^2))``.

    The least of the two, as printed, makes it needlessly small.
    """
    return lipschitz**2 / (smoothness * radius**2) * max(1 / n, d / (n * epsilon) ** 2)


def stages(smoothness: float, strength: float) -> int:
    """Return how many stages recursive regularisation has: ``ceil(log2(H / lambda))``."""
    return math.ceil(math.log2(smoothness / strength))


def least_steps(smoothness: float, strength: float) -> float:
    """Return the first term of Theorem 20's ``K_t``: ``x log x`` with ``x = (H + lambda_t) / lambda_t``."""
    condition = (smoothness + strength) / strength
    return condition * math.log(condition)


def recursive_bound(errors: Sequence[float], *, strength: float, smoothness: float, radius: float) -> float:
    """Return ``4 sum sqrt(lambda 2^(t + 1) a_t) + sqrt(lambda H) |w*|``, on the gradient by the stages' errors."""
    stagewise = sum(math.sqrt(strength * 2 ** (t + 1) * error) for t, error in enumerate(errors, start=1))
    return 4 * stagewise + math.sqrt(strength * smoothness) * radius


def lemma_21_sigma(*, steps: int, records: int, epsilon: float, delta: float, lipschitz: float) -> float:
    """Return the printed noise of a stage of noisy descent, ``8 G sqrt(K log(1 / delta)) / (m epsilon)``."""
    return 8 * lipschitz * math.sqrt(steps * math.log(1 / delta)) / (records * epsilon)


def lemma_22(*, n: int, step_size: float, strength: float, distance: float, deviation: float) -> float:
    """Return the excess of one pass' weighted average, ``lambda / (e^(eta lambda n) - 1) |w_0 - w|^2 + eta V^2``."""
    return strength / math.expm1(step_size * strength * n) * distance**2 + step_size * deviation**2


def lemma_23_sigma(*, step_size: float, epsilon: float, delta: float, lipschitz: float) -> float:
    """Return the printed noise on one pass' output, ``8 G eta sqrt(log(1 / delta)) / epsilon``."""
    return 8 * lipschitz * step_size * math.sqrt(math.log(1 / delta)) / epsilon


def selector_weights(steps: int, drift: float) -> list[float]:
    """Return the weights of iterates, ``(1 - eta lambda)^(K - k)`` divided by their sum.

    Args:
        steps: ``K``.
        drift: ``eta lambda``.
    """
    powers = [(1 - drift) ** (steps - number) for number in range(1, steps + 1)]
    return [each / sum(powers) for each in powers]


def embedding_objective(columns: int, *, n: int, epsilon: float, delta: float, convex: bool) -> float:
    """Return what Algorithm 8 makes least over the number of columns, with constants 1 and ``G = H = X = 1``.

    Args:
        columns: ``j``.
        n: Records.
        epsilon: Of privacy.
        delta: Of privacy; half of it is spent.
        convex: Whether the optimiser is that for convex losses, else SpiderBoost.
    """
    bar = rate_unit(n=n, d=columns, epsilon=epsilon, delta=delta / 2)
    # Both constants are twice as large on embedded rows, and the gap is 1.
    found = 2 * bar if convex else math.pow(math.sqrt(2 * 2) * bar, 2 / 3) + 2 * bar
    return found + math.log(n) / math.sqrt(columns)


def rank_columns(rank: int, *, n: int, delta: float) -> int:
    """Return the columns that a public bound on the rank allows: ``ceil(r log(2 n / delta))``."""
    return math.ceil(rank * math.log(2 * n / delta))
