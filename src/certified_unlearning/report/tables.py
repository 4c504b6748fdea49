"""The paper's tables, recomputed, in a shape to read: what all rows share is said once, epsilons are columns."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

import pandas as pd

from certified_unlearning.report.captions import TABLES
from certified_unlearning.report.embedding import Download, download, read_csv
from certified_unlearning.rounding import rounded_up

_DIGITS = 7


@dataclass(frozen=True)
class PaperTable:
    """One table of texts; ``facts`` is what all its rows share, groups are rows by what they share (or "")."""

    title: str
    facts: str
    columns: list[str]
    groups: dict[str, list[list[str]]]
    download: Download


def paper_tables(directory: Path) -> list[PaperTable]:
    """Return the tables among a preset's results, as `paper_tables` writes them; fractions are rounded up.

    Raises:
        DataError: A file is no table.
    """
    files = {directory / "plots" / f"{name}.csv": title for name, title in TABLES.items()}
    return [_table(path, title) for path, title in files.items() if path.exists()]


def _table(path: Path, title: str) -> PaperTable:
    frame = read_csv(path, "tables").map(shown)
    shared = [name for name in frame.columns if len(frame) > 1 and name != "sigma" and len(set(frame[name])) == 1]
    varying = frame.drop(columns=shared)
    columns, groups = (
        _by_epsilon(varying)
        if {"epsilon_target", *_GROUP} <= set(varying.columns)
        else (list(varying.columns), {"": varying.to_numpy().tolist()})
    )
    facts = ", ".join(f"{name} = {frame[name].iloc[0]}" for name in shared)
    file = download(path, f"{path.parent.parent.name}-{path.name}", "tables")
    return PaperTable(title, facts, columns, groups, file)


_GROUP = ["smoothness", "smoothness_constant"]


def _by_epsilon(frame: pd.DataFrame) -> tuple[list[str], dict[str, list[list[str]]]]:
    """Return the columns with one for each epsilon, which holds sigma, and the rows by the rule for the smoothness."""
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


def shown(cell: str) -> str:
    """Return a long fraction rounded up, anything else as it is."""
    try:
        number = Decimal(cell).as_tuple()
    except InvalidOperation:
        return cell
    fraction = isinstance(number.exponent, int) and number.exponent < 0
    return rounded_up(float(cell), _DIGITS) if fraction and len(number.digits) > _DIGITS else cell
