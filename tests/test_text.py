"""Texts for people: a count and its noun agree."""

import pytest

from certified_unlearning.text import counted, noun_of


@pytest.mark.parametrize(
    ("noun", "many"),
    [
        ("removed record", "removed records"),
        ("person", "people"),
        ("other person", "other people"),
        ("class", "classes"),
        ("batch", "batches"),
        ("query", "queries"),
        ("quantity", "quantities"),
        ("day", "days"),
        ("assumption", "assumptions"),
    ],
)
def test_one_stands_before_the_singular_and_every_other_number_before_the_plural(noun: str, many: str) -> None:
    assert counted(1, noun) == f"1 {noun}"
    assert counted(0, noun) == f"0 {many}"
    assert counted(2000, noun) == f"2,000 {many}"
    assert noun_of(1, noun) == noun
