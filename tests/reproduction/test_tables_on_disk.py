"""The schema of the records is fixed here, and tables that do not follow it are refused."""

from pathlib import Path
from typing import get_args

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certified_unlearning.errors import DataError, StorageError
from certified_unlearning.papers.all import PAPERS
from certified_unlearning.reproduction.rows import (
    CURVE_ROWS,
    RUN_ROWS,
    Role,
    column,
    concatenate,
    names,
    read_table,
    role,
    write_table,
)

RUN_COLUMNS = {
    "run_key": "string",
    "preset": "string",
    "dataset": "string",
    "features": "string",
    "experiment": "string",
    "mechanism": "string",
    "variant": "string",
    "accountant": "string",
    "guarantee": "string",
    "method": "string",
    "member": "string",
    "line": "string",
    "point": "string",
    "adjacency": "string",
    "smoothness": "string",
    "epsilon_target": "double",
    "epsilon": "double",
    "mu": "double",
    "initial_epsilon": "double",
    "delta": "double",
    "extra_delta": "double",
    "rounding_error": "double",
    "n": "int64",
    "d": "int64",
    "strong_convexity": "double",
    "smoothness_constant": "double",
    "lipschitz": "double",
    "step_size": "double",
    "sigma": "double",
    "learning_steps": "int64",
    "unlearning_steps": "int64",
    "accumulated_steps": "int64",
    "records_per_request": "int64",
    "request": "int64",
    "records_removed": "int64",
    "trial": "int64",
    "seed": "int64",
    "accuracy": "double",
    "balanced_accuracy": "double",
    "auc": "double",
    "log_loss": "double",
    "majority": "double",
    "seconds": "double",
    "device": "string",
    "dtype": "string",
    "data_sha256": "string",
    "code_version": "string",
}
CURVE_COLUMNS = {
    "run_key": "string",
    "experiment": "string",
    "mechanism": "string",
    "variant": "string",
    "phase": "string",
    "step": "int64",
    "accuracy_mean": "double",
    "accuracy_std": "double",
}
SCHEMAS = (RUN_ROWS, CURVE_ROWS, *(each.rows for paper in PAPERS for each in paper.experiments))
EXAMPLES = {"string": ["a", "ü"], "double": [0.1, -1e-300], "int64": [1, 2**62]}


def table(columns: dict[str, str]) -> pd.DataFrame:
    return pd.DataFrame({name: EXAMPLES[kind] for name, kind in columns.items()})


@pytest.fixture
def records() -> pd.DataFrame:
    return table(RUN_COLUMNS)


@pytest.mark.parametrize(("schema", "columns"), [(RUN_ROWS, RUN_COLUMNS), (CURVE_ROWS, CURVE_COLUMNS)])
def test_the_schema_is_fixed(schema: pa.Schema, columns: dict[str, str]) -> None:
    assert [(field.name, str(field.type)) for field in schema] == list(columns.items())


def test_only_what_an_accountant_may_not_give_may_be_empty_and_epsilon_where_nothing_is_guaranteed() -> None:
    empty = [field.name for field in RUN_ROWS if field.nullable]
    assert empty == ["epsilon", "mu", "initial_epsilon", "rounding_error"]
    assert [field.name for field in CURVE_ROWS if field.nullable] == []


def test_every_column_has_a_role() -> None:
    for schema in SCHEMAS:
        assert names(schema, *get_args(Role)) == tuple(schema.names)


def test_the_roles_of_the_columns_of_runs_are_fixed() -> None:
    names_and_numbers = ("experiment", "method", "member", "line", "point", "request")
    assert names(RUN_ROWS, "point") == names_and_numbers
    assert names(RUN_ROWS, "trial") == ("trial",)
    assert names(RUN_ROWS, "measure") == ("accuracy", "balanced_accuracy", "auc", "log_loss")
    assert names(RUN_ROWS, "cost") == ("seconds",)
    assert names(RUN_ROWS, "origin") == ("run_key", "device", "code_version")
    assert len(names(RUN_ROWS, "constant")) == len(RUN_COLUMNS) - 15
    assert role(RUN_ROWS.field("epsilon")) == "constant"


def test_whole_numbers_stay_whole_where_some_are_missing(tmp_path: Path) -> None:
    schema = pa.schema([column("records", "whole", "point", empty=True)])
    write_table(tmp_path / "a.parquet", pd.DataFrame({"records": pd.array([1, None, 2**40], dtype="Int64")}), schema)
    assert read_table(tmp_path / "a.parquet", schema)["records"].tolist() == [1, pd.NA, 2**40]


def test_rows_come_back_as_they_were(tmp_path: Path, records: pd.DataFrame) -> None:
    write_table(tmp_path / "records.parquet", records[records.columns[::-1]], RUN_ROWS)
    pd.testing.assert_frame_equal(
        read_table(tmp_path / "records.parquet", RUN_ROWS), records, check_exact=True, check_dtype=False
    )


def test_an_empty_epsilon_stays_empty_beside_numbers_and_alone(tmp_path: Path, records: pd.DataFrame) -> None:
    for epsilons in ([0.0, None], [None, None]):
        write_table(tmp_path / "records.parquet", records.assign(epsilon=epsilons), RUN_ROWS)
        found = read_table(tmp_path / "records.parquet", RUN_ROWS)["epsilon"]
        assert [None if pd.isna(value) else value for value in found] == epsilons
        assert found.dtype == "float64"


def test_equal_rows_are_equal_files(tmp_path: Path, records: pd.DataFrame) -> None:
    write_table(tmp_path / "a.parquet", records, RUN_ROWS)
    write_table(tmp_path / "b.parquet", records.set_index(pd.Index([7, 3])), RUN_ROWS)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda rows: rows.drop(columns=["sigma", "epsilon"]), "the columns epsilon, sigma are missing or superfluous"),
        (lambda rows: rows.assign(eps=1.0), "the columns eps are missing or superfluous"),
        (lambda rows: rows.rename(columns={"sigma": "noise"}), "the columns noise, sigma are missing or superfluous"),
        (lambda rows: rows.assign(trial=0.5), "trial"),
        (lambda rows: rows.assign(accuracy="high"), "accuracy"),
        (lambda rows: rows.assign(accuracy=[0.5, None]), "column accuracy has empty values"),
        (lambda rows: rows.assign(mechanism=["langevin", None]), "column mechanism has empty values"),
    ],
)
def test_rows_of_another_form_are_not_written(tmp_path: Path, records: pd.DataFrame, change, sentence: str) -> None:
    with pytest.raises(DataError, match=rf"^{tmp_path}/records.parquet: .*{sentence}"):
        write_table(tmp_path / "records.parquet", change(records), RUN_ROWS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema(list(RUN_ROWS)[:-1]),
        pa.schema(list(RUN_ROWS)[::-1]),
        RUN_ROWS.set(RUN_ROWS.get_field_index("trial"), pa.field("trial", pa.int32())),
        CURVE_ROWS,
    ],
    ids=["a column less", "another order", "another type", "curves"],
)
def test_a_table_with_other_columns_is_not_read(tmp_path: Path, schema: pa.Schema) -> None:
    pq.write_table(schema.empty_table(), tmp_path / "other.parquet")
    with pytest.raises(DataError, match=r"other.parquet does not have the expected columns"):
        read_table(tmp_path / "other.parquet", RUN_ROWS)


def test_a_damaged_table_is_not_read(tmp_path: Path, records: pd.DataFrame) -> None:
    path = tmp_path / "records.parquet"
    with pytest.raises(DataError, match=f"^{path} does not exist$"):
        read_table(path, RUN_ROWS)
    write_table(path, records, RUN_ROWS)
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole[: len(whole) // 2], whole[:20] + b"\xff" * 20 + whole[40:]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=f"^{path} is not a Parquet file: "):
            read_table(path, RUN_ROWS)


def test_a_table_that_cannot_be_written_is_a_storage_error(tmp_path: Path, records: pd.DataFrame) -> None:
    (tmp_path / "file").write_text("whole")
    with pytest.raises(StorageError, match=r"^cannot write .*/file/records.parquet: "):
        write_table(tmp_path / "file/records.parquet", records, RUN_ROWS)


def test_tables_are_joined_in_order(tmp_path: Path, records: pd.DataFrame) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for number, path in enumerate(paths):
        write_table(path, records.assign(trial=number), RUN_ROWS)
    joined = concatenate(paths, RUN_ROWS)
    assert joined["trial"].tolist() == [0, 0, 1, 1]
    assert joined.index.tolist() == [0, 1, 2, 3]
