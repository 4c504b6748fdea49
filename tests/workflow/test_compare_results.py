"""The script that compares two trees of results: whatever their layout, every bit but keys, versions and times."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.workflow.working_tree import ROOT

ROWS = pd.DataFrame(
    {"run_key": ["a", "b"], "epsilon": [1.0, np.nextafter(1.0, 2.0)], "trial": [0, 1], "seconds": [1.5, 2.5]}
)
CERTIFICATE = {"run_key": "a", "epsilon": 1.0, "code_version": "1"}


def tree(root: Path, folder: str, rows: pd.DataFrame, certificate: dict[str, object]) -> Path:
    (root / folder / "certificates").mkdir(parents=True)
    rows.to_parquet(root / folder / "rows.parquet")
    (root / folder / "certificates" / "a.json").write_text(json.dumps(certificate))
    return root


def compared(before: Path, after: Path, *options: str) -> subprocess.CompletedProcess[str]:
    script = ROOT / "workflow" / "scripts" / "compare_results.py"
    return subprocess.run([sys.executable, script, before, after, *options], capture_output=True, text=True)


def test_another_layout_order_column_key_and_time_make_no_difference(tmp_path: Path) -> None:
    before = tree(tmp_path / "before", "records", ROWS, CERTIFICATE)
    moved = ROWS.iloc[::-1].assign(run_key="c", seconds=9.0, line="Langevin")
    after = tree(tmp_path / "after", "paper/experiment", moved, CERTIFICATE | {"run_key": "c", "code_version": "2"})
    printed = compared(before, after)
    assert (printed.returncode, printed.stdout) == (0, "1 tables and 1 certificates compared, 0 differ\n")


@pytest.mark.parametrize(
    ("rows", "certificate", "said"),
    [
        (ROWS.assign(epsilon=1.0), CERTIFICATE, "records/rows.parquet: no equal table"),
        (ROWS.iloc[:1], CERTIFICATE, "records/rows.parquet: no equal table"),
        (ROWS.drop(columns="trial"), CERTIFICATE, "none has these columns"),
        (ROWS, CERTIFICATE | {"epsilon": 1.0 + 1e-15}, "certificates: 1 of 1 are not there"),
    ],
    ids=["one bit", "a row less", "a column less", "a certificate"],
)
def test_a_planted_difference_is_found(
    tmp_path: Path, rows: pd.DataFrame, certificate: dict[str, object], said: str
) -> None:
    before = tree(tmp_path / "before", "records", ROWS, CERTIFICATE)
    printed = compared(before, tree(tmp_path / "after", "records", rows, certificate))
    assert printed.returncode == 1
    assert said in printed.stdout


def test_an_empty_tree_is_no_equal_tree(tmp_path: Path) -> None:
    before = tree(tmp_path / "before", "records", ROWS, CERTIFICATE)
    (tmp_path / "after").mkdir()
    assert compared(before, tmp_path / "after").returncode == 2
