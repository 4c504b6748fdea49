"""The readable table of the audits."""

from typing import Any

import pandas as pd

from certified_unlearning.accounting.auditing.shown import Verdict, ceiling, floor
from certified_unlearning.papers.cheaper_than_retraining.audits.names import BY_LAWS, IN_ONE_RUN, ONE_RUN, TWO_LAWS
from certified_unlearning.reproduction.tabulation import ShownTable

_COLUMNS = ["system", "n", "target", "certified at most", "measured at least", "before", "verdict", "also"]
_GROUPS = {ONE_RUN: ("In one run: epsilon", "epsilon"), TWO_LAWS: ("Of two laws: mu", "mu")}
NAMES = {ONE_RUN: IN_ONE_RUN, TWO_LAWS: BY_LAWS}


def page(rows: pd.DataFrame) -> ShownTable:
    """Return a table for each kind of audit; upper bounds are rounded up, and lower bounds are rounded down."""
    first = rows.iloc[0]
    facts = (
        f"Each lower bound holds with {1 - first['level']:.0%} confidence. The probability of a false alarm is at most "
        f"{first['alpha']:g} for one verdict, and at most {first['alpha'] * len(rows):.2g} for any of these "
        f"{len(rows)} verdicts. An audit that finds nothing proves nothing."
    )
    return ShownTable(
        facts,
        _COLUMNS,
        {
            title: [_line(row, name) for _, row in rows[rows["kind"] == kind].iterrows()]
            for kind, (title, name) in _GROUPS.items()
        },
    )


def verdict(row: "pd.Series[Any]") -> Verdict:
    """Return the verdict of a row."""
    return "violated" if row["violated"] else "nothing found" if row["has_power"] else "no power"


def _line(row: "pd.Series[Any]", name: str) -> list[str]:
    start = [NAMES[row["kind"]][row["system"]], f"{row['n']:,}", f"{row['target']:g}" if row["target"] else "–"]
    if row["skipped"]:
        return [*start, f"not run: {row['skipped']}", *[""] * (len(_COLUMNS) - len(start) - 1)]
    certified = "nothing" if pd.isna(row[name]) else ceiling(row[name])
    bounds = [floor(row[f"{name}_measured"]), floor(row[f"{name}_before"])]
    return [*start, certified, *bounds, verdict(row), _also(row)]


def _also(row: "pd.Series[Any]") -> str:
    if row["kind"] == ONE_RUN:
        right = f"{row['right']} right guesses of {row['removed']}, before {row['right_before']}"
        return right + (f"; each canary {row['copies']} times" if row["copies"] > 1 else "")
    computed = "" if pd.isna(row["mu_computed"]) else f"; computed for these records: {row['mu_computed']:.2g}"
    return f"estimate {row['mu_estimated']:.2f}, {row['mu_estimated'] / row['mu']:.0%} of certified{computed}"
