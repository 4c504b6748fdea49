"""One message of `unlearn init` names all that an ordinary table holds and nobody declared, and what to declare."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.data.advice.undeclared import UndeclaredError
from certified_unlearning.errors import DataError
from tests.ledger.conftest import Unlearn

ROWS = 400
NULL = r"\N"


def write(path: Path, null: str = "") -> Path:
    """Write a table as a database exports it: each column but ``visits`` needs a declaration."""
    draw = np.random.default_rng(0)
    visits = draw.poisson(4, ROWS)
    table = pd.DataFrame(
        {
            "person": np.arange(ROWS) + 100,
            "age": draw.integers(18, 90, ROWS),
            "visits": visits,
            "plan": draw.choice(["basic", "plus"], ROWS),
            "country": draw.choice(["AT", "CH", "DE"], ROWS),
            "paperless": draw.choice(["t", "f"], ROWS),
            # As PostgreSQL writes a time with its zone.
            "since": [f"2020-01-{day:02} 07:30:00+01" for day in draw.integers(1, 32, ROWS)],
            "account_id": draw.integers(0, 50, ROWS),
            "left": np.where(visits + draw.logistic(size=ROWS) > 4, "t", "f"),
        }
    ).astype(object)
    table.loc[[5, 8, 13], "age"] = None
    table.loc[3, "plan"] = None
    table.loc[17, "country"] = "LI"
    table.to_csv(path, index=False, na_rep=null)
    return path


def asked(table: Path) -> list[object]:
    return ["--data", table, "--label", "left", "--id", "person", "--epsilon", 1, "--no-quality"]


def lines_of(error: DataError) -> dict[str, str]:
    """Return the line of each column in a message."""
    return dict(re.findall(r"^(?:  |\S+: )(\w+): (.*)$", str(error), re.MULTILINE))


def flags_of(error: DataError) -> list[str]:
    """Return every flag that a message names, its placeholders filled in."""
    text = str(error).partition("Or declare by flags:")[2]
    for name, value in (("LOW:HIGH", "0:120"), ("NUMBER", "40"), ("...", "LI")):
        text = text.replace(name, value)
    return [
        word
        for flag in re.findall(r"--(?:missing|range|category|feature) [^\s()]+", text)
        for word in shlex.split(flag)
    ]


@pytest.mark.parametrize("null", ["", NULL])
def test_one_message_names_every_column_with_its_flag_and_following_it_makes_a_model(
    tmp_path: Path, unlearn: Unlearn, null: str
) -> None:
    table = write(tmp_path / "customers.csv", null)
    with pytest.raises(UndeclaredError) as caught:
        unlearn("init", tmp_path / "model", *asked(table))
    said = str(caught.value)
    first = said.splitlines()[0]
    assert f"`unlearn declare {table} --label left --id person -o table.yaml`" in first
    assert "has 6 columns that your declaration does not cover" in first
    assert lines_of(caught.value) == {
        "account_id": "it seems to identify people or rows: leave it out",
        "age": "missing in 3 rows, the first is row 6: --missing age=NUMBER --range age=LOW:HIGH",
        "plan": f"missing in row 4; words such as '{pd.read_csv(table)['plan'][0]}' in 399 rows, the first is row 1: "
        "--category plan=basic,plus,null",
        "country": f"words such as '{pd.read_csv(table)['country'][0]}' in 400 rows, the first is row 1: "
        "--category country=AT,CH,DE,... (fewer than 10 rows have 'LI': replace the three dots by the other "
        "possible values that you know without the file)",
        "paperless": f"words such as '{pd.read_csv(table)['paperless'][0]}' in 400 rows, the first is row 1: "
        "--category paperless=f,t",
        "since": "dates or times; replace them by a number that matters, such as a year or an age: leave it out, or "
        "change it in the file",
    }
    assert "to leave out 'account_id', 'since', name the other columns: --feature age --feature visits" in said
    assert "--range visits=LOW:HIGH" in said
    assert not (tmp_path / "model").exists()
    made = unlearn("init", tmp_path / "model", *asked(table), *flags_of(caught.value))
    assert "version 1 learned from 400 records" in made.stdout


def test_advice_that_is_not_followed_for_one_column_is_repeated_for_it_alone(tmp_path: Path, unlearn: Unlearn) -> None:
    """The check finds what is left: without the flag of one column, that column is named and no other."""
    table = write(tmp_path / "customers.csv")
    with pytest.raises(UndeclaredError) as caught:
        unlearn("init", tmp_path / "model", *asked(table))
    flags = flags_of(caught.value)
    place = flags.index("country=AT,CH,DE,LI")
    for wrong, line in (
        ("country=AT,CH,DE", "'LI' in row 18, not declared: --category country=... with all possible values"),
        ("country=AT", "'DE', 'CH', 'LI' in "),
    ):
        with pytest.raises(UndeclaredError) as again:
            unlearn("init", tmp_path / "model", *asked(table), *flags[:place], wrong, *flags[place + 1 :])
        (found,) = lines_of(again.value).items()
        assert found[0] == "country"
        assert found[1].startswith(line)


def test_a_declaration_in_a_file_is_corrected_by_its_keys(tmp_path: Path, unlearn: Unlearn) -> None:
    table = write(tmp_path / "customers.csv")
    declared = tmp_path / "table.yaml"
    declared.write_text(
        "path: customers.csv\nlabel: left\nclasses: [f, t]\nidentifier: person\n"
        "features: [age, visits, plan, country]\n"
        "categories:\n  plan: [basic, plus]\nranges:\n  age: [0, 120]\n  visits: [0, 50]\n"
    )
    with pytest.raises(DataError) as caught:
        unlearn("init", tmp_path / "model", "--table", declared, "--epsilon", 1)
    assert f"{table} has 3 columns that {declared} does not cover:" in str(caught.value)
    found = lines_of(caught.value)
    assert found["age"] == "missing in 3 rows, the first is row 6: give a NUMBER for this column under the key missing"
    assert found["plan"].endswith("list all possible values under categories, with null for a missing value")
    assert "--" not in str(caught.value)


def test_labels_and_identifiers_that_cannot_be_used_are_named_with_the_features(
    tmp_path: Path, unlearn: Unlearn
) -> None:
    table = pd.read_csv(write(tmp_path / "customers.csv"), dtype=str)[["person", "visits", "left"]]
    table.loc[1, "visits"], table.loc[2, "left"], table.loc[4, "left"] = "many", "maybe", None
    table.loc[6, "person"] = None
    table.to_csv(tmp_path / "customers.csv", index=False)
    flags = ["--range", "visits=0:50", "--class", "f", "--class", "t"]
    with pytest.raises(UndeclaredError) as caught:
        unlearn("init", tmp_path / "model", *asked(tmp_path / "customers.csv"), *flags)
    assert lines_of(caught.value) == {
        "left": "missing in row 5; 'maybe' in row 3, none of its classes: leave out such rows",
        "person": "missing in row 7: leave out such rows",
        "visits": "words such as 'many' in row 2: empty these values in the file if they mean a missing number, or "
        "leave out such rows",
    }


def test_sentences_may_be_text(tmp_path: Path, unlearn: Unlearn) -> None:
    table = pd.read_csv(write(tmp_path / "customers.csv"))[["person", "visits", "left"]]
    table.assign(said=[f"the parcel number {row} came late" for row in range(ROWS)]).to_csv(
        tmp_path / "customers.csv", index=False
    )
    with pytest.raises(UndeclaredError, match=r"said: it has a different value .*: --text said, or leave it out"):
        unlearn("init", tmp_path / "model", *asked(tmp_path / "customers.csv"))


def test_stored_dates_are_left_out(tmp_path: Path, unlearn: Unlearn) -> None:
    table = pd.read_csv(write(tmp_path / "customers.csv"), parse_dates=["since"])[["person", "visits", "since", "left"]]
    table.to_parquet(tmp_path / "customers.parquet")
    with pytest.raises(UndeclaredError) as caught:
        unlearn("init", tmp_path / "model", *asked(tmp_path / "customers.parquet"))
    line = lines_of(caught.value)["since"]
    assert ": leave it out, or change it in the file; to leave out 'since', name the other columns: --feature " in line


def test_a_file_that_cannot_be_read_is_still_named_as_such(tmp_path: Path, unlearn: Unlearn) -> None:
    table = write(tmp_path / "customers.csv")
    table.write_text(table.read_text() + "1,2\n")
    with pytest.raises(DataError, match=r"row 401, line 402 has 2 columns|line 402") as caught:
        unlearn("init", tmp_path / "model", *asked(table), "--feature", "visits")
    assert not isinstance(caught.value, UndeclaredError)
