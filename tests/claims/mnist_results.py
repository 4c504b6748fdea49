"""Results that look like a run of the preset mnist: real plans of the accountant lsi, drawn accuracies."""

import zlib
from pathlib import Path

import numpy as np

from certified_unlearning.claims import Evidence
from certified_unlearning.experiments.model import Run
from certified_unlearning.experiments.plan import make_plan
from certified_unlearning.experiments.tables import Tables
from certified_unlearning.files import write_json
from certified_unlearning.parameters import Common, Figure3a, Figure3b, Figure3c, Figure4, Figure5a
from certified_unlearning.results import RECORD_SCHEMA, concatenate, write_table

SETTINGS = Common(
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
    "fig3a": Figure3a(
        accountants=["lsi"], epsilon=[0.05, 0.1, 0.5, 1.0, 2.0, 5.0], unlearning_steps=1, descent_steps=[1, 2, 5]
    ),
    "fig3b": Figure3b(accountants=["lsi"], epsilon=1.0, sigma=0.03, records=20, records_per_request=[5, 10]),
    "fig3c": Figure3c(accountants=["lsi", "shifted"], epsilon=1.0, sigma=[0.05, 0.1, 0.2, 0.5, 1.0], records=100),
    "fig4": Figure4(accountants=["lsi"], epsilon=[0.5, 1.0, 2.0, 5.0], sigma=0.03, records=[1, 50, 100]),
    "fig5a": Figure5a(accountants=["lsi"], epsilon=[1.0], sigma=0.03, records=[1, 100, 1000]),
}


def accuracies(run: Run, trials: int) -> np.ndarray:
    """Shares of the test records around a mean that only the noise decides."""
    noise = run.sigma if run.mechanism == "descent-to-delete" else 9.2 * run.sigma
    mean = 0.5 + 0.44 / (1 + (noise / 2) ** 1.5)
    seed = zlib.crc32(f"{run.mechanism} {run.variant} {run.sigma} {run.epsilon_target} {run.requests}".encode())
    drawn = np.random.default_rng(seed).normal(mean, 0.003, trials)
    return np.round(drawn * DATA["n_test"]) / DATA["n_test"]


def write_results(results: Path, preset: str, data: dict = DATA, settings: Common = SETTINGS) -> Evidence:
    """Write plans and records as the pipeline does."""
    directory = results / preset
    write_json(directory / "data.json", data)
    parts = []
    for experiment, sweep in SWEEPS.items():
        plan = make_plan(preset, settings, experiment, sweep, data)
        plan.write(directory / "plans" / f"{experiment}.json")
        tables = Tables(plan, "cpu")
        for run in plan.runs:
            tables.add_accuracies([run], [accuracies(run, settings.trials)] * len(run.requests), seconds=1.0)
        parts.append(directory / f"{experiment}.parquet")
        tables.write(parts[-1], directory / "curves.parquet")
    write_table(directory / "records.parquet", concatenate(parts, RECORD_SCHEMA), RECORD_SCHEMA)
    return Evidence.read(results, preset)
