"""Certified refit by passes, for three or more classes: a request starts where the last request ended.

The state consists of weights ``w``, the gradient ``g`` over the remaining rows that was evaluated at ``w``, and a guide
(`guide`). When records leave, their contribution to ``g`` is computed in time ``O(S d)``. So the remaining gradient is
known without a pass, and a step against it is taken. Then passes follow. Each pass evaluates the gradient over the
remaining rows and takes a step against it. The passes end when the gradient's norm plus rounding is within the budget.
Usually one or two passes suffice.

*The certificate* is about the last evaluated gradient: ``|w - w*_R| <= |grad f_R(w)| / m <= budget / m``. The way in
which ``w`` was found does not matter: neither the guide nor the gradient from which a request starts affects the bound.

*Adaptive requests.* The weights and the guide depend on records that were removed before, and on the order of removals.
They depend on published noise only through the requests: weights and guide are functions of the data and of the
requests so far. Given the past releases, the requests are fixed. Then the weights are fixed, too, and the next release
is Gaussian around them. Whatever these weights are, they are at most ``budget / m`` away from the exact minimiser on
the remaining records. `accounting.residual.release` requires only this: given the past releases, the mean of each
release is shifted by at most ``budget / m``. The number of passes of a request is not part of a release. Certificates
state the assumption that nobody infers anything from it.

*The secret state* depends on removed records until the model is learned anew. Passes do not end this dependence: the
old weights may already be within the budget, and the guide was made with the removed records. A reading starts from
scratch. A reading takes place when more than `RefitPlan.records_between_reads` records have been removed. If passes do
not converge, a reading takes place earlier.
"""

from typing import NamedTuple

import numpy as np

from certified_unlearning.accounting.residual import rounding
from certified_unlearning.engine.objectives.float64 import SoftmaxRegression64
from certified_unlearning.mechanisms.certified_refit import (
    SAMPLE_SHARE,
    SOLVER_SHARE,
    Fitted,
    damped,
    gradient_error,
    norm_above,
    refit,
    sampled,
)
from certified_unlearning.mechanisms.newton.secants import Secants
from certified_unlearning.mechanisms.newton.state import Array
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from certified_unlearning.mechanisms.refits.guide import KEPT, factor_at, guide_of, secants_of, thinned

MOST_PASSES = 40
"""Largest number of passes of a request.

If they do not suffice, the model is fitted from scratch, which takes about as long.
"""
_ROUNDS = 60


class Point(NamedTuple):
    """Weights, and the gradient over all relevant rows that was evaluated at these weights."""

    weights: Array
    gradient: Array


def fit(plan: RefitPlan, objective: SoftmaxRegression64) -> Fitted:
    """Fit from scratch until the certified gradient is within `SOLVER_SHARE` of the budget.

    The solver is L-BFGS. The initial weights are zero, and the initial curvature is the shared curvature at equal
    probabilities. If there are many records, the solver runs twice: first on a sample, and then on all records. The
    second run starts with the weights that the first run found, and with the shared curvature at these weights.

    Args:
        plan: The plan, for three or more classes.
        objective: The objective on dense rows, from `objective_of`.

    Raises:
        InfeasibleError: No solver converged.
        AssumptionError: The shared curvature is not positive definite in float64.
    """
    target, every = SOLVER_SHARE * plan.budget, sampled(*objective.rows.shape)
    some, start = thinned(objective, every), np.zeros(objective.dimension)
    secants = _secants(plan, factor_at(some, start))
    point = Point(start, some.gradient(start))
    if every > 1:
        enough = max(target, SAMPLE_SHARE * float(np.linalg.norm(point.gradient)))
        weights = _descended(plan, some, point, secants, enough, _ROUNDS).weights
        factor = factor_at(objective, weights)
        secants, point = _secants(plan, factor), Point(weights, objective.gradient(weights))
        point = _descended(plan, objective, point, secants, target, _ROUNDS, certified=True)
    else:
        point = _descended(plan, objective, point, secants, target, _ROUNDS, certified=True)
        factor = factor_at(objective, point.weights)
    if residual_of(plan, objective, point) > target:
        # A sample may be a poor guide, and secants may fail to converge. Newton's method needs neither.
        found = refit(plan, objective).weights
        point, factor = Point(found, objective.gradient(found)), factor_at(objective, found)
        secants = _secants(plan, factor)
    return _fitted(plan, objective, point, factor, secants)


def corrected(
    plan: RefitPlan, fitted: Fitted, gone: SoftmaxRegression64 | None, objective: SoftmaxRegression64
) -> Fitted | None:
    """Return the model after passes that remove some records; None if `MOST_PASSES` passes do not suffice.

    Args:
        plan: The plan.
        fitted: The model with these records.
        gone: The loss on the rows of these records, without regulariser. None if the rows are lost, which costs one
            more pass.
        objective: The loss on all rows; those of removed records are zero.
    """
    weights, guide = fitted.weights, fitted.guide
    if guide is None:
        return None
    secants = guide.secants(classes=plan.classes, strong_convexity=plan.strong_convexity)
    if gone is None:
        point = Point(weights, objective.gradient(weights))
    else:
        # This gradient does not belong to a `Point`: only gradients evaluated over the remaining rows are certified.
        known = guide.gradient - gone.gradient(weights)
        there = weights - secants.solved(known)
        point = Point(there, objective.gradient(there))
        if not float(np.linalg.norm(point.gradient)) <= float(np.linalg.norm(known)):
            point = Point(weights, objective.gradient(weights))
        else:
            _learn(secants, there - weights, point.gradient - known)
    point = _descended(plan, objective, point, secants, plan.budget, MOST_PASSES - 1, certified=True)
    if residual_of(plan, objective, point) > plan.budget:
        return None
    return _fitted(plan, objective, point, guide.factor, secants)


def residual_of(plan: RefitPlan, objective: SoftmaxRegression64, point: Point) -> float:
    """Return an upper bound, rounded up, on the norm of the exact gradient at a point, from the evaluated gradient."""
    error = gradient_error(plan, point.weights, objective.terms)
    return (norm_above(point.gradient) + error) * rounding.OUTWARD


def _fitted(plan: RefitPlan, objective: SoftmaxRegression64, point: Point, factor: Array, secants: Secants) -> Fitted:
    residual = residual_of(plan, objective, point)
    return Fitted(point.weights, residual, guide_of(point.gradient, factor, secants) if plan.by_passes else None)


def _secants(plan: RefitPlan, factor: Array) -> Secants:
    return secants_of(factor, classes=plan.classes, strong_convexity=plan.strong_convexity)


def _descended(
    plan: RefitPlan,
    objective: SoftmaxRegression64,
    point: Point,
    secants: Secants,
    enough: float,
    most: int,
    *,
    certified: bool = False,
) -> Point:
    """Return a point with a small enough gradient, or the point after the largest number of steps.

    Args:
        plan: The plan.
        objective: The loss.
        point: Point at which to start.
        secants: The guide; every step updates it.
        enough: Norm of the gradient that is small enough.
        most: Largest number of steps.
        certified: Whether rounding is added to the norm. This rounding is that of the plan's rows, not that of a
            sample's rows.
    """
    for _ in range(most):
        size = residual_of(plan, objective, point) if certified else float(np.linalg.norm(point.gradient))
        if size <= enough:
            break
        there = Point(*damped(objective, point.weights, point.gradient, -secants.solved(point.gradient)))
        if there.weights is point.weights:
            break
        _learn(secants, there.weights - point.weights, there.gradient - point.gradient)
        point = there
    return point


def _learn(secants: Secants, step: Array, change: Array) -> None:
    secants.add(step, change)
    del secants.pairs[:-KEPT]
