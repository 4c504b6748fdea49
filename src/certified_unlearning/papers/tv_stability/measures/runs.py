"""Measures of the rows of the experiment `deletions`, and of the stream of the experiment `edits`."""

import math
from collections.abc import Sequence
from typing import Literal

import pandas as pd

from certified_unlearning.papers.tv_stability.experiments import DELETIONS, EDITS
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, table_of
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

STANDARD_ERRORS = 5
"""Half the width of confidence intervals, in standard errors.

With at least ten trials, an interval misses the true value with a probability below 3e-4.
"""
_DISSERTATION = {"data": "mnist-10", "edits": 600, "steps": 200, "batch_size": 600}
"""The constants with which we reproduce the dissertation's experiment; the dissertation prints batches of 50."""


@measure
def recomputed_over_bound(evidence: Sequence[Evidence], *, systems: list[str]) -> list[Quantity]:
    """Return the probability that a deletion causes a recomputation, divided by its bound, for every setting.

    The bound holds for any data. For mini-batches, the bound is ``1 - (1 - m / n)^T``. For noisy sums, it follows from
    the longest gradients.
    """
    rows = _deletions(evidence, systems)
    return _of_settings(rows, rows["recompute_probability"] / rows["recompute_bound"])


@measure
def gradients_over_share(evidence: Sequence[Evidence], *, systems: list[str]) -> list[Quantity]:
    """Return the number of gradients of a deletion, divided by its bound, for every setting.

    The bound is ``1 - (1 - m / n)^T`` times the number of gradients of learning.
    """
    rows = _deletions(evidence, systems)
    return _of_settings(rows, rows["gradients"] / (rows["recompute_bound"] * rows["learning_gradients"]))


@measure
def unstable_over_expected(evidence: Sequence[Evidence]) -> Quantity:
    """Return the number of edits that caused a recomputation in runs without noise, divided by the expected number."""
    row = _at(_edits(evidence), 0.0)
    error = row["unstable_edits_std"] / math.sqrt(row["trials"])
    expected = row["expected_without_noise"]
    return Quantity(row["unstable_edits"] / expected, "sigma = 0", STANDARD_ERRORS * error / expected)


@measure
def change_with_noise(
    evidence: Sequence[Evidence], *, of: Literal["unstable_edits", "iterations_run_again"]
) -> Quantity:
    """Return a count at the largest sigma minus the count without noise."""
    rows = _edits(evidence)
    first, last = _at(rows, 0.0), _at(rows, rows["sigma"].max())
    errors = [row[f"{of}_std"] / math.sqrt(row["trials"]) for row in (first, last)]
    return Quantity(last[of] - first[of], f"sigma = {last['sigma']:g}", STANDARD_ERRORS * math.hypot(*errors))


@sweep("sigma = {sigma:g}")
def published_stream(evidence: Sequence[Evidence], *, of: Literal["unstable_edits", "accuracy"], sigma: float) -> float:
    """Return a mean over runs of the dissertation's stream."""
    rows = _published(evidence)
    return float(_at(rows, sigma)[of])


@measure
def published_savings(evidence: Sequence[Evidence], *, sigma: float, of: Literal["edits", "iterations"]) -> Quantity:
    """Return the factor by which noise reduces the work of the dissertation's stream.

    ``edits`` is the number of edits that cause a recomputation in runs without noise, divided by the number of edits
    that cause a recomputation in runs with noise. ``iterations`` is about the edits that cause a recomputation in runs
    with noise: it is the number of iterations that whole runs would take, divided by the number of iterations that are
    run again.
    """
    rows = _published(evidence)
    quiet, noisy = _at(rows, 0.0), _at(rows, sigma)
    fewer = quiet["unstable_edits"] / noisy["unstable_edits"]
    shorter = noisy["unstable_edits"] * noisy["steps"] / noisy["iterations_run_again"]
    return Quantity({"edits": fewer, "iterations": shorter}[of], f"sigma = {sigma:g}")


def _deletions(evidence: Sequence[Evidence], systems: list[str]) -> pd.DataFrame:
    rows = table_of(evidence, DELETIONS.name)
    rows = rows[rows["system"].isin(systems)]
    if rows.empty:
        raise MissingEvidence(f"no results of {', '.join(systems)}; run `snakemake --config preset=digits`")
    return rows


def _edits(evidence: Sequence[Evidence]) -> pd.DataFrame:
    return table_of(evidence, EDITS.name)


def _published(evidence: Sequence[Evidence]) -> pd.DataFrame:
    rows = _edits(evidence)
    for name, value in _DISSERTATION.items():
        rows = rows[rows[name] == value]
    if rows.empty:
        raise MissingEvidence(
            "no results of a stream of 600 edits on all ten digits; run `snakemake --config preset=exact`"
        )
    return rows


def _at(rows: pd.DataFrame, sigma: float) -> pd.Series:
    found = rows[rows["sigma"] == sigma]
    if found.empty:
        raise MissingEvidence(
            f"no results of a stream of edits at sigma = {sigma:g}; add this value to `sigma` in `params.yaml`"
        )
    return found.iloc[0]


def _of_settings(rows: pd.DataFrame, values: pd.Series) -> list[Quantity]:
    return [
        Quantity(float(value), f"{row['data']}, {row['system']}, T = {row['steps']}, m = {row['batch_size']}")
        for (_, row), value in zip(rows.iterrows(), values, strict=True)
    ]
