"""Rows of runs reduced to one row for each sweep point, for figures and for DVC."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from certified_unlearning.accounting.accountants import ACCOUNTANTS, NO_ACCOUNTANT
from certified_unlearning.errors import DataError
from certified_unlearning.files import write_text
from certified_unlearning.reproduction.rows import RUN_ROWS, names

_NAMES = ("method", "member", "line", "point")
CONSTANTS = tuple(
    name for name in names(RUN_ROWS, "constant", "point") if name not in (*_NAMES, "seed", "dtype", "data_sha256")
)
"""Columns that all trials of a sweep point share, and that a summary keeps in addition to names."""
MEASURES = names(RUN_ROWS, "measure")
RATED = tuple(f"{measure}_{which}" for measure in MEASURES for which in ("mean", "std"))
_ACCOUNTANT_ORDER = (*ACCOUNTANTS, NO_ACCOUNTANT)
_POINT_ORDER = ("records_per_request", "epsilon_target", "sigma", "records_removed")
STANDARD_EPSILON = 1.0
"""Target epsilon for short comparisons of experiments and presets, in which one row represents each experiment."""
Row: TypeAlias = "Mapping[str, Any] | pd.Series[Any]"
"""A row of runs or of a summary."""


def summarise(rows: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """Reduce the trials of every sweep point and request to their mean and standard deviation.

    Args:
        rows: Rows with the columns `rows.RUN_ROWS`, mechanism after mechanism, in the order in which they are shown.
        experiment: Name of the experiment to keep.

    Returns:
        One row for each sweep point and request. Its columns are ``label`` (the line), ``point`` (the line and the
        swept value), ``method``, ``member``, the columns `CONSTANTS`, ``trials``, and the mean and sample standard
        deviation of each of `MEASURES` (``accuracy_mean``, ``accuracy_std``; 0 for a single trial). Mechanisms and
        their variants are in the order of the rows, accountants from loose to tight.

    Raises:
        DataError: There are no rows, or none of this experiment; a trial occurs twice; data sets are mixed; two runs
            have the same point; or an accountant is unknown.
    """
    own = _rows_of(rows, experiment)
    # Sorted first, because means must not depend on the order of the rows.
    groups = own.sort_values(["run_key", "request", "trial"]).groupby(["run_key", "request"], sort=False)
    kept = [name for name in (*CONSTANTS, *_NAMES) if name != "request"]
    summary = groups[kept].first().reset_index()
    summary["trials"] = groups["accuracy"].count().to_numpy()
    for measure in MEASURES:
        summary[f"{measure}_mean"] = groups[measure].mean().to_numpy()
        summary[f"{measure}_std"] = groups[measure].std(ddof=1).fillna(0.0).to_numpy()
    ambiguous = summary.loc[summary.duplicated(["point", "request"]), "point"]
    if not ambiguous.empty:
        raise DataError(f"the rows of {experiment} hold more than one run called {ambiguous.iloc[0]!r}")
    unknown = sorted(set(summary["accountant"]) - set(_ACCOUNTANT_ORDER))
    if unknown:
        raise DataError(f"the rows of {experiment} hold the accountant {unknown[0]!r}, which is not declared")
    ordered = summary.assign(
        mechanism_order=summary["mechanism"].map(list(own["mechanism"].unique()).index),
        variant_order=summary["variant"].map(list(own["variant"].unique()).index),
        accountant_order=summary["accountant"].map(_ACCOUNTANT_ORDER.index),
        member_order=summary["member"].map(_leading_number),
    ).sort_values(
        ["mechanism_order", "variant_order", "accountant_order", "member_order", *_POINT_ORDER, "request"],
        ignore_index=True,
        kind="stable",
    )
    return ordered.rename(columns={"line": "label"})[
        ["label", "point", "method", "member", *CONSTANTS, "trials", *RATED]
    ]


def standard_point(summary: pd.DataFrame) -> "pd.Series[Any] | None":
    """Return the row that represents an experiment when only one row is shown.

    The row is from the summary's first mechanism, and from the tightest accountant of this mechanism. Its target
    epsilon is the nearest to `STANDARD_EPSILON` on a logarithmic scale (if two targets are equally near, the smaller
    one). Among the rows with this target, the row has the largest number of removed records and the least noise.

    Args:
        summary: Result of `summarise`.

    Returns:
        The row of the summary for the last request of a run; None if no run has an accountant of its own mechanism.
    """
    accountants = summary["accountant"].map(ACCOUNTANTS.get)
    own = [
        known is not None and known.mechanism == row
        for known, row in zip(accountants, summary["mechanism"], strict=True)
    ]
    stated = summary[own]
    if stated.empty:
        return None
    ranked = stated[stated["mechanism"] == stated["mechanism"].iloc[0]].assign(
        looseness=lambda rows: -rows["accountant"].map(_ACCOUNTANT_ORDER.index),
        distance=lambda rows: np.log(rows["epsilon_target"] / STANDARD_EPSILON).abs(),
        kept=lambda rows: -rows["records_removed"],
        answered=lambda rows: -rows["request"],
    )
    best = ["looseness", "distance", "epsilon_target", "kept", "answered", "sigma"]
    row: pd.Series[Any] = summary.loc[ranked.sort_values(best, kind="stable").index[0]]
    return row


def write_csv(path: str | Path, frame: pd.DataFrame) -> None:
    """Write a table as CSV, atomically; floats have all digits, so that reading gives the same numbers."""
    write_text(path, frame.to_csv(index=False, lineterminator="\n"))


def metrics(rows: pd.DataFrame) -> dict[str, dict[str, dict[str, float | int]]]:
    """Return the headline numbers of every experiment in the rows.

    Returns:
        For each experiment and each of its sweep points (such as ``Langevin (lsi), K = 1, epsilon = 0.5``): the
        guarantee (epsilon, delta, extra_delta, and mu if the accountant gives one), sigma, unlearning_steps and the
        means of `MEASURES`. A stream of requests is one sweep point, with its largest epsilon and mu, its
        accumulated_steps, and the accuracy after the last request.

    Raises:
        DataError: There are no rows, or the rows of an experiment cannot be summarised.
    """
    if rows.empty:
        raise DataError("there are no rows of runs, so there are no metrics")
    return {experiment: _headlines(summarise(rows, experiment)) for experiment in sorted(rows["experiment"].unique())}


def _headlines(summary: pd.DataFrame) -> dict[str, dict[str, float | int]]:
    streams = bool(summary["request"].max() > 1)
    return {str(point): _headline(requests, streams) for point, requests in summary.groupby("point", sort=False)}


def _rows_of(rows: pd.DataFrame, experiment: str) -> pd.DataFrame:
    if rows.empty:
        raise DataError(f"there are no rows, so there is no {experiment}")
    own = rows[rows["experiment"] == experiment]
    if own.empty:
        present = ", ".join(sorted(rows["experiment"].unique()))
        raise DataError(f"the rows hold no experiment {experiment}, only {present}")
    if own.duplicated(["run_key", "request", "trial"]).any():
        raise DataError(f"the rows of {experiment} hold a trial twice; was a file read twice?")
    datasets = sorted(own["dataset"].unique())
    if len(datasets) > 1:
        raise DataError(
            f"the rows of {experiment} mix the data sets {', '.join(datasets)}; give one data set at a time"
        )
    return own


def _headline(requests: pd.DataFrame, streams: bool) -> dict[str, float | int]:
    last = requests.iloc[-1]
    steps = "accumulated_steps" if streams else "unlearning_steps"
    epsilon, mu = requests["epsilon"].max(), requests["mu"].max()
    return {
        **({} if pd.isna(epsilon) else {"epsilon": float(epsilon)}),
        "delta": float(last["delta"]),
        "extra_delta": float(last["extra_delta"]),
        **({} if pd.isna(mu) else {"mu": float(mu)}),
        "sigma": float(last["sigma"]),
        steps: int(last[steps]),
        **{measure: float(last[f"{measure}_mean"]) for measure in MEASURES},
    }


def _leading_number(member: str) -> float:
    """Return the number in the text that distinguishes a method's lines, such as 2 in ``I = 2``; 0 if there is none."""
    _, _, value = member.partition(" = ")
    return float(value) if value else 0.0
