"""Measures on the paper's own data, which this package cannot download; users provide the data as features files."""

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePath

import pandas as pd

from certified_unlearning.papers.gradient_certificates.batches import BATCHES
from certified_unlearning.papers.gradient_certificates.figures.batches import least_batches
from certified_unlearning.papers.gradient_certificates.fine_tuning import FINE_TUNING
from certified_unlearning.papers.gradient_certificates.head import HEAD
from certified_unlearning.papers.gradient_certificates.names import is_file
from certified_unlearning.papers.gradient_certificates.sweeps import Mode
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

AMEX, OCT, IMDB = "amex", "oct-mnist", "imdb-gpt2"
"""The names, without ending, of features files that contain the paper's data."""
_CONTENT = {
    AMEX: "the 5.5 million records of AMEX's default prediction",
    OCT: "MedMNIST's OCT images, with the images of the class Drusen as the new ones",
    IMDB: "GPT-2's embeddings of 40 000 film reviews of IMDB",
}


@measure
def least_batch_on_amex(evidence: Sequence[Evidence], *, depth: int, k: int, wanted: float, beyond: int) -> float:
    """Return the smallest batch with which the wanted share is unlearning-safe, or the largest tried if none is enough.

    Privacy never needs smaller batches than unlearning. The rows must show whether the smallest sufficient batch size
    is above ``beyond``. Either a batch size of at least ``beyond`` was tried and was not enough, or a batch size of at
    most ``beyond`` was enough.
    """
    rows = _rows(evidence, BATCHES.name, AMEX)
    own = rows[(rows["depth"] == depth) & (rows["k"] == k) & (rows["wanted"] == wanted)]
    own = own[own["mode"] == "unlearning"]
    if own.empty:
        raise MissingEvidence(
            f"the experiment `{BATCHES.name}` was not run on {AMEX} for {depth} layers, k = {k} and a share of "
            f"{wanted:g}"
        )
    least = float(least_batches(own).get(depth, math.inf))
    short = own.loc[own["batch_size"] < least, "batch_size"].max()
    if math.isinf(least) and short > beyond:
        return float(short)
    if least <= beyond or beyond <= short < least < math.inf:
        return least
    raise MissingEvidence(
        f"the batch sizes that were run on {AMEX} do not decide the claim; add {beyond} and a larger number to "
        "`batch_size`"
    )


@measure
def accuracies_on_oct(evidence: Sequence[Evidence]) -> dict[str, float]:
    """Return the accuracy on the new class at the smallest and at the largest clipping level."""
    rows = _rows(evidence, FINE_TUNING.name, OCT).sort_values("gamma")
    _require_levels(rows)
    ends = {"smallest": rows.iloc[0], "largest": rows.iloc[-1]}
    return {f"{name} gamma = {row['gamma']:g}": float(row["accuracy"]) for name, row in ends.items()}


@measure
def clipping_on_oct(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return the change of the certified share from each clipping level to the next larger, for every mode and k."""
    rows = _rows(evidence, FINE_TUNING.name, OCT)
    _require_levels(rows)
    return [
        Quantity(float(b["share"] - a["share"]), f"{mode}, k = {k}, gamma = {a['gamma']:g} to {b['gamma']:g}")
        for (mode, k), line in rows.groupby(["mode", "k"], sort=False)
        for (_, a), (_, b) in pairwise(line.sort_values("gamma").iterrows())
    ]


@measure
def shares_on_oct(evidence: Sequence[Evidence], *, k: int) -> dict[str, float]:
    """Return the certified share of the new class for k records, for every mode and clipping level."""
    rows = _rows(evidence, FINE_TUNING.name, OCT)
    own = rows[rows["k"] == k]
    if own.empty:
        raise MissingEvidence(f"the experiment `{FINE_TUNING.name}` was not run on {OCT} for k = {k}")
    return {f"{row['mode']}, gamma = {row['gamma']:g}": float(row["share"]) for _, row in own.iterrows()}


@sweep("k = {k}")
def shares_on_imdb(evidence: Sequence[Evidence], *, k: int, mode: Mode, epochs: int) -> float:
    """Return the certified share of test predictions after the given number of epochs."""
    rows = _after(evidence, epochs)
    own = rows[(rows["mode"] == mode) & (rows["k"] == k)]
    if own.empty:
        raise MissingEvidence(f"the experiment `{HEAD.name}` was not run on {IMDB} for k = {k}")
    return float(own.iloc[0]["share"])


@measure
def accuracy_on_imdb(evidence: Sequence[Evidence], *, epochs: int) -> float:
    """Return the test accuracy after the given number of epochs."""
    return float(_after(evidence, epochs).iloc[0]["accuracy"])


def _require_levels(rows: pd.DataFrame) -> None:
    """Raise `MissingEvidence` if there is only one clipping level, because a claim compares levels."""
    if rows["gamma"].nunique() < 2:
        raise MissingEvidence(
            f"the experiment `{FINE_TUNING.name}` was run on {OCT} with only one clipping level; add another to `gamma`"
        )


def _after(evidence: Sequence[Evidence], epochs: int) -> pd.DataFrame:
    """Return the rows for IMDB after ``epochs`` epochs; the paper's numbers are only for this number of epochs."""
    rows = _rows(evidence, HEAD.name, IMDB)
    own = rows[rows["epochs"] == epochs]
    if own.empty:
        raise MissingEvidence(
            f"the experiment `{HEAD.name}` was not run on {IMDB} for {epochs} epochs, the number in the paper"
        )
    return own


def _rows(evidence: Sequence[Evidence], experiment: str, file: str) -> pd.DataFrame:
    """Return the rows of an experiment on a features file of this name, from the first run that has such rows.

    Raises:
        MissingEvidence: There are no such rows.
    """
    for each in evidence:
        if each.has_table(experiment):
            rows = each.table(experiment)
            own = rows[[is_file(data) and PurePath(data).stem == file for data in rows["data"]]]
            if not own.empty:
                return own
    raise MissingEvidence(
        f"the claim needs {_CONTENT[file]}, which this package cannot download; write them to {file}.npz or "
        f"{file}.parquet, as docs/howto/features-files.md describes, and set `data` of {experiment} to this file"
    )
