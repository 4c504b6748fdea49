"""Certified refit by passes, for three classes and more: a request starts where the last one ended.

State: weights ``w``, the gradient ``g`` that was evaluated there over the remaining rows, and a guide (`guide`). When
records leave, their contribution to ``g`` is computed in time ``O(S d)``, so the remaining gradient is known without a
pass, and a step is taken against it. Then passes follow: the gradient over the remaining rows is evaluated, and a step
taken against it, until its norm plus rounding is within the budget. Usually one or two passes suffice.

*What is certified* is the last evaluated gradient: ``|w - w*_R| <= |grad f_R(w)| / m <= budget / m``. How ``w`` was
found does not matter: neither the guide nor the gradient that a request starts from affects the bound.

*Adaptive requests.* The weights and the guide depend on records that were removed before, and on their order of
removal. They depend on published noise only through the requests: each is a function of the data and of the requests so
far. So given the past releases, and with them the requests, the next release is Gaussian about weights that are fixed,
at most ``budget / m`` from the exact minimiser on the remaining records, whichever of the possible weights these are.
This is all that `accounting.residual.release` requires: one shift of at most ``budget / m`` per release, given the
past. The number of passes of a request is not part of a release; that nobody concludes anything from it is an
assumption that certificates state.

*The secret state* depends on removed records until the model is learned anew: passes wash nothing out, because the old
weights may already be within the budget, and the guide was made with the removed records. A reading starts from
scratch. It comes after `RefitPlan.records_between_reads` removed records as planned, and earlier if passes do not
converge.
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
"""Number of passes of a request after which the model is learned anew, which takes about as long."""
_ROUNDS = 60


class Point(NamedTuple):
    """Weights and the gradient that was evaluated there, over all relevant rows."""

    weights: Array
    gradient: Array


def fit(plan: RefitPlan, objective: SoftmaxRegression64) -> Fitted:
    """Fit from scratch until the certified gradient is within `SOLVER_SHARE` of the budget.

    This uses L-BFGS from the shared curvature at equal probabilities, over a sample if there are many records, and then
    over all of them from the shared curvature there.

    Args:
        plan: The plan, of three classes or more.
        objective: `objective_of` dense rows.

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
    """Return the model without some records, by passes; None if `MOST_PASSES` do not suffice.

    Args:
        plan: The plan.
        fitted: The model with them.
        gone: The loss over their rows, without regulariser; None if these are lost, which takes one more pass.
        objective: The loss over all rows, zero where removed.
    """
    weights, guide = fitted.weights, fitted.guide
    if guide is None:
        return None
    secants = guide.secants(classes=plan.classes, strong_convexity=plan.strong_convexity)
    if gone is None:
        point = Point(weights, objective.gradient(weights))
    else:
        # Only gradients evaluated over the remaining rows are certified, so this one does not belong to a `Point`.
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
    """Return a bound on the norm of the gradient at some weights, from the evaluated one; rounded up."""
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
    """Return weights with a small enough gradient, or those after the largest number of steps.

    Args:
        plan: The plan.
        objective: The loss.
        point: Where to start.
        secants: The guide, which is updated by every step.
        enough: Sufficient norm of the gradient.
        most: Largest number of steps.
        certified: Whether rounding is added to the norm; it is that of the plan's rows, not of a sample.
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
