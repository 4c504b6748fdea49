"""A linear classifier as scikit-learn knows it: records checked and made rows, scores, probabilities."""

import secrets
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.data.prepared import NORM_TOLERANCE
from certified_unlearning.errors import DataError, ParameterError

Array = NDArray[np.float64]


class LinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Scores by weights, with or without a regularised intercept.

    The model of a record ``x`` is that of the row ``(x, 1) / sqrt(2)``, without an intercept: its norm is at most 1
    where that of ``x`` is, and the weights are scikit-learn's times ``sqrt(2)``, so the regulariser's strength is
    halved. The result is scikit-learn's objective ``C sum_i loss_i + ||(coef, intercept)||^2 / 2``, with the intercept
    in the regulariser as in its solver ``liblinear``. An estimator must not be used by several threads at once.

    Subclasses set ``_weights``, of the rows, and ``classes_``; they have the parameters ``C``, ``normalize``,
    ``fit_intercept`` and ``random_state``.

    Attributes:
        classes_: The classes, sorted.
        n_features_in_: Number of features.
        feature_names_in_: Their names, if ``X`` was a data frame.
    """

    @property
    @abstractmethod
    def _dtype(self) -> str:
        """The type of rows."""

    def decision_function(self, X: Any) -> Array:
        """Return the scores of records: shape ``(records,)`` for two classes, else ``(records, classes)``."""
        self._require_fitted()
        X = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        scores = (unit(X) if self.normalize else X) @ self.coef_.T + self.intercept_
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
        X, y = validate_data(self, X, y, dtype=(np.float64, np.float32))
        check_classification_targets(y)
        require_positive(C=self.C)
        classes, encoded = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise DataError(f"y holds one class only ({classes[0]!r}); a classifier needs samples of two classes")
        return X, classes, 2 * encoded - 1 if len(classes) == 2 else encoded

    def _rows(self, features: Array) -> NDArray[Any]:
        """Return features as rows of norm at most 1, in an array that nobody else has."""
        if not self.normalize:
            require_short_rows(features)
        return self._mapped(features)

    def _mapped(self, features: Array) -> NDArray[Any]:
        """Return checked features as rows, in an array that nobody else has."""
        if self.normalize:
            features = unit(features.astype(np.float64, copy=False))  # float32 would leave some too long.
        if self.fit_intercept:
            rows = np.empty((len(features), features.shape[1] + 1), dtype=features.dtype)
            np.divide(features, np.sqrt(2), out=rows[:, :-1])
            rows[:, -1] = 1 / np.sqrt(2)
            return rows.astype(self._dtype, copy=False)
        # A copy in any case: what the caller does to X later must not reach the training records.
        return np.array(features, dtype=self._dtype, order="C")

    def _noise_key(self) -> int:
        """Return the address of new noise: from the operating system, or from ``random_state``."""
        if self.random_state is None:
            return secrets.randbits(128)
        words: Sequence[int] = check_random_state(self.random_state).randint(2**32, size=4, dtype=np.uint32).tolist()
        return sum(word << 32 * place for place, word in enumerate(words))

    def _described(self) -> dict[str, Any]:
        """Return what a file's header says of every classifier."""
        return {
            "class": type(self).__name__,
            "classes": [self.classes_.dtype.str, self.classes_.tolist()],
            "n_features_in": self.n_features_in_,
            "feature_names_in": getattr(self, "feature_names_in_", np.array([])).tolist(),
        }

    def _parameters(self, *, secrets_too: bool) -> dict[str, Any]:
        """Return the parameters for a file's header, without the seed unless ``secrets_too``.

        Raises:
            ParameterError: ``random_state`` is a generator, which JSON cannot hold.
        """
        parameters: dict[str, Any] = self.get_params(deep=False)
        if not secrets_too:
            parameters["random_state"] = None
        if not isinstance(parameters["random_state"], int | np.integer | None):
            raise ParameterError(
                "an estimator whose random_state is a generator cannot be saved; give a number or None"
            )
        return parameters

    @classmethod
    def _from_header(cls, header: Mapping[str, Any]) -> Self:
        """Return a classifier with what a file's header says of every classifier."""
        estimator = cls(**header["parameters"])
        dtype, classes = header["classes"]
        estimator.classes_ = np.array(classes, dtype=dtype)
        estimator.n_features_in_ = header["n_features_in"]
        if header["feature_names_in"]:
            estimator.feature_names_in_ = np.array(header["feature_names_in"], dtype=object)
        return estimator

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Put everything back as it was when the block is interrupted or fails. No array is changed in place."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _require_fitted(self) -> None:
        check_is_fitted(self)


ROWS_AT_ONCE = 8192
"""Rows that stay in a processor's cache."""


def require_short_rows(features: Array) -> None:
    """Raise `DataError` if a row is longer than 1: the message names the longest."""
    norms = np.empty(len(features))
    for start in range(0, len(features), ROWS_AT_ONCE):
        some = features[start : start + ROWS_AT_ONCE].astype(np.float64, copy=False)
        # A sum that overflows is infinite, and longer than 1.
        np.einsum("ij,ij->i", some, some, out=norms[start : start + len(some)])
    np.sqrt(norms, out=norms)
    worst, longer = int(norms.argmax()), int((norms > 1 + NORM_TOLERANCE).sum())
    if longer:
        raise DataError(
            f"row {worst} of X has norm {norms[worst]:.7g}, the longest of {longer} rows above 1, but the guarantee "
            "needs norms of at most 1; divide X by a public constant, or say normalize=True to divide every row by its "
            "own norm"
        )


def distinct(indices: Any, n: int) -> NDArray[np.int64]:
    """Return row numbers in order.

    Raises:
        ParameterError: ``indices`` are no row numbers of ``n`` records, or one appears twice.
    """
    wanted = np.atleast_1d(np.asarray(indices))
    if wanted.ndim != 1 or not len(wanted) or wanted.dtype.kind not in "iu":
        raise ParameterError(f"indices must be a list of row numbers of the X that was fitted, got {indices!r}")
    wanted = np.sort(wanted)
    twice = wanted[1:] == wanted[:-1]
    if twice.any():
        raise ParameterError(f"indices names record {wanted[1:][twice][0]} twice")
    if wanted[0] < 0 or wanted[-1] >= n:
        outside = wanted[(wanted < 0) | (wanted >= n)]
        raise ParameterError(f"indices names record {outside[0]}, but records are numbered 0 to {n - 1}")
    return wanted


def require_removable(wanted: NDArray[np.int64], gone: NDArray[np.bool_], *, left: int) -> None:
    """Raise `ParameterError` if a wanted record was removed before, or if none of those ``left`` would remain."""
    if gone.any():
        raise ParameterError(f"record {wanted[gone][0]} was removed before")
    if len(wanted) == left:
        raise ParameterError("indices name every record that is left; at least one must remain")


def warn_of_an_empty_class() -> None:
    """Warn whoever called `unlearn` that a class has lost all its records."""
    warnings.warn("a class has no record left, but its name stays in classes_, and so does what it tells", stacklevel=3)


def unit(features: Array) -> Array:
    """Return every row divided by its norm; a row of zeros stays."""
    largest = np.abs(features).max(axis=1, keepdims=True)
    # First by the largest value: squares of very large and very small ones are no numbers any more.
    features = features / np.where(largest > 0, largest, 1)
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    return features / np.where(norms > 0, norms, 1)
