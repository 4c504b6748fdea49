"""What tells of records besides weights: labels of removed ones, the list of classes, noise that two models share."""

import inspect

import joblib
import numpy as np
import pandas as pd
import pytest

from certified_unlearning import estimators
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

MODELS = {
    "certified": lambda: CertifiedLogisticRegression(C=0.1),
    "network": lambda: CertifiedMLPClassifier((2,), epochs=1),
    "certified ridge": lambda: CertifiedRidge(alpha=60.0, target_range=(0, 1)),
    "clusters": lambda: ExactKMeans(2, recompute_probability=None),
    "exact": lambda: ExactLogisticRegression(steps=20),
    "langevin": lambda: LangevinLogisticRegression(C=0.1, batch_size=None),
    "mini-batches": lambda: LangevinLogisticRegression(C=0.1, batch_size=100),
    "langevin ridge": lambda: LangevinRidge(alpha=60.0, target_range=(0, 1)),
    "private regression": lambda: PrivateLinearRegression(target_range=(0, 1)),
    "private": lambda: PrivateLogisticRegression(),
    "published state": lambda: PublishedStateDescentToDelete(C=0.1),
    "secret state": lambda: SecretStateDescentToDelete(C=0.1),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
every_estimator = pytest.mark.parametrize("name", estimators.__all__)


@pytest.fixture(scope="module")
def people(digits):
    """A frame whose index holds names, and truth values that are classes and targets."""
    rows, labels = digits
    return pd.DataFrame(rows, index=[f"P{number}" for number in range(len(rows))]).add_prefix("x"), labels % 2


def files_of(fitted, directory):
    """Return the bytes of all files that an estimator can be written to, and the estimators that are read from them."""
    fitted.save(directory / "saved")
    joblib.dump(fitted, directory / "dumped")
    read = [type(fitted).load(directory / "saved"), joblib.load(directory / "dumped")]
    return [(directory / name).read_bytes() for name in ("saved", "dumped")], read


def test_the_models_here_are_all_estimators():
    assert {type(make()).__name__ for make in MODELS.values()} == set(estimators.__all__)


@every_model
def test_every_certificate_says_that_the_list_of_classes_is_taken_from_the_records(make, people):
    frame, labels = people
    fitted = make().fit(frame, labels)
    certified = fitted.certificate(frame[:5]) if isinstance(fitted, CertifiedMLPClassifier) else fitted.certificate_
    assert certified.features == "given"
    said = [each for each in certified.assumptions if each.by.endswith("taken from the records")]
    assert [each.status for each in said] == ["assumed"]


@every_model
def test_no_file_and_no_memory_keeps_the_label_of_a_removed_record(make, people, tmp_path):
    fitted = make().fit(*people)
    kept, _ = files_of(fitted, tmp_path)
    assert all(b"P123" in content for content in kept)  # The search would find it.
    fitted.unlearn(index=["P123"])
    for model in (fitted, *files_of(fitted, tmp_path)[1]):
        assert model._store.index.labels[123] is None
        assert not any(b"P123" in content for content in files_of(model, tmp_path)[0])
    for content in files_of(fitted.unlearn([124, 125]), tmp_path)[0]:
        assert not any(name in content for name in (b"P123", b"P124", b"P125"))
        assert b"P126" in content


def test_a_shallow_copy_of_a_private_model_keeps_its_labels(people):
    import copy

    fitted = MODELS["private"]().fit(*people)
    other = copy.copy(fitted)
    fitted.unlearn(index="P5")
    assert other._store.index.labels[5] == "P5"
    assert other.unlearn(index="P5").remaining_.tolist() == fitted.remaining_.tolist()


def test_a_private_model_of_an_earlier_version_forgets_labels_when_it_is_loaded(people, tmp_path):
    fitted = MODELS["private"]().fit(*people)
    fitted._store.places[123] = -1  # What `unlearn` of earlier versions did, and nothing else.
    fitted.save(tmp_path / "earlier")
    assert b"P123" in (tmp_path / "earlier").read_bytes()
    loaded = PrivateLogisticRegression.load(tmp_path / "earlier")
    assert loaded._store.index.labels[122:125].tolist() == ["P122", None, "P124"]


@every_estimator
def test_the_docstring_says_that_equal_noise_cancels(name):
    made = getattr(estimators, name)
    assert "random_state" in inspect.signature(made).parameters
    said = " ".join(made.__doc__.split())
    assert "were fitted with the same number" in said
    assert "shows the record in which their data differ" in said


def test_the_difference_of_two_models_with_one_number_has_no_noise(people):
    frame, labels = people
    without = np.arange(len(frame)) != 7
    # Noise a thousand times as large as what one record moves.
    first, second, other = (
        CertifiedLogisticRegression(C=0.1, sigma=1.0, random_state=seed).fit(frame[kept], labels[kept])
        for seed, kept in ((1, without | True), (1, without), (2, without))
    )
    moved = first._model.weights - second._model.weights
    assert 0 < np.abs(moved).max() < 1e-2
    np.testing.assert_allclose(first._weights - second._weights, moved, atol=1e-12)
    assert np.abs(first._weights - other._weights - moved).max() > 1
