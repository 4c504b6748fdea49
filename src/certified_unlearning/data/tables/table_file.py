"""A CSV or Parquet file, read in batches of some columns; what goes wrong with it is one sentence."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from certified_unlearning.errors import DataError

_CSV_BYTES_AT_ONCE = 1 << 22
_PARQUET_ROWS_AT_ONCE = 1 << 16


def batches(path: str, columns: Sequence[str], rows_at_once: int) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a file, at most so many rows at once; of a CSV file as text.

    Raises:
        DataError: The file cannot be read.
    """
    with _readable(path):
        if _is_csv(path):
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
        DataError: It cannot be read, or two columns have the same name.
    """
    with _readable(path):
        if _is_csv(path):
            names: list[str] = _open_csv(path).schema.names
        else:
            names = pa.parquet.ParquetFile(path).schema_arrow.names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path} has two columns {twice!r}; rename one")
    return names


def _is_csv(path: str) -> bool:
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
        kind = "CSV" if _is_csv(path) else "Parquet"
        raise DataError(f"{path} cannot be read as {kind}: {_without_values(str(error))}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def _without_values(message: str) -> str:
    """Return what a reader complains about without the line it quotes: logs outlive records."""
    return re.sub(r"(Expected \d+ columns, got \d+).*", r"\1", message.splitlines()[0])
