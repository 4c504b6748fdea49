"""Runs of columns in a declaration: ``pixel_0 to pixel_767`` means all features from the first to the last."""

import json
from collections.abc import Container, Mapping, Sequence
from typing import TypeVar

from certified_unlearning.data.tables.declaration import RUN, Table
from certified_unlearning.errors import DataError, ParameterError

Given = TypeVar("Given")


def chosen_features(table: Table, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the features that a declaration lists, with runs expanded.

    A run skips the label, the identifier and the column of the split.

    Args:
        table: The declaration; it must list features.
        columns: All columns of the file, in its order.

    Raises:
        ParameterError: A run cannot be read, or begins or ends at a column that is not a feature.
        DataError: The file lacks the first or the last column of a run.
    """
    roles = set(table.roles.values())
    others = [column for column in columns if column not in roles]
    return tuple(
        column for name in table.features or () for column in _columns(name, columns, others, table.path, "features")
    )


def written_out(table: Table, columns: Sequence[str]) -> Table:
    """Return a declaration in which the columns of every run are written out one by one.

    Args:
        table: The declaration; its features are single columns.
        columns: All columns of the file, in its order.

    Raises:
        ParameterError: A run cannot be read, begins or ends at a column that is not a feature, gives numbers but covers
            a column of categories, or contradicts another key.
        DataError: The file lacks the first or the last column of a run.
    """
    chosen = set(table.features or ())
    features = [column for column in columns if column in chosen]
    categories = _each("categories", table.categories, table.path, columns, features, ())
    ranges = _each("ranges", table.ranges, table.path, columns, features, categories)
    missing = _each("missing", table.missing, table.path, columns, features, categories)
    return table.model_copy(update={"categories": categories, "ranges": ranges, "missing": missing})


def _each(
    key: str,
    given: Mapping[str, Given],
    path: str,
    columns: Sequence[str],
    features: Sequence[str],
    categories: Container[str],
) -> dict[str, Given]:
    """Return, for each column, the value that a key of the declaration, such as ``ranges``, gives to the column.

    Runs must not cover columns in ``categories``.
    """
    found: dict[str, Given] = {}
    origin: dict[str, str] = {}
    for name, value in given.items():
        for column in _columns(name, columns, features, path, key):
            if found.get(column, value) != value:
                raise ParameterError(
                    f"{path}: under {key}, {origin[column]!r} sets {column!r} to {_shown(found[column])}, but "
                    f"{name!r} sets it to {_shown(value)}; name the column only once: end the run before this column, "
                    "and begin another run after it"
                )
            if column != name and column in categories:
                raise ParameterError(
                    f"{path}: {key} has the run {name!r}, which covers {column!r}, but this column has categories, "
                    "not numbers; end the run before this column, and begin another run after it"
                )
            found[column], origin[column] = value, name
    return found


def _shown(value: object) -> str:
    return json.dumps(value)


def _columns(name: str, columns: Sequence[str], among: Sequence[str], path: str, key: str) -> Sequence[str]:
    """Return the columns that a name in a declaration refers to: one column, or all columns of a run.

    Args:
        name: A column, or a run. If a column has the name of a run, the column takes precedence.
        columns: All columns of the file, in its order.
        among: The columns that a run may cover, in the same order.
        path: The file.
        key: The key that contains the name.
    """
    if name in columns:
        return [name]
    if RUN not in name:
        if "*" in name:
            raise DataError(
                f"{path}: {key} has {name!r}, but the file has no such column; write many columns as 'first{RUN}last'"
            )
        return [name]
    parts = name.split(RUN)
    ends = [(RUN.join(parts[:cut]), RUN.join(parts[cut:])) for cut in range(1, len(parts))]
    known = [pair for pair in ends if pair[0] in columns and pair[1] in columns]
    if not known:
        lacking = next(end for end in ends[0] if end not in columns)
        raise DataError(f"{path}: {key} has the run {name!r}, but the file has no column {lacking!r}")
    where = f"{path}: {key} has the run {name!r}"
    if len(known) > 1:
        readings = " or ".join(f"from {first!r} to {last!r}" for first, last in known)
        raise ParameterError(f"{where}, which may be {readings}; list the columns one by one")
    ((first, last),) = known
    for end in (first, last):
        if end not in among:
            raise ParameterError(f"{where}, but {end!r} is not a feature; a run begins and ends at a feature")
    start, stop = among.index(first), among.index(last)
    if start > stop:
        raise ParameterError(f"{where}, but {last!r} comes before {first!r} in the file; write '{last}{RUN}{first}'")
    return among[start : stop + 1]
