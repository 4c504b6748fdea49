"""Tables at the head of the page: numbers by target epsilon, one group a preset; papers make them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """One number.

    Attributes:
        value: The number.
        spread: One standard deviation over trials, if there are several.
        epsilon: The row's epsilon, rounded up, where it is not the target that heads the column.
        above: Whether that epsilon is above the target.
        share: The number as a share of its group's largest, for a bar; None for no bar.
        beneath: Another number of the same run, with its name or unit.
    """

    value: str
    spread: str | None = None
    epsilon: str | None = None
    above: bool = False
    share: float | None = None
    beneath: str | None = None


@dataclass(frozen=True)
class Line:
    """One method, with its cells by the epsilon aimed at."""

    method: str
    guarantee: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Group:
    """The lines of one preset, and what they have in common."""

    preset: str
    facts: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class HeadlineTable:
    """A table whose columns are targets of epsilon and whose groups are presets.

    Attributes:
        name: The id of its place on the page.
        caption: What it shows.
        note: How to read it.
        epsilons: The columns.
        groups: The rows.
    """

    name: str
    caption: str
    note: str
    epsilons: tuple[str, ...]
    groups: tuple[Group, ...]
