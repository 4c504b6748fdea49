"""Drafts of declarations: `init` takes them, what is taken from the data is marked, nothing is guessed silently."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from certified_unlearning.cli import app
from certified_unlearning.data.tables import declaration, survey
from certified_unlearning.data.tables.draft import marked
from certified_unlearning.data.tables.drafting import draft, nice_range
from certified_unlearning.data.tables.notes import grouped
from certified_unlearning.data.tables.table import read_blocks, resolve
from certified_unlearning.errors import DataError, ParameterError, UnlearningError

Unlearn = Callable[..., Result]


@pytest.fixture
def unlearn() -> Unlearn:
    def run(*arguments: object) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if isinstance(result.exception, UnlearningError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result

    return run


def messy_customers(people: int) -> pd.DataFrame:
    """A table of customers, 7 % of whom left, with two rows each, and everything that goes wrong with tables."""
    draw = np.random.default_rng(1)
    rows = 2 * people
    income = np.round(draw.lognormal(10, 0.6, rows), 2)
    left = draw.random(rows) < 0.07
    return pd.DataFrame(
        {
            "row": np.arange(rows),
            "customer id": draw.choice(np.arange(10_000, 90_000), people, replace=False)[np.arange(rows) // 2],
            "age": np.where(draw.random(rows) < 0.05, None, (draw.integers(18, 97, rows) + 60 * left).astype(object)),
            "income": income,
            "job title": draw.choice(["clerk", 'nurse "RN"', "it's, # complicated", None], rows),
            "signup": pd.date_range("2020-01-01", periods=rows).strftime("%d.%m.%Y"),
            "active": draw.choice(["True", "False"], rows),
            "newsletter": draw.choice([True, False, None], rows),
            "constant": "x",
            "empty": None,
            "zip": [f"0{each}" for each in draw.integers(1000, 9999, rows)],
            "amount": [f"{each:.1f}".replace(".", ",") for each in income],
            "note": [f"line {row}\nand # more" for row in range(rows)],
            "score": np.where(draw.random(rows) < 0.01, "unknown", draw.integers(0, 1000, rows).astype(str)),
            "plan": draw.integers(1, 4, rows),
            "yes": draw.normal(size=rows) * 1e-7,
            "big": draw.normal(size=rows) * 1e20,
            "churned": np.where(left, 'yes, "sure"', "no"),
        }
    )


def read_draft(path: Path) -> declaration.Table:
    return declaration.parse(json.dumps(yaml.safe_load(path.read_text(encoding="utf-8"))), str(path))


def confirm(draft: Path) -> None:
    """Delete the marks, as somebody does who knows that all values are public."""
    text = draft.read_text(encoding="utf-8")
    draft.write_text(re.sub(r"  # check: from the data.*", "", text), encoding="utf-8")


def test_a_draft_names_rare_classes_and_names_that_differ_only_in_case_or_blanks(
    tmp_path: Path, unlearn: Unlearn
) -> None:
    answers = ["yes"] * 200 + ["no"] * 90 + ["No"] * 40 + ["Yes", "New  York"] + ["new york"] * 9 + ["ten"] * 11
    table = pd.DataFrame({"age": np.arange(len(answers)) / 2, "answer": answers, "person": range(len(answers))})
    table.to_csv(tmp_path / "t.csv", index=False)
    declared = unlearn("declare", tmp_path / "t.csv", "--label", "answer", "--id", "person", "-o", tmp_path / "t.yaml")
    for sentence in (
        "fewer than 10 records have the class 'new york' (9 records), 'Yes' (1 record), 'New  York' (1 record): "
        "if it is listed only because of these records, the list reveals them, even after they are removed",
        "'No', 'no' differ only in case: one class or several?",
        "'Yes', 'yes' differ only in case: one class or several?",
        "'New  York', 'new york' differ only in blanks, case and the like: one class or several?",
    ):
        assert f"note: answer: {sentence}\n" in declared.stderr
        assert sentence in (tmp_path / "t.yaml").read_text()
    assert "'ten' (" not in declared.stderr
    assert re.search(
        r"^classes: .*  # check: from the data; list all possible classes$",
        (tmp_path / "t.yaml").read_text(),
        re.MULTILINE,
    )
    table.assign(answer=["yes", "no"] * (len(table) // 2)).to_csv(tmp_path / "common.csv", index=False)
    common = unlearn("declare", tmp_path / "common.csv", "--label", "answer", "--id", "person")
    assert "fewer than" not in common.stderr
    assert "differ only" not in common.stderr


def test_a_messy_csv_file_from_declaration_to_evaluation(tmp_path: Path, unlearn: Unlearn) -> None:
    table = messy_customers(600)
    table.to_csv(tmp_path / "messy.csv", index=False, encoding="utf-8-sig")
    table.assign(**{"customer id": np.arange(1200)}).to_csv(tmp_path / "later.csv", index=False)
    yaml_file, model = tmp_path / "table.yaml", tmp_path / "model"
    declared = unlearn("declare", tmp_path / "messy.csv", "--label", "churned", "--id", "customer id", "-o", yaml_file)
    assert (
        f"{yaml_file}: 8 features, 8 columns left out; read it, replace the marked values under ranges and missing, "
        "and remove the marks; then `unlearn init MODEL_DIR" in declared.stdout
    )
    drafted = read_draft(yaml_file)
    assert drafted.path == "messy.csv"
    assert drafted.features == ("age", "income", "job title", "active", "newsletter", "plan", "yes", "big")
    assert drafted.categories == {
        "job title": ("clerk", "it's, # complicated", 'nurse "RN"', None), "newsletter": ("true", "false", None),
    }  # fmt: skip
    assert drafted.ranges["active"] == (0, 1)
    assert drafted.ranges["plan"] == (1, 3)
    assert drafted.classes == ("no", 'yes, "sure"')
    assert drafted.missing == {"age": sum(drafted.ranges["age"]) / 2}
    positive = (table["churned"] != "no").sum()
    for sentence in (
        f"note: churned: the label; rows by class: no: {1200 - positive:,}",
        "note: customer id: 600 identifiers occur more than once, in 1,200 rows: does each belong to one person, "
        "or is this a mistake?",
        f"note: age: {table['age'].isna().sum()} rows have no number: the middle of the range replaces it",
        "note: row: left out: it has a different whole number in every row: identifiers, or row numbers?",
        "note: signup: left out: dates or times; replace them by a number that matters, such as a year or an age",
        "note: constant: left out: it has the same value in every row",
        "note: empty: left out: it has no value at all",
        "different words are too many for categories; group them",
        "note: amount: left out: 1,200 numbers in a form that cannot be read, such as a decimal comma",
        "note: note: left out: it has a different value in every row: identifiers, or text?",
        "other values, first in row",
        "note: plan: only 3 different whole numbers: if they are codes, declare categories instead",
    ):
        assert sentence in declared.stderr
        assert sentence.rpartition(": left out: ")[2].removeprefix("note: ").split(": ", 1)[-1] in yaml_file.read_text()
    with pytest.raises(
        ParameterError, match=r"has 2 marks \"check: from the data\" .'ranges', 'missing'., and no guarantee"
    ):
        unlearn("init", model, "--table", yaml_file, "--epsilon", 1)
    assert not model.exists()
    confirm(yaml_file)
    assert unlearn("init", model, "--table", yaml_file, "--epsilon", 1).exit_code == 0
    unlearn("request", model, "--id", table["customer id"][0])
    assert "removed 2 records of 1 person" in unlearn("apply", model).stdout
    evaluated = json.loads(unlearn("evaluate", model, tmp_path / "later.csv", "--json").stdout)
    assert evaluated["records"] == 1200
    assert evaluated["auc"] > 0.6
    predicted = unlearn("predict", model, tmp_path / "later.csv").stdout.splitlines()
    assert predicted[0] == '"customer id",prediction,probability_no,"probability_yes, ""sure"""'.replace(
        '"customer id"', "customer id"
    )
    assert unlearn("verify", model).exit_code == 0


def test_a_messy_parquet_file_from_declaration_to_evaluation(tmp_path: Path, unlearn: Unlearn) -> None:
    draw = np.random.default_rng(2)
    rows = 900
    level = draw.normal(size=rows)
    table = pd.DataFrame(
        {
            "patient": [f"P{row % 850}" for row in range(rows)],
            "level": level,
            "level as text": [f"{each:.3f}" for each in level],
            "when": pd.date_range("2024-01-01", periods=rows, freq="h"),
            "visits": [[1, 2]] * rows,
            "ward": pd.Categorical(draw.choice(["North wing", "Süd", "null", "O'Neill"], rows)),
            "smoker": draw.random(rows) < 0.5,
            "temperature": np.where(draw.random(rows) < 0.1, np.nan, draw.normal(37, 0.5, rows).round(1)),
            "class": np.select([level > 0.5, level < -0.5], ["high", "low"], "normal"),
        }
    )
    table.loc[3, "ward"] = None
    (tmp_path / "in").mkdir()
    table.to_parquet(tmp_path / "in" / "p.parquet")
    yaml_file = tmp_path / "p.yaml"
    declared = unlearn("declare", tmp_path / "in" / "p.parquet", "--label", "class", "--id", "patient", "-o", yaml_file)
    drafted = read_draft(yaml_file)
    assert drafted.path == "in/p.parquet"
    assert drafted.features == ("level", "level as text", "ward", "smoker", "temperature")
    assert "note: level as text: numbers that are stored as text" in declared.stderr
    assert "note: when: left out: dates or times" in declared.stderr
    assert "note: visits: left out: it holds list<" in declared.stderr
    assert "note: patient: 50 identifiers occur more than once, in 100 rows" in declared.stderr
    assert drafted.categories["ward"][-1] is None
    confirm(yaml_file)
    assert unlearn("init", tmp_path / "model", "--table", yaml_file, "--epsilon", 2).exit_code == 0
    unlearn("request", tmp_path / "model", "--id", "P0")
    unlearn("apply", tmp_path / "model")
    table.assign(patient="new").to_parquet(tmp_path / "new.parquet")
    found = unlearn("evaluate", tmp_path / "model", tmp_path / "new.parquet")
    assert "900 records, version 2" in found.stdout


def test_the_draft_is_printed_where_no_file_is_named(tmp_path: Path, unlearn: Unlearn) -> None:
    (tmp_path / "t.csv").write_text("a,y\n1,0\n2,1\n2,1\n")
    printed = unlearn("declare", tmp_path / "t.csv", "--label", "y").stdout
    made = draft(str(tmp_path / "t.csv"), "y")
    assert printed == made.text
    assert yaml.safe_load(printed) == {
        "path": str(tmp_path / "t.csv"), "label": "y", "classes": ["0", "1"], "features": ["a"],
        "ranges": {"a": [1, 2]}, "norm": "at-most-1",
    }  # fmt: skip
    assert "# identifier: FILL_IN  # the ledger needs a column that identifies the person of each row" in printed
    assert '"check: from the data" are not public' in printed


def test_every_mark_that_is_left_is_found_and_nothing_else(tmp_path: Path) -> None:
    table = messy_customers(100)
    table.loc[7, ["churned", "job title"]] = "rare"
    table["# check: from the data"] = np.resize(["a: # check: from the data", "b"], len(table))
    table.to_csv(tmp_path / "t.csv", index=False)
    text = draft(str(tmp_path / "t.csv"), "churned", "customer id").text
    ending = [line for line in text.splitlines() if re.search(r"# check: from the data; [a-z0-9,+; ]+$", line)]
    assert len(marked(text)) == len(ending) == 4
    assert marked(text) == ["classes", "job title", "ranges", "missing"]
    confirmed = re.sub(r"(?m)  # check: from the data; [a-z0-9,+; ]+$", "", text)
    assert "# check: from the data" in confirmed  # A column and one of its values are called so.
    assert marked(confirmed) == []


def test_a_column_that_says_whose_a_row_is_is_no_feature_unless_it_has_few_values(tmp_path: Path) -> None:
    rows = [f"{1000 + row - (row % 10 == 9)},{row % 3},{row},{row % 2}" for row in range(100)]
    (tmp_path / "t.csv").write_text("\n".join(["account id,room number,x,y", *rows]))
    made = draft(str(tmp_path / "t.csv"), "y")
    assert made.left_out["account id"] == "it seems to identify the person of a row"
    assert "room number" in made.features


def test_what_is_read_off_the_data_is_marked_and_what_is_sure_is_not(tmp_path: Path) -> None:
    messy_customers(600).to_csv(tmp_path / "t.csv", index=False)
    lines = draft(str(tmp_path / "t.csv"), "churned", "customer id").text.splitlines()
    marked_lines = [line for line in lines if "  # check: from the data" in line]
    assert marked_lines == [
        "ranges:  # check: from the data; write the lowest and the highest value that you know without the file, such "
        "as 0 and 120 for an age",
        "missing:  # check: from the data; write a number that you would choose without the file",
    ]
    assert '  newsletter: ["true", "false", null]' in lines
    assert "  active: [0, 1]  # true or false" in lines
    assert next(line for line in lines if line.startswith("classes")).endswith("]  # the second is +1")
    assert any("has only" in line for line in lines)
    assert "# values of at least 10 people each. " in "\n".join(lines)


@pytest.mark.parametrize(
    ("cells", "identifiers", "is_marked"),
    [
        (["a"] * 10 + ["b"] * 30, range(40), False),
        (["a"] * 9 + ["b"] * 31, range(40), True),
        (["a"] * 19 + ["b"] * 21, [row // 2 for row in range(40)], True),  # They may be ten people's, or nine.
        (["a"] * 20 + ["b"] * 20, [row // 2 for row in range(40)], False),
        (["a"] * 20 + ["A"] * 20, range(40), True),
        (["01"] * 20 + ["02"] * 20, range(40), True),
        (["a"] * 20 + ["none"] * 20, range(40), True),
        (["a"] * 35 + [""] * 5, range(40), True),
        (["a"] * 30 + [""] * 10, range(40), False),
    ],
)
def test_a_list_of_values_is_marked_where_few_people_have_one_or_its_values_are_unclear(
    tmp_path: Path, cells: list[str], identifiers: Any, is_marked: bool
) -> None:
    rows = pd.DataFrame({"word": cells, "y": ["no", "yes"] * 20, "id": identifiers, "x": np.arange(40) / 8})
    rows.to_csv(tmp_path / "t.csv", index=False)
    made = draft(str(tmp_path / "t.csv"), "y", "id")
    assert marked(made.text) == [*(["word"] if is_marked else []), "ranges"]
    assert ("categories" in dict(made.marks)) == is_marked
    rows["y"], rows["word"] = cells, ["no", "yes"] * 20
    rows.to_csv(tmp_path / "t.csv", index=False)
    if not {"", "01", "none"} & {*cells}:
        assert ("classes" in marked(draft(str(tmp_path / "t.csv"), "y", "id").text)) == is_marked


def wide(columns: int, rows: int = 60) -> pd.DataFrame:
    """A table of like columns of numbers, with a label and an identifier."""
    draw = np.random.default_rng(4)
    numbers = {f"pixel_{column}": draw.integers(0, 256, rows) / 255 for column in range(columns)}
    return pd.DataFrame(numbers | {"y": np.resize(["no", "yes"], rows), "person": range(rows)})


def test_768_like_columns_are_one_run_with_one_range_and_one_mark(tmp_path: Path, unlearn: Unlearn) -> None:
    table = wide(768)
    table.to_csv(tmp_path / "t.csv", index=False)
    declared = unlearn("declare", tmp_path / "t.csv", "--label", "y", "--id", "person", "-o", tmp_path / "t.yaml")
    text = (tmp_path / "t.yaml").read_text()
    assert len(text.splitlines()) <= 16
    assert "  - pixel_0 to pixel_767\n" in text
    assert "  pixel_0 to pixel_767: [0, 1]\n" in text
    assert declared.stderr.splitlines()[2:] == [
        "marked: ranges: 768 columns (pixel_0, pixel_1, ... pixel_767): write the lowest and the highest value that "
        "you know without the file, such as 0 and 120 for an age"
    ]
    confirm(tmp_path / "t.yaml")
    table = resolve(read_draft(tmp_path / "t.yaml").model_copy(update={"path": str(tmp_path / "t.csv")}))
    assert table.features == tuple(f"pixel_{column}" for column in range(768))
    assert table.ranges == {f"pixel_{column}": (0, 1) for column in range(768)}


def test_notes_that_say_the_same_of_many_columns_are_one_note(tmp_path: Path, unlearn: Unlearn) -> None:
    draw = np.random.default_rng(5)
    rows = 300
    codes = {f"c{column}": draw.integers(0, 6 + column % 5, rows) for column in range(83)}
    dates = {f"d{column}": pd.date_range("2020-01-01", periods=rows).strftime("%d.%m.%Y") for column in range(5)}
    lacks = {f"l{column}": np.where(draw.random(rows) < 0.2, np.nan, draw.normal(size=rows)) for column in range(5)}
    table = pd.DataFrame(codes | dates | lacks | {"y": np.resize(["no", "yes"], rows)})
    table.loc[0, "c40"] = np.nan
    table.to_csv(tmp_path / "t.csv", index=False)
    declared = unlearn("declare", tmp_path / "t.csv", "--label", "y", "-o", tmp_path / "t.yaml")
    text = (tmp_path / "t.yaml").read_text()
    same = "83 columns (c0, c1, ... c82): only 6 to 10 different whole numbers: if they are codes, declare categories"
    assert f"note: {same}" in declared.stderr
    assert f"  # {same}" in text
    assert "  - c40  # 1 row has no number: the middle of the range replaces it\n" in text
    assert re.search(r"note: 5 columns \(l0, l1, ... l4\): \d\d to \d\d rows have no number", declared.stderr)
    assert "#   5 columns (d0, d1, ... d4): dates or times; replace them by a number" in text
    assert len(declared.stderr.splitlines()) == 8
    assert len(text.splitlines()) < 40


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        ([("a", "3 rows"), ("b", "3 rows")], [(["a", "b"], "3 rows")]),
        ([("a", "12,345 rows"), ("b", "4 rows"), ("c", "40 rows")], [(["a", "b", "c"], "4 to 12,345 rows")]),
        ([("a", "about 94.9 % of 2"), ("b", "about 99.9 % of 2")], [(["a", "b"], "about 94.9 to 99.9 % of 2")]),
        ([("a", "int64"), ("b", "int32"), ("a", "x")], [(["a"], "int64"), (["b"], "int32"), (["a"], "x")]),
    ],
)
def test_sentences_are_one_where_their_numbers_alone_differ(
    notes: list[tuple[str, str]], said: list[tuple[list[str], str]]
) -> None:
    assert grouped(notes) == said


def test_columns_are_one_run_only_where_their_ranges_are_alike(tmp_path: Path) -> None:
    table = wide(12).drop(columns=["person"])
    table["pixel_5"] *= 100
    table.to_csv(tmp_path / "t.csv", index=False)
    made = draft(str(tmp_path / "t.csv"), "y")
    assert yaml.safe_load(made.text)["ranges"] == {
        "pixel_0 to pixel_4": [0, 1], "pixel_5": [0, 100], "pixel_6 to pixel_11": [0, 1],
    }  # fmt: skip


def test_a_run_is_written_only_where_it_is_read_as_it_is_meant(tmp_path: Path) -> None:
    table = wide(20).rename(columns={"pixel_0": "a to b", "pixel_19": "pixel_1 to pixel_18"})
    table.insert(10, "constant", 1)
    table.to_csv(tmp_path / "t.csv", index=False)
    made = draft(str(tmp_path / "t.csv"), "y", "person")
    table = resolve(declaration.parse(json.dumps(yaml.safe_load(made.text)), "draft"))
    assert list(table.features or ()) == made.features
    assert "constant" not in made.features
    assert len(table.ranges) == 20


def test_left_out_values_are_not_quoted(tmp_path: Path) -> None:
    """A draft is kept, so names and texts of people have no place in it."""
    rows = [f"{name},{row % 2},{row % 7}" for row, name in enumerate(f"person{n}@example.org" for n in range(80))]
    (tmp_path / "t.csv").write_text("\n".join(["mail,y,a", *rows]) + "\n")
    for identifier in (None, "mail"):
        made = draft(str(tmp_path / "t.csv"), "y", identifier)
        assert "person" not in made.text.replace("person of", "").replace("people", "")
    assert any("80 values look like e-mail addresses" in sentence for _, sentence in made.notes)


def test_rare_categories_and_codes_are_pointed_out(tmp_path: Path) -> None:
    rows = [f"{'rare' if row == 5 else 'common'},{row % 4:03d},{row % 2}" for row in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["kind,code,y", *rows]) + "\n")
    made = draft(str(tmp_path / "t.csv"), "y")
    rare = "if it is listed only because of these records, the list reveals them"
    rare = f"fewer than 10 records have one of its values: {rare}"
    assert ("kind", rare) in made.notes
    assert ("code", "40 numbers with leading zeros: treated as codes") in made.notes
    assert yaml.safe_load(made.text)["categories"]["code"] == ["000", "001", "002", "003"]


def test_rows_without_label_or_identifier_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,a,y\n1,1,no\n,2,yes\n3,3,\n4,5,no\n")
    notes = draft(str(tmp_path / "t.csv"), "y", "id").notes
    assert ("y", "1 row has no label: leave out such rows, because `init` refuses them") in notes
    assert ("id", "1 row has no identifier: leave out such rows, because `init` refuses them") in notes


def test_without_an_identifier_those_that_could_be_are_named(tmp_path: Path) -> None:
    rows = [f"p{row // 2},{row},{row * 7 % 90},{row / 7},{row % 2}" for row in range(90)]
    (tmp_path / "t.csv").write_text("\n".join(["who,line,customer_no,x,y", *rows]) + "\n")
    ((_, sentence),) = (note for note in draft(str(tmp_path / "t.csv"), "y").notes if note[0] == "identifier")
    assert "it could be 'who', 'line', 'customer_no'; name the column with --id" in sentence


def test_one_column_of_numbers_keeps_its_lengths(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,y\n10,0\n13,1\n20,1\n")
    made = draft(str(tmp_path / "t.csv"), "y")
    (block,) = read_blocks(declaration.parse(json.dumps(yaml.safe_load(made.text)), "draft"))
    np.testing.assert_allclose(block.features[:, 0], [-1, -0.4, 1], rtol=1e-6)


def test_a_class_that_is_called_none_is_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,pain\n1,none\n2,mild\n3,severe\n4,None\n")
    notes = draft(str(tmp_path / "t.csv"), "pain").notes
    assert (
        "pain",
        "'None', 'none' in this column: list it in classes if it is a class and not a missing label",
    ) in notes
    declared = declaration.Table(path=str(tmp_path / "t.csv"), label="pain", classes=("none", "mild", "severe", "None"))
    (block,) = read_blocks(declared)
    assert block.labels.tolist() == [0, 1, 2, 3]


def test_many_values_are_counted_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "MOST_DISTINCT", 60)
    rows = [f"P{row},{row * 0.5},w{row % 100},{row % 2}" for row in range(400)]
    (tmp_path / "t.csv").write_text("\n".join(["id,a,word,y", *rows]) + "\n")
    made = draft(str(tmp_path / "t.csv"), "y", "id")
    assert ("id", "identifies the person of each row: 400 people") in made.notes
    assert made.left_out == {"word": "very many different words are too many for categories; group them"}
    assert made.features == ["a"]


CELLS = st.one_of(
    st.sampled_from(["", "NA", "null", "true", "False", "0", "1", "007", "1.5", "-3e5", "1e400", "nan", "2020-01-01"]),
    st.sampled_from(["yes", "no", "~", "- a", "a: b", "#", "é\u2028", "\x7f", "1,5", "a\nb", "'", '"', "[x]", "null "]),
    st.integers(-50, 50).map(str),
    st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=6),
)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=4, max_size=25), st.text("aé :#'\"-\n", max_size=4))
def test_a_draft_is_read_as_it_was_meant_or_there_is_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, ...]], name: str
) -> None:
    path = tmp_path_factory.mktemp("t") / "t.csv"
    table = pd.DataFrame(rows, columns=[name, "no", "yes"])
    table["y"] = [row % 2 for row in range(len(rows))]
    table.to_csv(path, index=False)
    try:
        made = draft(str(path), "y")
    except DataError as refused:
        said = str(refused)
        reasons = ("could be a feature", "two columns", *(["runs over several lines"] if "\n" in name else []))
        assert any(reason in said for reason in reasons), said
        return
    declared = declaration.parse(json.dumps(yaml.safe_load(made.text)), "draft")
    assert list(declared.features or ()) == made.features
    assert set(made.features) | set(made.left_out) == {name, "no", "yes"}
    blocks = list(read_blocks(resolve(declared)))
    assert sum(len(block.labels) for block in blocks) == len(rows)


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
@example(5e-324, 5e-324)
@example(-1e-310, -1e-310)
def test_ranges_are_rounded_outward(one: float, other: float) -> None:
    low, high = sorted((one, other))
    first, last = nice_range(low, high)
    assert first <= low <= high <= last
    assert first < last
    assert last - first <= max(2 * (high - low), 1.5 * abs(low), 1.5) or not math.isfinite(high - low)


@pytest.mark.parametrize(
    ("found", "nice"),
    [((18, 96), (10, 100)), ((0.03, 0.98), (0, 1)), ((0.3, 0.9), (0.3, 0.9)), ((-7, 12), (-8, 12)), ((1, 3), (1, 3))],
)
def test_ranges_are_round(found: tuple[float, float], nice: tuple[float, float]) -> None:
    assert nice_range(*found) == nice


# Mistakes.


@pytest.mark.parametrize(
    ("content", "arguments", "sentence"),
    [
        ("a,b,y\n1,x,0\n2,x,1\n", (), r"--label is missing: which column of .* is to be predicted\? It could be 'a'"),
        ("a,b\n1,x\n", (), "None has between 2 and 10 different values"),
        ("a,y\n1,0\n2,1\n", ("--label", "why"), "has no column 'why'; it has 'a', 'y'"),
        ("a,y\n1,0\n2,1\n", ("--label", "y", "--id", "y"), "--label and --id are the same column 'y'; give"),
        ("a,y\n1,0\n2,1\n", ("--label", "y", "--id", "b"), r"t\.csv has no column 'b'"),
        ("a,y\n1,0\n2,0\n", ("--label", "y"), "the label y has only '0', expected two or more classes"),
        ("a,y\nx,0\nx,1\n", ("--label", "y"), "no column that could be a feature .'a': it has the same value"),
        ("y\n0\n1\n", ("--label", "y"), "has no column that could be a feature .there is no other column"),
        ("a,y\n", ("--label", "y"), r"t\.csv holds no records"),
        ("", ("--label", "y"), "is empty, expected a header"),
        ("a;y\n1,5;0\n2,5;1\n", ("--label", "y"), "seems to separate its columns by semicolons, expected commas; "),
        ('"a"\t"y"\n1\t0\n', ("--label", "y"), "seems to separate its columns by tabs, expected commas"),
        ("a,a,y\n1,1,0\n", ("--label", "y"), r"t\.csv has two columns 'a'; rename one"),
        ("a,y\n1,0\n2,1\n", ("--label", "y", "-o", "{there}/t.csv"), "but its name must end in .yaml or .yml"),
        ("a,y\n1,0\n2,1\n", ("--label", "y", "-o", "{there}/old.yaml"), "old.yaml, which exists already; name another"),
    ],
)  # fmt: skip
def test_what_cannot_be_declared_is_one_sentence(
    tmp_path: Path, unlearn: Unlearn, content: str, arguments: Any, sentence: str
) -> None:
    (tmp_path / "t.csv").write_text(content)
    (tmp_path / "old.yaml").write_text("mine\n")
    given = [argument.format(there=tmp_path) for argument in arguments]
    if "-o" not in given:
        given += ["-o", str(tmp_path / "new.yaml")]
    with pytest.raises((DataError, ParameterError), match=sentence) as caught:
        unlearn("declare", tmp_path / "t.csv", *given)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.yaml", "t.csv"]
    assert (tmp_path / "old.yaml").read_text() == "mine\n"


def test_a_label_that_is_a_number_to_predict_is_no_class(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"{row % 3},{row}\n" for row in range(200)))
    with pytest.raises(DataError, match=r"the label y has more than 128 different values; .*, use --regression"):
        draft(str(tmp_path / "t.csv"), "y")
