"""Blocks of the shell that can be run in a test, run as they are printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.docs.code_blocks import blocks

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
LEDGER = ROOT / "docs" / "howto" / "ledger.md"
PLANS = {
    "unlearn plan --deletion": ROOT / "docs" / "howto" / "deletion.md",
    "unlearn plan --stream": ROOT / "docs" / "accountants.md",
}


def block_with(page: Path, text: str) -> str:
    """Return the page's only block of the shell that holds a text."""
    (found,) = (block.text for block in blocks(page) if block.language == "sh" and text in block.text)
    return found


def run(script: str, directory: Path) -> str:
    """Run commands up to the first that fails; return what they print."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=directory,
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout


def people(records: int, **columns: object) -> pd.DataFrame:
    """Return a table of people with a feature that tells the label."""
    draw = np.random.default_rng(0)
    age = draw.integers(18, 100, records)
    older = age + draw.normal(0, 10, records) > 50
    return pd.DataFrame({"age": age, "older": np.where(older, "yes", "no"), **columns})


def test_the_ledger_of_readme(tmp_path: Path) -> None:
    table = people(1000, customer_id=np.arange(5000, 6000)).rename(columns={"older": "churned"})
    table.loc[0, "customer_id"] = 1234
    table.to_parquet(tmp_path / "customers.parquet")
    printed = run(block_with(README, "unlearn init model"), tmp_path)
    assert "C = 0.1, C n = 100: learning takes" in printed
    assert "warning" not in printed
    assert "requests: 0 pending, 2 applied (2 records removed)" in printed


def test_the_page_of_the_ledger(tmp_path: Path) -> None:
    records = 40_000
    job = np.resize(["clerk", "nurse", "teacher", None], records)
    table = people(records, job=job, customer=np.arange(records)).rename(columns={"older": "left"})
    table.to_parquet(tmp_path / "customers.parquet")
    pd.DataFrame({"customer": [7, 8]}).to_csv(tmp_path / "leaving.csv", index=False)
    (declaration,) = (block.text for block in blocks(LEDGER) if block.language == "yaml")
    (tmp_path / "churn.yaml").write_text(declaration)

    def here(text: str) -> str:
        return text.replace("/srv/models", str(tmp_path))

    assert "warning" not in run(here(block_with(LEDGER, "models/churn --table")), tmp_path)
    assert "data are read again after" in run(here(block_with(LEDGER, "newton-removal")), tmp_path)
    receipt = run(here(block_with(LEDGER, "unlearn request")), tmp_path).split()[-1]
    (weekly,) = (block.text for block in blocks(LEDGER) if "* * 1" in block.text)
    assert "removed 2 records of 2 people" in run(here(weekly.split(maxsplit=5)[5]), tmp_path)
    verify = re.sub(r"[0-9a-f]{64}", receipt, here(block_with(LEDGER, "unlearn verify")))
    assert "the receipt is in the chain" in run(verify, tmp_path)


@pytest.mark.parametrize("text", PLANS)
def test_the_plans_of_the_documents(tmp_path: Path, text: str) -> None:
    block = block_with(PLANS[text], text)
    constants = re.search(r"--n .*(?:\\\n.*?)?--lipschitz \S+", block)
    assert constants is not None
    for command in re.sub(r" \.\.\. ", f" {constants[0]} ", block).replace("\\\n", " ").splitlines():
        assert run(command, tmp_path).strip()


def test_raw_files_are_fetched_as_the_page_of_dvc_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "howto" / "dvc.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"`(unlearn data fetch[^`]*)`", page)
    mnist = Path(os.environ.get("UNLEARNING_DATA", "nowhere")) / "mnist"
    if not mnist.is_dir():
        pytest.skip("UNLEARNING_DATA names no directory with MNIST, and tests download nothing")
    run(command, tmp_path)
    assert len(list((tmp_path / "data" / "raw" / "mnist").glob("*.gz"))) == 4


@pytest.mark.parametrize(("page", "text"), [("gpu.md", "torch.cuda.is_available"), ("mlflow.md", "track --sync")])
def test_small_commands_of_the_how_tos(tmp_path: Path, page: str, text: str) -> None:
    block = block_with(ROOT / "docs" / "howto" / page, text)
    (command,) = (line for line in block.splitlines() if text in line)
    assert run(command, tmp_path).strip()
