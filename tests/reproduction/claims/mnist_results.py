"""Results that look like a run of the preset mnist: real plans of two accountants, drawn accuracies."""

import zlib
from pathlib import Path

import numpy as np

from certified_unlearning.files import write_json
from certified_unlearning.mechanisms.run import Run
from certified_unlearning.mechanisms.settings import Settings
from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.papers.langevin_unlearning.sweeps import Figure3a, Figure3b, Figure3c, Figure4, Figure5a
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.tables import Tables
from tests.support.planning import make
from tests.support.rating import MAJORITY, rated

SETTINGS = Settings(
    dataset="mnist-3-vs-8",
    features=None,
    trials=100,
    seed=123,
    regularisation=1e-6,
    delta="1/n",
    adjacency="replace",
    smoothness="bound",
    step_size="1/L",
    radius=None,
    start=1000.0,
    learning_steps="learned",
    minimum_steps=1,
    dtype="float32",
    device="cpu",
    accountants=["lsi", "shifted"],
)
DATA = {
    "name": "mnist-3-vs-8",
    "features": "pixels",
    "preprocessing": "none",
    "n": 11982,
    "n_test": 1984,
    "d": 784,
    "classes": {"train": {"-1": 5851, "+1": 6131}, "test": {"-1": 974, "+1": 1010}},
    "largest_eigenvalue": 0.7308741769,
    "sha256": "0" * 64,
}
SWEEPS = {
    "fig3a": Figure3a(epsilon=[0.05, 0.1, 0.5, 1.0, 2.0, 5.0], unlearning_steps=1, descent_steps=[1, 2, 5]),
    "fig3b": Figure3b(epsilon=1.0, sigma=0.03, records=20, records_per_request=[5, 10]),
    "fig3c": Figure3c(epsilon=1.0, sigma=[0.05, 0.1, 0.2, 0.5, 1.0], records=100),
    "fig4": Figure4(epsilon=[0.5, 1.0, 2.0, 5.0], sigma=0.03, records=[1, 50, 100]),
    "fig5a": Figure5a(epsilon=[1.0], sigma=0.03, records=[1, 100, 1000]),
}


def accuracies(run: Run, trials: int) -> np.ndarray:
    """Shares of the test records around a mean that only the noise decides; scikit-learn has one for all trials."""
    noise = run.sigma if run.mechanism == "descent-to-delete" else 9.2 * run.sigma
    mean = 0.5 + 0.44 / (1 + (noise / 2) ** 1.5)
    seed = zlib.crc32(f"{run.mechanism} {run.variant} {run.sigma} {run.epsilon_target} {run.requests}".encode())
    drawn = np.random.default_rng(seed).normal(mean, 0.003, 1 if run.mechanism == "scikit-learn" else trials)
    return np.round(drawn * DATA["n_test"]) / DATA["n_test"]


def write_results(results: Path, preset: str, data: dict = DATA, settings: Settings = SETTINGS) -> Evidence:
    """Write plans and rows as the pipeline does."""
    layout = Layout(results, preset)
    write_json(layout.summary, data)
    for experiment, sweep in SWEEPS.items():
        plan = make(experiment, settings, sweep, data, preset_name=preset)
        plan.write(layout.plan(PAPER.name, experiment))
        for mechanism in dict.fromkeys(run.mechanism for run in plan.runs):
            tables = Tables(plan, "cpu", MAJORITY)
            for run in plan.of(mechanism):
                tables.add_models([run], [rated(accuracies(run, settings.trials))] * len(run.requests), seconds=1.0)
            tables.write(
                layout.run_rows(PAPER.name, experiment, mechanism), layout.curves(PAPER.name, experiment, mechanism)
            )
    return Evidence.read(results, preset, PAPER)
