"""Differentially private linear regression."""

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from certified_unlearning.accounting.private.losses import ScalarLoss
from certified_unlearning.estimators.linear import without_sample_weight
from certified_unlearning.estimators.private.model import Method, PrivateModel
from certified_unlearning.estimators.ridge.regressor import LinearRegressor
from certified_unlearning.mechanisms.learners.learner import require_one_of
from certified_unlearning.vocabulary import Delta, Relation


class PrivateLinearRegression(LinearRegressor, PrivateModel):
    """Linear regression that is differentially private: every record is hidden from the start.

    What that means, the methods and deletions are as in `PrivateLogisticRegression`. Targets are clipped to a public
    ``target_range`` and mapped to [-1, 1]; ``radius`` and ``width`` are in these units.

    Args:
        method: How it is made private.
        epsilon: Of one record.
        delta: Of the same: a number strictly between 0 and 1; or ``"auto"``, which is ``min(1e-6, 1 / (10 n))``; or
            ``"1/n"``, as in the papers.
        loss: ``squared``; ``absolute``, for medians, made smooth by a parabola near 0; or ``huber``, squared near 0 and
            linear beyond.
        width: Half the width of that parabola.
        relation: What epsilon is of: ``replace-one``, where a record is replaced by any other, or ``add-remove``, where
            its place is left empty, with half of the noise. The one is no epsilon of the other.
        radius: Largest norm of coefficients and intercept together, as the model sees features and for targets in
            [-1, 1]. Several: one is selected privately, as in `PrivateLogisticRegression`.
        target_range: The pair ``(low, high)`` between which targets lie: known without these records. Others are
            clipped. Needed.
        boosting: With a number, several chunks of the records learn a model each, and one is selected privately on a
            chunk of its own. The smaller the number, the more chunks, and the rarer a bad model is meant to be; that
            they are smaller costs accuracy. None: all records learn one model.
        strong_convexity: ``lambda`` of output perturbation; None for the one whose bound is best.
        steps: Of descent; None for as many as there are records, at most 1000.
        dimension: Columns of an embedding; None for the analysis' choice.
        normalize: Whether every row is divided by its own norm; then ``data_norm`` is None.
        feature_ranges: Public bounds of the features, as in `LangevinLogisticRegression`.
        data_norm: Rows that are longer are scaled down to this norm; all are divided by it.
        fit_intercept: Whether there is an intercept, which is in the ball as well.
        random_state: None: noise from the operating system's entropy, which is not kept. A number makes results
            repeatable, but it is a secret: anybody who knows it, or tries all 2^32, can subtract the noise. Two models
            that were fitted with the same number have the same noise, and it cancels in their difference, which then
            shows the record in which their data differ; nobody needs to know the number for that.

    Attributes:
        n_features_in_: Number of features.
        feature_names_in_: Their names, if ``X`` was a data frame.
    """

    def __init__(
        self,
        method: Method = "output-perturbation",
        *,
        epsilon: float = 1.0,
        delta: Delta = "auto",
        loss: Literal["squared", "absolute", "huber"] = "squared",
        width: float = 0.05,
        relation: Relation = "replace-one",
        radius: float | Sequence[float] = 1.0,
        boosting: float | None = None,
        target_range: tuple[float, float] | None = None,
        strong_convexity: float | None = None,
        steps: int | None = None,
        dimension: int | None = None,
        normalize: bool = False,
        feature_ranges: ArrayLike | None = None,
        data_norm: float | None = 1.0,
        fit_intercept: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.method = method
        self.epsilon = epsilon
        self.delta = delta
        self.loss = loss
        self.width = width
        self.relation = relation
        self.radius = radius
        self.boosting = boosting
        self.target_range = target_range
        self.strong_convexity = strong_convexity
        self.steps = steps
        self.dimension = dimension
        self.normalize = normalize
        self.feature_ranges = feature_ranges
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    @without_sample_weight
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from records.

        There is no ``sample_weight``: a weight of its own would change how much a record can move the model.

        Args:
            X: Features, shape ``(n, features)``; an array, a data frame, or a sparse matrix, whose rows become dense.
            y: Targets, shape ``(n,)``, in the units of ``target_range``.

        Returns:
            The fitted estimator.

        Raises:
            DataError: There is one record only.
            ParameterError: A parameter makes no sense.
            AssumptionError: float64 is too coarse for so little noise.
            InfeasibleError: A minimiser was not found.
        """
        with self._all_or_nothing():
            X, targets = self._validated(X, y)
            self._learn_from(X.astype(np.float64, copy=False), targets)
        return self

    def _loss(self) -> ScalarLoss:
        require_one_of(("squared", "absolute", "huber"), loss=self.loss)
        return ScalarLoss(name=self.loss, width=None if self.loss == "squared" else self.width)
