"""From a table to a request, nobody vanishes, nobody is exchanged, and none of a person's records is missed."""

import gzip
import re
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certified_unlearning.data.tables import table_file
from certified_unlearning.errors import UnlearningError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.store import Ledger
from tests.ledger.conftest import Unlearn

FLAGS = (
    "--label", "left", "--id", "customer", "--feature", "age", "--range", "age=0:100", "--norm", "at-most-1",
    "--epsilon", "1", "--no-quality",
)  # fmt: skip
ROWS = [f"{n},{20 + n % 60},{'no' if n % 3 else 'yes'},n{n}" for n in range(1, 61)]
"""Sixty people, one row each."""


def table(path: Path, rows: list[str], header: str = "customer,age,left,note") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def refused(unlearn: Unlearn, *arguments: object) -> str:
    """The one sentence that the program ends with."""
    with pytest.raises(UnlearningError) as error:
        unlearn(*arguments)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


@pytest.mark.parametrize(
    ("quoted", "sentence"),
    [
        ({20: '20,40,no,"5 inch'}, "row 20 (line 21): a quote is opened and not closed before the end of the file"),
        ({20: '20,40,no,"5 inch', 25: '25,45,no,"6 inch'}, "row 20 (line 21): text follows a closing quote"),
        ({20: '20,40,no,"5 inch', 25: '25,45,no,6 inch"'}, "row 20 (line 21): a quoted value runs on to line 26"),
        ({20: '20,"40,no,5 inch', 21: '21,41",yes,6 inch'}, "row 20 (line 21): a quoted value runs on to line 22"),
        ({20: "20,40,no,5,5 inch"}, "row 20 (line 21) has 5 columns, but the header has 4"),
        ({20: "20,40,no"}, "row 20 (line 21) has 3 columns, but the header has 4"),
    ],
)
def test_a_table_that_would_lose_people_is_refused_and_nothing_is_written(
    tmp_path: Path, unlearn: Unlearn, quoted: dict[int, str], sentence: str
) -> None:
    rows = [quoted.get(number, row) for number, row in enumerate(ROWS, 1)]
    assert sentence in refused(unlearn, "init", tmp_path / "model", "--data", table(tmp_path / "t.csv", rows), *FLAGS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


def test_a_line_break_in_an_identifier_is_kept_at_the_boundary_of_a_block(tmp_path: Path, unlearn: Unlearn) -> None:
    """The pair of carriage return and line feed lies across 4 MiB, where a reader once dropped one of them."""
    content, number = bytearray(b'customer,age,left\r\n"Acme\r\nBerlin",40,yes\r\n'), 0
    while len(content) < (1 << 22) - 400:
        content += b'"c%07d",%d,%s\r\n' % (number, 20 + number % 60, b"yes" if number % 3 else b"no")
        number += 1
    content += b'"c%0*d",33,no\r\n' % ((1 << 22) - len(content) - 17, number)
    content += b'"Acme\r\nBerlin",41,no\r\n'
    assert content.rindex(b"\r\nBerlin") == (1 << 22) - 1
    (tmp_path / "t.csv").write_bytes(content)
    made = unlearn("init", tmp_path / "model", "--data", tmp_path / "t.csv", *FLAGS, "--C", "0.001")
    assert made.exit_code == 0, made.output
    assert requests.request(tmp_path / "model", ["Acme\r\nBerlin"]).records == 2


def test_a_compressed_table_may_have_a_name_in_capitals(tmp_path: Path, unlearn: Unlearn) -> None:
    content = table(tmp_path / "t.csv", ROWS).read_bytes()
    (tmp_path / "T.CSV.GZ").write_bytes(gzip.compress(content))
    assert unlearn("init", tmp_path / "model", "--data", tmp_path / "T.CSV.GZ", *FLAGS).exit_code == 0


@pytest.mark.parametrize(
    ("identifiers", "sentence"),
    [
        (pd.Series([float(2**53 + n) for n in range(60)]), "stored as floating-point numbers (double)"),
        (pd.Series(np.arange(60, dtype=np.float32)), "stored as floating-point numbers (float)"),
        (pd.Series([1.0, None] + [2.0] * 58), 'where one is missing, pandas needs the type "Int64"'),
    ],
)
def test_identifiers_that_were_rounded_are_refused(
    tmp_path: Path, unlearn: Unlearn, identifiers: pd.Series, sentence: str
) -> None:
    frame = pd.DataFrame({"customer": identifiers, "age": range(60), "left": ["no", "yes"] * 30})
    frame.to_parquet(tmp_path / "t.parquet")
    for command in (("init", tmp_path / "model", "--data"), ("declare",)):
        options = FLAGS if command[0] == "init" else FLAGS[:4]
        assert sentence in refused(unlearn, *command, tmp_path / "t.parquet", *options)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("rounded", ["1.23457E+15", "9.00719925474099e15", "9007199254740992.0"])
def test_identifiers_of_a_text_file_that_a_spreadsheet_has_rounded_are_refused(
    tmp_path: Path, unlearn: Unlearn, rounded: str
) -> None:
    data = table(tmp_path / "t.csv", [*ROWS, f"{rounded},40,no,x"])
    for command, options in ((("init", tmp_path / "model", "--data"), FLAGS), (("declare",), FLAGS[:4])):
        said = refused(unlearn, *command, data, *options)
        assert f"row 61: the identifier customer is '{rounded}', a number that a program has rounded" in said


@pytest.mark.parametrize("rounded", ["9007199254740992.0", "9.007199254740992e15", " 1.23457E+15"])
def test_a_request_for_a_number_that_was_rounded_is_refused(
    model: Path, tmp_path: Path, unlearn: Unlearn, rounded: str
) -> None:
    """It may be the identifier of somebody else, to which it was rounded."""
    (tmp_path / "ids.csv").write_text(f"person\np3\n{rounded}\n")
    for arguments in (("--id", rounded), ("--file", tmp_path / "ids.csv")):
        said = refused(unlearn, "request", model, *arguments)
        assert f"identifier {rounded!r} is a number that a program has rounded" in said
    assert requests.status(model).state.pending == 0


def test_whole_numbers_of_64_bits_are_exact_identifiers(tmp_path: Path, unlearn: Unlearn) -> None:
    numbers = [2**53 + n for n in range(30)] + [2**64 - 1 - n for n in range(30)]
    frame = pd.DataFrame({"customer": np.array(numbers, np.uint64), "age": range(60), "left": ["no", "yes"] * 30})
    frame.to_parquet(tmp_path / "t.parquet")
    assert unlearn("init", tmp_path / "model", "--data", tmp_path / "t.parquet", *FLAGS).exit_code == 0
    for number in (2**53 + 1, 2**64 - 2):
        assert requests.request(tmp_path / "model", [str(number)]).records == 1


SPELLINGS = [
    ("Acme Berlin", "Acme  Berlin", "blanks"),
    ("Acme\u00a0Berlin", "Acme Berlin", "blanks"),
    ("Ren\u00e9", "Rene\u0301", "Unicode normalisation"),
    ("acme", "ACME", "case"),
    ("O'Brien", "O\u2019Brien", "the form of dashes or quotation marks"),
    ("A-7", "A\u20117", "the form of dashes or quotation marks"),
    ("007", "7", "leading zeros or a trailing .0"),
]


@pytest.mark.parametrize(("one", "other", "difference"), SPELLINGS)
def test_another_spelling_is_named_and_a_request_that_leaves_it_out_is_refused(
    tmp_path: Path, unlearn: Unlearn, one: str, other: str, difference: str
) -> None:
    data = table(tmp_path / "t.csv", [f"c{row}" for row in ROWS] + [f"{one},40,no,x", f"{other},41,yes,y"])
    draft = unlearn("declare", data, *FLAGS[:4])
    made = unlearn("init", tmp_path / "model", "--data", data, *FLAGS)
    for result in (draft, made):
        assert result.exit_code == 0
        assert f"2 identifiers differ only in {difference}, such as " in result.stderr
        assert "they count as different people" in result.stderr
    alone = refused(unlearn, "request", tmp_path / "model", "--id", one)
    assert f"{one!r} may be {other!r} (1 record), which differs only in {difference}" in alone
    assert alone.endswith("nothing was recorded")
    assert requests.status(tmp_path / "model").state.pending == 0
    both = unlearn("request", tmp_path / "model", "--id", one, "--id", other)
    assert both.exit_code == 0
    assert "2 requests, 2 records" in both.output


def test_one_spelling_can_be_requested_alone_and_then_the_other(tmp_path: Path, unlearn: Unlearn) -> None:
    data = table(tmp_path / "t.csv", [*ROWS, "Acme,40,no,x", "acme,41,yes,y"])
    assert unlearn("init", tmp_path / "model", "--data", data, *FLAGS).exit_code == 0
    assert unlearn("request", tmp_path / "model", "--id", "Acme", "--one-spelling").exit_code == 0
    assert unlearn("request", tmp_path / "model", "--id", "acme").exit_code == 0


def test_spellings_leave_the_ledger_with_the_records(tmp_path: Path, unlearn: Unlearn) -> None:
    data = table(tmp_path / "t.csv", [*ROWS, "Acme,40,no,x", "acme,41,yes,y"])
    unlearn("init", tmp_path / "model", "--data", data, *FLAGS)
    unlearn("request", tmp_path / "model", "--id", "Acme", "--one-spelling")
    assert unlearn("apply", tmp_path / "model", "--no-quality").exit_code == 0
    with sqlite3.connect(tmp_path / "model" / "ledger.sqlite") as connection:
        assert connection.execute("SELECT identifier FROM spellings").fetchall() == [("acme",)]
    assert unlearn("request", tmp_path / "model", "--id", "acme").exit_code == 0


def test_a_ledger_of_before_has_no_spellings_and_works(model: Path) -> None:
    with sqlite3.connect(model / "ledger.sqlite") as connection:
        connection.execute("DROP TABLE spellings")
    assert requests.request(model, ["p3"]).people == 1
    with Ledger.opened(ModelDirectory(model).ledger) as ledger, ledger.transaction():
        ledger.forget_records(0, 10)
        assert ledger.count_records_of("p3") == 0


def test_spellings_that_the_rules_take_for_one_are_named_and_are_one_person(tmp_path: Path, unlearn: Unlearn) -> None:
    data = table(tmp_path / "t.csv", [*ROWS, "77,40,no,x", "77.0,41,yes,y", " 77,42,no,z"])
    made = unlearn("init", tmp_path / "model", "--data", data, *FLAGS)
    assert "such as ' 77' and '77' and '77.0': they count as one person" in made.stderr
    assert requests.request(tmp_path / "model", ["77"]).records == 3


def test_an_unknown_identifier_is_answered_with_the_one_that_it_resembles(model: Path, unlearn: Unlearn) -> None:
    said = refused(unlearn, "request", model, "--id", "P 3")
    assert "identifier 'P 3' is not in the training data (did you mean 'p3'?)" in said


def test_init_says_what_it_took_before_it_learns(tmp_path: Path, unlearn: Unlearn) -> None:
    data = table(tmp_path / "t.csv", [*ROWS, "60,33,no,again"])
    lines = unlearn("init", tmp_path / "model", "--data", data, *FLAGS).stdout.splitlines()
    assert lines[:4] == [
        "features: 'age' (1 column)",
        "classes: 'no' 41, 'yes' 20 (as found in the records)",
        "identifiers: 'customer', 60 people in 61 records",
        "left out: no rows; columns 'note'",
    ]
    assert any(re.fullmatch(r"learning takes about \d+ seconds?", line) for line in lines)


def test_a_class_that_one_person_alone_has_is_not_taken_from_the_records(tmp_path: Path, unlearn: Unlearn) -> None:
    """However many rows the person has."""
    data = table(tmp_path / "t.csv", [*ROWS, *(f"60,{20 + n},maybe,x" for n in range(20))])
    said = refused(unlearn, "init", tmp_path / "model", "--data", data, *FLAGS)
    assert "fewer than 10 people have the class 'maybe' (1 person) of the label left" in said
    assert not (tmp_path / "model").exists()
    declared = ("--class", "no", "--class", "yes", "--class", "maybe")
    assert unlearn("init", tmp_path / "model", "--data", data, *FLAGS, *declared).exit_code == 0


@pytest.mark.parametrize(
    "name", ["", " ", "Unnamed: 0", "Unnamed: 0.1", "__index_level_0__", "index", "row_id", "row.names"]
)
def test_the_index_of_a_data_frame_is_no_feature_unless_it_is_named(
    tmp_path: Path, unlearn: Unlearn, name: str
) -> None:
    draw = np.random.default_rng(0)
    rows = [f"{draw.integers(1000)},{n},{20 + n % 7},{'yes' if n % 2 else 'no'},x" for n in range(60)]
    data = table(tmp_path / "t.csv", rows, f"{name},customer,age,left,note")
    flags = ("--label", "left", "--id", "customer", "--epsilon", "1", "--no-quality")
    said = refused(unlearn, "init", tmp_path / "model", "--data", data, *flags)
    assert f"column {name!r} seems to be an index" in said
    assert not (tmp_path / "model").exists()
    named = unlearn("init", tmp_path / "model", "--data", data, *flags, "--feature", name, "--feature", "age")
    assert named.exit_code == 0, named.output
    draft = unlearn("declare", data, *flags[:4])
    assert f"note: {name}: left out: its name says that it is an index" in draft.stderr


def test_a_parquet_files_own_index_is_no_feature(tmp_path: Path, unlearn: Unlearn) -> None:
    frame = pd.DataFrame({"customer": range(60), "age": 20 + np.arange(60) % 7, "left": ["no", "yes"] * 30})
    frame.index = pd.Index(np.random.default_rng(0).permutation(60), name="place")
    frame.to_parquet(tmp_path / "t.parquet")
    flags = ("--label", "left", "--id", "customer", "--epsilon", "1", "--no-quality")
    said = refused(unlearn, "init", tmp_path / "model", "--data", tmp_path / "t.parquet", *flags)
    assert "column 'place' seems to be an index" in said


@pytest.mark.parametrize("step", [1, 3])
def test_a_column_that_numbers_the_rows_is_no_feature_unless_it_is_named(
    tmp_path: Path, unlearn: Unlearn, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "_CSV_VALUES_AT_ONCE", 100)
    rows = [f"{17 + step * place},{row.rpartition(',')[0]}" for place, row in enumerate(ROWS)]
    data = table(tmp_path / "t.csv", rows, "place,customer,age,left")
    flags = ("--label", "left", "--id", "customer", "--epsilon", "1", "--no-quality")
    said = refused(unlearn, "init", tmp_path / "model", "--data", data, *flags)
    assert "column 'place' numbers the rows: its whole numbers rise from row to row" in said
    assert not (tmp_path / "model").exists()
    assert unlearn("init", tmp_path / "m2", "--data", data, *flags, "--feature", "place").exit_code == 0


def test_numbers_that_rise_within_each_block_only_are_a_feature(
    tmp_path: Path, unlearn: Unlearn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "_CSV_VALUES_AT_ONCE", 80)  # 20 rows of 4 columns
    rows = [f"{place % 20},c{place},{('no', 'yes')[place % 2]},1" for place in range(60)]
    data = table(tmp_path / "t.csv", rows, "a,customer,left,b")
    flags = ("--label", "left", "--id", "customer", "--epsilon", "1", "--no-quality")
    assert unlearn("init", tmp_path / "model", "--data", data, *flags).exit_code == 0


def test_text_of_a_parquet_file_that_is_not_utf8_is_one_sentence(tmp_path: Path, unlearn: Unlearn) -> None:
    latin = pa.array([b"Ren\xe9"] * 60, pa.binary())
    identifiers = pa.Array.from_buffers(pa.string(), 60, latin.buffers())
    rows = {"customer": identifiers, "age": pa.array(range(60)), "left": pa.array(["no", "yes"] * 30)}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    said = refused(unlearn, "init", tmp_path / "model", "--data", tmp_path / "t.parquet", *FLAGS)
    assert "t.parquet cannot be read as Parquet: " in said
    assert "UTF8" in said
