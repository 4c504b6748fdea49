"""The advice of a warning that noise drowns what is learned helps: a refit that follows it is better.

Every number is a mean over models with noise from these seeds, so a test that passes passes always.
"""

import re
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from certified_unlearning.estimators import (
    CertifiedLogisticRegression,
    LangevinLogisticRegression,
    LangevinRidge,
    PublishedStateDescentToDelete,
    SecretStateDescentToDelete,
)

SEEDS = range(12)
NOISY = {
    CertifiedLogisticRegression: {"sigma": 3.0},
    LangevinLogisticRegression: {"batch_size": None},
    SecretStateDescentToDelete: {},
    PublishedStateDescentToDelete: {},
}


def records(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    X = draw.uniform(-1, 1, (n, 5))
    score = 3 * X[:, 0] - 2 * X[:, 1] + draw.logistic(size=n)
    return X, (score > {"even": 0, "third": 1.3, "rare": 4}[kind]).astype(int)


def worth(make: Any, X: Any, y: Any, **options: Any) -> tuple[np.ndarray, set[str]]:
    """Balanced accuracy and AUC of models in the mean, and what is said of noise."""
    found, said = [], set()
    for seed in SEEDS:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = make(normalize=True, random_state=seed, **options).fit(X, y)
        said |= {str(each.message) for each in caught if str(each.message).startswith("little can be learned")}
        found.append((balanced_accuracy_score(y, fitted.predict(X)), roc_auc_score(y, fitted.decision_function(X))))
    return np.mean(found, axis=0), said


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("n", "condition", "epsilon", "kind"),
    [
        *((100, 100, 0.01, kind) for kind in ("even", "third", "rare")),
        *((100, 3000, 0.1, kind) for kind in ("even", "rare")),  # Thousands of steps.
        *((400, 1, 1.0, kind) for kind in ("even", "third", "rare")),
    ],
)
@pytest.mark.parametrize("make", NOISY)
def test_the_C_that_a_warning_names_is_better(make: Any, n: int, condition: float, epsilon: float, kind: str) -> None:
    X, y = records(kind, n)
    usual = NOISY[make] | {"epsilon": epsilon}
    before, said = worth(make, X, y, C=condition / n, **usual)
    for warning in said:
        advised = re.search(r"; C = ([\d.e+-]+) would do", warning)
        assert advised is not None
        after, _ = worth(make, X, y, C=float(advised[1]), **usual)
        # With so strong a regulariser a rare class needs another threshold; ranks are better in any case.
        assert after[1] > before[1] + 0.015, (before, after)
        assert kind == "rare" or after.sum() > before.sum() + 0.02, (before, after)
    if condition > 1 and make is not CertifiedLogisticRegression and make is not PublishedStateDescentToDelete:
        assert said


def test_where_no_C_would_do_less_noise_does() -> None:
    X, y = records("even", 400)
    before, said = worth(CertifiedLogisticRegression, X, y, C=0.25, sigma=1e4)
    (warning,) = said
    assert "no value of C would do: this takes less noise than sigma = 10000" in warning
    after, _ = worth(CertifiedLogisticRegression, X, y, C=0.25, sigma=1e-3)
    assert (after > before + 0.1).all()


@pytest.mark.parametrize("alpha", [1.0])
def test_the_alpha_that_a_warning_names_is_better(alpha: float) -> None:
    X = records("even", 400)[0]
    targets = X[:, 0] - X[:, 1]

    def error(strength: float) -> tuple[float, set[str]]:
        found, said = [], set()
        for seed in SEEDS:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fitted = LangevinRidge(alpha=strength, target_range=(-2, 2), normalize=True, random_state=seed)
                found.append(np.square(fitted.fit(X, targets).predict(X) - targets).mean())
            said |= {str(each.message) for each in caught}
        return float(np.mean(found)), said

    before, (warning,) = error(alpha)
    advised = re.search(r"; alpha = ([\d.e+-]+) would do", warning)
    assert advised is not None
    assert error(float(advised[1]))[0] < 0.8 * before
