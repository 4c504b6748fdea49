"""Linear models: features become rows of norm at most 1, and weights give these rows scores."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from certified_unlearning.certificate.base import Stated
from certified_unlearning.data.prepared import NORM_TOLERANCE
from certified_unlearning.engine.objectives import sparse
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.estimators.estimator import UnlearningEstimator
from certified_unlearning.estimators.objective import Laws, PublicObjective
from certified_unlearning.estimators.scaling import Array
from certified_unlearning.text import counted

ROWS_AT_ONCE = 8192
"""Number of rows that fit in a processor's cache."""


@dataclass(kw_only=True, repr=False, eq=False)
class LinearModel(UnlearningEstimator):
    """A model whose weights give scores to rows of norm at most 1, with or without a regularised intercept.

    A model with an intercept replaces each record ``x`` by the row ``(x, 1) / sqrt(2)``, and then needs no separate
    intercept. This row has norm at most 1 if ``x`` has norm at most 1. The weights of such rows are ``sqrt(2)`` times
    scikit-learn's weights, so the regulariser's strength is halved.

    Subclasses set ``_weights``, the weights by which rows are multiplied. ``coef_`` and ``intercept_`` apply to
    features that were scaled by ``feature_ranges``, ``data_norm`` or ``normalize``.

    Args:
        fit_intercept: Whether there is an intercept; it is regularised.
    """

    fit_intercept: bool = True

    _NEEDS_SHORT_ROWS: ClassVar[str] = "the guarantee needs norms of at most 1"

    @property
    def _dtype(self) -> str:
        """Type of the numbers in rows."""
        return "float64"

    @property
    @abstractmethod
    def certificate_(self) -> Any:
        """Certificate of the current model; `certificate.write` writes it to a file for ``unlearn verify``."""

    @abstractmethod
    def quality(self, X: Any, y: Any) -> Any:
        """Measure the predictions on records."""

    @abstractmethod
    def _guaranteed_in_words(self, stated: Any) -> list[str]:
        """Return the report's lines on what a certificate states, except its assumptions."""

    def privacy_report(self, X: Any = None, y: Any = None) -> str:
        """Describe in words what the guarantee means, its numbers, its comparator, and what was not checked.

        Args:
            X: Records on which predictions are measured; no guarantee covers the measured numbers. None: predictions
                are not measured.
            y: True classes or targets of these records.
        """
        if (X is None) != (y is None):
            raise ParameterError(f"give X and y together, or neither, got {'y' if X is None else 'X'} only")
        measured = [] if X is None else self.quality(X, y).in_words()
        stated = self.certificate_
        return self._report(stated, self._guaranteed_in_words(stated), measured)

    def _class_sizes_of(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of labels in each class; empty for targets."""
        return np.empty(0, dtype=np.int64)

    def _require_law(self) -> None:
        pass

    def _stated_of_removed(self) -> Stated:
        """Return what is certified about this model, compared with a model that never had the removed records."""
        stated: Stated = self.certificate_.stated()
        return stated

    def _noise_of_weights(self) -> tuple[float, bool] | None:
        """Return the weights' noise, and whether it depends on the curvature (`PublicObjective`); None if unknown."""
        return None

    def _public_objective(self) -> PublicObjective | None:
        """Return a fitted model's objective; None if it has several scores, or if descent stops before the minimum."""
        return None

    def _laws(self, gone: NDArray[np.int64], trials: int) -> Laws:
        """Draw weights of models of three kinds.

        The models of the first kind are fitted like this model. The models of the second kind are those of the first
        kind after a removal. The models of the third kind are comparators. The estimator itself is not changed.

        Args:
            gone: Positions of the removed records; no other records are removed.
            trials: Number of models of each kind.

        Raises:
            AssumptionError: The certificate's comparator cannot be drawn.
        """
        raise AssumptionError(
            f"the comparator of {type(self).__name__} cannot be drawn, so this audit needs LangevinLogisticRegression "
            "(with batch_size=None), LangevinRidge, CertifiedLogisticRegression or CertifiedRidge; or give weights of "
            "your own to compare_laws"
        )

    def _secret(self) -> Self:
        """Return this model with its secret weights instead of the published ones; only audits may use the result.

        Raises:
            AssumptionError: The model has no secret weights, because no noise is added on publication.
        """
        raise AssumptionError(
            f"{type(self).__name__} has no secret weights to which noise is added on publication; white_box can audit "
            "only CertifiedLogisticRegression and CertifiedRidge"
        )

    def _noise_of_coefficients(self) -> dict[str, Any]:
        """Return the noise of the coefficients as fields of `PublicObjective`; empty if it is unknown."""
        found = self._noise_of_weights()
        if found is None:
            return {}
        noise, by_curvature = found
        # With an intercept, the weights of rows are sqrt(2) times as large, and their Hessian is half as large.
        shorter = self.fit_intercept and not by_curvature
        return {"noise": noise / np.sqrt(2) if shorter else noise, "by_curvature": by_curvature}

    @property
    def _columns(self) -> int:
        """Number of columns of a row."""
        columns: int = self.n_features_in_ + self.fit_intercept
        return columns

    def _require_short(self, features: Array) -> None:
        """Raise `DataError` if a row's norm is above 1 and no parameter scales the row down."""
        if not self.normalize and self._scaling() is None:
            require_short_rows(features, self._NEEDS_SHORT_ROWS)

    def _rows(self, features: Any) -> Any:
        """Convert features to rows, in a new array; the norms must have been checked before."""
        if self.normalize or self._scaling() is not None:
            features = self._seen(features.astype(np.float64, copy=False))  # In float32, rows would get too long.
        return self._with_intercept(features)

    def _with_intercept(self, features: Any) -> Any:
        """Turn scaled features into rows, in a new array or a new sparse matrix."""
        if issparse(features):
            if self.fit_intercept:
                return sparse.with_constant(features, factor=1 / np.sqrt(2), constant=1 / np.sqrt(2))
            return features.astype(self._dtype, copy=True)
        if self.fit_intercept:
            rows = np.empty((len(features), features.shape[1] + 1), dtype=features.dtype)
            np.divide(features, np.sqrt(2), out=rows[:, :-1])
            rows[:, -1] = 1 / np.sqrt(2)
            return rows.astype(self._dtype, copy=False)
        # This is always a copy, because later changes of the caller's X must not affect the training records.
        return np.array(features, dtype=self._dtype, order="C")


def require_short_rows(features: Any, why: str, name: str = "X") -> None:
    """Raise `DataError` if a row's norm is above 1.

    The message names the longest row, and the reason for the bound.
    """
    norms = sparse.norms(features) if issparse(features) else _norms(features)
    worst, longer = int(norms.argmax()), int((norms > 1 + NORM_TOLERANCE).sum())
    if longer:
        raise DataError(
            f"row {worst} of {name} has norm {norms[worst]:.7g}, but {why} ({counted(longer, 'row')} "
            f"{'has' if longer == 1 else 'have'} a norm above 1, and this row is the longest); give feature_ranges (a "
            "pair (low, high) for each column, known without these records), or set normalize=True (every row is "
            f"divided by its own norm), or divide {name} by a public constant"
        )


def _norms(features: Array) -> Array:
    norms = np.empty(len(features))
    for start in range(0, len(features), ROWS_AT_ONCE):
        some = features[start : start + ROWS_AT_ONCE].astype(np.float64, copy=False)
        # If a sum overflows, it is infinite, and so it counts as above 1.
        np.einsum("ij,ij->i", some, some, out=norms[start : start + len(some)])
    return np.sqrt(norms, out=norms)
