"""White-box audits: the distance of two Gaussian laws is within what is certified, and that of faults is not."""

import math
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from certified_unlearning import CertifiedLogisticRegression, CertifiedRidge, LangevinLogisticRegression
from certified_unlearning.audit import white_box
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from tests.audit.conftest import Records

C = 100 / 1797
GONE = range(25)


def targets_of(digits: Records) -> Any:
    return 3 * digits.X @ np.linspace(-1, 1, 64)


MODELS = {
    "logistic": CertifiedLogisticRegression(C=C),
    "without intercept": CertifiedLogisticRegression(C=C, fit_intercept=False),
    "weighted": CertifiedLogisticRegression(C=C, class_weight={0: 1, 1: 2}),
    "ridge": CertifiedRidge(alpha=1, target_range=(-3, 5)),
}


@pytest.mark.parametrize("name", MODELS)
def test_honest_removals_are_as_near_to_an_exact_refit_as_certified(name: str, digits: Records) -> None:
    found = white_box(MODELS[name], digits.X, targets_of(digits) if name == "ridge" else digits.y, GONE)
    assert not found.violated
    assert found.claim.mu is not None
    assert 0 <= found.mu <= found.mu_at_most < found.claim.mu
    assert found.mu_at_most - found.mu < 1e-6
    assert found.mu_before > 100 * found.mu_at_most
    assert "exact for these records, not a bound for others" in str(found)


def test_a_newton_step_leaves_the_rest_of_a_taylor_series_of_losses_that_are_no_squares(digits: Records) -> None:
    """In ridge regression the step is exact, and solvers' errors are left."""
    few = {"gone": [3], "X": digits.X}
    ridge = white_box(CertifiedRidge(alpha=1, target_range=(-3, 3)), y=targets_of(digits), **few)
    assert ridge.mu_at_most < 1e-5
    logistic = white_box(CertifiedLogisticRegression(C=C), y=digits.y, **few)
    assert logistic.mu > 1e-4
    assert not logistic.violated


class Forgetful(CertifiedLogisticRegression):
    """Planted: a removal that changes nothing but the noise."""

    def _without(self, gone_rows, gone_labels):
        return self._model, "none"


class SecretWeights(CertifiedLogisticRegression):
    """Planted: secret weights are published without noise."""

    def _released(self, weights, release):
        return {**super()._released(weights, release), "_weights": weights}


def test_a_removal_that_changes_nothing_and_weights_without_noise_are_violated(digits: Records) -> None:
    forgetful = white_box(Forgetful(C=C), *digits, GONE)
    assert forgetful.violated
    assert forgetful.mu == pytest.approx(forgetful.mu_before)
    assert "violated: the distributions are farther apart" in str(forgetful)
    assert white_box(SecretWeights(C=C), *digits, GONE).mu == math.inf


def test_what_was_there_to_forget_is_the_distance_of_two_minimisers(digits: Records) -> None:
    """By scikit-learn, without intercept: the noise is that of the plan."""
    model = MODELS["without intercept"]
    found = white_box(model, *digits, GONE)
    solver = LogisticRegression(C=C, fit_intercept=False, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    whole, left = (solver.fit(digits.X[start:], digits.y[start:]).coef_.copy() for start in (0, 25))
    sigma = model.fit(*digits)._plan.sigma
    assert found.mu_before == pytest.approx(np.linalg.norm(whole - left) / sigma, rel=1e-5)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"estimator": LogisticRegression()}, ParameterError, "white_box takes an estimator of certified_unlearning"),
        ({"estimator": LangevinLogisticRegression(C=C, batch_size=None)}, AssumptionError, "no secret weights"),
        ({"gone": [1797]}, DataError, "positions from 0 to 1796"),
        ({"gone": []}, DataError, "positions from 0 to 1796"),
        ({"gone": [True]}, DataError, "positions from 0 to 1796"),
        ({"y": np.arange(1797) % 3}, AssumptionError, "y has more than two classes"),
    ],
)
def test_what_has_no_exact_refit_is_refused_in_a_sentence(
    given: dict[str, Any], error: type[Exception], words: str, digits: Records
) -> None:
    with pytest.raises(error, match=words):
        white_box(**{"estimator": MODELS["logistic"], "X": digits.X, "y": digits.y, "gone": [0]} | given)
