"""Measures of attacks on deletion, and of the excess risk along a stream of deletions."""

from collections.abc import Sequence
from typing import Any, Literal, cast

import pandas as pd

from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.forget_unlearning.names import Attack, MechanismName
from certified_unlearning.papers.forget_unlearning.services.advantage import Measured
from certified_unlearning.reproduction.claims.evidence import Evidence, table_of
from certified_unlearning.reproduction.claims.intervals import FALSE_ALARMS
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

Row = dict[str, Any]


@measure
def attack_advantage(
    evidence: Sequence[Evidence], *, attack: Attack, mechanisms: list[MechanismName]
) -> list[Quantity]:
    """Return the measured advantage of an attack, one value for each mechanism."""
    return [_advantage(_cell(evidence, attack, each), 0.0, len(mechanisms)) for each in mechanisms]


@measure
def advantage_over_promise(
    evidence: Sequence[Evidence], *, attack: Attack, mechanisms: list[MechanismName]
) -> list[Quantity]:
    """Return the measured advantage of an attack minus the advantage that the published certificate promises."""
    cells = [_cell(evidence, attack, each) for each in mechanisms]
    return [_advantage(cell, cell["promised"], len(mechanisms)) for cell in cells]


@measure
def advantage_surely_over_bound(evidence: Sequence[Evidence], *, mechanism: MechanismName) -> list[Quantity]:
    """Return the lower confidence bound of every attack on a mechanism, minus the valid bound."""
    attacks = table_of(evidence, "deletion")
    cells = _rows(attacks[attacks["mechanism"] == mechanism])
    return [
        Quantity(_measured(cell).interval(FALSE_ALARMS / len(cells)).low - cell["bound"], cell["attack"])
        for cell in cells
    ]


@measure
def risk_over_certified(evidence: Sequence[Evidence], *, requester: Literal["fixed", "adaptive"]) -> list[Quantity]:
    """Return the mean excess risk of every model of a stream, divided by the risk that Theorem 5.1 certifies."""
    risks = table_of(evidence, "risk")
    rows = _rows(risks[risks["requester"] == requester])
    return [
        Quantity(
            row["risk"] / row["certified"],
            f"after {row['request']} requests",
            _quantile(row["trials"], len(rows)) * row["standard_error"] / row["certified"],
        )
        for row in rows
    ]


def _rows(table: pd.DataFrame) -> list[Row]:
    return cast(list[Row], table.to_dict("records"))


def _quantile(trials: int, comparisons: int) -> float:
    from scipy.special import stdtrit

    return -float(stdtrit(trials - 1, FALSE_ALARMS / (2 * comparisons)))


def _cell(evidence: Sequence[Evidence], attack: Attack, mechanism: MechanismName) -> Row:
    attacks = table_of(evidence, "deletion")
    cells = _rows(attacks[(attacks["attack"] == attack) & (attacks["mechanism"] == mechanism)])
    if len(cells) != 1:
        raise ParameterError(f"the attack {attack} does not apply to {mechanism}")
    return cells[0]


def _measured(cell: Row) -> Measured:
    return Measured(cell["interactions"], cell["right"], cell["wrong"])


def _advantage(cell: Row, less: float, comparisons: int) -> Quantity:
    measured = _measured(cell)
    low, high = measured.interval(FALSE_ALARMS / comparisons)
    half_width = max(high - measured.advantage, measured.advantage - low)
    return Quantity(measured.advantage - less, cell["mechanism"], half_width)
