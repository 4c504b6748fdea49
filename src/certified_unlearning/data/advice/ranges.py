"""Lines that a declaration needs so that no column of a table dominates the others."""

import json
import re
import shlex
from collections.abc import Sequence

from certified_unlearning.data.advice.shares import DominantColumn, Shares
from certified_unlearning.data.tables.declaration import Table

MOST_SHOWN = 8
"""The largest number of columns that one line of advice can name."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def shares_of(table: Table) -> Shares:
    """Return an empty tally for the rows of a resolved table."""
    columns = table.features or ()
    numbers = [column for column in columns if column not in table.text for _ in table.categories.get(column, (None,))]
    words = [column for column in columns if column in table.text for _ in range(table.text[column].width)]
    return Shares(numbers + words)


def warning_about(table: Table, largest: DominantColumn, file: str | None = None) -> str:
    """Return a warning about a column, with the lines to add.

    Args:
        table: The declaration, resolved.
        largest: The column that dominates the others.
        file: The YAML file of the declaration; None if the declaration was given by flags or its file is not available.
    """
    others = {*table.categories, *table.text}
    columns = [column for column in table.features or () if column not in others]
    bare = [column for column in columns if column not in table.ranges]
    if largest.column in bare:
        # The dominant column comes first.
        bare.sort(key=lambda column: column != largest.column)
        ranges = "its range" if len(bare) == 1 else "its range and the ranges of the other columns of numbers"
    else:
        ranges = "the ranges of the other columns"
    if not bare:
        return (
            f"{largest.in_words()}: most values of the other columns lie near the middle of these columns' "
            f"ranges; declare narrower ranges, which need not include the rarest values, or leave "
            f"{largest.column} out"
        )
    return f"{largest.in_words()}; declare {ranges}: {_lines(bare, table, file)}"


def _lines(columns: Sequence[str], table: Table, file: str | None) -> str:
    shown, left = columns[:MOST_SHOWN], len(columns) - MOST_SHOWN
    more = f", and so on for {left} more" if left > 0 else ""
    known = "two numbers known beforehand" + ("" if len(columns) == 1 else " for each")
    if file is None:
        flags = " ".join(f"--range {shlex.quote(f'{column}=LOW:HIGH')}" for column in shown)
        without = ", without --norm at-most-1" if table.norm == "at-most-1" else ""
        return f"{flags}{more}, {known}{without}"
    lines = ", ".join(f"{_key(column)}: [LOW, HIGH]" for column in shown)
    instead = ", with norm: unit" if table.norm == "at-most-1" else ""
    return f"{lines}{more}, under `ranges` in {file}, {known}{instead}"


def _key(column: str) -> str:
    """Return a column's name as a YAML key."""
    return column if _PLAIN.fullmatch(column) else json.dumps(column, ensure_ascii=False)
