"""Rows as a table for readers: common values are stated once, epsilons are columns, and fractions are rounded up."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import pandas as pd

from certified_unlearning.reproduction import declared
from certified_unlearning.reproduction.experiment import Experiment
from certified_unlearning.text import rounded_up, table_lines

_DIGITS = 7


@dataclass(frozen=True)
class ShownTable:
    """A table whose cells are texts.

    ``facts`` states what all rows share. The key of a group states what the group's rows share, and may be
    empty.
    """

    facts: str
    columns: list[str]
    groups: dict[str, list[list[str]]]

    def markdown(self, title: str, text: str = "") -> str:
        """Return the table as a section of Markdown, ending with a newline."""
        lines = [f"## {title}", *filter(None, (text, self.facts))]
        for name, rows in self.groups.items():
            lines += [*([f"### {name}"] if name else []), "\n".join(table_lines(self.columns, rows))]
        return "\n\n".join(lines) + "\n"


def tabulate(experiment: Experiment, rows: pd.DataFrame) -> ShownTable:
    """Return an experiment's rows as a table for readers, from `Experiment.page` if the experiment has it."""
    if experiment.page is not None:
        shown: ShownTable = declared.function(experiment.page)(rows)
        return shown
    frame = rows.map(_cell)
    shared = [name for name in frame.columns if len(frame) > 1 and name != "sigma" and len(set(frame[name])) == 1]
    varying = frame.drop(columns=shared)
    columns, groups = (
        _by_epsilon(varying)
        if {"epsilon_target", *_GROUP} <= set(varying.columns)
        else (list(varying.columns), {"": varying.to_numpy().tolist()})
    )
    return ShownTable(", ".join(f"{name} = {frame[name].iloc[0]}" for name in shared), columns, groups)


_GROUP = ["smoothness", "smoothness_constant"]


def _by_epsilon(frame: pd.DataFrame) -> tuple[list[str], dict[str, list[list[str]]]]:
    """Return the columns, and the rows grouped by the rule for the smoothness.

    Each epsilon has a column of sigmas.
    """
    names = [name for name in frame.columns if name not in ("epsilon_target", "sigma", *_GROUP)]
    epsilons = list(dict.fromkeys(frame["epsilon_target"]))
    groups = {}
    for (rule, constant), of_rule in frame.groupby(_GROUP, sort=False):
        sigmas: dict[tuple[str, ...], dict[str, str]] = {}
        for _, row in of_rule.iterrows():
            sigmas.setdefault(tuple(row[names]), {})[row["epsilon_target"]] = row["sigma"]
        groups[f"{rule}: L = {constant}"] = [
            [*key, *(own.get(epsilon, "–") for epsilon in epsilons)] for key, own in sigmas.items()
        ]
    return [*names, *(f"ε = {epsilon}" for epsilon in epsilons)], groups


def _cell(value: object) -> str:
    return "" if pd.isna(value) else text_of(repr(value) if isinstance(value, float) else str(value))  # type: ignore[call-overload]


def text_of(cell: str) -> str:
    """Return a long fraction rounded up, and any other text unchanged."""
    try:
        number = Decimal(cell).as_tuple()
    except InvalidOperation:
        return cell
    fraction = isinstance(number.exponent, int) and number.exponent < 0
    return rounded_up(float(cell), _DIGITS) if fraction and len(number.digits) > _DIGITS else cell
