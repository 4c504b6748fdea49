"""Linear regressors with scikit-learn's interface: targets in a public range, and predictions in the targets' units."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from certified_unlearning.accounting.core.losses import regularisation_of
from certified_unlearning.data.quality import TargetQuality, target_quality_of
from certified_unlearning.data.tables.targets import TargetScale
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.estimators.linear import LinearModel
from certified_unlearning.estimators.objective import PublicObjective
from certified_unlearning.estimators.scaling import Array


@dataclass(kw_only=True, repr=False, eq=False)
class LinearRegressor(RegressorMixin, LinearModel):  # type: ignore[misc]
    """A linear model for targets that are mapped to [-1, 1], with a regularised intercept or without one.

    Args:
        target_range: Required. Range ``(low, high)`` of the targets. The range must be known without looking at these
            records. Targets outside it are clipped.
    """

    target_range: tuple[float, float] | None = None

    def predict(self, X: Any) -> Array:
        """Return predictions, shape ``(records,)``, in the units of ``target_range``."""
        self._require_fitted()
        predicted: Array = self._seen(self._checked(X)) @ self.coef_ + self.intercept_
        return predicted

    def quality(self, X: Any, y: Any) -> TargetQuality:
        """Measure predictions on records: R^2 and errors, compared with always predicting the mean of these targets.

        The numbers depend on these records, and are not covered by a certificate.

        Args:
            X: Features, shape ``(records, features)``.
            y: True targets, shape ``(records,)``.

        Raises:
            DataError: There are no records.
        """
        return target_quality_of(self.predict(X), y)

    @property
    def coef_(self) -> Array:
        """Weights of the features, shape ``(features,)``, in the units of ``target_range``."""
        weights = self._in_units()
        return weights[:-1] / np.sqrt(2) if self.fit_intercept else weights

    @property
    def intercept_(self) -> float:
        """Intercept, in the units of ``target_range``."""
        weights = self._in_units()
        return float(weights[-1] / np.sqrt(2) + self._middle) if self.fit_intercept else 0.0

    def _in_units(self) -> Array:
        self._require_fitted()
        weights: Array = self._half * self._weights.astype(np.float64).reshape(-1)
        return weights

    def _validated(self, X: Any, y: Any) -> tuple[NDArray[Any], Array]:
        """Return records and their targets, mapped to [-1, 1]; set the middle and half-width of the targets' range."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32), y_numeric=True)
        if X.shape[0] < 2:
            raise DataError("X has only 1 sample, but a removal must leave at least one record")
        scale = TargetScale.of(self.target_range, "target_range", intercept=self.fit_intercept)
        self._scaling()  # This checks the numbers of the scaling before anything is done.
        self._middle, self._half = scale.middle, scale.half
        return self._in_form(X), scale.scaled(y)

    def _range(self) -> tuple[float, float]:
        """Return the range to which targets are clipped.

        Raises:
            ParameterError: The range is missing or invalid.
        """
        scale = TargetScale.of(self.target_range, "target_range", intercept=self.fit_intercept)
        return scale.low, scale.high

    def _described(self) -> dict[str, Any]:
        return {**super()._described(), "targets": [self._middle, self._half]}

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(header, arrays)
        if self.target_range is not None:
            low, high = self.target_range
            self.target_range = (low, high)  # JSON has lists, but no tuples.
        self._middle, self._half = header["targets"]


@dataclass(kw_only=True, repr=False, eq=False)
class RidgeRegressor(LinearRegressor):
    """Ridge regression.

    The objective is that of scikit-learn's ``Ridge``, ``sum_i (x_i.w - y_i)^2 + alpha |w|^2``. Unlike in ``Ridge``, the
    intercept is regularised, which pulls it towards the middle of ``target_range``. After division by ``2 n``, the
    objective has strong convexity ``m = alpha / n``, or half of that with an intercept (see `LinearModel`).

    Args:
        alpha: Strength of the regulariser, as in scikit-learn; above 0.
        fit_intercept: Whether there is an intercept, which is regularised. Without an intercept, the middle of
            ``target_range`` is not subtracted, so the target 0 is mapped to 0.
    """

    alpha: float = 1.0

    def _public_objective(self) -> PublicObjective | None:
        low, high = self._range()
        return PublicObjective(
            loss="squared",
            strength=float(self.alpha),
            targets=lambda y: (np.clip(y, low, high) - self._middle) / self._half,
            seen=self._seen,
            intercept=self.fit_intercept,
            unit=self._half,
            middle=self._middle,
            **self._noise_of_coefficients(),
        )

    def _regularisation(self, n: int) -> float:
        """Return ``m / n`` for ``n`` records.

        Raises:
            ParameterError: ``alpha`` is not a number above 0.
        """
        known = isinstance(self.alpha, int | float | np.number) and not isinstance(self.alpha, bool)
        if not known or not 0 < self.alpha < np.inf:
            raise ParameterError(
                f"alpha must be a number above 0, got {self.alpha!r}: without a regulariser (linear regression) "
                "one record may have moved the weights by any amount, and no noise covers that; alpha = n / 1000, here "
                f"{n / 1000:g}, is a weak regulariser"
            )
        return regularisation_of(C=1 / float(self.alpha), n=n, intercept=self.fit_intercept)
