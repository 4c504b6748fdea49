"""Sentences about runs are made of the rows' numbers: other rows, other words."""

import pandas as pd
import pytest

from certified_unlearning.papers.langevin_unlearning.captions import seconds_of_one
from certified_unlearning.papers.langevin_unlearning.findings import cost, findings, newcomers, quality
from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence
from certified_unlearning.reproduction.summaries import summarise
from tests.reproduction.report.report_results import TRIALS, records_of


@pytest.fixture
def rows() -> pd.DataFrame:
    """Runs of a preset at epsilon = 0.5 and 1."""
    return records_of("first").copy()


def told_of_cost(rows: pd.DataFrame) -> str:
    return cost(summarise(rows, "fig4"), seconds_of_one(rows, "fig4"), "first").replace("\N{NO-BREAK SPACE}", " ")


def told_of_quality(rows: pd.DataFrame) -> str:
    return quality(summarise(rows, "fig3a"), "first").replace("\N{NO-BREAK SPACE}", " ")


def test_the_cost_of_a_removal_is_told_in_steps_and_seconds_beside_learning_anew(rows: pd.DataFrame) -> None:
    # At the epsilon nearest to 1; the largest group; delta with the share for finite learning, rounded up.
    assert told_of_cost(rows) == (
        "first: removing 10 of 1,437 records at ε = 1 and δ = 0.0011 takes 20 steps of Langevin unlearning by the "
        "accountant shifted (1,200 by lsi); retraining takes 268, 13.4 times as many. If all trials run together, "
        "unlearning takes 0.062 s per model and retraining takes 0.062 s; scikit-learn fits a model again in 0.25 s."
    )


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("unlearning_steps", 300, "takes 300 steps of Langevin unlearning"),
        ("unlearning_steps", 300, "retraining takes 268, 0.893 times as many"),
        ("unlearning_steps", 0, "retraining takes 268. If all trials"),
        ("delta", 0.0123, "δ = 0.013 takes"),
        ("seconds", 8.0, "unlearning takes 2 s per model"),
        ("n", 2000, "removing 10 of 2,000 records"),
        ("epsilon_target", 1.2, "at ε = 1.2 and"),
    ],
)
def test_another_number_in_the_rows_is_another_number_in_the_sentence(rows, column, value, words) -> None:
    assert words not in told_of_cost(rows)
    rows.loc[(rows["experiment"] == "fig4") & (rows["epsilon_target"] == 1.0), column] = value
    assert words in told_of_cost(rows)


def test_the_quality_is_told_beside_the_majority_line_and_scikit_learn(rows: pd.DataFrame) -> None:
    shown = rows[(rows["experiment"] == "fig3a") & (rows["accountant"] == "lsi") & (rows["epsilon_target"] == 1.0)]
    own = shown[shown["mechanism"] == "langevin"]["accuracy"]
    assert len(own) == TRIALS
    again = rows[(rows["experiment"] == "fig3a") & (rows["mechanism"] == "scikit-learn")]
    (from_zero,) = again.loc[again["variant"] == "from zero", "accuracy"].unique()
    assert told_of_quality(rows) == (
        f"first: with the least noise (accountant lsi), test accuracy is {own.mean():.4f} ± {own.std():.4f} "
        "after removing 1 of 1,437 records at ε = 1 and δ = 0.0011 in 1 step. Always guessing the most frequent class "
        f"has accuracy 0.5100. scikit-learn, fitted again without noise, has accuracy {from_zero:.4f}."
    )


def test_a_model_that_is_no_better_than_guessing_is_said_to_be_so(rows: pd.DataFrame) -> None:
    rows.loc[(rows["experiment"] == "fig3a") & (rows["mechanism"] == "langevin"), "accuracy"] = 0.51
    words = " in 1 step. This is no better than always guessing the most frequent class, which has accuracy 0.5100. "
    assert words in told_of_quality(rows)


def test_what_was_run_is_told_and_what_was_not_is_missing(mnist: Evidence, tmp_path) -> None:
    removal, accuracy = findings(mnist)
    assert removal.startswith("mnist: removing 100 of 11,982 records at ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}1")
    assert "test accuracy is" in accuracy
    with pytest.raises(MissingEvidence):
        findings(Evidence.read(tmp_path, "nothing", PAPER))


def test_newcomers_read_the_same_numbers_without_a_papers_words(mnist: Evidence) -> None:
    removal, accuracy = (each.replace("\N{NO-BREAK SPACE}", " ") for each in newcomers(mnist))
    summary = mnist.summary("fig4")
    largest = summary[summary["records_removed"] == 100]
    of_langevin = (largest["mechanism"] == "langevin") & (largest["epsilon_target"] == 1.0)
    fewest = largest.loc[of_langevin, "unlearning_steps"].min()
    anew = largest.loc[largest["variant"] == "noisy", "learning_steps"].iloc[-1]
    assert removal == (
        f"Removing 100 of 11,982 records takes {fewest} steps of Langevin unlearning at ε = 1. "
        f"Learning again without these records takes {anew:,} steps."
    )
    assert accuracy.startswith("After a removal at ε = 1 the model is correct on ")
    assert "always guessing the most frequent class is correct on " in accuracy
