"""Print the section `Papers` of docs/papers.md, and write the pages with the verdicts on each paper's claims.

The owner of a claim, and the findings of a second reader, are in the tables of claims. Verdicts are in the committed
baselines of all presets. For claims that formulas alone decide, this script computes the numbers. Numbers of runs are
not in any committed file. `--write` replaces the section in docs/papers.md, and writes docs/verdicts/.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from certified_unlearning.data.sets import built_in
from certified_unlearning.errors import DataError
from certified_unlearning.files import write_text
from certified_unlearning.papers.all import PAPERS
from certified_unlearning.reproduction.claims.model import CheckableClaim, Claim, Reading, by_cause, claims_of
from certified_unlearning.reproduction.claims.verdicts import OWNERS, Verdict, evaluate, ranked, read_again
from certified_unlearning.reproduction.paper import Paper, ReadText
from certified_unlearning.text import capitalised, table_lines

PROJECT = Path(__file__).parents[2]
BASELINES = PROJECT / "workflow" / "baselines" / "claims"
PAGE = PROJECT / "docs" / "papers.md"
VERDICTS = PROJECT / "docs" / "verdicts"
INDEX = VERDICTS / "index.md"
TEXTS, AFTER_TEXTS = "Claims were compared with these texts:\n\n", "\n\nNumbers of sections"
HEADING, NEXT = "## Papers\n\n", "\n## "
DEFAULT_PRESET = "digits"
WRITTEN = "<!-- Written by workflow/scripts/papers_table.py --write. -->"
Baseline = Mapping[str, str]
"""One preset's verdict on each claim, by the claim's id."""


def decided(claim: str, baselines: Collection[Baseline]) -> str:
    """Return the verdict of all presets: contradicted if any preset contradicts the claim, not run if none decides."""
    found = {baseline.get(claim, "not run") for baseline in baselines}
    return next(verdict for verdict in ("contradicted", "reproduced", "not run") if verdict in found)


def counted(claims: Iterable[Claim], baselines: Collection[Baseline]) -> str:
    """Return the number of claims for each verdict: `66: 52 reproduced, 14 contradicted (8 misprints, 6 others)`."""
    verdicts = [(claim, decided(claim.id, baselines)) for claim in claims]
    found = Counter(verdict for _, verdict in verdicts)
    misprints = sum(claim.misprint for claim, verdict in verdicts if verdict == "contradicted")
    others = found["contradicted"] - misprints
    kinds = [f"{misprints} misprint{'s' * (misprints > 1)}"] * (misprints > 0)
    kinds += [f"{others} other{'s' * (others > 1)}"] * (others > 0)
    explained = {"contradicted": f" ({', '.join(kinds)})" if misprints else ""}
    words = [
        f"{found[name]} {name}{explained.get(name, '')}"
        for name in ("reproduced", "contradicted", "not run")
        if found[name]
    ]
    return f"{found.total()}: {', '.join(words)}" if words else "none"


def section(papers: Sequence[Paper], claims: Mapping[str, Sequence[Claim]], presets: Mapping[str, Baseline]) -> str:
    """Return the section: one table for the papers' own claims, and another for those of authors' code and ours.

    Args:
        papers: Papers, in the order of the rows.
        claims: Claims about each paper, by its name.
        presets: Baselines, by the names of presets.
    """
    default, every = [presets[DEFAULT_PRESET]], list(presets.values())
    own, apart = [], []
    for paper in papers:
        by_owner = {whose: [claim for claim in claims.get(paper.name, ()) if claim.whose == whose] for whose in OWNERS}
        name = f"[`{paper.name}`](verdicts/{paper.name}.md)" if claims.get(paper.name) else f"`{paper.name}`"
        own.append([paper.citation, name, counted(by_owner["paper"], default), counted(by_owner["paper"], every)])
        apart.append([name, counted(by_owner["authors' code"], every), counted(by_owner["ours"], every)])
    lines = [
        *table_lines(["paper", "all its verdicts", f"its own claims, preset `{DEFAULT_PRESET}`", "all presets"], own),
        "",
        "A misprint is a slip in a proof, a formula or a table. In spite of a misprint, the conclusion holds. In the",
        "column *all presets*, a claim is contradicted if any preset contradicts it. Otherwise, it is reproduced if a",
        "preset reproduces it, and not run if no preset does. [The pages of verdicts](verdicts/index.md) list every",
        "claim. For each contradiction that is not a misprint, they state the claim, the result, the tolerance, the",
        "assumptions of the paper, the setting, and what would make the claim right.",
        "",
        *unread(papers),
        "One cause can contradict several claims. The following list states the number of causes for each paper. It",
        "counts all presets together, and it includes misprints and causes that contradict only one claim:",
        "",
        *(line for paper in papers if (line := causes_in_words(paper, claims.get(paper.name, ()), every))),
        "",
        "Claims that are not a paper's own are counted separately, here for all presets together:",
        "",
        *table_lines(["about", "results of authors' code", "questions of ours"], apart),
        "",
        "Restatements, tolerances and the mark *misprint* are ours, and every verdict is computed from them.",
        "`unlearn claims` prints the verdicts of a run, and CI fails if a verdict of the preset `smoke` changes",
        "([claims](howto/claims.md)). `python workflow/scripts/papers_table.py --write` updates these tables and the",
        "pages of verdicts.",
    ]
    return "\n".join(lines) + "\n"


def texts(papers: Iterable[Paper]) -> list[ReadText]:
    """Return the texts that claims were compared with, without repetitions: two papers can be chapters of one work."""
    return list(dict.fromkeys(text for paper in papers for text in paper.texts))


def unread(papers: Iterable[Paper]) -> list[str]:
    """Return the lines on works whose own texts were never read."""
    lines = [f"- *{each.work}*: {_escaped(_sentence(each.text))}" for each in texts(papers) if not each.itself]
    if not lines:
        return []
    return [
        "**Not read.** The texts of these works themselves were never read. A verdict on one of their theorems is",
        "about the theorem as these sources state it:",
        "",
        *lines,
        "",
    ]


def texts_table(papers: Iterable[Paper]) -> str:
    """Return the table of texts that claims were compared with; works that were read in the same way share a row."""
    works: dict[str, list[str]] = {}
    for each in texts(papers):
        works.setdefault(each.text if each.itself else f"not read itself: {each.text}", []).append(each.work)
    return "\n".join(
        table_lines(["work", "text"], [["; ".join(named), _escaped(text)] for text, named in works.items()])
    )


def causes_in_words(paper: Paper, claims: Sequence[Claim], presets: Collection[Baseline]) -> str:
    """Return the line on how many causes the contradictions about a paper have; empty if nothing is contradicted."""
    contradicted = [claim for claim in claims if decided(claim.id, presets) == "contradicted"]
    parts = []
    for ours in (False, True):
        found = [claim for claim in contradicted if (claim.whose == "ours") == ours]
        groups = sorted(by_cause(found), key=len, reverse=True)
        noun = "question" if ours else "contradiction"
        several = [
            f"{len(group)} of these {noun}s have the same cause: {_escaped(group[0].cause)}."
            for group in groups
            if len(group) > 1
        ]
        if found:
            counted_noun, has = (noun, "has") if len(found) == 1 else (f"{noun}s", "have")
            what = f"contradicted {counted_noun} of ours" if ours else counted_noun
            causes = f"{len(groups)} cause{'s' * (len(groups) > 1)}"
            parts.append(" ".join([f"{len(found)} {what} {has} {causes} in all.", *several]))
    return f"- `{paper.name}`: {' '.join(parts)}" if parts else ""


@dataclass(frozen=True)
class Judged:
    """A claim, with its verdict by all presets.

    Attributes:
        claim: The claim.
        verdict: The verdict. It contains numbers if formulas alone decide the claim, and no numbers if runs decide it.
        presets: Presets whose runs give this verdict; empty if formulas alone decide, or if nothing decides.
    """

    claim: Claim
    verdict: Verdict
    presets: tuple[str, ...]


def judged(checkable: CheckableClaim, paper: str, presets: Mapping[str, Baseline]) -> Judged:
    """Judge a claim by formulas alone, or by the committed baselines if formulas do not suffice.

    Raises:
        DataError: Formulas and baselines give different verdicts.
    """
    claim = checkable.claim
    (computed,) = evaluate([checkable], [], paper=paper)
    by_all = decided(claim.id, presets.values())
    if computed.verdict != "not run":
        if computed.verdict != by_all:
            others = [name for name, baseline in presets.items() if baseline.get(claim.id) != computed.verdict]
            raise DataError(
                f"claim {claim.id} is {computed.verdict} by formulas alone, but not by the baselines of "
                f"{', '.join(others)} in {BASELINES.relative_to(PROJECT)}: accept the verdicts of their runs first"
            )
        return Judged(claim, computed, ())
    by = tuple(name for name, baseline in presets.items() if baseline.get(claim.id) == by_all != "not run")
    contradicted = by_all == "contradicted"
    verdict = computed.model_copy(
        update={
            "verdict": by_all,
            "severity": "misprint" if contradicted and claim.misprint else None,
            "reading": claim.reading if contradicted else None,
            "reason": _why_not_run(claim, computed.reason, presets) if by_all == "not run" else claim.note,
        }
    )
    return Judged(claim, verdict, by)


def _why_not_run(claim: Claim, missing: str, presets: Mapping[str, Baseline]) -> str:
    if missing.startswith("it needs"):
        return f"{missing}."
    if features := claim.arguments.get("features"):
        return f"it needs features {features}, which no preset with a committed baseline has."
    of_data = [known.preset or name for name in sorted(claim.data_sets) if (known := built_in(name)) is not None]
    ran = [name for name in of_data if claim.id in presets.get(name, {})]
    if ran:
        return f"`{ran[0]}` was run and could not tell: after such a run, `unlearn claims --preset {ran[0]}` says why."
    return "no committed run covers it yet" + (f": it needs the preset `{of_data[0]}`." if of_data else ".")


def page(paper: Paper, verdicts: Sequence[Judged]) -> str:
    """Return a paper's page: contradictions, misprints, claims not run, claims reproduced, and our own questions."""
    by_id = {each.claim.id: each for each in verdicts}
    order = [by_id[each.id] for each in ranked([each.verdict for each in verdicts])]
    theirs = [each for each in order if each.claim.whose != "ours"]
    ours = [each for each in order if each.claim.whose == "ours"]
    contradicted = [each for each in theirs if each.verdict.verdict == "contradicted"]
    misprints = [each for each in contradicted if each.claim.misprint]
    others = [each for each in contradicted if not each.claim.misprint]
    head = f"# {paper.title}: verdicts\n\n{WRITTEN}\n\n{paper.citation}. [How to read this page](index.md)."
    parts = [head, *("\n".join(lines).strip() for lines in [unread([paper])] if lines)]
    if theirs:
        none = f"No claim is contradicted{', except by misprints' if misprints else ''}."
        parts += [_contradictions("Contradicted", others, none)]
        parts += _folded("Misprints", misprints, _misprints)
        parts += _not_run(theirs, "Not run")
        parts += _reproduced(theirs, "Reproduced")
    if ours:
        mine = [each for each in ours if each.verdict.verdict == "contradicted"]
        title = "Questions of ours"
        parts += [_contradictions(f"{title}: contradicted", mine, "None is contradicted.")]
        parts += _not_run(ours, f"{title}: not run")
        parts += _reproduced(ours, f"{title}: reproduced")
    return "\n\n".join(parts) + "\n"


def _contradictions(title: str, found: Sequence[Judged], none: str) -> str:
    """Return a list of contradictions; contradictions with the same cause follow one statement of their `right_if`."""
    first_with: dict[Reading, str] = {}
    parts = []
    groups = _groups(found)
    if len(groups) < len(found):
        parts.append(f"These {len(found)} have {len(groups)} cause{'s' * (len(groups) > 1)}.")
    for group in groups:
        if shared := len(group) > 1:
            number = f"all {len(group)}" if len(group) == len(found) else f"{len(group)} of the {len(found)}"
            parts.append(f"### One cause of {len(group)}: {_escaped(group[0].claim.cause)}")
            parts.append(f"It explains {number}, which follow. *What would make them right*: {_right_if(group[0])}")
        for each in group:
            reading = each.verdict.reading
            known = first_with.setdefault(reading, each.claim.id) if reading is not None else each.claim.id
            parts.append(_contradiction(each, "" if known == each.claim.id else known, shared=shared))
    return "\n\n".join([f"## {title} ({len(found)})", *(parts or [none])])


def _groups(found: Sequence[Judged]) -> list[list[Judged]]:
    by_id = {each.claim.id: each for each in found}
    return [[by_id[claim.id] for claim in group] for group in by_cause(each.claim for each in found)]


def _right_if(each: Judged) -> str:
    reading = each.verdict.reading
    return _escaped(_sentence(reading.right_if)) if reading is not None else ""


def _contradiction(each: Judged, read_at: str, *, shared: bool) -> str:
    """Return a contradiction with its reading, or with the id of an earlier claim that has the same reading.

    Args:
        each: The contradiction.
        read_at: The id of the earlier claim; empty if no earlier claim has the same reading.
        shared: Whether the contradiction is in a group with a common cause, whose `right_if` was written above.
    """
    claim, verdict = each.claim, each.verdict
    owner = "" if claim.whose != "authors' code" else ", of authors' code"
    severity = verdict.severity or "contradicted"
    lines = [f"{'####' if shared else '###'} {_escaped(claim.source)}", ""]
    lines += [f"`{claim.id}`: **{severity}**{owner}. {_escaped(_sentence(claim.statement))}", ""]
    if each.presets:
        preset = DEFAULT_PRESET if DEFAULT_PRESET in each.presets else each.presets[0]
        lines += [
            f"- *Stated*: {_escaped(_sentence(verdict.expected))}",
            f"- *Found*, by runs of {_names(each.presets)}: the numbers, and how badly the claim fails, are in no "
            f"committed file. `snakemake --cores all --config preset={preset}`, then `unlearn claims --preset "
            f"{preset}`, prints them. " + _escaped(_sentence(capitalised(verdict.reason))),
        ]
    else:
        lines += [f"- *Found*, by formulas alone: {_escaped(_sentence(verdict.reason))}"]
    lines += [f"- *Tolerance*: {_escaped(_sentence(verdict.tolerance))}"]
    if read_at:
        lines += [f"- *Reading*: as for `{read_at}`."]
    elif verdict.reading is not None:
        own = verdict.reading.model_copy(update={"cause": "", "right_if": ""} if shared else {})
        lines += [f"- *{words.capitalize()}*: {_escaped(_sentence(text))}" for words, text in read_again(own).items()]
    return "\n".join(line.rstrip() for line in lines)


def _misprints(found: Sequence[Judged]) -> list[str]:
    """Return a line for each misprint; misprints with the same cause are listed below a line for the cause."""
    lines = []
    for group in _groups(found):
        shared = len(group) > 1
        if shared:
            cause = _escaped(_sentence(group[0].claim.cause))
            lines.append(f"- **One cause of {len(group)}**: {cause} *Right if*: {_right_if(group[0])}")
        for each in group:
            text = f"by runs of {_names(each.presets)}" if each.presets else _escaped(_sentence(each.verdict.reason))
            right = f" *Right if*: {_right_if(each)}" if each.verdict.reading is not None and not shared else ""
            lines.append(f"{'  ' * shared}{_item(each)} *Found*: {_sentence(text)}{right}")
    return lines


def _not_run(of: Sequence[Judged], title: str) -> list[str]:
    found = [each for each in of if each.verdict.verdict == "not run"]
    lines = [f"{_item(each)} *Why*: {_escaped(_sentence(each.verdict.reason))}" for each in found]
    return ["\n".join([f"## {title} ({len(found)})", "", *lines])] if found else []


def _reproduced(of: Sequence[Judged], title: str) -> list[str]:
    found = [each for each in of if each.verdict.verdict == "reproduced"]
    return _folded(title, found, lambda listed: [_reproduced_item(each) for each in listed])


def _reproduced_item(each: Judged) -> str:
    by = f", by runs of {_names(each.presets)}" if each.presets else ", by formulas"
    return f"{_item(each, by)} *Held to*: {_escaped(f'{each.verdict.expected} ({each.verdict.tolerance}).')}"


def _item(each: Judged, by: str = "") -> str:
    statement = _escaped(_sentence(each.claim.statement))
    return f"- {_escaped(each.claim.source)} (`{each.claim.id}`{by}): {statement}"


def _folded(title: str, found: Sequence[Judged], listed: Callable[[Sequence[Judged]], list[str]]) -> list[str]:
    if not found:
        return []
    lines = [f"## {title} ({len(found)})", "", "<details><summary>Show the list</summary>", "", *listed(found)]
    return ["\n".join([*lines, "", "</details>"])]


def _names(presets: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in presets)


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "?")) else f"{text}."


def _escaped(text: str) -> str:
    """Return a text in which all Markdown characters are escaped, except those of code."""
    return re.sub(r"([*|\\]|<(?=[A-Za-z/!?])|\](?=\())", r"\\\1", text)


def baselines() -> dict[str, Baseline]:
    """Return the committed verdicts, by the names of presets."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(BASELINES.glob("*.json"))}


def committed() -> str:
    """Return the section for the papers of this package and the committed baselines."""
    claims = {name: [each.claim for each in about] for name, about in claims_of(PAPERS).items()}
    return section(PAPERS, claims, baselines())


def pages() -> dict[str, str]:
    """Return the pages of verdicts for the papers of this package and the committed baselines, by the papers' names."""
    known, presets = claims_of(PAPERS), baselines()
    return {
        paper.name: page(paper, [judged(each, paper.name, presets) for each in known[paper.name]])
        for paper in PAPERS
        if known.get(paper.name)
    }


def main() -> None:
    """Print the section, or write it into the page and write the pages of verdicts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"write the section into {PAGE.relative_to(PROJECT)}, and write {VERDICTS.relative_to(PROJECT)}",
    )
    if not parser.parse_args().write:
        print(committed(), end="")
        return
    try:
        table, written = committed(), pages()
    except DataError as error:
        parser.exit(1, f"error: {error}\n")
    before, heading, rest = PAGE.read_text(encoding="utf-8").partition(HEADING)
    write_text(PAGE, before + heading + table + NEXT + rest.partition(NEXT)[2])
    before, heading, rest = INDEX.read_text(encoding="utf-8").partition(TEXTS)
    write_text(INDEX, before + heading + texts_table(PAPERS) + AFTER_TEXTS + rest.partition(AFTER_TEXTS)[2])
    for name, text in written.items():
        write_text(VERDICTS / f"{name}.md", text)


if __name__ == "__main__":
    main()
