"""`unlearn plan removal` from what people know: `C` and the number of records, or a table."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from certified_unlearning.accounting import Problem
from certified_unlearning.accounting.core.scale import score_noise, weights_bound
from certified_unlearning.commands.plans.known import KnownProblem, in_words
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner

QUESTION = ["--records", "1", "--epsilon", "1", "--steps", "10"]


def planned(plan, *arguments: str | Path, kind: str = "removal") -> list[dict]:
    status, out, err = plan(*arguments, "--json", kind=kind)
    assert (status, err) == (0, "")
    return list(json.loads(out))


@pytest.mark.parametrize(("classes", "intercept"), [(2, True), (2, False), (10, True)])
def test_the_constants_are_those_of_an_estimator(plan, classes: int, intercept: bool) -> None:
    flags = ["--C", "0.05", "--n", "1500", "--classes", classes, *([] if intercept else ["--no-intercept"])]
    row = planned(plan, *flags, *QUESTION, "--accountant", "shifted")[0]
    learner = LangevinLearner.plan(
        n=1500,
        features=65,
        classes=classes,
        regularisation=1 / (0.05 * 1500**2 * (2 if intercept else 1)),
        epsilon=1,
        delta="auto",
        steps=10,
    )
    problem = learner.exact_problem
    for name in ("strong_convexity", "smoothness", "lipschitz", "step_size", "adjacency"):
        assert row[name] == pytest.approx(getattr(problem, name)) if name != "adjacency" else row[name] == "zero-out"
    # The estimator counts rounding, a plan reckons in exact arithmetic.
    assert row["sigma"] == pytest.approx(learner.sigma, rel=0.05)
    assert row["sigma"] <= learner.sigma


def test_a_table_is_counted(plan, tmp_path: Path) -> None:
    lines = [f"{row},{row % 7},{'abc'[row % 3]},p{row}" for row in range(600)]
    (tmp_path / "t.csv").write_text("x,z,y,who\n" + "\n".join(lines) + "\n")
    data = ["--data", tmp_path / "t.csv", "--label", "y", "--id", "who"]
    rows = planned(plan, *data, *QUESTION)
    same = planned(plan, "--n", "600", "--C", 100 / 600, "--classes", "3", "--features", "2", *QUESTION)
    timed = {"seconds_estimated": None}
    assert [row | timed for row in rows] == [row | timed for row in same]
    assert all(row["seconds_estimated"] > 0 for row in rows)
    declaration = tmp_path / "t.yaml"
    declaration.write_text("path: t.csv\nlabel: y\nidentifier: who\n")
    assert [row | timed for row in planned(plan, "--table", declaration, *QUESTION)] == [row | timed for row in rows]


def test_a_target_of_0_is_refused_before_a_table_is_read(plan) -> None:
    data = ["--data", "nowhere.csv", "--label", "y"]
    for kind, flag in (("removal", "--epsilon"), ("deletion", "--epsilon-dp"), ("deletion", "--epsilon-dd")):
        status, out, err = plan(*data, flag, "0", kind=kind)
        assert (status, out, err) == (1, "", f"error: {flag} must be a finite number above 0, got 0.0\n")


def test_delta_is_auto_for_a_model_and_the_papers_for_constants(plan) -> None:
    model = ["--C", "0.05", "--n", "1500", "--accountant", "shifted", *QUESTION]
    assert planned(plan, *model)[0]["delta"] == planned(plan, *model, "--delta", "auto")[0]["delta"] == 1e-6
    assert planned(plan, *model, "--delta", "1/n")[0]["delta"] == 1 / 1500
    constants = ["--n", "1500", "--strong-convexity", "0.01", "--smoothness", "0.26", "--lipschitz", "1"]
    assert planned(plan, *constants, *QUESTION)[0]["delta"] == 1 / 1500


def test_the_table_says_what_the_numbers_mean(plan) -> None:
    status, out, _ = plan("--C", "0.05", "--n", "1500", "--features", "64", *QUESTION)
    assert status == 0
    text = " ".join(out.split())
    assert "score noise" in text
    assert "The time is an estimate" in text
    assert "C n = 75, with intercept" in text
    _, without, _ = plan("--C", "0.05", "--n", "1500", *QUESTION)
    assert "With --features, the time is estimated" in " ".join(without.split())


def test_deletion_takes_c_too(plan) -> None:
    of_deletion = ["--alpha", "10", "--epsilon-dp", "1", "--epsilon-dd", "0.1", "--records", "1"]
    known = planned(plan, "--C", "0.05", "--n", "1500", "--features", "64", *of_deletion, kind="deletion")
    loss = KnownProblem(1500, 0.05).constants
    constants = ["--strong-convexity", loss.strong_convexity, "--smoothness", loss.smoothness]
    assert known == planned(
        plan,
        "--n",
        "1500",
        *constants,
        "--lipschitz",
        loss.lipschitz,
        "--dimension",
        "65",
        *of_deletion,
        kind="deletion",
    )


MISTAKES = {
    "nothing": (
        [],
        "--n, --strong-convexity, --smoothness, --lipschitz must be given, "
        "or --C and --n of a logistic regression, or --data and --label",
    ),
    "both": (["--C", "1", "--n", "10", "--lipschitz", "1"], "give --C or --lipschitz, not both"),
    "no n": (["--C", "1"], "--n is missing; give it, or --data with a file"),
    "C of zero": (["--C", "0", "--n", "10"], "C must be a finite number above 0, got 0.0"),
    "one class": (["--C", "1", "--n", "10", "--classes", "1"], "classes must be a whole number, at least 2, got 1"),
    "no label": (["--data", "t.csv"], "--label is missing: name the column of --data to predict"),
    "label alone": (["--C", "1", "--n", "10", "--label", "y"], "--label needs --data with a file"),
    "counted twice": (["--data", "t.csv", "--label", "y", "--n", "10"], "leave out --n, which the table determines"),
    "two tables": (
        ["--data", "t.csv", "--table", "t.yaml"],
        "--table declares everything: leave out --data, --label and --id",
    ),
    "features alone": (["--n", "10", "--features", "3"], "--features needs --C or --data"),
    "no intercept": (["--n", "10", "--no-intercept"], "--no-intercept needs --C or --data"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_in_one_sentence(plan, mistake: str) -> None:
    arguments, sentence = MISTAKES[mistake]
    assert plan(*arguments, *QUESTION) == (1, "", f"error: {sentence}\n")


def test_a_table_that_is_not_there_ends_in_one_sentence(plan, tmp_path: Path) -> None:
    status, out, err = plan("--data", tmp_path / "none.csv", "--label", "y", *QUESTION)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "none.csv" in err


@pytest.mark.parametrize("steps", [1, 10, 1000])
def test_the_noise_in_a_score_is_bounded(steps: int) -> None:
    problem = Problem(100, 0.05, 0.3, 1.0, 1 / 0.3)
    variance = 0.0
    for _ in range(steps):  # A quadratic loss of the least curvature, from a point.
        variance = (1 - problem.step_size * 0.05) ** 2 * variance + 2 * problem.step_size * 0.1**2
    assert variance**0.5 <= score_noise(problem, sigma=0.1) * (1 + 1e-12)
    if steps == 1000:
        assert variance**0.5 == pytest.approx(score_noise(problem, sigma=0.1))


@pytest.mark.parametrize("classes", [2, 3])
def test_the_bound_on_the_weights_holds(classes: int) -> None:
    from scipy.optimize import minimize

    draw = np.random.default_rng(1)
    rows = draw.normal(size=(60, 4))
    labels = (rows @ draw.normal(size=(4, classes))).argmax(axis=1)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for strength in (1.0, 0.1, 1e-3):

        def objective(flat, strength=strength):
            weights = flat.reshape(4, -1)
            scores = rows @ weights
            if classes == 2:
                scores = np.hstack([np.zeros_like(scores), scores])
            logarithms = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
            return -logarithms[np.arange(60), labels].mean() + strength / 2 * (flat**2).sum()

        found = minimize(objective, np.zeros(4 * (1 if classes == 2 else classes)), tol=1e-10).x
        assert np.linalg.norm(found) <= weights_bound(strong_convexity=strength, classes=classes) * (1 + 1e-6)


def test_the_estimated_time_grows_with_the_steps() -> None:
    known = KnownProblem(n=5000, C=0.02, features=100)
    few, many = known.seconds(10), known.seconds(1000)
    assert few is not None
    assert many is not None
    assert 0 < few < many
    assert KnownProblem(n=5000, C=0.02).seconds(10) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.01, "< 0.1 s"), (0.25, "0.25 s"), (90.0, "90 s"), (150.0, "2.5 minutes"), (9000, "2.5 hours")],
)
def test_a_time_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_the_version_is_printed() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("unlearn"), "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("unlearn ")
