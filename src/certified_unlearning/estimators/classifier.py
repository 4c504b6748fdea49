"""Classifiers with scikit-learn's interface: classes, scores, probabilities, and a warning about too much noise."""

import copy
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.accounting.core.losses import ClassWeights
from certified_unlearning.accounting.core.scale import weights_bound
from certified_unlearning.data.quality import Quality, quality_of
from certified_unlearning.errors import DataError
from certified_unlearning.estimators.advice import ADVISED, GOOD, NEAR_BEST, Strength, warn_if_drowned
from certified_unlearning.estimators.class_weights import class_weights
from certified_unlearning.estimators.estimator import UnlearningEstimator
from certified_unlearning.estimators.linear import LinearModel
from certified_unlearning.estimators.objective import PublicObjective
from certified_unlearning.estimators.scaling import Array


class Classifier(ClassifierMixin, UnlearningEstimator):  # type: ignore[misc]
    """A classifier, which predicts one of the classes in the data of `fit`.

    Attributes:
        classes_: The classes, sorted.
    """

    @abstractmethod
    def decision_function(self, X: Any) -> Array:
        """Return the scores of records, shape ``(records,)`` for two classes and ``(records, classes)`` for more."""

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class under the model, shape ``(records, classes)``."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            positive = expit(scores)
            return np.column_stack([1 - positive, positive])
        return softmax(self._log_weights(scores), axis=1)  # type: ignore[no-any-return]

    def _log_weights(self, scores: Array) -> Array:
        """Return the logarithms of the probabilities of three or more classes, up to a constant; here, the scores."""
        return scores

    @property
    def _outputs(self) -> int:
        """Number of scores of each record."""
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _validated(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the records and the class number of each, and set the classes."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32))
        check_classification_targets(y)
        self._scaling()  # This checks the numbers of the scaling before anything is done.
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(
                f"y holds one class only ({self.classes_.item(0)!r}); a classifier needs samples of two classes"
            )
        return self._in_form(X), numbers

    def _described(self) -> dict[str, Any]:
        return {**super()._described(), "classes": [self.classes_.dtype.str, self.classes_.tolist()]}

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        dtype, classes = header["classes"]
        self.classes_ = np.array(classes, dtype=dtype)
        super()._restore(header, arrays)


class LinearClassifier(Classifier, LinearModel):
    """A linear classifier, with a regularised intercept or without one.

    The objective is scikit-learn's ``C sum_i loss_i + ||(coef, intercept)||^2 / 2``, with a regularised intercept as in
    the solver ``liblinear`` (see `LinearModel`).
    """

    def decision_function(self, X: Any) -> Array:
        """Return the scores of records, shape ``(records,)`` for two classes and ``(records, classes)`` for more."""
        self._require_fitted()
        scores: Array = self._seen(self._checked(X)) @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the largest score, shape ``(records,)``."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]  # type: ignore[no-any-return]

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of each class's probability, shape ``(records, classes)``; finite for all scores."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(self._log_weights(scores), axis=1)  # type: ignore[no-any-return]

    def quality(self, X: Any, y: Any) -> Quality:
        """Measure predictions on records: accuracy, balanced accuracy, AUC, log loss, and the largest class's share.

        The numbers depend on these records, and are not covered by a certificate.

        Args:
            X: Features, shape ``(records, features)``.
            y: True classes, shape ``(records,)``.

        Raises:
            DataError: There are no records, or a record has a class that the model does not know.
        """
        return quality_of(self.predict_proba(X), y, self.classes_)

    @property
    def coef_(self) -> Array:
        """Weights of the features, of shape ``(1, features)`` for two classes, and ``(classes, features)`` for more."""
        weights = self._by_class()
        return weights[:, :-1] / np.sqrt(2) if self.fit_intercept else weights

    @property
    def intercept_(self) -> Array:
        """Intercepts, of shape ``(1,)`` for two classes, and ``(classes,)`` for more."""
        weights = self._by_class()
        return weights[:, -1] / np.sqrt(2) if self.fit_intercept else np.zeros(len(weights))

    def _by_class(self) -> Array:
        self._require_fitted()
        return self._weights.reshape(self._outputs, -1).astype(np.float64)  # type: ignore[no-any-return]

    def _validated(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return records and labels: -1 and +1 for two classes, class numbers for three or more."""
        X, numbers = super()._validated(X, y)
        return X, self._labels_of(numbers)

    def _labels_of(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the labels that the learners use for classes with these numbers."""
        return 2 * numbers - 1 if len(self.classes_) == 2 else numbers

    def _class_sizes_of(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of labels in each class."""
        numbers = (labels > 0).astype(np.int64) if len(self.classes_) == 2 else labels
        return np.bincount(numbers, minlength=len(self.classes_))


@dataclass(kw_only=True, repr=False, eq=False)
class NoisyClassifier(LinearClassifier):
    """A linear classifier whose noise is planned to meet a guarantee; the noise may exceed the scores.

    Args:
        C: Inverse strength of the regulariser, as in scikit-learn.
        class_weight: Public weights of the classes' losses, ``{label: weight}``, as in scikit-learn; a class that is
            not named has weight 1. The largest weight multiplies ``C``, with all the consequences of a larger ``C``.
            ``"balanced"`` is refused: such weights are computed from the labels, so they depend on removed records.
    """

    C: float = 1.0
    class_weight: Mapping[Any, float] | None = None

    @abstractmethod
    def _planned_noise(self, plan: Any) -> tuple[float, float]:
        """Return the standard deviation of the noise in the score of a row of norm 1, and the strong convexity."""

    @abstractmethod
    def _plan_for(self, C: float, *, n: int, **sizes: Any) -> Any:
        """Return the plan for ``n`` records; ``C`` already includes the largest class weight as a factor."""

    def _planned(self, n: int) -> Any:
        require_positive(C=self.C)
        weights = self._class_weights()
        return self._plan_for(
            self.C * weights.largest,
            n=n,
            features=self._columns,
            classes=len(self.classes_),
            class_weights=weights.shares,
        )

    def _class_weights(self) -> ClassWeights:
        return class_weights(self.class_weight, self.classes_)

    def _public_objective(self) -> PublicObjective | None:
        noise, (largest, shares) = self._noise_of_coefficients(), self._class_weights()
        if len(self.classes_) > 2 or not noise:
            return None
        low, high = (1.0, 1.0) if shares is None else shares
        return PublicObjective(
            loss="logistic",
            strength=1 / (self.C * largest),
            targets=lambda labels: np.where(np.asarray(labels) == self.classes_[1], 1.0, -1.0),
            seen=self._seen,
            intercept=self.fit_intercept,
            class_weights=(low, high),
            **noise,
        )

    def _warn_of(self, plan: Any, X: NDArray[Any]) -> None:
        """Warn the caller of `fit` if a plan's noise is larger than any score."""
        n, largest = plan.n, self._class_weights().largest

        def noise_and_score(plan: Any) -> tuple[float, float]:
            noise, strong_convexity = self._planned_noise(plan)
            return noise, weights_bound(classes=plan.classes, strong_convexity=strong_convexity)

        warn_if_drowned(
            Strength(
                "C",
                self.C,
                [each / (n * largest) for each in ADVISED],
                lambda C: f"C n = {C * n:.3g}",
                noises=(NEAR_BEST, GOOD),
            ),
            epsilon=self.epsilon,
            sigma=self.sigma,
            plan=plan,
            planned=lambda C: copy.copy(self).set_params(C=C)._planned(n),
            noise_and_score=noise_and_score,
            trouble="the noise in a score has a standard deviation of up to {noise:.3g}, and no score of the model "
            "without noise is above {score:.3g}",
        )

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(header, arrays)
        if self.class_weight is not None:
            self.class_weight = dict(self.class_weight)
