"""Measures of the guarantees in the results of runs: every epsilon is computed again from the constants in its row."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from certified_unlearning import accounting
from certified_unlearning.accounting import Problem, Schedule
from certified_unlearning.accounting.core.rounding import NORM_EXCESS, Rounding
from certified_unlearning.errors import UnlearningError
from certified_unlearning.reproduction.claims.evidence import Evidence, some
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

_GUARANTEE = [
    "guarantee",
    "epsilon",
    "epsilon_target",
    "delta",
    "sigma",
    "step_size",
    "learning_steps",
    "unlearning_steps",
    "mu",
]
_CONSTANTS = [
    "n",
    "d",
    "strong_convexity",
    "smoothness_constant",
    "lipschitz",
    "adjacency",
    "records_per_request",
    "rounding_error",
]
Row = dict[str, Any]
ROUNDING = 1e-12
"""Smaller deviations are treated as 0."""


@measure
def epsilon_errors(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return the relative deviation of each recorded epsilon from the epsilon that the constants in its row give.

    The result has one entry for each data set, mechanism and experiment: the worst deviation. If trials of one request
    differ in their epsilon, each is a separate guarantee, and each must be right. An epsilon must be stated if and only
    if something is guaranteed; otherwise, the deviation is infinite.
    """
    quantities: list[Quantity] = []
    for each in some(evidence):
        worst: dict[str, Quantity] = {}
        nothing = (each.records["guarantee"] == "none") & each.records["epsilon"].isna()
        for row, steps in _guarantees(each.records[~nothing]):
            name = f"{each.dataset}, {row['experiment']}, {row['mechanism']} ({row['accountant']})"
            deviation = _deviation(row, steps, name)
            if name not in worst or deviation.value > worst[name].value:
                worst[name] = deviation
        quantities += worst.values()
    return quantities


@measure
def epsilon_over_target(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return the largest ratio of a recorded epsilon to its target, for each data set and experiment."""
    quantities = []
    for each in some(evidence):
        for experiment, rows in each.records.groupby("experiment"):
            ratios = rows["epsilon"] / rows["epsilon_target"]
            quantities.append(Quantity(float(ratios.max()), f"{each.dataset}, {experiment}"))
    return quantities


@measure
def accuracy_off_grid(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return the largest distance of ``accuracy * n_test`` from a whole number, for each data set."""
    quantities = []
    for each in some(evidence):
        counts = each.records["accuracy"] * each.data["n_test"]
        distances = (counts - counts.round()).abs()
        worst = each.records.loc[distances.idxmax()]
        detail = f"{each.dataset}, {worst['experiment']}, {worst['mechanism']}, trial {worst['trial']}"
        quantities.append(Quantity(float(distances.max()), f"{detail}, accuracy {worst['accuracy']:.7g}"))
    return quantities


def _guarantees(records: pd.DataFrame) -> Iterator[tuple[Row, list[int]]]:
    """Yield each distinct guarantee in the results, together with the steps of all requests of the same run."""
    columns = ["run_key", "request", "experiment", "mechanism", "accountant", *_GUARANTEE, *_CONSTANTS]
    for _, run in records[columns].drop_duplicates().groupby("run_key", sort=False):
        steps = run.drop_duplicates("request").sort_values("request")["unlearning_steps"].tolist()
        for row in run.to_dict("records"):
            yield {str(key): value for key, value in row.items()}, steps


def _deviation(row: Row, steps: list[int], name: str) -> Quantity:
    if row["guarantee"] == "none" or pd.isna(row["epsilon"]):
        return Quantity(math.inf, f"{name}, {row['guarantee']}, epsilon = {row['epsilon']:.7g}")
    try:
        recomputed = _epsilon(row, steps)
    except UnlearningError as error:
        return Quantity(math.inf, f"{name}, epsilon = {row['epsilon']:.7g}: {error}")
    size = abs(row["epsilon"] - recomputed) / (recomputed or 1)
    if size > ROUNDING:
        name += f", epsilon = {row['epsilon']:.7g}, but its constants give {recomputed:.7g}"
    return Quantity(size, name)


def _epsilon(row: Row, steps: list[int]) -> float:
    """Return the epsilon after a row's request, from the row's constants and the steps of all requests."""
    problem = Problem(
        n=row["n"],
        strong_convexity=row["strong_convexity"],
        smoothness=row["smoothness_constant"],
        lipschitz=row["lipschitz"],
        step_size=row["step_size"],
        adjacency=row["adjacency"],
        rounding=Rounding(
            fixed=0.0 if pd.isna(row["rounding_error"]) else row["rounding_error"], norm_excess=NORM_EXCESS
        ),
    )
    sigma, delta = row["sigma"], row["delta"]
    match row["mechanism"], row["accountant"]:
        case "retraining" | "scikit-learn", _:
            return 0.0
        case "langevin", accountant:
            schedule = Schedule(
                sigma, row["records_per_request"], tuple(steps[: row["request"]]), learning_steps=row["learning_steps"]
            )
            return accounting.unlearning_epsilon(problem, schedule, delta=delta, accountant=accountant)
        case _, "descent-to-delete N.1":
            return accounting.secret_state_epsilon(problem, sigma=sigma, delta=delta, steps=row["unlearning_steps"])
        case _, "descent-to-delete N.2":
            return accounting.published_state_epsilon(
                problem, sigma=sigma, delta=delta, dimension=row["d"], steps_per_request=steps
            )
    return accounting.epsilon_from_mu(row["mu"], delta)
