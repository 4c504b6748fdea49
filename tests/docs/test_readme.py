"""README is short; the tables of the page of papers are those of the declarations and of the committed verdicts."""

import json
import re
from collections import Counter
from pathlib import Path

from certified_unlearning.papers.all import PAPERS
from certified_unlearning.reproduction import claims, declared

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


def test_each_paper_stands_there_with_its_verdicts() -> None:
    baseline = json.loads((ROOT / "workflow/baselines/claims/digits.json").read_text(encoding="utf-8"))
    known = claims.claims_of(PAPERS)
    rows = [[cell.strip(" `") for cell in line.split("|")[2:4]] for line in section("Papers").splitlines()[3:]]
    stated = {cells[0]: cells[1] for cells in rows if len(cells) == 2}
    assert list(stated) == [paper.name for paper in PAPERS]
    for paper in PAPERS:
        verdicts = Counter(baseline[each.claim.id] for each in known.get(paper.name, []))
        words = [f"{verdicts[name]} {name}" for name in ("reproduced", "contradicted", "not run") if verdicts[name]]
        begin = f"{verdicts.total()}: {', '.join(words)}" if words else "none"
        assert stated[paper.name].startswith(begin)
        # What another preset decides, as "the preset `certificates`: 46, 17, 4" or "...: 73 and 33".
        for preset, numbers in re.findall(r"the preset `(\w+)`[^:]*: ([\d, and]+)", stated[paper.name]):
            committed = json.loads((ROOT / f"workflow/baselines/claims/{preset}.json").read_text(encoding="utf-8"))
            others = Counter(committed[each.claim.id] for each in known[paper.name])
            said = [int(each) for each in re.findall(r"\d+", numbers)]
            assert said == [others[name] for name in ("reproduced", "contradicted", "not run")][: len(said)]
            assert sum(said) == others.total()


def test_each_mechanism_stands_there() -> None:
    for paper in PAPERS:
        for name in {name for each in paper.experiments for name in each.mechanisms}:
            assert f"(`{declared.mechanism_name(name)}`)" in section("Mechanisms")
