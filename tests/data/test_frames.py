"""Whatever pandas can hold in a column: it is read, or one sentence names the column."""

import datetime
import decimal
import uuid
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.data.tables.table import Records, read_records
from certified_unlearning.errors import DataError

TABLE = Table(
    path="unopened.csv",
    label="left",
    identifier="customer",
    features=("age", "colour"),
    classes=("no", "yes"),
    ranges={"age": (0, 100)},
    categories={"colour": ("red", "1", "2")},
)


class Wordless:
    """An object that has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def objects(*values: Any) -> pd.Series:
    array = np.empty(len(values), object)
    array[:] = values
    return pd.Series(array)


COLUMNS = {
    "big-endian float64": np.array([1, 2], ">f8"),
    "big-endian int32": np.array([1, 2], ">i4"),
    "big-endian uint64": np.array([1, 2], ">u8"),
    "big-endian time": np.array([1, 2], ">M8[ns]"),
    "float16": np.array([1, 2], np.float16),
    "long double": np.array([1, 2], np.longdouble),
    "complex": np.array([1, 2], complex),
    "above 64 bits": objects(10**30, 1),
    "below 64 bits": objects(-(10**30), 1),
    "unsigned 64 bits": objects(2**63, 1),
    "above float64": objects(10**400, 1),
    "too many digits": objects(10**5000, 1),
    "above 64 bits in a category": pd.Categorical([10**30, 1]),
    "nullable integer": pd.array([1, None], "Int64"),
    "nullable float": pd.array([1, None], "Float64"),
    "nullable truth": pd.array([True, None], "boolean"),
    "string": pd.array(["1", None], "string"),
    "category": pd.Categorical(["red", None]),
    "category of intervals": pd.cut([1, 2], 2),
    "category of complex": pd.Categorical(np.array([1, 2], complex)),
    "interval": pd.arrays.IntervalArray.from_breaks([0, 1, 2]),
    "period": pd.period_range("2020", periods=2, freq="D").array,
    "time": pd.date_range("2020", periods=2).array,
    "time in a zone": pd.date_range("2020", periods=2, tz="Europe/Berlin").array,
    "duration": pd.to_timedelta([1, 2], "D").array,
    "date": objects(datetime.date(2020, 1, 1), None),
    "sparse": pd.arrays.SparseArray([0, 1]),
    "sparse float": pd.arrays.SparseArray([np.nan, 1]),
    "list": objects([1], [2]),
    "array": objects(np.array([1, 2]), np.array([1])),
    "dictionary": objects({"a": 1}, {"b": 2}),
    "series": objects(pd.Series([1]), 1),
    "decimal": objects(decimal.Decimal("1.5"), decimal.Decimal("NaN")),
    "signalling NaN": objects(decimal.Decimal("sNaN"), "a"),
    "UUID": objects(uuid.UUID(int=1), uuid.UUID(int=2)),
    "bytes": objects(b"1", b"\xff"),
    "mixture": objects(1, "red"),
    "mixture with NA": objects(pd.NA, "red", 1),
    "mixture with a list": objects([1], "red"),
    "surrogate": objects("\ud800", 1),
    "void": objects(np.void(b"ab"), np.void(b"ab")),
    "wordless": objects(Wordless(), 1),
    "nothing": objects(None, None),
    "Arrow's list": pd.array([[1], [2]], pd.ArrowDtype(pa.list_(pa.int64()))),
    "Arrow's decimal": pd.array([decimal.Decimal(1)] * 2, pd.ArrowDtype(pa.decimal128(5, 2))),
    "Arrow's time": pd.array([datetime.time(1)] * 2, pd.ArrowDtype(pa.time64("us"))),
}


def read(column: str, values: Any) -> Records:
    values = pd.Series(values)
    count = len(values)
    ordinary = {"age": [1.0] * count, "colour": ["red"] * count, "customer": ["a"] * count, "left": ["no"] * count}
    return next(iter(read_records(TABLE, pd.DataFrame(ordinary | {column: values}), labelled=True)))


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("column", ["age", "colour", "customer", "left"])
def test_whatever_a_column_holds_is_read_or_refused_by_the_name_of_the_column(column: str, kind: str) -> None:
    try:
        assert len(read(column, COLUMNS[kind]).features) == len(COLUMNS[kind])
    except DataError as error:
        if column not in str(error) or "\n" in str(error):
            raise


@pytest.mark.parametrize("kind", [">f8", ">f4", ">i4", ">i8", ">u2"])
def test_big_endian_numbers_are_read_as_others_are(kind: str) -> None:
    native, swapped = np.array([3, 40], kind[1:]), np.array([3, 40], kind)
    np.testing.assert_array_equal(read("age", swapped).features, read("age", native).features)
    if native.dtype.kind == "f":
        with pytest.raises(DataError, match="the identifier customer is stored as floating-point numbers"):
            read("customer", swapped)
    else:
        assert read("customer", swapped).identifiers == ["3", "40"]


def test_whole_numbers_above_64_bits_keep_all_their_digits() -> None:
    assert read("customer", objects(10**30 + 1, 2**63, -(10**20))).identifiers == [
        "1000000000000000000000000000001",
        "9223372036854775808",
        "-100000000000000000000",
    ]
    np.testing.assert_array_equal(read("age", objects(10**30, 1)).features, read("age", [1e30, 1]).features)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("complex", "the table: column customer holds complex128, expected text or numbers"),
        ("wordless", "the table, row 1: customer is of type Wordless, expected text or a number"),
        ("mixture with a list", "the table, row 1: customer is of type list, expected text or a number"),
    ],
)
def test_what_is_no_single_value_is_no_identifier(kind: str, sentence: str) -> None:
    with pytest.raises(DataError) as refused:
        read("customer", COLUMNS[kind])
    assert str(refused.value) == sentence
