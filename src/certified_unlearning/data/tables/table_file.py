"""A CSV or Parquet file, read in batches of some columns; what goes wrong with it is one sentence."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from certified_unlearning.data.tables.declaration import text_of
from certified_unlearning.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_CSV_BYTES_AT_ONCE = 1 << 22
_PARQUET_ROWS_AT_ONCE = 1 << 16


def batches(path: str, columns: Sequence[str], rows_at_once: int) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a file, at most so many rows at once; of a CSV file as text.

    Raises:
        DataError: The file cannot be read.
    """
    with _readable(path):
        if is_csv(path):
            read: Iterator[pa.RecordBatch] = _open_csv(path, columns)
        else:
            file = pa.parquet.ParquetFile(path, pre_buffer=False)
            read = file.iter_batches(batch_size=min(rows_at_once, _PARQUET_ROWS_AT_ONCE), columns=list(columns))
        for batch in read:
            for start in range(0, batch.num_rows, rows_at_once):
                yield batch.slice(start, rows_at_once)


def column_names(path: str) -> list[str]:
    """Return the columns of a file.

    Raises:
        DataError: It cannot be read, two columns have the same name, or something else than commas separates them.
    """
    with _readable(path):
        if is_csv(path):
            _require_commas(path)
            names: list[str] = _open_csv(path).schema.names
        else:
            names = pa.parquet.ParquetFile(path).schema_arrow.names
    _require_distinct(names, path)
    return names


def _require_commas(path: str) -> None:
    with pa.input_stream(path) as stream:
        first = stream.read(_CSV_BYTES_AT_ONCE).partition(b"\n")[0]
    for separator, name in ((b";", "semicolons"), (b"\t", "tabs"), (b"|", "vertical bars")):
        if separator in first and b"," not in first:
            raise DataError(
                f"{path} seems to separate its columns by {name}, expected commas; save it as CSV with commas (and "
                "decimal points) or as Parquet"
            )


def as_arrow(table: "pa.Table | pd.DataFrame") -> pa.Table:
    """Return a table in memory as Arrow has it, without an index.

    Raises:
        DataError: It is something else, two columns have the same name, or one holds neither text nor numbers.
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
    if isinstance(kept, np.dtype) and not kept.isnative:  # Arrow has no other order of bytes.
        values = values.astype(kept.newbyteorder("="))
    try:
        array = pa.Array.from_pandas(values)
    except pa.ArrowNotImplementedError as error:
        raise DataError(f"the table: column {name} holds {kept}, expected text or numbers") from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        # A mixture, such as of numbers and texts, or whole numbers above 64 bits.
        return _texts(values, name)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _texts(values: "pd.Series", name: str) -> pa.Array:
    """Return the text of each value, whatever its type is, as long as it is one value."""
    import pandas as pd

    texts = []
    for row, value in enumerate(values, 1):
        if not pd.api.types.is_scalar(value):
            kind = type(value).__name__
            raise DataError(f"the table, row {row}: {name} is of type {kind}, expected text or a number")
        try:
            texts.append(None if pd.isna(value) else text_of(value))
            pa.scalar(texts[-1], pa.string())
        except (ValueError, ArithmeticError) as error:  # Surrogates, millions of digits, signalling NaNs.
            raise DataError(f"the table, row {row}: {name} cannot be read as text: {error}") from error
    return pa.array(texts, pa.string())


def _require_distinct(names: Sequence[str], path: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path} has two columns {twice!r}; rename one")


def is_csv(path: str) -> bool:
    """Return whether a file is CSV by its name, and not Parquet.

    Raises:
        DataError: It is neither.
    """
    name = path.lower()
    if name.endswith((".csv", ".csv.gz")):
        return True
    if name.endswith((".parquet", ".pq")):
        return False
    raise DataError(f"{path} is neither CSV nor Parquet: its name must end in .csv, .csv.gz, .parquet or .pq")


def _open_csv(path: str, columns: Sequence[str] = ()) -> pa.csv.CSVStreamingReader:
    # All text: types guessed from the first rows would depend on them, and 007 would become 7.
    return pa.csv.open_csv(
        path,
        read_options=pa.csv.ReadOptions(block_size=_CSV_BYTES_AT_ONCE),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(default_column_type=pa.string(), include_columns=list(columns)),
    )


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Turn what goes wrong with a file into one sentence."""
    try:
        with Path(path).open("rb"):  # Its message is a sentence already.
            yield
    except pa.ArrowInvalid as error:
        kind = "CSV" if is_csv(path) else "Parquet"
        raise DataError(f"{path} cannot be read as {kind}: {_without_values(str(error))}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def _without_values(message: str) -> str:
    """Return what a reader complains about without the line it quotes: logs outlive records."""
    return re.sub(r"(Expected \d+ columns, got \d+).*", r"\1", message.splitlines()[0])
