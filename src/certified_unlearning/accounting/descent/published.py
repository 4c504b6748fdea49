"""Descent-to-Delete (Neel, Roth, Sharifi-Malvajerdi 2021), as Langevin unlearning's Appendix N states it.

Plain gradient descent with ``eta = 2 / (L + m)``, projected onto a ball, contracts by ``gamma = (L - m) / (L + m)``.
Gaussian noise of standard deviation ``sigma`` per coordinate is added only on publication.

Theorems N.1 and N.2 are stated for requests that add or remove one record. Langevin unlearning applies them unchanged
to replacement, and this module applies them unchanged to every adjacency. So the values are *as published*, not derived
here.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from certified_unlearning.accounting.core.checks import (
    require_count,
    require_counts,
    require_positive,
    require_probability,
)
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.rounding import EXACT
from certified_unlearning.accounting.shifted.arithmetic import FREE, RoundingCost, descent_floor, triangle_price
from certified_unlearning.accounting.shifted.interpolation import contraction_gap
from certified_unlearning.errors import AssumptionError, InfeasibleError
from certified_unlearning.text import counted

# Allowed relative deviation of a step size or a number of steps from its formula, due to rounding.
ROUNDING = 1e-12


class PublishedStatePlan(NamedTuple):
    """How Theorem N.2 answers a stream of requests.

    Attributes:
        bound_on_steps: The theorem's lower bound on ``I``, a real number. ``I`` is this bound rounded up.
        steps_per_request: Number of steps of each request: ``I`` plus the extra steps, rounded up.
        sigma: Standard deviation of the published noise.
    """

    bound_on_steps: float
    steps_per_request: list[int]
    sigma: float


def descent_step_size(*, strong_convexity: float, smoothness: float) -> float:
    """Return the step size that both theorems prescribe, ``2 / (L + m)``."""
    return 2 / (smoothness + strong_convexity)


def secret_state_sigma(problem: Problem, *, epsilon: float, delta: float, steps: int) -> float:
    """Return the published noise of Theorem N.1 (Neel et al.'s Theorem 9), which keeps the noiseless weights secret.

    The noise is ``4 sqrt(2) M gamma^I / (m n (1 - gamma^I) (sqrt(log(1/delta) + epsilon) - sqrt(log(1/delta))))``. The
    theorem requires at least `least_learning_steps`. It also assumes ``epsilon = O(log(1/delta))``. The constant is not
    named, so this assumption is not checked.

    Args:
        problem: The constants; its step size must be `descent_step_size`.
        epsilon: Target epsilon.
        delta: Strictly between 0 and 1.
        steps: Number of steps of each request, ``I``, at least 1.

    Raises:
        AssumptionError: The step size is not `descent_step_size`, or ``m = L``.
    """
    require_positive(epsilon=epsilon)
    require_probability(delta=delta)
    require_count(least=1, steps=steps)
    distance = _rounded_distance(problem, steps)
    return 4 * math.sqrt(2) * distance / _root_difference(-math.log(delta), epsilon)


def secret_state_epsilon(problem: Problem, *, sigma: float, delta: float, steps: int) -> float:
    """Return the epsilon for which Theorem N.1 requires ``sigma``: the inverse of `secret_state_sigma`.

    The theorem is stated for adding or removing a record, and is applied unchanged to the problem's adjacency. The
    errors are those of `secret_state_sigma`.
    """
    require_positive(sigma=sigma)
    require_probability(delta=delta)
    require_count(least=1, steps=steps)
    difference = 4 * math.sqrt(2) * _rounded_distance(problem, steps) / sigma
    return difference * difference + 2 * difference * math.sqrt(-math.log(delta))


def published_state_plan(
    problem: Problem, *, epsilon: float, delta: float, dimension: int, request_count: int
) -> PublishedStatePlan:
    """Return steps and noise of Theorem N.2 (Neel et al.'s Theorem 28), in which the published model is the only state.

    With ``l = 2 log(2/delta)``, request ``i`` takes ``I + log(log(4 d i / delta)) / log(1/gamma)`` steps, where

        ``I >= log(sqrt(2 d) / ((1 - gamma) (sqrt(l + epsilon) - sqrt(l)))) / log(1/gamma)`` and
        ``sigma = 8 M gamma^I / (m n (1 - gamma^I) (sqrt(l + 3 epsilon) - sqrt(l + 2 epsilon)))``.

    Both the steps and sigma use the smallest integer ``I`` that the bound allows. For MNIST 3 vs 8, spectral ``L`` and
    epsilon = 1, ``I = 66`` and sigma = 1.56e-4. The published code computes sigma from all steps of the request
    (8.09e-6), which the theorem does not allow. The theorem requires at least `least_learning_steps`.

    Args:
        problem: The constants; its step size must be `descent_step_size`.
        epsilon: Target epsilon after every request.
        delta: Strictly between 0 and 1.
        dimension: ``d``, the number of parameters.
        request_count: Number of requests, of one record each.

    Raises:
        AssumptionError: The step size is not `descent_step_size`, or ``m = L``.
    """
    require_positive(epsilon=epsilon)
    require_count(least=1, request_count=request_count)
    if problem.rounding != EXACT:
        exact, inner, share = replace(problem, rounding=EXACT), epsilon, 1e-12
        while inner > 0:
            plan = published_state_plan(
                exact, epsilon=inner, delta=delta, dimension=dimension, request_count=request_count
            )
            price = published_state_price(problem, sigma=plan.sigma, epsilon=inner, delta=delta).epsilon
            if inner + price <= epsilon:
                return plan
            # A smaller epsilon may need more steps and less noise, so several iterations may be necessary.
            inner, share = min(epsilon - price, inner * (1 - share)), 2 * share
        raise InfeasibleError(
            f"rounding alone uses more than epsilon = {epsilon} at delta = {delta}; raise epsilon, or use dtype float64"
        )
    bound = _bound_on_steps(problem, epsilon, delta, dimension)
    # At least 1, because sigma is infinite at I = 0.
    steps = max(1, math.ceil(bound))
    offset = 2 * math.log(2 / delta) + 2 * epsilon
    sigma = 8 * _residual_distance(problem, steps) / _root_difference(offset, epsilon)
    steps_per_request = [
        steps + math.ceil(extra_steps(problem, delta=delta, dimension=dimension, request=request))
        for request in range(1, request_count + 1)
    ]
    return PublishedStatePlan(bound, steps_per_request, sigma)


def extra_steps(problem: Problem, *, delta: float, dimension: int, request: int) -> float:
    """Return the steps that Theorem N.2 adds to ``I`` in a request, ``log(log(4 d i / delta)) / log(1/gamma)``.

    Args:
        problem: The constants; its step size must be `descent_step_size`.
        delta: Strictly between 0 and 1.
        dimension: ``d``, the number of parameters.
        request: Number ``i`` of the request, counted from 1.

    Raises:
        AssumptionError: The step size is not `descent_step_size`, or ``m = L``.
    """
    require_probability(delta=delta)
    require_count(least=1, dimension=dimension, request=request)
    return math.log(math.log(4 * dimension * request / delta)) / _log_inverse_contraction(problem)


def published_state_epsilon(
    problem: Problem, *, sigma: float, delta: float, dimension: int, steps_per_request: Sequence[int]
) -> float:
    """Return the epsilon for which Theorem N.2 requires ``sigma``: the inverse of `published_state_plan`.

    The theorem is stated for adding or removing a record, and is applied unchanged to the problem's adjacency.

    Args:
        problem: The constants; its step size must be `descent_step_size`.
        sigma: Standard deviation of the published noise.
        delta: Strictly between 0 and 1.
        dimension: ``d``, the number of parameters.
        steps_per_request: Numbers of steps of the requests, in order. Each request removes one record.

    Raises:
        AssumptionError: The step size differs from `descent_step_size`, or ``m`` equals ``L``, or a request has fewer
            steps than the theorem needs for the resulting epsilon.
    """
    require_positive(sigma=sigma)
    require_counts("steps_per_request", steps_per_request, least=1)
    steps = min(
        total - math.ceil(extra_steps(problem, delta=delta, dimension=dimension, request=request))
        for request, total in enumerate(steps_per_request, start=1)
    )
    if steps < 1:
        raise AssumptionError(
            f"steps_per_request is too small: by Theorem N.2, a request needs {counted(1 - steps, 'more step')}"
        )
    difference = 8 * _residual_distance(problem, steps) / sigma
    offset = 2 * math.log(2 / delta)
    # This solves sqrt(l + 3 epsilon) - sqrt(l + 2 epsilon) = difference for epsilon.
    epsilon = 5 * difference**2 + 2 * difference * math.sqrt(6 * difference**2 + offset)
    bound = _bound_on_steps(problem, epsilon, delta, dimension)
    if steps < bound * (1 - ROUNDING):
        raise AssumptionError(
            f"this sigma gives epsilon = {epsilon}, for which Theorem N.2 needs I >= {bound} steps in addition to the "
            f"extra steps, got I = {steps}"
        )
    return epsilon + published_state_price(problem, sigma=sigma, epsilon=epsilon, delta=delta).epsilon


def published_state_price(problem: Problem, *, sigma: float, epsilon: float, delta: float) -> RoundingCost:
    """Return what rounding adds to the guarantee of Theorem N.2, which covers only exact runs."""
    if problem.rounding == EXACT:
        return FREE
    return triangle_price(descent_floor(problem).mu(sigma) / 2, epsilon=epsilon, delta=delta)


def least_learning_steps(problem: Problem, *, radius: float, steps: int) -> int:
    """Return the fewest learning steps that both theorems allow, ``T >= I + log(2 R m n / (2 M)) / log(1/gamma)``.

    Args:
        problem: The constants; its step size must be `descent_step_size`.
        radius: Radius ``R`` of the ball that every step projects onto.
        steps: Number of steps of each request, ``I``.

    Raises:
        AssumptionError: The step size is not `descent_step_size`, or ``m = L``.
    """
    require_positive(radius=radius)
    require_count(least=1, steps=steps)
    reduction = radius * problem.strong_convexity * problem.n / problem.lipschitz
    return max(0, math.ceil(steps + math.log(reduction) / _log_inverse_contraction(problem)))


def _bound_on_steps(problem: Problem, epsilon: float, delta: float, dimension: int) -> float:
    """Return Theorem N.2's lower bound on ``I``, which may be negative."""
    require_probability(delta=delta)
    require_count(least=1, dimension=dimension)
    one_minus_gamma = problem.step_size * problem.strong_convexity
    difference = _root_difference(2 * math.log(2 / delta), epsilon)
    log_reduction = math.log(math.sqrt(2 * dimension) / (one_minus_gamma * difference))
    return log_reduction / _log_inverse_contraction(problem)


def _residual_distance(problem: Problem, steps: int) -> float:
    """Return ``M gamma^I / (m n (1 - gamma^I))``. If this underflows, return the least double, which is larger."""
    exponent = steps * _log_inverse_contraction(problem)
    share = math.exp(-exponent) / -math.expm1(-exponent)
    return max(problem.lipschitz / (problem.strong_convexity * problem.n) * share, sys.float_info.min)


def _rounded_distance(problem: Problem, steps: int) -> float:
    """Return `_residual_distance` plus an eighth of the rounding of computed steps.

    Rounding adds at most ``2 rho / (1 - gamma)`` to the distance of two runs, and Theorem N.1's noise hides 8 times the
    returned distance.
    """
    distance = _residual_distance(problem, steps)
    if problem.rounding == EXACT:
        return distance
    added = 2 * problem.rounding.fixed / contraction_gap(problem)
    return distance * (1 + problem.rounding.norm_excess) + added / 8


def _log_inverse_contraction(problem: Problem) -> float:
    """Return ``log(1/gamma)``, after checking that steps of this size contract by ``gamma``."""
    require_descent_step_size(problem)
    if problem.strong_convexity == problem.smoothness:
        raise AssumptionError(
            f"Descent-to-Delete's formulas need strong_convexity < smoothness, got {problem.strong_convexity} for both"
        )
    return 2 * math.atanh(problem.strong_convexity / problem.smoothness)


def descent_problem(problem: Problem) -> Problem:
    """Return the same problem with the step size that Descent-to-Delete prescribes."""
    step_size = descent_step_size(strong_convexity=problem.strong_convexity, smoothness=problem.smoothness)
    return replace(problem, step_size=step_size)


def require_descent_step_size(problem: Problem) -> None:
    """Raise `AssumptionError` unless a strongly convex problem's step size is `descent_step_size`."""
    problem.require_strong_convexity()
    prescribed = descent_step_size(strong_convexity=problem.strong_convexity, smoothness=problem.smoothness)
    if not math.isclose(problem.step_size, prescribed, rel_tol=ROUNDING):
        raise AssumptionError(
            "Descent-to-Delete's theorems need step_size = 2 / (smoothness + strong_convexity) = "
            f"{prescribed}, got {problem.step_size}"
        )


def _root_difference(offset: float, epsilon: float) -> float:
    """Return ``sqrt(offset + epsilon) - sqrt(offset)`` without cancellation."""
    return epsilon / (math.sqrt(offset + epsilon) + math.sqrt(offset))
