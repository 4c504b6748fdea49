"""Records that look like a real run: steps and noise scales of MNIST 3 vs 8, drawn accuracies."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.parameters import FigureStyle
from certified_unlearning.results import RECORD_SCHEMA, read_table, write_table

EPSILON_3A = (0.05, 0.1, 0.5, 1.0, 2.0, 5.0)
SIGMA_3A = (0.187157, 0.0936968, 0.0189265, 0.00957769, 0.00489947, 0.00208236)
DESCENT_NOISE = {
    1: (36.8753, 18.4620, 3.7310, 1.8890, 0.9673, 0.4120),
    2: (17.3030, 8.6629, 1.7507, 0.8864, 0.4538, 0.1933),
    5: (5.6774, 2.8424, 0.5744, 0.2908, 0.1489, 0.0634),
}
SIGMA_3C = (0.05, 0.1, 0.2, 0.5, 1.0)
STEPS_3C = (1738, 1378, 1006, 472, 1)
INITIAL_3C = (27.9930, 11.6713, 5.25431, 1.96221, 0.957852)
EPSILON_4 = (0.5, 1.0, 2.0, 5.0)
STEPS_4 = {1: (0, 0, 0, 0), 50: (2824, 1222, 524, 165), 100: (3315, 1485, 671, 243)}
STREAMS_3B = {20: (864, 1030, 1044, 1054, 1066), 10: (579, 776, 806, 830, 855, 887, 926, 973, 1025, 1082)}

DEFAULTS = {
    "preset": "mnist", "dataset": "mnist-3-vs-8", "features": "pixels", "accountant": "lsi",
    "guarantee": "upper bound", "adjacency": "replace", "smoothness": "bound", "delta": 1 / 11982,
    "extra_delta": 0.0, "n": 11982, "d": 784, "strong_convexity": 0.011982, "smoothness_constant": 0.261982,
    "lipschitz": 1.0, "step_size": 1 / 0.261982, "learning_steps": 400, "seed": 0, "seconds": 0.1,
    "device": "cpu", "dtype": "float32", "data_sha256": "0" * 64, "code_version": "0.1.0",
    "initial_epsilon": None, "sigma": 0.0, "epsilon_target": 1.0, "epsilon": 1.0,
}  # fmt: skip


def accuracy_at(noise: float) -> float:
    """A curve like the real one: 0.968 without noise, a coin's 0.5 with a lot of it."""
    return 0.5 + 0.468 / (1 + (noise / 2.0) ** 1.5)


class Writer:
    """Collects runs; each request of a run becomes one row per trial."""

    def __init__(self, trials: int) -> None:
        self.trials = trials
        self.random = np.random.default_rng(7)
        self.rows: list[dict[str, object]] = []

    def run(
        self,
        experiment: str,
        mechanism: str,
        variant: str,
        noise: float,
        steps: tuple[int, ...],
        size: int,
        **constants,
    ) -> None:
        key = f"{experiment}-{mechanism}-{variant}-{steps}-{size}-{constants}"
        for request, accumulated in enumerate(np.cumsum(steps), start=1):
            mean = accuracy_at(noise)
            spread = 0.002 + 0.25 * (mean - 0.5) * (0.97 - mean)
            accuracies = np.clip(self.random.normal(mean, spread, self.trials), 0, 1)
            for trial, accuracy in enumerate(accuracies):
                self.rows.append({
                    **DEFAULTS, "run_key": key, "experiment": experiment,
                    "mechanism": mechanism, "variant": variant,
                    "unlearning_steps": steps[request - 1], "accumulated_steps": int(accumulated),
                    "records_per_request": size, "request": request, "records_removed": size * request,
                    "trial": trial, "accuracy": accuracy, **constants,
                })  # fmt: skip

    def fig3a(self) -> None:
        for column, (epsilon, sigma) in enumerate(zip(EPSILON_3A, SIGMA_3A, strict=True)):
            target = {"epsilon_target": epsilon, "epsilon": epsilon}
            self.run("fig3a", "langevin", "least-sigma", 2 * sigma, (1,), 1, sigma=sigma, **target)
            for steps, noises in DESCENT_NOISE.items():
                noise = noises[column]
                self.run("fig3a", "descent-to-delete", "secret-state", noise, (steps,), 1, sigma=noise, **target)
            self.run("fig3a", "retraining", "noisy", 2 * sigma, (400,), 1, sigma=sigma, **target | {"epsilon": 0.0})
        self.run("fig3a", "retraining", "noiseless", 0.0, (400,), 1, epsilon_target=5.0, epsilon=0.0)

    def fig3b(self) -> None:
        for size, steps in (*STREAMS_3B.items(), (5, tuple(range(350, 1990, 82)))):
            self.run("fig3b", "langevin", "least-steps", 0.3, steps, size, sigma=0.03)
        descent = (90,) * 6 + (91,) * 70 + (92,) * 24
        self.run("fig3b", "descent-to-delete", "published-state", 0.1, descent, 1, sigma=1.56e-4)
        for variant, noise in (("noisy", 0.25), ("noiseless", 0.0)):
            self.run("fig3b", "retraining", variant, noise, (400,), 100, epsilon=0.0, sigma=0.1 * noise)

    def fig3c(self) -> None:
        for sigma, steps, initial in zip(SIGMA_3C, STEPS_3C, INITIAL_3C, strict=True):
            noise = 3 * sigma
            self.run(
                "fig3c", "langevin", "least-steps", noise, (steps,), 100, sigma=sigma, initial_epsilon=initial
            )  # fmt: skip
            self.run("fig3c", "retraining", "noisy", noise, (400,), 100, sigma=sigma, epsilon=0.0)
        self.run("fig3c", "retraining", "noiseless", 0.0, (400,), 100, epsilon=0.0)

    def fig4(self) -> None:
        for size, row in STEPS_4.items():
            for epsilon, steps in zip(EPSILON_4, row, strict=True):
                target = {"epsilon_target": epsilon, "epsilon": epsilon}
                self.run("fig4", "langevin", "least-steps", 0.3, (steps,), size, sigma=0.03, **target)
            self.run("fig4", "retraining", "noisy", 0.25, (400,), size, sigma=0.03, epsilon_target=5.0, epsilon=0.0)
            self.run("fig4", "retraining", "noiseless", 0.0, (400,), size, epsilon_target=5.0, epsilon=0.0)


def simulate(trials: int, path: Path) -> pd.DataFrame:
    """Write the records of all four experiments and read them back."""
    writer = Writer(trials)
    for experiment in ("fig3a", "fig3b", "fig3c", "fig4"):
        getattr(writer, experiment)()
    write_table(path, pd.DataFrame(writer.rows), RECORD_SCHEMA)
    return read_table(path, RECORD_SCHEMA)


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], pd.DataFrame]:
    directory = tmp_path_factory.mktemp("records")
    return lambda trials: simulate(trials, directory / f"{trials}.parquet")


@pytest.fixture(scope="session", params=[5, 100], ids=lambda trials: f"{trials}-trials")
def records(request: pytest.FixtureRequest, simulated: Callable[[int], pd.DataFrame]) -> pd.DataFrame:
    return simulated(request.param)


@pytest.fixture(scope="session")
def style() -> FigureStyle:
    return FigureStyle(
        context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=200
    )  # fmt: skip
