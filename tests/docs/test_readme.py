"""README is short; the tables of the page of papers are those of the declarations and of the committed verdicts."""

import json
import runpy
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from certified_unlearning.papers.all import PAPERS
from certified_unlearning.reproduction import declared
from certified_unlearning.reproduction.claims.model import Claim, claims_of
from certified_unlearning.reproduction.paper import Paper

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_readme_has_at_most_90_lines_and_begins_with_what_costs_nothing() -> None:
    assert len(README.splitlines()) <= 90
    places = [
        README.index(each)
        for each in ("pip install .", "CertifiedLogisticRegression", "unlearn init", "make reproduce")
    ]
    assert places == sorted(places)


def test_readme_has_a_line_for_each_paper() -> None:
    listed = [line for line in README.partition("make reproduce")[2].splitlines() if line.startswith("- *")]
    # Two of them are chapters of one dissertation.
    works = {paper.citation.partition(", chapters")[0] for paper in PAPERS}
    assert len(listed) == len(works)


SCRIPT = runpy.run_path(str(ROOT / "workflow" / "scripts" / "papers_table.py"))
BASELINES = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in (ROOT / "workflow" / "baselines" / "claims").glob("*.json")
}


def rows(text: str) -> list[list[str]]:
    """The cells of all tables, without heads and rules."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]
    return [each for number, each in enumerate(cells) if "---" not in str([*cells, [""]][number : number + 2])]


def in_words(verdicts: Counter[str]) -> str:
    words = [f"{verdicts[name]} {name}" for name in ("reproduced", "contradicted", "not run") if verdicts[name]]
    return f"{verdicts.total()}: {', '.join(words)}" if words else "none"


def together(claim: str) -> str:
    """The verdict of all presets: a contradiction outweighs what others say, and any verdict outweighs none."""
    weight = {"not run": 0, "reproduced": 1, "contradicted": 2}
    return max((each.get(claim, "not run") for each in BASELINES.values()), key=weight.__getitem__)


def test_each_paper_stands_there_with_the_verdicts_on_its_own_claims_and_ours_apart() -> None:
    known = {name: [each.claim for each in about] for name, about in claims_of(PAPERS).items()}
    expected, apart = [], []
    for paper in PAPERS:
        digits: dict[str, Counter[str]] = defaultdict(Counter)
        every: dict[str, Counter[str]] = defaultdict(Counter)
        for claim in known.get(paper.name, []):
            digits[claim.whose][BASELINES["digits"].get(claim.id, "not run")] += 1
            every[claim.whose][together(claim.id)] += 1
        expected.append([paper.citation, paper.name, in_words(digits["paper"]), in_words(every["paper"])])
        apart.append([paper.name, in_words(every["authors' code"]), in_words(every["ours"])])
    assert rows(section("Papers")) == [*expected, *apart]


def test_the_page_is_what_the_script_prints() -> None:
    assert section("Papers").strip() == SCRIPT["committed"]().strip()


MADE_UP = {
    "id": "a", "source": "Theorem 1", "statement": "It holds.", "measure": "some",
    "expected": {"relation": "equals", "values": [1.0]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("whose", "own", "ours"),
    [("ours", "1: 1 reproduced", "1: 1 contradicted"), ("paper", "2: 1 reproduced, 1 contradicted", "none")],
    ids=["as it is", "planted fault"],
)
def test_a_claim_of_ours_is_not_counted_as_the_papers(whose: str, own: str, ours: str) -> None:
    paper = Paper("mine", "My paper", (), citation="Me, My paper")
    about = [Claim.model_validate(MADE_UP), Claim.model_validate(MADE_UP | {"id": "b", "whose": whose})]
    presets = {"digits": {"a": "reproduced", "b": "contradicted"}, "other": {"a": "not run", "b": "reproduced"}}
    printed = SCRIPT["section"]([paper], {"mine": about}, presets)
    assert rows(printed) == [["Me, My paper", "mine", own, own], ["mine", "none", ours]]


def test_a_claim_that_one_preset_contradicts_is_contradicted_and_one_that_none_decides_is_not_run() -> None:
    presets = [{"a": "not run", "b": "not run", "c": "reproduced"}, {"a": "not run", "b": "reproduced"}]
    presets.append({"a": "not run", "b": "not run", "c": "contradicted"})
    assert [SCRIPT["decided"](claim, presets) for claim in "abcd"] == [
        "not run",
        "reproduced",
        "contradicted",
        "not run",
    ]


def test_each_mechanism_stands_there() -> None:
    for paper in PAPERS:
        for name in {name for each in paper.experiments for name in each.mechanisms}:
            assert f"(`{declared.mechanism_name(name)}`)" in section("Mechanisms")
