"""Relations: which measured values agree with printed ones, and what is said of those that do not."""

import pytest
from pydantic import TypeAdapter

from certified_unlearning.reproduction.claims.relations import Quantity, Range, Relation, formatted


def relation(**fields):
    return TypeAdapter(Relation).validate_python(fields)


def agreements(expected, *values):
    return [finding.agrees for finding in expected.findings([Quantity(value) for value in values])]


def test_without_a_tolerance_values_must_be_equal():
    expected = relation(relation="equals", values=[90, 91, 92])
    assert agreements(expected, 90, 91, 92) == [True, True, True]
    assert agreements(expected, 90, 90, 92) == [True, False, True]
    assert expected.tolerance_text() == "none: the numbers are exact"


@pytest.mark.parametrize(
    ("tolerance", "inside", "outside", "text"),
    [
        ({"absolute": 0.5}, [3.5, 4.5], [3.49, 4.51], "0.5 absolute: why"),
        ({"relative": 0.25}, [3.0, 5.0], [2.99, 5.01], "0.25 relative: why"),
        ({"absolute": 0.5, "relative": 0.25}, [3.0, 5.0], [2.99, 5.01], "0.5 absolute, 0.25 relative: why"),
    ],
)
def test_a_tolerance_is_absolute_or_relative_whichever_is_more(tolerance, inside, outside, text):
    expected = relation(relation="equals", values=[4.0], why="why", **tolerance)
    assert [agreements(expected, value) for value in inside] == [[True], [True]]
    assert [agreements(expected, value) for value in outside] == [[False], [False]]
    assert expected.tolerance_text() == text


def test_a_truncated_value_is_the_exact_one_cut_off():
    expected = relation(relation="truncated", values=[0.0119], digits=4)
    assert agreements(expected, 0.0119) == agreements(expected, 0.011982) == agreements(expected, 0.0119999) == [True]
    assert agreements(expected, 0.012) == agreements(expected, 0.0118999) == [False]
    assert "cut off after 4 digits" in expected.tolerance_text()


def test_a_value_on_the_edge_of_truncation_belongs_to_the_next_digit_whatever_its_last_bit():
    expected = relation(relation="truncated", values=[0.0499], digits=4)
    assert agreements(expected, 0.05) == agreements(expected, 1e-6 * 50_000) == [False]


def test_an_inexact_constant_widens_truncation_on_both_sides():
    expected = relation(relation="truncated", values=[14.0859], digits=4, relative=7e-7, why="six digits")
    assert agreements(expected, 14.086004) == agreements(expected, 14.085895) == [True]
    assert agreements(expected, 14.08603) == agreements(expected, 14.08587) == [False]
    assert expected.tolerance_text().endswith("; 7e-07 relative: six digits")


def test_printed_values_may_lie_a_little_above_exact_ones():
    expected = relation(relation="printed over exact", values=[1.04], low=1.0, high=1.04, why="coarse")
    assert agreements(expected, 1.04) == agreements(expected, 1.0) == [True]
    assert agreements(expected, 1.0401) == agreements(expected, 0.9999) == [False]
    assert expected.tolerance_text() == "printed / exact from 1 to 1.04: coarse"


def test_an_upper_bound_has_no_tolerance():
    expected = relation(relation="at most", values=[1.0, 2.0])
    assert agreements(expected, 1.0, 2.0000001) == [True, False]
    assert expected.expected_text() == "at most 1, 2"


@pytest.mark.parametrize(
    ("ends", "agree", "disagree", "text"),
    [
        ({"low": 0.0}, [0, 1], [-0.1], "at least 0"),
        ({"high": 0.0}, [0, -1], [0.1], "at most 0"),
        ({"low": 0.0, "strict": True}, [0.1], [0, -1], "above 0"),
        ({"high": 0.0, "strict": True}, [-0.1], [0, 1], "below 0"),
        ({"low": -1.0, "high": 1.0}, [-1, 0, 1], [-1.1, 1.1], "between -1 and 1"),
        ({"low": -1.0, "high": 1.0, "strict": True}, [0], [-1, 1], "strictly between -1 and 1"),
    ],
)
def test_a_range_holds_for_any_number_of_values(ends, agree, disagree, text):
    expected = relation(relation="between", why="an order", **ends)
    assert agreements(expected, *agree) == [True] * len(agree)
    assert agreements(expected, *disagree) == [False] * len(disagree)
    assert (expected.expected_text(), expected.tolerance_text()) == (text, "an order")


@pytest.mark.parametrize(
    ("value", "uncertainty", "agrees"),
    [
        (0.5, 0.4, True),
        (0.5, 0.5, True),
        (0.5, 0.6, None),
        (1.5, 0.6, None),
        (1.5, 0.4, False),
        (-1, float("inf"), None),
    ],
)
def test_an_interval_agrees_only_as_a_whole_and_disagrees_only_as_a_whole(value, uncertainty, agrees):
    assert Range(0, 1).judge(Quantity(value, uncertainty=uncertainty)) is agrees


def test_findings_name_the_entry_and_both_numbers():
    expected = relation(relation="equals", values=[36.8573])
    assert expected.findings([Quantity(36.87536)])[0].text == "entry 1: printed 36.8573, computed 36.87536"
    named = expected.findings([Quantity(36.87536, "epsilon = 0.05", 0.012)])
    assert named[0].text == "entry 1 (epsilon = 0.05): printed 36.8573, computed 36.88 ± 0.012"
    order = relation(relation="between", high=0.0, why="none").findings([Quantity(1, "K = 1"), Quantity(2)])
    assert [finding.text for finding in order] == ["K = 1: 1, expected at most 0", "2, expected at most 0"]


def test_many_values_are_told_by_their_ends():
    expected = relation(relation="between", low=0.0, why="none")
    assert expected.measured_text([Quantity(2), Quantity(1, uncertainty=0.5)]) == "2, 1 ± 0.5"
    assert expected.measured_text([Quantity(number) for number in range(7)]) == "0 to 6 (7 values)"
    sampled = [Quantity(number, uncertainty=number / 2) for number in range(7)]
    assert expected.measured_text(sampled) == "0 to 6 (7 values, each ± 3 or less)"


@pytest.mark.parametrize(
    ("value", "text"),
    [(19717.0, "19717"), (10098, "10098"), (0.1 + 0.2, "0.3"), (float("inf"), "inf"), (2e-5, "2e-05")],
)
def test_numbers_have_seven_digits_and_whole_ones_all(value, text):
    assert formatted(value) == text
