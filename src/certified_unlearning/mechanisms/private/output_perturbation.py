"""Output perturbation (Algorithm 3): a regularised minimiser in a ball, published with noise.

The weights are computed to within a certified distance of the minimiser.

Source: Ullah (2024). One projected step of size ``s = 1 / (L + lambda)`` certifies the distance between computed
weights and the minimiser. The step contracts distances by the factor ``1 - s lambda``, and the minimiser is its fixed
point. So weights that the step moves by ``a`` are within ``a / (s lambda)`` of the minimiser. This also holds on the
boundary of the ball, and for weights from any solver.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from certified_unlearning.accounting.private.learners import OutputPerturbation
from certified_unlearning.accounting.residual.rounding import OUTWARD, UNIT, norm_above
from certified_unlearning.engine.descent import project
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.engine.randomness import normal_rows
from certified_unlearning.errors import InfeasibleError
from certified_unlearning.mechanisms.private.fitting import require_fitting

MOST_STEPS = 200_000


def learn(plan: OutputPerturbation, records: BoundedRecords, keys: Sequence[int]) -> Tensor:
    """Return the minimiser with the noise of each trial, not projected.

    Arguments are those of `noisy_descent.learn`.

    Raises:
        InfeasibleError: The solver did not get as near to the minimiser as the plan assumes.
    """
    weights = minimiser(plan, records).repeat(len(keys), 1)
    return torch.add(weights, normal_rows(keys, weights), alpha=plan.sigma)


def minimiser(plan: OutputPerturbation, records: BoundedRecords) -> Tensor:
    """Return the minimiser to within the plan's `inexactness`, shape ``(1, features)``.

    The minimiser is secret. The solver is accelerated projected descent (Nesterov), which restarts if it overshoots.
    Raises the same errors as `learn`.
    """
    require_fitting(plan.problem, records)
    strength, smoothness = plan.strong_convexity, plan.problem.smoothness + plan.strong_convexity
    root = math.sqrt(strength / smoothness)
    momentum = (1 - root) / (1 + root)
    weights = records.rows.new_zeros(1, records.features)
    ahead = weights.clone()
    for _ in range(MOST_STEPS):
        there = _step(plan, records, ahead, smoothness)
        moved = there - ahead
        near = _distance(plan, moved) <= plan.inexactness
        # The certificate is for a point in the ball, where the rounding of gradients is bounded. Extrapolated points
        # may be outside.
        if near and _distance(plan, _step(plan, records, there, smoothness) - there) <= plan.inexactness:
            return there
        velocity = there - weights
        # The step is opposite to the momentum, so the momentum has overshot the minimum.
        overshot = float((moved * velocity).sum()) < 0
        weights, ahead = there, there if overshot else there + momentum * velocity
    raise InfeasibleError(
        f"after {MOST_STEPS} steps, the solver is not within {plan.inexactness:.3g} of the minimiser; it is faster "
        "with a larger strong_convexity, or with a wider parabola of the absolute loss"
    )


def _distance(plan: OutputPerturbation, moved: Tensor) -> float:
    """Return an upper bound, rounded up, on the distance of some weights from the minimiser.

    A step moves these weights by ``moved``.
    """
    problem, length = plan.problem, norm_above(float(torch.linalg.vector_norm(moved)), moved.shape[1])
    smoothness = problem.smoothness + plan.strong_convexity
    rounded = (problem.features + 16) * UNIT * (problem.longest_weights + problem.gradient_bound / smoothness)
    return ((length + rounded) * smoothness + problem.gradient_error) / plan.strong_convexity * OUTWARD


def _step(plan: OutputPerturbation, records: BoundedRecords, weights: Tensor, smoothness: float) -> Tensor:
    gradients = records.mean_gradients(weights).add_(weights, alpha=plan.strong_convexity)
    there = weights - gradients / smoothness
    project(there, plan.problem.radius)
    return there
