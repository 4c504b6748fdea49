"""From a table to a request, nobody vanishes, nobody is exchanged, and none of a person's records is missed."""

import gzip
import os
import re
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certified_unlearning.data.tables import table_file
from certified_unlearning.data.tables.spellings import likely_spellings
from certified_unlearning.errors import UnlearningError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.identifiers.names import UNNAMED
from certified_unlearning.ledger.store import Ledger
from tests.ledger.conftest import Original, Unlearn
from tests.ledger.identifiers.people import last_release
from tests.ledger.tables import make_model

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
        (pd.Series([1.0, None] + [2.0] * 58), 'if identifiers are missing, pandas needs the type "Int64"'),
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


@pytest.mark.parametrize("rounded", ["1.23457E+15", "1E+11", "1.2x10^15", "9.00719925474099e15", "9007199254740992.0"])
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


@pytest.mark.parametrize("stored", ["text", "whole numbers"])
def test_numbers_that_a_spreadsheet_has_cut_to_15_digits_are_refused(
    tmp_path: Path, unlearn: Unlearn, stored: str
) -> None:
    numbers = [123456789012340000 + 10000 * (n // 2) for n in range(60)]
    frame = pd.DataFrame({"customer": numbers, "age": range(60), "left": ["no", "yes"] * 30})
    frame.astype({"customer": str} if stored == "text" else {}).to_parquet(tmp_path / "t.parquet")
    said = refused(unlearn, "init", tmp_path / "model", "--data", tmp_path / "t.parquet", *FLAGS)
    assert "all long identifiers end in zeros after 15 digits" in said
    frame.loc[0, "customer"] += 7
    frame.to_parquet(tmp_path / "u.parquet")
    assert unlearn("init", tmp_path / "model", "--data", tmp_path / "u.parquet", *FLAGS).exit_code == 0


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
    ("007", "7", "how a number is written"),
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
    # The ledger keeps no spelling in clear, so another one is named where it is a likely one.
    likely = f"{other!r}, which differs only in {difference}" if other in likely_spellings(one) else UNNAMED
    assert f"{one!r} may be {likely} (1 record): name both if they are one person" in alone
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


def test_what_a_ledger_of_before_knows_of_a_spelling_leaves_with_the_records(tmp_path: Path, unlearn: Unlearn) -> None:
    data = table(tmp_path / "t.csv", [*ROWS, "Acme,40,no,x", "acme,41,yes,y"])
    with last_release():
        unlearn("init", tmp_path / "model", "--data", data, *FLAGS)
    with sqlite3.connect(tmp_path / "model" / "ledger.sqlite") as connection:
        connection.executemany("INSERT INTO spellings VALUES (?, 'acme')", [("Acme",), ("acme",)])
    said = refused(unlearn, "request", tmp_path / "model", "--id", "Acme")
    assert "'Acme' may be 'acme', which differs only in case (1 record): name both" in said
    unlearn("request", tmp_path / "model", "--id", "Acme", "--one-spelling")
    assert unlearn("apply", tmp_path / "model", "--no-quality").exit_code == 0
    with sqlite3.connect(tmp_path / "model" / "ledger.sqlite") as connection:
        assert connection.execute("SELECT identifier FROM spellings").fetchall() == [("acme",)]
    assert unlearn("request", tmp_path / "model", "--id", "acme").exit_code == 0


def test_a_ledger_of_before_has_no_spellings_and_works(tmp_path: Path, original: Original) -> None:
    model = tmp_path / "model"
    with last_release():
        make_model(model, original.data)
    with sqlite3.connect(model / "ledger.sqlite") as connection:
        connection.execute("DROP TABLE spellings")
    assert requests.request(model, ["p3"]).people == 1
    with Ledger.opened(ModelDirectory(model).ledger) as ledger, ledger.transaction():
        ledger.owners.forget_records(0, 10)
        assert ledger.owners.count_records_of("p3") == 0


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
    rows = [f"{draw.integers(1000)},{n},{20 + n % 7},{'yes' if n % 2 else 'no'},{n % 3}" for n in range(60)]
    data = table(tmp_path / "t.csv", rows, f"{name},customer,age,left,note")
    flags = ("--label", "left", "--id", "customer", "--epsilon", "1", "--no-quality")
    said = refused(unlearn, "init", tmp_path / "model", "--data", data, *flags)
    shown = name if name[:1].strip() and " " not in name else repr(name)
    assert f"{shown}: it seems to be an index, which numbers rows: leave it out" in said
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
    assert "place: it seems to be an index" in said


@pytest.mark.parametrize("step", [1, 3])
def test_a_column_that_numbers_the_rows_is_no_feature_unless_it_is_named(
    tmp_path: Path, unlearn: Unlearn, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "_CSV_VALUES_AT_ONCE", 100)
    rows = [f"{17 + step * place},{row.rpartition(',')[0]}" for place, row in enumerate(ROWS)]
    data = table(tmp_path / "t.csv", rows, "place,customer,age,left")
    flags = ("--label", "left", "--id", "customer", "--epsilon", "1", "--no-quality")
    said = refused(unlearn, "init", tmp_path / "model", "--data", data, *flags)
    assert "column 'place' numbers the rows: its whole numbers increase from row to row" in said
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


# What an attack with fresh eyes found.


@pytest.mark.parametrize(
    "content",
    [
        'person,why\np1,"left\n\np2,sad"\np3,x\n',
        'why,person\n"left,p1\nsad",p2\nx,p3\n',
        'why,person\nmoved,p1\n",p2\n",p3\nother,p4\n',
        'person,why,date\np1,"left, angry,2020\np2,sad",2020\np3,x,2020\n',
    ],
)
def test_a_request_file_that_would_miss_somebody_is_refused(
    model: Path, tmp_path: Path, unlearn: Unlearn, content: str
) -> None:
    (tmp_path / "ids.csv").write_text(content)
    assert "a quoted value runs on to line" in refused(unlearn, "request", model, "--file", tmp_path / "ids.csv")
    assert requests.status(model).state.pending == 0


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("ids.parquet", "person\np1\n", "is named like Parquet, but identifiers are read from CSV"),
        ("ids.csv", "person;why\np1;moved\n", "seems to separate its columns by semicolons, expected commas"),
    ],
)
def test_a_request_file_of_another_kind_is_named(
    model: Path, tmp_path: Path, unlearn: Unlearn, name: str, content: str, sentence: str
) -> None:
    (tmp_path / name).write_text(content)
    assert sentence in refused(unlearn, "request", model, "--file", tmp_path / name)


@pytest.mark.parametrize(
    "word", ["NULL", "\\N", "NA", "n/a", "nan", "None", "#N/A", "-", "####", "(null)", "n.a.", "#REF!"]
)
def test_words_for_a_missing_identifier_are_nobodys(tmp_path: Path, unlearn: Unlearn, word: str) -> None:
    once = table(tmp_path / "once.csv", [*ROWS, f"{word},40,no,x"])
    twice = table(tmp_path / "twice.csv", [*ROWS, f"{word},40,no,x", f"{word},41,yes,y"])
    made = unlearn("init", tmp_path / "model", "--data", once, *FLAGS)
    assert (
        f"in 1 row, the identifier customer is {word!r}: if this means that the identifier is missing, leave"
        in made.stderr
    )
    said = refused(unlearn, "init", tmp_path / "m2", "--data", twice, *FLAGS)
    assert f"the identifier customer is {word!r} in 2 rows, which looks like a missing identifier" in said
    assert not (tmp_path / "m2").exists()
    draft = unlearn("declare", twice, *FLAGS[:4]).stderr
    but = "" if word == r"\N" else f" (but {word!r})"
    missing = f"note: customer: 2 rows have no identifier{but}: leave out such rows, because `init`"
    assert f"note: customer: {word!r} in 2 rows" in draft or missing in draft


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("Left ", [1, 2, 3], "'Left ': it is named like the label 'left'"),
        ("left.1", [1, 2, 3], "left.1: it is named like the label 'left'"),
        ("CUSTOMER", [1, 2, 3], "CUSTOMER: it is named like the identifier 'customer'"),
        ("customer_id", [1, 2, 3], "customer_id: it seems to identify people or rows"),
        ("accountID", [1, 2, 3], "accountID: it seems to identify people or rows"),
        ("code", ["no", "yes"], "column 'code' is a copy of the label: each class has a single value of this column"),
    ],
)
def test_a_column_that_copies_label_or_identifier_is_no_feature_unless_it_is_named(
    tmp_path: Path, unlearn: Unlearn, name: str, values: list[object], sentence: str
) -> None:
    def value(n: int) -> object:
        return {"no": 7, "yes": -1}[["no", "yes"][n % 2]] if values == ["no", "yes"] else values[n % 3]

    rows = [f"c{n},{n % 7},{['no', 'yes'][n % 2]},{value(n)}" for n in range(60)]
    data = table(tmp_path / "t.csv", rows, f"customer,age,left,{name}")
    flags = ("--label", "left", "--id", "customer", "--epsilon", "1", "--no-quality")
    assert sentence in refused(unlearn, "init", tmp_path / "model", "--data", data, *flags)
    assert not (tmp_path / "model").exists()
    named = unlearn("init", tmp_path / "model", "--data", data, *flags, "--feature", "age", "--feature", name)
    assert named.exit_code == 0


def test_a_truth_word_among_numbers_is_refused(tmp_path: Path, unlearn: Unlearn) -> None:
    data = table(tmp_path / "t.csv", [*ROWS, "61,TRUE,no,x"])
    said = refused(unlearn, "init", tmp_path / "model", "--data", data, *FLAGS)
    assert "row 61: age is true, but in row 1 it is '21'; a column holds truth values or numbers, not both" in said
    truths = table(
        tmp_path / "u.csv", [f"{n},{['TRUE', '1', 'false', '0'][n % 4]},{['no', 'yes'][n % 2]},x" for n in range(60)]
    )
    assert unlearn("init", tmp_path / "model", "--data", truths, *FLAGS).exit_code == 0


def test_classes_that_differ_only_in_spelling_are_named(tmp_path: Path, unlearn: Unlearn) -> None:
    rows = [f"{n},{n % 7},{['no', 'yes', 'Yes'][n % 3]},x" for n in range(60)]
    made = unlearn("init", tmp_path / "model", "--data", table(tmp_path / "t.csv", rows), *FLAGS)
    assert "the classes 'Yes', 'yes' differ only in case: are they one class?" in made.stderr


@pytest.mark.parametrize("flag", ["--range", "--missing", "--category"])
def test_a_flag_that_is_given_twice_for_one_column_is_refused(tmp_path: Path, unlearn: Unlearn, flag: str) -> None:
    values = {"--range": ("age=0:1", "age=0:2"), "--missing": ("age=1", "age=2"), "--category": ("age=a", "age=b")}[
        flag
    ]
    data = table(tmp_path / "t.csv", ROWS)
    twice = [each for value in values for each in (flag, value)]
    plain = ("--label", "left", "--id", "customer", "--feature", "age", "--epsilon", "1")
    said = refused(unlearn, "init", tmp_path / "model", "--data", data, *plain, *twice)
    assert said == f"{flag} is given twice for 'age'; give it once"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ("[010, 7]", "010 in line 3 would be read as another number; put quotes around it"),
        ("[12:30, 7]", "12:30 in line 3 would be read as another number"),
        ("[1_0, 7]", "1_0 in line 3 would be read as another number"),
        ("[0x10, 7]", "0x10 in line 3 would be read as another number"),
        ("[2020-01-01, 7]", "the declaration has the date 2020-01-01; put quotes around it"),
        ("[.nan, 7]", "classes lists a number that is not finite; put quotes around it if it is a word"),
    ],
)
def test_what_yaml_would_read_as_something_else_is_refused(
    tmp_path: Path, unlearn: Unlearn, values: str, sentence: str
) -> None:
    table(tmp_path / "t.csv", ROWS)
    (tmp_path / "t.yaml").write_text(f"path: t.csv\nlabel: left\nclasses: {values}\nidentifier: customer\n")
    said = refused(unlearn, "init", tmp_path / "model", "--table", tmp_path / "t.yaml", "--epsilon", "1")
    assert sentence in said


def test_identifiers_of_parquet_may_be_stored_as_views(tmp_path: Path, unlearn: Unlearn) -> None:
    identifiers = pa.array([f"c{n}" for n in range(60)]).cast(pa.string_view())
    rows = {"customer": identifiers, "age": pa.array(range(60)), "left": pa.array(["no", "yes"] * 30)}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    assert unlearn("init", tmp_path / "model", "--data", tmp_path / "t.parquet", *FLAGS).exit_code == 0
    assert requests.request(tmp_path / "model", ["c7"]).records == 1


def test_a_pipe_is_refused_as_data(tmp_path: Path, unlearn: Unlearn) -> None:
    os.mkfifo(tmp_path / "t.csv")
    said = refused(unlearn, "init", tmp_path / "model", "--data", tmp_path / "t.csv", *FLAGS)
    assert "t.csv is a pipe, which can be read only once" in said
