"""Audits that compare two distributions at several epsilons, to find out whether certificates are tight."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge

from certified_unlearning.accounting.private.losses import ScalarLoss
from certified_unlearning.audit import Claim, TwoLawResult, compare_laws, two_laws
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.estimators import (
    CertifiedLogisticRegression,
    CertifiedRidge,
    LangevinLogisticRegression,
    LangevinRidge,
    PrivateLogisticRegression,
    SecretStateDescentToDelete,
)
from certified_unlearning.mechanisms.private.searches import learn
from certified_unlearning.papers.cheaper_than_retraining.audits.sweep import Audits

Array = NDArray[np.float64]
Records = tuple[Array, Array]
FEATURES = 2
"""The number of columns of a row."""
BATCHES = 4
"""The number of mini-batches in a pass."""
RIDGE = 10.0
"""``alpha / n`` of ridge regression by Langevin unlearning.

With this value, the ball has the small radius ``R = 1 / 11``, so it makes the bounds only slightly larger.
"""
QUIET = 0.01
"""The noise of the control, as a share of the noise of private learning.

Private learning hides the record from the first model on, so no earlier model can be the control.
"""


@dataclass(frozen=True)
class Measured:
    """The result of an audit that compares two distributions.

    Attributes:
        found: The counts of the audit, and the claim.
        computed: The exact ``mu`` for these records if the two distributions are Gaussian around known weights, else
            None.
    """

    found: TwoLawResult
    computed: float | None = None

    @property
    def estimated(self) -> float:
        """The ``mu`` that the counts suggest, without a confidence level. It is not a bound."""
        after = self.found.after
        # Half a model is added, so that a share of 0 gives no infinity.
        likely, rare = (after.likely + 0.5) / (after.likely_of + 1), (after.rare + 0.5) / (after.rare_of + 1)
        return float(ndtri(likely) - ndtri(rare))


def opposed(n: int, *, along: float, label: float) -> Records:
    """Return a record for removal, followed by identical records whose gradients are partly orthogonal to its own.

    Args:
        n: The number of records.
        along: The component of the removed row in the direction of the other rows.
        label: The label of the removed record; the others have label 1.
    """
    rows, labels = np.tile([0.0, 1.0], (n, 1)), np.ones(n)
    rows[0], labels[0] = [np.sqrt(1 - along**2), along], label
    return rows, labels


def measured(name: str, target: float, sweep: Audits) -> Measured:
    """Return the audit of a mechanism with a target epsilon; the noise follows from the seed."""
    seed = address(sweep.seed, "audit", name, target) % 2**32
    with warnings.catch_warnings():
        # The records are made so that only few columns matter.
        warnings.filterwarnings("ignore", "column 1 of X carries", UserWarning)
        return AUDITS[name](target, sweep, seed)


def _ridge(target: float, sweep: Audits, seed: int, *, adjacency: str = "zero-out") -> Measured:
    estimator = LangevinRidge(
        target, sweep.delta, alpha=RIDGE * sweep.records, target_range=(-1, 1), fit_intercept=False, dtype="float64",
        adjacency=adjacency,
    )  # fmt: skip
    return Measured(_found(estimator, opposed(sweep.records, along=0.0, label=1.0), sweep, seed))


def _replaced(target: float, sweep: Audits, seed: int) -> Measured:
    return _ridge(target, sweep, seed, adjacency="replace")


def _langevin(target: float, sweep: Audits, seed: int, *, batch_size: int | None = None) -> Measured:
    estimator = LangevinLogisticRegression(
        target, sweep.delta, C=sweep.strength / sweep.records, batch_size=batch_size, fit_intercept=False,
        dtype="float64",
    )  # fmt: skip
    return Measured(_found(estimator, _wrong(sweep), sweep, seed))


def _minibatch(target: float, sweep: Audits, seed: int) -> Measured:
    return _langevin(target, sweep, seed, batch_size=sweep.records // BATCHES)


def _descent(target: float, sweep: Audits, seed: int) -> Measured:
    estimator = SecretStateDescentToDelete(
        target, sweep.delta, C=sweep.strength / sweep.records, fit_intercept=False, dtype="float64"
    )
    return _with_secret(estimator, _wrong(sweep), sweep, seed, lambda model: model._state[0], model_sigma)


def _refit(target: float, sweep: Audits, seed: int, *, between: int | None = 0) -> Measured:
    estimator = CertifiedLogisticRegression(
        target, sweep.delta, C=sweep.strength / sweep.records, fit_intercept=False, records_between_reads=between
    )
    return _with_secret(estimator, _wrong(sweep), sweep, seed, lambda model: model._model.weights, plan_sigma)


def _newton(target: float, sweep: Audits, seed: int) -> Measured:
    return _refit(target, sweep, seed, between=None)


def _certified_ridge(target: float, sweep: Audits, seed: int) -> Measured:
    estimator = CertifiedRidge(
        target, sweep.delta, alpha=sweep.records / sweep.strength, target_range=(-1, 1), fit_intercept=False
    )
    records = opposed(sweep.records, along=0.0, label=1.0)
    return _with_secret(estimator, records, sweep, seed, lambda model: model._model.weights, plan_sigma)


def _private(target: float, sweep: Audits, seed: int, *, method: str) -> Measured:
    """Return the audit of private learning, which hides whether a record is present or its place is empty."""
    rows, labels = _wrong(sweep)
    planned = PrivateLogisticRegression(
        method=method, epsilon=target, delta=sweep.delta, relation="add-remove", fit_intercept=False,  # type: ignore[arg-type]
        random_state=seed,
    ).fit(rows, labels)  # fmt: skip
    plan: Any = planned._plan.learners[0]
    stated = planned.certificate_
    without = rows.copy()
    without[0] = 0.0

    def models(rows: Array, name: str, noise: float) -> Array:
        records = BoundedRecords(
            torch.as_tensor(rows), torch.as_tensor(2 * labels - 1), loss=ScalarLoss(name="logistic"), row_norm=1.0
        )
        keys = [address(seed, name, trial) for trial in range(sweep.trials)]
        weights: Array = learn(replace(plan, sigma=noise * plan.sigma), records, keys).weights.numpy()
        return weights

    def compared(noise: float) -> TwoLawResult:
        with_it, without_it = models(rows, f"with {noise}", noise), models(without, f"without {noise}", noise)
        claim = Claim(
            epsilon=stated.epsilon, delta=stated.delta + stated.extra_delta, mu=plan.guarantee.mu,
            extra_delta=stated.extra_delta,
        )  # fmt: skip
        return compare_laws(with_it, without_it, with_it, claim=claim, alpha=sweep.alpha, method=method, certified=True)

    return Measured(replace(compared(1.0), before=compared(QUIET).after))


def _private_descent(target: float, sweep: Audits, seed: int) -> Measured:
    return _private(target, sweep, seed, method="noisy-gradient-descent")


def _private_output(target: float, sweep: Audits, seed: int) -> Measured:
    return _private(target, sweep, seed, method="output-perturbation")


AUDITS: dict[str, Callable[[float, Audits, int], Measured]] = {
    "langevin-ridge": _ridge,
    "langevin-replace": _replaced,
    "langevin-full": _langevin,
    "langevin-minibatch": _minibatch,
    "descent-to-delete": _descent,
    "certified-refit": _refit,
    "newton-removal": _newton,
    "certified-ridge": _certified_ridge,
    "private-descent": _private_descent,
    "private-output": _private_output,
}
"""The functions that run the audits; the keys are the names in the column ``system``."""


def _wrong(sweep: Audits) -> Records:
    """Return records in which the removed record has the wrong label and, therefore, nearly the longest gradient.

    Every second one of the remaining records is negated and has the opposite label, so that all remaining records have
    the same loss.
    """
    rows, labels = opposed(sweep.records, along=0.49, label=0.0)
    rows[1::2], labels[1::2] = -rows[1::2], 0.0
    return rows, labels


def _found(estimator: Any, records: Records, sweep: Audits, seed: int) -> TwoLawResult:
    return two_laws(estimator, *records, [0], trials=sweep.trials, alpha=sweep.alpha, random_state=seed)


def plan_sigma(model: Any) -> float:
    """Return the noise scale of a certified refit."""
    return float(model._plan.sigma)


def model_sigma(model: Any) -> float:
    """Return the scale of the noise that Descent-to-Delete adds on publication."""
    return float(model._learner.sigma)


def _with_secret(
    estimator: Any,
    records: Records,
    sweep: Audits,
    seed: int,
    secret: Callable[[Any], Array],
    sigma: Callable[[Any], float],
) -> Measured:
    """Return the audit and the exact ``mu``: the distance of the secret weights from those of another solver.

    The distance between the two vectors of weights is measured in standard deviations of the noise.

    On publication, both vectors of weights get noise of the same standard deviation. Their distributions are then
    Gaussian, and ``mu`` is their distance in standard deviations.
    """
    model = clone(estimator).set_params(random_state=seed).fit(*records)
    model.unlearn([0])
    rows, labels = records[0][1:], records[1][1:]
    if hasattr(estimator, "C"):
        exact = LogisticRegression(C=estimator.C, fit_intercept=False, solver="newton-cholesky", tol=1e-13)
    else:
        exact = Ridge(alpha=estimator.alpha, fit_intercept=False, solver="cholesky")
    away = np.linalg.norm(secret(model) - np.ravel(exact.fit(rows, labels).coef_))
    return Measured(_found(estimator, records, sweep, seed), float(away) / sigma(model))
