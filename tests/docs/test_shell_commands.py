"""Blocks of the shell that can be run in a test, run as they are printed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.docs.code_blocks import blocks
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
LEDGER = ROOT / "docs" / "howto" / "ledger.md"
PLANS = {
    "unlearn plan deletion": ROOT / "docs" / "howto" / "deletion.md",
    "unlearn plan removal --stream": ROOT / "docs" / "accountants.md",
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
        timeout=PATIENCE,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout


def init_of_readme(directory: Path) -> str:
    """Make the model of README's ledger from customers.csv, as a reader with the right ranges; return the output."""
    declares, init = block_with(README, "unlearn init model").splitlines()[:2]
    printed = run(declares, directory)
    draft = directory / "table.yaml"
    draft.write_text(re.sub(r" *# check: from the data.*", "", draft.read_text(encoding="utf-8")), encoding="utf-8")
    return printed + run(init, directory)


def page_in_markdown(printed: str) -> list[str]:
    """Return what `unlearn show` prints as lines of Markdown: headings, and a list below each."""
    lines = printed[printed.index("Removal of the records of") :].splitlines()
    return [f"- {line.strip()}" if line.startswith("  ") else f"## {line}" for line in lines if line]


def without_days_and_hashes(lines: list[str]) -> list[str]:
    """Return lines without what differs from run to run."""
    text = re.sub(r"[0-9a-f]{64}", "HASH", "\n".join(lines))
    text = re.sub(r"certified-unlearning [0-9.]+[0-9a-z+.]*[0-9a-z]", "certified-unlearning VERSION", text)
    return re.sub(r"\d+ [A-Z][a-z]+ 20\d\d(?: at \d\d:\d\d UTC)?", "DAY", text).splitlines()


def people(records: int, **columns: object) -> pd.DataFrame:
    """Return a table of people with a feature that tells the label."""
    draw = np.random.default_rng(0)
    age = draw.integers(18, 100, records)
    older = age + draw.normal(0, 10, records) > 50
    return pd.DataFrame({"age": age, "older": np.where(older, "yes", "no"), **columns})


def test_the_ledger_of_readme(tmp_path: Path) -> None:
    # Rows are divided by their norm: with one column alone all would be the same.
    table = people(1000, visits=np.arange(1000) % 100, customer_id=np.arange(5000, 6000)).rename(
        columns={"older": "churned"}
    )
    table.loc[0, "customer_id"] = 1234
    table.to_csv(tmp_path / "customers.csv", index=False)
    printed = init_of_readme(tmp_path)
    printed += run("\n".join(block_with(README, "unlearn init model").splitlines()[2:]), tmp_path)
    assert "C = 1, C n = 1,000: data are read again" in printed
    assert "recorded: 2 requests, 2 records" in printed
    assert "removed 2 records of 2 people" in printed
    assert "5 events in one chain, version 2 of the model, 2 certificates" in printed
    assert "warning" not in printed
    # The sample page is what the last command prints.
    sample = [
        line for line in (ROOT / "docs" / "sample-answer.md").read_text().splitlines() if line[:2] in ("##", "- ")
    ]
    assert without_days_and_hashes(page_in_markdown(printed)) == without_days_and_hashes(sample)
    (tmp_path / "published-heads.txt").write_text(f"{re.findall('head: (.*)', printed)[-1]}\n")
    *given_away, on_the_spot = block_with(ROOT / "docs" / "law.md", "receipt.json").splitlines()
    assert on_the_spot == "unlearn verify model"  # README's block has run it.
    given = run("\n".join(given_away), tmp_path)
    assert "answer.html: Removal of the records of 1234 from a model, a page that can be printed" in given
    assert "by version 2 of the model, whose certificate" in given
    assert (tmp_path / "status.json").exists()


def test_new_people_are_added_as_the_page_of_the_ledger_says(tmp_path: Path) -> None:
    """An old and a new person leave a model of which hardly anybody is in one class, and each gets an answer."""
    draw = np.random.default_rng(0)
    rare = pd.DataFrame({"age": draw.integers(18, 100, 2500), "visits": draw.integers(0, 100, 2500)})
    rare["churned"] = np.where(draw.random(2500) < 0.03, "yes", "no")
    rare["customer_id"] = np.arange(1000, 3500)
    rare[:2000].to_csv(tmp_path / "customers.csv", index=False)
    rare[2000:].to_parquet(tmp_path / "joined.parquet")
    init_of_readme(tmp_path)
    add = block_with(LEDGER, "unlearn add").replace("/srv/models/churn", "model")
    printed = run(add, tmp_path)
    assert "joined.parquet: 500 records of 500 new people" in printed
    assert "added 500 records of 500 people by reading the data again" in printed
    removal = "unlearn request model --id 1003 --id 3003; unlearn apply model; unlearn verify model; "
    printed = run(f"{removal} unlearn show model --id 3003; unlearn show model --id 1003 -o old.html", tmp_path)
    assert "removed 2 records of 2 people" in printed
    assert "At most 54.8 % of such guesses are right" in printed
    assert "The record had been added to the model on" in printed
    assert "and no new record was created because of something" in (tmp_path / "old.html").read_text()


@pytest.mark.exhaustive
def test_the_page_of_the_ledger(tmp_path: Path) -> None:
    """All commands of the page, each a process, as a reader would type them."""
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
    assert "C = 0.0025, C n = 100: learning takes" in run(here(block_with(LEDGER, "--mechanism langevin")), tmp_path)
    assert "removing one record repeats steps" in run(here(block_with(LEDGER, "noisy-sgd")), tmp_path)
    head = run(here(block_with(LEDGER, "leaving.csv\n")), tmp_path).split()[-1]
    (weekly,) = (block.text for block in blocks(LEDGER) if "* * 1" in block.text)
    printed = run(here(weekly.split(maxsplit=5)[5]), tmp_path)
    assert "removed 2 records of 2 people" in printed
    assert "quality" not in printed
    assert "requested before: 2 people" in run(here(block_with(LEDGER, "leaving.csv --skip-unknown")), tmp_path)
    table.drop(columns="left").head(50).to_parquet(tmp_path / "new.parquet")
    table.head(50).to_parquet(tmp_path / "labelled.parquet")
    printed = run(here(block_with(LEDGER, "unlearn predict")), tmp_path)
    assert "predicted.csv: 50 predictions by version 2 of" in printed
    assert "always predicting the most frequent class gives accuracy 0." in printed
    assert len(pd.read_csv(tmp_path / "predicted.csv")) == 50
    table.assign(customer=table["customer"] + records).head(50).to_parquet(tmp_path / "joined.parquet")
    assert "added 50 records of 50 people by reading" in run(here(block_with(LEDGER, "unlearn add")), tmp_path)
    assert "released: 1 request, 1 record" in run(here(block_with(LEDGER, "unlearn release")), tmp_path)
    exported = run(here(block_with(LEDGER, "unlearn export")), tmp_path)
    assert re.search(r"the copy 'website' of version \d+ was recorded, and written to served", exported)
    verify = re.sub(r"\d+:[0-9a-f]{64}", head, here(block_with(LEDGER, "unlearn verify")))
    assert "begins with the events of the head" in run(verify, tmp_path)


def test_a_declaration_is_drafted_as_the_page_of_own_data_says(tmp_path: Path) -> None:
    page = ROOT / "docs" / "howto" / "own-data.md"
    (table,) = (block.text for block in blocks(page) if block.text.startswith("customer,age,"))
    (tmp_path / "data" / "tables").mkdir(parents=True)
    (tmp_path / "data" / "tables" / "customers.csv").write_text(table)
    (command,) = re.findall(r"`(unlearn declare [^`]*)`", page.read_text(encoding="utf-8"))
    assert "part: [holdout, train]  # check: from the data" in run(command, tmp_path)


@pytest.mark.sampled
@pytest.mark.parametrize("text", PLANS)
def test_the_plans_of_the_documents(tmp_path: Path, text: str) -> None:
    block = block_with(PLANS[text], text)
    constants = re.search(r"--n .*(?:\\\n.*?)?--lipschitz \S+", block)
    assert constants is not None
    for command in re.sub(r" \.\.\. ", f" {constants[0]} ", block).replace("\\\n", " ").splitlines():
        assert run(command, tmp_path).strip()


def test_plans_from_what_people_know(tmp_path: Path) -> None:
    table = people(1000, customer_id=np.arange(1000)).rename(columns={"older": "churned"})
    table.to_csv(tmp_path / "customers.csv", index=False)
    printed = run(block_with(ROOT / "docs" / "accountants.md", "unlearn plan removal --C"), tmp_path)
    assert printed.count("score noise") == printed.count("est. time") == 2


@pytest.mark.exhaustive
def test_the_page_of_claims(tmp_path: Path) -> None:
    shutil.copy(ROOT / "params.yaml", tmp_path)
    shutil.copytree(ROOT / "workflow" / "baselines", tmp_path / "workflow" / "baselines")
    words = dict.fromkeys(("source", "statement", "expected", "measured", "tolerance", "reason"), "words")
    for preset in ("digits", "smoke"):
        accepted = json.loads((ROOT / "workflow" / "baselines" / "claims" / f"{preset}.json").read_text())
        verdicts = [words | {"id": name, "verdict": verdict} for name, verdict in accepted.items()]
        (tmp_path / "results" / preset).mkdir(parents=True)
        (tmp_path / "results" / preset / "claims.json").write_text(json.dumps(verdicts))
        (tmp_path / "results" / preset / "findings.json").write_text("[]")
    printed = run(block_with(ROOT / "docs" / "howto" / "claims.md", "--brief"), tmp_path)
    assert "Report: results/smoke/report.html" in printed
    assert '"severities": {' in printed


def test_raw_files_are_fetched_as_the_page_of_dvc_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "howto" / "dvc.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"`(unlearn data fetch[^`]*)`", page)
    mnist = Path(os.environ.get("UNLEARNING_DATA", "nowhere")) / "mnist"
    if not mnist.is_dir():
        pytest.skip("UNLEARNING_DATA names no directory with MNIST, and tests download nothing")
    run(command, tmp_path)
    assert len(list((tmp_path / "data" / "raw" / "mnist").glob("*.gz"))) == 4


@pytest.mark.exhaustive
@pytest.mark.parametrize(("page", "text"), [("gpu.md", "torch.cuda.is_available"), ("mlflow.md", "track --sync")])
def test_small_commands_of_the_how_tos(tmp_path: Path, page: str, text: str) -> None:
    block = block_with(ROOT / "docs" / "howto" / page, text)
    (command,) = (line for line in block.splitlines() if text in line)
    assert run(command, tmp_path).strip()


def test_a_client_leaves_on_the_page_of_exact_unlearning(tmp_path: Path) -> None:
    table = people(1000, vibration=np.arange(1000) % 100, device=np.arange(1000) % 200)
    table.rename(columns={"age": "heat", "older": "fault"}).to_csv(tmp_path / "readings.csv", index=False)
    printed = run(block_with(ROOT / "docs" / "howto" / "exact.md", "federated-averaging"), tmp_path)
    assert "removed 5 records of 1 person by exact unlearning" in printed
    assert json.loads((tmp_path / "model" / "certificate-2.json").read_text())["n"] == 199


def test_the_page_of_receipts(tmp_path: Path) -> None:
    table = people(500, visits=np.arange(500) % 100, customer_id=np.arange(1200, 1700)).rename(
        columns={"older": "churned"}
    )
    table.loc[0, "customer_id"] = 5678
    table.to_csv(tmp_path / "customers.csv", index=False)
    init_of_readme(tmp_path)
    run("unlearn request model --id 1234; unlearn apply model --no-quality", tmp_path)
    first, known, growth, signed = (block.text for block in blocks(ROOT / "docs" / "howto" / "receipts.md"))
    printed = run(first, tmp_path)
    assert "by version 2 of the model, whose certificate" in printed
    (tmp_path / "published-heads.txt").write_text(f"{re.findall('head: (.*)', printed)[-1]}\n")
    assert "receipt.json: head: 4:" in run(known, tmp_path)
    assert "begins with the log of the head 5:" in run(growth, tmp_path)
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, so no key can be made as the page says")
    assert "signed.json: the head is signed with the Ed25519 key" in run(signed, tmp_path)


def test_the_page_of_identifiers(tmp_path: Path) -> None:
    """All commands of the page; the model that is there already is made by the first one, too."""
    table = people(2000, job=np.resize(["clerk", "nurse", "teacher", None], 2000), customer=np.arange(4000, 6000))
    table.rename(columns={"older": "left"}).to_parquet(tmp_path / "customers.parquet")
    (declaration,) = (block.text for block in blocks(LEDGER) if block.language == "yaml")
    (tmp_path / "churn.yaml").write_text(declaration)
    for directory in ("secure", "vault"):
        (tmp_path / directory).mkdir()
    texts = [block.text for block in blocks(ROOT / "docs" / "howto" / "identifiers.md")]
    apart, elsewhere, migrated = (
        re.sub("/(srv/models|secure|mnt/vault)", lambda found: f"{tmp_path}/{found[1].split('/')[-1]}", text)
        for text in texts
    )
    run(apart.splitlines()[0].partition(" --key-file")[0].replace("/churn ", "/other "), tmp_path)
    printed = run(apart, tmp_path)
    assert printed.count("the key of pseudonyms is in") == 2
    (tmp_path / "secure" / "churn.key").rename(tmp_path / "vault" / "churn.key")
    assert "recorded: 1 request, 1 record; 1 pending" in run(elsewhere, tmp_path)
    assert "people already have pseudonyms; nothing to migrate" in run(migrated, tmp_path)


def test_a_backup_comes_to_the_present_as_the_page_says(tmp_path: Path) -> None:
    if shutil.which("flock") is None:
        pytest.skip("flock is not installed, so no backup can be made as the page says")
    begins, backs_up, restores, practises = (b.text for b in blocks(ROOT / "docs" / "howto" / "after-a-restore.md"))
    table = people(500, visits=np.arange(500) % 100, customer_id=np.arange(1200, 1700)).rename(
        columns={"older": "churned"}
    )
    table.to_csv(tmp_path / "customers.csv", index=False)
    (tmp_path / "logs").mkdir()
    init_of_readme(tmp_path)
    assert re.search("from now on, the log is also kept in .*churn.jsonl\n", run(begins, tmp_path))
    assert "2 events in one chain" in run(backs_up, tmp_path)
    run("unlearn request model --id 1234; unlearn apply model --no-quality", tmp_path)
    printed = run(restores, tmp_path)
    assert "3 events of logs/churn.jsonl were appended as recorded" in printed
    assert "lost: version 2 of the model." in printed
    assert "version 3 of the model, 2 certificates" in printed
    assert "brought the record back. The removal was carried out again." in run(
        "unlearn show model --id 1234", tmp_path
    )
    assert "events of drill.jsonl were appended as recorded" in run(practises, tmp_path)
    assert "version 3 of the model, 2 certificates" in run("unlearn verify model", tmp_path)
