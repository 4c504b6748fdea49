"""The readable table of the experiment `cost`."""

from typing import Any

import pandas as pd

from certified_unlearning.papers.cheaper_than_retraining.names import SPECTRA, SYSTEMS
from certified_unlearning.reproduction.tabulation import ShownTable
from certified_unlearning.text import rounded_up

_COLUMNS = [
    "system",
    "records",
    "seconds a request (quartiles)",
    "seconds of fit",
    "passes a request",
    "requests that read data",
    "requests that moved the model",
    "test accuracy",
    "epsilon",
    "epsilon, all releases",
    "delta",
    "compared with",
    "for whom",
    "adaptive requests",
    "epsilon of a record that stays",
]


def page(rows: pd.DataFrame) -> ShownTable:
    """Return a table for each data set and size; epsilon and delta are rounded up, other numbers to the nearest."""
    first = rows.iloc[0]
    facts = (
        f"Timings on this machine: {first['machine']}. Medians of {first['rounds']} rounds, quartiles in brackets. "
        f"C n = {first['strength']:g}. A pass reads all rows once."
    )
    groups = {}
    for (data, n, d), own in rows.groupby(["data", "n", "d"], sort=False):
        size = f", n = {n:,}, d = {d}" if n else ""
        groups[f"{SPECTRA.get(str(data), data)}{size}"] = [_line(row) for _, row in own.iterrows()]
    return ShownTable(facts, _COLUMNS, groups)


def _line(row: "pd.Series[Any]") -> list[str]:
    start = [SYSTEMS.get(str(row["system"]), str(row["system"])), str(row["records"])]
    if row["skipped"]:
        return [*start, f"not run: {row['skipped']}", *[""] * (len(_COLUMNS) - 3)]
    rounds = row["rounds"]
    return [
        *start,
        f"{row['seconds']:.2g} ({row['seconds_low']:.2g} to {row['seconds_high']:.2g})",
        f"{row['fit_seconds']:.2g}",
        f"{row['passes']:.3g}",
        f"{row['requests_that_read']} of {rounds}",
        f"{row['requests_that_moved']} of {rounds}",
        f"{row['accuracy']:.4f}",
        *(_number(row[name]) for name in ("epsilon", "epsilon_all_releases", "delta")),
        str(row["comparator"]),
        str(row["observers"]),
        "yes" if row["adaptive"] else "no",
        _number(row["epsilon_for_those_who_stay"]),
    ]


def _number(value: Any) -> str:
    number = float(value)
    return "–" if pd.isna(number) else "0" if number == 0 else rounded_up(number, 3)
