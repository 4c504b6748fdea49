"""No column decides alone in silence: `fit` says which one drowns the others, and what to give."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import balanced_accuracy_score

from certified_unlearning.estimators import (
    CertifiedLogisticRegression,
    CertifiedMLPClassifier,
    CertifiedRidge,
    ExactKMeans,
    ExactLogisticRegression,
    LangevinLogisticRegression,
    LangevinRidge,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PublishedStateDescentToDelete,
    SecretStateDescentToDelete,
)

CLASSIFIERS = {
    CertifiedLogisticRegression: {"C": 0.05},
    LangevinLogisticRegression: {"C": 0.05, "batch_size": None},
    ExactKMeans: {"recompute_probability": None},
    ExactLogisticRegression: {"steps": 8},
    SecretStateDescentToDelete: {"C": 0.05},
    PublishedStateDescentToDelete: {"C": 0.05},
    PrivateLogisticRegression: {"data_norm": None},
    CertifiedMLPClassifier: {"epochs": 2, "hidden_layer_sizes": ()},
}
REGRESSORS = {
    CertifiedRidge: {"alpha": 20, "target_range": (0, 1)},
    LangevinRidge: {"alpha": 200, "target_range": (0, 1)},
    PrivateLinearRegression: {"data_norm": None, "target_range": (0, 1)},
}
EACH = {"income": (0, 200_000), "tenure": (0, 72), "age": (18, 100)}


def customers(n: int = 2000) -> tuple[pd.DataFrame, np.ndarray]:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"income": draw.lognormal(10.5, 0.5, n), "tenure": draw.integers(1, 72, n), "age": draw.integers(18, 100, n)}
    )
    return frame, (frame["tenure"] + draw.normal(0, 15, n) < 25).to_numpy().astype(int)


def said(estimator: Any, X: Any, y: Any) -> list[str]:
    """What `fit` says of columns; it must say it of the line that calls it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, y)
    found = [each for each in caught if "squared norm" in str(each.message)]
    assert all(each.filename == __file__ and each.category is UserWarning for each in found)
    return [str(each.message) for each in found]


@pytest.mark.parametrize(("make", "usual"), (CLASSIFIERS | REGRESSORS).items())
def test_every_estimator_names_the_column_its_share_and_what_to_give(make: Any, usual: dict[str, Any]) -> None:
    X, y = customers()
    (warning,) = said(make(**usual, normalize=True, random_state=0), X, y)
    assert warning == (
        "income carries 99.9 % of a row's squared norm, so the other 2 columns hardly count; give feature_ranges, a "
        "pair (low, high) for each column, known without these records (computed from 2,000 records without noise: "
        "not for publication)"
    )
    (warning,) = said(make(**usual, normalize=True, random_state=0), X.to_numpy(), y)
    assert warning.startswith("column 0 of X carries 99.9 %")
    assert said(make(**usual, feature_ranges=[*EACH.values()], random_state=0), X, y) == []
    assert said(make(**usual, normalize=True, random_state=0), X[["income"]], y) == []


@pytest.mark.parametrize("batch_size", [None, "auto"])
def test_mini_batches_of_records_say_it_once(batch_size: Any) -> None:
    X, y = customers(6000)
    assert len(said(LangevinLogisticRegression(C=0.01, normalize=True, batch_size=batch_size), X, y)) == 1


def test_the_warning_says_what_to_change_where_ranges_or_a_norm_are_given_already() -> None:
    X, y = customers()
    make = CertifiedLogisticRegression
    (warning,) = said(make(C=0.05, feature_ranges=(-(10**5), 10**5)), X, y)
    assert "give feature_ranges a pair (low, high) for each column, instead of one for all" in warning
    wide = [(0, 1e9), (0, 72), (18, 100)]
    X["tenure"] = X["tenure"] / 1000 + 36
    X["age"] = X["age"] / 1000 + 59
    (warning,) = said(make(C=0.05, feature_ranges=wide), X, y)
    assert warning.startswith("income carries 99.9 %")
    assert "near the middle of their ranges; give narrower pairs in feature_ranges" in warning
    (warning,) = said(make(C=0.05, data_norm=1e6), X, y)
    assert "give feature_ranges, a pair (low, high)" in warning


def test_short_rows_that_nothing_scales_are_looked_at_too() -> None:
    X, y = customers()
    (warning,) = said(CertifiedLogisticRegression(C=0.05), X / 1e6, y)
    assert warning.startswith("income carries 99.9 %")


def test_nothing_is_said_of_prepared_data() -> None:
    X, y = load_digits(return_X_y=True)
    for options in ({"normalize": True}, {"data_norm": 60.0}, {"feature_ranges": (0, 16)}):
        assert said(CertifiedLogisticRegression(C=0.05, **options), X, y == 3) == []
    assert said(CertifiedLogisticRegression(C=0.05), X / np.linalg.norm(X, axis=1, keepdims=True), y == 3) == []


def test_to_give_the_ranges_helps() -> None:
    X, y = customers()
    drowned = CertifiedLogisticRegression(C=0.05, normalize=True, random_state=0)
    assert said(drowned, X, y)
    heard = CertifiedLogisticRegression(C=0.05, normalize=True, feature_ranges=[*EACH.values()], random_state=0)
    assert said(heard, X, y) == []
    before, after = (balanced_accuracy_score(y, each.predict(X)) for each in (drowned, heard))
    assert after > before + 0.1
