"""Enforces the share of a sensitivity that the rounding of gradients may take, if weights have no ball.

The norm of weights is public there, and so is the error of a gradient. If two points are so near that the rounding of
their difference would exceed its share, their distance is counted as large enough.
"""

import torch
from torch import Tensor

from certified_unlearning.accounting.private.arithmetic import gradient_error
from certified_unlearning.accounting.private.learners import ROUNDING_SHARE
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.errors import AssumptionError

LENGTH_ERROR = 1e-9
"""Upper bound on the relative error of a computed distance."""


def mean_gradient_error(problem: LinearProblem, bound: float, records: int, weights: Tensor) -> float:
    """Return the largest distance of mean gradients at public weights from the exact ones.

    Args:
        problem: Bounds of the records.
        bound: Largest norm of a record's gradient.
        records: Number of records of a mean.
        weights: Shape ``(trials, features)``.
    """
    return gradient_error(
        n=records,
        features=problem.features,
        row_norm=problem.row_norm,
        slope=bound / problem.row_norm,
        smoothness=problem.loss.smoothness,
        weight_norm=float(torch.linalg.vector_norm(weights, dim=1).max()),
    )


def require_share(error: float, bound: float, records: int) -> None:
    """Raise `AssumptionError` if rounding exceeds its share of a gradient's sensitivity, by public numbers."""
    allowed = ROUNDING_SHARE * bound / records
    if not 2 * error <= allowed:
        raise AssumptionError(
            f"gradients are computed to {error:.3g} in float64 at weights so large, of which the plan allows "
            f"{allowed / 2:.3g}; a smaller step_size, or less noise, keeps weights small"
        )


def counted_distances(
    problem: LinearProblem, error: float, records: int, farthest: float, one: Tensor, other: Tensor
) -> Tensor:
    """Return the counted distances of points, shape ``(trials, 1)``; a difference has the rounding of two gradients.

    Args:
        problem: Bounds of the records.
        error: Error of a mean gradient.
        records: Number of records of a mean.
        farthest: Distance from which on a difference is bounded by its gradients.
        one: One point, shape ``(trials, features)``.
        other: The other point, of the same shape.
    """
    apart: Tensor = torch.linalg.vector_norm(one - other, dim=1, keepdim=True) * (1 + LENGTH_ERROR)
    least = 4 * error * records / (ROUNDING_SHARE * problem.smoothness)
    return apart.clamp(min=least, max=max(least, farthest))
