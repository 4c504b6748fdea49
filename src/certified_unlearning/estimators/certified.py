"""Logistic and softmax regression whose removals are certified against an exact refit."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certified_unlearning.accounting.core.losses import regularisation_of
from certified_unlearning.estimators.certified_model import CertifiedModel
from certified_unlearning.estimators.class_weights import ClassWeights
from certified_unlearning.estimators.classifier import NoisyClassifier
from certified_unlearning.estimators.linear import without_sample_weight
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from certified_unlearning.vocabulary import Delta


class CertifiedLogisticRegression(NoisyClassifier, CertifiedModel):
    """Logistic regression that unlearns, of two classes by Newton steps whose time does not grow with ``n``.

    It keeps the minimiser secret and publishes it with Gaussian noise. A removal takes one Newton step that reads the
    removed records only, and bounds how far that leaves it from an exact refit on the remaining records; where the
    bound meets its budget, the data are read again. With three classes or more, and with more than 5000 features, every
    removal reads the data. A reading learns anew from the remaining records: nothing of the removed ones stays in the
    secret state, and it takes as long as `fit`.

    The certificate compares with an *exact refit plus the same noise*: it promises nothing towards the records that
    stay. `LangevinLogisticRegression` compares two noisy algorithms. The objective is scikit-learn's with the same
    ``C`` (see `LinearClassifier` on the intercept), and scikit-learn's ``C = 1`` is a good first choice here, too. A
    smaller ``C`` lets more records leave before data are read again.

    A failed or interrupted call leaves the estimator as it was, but for the time of the next one. Removals work in
    place, so a copy must be a deep one.

    Args:
        epsilon: The target for the model published last, requests fixed in advance. `certificate_` also states that for
            all releases together, which holds for adaptive requests, too.
        delta: Of the target: a number strictly between 0 and 1; or ``"auto"``, which is ``min(1e-6, 1 / (10 n))``; or
            ``"1/n"``, as in the papers.
        sigma: Standard deviation of the noise on the published weights (scikit-learn's times ``sqrt(2)``, with an
            intercept). The more, the more records leave before data are read again.
        C: Inverse strength of the regulariser, as in scikit-learn.
        class_weight: Public weights of the classes' losses, ``{label: weight}``, as in scikit-learn; 1 where a class is
            not named. The largest multiplies ``C``, with all that follows from it. ``"balanced"`` is refused: it is
            counted from the labels, which tells of removed records.
        normalize: Whether every row is divided by its own norm. Otherwise a row longer than 1 is an error, unless one
            of the next two makes it shorter.
        feature_ranges: Public bounds of the features: a pair ``(low, high)`` for all, or one for each, shape
            ``(features, 2)``. Values outside are clipped, the ranges are mapped to [-1, 1], and rows are then divided
            by ``sqrt(features)``, or by their own norm if ``normalize``, or by ``data_norm``. What is known of such
            data in general, *not* the smallest and largest values of these: that would tell of removed records, which
            the certificate excludes.
        data_norm: A public number, not taken from the data either: rows longer than it are scaled down to it, then all
            are divided by it. With ``feature_ranges``, of the rows that these make. Not together with ``normalize``.
        fit_intercept: Whether there is an intercept, which is regularised.
        random_state: None: noise from the operating system's entropy, which is not kept. A number makes results
            repeatable, but it is a secret: anybody who knows it, or tries all 2^32, can subtract the noise. Two models
            that were fitted with the same number have the same noise, and it cancels in their difference, which then
            shows the record in which their data differ; nobody needs to know the number for that.
        records_between_reads: Data are read again for the request with which more records than this were removed
            since they were read last. None: planned from ``n``, ``C``, ``sigma``, epsilon and delta. It has no effect
            where every request reads them.
        strict_timing: Whether a bound that holds for all data plans that number, so that the time of reading tells
            nothing of the records. Otherwise data may have to be read earlier, which the certificate then says.
        downdate: Whether a removal takes its records out of the Hessian, which costs ``O(S d^2)`` for ``S`` records
            and lets more of them leave before data are read again. None: up to 1000 features.

    Attributes:
        classes_: The classes, sorted.
        n_features_in_: Number of features.
        feature_names_in_: Their names, if ``X`` was a data frame.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: Delta = "auto",
        *,
        sigma: float = 1e-3,
        C: float = 1.0,
        class_weight: Mapping[Any, float] | None = None,
        normalize: bool = False,
        feature_ranges: ArrayLike | None = None,
        data_norm: float | None = None,
        fit_intercept: bool = True,
        random_state: int | np.random.RandomState | None = None,
        records_between_reads: int | None = None,
        strict_timing: bool = False,
        downdate: bool | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.sigma = sigma
        self.C = C
        self.class_weight = class_weight
        self.normalize = normalize
        self.feature_ranges = feature_ranges
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.records_between_reads = records_between_reads
        self.strict_timing = strict_timing
        self.downdate = downdate

    @without_sample_weight
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from records.

        There is no ``sample_weight``: a weight of its own would change how much a record can move the model.

        Args:
            X: Features, shape ``(n, features)``; an array, a data frame, or a sparse matrix, whose rows become dense.
                Rows have norm at most 1, unless ``normalize``, ``feature_ranges`` or ``data_norm`` see to it.
            y: Classes, shape ``(n,)``, of any type.

        Returns:
            The fitted estimator. `unlearn` names records by their position in this ``X``, or by its index.

        Raises:
            DataError: A row is longer than 1 (the message names the longest), or there is only one class, or sparse
                rows do not fit in memory as dense ones.
            ParameterError: A parameter makes no sense.
            AssumptionError: float64 is too coarse for the noise or the regulariser.
            InfeasibleError: The solver did not reach the budget.
        """
        with self._all_or_nothing():
            X, classes, labels = self._validated(X, y)
            sizes = self._sizes(X, classes)
            plan = self._planned(**sizes)
            self._warn_if_drowned(plan, **sizes, stacklevel=5)
            # Whatever is done to rows is done in float64: the bounds know how long a row is to 1.1e-6 only.
            rows = self._rows(X.astype(np.float64, copy=False))
            self._warn_if_a_column_drowns(X)
            labels = labels.astype(np.float64 if len(classes) == 2 else np.int64)
            self.classes_ = classes
            self._class_sizes = np.unique(labels, return_counts=True)[1]
            self._learned(plan, rows, labels)
        return self

    def _planned(self, n: int, features: int, classes: int, weights: ClassWeights) -> RefitPlan:
        return RefitPlan.make(
            n=n,
            features=features,
            classes=classes,
            strong_convexity=n * regularisation_of(C=self.C * weights.largest, n=n, intercept=self.fit_intercept),
            epsilon=self.epsilon,
            delta=self.delta,
            sigma=self.sigma,
            strict=self.strict_timing,
            records_between_reads=self.records_between_reads,
            downdate=self.downdate,
            class_weights=weights.shares,
        )

    def _planned_noise(self, plan: Any) -> tuple[float, float]:
        return plan.sigma, plan.strong_convexity

    def _sizes_of(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many of some labels are each class'."""
        numbers = (labels > 0).astype(np.int64) if len(self.classes_) == 2 else labels
        return np.bincount(numbers, minlength=len(self.classes_))

    def _after(self, gone_labels: NDArray[Any]) -> dict[str, Any]:
        return {"_class_sizes": self._class_sizes - self._sizes_of(gone_labels)}

    def _has_an_empty_class(self) -> bool:
        return not self._class_sizes.all()

    def _restore_secret(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore_secret(header, arrays)
        self._class_sizes = self._sizes_of(self._training_labels[~self._removed])
