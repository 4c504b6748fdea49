"""Differentially private linear regression."""

from dataclasses import dataclass, field
from typing import Literal

from certified_unlearning.accounting.private.losses import ScalarLoss
from certified_unlearning.estimators.private.model import PrivateModel
from certified_unlearning.estimators.regressor import LinearRegressor
from certified_unlearning.mechanisms.learners.learner import require_one_of


@dataclass(repr=False, eq=False)
class PrivateLinearRegression(PrivateModel, LinearRegressor):
    """Linear regression that is differentially private: every record is hidden from the start.

    Its guarantee, its methods and its treatment of deletions are those of `PrivateLogisticRegression`. Targets are
    clipped to a public ``target_range`` and mapped to [-1, 1]; ``radius`` and ``width`` refer to targets in [-1, 1].

    Args:
        loss: Loss: ``squared``; ``absolute``, for medians, smoothed by a parabola near 0; or ``huber``, squared near 0
            and linear elsewhere.
        width: Half of the width of the parabola of ``absolute``, or of the squared part of ``huber``.
        radius: Largest norm of coefficients and intercept together, for scaled features and targets in [-1, 1]. If
            several values are given, one of them is selected privately, as in `PrivateLogisticRegression`.

    See Also:
        `PrivateLogisticRegression`: The same for two classes.
        `CertifiedRidge`: Protects only removed records.

    Examples:
        >>> from certified_unlearning import PrivateLinearRegression
        >>> X, y = [[0.0, 1.0], [1.0, 0.2]] * 50, [1.0, 4.0] * 50
        >>> model = PrivateLinearRegression(epsilon=1, target_range=(0, 5)).fit(X, y)
        >>> model.certificate_.epsilon <= 1
        True
        >>> model.deletions_within(3)
        2
    """

    loss: Literal["squared", "absolute", "huber"] = field(default="squared", kw_only=True)
    width: float = field(default=0.05, kw_only=True)

    def _loss(self) -> ScalarLoss:
        require_one_of(("squared", "absolute", "huber"), loss=self.loss)
        return ScalarLoss(name=self.loss, width=None if self.loss == "squared" else self.width)
