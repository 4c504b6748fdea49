"""Certified refit: a solver runs until the evaluated gradient plus its rounding is within a public budget.

A model is planned from counts alone. The published model is ``w + N(0, sigma^2 I)``. It is compared with
``w*_R + N(0, sigma^2 I)``, the exact minimiser on the remaining records with the same noise
(`accounting.residual.release`). Every request reads the data ten to twenty times. For sparse rows, and for rows with
more than `refit_plan.LARGEST_FACTOR` columns, this is the only mechanism here. For other rows, models of two classes
can also use `newton_removal`, and models of more classes can use passes (`refits.softmax`).

A refit starts from scratch. Starting from the old weights would need fewer passes over the data. But the old weights
may already be within the budget. A refit would then keep these weights, which were learned with the removed records.
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
"""Largest share of a gradient that may remain after a Newton step."""
LAST_SHARE = 0.3
"""Largest share of the target gradient that may remain after the last Newton step."""
SAMPLE_SHARE = 1e-3
"""A fit on a sample stops when the norm of the gradient is at most this share of the first gradient's norm.

A smaller gradient would not help, because the records outside the sample change the solution by more.
"""
SAMPLED = 16
"""A fit starts from the solution on a sample. The sample contains at least one in this many records."""
LEAST_SAMPLE = 2000
"""Smallest number of records in a sample.

A smaller sample is not worthwhile.
"""
FINEST = 1e-4
"""Largest gradient, as a share of the budget, of a minimiser that is exact enough to distinguish distributions."""
LOSS_ROUNDING = 1e-13
"""Largest relative increase of a loss that may be due to float64 rounding alone."""
_ROUNDS = 60
_QUICK = 15
"""Number of steps at the beginning of a fit that are accepted if they make the gradient smaller.

Each later step must also not increase the loss. Checking the loss costs a pass.
"""


class Fitted(NamedTuple):
    """A model that was fitted without a Newton factor.

    All fields are secret, because they depend on the records.

    Attributes:
        weights: ``w``, without noise, shape ``(d,)``.
        residual: Upper bound on the norm of the gradient at these weights.
        guide: Information from which the next request starts; None if every request learns anew.
    """

    weights: Array
    residual: float
    guide: Guide | None = None


def refit(plan: RefitPlan, objective: Objective) -> Fitted:
    """Fit from scratch, without any matrix, until the certified gradient is within `SOLVER_SHARE` of the budget.

    The solver is Newton's method with conjugate gradients. If there are many records, it first runs on a sample. L-BFGS
    would read the data four times as often.

    Args:
        plan: The plan.
        objective: The objective on the rows, from `objective_of`.

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
        f"after {_ROUNDS} Newton steps, the gradient's norm is {residual:.3g}, but the budget allows at most "
        f"{target:.3g}; a larger sigma or a smaller C makes the budget larger"
    )


def minimiser(plan: RefitPlan, objective: Objective, weights: Array) -> Array:
    """Return the exact minimiser, to within `FINEST` of the budget or as near as float64 allows.

    Args:
        plan: The plan.
        objective: The objective on the rows, from `objective_of`.
        weights: Weights of a fitted model, at which the solver starts.
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
    """Return weights and gradient after the ``number``-th Newton step.

    The step is solved no more accurately than is useful.
    """
    size = float(np.linalg.norm(gradient))
    tolerance = max(min(LOOSEST, math.sqrt(size)), LAST_SHARE * target / size)
    step = conjugate_gradients(objective.hessian_at(weights), gradient, tolerance=min(tolerance, LOOSEST))
    return damped(objective, weights, gradient, -step, by_loss=number >= _QUICK)


def objective_of(
    plan: RefitPlan, rows: Rows, labels: NDArray[np.float64] | NDArray[np.int64], positive: int | None = None
) -> Objective:
    """Return the loss on these rows.

    The rows of removed records must be zero.

    Args:
        plan: The plan.
        rows: The rows of all records.
        labels: The labels of all records.
        positive: The class that is compared with the rest, for a plan `RefitPlan.of_one_class`; None for other plans.
    """
    if positive is not None:
        return LogisticRegression64(
            rows, labels, plan.n, plan.strong_convexity, plan.classes, plan.class_weights, positive
        )
    kinds: dict[int, type[Objective]] = {1: RidgeRegression64, 2: LogisticRegression64}
    kind = kinds.get(plan.classes, SoftmaxRegression64)
    return kind(rows, labels, plan.n, plan.strong_convexity, plan.classes, plan.class_weights)


def sampled(records: int, features: int) -> int:
    """Return ``k`` if a first solution should use every ``k``-th record; 1 if a sample is not worthwhile."""
    every = records // max(LEAST_SAMPLE, 2 * features, records // SAMPLED)
    return every if every >= 3 else 1


def gradient_error(plan: RefitPlan, weights: Array, terms: rounding.Terms | None = None) -> float:
    """Return an upper bound on the distance between an evaluated gradient over all rows and the exact gradient.

    Args:
        plan: The plan.
        weights: Weights at which the gradient was evaluated.
        terms: Number of terms in the gradient's sums. None: the number for dense rows, which is never too small.
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
    """Return weights and gradient after a step.

    The step is halved until the gradient or the loss decreases.

    Args:
        objective: The loss.
        weights: Weights at which the step begins.
        gradient: The gradient at these weights.
        step: The whole step.
        by_loss: Whether a smaller gradient is accepted only if the loss does not rise. Otherwise, steps by the two
            criteria could alternate forever.
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
    """Return an approximation of ``H^-1 right``.

    The norm of the approximation's remainder is at most ``tolerance`` times that of ``right``.

    Args:
        product: Function that multiplies a vector by ``H``, which must be positive definite.
        right: The right-hand side, shape ``(d,)``.
        tolerance: Largest norm of the remainder, divided by the norm of ``right``; above 0.
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
    """Return an upper bound on a vector's norm."""
    # NumPy's norm is several times slower for short vectors, and requests take little time.
    return rounding.norm_above(math.sqrt(float(vector @ vector)), vector.size)
