"""`init` says which column drowns the others, and which lines to add; none decides alone in silence."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.ledger.quality import quality_left
from tests.ledger.conftest import Unlearn

RANGES = ("--range", "income=0:200000", "--range", "tenure=0:72")


@pytest.fixture
def customers(tmp_path: Path) -> Path:
    """A table whose income is large and says nothing, and whose tenure is small and tells the label."""
    draw = np.random.default_rng(0)
    tenure = draw.integers(1, 72, 2000)
    left = tenure + draw.normal(0, 15, 2000) < 25
    table = pd.DataFrame({"income": draw.lognormal(10.5, 0.5, 2000), "tenure": tenure, "customer": np.arange(2000)})
    table["contract"] = draw.choice(["month", "year"], 2000)
    table.assign(left=np.where(left, "yes", "no")).to_csv(tmp_path / "customers.csv", index=False)
    return tmp_path / "customers.csv"


def flags(customers: Path) -> list[object]:
    said = ["--data", customers, "--label", "left", "--id", "customer", "--category", "contract=month,year"]
    return [*said, "--epsilon", 1, "--device", "cpu"]


def test_init_names_the_column_that_drowns_the_others_and_the_flags_to_add(customers: Path, unlearn: Unlearn) -> None:
    drowned = customers.parent / "drowned"
    made = unlearn("init", drowned, *flags(customers))
    line = (
        "warning: income carries 99.9 % of a row's squared norm, so the other 2 columns hardly count; declare its "
        "range and the ranges of the other columns of numbers: --range income=LOW:HIGH --range tenure=LOW:HIGH, two "
        "numbers known beforehand for each\n"
    )
    assert line in made.stderr
    assert "squared norm" not in made.stdout
    assert made.exit_code == 0
    for path in drowned.rglob("*"):
        assert not path.is_file() or b"squared" not in path.read_bytes()
    heard = unlearn("init", customers.parent / "heard", *flags(customers), *RANGES)
    assert "warning" not in heard.stderr
    before, after = quality_left(drowned), quality_left(customers.parent / "heard")
    assert after.balanced_accuracy > before.balanced_accuracy + 0.1


def test_init_names_the_lines_of_the_file_that_declares_the_table(customers: Path, unlearn: Unlearn) -> None:
    file = customers.parent / "t.yaml"
    file.write_text(
        "path: customers.csv\nlabel: left\nidentifier: customer\ncategories: {contract: [month, year]}\n"
        "ranges: {tenure: [0, 72]}\n"
    )
    made = unlearn("init", customers.parent / "model", "--table", file, "--epsilon", 1, "--device", "cpu")
    assert f"declare its range: income: [LOW, HIGH], under `ranges` in {file}, two numbers known" in made.stderr


@pytest.mark.parametrize("mechanism", ["newton-removal", "noisy-sgd", "certified-ensemble"])
def test_every_mechanism_says_so(customers: Path, mechanism: str, unlearn: Unlearn) -> None:
    said = [each for each in flags(customers) if each not in ("--device", "cpu")]
    if mechanism != "newton-removal":
        said = [each for each in said if each not in ("--epsilon", 1)]
    made = unlearn("init", customers.parent / "model", *said, "--mechanism", mechanism, "--no-quality")
    assert made.stderr.count("income carries 99.9 %") == 1
