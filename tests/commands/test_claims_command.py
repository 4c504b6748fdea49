"""`unlearn claims` and the headline of a preset: the papers' own claims are counted, others apart."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from certified_unlearning import cli
from certified_unlearning.reproduction.claims.verdicts import Verdict, write
from certified_unlearning.reproduction.rows import RUN_ROWS

Unlearn = Callable[..., str]
OWN = {"reproduced": 1, "contradicted": 1, "not run": 0}
OURS = {"reproduced": 0, "contradicted": 1, "not run": 0}


@pytest.fixture
def unlearn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Unlearn:
    """Run `unlearn ...` in this process; return what it prints."""

    def run(*arguments: str | Path) -> str:
        monkeypatch.setattr(sys, "argv", ["unlearn", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code
        return capsys.readouterr().out

    return run


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results of a preset `made-up`: two claims of a paper, and one of ours that is contradicted worse."""
    words = dict.fromkeys(("source", "statement", "expected", "measured", "tolerance", "reason"), "words")
    claims = [
        {"id": "holds", "verdict": "reproduced"},
        {"id": "asked", "verdict": "contradicted", "severity": "different in kind", "gap": 9.0, "whose": "ours"},
        {"id": "fails", "verdict": "contradicted", "severity": "large", "gap": 0.2},
    ]
    write(tmp_path / "made-up" / "claims.json", [Verdict.model_validate(words | each) for each in claims])
    return tmp_path


def test_json_counts_by_whose_the_claims_are_and_lists_contradictions_of_ours_last(
    unlearn: Unlearn, results: Path
) -> None:
    told = json.loads(unlearn("claims", "--preset", "made-up", "--results", results, "--json"))
    assert told["counts"] == {"paper": OWN, "ours": OURS}
    assert {whose: found["large"] for whose, found in told["severities"].items()} == {"paper": 1, "ours": 0}
    assert [each["id"] for each in told["claims"]] == ["fails", "asked", "holds"]


def test_the_table_ends_with_a_line_for_each_owner(unlearn: Unlearn, results: Path) -> None:
    assert unlearn("claims", "--preset", "made-up", "--results", results).splitlines()[-2:] == [
        "the papers' own: 1 reproduced, 1 contradicted (1 large), 0 not run",
        "ours: 0 reproduced, 1 contradicted (1 different in kind), 0 not run",
    ]


def test_the_headline_of_a_preset_counts_the_papers_own_claims_only(unlearn: Unlearn, results: Path) -> None:
    pq.write_table(RUN_ROWS.empty_table(), results / "records.parquet")
    verdicts, output = results / "made-up" / "claims.json", results / "headline.json"
    unlearn(
        "pipeline", "headline", "--records", results / "records.parquet", "--claims", verdicts, "--output", output,
    )  # fmt: skip
    assert json.loads(output.read_text()) == {name.replace(" ", "_"): number for name, number in OWN.items()}
