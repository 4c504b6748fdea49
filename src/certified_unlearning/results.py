"""Result records: one row for each run, request and trial, as Parquet with a fixed schema."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from certified_unlearning.errors import DataError
from certified_unlearning.files import atomic_path

RECORD_SCHEMA = pa.schema(
    [
        pa.field("run_key", pa.string(), nullable=False),
        pa.field("preset", pa.string(), nullable=False),
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("features", pa.string(), nullable=False),
        pa.field("experiment", pa.string(), nullable=False),
        pa.field("mechanism", pa.string(), nullable=False),
        pa.field("variant", pa.string(), nullable=False),
        pa.field("accountant", pa.string(), nullable=False),
        pa.field("guarantee", pa.string(), nullable=False),
        pa.field("adjacency", pa.string(), nullable=False),
        pa.field("smoothness", pa.string(), nullable=False),
        pa.field("epsilon_target", pa.float64(), nullable=False),
        pa.field("epsilon", pa.float64(), nullable=False),
        pa.field("mu", pa.float64()),
        pa.field("initial_epsilon", pa.float64()),
        pa.field("delta", pa.float64(), nullable=False),
        pa.field("extra_delta", pa.float64(), nullable=False),
        pa.field("rounding_error", pa.float64()),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("d", pa.int64(), nullable=False),
        pa.field("strong_convexity", pa.float64(), nullable=False),
        pa.field("smoothness_constant", pa.float64(), nullable=False),
        pa.field("lipschitz", pa.float64(), nullable=False),
        pa.field("step_size", pa.float64(), nullable=False),
        pa.field("sigma", pa.float64(), nullable=False),
        pa.field("learning_steps", pa.int64(), nullable=False),
        pa.field("unlearning_steps", pa.int64(), nullable=False),
        pa.field("accumulated_steps", pa.int64(), nullable=False),
        pa.field("records_per_request", pa.int64(), nullable=False),
        pa.field("request", pa.int64(), nullable=False),
        pa.field("records_removed", pa.int64(), nullable=False),
        pa.field("trial", pa.int64(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("accuracy", pa.float64(), nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("device", pa.string(), nullable=False),
        pa.field("dtype", pa.string(), nullable=False),
        pa.field("data_sha256", pa.string(), nullable=False),
        pa.field("code_version", pa.string(), nullable=False),
    ]
)
"""One row per run, request and trial. `seconds` is the run's share of its job's simulation time; it and
`code_version` are the only columns that may differ between two runs with the same inputs on the same device."""

CURVE_SCHEMA = pa.schema(
    [
        pa.field("run_key", pa.string(), nullable=False),
        pa.field("experiment", pa.string(), nullable=False),
        pa.field("mechanism", pa.string(), nullable=False),
        pa.field("variant", pa.string(), nullable=False),
        pa.field("phase", pa.string(), nullable=False),
        pa.field("step", pa.int64(), nullable=False),
        pa.field("accuracy_mean", pa.float64(), nullable=False),
        pa.field("accuracy_std", pa.float64(), nullable=False),
    ]
)
"""Test accuracy along a run at a few dozen steps. ``step`` counts on through learning and all requests."""

BOUND_SCHEMA = pa.schema(
    [
        pa.field("experiment", pa.string(), nullable=False),
        pa.field("bound", pa.string(), nullable=False),
        pa.field("guarantee", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("strong_convexity", pa.float64()),
        pa.field("smoothness_constant", pa.float64(), nullable=False),
        pa.field("lipschitz", pa.float64(), nullable=False),
        pa.field("step_size", pa.float64(), nullable=False),
        pa.field("sigma", pa.float64(), nullable=False),
        pa.field("records_removed", pa.int64(), nullable=False),
        pa.field("steps", pa.int64(), nullable=False),
        pa.field("alpha", pa.float64()),
        pa.field("renyi", pa.float64()),
        pa.field("delta", pa.float64()),
        pa.field("epsilon", pa.float64()),
        pa.field("mu", pa.float64()),
    ]
)
"""What accounting alone says, without a simulation: one row per bound and number of steps. ``renyi`` at order ``alpha``
or (epsilon, delta) with ``mu``; ``source`` says whether the bound is a paper's or derived here.
``strong_convexity`` is empty where a bound does not depend on it."""

STREAM_SCHEMA = pa.schema(
    [
        RECORD_SCHEMA.field(name)
        for name in (
            "experiment", "dataset", "features", "mechanism", "variant", "accountant", "guarantee", "adjacency",
            "smoothness", "epsilon_target", "epsilon", "mu", "delta", "n", "d", "strong_convexity",
            "smoothness_constant", "lipschitz", "step_size", "sigma", "unlearning_steps", "accumulated_steps",
            "records_per_request", "request", "records_removed",
        )
    ]
)  # fmt: skip
"""Streams of requests that were planned and not run, with the columns of `RECORD_SCHEMA`: one row a request."""


ATTACK_SCHEMA = pa.schema(
    [
        pa.field("experiment", pa.string(), nullable=False),
        pa.field("attack", pa.string(), nullable=False),
        pa.field("mechanism", pa.string(), nullable=False),
        pa.field("secret_state", pa.bool_(), nullable=False),
        pa.field("observed", pa.int64(), nullable=False),
        pa.field("requests", pa.int64(), nullable=False),
        pa.field("deletion", pa.int64(), nullable=False),
        pa.field("interactions", pa.int64(), nullable=False),
        pa.field("right", pa.int64(), nullable=False),
        pa.field("wrong", pa.int64(), nullable=False),
        pa.field("advantage", pa.float64(), nullable=False),
        pa.field("low", pa.float64(), nullable=False),
        pa.field("high", pa.float64(), nullable=False),
        pa.field("expected", pa.float64()),
        pa.field("promised", pa.float64(), nullable=False),
        pa.field("bound", pa.float64()),
        pa.field("promise_broken", pa.bool_(), nullable=False),
        pa.field("consistent", pa.bool_(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("code_version", pa.string(), nullable=False),
    ]
)
"""Attacks on deletion, one row an attack and mechanism. ``right`` and ``wrong`` count how often the attack said 1 in so
many ``interactions`` under hypothesis 1 and 0; their difference is the ``advantage``, from ``low`` to ``high`` in 95 %
intervals. ``expected`` is the advantage that theory gives: exact, but for counting, where it is that of infinitely many
releases, and for encoded records, which it takes for read without error. ``promised`` is the largest by the published
certificate, for requests fixed in advance, ``bound`` by one that holds. ``promise_broken`` and ``consistent`` are
judged by intervals that all cells together miss below 1e-6."""

RISK_SCHEMA = pa.schema(
    [
        pa.field("experiment", pa.string(), nullable=False),
        pa.field("requester", pa.string(), nullable=False),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("d", pa.int64(), nullable=False),
        pa.field("records_per_request", pa.int64(), nullable=False),
        pa.field("sigma", pa.float64(), nullable=False),
        pa.field("learning_steps", pa.int64(), nullable=False),
        pa.field("deletion_steps", pa.int64(), nullable=False),
        pa.field("gradients_saved", pa.int64(), nullable=False),
        pa.field("request", pa.int64(), nullable=False),
        pa.field("trials", pa.int64(), nullable=False),
        pa.field("risk", pa.float64(), nullable=False),
        pa.field("standard_error", pa.float64(), nullable=False),
        pa.field("certified", pa.float64(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("code_version", pa.string(), nullable=False),
    ]
)
"""Mean excess risk after learning (request 0) and every request of a stream of deletions, and what is certified."""


def write_table(path: str | Path, rows: pd.DataFrame, schema: pa.Schema) -> None:
    """Write rows as Parquet, atomically.

    Raises:
        DataError: A column is missing, superfluous, of another type, or empty where it may not be.
    """
    table = _conform(rows, schema, where=str(path))
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary)


def read_table(path: str | Path, schema: pa.Schema) -> pd.DataFrame:
    """Read a Parquet table and check that it follows the schema.

    Raises:
        DataError: The file is missing, damaged, or has other columns.
    """
    try:
        table = pq.read_table(path)
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist") from error
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{path} is not a Parquet file: {error}") from error
    if table.schema.names != schema.names or table.schema.types != schema.types:
        raise DataError(f"{path} does not have the expected columns; was it written by another version?")
    frame: pd.DataFrame = table.to_pandas()
    return frame


def concatenate(paths: Sequence[str | Path], schema: pa.Schema) -> pd.DataFrame:
    """Read several tables of the same schema into one."""
    return pd.concat([read_table(path, schema) for path in paths], ignore_index=True)


def _conform(rows: pd.DataFrame, schema: pa.Schema, where: str) -> pa.Table:
    if set(rows.columns) != set(schema.names):
        difference = sorted(set(rows.columns) ^ set(schema.names))
        raise DataError(f"{where}: the columns {', '.join(difference)} are missing or superfluous")
    for field in schema:
        if not field.nullable and rows[field.name].isna().any():
            raise DataError(f"{where}: column {field.name} has empty values")
    try:
        table = pa.Table.from_pandas(rows[schema.names], schema=schema, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"{where}: {'; '.join(map(str, error.args))}") from error
    return table.replace_schema_metadata(None)
