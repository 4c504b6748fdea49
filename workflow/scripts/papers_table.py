"""Print the section `Papers` of docs/papers.md: how many claims of each paper have which verdict, ours apart.

Whose a claim is stands in the tables of claims; what became of it, in the committed baselines of all presets.
`--write` puts the section into the page.
"""

import argparse
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from certified_unlearning.files import write_text
from certified_unlearning.papers.all import PAPERS
from certified_unlearning.reproduction.claims.model import Claim, claims_of
from certified_unlearning.reproduction.claims.verdicts import OWNERS
from certified_unlearning.reproduction.paper import Paper
from certified_unlearning.text import table_lines

PROJECT = Path(__file__).parents[2]
BASELINES = PROJECT / "workflow" / "baselines" / "claims"
PAGE = PROJECT / "docs" / "papers.md"
HEADING, NEXT = "## Papers\n\n", "\n## "
DEFAULT_PRESET = "digits"
Baseline = Mapping[str, str]
"""The verdict of each claim, by its id, that one preset gives."""


def decided(claim: str, baselines: Collection[Baseline]) -> str:
    """Return what presets together say of a claim: contradicted, if one contradicts it; not run, if none decides it."""
    found = {baseline.get(claim, "not run") for baseline in baselines}
    return next(verdict for verdict in ("contradicted", "reproduced", "not run") if verdict in found)


def counted(claims: Iterable[Claim], baselines: Collection[Baseline]) -> str:
    """Return how many claims have which verdict, as `66: 52 reproduced, 14 contradicted`."""
    found = Counter(decided(claim.id, baselines) for claim in claims)
    words = [f"{found[name]} {name}" for name in ("reproduced", "contradicted", "not run") if found[name]]
    return f"{found.total()}: {', '.join(words)}" if words else "none"


def section(papers: Sequence[Paper], claims: Mapping[str, Sequence[Claim]], presets: Mapping[str, Baseline]) -> str:
    """Return the section: the papers' own claims in one table, those of authors' code and ours in another.

    Args:
        papers: The papers, in the order of the rows.
        claims: The claims about each, by its name.
        presets: The baselines, by the names of presets.
    """
    default, every = [presets[DEFAULT_PRESET]], list(presets.values())
    own, apart = [], []
    for paper in papers:
        by_owner = {whose: [claim for claim in claims.get(paper.name, ()) if claim.whose == whose] for whose in OWNERS}
        name = f"`{paper.name}`"
        own.append([paper.citation, name, counted(by_owner["paper"], default), counted(by_owner["paper"], every)])
        apart.append([name, counted(by_owner["authors' code"], every), counted(by_owner["ours"], every)])
    lines = [
        *table_lines(["paper", "in the results", f"its own claims, by `{DEFAULT_PRESET}`", "by all presets"], own),
        "",
        "Presets decide together what none of them decides alone; what one of them contradicts counts as contradicted.",
        "Beside each contradiction stand both numbers, what the paper assumes, the setting, and what would make it",
        "right. What no paper claims is counted apart, here by all presets:",
        "",
        *table_lines(["about", "results of authors' code", "questions of ours"], apart),
        "",
        "No verdict is written by hand. `unlearn claims` prints those of a run, and CI fails when one of the preset",
        "`smoke` changes ([claims](howto/claims.md)). `python workflow/scripts/papers_table.py --write` counts anew.",
    ]
    return "\n".join(lines) + "\n"


def committed() -> str:
    """Return the section for the papers of this package and the committed baselines."""
    claims = {name: [each.claim for each in about] for name, about in claims_of(PAPERS).items()}
    presets = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(BASELINES.glob("*.json"))}
    return section(PAPERS, claims, presets)


def main() -> None:
    """Print the section, or put it into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"put the section into {PAGE.relative_to(PROJECT)}")
    if not parser.parse_args().write:
        print(committed(), end="")
        return
    before, heading, rest = PAGE.read_text(encoding="utf-8").partition(HEADING)
    write_text(PAGE, before + heading + committed() + NEXT + rest.partition(NEXT)[2])


if __name__ == "__main__":
    main()
