"""Mini-batches through the pipeline: what the job runs is what the plan says, record by record."""

import numpy as np
import pytest
import torch

from certified_unlearning import certificate
from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.data.requests import draw_removals
from certified_unlearning.engine import descent
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.minibatch import CyclicObjective, dealt_order
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.batch import PlannedBatch
from certified_unlearning.mechanisms.minibatch_langevin import MINIBATCH_LANGEVIN
from certified_unlearning.mechanisms.run import ExperimentPlan
from certified_unlearning.papers.noisy_sgd.figures import draw_batch_sizes
from certified_unlearning.reproduction import jobs
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.rows import RUN_ROWS, read_table
from certified_unlearning.reproduction.summaries import summarise
from certified_unlearning.reproduction.tables import Tables
from tests.support.planning import make, settings_of, sweep_of
from tests.support.rating import MAJORITY, rated

TRIALS = 5


@pytest.fixture(scope="module")
def data() -> PreparedData:
    draw = np.random.default_rng(3)
    rows = draw.standard_normal((150, 4)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.where(rows[:, 0] + 0.2 * draw.standard_normal(150) > 0, 1, -1).astype(np.int8)
    return PreparedData("small", "four numbers", rows[:100], labels[:100], rows[100:], labels[100:], "none")


def plan(data: PreparedData, **changes: object) -> ExperimentPlan:
    settings = settings_of("smoke", trials=TRIALS, regularisation=1e-3)
    asked = {"batch_size": [7, 100], "epsilon": [1.0], "sigma": 0.1, "records": 3, "epochs": 4} | changes
    return make("batch_sizes", settings, sweep_of("smoke", "batch_sizes", **asked), data.summary())


def test_the_job_runs_what_the_plan_says(data, tmp_path):
    whole = plan(data)
    files = tmp_path / "rows.parquet", tmp_path / "curves.parquet"
    jobs.unlearn(MINIBATCH_LANGEVIN, whole, data, None, *files)
    found = read_table(files[0], RUN_ROWS)
    settings = whole.settings
    removals = draw_removals(data, records=3, adjacency=settings.adjacency, seed=settings.seed)
    order = dealt_order(100, address(settings.seed, settings.dataset, "deal"))
    tested = torch.tensor(data.test_features, dtype=torch.float64)
    for run in whole.of("minibatch-langevin"):
        weights = torch.zeros(TRIALS, 4, dtype=torch.float64)
        batch = PlannedBatch((run,), TRIALS, settings)
        for phase, removed in zip(MINIBATCH_LANGEVIN.phases(batch, [[]]), (0, 3), strict=True):
            rows, labels = removals.apply(data.train_features, data.train_labels, removed)
            signed = torch.tensor((-labels[:, None] * rows)[order], dtype=torch.float64)
            loss = CyclicObjective(
                signed, torch.zeros(100), classes=2, batch_size=run.cycle.batch_size,
                strong_convexity=run.constants.strong_convexity,
            )  # fmt: skip
            alone = [descent.DescentPhase(0, phase.steps, phase.sigma, phase.keys, place=phase.place)]
            weights = descent.run(
                loss, weights, alone, step_size=run.step_size, measure=lambda each: each[:, 0]
            ).weights
        right = ((weights @ tested.T >= 0).numpy() == (data.test_labels > 0)).mean(axis=1)
        rows_of_run = found[found["run_key"] == whole.key(run)].sort_values("trial")
        np.testing.assert_allclose(rows_of_run["accuracy"], right, atol=1e-12)
        assert (rows_of_run["unlearning_steps"] == run.requests[0].unlearning_steps).all()


def test_certificates_hold_and_name_the_cycle(data):
    whole = plan(data)
    for run in whole.of("minibatch-langevin"):
        stated = certificate.of(run, key=whole.key(run), noise_source="seed")
        certificate.verify(stated)
        assert stated.epsilon <= 1.0
        assert stated.epsilon == run.requests[0].epsilon
        assert stated.cycle.batch_size == run.cycle.batch_size
    small, large = whole.of("minibatch-langevin")
    assert small.requests[0].unlearning_steps > large.requests[0].unlearning_steps


def test_the_figure_shows_passes_of_what_is_swept_and_scikit_learn_as_levels_of_accuracy(data, tmp_path):
    whole = plan(data, epsilon=[1.0, 2.0])
    assert [run.point for run in whole.of("scikit-learn")] == [
        "scikit-learn, from zero",
        "scikit-learn, warm start",
    ]
    draw, tables = np.random.default_rng(4), Tables(whole, "cpu", MAJORITY)
    for run in whole.runs:
        trials = 1 if run.mechanism == "scikit-learn" else TRIALS
        tables.add_models([run], [rated(draw.uniform(0.8, 0.9, trials))], seconds=1.0)
    tables.write(tmp_path / "rows.parquet", tmp_path / "curves.parquet")
    summary = summarise(read_table(tmp_path / "rows.parquet", RUN_ROWS), "batch_sizes")
    style = FigureStyle(
        context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=200
    )  # fmt: skip
    passes, accuracy = draw_batch_sizes(summary, style).axes
    by_label = {label: rows.sort_values("epsilon_target") for label, rows in summary.groupby("label")}
    swept = {label: rows for label, rows in by_label.items() if not label.startswith("scikit-learn")}
    assert len(by_label) == len(swept) + 2
    found = {line.get_label(): line for line in passes.get_lines()}
    assert found.keys() == swept.keys()
    for label, rows in swept.items():
        size = int(rows["member"].iloc[0].removeprefix("b = "))
        np.testing.assert_allclose(found[label].get_ydata(), rows["unlearning_steps"] * size / 100, rtol=1e-12)
    found = {line.get_label(): line for line in accuracy.get_lines()}
    assert found.keys() == by_label.keys()
    for label, rows in by_label.items():
        means = rows["accuracy_mean"].to_numpy()
        np.testing.assert_allclose(found[label].get_ydata(), means if label in swept else means.repeat(2), rtol=1e-12)
        assert (found[label].get_transform() == accuracy.get_yaxis_transform()) == (label not in swept)


def test_a_batch_of_more_records_than_there_are_is_refused(data):
    with pytest.raises(ParameterError, match="batch_size must be at most the number of records, 100, got 101"):
        plan(data, batch_size=[101])
