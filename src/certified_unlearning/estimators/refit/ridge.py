"""Ridge regression whose removals are certified by comparison with an exact refit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from certified_unlearning.data.tables.targets import TargetScale
from certified_unlearning.estimators.refit.model import RefitModel
from certified_unlearning.estimators.regressor import RidgeRegressor
from certified_unlearning.mechanisms.refit_plan import RefitPlan


@dataclass(repr=False, eq=False)
class CertifiedRidge(RefitModel, RidgeRegressor):
    """Ridge regression that unlearns in a time independent of ``n``: milliseconds with up to a thousand features.

    It keeps the minimiser secret, and publishes it with Gaussian noise. For a quadratic objective, a Newton step is
    exact. A removal subtracts the removed records from the Hessian, and solves for the new minimiser. The remaining
    gradient has only two causes, the solver's residual and rounding, and both are bounded. The data are read again in
    one pass when a tenth of the records has been removed, or when the bound on the remaining gradient reaches its
    budget. With more than 5000 features, every removal reads the data. A reading learns anew from the remaining
    records, so the secret state then contains nothing of the removed records.

    Sparse rows stay sparse, as in `CertifiedLogisticRegression`. If they have more than 1000 features, every removal
    reads all rows.

    As with `CertifiedLogisticRegression`, the certificate compares the model with an *exact refit plus the same noise*.

    The objective is that of scikit-learn's ``Ridge``, ``sum_i (x_i.w - y_i)^2 + alpha |w|^2``. Unlike in ``Ridge``, the
    intercept is regularised, which pulls it towards the middle of ``target_range``. Targets are clipped to that range
    and mapped to [-1, 1], so the loss at 0 is at most 1/2. The strong convexity is ``m = alpha / n``, or half of that
    with an intercept. Weights then have norm at most ``1 / sqrt(m)``, and this bound is public. ``alpha = 0`` (linear
    regression) is refused: without strong convexity, one record may have moved the weights so far that no amount of
    noise hides it.

    `fit` accepts ``public_X`` and ``public_y``, rows that nobody will ask to remove. The smallest eigenvalue of their
    Gram matrix, divided by ``n``, is added to ``m``, so float64 then allows a smaller ``sigma`` or ``alpha``.

    A failed or interrupted call does not change the estimator, but the next call may take longer. Removals modify
    arrays in place, so a copy must be a deep copy.

    Args:
        sigma: Standard deviation of the noise on the published weights, for targets in [-1, 1]. With an intercept, the
            noise is on ``sqrt(2)`` times the weights.
        records_between_reads: Number of records that may be removed without reading the data again. The request that
            exceeds this number reads the data. None: a tenth of ``n``. It has no effect if every request reads the
            data.

    See Also:
        `CertifiedLogisticRegression`: The same for classification.
        `LangevinRidge`: Keeps no secret state.

    Examples:
        >>> from certified_unlearning import CertifiedRidge
        >>> X, y = [[0.0, 1.0], [1.0, 0.2]] * 50, [1.0, 4.0] * 50
        >>> model = CertifiedRidge(epsilon=1, target_range=(0, 5), normalize=True).fit(X, y)
        >>> len(model.unlearn([2, 17]).remaining_)
        98
        >>> model.certificate_.epsilon <= 1
        True
    """

    def _planned(self, n: int) -> RefitPlan:
        strong_convexity = n * self._regularisation(n)
        return RefitPlan.make(
            n=n,
            features=self._columns,
            classes=1,
            strong_convexity=strong_convexity,
            **self._asked(),
            **self._guaranteed_by_public_rows(n, strong_convexity, classes=1),
        )

    def _public_labels(self, public_y: NDArray[Any]) -> NDArray[Any]:
        targets = check_array(public_y, ensure_2d=False, dtype=np.float64, input_name="public_y")
        return TargetScale.of(self.target_range, "target_range", intercept=self.fit_intercept).scaled(targets)
