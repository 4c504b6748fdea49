"""Measures of the experiment `service`: streams of requests to shards that have budgets."""

import math
from collections.abc import Sequence

import pandas as pd

from certified_unlearning.papers.gradient_certificates.service import SERVICE
from certified_unlearning.reproduction.claims.evidence import Evidence, table_of
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

STANDARD_ERRORS = 6
"""Half the width of the confidence intervals of means over streams, in standard errors."""


@measure
def wrong_answers(evidence: Sequence[Evidence]) -> dict[str, float]:
    """Return the number of answers that differ from those of the retrained ensemble, for every stream and budget."""
    return {f"{row['stream']}, {_budget(row)}": float(row["wrong"]) for _, row in _service(evidence).iterrows()}


@measure
def answers_compared(evidence: Sequence[Evidence]) -> float:
    """Return the total number of answers that were compared with those of the retrained ensemble."""
    return float(_service(evidence)["compared"].sum())


@measure
def requests_until_trained(evidence: Sequence[Evidence]) -> dict[str, float]:
    """Return the number of requests to one shard until the shard is retrained, divided by ``budget + 1``."""
    own = _service(evidence, "one shard")
    return {_budget(row): row["first"] / (row["budget"] + 1) for _, row in own.iterrows()}


@measure
def requests_until_out(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return the number of random requests until no shard has budget left, divided by the expected number.

    The expected number is for a Poisson stream.
    """
    return [
        Quantity(
            row["out"] / row["out_expected"],
            _budget(row),
            STANDARD_ERRORS * row["out_std"] / math.sqrt(row["waits"]) / row["out_expected"],
        )
        for _, row in _service(evidence, "random").iterrows()
    ]


@measure
def refused_of_one_shard_less_in_turn(evidence: Sequence[Evidence]) -> dict[str, float]:
    """Return the refused share if all requests go to one shard, minus the share if they go to the shards in turn."""
    both = _service(evidence, "one shard").merge(_service(evidence, "in turn"), on="budget")
    return {_budget(row): row["refused_x"] - row["refused_y"] for _, row in both.iterrows()}


@measure
def work_of_sisa_over_ours(evidence: Sequence[Evidence], *, stream: str) -> dict[str, float]:
    """Return plain SISA's number of gradients divided by the product of our number and the budget, for every budget."""
    own = _service(evidence, stream).dropna(subset=["against_sisa"])
    return {_budget(row): row["against_sisa"] / row["budget"] for _, row in own.iterrows()}


def _service(evidence: Sequence[Evidence], stream: str = "") -> pd.DataFrame:
    """Return the rows of one stream, or of all streams."""
    rows = table_of(evidence, SERVICE.name)
    return rows[rows["stream"] == stream] if stream else rows


def _budget(row: pd.Series) -> str:
    return f"budget {row['budget']}"
