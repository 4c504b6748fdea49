"""The tables at the head of the report: accuracy and unlearning steps at each epsilon, from the rows of runs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

import pandas as pd

from certified_unlearning.papers.langevin_unlearning.captions import ANEW, seconds_of_one
from certified_unlearning.reproduction.report.headline import Cell, Group, HeadlineTable, Line
from certified_unlearning.reproduction.summaries import Row, summarise
from certified_unlearning.text import rounded_up


def tables(rows: Mapping[str, pd.DataFrame]) -> list[HeadlineTable]:
    """Return the tables of all presets that have rows of the required experiments.

    Args:
        rows: The rows of runs of each preset (`rows.RUN_ROWS`).

    Raises:
        DataError: The rows cannot be summarised.
    """
    tables = []
    for experiment, table in (("fig3a", accuracy_table), ("fig3a", quality_table), ("fig4", steps_table)):
        own = {preset: each for preset, each in rows.items() if (each["experiment"] == experiment).any()}
        if own:
            tables.append(table(own))
    return tables


def accuracy_table(records: Mapping[str, pd.DataFrame]) -> HeadlineTable:
    """Return the test accuracy after one record was removed (``fig3a``), for every preset.

    Descent-to-Delete is represented by its best run, which has the most iterations. Retraining is shown without noise,
    together with a new fit by scikit-learn.

    Args:
        records: The records of each preset (`rows.RUN_ROWS`).

    Raises:
        DataError: The records contain no ``fig3a`` or cannot be summarised.
    """
    return _table(
        "accuracies",
        "Test accuracy after removing records, by target epsilon",
        "The kind of epsilon is written under each method. Numbers are means, ± one sample standard deviation over "
        "trials. Retraining without noise and scikit-learn have the same value at every epsilon. K and I are the "
        "numbers of steps of a removal. For Descent-to-Delete, the table shows only the run with the most iterations, "
        "which is its best run.",
        {preset: _rated(preset, summarise(rows, "fig3a"), _accuracy) for preset, rows in records.items()},
    )


def quality_table(records: Mapping[str, pd.DataFrame]) -> HeadlineTable:
    """Return AUC and log loss of the same runs as `accuracy_table`, with the same arguments and errors."""
    return _table(
        "quality",
        "AUC, and below it the log loss, after removing records, by target epsilon",
        "AUC is the probability that a test record of a class scores higher than one of another class (for more "
        "than two classes: the mean AUC of one class against the rest). Log loss is the mean of −log of the "
        "probability given to the correct class; it is large if a model is confident and wrong. Numbers are means "
        "over trials.",
        {preset: _rated(preset, summarise(rows, "fig3a"), _quality) for preset, rows in records.items()},
    )


def steps_table(records: Mapping[str, pd.DataFrame]) -> HeadlineTable:
    """Return the unlearning steps for the largest group of records removed at once (``fig4``), for every preset.

    The table also has the steps of retraining, which are the learning steps, and the seconds of a new fit by
    scikit-learn.

    Args:
        records: The records of each preset (`rows.RUN_ROWS`).

    Raises:
        DataError: The records contain no ``fig4`` or cannot be summarised.
    """
    return _table(
        "steps",
        "Steps that answer one request, by target epsilon",
        "The table is for the largest group of records that was removed at once. It also has the steps of learning "
        "from scratch. Within a preset, the bars compare the numbers of steps. Steps are whole numbers, so the reached "
        "epsilon can be below the target. If the reached epsilon differs from the target, it is written under the "
        "number, rounded up. Seconds are for one model, on the machine that ran it. Trials are simulated together and "
        "share their time equally; scikit-learn, which takes no such steps, is fitted alone. With few records, a new "
        "fit takes no longer than a removal.",
        {
            preset: _steps(preset, summarise(rows, "fig4"), seconds_of_one(rows, "fig4"))
            for preset, rows in records.items()
        },
    )


_Targets: TypeAlias = list[float]


def _table(name: str, caption: str, note: str, groups: Mapping[str, tuple[_Targets, Group]]) -> HeadlineTable:
    targets = sorted({target for of_preset, _ in groups.values() for target in of_preset})
    columns = tuple(_number(target) for target in targets)
    return HeadlineTable(name, caption, note, columns, tuple(group for _, group in groups.values()))


def _rated(preset: str, summary: pd.DataFrame, cell: Callable[[Row], Cell]) -> tuple[_Targets, Group]:
    langevin = summary[summary["mechanism"] == "langevin"]
    descent = summary[summary["mechanism"] == "descent-to-delete"]
    most = descent[descent["unlearning_steps"] == descent["unlearning_steps"].max()]
    again = summary[summary["mechanism"].isin(ANEW) & (summary["sigma"] == 0)]
    sizes = ", ".join(f"{size:,}" for size in sorted(langevin["records_removed"].unique()))
    lines = [*_lines(langevin, "label", cell), *_lines(most, "label", cell)]
    targets = sorted(langevin["epsilon_target"].unique())
    lines += [_level(row, row["label"], targets, cell(row)) for _, row in again.iterrows()]
    return targets, Group(preset, f"{sizes} of {_facts(summary)}", tuple(lines))


def _accuracy(row: Row) -> Cell:
    # A deterministic run has one value, which stands for all trials.
    spread = f"{row['accuracy_std']:.4f}" if row["trials"] > 1 and row["sigma"] > 0 else None
    return _cell(row, f"{row['accuracy_mean']:.4f}", spread=spread)


def _quality(row: Row) -> Cell:
    return replace(_cell(row, f"{row['auc_mean']:.4f}"), beneath=f"{row['log_loss_mean']:.4f}")


def _steps(preset: str, summary: pd.DataFrame, seconds: "pd.Series[float]") -> tuple[_Targets, Group]:
    largest = summary[summary["records_removed"] == summary["records_removed"].max()]
    langevin = largest[largest["mechanism"] == "langevin"]
    retraining = largest[largest["variant"] == "noisy"].tail(1)
    most = max(langevin["unlearning_steps"].max(), retraining["learning_steps"].max())

    def steps(row: Row) -> Cell:
        count = row["unlearning_steps"]
        return replace(_cell(row, f"{count:,}", share=count / most), beneath=time(row))

    def time(row: Row) -> str:
        return f"{seconds[row['point']]:.2g} s"

    targets = sorted(langevin["epsilon_target"].unique())
    lines = _lines(langevin, "method", steps)
    for _, row in retraining.iterrows():
        cell = Cell(f"{row['learning_steps']:,}", share=row["learning_steps"] / most, beneath=time(row))
        lines.append(_level(row, row["method"], targets, cell))
    for _, row in largest[largest["mechanism"] == "scikit-learn"].iterrows():
        lines.append(_level(row, row["method"], targets, Cell(time(row))))
    sigmas = ", ".join(_number(sigma) for sigma in sorted(langevin["sigma"].unique()))
    facts = f"{largest['records_removed'].iloc[0]:,} of {_facts(largest)}, sigma = {sigmas}"
    return targets, Group(preset, facts, tuple(lines))


def _lines(rows: pd.DataFrame, name: str, cell: Callable[[Row], Cell]) -> list[Line]:
    """Return one line for each pair of method and guarantee, in the order of the summary.

    The column ``name`` contains the names of the lines.
    """
    return [
        Line(str(shown), str(guarantee), {_number(row["epsilon_target"]): cell(row) for _, row in own.iterrows()})
        for (shown, guarantee), own in rows.groupby([name, "guarantee"], sort=False)
    ]


def _level(row: Row, name: str, targets: _Targets, cell: Cell) -> Line:
    """Return the line of a method that does not depend on epsilon."""
    return Line(name, row["guarantee"], {_number(target): cell for target in targets})


def _cell(row: Row, value: str, *, spread: str | None = None, share: float | None = None) -> Cell:
    if row["mechanism"] in ANEW:
        return Cell(value, spread=spread, share=share)
    epsilon, target = float(row["epsilon"]), float(row["epsilon_target"])
    shown = rounded_up(epsilon, 4)
    if shown == rounded_up(target, 4):
        return Cell(value, spread=spread, share=share)
    return Cell(value, spread=spread, epsilon=shown, above=epsilon > target, share=share)


def _facts(summary: pd.DataFrame) -> str:
    """Return the facts that all rows share: the size of the data, delta (in total, rounded up), and the trials."""
    first = summary.iloc[0]
    delta = float((summary["delta"] + summary["extra_delta"]).max())
    trials = f"{first['trials']:,} trial{'s' if first['trials'] > 1 else ''}"
    return (
        f"{first['n']:,} records, d = {first['d']:,}, delta = {rounded_up(delta, 4)}, {trials}; guessing the most "
        f"frequent class gets {first['majority']:.4f} right"
    )


def _number(value: float) -> str:
    return f"{value:g}"
