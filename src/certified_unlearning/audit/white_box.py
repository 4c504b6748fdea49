"""White-box audits of noise on publication: they compute the distance between a model's and a refit's distribution.

Published weights are secret weights plus Gaussian noise. The exact refit, which is the certificate's comparator, has
noise with the same covariance. Two such distributions differ by exactly ``mu = |w - w_refit| / sigma`` (Dong, Roth, Su
2022). The audit needs only a single model and its secret state.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_X_y

from certified_unlearning.accounting.auditing.shown import ceiling
from certified_unlearning.audit.claims import Claim
from certified_unlearning.audit.guessers import published_weights, refitted
from certified_unlearning.audit.methods import OwnEstimator
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.estimators.objective import PublicObjective


@dataclass(frozen=True, kw_only=True)
class WhiteBoxResult:
    """The distance between the distributions of a model and of its exact refit, for the removed records.

    The distance for other records is not bounded.

    Attributes:
        method: Name of the audited method.
        claim: The claim of the certificate.
        mu: Lower bound on the distance between the model after the removal and the exact refit, in standard deviations
            of the noise. The error of the refit's solver is subtracted. Infinite if weights were published without
            noise.
        mu_at_most: Upper bound on the same distance; the error of the refit's solver is added.
        mu_before: Lower bound on the distance between the model before the removal and the exact refit, computed like
            ``mu``. It shows how much there was to forget.
    """

    method: str
    claim: Claim
    mu: float
    mu_at_most: float
    mu_before: float

    @property
    def violated(self) -> bool:
        """Whether the distance exceeds the certified one.

        Nothing is drawn at random, so there are no false alarms.
        """
        return self.claim.mu is not None and self.mu > self.claim.mu

    def __str__(self) -> str:
        """Return a readable report, as text."""
        certified = "anything" if self.claim.mu is None else ceiling(self.claim.mu)
        return (
            f"certified mu at most {certified}; the exact mu for these records is {self.mu:.2g} to "
            f"{self.mu_at_most:.2g}; before unlearning, it was at least {self.mu_before:.2g}\n"
            + ("violated: the distributions are farther apart than is certified\n" if self.violated else "")
            + f"{self.method}: exact for these records, not a bound for others"
        )


def white_box(estimator: Any, X: Any, y: Any, gone: ArrayLike) -> WhiteBoxResult:
    """Compute the distance of a model's secret weights from the exact refit that its certificate compares with.

    The refit uses scikit-learn's solver instead of the estimator's own, and is exact to the last digits.

    Args:
        estimator: `CertifiedLogisticRegression` of two classes, or `CertifiedRidge`.
        X: Records, shape ``(n, features)``.
        y: Classes or targets of the records, shape ``(n,)``.
        gone: Positions of the records that one request removes.

    Raises:
        ParameterError: The estimator is not one of this package.
        DataError: A position is outside ``X``.
        AssumptionError: The estimator does not add its noise on publication, or has more than two classes.
    """
    if not hasattr(estimator, "_require_law"):
        raise ParameterError(f"white_box takes an estimator of certified_unlearning, got {type(estimator).__name__}")
    method = OwnEstimator(estimator)
    X, y = check_X_y(X, y, dtype=np.float64)
    removed = np.atleast_1d(np.asarray(gone))
    if removed.dtype.kind not in "iu" or not len(removed) or removed.min() < 0 or removed.max() >= len(X):
        raise DataError(f"`gone` must hold positions from 0 to {len(X) - 1} in X, got {removed.tolist()[:3]}")
    model = clone(estimator).fit(X, y)
    objective = model._public_objective()
    if objective is None:
        raise AssumptionError(
            f"y has more than two classes, for which white_box cannot compute the exact refit of "
            f"{type(estimator).__name__}: give two classes"
        )
    refit, error = refitted(objective, np.delete(X, removed, axis=0), np.delete(y, removed))
    error /= objective.noise
    before = _distance(model, objective, refit)
    after = _distance(method.unlearn(model, X, y, removed), objective, refit)
    return WhiteBoxResult(
        method=method.name,
        claim=method.claim(model),
        mu=float(max(0.0, after - error)),
        mu_at_most=float(after + error),
        mu_before=float(max(0.0, before - error)),
    )


def _distance(model: Any, objective: PublicObjective, refit: NDArray[np.float64]) -> float:
    """Return the distance between the secret weights and the refit, in standard deviations of the noise."""
    secret, published = (
        published_weights({"coef_": each.coef_, "intercept_": np.atleast_1d(each.intercept_)}, objective)
        for each in (model._secret(), model)
    )
    if (secret == published).all():
        return math.inf
    return float(np.linalg.norm(secret - refit)) / objective.noise
