import dataclasses
import math
import sys
from decimal import Decimal

import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf, sqrt, workdps

from certified_unlearning.accounting.core.curves import GaussianCurve, Schedule
from certified_unlearning.accounting.core.pooling import NoisyPhase, pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.shifted.interpolation import (
    contraction_gap,
    curve,
    initial_curve,
    joint_curve,
    phase,
    schedule_phases,
)
from certified_unlearning.errors import AssumptionError, ParameterError
from tests.accounting.paper_settings import MNIST
from tests.accounting.quadratic_streams import mean_gradient_gaps

PROBLEM = Problem(1000, 0.05, 0.8, 1, 1 / 0.8)
ZERO_OUT = dataclasses.replace(PROBLEM, adjacency="zero-out")
REMOVE = dataclasses.replace(PROBLEM, adjacency="remove")
CONVEX = Problem(1000, 0, 0.8, 1, 1)


def schedule(*steps, records=3, sigma=0.1, learning_steps=50):
    return Schedule(sigma=sigma, records_per_request=records, steps=steps, learning_steps=learning_steps)


def noisy(steps, *, records=3, step_size=PROBLEM.step_size):
    return phase(dataclasses.replace(PROBLEM, step_size=step_size), sigma=0.1, records=records, steps=steps)


def convex(steps, *, records=1):
    return phase(CONVEX, sigma=0.05, records=records, steps=steps)


def assert_printed(value, printed):
    """Compare with a decimal number up to one unit of its last digit."""
    unit = Decimal(1).scaleb(Decimal(printed).as_tuple().exponent)
    assert abs(Decimal(value) - Decimal(printed)) <= unit


def closed_form(phases, *, starting_distance=0.0):
    """The sheet's closed form, step by step: too small where its condition does not hold."""
    signal, variance = starting_distance, 0.0
    for part in phases:
        for _ in range(part.steps):
            signal = (1 - part.contraction_gap) * signal + part.sensitivity
            variance = (1 - part.contraction_gap) ** 2 * variance + part.noise_std**2
    return signal / math.sqrt(variance)


# --- Test vectors (shifted-interpolation, sections 4 and 7). -------------------------------------------------

NOISE_BETWEEN = [NoisyPhase(1, 0.1, 1, 1), NoisyPhase(2, 0.1, 0, 1), NoisyPhase(1, 0.1, 1, 1), NoisyPhase(1, 0.1, 0, 1)]
LESS_NOISE_AT_LAST = [NoisyPhase(1, 0, 1, math.sqrt(2)), NoisyPhase(1, 0, 1, 1)]
DIFFERING_AT_LAST = [noisy(20, records=0), noisy(10)]
FALLING_STEP_SIZES = [noisy(1, records=3 * (step < 20), step_size=1.25 / (1 + step / 10)) for step in range(25)]
STREAM = schedule_phases(PROBLEM, schedule(5, 4, 6, records=2))
LESS_SIGMA = STREAM[:2] + [dataclasses.replace(part, noise_std=part.noise_std / 2) for part in STREAM[2:]]


@pytest.mark.parametrize(
    ("problem", "asked", "mu", "epsilon"),
    [
        (PROBLEM, schedule(7), "0.161482659155745", "0.574346392502"),
        (PROBLEM, schedule(7, learning_steps=math.inf), "0.168101287897072", "0.600086373514"),
        (ZERO_OUT, schedule(7), "0.0807413295778723", "0.269860737159"),
        (dataclasses.replace(PROBLEM, step_size=2 / 0.85), schedule(7), "0.108184715895658", "0.371148767907"),
        (dataclasses.replace(PROBLEM, step_size=2.45), schedule(7), "0.305401196132877", "1.15422432232"),
        (PROBLEM, schedule(5, records=2), "0.122499102488213", "0.424954148918"),
        (PROBLEM, schedule(5, 4, records=2), "0.226744617869280", "0.832333692447"),
        (PROBLEM, schedule(5, 4, 6, records=2), "0.270822717563907", "1.01136132794"),
        (CONVEX, schedule(0, records=1, sigma=0.05, learning_steps=400), "0.565685424949238", "2.28838656465"),
        (CONVEX, schedule(50, records=1, sigma=0.05, learning_steps=400), "0.533333333333333", "2.14222138738"),
    ],
)
def test_the_last_model_of_a_schedule_has_the_published_mu_and_epsilon(problem, asked, mu, epsilon):
    value = curve(problem, asked).mu
    assert_printed(value, mu)
    assert_printed(get_epsilon_gaussian(1 / value, 1e-5, tol=1e-14), epsilon)


@pytest.mark.parametrize(
    ("value", "mu", "epsilon"),
    [
        (pooled_mu(FALLING_STEP_SIZES), "0.138135090114725", "0.484398110696"),
        (pooled_mu(LESS_SIGMA), "0.400978842444965", "1.55920028014"),
        (pooled_mu(DIFFERING_AT_LAST), "0.147505200203415", "0.520333146949"),
        (pooled_mu(LESS_NOISE_AT_LAST), "1.22474487139159", "5.54483092266"),
        (pooled_mu(NOISE_BETWEEN), "0.844725646399881", "3.60428678807"),
        (pooled_mu(NOISE_BETWEEN, starting_distance=2), "1.47831357371214", "6.92970958671"),
        (
            joint_curve(PROBLEM, schedule(5, 4, 6, records=2), learned_published=True).mu,
            "0.530583078947314",
            "2.12986022439",
        ),
        (
            joint_curve(PROBLEM, schedule(5, 4, 6, records=2), learned_published=False).mu,
            "0.468920319228291",
            "1.85541405523",
        ),
    ],
)
def test_other_comparisons_have_the_published_mu_and_epsilon(value, mu, epsilon):
    assert_printed(value, mu)
    assert_printed(get_epsilon_gaussian(1 / value, 1e-5, tol=1e-14), epsilon)


@pytest.mark.parametrize(
    ("records", "steps", "mu"),
    [
        (1, 0, "0.0502448310076481"),
        (1, 1, "0.0479468350952051"),
        (100, 1, "4.79468350952051"),
        (100, 60, "0.302834056508942"),
    ],
)
def test_mu_on_mnist_is_the_published_one(records, steps, mu):
    asked = Schedule(sigma=0.03, records_per_request=records, steps=(steps,))
    assert_printed(curve(MNIST, asked).mu, mu)


def test_epsilon_on_mnist_is_the_published_one():
    mu = curve(MNIST, Schedule(sigma=0.03, records_per_request=100, steps=(1,))).mu
    assert_printed(get_epsilon_gaussian(1 / mu, 1 / 11982, tol=1e-14), "28.8086207658")


def test_forgetting_the_start_of_learning_on_mnist_is_the_published_one():
    learning = phase(MNIST, sigma=0.03, records=0, steps=394)
    assert_printed(pooled_mu([learning], starting_distance=28093.2827449472), "0.000988856661564")


def test_the_published_models_have_the_published_shares():
    shares = ["0.507645517113", "0.140837208952", "0.0630817976489"]
    for part, share in zip(STREAM, shares, strict=False):
        assert_printed(pooled_mu([part]), share)
    assert pooled_mu(STREAM[3:]) == 0


@pytest.mark.parametrize(
    ("phases", "too_small"),
    [
        (DIFFERING_AT_LAST, "0.126918604604"),
        (LESS_NOISE_AT_LAST, "1.15470053837925"),
        (NOISE_BETWEEN, "0.840459084883694"),
    ],
)
def test_where_its_condition_fails_the_closed_form_is_too_small(phases, too_small):
    assert_printed(closed_form(phases), too_small)
    assert pooled_mu(phases) > closed_form(phases) * 1.005


def test_a_map_that_halves_distances_really_gives_the_pooled_value_where_the_closed_form_is_too_small():
    # The second map x -> x/2 is 1-Lipschitz too, as the phases ask.
    mean, variance = 1 / 2 + 1, 2 / 4 + 1
    assert mean / math.sqrt(variance) == pytest.approx(pooled_mu(LESS_NOISE_AT_LAST), rel=1e-15)


def test_a_starting_distance_may_bring_all_back_into_one_block():
    assert pooled_mu(NOISE_BETWEEN, starting_distance=2) == pytest.approx(
        closed_form(NOISE_BETWEEN, starting_distance=2), rel=1e-14
    )


# --- The pooled value at its edges. --------------------------------------------------------------------------


def test_without_steps_only_equal_starts_are_alike():
    assert pooled_mu([]) == 0
    assert pooled_mu([], starting_distance=1e-300) == math.inf
    assert pooled_mu([NoisyPhase(0, 0.1, 1, 1)], starting_distance=1e-300) == math.inf


def test_phases_without_steps_change_nothing():
    empty = NoisyPhase(0, 0.3, 5, 7)
    spread = [empty, NOISE_BETWEEN[0], empty, empty, *NOISE_BETWEEN[1:], empty]
    unchanged = pooled_mu(NOISE_BETWEEN, starting_distance=0.7)
    assert pooled_mu(spread, starting_distance=0.7) == pytest.approx(unchanged, rel=1e-15)


def test_a_phase_may_be_cut_anywhere():
    cut = [noisy(1), noisy(13), noisy(36), noisy(3, records=0), noisy(4, records=0)]
    assert pooled_mu(cut) == pytest.approx(curve(PROBLEM, schedule(7)).mu, rel=1e-14)


def test_a_difference_that_meets_no_noise_is_not_hidden():
    assert pooled_mu([NoisyPhase(3, 0.1, 1, 1), NoisyPhase(1, 0.1, 1e-300, 0)]) == math.inf
    assert pooled_mu([NoisyPhase(3, 0.1, 0, 0)], starting_distance=1e-300) == math.inf


def test_noiseless_steps_are_hidden_by_the_noise_after_them():
    # x = 3 -> 0.9^2 * 3 + 2 * (1 + 0.9) = 6.23, then noise of standard deviation 2.
    phases = [NoisyPhase(2, 0.1, 2, 0), NoisyPhase(1, 0, 0, 2)]
    assert pooled_mu(phases, starting_distance=3) == pytest.approx(6.23 / 2, rel=1e-15)


def test_noiseless_silent_steps_after_the_noise_change_nothing_however_many():
    learning = NoisyPhase(5, 0.1, 1, 1)
    for steps in (1, 10**6, 10**12):
        assert pooled_mu([learning, NoisyPhase(steps, 0.1, 0, 0)]) == pooled_mu([learning])


def test_noiseless_silent_steps_bring_the_runs_nearer_before_the_next_noise():
    waiting = [NoisyPhase(3, 0.1, 0, 0), NoisyPhase(0, 0.1, 0, 0), NoisyPhase(4, 0.2, 0, 0)]
    distance = 5 * 0.9**3 * 0.8**4
    assert pooled_mu([*waiting, NoisyPhase(1, 0, 0, 2)], starting_distance=5) == pytest.approx(distance / 2, rel=1e-14)
    # 3 of noise 1, then a rest of 3 * 0.9^3 * 0.8^4 hidden by both.
    distance, variance = 3 * 0.9**3 * 0.8**4 + 0.01, 0.9**6 * 0.8**8 + 4
    spread = pooled_mu([NoisyPhase(1, 0, 3, 1), *waiting, NoisyPhase(1, 0, 0.01, 2)])
    assert spread == pytest.approx(distance / math.sqrt(variance), rel=1e-14)


def test_noise_before_the_difference_hides_nothing():
    assert pooled_mu([NoisyPhase(100, 0, 0, 5), NoisyPhase(1, 0, 3, 1)]) == pytest.approx(3, rel=1e-15)


def test_noise_after_the_difference_hides_it():
    assert pooled_mu([NoisyPhase(1, 0, 3, 1), NoisyPhase(99, 0, 0, 1)]) == pytest.approx(0.3, rel=1e-14)


def test_a_step_that_forgets_everything_leaves_its_own_difference_only():
    assert pooled_mu([NoisyPhase(9, 0.1, 5, 1), NoisyPhase(1, 1, 0.5, 2)], starting_distance=9) == pytest.approx(
        0.25, rel=1e-15
    )
    assert pooled_mu([NoisyPhase(9, 0.1, 5, 1), NoisyPhase(1, 1, 0, 2)], starting_distance=9) == 0
    assert pooled_mu([NoisyPhase(7, 1, 0.5, 2)]) == pytest.approx(0.25, rel=1e-15)
    assert pooled_mu([NoisyPhase(9, 0.1, 5, 1), NoisyPhase(1, 1, 0, 0)], starting_distance=9) == 0


def test_an_infinite_phase_is_the_limit_of_long_ones():
    later = [NoisyPhase(5, 0.2, 0.3, 0.7), NoisyPhase(4, 0.05, 0, 1)]
    endless = pooled_mu([NoisyPhase(math.inf, 0.01, 1, 1), *later], starting_distance=1e9)
    assert endless == pytest.approx(pooled_mu([NoisyPhase(10**4, 0.01, 1, 1), *later]), rel=1e-14)


def test_stationarity_has_the_closed_value():
    # s / (1 - c) over tau / sqrt(1 - c^2).
    assert pooled_mu([NoisyPhase(math.inf, 0.25, 3, 2)]) == pytest.approx(
        3 / 0.25 * math.sqrt(1 - 0.75**2) / 2, rel=1e-15
    )


def test_values_below_the_least_normal_double_are_rounded_up_to_it():
    for steps in (10**5, 10**300):
        assert pooled_mu([NoisyPhase(10, 0.1, 1, 1), NoisyPhase(steps, 0.1, 0, 1)]) == sys.float_info.min
    just_above = pooled_mu([NoisyPhase(1, 0.5, 1, 1), NoisyPhase(1020, 0.5, 0, 1)])
    assert just_above == pytest.approx(0.5**1020 * math.sqrt(0.75), rel=3e-13)


def test_values_above_the_largest_double_are_infinite():
    assert pooled_mu([NoisyPhase(1, 0, 1e200, 1e-200)]) == math.inf
    assert pooled_mu([NoisyPhase(1, 0, 1e200, 1e-107)]) == pytest.approx(1e307, rel=1e-12)


def test_tiny_and_huge_units_change_nothing():
    phases = [NoisyPhase(7, 0.1, 1, 1), NoisyPhase(3, 0.3, 0, 2), NoisyPhase(2, 0.01, 0.5, 0.3)]
    for unit in (1e-200, 1e200):
        scaled = [
            dataclasses.replace(part, sensitivity=part.sensitivity * unit, noise_std=part.noise_std * unit)
            for part in phases
        ]
        assert pooled_mu(scaled) == pytest.approx(pooled_mu(phases), rel=1e-12)


def test_noise_too_small_to_count_counts_as_none():
    assert pooled_mu([NoisyPhase(1, 0, 1, 1e-200), NoisyPhase(1, 0, 0, 1)]) == pytest.approx(1, rel=1e-15)
    assert pooled_mu([NoisyPhase(1, 0, 0, 1), NoisyPhase(1, 0, 1, 1e-200)]) == math.inf


def test_an_early_difference_is_not_lost_before_a_long_wait():
    # After 10^6 steps nothing is left of the first difference; the second one counts alone.
    phases = [NoisyPhase(1, 0.1, 1e9, 1), NoisyPhase(10**6, 0.1, 0, 1), NoisyPhase(1, 0.1, 1, 1)]
    assert pooled_mu(phases) == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": -1}, "steps must be a whole number, at least 0, got -1"),
        ({"steps": 1.5}, "steps must be a whole number, at least 0, got 1.5"),
        ({"steps": math.nan}, "steps must be a whole number, at least 0, got nan"),
        ({"contraction_gap": -0.1}, "contraction_gap must lie between 0 and 1, got -0.1"),
        ({"contraction_gap": 1.1}, "contraction_gap must lie between 0 and 1, got 1.1"),
        ({"contraction_gap": math.nan}, "contraction_gap must lie between 0 and 1, got nan"),
        ({"sensitivity": -1.0}, "sensitivity must be a finite number, at least 0, got -1"),
        ({"sensitivity": math.inf}, "sensitivity must be a finite number, at least 0, got inf"),
        ({"noise_std": -1.0}, "noise_std must be a finite number, at least 0, got -1"),
    ],
)
def test_a_phase_refuses_what_makes_no_sense(wrong, message):
    with pytest.raises(ParameterError, match=message):
        NoisyPhase(**{"steps": 3, "contraction_gap": 0.5, "sensitivity": 1.0, "noise_std": 1.0} | wrong)


def test_an_infinite_phase_without_contraction_is_refused():
    with pytest.raises(AssumptionError, match="need a contraction: strong_convexity above 0 and step_size below"):
        NoisyPhase(math.inf, 0, 1, 1)


def test_a_starting_distance_below_zero_is_refused():
    with pytest.raises(ParameterError, match="starting_distance must be a finite number, at least 0, got -1"):
        pooled_mu([], starting_distance=-1)


# --- The contraction. ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step_size", "gap"),
    [(1e-9, 0.05e-9), (1.25, 0.0625), (2 / 0.85, 0.1 / 0.85), (2.4, 0.08), (2.45, 0.04), (2.5, 0.0)],
)
def test_a_step_contracts_by_its_slowest_direction(step_size, gap):
    found = contraction_gap(dataclasses.replace(PROBLEM, step_size=step_size))
    assert found == pytest.approx(gap, rel=1e-14, abs=0)
    factor = max(abs(1 - step_size * 0.05), abs(1 - step_size * 0.8))
    assert 1 - found == pytest.approx(factor, rel=1e-15)


def test_up_to_the_best_step_size_the_gap_is_exactly_the_product():
    slow = Problem(10, 1e-13, 1.0, 1, 2 / (1 + 1e-13))
    assert contraction_gap(slow) == slow.step_size * 1e-13
    assert contraction_gap(dataclasses.replace(PROBLEM, step_size=0.3)) == 0.3 * 0.05
    assert contraction_gap(dataclasses.replace(CONVEX, step_size=2.5)) == 0


def test_a_step_that_forgets_everything_has_gap_one():
    assert contraction_gap(Problem(10, 2.0, 2.0, 1, 0.5)) == 1
    # Rounding puts this product above 1.
    assert math.nextafter(1 / 5, 1) * 5 > 1
    assert contraction_gap(Problem(10, 5.0, 5.0, 1, math.nextafter(1 / 5, 1))) == 1


def test_a_step_size_next_to_the_limit_gives_no_gap_below_zero():
    limit = 2 / 0.49
    for step_size in (limit, math.nextafter(limit, math.inf)):
        assert 0 <= contraction_gap(Problem(10, 0.1, 0.49, 1, step_size)) <= 1e-15


def test_a_step_size_above_the_limit_is_refused():
    too_long = dataclasses.replace(PROBLEM, step_size=2.51)
    message = r"gradient steps contract only for step_size <= 2 / smoothness = 2.5, got 2.51"
    for compute in (
        contraction_gap,
        lambda problem: curve(problem, schedule(1)),
        lambda problem: initial_curve(problem, sigma=1, records=1, learning_steps=3),
    ):
        with pytest.raises(AssumptionError, match=message):
            compute(too_long)


# --- Phases of noisy gradient steps. -------------------------------------------------------------------------


def test_a_phase_has_the_constants_of_a_noisy_gradient_step():
    assert noisy(50) == NoisyPhase(50, 1.25 * 0.05, 1.25 * 2 * 3 / 1000, math.sqrt(2 * 1.25) * 0.1)
    assert phase(ZERO_OUT, sigma=0.2, records=4, steps=1) == NoisyPhase(
        1, 0.0625, 1.25 * 4 / 1000, math.sqrt(2.5) * 0.2
    )
    assert phase(REMOVE, sigma=0.1, records=3, steps=1, removed_before=200).sensitivity == 1.25 * 2 * 3 / 800
    assert noisy(7, records=0) == NoisyPhase(7, 0.0625, 0, math.sqrt(2.5) * 0.1)
    # All are gone: allowed where nothing differs.
    assert phase(REMOVE, sigma=0.1, records=0, steps=1, removed_before=1000).sensitivity == 0


@pytest.mark.parametrize("records", [-1, 1.5])
def test_a_phase_refuses_a_senseless_number_of_records(records):
    with pytest.raises(ParameterError, match=f"records must be a whole number, at least 0, got {records}"):
        noisy(1, records=records)


def test_a_phase_refuses_a_sigma_of_zero():
    with pytest.raises(ParameterError, match="sigma must be a finite number above 0, got 0"):
        phase(PROBLEM, sigma=0, records=1, steps=1)


def test_a_schedule_has_a_phase_for_learning_and_for_every_request():
    phases = schedule_phases(REMOVE, schedule(5, 4, 6, records=2))
    assert [part.steps for part in phases] == [50, 5, 4, 6]
    assert [part.sensitivity for part in phases] == [
        1.25 * 2 * 6 / 1000, 1.25 * 2 * 4 / 998, 1.25 * 2 * 2 / 996, 0,
    ]  # fmt: skip
    assert {part.noise_std for part in phases} == {math.sqrt(2.5) * 0.1}


# --- The value of a schedule against sums of actual gradients, in many digits. --------------------------------


def summed(problem, asked):
    """The mu of losses (m/2) x^2 - g x, phase by phase, from the gradients of actual records."""
    eta, c = mpf(problem.step_size), 1 - mpf(problem.step_size) * mpf(problem.strong_convexity)
    gap = variance = mpf(0)
    gaps = mean_gradient_gaps(problem, asked.records)
    for difference, count in zip(gaps, (asked.learning_steps, *asked.steps), strict=True):
        left = mpf(0) if count == math.inf else c ** int(count)
        gap = left * gap + eta * mpf(difference) * (1 - left) / (1 - c)
        variance = left**2 * variance + 2 * eta * mpf(asked.sigma) ** 2 * (1 - left**2) / (1 - c**2)
    return float(gap / sqrt(variance)) if gap else 0.0


@given(
    steps=st.lists(st.one_of(st.integers(0, 30), st.sampled_from([0, 1, 1000])), min_size=1, max_size=6),
    learning_steps=st.one_of(st.integers(0, 300), st.just(math.inf)),
    records=st.integers(1, 10),
    adjacency=st.sampled_from(["replace", "zero-out", "remove"]),
    gap=st.one_of(st.floats(-9, -0.01).map(lambda exponent: 10**exponent), st.sampled_from([0.5, 1.0])),
)
def test_a_schedule_has_the_value_of_sums_over_its_phases(steps, learning_steps, records, adjacency, gap):
    problem = Problem(70, gap, 1.0, 1.5, 1.0, adjacency)
    asked = schedule(*steps, records=records, learning_steps=learning_steps)
    with workdps(40):
        exact = summed(problem, asked)
    # What underflows is rounded up.
    assert curve(problem, asked).mu == pytest.approx(exact, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("adjacency", ["replace", "remove"])
def test_the_value_of_a_long_stream_keeps_its_digits(adjacency):
    problem = dataclasses.replace(MNIST, adjacency=adjacency)
    asked = Schedule(sigma=0.03, records_per_request=10, steps=tuple(7 + number % 5 for number in range(1000)))
    with workdps(40):
        exact = summed(problem, asked)
    assert curve(problem, asked).mu == pytest.approx(exact, rel=1e-13)


def test_convex_streams_are_accounted_for():
    # s = 2 eta M S / n for 20 steps with 2 records left and 5 with 1; tau^2 = 2 sigma^2 in 28 steps.
    value = curve(CONVEX, schedule(5, 3, records=1, learning_steps=20)).mu
    assert value == pytest.approx((20 * 0.004 + 5 * 0.002) / (math.sqrt(2 * 28) * 0.1), rel=1e-14)


def test_where_nothing_was_learned_there_is_nothing_to_unlearn():
    for problem in (PROBLEM, CONVEX, REMOVE):
        assert curve(problem, schedule(0, learning_steps=0)) == GaussianCurve(0.0)
        assert curve(problem, schedule(9, learning_steps=0)) == GaussianCurve(0.0)
    assert curve(PROBLEM, schedule(9, 1, learning_steps=0)).mu > 0


def test_a_schedule_whose_mu_underflows_is_not_called_perfect():
    assert curve(PROBLEM, schedule(10**5)).mu == sys.float_info.min
    assert curve(PROBLEM, schedule(3, 10**5)).mu == sys.float_info.min


def test_a_long_last_request_keeps_the_digits_of_the_earlier_ones():
    short, long = curve(PROBLEM, schedule(5, 4, 0, learning_steps=math.inf)), schedule(
        5, 4, 5000, learning_steps=math.inf
    )  # fmt: skip
    assert curve(PROBLEM, long).mu == pytest.approx(short.mu * math.exp(5000 * math.log1p(-0.0625)), rel=1e-12)


def test_too_many_records_are_refused():
    with pytest.raises(ParameterError, match="records must be at most n = 1000, got 1002"):
        curve(PROBLEM, schedule(1, 1, 1, records=334))
    with pytest.raises(ParameterError, match="with adjacency remove, a record must remain"):
        curve(REMOVE, schedule(1, 1, records=500))


def test_convex_learning_to_stationarity_is_refused():
    for compute in (
        lambda: curve(CONVEX, schedule(1, learning_steps=math.inf)),
        lambda: joint_curve(CONVEX, schedule(1, learning_steps=math.inf), learned_published=True),
        lambda: initial_curve(CONVEX, sigma=1, records=1),
    ):
        with pytest.raises(AssumptionError, match="strong_convexity above 0"):
            compute()


# --- Learning, joint release, other comparisons. -------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 2, 50, 1000])
def test_learning_has_the_published_closed_form(steps):
    # Bok, Su, Altschuler, strongly convex noisy gradient descent.
    c, tau = 0.9375, math.sqrt(2.5) * 0.1
    exact = 1.25 * 2 * 3 / 1000 / tau * math.sqrt((1 + c) * (1 - c**steps) / ((1 - c) * (1 + c**steps)))
    assert initial_curve(PROBLEM, sigma=0.1, records=3, learning_steps=steps).mu == pytest.approx(exact, rel=1e-13)


def test_learning_to_stationarity_has_the_published_closed_form():
    exact = 2 * 3 / (0.05 * 1000) * math.sqrt(1 - 0.9375**2) / (math.sqrt(2.5) * 0.1)
    assert initial_curve(PROBLEM, sigma=0.1, records=3).mu == pytest.approx(exact, rel=1e-14)


def test_a_single_request_after_a_secret_learned_model_shows_no_more_jointly_than_alone():
    asked = schedule(7)
    assert joint_curve(PROBLEM, asked, learned_published=False).mu == pytest.approx(curve(PROBLEM, asked).mu, rel=1e-14)


def test_a_published_learned_model_shows_what_learning_shows():
    learned = initial_curve(PROBLEM, sigma=0.1, records=3, learning_steps=50)
    assert joint_curve(PROBLEM, schedule(7), learned_published=True).mu == learned.mu
    assert joint_curve(PROBLEM, schedule(7), learned_published=True).mu > curve(PROBLEM, schedule(7)).mu
