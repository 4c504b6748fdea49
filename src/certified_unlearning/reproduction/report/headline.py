"""Tables at the top of the page, with a column for each target epsilon and a group of rows for each preset.

Functions of the papers make these tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """One number in a table.

    Attributes:
        value: The number.
        spread: One standard deviation over trials, if there are several.
        epsilon: Epsilon of the row, rounded up, if it differs from the target at the top of the column.
        above: Whether that epsilon is above the target.
        share: The number divided by the largest one in its group, for a bar; None for no bar.
        beneath: Another number of the same run, with its name or unit, to be shown below.
    """

    value: str
    spread: str | None = None
    epsilon: str | None = None
    above: bool = False
    share: float | None = None
    beneath: str | None = None


@dataclass(frozen=True)
class Line:
    """One method, and its cells, keyed by target epsilon."""

    method: str
    guarantee: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Group:
    """The lines of one preset, and what these lines have in common."""

    preset: str
    facts: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class HeadlineTable:
    """A table with one column for each target epsilon, and one group of rows for each preset.

    Attributes:
        name: Id of the table's place on the page.
        caption: What the table shows.
        note: How to read the table.
        epsilons: Target epsilons of the columns.
        groups: Groups of rows.
    """

    name: str
    caption: str
    note: str
    epsilons: tuple[str, ...]
    groups: tuple[Group, ...]
