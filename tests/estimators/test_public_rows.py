"""Public rows in `fit`: they stand in the objective and stay; what does not fit is refused with one sentence."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from certified_unlearning import certificate, unlearn
from certified_unlearning.certificate import CertificateError
from certified_unlearning.certificate.kinds import read_any
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.estimators import CertifiedLogisticRegression, CertifiedRidge, LangevinLogisticRegression
from certified_unlearning.mechanisms import refit_plan

D, RECORDS, PUBLIC = 4, 60, 3000


def rows(n: int, seed: int, d: int = D) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((n, d))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def labelled(n: int, seed: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    X = rows(n, seed)
    scores = X[:, :classes] + 0.5 * np.random.default_rng(seed + 1).standard_normal((n, classes))
    return X, np.array(["cat", "dog", "owl"])[scores.argmax(axis=1)]


def with_targets(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X = rows(n, seed)
    return X, 3 * X[:, 0] - X[:, 1] + 0.5 * np.random.default_rng(seed + 1).standard_normal(n)


def beside(records, public):
    return {"X": records[0], "y": records[1], "public_X": public[0], "public_y": public[1]}


@pytest.fixture(scope="module")
def classes():
    return beside(labelled(RECORDS, 0), labelled(PUBLIC, 2))


@pytest.fixture(scope="module")
def numbers():
    return beside(with_targets(RECORDS, 0), with_targets(PUBLIC, 2))


def weights_of(model, classes: int = 2) -> np.ndarray:
    """The secret weights of the features, as scikit-learn has them; no intercept."""
    return model._model.weights.reshape(1 if classes == 2 else classes, -1)


def theirs(C: float, X, y, class_weight=None) -> np.ndarray:
    model = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000, class_weight=class_weight)
    return model.fit(X, y).coef_


@pytest.mark.parametrize("options", [{}, {"class_weight": {"cat": 2.0, "dog": 0.5}}, {"strict_timing": True}])
def test_the_model_is_scikit_learns_on_both_kinds_of_rows_before_and_after_removals(classes, options):
    model = CertifiedLogisticRegression(C=0.05, fit_intercept=False, **options).fit(**classes)
    gone = np.array([3, 17, 40])

    def expected(kept):
        both = [classes["X"][kept], classes["public_X"]], [classes["y"][kept], classes["public_y"]]
        return theirs(0.05, *map(np.concatenate, both), options.get("class_weight"))

    assert weights_of(model) == pytest.approx(expected(np.arange(RECORDS)), abs=1e-5)
    model.unlearn(gone[:1]).unlearn(gone[1:])
    kept = np.setdiff1d(np.arange(RECORDS), gone)
    assert model.remaining_.tolist() == kept.tolist()
    assert weights_of(model) == pytest.approx(expected(kept), abs=1e-4)
    said = model.certificate_
    apart = np.linalg.norm(weights_of(model) - expected(kept))
    assert apart <= said.budget / (said.strong_convexity + said.public_curvature) + 1e-6
    certificate.verify(said)


def test_ridge_regression_is_scikit_learns_on_both_kinds_of_rows(numbers):
    model = CertifiedRidge(target_range=(-5, 5), alpha=2.0, fit_intercept=False).fit(**numbers).unlearn([0, 9])
    kept = np.setdiff1d(np.arange(RECORDS), [0, 9])
    X = np.concatenate([numbers["X"][kept], numbers["public_X"]])
    expected = Ridge(alpha=2.0, fit_intercept=False, solver="cholesky").fit(
        X, np.concatenate([numbers["y"][kept], numbers["public_y"]])
    )
    assert 5 * model._model.weights == pytest.approx(expected.coef_, abs=1e-9)
    said = model.certificate_
    gram = np.linalg.eigvalsh(numbers["public_X"].T @ numbers["public_X"])[0]
    assert said.public_curvature == pytest.approx(gram / (RECORDS + PUBLIC), rel=1e-5)
    assert said.records_between_reads == RECORDS // 10, "a tenth of those who can leave"
    certificate.verify(said)


def test_what_is_stated_names_public_rows(classes, tmp_path):
    model = CertifiedLogisticRegression(C=0.05).fit(**classes).unlearn([1])
    said = model.certificate_
    assert (said.n, said.public_records, said.removed) == (RECORDS + PUBLIC, PUBLIC, 1)
    assert said.public_curvature > 0.1 * said.strong_convexity
    assert said.mu == pytest.approx(said.budget / (said.strong_convexity + said.public_curvature) / said.sigma)
    assert "on the remaining records and the same 3,000 public rows" in said.comparator
    assert "with the same 3,000 public rows and the same noise" in said.summary()
    assert any("on the remaining records and the public rows was" in each.statement for each in said.assumptions)
    assert any("does not cover the public rows" in each for each in said.not_promised)
    assert any("are public: nobody will ask to remove one" in each.statement for each in said.unchecked)
    report = model.privacy_report()
    assert (
        "60 records and 3,000 public rows, which nobody will ask to remove (n = 3060 counts both; at most 59" in report
    )
    assert said.comparator in report
    certificate.write(said, tmp_path / "stated.json")
    again = read_any(tmp_path / "stated.json")
    assert again == said
    certificate.verify(again)


@pytest.mark.parametrize(
    ("forged", "message"),
    [
        ({"public_records": 0}, "public_curvature"),
        ({"public_records": PUBLIC + RECORDS}, "public_records"),
        ({"public_records": PUBLIC - 1}, "wrong comparator"),
        ({"public_curvature": 0.0}, "states mu"),
        ({"public_curvature": 0.06}, "at most 0.0"),
        ({"removed": RECORDS}, "states removed = 60"),
        ({"strong_convexity": 1.0}, "states mu"),
    ],
)
def test_forged_certificates_are_refused(classes, forged, message):
    said = CertifiedLogisticRegression(C=0.05).fit(**classes).unlearn([1]).certificate_
    with pytest.raises(CertificateError, match=message):
        certificate.verify(said.model_copy(update=forged))


def test_without_public_rows_nothing_is_said_of_them(classes):
    said = CertifiedLogisticRegression(C=0.05).fit(classes["X"], classes["y"]).certificate_
    assert "public_records" not in said.model_dump()
    assert "public row" not in said.model_dump_json()


def test_no_request_can_name_a_public_row(classes):
    model = CertifiedLogisticRegression(C=0.05).fit(**classes)
    before = copy.deepcopy(model)
    for named, message in [
        ([RECORDS], r"names record 60, but the records of X are numbered 0 to 59; the 3,000 rows of public_X stay"),
        ([2, RECORDS + PUBLIC - 1], "names record 3059.*cannot be removed"),
        ([RECORDS + PUBLIC], "records are numbered 0 to 59"),
        (np.ones(RECORDS + PUBLIC, bool), "one truth value for each of the 60 records"),
        (np.ones(RECORDS, bool), "every record that is left"),
        ([-1], "records are numbered 0 to 59"),
    ]:
        with pytest.raises(ParameterError, match=message):
            model.unlearn(named)
    assert (model._weights == before._weights).all()
    assert model.certificate_ == before.certificate_


def test_labels_of_a_frame_name_records_only(classes):
    frame = pd.DataFrame(classes["X"], index=[f"p{number}" for number in range(RECORDS)], columns=list("abcd"))
    public = pd.DataFrame(classes["public_X"], index=[f"q{number}" for number in range(PUBLIC)], columns=list("abcd"))
    model = CertifiedLogisticRegression(C=0.05).fit(frame, classes["y"], public_X=public, public_y=classes["public_y"])
    assert 5 not in model.unlearn(index=["p5"]).remaining_
    with pytest.raises(ParameterError, match="index names 'q5', but no record that is left has this label"):
        model.unlearn(index=["q5"])
    with pytest.raises(DataError, match="column 0 of public_X is named 'b', but that of X 'a'; give public_X"):
        model.fit(frame, classes["y"], public_X=public[list("bacd")], public_y=classes["public_y"])


REFUSALS = [
    ({"public_y": None}, ParameterError, "public_X came without public_y"),
    ({"public_X": None}, ParameterError, "public_y came without public_X"),
    ({"public_X": rows(PUBLIC, 2, 3)}, DataError, "public_X has 3 columns, but X has 4; they need the same columns"),
    ({"public_X": rows(PUBLIC - 1, 2)}, DataError, "public_y has 3,000 values, but public_X has 2,999 rows"),
    (
        {"public_X": 1.5 * rows(PUBLIC, 2)},
        DataError,
        r"row \d+ of public_X has norm 1\.5, .* \(3,000 rows have a norm above 1",
    ),
    ({"public_X": sparse.csr_array(rows(PUBLIC, 2))}, DataError, "public_X is sparse, but X is dense; give both"),
    ({"public_X": np.full((PUBLIC, D), np.nan)}, ValueError, "Input public_X contains NaN"),
    ({"public_X": np.empty((0, D)), "public_y": []}, ValueError, "0 sample"),
]


@pytest.mark.parametrize(("given", "error", "message"), REFUSALS, ids=lambda each: str(each)[:30])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_what_does_not_fit_is_refused_in_one_sentence(given, error, message, kind, request):
    model = CertifiedLogisticRegression(C=0.05) if kind == "classes" else CertifiedRidge(target_range=(-5, 5))
    with pytest.raises(error, match=message):
        model.fit(**request.getfixturevalue(kind) | given)
    assert not hasattr(model, "n_features_in_"), "nothing is half done"


def test_a_class_that_only_public_rows_have_is_refused(classes):
    names = classes["public_y"].astype(object)
    names[7] = "fox"
    with pytest.raises(DataError, match=r"public_y holds the class 'fox', but the classes of y are \['cat', 'dog'\]"):
        CertifiedLogisticRegression().fit(**classes | {"public_y": names})
    numbered = {"y": (classes["y"] == "cat") * 1, "public_y": (classes["public_y"] == "cat") * 1.0}
    model = CertifiedLogisticRegression(C=0.05).fit(**classes | numbered)
    assert model.score(classes["public_X"], numbered["public_y"]) > 0.6


def test_dense_records_do_not_take_sparse_public_rows_nor_the_other_way_round(classes):
    with pytest.raises(DataError, match="public_X is dense, but X is sparse"):
        CertifiedLogisticRegression().fit(**classes | {"X": sparse.csr_array(classes["X"])})


@pytest.mark.parametrize("options", [{"normalize": True}, {"data_norm": 5.0}, {"feature_ranges": (-4, 4)}])
def test_public_rows_are_scaled_as_records_are(classes, options):
    longer = {"X": 3 * classes["X"], "public_X": 3 * classes["public_X"]}
    model = CertifiedLogisticRegression(C=0.05, random_state=0, **options).fit(**classes | longer)
    seen = {name: model._seen(values) for name, values in longer.items()}
    assert (model._store.rows[RECORDS:] == model._rows(longer["public_X"])).all(), "the rows whose curvature is known"
    same = CertifiedLogisticRegression(C=0.05, random_state=0).fit(**classes | seen)
    assert (model._weights == same._weights).all()
    assert model.certificate_.public_curvature == same.certificate_.public_curvature


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array])
def test_sparse_rows_give_what_dense_ones_give(classes, kind):
    as_sparse = {name: kind(classes[name]) for name in ("X", "public_X")}
    of_sparse = CertifiedLogisticRegression(C=0.05, random_state=0).fit(**classes | as_sparse).unlearn([4])
    of_dense = CertifiedLogisticRegression(C=0.05, random_state=0).fit(**classes).unlearn([4])
    apart = np.linalg.norm(of_sparse._model.weights - of_dense._model.weights)
    each = [
        said.budget / (said.strong_convexity + said.public_curvature)
        for said in (of_sparse.certificate_, of_dense.certificate_)
    ]
    assert apart <= sum(each), "both are within what is certified of the same minimiser"
    assert of_sparse.certificate_.public_curvature == pytest.approx(of_dense.certificate_.public_curvature, rel=1e-9)
    assert of_sparse._store.rows[4].nnz == 0
    certificate.verify(of_sparse.certificate_)


def test_float32_rows_become_float64_so_that_curvature_is_that_of_the_rows_learned_from(classes, monkeypatch):
    monkeypatch.setattr(refit_plan, "DEAR", 0)
    short = {name: (classes[name] * 0.999).astype(np.float32) for name in ("X", "public_X")}
    model = CertifiedLogisticRegression(C=0.05).fit(**classes | short).unlearn([4])
    assert model._plan.by_passes
    assert model._store.rows.dtype == np.float64
    wide = {name: short[name].astype(np.float64) for name in short}
    assert model._model.weights == pytest.approx(
        CertifiedLogisticRegression(C=0.05).fit(**classes | wide).unlearn([4])._model.weights, abs=1e-9
    )


def test_several_classes_refit_and_keep_their_m():
    given = beside(labelled(RECORDS, 0, 3), labelled(PUBLIC, 2, 3))
    model = CertifiedLogisticRegression(C=0.05, fit_intercept=False).fit(**given).unlearn([2, 5])
    kept = np.setdiff1d(np.arange(RECORDS), [2, 5])
    X, y = np.concatenate([given["X"][kept], given["public_X"]]), np.concatenate([given["y"][kept], given["public_y"]])
    assert weights_of(model, 3) == pytest.approx(theirs(0.05, X, y), abs=1e-3)
    said = model.certificate_
    assert (said.public_records, said.public_curvature) == (PUBLIC, 0)
    certificate.verify(said)


@pytest.mark.parametrize("training_data", [True, False])
def test_files_keep_public_rows_where_they_keep_training_data(classes, tmp_path, training_data):
    model = CertifiedLogisticRegression(C=0.05, random_state=0).fit(**classes).unlearn([1])
    model.save(tmp_path / "model", training_data=training_data)
    again = CertifiedLogisticRegression.load(tmp_path / "model")
    assert again.certificate_ == model.certificate_
    assert again.privacy_report() == model.privacy_report()
    if not training_data:
        with pytest.raises(DataError, match="saved without its training data"):
            again.unlearn([2])
        return
    assert again._class_sizes.tolist() == model._class_sizes.tolist()
    with pytest.raises(ParameterError, match="rows of public_X stay"):
        again.unlearn([RECORDS + 1])
    assert (again.unlearn([2, 3])._weights == model.unlearn([2, 3])._weights).all()
    assert again.remaining_.tolist() == model.remaining_.tolist()


def test_repeated_requests_until_one_record_is_left(classes):
    model = CertifiedLogisticRegression(C=0.05).fit(**classes)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for number in range(RECORDS - 1):
            model.unlearn([number])
    assert {str(each.message)[:26] for each in warned} == {"a class has no record left"}, "public rows do not count"
    assert model.remaining_.tolist() == [RECORDS - 1]
    assert not model._store.rows[: RECORDS - 1].any()
    assert (model._store.rows[RECORDS:] != 0).any(axis=1).all(), "public rows stay"
    certificate.verify(model.certificate_)


def test_what_the_caller_gave_is_left_alone_and_not_kept(classes):
    before = classes["public_X"].copy()
    model = CertifiedLogisticRegression(C=0.05).fit(**classes).unlearn([0])
    assert (classes["public_X"] == before).all()
    assert not any(value is classes["public_X"] for value in vars(model).values())
    with pytest.raises(DataError):
        model.fit(**classes | {"public_X": classes["public_X"][:, :3]})
    assert model.remaining_[0] == 1, "a failed fit leaves the model as it was"
    assert model.fit(classes["X"], classes["y"]).certificate_.n == RECORDS
    assert "public_X" not in clone(model).get_params()


def test_a_pipeline_hands_public_rows_to_its_last_step(classes):
    given = {f"certifiedlogisticregression__{name}": classes[name] for name in ("public_X", "public_y")}
    pipeline = make_pipeline(FunctionTransformer(), CertifiedLogisticRegression(C=0.05))
    assert unlearn(pipeline.fit(classes["X"], classes["y"], **given), indices=[3]) is not None
    assert pipeline[-1].certificate_.public_records == PUBLIC


def test_other_estimators_know_no_public_rows(classes):
    with pytest.raises(TypeError, match="public_X"):
        LangevinLogisticRegression().fit(**classes)
