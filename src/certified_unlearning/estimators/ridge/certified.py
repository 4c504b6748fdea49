"""Ridge regression whose removals are certified against an exact refit."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from certified_unlearning.estimators.certified_model import CertifiedModel
from certified_unlearning.estimators.linear import without_sample_weight
from certified_unlearning.estimators.ridge.regressor import LinearRegressor
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from certified_unlearning.vocabulary import Delta


class CertifiedRidge(LinearRegressor, CertifiedModel):
    """Ridge regression that unlearns records in the same time for every ``n``: milliseconds up to a thousand features.

    It keeps the minimiser secret and publishes it with Gaussian noise. A quadratic's Newton step is exact: a removal
    solves for the new minimiser with the removed records taken out of the Hessian, and all that is left of the gradient
    is the solution's remainder and rounding, which are bounded. When a tenth of the records has left, or where that
    bound meets its budget, the data are read again, in one pass. With more than 5000 features every removal reads them.
    A reading learns anew from the remaining records: nothing of the removed ones stays in the secret state.

    The certificate is that of `CertifiedLogisticRegression`: compared with an *exact refit plus the same noise*.

    The objective is that of scikit-learn's ``Ridge``, ``sum_i (x_i.w - y_i)^2 + alpha |w|^2``, but that the intercept
    is in the regulariser, which draws it to the middle of ``target_range``. Targets are clipped to that range and
    mapped to [-1, 1]: then the loss at 0 is at most 1/2, so with strong convexity ``m = alpha / n`` (half of it with an
    intercept) weights have norm at most ``1 / sqrt(m)``, which is public. ``alpha = 0``, linear regression, is refused:
    without strong convexity no noise covers what one record may have moved.

    A failed or interrupted call leaves the estimator as it was, but for the time of the next one. Removals work in
    place, so a copy must be a deep one.

    Args:
        epsilon: The target for the model published last, requests fixed in advance. `certificate_` also states that for
            all releases together, which holds for adaptive requests, too.
        delta: Of the target: a number strictly between 0 and 1; or ``"auto"``, which is ``min(1e-6, 1 / (10 n))``; or
            ``"1/n"``, as in the papers.
        sigma: Standard deviation of the noise on the published weights, of targets in [-1, 1] (and times ``sqrt(2)``,
            with an intercept).
        alpha: Strength of the regulariser, as in scikit-learn; above 0.
        target_range: The pair ``(low, high)`` between which targets lie: known without these records. Others are
            clipped. Needed.
        normalize: Whether every row is divided by its own norm. Otherwise a row longer than 1 is an error, unless one
            of the next two makes it shorter.
        feature_ranges: Public bounds of the features, as in `CertifiedLogisticRegression`.
        data_norm: A public norm, as in `CertifiedLogisticRegression`.
        fit_intercept: Whether there is an intercept, which is regularised. Without, 0 is mapped to 0.
        random_state: None: noise from the operating system's entropy, which is not kept. A number makes results
            repeatable, but it is a secret: anybody who knows it, or tries all 2^32, can subtract the noise. Two models
            that were fitted with the same number have the same noise, and it cancels in their difference, which then
            shows the record in which their data differ; nobody needs to know the number for that.
        records_between_reads: Data are read again for the request with which more records than this were removed
            since they were read last. None: a tenth of ``n``. It has no effect where every request reads.

    Attributes:
        n_features_in_: Number of features.
        feature_names_in_: Their names, if ``X`` was a data frame.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: Delta = "auto",
        *,
        sigma: float = 1e-3,
        alpha: float = 1.0,
        target_range: tuple[float, float] | None = None,
        normalize: bool = False,
        feature_ranges: ArrayLike | None = None,
        data_norm: float | None = None,
        fit_intercept: bool = True,
        random_state: int | np.random.RandomState | None = None,
        records_between_reads: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.sigma = sigma
        self.alpha = alpha
        self.target_range = target_range
        self.normalize = normalize
        self.feature_ranges = feature_ranges
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.records_between_reads = records_between_reads

    @without_sample_weight
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from records.

        There is no ``sample_weight``: a weight of its own would change how much a record can move the model.

        Args:
            X: Features, shape ``(n, features)``; an array, a data frame, or a sparse matrix, whose rows become dense.
                Rows have norm at most 1, unless ``normalize``, ``feature_ranges`` or ``data_norm`` see to it.
            y: Targets, shape ``(n,)``, in the units of ``target_range``.

        Returns:
            The fitted estimator. `unlearn` names records by their position in this ``X``, or by its index.

        Raises:
            DataError: A row is longer than 1 (the message names the longest), or there is only one, or sparse rows do
                not fit in memory.
            ParameterError: A parameter makes no sense.
            AssumptionError: float64 is too coarse for the noise or the regulariser.
            InfeasibleError: The solver did not reach the budget.
        """
        with self._all_or_nothing():
            X, targets = self._validated(X, y)
            plan = self._planned(len(X), X.shape[1] + self.fit_intercept)
            rows = self._rows(X.astype(np.float64, copy=False))
            self._warn_if_a_column_drowns(X)
            self._learned(plan, rows, targets)
        return self

    def _planned(self, n: int, features: int) -> RefitPlan:
        return RefitPlan.make(
            n=n,
            features=features,
            classes=1,
            strong_convexity=n * self._regularisation(n),
            epsilon=self.epsilon,
            delta=self.delta,
            sigma=self.sigma,
            records_between_reads=self.records_between_reads,
        )
