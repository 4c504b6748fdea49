"""Losses of linear scores, ``phi_y(<w, x>)``, and public bounds on the records.

Every privacy statement depends on the largest norm of a record's gradient. This norm is at most ``G |x|`` if ``phi``
has slopes up to ``G``. For smooth non-negative losses, ``|phi'(z)| <= |phi'(0)| + H |z|`` and
``|phi'(0)| <= sqrt(2 H phi(0))``. So in the ball of radius ``D``, the norm is at most ``(sqrt(2 H) Y + H D X) X``
(`ball_lipschitz`). The squared loss attains this bound. In the source, Lemma 10 and the proof of Theorem 10 have
smaller values, which are not valid bounds.

The notation is that of Ullah (2024): rows have norm at most ``X``, and ``phi_y(0) <= Y^2``. So for the squared loss,
``Y`` bounds the targets.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.private.arithmetic import gradient_error, row_excess
from certified_unlearning.accounting.private.releases import mean_sensitivity
from certified_unlearning.accounting.residual.rounding import OUTWARD, UNIT
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Relation

LossName = Literal["squared", "absolute", "huber", "logistic", "tanh"]
CONVEX: tuple[LossName, ...] = ("squared", "absolute", "huber", "logistic")
"""The convex losses, which output perturbation accepts. The loss of the tanh neuron is not convex."""
CAP = math.sqrt(2)
"""``c_Phi``: embedded rows are scaled down to at most this factor times the rows' bound."""
TANH_SLOPE = 2.370371
"""``sup |phi'|`` of ``(y - tanh z)^2`` with ``|y| <= 1``, rounded up. It is ``64 / 27``, for ``y = -1`` and
``tanh z = 1/3``."""
TANH_CURVATURE = 2.464938
"""``sup |phi''|`` of ``(y - tanh z)^2`` with ``|y| <= 1``, rounded up."""


@dataclass(frozen=True, kw_only=True)
class ScalarLoss:
    """A loss of a score and a target.

    ``squared`` is ``(z - y)^2``. ``absolute`` is ``|z - y|``, smoothed by a parabola of half-width ``width``. ``huber``
    is ``(z - y)^2 / 2`` up to ``width``, and linear beyond. ``logistic`` is ``log(1 + exp(-y z))`` with ``y`` -1 or 1.
    ``tanh`` is ``(y - tanh z)^2``, the loss of a neuron.

    Attributes:
        name: Name of the loss.
        target: Largest absolute value of a target. It must be 1 for ``logistic``, and at most 1 for ``tanh``.
        width: Width of ``absolute`` and ``huber``; None for the other losses.

    Raises:
        ParameterError: The name is not known, or a number is invalid for this loss.
    """

    name: LossName
    target: float = 1.0
    width: float | None = None

    def __post_init__(self) -> None:
        """Check every value."""
        if self.name not in get_args(LossName):
            raise ParameterError(f"loss must be one of {', '.join(get_args(LossName))}, got {self.name!r}")
        require_positive(target=self.target)
        if self.name in ("absolute", "huber"):
            if self.width is None:
                raise ParameterError(f"the {self.name} loss needs a width above 0, got none")
            require_positive(width=self.width)
        elif self.width is not None:
            raise ParameterError(
                f"width must be left out for the {self.name} loss, because only the absolute and the huber loss have a "
                f"width, got {self.width!r}"
            )
        if (self.name == "logistic" and self.target != 1) or (self.name == "tanh" and self.target > 1):
            raise ParameterError(
                f"target must be 1 for logistic and at most 1 for tanh, got {self.target!r} for {self.name}"
            )

    @property
    def convex(self) -> bool:
        """Whether the loss is convex in the score."""
        return self.name in CONVEX

    @property
    def lipschitz(self) -> float | None:
        """``G``, the largest absolute slope on the whole line; None if slopes are unbounded."""
        return {
            "squared": None,
            "absolute": 1.0,
            "huber": self.width,
            "logistic": 1.0,
            "tanh": TANH_SLOPE,
        }[self.name]

    @property
    def smoothness(self) -> float:
        """``H``, the largest absolute curvature."""
        if self.name == "absolute":
            return 1 / float(self.width or 1) * OUTWARD
        return {"squared": 2.0, "huber": 1.0, "logistic": 0.25, "tanh": TANH_CURVATURE}[self.name]

    @property
    def at_zero(self) -> float:
        """``Y``, rounded up, such that ``phi_y(0) <= Y^2`` for every target."""
        square = {
            "squared": self.target**2,
            "absolute": self.target,
            "huber": min(self.target**2 / 2, (self.width or 0) * self.target),
            "logistic": math.log(2),
            "tanh": self.target**2,
        }[self.name]
        return math.sqrt(square) * OUTWARD

    def ball_lipschitz(self, *, row_norm: float, radius: float) -> float:
        """Return ``G_w``, the largest norm of a record's gradient if weights have norm at most ``radius``.

        This is the smaller of ``G X`` and ``(sqrt(2 H) Y + H D X) X``. For the squared loss, no smaller bound is valid.

        Args:
            row_norm: Largest norm ``X`` of a row.
            radius: Radius ``D`` of the ball; infinite for the whole space.

        Raises:
            ParameterError: The radius is infinite, and the loss has no bound on the whole space.
        """
        require_positive(row_norm=row_norm)
        if math.isinf(radius):
            if self.lipschitz is None:
                raise ParameterError("gradients of the squared loss have no bound on the whole space: give a radius")
            return self.lipschitz * row_norm * OUTWARD
        require_non_negative(radius=radius)
        smooth = math.sqrt(2 * self.smoothness) * self.at_zero + self.smoothness * radius * row_norm
        slope = smooth if self.lipschitz is None else min(self.lipschitz, smooth)
        return slope * row_norm * OUTWARD

    def largest_value(self, *, row_norm: float, radius: float) -> float:
        """Return ``Delta(D)``, a bound on a record's loss in the ball: ``(Y + sqrt(H / 2) D X)^2``.

        The bound is exact for the squared loss. Lemma 4's ``3 (Y^2 + H D^2 X^2)`` is also a bound, but Lemma 10's value
        is too small. For losses with bounded slopes, ``Y^2 + G D X`` is a bound, too, and the smaller bound is
        returned.
        """
        require_positive(row_norm=row_norm)
        require_non_negative(radius=radius)
        smooth = (self.at_zero + math.sqrt(self.smoothness / 2) * radius * row_norm) ** 2
        if self.lipschitz is not None:
            smooth = min(smooth, self.at_zero**2 + self.lipschitz * radius * row_norm)
        return smooth * OUTWARD


@dataclass(frozen=True, kw_only=True)
class LinearProblem:
    """Public bounds on the records from which a linear model is learned. Every bound is enforced.

    Attributes:
        n: Number of records, by which sums are divided.
        features: Number of columns of a training row, after any embedding.
        row_norm: Largest norm ``X`` of a training row.
        loss: The loss, including the largest absolute value of a target.
        radius: Radius ``D`` of the ball onto which weights are projected.
        relation: Neighbouring relation of data sets.
    """

    n: int
    features: int
    row_norm: float
    loss: ScalarLoss
    radius: float
    relation: Relation = "replace-one"

    def __post_init__(self) -> None:
        """Check every value."""
        require_count(least=1, n=self.n, features=self.features)
        require_positive(row_norm=self.row_norm, radius=self.radius)
        mean_sensitivity(1.0, n=self.n, relation=self.relation)

    @property
    def longest_row(self) -> float:
        """Largest norm of a computed row: ``X``, plus the rounding error of scaling rows down to ``X``."""
        return self.row_norm * (1 + row_excess(self.features)) * OUTWARD

    @property
    def longest_weights(self) -> float:
        """``D``, including the rounding error of projection."""
        return self.radius * (1 + (self.features + 8) * UNIT) * OUTWARD

    @property
    def gradient_bound(self) -> float:
        """``G_w``, the largest norm of a record's gradient in the ball, for rows and weights as stored."""
        return self.loss.ball_lipschitz(row_norm=self.longest_row, radius=self.longest_weights)

    @property
    def steepest(self) -> float:
        """``G X``, the largest norm of a record's gradient for any weights.

        Raises:
            ParameterError: The loss has no bound on its slope.
        """
        return self.loss.ball_lipschitz(row_norm=self.longest_row, radius=math.inf)

    @property
    def smoothness(self) -> float:
        """``H X^2``, the smoothness of a record's loss in the weights."""
        return self.loss.smoothness * self.longest_row**2

    @property
    def gradient_error(self) -> float:
        """Largest distance between a computed mean gradient and the exact one, for all weights in the ball."""
        return gradient_error(
            n=self.n,
            features=self.features,
            row_norm=self.row_norm,
            slope=self.gradient_bound / self.row_norm,
            smoothness=self.loss.smoothness,
            weight_norm=self.longest_weights,
        )

    def embedded(self, dimension: int) -> Self:
        """Return the bounds after a random projection to fewer columns (Algorithm 2).

        The bound on rows is `CAP` times as large, and the radius is doubled. The bound on rows is enforced again, so
        privacy does not depend on the projection.
        """
        return replace(self, features=dimension, row_norm=CAP * self.row_norm, radius=2 * self.radius)
