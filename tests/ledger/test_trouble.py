"""Warnings advise what helps: following one gives a model with a better balanced accuracy, or AUC.

Noise of steps is drawn from seeds here, so that a test that passes passes always. That of a refit comes from the
system: of ten models with its noise none is poor once in 10^8 runs.
"""

import json
import random
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.commands.ledger.use import warnings_about
from certified_unlearning.data.advice import trial
from certified_unlearning.data.quality import Quality, quality_of
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.ledger import load_model, quality, trouble
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.quality import quality_left
from certified_unlearning.ledger.requests import request
from tests.ledger.conftest import Unlearn
from tests.ledger.tables import LANGEVIN

FITS = 3
RANGES = {"a": (0, 1500), "b": (-1, 1), "c": (-1, 1), "d": (-1, 1), "e": (1.9e6, 2.1e6)}
NOISE, REGULARISER, THRESHOLD = "the problem is the noise", "the problem is the regulariser", "a class is rarer"
CASES = {
    "noise by a small epsilon": ("third", 300, {"epsilon": 0.05, "C": 1 / 3, "batch_size": None}, NOISE),
    "noise by a large C": ("third", 300, {"epsilon": 0.05, "C": 10, "batch_size": None}, NOISE),
    "noise by sigma": ("third", 300, {"epsilon": 1, "C": 0.1, "batch_size": None, "sigma": 1.0}, NOISE),
    "noise, three classes": ("three", 300, {"epsilon": 0.02, "C": 0.05, "batch_size": None}, NOISE),
    "noise of a refit": ("third", 300, {"epsilon": 1, "C": 0.3, "mechanism": "newton-removal", "sigma": 100.0}, NOISE),
    "noise of exact steps": ("third", 300, {"C": 0.3, "mechanism": "noisy-sgd", "sigma": 1.0, "steps": 4}, NOISE),
    "small C": ("third", 1500, {"epsilon": 1, "C": 1 / 1500, "batch_size": None}, REGULARISER),
    "small C, mini-batches": ("third", 6000, {"epsilon": 1, "C": 1 / 6000}, REGULARISER),
    "small C of a refit": ("third", 300, {"epsilon": 1, "C": 1 / 300, "mechanism": "newton-removal"}, REGULARISER),
    "rare class": ("rare", 1500, {"epsilon": 1, "C": 1 / 15, "batch_size": None}, THRESHOLD),
    "rare class, small C": ("rare", 1500, {"epsilon": 1, "C": 1 / 1500, "batch_size": None}, THRESHOLD),
    "drowned": ("drowned", 1500, {"epsilon": 1, "C": 1 / 15, "batch_size": None}, "e carries 99.9 %"),
    "nothing to learn": ("nothing", 1500, {"epsilon": 1, "C": 1 / 15, "batch_size": None}, "these columns hardly tell"),
}


@pytest.fixture(autouse=True)
def seeded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(secrets, "randbits", random.Random(0).getrandbits)
    return


def write(path: Path, kind: str, rows: int) -> Path:
    draw = np.random.default_rng(1)
    X = draw.uniform(-1, 1, (rows, 5))
    score = (
        3 * X[:, 0] - 2 * X[:, 1] + draw.logistic(size=rows) - {"third": 1.3, "rare": 4, "both rare": 4}.get(kind, 0)
    )
    label = np.where(score > 0, "yes", "no").astype(object)
    if kind in ("three", "both rare"):
        label[3 * X[:, 2] + draw.logistic(size=rows) > 3.5] = "maybe"
    if kind == "nothing":
        label = np.where(draw.random(rows) < 0.45, "yes", "no")
    table = pd.DataFrame(X, columns=[*"abcde"])
    if kind == "drowned":
        table["a"], table["e"] = table["a"].rank(), (table["e"] + 20) * 1e5
    table.assign(person=np.arange(rows), ill=label).to_csv(path, index=False)
    return path


class Models:
    """Models of one table, each in a directory of its own."""

    def __init__(self, root: Path, kind: str, rows: int) -> None:
        self.table = write(root / "table.csv", kind, rows)
        self._made = 0

    def make(self, asked: dict[str, Any], **declared: Any) -> Path:
        self._made += 1
        path = self.table.parent / f"model{self._made}"
        if "mechanism" not in asked:
            asked = LANGEVIN | asked
        initialise(path, Table(path=str(self.table), label="ill", identifier="person", **declared), **asked)
        return path

    def poor(self, asked: dict[str, Any]) -> tuple[Path, Quality]:
        """The first model that a warning is due of: noise spares some."""
        models = (self.make(asked) for _ in range(10))
        return next((path, found) for path in models if (found := quality_left(path)).fact is not None)

    def quality(self, asked: dict[str, Any], **declared: Any) -> tuple[float, float]:
        """Balanced accuracy and AUC in the mean over some models."""
        found = [quality_left(self.make(asked, **declared)) for _ in range(FITS)]
        return float(np.mean([each.balanced_accuracy for each in found])), float(np.mean([each.auc for each in found]))

    def rows_at_the_threshold(self, model: Path, threshold: float) -> float:
        """Balanced accuracy of an answer `yes` from so large a probability on."""
        table, loaded = pd.read_csv(self.table), load_model(model)
        yes = loaded.predict_proba(loaded.rows(table))[:, 1] > threshold
        return quality_of(np.column_stack([~yes, yes]), np.where(table["ill"] == "yes", 1, 0), [0, 1]).balanced_accuracy


def advised(warning: str, asked: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Every flag that a warning names, as arguments of `initialise`, with what is declared besides."""
    refit = {key: value for key, value in asked.items() if key in ("epsilon", "C")} | {"mechanism": "newton-removal"}
    found: list[tuple[dict[str, Any], dict[str, Any]]] = []
    weighed = re.search(r"--C ([\d.e-]+) --class-weight (\S+)", warning)
    if weighed:
        weights = {name: float(weight) for name, weight in (each.split("=") for each in weighed[2].split(","))}
        return [(asked | {"C": float(weighed[1])}, {"class_weight": weights})]
    planned = {key: value for key, value in asked.items() if key not in ("sigma", "steps")}
    named = r"(--mechanism newton-removal )?--(C|epsilon|sigma) ([\d.e-]+)( without --sigma)?"
    for newton, flag, number, without in re.findall(named, warning):
        by_newton = newton or "and --mechanism newton-removal" in warning
        usual = refit if by_newton else planned if without else asked
        found.append((usual | {flag: float(number)}, {}))
    if "the usual noise without --sigma" in warning:
        found.append((planned, {}))
    if "more --steps together with a smaller --sigma" in warning:
        found.append((asked | {"steps": 8 * asked["steps"], "sigma": asked["sigma"] / 10}, {}))
    if "--range" in warning:
        found.append((asked, {"ranges": RANGES}))
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
def test_whoever_follows_an_advice_has_a_better_model(case: str, tmp_path: Path) -> None:
    kind, rows, asked, trouble_is = CASES[case]
    models = Models(tmp_path, kind, rows)
    model, quality = models.poor(asked)
    fact, *said = warnings_about(quality, model)
    assert fact == quality.fact
    assert any(each.startswith(trouble_is) for each in said), said
    # Others with the same flags are better than a poor one already, where its noise had bad luck.
    before = max((quality.balanced_accuracy, quality.auc or 0.5), models.quality(asked), key=sum)
    followed = 0
    for warning in said:
        assert "not for publication" in warning or "hardly count" in warning
        for other, declared in advised(warning, asked):
            after = models.quality(other, **declared)
            assert sum(after) > sum(before) + 0.02, (warning, other, before, after)
            followed += 1
        for threshold, promised in re.findall(r"above ([\d.]+), its mean.*balanced accuracy is ([\d.]+)", warning):
            found = models.rows_at_the_threshold(model, float(threshold))
            assert found == pytest.approx(float(promised), abs=0.02)
            assert found > quality.balanced_accuracy + 0.02
            followed += 1
    assert followed or kind == "nothing"


def test_a_larger_C_which_makes_too_much_noise_worse_is_not_advised(tmp_path: Path) -> None:
    kind, rows, asked, _ = CASES["noise by a small epsilon"]
    models = Models(tmp_path, kind, rows)
    model, quality = models.poor(asked)
    assert not any("as large" in each for each in warnings_about(quality, model))
    assert sum(models.quality(asked | {"C": 10 * asked["C"]})) < sum(models.quality(asked)) - 0.02


def test_three_classes_of_which_two_are_rare(tmp_path: Path) -> None:
    models = Models(tmp_path, "both rare", 1500)
    model = models.make({"epsilon": 1, "C": 1 / 1500, "batch_size": None})
    said = warnings_about(quality_left(model), model)
    (how,) = (each for each in said if "divide each class's probability by its mean over these records" in each)
    table, loaded = pd.read_csv(models.table), load_model(model)
    probabilities = loaded.predict_proba(loaded.rows(table))
    answers = (probabilities / probabilities.mean(axis=0)).argmax(axis=1)
    found = quality_of(np.eye(3)[answers], table["ill"].to_numpy(), loaded.classes).balanced_accuracy
    assert f"then balanced accuracy is {found:.3f} instead of 0.333" in how
    assert found > 0.4


def test_every_command_that_says_how_good_a_model_is_says_what_helps(tmp_path: Path, unlearn: Unlearn) -> None:
    table = write(tmp_path / "t.csv", "rare", 1500)
    flags = ["--data", table, "--label", "ill", "--id", "person", "--epsilon", 1, "--device", "cpu"]
    said = [unlearn("init", tmp_path / "model", *flags).stderr]
    said.append(unlearn("status", tmp_path / "model").stderr)
    said.append("".join(json.loads(unlearn("status", tmp_path / "model", "--json").stdout)["warnings"]))
    unlearn("request", tmp_path / "model", "--id", 3)
    applied = unlearn("apply", tmp_path / "model")
    said.append(unlearn("evaluate", tmp_path / "model", table).stderr)
    said.append("".join(json.loads(unlearn("evaluate", tmp_path / "model", table, "--json").stdout)["warnings"]))
    assert len(said) == 5
    # Once warned, nobody needs the same three warnings after every request.
    assert applied.stderr == ""
    assert applied.stdout.count("model` warns about this quality, and says what helps") == 1
    for each in said:
        assert f"{THRESHOLD} than others: predict yes where its probability is above 0." in each
        assert f"{THRESHOLD} than others: a new `unlearn init` with --C 1 --class-weight no=1,yes=1" in each
    for path in (tmp_path / "model").rglob("*"):
        assert not path.is_file() or b"rarer" not in path.read_bytes()


def test_a_model_that_became_useless_is_a_warning_after_an_apply(
    model: Path, unlearn: Unlearn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even though `apply` tries no advice."""
    monkeypatch.setattr(trouble, "trouble_left", None)
    monkeypatch.setattr(quality, "quality_left", lambda path: Quality(0.93, 0.5, 0.5, 0.3, 0.93, 100))
    unlearn("request", model, "--id", "p3")
    said = unlearn("apply", model).stderr
    assert said.startswith("warning: the model hardly tells the classes apart: balanced accuracy 0.500 against 0.500")
    assert said.rstrip().endswith("says what helps")
    unlearn("request", model, "--id", "p4")
    monkeypatch.setattr(quality, "quality_left", lambda path: Quality(0.97, 0.8, 0.9, 0.1, 0.93, 100))
    good = unlearn("apply", model)
    assert good.stderr == ""
    assert "says what helps" not in good.stdout


def test_a_larger_C_that_fits_no_better_is_not_advised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It moves probabilities across one half, as another threshold does; the planted fault is to forget that."""
    models = Models(tmp_path, "third", 1500)
    model, found = models.poor({"epsilon": 1, "C": 1 / 1500, "batch_size": None})
    assert any(each.startswith(REGULARISER) for each in warnings_about(found, model))
    monkeypatch.setattr(trial, "FIT", 1.0)
    assert not any(each.startswith(REGULARISER) for each in warnings_about(found, model))


def test_init_names_the_drowning_column_once(tmp_path: Path, unlearn: Unlearn) -> None:
    table = write(tmp_path / "t.csv", "drowned", 600)
    flags = ["--data", table, "--label", "ill", "--id", "person", "--epsilon", 1, "--device", "cpu"]
    said = unlearn("init", tmp_path / "model", *flags).stderr
    assert said.count("e carries 99.9 %") == 1
    assert "so choose a threshold other than one half" in said
    assert unlearn("status", tmp_path / "model").stderr.count("e carries 99.9 %") == 1


def test_records_of_another_kind_are_not_the_models_trouble(tmp_path: Path, unlearn: Unlearn) -> None:
    models = Models(tmp_path, "third", 1500)
    model = models.make({"epsilon": 1, "C": 1 / 15, "batch_size": None})
    other = write(tmp_path / "other.csv", "nothing", 1500)
    said = unlearn("evaluate", model, other).stderr
    assert "the model is better on the records that it was made from, with balanced accuracy 0.7" in said
    assert "the problem is" not in said


def test_a_good_model_is_not_looked_at(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "trouble_left", None)
    assert warnings_about(quality_left(model), model) == []


def test_what_cannot_be_read_leaves_the_fact(model: Path) -> None:
    (model / "training" / "labels.int8").write_bytes(b"")
    fact, why = warnings_about(Quality(0.93, 0.5, 0.5, 0.3, 0.93, 100), model)
    assert fact.startswith("the model hardly tells the classes apart: balanced accuracy 0.500 against 0.500")
    assert "no advice can be computed now" in why
    assert "is damaged" in why


def test_many_records_are_tried_on_some_of_them_the_same_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = Models(tmp_path, "rare", 1500)
    model = models.make({"epsilon": 1, "C": 1 / 15, "batch_size": None})
    request(model, ["3", "17"])
    apply(model)
    monkeypatch.setattr(trial, "MOST_RECORDS", 700)
    said = warnings_about(quality_left(model), model)
    assert said == warnings_about(quality_left(model), model)
    assert "(tried on 700 of 1,498 training records; not for publication)" in said[1]


def test_too_few_records_to_try_anything(tmp_path: Path) -> None:
    models = Models(tmp_path, "third", 300)
    table = pd.read_csv(models.table).groupby("ill").head(1)
    table.to_csv(models.table, index=False)
    model = models.make({"epsilon": 1, "C": 1.0, "batch_size": None}, classes=("no", "yes"))
    assert len(warnings_about(Quality(0.5, 0.5, 0.5, 0.7, 0.5, 2), model)) == 1


def test_a_trial_expects_what_scikit_learn_finds_on_the_other_half() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import balanced_accuracy_score

    draw = np.random.default_rng(0)
    rows = draw.normal(size=(400, 3))
    positions = (rows[:, 0] + draw.logistic(size=400) > 0).astype(np.int64)
    tried = trial.Trial(rows, positions, 2, 1.0)
    order = np.argsort(positions, kind="stable")
    said = np.empty(400)
    for here, there in ((order[::2], order[1::2]), (order[1::2], order[::2])):
        fitted = LogisticRegression(C=1 / (0.01 * 200), fit_intercept=False).fit(rows[there], positions[there])
        said[here] = fitted.predict(rows[here])
    assert tried.expected(0.01).balanced == pytest.approx(balanced_accuracy_score(positions, said))
    assert tried.expected(0.01, trial.Noise(0.0)).balanced == tried.expected(0.01).balanced
    assert tried.expected(0.01, trial.Noise(100.0)).auc < tried.expected(0.01).auc - 0.1


def test_the_noise_of_steps_is_smaller_where_the_objective_is_curved() -> None:
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(4000, 2)) * [1, 0.01]
    positions = (draw.random(4000) > 0.5).astype(np.int64)
    spread = trial.Trial(rows, positions, 2, 1.0)._spread(0.01, trial.Noise(0.1, 1e-3), (1.0, 1.0))
    covariance = spread.T @ spread
    # The stationary law of small steps: sigma^2 times the inverse Hessian.
    hessian = np.diag((rows**2).mean(axis=0)) / 4 + 0.01 * np.eye(2)
    np.testing.assert_allclose(np.diag(covariance), 0.01 / np.diag(hessian), rtol=0.05)


def test_a_trial_takes_classes_that_one_half_lacks() -> None:
    rows = np.random.default_rng(0).normal(size=(9, 2))
    tried = trial.Trial(rows, np.array([0] * 4 + [1] * 4 + [2]), 3, 1.0)
    assert tried.is_possible
    assert 0 <= tried.expected(0.1).balanced <= 1
    assert tried.expected(0.1, trial.Noise(0.1, 0.5)).auc <= 1
