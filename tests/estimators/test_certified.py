"""`CertifiedLogisticRegression`: scikit-learn's model, removals that read nothing, secrets that stay, certificates."""

import copy
import itertools
import json
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
import safetensors
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression

from certified_unlearning import certificate
from certified_unlearning.accounting.residual.rounding import ROW_NORM
from certified_unlearning.engine.objectives import float64
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.estimators import CertifiedLogisticRegression
from certified_unlearning.mechanisms import newton_removal
from certified_unlearning.mechanisms.newton_removal import NewtonRemoval


def clouds(n: int, d: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    rows = draw.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.where(rows[:, 0] + 0.2 * draw.standard_normal(n) > 0, "yes", "no")


def exact_refit(rows: np.ndarray, labels: np.ndarray, C: float) -> LogisticRegression:
    """scikit-learn's minimiser, the intercept regularised as ours."""
    with_one = np.column_stack([rows, np.ones(len(rows))])
    return LogisticRegression(C=C, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(with_one, labels)


def secret_coefficients(model: CertifiedLogisticRegression) -> np.ndarray:
    return model._model.weights / np.sqrt(2)


def test_it_is_scikit_learns_minimiser_plus_noise():
    rows, labels = clouds(3000)
    C = 80 / 3000
    model = CertifiedLogisticRegression(1, 1e-6, C=C, random_state=0).fit(rows, labels)
    theirs = exact_refit(rows, labels, C)
    assert secret_coefficients(model) == pytest.approx(theirs.coef_[0], abs=1e-6)
    assert model.coef_[0] != pytest.approx(theirs.coef_[0, :-1], abs=1e-6)
    assert model.coef_[0] == pytest.approx(theirs.coef_[0, :-1], abs=6e-3)
    assert abs(model.score(rows, labels) - LogisticRegression(C=C).fit(rows, labels).score(rows, labels)) <= 0.005


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("downdate", [True, False])
def test_removals_end_where_exact_refits_do(fit_intercept: bool, downdate: bool):
    rows, labels = clouds(3000)
    C, gone = 80 / 3000, np.random.default_rng(1).permutation(3000)[:60]
    model = CertifiedLogisticRegression(1, 1e-6, C=C, fit_intercept=fit_intercept, downdate=downdate)
    model.fit(rows, labels)
    for each in gone.reshape(20, 3):
        model.unlearn(each)
        certificate.verify(model.certificate_)
    kept = np.setdiff1d(np.arange(3000), gone)
    assert model.remaining_.tolist() == kept.tolist()
    left, left_labels = rows[kept], labels[kept]
    if fit_intercept:
        theirs = exact_refit(left, left_labels, C).coef_[0]
    else:
        theirs = (
            LogisticRegression(C=C, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(left, left_labels).coef_[0]
        )
    scale = np.sqrt(2) if fit_intercept else 1.0
    said = model.certificate_
    apart = np.linalg.norm(model._model.weights - scale * theirs)
    assert apart <= said.budget / said.strong_convexity + 1e-7
    assert said.releases == 21
    assert said.removed == 60


def test_a_saved_model_knows_how_many_removals_its_matrix_still_holds(tmp_path: Path):
    """Otherwise its next step would seem nearer to the minimiser than it is."""
    rows, labels = clouds(30_000)
    model = CertifiedLogisticRegression(1, 1e-6, C=80 / 30_000, downdate=False, random_state=0).fit(rows, labels)
    model.unlearn([1, 2]).unlearn([3])
    model.save(tmp_path / "model.safetensors", training_data=True)
    again = CertifiedLogisticRegression.load(tmp_path / "model.safetensors")
    model.unlearn([4])
    again.unlearn([4])
    assert model._model.curvature.not_downdated == 4, "no request read the data"
    assert again._model.residual == model._model.residual
    assert again.coef_.tobytes() == model.coef_.tobytes()
    assert again.certificate_ == model.certificate_


def test_a_saved_model_with_passes_knows_all_bounds_of_its_gradient(tmp_path: Path):
    """Otherwise it would have to read its rows more often, or be certified by less than is left."""
    rows, labels = clouds(8000, 100)
    model = CertifiedLogisticRegression(1, 1e-6, C=1.0, sigma=0.01, random_state=0).fit(rows, labels)
    assert model._plan.by_passes
    model.unlearn([1, 2]).unlearn([3])
    assert model.certificate_.passes is not None
    model.save(tmp_path / "model.safetensors", training_data=True)
    again = CertifiedLogisticRegression.load(tmp_path / "model.safetensors")
    assert again._model.left == model._model.left
    model.unlearn([4])
    again.unlearn([4])
    assert again._model.left == model._model.left
    assert again.coef_.tobytes() == model.coef_.tobytes()
    assert again.certificate_ == model.certificate_
    certificate.verify(again.certificate_)


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"normalize": True}], ids=str)
def test_wide_float32_rows_are_kept_as_they_are(options: dict[str, bool], tmp_path: Path):
    """No copy in float64 of all of them is ever made, and they are no longer than the bounds suppose."""
    rows, labels = clouds(40_000, 60)
    rows = rows.astype(np.float32) * (3 if "normalize" in options else 1)
    tracemalloc.start()
    model = CertifiedLogisticRegression(1, 1e-6, C=80 / 40_000, random_state=0, **options).fit(rows, labels)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = model._store.rows
    assert kept.dtype == np.float32
    assert peak < 3 * kept.nbytes
    norms = np.linalg.norm(kept.astype(np.float64), axis=1)
    assert norms.max() <= ROW_NORM
    theirs = CertifiedLogisticRegression(1, 1e-6, C=80 / 40_000, random_state=0, **options)
    theirs.fit(rows.astype(np.float64), labels)
    assert theirs._store.rows.dtype == np.float64
    assert model._model.weights == pytest.approx(theirs._model.weights, abs=1e-6)
    model.unlearn(np.arange(30)).unlearn([50])
    certificate.verify(model.certificate_)
    model.save(tmp_path / "model", training_data=True)
    again = CertifiedLogisticRegression.load(tmp_path / "model")
    assert again._store.rows.dtype == np.float32
    assert (again.unlearn([60])._model.weights == model.unlearn([60])._model.weights).all()


def test_a_removal_reads_nothing_and_makes_nothing_of_the_data_s_size(monkeypatch: pytest.MonkeyPatch):
    rows, labels = clouds(200_000, 5)
    model = CertifiedLogisticRegression(1, 1e-6, C=80 / 200_000).fit(rows, labels)
    model.unlearn([1]).certificate_  # noqa: B018
    stored, numbers = model._store.rows, model._store.labels

    def read(*_: object) -> None:
        raise AssertionError("the data were read")

    monkeypatch.setattr(float64.Regression, "blocks", read)
    tracemalloc.start()
    model.unlearn([7, 9, 100_000]).certificate_  # noqa: B018
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000, "as many bytes as records would be more"
    assert model._store.rows is stored
    assert model._store.labels is numbers
    assert not stored[[1, 7, 9, 100_000]].any()
    assert np.count_nonzero(stored.any(axis=1)) == 200_000 - 4


def test_what_the_caller_has_is_left_alone():
    rows, labels = clouds(500)
    before = rows.copy()
    CertifiedLogisticRegression(C=0.1, fit_intercept=False).fit(rows, labels).unlearn([3, 4])
    assert (rows == before).all()


def test_more_classes_are_refitted(digits):
    rows, labels = digits
    model = CertifiedLogisticRegression(1, 1e-6, C=80 / len(rows), random_state=1).fit(rows, labels)
    theirs = LogisticRegression(C=80 / len(rows)).fit(rows, labels)
    assert abs(model.score(rows, labels) - theirs.score(rows, labels)) <= 0.005
    model.unlearn([5, 6]).unlearn([0])
    said = model.certificate_
    assert (said.mechanism, said.loss, said.scheduled_reads) == ("certified-refit", "softmax", 2)
    certificate.verify(said)
    assert model.coef_.shape == (10, 64)
    assert model.predict_proba(rows).sum(axis=1) == pytest.approx(np.ones(len(rows)))


def test_strict_timing_is_stated():
    rows, labels = clouds(30_000, 3)
    model = CertifiedLogisticRegression(1, 1e-6, C=80 / 30_000, strict_timing=True).fit(rows, labels)
    number = model.certificate_.records_between_reads
    for each in range(number + 2):
        model.unlearn([each])
    said = model.certificate_
    assert (said.strict, said.scheduled_reads, said.unscheduled_reads) == (True, 1, 0)
    certificate.verify(said)


def test_what_was_not_scheduled_is_said():
    rows, labels = clouds(400)
    model = CertifiedLogisticRegression(1, 1e-6, C=0.2, records_between_reads=400).fit(rows, labels)
    model.unlearn(np.arange(40))
    assert model.certificate_.unscheduled_reads == 1
    assert "1 time earlier than planned, which depends on the data" in model.privacy_report()
    assert "Quality on 1 record: " in model.privacy_report(rows[:1], labels[:1])
    certificate.verify(model.certificate_)


def test_the_report_says_what_is_not_promised():
    rows, labels = clouds(400)
    report = CertifiedLogisticRegression(C=0.2).fit(rows, labels).unlearn([1, 2]).privacy_report()
    assert "Learned from 400 records; 2 removed since, in 1 request." in report
    assert "the guarantee does not protect the remaining records" in report
    assert "For somebody who kept all 2 releases, and for adaptive requests, epsilon is 1." in report


def test_every_release_has_noise_of_its_own():
    rows, labels = clouds(400)
    rows[:3] = 0  # With them nothing leaves but the intercept's share.
    model = CertifiedLogisticRegression(C=0.2, random_state=3, fit_intercept=False).fit(rows, labels)
    published = [model._weights]
    for each in range(3):
        published.append(model.unlearn([each])._weights)
    apart = [np.linalg.norm(one - other) for one, other in itertools.pairwise(published)]
    assert min(apart) > 1e-4
    again = CertifiedLogisticRegression(C=0.2, random_state=3, fit_intercept=False).fit(rows, labels)
    assert (again._weights == published[0]).all()
    assert model.certificate_.noise_source == "seed"


def test_noise_is_gaussian_and_as_large_as_stated():
    """Kolmogorov and Smirnov's test of 4000 published differences; false alarms: below 1e-9 (DKW, at 0.0518)."""
    rows, labels = clouds(300, 399, seed=2)
    model = CertifiedLogisticRegression(C=0.2, sigma=0.01, records_between_reads=0)
    noise = []
    for _ in range(10):
        model.fit(rows, labels)
        noise.append((model._weights - model._model.weights) / 0.01)
    found = np.sort(ndtr(np.concatenate(noise)))
    assert len(found) == 4000
    expected = np.arange(1, 4001) / 4000
    assert np.abs(found - expected).max() < np.sqrt(np.log(2 / 1e-9) / (2 * 4000)) + 1 / 4000


@pytest.mark.parametrize("classes", [2, 3])
def test_a_saved_estimator_goes_on_as_if_it_had_not_been_saved(tmp_path, classes: int):
    rows, labels = clouds(600)
    if classes == 3:
        labels = np.where(np.arange(600) % 5, labels, "perhaps")
    model = CertifiedLogisticRegression(1, 1e-6, C=0.2, sigma=0.1, random_state=0).fit(rows, labels).unlearn([1, 2])
    model.save(tmp_path / "model")
    loaded = CertifiedLogisticRegression.load(tmp_path / "model")
    assert loaded.certificate_ == model.certificate_
    for each in (model, loaded):
        each.unlearn([5, 8])
    assert (loaded._weights == model._weights).all()
    assert loaded.certificate_ == model.certificate_
    assert loaded.remaining_.tolist() == model.remaining_.tolist()


def test_what_is_handed_out_holds_no_secret(tmp_path):
    rows, labels = clouds(600)
    model = CertifiedLogisticRegression(C=0.2, random_state=7).fit(rows, labels).unlearn([1, 2])
    model.save(tmp_path / "public", training_data=False)
    with safetensors.safe_open(tmp_path / "public", framework="numpy") as file:
        header, names = json.loads(file.metadata()["estimator"]), list(file.keys())
        assert (file.get_tensor("weights") == model._weights).all()
    assert names == ["weights"]
    assert not {"residual", "curvature"} & set(header)
    assert header["parameters"]["random_state"] is None
    loaded = CertifiedLogisticRegression.load(tmp_path / "public")
    assert (loaded.predict(rows) == model.predict(rows)).all()
    assert loaded.certificate_ == model.certificate_
    with pytest.raises(DataError, match="without its training data"):
        loaded.unlearn([5])
    with pytest.raises(DataError, match="which records are left"):
        loaded.remaining_  # noqa: B018


def test_files_that_are_none_are_refused(tmp_path):
    (tmp_path / "none").write_text("no")
    with pytest.raises(DataError, match="is damaged or not a safetensors file"):
        CertifiedLogisticRegression.load(tmp_path / "none")


@pytest.mark.parametrize("where", ["solved", "residual_after"])
def test_an_interrupted_removal_leaves_it_as_it_was(monkeypatch: pytest.MonkeyPatch, where: str):
    rows, labels = clouds(600)
    model = CertifiedLogisticRegression(C=0.2, random_state=0).fit(rows, labels).unlearn([0])
    before, weights = copy.deepcopy(vars(model)), model._weights

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(newton_removal, where, interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.unlearn([5, 6])
    assert (model._store.rows == before["_store"].rows).all()
    assert (model._store.places == before["_store"].places).all()
    assert model._weights is weights
    assert model._counts == before["_counts"]
    model.unlearn([5, 6])
    certificate.verify(model.certificate_)
    fresh = NewtonRemoval(model._plan).fit(model._store.rows, model._store.labels)
    apart = np.linalg.norm(fresh.weights - model._model.weights)
    assert apart <= (fresh.residual + model._model.residual) / model._plan.strong_convexity


def test_wrong_indices_are_refused_and_change_nothing():
    rows, labels = clouds(50)
    model = CertifiedLogisticRegression(C=1.0).fit(rows, labels).unlearn([4])
    for wrong, message in (
        ([4], "record 4 was removed before"),
        ([5, 5], "names record 5 twice"),
        ([50], "numbered 0 to 49"),
        ([0.5], "must be a list of row numbers"),
        (np.setdiff1d(np.arange(50), 4), "at least one must remain"),
    ):
        with pytest.raises(ParameterError, match=message):
            model.unlearn(wrong)
    assert len(model.remaining_) == 49


def test_a_class_without_records_is_warned_about():
    rows, labels = clouds(50)
    labels[:] = "no"
    labels[:2] = "yes"
    model = CertifiedLogisticRegression(C=1.0).fit(rows, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.unlearn([0])
    with pytest.warns(UserWarning, match="a class has no record left"):
        model.unlearn([1])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epsilon": 0}, ParameterError, "epsilon must be a finite number above 0, got 0"),
        ({"delta": 2.0}, ParameterError, "delta must lie strictly between 0 and 1, got 2.0"),
        ({"sigma": 0.0}, ParameterError, "sigma must be a finite number above 0, got 0.0"),
        ({"sigma": 1e-14}, AssumptionError, "is enough"),
        ({"C": 1e9}, AssumptionError, "a smaller C"),
        ({"C": -1.0}, ParameterError, "C must be a finite number above 0, got -1.0"),
        ({"records_between_reads": -1}, ParameterError, "records_between_reads must be a whole number"),
    ],
)
def test_impossible_parameters_are_refused(options: dict[str, float], error: type[Exception], message: str):
    rows, labels = clouds(200)
    with pytest.raises(error, match=message):
        CertifiedLogisticRegression(**options).fit(rows, labels)


def test_rows_that_are_too_long_are_refused():
    rows, labels = clouds(200)
    rows[7] *= 1.5
    with pytest.raises(DataError, match=r"row 7 of X has norm 1\.5"):
        CertifiedLogisticRegression().fit(rows, labels)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_short_floats_make_rows_that_are_no_longer_than_the_bounds_suppose(normalize: bool, fit_intercept: bool):
    rows, labels = clouds(2000, 700)
    given = (5 * rows if normalize else rows).astype(np.float32)
    model = CertifiedLogisticRegression(C=0.05, normalize=normalize, fit_intercept=fit_intercept).fit(given, labels)
    stored = model._store.rows
    assert stored.dtype == np.float32, "wide rows are kept as they are"
    assert stored.flags.c_contiguous
    assert np.linalg.norm(stored.astype(np.float64), axis=1).max() <= ROW_NORM
    assert model.unlearn([3]).predict(given).shape == (2000,)


def test_a_failed_fit_leaves_the_old_model():
    rows, labels = clouds(200)
    model = CertifiedLogisticRegression(C=0.2).fit(rows, labels)
    weights = model._weights
    with pytest.raises(AssumptionError):
        model.set_params(sigma=1e-14).fit(rows, labels)
    assert model._weights is weights
    model.unlearn([0])
