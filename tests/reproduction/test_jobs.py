"""The jobs on a small data set: reproducible, consistent with each other, careful with their inputs."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from certified_unlearning import certificate
from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.engine.devices import pick_device
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.mechanisms.descent_to_delete import DESCENT_TO_DELETE
from certified_unlearning.mechanisms.langevin import LANGEVIN
from certified_unlearning.mechanisms.mechanism import Refit
from certified_unlearning.mechanisms.minibatch_langevin import MINIBATCH_LANGEVIN
from certified_unlearning.mechanisms.retraining import RETRAINING
from certified_unlearning.mechanisms.run import ExperimentPlan
from certified_unlearning.mechanisms.scikit_learn import SCIKIT_LEARN
from certified_unlearning.reproduction import jobs
from certified_unlearning.reproduction.rows import CURVE_ROWS, RUN_ROWS, read_table
from tests.support.planning import experiment_called, make, settings_of, sweep_of

FALSE_ALARM_RATE = 1e-9
MANY_STEPS = 15
"""Of Descent-to-Delete: it then needs so little noise that float32 would round it away."""
MECHANISMS = {each.name: each for each in (LANGEVIN, RETRAINING, DESCENT_TO_DELETE, MINIBATCH_LANGEVIN, SCIKIT_LEARN)}
SWEEPS: dict[str, dict[str, Any]] = {
    "fig3a": {"epsilon": [1.0, 5.0], "descent_steps": [1, 3]},
    "fig3b": {"sigma": 0.2, "records": 6, "records_per_request": [3, 6]},
    "fig3c": {"sigma": [0.1, 0.3], "records": 6},
    "fig4": {"sigma": 0.2, "epsilon": [1.0, 5.0], "records": [1, 6]},
    "fig5a": {"sigma": 0.2, "epsilon": [1.0], "records": [1, 6]},
    "batch_sizes": {"sigma": 0.2, "epsilon": [1.0, 5.0], "records": 3, "batch_size": [7, 16], "epochs": 3},
}


def plan(data: PreparedData, experiment: str, *, trials: int = 4, **changes: Any) -> ExperimentPlan:
    settings = settings_of("smoke", **{"trials": trials, "regularisation": 1e-3} | changes)
    return make(experiment, settings, sweep_of("smoke", experiment, **SWEEPS[experiment]), data.summary())


def run_all(whole: ExperimentPlan, data: PreparedData, directory: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    directory.mkdir(exist_ok=True)
    rows, curves = [], []
    for name in experiment_called(whole.runs[0].experiment).mechanisms:
        mechanism, learned = MECHANISMS[name], directory / f"{name}.safetensors"
        if mechanism.learning:
            jobs.learn(mechanism, whole, data, learned)
        files = directory / f"{name}.parquet", directory / f"{name}-curves.parquet"
        if isinstance(mechanism, Refit):
            jobs.refit(mechanism, whole, data, *files)
        else:
            jobs.unlearn(mechanism, whole, data, learned if mechanism.learning else None, *files)
        rows.append(read_table(files[0], RUN_ROWS))
        curves.append(read_table(files[1], CURVE_ROWS))
    return pd.concat(rows), pd.concat(curves)


@pytest.mark.parametrize("experiment", ["fig3a", "fig3b", "fig3c", "fig4", "fig5a", "batch_sizes"])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_run_request_and_trial_has_one_record(
    experiment: str, classes: int, small_data, three_classes, tmp_path
) -> None:
    data = small_data if classes == 2 else three_classes
    whole = plan(data, experiment)
    records, curves = run_all(whole, data, tmp_path)
    assert whole.constants.d == (6 if classes == 2 else 18)
    expected = {
        (whole.key(run), number + 1, trial)
        for run in whole.runs
        for number in range(len(run.requests))
        for trial in range(4)
    }
    found = list(zip(records["run_key"], records["request"], records["trial"], strict=True))
    assert len(found) == len(expected)
    assert set(found) == expected
    assert records["accuracy"].between(0, 1).all()
    assert set(curves["run_key"]) == {whole.key(run) for run in whole.runs if run.mechanism != "scikit-learn"}
    assert not list(tmp_path.glob("*.checkpoint"))


def test_the_last_point_of_a_learning_curve_is_the_records_mean(small_data, tmp_path) -> None:
    for experiment in ("fig3a", "fig3b"):
        records, curves = run_all(plan(small_data, experiment), small_data, tmp_path / experiment)
        last = curves.sort_values("step").groupby("run_key").last()
        final = records[records["request"] == records.groupby("run_key")["request"].transform("max")]
        final = final[final["mechanism"] != "scikit-learn"]  # It has no curve.
        means = final.groupby("run_key")["accuracy"].mean()
        assert last["accuracy_mean"].to_dict() == pytest.approx(means.to_dict())
        steps = final.groupby("run_key")[["learning_steps", "accumulated_steps"]].first().sum(axis=1)
        assert last["step"].to_dict() == steps.to_dict()


def test_the_same_inputs_give_the_same_files(small_data, tmp_path) -> None:
    whole = plan(small_data, "fig3b")
    volatile = ["seconds", "code_version"]
    first, _ = run_all(whole, small_data, tmp_path / "first")
    second, _ = run_all(whole, small_data, tmp_path / "second")
    pd.testing.assert_frame_equal(first.drop(columns=volatile), second.drop(columns=volatile), check_exact=True)
    files = [tmp_path / name / "langevin.safetensors" for name in ("first", "second")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_another_seed_gives_other_trials(small_data, tmp_path) -> None:
    first, _ = run_all(plan(small_data, "fig3c"), small_data, tmp_path / "first")
    second, _ = run_all(plan(small_data, "fig3c", seed=7), small_data, tmp_path / "second")
    noisy = first["sigma"] > 0
    assert (first["accuracy"][noisy].to_numpy() != second["accuracy"][noisy].to_numpy()).mean() > 0.5


def test_unlearned_trials_are_distributed_like_retrained_ones(small_data, tmp_path) -> None:
    records, _ = run_all(plan(small_data, "fig3c", trials=3000), small_data, tmp_path)
    for sigma in SWEEPS["fig3c"]["sigma"]:
        at_sigma = records[records["sigma"] == sigma]
        retrained = at_sigma.loc[at_sigma["mechanism"] == "retraining", "accuracy"]
        # By the paper's accountant: the others take fewer steps, so they differ more, within what they certify.
        unlearned = at_sigma.loc[at_sigma["accountant"] == "lsi", "accuracy"]
        assert len(unlearned) == len(retrained) == 3000
        assert stats.ks_2samp(unlearned, retrained, method="asymp").pvalue > FALSE_ALARM_RATE
        assert stats.ks_2samp(unlearned, retrained + 0.03, method="asymp").pvalue < FALSE_ALARM_RATE


def test_trials_of_descent_to_delete_differ_by_their_noise_alone(small_data, tmp_path) -> None:
    records, _ = run_all(plan(small_data, "fig3a", trials=40), small_data, tmp_path)
    secret_state = records.loc[records["variant"] == "secret-state"].groupby("run_key")["accuracy"].nunique()
    assert secret_state.max() > 3
    noiseless = records.loc[records["variant"] == "noiseless", "accuracy"]
    assert noiseless.min() == noiseless.max()
    assert len(noiseless) == 40


def test_learned_weights_of_another_plan_are_refused(small_data, tmp_path) -> None:
    jobs.learn(LANGEVIN, plan(small_data, "fig3c"), small_data, tmp_path / "batch_sizes")
    outputs = tmp_path / "records", tmp_path / "curves"
    with pytest.raises(DataError, match="was learned for another plan"):
        jobs.unlearn(LANGEVIN, plan(small_data, "fig4"), small_data, tmp_path / "batch_sizes", *outputs)
    longer = plan(small_data, "fig3c", learning_steps=500)
    with pytest.raises(DataError, match="was learned for another plan"):
        jobs.unlearn(LANGEVIN, longer, small_data, tmp_path / "batch_sizes", *outputs)
    (tmp_path / "batch_sizes").write_bytes(b"damaged")
    with pytest.raises(DataError, match="cannot be read as learned weights"):
        jobs.unlearn(LANGEVIN, plan(small_data, "fig3c"), small_data, tmp_path / "batch_sizes", *outputs)
    assert not any(path.exists() for path in outputs)


def test_a_mechanism_without_runs_in_the_plan_is_named(small_data, tmp_path) -> None:
    outputs = tmp_path / "records", tmp_path / "curves"
    with pytest.raises(DataError, match="the plan of fig3c has no runs of descent-to-delete"):
        jobs.unlearn(DESCENT_TO_DELETE, plan(small_data, "fig3c"), small_data, None, *outputs)


def test_only_what_learns_for_several_requests_has_a_job_of_learning(small_data, tmp_path) -> None:
    whole = plan(small_data, "fig3c")
    with pytest.raises(ParameterError, match="retraining does not learn in a job of its own"):
        jobs.learn(RETRAINING, whole, small_data, tmp_path / "batch_sizes")
    with pytest.raises(
        DataError, match="langevin starts from weights that `learn` wrote, but no such weights were given"
    ):
        jobs.unlearn(LANGEVIN, whole, small_data, None, tmp_path / "records", tmp_path / "curves")
    assert not list(tmp_path.iterdir())


def test_rows_carry_the_names_that_the_plan_gave(small_data, tmp_path) -> None:
    whole = plan(small_data, "fig3a")
    rows, _ = run_all(whole, small_data, tmp_path)
    names = ["method", "member", "line", "point"]
    found = rows.groupby("run_key")[names].agg(lambda values: "|".join(sorted(set(values))))
    expected = {whole.key(run): [getattr(run, name) for name in names] for run in whole.runs}
    assert {key: list(row) for key, row in zip(found.index, found.to_numpy(), strict=True)} == expected


def test_data_of_another_plan_is_refused(small_data, tmp_path) -> None:
    whole = plan(small_data, "fig3c")
    changed = whole.model_copy(update={"constants": whole.constants.model_copy(update={"data_sha256": "1" * 64})})
    with pytest.raises(DataError, match="the plan was made for 111111111111; make the plan again"):
        jobs.learn(LANGEVIN, changed, small_data, tmp_path / "batch_sizes")


def test_asking_for_an_absent_gpu_says_so(monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ParameterError, match="torch sees no CUDA device"):
        pick_device("cuda")
    assert pick_device("auto").type == "cpu"


def test_accuracies_do_not_depend_on_the_runs_beside_them(small_data, tmp_path) -> None:
    whole = plan(small_data, "fig3c", dtype="float64")
    alone = whole.model_copy(update={"runs": tuple(run for run in whole.runs if run.sigma == 0.3)})
    records, _ = run_all(whole, small_data, tmp_path / "all")
    jobs.learn(LANGEVIN, alone, small_data, tmp_path / "l")
    jobs.unlearn(LANGEVIN, alone, small_data, tmp_path / "l", tmp_path / "records", tmp_path / "curves")
    chosen = records[(records["sigma"] == 0.3) & (records["mechanism"] == "langevin")]
    beside = read_table(tmp_path / "records", RUN_ROWS)
    assert np.array_equal(chosen["accuracy"], beside["accuracy"])
    assert (chosen["run_key"].to_numpy() == beside["run_key"].to_numpy()).all()


def test_runs_whose_guarantee_float32_would_take_are_computed_in_float64(small_data, tmp_path, monkeypatch) -> None:
    """A job is in one type: Descent-to-Delete in float64 for its longest request, all else in float32 here."""
    monkeypatch.setitem(SWEEPS, "fig3a", SWEEPS["fig3a"] | {"descent_steps": [1, MANY_STEPS]})
    whole = plan(small_data, "fig3a", start=0.0)
    assert {run.dtype for run in whole.of("descent-to-delete")} == {"float64"}
    assert {run.dtype for run in whole.runs if run.mechanism != "descent-to-delete"} == {"float32"}
    records, _ = run_all(whole, small_data, tmp_path)
    assert set(records[records["mechanism"] == "descent-to-delete"]["dtype"]) == {"float64"}
    assert set(records[records["mechanism"] != "descent-to-delete"]["dtype"]) == {"float32"}
    for run in (*whole.of("langevin"), *whole.of("descent-to-delete")):
        stated = certificate.of(run, key=whole.key(run), noise_source="seed")
        assert any(f"a step in {run.dtype} may end up to" in assumption.by for assumption in stated.assumptions)
        certificate.verify(stated)
        assert run.requests[0].epsilon <= run.epsilon_target * (1 + 1e-12)
    with pytest.raises(AssumptionError, match="with rounding, epsilon is"):
        certificate.of(run.model_copy(update={"dtype": "float32"}), key="a run", noise_source="seed")


def test_noise_that_float64_would_swallow_is_refused_before_any_step(small_data, monkeypatch) -> None:
    monkeypatch.setitem(SWEEPS, "fig3a", SWEEPS["fig3a"] | {"descent_steps": [1, 3 * MANY_STEPS]})
    with pytest.raises(AssumptionError, match=r"rounding in float64 would take more than 10% of .* is enough"):
        plan(small_data, "fig3a")
