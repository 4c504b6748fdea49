import dataclasses
import math
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.descent import published as descent_to_delete
from certified_unlearning.accounting.descent.shifted import published_state_curve, secret_state_mu, secret_state_sigma
from certified_unlearning.errors import AssumptionError, ParameterError
from tests.accounting.paper_settings import MNIST, for_descent

DESCENT = for_descent(MNIST)
# gamma = (L - m) / (L + m) = 3/5.
SMALL = for_descent(Problem(100, 0.5, 2.0, 3.0, 1.0))
GAMMA = 0.6
DISTANCE = 2 * 3.0 / (0.5 * 100)


def assert_printed(value, printed):
    """Compare with a decimal number up to one unit of its last digit."""
    unit = Decimal(1).scaleb(Decimal(printed).as_tuple().exponent)
    assert abs(Decimal(value) - Decimal(printed)) <= unit


# --- Secret state. -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "request_number", "printed"),
    [
        (1, math.inf, "0.4695080091"),
        (1, 3, "0.1127427677"),
        (1, 1, "0.04106849779"),
        (5, math.inf, "0.07754141787"),
        (5, 3, "0.05789735159"),
        (5, 1, "0.02847704085"),
    ],
)
def test_mnist_needs_the_published_noise(steps, request_number, printed):
    # The mu that gives epsilon = 1 at delta = 1/n.
    sigma = secret_state_sigma(DESCENT, mu=0.309534497407750, steps=steps, request=request_number)
    assert_printed(sigma, printed)


@pytest.mark.parametrize("steps", [1, 5])
def test_theorem_n_1_asks_for_more_than_five_times_the_noise(steps):
    published = descent_to_delete.secret_state_sigma(DESCENT, epsilon=1, delta=1 / DESCENT.n, steps=steps)
    assert_printed(published, {1: "2.584710041", 5: "0.4268768103"}[steps])
    assert published > 5 * secret_state_sigma(DESCENT, mu=0.309534497407750, steps=steps, request=math.inf)


def noiseless_runs(requests, records, steps, learning_steps):
    """Follow plain gradient descent on quadratics of curvature m through a stream, and on what it leaves at last.

    The gradients of the records to be erased are M, those of their replacements -M.
    """
    m, eta, n, top = SMALL.strong_convexity, SMALL.step_size, SMALL.n, SMALL.lipschitz
    run = retrained = 0.0
    for number, count in enumerate([learning_steps, *[steps] * requests]):
        left = records * (requests - number)
        for _ in range(count):
            run -= eta * (m * run - top * (left - records * number) / n)
            retrained -= eta * (m * retrained + top * records * requests / n)
    optimum = -top * records * requests / (n * m)
    return run, retrained, optimum


@pytest.mark.parametrize(("requests", "records", "steps"), [(1, 1, 1), (1, 4, 3), (2, 1, 2), (5, 3, 1), (40, 1, 2)])
@pytest.mark.parametrize("learning_steps", [0, 1, 10, 400])
def test_on_quadratics_the_distance_to_retraining_for_as_many_steps_is_exact(requests, records, steps, learning_steps):
    run, retrained, _ = noiseless_runs(requests, records, steps, learning_steps)
    value = secret_state_mu(
        SMALL, sigma=0.7, steps=steps, records_per_request=records, request=requests, learning_steps=learning_steps
    )
    assert value == pytest.approx((run - retrained) / 0.7, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("request_number", "steps"), [(1, 1), (1, 5), (3, 2), (10, 1)])
def test_converged_learning_has_the_closed_form(request_number, steps):
    decay = GAMMA**steps
    exact = DISTANCE / 0.7 * decay * (1 - decay**request_number) / (1 - decay)
    assert secret_state_mu(SMALL, sigma=0.7, steps=steps, request=request_number) == pytest.approx(exact, rel=1e-13)


def test_the_endless_stream_is_the_limit_of_many_requests():
    for steps in (1, 4):
        exact = DISTANCE / 0.7 * GAMMA**steps / (1 - GAMMA**steps)
        endless = secret_state_mu(SMALL, sigma=0.7, steps=steps, request=math.inf)
        assert endless == pytest.approx(exact, rel=1e-13)
        assert secret_state_mu(SMALL, sigma=0.7, steps=steps, request=99) == pytest.approx(endless, rel=1e-12)
        assert secret_state_mu(SMALL, sigma=0.7, steps=steps, request=3) < endless * (1 - 1e-6)


def test_several_records_a_request_add_up():
    for request_number in (2, math.inf):
        alone = secret_state_mu(SMALL, sigma=1, steps=2, request=request_number)
        together = secret_state_mu(SMALL, sigma=1, steps=2, request=request_number, records_per_request=4)
        assert together == pytest.approx(4 * alone, rel=1e-13)


def test_the_adjacency_decides_the_distance():
    zero_out, remove = (dataclasses.replace(SMALL, adjacency=name) for name in ("zero-out", "remove"))
    replaced = secret_state_mu(SMALL, sigma=1, steps=2, request=1)
    assert secret_state_mu(zero_out, sigma=1, steps=2) == pytest.approx(replaced / 2, rel=1e-14)
    assert secret_state_mu(zero_out, sigma=1, steps=2, request=math.inf) == pytest.approx(
        secret_state_mu(SMALL, sigma=1, steps=2, request=math.inf) / 2, rel=1e-14
    )
    assert secret_state_mu(remove, sigma=1, steps=2) == pytest.approx(replaced, rel=1e-14)
    # The second removal leaves a smaller mean: optima 6 / 100 and then 6 / 99 apart, over m = 0.5.
    exact = GAMMA**4 * (2 * 0.12 - 0.06 / 0.5 * 100 / 99) + GAMMA**2 * 0.06 / 0.5 * 100 / 99
    assert secret_state_mu(remove, sigma=1, steps=2, request=2) == pytest.approx(exact, rel=1e-13)


@given(
    requests=st.integers(1, 6), records=st.integers(1, 3), steps=st.integers(1, 4), learning_steps=st.integers(0, 30)
)
def test_against_retraining_of_its_own_the_ball_bounds_both_rests(requests, records, steps, learning_steps):
    run, _, optimum = noiseless_runs(requests, records, steps, learning_steps)
    asked = {"sigma": 0.7, "steps": steps, "records_per_request": records, "request": requests}
    radius = 5.0
    value = secret_state_mu(SMALL, **asked, learning_steps=learning_steps, radius=radius)
    converged = secret_state_mu(SMALL, **asked)
    rest = 2 * radius * (GAMMA**learning_steps + GAMMA ** (learning_steps + requests * steps))
    assert value == pytest.approx(converged + rest / 0.7, rel=1e-12)
    # Retraining may start anywhere in the ball.
    for start in (-radius, radius):
        retrained = optimum + GAMMA**learning_steps * (start - optimum)
        assert abs(run - retrained) / 0.7 <= value * (1 + 1e-12)


def test_against_retraining_of_its_own_the_first_request_of_an_endless_stream_is_the_worst():
    asked = {"sigma": 0.7, "steps": 2, "learning_steps": 9}
    endless = secret_state_mu(SMALL, **asked, request=math.inf, radius=5.0)
    rest = 2 * 5 * (GAMMA**9 + GAMMA**11) / 0.7
    assert endless == pytest.approx(secret_state_mu(SMALL, sigma=0.7, steps=2, request=math.inf) + rest, rel=1e-13)
    assert all(secret_state_mu(SMALL, **asked, request=number, radius=5.0) < endless for number in range(1, 60))


def test_converged_learning_needs_no_ball():
    assert secret_state_mu(SMALL, sigma=1, steps=3, radius=1e9) == secret_state_mu(SMALL, sigma=1, steps=3)


@pytest.mark.parametrize("request_number", [1, 4, math.inf])
@pytest.mark.parametrize("radius", [None, 2.0])
def test_sigma_and_mu_are_inverse(request_number, radius):
    asked = {"steps": 3, "records_per_request": 2, "request": request_number, "learning_steps": 11, "radius": radius}
    mu = secret_state_mu(SMALL, sigma=0.037, **asked)
    assert secret_state_sigma(SMALL, mu=mu, **asked) == pytest.approx(0.037, rel=1e-13)


def test_a_mu_that_underflows_is_not_called_perfect():
    for request_number in (1, math.inf):
        assert secret_state_mu(SMALL, sigma=1, steps=10**4, request=request_number) == sys.float_info.min


def test_where_m_is_l_one_step_forgets_everything():
    round_bowl = for_descent(Problem(100, 2.0, 2.0, 3.0, 1.0))
    assert secret_state_mu(round_bowl, sigma=1, steps=1) == 0
    assert secret_state_mu(round_bowl, sigma=1, steps=1, request=math.inf) == 0


# --- Published state. ----------------------------------------------------------------------------------------


def fed_back(steps_per_request, records, learning_steps, sigma):
    """Follow the means and the variance of two runs that are noised and continued at the same times."""
    m, eta, n, top = SMALL.strong_convexity, SMALL.step_size, SMALL.n, SMALL.lipschitz
    requests = len(steps_per_request)
    gap = variance = 0.0
    for number, count in enumerate([learning_steps, *steps_per_request]):
        for _ in range(count):
            gap = (1 - eta * m) * gap + eta * 2 * top * records * (requests - number) / n
            variance = (1 - eta * m) ** 2 * variance
        variance += sigma**2
    return gap / math.sqrt(variance)


@pytest.mark.parametrize("steps_per_request", [[1], [4], [2, 1, 3], [0, 2], [1] * 30])
@pytest.mark.parametrize(("learning_steps", "records"), [(5, 2), (300, 1)])
def test_on_quadratics_feeding_the_noise_back_is_accounted_for_exactly(steps_per_request, learning_steps, records):
    asked = {"sigma": 0.4, "records_per_request": records, "learning_steps": learning_steps}
    value = published_state_curve(SMALL, steps_per_request=steps_per_request, **asked).mu
    assert value == pytest.approx(fed_back(steps_per_request, records, learning_steps, 0.4), rel=1e-12)


def test_without_learning_the_first_noise_hides_nothing_and_quadratics_are_not_the_worst_case():
    value = published_state_curve(SMALL, sigma=0.4, steps_per_request=[2, 1, 3], learning_steps=0).mu
    assert value > 1.001 * fed_back([2, 1, 3], 1, 0, 0.4)
    # Only the noise of the three requests counts: 2 records differ for 2 steps, 1 for 1 step, none for 3.
    gap = (0.048 * 2 * (1 + GAMMA) * GAMMA + 0.048) * GAMMA**3
    assert value == pytest.approx(gap / (0.4 * math.sqrt(1 + GAMMA**6 + GAMMA**8)), rel=1e-12)


def test_infinite_learning_is_the_limit_of_long_learning():
    asked = {"sigma": 0.4, "steps_per_request": [2, 3], "records_per_request": 2}
    assert published_state_curve(SMALL, **asked).mu == pytest.approx(fed_back([2, 3], 2, 300, 0.4), rel=1e-12)


def test_a_published_state_hides_more_than_a_secret_one_with_the_same_noise():
    # Noise that is fed back adds up; the bound then compares with a retrained model that is noised as often.
    published = published_state_curve(SMALL, sigma=0.4, steps_per_request=[2, 2, 2]).mu
    assert published < secret_state_mu(SMALL, sigma=0.4, steps=2, request=3)


# --- What makes no sense. ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sigma": 0.0}, "sigma must be a finite number above 0, got 0"),
        ({"steps": 0}, "steps must be a whole number, at least 1, got 0"),
        ({"request": 0}, "request must be a whole number, at least 1, got 0"),
        ({"request": 1.5}, "request must be a whole number, at least 1, got 1.5"),
        ({"records_per_request": 0}, "records_per_request must be a whole number, at least 1, got 0"),
        ({"records_per_request": 51, "request": 2}, "records must be at most n = 100, got 102"),
        ({"learning_steps": -1}, "learning_steps must be a whole number, at least 0, got -1"),
        ({"radius": 0.0}, "radius must be a finite number above 0, got 0"),
        ({"radius": 1.0, "learning_steps": -1}, "steps must be a whole number, at least 0, got -1"),
    ],
)
def test_a_senseless_secret_state_is_refused(wrong, message):
    with pytest.raises(ParameterError, match=message):
        secret_state_mu(SMALL, **{"sigma": 1.0, "steps": 2} | wrong)


def test_a_senseless_mu_is_refused():
    with pytest.raises(ParameterError, match="mu must be a finite number above 0, got 0"):
        secret_state_sigma(SMALL, mu=0.0, steps=2)


def test_a_senseless_published_state_is_refused():
    with pytest.raises(ParameterError, match="steps must hold at least one number"):
        published_state_curve(SMALL, sigma=1.0, steps_per_request=[])
    with pytest.raises(ParameterError, match="sigma must be a finite number above 0"):
        published_state_curve(SMALL, sigma=0.0, steps_per_request=[1])


def test_removals_without_end_are_refused():
    remove = dataclasses.replace(SMALL, adjacency="remove")
    with pytest.raises(AssumptionError, match="an endless stream must not run out of records: adjacency"):
        secret_state_mu(remove, sigma=1, steps=2, request=math.inf)


@pytest.mark.parametrize(
    "compute",
    [
        lambda problem: secret_state_mu(problem, sigma=1.0, steps=1),
        lambda problem: secret_state_sigma(problem, mu=1.0, steps=1),
        lambda problem: published_state_curve(problem, sigma=1.0, steps_per_request=[1]),
    ],
)
def test_the_step_size_must_be_the_one_of_descent_to_delete(compute):
    compute(dataclasses.replace(SMALL, step_size=0.8 * (1 + 1e-13)))
    for step_size in (0.5, 0.8 * (1 + 1e-11), 0.8 * (1 - 1e-11)):
        with pytest.raises(AssumptionError, match=r"step_size = 2 / \(smoothness \+ strong_convexity\) = 0.8, got"):
            compute(dataclasses.replace(SMALL, step_size=step_size))
    with pytest.raises(AssumptionError, match="strong_convexity must be above 0, got 0"):
        compute(for_descent(Problem(100, 0, 2.0, 3.0, 1.0)))
