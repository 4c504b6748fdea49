"""What each accountant asks for, one number a cell: the workflow's table holds the numbers of all epsilons in one."""

from dataclasses import dataclass
from pathlib import Path

from certified_unlearning.errors import DataError
from certified_unlearning.report.embedding import Download, download, read_csv


@dataclass(frozen=True)
class Quantity:
    """What is asked for, and for each epsilon the number of each accountant."""

    name: str
    rows: tuple[tuple[str, list[str]], ...]


@dataclass(frozen=True)
class Accountants:
    """The comparison of a preset's accountants."""

    preset: str
    accountants: tuple[str, ...]
    quantities: tuple[Quantity, ...]
    download: Download


def accountants(results: Path, preset: str) -> Accountants:
    """Return the comparison in ``plots/accountants.csv``, as `accountant_table` writes it.

    Raises:
        DataError: The file is missing, is no table, or lacks numbers.
    """
    path = results / preset / "plots" / "accountants.csv"
    frame = read_csv(path, "accountants")
    return Accountants(
        preset=preset,
        accountants=tuple(frame.columns[1:]),
        quantities=tuple(_quantity(path, *row) for row in frame.itertuples(index=False, name=None)),
        download=download(path, f"{preset}-accountants.csv", "accountants"),
    )


def _quantity(path: Path, quantity: str, *cells: str) -> Quantity:
    name, _, epsilons = quantity.rpartition("epsilon = ")
    rows = [epsilons.split(", "), *(cell.split(", ") for cell in cells)]
    if len({len(row) for row in rows}) > 1:
        raise DataError(f"{path}: the row {quantity!r} has not one number for each epsilon and accountant")
    return Quantity(name.rstrip(" ,:"), tuple((epsilon, numbers) for epsilon, *numbers in zip(*rows, strict=True)))
