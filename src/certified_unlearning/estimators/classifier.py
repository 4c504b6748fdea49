"""A linear classifier as scikit-learn knows it: scores, probabilities, and a warning where noise drowns them."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.accounting.core.scale import weights_bound
from certified_unlearning.data.quality import Quality, quality_of
from certified_unlearning.errors import DataError
from certified_unlearning.estimators.advice import ADVISED, GOOD, NEAR_BEST, Strength, warn_if_drowned
from certified_unlearning.estimators.class_weights import ClassWeights
from certified_unlearning.estimators.linear import LinearModel
from certified_unlearning.estimators.scaling import Array, dense


class LinearClassifier(ClassifierMixin, LinearModel):  # type: ignore[misc]
    """Scores by weights, with or without a regularised intercept.

    The model of a record ``x`` is that of the row ``(x, 1) / sqrt(2)``, without an intercept: its norm is at most 1
    where that of ``x`` is, and the weights are scikit-learn's times ``sqrt(2)``, so the regulariser's strength is
    halved. The result is scikit-learn's objective ``C sum_i loss_i + ||(coef, intercept)||^2 / 2``, with the intercept
    in the regulariser as in its solver ``liblinear``. An estimator must not be used by several threads at once.

    Subclasses set ``_weights``, of the rows, and ``classes_``; they have the parameters ``C``, ``normalize``,
    ``feature_ranges``, ``data_norm``, ``fit_intercept`` and ``random_state``. ``coef_`` and ``intercept_`` are of the
    features as the model sees them: after ``feature_ranges``, ``data_norm`` or ``normalize``.

    Attributes:
        classes_: The classes, sorted.
        n_features_in_: Number of features.
        feature_names_in_: Their names, if ``X`` was a data frame.
    """

    def decision_function(self, X: Any) -> Array:
        """Return the scores of records: shape ``(records,)`` for two classes, else ``(records, classes)``."""
        self._require_fitted()
        scores = self._seen(self._checked(X)) @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of the largest score, shape ``(records,)``."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]  # type: ignore[no-any-return]

    def predict_proba(self, X: Any) -> Array:
        """Return each class' probability under the model, shape ``(records, classes)``."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            positive = expit(scores)
            return np.column_stack([1 - positive, positive])
        return softmax(scores, axis=1)  # type: ignore[no-any-return]

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of each class' probability, shape ``(records, classes)``; finite for all scores."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores, axis=1)  # type: ignore[no-any-return]

    def quality(self, X: Any, y: Any) -> Quality:
        """Measure the predictions on records: accuracy, balanced accuracy, AUC, log loss, and the majority line.

        The numbers tell of these records, and no certificate covers that.

        Args:
            X: Features, shape ``(records, features)``.
            y: Their true classes, shape ``(records,)``.

        Raises:
            DataError: There is no record, or a class that the model does not know.
        """
        return quality_of(self.predict_proba(X), y, self.classes_)

    @property
    def coef_(self) -> Array:
        """Weights of the features: shape ``(1, features)`` for two classes, else ``(classes, features)``."""
        weights = self._by_class()
        return weights[:, :-1] / np.sqrt(2) if self.fit_intercept else weights

    @property
    def intercept_(self) -> Array:
        """Intercepts: shape ``(1,)`` for two classes, else ``(classes,)``."""
        weights = self._by_class()
        return weights[:, -1] / np.sqrt(2) if self.fit_intercept else np.zeros(len(weights))

    def _by_class(self) -> Array:
        self._require_fitted()
        outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        return self._weights.reshape(outputs, -1).astype(np.float64)  # type: ignore[no-any-return]

    def _validated(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return records, classes and labels: -1 and +1 of two classes, else the class' number."""
        self._note_index(X, y)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32))
        check_classification_targets(y)
        self._check_strength()
        self._scaling()  # Whether its numbers make sense, before anything is done.
        classes, encoded = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise DataError(f"y holds one class only ({classes.item(0)!r}); a classifier needs samples of two classes")
        return dense(X), classes, 2 * encoded - 1 if len(classes) == 2 else encoded

    def _check_strength(self) -> None:
        """Raise `ParameterError` unless the regulariser's strength makes sense."""
        require_positive(C=self.C)

    def _quality_in_words(self, X: Any, y: Any) -> list[str]:
        """Return what a report says of the predictions on some records; nothing if there are none."""
        self._require_both_or_neither(X, y)
        return [] if X is None else self.quality(X, y).in_words()

    def _described(self) -> dict[str, Any]:
        """Return what a file's header says of every classifier."""
        return {**super()._described(), "classes": [self.classes_.dtype.str, self.classes_.tolist()]}

    @classmethod
    def _from_file(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return a classifier with what a file says of every classifier."""
        estimator = super()._from_file(header, arrays)
        dtype, classes = header["classes"]
        estimator.classes_ = np.array(classes, dtype=dtype)
        return estimator


class NoisyClassifier(LinearClassifier):
    """A `LinearClassifier` whose noise is planned for a guarantee, and may drown what it learns.

    Subclasses have the parameter ``class_weight``, too.
    """

    @abstractmethod
    def _planned(self, n: int, features: int, classes: int, weights: ClassWeights) -> Any:
        """Return the plan for so many records, columns of a row and classes, and for the classes' weights."""

    @abstractmethod
    def _planned_noise(self, plan: Any) -> tuple[float, float]:
        """Return a plan's standard deviation of the noise in the score of a row of norm 1, and its ``m``."""

    def _sizes(self, X: NDArray[Any], classes: NDArray[Any]) -> dict[str, Any]:
        """Return what `_planned` takes."""
        return {
            "n": len(X),
            "features": X.shape[1] + self.fit_intercept,
            "classes": len(classes),
            "weights": ClassWeights.of(self.class_weight, classes),
        }

    def _warn_if_drowned(
        self, plan: Any, n: int, features: int, classes: int, weights: ClassWeights, *, stacklevel: int
    ) -> None:
        """Warn whoever called `fit` if a plan's noise is larger than any score."""

        def noise_and_score(plan: Any) -> tuple[float, float]:
            noise, strong_convexity = self._planned_noise(plan)
            return noise, weights_bound(classes=classes, strong_convexity=strong_convexity)

        def relative_noise(C: float) -> float:
            noise, score = noise_and_score(clone(self).set_params(C=C)._planned(n, features, classes, weights))
            return noise / score

        noise, score = noise_and_score(plan)
        warn_if_drowned(
            Strength(
                "C",
                self.C,
                [each / (n * weights.largest) for each in ADVISED],
                lambda C: f"C n = {C * n:.3g}",
                noises=(NEAR_BEST, GOOD),
            ),
            epsilon=self.epsilon,
            sigma=self.sigma,
            noise=noise,
            score=score,
            trouble=f"the noise in a score has a standard deviation of up to {noise:.3g}, and no score of the model "
            f"without noise is above {score:.3g}",
            relative_noise=relative_noise,
            stacklevel=stacklevel,
        )

    @classmethod
    def _from_file(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return a classifier with what a file says of every classifier; of its class weights as a dictionary."""
        estimator = super()._from_file(header, arrays)
        if estimator.class_weight is not None:
            estimator.class_weight = dict(estimator.class_weight)
        return estimator
