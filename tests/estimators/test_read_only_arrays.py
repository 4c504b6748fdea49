"""Models and records as joblib maps them from files: read-only, and shared by processes."""

import warnings
from contextlib import contextmanager
from typing import get_args

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from joblib.externals.loky import get_reusable_executor

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
from certified_unlearning.vocabulary import ExactMechanism

REQUESTS = ([17], [3, 200, 45], [*range(100, 140)], [60])

MODELS = {
    "CertifiedLogisticRegression": lambda: CertifiedLogisticRegression(C=0.1, random_state=0),
    "CertifiedLogisticRegression, data read at every request": lambda: CertifiedLogisticRegression(
        C=0.1, records_between_reads=0, random_state=0
    ),
    "CertifiedMLPClassifier": lambda: CertifiedMLPClassifier(random_state=0),
    "CertifiedRidge": lambda: CertifiedRidge(target_range=(-1, 1), random_state=0),
    "ExactKMeans": lambda: ExactKMeans(2, recompute_probability=0.9, random_state=0),
    "LangevinLogisticRegression": lambda: LangevinLogisticRegression(C=0.1, random_state=0),
    "LangevinLogisticRegression, mini-batches by PyTorch": lambda: LangevinLogisticRegression(
        C=0.1, batch_size=30, random_state=0
    ),
    "LangevinLogisticRegression, mini-batches by the kernel": lambda: LangevinLogisticRegression(
        C=0.1, batch_size=30, adjacency="replace", dtype="float64", random_state=0
    ),
    "LangevinRidge": lambda: LangevinRidge(alpha=10, target_range=(-1, 1), random_state=0),
    "PrivateLinearRegression": lambda: PrivateLinearRegression(target_range=(-1, 1), random_state=0),
    "PrivateLogisticRegression": lambda: PrivateLogisticRegression(random_state=0),
    "PublishedStateDescentToDelete": lambda: PublishedStateDescentToDelete(C=0.1, random_state=0),
    "SecretStateDescentToDelete": lambda: SecretStateDescentToDelete(C=0.1, random_state=0),
} | {
    f"ExactLogisticRegression, {mechanism}": lambda mechanism=mechanism: ExactLogisticRegression(
        mechanism=mechanism, random_state=0
    )
    for mechanism in get_args(ExactMechanism)
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())


@pytest.fixture(scope="module")
def records():
    """Rows of norm 1, and numbers that regressors take as targets and classifiers as two classes."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((300, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] + 0.1 * generator.standard_normal(300) > 0, 1, -1)


@contextmanager
def no_warning_of_read_only_arrays():
    torch.set_warn_always(True)  # Otherwise PyTorch warns in the first of all tests only.
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*writable")
            yield
    finally:
        torch.set_warn_always(False)


def mapped(value, path):
    joblib.dump(value, path)
    return joblib.load(path, mmap_mode="r")


def test_every_estimator_is_among_the_models():
    assert {type(make()).__name__ for make in MODELS.values()} == set(estimators.__all__)


@every_model
@pytest.mark.parametrize("framed", [False, True], ids=["array", "frame"])
def test_a_model_whose_arrays_are_read_only_unlearns_as_one_in_memory_does(make, framed, records, tmp_path):
    X, y = records
    learned_from = pd.DataFrame(X, index=[f"person {number}" for number in range(len(X))]) if framed else X
    in_memory = make().fit(learned_from, y)
    file = tmp_path / "model.joblib"
    loaded = mapped(in_memory, file)
    content = file.read_bytes()
    with no_warning_of_read_only_arrays():
        for request in REQUESTS:
            in_memory.unlearn(request)
            loaded.unlearn(request)
        if hasattr(in_memory, "insert"):
            in_memory.insert(X[:2], y[:2])
            loaded.insert(X[:2], y[:2])
        asked = mapped(X, tmp_path / "asked.joblib")
        np.testing.assert_array_equal(loaded.predict(asked), in_memory.predict(X))
    np.testing.assert_array_equal(loaded.remaining_, in_memory.remaining_)
    if hasattr(in_memory, "coef_"):
        np.testing.assert_array_equal(loaded.coef_, in_memory.coef_)
    assert file.read_bytes() == content


@every_model
def test_a_model_is_fitted_to_records_that_are_read_only(make, records, tmp_path):
    X, y = records
    with no_warning_of_read_only_arrays():
        fitted = make().fit(*mapped((X, y), tmp_path / "records.joblib")).unlearn([17])
    np.testing.assert_array_equal(fitted.predict(X), make().fit(X, y).unlearn([17]).predict(X))


def test_worker_processes_unlearn_from_one_model_that_they_share(records):
    X, y = records
    model = CertifiedLogisticRegression(C=0.1, random_state=0).fit(X, y)
    # Above so few bytes joblib shares arrays between its processes, read-only.
    by_workers = joblib.Parallel(n_jobs=2, max_nbytes=100)(
        joblib.delayed(_weights_without)(model, each) for each in (5, 9)
    )
    # They would stay for five minutes, with all that they have imported.
    get_reusable_executor().shutdown()
    for record, weights in zip((5, 9), by_workers, strict=True):
        np.testing.assert_array_equal(
            weights, CertifiedLogisticRegression(C=0.1, random_state=0).fit(X, y).unlearn([record]).coef_
        )


def _weights_without(model, record):
    return model.unlearn([record]).coef_
