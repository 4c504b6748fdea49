"""Thresholds are the best of all, by brute force, and have few digits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, f1_score, precision_score, recall_score

from certified_unlearning.data.advice.thresholds import Criterion, Threshold, _between
from certified_unlearning.errors import DataError, ParameterError

SCORES = {"balanced": balanced_accuracy_score, "f1": f1_score}


def drawn(seed: int, n: int, ties: bool) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    members = draw.random(n) < 0.2
    members[:2] = [True, False]
    probabilities = 1 / (1 + np.exp(-draw.normal(size=n) - members))
    return np.ceil(probabilities * 8) / 9 if ties else probabilities, members


def every_answer(probabilities: np.ndarray) -> list[np.ndarray]:
    return [probabilities >= each for each in np.unique(probabilities)]


@given(st.integers(0, 999), st.integers(4, 60), st.booleans(), st.sampled_from([*SCORES]))
def test_no_other_threshold_is_better(seed: int, n: int, ties: bool, name: str) -> None:
    probabilities, members = drawn(seed, n, ties)
    said = probabilities >= Criterion.read(name).choose(probabilities, members)
    best = max(SCORES[name](members, each) for each in every_answer(probabilities))
    assert SCORES[name](members, said) == pytest.approx(best)


@given(st.integers(0, 999), st.integers(4, 60), st.booleans(), st.sampled_from([0.1, 0.5, 0.8, 1.0]))
def test_so_much_recall_is_had_with_as_few_predictions_as_can_be(seed: int, n: int, ties: bool, least: float) -> None:
    probabilities, members = drawn(seed, n, ties)
    said = probabilities >= Criterion.read(f"recall={least}").choose(probabilities, members)
    assert recall_score(members, said) >= least
    fewer = [each for each in every_answer(probabilities) if each.sum() < said.sum()]
    assert all(recall_score(members, each) < least for each in fewer)


@given(st.integers(0, 999), st.integers(4, 60), st.booleans(), st.sampled_from([0.1, 0.3, 0.9]))
def test_so_much_precision_is_had_with_as_many_predictions_as_can_be(
    seed: int, n: int, ties: bool, least: float
) -> None:
    probabilities, members = drawn(seed, n, ties)
    answers = every_answer(probabilities)
    if not any(precision_score(members, each) >= least for each in answers):
        with pytest.raises(
            DataError, match=rf"no threshold has precision {least} on these records: the largest is 0\."
        ):
            Criterion.read(f"precision={least}").choose(probabilities, members)
        return
    said = probabilities >= Criterion.read(f"precision={least}").choose(probabilities, members)
    assert precision_score(members, said) >= least
    more = [each for each in answers if each.sum() > said.sum()]
    assert all(precision_score(members, each) < least for each in more)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_threshold_lies_between_two_probabilities(one: float, other: float) -> None:
    below, at = sorted((one, other))
    if below == at:
        return
    found = _between(below, at)
    assert 0 < found < 1
    assert below < found <= at or at == 1.0


def test_it_has_few_digits_and_is_nobodys_own_probability() -> None:
    assert _between(0.041234567, 0.049999123) == 0.05 or _between(0.041234567, 0.049999123) == 0.046
    probabilities, members = drawn(3, 500, ties=False)
    assert Criterion.read("f1").choose(probabilities, members) not in probabilities


def test_of_either_class_it_predicts_what_it_says() -> None:
    probabilities = np.array([[0.75, 0.25], [0.5, 0.5], [0.2, 0.8]])
    assert Threshold(0.5, 1, "b").predicted(probabilities).tolist() == [0, 1, 1]
    assert Threshold(0.5, 0, "a").predicted(probabilities).tolist() == [0, 0, 1]
    assert Threshold(0.2, 1, "b").predicted(probabilities).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("best", "choose_threshold must be balanced, f1, recall=NUMBER or precision=NUMBER, got 'best'"),
        ("recall", "choose_threshold must be balanced, f1, recall=NUMBER or precision=NUMBER, got 'recall'"),
        ("f1=0.3", "choose_threshold must be balanced, f1, recall=NUMBER or precision=NUMBER, got 'f1=0.3'"),
        ("recall=0", "is 'recall=0', but recall must be a number above 0 and at most 1, such as recall=0.8"),
        ("recall=80%", "is 'recall=80%', but recall must be a number above 0 and at most 1"),
        ("precision=nan", "is 'precision=nan', but precision must be a number above 0 and at most 1"),
        ("precision=1.2", "is 'precision=1.2', but precision must be a number above 0 and at most 1"),
    ],
)
def test_a_criterion_that_is_none_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        Criterion.read(text)


@pytest.mark.parametrize("member", [True, False])
@pytest.mark.parametrize("criterion", ["balanced", "f1", "recall=0.5", "precision=0.5"])
def test_records_of_one_class_say_nothing(criterion: str, member: bool) -> None:
    with pytest.raises(
        DataError, match="all records are of one class, but a threshold can be chosen only on records of both"
    ):
        Criterion.read(criterion).choose(np.array([0.2, 0.4]), np.array([member, member]))
