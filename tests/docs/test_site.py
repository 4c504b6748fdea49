"""The documents as a site: built without a warning, no dead link, nothing loaded from elsewhere."""

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.docs.building import ROOT, build
from tests.docs.links import anchors_of_markdown, broken_links, loaded_from_elsewhere, markdown_links
from tests.support.browser import chromium

OF_THE_REPOSITORY = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "benchmarks").glob("*.md"))]


@pytest.mark.exhaustive
def test_every_page_is_built_and_no_link_is_broken(site: Path):
    """Its setup builds the documents whole, once for all tests that look at them: Sphinx imports every module."""
    sources = {
        page.relative_to(ROOT / "docs") for ending in ("*.md", "*.rst") for page in (ROOT / "docs").rglob(ending)
    }
    assert len(sources) > 10
    for source in sources:
        assert (site / source.with_suffix(".html")).is_file()
    assert broken_links(site) == []


@pytest.mark.exhaustive
def test_no_tag_and_no_style_sheet_loads_anything_from_elsewhere(site: Path):
    assert loaded_from_elsewhere(site) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("page", ["index.html", "guarantees.html", "api/accounting.html", "search.html?q=adjacency"])
def test_a_page_opened_as_a_file_asks_no_other_machine_and_logs_no_error(page: str, site: Path):
    requests: list[str] = []
    complaints: list[str] = []
    with chromium() as tab:
        tab.on("request", lambda request: requests.append(request.url))
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto(f"{site.as_uri()}/{page}")
        tab.wait_for_function("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
        if page.startswith("search"):
            tab.locator("#search-results a").first.wait_for()
        assert complaints == []
        assert {urlsplit(url).scheme for url in requests} <= {"file", "data"}
        # A telephone needs no sideways scrolling: wide tables and code scroll by themselves.
        tab.set_viewport_size({"width": 360, "height": 640})
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("page", OF_THE_REPOSITORY, ids=[page.name for page in OF_THE_REPOSITORY])
def test_links_of_a_file_that_is_read_in_the_repository_lead_somewhere(page: Path):
    text = page.read_text(encoding="utf-8")
    for link in markdown_links(text):
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = page.parent / parts.path if parts.path else page
        assert target.exists(), link
        if parts.fragment:
            assert parts.fragment in anchors_of_markdown(target.read_text(encoding="utf-8")), link


@pytest.fixture
def few_pages(tmp_path: Path) -> Path:
    """The documents with one page of the reference, which takes most of the time of a build."""
    source = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", source, ignore=shutil.ignore_patterns("api"))
    (source / "api").mkdir()
    shutil.copy(ROOT / "docs" / "api" / "ground.rst", source / "api")
    index = (source / "index.md").read_text(encoding="utf-8").replace("(api/index.md)", "(api/ground.rst)")
    (source / "index.md").write_text(index.replace("api/index", "api/ground"), encoding="utf-8")
    return source


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("file", "planted", "complaint"),
    [
        ("index.md", "", ""),
        ("guarantees.md", "\n[nowhere](nowhere.md)\n", "nowhere"),
        ("guarantees.md", "\n[nowhere](#nowhere)\n", "nowhere"),
        ("lost.md", "# In no table of contents\n", "toctree"),
        ("api/ground.rst", "\n.. automodule:: certified_unlearning.nothing\n", "certified_unlearning.nothing"),
    ],
    ids=["as they are", "no such page", "no such heading", "page that nothing leads to", "no such module"],
)
def test_the_build_refuses_a_planted_fault(file: str, planted: str, complaint: str, few_pages: Path, tmp_path: Path):
    with (few_pages / file).open("a", encoding="utf-8") as page:
        page.write(planted)
    done = build(few_pages, tmp_path / "site")
    assert (done.returncode == 0) == (planted == ""), done.stderr
    assert complaint in done.stderr


def test_broken_links_and_foreign_addresses_are_found(tmp_path: Path):
    (tmp_path / "a.html").write_text(
        "<link href='https://fonts.example/x.css'><p id=here><a href='#here'><a href='b.html'><a href='c.html'>"
        "<a href='b.html#there'><a href='b.html#nowhere'><a href='https://elsewhere.example'>",
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text("<p id=there>", encoding="utf-8")
    (tmp_path / "x.css").write_text("a { src: url('//fonts.example/y') } b { src: url('z.svg') }", encoding="utf-8")
    assert broken_links(tmp_path) == ["a.html: c.html", "a.html: b.html#nowhere"]
    assert loaded_from_elsewhere(tmp_path) == ["a.html: https://fonts.example/x.css", "x.css: //fonts.example/y"]
