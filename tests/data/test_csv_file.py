"""CSV files are read strictly: every row is read as it is, or the file is refused in one sentence."""

import gzip
import random
import re
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from certified_unlearning.data.tables import csv_file, table_file
from certified_unlearning.errors import DataError
from tests.data.csv_fuzz import fuzz, joined, outcome, read


def test_random_files_are_read_as_pythons_strict_csv_reads_them_or_refused(tmp_path: Path) -> None:
    """Each raises where the two readings differ; blocks are from 1 byte on."""
    found = fuzz(2000, 20261125, tmp_path)
    assert found["valid"]["equal"] >= 0.95 * 2000, found
    # What is broken by chance may still be a table. Most is none.
    assert found["broken"]["refused"] >= 0.7 * 2000, found


def test_the_comparison_finds_a_reader_that_drops_a_byte_at_a_block_boundary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(values: object) -> list[list[str]]:
        return [[each.replace("\r\n", "\n") for each in row] for row in values]  # type: ignore[attr-defined]

    usual = csv_file.read
    monkeypatch.setattr(csv_file, "read", lambda path, rows, prose=None: map(careless, usual(path, rows, prose)))
    with pytest.raises(AssertionError):
        fuzz(300, 1, tmp_path)


def test_two_stray_quotes_never_make_a_row_vanish(tmp_path: Path) -> None:
    draw, outcomes = random.Random(5), Counter[str]()
    for _ in range(1000):
        content, count = joined(draw)
        (tmp_path / "t.csv").write_bytes(content)
        try:
            rows = len(read(tmp_path / "t.csv", 3)) - 1
        except DataError:
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        assert rows == count, content
    assert min(outcomes.values()) > 50, outcomes


@pytest.mark.parametrize(
    "rows",
    [
        '2,37,"hello, dear,no\n3,26,world",yes\n',
        '2,37,"hello,no\n3,26,dear, world",yes\n',
        '2,37,"hello,no\n\n3,26,world",yes\n',
        '2,37,"hello,no\n# a comment, and more\n3,26,world",yes\n',
        '2,37,"hello,no\n3,26,wor\nld",yes\n',
        '2,37,"hello,no\n3,26,x, y,yes\n4,27,world",no\n',
        '"2, 3",37,"hello,no\n3,26,world",yes\n',
        '2,37,hello,"no\n3,26,world,yes"\n',
        '"2,37,hello,no\n3",26,world,yes\n',
        '",37,hello,no\n",26,world,yes\n',
        '2,37,"hello,no\n3,""26\n"",world",yes\n',
        '"x,37,hello,no\n\n",26,world,yes\n',
    ],
)
def test_rows_between_two_stray_quotes_are_refused_whatever_else_stands_there(tmp_path: Path, rows: str) -> None:
    (tmp_path / "t.csv").write_text(f"id,age,note,left\n1,20,x,no\n{rows}5,30,y,no\n")
    with pytest.raises(DataError, match=r"row 2 \(line 3\): a quoted value runs on to line"):
        read(tmp_path / "t.csv", 2)


@pytest.mark.parametrize("text", ["Dear all,\nthank you", "Main Street 7\n10115 Berlin, Germany", "one\ntwo\nthree"])
def test_text_over_several_lines_is_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(f'id,age,note,left\n1,20,"{text}",no\n', newline="")
    assert read(tmp_path / "t.csv", 2)[1] == ["1", "20", text, "no"]


PLAIN = "id,age,left\n1,20,no\n2,21,yes\n3,22,no\n"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", " is empty, expected a header with the names of the columns"),
        (
            b'id,note\n1,a\n2,"5 inch\n3,b\n',
            ", row 2 (line 3): a quote is opened and not closed before the end of the file",
        ),
        (b'id,note\n1,"5 inch\n2,"6 inch\n', ", row 1 (line 2): text follows a closing quote"),
        (b'id,note,age\n1,"5 inch,20\n2,6 inch",21\n', ", row 1 (line 2): a quoted value runs on to line 3"),
        (b"id,age\n1,20\n\n2\n", ", row 2 (line 4) has 1 column, but the header has 2"),
        (b"id,age\n1,20,3\n", ", row 1 (line 2) has 3 columns, but the header has 2"),
        (b'"a\nb",age\n1,20\n2,\xff\n', ", row 2 (line 4) holds the byte 0xff, which is not UTF-8 text"),
        (b"id,gr\xf6\xdfe\n1,20\n", ", line 1, holds the byte 0xf6, which is not UTF-8 text; save it as UTF-8"),
        ("id,age\n1,20\n".encode("utf-16"), "holds the byte 0xff, which is not UTF-8 text"),
        ("id,age\n1,20\n".encode("utf-16-le"), " is not UTF-8 text: its header holds zero bytes, as UTF-16 does"),
        (b'id,note\n1,"' + b"x" * 200_000 + b'"\n', ", row 1 (line 2): a value is longer than 131,072 characters"),
        (b"id;age\n1;20\n", " seems to separate its columns by semicolons, expected commas"),
        (b'"id"\t"age"\n1\t20\n', " seems to separate its columns by tabs, expected commas"),
        (b"id,id\n1,2\n", " has two columns 'id'; rename one"),
        (b"id,age\n1,20\nid,age\n2,21\n", ", row 2 (line 3) repeats the header"),
        (b"sep=,\nid,age\n1,20\n", ", line 1: sep= is for spreadsheets, and is not a header; leave out the line"),
        (b'id,"note\n0,n0"\n1,n1\n', ", line 1: the name of a column runs over several lines"),
        (b"PAR1\x15\x04\xff", " is Parquet, not CSV; name it after its real format"),
        (gzip.compress(b"id,age\n1,20\n", mtime=0), " is compressed (gzip), not CSV; name it after its real format"),
    ],
)
def test_what_is_no_table_is_one_sentence_that_names_the_row(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=re.escape(sentence)) as error:
        read(path, 2)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["t.csv.gz", "T.CSV.GZ", "t.Csv.Gz"])
def test_compressed_files_are_known_by_their_name_in_any_case(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(PLAIN.encode()))
    assert read(tmp_path / name, 2) == [line.split(",") for line in PLAIN.splitlines()]


@pytest.mark.parametrize("content", [PLAIN.encode(), gzip.compress(PLAIN.encode(), mtime=0)[:-12]])
def test_what_cannot_be_decompressed_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.csv.gz").write_bytes(content)
    with pytest.raises(DataError, match=r"t\.csv\.gz cannot be decompressed \(.*\); is it complete, and compressed\?"):
        read(tmp_path / "t.csv.gz", 2)


def test_a_line_break_within_quotes_is_kept_wherever_a_block_ends(tmp_path: Path) -> None:
    """A reader that cuts blocks by bytes lost the line feed of one pair."""
    content = b'customer,age,left\r\n"Acme\r\nBerlin",40,yes\r\n7,41,no\r\n"Acme\r\nBerlin",42,no\r\n'
    for size in range(1, 60):
        draw = random.Random(size)
        assert outcome(content, tmp_path, draw) == "equal"


def test_blank_lines_are_no_rows_and_rows_are_counted_without_them(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,age\n\n1,20\n\n2,21\n\n")
    assert read(tmp_path / "t.csv", 1) == [["id", "age"], ["1", "20"], ["2", "21"]]


def test_a_file_is_read_in_blocks_of_bounded_memory(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,age\n" + "".join(f"{row},{row % 90}\n" for row in range(300_000)))
    tracemalloc.start()
    rows = sum(batch.num_rows for batch in table_file.batches(str(tmp_path / "t.csv"), ["age"], 4096))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == 300_000
    assert peak < 4_000_000  # All rows at once take more than 40 MB.
