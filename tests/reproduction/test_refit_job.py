"""The job that fits again: rows as every job's, no curves, and an epsilon only where something is guaranteed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from certified_unlearning.data.prepared import PreparedData, unit_rows
from certified_unlearning.data.requests import draw_removals
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.mechanisms.mechanism import Refit, Refitted
from certified_unlearning.mechanisms.run import ExperimentPlan
from certified_unlearning.mechanisms.scikit_learn import SCIKIT_LEARN
from certified_unlearning.reproduction import declared, jobs
from certified_unlearning.reproduction.rows import CURVE_ROWS, RUN_ROWS, read_table
from tests.support.planning import make, settings_of, sweep_of

TRIALS = 4
REGULARISATION = 1e-3
"""Times n, 200: the strong convexity."""


def plan(data: PreparedData, **changes: object) -> ExperimentPlan:
    settings = settings_of("smoke", **{"trials": TRIALS, "regularisation": REGULARISATION} | changes)
    sweep = sweep_of("smoke", "fig4", sigma=0.2, epsilon=[1.0], records=[1, 60])
    return make("fig4", settings, sweep, data.summary())


def stream(data: PreparedData, *removed: int) -> ExperimentPlan:
    """The plan with several requests in every run of scikit-learn."""
    whole = plan(data)
    (request,) = whole.of("scikit-learn")[0].requests
    requests = [request.model_copy(update={"records_removed": count}) for count in removed]
    runs = [
        run.model_copy(
            update={
                "requests": tuple(
                    each.model_copy(update={"epsilon": run.requests[0].epsilon, "mu": run.requests[0].mu})
                    for each in requests
                )
            }
        )
        for run in whole.of("scikit-learn")[:2]
    ]
    return whole.model_copy(update={"runs": tuple(runs)})


def carry_out(
    whole: ExperimentPlan, data: PreparedData, directory: Path, mechanism: Refit = SCIKIT_LEARN
) -> pd.DataFrame:
    files = directory / "rows.parquet", directory / "curves.parquet"
    jobs.refit(mechanism, whole, data, *files)
    assert read_table(files[1], CURVE_ROWS).empty
    return read_table(files[0], RUN_ROWS)


def test_the_mechanism_is_found_by_its_name_and_has_no_job_of_learning(small_data, tmp_path) -> None:
    assert declared.mechanism("scikit-learn") is SCIKIT_LEARN
    with pytest.raises(ParameterError, match="scikit-learn does not learn in a job of its own; `unlearn` does all t"):
        jobs.learn(SCIKIT_LEARN, plan(small_data), small_data, tmp_path / "learned")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("adjacency", ["replace", "zero-out"])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_run_has_one_row_a_trial_with_one_accuracy_and_epsilon_only_where_it_fits_from_zero(
    adjacency: str, classes: int, small_data, three_classes, tmp_path
) -> None:
    data = small_data if classes == 2 else three_classes
    whole = plan(data, adjacency=adjacency)
    rows = carry_out(whole, data, tmp_path)
    runs = whole.of("scikit-learn")
    assert rows["run_key"].tolist() == [whole.key(run) for run in runs for _ in range(TRIALS)]
    assert rows["trial"].tolist() == list(range(TRIALS)) * len(runs)
    assert all(len(set(accuracies)) == 1 for _, accuracies in rows.groupby("run_key")["accuracy"])
    assert rows["accuracy"].between(1 / classes + 0.2, 1).all()
    warm = rows["variant"] == "warm start"
    assert warm.tolist() == [False] * TRIALS + [True] * TRIALS + [False] * TRIALS + [True] * TRIALS
    for column in ("epsilon", "mu"):
        assert rows.loc[warm, column].isna().all()
        assert (rows.loc[~warm, column] == 0).all()
    assert set(rows.loc[warm, "guarantee"]) == {"none"}
    assert set(rows.loc[~warm, "guarantee"]) == {"exact"}
    for column in ("sigma", "learning_steps", "unlearning_steps", "accumulated_steps", "extra_delta"):
        assert (rows[column] == 0).all()
    assert rows["records_removed"].unique().tolist() == [1, 60]
    assert (rows["device"] == "cpu").all()
    assert (rows["seconds"] > 0).all()
    assert not list(tmp_path.glob("*.checkpoint"))


@pytest.mark.parametrize("adjacency", ["replace", "zero-out"])
def test_from_zero_classifies_the_test_records_as_the_minimiser_on_what_is_left_does(
    adjacency: str, small_data, tmp_path
) -> None:
    draw = np.random.default_rng(5)
    rows = unit_rows(draw.standard_normal((20_000, 6)), "tested")
    labels = np.where(rows @ draw.standard_normal(6) > 0, 1, -1).astype(np.int8)
    data = replace(small_data, test_features=rows, test_labels=labels)
    whole = plan(data, adjacency=adjacency)
    removals = draw_removals(data, records=60, adjacency=adjacency, seed=whole.settings.seed)
    m = whole.constants.strong_convexity

    def right(removed: int) -> tuple[float, float]:
        """Return the share of test records that the minimiser gets right, and of those that hang on the tolerance."""
        features, labels = removals.apply(data.train_features, data.train_labels, removed)
        signed = (labels[:, None] * features).astype(np.float64)

        def objective(weights: np.ndarray) -> tuple[float, np.ndarray]:
            scores = signed @ weights
            value = np.logaddexp(0, -scores).mean() + m / 2 * weights @ weights
            return value, m * weights - signed.T @ expit(-scores) / data.n

        best = minimize(objective, np.zeros(6), jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-10}).x
        scores = data.test_features @ best
        # It stops when no number of the gradient is above 1e-4.
        close = np.abs(scores) <= np.sqrt(6) * 1e-4 / m
        return float(np.mean((scores > 0) == (data.test_labels > 0))), float(close.mean())

    rows = carry_out(whole, data, tmp_path)
    fitted = rows[rows["variant"] == "from zero"].groupby("records_removed")["accuracy"].first()
    (before, unsure), (after, _) = right(0), right(60)
    assert abs(after - before) > 2 * unsure, "a removal that is forgotten would not be noticed"
    for removed in (1, 60):
        share, close = right(removed)
        assert fitted[removed] == pytest.approx(share, abs=close + 1e-12)


def test_the_mechanism_is_told_the_plans_removals_and_1_over_n_m(small_data, tmp_path) -> None:
    told = []

    def noted(data, removals, removed, C, variant):
        told.append((removals, list(removed), C, variant))
        return Refitted([np.array([[0.25 * count, 0.5, 0.5, 0.5]]) for count in removed], 8.0 * len(told))

    whole = stream(small_data, 1, 3)
    rows = carry_out(whole, small_data, tmp_path, replace(SCIKIT_LEARN, answer=noted))
    assert [(removed, variant) for _, removed, _, variant in told] == [([1, 3], "from zero"), ([1, 3], "warm start")]
    assert [C for _, _, C, _ in told] == [pytest.approx(1 / (200 * 200 * REGULARISATION), rel=1e-14)] * 2
    # What every mechanism of the plan removes, however many.
    expected = draw_removals(small_data, records=60, adjacency="replace", seed=whole.settings.seed)
    for removals, *_ in told:
        assert removals.adjacency == "replace"
        np.testing.assert_array_equal(removals.indices, expected.indices[:3])
        np.testing.assert_array_equal(removals.features, expected.features[:3])
        np.testing.assert_array_equal(removals.labels, expected.labels[:3])
    # One row for each request and trial, each with the seconds of its own run.
    for number, run in enumerate(whole.runs):
        own = rows[rows["run_key"] == whole.key(run)]
        assert own["request"].tolist() == [1] * TRIALS + [2] * TRIALS
        assert own["records_removed"].tolist() == [1] * TRIALS + [3] * TRIALS
        assert own["accuracy"].tolist() == [0.25] * TRIALS + [0.75] * TRIALS
        assert set(own["seconds"]) == {8.0 * (number + 1)}
        assert own["epsilon"].isna().tolist() == [run.variant == "warm start"] * 2 * TRIALS


def test_the_same_inputs_give_the_same_rows_but_for_the_time(small_data, tmp_path) -> None:
    whole = stream(small_data, 1, 20, 60)
    found = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        found.append(carry_out(whole, small_data, tmp_path / name).drop(columns=["seconds", "code_version"]))
    pd.testing.assert_frame_equal(*found, check_exact=True)
    assert found[0]["request"].max() == 3


def test_data_of_another_plan_and_a_plan_without_its_runs_are_refused(small_data, three_classes, tmp_path) -> None:
    whole = plan(small_data)
    files = tmp_path / "rows", tmp_path / "curves"
    with pytest.raises(DataError, match=r"the data set digits has digest .*; make the plan again"):
        jobs.refit(SCIKIT_LEARN, whole, three_classes, *files)
    others = whole.model_copy(update={"runs": whole.of("langevin")})
    with pytest.raises(DataError, match="the plan of fig4 has no runs of scikit-learn"):
        jobs.refit(SCIKIT_LEARN, others, small_data, *files)
    assert not list(tmp_path.iterdir())
