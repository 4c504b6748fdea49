"""Identifiers that a person would take for one are named, and no others."""

import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.data.tables import spellings as spellings_module
from certified_unlearning.data.tables.declaration import text_of
from certified_unlearning.data.tables.spellings import Group, Spellings, described, folded

NUMBER = "how a number is written"
AROUND = "surrounding characters, such as quotes or braces"


def groups_of(*spellings: str) -> list[Group]:
    return spellings_module.groups_of(spellings)


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        ("Acme\r\nBerlin", "Acme\nBerlin", "blanks"),
        ("Acme ", "Acme", "blanks"),
        ("Acme  Berlin", "Acme Berlin", "blanks"),
        ("Acme\u00a0Berlin", "Acme Berlin", "blanks"),
        ("Acme\u200b", "Acme", "blanks"),
        ("\ufeffAcme", "Acme", "blanks"),
        ("Ren\u00e9", "Rene\u0301", "Unicode normalisation"),
        ("\uff17\uff18", "78", "Unicode normalisation"),
        ("a@example.org", "A@Example.org", "case"),
        ("STRASSE", "straße", "case"),
        ("007", "7", NUMBER),
        ("7.0", "7", NUMBER),
        ("+5", "5", NUMBER),
        ("-0", "0", NUMBER),
        ("12.50", "12.5", NUMBER),
        ("1,000", "1000", NUMBER),
        ('="0017"', "0017", AROUND),
        ("'0017", "0017", AROUND),
        ("{550e8400-e29b-41d4-a716-446655440000}", "550e8400e29b41d4a716446655440000", AROUND),
        ("A\0", "A", "blanks"),
        ("\N{GRINNING FACE}\ufe0f", "\N{GRINNING FACE}", "blanks"),
        ("\u0130lker", "ilker", "case"),
        ("\u04101", "A1", "letters of another alphabet that look alike"),
        ("-7.00", "-7", NUMBER),
        ("Ren\u00e9 ", "RENE\u0301", "blanks, case and the like"),
    ],
)
def test_two_spellings_of_one_are_named_with_what_they_differ_in(one: str, other: str, difference: str) -> None:
    (group,) = groups_of(one, other, "somebody else", "8")
    assert set(group.spellings) == {one, other}
    assert group.difference == difference


def test_identifiers_that_differ_in_a_letter_or_a_digit_are_in_no_group() -> None:
    assert groups_of(*map(str, range(3000)), *(f"c{n:05d}" for n in range(3000)), "-7", "0", "100", "0000010") != []
    assert groups_of(*map(str, range(3000)), *(f"c{n:05d}" for n in range(3000)), "-7", "a-b", "ab", "a.b") == []
    assert groups_of(*(f"{n:07d}" for n in range(3000))) == []


@given(st.text(max_size=12))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert folded(folded(text)) == folded(text)


@given(st.text(max_size=12))
def test_what_the_rules_of_tables_take_for_one_is_folded_to_one(text: str) -> None:
    assert folded(str(text_of(text))) == folded(text)


@given(st.text(max_size=12))
def test_blanks_and_normalisation_do_not_change_what_is_folded(text: str) -> None:
    assert folded(f" {text}\r\n") == folded(text)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert folded(unicodedata.normalize(form, text)) == folded(text)


def test_what_becomes_of_them_is_said() -> None:
    merged, apart = groups_of("7", "7.0"), groups_of("Acme", "acme", "ACME", "x", "X")
    (partly,) = described(groups_of("A@x.de", "a@x.de", " a@x.de"))
    assert partly.endswith("they count as one person in part, so a request for one must name the others, too")
    assert described(merged) == [
        "2 identifiers differ only in how a number is written, such as '7' and '7.0': they count as one person"
    ]
    assert described(apart) == [
        "5 identifiers differ only in case, such as 'ACME' and 'Acme' and 'acme': they count as different people, so a "
        "request for one must name the others, too"
    ]


def test_many_spellings_are_found_however_they_are_added() -> None:
    draw = random.Random(3)
    people = [f"person {n}" for n in range(2000)]
    spelt = [*people, *(name.upper() for name in people[:50])]
    draw.shuffle(spelt)
    with Spellings() as seen:
        for start in range(0, len(spelt), 97):
            seen.add(spelt[start : start + 97])
        assert [group.folded for group in seen.groups()] == sorted(f"person{n}" for n in range(50))
