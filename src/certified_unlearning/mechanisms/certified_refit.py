"""Certified refit: any solver, until the evaluated gradient plus its rounding is within a public budget.

A model is planned from counts alone. The published model is ``w + N(0, sigma^2 I)``, compared with
``w*_R + N(0, sigma^2 I)``, the exact minimiser on the remaining records with the same noise
(`accounting.residual.release`). Every request reads the data ten to twenty times. For rows of more than
`refit_plan.LARGEST_FACTOR` columns, and for sparse ones, this is the only way here. Two classes also have
`newton_removal`, and more classes have passes (`refits.softmax`).

A refit starts from scratch. A start from the old weights reads less, but these may already be within the budget: then
the secret weights would stay those learned with the removed records.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.accounting.residual import rounding
from certified_unlearning.engine.objectives.float64 import (
    LogisticRegression64,
    RidgeRegression64,
    Rows,
    SoftmaxRegression64,
)
from certified_unlearning.errors import InfeasibleError
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from certified_unlearning.mechanisms.refits.guide import Guide

Array = NDArray[np.float64]
Objective = LogisticRegression64 | SoftmaxRegression64 | RidgeRegression64
SOLVER_SHARE = 0.5
"""Share of the budget at which iterative solvers stop."""
LOOSEST = 0.3
"""Share of a gradient that a Newton step may leave."""
LAST_SHARE = 0.3
"""Share of the sufficient gradient that the last Newton step may leave."""
SAMPLE_SHARE = 1e-3
"""Share of the first gradient at which solutions on a sample stop, because other records make a larger difference."""
SAMPLED = 16
"""Fits start from the solution on a sample, of which this is the reciprocal share."""
LEAST_SAMPLE = 2000
"""With fewer records, a separate solution is not worthwhile."""
FINEST = 1e-4
"""Share of the budget at which a minimiser is exact enough to distinguish distributions."""
LOSS_ROUNDING = 1e-13
"""Apparent relative increase of a loss that float64 cannot distinguish from none."""
_ROUNDS = 60
_QUICK = 15
"""Number of steps accepted because the gradient falls; after them the loss, which costs a pass, must not rise."""


class Fitted(NamedTuple):
    """A model without a Newton step; all of it is secret, because it depends on the records.

    Attributes:
        weights: ``w``, without noise.
        residual: A bound on the gradient's norm there.
        guide: Starting information of the next request; None if every request learns anew.
    """

    weights: Array
    residual: float
    guide: Guide | None = None


def refit(plan: RefitPlan, objective: Objective) -> Fitted:
    """Fit from scratch until the certified gradient is within `SOLVER_SHARE` of the budget, without any matrix.

    Newton's method with conjugate gradients, first on a sample of many records. L-BFGS would read the data four times
    as often.

    Args:
        plan: The plan.
        objective: `objective_of` the rows.

    Raises:
        InfeasibleError: The solver did not converge.
    """
    target = SOLVER_SHARE * plan.budget
    weights, every = np.zeros(objective.dimension), sampled(*objective.rows.shape)
    if every > 1:
        some = objective.sample(every)
        gradient = some.gradient(weights)
        enough = max(target, SAMPLE_SHARE * float(np.linalg.norm(gradient)))
        for number in range(_ROUNDS):
            if np.linalg.norm(gradient) <= enough:
                break
            weights, gradient = _stepped(some, weights, gradient, enough, number)
    gradient, terms = objective.gradient(weights), objective.terms
    for number in range(_ROUNDS):
        residual = (norm_above(gradient) + gradient_error(plan, weights, terms)) * rounding.OUTWARD
        if residual <= target:
            return Fitted(weights, residual)
        weights, gradient = _stepped(objective, weights, gradient, target, number)
    raise InfeasibleError(
        f"after {_ROUNDS} Newton steps the gradient's norm is {residual:.3g}, but the budget allows {target:.3g}; a "
        "larger sigma, or a smaller C, allows more"
    )


def minimiser(plan: RefitPlan, objective: Objective, weights: Array) -> Array:
    """Return the exact minimiser, to `FINEST` of the budget or as near as float64 gets.

    Args:
        plan: The plan.
        objective: `objective_of` the rows.
        weights: Starting weights of a fitted model.
    """
    gradient = objective.gradient(weights)
    for number in range(_ROUNDS):
        size = float(np.linalg.norm(gradient))
        if size <= FINEST * plan.budget:
            break
        there, found = _stepped(objective, weights, gradient, FINEST * plan.budget, number)
        if not float(np.linalg.norm(found)) < size:
            break
        weights, gradient = there, found
    return weights


def _stepped(objective: Objective, weights: Array, gradient: Array, target: float, number: int) -> tuple[Array, Array]:
    """Return weights and gradient after the ``number``-th Newton step, solved as accurately as is worthwhile."""
    size = float(np.linalg.norm(gradient))
    tolerance = max(min(LOOSEST, math.sqrt(size)), LAST_SHARE * target / size)
    step = conjugate_gradients(objective.hessian_at(weights), gradient, tolerance=min(tolerance, LOOSEST))
    return damped(objective, weights, gradient, -step, by_loss=number >= _QUICK)


def objective_of(
    plan: RefitPlan, rows: Rows, labels: NDArray[np.float64] | NDArray[np.int64], positive: int | None = None
) -> Objective:
    """Return the loss over these rows; those of removed records are zero.

    Args:
        plan: The plan.
        rows: Rows.
        labels: Labels.
        positive: The class against the rest, for a plan `RefitPlan.of_one_class`; None for other plans.
    """
    if positive is not None:
        return LogisticRegression64(
            rows, labels, plan.n, plan.strong_convexity, plan.classes, plan.class_weights, positive
        )
    kinds: dict[int, type[Objective]] = {1: RidgeRegression64, 2: LogisticRegression64}
    kind = kinds.get(plan.classes, SoftmaxRegression64)
    return kind(rows, labels, plan.n, plan.strong_convexity, plan.classes, plan.class_weights)


def sampled(records: int, features: int) -> int:
    """Return the spacing of the records for a first solution; 1 if a sample is not worthwhile."""
    every = records // max(LEAST_SAMPLE, 2 * features, records // SAMPLED)
    return every if every >= 3 else 1


def gradient_error(plan: RefitPlan, weights: Array, terms: rounding.Terms | None = None) -> float:
    """Return the largest distance of an evaluated gradient over all rows from the exact one.

    Args:
        plan: The plan.
        weights: Weights where it was evaluated.
        terms: Number of terms of its sums; None: as for dense rows, or more.
    """
    return rounding.gradient_error(
        records=plan.n,
        n=plan.n,
        features=plan.features,
        classes=plan.classes,
        weight_norm=norm_above(weights),
        strong_convexity=plan.strong_convexity,
        terms=terms,
    )


def damped(
    objective: Objective, weights: Array, gradient: Array, step: Array, *, by_loss: bool = False
) -> tuple[Array, Array]:
    """Return weights and gradient after a step, halved until the gradient or the loss falls.

    Args:
        objective: The loss.
        weights: Where the step begins.
        gradient: The gradient there.
        step: The step.
        by_loss: Whether a smaller gradient is accepted only if the loss does not rise. Otherwise steps by the two
            criteria may alternate forever.
    """
    size, slope, before = float(np.linalg.norm(gradient)), float(gradient @ step), None
    for halvings in range(40):
        there = weights + step / 2**halvings
        found = objective.gradient(there)
        falls = np.linalg.norm(found) <= 0.9 * size
        if falls and not by_loss:
            return there, found
        if before is None:
            before = objective.value(weights)
        after = objective.value(there)
        if after < before + 1e-4 * slope / 2**halvings or (falls and after <= before + LOSS_ROUNDING * abs(before)):
            return there, found
    return weights, gradient


def conjugate_gradients(product: Callable[[Array], Array], right: Array, *, tolerance: float) -> Array:
    """Return an approximation of ``H^-1 right`` whose remainder is at most a share ``tolerance`` of ``right``.

    Args:
        product: ``H`` times a vector; positive definite.
        right: The right-hand side.
        tolerance: Above 0.
    """
    solution, remainder = np.zeros_like(right), right.copy()
    direction, size = right.copy(), float(right @ right)
    enough = tolerance**2 * size
    for _ in range(10 * len(right)):
        if size <= enough:
            break
        image = product(direction)
        length = size / float(direction @ image)
        solution += length * direction
        remainder -= length * image
        size, before = float(remainder @ remainder), size
        direction = remainder + size / before * direction
    return solution


def norm_above(vector: Array) -> float:
    """Return a bound on a vector's norm."""
    # NumPy's norm takes several times as long for few numbers, and requests are short.
    return rounding.norm_above(math.sqrt(float(vector @ vector)), vector.size)
