"""`unlearn plan deletion`."""

import json

import pytest
from typer.testing import CliRunner

from certified_unlearning.cli import app
from certified_unlearning.commands.plans.deletion import FORMS
from certified_unlearning.errors import AssumptionError, ParameterError

C1 = ["--n", "1000", "--strong-convexity", "0.05", "--smoothness", "0.3", "--lipschitz", "1"]
BUDGET = ["--dimension", "10", "--alpha", "8", "--epsilon-dp", "1", "--epsilon-dd", "0.1"]


def plan(*arguments):
    result = CliRunner().invoke(app, ["plan", "deletion", *C1, *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_a_stream_is_planned_with_the_sheets_numbers():
    calibrations = json.loads(plan(*BUDGET, "--stream", "5x10", "--json"))
    assert [calibration["form"] for calibration in calibrations] == list(FORMS)
    assert [calibration["privacy_steps"] for calibration in calibrations] == [56, 21, 11, 10]
    assert {calibration["learning_steps"] for calibration in calibrations} == {194}
    assert {calibration["risk_steps"] for calibration in calibrations} == {82}
    assert {calibration["gradients_saved"] for calibration in calibrations} == {5 * 112_000}
    assert calibrations[0]["epsilon_dd"] == pytest.approx(0.0969720, rel=1e-5)
    assert calibrations[0]["risk_bound"] == pytest.approx(0.096, rel=1e-5)
    assert calibrations[0]["sigma"] ** 2 == pytest.approx(6.4e-4)
    # Theorem 4.3 as printed allows epsilon_dd + epsilon_dp.
    assert all(calibration["epsilon_dd"] < calibration["epsilon_dd_adaptive"] <= 1.1 for calibration in calibrations)


def test_a_single_request_is_a_stream_of_one():
    options = (*BUDGET, "--json")
    assert plan(*options, "--records", "10") == plan(*options, "--stream", "1x10")


def test_the_table_says_what_holds_and_what_it_is_about():
    printed = " ".join(plan(*BUDGET, "--stream", "5x10").split())
    assert "│ Theorem 5.1 │ 56 │ 0.0969722 │ 1.09666 │ 0.440392 │ 82 │ 560,000 │ │" in printed
    assert "5 requests of 10 records. Learn with K_A = 194 steps of size 1.66667" in printed
    assert "excess risk is at most 0.096" in printed
    assert "Retraining is cheaper" not in printed


def test_no_number_of_the_table_is_cut_however_many_digits_it_has():
    many = ["--n", "60000000", "--dimension", "50", "--strong-convexity", "0.0001", "--smoothness", "0.2501"]
    targets = ["--alpha", "24", "--epsilon-dp", "0.5", "--epsilon-dd", "0.05", "--records", "100"]
    printed = plan("--lipschitz", "1", *many, *targets)
    assert "…" not in printed
    assert "1 request of 100 records. " in printed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--strong-convexity", "1e-300", "--records", "1"], "rounding alone may drive the weights anywhere"),
        (["--stream", "1000001x1"], "stream must have at most 1,000,000 requests, got '1000001x1'"),
    ],
)
def test_numbers_beyond_reason_are_refused(change, message):
    with pytest.raises((ParameterError, AssumptionError), match=message):
        plan(*BUDGET, *change)


def test_a_deletion_that_costs_more_than_retraining_says_so():
    printed = " ".join(plan(*BUDGET, "--stream", "2x900").split())
    assert "Retraining is cheaper." in printed


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["--records", "1"], ParameterError, "give --dimension, --alpha, --epsilon-dp, --epsilon-dd"),
        ([*BUDGET], ParameterError, "either --stream, such as 5x20, or --records"),
        (
            [*BUDGET, "--records", "1", "--dimension", "0"],
            ParameterError,
            "--dimension must be a whole number, at least",
        ),
        ([*BUDGET, "--records", "1", "--stream", "1x1"], ParameterError, "either --stream"),
        ([*BUDGET[:-1], "2", "--records", "1"], AssumptionError, "epsilon_dd must be at most"),
    ],
)
def test_flags_that_make_no_sense_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        plan(*arguments)
