"""Measures that are computed from the experiments' rows."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import pandas as pd

from certified_unlearning.papers.gradient_certificates.batches import BATCHES
from certified_unlearning.papers.gradient_certificates.figures.batches import least_batches
from certified_unlearning.papers.gradient_certificates.fine_tuning import FINE_TUNING
from certified_unlearning.papers.gradient_certificates.head import HEAD
from certified_unlearning.papers.gradient_certificates.learning import CHANGES
from certified_unlearning.papers.gradient_certificates.regions import REGIONS
from certified_unlearning.papers.gradient_certificates.shares import SHARES
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, table_of
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

STANDARD_ERRORS = 5
"""Half the width of the confidence intervals of means over trials, in standard errors."""
_REMEDY = "run `snakemake --config preset=certificates`"


@sweep("k = {k}")
def certified_share(evidence: Sequence[Evidence], *, case: str, k: int, bounds: str = "tighter") -> float:
    """Return, for one case of ``shares``, the mean share of test predictions that are certified."""
    rows = table_of(evidence, SHARES.name)
    return float(_at(rows, case, k, bounds)["share"])


@measure
def share_changes(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return the change of the certified share from each k to the next one, for every line of ``shares``."""
    found = []
    for (case, gamma, bounds), line in table_of(evidence, SHARES.name).groupby(["case", "gamma", "bounds"], sort=False):
        ordered = line.sort_values("k")
        changes = ordered["share"].diff().iloc[1:]
        found += [
            Quantity(float(change), f"{case}, gamma = {gamma:g}, {bounds}, k = {k}")
            for change, k in zip(changes, ordered["k"].iloc[1:], strict=True)
        ]
    return found


@measure
def tighter_less_published(evidence: Sequence[Evidence]) -> dict[str, float]:
    """Return the share that our bounds certify minus the share that the published bounds certify.

    The result has a value for every case in which both kinds of bounds were run.
    """
    rows = table_of(evidence, SHARES.name)
    keys = ["case", "gamma", "k"]
    both = rows[rows["bounds"] == "tighter"].merge(rows[rows["bounds"] == "published"], on=keys)
    if both.empty:
        raise MissingEvidence(f"no case of the experiment `{SHARES.name}` was run with both kinds of bounds; {_REMEDY}")
    return {
        f"{row['case']}, gamma = {row['gamma']:g}, k = {row['k']}": row["share_x"] - row["share_y"]
        for _, row in both.iterrows()
    }


@measure
def domain_shares(evidence: Sequence[Evidence], *, k: int) -> dict[str, float]:
    """Return the certified share of the plane for k records, for each panel of ``regions``."""
    rows = table_of(evidence, REGIONS.name)
    if k not in set(rows["radius"]) | {rows["largest_k"].iloc[0]}:
        raise MissingEvidence(
            f"the experiment `{REGIONS.name}` was not run for k = {k}; add {k} to its `k` in `params.yaml`"
        )
    return {
        f"{data}, {mode}, gamma = {gamma:g}": float((panel["radius"] >= k).mean())
        for (data, mode, gamma), panel in rows.groupby(["data", "mode", "gamma"], sort=False)
    }


@measure
def regions_compared(
    evidence: Sequence[Evidence], *, by: Literal["data", "gamma", "mode"], larger: list[str]
) -> list[Quantity]:
    """Return the certified share of the plane for one value of a column minus the share for another value, at every k.

    Args:
        evidence: The results.
        by: The column whose values are compared.
        larger: Two values of the column: first the value whose share should be larger, then the other value. The list
            is empty for ``gamma``, for which the smaller level should have the larger share.
    """
    rows = table_of(evidence, REGIONS.name)
    shares = {
        (k, *panel): float((own["radius"] >= k).mean())
        for panel, own in rows.groupby(["data", "mode", "gamma"], sort=False)
        for k in sorted({*rows["radius"]} - {0})
    }
    place = ["data", "mode", "gamma"].index(by)
    values = sorted({*rows["gamma"]}) if by == "gamma" else larger
    found = []
    for key, share in shares.items():
        other = (*key[: place + 1], values[1], *key[place + 2 :]) if len(values) > 1 else key
        if key[place + 1] == values[0] and other in shares and other != key:
            name = ", ".join(str(each) for number, each in enumerate(key[1:]) if number != place)
            found.append(Quantity(share - shares[other], f"{name}, k = {key[0]}"))
    if not found:
        raise MissingEvidence(f"the experiment `{REGIONS.name}` has no two panels that differ only in {by}; {_REMEDY}")
    return found


@measure
def least_batch_changes(
    evidence: Sequence[Evidence], *, across: Literal["depth", "mode"], lost: float = math.inf
) -> list[Quantity]:
    """Return quotients of the smallest sufficient batch sizes.

    A quotient is the size for a depth divided by the size for the preceding depth, or the size for privacy divided by
    the size for unlearning.

    Args:
        evidence: The results.
        across: The comparison: ``depth``, or ``mode`` for privacy divided by unlearning.
        lost: The value for a network that no batch of the sweep certifies, although a batch certifies the preceding
            network.
    """
    rows = table_of(evidence, BATCHES.name)
    least = {mode: least_batches(rows[rows["mode"] == mode]).to_dict() for mode in CHANGES}
    depths = sorted({*rows["depth"]})
    pairs = (
        [((mode, a), (mode, b), f"{mode}, {a} to {b} layers") for mode in CHANGES for a, b in pairwise(depths)]
        if across == "depth"
        else [(("unlearning", depth), ("privacy", depth), f"{depth} layers") for depth in depths]
    )
    found = [
        Quantity(least[after[0]].get(after[1], lost) / least[before[0]][before[1]], name)
        for before, after, name in pairs
        if before[1] in least[before[0]]
    ]
    if not found:
        raise MissingEvidence(f"no batch size of the sweep certifies the wanted share of predictions; {_REMEDY}")
    return [each for each in found if math.isfinite(each.value)] or [Quantity(len(found), "networks lost")]


@measure
def fine_tuned_shares(evidence: Sequence[Evidence], *, k: int) -> list[Quantity]:
    """Return the certified share of the new class for k records, for every mode and clipping level."""
    rows = table_of(evidence, FINE_TUNING.name)
    return [
        Quantity(row["share"], f"{row['mode']}, gamma = {row['gamma']:g}", _error(row))
        for _, row in rows[rows["k"] == k].iterrows()
    ]


@measure
def fine_tuned_changes(evidence: Sequence[Evidence], *, across: Literal["gamma", "mode"]) -> list[Quantity]:
    """Return how the share changes from one clipping level to the next larger one, or from unlearning to privacy."""
    rows = table_of(evidence, FINE_TUNING.name)
    other = "mode" if across == "gamma" else "gamma"
    found = []
    for (value, k), line in rows.groupby([other, "k"], sort=False):
        ordered = line.sort_values("gamma")
        if across == "mode":
            ordered = line.set_index("mode").loc[["unlearning", "privacy"]].reset_index()
        found += [
            # Boxes of the two modes are nested in each trial; those of clipping levels are not.
            Quantity(
                b["share"] - a["share"],
                f"{value}, k = {k}, {a[across]} to {b[across]}",
                math.hypot(_error(a), _error(b)) if across == "gamma" else 0.0,
            )
            for (_, a), (_, b) in pairwise(ordered.iterrows())
        ]
    if not found:
        raise MissingEvidence(f"the experiment `{FINE_TUNING.name}` was run with only one clipping level; {_REMEDY}")
    return found


@measure
def fine_tuned_accuracy(evidence: Sequence[Evidence], *, level: Literal["smallest", "largest"]) -> dict[str, float]:
    """Return how much fine-tuning increases accuracy on the new class, at the smallest or largest clipping level."""
    rows = table_of(evidence, FINE_TUNING.name).sort_values("gamma")
    if level == "smallest" and len(set(rows["gamma"])) == 1:
        raise MissingEvidence(f"the experiment `{FINE_TUNING.name}` was run with only one clipping level; {_REMEDY}")
    row = rows.iloc[0 if level == "smallest" else -1]
    return {f"gamma = {row['gamma']:g}": row["accuracy"] - row["accuracy_before"]}


@measure
def head_compared(evidence: Sequence[Evidence], *, across: Literal["mode", "epochs"]) -> dict[str, float]:
    """Return the shares for privacy minus those for unlearning, or the changes of shares during training.

    The changes are from each number of epochs to the next.
    """
    found: dict[str, float] = {}
    for k, own in table_of(evidence, HEAD.name).groupby("k", sort=True):
        shares = own.pivot_table("share", "epochs", "mode")
        if across == "mode":
            both = shares["privacy"] - shares["unlearning"]
            found |= {f"k = {k}, {epochs} epochs": float(each) for epochs, each in both.items()}
        else:
            for mode in CHANGES:
                steps = shares[mode].diff().iloc[1:]
                found |= {f"{mode}, k = {k}, {epochs} epochs": float(each) for epochs, each in steps.items()}
    return found


@measure
def head_accuracy(evidence: Sequence[Evidence], *, over: Literal["bounds", "chance"]) -> dict[str, float]:
    """Return the distance from the accuracy to the nearer of its bounds, or the final accuracy minus one half."""
    rows = table_of(evidence, HEAD.name)
    if over == "chance":
        last = rows[rows["epochs"] == rows["epochs"].max()].iloc[0]
        return {f"{last['epochs']} epochs": last["accuracy"] - 0.5}
    return {
        f"{row['mode']}, k = {row['k']}, {row['epochs']} epochs": min(
            row["accuracy"] - row["least_accuracy"], row["largest_accuracy"] - row["accuracy"]
        )
        for _, row in rows.iterrows()
    }


def _error(row: pd.Series) -> float:
    return STANDARD_ERRORS * float(row["share_std"]) / math.sqrt(row["trials"])


def _at(rows: pd.DataFrame, case: str, k: int, bounds: str) -> pd.Series:
    found = rows[(rows["case"] == case) & (rows["k"] == k) & (rows["bounds"] == bounds)]
    if found.empty:
        raise MissingEvidence(f"no case {case} with k = {k}, {bounds}; {_REMEDY}")
    return found.iloc[0]
