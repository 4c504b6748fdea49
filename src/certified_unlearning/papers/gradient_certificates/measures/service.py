"""Measures of streams of requests to shards with budgets."""

import math
from collections.abc import Sequence

import pandas as pd

from certified_unlearning.papers.gradient_certificates.service import SERVICE
from certified_unlearning.reproduction.claims.evidence import Evidence, with_table
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

STANDARD_ERRORS = 6
"""Half the width of intervals of means over streams."""


@measure
def wrong_answers(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return how many answers differ from those of the ensemble trained again, of every stream and budget."""
    return [Quantity(float(row["wrong"]), _name(row)) for _, row in _service(evidence).iterrows()]


@measure
def answers_compared(evidence: Sequence[Evidence]) -> float:
    """Return how many answers were compared with those of the ensemble trained again, in all."""
    return float(_service(evidence)["compared"].sum())


@measure
def requests_until_trained(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return how many requests to one shard there are until it is trained again, over its budget and one more."""
    rows = _service(evidence)
    own = rows[rows["stream"] == "one shard"]
    return [Quantity(row["first"] / (row["budget"] + 1), f"budget {row['budget']}") for _, row in own.iterrows()]


@measure
def requests_until_out(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return with how many random requests no shard has budget left, over what a Poisson stream expects."""
    rows = _service(evidence)
    own = rows[rows["stream"] == "random"]
    return [
        Quantity(
            row["out"] / row["out_expected"],
            f"budget {row['budget']}",
            STANDARD_ERRORS * row["out_std"] / math.sqrt(row["waits"]) / row["out_expected"],
        )
        for _, row in own.iterrows()
    ]


@measure
def refused_of_one_shard_less_in_turn(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return the share refused where all requests go to one shard, less that where they go to each in turn."""
    rows = _service(evidence)
    both = rows[rows["stream"] == "one shard"].merge(rows[rows["stream"] == "in turn"], on="budget")
    return [Quantity(row["refused_x"] - row["refused_y"], f"budget {row['budget']}") for _, row in both.iterrows()]


@measure
def work_of_sisa_over_ours(evidence: Sequence[Evidence], *, stream: str) -> list[Quantity]:
    """Return how many gradients plain SISA takes for each of ours, by budget."""
    rows = _service(evidence)
    own = rows[rows["stream"] == stream].dropna(subset=["against_sisa"])
    return [Quantity(row["against_sisa"] / row["budget"], f"budget {row['budget']}") for _, row in own.iterrows()]


def _service(evidence: Sequence[Evidence]) -> pd.DataFrame:
    return with_table(evidence, SERVICE.name).table(SERVICE.name)


def _name(row: pd.Series) -> str:
    return f"{row['stream']}, budget {row['budget']}"
