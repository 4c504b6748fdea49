"""Weights of classes in the ledger: fixed numbers, scikit-learn's objective, bounds that count the largest weight."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from certified_unlearning.accounting.core.losses import ClassWeights
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.data.tables.table import read_blocks
from certified_unlearning.engine import descent
from certified_unlearning.errors import ParameterError
from certified_unlearning.estimators import LangevinLogisticRegression
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.model import read_secret, read_stored, with_intercept
from certified_unlearning.ledger.quality import quality_left
from certified_unlearning.ledger.verification import verify
from certified_unlearning.mechanisms import newton_removal
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from tests.ledger.conftest import Unlearn

C, HEAVY = 0.01, 20.0
WEIGHTS = {"no": 1.0, "yes": HEAVY}
MECHANISMS: dict[str, dict[str, Any]] = {
    "newton-removal": {"sigma": 0.03},
    "langevin": {"mechanism": "langevin", "batch_size": None, "dtype": "float64"},
    "mini-batches": {"mechanism": "langevin", "batch_size": 100, "dtype": "float64"},
}
MULTICLASS = {"a": 1.0, "b": 5.0, "c": 0.5}


def write(path: Path, rows: int = 600, several: bool = False) -> pd.DataFrame:
    draw = np.random.default_rng(4)
    table = pd.DataFrame(draw.uniform(-1, 1, (rows, 3)), columns=[*"xyz"])
    score = 3 * table["x"] - 2 * table["y"] + draw.logistic(size=rows)
    if several:
        table["ill"] = np.select([score > 3, score < -1], ["b", "c"], "a")
    else:
        table["ill"] = np.where(score > 4, "yes", "no")
    table["person"] = [f"p{row}" for row in range(rows)]
    table.to_csv(path, index=False)
    return table


def make(path: Path, data: Path, *, weights: dict[str, float] | None = None, classes: Any = None, **asked: Any) -> Path:
    table = Table(path=str(data), label="ill", identifier="person", classes=classes, class_weight=weights or WEIGHTS)
    initialise(path, table, **({"epsilon": 1.0, "delta": "1/n", "C": C, "device": "cpu"} | asked))
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write(tmp_path / "t.csv")
    return tmp_path / "t.csv"


def planned(path: Path) -> Any:
    return read_stored(ModelDirectory(path), requests.status(path).state).learner


def secret_weights(path: Path) -> Any:
    secret = read_secret(ModelDirectory(path), requests.status(path).state.current)
    assert secret is not None
    return secret.arrays["weights"]


def rows_and_labels(data: Path, classes: Any = ("no", "yes")) -> tuple[Any, Any]:
    table = Table(path=str(data), label="ill", identifier="person", classes=classes, features=("x", "y", "z"))
    (block,) = read_blocks(table)
    return with_intercept(block.features).astype(float), block.labels.astype(float)


def gradient_of_the_raw_objective(path: Path, data: Path, gone: list[int]) -> float:
    """Return the norm of the gradient, per record, of ``C sum_i w_i loss_i + |w|^2 / 2`` in scikit-learn's weights.

    It is as the plan has it: divided by ``C n`` and the largest weight, on rows ``(x, 1) / sqrt(2)``.
    """
    rows, signs = rows_and_labels(data)
    kept = np.setdiff1d(np.arange(len(rows)), gone)
    n, at, weight = len(rows), secret_weights(path), np.where(signs > 0, HEAVY, 1.0)
    slopes = -weight * signs / (1 + np.exp(signs * (rows @ at)))
    raw = C * rows[kept].T @ slopes[kept] + at / 2  # Weights of halved rows are longer by sqrt(2).
    return float(np.linalg.norm(raw / (C * n * HEAVY)))


# The objective.


@pytest.mark.parametrize("classes", [("no", "yes"), ("yes", "no")])
def test_the_model_is_scikit_learns_with_the_same_c_and_weights(data: Path, tmp_path: Path, classes: Any) -> None:
    model = make(tmp_path / "model", data, classes=classes, sigma=1e-3)
    table = pd.read_csv(data)
    features = table[[*"xyz"]].to_numpy()
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    theirs = LogisticRegression(C=C, class_weight=WEIGHTS, solver="liblinear", tol=1e-10).fit(features, table["ill"])
    expected = np.append(theirs.coef_, theirs.intercept_) * (1 if classes[1] == "yes" else -1)
    assert secret_weights(model) / np.sqrt(2) == pytest.approx(expected, abs=1e-4)
    plain = LogisticRegression(C=C, solver="liblinear").fit(features, table["ill"])
    assert np.abs(np.append(plain.coef_, plain.intercept_) - theirs.coef_.ravel()[0]).min() > 1e-2


@pytest.mark.parametrize("batch_size", [None, 100])
def test_noisy_steps_are_planned_as_the_estimator_plans_them(data: Path, tmp_path: Path, batch_size: Any) -> None:
    learner = planned(make(tmp_path / "model", data, mechanism="langevin", batch_size=batch_size))
    rows, labels = pd.read_csv(data)[[*"xyz"]].to_numpy(), pd.read_csv(data)["ill"].to_numpy()
    estimator = LangevinLogisticRegression(
        C=C, class_weight=WEIGHTS, batch_size=batch_size, normalize=True, delta="1/n", dtype="float32", random_state=0
    )
    theirs = estimator.fit(rows, labels)._learner
    assert learner == theirs.model_copy(update={"epsilon": learner.epsilon})


def test_the_usual_c_of_noisy_steps_is_100_divided_by_n_and_the_largest_weight(data: Path, tmp_path: Path) -> None:
    learner = planned(make(tmp_path / "model", data, mechanism="langevin", C=None))
    assert learner.strong_convexity == pytest.approx(1 / 200)


# What a record can do, by brute force, and faults that this finds.


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("several", [False, True])
def test_no_record_moves_the_model_by_more_than_the_constants_say(
    tmp_path: Path, mechanism: str, several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "t.csv", several=several)
    weights, names = (MULTICLASS, (*"abc",)) if several else (WEIGHTS, ("no", "yes"))
    path = make(tmp_path / "model", tmp_path / "t.csv", weights=weights, classes=names, **MECHANISMS[mechanism])
    plan, heaviest = planned(path), int(np.argmax([*weights.values()]))
    assert plan.n * plan.strong_convexity == pytest.approx(1 / (2 * C * max(weights.values())), rel=1e-2)
    monkeypatch.setattr(descent.randomness, "fill_blocks", lambda noise, *_: noise.zero_())
    # Where all others are zeros, nothing holds against one record of the heaviest class.
    rows = np.zeros((plan.n, plan.features))
    labels = np.full(plan.n, 0.0 if several else -1.0)
    rows[7, 0], labels[7] = 1, heaviest if several else 1

    def moved(plan: Any) -> float:
        return float(np.linalg.norm(minimiser(plan, rows, labels) - minimiser(plan, rows, labels, gone=7)))

    bound = (np.sqrt(2) if several else 1) / (plan.n * plan.strong_convexity)
    assert 0.3 * bound < moved(plan) <= bound
    # Planted: weights that are not divided by the largest one.
    assert moved(plan.model_copy(update={"class_weights": tuple(weights.values())})) > bound


def minimiser(plan: Any, rows: Any, labels: Any, gone: int | None = None) -> Any:
    """Return what noisy steps without their noise, or a refit, come to, with a record that counts for nothing."""
    rows = rows.copy()
    if gone is not None:
        rows[gone] = 0
    kind = torch.float64 if plan.classes == 2 else torch.int64
    if isinstance(plan, RefitPlan):
        from certified_unlearning.mechanisms.certified_refit import objective_of, refit

        numbers = labels if plan.classes == 2 else labels.astype(np.int64)
        return refit(plan, objective_of(plan, rows, numbers)).weights
    if plan.cycle is not None and plan.classes == 2:
        rows = -labels[:, None] * rows
    some = torch.tensor(labels.astype(np.int8)) if plan.cycle is not None else torch.tensor(labels).to(kind)
    return plan.learn(torch.tensor(rows), some, [1])[0].numpy()


@pytest.fixture(params=["none", "newton step", "c", "shares"])
def fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place that forgets the weights; or none."""
    if request.param == "newton step":
        real = newton_removal.removed_gradient

        def forgetting(rows: Any, labels: Any, at: Any, n: int, class_weights: Any = None, **more: Any) -> Any:
            return real(rows, labels, at, n, None, **more)

        monkeypatch.setattr(newton_removal, "removed_gradient", forgetting)
    if request.param == "c":
        divided = ClassWeights.divided
        monkeypatch.setattr(ClassWeights, "divided", lambda given: ClassWeights(1.0, divided(given).shares))
    if request.param == "shares":
        monkeypatch.setattr(ClassWeights, "divided", lambda given: ClassWeights(1.0, tuple(given)))
    return request.param


def test_a_newton_step_stays_within_the_budget_of_the_weighted_objective_and_faults_do_not(
    data: Path, tmp_path: Path, fault: str
) -> None:
    if fault == "shares":
        with pytest.raises(ParameterError, match="class_weights must be 2 numbers from 0 to 1"):
            make(tmp_path / "model", data)
        return
    model = make(tmp_path / "model", data, sigma=0.3, records_between_reads=50)
    ill = pd.read_csv(data)["ill"]
    some = [*np.flatnonzero(ill == "yes")[:2].tolist(), *np.flatnonzero(ill == "no")[:4].tolist()]
    gone: list[int] = []
    within = [gradient_of_the_raw_objective(model, data, gone) <= planned(model).budget]
    for row in some:
        requests.request(model, [f"p{row}"])
        assert apply(model).versions[0].reading == "none"
        gone.append(row)
        within.append(gradient_of_the_raw_objective(model, data, gone) <= planned(model).budget)
    assert all(within) == (fault == "none"), (fault, within)
    if fault == "none":
        verify(model)


# What is stated, and where.


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_certificates_state_them_and_the_ledger_is_verified(data: Path, tmp_path: Path, mechanism: str) -> None:
    model = make(tmp_path / "model", data, **MECHANISMS[mechanism])
    requests.request(model, ["p3", "p4"])
    apply(model)
    certificate = verify(model).current
    assert certificate.class_weights == (1 / HEAVY, 1.0)  # type: ignore[attr-defined]
    (words,) = (each for each in certificate.assumptions if "class weights are constants" in each.statement)  # type: ignore[attr-defined]
    assert words.status == "assumed"


def test_flags_json_and_a_declaration_say_the_same(data: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    flags = ["--data", data, "--label", "ill", "--id", "person", "--class", "no", "--class", "yes", "--epsilon", 1]
    (tmp_path / "t.yaml").write_text(
        'path: t.csv\nlabel: ill\nidentifier: person\nclasses: ["no", "yes"]\nclass_weight: {"yes": 20, "no": 1}\n'
    )
    (tmp_path / "plain.yaml").write_text('path: t.csv\nlabel: ill\nidentifier: person\nclasses: ["no", "yes"]\n')
    ways = [
        [*flags, "--class-weight", "no=1,yes=20"],
        [*flags, "--class-weight", "yes=20", "--class-weight", "no=1"],
        [*flags, "--class-weight", '{"yes": 20, "no": 1}'],
        ["--table", tmp_path / "t.yaml", "--epsilon", 1],
        ["--table", tmp_path / "plain.yaml", "--epsilon", 1, "--class-weight", "yes=20,no=1.0"],
    ]
    plans = []
    for number, way in enumerate(ways):
        said = unlearn("init", tmp_path / f"model{number}", *way).stdout
        assert "weights of classes: 'no' 1, 'yes' 20 (fixed numbers; the comparator uses the same weights)" in said
        plans.append(planned(tmp_path / f"model{number}"))
    assert plans == [plans[0]] * 5
    assert plans[0].class_weights == (0.05, 1.0)
    status = unlearn("status", tmp_path / "model0")
    assert (
        "weights of classes: 'no' 1, 'yes' 20 (fixed at `init`; the comparator uses the same weights)" in status.stdout
    )
    assert json.loads(unlearn("status", tmp_path / "model0", "--json").stdout)["class_weight"] == WEIGHTS


def test_a_model_without_weights_says_nothing_of_them(data: Path, tmp_path: Path) -> None:
    initialise(tmp_path / "model", Table(path=str(data), label="ill", identifier="person"), epsilon=1.0)
    assert "class_weight" not in (tmp_path / "model" / "model.json").read_text()


def test_accuracy_that_weights_cost_is_no_warning(data: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    """The records of a rare class are found, as was asked: a model without weights is warned of."""
    flags = ["--data", data, "--label", "ill", "--id", "person", "--epsilon", 1, "--C", 100]
    weighted = unlearn("init", tmp_path / "weighted", *flags, "--class-weight", "no=1,yes=20")
    assert weighted.stderr == ""
    found = quality_left(tmp_path / "weighted")
    assert found.fact is not None
    assert found.balanced_accuracy > 0.8
    assert found.accuracy < found.majority
    assert unlearn("status", tmp_path / "weighted").stderr == ""


# Mistakes.


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("no=1,maybe=3", r"class.weight names 'maybe', which is none of the classes 'no', 'yes'"),
        (
            "yes=3",
            r"class.weight names no weight for 'no'; give each of the classes 'no', 'yes' a weight, 1 for an ordinary",
        ),
        ("no=0,yes=1", "the class 'no' the weight 0.0, but a weight must be a number above 0, from 1e-06 to 1e.06"),
        ("no=-1,yes=1", "the class 'no' the weight -1.0, but a weight must be a number above 0"),
        ("no=nan,yes=1", "the class 'no' the weight nan, but a weight must be a number above 0"),
        ("no=1,yes=inf", "the class 'yes' the weight inf, but a weight must be a number above 0"),
        ('{"no": "1", "yes": 2}', "the class 'no' the weight '1', but a weight must be a number above 0"),
        ('{"no": true, "yes": 2}', "the class 'no' the weight True, but a weight must be a number above 0"),
        ('{"no": 1, "yes": 2', "which is not JSON; it must look like no=1,yes=10"),
        ("no=1,yes", "--class-weight has 'yes', but must look like no=1,yes=10"),
        ("no=1,yes=many", "--class-weight has 'many', but must look like no=1,yes=10"),
        ("no=1,no=2", "--class-weight is given twice for 'no'; give it once"),
        ("{}", 'class_weight: must give a number for each class, such as {"no": 1, "yes": 10}, got {}'),
        ("", "--class-weight has '', but must look like no=1,yes=10"),
    ],
)
@pytest.mark.parametrize("declared", [True, False])
def test_wrong_weights_are_one_sentence_and_nothing_is_made(
    data: Path, tmp_path: Path, unlearn: Unlearn, given: str, sentence: str, declared: bool
) -> None:
    flags = ["--data", data, "--label", "ill", "--id", "person", "--epsilon", 1, "--class-weight", given]
    with pytest.raises(ParameterError, match=sentence) as refused:
        unlearn("init", tmp_path / "model", *flags, *(["--class", "no", "--class", "yes"] if declared else []))
    assert "\n" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("in_a_file", [True, False])
def test_balanced_weights_are_refused_with_numbers(
    data: Path, tmp_path: Path, unlearn: Unlearn, in_a_file: bool
) -> None:
    flags = ["--data", data, "--label", "ill", "--id", "person", "--class-weight", "balanced"]
    if in_a_file:
        (tmp_path / "t.yaml").write_text("path: t.csv\nlabel: ill\nidentifier: person\nclass_weight: balanced\n")
        flags = ["--table", tmp_path / "t.yaml"]
    counts = pd.read_csv(data)["ill"].value_counts()
    rounded = f"{float(f'{counts.no / counts.yes:.1g}'):g}"
    with pytest.raises(ParameterError, match=rf"no guarantee would cover it; .* --class-weight no=1,yes={rounded}"):
        unlearn("init", tmp_path / "model", *flags, "--epsilon", 1)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    "mechanism", ["certified-ensemble", "subsample-gd", "noisy-sgd", "accelerated-noisy-sgd", "quantized-sgd"]
)
def test_mechanisms_that_cannot_weigh_classes_say_so(data: Path, tmp_path: Path, mechanism: str) -> None:
    asked = {"epsilon": None, "delta": "auto", "C": None, "mechanism": mechanism}
    with pytest.raises(
        ParameterError,
        match=f"`class_weight` does not apply to {mechanism}; leave it out, or use --mechanism langevin or --mechanism "
        "newton-removal",
    ):
        make(tmp_path / "model", data, **asked)


def test_weights_are_said_once(data: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    (tmp_path / "t.yaml").write_text("path: t.csv\nlabel: ill\nidentifier: person\nclass_weight: {a: 1, b: 2}\n")
    with pytest.raises(
        ParameterError, match=r"--class-weight is given, and so is class_weight in .*t\.yaml: leave one"
    ):
        unlearn("init", tmp_path / "model", "--table", tmp_path / "t.yaml", "--class-weight", "no=1,yes=2")


def test_a_bare_yes_in_a_declaration_is_explained(data: Path, tmp_path: Path, unlearn: Unlearn) -> None:
    (tmp_path / "t.yaml").write_text("path: t.csv\nlabel: ill\nidentifier: person\nclass_weight: {no: 1, yes: 2}\n")
    with pytest.raises(ParameterError, match=r"names 'false', which is none of the classes 'no', 'yes'; YAML reads a"):
        unlearn("init", tmp_path / "model", "--table", tmp_path / "t.yaml", "--epsilon", 1)
