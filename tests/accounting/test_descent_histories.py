"""Descent-to-Delete after requests of unequal sizes and unequal numbers of steps."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.descent.shifted import (
    published_state_curve,
    secret_state_history_mu,
    secret_state_mu,
)
from certified_unlearning.errors import AssumptionError
from tests.accounting.paper_settings import for_descent
from tests.accounting.quadratic_streams import mean_gradient_gaps

# gamma = (L - m) / (L + m) = 3/5.
SMALL = for_descent(Problem(100, 0.5, 2.0, 3.0, 1.0))
GAMMA = 0.6
ADJACENCIES = ("replace", "zero-out", "remove")
REQUESTS = st.lists(st.tuples(st.integers(1, 15), st.integers(0, 5)), min_size=1, max_size=6)


def noiseless_gap(problem, records, steps, learning_steps):
    """Follow plain gradient descent on actual data, minus the run on what all requests leave."""
    gap = 0.0
    for difference, count in zip(mean_gradient_gaps(problem, records), [learning_steps, *steps], strict=True):
        for _ in range(count):
            gap = (1 - problem.step_size * problem.strong_convexity) * gap + problem.step_size * difference
    return gap


@given(requests=REQUESTS, adjacency=st.sampled_from(ADJACENCIES), learning_steps=st.sampled_from([0, 1, 7, 300]))
def test_on_quadratics_the_distance_after_any_history_is_exact(requests, adjacency, learning_steps):
    records, steps = zip(*requests, strict=True)
    problem = dataclasses.replace(SMALL, adjacency=adjacency)
    asked = {"sigma": 0.7, "records_per_request": records, "steps_per_request": steps}
    exact = noiseless_gap(problem, records, steps, learning_steps) / 0.7
    value = secret_state_history_mu(problem, **asked, learning_steps=learning_steps)
    assert value == pytest.approx(exact, rel=1e-12, abs=0)
    if learning_steps == 300:
        assert secret_state_history_mu(problem, **asked) == pytest.approx(exact, rel=1e-12)


@given(requests=REQUESTS, adjacency=st.sampled_from(["replace", "zero-out"]))
def test_after_converged_learning_the_distance_is_the_recursion_over_requests(requests, adjacency):
    problem = dataclasses.replace(SMALL, adjacency=adjacency)
    distance = 0.0
    for size, count in requests:
        distance = GAMMA**count * (distance + problem.sensitivity(size) / problem.strong_convexity)
    records, steps = zip(*requests, strict=True)
    value = secret_state_history_mu(problem, sigma=0.7, records_per_request=records, steps_per_request=steps)
    assert value == pytest.approx(distance / 0.7, rel=1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("learning_steps", [0, 9, math.inf])
def test_equal_requests_give_the_very_same_value(adjacency, learning_steps):
    problem = dataclasses.replace(SMALL, adjacency=adjacency)
    known = secret_state_mu(
        problem, sigma=0.7, steps=2, records_per_request=3, request=5, learning_steps=learning_steps
    )
    for sizes in (3, [3] * 5):
        history = {"records_per_request": sizes, "steps_per_request": [2] * 5, "learning_steps": learning_steps}
        assert secret_state_history_mu(problem, sigma=0.7, **history) == known
    published = [
        published_state_curve(problem, sigma=0.7, steps_per_request=[2, 1], records_per_request=sizes)
        for sizes in (3, [3, 3])
    ]
    assert published[0] == published[1]


@pytest.mark.parametrize(
    "wrong", [lambda sizes: sizes[::-1], lambda sizes: [sizes[0]] * len(sizes)], ids=["reverse order", "first for all"]
)
def test_sizes_given_to_the_wrong_requests_fall_below_the_truth(wrong):
    records, steps = [1, 15], [6, 1]
    exact = noiseless_gap(SMALL, records, steps, 300) / 0.7
    value = secret_state_history_mu(SMALL, sigma=0.7, records_per_request=wrong(records), steps_per_request=steps)
    assert value < 0.3 * exact


def fed_back(problem, records, steps, learning_steps, sigma):
    """Follow the means and the variance of two runs that are noised and continued at the same times."""
    gap = variance = 0.0
    for difference, count in zip(mean_gradient_gaps(problem, records), [learning_steps, *steps], strict=True):
        for _ in range(count):
            gap = GAMMA * gap + problem.step_size * difference
            variance = GAMMA**2 * variance
        variance += sigma**2
    return gap / math.sqrt(variance)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("records", "steps"), [([1, 9, 2], [3, 1, 2]), ([9, 1], [1, 1]), ([4], [2])])
def test_on_quadratics_a_published_state_is_exact_for_sizes_of_each_request(adjacency, records, steps):
    problem = dataclasses.replace(SMALL, adjacency=adjacency)
    curve = published_state_curve(
        problem, sigma=0.4, steps_per_request=steps, records_per_request=records, learning_steps=40
    )
    assert curve.mu == pytest.approx(fed_back(problem, records, steps, 40, 0.4), rel=1e-12)


# --- The next request. ---------------------------------------------------------------------------------------


def test_the_step_size_must_be_the_one_of_descent_to_delete():
    another = dataclasses.replace(SMALL, step_size=0.5)
    with pytest.raises(
        AssumptionError, match=r"need step_size = 2 / \(smoothness \+ strong_convexity\) = 0\.8, got 0\.5"
    ):
        secret_state_history_mu(another, sigma=0.7, records_per_request=[1], steps_per_request=[1])
