"""Words: retired ones stand in listed files only, the check finds each kind, and releases open with few lines."""

import re

import pytest

from tests import words


def test_sources_and_documents_use_no_retired_words():
    assert words.complaints(words.places(), words.STORED) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""Whoever knows it."""\n', (1, "Whoever")),
        ("# A number makes\n    # no sense.\n", (2, "makes # no sense")),
        ("raise ParameterError('averages are reckoned')\n", (1, "reckoned")),
        ("    Args:\n        delta: Of the target.\n", (2, "delta: Of the")),
        ('    """For one score."""\n', (1, '"""For one')),
    ],
)
def test_each_kind_of_retired_word_is_found_in_code(text: str, found: tuple[int, str]):
    assert words.found_in(text, ".py") == [found]


def test_words_that_programs_print_and_words_that_begin_alike_are_no_complaint():
    printed = "```text\nnothing for whoever kept earlier ones\n```\n"
    assert words.found_in(printed, ".md") == []
    assert words.found_in(f"{printed}For whoever kept it.\n", ".md") == [(4, "whoever")]
    assert words.found_in('"""Off the path."""\n    delta: Offset.\n    kind: Format of the file.\n', ".py") == []


def test_a_listed_file_that_is_clean_must_leave_the_list():
    found = {"a.py": [(1, "whoever")], "b.py": [(2, "reckoned")]}
    assert words.complaints(found, {"a.py", "b.py"}) == []
    assert words.complaints(found, {"a.py"}) == ["b.py:2: 'reckoned' is retired"]
    (clean,) = words.complaints(found, {"a.py", "b.py", "c.py"})
    assert clean.startswith("c.py is clean")


def test_each_release_of_the_changelog_opens_with_at_most_five_lines():
    """They stand before its first heading; where there is none, they are the whole release."""
    releases = re.split(r"^## ", (words.ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    openings = {
        release.splitlines()[0]: re.findall(r"^- ", release.partition("\n### ")[0], re.MULTILINE)
        for release in releases
    }
    assert {"Unreleased", "0.1.0"} <= {*openings}
    assert {name: len(lines) for name, lines in openings.items() if not 1 <= len(lines) <= 5} == {}
