"""Rows of results: Parquet tables with a fixed schema, whose columns have roles."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from certified_unlearning.errors import DataError

if TYPE_CHECKING:
    from certified_unlearning.mechanisms.run import ExperimentPlan, Run
from certified_unlearning.files import atomic_path

Role = Literal["point", "constant", "measure", "cost", "trial", "origin"]
"""Role of a column.

``point`` distinguishes the rows of an experiment. ``constant`` is the same for equal runs. ``measure`` is a result.
``cost`` is the effort. ``trial`` numbers repetitions. ``origin`` names the run, code and machine of a row.
"""
Kind = Literal["text", "whole", "number", "flag"]
_TYPES = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "flag": pa.bool_()}


def column(name: str, kind: Kind, role: Role, *, empty: bool = False) -> pa.Field:
    """Return a column with its role; ``empty`` says whether the column may have empty values."""
    return pa.field(name, _TYPES[kind], nullable=empty, metadata={"role": role})


def columns(kind: Kind, role: Role, *names: str, empty: bool = False) -> list[pa.Field]:
    """Return several successive columns of the same kind and role."""
    return [column(name, kind, role, empty=empty) for name in names]


def role(field: pa.Field) -> str:
    """Return the role of a column."""
    return str((field.metadata or {})[b"role"].decode())


def names(schema: pa.Schema, *roles: Role) -> tuple[str, ...]:
    """Return the names of the columns with these roles, in order."""
    return tuple(field.name for field in schema if role(field) in roles)


def fields_of_run(plan: "ExperimentPlan", run: "Run", schema: pa.Schema) -> dict[str, Any]:
    """Return the values of all columns whose names are fields of a run, its plan, or the plan's constants or settings.

    If several of the objects have a field with a column's name, the value of the first object in this order is used:
    the run, the plan, the plan's constants, the plan's settings.
    """
    holders = (run, plan, plan.constants, plan.settings)
    held = [
        (name, holder) for name in schema.names for holder in reversed(holders) if name in type(holder).model_fields
    ]
    return {name: getattr(holder, name) for name, holder in held}


RUN_ROWS = pa.schema(
    [
        column("run_key", "text", "origin"),
        *columns("text", "constant", "preset", "dataset", "features"),
        column("experiment", "text", "point"),
        *columns("text", "constant", "mechanism", "variant", "accountant", "guarantee"),
        *columns("text", "point", "method", "member", "line", "point"),
        *columns("text", "constant", "adjacency", "smoothness"),
        column("epsilon_target", "number", "constant"),
        *columns("number", "constant", "epsilon", "mu", "initial_epsilon", empty=True),
        *columns("number", "constant", "delta", "extra_delta"),
        column("rounding_error", "number", "constant", empty=True),
        *columns("whole", "constant", "n", "d"),
        *columns("number", "constant", "strong_convexity", "smoothness_constant", "lipschitz", "step_size", "sigma"),
        *columns("whole", "constant", "learning_steps", "unlearning_steps", "accumulated_steps", "records_per_request"),
        column("request", "whole", "point"),
        column("records_removed", "whole", "constant"),
        column("trial", "whole", "trial"),
        column("seed", "whole", "constant"),
        *columns("number", "measure", "accuracy", "balanced_accuracy", "auc", "log_loss"),
        column("majority", "number", "constant"),
        column("seconds", "number", "cost"),
        column("device", "text", "origin"),
        *columns("text", "constant", "dtype", "data_sha256"),
        column("code_version", "text", "origin"),
    ]
)
"""One row per run, request and trial. ``epsilon`` is empty if nothing is guaranteed. `seconds` is the run's share of
the simulation time of its job. `seconds` and `code_version` are the only columns that can differ between two runs with
the same inputs on the same device.
"""

CURVE_ROWS = pa.schema(
    [
        column("run_key", "text", "origin"),
        *columns("text", "point", "experiment", "mechanism", "variant", "phase"),
        column("step", "whole", "point"),
        *columns("number", "measure", "accuracy_mean", "accuracy_std"),
    ]
)
"""Test accuracy during a run, at a few dozen steps. ``step`` is counted through learning and all requests."""

BOUND_ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "bound"),
        *columns("text", "constant", "guarantee", "source"),
        column("n", "whole", "constant"),
        column("strong_convexity", "number", "point", empty=True),
        *columns("number", "constant", "smoothness_constant", "lipschitz", "step_size", "sigma"),
        column("records_removed", "whole", "constant"),
        column("steps", "whole", "point"),
        column("alpha", "number", "point", empty=True),
        column("renyi", "number", "measure", empty=True),
        column("delta", "number", "constant", empty=True),
        *columns("number", "measure", "epsilon", "mu", empty=True),
    ]
)
"""Results of accounting, without a simulation: one row for each bound and number of steps. The guarantee is ``renyi``
at order ``alpha``, or (epsilon, delta) with ``mu``. ``source`` says whether the bound is from a paper or derived here.
``strong_convexity`` is empty if the bound does not depend on it.
"""


def write_table(path: str | Path, rows: pd.DataFrame, schema: pa.Schema) -> None:
    """Write rows as Parquet, atomically.

    Raises:
        DataError: A column is missing, superfluous or of another type, or it has an empty value that is not allowed.
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
    # Whole numbers stay whole numbers even if some values are missing.
    return frame.astype({field.name: "Int64" for field in schema if field.nullable and pa.types.is_integer(field.type)})


def concatenate(paths: Sequence[str | Path], schema: pa.Schema) -> pd.DataFrame:
    """Read several tables with the same schema into one; if there are no tables, the result is empty."""
    if not paths:
        empty: pd.DataFrame = schema.empty_table().to_pandas()
        return empty
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
