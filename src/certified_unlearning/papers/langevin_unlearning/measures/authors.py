"""Measures that compare our runs with the trials that the authors stored.

``authors_mnist.json`` has a row for each of the authors' files that a claim uses. A row contains the name of the file,
the number of trials in the file, and their mean and sample standard deviation. The rows come from the values of the
trials, or from their mean and population standard deviation times ``sqrt(n / (n - 1))``.

The authors' README assigns files to figures: ``baseline/<unlearning steps>`` to Fig. 3a, ``paint_utility_epsilon/<S>``
to Fig. 4, ``paint_utility_s/<epsilon>`` to Fig. 5a. Two kinds of files are left out: those directly in ``baseline`` and
``paint_utility_s``, which are from older runs, and those for epsilon = 0.1, which is not in Fig. 4. For Fig. 5a, all
rows have epsilon = 1, like our runs.
"""

import json
import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, results_on
from certified_unlearning.reproduction.claims.intervals import ONE_POINT, accuracy_gap
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

Row = dict[str, Any]
Curve = Literal[
    "langevin", "retraining", "descent-to-delete, I = 1", "descent-to-delete, I = 2", "descent-to-delete, I = 5"
]
"""The curves of Fig. 3a."""
_SWEPT = {"epsilon_target": "epsilon", "records_removed": "S", "unlearning_steps": "I"}
"""The columns that distinguish the points of a curve, each with its symbol."""
_ACCOUNTANTS = ("lsi", "descent-to-delete N.1", "none")
"""The accountants of the paper. The accountant of retraining is ``none`` if all accountants need the same noise."""


@measure
def gaps_to_authors(
    evidence: Sequence[Evidence],
    *,
    dataset: Literal["mnist-3-vs-8"],
    experiment: Literal["fig3a", "fig4", "fig5a"],
    mechanism: Literal["langevin", "retraining", "descent-to-delete"],
    steps: int | None = None,
) -> list[Quantity]:
    """Return our mean accuracies minus the authors' at the points of a curve, the largest difference first.

    The unit is the largest difference that counts as explained: half the width of the difference's confidence interval,
    plus `ONE_POINT`. The interval covers the noise of both sides' trials. A value beyond 1 is therefore a difference of
    more than one percentage point that noise does not explain. If the true means are within one percentage point of
    each other, a claim has a value beyond 1 with probability at most `intervals.FALSE_ALARMS`.

    Args:
        evidence: The available results.
        dataset: The data set of the trials.
        experiment: The experiment of the figure.
        mechanism: The mechanism; ``retraining`` means retraining with noise.
        steps: The number ``I`` of unlearning steps of Descent-to-Delete.
    """
    source = results_on(evidence, dataset)
    theirs = [
        row
        for row in _stored_trials()
        if (row["experiment"], row["mechanism"], row.get("unlearning_steps")) == (experiment, mechanism, steps)
    ]
    ours = [
        {str(name): value for name, value in row.items()}
        for row in source.summary(experiment).to_dict("records")
        if row["mechanism"] == mechanism and row["accountant"] in _ACCOUNTANTS and row["variant"] != "noiseless"
    ]
    gaps = [_gap(ours, row, len(theirs), source) for row in theirs]
    return sorted(gaps, key=lambda gap: -abs(gap.value))


@measure
def authors_gains(*, better: Curve, worse: Curve, epsilon: list[float]) -> list[Quantity]:
    """Return how much more accurate one curve of Fig. 3a is than another, in the authors' own trials."""
    gains = []
    for each in epsilon:
        row, other = _of_curve(better, each), _of_curve(worse, each)
        name = f"epsilon = {each:g} ({row['accuracy_mean']:.4f} against {other['accuracy_mean']:.4f})"
        gains.append(accuracy_gap(row, other, name=name, comparisons=len(epsilon)))
    return gains


def _of_curve(curve: Curve, epsilon: float) -> Row:
    """Return the authors' trials at a point of a curve of Fig. 3a."""
    mechanism, _, steps = curve.partition(", I = ")
    (row,) = (
        row
        for row in _stored_trials()
        if (row["experiment"], row["mechanism"]) == ("fig3a", mechanism)
        and (row["epsilon_target"], row.get("unlearning_steps")) == (epsilon, int(steps) if steps else None)
    )
    return row


@cache
def _stored_trials() -> tuple[Row, ...]:
    """Return the rows of the authors' trials, with the column names of our summaries."""
    path = files("certified_unlearning.papers.langevin_unlearning") / "authors_mnist.json"
    return tuple(json.loads(path.read_text(encoding="utf-8"))["rows"])


def _gap(ours: Sequence[Row], theirs: Row, points: int, source: Evidence) -> Quantity:
    """Return our accuracy minus the authors' accuracy, at one point of a curve that has ``points`` points.

    If there are too few trials, the confidence interval is infinite.
    """
    swept = [name for name in _SWEPT if name in theirs]
    name = ", ".join(f"{_SWEPT[key]} = {theirs[key]:g}" for key in swept)
    same = [row for row in ours if all(row[key] == theirs[key] for key in swept)]
    if not same:
        raise MissingEvidence(
            f"the records of {theirs['experiment']} lack {theirs['mechanism']} at {name}; {source.remedy}"
        )
    (row,) = same
    name += f" (ours {row['accuracy_mean']:.4f}, theirs {theirs['accuracy_mean']:.4f})"
    gap = accuracy_gap(row, theirs, name=name, comparisons=points)
    if math.isinf(gap.uncertainty):
        return gap
    return Quantity(gap.value / (gap.uncertainty + ONE_POINT), name)
