"""What docs/guarantees.md says of extra_delta is what certificates state."""

import math
import re

import pytest

from certified_unlearning.accounting import Problem, Schedule
from certified_unlearning.accounting.core.rounding import FAILURE
from certified_unlearning.accounting.guarantees import langevin_guarantee
from certified_unlearning.accounting.shifted.arithmetic import computed, failure_delta
from certified_unlearning.errors import AssumptionError
from tests.docs.building import ROOT

TEXT = " ".join((ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8").split())
SAID = re.search(
    r"With `shifted`, this part is at most (\S+) · \(d \+ 4\) · \(1 \+ e\^epsilon\) for each step, including the steps "
    r"of learning: (\S+) after (\S+) steps with d = (\d+) and epsilon = (\d+)\.",
    TEXT,
)
assert SAID is not None, "the sentence that is held against the code is gone"
A_STEP, EXAMPLE, STEPS, DIMENSION, EPSILON = (float(number.replace(",", "")) for number in SAID.groups())
DELTA, FEATURES, LEARNING, UNLEARNING = 1e-6, 50, 1000, 20


def stated_at(sigma: float, accountant: str = "shifted") -> tuple[float, float]:
    """Return epsilon and extra_delta of one request of one record of ten thousand."""
    exact = Problem(
        n=10_000, strong_convexity=0.01, smoothness=0.26, lipschitz=1, step_size=1 / 0.26, adjacency="zero-out"
    )
    problem = computed(exact, features=FEATURES, classes=2, dtype="float64")
    schedule = Schedule(sigma=sigma, records_per_request=1, steps=(UNLEARNING,), learning_steps=LEARNING)
    said = langevin_guarantee(problem, schedule, delta=DELTA, accountant=accountant, dimension=FEATURES, start=0.0)
    return said.epsilon, said.extra_delta


def test_the_share_of_a_step_is_rounded_up():
    assert FAILURE <= A_STEP < 1.01 * FAILURE


def test_the_example_is_what_the_code_gives():
    problem = Problem(n=100, strong_convexity=0.01, smoothness=0.26, lipschitz=1, step_size=1)
    problem = computed(problem, features=int(DIMENSION), classes=2, dtype="float64")
    found = failure_delta(problem, steps=STEPS, epsilon=EPSILON)
    assert found <= EXAMPLE < 1.05 * found


@pytest.mark.parametrize("sigma", [0.1, 0.01, 0.001, 3e-4])
def test_certificates_state_no_more_than_the_document_says_and_nearly_as_much(sigma: float):
    epsilon, extra = stated_at(sigma)
    bound = A_STEP * (FEATURES + 4) * (1 + math.exp(epsilon)) * (LEARNING + UNLEARNING)
    assert 0.99 * bound < extra <= bound
    assert extra > 1e-200, "as was said before"


def test_no_certificate_states_more_than_delta():
    """The least noise that is certified here, to a hundred-thousandth: there extra_delta is nearly delta."""
    assert "no certificate states more than delta" in TEXT
    refused, certified = 1e-5, 0.01
    with pytest.raises(AssumptionError, match="would be added to delta"):
        stated_at(refused)
    while certified > refused * (1 + 1e-5):
        middle = math.sqrt(refused * certified)
        try:
            stated_at(middle)
        except AssumptionError:
            refused = middle
        else:
            certified = middle
    assert 0.9 * DELTA < stated_at(certified)[1] <= DELTA
