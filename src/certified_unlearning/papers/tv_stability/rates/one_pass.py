"""Chapter 5's learners at the parameters of their theorems: one pass over the records, with noisy prefix sums.

The code runs the increments and updates of the exact learners (`mechanisms.exact.one_pass`) on the noise of a tree
(`engine.exact.prefix_tree`). The noise is so large that an edit causes a recomputation with probability at most
``rho``. A tree keeps every position for edits, whereas this code keeps only what later positions need.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.accounting.tv.erm import ConvexProblem
from certified_unlearning.accounting.tv.one_pass import (
    balanced_step_size,
    dual_averaging_sensitivity,
    frank_wolfe_sensitivity,
)
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import RecordGradients
from certified_unlearning.mechanisms.exact.one_pass.dual_averaging import DualAveraging, DualAveragingSettings
from certified_unlearning.mechanisms.exact.one_pass.frank_wolfe import FrankWolfe, FrankWolfeSettings
from certified_unlearning.mechanisms.exact.one_pass.prefix_sums import PrefixLearner
from certified_unlearning.mechanisms.exact.one_pass.projected_glm import Projection
from certified_unlearning.papers.tv_stability.rates.instance import Blocks, Loss
from certified_unlearning.papers.tv_stability.theory.single_pass import (
    GeneralisedLinearProblem,
    theorem_26_risk,
    theorem_27_risk,
    theorem_28_risk,
    theorem_29_dimension,
)
from certified_unlearning.papers.tv_stability.theory.trees import calibrated_sigma

BEYOND = 1.25
"""The radius of the set of models divided by the norm of the best model."""
LOGISTIC_SMOOTHNESS = 0.25


@dataclass(frozen=True)
class Passed:
    """The models of a pass, shape ``(trials, d)``.

    Attributes:
        last: The last model ``w_(n + 1)``.
        average: The mean of ``w_1`` to ``w_n``.
    """

    last: Tensor
    average: Tensor


def one_pass(learner: PrefixLearner, sigma: float, orders: Tensor, draws: Draws) -> Passed:
    """Learn every record once, from noisy prefix sums; models are those of a `PrefixTree` with the same draws.

    Args:
        learner: The increments and updates.
        sigma: The standard deviation of every node's noise.
        orders: The record at each position, shape ``(trials, n)``, int64.
        draws: A fresh source of noise.
    """
    trials, size = orders.shape
    now = learner.start().repeat(trials, 1)
    previous, total, summed = now, torch.zeros_like(now), torch.zeros_like(now)
    noise: dict[int, Tensor] = {0: torch.zeros_like(now)}
    """Dict from the lowest bit of a length to the noise of the latest prefix sum whose length has this lowest bit."""
    for position in range(1, size + 1):
        positions = torch.full((trials,), position)
        summed = summed + learner.increments(positions, now, previous, orders[:, position - 1])
        before = position & (position - 1)  # The length of the prefix without its last node.
        own = noise[before & -before] + sigma * draws.normal(trials, learner.dimension)
        noise[position & -position] = own
        total += now
        previous, now = now, learner.updates(positions, now, summed + own)
    return Passed(now, total / size)


def frank_wolfe(
    instance: Blocks, *, n: int, dimension: int, rho: float, trials: int, key: tuple[str | int, ...]
) -> tuple[Tensor, float]:
    """Return the excess risks of Frank-Wolfe on smooth losses, and the rate of Theorem 26."""
    radius = BEYOND * float(torch.linalg.vector_norm(instance.best))
    problem = ConvexProblem(n, dimension, 1.0, LOGISTIC_SMOOTHNESS, 2 * radius, rho)
    sensitivity = frank_wolfe_sensitivity(lipschitz=1.0, smoothness=LOGISTIC_SMOOTHNESS, diameter=2 * radius)
    learner = FrankWolfe(_records(instance, dimension), FrankWolfeSettings(radius))
    passed = _run(learner, instance, sensitivity, n=n, rho=rho, trials=trials, key=key)
    return instance.excess(passed.last), theorem_26_risk(problem)


def dual_averaging(
    instance: Blocks, *, n: int, dimension: int, rho: float, trials: int, key: tuple[str | int, ...]
) -> tuple[Tensor, float]:
    """Return the excess risks of dual averaging on non-smooth losses, and the rate of Theorem 27."""
    radius = BEYOND * float(torch.linalg.vector_norm(instance.best))
    problem = ConvexProblem(n, dimension, 1.0, 1.0, 2 * radius, rho)
    sensitivity = dual_averaging_sensitivity(lipschitz=1.0)
    sigma = calibrated_sigma(n=n, rho=rho, sensitivity=sensitivity)
    step_size = balanced_step_size(n=n, dimension=dimension, lipschitz=1.0, diameter=2 * radius, sigma=sigma)
    learner = DualAveraging(_records(instance, dimension), DualAveragingSettings(step_size, radius))
    passed = _run(learner, instance, sensitivity, n=n, rho=rho, trials=trials, key=key)
    return instance.excess(passed.average), theorem_27_risk(problem)


def projected_frank_wolfe(
    instance: Blocks, *, n: int, dimension: int, rho: float, trials: int, key: tuple[str | int, ...]
) -> tuple[Tensor, float]:
    """Return the excess risks of Frank-Wolfe on projected rows, and the rate of Theorem 28.

    Each trial has its own projection. The number of columns is that of the theorem, but the constant and the logarithm
    are left out. The projection more than doubles the length of only a few rows.
    """
    length = float(torch.linalg.vector_norm(instance.best))
    share = LOGISTIC_SMOOTHNESS * length / (LOGISTIC_SMOOTHNESS * length + 1)
    columns = math.ceil((share * n * rho) ** (2 / 3))
    problem = GeneralisedLinearProblem(n, 1.0, LOGISTIC_SMOOTHNESS, 1.0, length, rho)
    sensitivity = frank_wolfe_sensitivity(lipschitz=2.0, smoothness=problem.projected_smoothness, diameter=4 * length)
    projected = _Projected.draw(instance, columns=columns, dimension=dimension, trials=trials, key=key)
    learner = FrankWolfe(projected.records, FrankWolfeSettings(2 * length))
    passed = _run(learner, instance, sensitivity, n=n, rho=rho, trials=trials, key=key, apart=projected.kinds)
    return instance.excess(projected.lift(passed.last)), theorem_28_risk(problem)


def projected_dual_averaging(
    instance: Blocks, *, n: int, dimension: int, rho: float, trials: int, key: tuple[str | int, ...]
) -> tuple[Tensor, float]:
    """Return the excess risks of dual averaging on projected rows, and the rate of Theorem 29.

    The number of columns is the corrected number (`theorem_29_dimension`), not the number that Theorem 29 prints.
    """
    length = float(torch.linalg.vector_norm(instance.best))
    problem = GeneralisedLinearProblem(n, 1.0, 0.0, 1.0, length, rho)
    columns = math.ceil(theorem_29_dimension(problem))
    sensitivity = dual_averaging_sensitivity(lipschitz=2.0)
    sigma = calibrated_sigma(n=n, rho=rho, sensitivity=sensitivity)
    step_size = balanced_step_size(n=n, dimension=columns, lipschitz=2.0, diameter=4 * length, sigma=sigma)
    projected = _Projected.draw(instance, columns=columns, dimension=dimension, trials=trials, key=key)
    learner = DualAveraging(projected.records, DualAveragingSettings(step_size, 2 * length))
    passed = _run(learner, instance, sensitivity, n=n, rho=rho, trials=trials, key=key, apart=projected.kinds)
    rate = length * (1 / math.sqrt(n) + 1 / math.cbrt(n * rho))
    return instance.excess(projected.lift(passed.average)), rate


Learner = Callable[..., tuple[Tensor, float]]
LEARNERS: dict[str, tuple[Learner, Loss]] = {
    "Frank-Wolfe": (frank_wolfe, "logistic"),
    "dual averaging": (dual_averaging, "absolute"),
}
"""The learners whose rates depend on the number of columns, and their losses; the keys are the names of the lines."""
PROJECTED: dict[str, tuple[Learner, Loss]] = {
    "projected Frank-Wolfe": (projected_frank_wolfe, "logistic"),
    "projected dual averaging": (projected_dual_averaging, "absolute"),
}
"""The learners whose rates do not depend on the number of columns."""


@dataclass(frozen=True)
class _Projected:
    """Records with projected rows: each trial has its own matrix.

    The records of trial ``r`` begin at index ``r * kinds``.
    """

    records: RecordGradients
    projections: tuple[Projection, ...]
    kinds: int

    @classmethod
    def draw(
        cls, instance: Blocks, *, columns: int, dimension: int, trials: int, key: tuple[str | int, ...]
    ) -> "_Projected":
        blocks = len(instance.best)
        projections = tuple(
            Projection.draw(dimension=columns, features=dimension, draws=Draws.at(*key, "projection", trial))
            for trial in range(trials)
        )
        # A row has one entry, 1, so its projection is a column of the matrix.
        rows = torch.cat([each.matrix[:, :blocks].T.repeat(2, 1) for each in projections])
        return cls(instance.gradients(rows, instance.labels.repeat(trials)), projections, 2 * blocks)

    def lift(self, models: Tensor) -> Tensor:
        return torch.cat([each.lift(own[None]) for each, own in zip(self.projections, models, strict=True)])


def _records(instance: Blocks, dimension: int) -> RecordGradients:
    rows = torch.eye(len(instance.best), dimension, dtype=torch.float64).repeat(2, 1)
    return instance.gradients(rows, instance.labels)


def _run(
    learner: PrefixLearner,
    instance: Blocks,
    sensitivity: float,
    *,
    n: int,
    rho: float,
    trials: int,
    key: tuple[str | int, ...],
    apart: int = 0,
) -> Passed:
    """Learn from records that every trial draws anew; ``apart`` is the offset between trials' records."""
    draws = Draws.at(*key, "pass")
    orders = torch.searchsorted(instance.law.cumsum(0), draws.uniform(trials, n)).clamp(max=len(instance.law) - 1)
    orders += apart * torch.arange(trials)[:, None]
    return one_pass(learner, calibrated_sigma(n=n, rho=rho, sensitivity=sensitivity), orders, draws)
