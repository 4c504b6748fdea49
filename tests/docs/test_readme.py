"""README is short; the tables of the page of papers are those of the declarations and of the committed verdicts."""

import json
import re
import runpy
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from certified_unlearning.errors import DataError
from certified_unlearning.papers.all import PAPERS
from certified_unlearning.reproduction import declared
from certified_unlearning.reproduction.claims.model import Claim, claims_of
from certified_unlearning.reproduction.paper import Paper

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
VERDICTS = ROOT / "docs" / "verdicts"
WRITE = "run python workflow/scripts/papers_table.py --write"


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
    for path in sorted((ROOT / "workflow" / "baselines" / "claims").glob("*.json"))
}


def rows(text: str) -> list[list[str]]:
    """The cells of all tables, without heads, rules and addresses of links."""
    text = re.sub(r"\[`(\w+)`\]\(verdicts/\1\.md\)", r"\1", text)
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]
    return [each for number, each in enumerate(cells) if "---" not in str([*cells, [""]][number : number + 2])]


def in_words(verdicts: Counter[str]) -> str:
    """As the page has it; a contradiction that is a misprint is counted under `misprint`."""
    contradicted = verdicts["contradicted"] + verdicts["misprint"]
    words = {name: f"{verdicts[name]} {name}" for name in ("reproduced", "not run") if verdicts[name]}
    if contradicted:
        numbers = {"misprint": verdicts["misprint"], "other": verdicts["contradicted"]}
        kinds = ", ".join(f"{number} {name}{'s' if number > 1 else ''}" for name, number in numbers.items() if number)
        words["contradicted"] = f"{contradicted} contradicted{f' ({kinds})' if verdicts['misprint'] else ''}"
    listed = [words[name] for name in ("reproduced", "contradicted", "not run") if name in words]
    return f"{verdicts.total()}: {', '.join(listed)}" if listed else "none"


def kind(claim: Claim, verdict: str) -> str:
    return "misprint" if verdict == "contradicted" and claim.misprint else verdict


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
            digits[claim.whose][kind(claim, BASELINES["digits"].get(claim.id, "not run"))] += 1
            every[claim.whose][kind(claim, together(claim.id))] += 1
        expected.append([paper.citation, paper.name, in_words(digits["paper"]), in_words(every["paper"])])
        apart.append([paper.name, in_words(every["authors' code"]), in_words(every["ours"])])
    assert rows(section("Papers")) == [*expected, *apart]


def test_the_page_is_what_the_script_prints() -> None:
    assert section("Papers").strip() == SCRIPT["committed"]().strip()


def test_the_page_and_the_list_of_texts_name_the_works_whose_own_texts_were_never_read() -> None:
    never = {text.work for paper in PAPERS for text in paper.texts if not text.itself}
    assert never == {"Descent-to-Delete", "Noisy SGD"}
    named = section("Papers").partition("**Not read.**")[2].partition("Several contradictions")[0]
    assert set(re.findall(r"^- \*(.+?)\*: ", named, re.M)) == never
    index = (VERDICTS / "index.md").read_text(encoding="utf-8")
    assert SCRIPT["texts_table"](PAPERS) in index, WRITE
    assert set(re.findall(r"^\| (.+?) \| not read itself: ", index, re.M)) == never
    for paper in PAPERS:
        page = (VERDICTS / f"{paper.name}.md").read_text(encoding="utf-8")
        assert ("**Not read.**" in page) == any(not text.itself for text in paper.texts), paper.name


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: str(paper.name))
def test_a_paper_with_claims_of_others_says_what_they_were_compared_with(paper: Paper) -> None:
    theirs = [each for each in claims_of([paper]).get(paper.name, []) if each.claim.whose != "ours"]
    assert bool(paper.texts) == bool(theirs)


def test_without_an_unread_work_the_page_says_nothing_of_it() -> None:
    assert SCRIPT["unread"]([each for each in PAPERS if each.name == "forget_unlearning"]) == []


NUMBER = re.compile(r"(?<![\w-])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """What the script would write now."""
    return dict(SCRIPT["pages"]())


def test_the_pages_of_verdicts_are_what_the_script_writes(pages: dict[str, str]) -> None:
    """Numbers that formulas give may differ between machines in the last of their digits."""
    assert {path.stem for path in VERDICTS.glob("*.md")} == {"index", *pages}
    for name, text in pages.items():
        committed = (VERDICTS / f"{name}.md").read_text(encoding="utf-8")
        assert NUMBER.sub("0", committed) == NUMBER.sub("0", text), f"{name}: {WRITE}"
        numbers = [[float(each) for each in NUMBER.findall(page)] for page in (committed, text)]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-5, abs=1e-12), f"{name}: {WRITE}"


def test_every_claim_stands_once_on_the_page_of_its_paper_and_in_the_list_of_its_verdict(
    pages: dict[str, str],
) -> None:
    for name, about in claims_of(PAPERS).items():
        lists = dict(re.findall(r"^## (.+?) \(\d+\)\n(.*?)(?=^## |\Z)", pages[name], re.MULTILINE | re.DOTALL))
        entries = {
            title: re.findall(r"^(?: *- .*?\(|)`([a-z0-9-]+)`[:,)]", text, re.M) for title, text in lists.items()
        }
        for claim in (each.claim for each in about):
            found = [title for title, ids in entries.items() for each in ids if each == claim.id]
            word = kind(claim, together(claim.id)).capitalize()
            theirs = "Misprints" if word == "Misprint" else word
            assert found == [f"Questions of ours: {word.lower()}" if claim.whose == "ours" else theirs], claim.id


def test_a_contradiction_has_both_numbers_or_the_command_that_prints_them_and_its_reading(
    pages: dict[str, str],
) -> None:
    number = 0
    for text in pages.values():
        below = False  # whether the entry stands below a cause, which says what would make it right
        for level, entry in re.findall(r"^(##+) (.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL):
            if "\n- *Found*" not in entry:  # misprints are one line each
                below = "*What would make them right*" in entry
                continue
            number += 1
            assert re.search(r"printed .*computed |, expected |`unlearn claims --preset \w", entry), entry
            right = "*What would make it right*" in entry
            assert "*Reading*: as for" in entry or (below and not right if level == "####" else right), entry
    assert number > 50


def shared_causes(about: list[Claim]) -> dict[str, list[str]]:
    """The contradicted claims of each cause that two or more share."""
    found: dict[str, list[str]] = defaultdict(list)
    for claim in about:
        if claim.cause and together(claim.id) == "contradicted":
            found[claim.cause].append(claim.id)
    return {cause: ids for cause, ids in found.items() if len(ids) > 1}


def test_a_cause_of_several_contradictions_stands_once_with_what_would_make_them_right_above_them(
    pages: dict[str, str],
) -> None:
    for name, about in claims_of(PAPERS).items():
        claims = {each.claim.id: each.claim for each in about}
        causes = shared_causes(list(claims.values()))
        named = {claim.cause for claim in claims.values()} - {""}
        assert named == set(causes), f"{name}: a cause of one contradiction alone explains nothing in common"
        for cause, ids in causes.items():
            assert pages[name].count(cause) == 1, cause
            right = {claims[each].reading.right_if for each in ids}  # type: ignore[union-attr]
            (right_if,) = (SCRIPT["_escaped"](each) for each in right)
            begin, below = pages[name].split(cause)
            assert re.search(rf"One cause of {len(ids)}(: |\*\*: )$", begin)
            assert below.count(right_if) == 1
            after = below.partition(right_if)[2]
            listed = re.findall(r"^(?:  - .*?\(|)`([a-z0-9-]+)`[:,)]", after, re.M)
            assert set(listed[: len(ids)]) == set(ids), cause


def test_the_page_of_papers_counts_the_causes(pages: dict[str, str]) -> None:
    lines = dict(re.findall(r"^- `(\w+)`: (.*)$", section("Papers"), re.M))
    assert len(lines) == len(pages)
    for name, about in claims_of(PAPERS).items():
        expected = []
        for ours in (False, True):
            claims = [each.claim for each in about if (each.claim.whose == "ours") == ours]
            found = [claim for claim in claims if together(claim.id) == "contradicted"]
            groups = [len(ids) for ids in shared_causes(claims).values()]
            if found:
                expected.append((len(found), len(found) - sum(groups) + len(groups), sorted(groups, reverse=True)))
        parts = re.split(r"\. (?=\d+ contradicted)", lines[name])
        assert [
            (*map(int, re.match(r"(\d+) contradict.*? ha(?:s|ve) (\d+) causes? in all", part).groups()),  # type: ignore[union-attr]
             [int(each) for each in re.findall(r" (\d+) of these \w+ have the same cause", part)])
            for part in parts
        ] == expected, name  # fmt: skip


def test_the_data_s_l_gives_the_numbers_that_table_1_s_l_does_not_give() -> None:
    """Each of the 17 has a twin: the same numbers, measured with the L of the data."""
    claims = {each.claim.id: each.claim for each in claims_of(PAPERS)["langevin_unlearning"]}
    (ids,) = (
        ids for cause, ids in shared_causes(list(claims.values())).items() if cause.startswith("Table 1 states L")
    )
    assert len(ids) == 17
    misprinted = {"table-2-mnist-i1-bound", "table-2-mnist-i2-bound"}
    for name in ids:
        claim, twin = claims[name], claims[name.removesuffix("bound") + "spectral"]
        assert claim.arguments | {"smoothness": "spectral"} == twin.arguments
        assert (claim.measure, claim.arguments["smoothness"]) == (twin.measure, "bound")
        assert getattr(claim.expected, "values") == getattr(twin.expected, "values")  # noqa: B009
        found = kind(twin, together(twin.id))
        assert found == ("misprint" if name in misprinted else "reproduced"), name


def test_a_page_follows_the_baselines_and_formulas_that_baselines_deny_are_refused(pages: dict[str, str]) -> None:
    """A run that no longer contradicts a claim moves it."""
    known, of_runs = claims_of(PAPERS), "forget-theorem-4-1-stream"
    (paper,) = (each for each in PAPERS if each.name == "forget_unlearning")

    def page(presets: dict[str, dict[str, str]]) -> str:
        return str(SCRIPT["page"](paper, [SCRIPT["judged"](each, paper.name, presets) for each in known[paper.name]]))

    assert page(BASELINES) == pages[paper.name]
    moved = page({name: {**each, of_runs: "reproduced"} for name, each in BASELINES.items()})
    assert f"`{of_runs}`: **" in pages[paper.name]
    assert f"(`{of_runs}`, by runs of" in moved
    (formula,) = (each for each in known["langevin_unlearning"] if each.claim.id == "table-2-mnist-i1-bound")
    with pytest.raises(
        DataError, match=r"claim table-2-mnist-i1-bound is contradicted by formulas alone, but not by .* of digits"
    ):
        SCRIPT["judged"](formula, "langevin_unlearning", {"digits": {formula.claim.id: "reproduced"}})


@pytest.mark.parametrize("text", ["a * b * c", "x < y > z", "a <b> c", "|X| <= |Y|", r"a\b", "see [0, 1](2)"])
def test_what_markdown_would_set_is_escaped(text: str) -> None:
    (paragraph,) = (token for token in MarkdownIt().parse(SCRIPT["_escaped"](text)) if token.type == "inline")
    assert [child.type for child in paragraph.children or []] == ["text"] * len(paragraph.children or [])
    assert "".join(child.content for child in paragraph.children or []) == text


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
