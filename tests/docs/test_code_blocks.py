"""Code blocks of the documents run and print what the documents show."""

from pathlib import Path

import pytest

from tests.docs.code_blocks import blocks, run_page

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if {"python", "console"} & {block.language for block in blocks(page)}
]
LONG = tuple(
    ROOT / "docs" / page
    for page in (
        "tutorial.md",
        "howto/certified-predictions.md",
        "howto/declare.md",
        "howto/every-night.md",
        "howto/month-by-month.md",
        "howto/rare-classes.md",
    )
)
"""Pages that learn larger models, or run many commands."""
FENCE = "```"


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.exhaustive] * (page in LONG)) for page in PAGES],
    ids=[str(page.relative_to(ROOT)) for page in PAGES],
)
def test_every_block_runs_and_prints_what_is_shown(page: Path, tmp_path: Path, monkeypatch):
    """The tutorial learns on real data; a page runs whole, as a reader would run it."""
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path)


def test_the_first_model_with_a_certificate_takes_at_most_ten_lines():
    first = next(block for block in blocks(ROOT / "docs" / "tutorial.md") if block.language == "python")
    assert "certificate_" in first.text
    assert len([line for line in first.text.splitlines() if line.strip()]) <= 10


@pytest.mark.parametrize(
    ("language", "text", "shown"),
    [
        ("python", "print(2)", "3"),
        ("python", "raise ValueError", ""),
        ("python", "print(1.23456)", "1.3..."),
        ("python", "print(f'{0.8933:.2f}')", "0.88"),
        ("python", "print(0.881)", "0.88"),
        ("console", "$ echo two", "three"),
        ("console", "$ false", ""),
        ("console", "$ echo a\nb\n$ echo b", "b"),
    ],
)
def test_a_page_that_shows_something_else_is_refused(language, text, shown, tmp_path: Path):
    page = tmp_path / "page.md"
    between = f"\n{FENCE}\n{FENCE}text\n" if language == "python" else "\n"
    page.write_text(f"{FENCE}{language}\n{text}{between}{shown}\n{FENCE}\n", encoding="utf-8")
    with pytest.raises((AssertionError, ValueError)):
        run_page(page, tmp_path)


def test_a_page_that_shows_what_happens_passes(tmp_path: Path):
    page = tmp_path / "page.md"
    fenced = (
        ("python", "x = 1.23456"),
        ("python", "print(x, 0.88)"),
        ("text", "1.2345... 0.88"),
        ("console", "$ echo one \\\n  two\none two\n$ echo three > four\n$ cat four\nthree"),
    )
    content = "\nand then\n".join(f"{FENCE}{language}\n{text}\n{FENCE}" for language, text in fenced)
    page.write_text(content, encoding="utf-8")
    run_page(page, tmp_path)
