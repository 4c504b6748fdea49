"""The examples run as they are shown, with smaller data, and draw and print what their page says."""

import re
from pathlib import Path

import pytest

from docs import gallery

QUICKER = {
    "remove_customers": {"[:10]": "[:3]"},
    "cost_of_a_request": {"(1000, 3000, 10_000, 30_000)": "(1000, 10_000)", "REQUESTS = 20": "REQUESTS = 5"},
    "three_classes": {"REQUESTS = 8": "REQUESTS = 2"},
    "exact_removals": {"(0.01, 0.03, 0.1, 0.3, 1.0)": "(0.01, 1.0)", "REMOVALS = 100": "REMOVALS = 10"},
    "audit_warm_start": {"RECORDS = 100_000": "RECORDS = 20_000"},
    "deletions_covered": {"(0.02, 0.05, 0.1, 0.2, 1.0)": "(0.05, 1.0)", "RECORDS = 20_000": "RECORDS = 5000"},
}
"""What each example has, and what takes its place here."""
PRINTED = {
    "remove_customers": r"of 1500 records remain; epsilon (1\.0000|0\.99\d\d) at delta 1e-06\n.* At most 54\.8 % ",
    "cost_of_a_request": r"10000 +the certified model",
    "three_classes": r"epsilon (1\.0000|0\.99\d\d); 2 of 2 requests by passes\naccuracy 0\.[67]",
    "exact_removals": r"sigma 0\.01: ([4-9]\d|100)% took .* epsilon 0\nsigma 1\.0: [0-3]?\d% took .* epsilon 0\n",
    "audit_warm_start": r"fit from zero: nothing found.*\ncertified: .*; certified at most 1\.00; measured at least",
    "deletions_covered": r"epsilon 0\.05 .* within 1: 16,.*\nepsilon 1\.0 .* within 1: 1,",
}
"""Patterns of what they print. Where noise has no seed, they hold whatever is drawn: the verdict on the certified model
would be a false alarm once in a thousand runs, so it has none here."""


def quicker(name: str) -> str:
    code = gallery.example(name).read_text(encoding="utf-8")
    for shown, smaller in QUICKER[name].items():
        assert code.count(shown) == 1, shown
        code = code.replace(shown, smaller)
    return code


def words(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_the_page_shows_every_example_with_its_words() -> None:
    folder = gallery.DOCS / "examples"
    assert {*gallery.EXAMPLES} == {path.stem for path in folder.glob("*.py")} == {*QUICKER} == {*PRINTED}
    assert (folder / "index.md").read_text(encoding="utf-8") == gallery.examples_page()


@pytest.mark.parametrize("name", gallery.EXAMPLES)
def test_an_example_prints_sane_numbers_and_draws_its_picture(name: str, tmp_path: Path) -> None:
    printed = gallery.run_example(name, quicker(name), tmp_path)
    assert re.search(PRINTED[name], printed), printed
    committed = (gallery.DOCS / "pictures" / "examples" / f"{name}.svg").read_text(encoding="utf-8")
    labels = {text for text in words((tmp_path / f"{name}.svg").read_text(encoding="utf-8")) if len(text) > 12}
    assert labels
    assert labels <= {*words(committed)}


def test_an_example_that_draws_nothing_or_fails_leaves_no_picture(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        gallery.run_example("three_classes", "print(1)", tmp_path)
    with pytest.raises(ZeroDivisionError):
        gallery.run_example("three_classes", "1 / 0", tmp_path)
    assert list(tmp_path.iterdir()) == []
