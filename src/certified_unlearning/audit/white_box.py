"""White-box audits of noise on publication: the computed distance between a model's and a refit's distributions.

Published weights are secret ones with Gaussian noise, and so are those of the exact refit that the certificate compares
with. Two such distributions of equal covariance differ by exactly ``mu = |w - w_refit| / sigma`` (Dong, Roth, Su 2022).
It needs only a single model and its secret state.
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
    """The distance of two distributions for the removed records; it is no bound, because others may have a larger one.

    Attributes:
        method: What was audited.
        claim: What its certificate states.
        mu: Lower bound on the distance of the model after the removal from the exact refit: the solver's own error is
            subtracted. Infinite if weights were published without noise.
        mu_at_most: Upper bound on this distance: the solver's error is added.
        mu_before: Like ``mu``, for the model before the removal: what there was to forget.
    """

    method: str
    claim: Claim
    mu: float
    mu_at_most: float
    mu_before: float

    @property
    def violated(self) -> bool:
        """Whether the distributions are farther apart than is certified; nothing is drawn, so it is no false alarm."""
        return self.claim.mu is not None and self.mu > self.claim.mu

    def __str__(self) -> str:
        """Return a report for people."""
        certified = "anything" if self.claim.mu is None else ceiling(self.claim.mu)
        return (
            f"certified mu at most {certified}; exact for these records {self.mu:.2g} to {self.mu_at_most:.2g}, before "
            f"unlearning {self.mu_before:.2g}\n"
            + ("violated: the distributions are farther apart than is certified\n" if self.violated else "")
            + f"{self.method}: exact for these records, not a bound for others"
        )


def white_box(estimator: Any, X: Any, y: Any, gone: ArrayLike) -> WhiteBoxResult:
    """Compute, from its secret weights, how far a model is from the exact refit that its certificate compares with.

    The refit uses another solver, that of scikit-learn, to the last digits.

    Args:
        estimator: `CertifiedLogisticRegression` of two classes, or `CertifiedRidge`.
        X: Records, shape ``(n, features)``.
        y: Their classes or targets.
        gone: Positions of the records that are removed in one request.

    Raises:
        ParameterError: It is not an estimator of this package.
        DataError: A position names no record.
        AssumptionError: Its noise is not added on publication alone, or it has more than two classes.
    """
    if not hasattr(estimator, "_require_law"):
        raise ParameterError(f"white_box takes an estimator of certified_unlearning, got {type(estimator).__name__}")
    method = OwnEstimator(estimator)
    X, y = check_X_y(X, y, dtype=np.float64)
    removed = np.atleast_1d(np.asarray(gone))
    if removed.dtype.kind not in "iu" or not len(removed) or removed.min() < 0 or removed.max() >= len(X):
        raise DataError(f"gone must hold positions from 0 to {len(X) - 1} in X, got {removed.tolist()[:3]}")
    model = clone(estimator).fit(X, y)
    objective = model._public_objective()
    if objective is None:
        raise AssumptionError(
            f"{type(estimator).__name__} has more than two classes here, and the exact refit of these is not known to "
            "white_box: give two classes"
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
    """Return how many standard deviations of noise the secret weights are from the refit."""
    secret, published = (
        published_weights({"coef_": each.coef_, "intercept_": np.atleast_1d(each.intercept_)}, objective)
        for each in (model._secret(), model)
    )
    if (secret == published).all():
        return math.inf
    return float(np.linalg.norm(secret - refit)) / objective.noise
