"""Records that look like a real run: the steps and noise scales of MNIST 3 vs 8, drawn accuracies."""

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.papers.langevin_unlearning import smoothness
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.rows import RUN_ROWS, read_table, write_table
from tests.reproduction.row_names import named

ACCOUNTANTS = ("lsi", "lsi-tight", "shifted")
EPSILON_3A = (0.05, 0.1, 0.5, 1.0, 2.0, 5.0)
SIGMA_3A = {
    "lsi": (0.187157, 0.0936968, 0.0189265, 0.00957769, 0.00489947, 0.00208236),
    "lsi-tight": (0.112954, 0.0609981, 0.0142973, 0.00764811, 0.00411803, 0.00185845),
    "shifted": (0.065975, 0.035999, 0.008613, 0.004647, 0.002525, 0.001156),
}
DESCENT_NOISE = {
    ("descent-to-delete N.1", 1): (36.8753, 18.4620, 3.7310, 1.8890, 0.9673, 0.4120),
    ("descent-to-delete N.1", 2): (17.3030, 8.6629, 1.7507, 0.8864, 0.4538, 0.1933),
    ("descent-to-delete N.1", 5): (5.6774, 2.8424, 0.5744, 0.2908, 0.1489, 0.0634),
    ("descent-to-delete shifted", 1): (0.5831, 0.3182, 0.0761, 0.0411, 0.0223, 0.0102),
    ("descent-to-delete shifted", 2): (0.5321, 0.2903, 0.0695, 0.0375, 0.0204, 0.0093),
    ("descent-to-delete shifted", 5): (0.4043, 0.2206, 0.0528, 0.0285, 0.0155, 0.0071),
}
SIGMA_3C = (0.05, 0.1, 0.2, 0.5, 1.0)
STEPS_3C = {
    "lsi": (1738, 1378, 1006, 472, 1),
    "lsi-tight": (1155, 895, 624, 229, 1),
    "shifted": (49, 34, 20, 1, 0),
}
INITIAL_3C = {
    "lsi": (27.993, 11.6713, 5.2543, 1.9622, 0.9579),
    "lsi-tight": (26.5971, 10.7027, 4.6127, 1.6117, 0.7437),
    "shifted": (15.2475, 6.3125, 2.7643, 0.9707, 0.4458),
}
EPSILON_4 = (0.5, 1.0, 2.0, 5.0)
STEPS_4 = {
    "lsi": {1: (0, 0, 0, 0), 50: (3799, 1644, 705, 222), 100: (4461, 1997, 903, 327)},
    "lsi-tight": {1: (0, 0, 0, 0), 50: (2263, 1087, 512, 178), 100: (2693, 1342, 670, 271)},
    "shifted": {1: (0, 0, 0, 0), 50: (58, 45, 32, 16), 100: (73, 60, 47, 30)},
}
SIZES_5A = (1, 10, 50, 100, 500, 1000)
STREAMS_3B = {
    "lsi": {
        5: (
            *(354, 715, 789, 848, 906, 970, 1040, 1116, 1194, 1275),
            *(1358, 1440, 1524, 1607, 1691, 1774, 1857, 1941, 2023, 2107),
        ),
        10: (778, 1044, 1085, 1116, 1151, 1193, 1246, 1309, 1379, 1455),
        20: (1163, 1386, 1405, 1418, 1434),
    },
    "lsi-tight": {
        5: (138, 426, 471, 489, 499, 504, 507, 509, 511, 512, 512, 513, 513, 514, 514, 514, 514, 515, 515, 515),
        10: (458, 654, 689, 702, 708, 711, 713, 714, 715, 716),
        20: (739, 890, 916, 926, 930),
    },
    "shifted": {5: (0, 11, *[13] * 18), 10: (11, *[21] * 9), 20: (26, 31, 31, 31, 31)},
}
DESCENT_3B = {
    "descent-to-delete N.2": (123,) * 3 + (124,) * 18 + (125,) * 79,
    "descent-to-delete shifted": (31,) * 100,
}
STATIONARY = 9.2
"""Standard deviation of a model learned with sigma = 1, coordinate by coordinate."""

DEFAULTS = {
    "preset": "mnist", "dataset": "mnist-3-vs-8", "features": "pixels",
    "guarantee": "upper bound", "adjacency": "replace", "smoothness": "bound", "delta": 1 / 11982,
    "extra_delta": 0.0, "rounding_error": 0.0,
    "n": 11982, "d": 784, "strong_convexity": 0.011982, "smoothness_constant": 0.261982,
    "lipschitz": 1.0, "step_size": 1 / 0.261982, "learning_steps": 400, "seed": 0, "seconds": 0.1,
    "device": "cpu", "dtype": "float32", "data_sha256": "0" * 64, "code_version": "0.1.0", "mu": None,
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
        accountant: str,
        noise: float,
        steps: tuple[int, ...],
        size: int,
        **constants,
    ) -> None:
        key = f"{experiment}-{mechanism}-{variant}-{accountant}-{steps}-{size}-{constants}"
        for request, accumulated in enumerate(np.cumsum(steps), start=1):
            mean = accuracy_at(noise)
            spread = 0.002 + 0.25 * (mean - 0.5) * (0.97 - mean)
            drawn = 1 if mechanism == "scikit-learn" else self.trials
            accuracies = np.clip(self.random.normal(mean, spread, drawn), 0, 1)
            for trial, accuracy in enumerate(np.repeat(accuracies, self.trials // drawn)):
                self.rows.append({
                    **DEFAULTS, "run_key": key, "experiment": experiment,
                    "mechanism": mechanism, "variant": variant, "accountant": accountant,
                    "unlearning_steps": steps[request - 1], "accumulated_steps": int(accumulated),
                    "records_per_request": size, "request": request, "records_removed": size * request,
                    "trial": trial, "accuracy": accuracy, "balanced_accuracy": accuracy, "auc": accuracy,
                    "log_loss": 1.2 - accuracy, "majority": 0.506, **constants,
                })  # fmt: skip

    def langevin(self, experiment: str, accountant: str, steps: tuple[int, ...], size: int, **constants) -> None:
        variant = "least-sigma" if experiment == "fig3a" else "least-steps"
        noise = STATIONARY * constants["sigma"]
        self.run(experiment, "langevin", variant, accountant, noise, steps, size, **constants)

    def retraining(self, experiment: str, accountant: str, sigma: float, size: int, **constants) -> None:
        variant = "noisy" if sigma else "noiseless"
        constants = {"sigma": sigma, "epsilon": 0.0, "mu": 0.0, **constants}
        self.run(experiment, "retraining", variant, accountant, STATIONARY * sigma, (0,), size, **constants)

    def scikit_learn(self, experiment: str, size: int, **constants) -> None:
        """One value for all trials; nothing is guaranteed of a warm start."""
        for variant, epsilon, guarantee in (("from zero", 0.0, "exact"), ("warm start", None, "none")):
            stated = {"epsilon": epsilon, "mu": epsilon, "guarantee": guarantee, "rounding_error": None}
            own = {"sigma": 0.0, "learning_steps": 0, **stated, **constants}
            self.run(experiment, "scikit-learn", variant, "none", 0.0, (0,), size, **own)

    def fig3a(self) -> None:
        for number, epsilon in enumerate(EPSILON_3A):
            for accountant, sigmas in SIGMA_3A.items():
                target = {"epsilon_target": epsilon, "epsilon": epsilon}
                self.langevin("fig3a", accountant, (1,), 1, sigma=sigmas[number], **target)
                self.retraining("fig3a", accountant, sigmas[number], 1, epsilon_target=epsilon)
            for (accountant, steps), noises in DESCENT_NOISE.items():
                descent = ("fig3a", "descent-to-delete", "secret-state", accountant)
                self.run(*descent, noises[number], (steps,), 1, sigma=noises[number], **target)
        self.retraining("fig3a", "none", 0.0, 1, epsilon_target=5.0)
        self.scikit_learn("fig3a", 1, epsilon_target=5.0)

    def fig3b(self) -> None:
        for accountant, streams in STREAMS_3B.items():
            for size, steps in streams.items():
                self.langevin("fig3b", accountant, steps, size, sigma=0.03)
        for accountant, steps in DESCENT_3B.items():
            self.run("fig3b", "descent-to-delete", "published-state", accountant, 0.1, steps, 1, sigma=1.28e-4)
        for sigma in (0.03, 0.0):
            self.retraining("fig3b", "none", sigma, 100)
        self.scikit_learn("fig3b", 100)

    def fig3c(self) -> None:
        for number, sigma in enumerate(SIGMA_3C):
            for accountant, steps in STEPS_3C.items():
                initial = INITIAL_3C[accountant][number]
                self.langevin("fig3c", accountant, (steps[number],), 100, sigma=sigma, initial_epsilon=initial)
            self.retraining("fig3c", "none", sigma, 100)
        self.retraining("fig3c", "none", 0.0, 100)
        self.scikit_learn("fig3c", 100)

    def fig4(self) -> None:
        for size in (1, 50, 100):
            for accountant, table in STEPS_4.items():
                for epsilon, steps in zip(EPSILON_4, table[size], strict=True):
                    target = {"epsilon_target": epsilon, "epsilon": epsilon}
                    self.langevin("fig4", accountant, (steps,), size, sigma=0.03, **target)
            for sigma in (0.03, 0.0):
                self.retraining("fig4", "none", sigma, size, epsilon_target=5.0)
            self.scikit_learn("fig4", size, epsilon_target=5.0)

    def fig5a(self) -> None:
        for size in SIZES_5A:
            for accountant in ACCOUNTANTS:
                for number, epsilon in enumerate(EPSILON_4):
                    steps = STEPS_4[accountant][100][number] * size // 100
                    target = {"epsilon_target": epsilon, "epsilon": epsilon}
                    self.langevin("fig5a", accountant, (steps,), size, sigma=0.03, **target)
            for sigma in (0.03, 0.0):
                self.retraining("fig5a", "none", sigma, size, epsilon_target=5.0)
            self.scikit_learn("fig5a", size, epsilon_target=5.0)


def simulate(trials: int, path: Path) -> pd.DataFrame:
    """Write the records of all experiments and read them back."""
    writer = Writer(trials)
    for experiment in ("fig3a", "fig3b", "fig3c", "fig4", "fig5a"):
        getattr(writer, experiment)()
    write_table(path, named(pd.DataFrame(writer.rows)), RUN_ROWS)
    return read_table(path, RUN_ROWS)


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], pd.DataFrame]:
    directory = tmp_path_factory.mktemp("records")
    return functools.cache(lambda trials: simulate(trials, directory / f"{trials}.parquet"))


@pytest.fixture(scope="session", params=[5, 100], ids=lambda trials: f"{trials}-trials")
def records(request: pytest.FixtureRequest, simulated: Callable[[int], pd.DataFrame]) -> pd.DataFrame:
    return simulated(request.param)


@pytest.fixture(scope="session")
def bounds() -> dict[str, pd.DataFrame]:
    """Tables of bounds with the right plateaus and slopes, and exact zeros where epsilon underflows."""
    return {"recuperation": recuperation(), "dynamics1": dynamics1(), "dynamics2": dynamics2()}


def bound_rows(experiment: str, curves: dict[tuple[str, float | None, float | None], np.ndarray], steps: np.ndarray):
    constants = {
        "experiment": experiment, "guarantee": "upper bound", "source": "paper", "n": 11982,
        "smoothness_constant": 0.261982, "lipschitz": 1.0, "step_size": 3.8, "sigma": 0.03, "records_removed": 100,
        "delta": 1 / 11982, "mu": None,
    }  # fmt: skip
    value = "epsilon" if experiment == "recuperation" else "renyi"
    empty = {"epsilon": None, "renyi": None}
    frames = [
        pd.DataFrame({"bound": bound, "alpha": alpha, "strong_convexity": curvature, "steps": steps})
        .assign(**constants, **empty)
        .assign(**{value: values})
        for (bound, alpha, curvature), values in curves.items()
    ]
    return pd.concat([frame.astype({"epsilon": float, "renyi": float}) for frame in frames], ignore_index=True)


def recuperation() -> pd.DataFrame:
    steps = np.unique(np.round(np.geomspace(1, 5000, 100)))
    steps = np.array([0, *steps], dtype=int)
    exact = np.where(steps < 400, 30.8 * 0.9543**steps, 0.0)
    curves = {"lsi": 57 / (1 + steps / 34), "lsi-tight": 56 / (1 + steps / 24), "shifted": exact}
    curves["exact on quadratics"] = exact
    return bound_rows("recuperation", {(bound, None, 0.012): values for bound, values in curves.items()}, steps)


def dynamics1() -> pd.DataFrame:
    steps = np.arange(0, 501, 5)
    curves: dict[tuple[str, float | None, float | None], np.ndarray] = {
        ("composition", alpha, None): 8e-6 * alpha * steps for alpha in (30.0, 20.0, 10.0)
    }
    for alpha, curvature in ((30.0, 1.0), (20.0, 1.0), (10.0, 1.0), (10.0, 2.0), (10.0, 4.0)):
        curves["corollary-1", alpha, curvature] = 0.0016 * alpha / curvature * (1 - np.exp(-0.01 * curvature * steps))
    return bound_rows("dynamics1", curves, steps)


def dynamics2() -> pd.DataFrame:
    steps = np.arange(0, 301, 3)
    curves = {}
    for alpha in (10.0, 20.0, 30.0):
        curves["corollary-2", alpha, 1.0] = 0.000808081 * alpha * (1 - 0.98**steps)
        curves["theorem-3", alpha, 1.0] = 0.0004 * alpha * (1 - 0.98**steps)
        curves["exact", alpha, 1.0] = 0.000792 * alpha * (1 - 0.99**steps)
        curves["composition", alpha, 1.0] = 8e-6 * alpha * steps
    return bound_rows("dynamics2", curves, steps)


@pytest.fixture(scope="session")
def streams() -> pd.DataFrame:
    """Streams under three rules for L: under the smaller ones all steps are fewer in proportion."""
    rows = []
    for rule, constant in {"bound": 0.261982, "spectral": 0.1947005, "spectral-with-margin": 0.196787}.items():
        planned = [
            ("langevin", "least-steps", accountant, size, 0.03, steps)
            for accountant, sizes in STREAMS_3B.items()
            for size, steps in sizes.items()
        ] + [
            ("descent-to-delete", "published-state", accountant, 1, 1.28e-4, steps)
            for accountant, steps in DESCENT_3B.items()
        ]
        for mechanism, variant, accountant, size, sigma, steps in planned:
            fewer = [round(count * constant / 0.261982) for count in steps]
            for request, accumulated in enumerate(np.cumsum(fewer), start=1):
                rows.append({
                    **{name: DEFAULTS[name] for name in smoothness.ROWS.names if name in DEFAULTS},
                    "experiment": "smoothness", "mechanism": mechanism, "variant": variant, "accountant": accountant,
                    "guarantee": "heuristic" if rule == "spectral" else "upper bound", "smoothness": rule,
                    "smoothness_constant": constant, "step_size": 1 / constant, "sigma": sigma,
                    "unlearning_steps": fewer[request - 1], "accumulated_steps": int(accumulated),
                    "records_per_request": size, "request": request, "records_removed": size * request,
                })  # fmt: skip
    return named(pd.DataFrame(rows)).drop(columns="point")


@pytest.fixture(scope="session")
def style() -> FigureStyle:
    return FigureStyle(
        context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=200
    )  # fmt: skip
