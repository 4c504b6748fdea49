"""Our runs beside the trials that the authors stored: what is judged the same, and what is not."""

from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.papers.langevin_unlearning.measures.authors import _stored_trials, gaps_to_authors
from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.reproduction.claims.intervals import ONE_POINT
from certified_unlearning.reproduction.claims.model import claims_of
from certified_unlearning.reproduction.claims.verdicts import evaluate

CLAIMS = {
    each.claim.id: each for each in claims_of([PAPER])[PAPER.name] if each.claim.measure == gaps_to_authors.__name__
}
ACCOUNTANTS = {"langevin": "lsi", "retraining": "none", "descent-to-delete": "descent-to-delete N.1"}


def results(accuracies):
    """Results on MNIST whose summaries have a row beside each of the authors', with what a function gives for it."""
    rows = [
        row | {"variant": "some", "accountant": ACCOUNTANTS[row["mechanism"]]} | accuracies(row)
        for row in _stored_trials()
    ]
    return SimpleNamespace(
        layout=SimpleNamespace(summary=Path(__file__)),
        dataset="mnist-3-vs-8",
        remedy="run it",
        summary=lambda experiment: pd.DataFrame([row for row in rows if row["experiment"] == experiment]),
    )


def verdict(name, evidence):
    return evaluate([CLAIMS[name]], [evidence])[0]


def shifted(by, chosen=lambda row: True):
    return results(lambda row: {"accuracy_mean": row["accuracy_mean"] + by * chosen(row)})


def points_of(name):
    arguments = CLAIMS[name].claim.arguments
    keys = [arguments["experiment"], arguments["mechanism"], arguments.get("steps")]
    return [
        row for row in _stored_trials() if [row["experiment"], row["mechanism"], row.get("unlearning_steps")] == keys
    ]


def test_every_stored_row_is_of_a_file_that_one_claim_cites():
    assert [len(points_of(name)) for name in CLAIMS] == [6, 6, 6, 6, 6, 12, 6, 6]
    assert len(_stored_trials()) == 54
    for name, each in CLAIMS.items():
        cited = each.claim.source.split(", ")[1].partition(";")[0]
        assert all(fnmatch(f"result/LMC/MNIST/{row['file']}", cited) for row in points_of(name))
        assert each.claim.whose == "authors' code"


@pytest.mark.parametrize("by", [0.0, ONE_POINT, -ONE_POINT])
@pytest.mark.parametrize("name", CLAIMS)
def test_curves_that_are_equal_or_one_percentage_point_apart_are_reproduced(name, by):
    assert verdict(name, shifted(by)).verdict == "reproduced"


@pytest.mark.parametrize("by", [0.1, -0.1])
@pytest.mark.parametrize("name", CLAIMS)
def test_one_point_that_is_shifted_contradicts_and_is_named_alone(name, by):
    last = points_of(name)[-1]
    found = verdict(name, shifted(by, lambda row: row == last))
    assert found.verdict == "contradicted"
    assert found.reason.count("theirs") == 1
    assert f"theirs {last['accuracy_mean']:.4f}" in found.reason
    assert (found.measured[0] == "-") == (by < 0)


def test_the_largest_difference_comes_first():
    gaps = gaps_to_authors(
        [shifted(0.02, lambda row: row.get("records_removed") == 50)],
        dataset="mnist-3-vs-8",
        experiment="fig5a",
        mechanism="langevin",
    )
    assert gaps[0].name == "S = 50 (ours 0.9173, theirs 0.8973)"
    assert [gap.value for gap in gaps[1:]] == [0] * 5


def test_noise_alone_contradicts_as_rarely_as_is_stated():
    generator = np.random.default_rng(7)

    def drawn(row):
        """Trials whose true mean is as far off as it may be, where a false alarm is likeliest."""
        trials = generator.normal(row["accuracy_mean"] + ONE_POINT, row["accuracy_std"], 100)
        theirs = generator.normal(row["accuracy_mean"], row["accuracy_std"], 100)
        # Only the difference counts, so that the noise of theirs can be taken off ours.
        noise = theirs.mean() - row["accuracy_mean"]
        return {"accuracy_mean": trials.mean() - noise, "accuracy_std": trials.std(ddof=1)}

    alarms = sum(verdict("authors-fig-3a-langevin", results(drawn)).verdict == "contradicted" for _ in range(400))
    assert alarms <= 3  # Expected are 0.2, at 5e-4 each: one tail of 1e-3. More than 3 have probability 6e-5.


def test_too_few_trials_make_no_verdict():
    found = verdict("authors-fig-4-accuracy", results(lambda _: {"trials": 29}))
    assert found.verdict == "not run"
    assert found.reason.startswith("too few trials to tell: ")


def test_runs_of_the_pipeline_are_found_at_the_authors_points_and_what_is_missing_is_named(mnist):
    for name in CLAIMS:
        if "fig-5a" not in name:
            assert verdict(name, mnist).verdict != "not run", name
    found = verdict("authors-fig-5a-retraining", mnist)
    assert found.verdict == "not run"
    assert found.reason == "the records of fig5a lack retraining at S = 10; run `snakemake --config preset=mnist`"
