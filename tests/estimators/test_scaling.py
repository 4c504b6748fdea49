"""`feature_ranges` and `data_norm`: rows of norm at most 1, by public numbers, each record by itself."""

import math

import numpy as np
import pytest
from sklearn.base import clone

from certified_unlearning import certificate
from certified_unlearning.errors import ParameterError
from certified_unlearning.estimators import (
    LangevinLogisticRegression,
)
from certified_unlearning.estimators.scaling import PublicScaling
from tests.estimators.conftest import CLASSIFIERS

WAYS = {
    "one range": {"feature_ranges": (0, 16)},
    "ranges": {"feature_ranges": np.column_stack([np.arange(64) / 8 - 1, np.full(64, 17.0)])},
    "ranges, own norm": {"feature_ranges": (0, 16), "normalize": True},
    "norm": {"data_norm": 60.0},
    "ranges and norm": {"feature_ranges": (0, 16), "data_norm": 6.0},
}


def by_hand(X, *, feature_ranges=None, data_norm=None, normalize=False):
    X = np.asarray(X, dtype=np.float64)
    if feature_ranges is not None:
        low, high = np.broadcast_to(np.asarray(feature_ranges, dtype=float), (X.shape[1], 2)).T
        X = np.minimum(np.maximum(X, low), high)
        X = (X - (low + high) / 2) / ((high - low) / 2)
        if data_norm is None and not normalize:
            X = X / math.sqrt(X.shape[1])
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    if normalize:
        return X / norms
    return X if data_norm is None else X / np.maximum(norms, data_norm)


@pytest.fixture(scope="module")
def images():
    """Values from -4 to 20, beyond the ranges on both sides."""
    draw = np.random.default_rng(0)
    X = draw.uniform(-4, 20, size=(600, 64))
    return X, np.where(X[:, :8].sum(axis=1) > 64, "bright", "dark")


@pytest.mark.parametrize("make", CLASSIFIERS)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_it_is_what_scaling_by_hand_gives(make, way, images):
    X, y = images
    ours = make(C=0.1, random_state=0, **way).fit(X, y)
    theirs = make(C=0.1, random_state=0).fit(by_hand(X, **way), y)
    for model in (ours, theirs):
        model.unlearn([5, 9])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(by_hand(X, **way)), rtol=1e-3, atol=1e-4
    )
    norms = np.linalg.norm(ours._store.rows.astype(float), axis=1)
    assert norms.max() <= 1 + 1e-6
    certificate.verify(ours.certificate_)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_a_record_is_mapped_by_itself(way, images):
    X, _ = images
    scaling = PublicScaling(features=64, **{"ranges": None, "data_norm": None, "normalize": False} | _renamed(way))
    np.testing.assert_array_equal(np.vstack([scaling(row[None]) for row in X[:50]]), scaling(X)[:50])


def _renamed(way):
    return {"ranges" if name == "feature_ranges" else name: value for name, value in way.items()}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_no_row_is_too_long_however_large_or_small(dtype, size):
    draw = np.random.default_rng(1)
    with np.errstate(over="ignore", under="ignore"):
        X = np.clip(draw.standard_normal((200, 7)) * size, np.finfo(dtype).min, np.finfo(dtype).max).astype(dtype)
    for ranges, norm, normalize in (
        ((-size, 3 * size), None, False),
        ((-size, 3 * size), None, True),
        ((-1e-3, 1), 0.1, False),
        (None, size, False),
        (None, 1.0, False),
        (None, 1e-308, False),
    ):
        rows = PublicScaling(features=7, ranges=ranges, data_norm=norm, normalize=normalize)(X)
        assert np.isfinite(rows).all()
        assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-12


def test_within_ranges_values_are_mapped_and_outside_clipped():
    scaling = PublicScaling(features=2, ranges=[(0, 10), (-1, 1)], data_norm=None, normalize=False)
    rows = scaling(np.array([[0.0, 0.0], [10, 1], [-99, 99], [5, -0.5]])) * math.sqrt(2)
    np.testing.assert_allclose(rows, [[-1, 0], [1, 1], [-1, 1], [0, -0.5]], atol=1e-15)


def test_short_rows_stay_and_long_ones_end_at_the_norm():
    rows = PublicScaling(features=2, ranges=None, data_norm=5.0, normalize=False)(np.array([[3.0, 4], [6, 8], [0, 1]]))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.6, 0.8], [0, 0.2]])


def test_replacements_are_unit_rows_whatever_the_ranges(images):
    fitted = LangevinLogisticRegression(C=0.1, adjacency="replace", feature_ranges=(0, 16), random_state=0)
    rows = fitted.fit(*images).unlearn([3, 4])._store.rows[[3, 4]]
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert np.abs(rows[0] - rows[1]).max() > 0.1


@pytest.mark.parametrize("make", CLASSIFIERS)
@pytest.mark.parametrize(
    ("way", "message"),
    [
        ({"feature_ranges": (0, 1, 2)}, r"pair \(low, high\), or one for each of the 64 features, got shape \(3,\)"),
        ({"feature_ranges": [(0, 1)] * 63}, r"each of the 64 features, got shape \(63, 2\)"),
        ({"feature_ranges": "auto"}, "got 'auto'"),
        ({"feature_ranges": (1, 1)}, r"from a number to a larger one, got \(1, 1\)"),
        ({"feature_ranges": [(0, 1)] * 63 + [(2, 1)]}, r"got \(2, 1\) for feature 63"),
        ({"feature_ranges": (0, math.inf)}, "to a larger one"),
        ({"feature_ranges": (0, math.nan)}, "to a larger one"),
        ({"data_norm": 0}, "data_norm must be a finite number above 0, got 0"),
        ({"data_norm": math.inf}, "finite number above 0"),
        ({"data_norm": "1"}, "finite number above 0"),
        ({"data_norm": 2.0, "normalize": True}, "normalize or data_norm, not both"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(make, way, message, images):
    with pytest.raises(ParameterError, match=message):
        make(C=0.1, **way).fit(*images)


def test_missing_values_are_refused(images):
    X = images[0].copy()
    X[3, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LangevinLogisticRegression(C=0.1, feature_ranges=(0, 16)).fit(X, images[1])


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_files_clones_and_reports_know_it(make, images, tmp_path):
    ranges = np.column_stack([np.zeros(64), np.full(64, 16.0)])
    fitted = make(C=0.1, feature_ranges=ranges, data_norm=np.float64(5), random_state=0).fit(*images)
    np.testing.assert_array_equal(clone(fitted).feature_ranges, ranges)
    fitted.save(tmp_path / "model", training_data=False)
    loaded = make.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(images[0]), fitted.decision_function(images[0]))
    assert "feature_ranges and data_norm were not taken from the records" in fitted.privacy_report()
    assert "not taken from the records" not in make(C=0.1, normalize=True).fit(*images).privacy_report()
