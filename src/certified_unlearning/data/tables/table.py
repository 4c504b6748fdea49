"""A user's own table, CSV or Parquet, read in blocks, so it may be larger than memory.

Each row becomes features independently of all other rows: its categories are declared and one-hot encoded, its numbers
are mapped by declared ranges, its missing numbers are replaced by declared constants, and the row is divided by its own
norm, unless the declaration says that norms are at most 1. Nothing is fitted to other rows, so preparation costs no
privacy, and removing a record does not change any other record.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from certified_unlearning.data.prepared import NORM_TOLERANCE
from certified_unlearning.data.tables.classes import count_classes, require_common
from certified_unlearning.data.tables.csv_file import Prose
from certified_unlearning.data.tables.declaration import Table, check, check_weights, text_of
from certified_unlearning.data.tables.runs import chosen_features, written_out
from certified_unlearning.data.tables.suspects import Suspects
from certified_unlearning.data.tables.table_file import as_arrow, batches, column_names, index_columns
from certified_unlearning.data.tables.table_values import TARGET, Rows, UnfitError, listed, mask_of, parses
from certified_unlearning.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS_AT_ONCE = 1 << 22
"""Number of feature values that are held in memory together."""
_TEXTS_AT_ONCE = 1 << 13
_LEAST_ROWS = 10
"""Smallest number of rows for a search with `Suspects`. In fewer rows, the whole numbers of a column may increase from
row to row, or match the label, by chance."""
_IDENTIFIES = re.compile(r"(.*[_ .-])?(?i:id|uuid|guid)|.*[a-z](Id|ID|Uuid|UUID)")


class Block(NamedTuple):
    """Some rows of a table, in the table's order.

    Attributes:
        features: float32, shape ``(rows, d)``; every row has Euclidean norm at most 1. If the table has text, a sparse
            matrix (CSR).
        labels: int8, shape ``(rows,)``: -1 or +1 for two classes, else 0, 1, 2, ...; for regression the targets in the
            file, float64.
        identifiers: The person of each row, as text (7.0 is 7); None if there is no identifier column.
        test: Whether each row is a test record, shape ``(rows,)``.
        spellings: The identifiers as spelled in the file; None if there is no identifier column.
    """

    features: Any
    labels: NDArray[Any]
    identifiers: list[str] | None
    test: NDArray[np.bool_]
    spellings: list[str] | None = None


class Records(NamedTuple):
    """Some rows of another table with the same columns, in that table's order.

    Attributes:
        first_row: Number of the first row in the table, counted from 1.
        features: float32, shape ``(rows, d)``, as in `Block`.
        labels: The index of each row's class, counted from 0, shape ``(rows,)``. For regression, each row's target in
            the file. None if labels are not requested.
        identifiers: The person of each row, as text; None if the table has no such column.
    """

    first_row: int
    features: Any
    labels: NDArray[Any] | None
    identifiers: list[str] | None


def resolve(table: Table, *, fewest: int = 1) -> Table:
    """Return the declaration completed from the file: all columns by name, and the classes as texts.

    Args:
        table: The declaration.
        fewest: Minimum number of records of each class, if the classes are taken from the file.

    Raises:
        ParameterError: The declaration contradicts itself.
        DataError: The file cannot be read or lacks a column, its label has fewer than 2 or more than 128 values, or a
            class has too few records.
    """
    check(table, table.path)
    columns = column_names(table.path)
    for column in table.roles.values():
        require_columns(table.path, columns, [column])
    if table.features is not None:
        features = chosen_features(table, columns)
    else:
        features = tuple(column for column in columns if column not in table.roles.values())
        for column, reason in no_features_by_name(table, columns).items():
            advice = "leave this column out of the file, or name the columns that are features"
            raise UnfitError(f"{table.path}: column {column!r} {reason}", advice)
        if not features:
            raise DataError(f"{table.path} has no column that could be a feature")
    table = written_out(table.model_copy(update={"features": features}), columns)
    for column in (*features, *table.categories, *table.ranges, *table.missing):
        require_columns(table.path, columns, [column])
    check(table, table.path, written_out=True)
    if table.is_regression:
        return table
    if table.classes is not None:
        classes = [str(text_of(value)) for value in table.classes]
    else:
        counts = count_classes(table)
        require_common(table, counts, fewest=fewest)
        classes = [*counts]
    resolved = table.model_copy(update={"classes": tuple(classes)})
    check_weights(resolved, table.path)
    if resolved.class_weight is None:
        return resolved
    return resolved.model_copy(update={"class_weight": {name: resolved.class_weight[name] for name in classes}})


def no_features_by_name(table: Table, columns: Sequence[str]) -> dict[str, str]:
    """Return the columns without a role whose names suggest that they are not features, each with a reason."""
    roles = {_plain_name(other): f"{role} {other!r}" for role, other in reversed(table.roles.items())}
    index = index_columns(table.path, columns)
    found: dict[str, str] = {}
    for column in sorted(columns, key=lambda column: column not in index):
        if column in table.roles.values():
            continue
        if column in index:
            found[column] = "seems to be an index, which numbers rows"
        elif _plain_name(column) in roles:
            found[column] = f"is named like the {roles[_plain_name(column)]}"
        elif _IDENTIFIES.fullmatch(column.strip()):
            found[column] = "seems to identify people or rows"
    return found


def _plain_name(column: str) -> str:
    """Return a column's name in lower case, without surrounding blanks or an ending such as ``.1`` or ``_1``.

    Programs add such endings to the names of copied columns.
    """
    return re.sub(r"[._]\d+$", "", column.strip().casefold())


def feature_names(table: Table) -> list[str]:
    """Return the name of each feature of a resolved table: ``age``, ``colour=red``; then ``comment#17`` for text."""
    hashed = [
        f"{column}#{place}"
        for column in table.features or ()
        if column in table.text
        for place in range(table.text[column].width)
    ]
    return number_names(table) + hashed


def count_features(table: Table) -> int:
    """Return the number of features of a row of a resolved table, without making their names."""
    return len(number_names(table)) + sum(how.width for how in table.text.values())


def number_names(table: Table) -> list[str]:
    """Return the names of those features of a resolved table that do not come from text."""
    return [
        name
        for column in table.features or ()
        if column not in table.text
        for name in (
            [f"{column}={_shown(text_of(value))}" for value in table.categories[column]]
            if column in table.categories
            else [column]
        )
    ]


def read_blocks(table: Table, *, seed: int = 0, all_columns: bool = False) -> Iterator[Block]:
    """Read a table from its first row to its last, a few thousand rows at a time.

    Messages count rows from 1; a CSV file's header is not counted.

    Args:
        table: The declaration, resolved or not.
        seed: Seed of the split, if it is drawn at random: each row is a test record with the declared probability,
            independently of the other rows.
        all_columns: Whether all columns are features because none was chosen explicitly. In that case, a column that
            numbers the rows is refused after the last row.

    Raises:
        ParameterError: The declaration contradicts itself.
        DataError: The file cannot be read, or a row is too long or has a missing value, an undeclared value or an
            unknown label; the message names row and column.
    """
    all_columns |= table.features is None
    table = resolve(table)
    names = number_names(table)
    suspects = Suspects(names if all_columns else [], len(table.classes or ()))
    generator = np.random.Generator(np.random.Philox(seed))
    first_row = 1
    columns = [*table.roles.values(), *(table.features or ())]
    for batch in batches(table.path, columns, _rows_at_once(table), _prose(table)):
        part = Rows(table.path, first_row, batch)
        identifiers = spellings = None
        if table.identifier is not None:
            identifiers, spellings = part.identifiers(table.identifier), part.spellings(table.identifier)
        found = _labels(part, table)
        numbers = _numbers(part, table, len(names))
        suspects.add(numbers, found)
        labels, features = found if table.is_regression else label_values(table)[found], _scaled(part, numbers, table)
        yield Block(features, labels, identifiers, _test(part, table, generator), spellings)
        first_row += batch.num_rows
    if first_row == 1:
        raise DataError(f"{table.path} holds no records")
    if first_row > _LEAST_ROWS and (reason := suspects.reason()) is not None:
        raise DataError(
            f"{table.path}: {reason}; leave this column out of the file, or name the columns that are features"
        )


def read_records(
    table: Table,
    source: "str | Path | pa.Table | pd.DataFrame",
    *,
    labelled: bool = False,
    identified: bool = True,
) -> Iterator[Records]:
    """Read another table according to a resolved declaration, a few thousand rows at a time.

    The columns of the other table may be in any order, and there may be additional ones; the
    label and the identifier may be absent.

    Args:
        table: The declaration, resolved; its ``path`` is not opened.
        source: A CSV or Parquet file, or a table in memory.
        labelled: Whether the label is required.
        identified: Whether identifiers are read, if there are any.

    Raises:
        DataError: The file cannot be read, a column is missing, or a row is too long or has a missing value, an
            undeclared value or an unknown label; the message names row and column.
    """
    within = as_arrow(source) if not isinstance(source, str | Path) else None
    path = "the table" if within is not None else str(source)
    columns = within.schema.names if within is not None else column_names(path)
    wanted = [*(table.features or ()), *([table.label] if labelled else [])]
    require_columns(path, columns, wanted)
    identifier = table.identifier if identified and table.identifier in columns else None
    if identifier is not None:
        wanted.append(identifier)
    width, rows_at_once = len(number_names(table)), _rows_at_once(table)
    if within is not None:
        read: Iterator[pa.RecordBatch] = iter(within.select(wanted).to_batches(max_chunksize=rows_at_once))
    else:
        read = batches(path, wanted, rows_at_once, _prose(table))
    first_row = 1
    for batch in read:
        part = Rows(path, first_row, batch)
        features = _scaled(part, _numbers(part, table, width), table)
        labels = _labels(part, table) if labelled else None
        yield Records(first_row, features, labels, None if identifier is None else part.identifiers(identifier))
        first_row += batch.num_rows
    if first_row == 1:
        raise DataError(f"{path} holds no records")


def require_columns(path: str, columns: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise `DataError` unless a file has all requested columns; the message names the missing ones."""
    missing = [column for column in wanted if column not in columns]
    if missing:
        close = difflib.get_close_matches(missing[0], columns, n=1)
        hint = f"did you mean {close[0]!r}?" if len(missing) == 1 and close else f"it has {listed(columns)}"
        noun = "column" if len(missing) == 1 else "columns"
        raise DataError(f"{path} has no {noun} {listed(missing)}; {hint}")


def require_known(table: Table, absent: Mapping[str, int]) -> None:
    """Raise `DataError` if several rows have the same word for a missing identifier, which hides whose rows they are.

    Args:
        table: The declaration.
        absent: The number of rows that contain each such word.
    """
    several = next((word for word, count in absent.items() if count > 1), None)
    if several is not None:
        raise DataError(
            f"{table.path}: the identifier {table.identifier} is {several!r} in {absent[several]:,} rows, which "
            "looks like a missing identifier, and these rows would count as one person's; leave these rows out, or "
            "fill in their identifiers"
        )


def preprocessing(table: Table) -> str:
    """Return a description of the preprocessing of a resolved table's rows."""
    values = dict(zip(label_values(table), table.classes or (), strict=True))
    columns = table.features or ()
    numbers = len(columns) - len(table.categories) - len(table.ranges) - len(table.text)
    kinds = {
        "one-hot by declared categories": len(table.categories),
        "from declared ranges to [-1, 1]": len(table.ranges),
        "as given": numbers,
    }
    constants = [f"{column} = {value:g} where it is missing" for column, value in table.missing.items()]
    return "; ".join(
        [
            f"{table.label}: " + ", ".join(f"{name} = {value:+d}" for value, name in values.items()),
            f"{len(columns)} columns, " + ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count),
            *constants,
            "each row divided by its own norm" if table.norm == "unit" else "rows of norm at most 1 as given",
            "nothing is fitted to the records",
        ]
    )


def _labels(rows: Rows, table: Table) -> NDArray[Any]:
    """Return the index of each row's class, counted from 0; for regression, return each row's target in the file."""
    if table.is_regression:
        return rows.numbers(table.label, remedies=TARGET)
    classes = [str(name) for name in table.classes or ()]
    return rows.positions(table.label, classes, "classes", "leave out the row, or list the value in classes")


def label_values(table: Table) -> NDArray[np.int8]:
    """Return the label that each class of a resolved table becomes: -1 and +1 for two classes, else 0, 1, 2, ..."""
    count = len(table.classes or ())
    return np.array([-1, 1] if count == 2 else range(count), np.int8)


def _prose(table: Table) -> Prose:
    """Return the text columns of a resolved table, and how to recognise a label."""
    classes = {str(name) for name in table.classes or ()}
    return Prose(table.text, table.label, parses if table.is_regression else lambda text: text_of(text) in classes)


def _rows_at_once(table: Table) -> int:
    """Return the number of rows that are converted together."""
    most = _TEXTS_AT_ONCE if table.text else _NUMBERS_AT_ONCE
    return max(1, min(most, _NUMBERS_AT_ONCE // max(1, len(number_names(table)))))


def _numbers(rows: Rows, table: Table, d: int) -> NDArray[np.float64]:
    """Return the features of all columns except text, unscaled."""
    features = np.zeros((rows.count, d))
    start = 0
    for column in table.features or ():
        if column in table.text:
            continue
        if column in table.categories:
            declared = [text_of(value) for value in table.categories[column]]
            remedy = f"declare null among the categories of {column}, or leave out the row"
            positions = rows.positions(column, declared, "declared categories", remedy)
            features[np.arange(rows.count), start + positions] = 1
            start += len(declared)
            continue
        numbers = rows.numbers(column, table.missing.get(column))
        if column in table.ranges:
            low, high = table.ranges[column]
            # Clip before subtracting, so that the result is finite for every range of finite width.
            numbers = (np.clip(numbers, low, high) - (low / 2 + high / 2)) / (high / 2 - low / 2)
        features[:, start] = numbers
        start += 1
    return features


def _scaled(rows: Rows, numbers: NDArray[np.float64], table: Table) -> Any:
    """Return the features of all columns, scaled as declared; as a sparse matrix if there is text."""
    if not table.text:
        return _scaled_numbers(rows, numbers, table)
    # Imported here, because it imports scikit-learn.
    from certified_unlearning.data.tables.hashing.rows import norms, unit, with_text

    features = with_text(numbers, rows, table)
    if table.norm == "unit":
        return unit(features).astype(np.float32)
    _require_short(rows, norms(features))
    return features.astype(np.float32)


def _scaled_numbers(rows: Rows, features: NDArray[np.float64], table: Table) -> NDArray[np.float32]:
    if table.norm == "unit":
        # Divide by the largest value first, because squares of very large and very small values overflow or vanish.
        features = _divided(features, np.abs(features).max(axis=1))
        features = _divided(features, np.linalg.norm(features, axis=1))
        return features.astype(np.float32)
    _require_short(rows, np.linalg.norm(features, axis=1))
    return features.astype(np.float32)


def _require_short(rows: Rows, lengths: NDArray[np.float64]) -> None:
    """Raise `DataError` if a row's norm is above 1."""
    worst = int(lengths.argmax())
    if lengths[worst] > 1 + NORM_TOLERANCE:
        raise DataError(
            f"{rows.where(worst)} has norm {lengths[worst]:.7g}, but norm: at-most-1 allows 1; divide all rows by a "
            "constant, or use norm: unit"
        )


def _divided(features: NDArray[np.float64], lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide each row by its norm, except rows of zeros."""
    return np.asarray(features / np.where(lengths == 0, 1, lengths)[:, None])


def _test(rows: Rows, table: Table, generator: np.random.Generator) -> NDArray[np.bool_]:
    if table.split is None:
        return np.zeros(rows.count, np.bool_)
    if table.split.column is None:
        return generator.random(rows.count) < float(table.split.test)
    marks = pc.equal(rows.texts(table.split.column), text_of(table.split.test))
    return mask_of(pc.fill_null(marks, False))


def _shown(text: str | None) -> str:
    return "missing" if text is None else text
