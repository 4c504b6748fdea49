"""Which column drowns the others: counted as rows come, estimated for a draft, and what to declare against it."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from certified_unlearning.data.advice.ranges import shares_of, warning_about
from certified_unlearning.data.advice.shares import DominantColumn, Shares, percent, sampled
from certified_unlearning.data.tables.declaration import Table, parse
from certified_unlearning.data.tables.drafting import draft
from certified_unlearning.data.tables.table import read_blocks, resolve


def customers(rows: int = 3000) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "customer": np.arange(rows),
            "income": np.where(draw.random(rows) < 0.02, np.nan, draw.lognormal(10.5, 0.5, rows)),
            "tenure": draw.integers(1, 72, rows),
            "year": draw.integers(1990, 2024, rows),
            "contract": draw.choice(["month", "year"], rows),
            "left": np.resize(["no", "yes"], rows),
        }
    )


def counted(table: Table) -> Shares:
    table = resolve(table)
    shares = shares_of(table)
    for block in read_blocks(table):
        shares.add(block.features)
    return shares


def test_shares_are_the_mean_of_squares_by_squared_norms_whatever_the_blocks() -> None:
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((1000, 4)) * [20, 1, 1, 1]
    rows[::10] = 0
    squares = rows[rows.any(axis=1)] ** 2
    expected = (squares[:, 0] / squares.sum(axis=1)).mean()
    for cuts in ([], [1, 500], [999]):
        shares = Shares("abcc")
        for block in np.split(rows.astype(np.float32), cuts):
            shares.add(block)
        assert shares.largest() == DominantColumn("a", pytest.approx(expected, rel=1e-6), 2)


def test_the_features_of_a_category_count_together() -> None:
    rows = np.hstack([np.eye(3)[np.resize([0, 1, 2], 300)], np.full((300, 1), 0.1)])
    each, together = Shares("abcd"), Shares("aaab")
    each.add(rows)
    together.add(rows)
    assert each.largest() is None
    assert together.largest() == DominantColumn("a", pytest.approx(1 / 1.01), 1)


def test_one_column_alone_drowns_nothing_nor_do_rows_of_zeros_or_of_numbers_near_zero() -> None:
    for columns, rows in (("a", np.ones((5, 1))), ("aa", np.eye(2)), ("ab", np.zeros((5, 2))), ("ab", np.eye(2))):
        shares = Shares(columns)
        shares.add(rows)
        assert shares.largest() is None
    shares = Shares("ab")
    with np.errstate(all="raise", under="ignore"):
        shares.add(np.full((3, 2), 1e-160))
    assert shares.largest() is None


def test_a_share_is_rounded_down_and_never_100_per_cent_below_1() -> None:
    assert [percent(each) for each in (0.99999, 0.998, 0.9001, 1.0)] == ["99.9 %", "99.8 %", "90.0 %", "100.0 %"]


def test_the_records_that_tell_of_all_are_the_same_every_time() -> None:
    assert sampled(2500, 20) == slice(None)
    some = sampled(10**6, 20)
    np.testing.assert_array_equal(some, sampled(10**6, 20))
    assert len(some) == 2_500
    assert some.max() < 10**6
    assert len(sampled(10**6, 10**6)) == 100


@pytest.mark.parametrize(
    ("declared", "largest", "says"),
    [
        ({}, "income", "declare its range and the ranges of the other columns of numbers: --range income=LOW:HIGH "
         "--range tenure=LOW:HIGH --range 'the year=LOW:HIGH', two numbers known beforehand for each"),
        ({"ranges": {"tenure": (0, 72), "the year": (1, 2)}}, "income",
         "declare its range: --range income=LOW:HIGH, two numbers known beforehand"),
        ({"ranges": {"income": (0, 1e9), "tenure": (0, 72)}}, "income",
         "declare the ranges of the other columns: --range 'the year=LOW:HIGH', two numbers known beforehand"),
        ({"norm": "at-most-1", "ranges": {"tenure": (0, 72), "the year": (1, 2)}}, "income",
         "--range income=LOW:HIGH, two numbers known beforehand, without --norm at-most-1"),
        ({"ranges": {"income": (0, 1e9), "tenure": (0, 72), "the year": (1, 2)}}, "contract",
         "near the middle of these columns' ranges; declare narrower ranges, which need not include the rarest values, "
         "or leave contract out"),
    ],
)  # fmt: skip
def test_a_warning_names_the_lines_that_help(declared: dict[str, object], largest: str, says: str) -> None:
    table = Table(
        path="t.csv", label="left", features=("tenure", "the year", "income", "contract"),
        categories={"contract": ("a", "b")}, **declared,
    )  # fmt: skip
    said = warning_about(table, DominantColumn(largest, 0.998, 3))
    assert said.startswith(f"{largest} carries 99.8 % of a row's squared norm, so the other 3 columns hardly count")
    assert said.endswith(says)


def test_a_warning_about_a_file_names_lines_that_the_file_takes(tmp_path: Path) -> None:
    table = Table(path="t.csv", label="left", features=("a: b", *"cdefghijk"), ranges={"k": (0, 1)})
    said = warning_about(table, DominantColumn("d", 0.95, 9), "t.yaml")
    lines, rest = said.partition("of numbers: ")[2].split(", and so on for 1 more, ")
    assert rest == "under `ranges` in t.yaml, two numbers known beforehand for each"
    ranges = yaml.safe_load("{" + lines.replace("LOW", "0").replace("HIGH", "1") + "}")
    assert ranges == {key: [0, 1] for key in ["d", "a: b", *"cefghi"]}
    assert parse(json.dumps({"path": "t.csv", "label": "left", "ranges": ranges}), "t")


@pytest.mark.parametrize("dropped", ["income", "tenure", "year"])
def test_a_draft_says_how_much_a_column_would_carry_without_its_range(tmp_path: Path, dropped: str) -> None:
    customers().to_csv(tmp_path / "t.csv", index=False)
    made = draft(str(tmp_path / "t.csv"), "left", "customer")
    (said,) = (sentence for column, sentence in made.notes if column == dropped and "range: without" in sentence)
    declared = parse(json.dumps(yaml.safe_load(made.text)), "t")
    without = {name: ends for name, ends in declared.ranges.items() if name != dropped}
    exact = counted(declared.model_copy(update={"ranges": without})).largest()
    assert exact is not None
    assert exact.column == dropped
    share = float(said.partition("about ")[2].partition(" %")[0]) / 100
    assert share == pytest.approx(exact.share, abs=0.01)
    # One comment for all columns of which it holds.
    (line,) = (line for line in made.text.splitlines() if "keep a range: without" in line)
    assert re.search(rf"columns \(.*\b{dropped}\b", line)
    assert counted(declared).largest() is None


def test_a_draft_that_would_drown_says_so(tmp_path: Path) -> None:
    # One customer spends a thousand times as much: the others all lie in the middle of the range.
    table = customers().assign(spread=np.random.default_rng(1).normal(0, 1, 3000))
    table.loc[0, "spread"], table.loc[1, "spread"] = -1000, 1000
    table = table[["customer", "spread", "contract", "left"]]
    table.to_csv(tmp_path / "t.csv", index=False)
    made = draft(str(tmp_path / "t.csv"), "left", "customer")
    (said,) = (sentence for column, sentence in made.notes if column == "contract")
    largest = counted(parse(json.dumps(yaml.safe_load(made.text)), "t")).largest()
    assert largest is not None
    assert largest.column == "contract"
    assert said.startswith(f"it carries about {percent(largest.share)} of a row's squared norm")


def test_nothing_is_said_of_one_feature_nor_of_columns_that_need_no_range(tmp_path: Path) -> None:
    table = customers()
    table[["customer", "income", "left"]].to_csv(tmp_path / "one.csv", index=False)
    small = np.random.default_rng(0).uniform(-1, 1, (3000, 3))
    pd.DataFrame(small, columns=[*"abc"]).assign(left=table["left"]).to_csv(tmp_path / "small.csv", index=False)
    for name in ("one", "small"):
        made = draft(str(tmp_path / f"{name}.csv"), "left", "customer" if name == "one" else None)
        assert "squared norm" not in made.text


def test_numbers_of_every_size_are_drafted(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    table = customers(300).assign(
        tiny=draw.uniform(1, 2, 300) * 1e-300, huge=draw.uniform(1, 2, 300) * 1e300, zero=np.resize([0, 0, 0.1], 300)
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    with np.errstate(all="raise", under="ignore"):
        made = draft(str(tmp_path / "t.csv"), "left", "customer")
    said = {column for column, sentence in made.notes if "range: without one" in sentence}
    assert said == {"income", "tenure", "year", "huge"}
