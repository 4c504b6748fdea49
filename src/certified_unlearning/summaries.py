"""Records reduced to one row per sweep point: what figures draw, and what DVC compares."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from certified_unlearning.errors import DataError
from certified_unlearning.files import write_text
from certified_unlearning.results import RECORD_SCHEMA

_TRIAL_COLUMNS = (
    "run_key",
    "trial",
    "seed",
    "accuracy",
    "seconds",
    "device",
    "dtype",
    "data_sha256",
    "code_version",
)
CONSTANTS = tuple(name for name in RECORD_SCHEMA.names if name not in _TRIAL_COLUMNS)
"""The record columns that all trials of a sweep point share and that a summary keeps."""

_MECHANISM_ORDER = ("langevin", "descent-to-delete", "retraining")
_VARIANT_ORDER = ("least-sigma", "least-steps", "secret-state", "published-state", "noisy", "noiseless")
LANGEVIN_ACCOUNTANTS = ("lsi", "lsi-tight", "shifted")
_DESCENT_FORMS = {
    "descent-to-delete N.1": "printed",
    "descent-to-delete N.2": "printed",
    "descent-to-delete shifted": "tightened",
    "descent-to-delete conditional": "against retraining noised once",
}
_ACCOUNTANT_ORDER = (*LANGEVIN_ACCOUNTANTS, *_DESCENT_FORMS, "none")
_POINT_ORDER = ("records_per_request", "epsilon_target", "sigma", "records_removed")


Row: TypeAlias = "Mapping[str, Any] | pd.Series[Any]"
"""A row of records or of a summary."""


def method(row: Row) -> str:
    """Return the human name of a row's mechanism, with the accountant that planned it.

    Raises:
        DataError: The mechanism, its variant or its accountant is not known.
    """
    match row["mechanism"], row["variant"], row["accountant"]:
        case "langevin", ("least-sigma" | "least-steps"), accountant if accountant in LANGEVIN_ACCOUNTANTS:
            return f"Langevin ({accountant})"
        case "descent-to-delete", ("secret-state" | "published-state"), accountant if accountant in _DESCENT_FORMS:
            return f"Descent-to-Delete ({_DESCENT_FORMS[accountant]})"
        case "retraining", ("noisy" | "noiseless") as variant, "none":
            return f"Retraining, {variant}"
        case "retraining", "noisy", accountant if accountant in LANGEVIN_ACCOUNTANTS:
            return f"Retraining, noisy ({accountant})"
    raise DataError(
        f"the records hold the mechanism {row['mechanism']} ({row['variant']}) of the accountant {row['accountant']}, "
        "which has no label"
    )


def member(row: Row) -> str:
    """Return what tells apart the lines of one method: ``K``, ``I`` (steps), ``S`` (records a request), ``epsilon``."""
    match row["experiment"], row["variant"]:
        case _, "least-sigma":
            return f"K = {row['unlearning_steps']}"
        case _, "secret-state":
            return f"I = {row['unlearning_steps']}"
        case "fig5a", "least-steps":
            return f"epsilon = {row['epsilon_target']:g}"
        case _, "least-steps" | "published-state":
            return f"S = {row['records_per_request']}"
    return ""


def label(row: Row) -> str:
    """Return the human name of a row's line, the same in figures and metrics.

    Raises:
        DataError: The mechanism, its variant or its accountant is not known.
    """
    state = {"secret-state": "secret state", "published-state": "state published"}.get(row["variant"], "")
    return ", ".join(part for part in (method(row), member(row), state) if part)


def summarise(records: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """Reduce the trials of every sweep point and request to mean and standard deviation.

    Args:
        records: Rows that follow `results.RECORD_SCHEMA`.
        experiment: The experiment to keep, such as ``fig3a``.

    Returns:
        One row per sweep point and request: ``label``, ``point`` (the label and the swept value), the
        columns `CONSTANTS`, ``trials``, ``accuracy_mean`` and ``accuracy_std`` (sample standard deviation,
        0 for a single trial); Langevin first, retraining last, accountants from loose to tight.

    Raises:
        DataError: There are no records, none of this experiment, a trial occurs twice, data sets are mixed,
            or two runs cannot be told apart by their point.
    """
    rows = _rows_of(records, experiment)
    groups = rows.groupby(["run_key", "request"], sort=False)
    summary = groups[[name for name in CONSTANTS if name != "request"]].first().reset_index()
    accuracy = groups["accuracy"]
    summary["trials"] = accuracy.count().to_numpy()
    summary["accuracy_mean"] = accuracy.mean().to_numpy()
    summary["accuracy_std"] = accuracy.std(ddof=1).fillna(0.0).to_numpy()
    summary["label"] = [label(row) for row in _dictionaries(summary)]
    summary["point"] = [_point(row) for row in _dictionaries(summary)]
    ambiguous = summary.loc[summary.duplicated(["point", "request"]), "point"]
    if not ambiguous.empty:
        raise DataError(f"the records of {experiment} hold more than one run called {ambiguous.iloc[0]!r}")
    ordered = summary.assign(
        mechanism_order=summary["mechanism"].map(_MECHANISM_ORDER.index),
        variant_order=summary["variant"].map(_VARIANT_ORDER.index),
        accountant_order=summary["accountant"].map(_ACCOUNTANT_ORDER.index),
        descent_steps=summary["unlearning_steps"].where(summary["variant"] == "secret-state", 0),
    ).sort_values(
        ["mechanism_order", "variant_order", "accountant_order", "descent_steps", *_POINT_ORDER], ignore_index=True
    )
    return ordered[["label", "point", *CONSTANTS, "trials", "accuracy_mean", "accuracy_std"]]


def write_csv(path: str | Path, frame: pd.DataFrame) -> None:
    """Write a table as CSV, atomically; floats keep every digit (reading them gives the same numbers)."""
    write_text(path, frame.to_csv(index=False, lineterminator="\n"))


def metrics(records: pd.DataFrame) -> dict[str, dict[str, dict[str, float | int]]]:
    """Return the headline numbers of every experiment in the records.

    Returns:
        Experiment -> sweep point (such as ``Langevin (lsi), K = 1, epsilon = 0.5``) -> the guarantee (epsilon,
        delta, extra_delta, and mu where the accountant gives one), sigma, unlearning_steps and mean accuracy. A
        stream of requests (``fig3b``) is one sweep point: its largest epsilon and mu, its accumulated_steps, and
        the accuracy after the last request.

    Raises:
        DataError: There are no records, or an experiment's cannot be summarised.
    """
    if records.empty:
        raise DataError("there are no records, so there are no metrics")
    return {
        experiment: {
            str(point): _headline(requests)
            for point, requests in summarise(records, experiment).groupby("point", sort=False)
        }
        for experiment in sorted(records["experiment"].unique())
    }


def _rows_of(records: pd.DataFrame, experiment: str) -> pd.DataFrame:
    if records.empty:
        raise DataError(f"there are no records, so there is no {experiment}")
    rows = records[records["experiment"] == experiment]
    if rows.empty:
        present = ", ".join(sorted(records["experiment"].unique()))
        raise DataError(f"the records hold no experiment {experiment}, only {present}")
    if rows.duplicated(["run_key", "request", "trial"]).any():
        raise DataError(f"the records of {experiment} hold a trial twice; was a file read twice?")
    datasets = sorted(rows["dataset"].unique())
    if len(datasets) > 1:
        raise DataError(f"the records of {experiment} mix the data sets {', '.join(datasets)}; give one at a time")
    return rows.sort_values(["run_key", "request", "trial"])  # means must not depend on the order of the rows


def _headline(requests: pd.DataFrame) -> dict[str, float | int]:
    last = requests.iloc[-1]
    steps = "accumulated_steps" if last["experiment"] == "fig3b" else "unlearning_steps"
    mu = requests["mu"].max()
    return {
        "epsilon": float(requests["epsilon"].max()),
        "delta": float(last["delta"]),
        "extra_delta": float(last["extra_delta"]),
        **({} if pd.isna(mu) else {"mu": float(mu)}),
        "sigma": float(last["sigma"]),
        steps: int(last[steps]),
        "accuracy": float(last["accuracy_mean"]),
    }


def _point(row: Mapping[str, Any]) -> str:
    """Return the name of a sweep point: its label, and the value of what its figure sweeps."""
    match row["experiment"], row["variant"]:
        case ("fig4", "noisy" | "noiseless") | ("fig5a", _):
            return f"{row['label']}, S = {row['records_removed']}"
        case ("fig3b", _) | (_, "noiseless"):
            return str(row["label"])
        case "fig3c", _:
            return f"{row['label']}, sigma = {row['sigma']:g}"
        case _:
            return f"{row['label']}, epsilon = {row['epsilon_target']:g}"


def _dictionaries(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
