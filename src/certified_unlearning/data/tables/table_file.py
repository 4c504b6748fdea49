"""A CSV or Parquet file, of which some columns are read in batches. Each error message is one sentence."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from certified_unlearning.data.tables import csv_file
from certified_unlearning.data.tables.declaration import text_of
from certified_unlearning.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_INDEX = re.compile(
    r"\s*|Unnamed: \d+([._]\w+)*|__index_level_\d+__|index|level_\d+"
    r"|row[._ ]?(names?|numbers?|num|index|id)|obs|_n_|#|\.\.\.\d+|lfd\.? ?nr\.?",
    re.IGNORECASE,
)
"""Names that pandas, R, SAS and databases give to an index."""
_CSV_VALUES_AT_ONCE = 1 << 19
"""Number of values per batch. In Python, each takes about sixty bytes."""
_PARQUET_ROWS_AT_ONCE = 1 << 16


def batches(
    path: str, columns: Sequence[str], rows_at_once: int, prose: csv_file.Prose | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a file in batches. In a CSV file, all values are texts; ``prose`` tells how to read it.

    Raises:
        DataError: The file cannot be read.
    """
    if is_csv(path):
        yield from _csv_batches(path, columns, rows_at_once, prose)
        return
    with _readable(path):
        file = pa.parquet.ParquetFile(path, pre_buffer=False)
        for batch in file.iter_batches(batch_size=min(rows_at_once, _PARQUET_ROWS_AT_ONCE), columns=list(columns)):
            batch.validate(full=True)  # Stored text may be invalid.
            yield batch


def _csv_batches(
    path: str, columns: Sequence[str], rows_at_once: int, prose: csv_file.Prose | None
) -> Iterator[pa.RecordBatch]:
    # Read everything as text: types guessed from the first rows would depend on those rows, and 007 would become 7.
    names = csv_file.header(path)
    at_once = max(1, min(rows_at_once, _CSV_VALUES_AT_ONCE // max(1, len(names))))
    places = [names.index(column) for column in columns]
    blocks = csv_file.read(path, at_once, prose)
    next(blocks, None)
    for block in blocks:
        by_column = list(zip(*block, strict=True))
        yield pa.record_batch([pa.array(by_column[place], pa.string()) for place in places], list(columns))


def column_names(path: str) -> list[str]:
    """Return the columns of a file.

    Raises:
        DataError: The file is a pipe, cannot be read, has two columns of the same name, or has a separator other than
            commas.
    """
    if Path(path).is_fifo():
        raise DataError(f"{path} is a pipe, which can be read only once; write its content into a file")
    if is_csv(path):
        names = _csv_names(path)
    else:
        with _readable(path):
            names = pa.parquet.ParquetFile(path).schema_arrow.names
    _require_distinct(names, path)
    return names


def _csv_names(path: str) -> list[str]:
    try:
        names = csv_file.header(path)
    except DataError:
        csv_file.require_commas(path)  # Checked first, because its error is more helpful.
        raise
    if len(names) == 1:
        csv_file.require_commas(path)
    return names


def index_columns(path: str, columns: Sequence[str]) -> list[str]:
    """Return the columns of a file that are an index, according to their names or to pandas' metadata in the file."""
    own: list[str] = []
    if not is_csv(path):
        with _readable(path):
            metadata = pa.parquet.ParquetFile(path).schema_arrow.pandas_metadata or {}
        own = [each for each in metadata.get("index_columns", []) if isinstance(each, str)]
    return [column for column in columns if column in own or _INDEX.fullmatch(column)]


def as_arrow(table: "pa.Table | pd.DataFrame") -> pa.Table:
    """Return a table in memory as an Arrow table, without an index.

    Raises:
        DataError: The object is not a table, two columns have the same name, or a column holds neither text nor
            numbers.
    """
    if not isinstance(table, pa.Table):
        columns = getattr(table, "columns", None)
        if columns is None or not hasattr(table, "iloc"):
            raise DataError(
                f"a table must be a file, a pandas.DataFrame or a pyarrow.Table, got {type(table).__name__}"
            )
        names = [str(name) for name in columns]
        arrays = [_column(table.iloc[:, place], name) for place, name in enumerate(names)]
        table = pa.Table.from_arrays(arrays, names)
    _require_distinct(table.schema.names, "the table")
    return table


def _column(values: "pd.Series", name: str) -> pa.Array:
    kept = values.dtype
    if isinstance(kept, np.dtype) and not kept.isnative:  # Arrow supports native byte order only.
        values = values.astype(kept.newbyteorder("="))
    try:
        array = pa.Array.from_pandas(values)
    except pa.ArrowNotImplementedError as error:
        raise DataError(f"the table: column {name} holds {kept}, expected text or numbers") from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        # Raised for mixtures, such as numbers and texts, and for whole numbers above 64 bits.
        return _texts(values, name)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _texts(values: "pd.Series", name: str) -> pa.Array:
    """Return the text of each value of any scalar type."""
    import pandas as pd

    texts = []
    for row, value in enumerate(values, 1):
        if not pd.api.types.is_scalar(value):
            kind = type(value).__name__
            raise DataError(f"the table, row {row}: {name} is of type {kind}, expected text or a number")
        try:
            texts.append(None if pd.isna(value) else text_of(value))
            pa.scalar(texts[-1], pa.string())
        # Raised for surrogates, millions of digits, and signalling NaNs.
        except (ValueError, ArithmeticError) as error:
            raise DataError(f"the table, row {row}: {name} cannot be read as text: {error}") from error
    return pa.array(texts, pa.string())


def _require_distinct(names: Sequence[str], path: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path} has two columns {twice!r}; rename one")


def is_csv(path: str) -> bool:
    """Return whether a file is CSV rather than Parquet, judged by its name.

    Raises:
        DataError: The name has neither ending.
    """
    name = path.lower()
    if name.endswith((".csv", ".csv.gz")):
        return True
    if name.endswith((".parquet", ".pq")):
        return False
    raise DataError(f"{path} is neither CSV nor Parquet: its name must end in .csv, .csv.gz, .parquet or .pq")


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Turn errors on a Parquet file into one sentence."""
    try:
        with Path(path).open("rb"):  # The message of its errors is already a sentence.
            yield
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
