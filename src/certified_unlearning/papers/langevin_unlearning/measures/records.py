"""Measures of results: what the runs of a preset show, and whether they are the runs that the paper describes.

Only the accountant ``lsi`` and Descent-to-Delete's printed theorems represent the paper.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import pandas as pd

from certified_unlearning.papers.langevin_unlearning.constants import Dataset
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, of_features, results_on, some
from certified_unlearning.reproduction.claims.intervals import accuracy_gap, gap_in_deviations, mean_accuracy
from certified_unlearning.reproduction.claims.registry import changes, measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

Experiment = Literal["fig3a", "fig3b", "fig3c", "fig4", "fig5a"]
Features = Literal["ResNet-18 (ImageNet)"]
Row = dict[str, Any]
PRINTED = ("lsi", "descent-to-delete N.1", "descent-to-delete N.2")


@sweep("{facts}")
def dataset_fact(
    evidence: Sequence[Evidence],
    *,
    dataset: Dataset,
    facts: Literal["n", "n_test", "d", "largest_eigenvalue"],
    features: Features | None = None,
) -> float:
    """Return facts from the summary of the prepared data set."""
    data = of_features(results_on(evidence, dataset), features).data
    return float(data[facts])


@measure
def largest_eigenvalues(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return ``lambda_max(X'X / n)`` of every data set that has results."""
    return [Quantity(each.data["largest_eigenvalue"], each.dataset) for each in some(evidence)]


@measure
def recorded_constants(
    evidence: Sequence[Evidence],
    *,
    dataset: Dataset,
    constants: list[Literal["strong_convexity", "lipschitz", "delta"]],
) -> list[Quantity]:
    """Return the smallest and the largest value of constants over all runs on a data set."""
    records = results_on(evidence, dataset).records
    return [
        Quantity(value, f"{which} {name}")
        for name in constants
        for which, value in (("least", records[name].min()), ("greatest", records[name].max()))
    ]


@measure
def recorded_steps(
    evidence: Sequence[Evidence],
    *,
    dataset: Dataset,
    experiment: Experiment,
    sweep: Literal["sigma", "epsilon_target"],
    values: list[float],
    records: int,
) -> list[Quantity]:
    """Return the unlearning steps of the runs under Table 1's smoothness, one value for each value of a sweep."""
    source = results_on(evidence, dataset)
    if source.settings.smoothness != "bound":
        raise MissingEvidence(
            f"the runs of preset {source.preset} have smoothness {source.settings.smoothness}; "
            "run the preset with `smoothness: bound`"
        )
    rows = [row for row in _langevin(source, experiment) if row["records_removed"] == records]
    steps = {row[sweep]: row["unlearning_steps"] for row in rows}
    for value in values:
        if value not in steps:
            raise MissingEvidence(
                f"the records of {experiment} on {dataset} lack {sweep} = {value:g}; "
                f"{source.remedy} with this value in the sweep"
            )
    return [Quantity(steps[value], f"{sweep} = {value:g}") for value in values]


@measure
def changes_of_recorded_steps(
    evidence: Sequence[Evidence],
    *,
    experiment: Experiment,
    along: Literal["records_removed", "sigma", "epsilon_target"],
) -> list[Quantity]:
    """Return how the number of unlearning steps changes along a sweep of the runs, for every data set.

    All other constants are equal.
    """
    quantities = []
    for each in some(evidence):
        for name, rows in _lines(_langevin(each, experiment), along):
            steps = [Quantity(row["unlearning_steps"], f"{along} = {row[along]:g}") for row in rows]
            quantities += _named(f"{each.dataset}, {name}", changes(steps))
    return _some_of(quantities, f"two values of {along} in {experiment}")


@measure
def final_accuracies(
    evidence: Sequence[Evidence], *, dataset: Dataset, experiment: Experiment, features: Features | None = None
) -> list[Quantity]:
    """Return the mean accuracies after the last request, for Langevin unlearning and Descent-to-Delete.

    The accountants of Descent-to-Delete are only the printed ones.
    """
    source = of_features(results_on(evidence, dataset), features)
    rows = [row for row in _last_requests(source, experiment) if row["accountant"] in PRINTED]
    rows = [row for row in rows if row["mechanism"] != "retraining"]
    return [mean_accuracy(row, name=row["label"], comparisons=len(rows)) for row in rows]


@measure
def gaps_to_retraining(
    evidence: Sequence[Evidence], *, experiment: Experiment, dataset: Dataset | None = None
) -> list[Quantity]:
    """Return accuracy after unlearning minus accuracy after retraining with the same noise, on one or all data sets.

    This gap, like all gaps in this module, has the unit of `gap_in_deviations`.
    """
    pairs = []
    for each in _sources(evidence, dataset):
        rows = _last_requests(each, experiment)
        noisy = [row for row in rows if row["variant"] == "noisy" and row["accountant"] in ("lsi", "none")]
        retrained = {(row["sigma"], row["records_removed"]): row for row in noisy}
        for row in _langevin(each, experiment):
            name = f"{each.dataset}, {row['point']}"
            if (row["sigma"], row["records_removed"]) not in retrained:
                raise MissingEvidence(
                    f"the records of {experiment} lack the retraining that matches {name}; {each.remedy}"
                )
            pairs.append((name, row, retrained[row["sigma"], row["records_removed"]]))
    return _gaps(pairs)


@measure
def gaps_between_group_sizes(
    evidence: Sequence[Evidence], *, experiment: Experiment, dataset: Dataset | None = None
) -> list[Quantity]:
    """Return accuracy after removing S records minus accuracy at the smallest S, on one or all data sets."""
    pairs = []
    for each in _sources(evidence, dataset):
        for name, rows in _lines(_langevin(each, experiment), "records_removed"):
            pairs += [
                (
                    f"{each.dataset}, {name}: S = {row['records_removed']} against {rows[0]['records_removed']}",
                    row,
                    rows[0],
                )
                for row in rows[1:]
            ]
    return _gaps(_some_of(pairs, f"two group sizes in {experiment}"))


@measure
def gaps_to_descent(evidence: Sequence[Evidence], *, steps: int, dataset: Dataset | None = None) -> list[Quantity]:
    """Return Fig. 3a's accuracy of Langevin unlearning minus that of Descent-to-Delete with ``steps`` steps."""
    return _gaps(_beside_descent(evidence, steps, dataset))


@measure
def gains_over_descent(
    evidence: Sequence[Evidence], *, steps: int, least_epsilon: float, dataset: Dataset | None = None
) -> list[Quantity]:
    """Return the accuracy differences of `gaps_to_descent`, without division by a unit.

    There is one difference for every epsilon that is at least ``least_epsilon``.
    """
    pairs = [pair for pair in _beside_descent(evidence, steps, dataset) if pair[1]["epsilon_target"] >= least_epsilon]
    _some_of(pairs, f"an epsilon of at least {least_epsilon:g} in fig3a")
    return [accuracy_gap(row, other, name=name, comparisons=len(pairs)) for name, row, other in pairs]


@measure
def accuracy_change(
    evidence: Sequence[Evidence],
    *,
    experiment: Experiment,
    along: Literal["sigma", "epsilon_target"],
    dataset: Dataset | None = None,
) -> list[Quantity]:
    """Return accuracy at the largest value of a sweep minus accuracy at the smallest, on one or all data sets."""
    pairs = []
    for each in _sources(evidence, dataset):
        rows = sorted(_langevin(each, experiment), key=lambda row: float(row[along]))
        pairs.append((f"{each.dataset}, {along} = {rows[0][along]:g} to {rows[-1][along]:g}", rows[-1], rows[0]))
    return [accuracy_gap(row, other, name=name, comparisons=len(pairs)) for name, row, other in pairs]


def _sources(evidence: Sequence[Evidence], dataset: Dataset | None) -> Sequence[Evidence]:
    """Return the results on a data set, or all results."""
    return [results_on(evidence, dataset)] if dataset else some(evidence)


def _beside_descent(evidence: Sequence[Evidence], steps: int, dataset: Dataset | None) -> list[tuple[str, Row, Row]]:
    """Return each point of Langevin unlearning in Fig. 3a, paired with a point of Descent-to-Delete.

    The point of Descent-to-Delete has the same target epsilon and takes ``steps`` steps.
    """
    pairs = []
    for each in _sources(evidence, dataset):
        rows = _last_requests(each, "fig3a")
        descent = {
            row["epsilon_target"]: row
            for row in rows
            if row["accountant"] == "descent-to-delete N.1" and row["unlearning_steps"] == steps
        }
        pairs += [
            (f"{each.dataset}, {row['point']}", row, descent[row["epsilon_target"]])
            for row in _only_langevin(rows)
            if row["epsilon_target"] in descent
        ]
    return _some_of(pairs, f"Descent-to-Delete with I = {steps} in fig3a")


def _gaps(pairs: Sequence[tuple[str, Row, Row]]) -> list[Quantity]:
    return [gap_in_deviations(row, other, name=name, comparisons=len(pairs)) for name, row, other in pairs]


def _last_requests(evidence: Evidence, experiment: str) -> list[Row]:
    """Return the summary's rows after the last request of every run."""
    summary = evidence.summary(experiment)
    last: pd.DataFrame = summary[summary["request"] == summary.groupby("point")["request"].transform("max")]
    return [{str(name): value for name, value in row.items()} for row in last.to_dict("records")]


def _only_langevin(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["mechanism"] == "langevin" and row["accountant"] == "lsi"]


def _langevin(evidence: Evidence, experiment: str) -> list[Row]:
    rows = _only_langevin(_last_requests(evidence, experiment))
    if not rows:
        raise MissingEvidence(
            f"the records of {experiment} in preset {evidence.preset} contain no run of the accountant lsi; "
            "add lsi to the accountants of this preset, and run it"
        )
    return rows


def _lines(rows: Sequence[Row], along: str) -> Iterator[tuple[str, list[Row]]]:
    """Return the lines of a sweep: rows that differ only in ``along``, sorted by this column."""
    names = {"records_removed": "S", "sigma": "sigma", "epsilon_target": "epsilon"}
    others = [name for name in names if name != along]
    lines: dict[str, list[Row]] = {}
    for row in rows:
        lines.setdefault(", ".join(f"{names[name]} = {row[name]:g}" for name in others), []).append(row)
    for name, line in lines.items():
        yield name, sorted(line, key=lambda row: float(row[along]))


def _named(prefix: str, quantities: Sequence[Quantity]) -> list[Quantity]:
    return [each._replace(name=f"{prefix}: {each.name}") for each in quantities]


def _some_of(found: list[Any], what: str) -> list[Any]:
    if not found:
        raise MissingEvidence(f"the records contain nothing to compare; run a preset that has {what}")
    return found
