"""A ledger that predicts numbers: the range of the label is declared, and the rest is as of classes."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from certified_unlearning import certificate
from certified_unlearning.accounting.core.losses import ClassWeights
from certified_unlearning.certificate import ResidualCertificate, StepsCertificate
from certified_unlearning.commands.ledger.use import warnings_about
from certified_unlearning.data.quality import TargetQuality
from certified_unlearning.data.tables.declared import prepare_table
from certified_unlearning.data.tables.table import Table, read_blocks
from certified_unlearning.errors import AssumptionError, DataError, LedgerError, ParameterError
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.mechanisms import MECHANISMS
from certified_unlearning.ledger.model import method_of, read_secret, read_stored, with_intercept
from certified_unlearning.ledger.prediction import LoadedRegression
from certified_unlearning.ledger.quality import quality_left
from certified_unlearning.ledger.settings.exact_refit import RefitSettings
from certified_unlearning.ledger.settings.noisy_steps import LangevinSettings
from certified_unlearning.ledger.verification import verify
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from tests.ledger.conftest import Forks, Original, Unlearn
from tests.ledger.tables import RANGE, make_model, make_regression, write_new, write_table

FLAGS = ("--label", "income", "--id", "person", "--epsilon", 1)
REGRESSION = (*FLAGS, "--regression", "--range", "income=0:60000")
MIDDLE = HALF = 30_000.0


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    root = tmp_path_factory.mktemp("regression")
    table = write_table(root / "people.csv", numbers=True)
    make_regression(root / "model", root / "people.csv")
    return Original(root / "model", root / "people.csv", table)


def plan_of(path: Path) -> RefitPlan:
    learner = read_stored(ModelDirectory(path), requests.status(path).state).learner
    assert isinstance(learner, RefitPlan)
    return learner


def secret_weights(path: Path) -> np.ndarray:
    secret = read_secret(ModelDirectory(path), requests.status(path).state.current)
    assert secret is not None
    return secret.arrays["weights"]


def exact_refit(original: Original, path: Path, gone: set[str], added: pd.DataFrame | None = None) -> np.ndarray:
    """Return the minimiser on the records that are left, by the normal equations of rows made anew from the table."""
    stored = read_stored(ModelDirectory(path), requests.status(path).state)
    plan: Any = stored.learner
    everybody = original.table if added is None else pd.concat([original.table, added])
    everybody.to_csv(path.parent / "everybody.csv", index=False)
    (block,) = read_blocks(stored.table.model_copy(update={"path": str(path.parent / "everybody.csv")}))
    kept = ~everybody["person"].isin(gone).to_numpy()
    rows = with_intercept(block.features)[kept].astype(float)
    targets = (everybody["income"].clip(*RANGE).to_numpy()[kept] - MIDDLE) / HALF
    regulariser = plan.n * plan.strong_convexity * np.eye(rows.shape[1])
    return np.linalg.solve(rows.T @ rows + regulariser, rows.T @ targets)


def csv(tmp_path: Path, **columns: Any) -> Path:
    """Write the table with some columns replaced, or added."""
    table = write_table(tmp_path / "people.csv", numbers=True).assign(**columns)
    table.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


# What is learned, and what stays of it.


def test_learned_weights_are_the_minimiser_with_noise_of_the_declared_size(original: Original, model: Path) -> None:
    assert np.linalg.norm(secret_weights(model) - exact_refit(original, model, set())) < 1e-6
    noise = load_model(model).weights.ravel() - secret_weights(model)
    # 4 numbers: their norm is 0 or above 7 sigma with probability below 1e-9.
    assert 0 < np.linalg.norm(noise) < 7 * plan_of(model).sigma


def test_requests_stay_within_the_budget_of_an_exact_refit(original: Original, model: Path) -> None:
    plan, gone, readings = plan_of(model), set(), []
    for person in ("p3", "p4", "p5", "p6", "p7"):
        requests.request(model, [person])
        (version,) = apply(model).versions
        gone.add(person)
        readings.append(version.reading)
        distance = np.linalg.norm(secret_weights(model) - exact_refit(original, model, gone))
        # The step is exact for a quadratic: the solver's remainder is left, far below the budget.
        assert distance <= min(1e-6, plan.budget / plan.strong_convexity)
    # 2, 1, 2, 1 and 2 records; data are read for the request with which more than 4 are gone.
    assert readings == ["none", "none", "scheduled", "none", "none"]
    current = verify(model).current
    assert isinstance(current, ResidualCertificate)
    assert (current.loss, current.removed, current.releases) == ("squared", 8, 6)
    assert current.epsilon <= 1
    certificate.verify(current)
    assert "the range of targets does not depend on the records" in {each.statement for each in current.assumptions}


@pytest.mark.sampled
@pytest.mark.parametrize("accident", ["kill_at", "fail_at"])
def test_apply_that_is_killed_or_finds_the_disk_full_at_any_of_its_changes_ends_within_the_budget(
    original: Original, model: Path, tmp_path: Path, fork: Forks, accident: str
) -> None:
    requests.request(model, ["p3"])
    plan, right = plan_of(model), exact_refit(original, model, {"p3"})
    accidents = 0
    while True:
        copy = Path(shutil.copytree(model, tmp_path / f"{accident}-{accidents + 1}"))
        if fork("apply", copy, **{accident: accidents + 1}) == 0:
            break
        accidents += 1
        assert fork("apply", copy) == 0
        assert verify(copy).state.records_removed == 2
        distance = np.linalg.norm(secret_weights(copy) - right)
        assert distance <= min(1e-6, plan.budget / plan.strong_convexity)
        shutil.rmtree(copy)
    assert accidents > 40


def test_a_reading_leaves_the_secret_that_learning_from_the_remaining_records_gives(model: Path) -> None:
    for person in ("p3", "p4", "p5"):
        requests.request(model, [person])
        (version,) = apply(model).versions
    assert version.reading == "scheduled"
    directory, state = ModelDirectory(model), requests.status(model).state
    left, anew = read_secret(directory, state.current), method_of(directory, read_stored(directory, state))
    learned = anew.learn(torch.device("cpu")).secret
    assert left is not None
    assert learned is not None
    for name, array in left.arrays.items():
        assert (array == learned.arrays[name]).all(), name


def test_a_removed_target_is_wiped_and_the_others_stay(original: Original, model: Path) -> None:
    directory = ModelDirectory(model)
    before = np.fromfile(directory.targets, np.float64)
    assert (before == (original.table["income"] - MIDDLE) / HALF).all()
    requests.request(model, ["p3"])
    apply(model)
    gone = original.table["person"] == "p3"
    assert (np.fromfile(directory.targets, np.float64) == np.where(gone, 0, before)).all()
    assert not directory.labels.exists()


def test_targets_that_were_edited_are_refused(model: Path) -> None:
    targets = ModelDirectory(model).targets
    content = bytearray(targets.read_bytes())
    content[3] ^= 1
    targets.write_bytes(content)
    requests.request(model, ["p3"])
    for command in (verify, apply):
        with pytest.raises(LedgerError, match="the training copy is not what the ledger recorded"):
            command(model)


def test_a_file_of_labels_beside_the_targets_is_a_stranger(model: Path) -> None:
    labels = ModelDirectory(model).labels
    labels.write_bytes(bytes(450))
    assert verify(model).strangers == (labels,)


def test_noisy_steps_learn_the_minimiser_but_for_their_noise(original: Original, tmp_path: Path) -> None:
    """So does the version without some records; of 4 numbers the norm is above 7 sigma with probability below 1e-9."""
    path, gone = tmp_path / "model", [f"p{number}" for number in range(100)]
    make_regression(path, original.data, mechanism="langevin", epsilon=100.0, C=0.01)
    learner = read_stored(ModelDirectory(path), requests.status(path).state).learner
    assert isinstance(learner, LangevinLearner)
    most = 7 * LangevinSettings.score_noise(learner)
    for people in ([], gone):
        if people:
            requests.request(path, people)
            apply(path)
        distance = np.linalg.norm(load_model(path).weights.ravel() - exact_refit(original, path, {*people}))
        assert distance < most < 0.05


def test_noisy_steps_predict_numbers_too(original: Original, tmp_path: Path) -> None:
    path = tmp_path / "model"
    make_regression(path, original.data, mechanism="langevin", epsilon=1.0, C=0.01)
    requests.request(path, ["p3", "p4"])
    apply(path)
    current = verify(path).current
    assert isinstance(current, StepsCertificate)
    assert current.target_range == RANGE
    assert "the range of targets does not depend on the records" in {each.statement for each in current.assumptions}
    certificate.verify(current)
    assert isinstance(load_model(path), LoadedRegression)


def test_records_are_added_and_the_model_is_that_of_all_of_them(
    original: Original, model: Path, tmp_path: Path, unlearn: Unlearn
) -> None:
    new = write_new(tmp_path / "new.csv", numbers=True)
    new.loc[0, "income"] = 1_000_000
    new.to_csv(tmp_path / "new.csv", index=False)
    said = unlearn("add", model, "--data", tmp_path / "new.csv")
    assert "label outside its range: 1 record (the nearer end of the range is used)" in said.stdout
    assert np.fromfile(ModelDirectory(model).targets, np.float64)[450:452].tolist()[0] == 1
    # One who was there from the start, one who was added, and one whose removal reads.
    for people, reading in ((["p0"], "none"), (["p300"], "none"), (["p301", "p1"], "scheduled")):
        requests.request(model, people)
        (version,) = apply(model).versions
        assert version.reading == reading
    gone = {"p0", "p300", "p301", "p1"}
    # The regulariser of the sum stays: C does.
    assert np.linalg.norm(secret_weights(model) - exact_refit(original, model, gone, new)) < 1e-6
    assert np.linalg.norm(secret_weights(model) - exact_refit(original, model, gone | {"p302"}, new)) > 1e-5
    current = verify(model).current
    assert isinstance(current, ResidualCertificate)
    assert (current.n, current.added, current.removed, current.classes) == (480, 30, 6, 1)
    certificate.verify(current)


# The range of the label.


def test_targets_beyond_the_range_count_as_its_ends_and_init_says_so(tmp_path: Path, unlearn: Unlearn) -> None:
    income = write_table(tmp_path / "people.csv", numbers=True)["income"].copy()
    income[:3] = [1e9, 70_000, -5]
    data = csv(tmp_path, income=income)
    said = unlearn("init", tmp_path / "model", "--data", data, *REGRESSION)
    assert "in 3 records, income is outside its range (1 below, 2 above), and counts as the nearer end" in said.stderr
    assert np.fromfile(ModelDirectory(tmp_path / "model").targets, np.float64)[:3].tolist() == [1, 1, -1]


def test_without_an_intercept_targets_are_clipped_to_the_same_range(tmp_path: Path) -> None:
    """Then 0 is mapped to 0: what lies between the range and its mirror image is below it, too."""
    income = write_table(tmp_path / "people.csv", numbers=True)["income"].copy()
    income[:3] = [1e9, -20_000, -1e9]
    table = Table(
        path=str(csv(tmp_path, income=income)), label="income", identifier="person", target_range=(10_000.0, 60_000.0)
    )
    initialise(tmp_path / "model", table, epsilon=1.0, intercept=False)
    found = np.fromfile(ModelDirectory(tmp_path / "model").targets, np.float64)
    assert found[:3].tolist() == [1, 1 / 6, 1 / 6]
    assert (found == income.clip(10_000, 60_000) / 60_000).all()


def test_a_target_in_the_millions_is_learned_as_well_as_the_same_in_thousands(tmp_path: Path) -> None:
    data = csv(tmp_path)
    make_regression(tmp_path / "small", data)
    table = pd.read_csv(data)
    table["income"] *= 1000
    table.to_csv(tmp_path / "large.csv", index=False)
    large = Table(
        path=str(tmp_path / "large.csv"), label="income", identifier="person", target_range=(0.0, 1000 * RANGE[1])
    )
    initialise(tmp_path / "large", large, epsilon=1.0, C=0.1, sigma=0.03)
    assert np.allclose(secret_weights(tmp_path / "large"), secret_weights(tmp_path / "small"), atol=1e-9)
    rows = load_model(tmp_path / "large").rows(table)
    assert load_model(tmp_path / "large").predict(rows).mean() == pytest.approx(30e6, rel=0.1)


@pytest.mark.parametrize("ends", [(1.0, 1.0), (2.0, 1.0), (0.0, float("inf")), (-1.7e308, 1.7e308), (0.0, 5e-324)])
def test_a_range_that_is_none_is_refused(tmp_path: Path, ends: tuple[float, float]) -> None:
    table = Table(path=str(csv(tmp_path)), label="income", identifier="person", target_range=ends)
    with pytest.raises(ParameterError, match=r"target_range must be a pair \(low, high\)"):
        initialise(tmp_path / "model", table, epsilon=1.0)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(("n", "C"), [(10_000, 1.0), (400_000, 0.1), (10_000_000, 1e-3)])
def test_many_records_are_planned_with_the_usual_noise_and_a_smaller_c(n: int, C: float) -> None:
    """Rounding in float64 would take the budget of `C = 1`, which is refused where it is asked for."""
    settings, unweighted = RefitSettings(epsilon=1.0), ClassWeights()
    sizes = {"n": n, "features": 11, "classes": 1, "target_range": RANGE, "weights": unweighted}
    plan = settings.plan("newton-removal", **sizes)
    assert (plan.sigma, plan.epsilon) == (1e-3, 1.0)
    assert plan.strong_convexity == pytest.approx(1 / (2 * C * n))
    assert settings.words(plan, unweighted).line.startswith(f"C = {C:g}, C n = {C * n:,.0f}: ")
    if C < 1:
        with pytest.raises(AssumptionError, match="rounding in float64 may be"):
            RefitSettings(epsilon=1.0, C=1.0).plan("newton-removal", **sizes)


# Mistakes.


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (FLAGS, "if they are numbers to predict, not classes: `unlearn init --regression --range income=LOW:HIGH`"),
        ((*FLAGS, "--regression"), "--regression needs --range income=LOW:HIGH, two numbers known beforehand"),
        ((*FLAGS, "--range", "income=0:1"), "a number to predict needs --regression, or target_range in a file"),
        ((*REGRESSION, "--class", "1"), "--class declares classes of income; leave one out"),
        ((*REGRESSION, "--class-weight", "a=1,b=2"), "--class-weight must be left out with --regression"),
        ((*REGRESSION, "--class-weight", "balanced"), "--class-weight must be left out with --regression"),
        ((*REGRESSION, "--strict-timing"), "strict_timing must be left out with --regression"),
        ((*REGRESSION, "--mechanism", "langevin", "--batch-size", "50"), "batch_size must be auto or all"),
    ],
)
def test_flags_that_do_not_fit_are_refused(
    tmp_path: Path, unlearn: Unlearn, flags: tuple[object, ...], message: str
) -> None:
    with pytest.raises((DataError, ParameterError), match=message):
        unlearn("init", tmp_path / "model", "--data", csv(tmp_path), *flags)
    assert not (tmp_path / "model").exists()


def test_mechanisms_of_classes_refuse_numbers_in_one_sentence(original: Original, tmp_path: Path) -> None:
    for name in MECHANISMS.keys() - {"langevin", "newton-removal"}:
        with pytest.raises(ParameterError, match=f"{name} predicts classes only; for --regression leave --mechanism"):
            make_regression(tmp_path / name, original.data, mechanism=name)
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("income", "message"),
    [
        (
            "much",
            "income: 'much' in 450 rows, the first is row 1, expected numbers: leave out such rows, or write numbers",
        ),
        (12.5, "the label income is 12.5 in every row, so there is nothing to predict"),
        ([70_000 + row for row in range(450)], "every income lies outside its range, 0 to 60,000, so all"),
        (
            [*range(449), None],
            "income: missing in row 450: leave out such rows, or write numbers like 1234.5",
        ),
        (
            [*range(449), np.inf],
            "income: 'inf' in row 450, expected numbers: leave out such rows, or write numbers like 1234.5",
        ),
    ],
)
def test_targets_that_cannot_be_learned_are_refused(
    tmp_path: Path, unlearn: Unlearn, income: object, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        unlearn("init", tmp_path / "model", "--data", csv(tmp_path, income=income), *REGRESSION)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["people.csv"]


def test_dates_are_no_numbers_to_predict(tmp_path: Path, unlearn: Unlearn) -> None:
    table = write_table(tmp_path / "people.csv", numbers=True)
    table["income"] = pd.date_range("2020-01-01", periods=len(table))
    table.to_parquet(tmp_path / "people.parquet")
    with pytest.raises(DataError, match=r"income: '2020-01-01 .* and \d+ more in 450 rows, .*, expected numbers: "):
        unlearn("init", tmp_path / "model", "--data", tmp_path / "people.parquet", *REGRESSION)


def test_two_values_are_learned_but_init_asks_whether_they_are_classes(tmp_path: Path, unlearn: Unlearn) -> None:
    data = csv(tmp_path, income=np.arange(450) % 2)
    said = unlearn("init", tmp_path / "model", "--data", data, *FLAGS, "--regression", "--range", "income=0:1")
    assert "income is 0 or 1 in every row: is it a class? Without --regression" in said.stderr


def test_few_rows_of_numbers_that_are_taken_for_classes_are_told_of_regression(
    tmp_path: Path, unlearn: Unlearn
) -> None:
    pd.read_csv(csv(tmp_path)).head(60).to_csv(tmp_path / "few.csv", index=False)
    with pytest.raises(DataError, match=r"60 different numbers, and most of them .*init --regression") as refused:
        unlearn("init", tmp_path / "model", "--data", tmp_path / "few.csv", *FLAGS)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(("times", "plus"), [(1, 0), (-0.001, 12.0)])
def test_a_feature_that_copies_the_target_is_refused_unless_it_was_chosen(
    tmp_path: Path, unlearn: Unlearn, times: float, plus: float
) -> None:
    income = write_table(tmp_path / "people.csv", numbers=True)["income"]
    data = csv(tmp_path, pay=times * income + plus)
    with pytest.raises(DataError, match="column 'pay' is a copy of the label: it is a linear function of the label"):
        unlearn("init", tmp_path / "model", "--data", data, *REGRESSION)
    said = unlearn("init", tmp_path / "model", "--data", data, *REGRESSION, "--feature", "pay", "--feature", "age")
    assert said.exit_code == 0


def test_a_feature_that_nearly_tells_the_target_is_none_of_its_copies(tmp_path: Path, unlearn: Unlearn) -> None:
    income = write_table(tmp_path / "people.csv", numbers=True)["income"]
    near = income + np.random.default_rng(0).normal(0, 10, len(income))
    assert unlearn("init", tmp_path / "model", "--data", csv(tmp_path, pay=near), *REGRESSION).exit_code == 0


def test_the_pipeline_refuses_numbers(tmp_path: Path) -> None:
    table = Table(path=str(csv(tmp_path)), label="income", target_range=RANGE, split={"test": 0.2})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"tables.people.target_range must be left out: the pipeline predicts"):
        prepare_table("people", table, 0, tmp_path / "scratch")


# Declarations.


def test_a_draft_of_regression_marks_the_range_and_is_taken_without_marks(tmp_path: Path, unlearn: Unlearn) -> None:
    data, draft = csv(tmp_path), tmp_path / "people.yaml"
    unlearn("declare", data, "--target", "income", "--id", "person", "--regression", "-o", draft)
    text = draft.read_text()
    assert "target_range: [" in text
    assert "classes:" not in text
    assert "split" not in text
    with pytest.raises(ParameterError, match=r"is a draft: .*'target_range'"):
        unlearn("init", tmp_path / "model", "--table", draft, "--epsilon", 1)
    draft.write_text("\n".join(line.split("#")[0] for line in text.splitlines()))
    said = unlearn("init", tmp_path / "model", "--table", draft, "--epsilon", 1, "--regression")
    assert "predicts: 'income', a number from" in said.stdout


@pytest.mark.parametrize(
    ("income", "flags", "message"),
    [
        (range(450), ["--label", "income"], "more than 128 different values; .*numbers to predict, use --regression"),
        (range(450), ["--regression"], "It could be .*'income'"),
        (["much", *range(449)], ["--label", "income", "--regression"], "1 value that cannot be predicted .*row 1"),
        (3, ["--label", "income", "--regression"], "the label income is 3 in every row"),
    ],
)
def test_a_label_that_cannot_be_declared_is_said(
    tmp_path: Path, unlearn: Unlearn, income: object, flags: list[str], message: str
) -> None:
    with pytest.raises((DataError, ParameterError), match=message):
        unlearn("declare", csv(tmp_path, income=income), *flags)


def test_a_file_without_a_range_is_refused_with_regression(tmp_path: Path, unlearn: Unlearn) -> None:
    (tmp_path / "table.yaml").write_text(f"path: {csv(tmp_path)}\nlabel: income\nidentifier: person\n")
    with pytest.raises(ParameterError, match="has no target_range"):
        unlearn("init", tmp_path / "model", "--table", tmp_path / "table.yaml", "--epsilon", 1, "--regression")


def test_models_of_classes_are_stored_as_before(tmp_path: Path) -> None:
    write_table(tmp_path / "people.csv")
    make_model(tmp_path / "model", tmp_path / "people.csv")
    stored = json.loads((tmp_path / "model" / "model.json").read_text())
    assert "target_range" not in stored["table"]
    assert sorted(path.name for path in (tmp_path / "model" / "training").iterdir()) == [
        "features.float32",
        "labels.int8",
    ]


# What the model says.


@pytest.mark.parametrize("intercept", [True, False])
def test_predictions_are_those_of_ridge_regression_in_the_unit_of_the_label(
    original: Original, tmp_path: Path, intercept: bool
) -> None:
    path = tmp_path / "model"
    make_regression(path, original.data, C=10.0, sigma=1e-5, intercept=intercept, records_between_reads=None)
    loaded = load_model(path)
    assert isinstance(loaded, LoadedRegression)
    rows, income = loaded.rows(original.data), original.table["income"].to_numpy()
    middle = MIDDLE if intercept else 0.0
    features = with_intercept(rows) if intercept else rows
    # Of rows (x, 1) / sqrt(2) weights are sqrt(2) times (coef, intercept), so their squares count half.
    ridge = Ridge(alpha=0.05 if intercept else 0.1, fit_intercept=False).fit(features.astype(float), income - middle)
    half = HALF if intercept else RANGE[1]
    # Noise of at most 4 numbers: its norm is above 7 sigma with probability below 1e-9.
    most = 7 * 1e-5 * half + 1
    assert np.abs(loaded.predict(rows) - ridge.predict(features.astype(float)) - middle).max() < most
    assert loaded.score(rows, income) == pytest.approx(r2_score(income, loaded.predict(rows)))
    for refused in (loaded.decision_function, loaded.predict_proba):
        with pytest.raises(ParameterError, match="this model predicts numbers"):
            refused(rows)


def test_quality_is_what_scikit_learn_computes_beside_the_mean(
    original: Original, model: Path, tmp_path: Path, unlearn: Unlearn
) -> None:
    requests.request(model, ["p3", "p4"])
    apply(model)
    loaded, left = load_model(model), original.table[~original.table["person"].isin(["p3", "p4"])]
    said, income = loaded.predict(loaded.rows(left)), left["income"].to_numpy()
    expected = {
        "r2": r2_score(income, said),
        "root_mean_squared_error": root_mean_squared_error(income, said),
        "mean_absolute_error": mean_absolute_error(income, said),
        "mean_line": income.std(),
        "records": 447,
    }
    found = json.loads(unlearn("status", model, "--json").stdout)
    assert {name: found["quality"][name] for name in expected} == pytest.approx(expected)
    assert (found["classes_from"], found["target_range"]) == (None, [*RANGE])
    left.to_csv(tmp_path / "left.csv", index=False)
    evaluated = unlearn("evaluate", model, tmp_path / "left.csv", "--json")
    found = json.loads(evaluated.stdout)
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert "if they are the same records, these numbers are too good" in found["warnings"][0]
    predicted = pd.read_csv(_predicted(unlearn, model, tmp_path / "left.csv"))
    assert list(predicted) == ["person", "prediction"]
    assert np.allclose(predicted["prediction"], said)


def _predicted(unlearn: Unlearn, model: Path, data: Path) -> Path:
    output = data.with_name("predicted.csv")
    unlearn("predict", model, data, "--output", output)
    return output


def test_evaluating_records_without_a_target_names_the_row(model: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    table = write_table(tmp_path / "others.csv", numbers=True)
    table.loc[4, "income"] = None
    table.to_csv(tmp_path / "others.csv", index=False)
    with pytest.raises(DataError, match="row 5: income is missing; leave out the row"):
        unlearn("evaluate", model, tmp_path / "others.csv")


def test_a_model_that_is_no_better_than_the_mean_is_warned_of(tmp_path: Path, unlearn: Unlearn) -> None:
    data = csv(tmp_path)
    said = unlearn("init", tmp_path / "model", "--data", data, *REGRESSION, "--mechanism", "langevin", "--C", 1)
    assert "so much noise may hide what the model learned: even if the values of income were spread" in said.stderr
    assert "the model is no better than always predicting the mean of these targets" in said.stderr


def test_a_session_on_the_command_line(tmp_path: Path, unlearn: Unlearn) -> None:
    data, model = csv(tmp_path), tmp_path / "model"
    said = unlearn("init", model, "--data", data, *REGRESSION)
    assert "predicts: 'income', a number from 0 to 60,000 (as declared)" in said.stdout
    assert "noise in a prediction: a standard deviation of at most 30 (income)" in said.stdout
    assert "R^2 0." in said.stdout
    assert said.stderr == ""
    unlearn("request", model, "--id", "p3")
    said = unlearn("apply", model)
    assert "removed 2 records of 1 person by a Newton step" in said.stdout
    assert "always predicting the mean of the targets gives root mean squared error" in said.stdout
    for command in ("status", "verify"):
        assert "predicts numbers: from 0 to 60,000, as declared" in unlearn(command, model).stdout
    page = tmp_path / "answer.html"
    unlearn("show", model, "--id", "p3", "-o", page)
    assert "The smallest and the largest number that the model may have to predict were fixed" in page.read_text()


# Advice.


@pytest.mark.parametrize(
    ("asked", "trouble"),
    [
        ({"mechanism": "langevin", "epsilon": 1.0, "C": 1.0}, "the problem is the noise"),
        ({"sigma": 10.0}, "the problem is the noise"),
        ({"C": 1e-6, "sigma": 1e-3}, "the problem is the regulariser"),
    ],
)
def test_following_a_warning_gives_a_better_model(original: Original, tmp_path: Path, asked: Any, trouble: str) -> None:
    """Noise is drawn: of ten models one at least is warned of, but with probability below 1e-6."""
    for number in range(10):
        path = tmp_path / f"poor-{number}"
        make_regression(path, original.data, **asked)
        found = quality_left(path)
        if found.fact is not None:
            break
    (advice,) = warnings_about(found, path)[1:]
    assert trouble in advice
    (C, promised) = re.search(r"--C (\S+) without --sigma.*?R\^2 ([\d.]+)", advice).groups()  # type: ignore[union-attr]
    table = Table(path=str(original.data), label="income", identifier="person", target_range=RANGE)
    initialise(tmp_path / "better", table, epsilon=1.0, C=float(C))
    better = quality_left(tmp_path / "better")
    assert isinstance(better, TargetQuality)
    assert better.fact is None
    assert better.r2 == pytest.approx(float(promised), abs=0.05)


def test_a_range_that_is_far_too_wide_is_said_to_be_the_trouble(original: Original, tmp_path: Path) -> None:
    table = Table(path=str(original.data), label="income", identifier="person", target_range=(0.0, 1e9))
    initialise(tmp_path / "model", table, epsilon=1.0)
    (advice,) = warnings_about(quality_left(tmp_path / "model"), tmp_path / "model")[1:]
    assert "the problem is the range of the label: it is" in advice


def test_columns_that_tell_nothing_are_said_to_be_the_trouble(tmp_path: Path) -> None:
    data = csv(tmp_path, income=np.random.default_rng(1).uniform(0, 60_000, 450))
    make_regression(tmp_path / "model", data, sigma=1e-3)
    (advice,) = warnings_about(quality_left(tmp_path / "model"), tmp_path / "model")[1:]
    assert "these columns hardly predict the label" in advice
