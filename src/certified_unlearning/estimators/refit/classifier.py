"""Logistic and softmax regression whose removals are certified by comparison with an exact refit."""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from numpy.typing import NDArray
from scipy.special import log_expit

from certified_unlearning.accounting.core.losses import regularisation_of
from certified_unlearning.errors import ParameterError
from certified_unlearning.estimators.classifier import NoisyClassifier
from certified_unlearning.estimators.refit.model import RefitModel
from certified_unlearning.estimators.refit.public import class_numbers
from certified_unlearning.estimators.scaling import Array
from certified_unlearning.mechanisms.refit_plan import RefitPlan

Strategy = Literal["softmax", "one-vs-rest"]


@dataclass(repr=False, eq=False)
class CertifiedLogisticRegression(RefitModel, NoisyClassifier):
    """Logistic regression that unlearns; with two classes, the time of a removal does not grow with ``n``.

    It keeps the minimiser secret, and publishes it with Gaussian noise. A removal takes one Newton step, which reads
    only the removed records. The step also bounds the distance of the result from an exact refit on the remaining
    records. When the bound reaches its budget, the data are read again. With more than 5000 features, or in softmax
    regression of three or more classes, every removal reads the data. A reading learns anew from the remaining records,
    so the secret state then contains nothing of the removed records. A reading takes as long as `fit`. With many
    records or wide rows, passes over the rows correct the weights instead, if that is sufficient. The condition is that
    ``strict_timing`` is off and that ``n d (8 + d / 20)``, times the number of classes if there are three or more, is
    at least 10 million. Unlike a reading, passes do not remove all traces of removed records from the secret state.
    With passes, a request reads the data when more than ``records_between_reads`` records would have been removed since
    the last reading. By default, this number is at least a tenth of the records.

    With ``strategy="one-vs-rest"``, each of three or more classes has its own binary model against all others. All
    weights form one release, with one certificate. The matrices of ``k`` classes need ``16 k d^2`` bytes. If that is
    more than 1.6 GB, every removal refits all models.

    Sparse rows stay sparse, unless a range of ``feature_ranges`` is not of the form ``-a`` to ``a``. With up to 1000
    features, removals of sparse rows are Newton steps if ten or more records may be removed between readings. These
    steps copy the entries of the other rows. All other removals of sparse rows read the data, by passes over the
    entries.

    The certificate compares the model with an *exact refit plus the same noise*, so the certificate does not protect
    the remaining records. `LangevinLogisticRegression` compares two noisy algorithms. The objective is that of
    scikit-learn with the same ``C``, except that the intercept is regularised, as in the solver ``liblinear``. As in
    scikit-learn, ``C = 1`` is a good first choice. With a smaller ``C``, more records can be removed before the data
    are read again.

    `fit` accepts ``public_X`` and ``public_y``, rows that nobody will ask to remove. With two classes, public rows
    allow a larger budget if they far outnumber the records. With wide rows, or with three or more classes, public rows
    change only the model.

    A failed or interrupted call does not change the estimator, but the next call may take longer. Removals modify
    arrays in place, so a copy must be a deep copy.

    Args:
        sigma: Standard deviation of the noise on the published weights. With an intercept, the noise is on ``sqrt(2)``
            times scikit-learn's weights. With more noise, more records can be removed before the data are read again.
        records_between_reads: Number of records that may be removed without reading the data again. The request that
            exceeds this number reads the data. None: the number is planned from ``n``, ``C``, ``sigma``, epsilon and
            delta. The number has no effect if the model is learned anew for every request.
        strict_timing: Whether ``records_between_reads`` is planned from a bound that holds for all data. The time of a
            reading then reveals nothing about the records. Otherwise, the data may have to be read earlier, and the
            certificate states such readings.
        downdate: Whether a removal subtracts its records from the Hessian. This takes time ``O(S d^2)`` for ``S``
            records, and allows more removals before the data are read again. None: removals subtract their records if
            there are up to 1000 features, or if passes are used.
        strategy: How three or more classes are learned. ``"softmax"`` is softmax regression. ``"one-vs-rest"`` is a
            logistic regression of each class against all others, as in scikit-learn's
            ``OneVsRestClassifier(LogisticRegression(C))``. With two classes, both strategies are the same.

    See Also:
        `CertifiedRidge`: The same for regression.
        `LangevinLogisticRegression`: Keeps no secret state.
        `ExactLogisticRegression`: Unlearns with epsilon 0.

    Examples:
        >>> from certified_unlearning import CertifiedLogisticRegression
        >>> X, y = [[0.0, 1.0], [1.0, 0.2]] * 50, ["no", "yes"] * 50
        >>> model = CertifiedLogisticRegression(epsilon=1, normalize=True).fit(X, y)
        >>> len(model.unlearn([2, 17]).remaining_)
        98
        >>> model.certificate_.epsilon <= 1
        True
    """

    strict_timing: bool = field(default=False, kw_only=True)
    downdate: bool | None = field(default=None, kw_only=True)
    strategy: Strategy = field(default="softmax", kw_only=True)

    def _plan_for(self, C: float, *, n: int, **sizes: Any) -> RefitPlan:
        strong_convexity = n * regularisation_of(C=C, n=n, intercept=self.fit_intercept)
        return RefitPlan.make(
            n=n,
            strong_convexity=strong_convexity,
            strict=self.strict_timing,
            downdate=self.downdate,
            one_vs_rest=self._is_one_vs_rest,
            **sizes,
            **self._asked(),
            **self._guaranteed_by_public_rows(n, strong_convexity, sizes["classes"], sizes["class_weights"]),
        )

    @property
    def _is_one_vs_rest(self) -> bool:
        if self.strategy not in get_args(Strategy):
            raise ParameterError(f"strategy must be 'softmax' or 'one-vs-rest', got {self.strategy!r}")
        return self.strategy == "one-vs-rest"

    def _log_weights(self, scores: Array) -> Array:
        # As in scikit-learn's OneVsRestClassifier, each class's probability against the rest is divided by the sum of
        # these probabilities.
        return log_expit(scores) if self._is_one_vs_rest else scores

    def _public_labels(self, public_y: NDArray[Any]) -> NDArray[Any]:
        return self._labels_of(class_numbers(public_y, self.classes_))

    def _planned_noise(self, plan: Any) -> tuple[float, float]:
        return plan.sigma, plan.strong_convexity
