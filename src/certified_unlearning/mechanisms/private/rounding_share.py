"""Checks that the rounding of gradients stays within its share of a sensitivity, if no ball bounds the weights.

The norm of the weights is public here, and so is the error of a gradient. If two points are so close that the rounding
error of the difference of their gradients would exceed the share of the sensitivity that is allowed for rounding, a
larger distance is used instead of the distance between them.
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
    """Return an upper bound on the distance between computed and exact mean gradients at public weights.

    Args:
        problem: The problem, which states the bounds on the records.
        bound: Largest norm of a record's gradient.
        records: Number of records in a mean.
        weights: The weights, shape ``(trials, features)``.
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
    """Raise `AssumptionError` if rounding exceeds its share of a gradient's sensitivity.

    All numbers are public.
    """
    allowed = ROUNDING_SHARE * bound / records
    if not 2 * error <= allowed:
        raise AssumptionError(
            f"at weights this large, gradients in float64 have an error of {error:.3g}, but the plan allows at "
            f"most {allowed / 2:.3g}; a smaller step_size or less noise keeps weights small"
        )


def counted_distances(
    problem: LinearProblem, error: float, records: int, farthest: float, one: Tensor, other: Tensor
) -> Tensor:
    """Return, for each pair of points, the distance that noise must cover, shape ``(trials, 1)``.

    A difference of gradients includes the rounding errors of both gradients. So returned distances are large enough
    that the sum of these errors stays within the share for rounding.

    Args:
        problem: The problem, which states the bounds on the records.
        error: Error of a mean gradient.
        records: Number of records in a mean.
        farthest: Largest distance that is used; beyond it, the bounds on both gradients bound their difference.
        one: The first points, shape ``(trials, features)``.
        other: The second points, shape ``(trials, features)``.
    """
    apart: Tensor = torch.linalg.vector_norm(one - other, dim=1, keepdim=True) * (1 + LENGTH_ERROR)
    least = 4 * error * records / (ROUNDING_SHARE * problem.smoothness)
    return apart.clamp(min=least, max=max(least, farthest))
