"""A linear model: weights of rows of norm at most 1, which are made of features."""

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
"""Rows that stay in a processor's cache."""


@dataclass(kw_only=True, repr=False, eq=False)
class LinearModel(UnlearningEstimator):
    """Scores by weights of rows of norm at most 1, with or without a regularised intercept.

    The model of a record ``x`` is that of the row ``(x, 1) / sqrt(2)``, without an intercept: its norm is at most 1
    where that of ``x`` is, and the weights are scikit-learn's times ``sqrt(2)``, so the regulariser's strength is
    halved.

    Subclasses set ``_weights``, of the rows. ``coef_`` and ``intercept_`` are of the features as the model sees them:
    after ``feature_ranges``, ``data_norm`` or ``normalize``.

    Args:
        fit_intercept: Whether there is an intercept, which is regularised.
    """

    fit_intercept: bool = True

    _NEEDS_SHORT_ROWS: ClassVar[str] = "the guarantee needs norms of at most 1"

    @property
    def _dtype(self) -> str:
        """The type of rows."""
        return "float64"

    @property
    @abstractmethod
    def certificate_(self) -> Any:
        """Certificate of the model as it is now; `certificate.write` makes a file for ``unlearn verify``."""

    @abstractmethod
    def quality(self, X: Any, y: Any) -> Any:
        """Measure the predictions on records."""

    @abstractmethod
    def _guaranteed_in_words(self, stated: Any) -> list[str]:
        """Return what a report says of what a certificate states, besides what it assumes."""

    def privacy_report(self, X: Any = None, y: Any = None) -> str:
        """Return in words what the guarantee means, what it is, compared with what, and what was not checked.

        Args:
            X: Records to measure the predictions on, whose numbers no guarantee covers. None: nothing is measured.
            y: Their true classes or targets.
        """
        stated = self.certificate_
        meaning = stated.meaning()
        opening = [] if meaning is None else [meaning]
        said = self._guaranteed_in_words(stated)
        assumed = [f"- {each.statement}: {each.by}" for each in stated.unchecked]
        if (X is None) != (y is None):
            raise ParameterError(f"give X and y together, or neither, got {'y' if X is None else 'X'} only")
        measured = [] if X is None else self.quality(X, y).in_words()
        return "\n".join([*opening, *said, "Assumed, not checked:", *assumed, *self._scaling_in_words(), *measured])

    def _class_sizes_of(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Return how many of some labels are each class'; of targets nothing."""
        return np.empty(0, dtype=np.int64)

    def _require_law(self) -> None:
        pass

    def _stated_of_removed(self) -> Stated:
        """Return what is certified of the model's law, beside that of a model without all records removed so far."""
        stated: Stated = self.certificate_.stated()
        return stated

    def _noise_of_weights(self) -> tuple[float, bool] | None:
        """Return the noise of weights of rows, and whether it is by curvature (`PublicObjective`); None if unknown."""
        return None

    def _public_objective(self) -> PublicObjective | None:
        """Return the objective of a fitted model; None where scores are several, or descent stops before a minimum."""
        return None

    def _laws(self, gone: NDArray[np.int64], trials: int) -> Laws:
        """Draw weights of models as this one was fitted, after a removal, and of the comparator; it stays as it is.

        Args:
            gone: The only records that are removed.
            trials: How many of each.

        Raises:
            AssumptionError: What the certificate compares with cannot be drawn.
        """
        raise AssumptionError(
            f"what the certificate of {type(self).__name__} compares with cannot be drawn: LangevinLogisticRegression "
            "(with batch_size=None), LangevinRidge, CertifiedLogisticRegression and CertifiedRidge can be audited so; "
            "or give weights of your own to compare_laws"
        )

    def _secret(self) -> Self:
        """Return this model with its secret weights in the place of the published ones, for audits alone.

        Raises:
            AssumptionError: There are none: noise is added elsewhere.
        """
        raise AssumptionError(
            f"{type(self).__name__} has no secret weights to which noise is added on publication alone: "
            "CertifiedLogisticRegression and CertifiedRidge can be audited by white_box"
        )

    def _noise_of_coefficients(self) -> dict[str, Any]:
        """Return the noise of the coefficients as `PublicObjective` has it; empty where it is unknown."""
        found = self._noise_of_weights()
        if found is None:
            return {}
        noise, by_curvature = found
        # With an intercept, weights of rows are longer by sqrt(2). The Hessian of such weights is half as large.
        shorter = self.fit_intercept and not by_curvature
        return {"noise": noise / np.sqrt(2) if shorter else noise, "by_curvature": by_curvature}

    @property
    def _columns(self) -> int:
        """Columns of a row."""
        columns: int = self.n_features_in_ + self.fit_intercept
        return columns

    def _require_short(self, features: Array) -> None:
        """Raise `DataError` if a row is longer than 1 and nothing makes it shorter."""
        if not self.normalize and self._scaling() is None:
            require_short_rows(features, self._NEEDS_SHORT_ROWS)

    def _rows(self, features: Any) -> Any:
        """Return features that were checked for their length as rows, in an array that nobody else has."""
        if self.normalize or self._scaling() is not None:
            features = self._seen(features.astype(np.float64, copy=False))  # float32 would leave some too long.
        return self._with_intercept(features)

    def _with_intercept(self, features: Any) -> Any:
        """Return features as the model sees them as rows, in an array that nobody else has, or in sparse ones."""
        if issparse(features):
            if self.fit_intercept:
                return sparse.with_constant(features, factor=1 / np.sqrt(2), constant=1 / np.sqrt(2))
            return features.astype(self._dtype, copy=True)
        if self.fit_intercept:
            rows = np.empty((len(features), features.shape[1] + 1), dtype=features.dtype)
            np.divide(features, np.sqrt(2), out=rows[:, :-1])
            rows[:, -1] = 1 / np.sqrt(2)
            return rows.astype(self._dtype, copy=False)
        # A copy in any case: what the caller does to X later must not reach the training records.
        return np.array(features, dtype=self._dtype, order="C")


def require_short_rows(features: Any, why: str, name: str = "X") -> None:
    """Raise `DataError` if a row is longer than 1: the message names the longest, and says why it must not be."""
    norms = sparse.norms(features) if issparse(features) else _norms(features)
    worst, longer = int(norms.argmax()), int((norms > 1 + NORM_TOLERANCE).sum())
    if longer:
        raise DataError(
            f"row {worst} of {name} has norm {norms[worst]:.7g}, the longest of {counted(longer, 'row')} above 1, but "
            f"{why}; "
            "give feature_ranges, a pair (low, high) for each column, known without these "
            f"records; or divide {name} by a public constant, or say normalize=True to divide every row by its own norm"
        )


def _norms(features: Array) -> Array:
    norms = np.empty(len(features))
    for start in range(0, len(features), ROWS_AT_ONCE):
        some = features[start : start + ROWS_AT_ONCE].astype(np.float64, copy=False)
        # A sum that overflows is infinite, and longer than 1.
        np.einsum("ij,ij->i", some, some, out=norms[start : start + len(some)])
    return np.sqrt(norms, out=norms)
