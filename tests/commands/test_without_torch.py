"""Planning, claims and verification of certificates need no PyTorch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from certified_unlearning import certificate
from certified_unlearning.data.digits import DIGITS
from tests.support.planning import ROOT, make, settings_of, sweep_of
from tests.support.waiting import PATIENCE

BLOCKED = "import sys; sys.modules['torch'] = None; from certified_unlearning.cli import main; main()"
CONSTANTS = "--n 1500 --strong-convexity 0.01 --smoothness 0.26 --lipschitz 1"


def without_torch(directory: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BLOCKED, *map(str, arguments)]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_torch_is_really_blocked(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("x,y\n" + "".join(f"{number},{number % 2}\n" for number in range(50)))
    done = without_torch(tmp_path, "init", "model", "--data", table, "--label", "y", "--epsilon", "1")
    assert done.returncode != 0
    assert "torch" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "--version",
        f"plan removal {CONSTANTS} --records 1 --epsilon 1 --steps 5",
        "plan removal --n 1500 --C 0.05 --records 1 --epsilon 1 --steps 5",
        "plan exact noisy-sgd --n 1500 --batch-size 8 --steps 100 --lipschitz 1 --recompute 0.1",
        f"plan deletion {CONSTANTS} --records 1 --dimension 20 --alpha 10 --epsilon-dp 1 --epsilon-dd 0.1",
    ],
)
def test_a_command_works_without_torch(tmp_path: Path, command: str) -> None:
    done = without_torch(tmp_path, *command.split())
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_a_plan_of_a_table_works_without_torch(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,z,y\n" + "".join(f"{row},{row % 7},{row % 2}\n" for row in range(1000)))
    options = ["--data", "t.csv", "--label", "y", "--records", "1", "--epsilon", "1", "--steps", "5"]
    done = without_torch(tmp_path, "plan", "removal", *options)
    assert done.returncode == 0, done.stderr


def test_a_certificate_is_verified_without_torch(tmp_path: Path) -> None:
    summary = DIGITS.prepare(tmp_path, 1).summary()
    plan = make("fig3a", settings_of("smoke", trials=2), sweep_of("smoke", "fig3a"), summary)
    run = plan.runs[0]
    certificate.write(certificate.of(run, key=plan.key(run), noise_source="seed"), tmp_path / "certificate.json")
    done = without_torch(tmp_path, "verify", "certificate.json", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verified"] is True


def test_claims_are_shown_without_torch(tmp_path: Path) -> None:
    verdict = dict.fromkeys(("source", "statement", "expected", "measured", "tolerance", "reason"), "words")
    results = tmp_path / "results" / "smoke"
    results.mkdir(parents=True)
    (results / "claims.json").write_text(json.dumps([verdict | {"id": "one", "verdict": "reproduced"}]))
    (results / "findings.json").write_text(json.dumps([{"text": "Removing takes 19 steps."}]))
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text(encoding="utf-8"))
    for options in (["--preset", "smoke"], ["--preset", "smoke", "--brief"], ["--preset", "smoke", "--json"]):
        done = without_torch(tmp_path, "claims", *options)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
