"""Group privacy: the published numbers, and that a group never gets more than it was promised."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.core.groups import GroupBudget, group_guarantee
from certified_unlearning.errors import ParameterError


def test_the_published_numbers() -> None:
    budget = GroupBudget(rho=0.25, epsilon=1, delta=1e-6)
    assert budget.edits == 4
    assert budget.learner_epsilon == 0.25
    assert budget.learner_delta == pytest.approx(1.18092e-7, rel=5e-6)


@given(st.floats(1e-3, 1), st.floats(1e-3, 10), st.floats(1e-12, 0.5))
def test_every_number_of_edits_up_to_the_group_keeps_to_epsilon_and_delta(
    rho: float, epsilon: float, delta: float
) -> None:
    budget = GroupBudget(rho=rho, epsilon=epsilon, delta=delta)
    for edits in (1, budget.edits // 2 + 1, budget.edits):
        reached = group_guarantee(budget.learner_epsilon, budget.learner_delta, edits=min(edits, budget.edits))
        assert reached[0] <= epsilon * (1 + 1e-12)
        assert reached[1] <= delta * (1 + 1e-12)
    assert budget.edits * Fraction(rho) <= 1 < (budget.edits + 1) * Fraction(rho)
    assert group_guarantee(budget.learner_epsilon, budget.learner_delta, edits=budget.edits + 1)[1] > delta


def test_it_is_what_a_chain_of_neighbours_adds_up_to() -> None:
    """One edit after the other: deltas grow by e^epsilon, and their sum is below the closed form."""
    epsilon, delta, chained = 0.3, 1e-5, 0.0
    for edits in range(1, 8):
        chained = chained * math.exp(epsilon) + delta
        assert chained <= group_guarantee(epsilon, delta, edits=edits)[1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rho": 0.0}, r"rho must be a finite number above 0, got 0\.0"),
        ({"rho": 1.5}, r"rho must be at most 1 \(a recomputation for every edit\), got 1\.5"),
        ({"epsilon": -1.0}, r"epsilon must be a finite number above 0, got -1\.0"),
        ({"delta": 1.0}, r"delta must lie strictly between 0 and 1, got 1\.0"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        GroupBudget(**{"rho": 0.5, "epsilon": 1.0, "delta": 1e-5, **wrong})
