"""Private estimators beside diffprivlib's on the same records, where that can be imported.

Its epsilon is pure, and of another relation than ``replace-one``; so numbers are compared as what a user would get for
the same epsilon, not as mechanisms for the same guarantee. diffprivlib 0.6.6 imports with scikit-learn 1.6 and not with
1.9.
"""

import warnings

import numpy as np
import pytest

from certified_unlearning import PrivateLinearRegression, PrivateLogisticRegression

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    theirs = pytest.importorskip(
        "diffprivlib.models",
        reason="diffprivlib is not installed, or not for this scikit-learn",
        exc_type=ImportError,
    )

SEEDS = range(10)


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(6000, 8))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X @ np.linspace(1, -0.5, 8) + generator.uniform(-0.1, 0.1, 6000)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_classifier_predicts_no_worse(epsilon, table):
    X, labels = table[0], table[1] > 0
    ours, others = [], []
    for seed in SEEDS:
        model = PrivateLogisticRegression("noisy-gradient-descent", epsilon=epsilon, steps=200, random_state=seed)
        ours.append(model.fit(X[:4000], labels[:4000]).score(X[4000:], labels[4000:]))
        other = theirs.LogisticRegression(epsilon=epsilon, data_norm=1.0, random_state=seed)
        others.append(other.fit(X[:4000], labels[:4000]).score(X[4000:], labels[4000:]))
    print(f"classifier, epsilon {epsilon}: ours {np.mean(ours):.3f}, theirs {np.mean(others):.3f}")
    assert np.mean(ours) > np.mean(others) - 0.02


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_regressor_predicts_no_worse(epsilon, table):
    X, y = table[0], table[1].clip(-1, 1)
    ours, others = [], []
    for seed in SEEDS:
        model = PrivateLinearRegression(
            "noisy-gradient-descent", epsilon=epsilon, radius=2.0, target_range=(-1, 1), steps=200, random_state=seed
        )
        ours.append(model.fit(X[:4000], y[:4000]).score(X[4000:], y[4000:]))
        other = theirs.LinearRegression(epsilon=epsilon, bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=seed)
        others.append(other.fit(X[:4000], y[:4000]).score(X[4000:], y[4000:]))
    print(f"regressor, epsilon {epsilon}: ours {np.mean(ours):.3f}, theirs {np.mean(others):.3f}")
    assert np.mean(ours) > np.mean(others) - 0.02
