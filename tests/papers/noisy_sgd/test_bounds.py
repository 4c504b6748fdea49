"""Their bounds: vectors, a second method each, and never below ours; planted faults are found."""

import math
from itertools import product

import numpy as np
import pytest

from certified_unlearning.accounting.core.conversion import epsilon_from_mu, epsilon_of
from certified_unlearning.accounting.core.curves import Cycle, Schedule
from certified_unlearning.accounting.core.pooling import NoisyPhase, pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.cyclic import stream
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.papers.noisy_sgd.settings import DELTA, SIGMA, N, cycle_of, problem_of
from certified_unlearning.papers.noisy_sgd.theory import bounds, distances, exact
from certified_unlearning.papers.noisy_sgd.theory.bounds import (
    averaged_curve,
    distance_curve,
    hidden_mu,
    known_curve,
    mixed_curve,
)
from certified_unlearning.papers.noisy_sgd.theory.distances import learned_distance, sequential_distances
from certified_unlearning.papers.noisy_sgd.theory.exact import (
    averaged_epsilon,
    hidden_place_divergence,
    pooled,
    quadratic_mus,
)
from certified_unlearning.papers.noisy_sgd.theory.planning import sequential_epochs
from tests.accounting.single_request import cyclic_curve

CASES = 500
ROUNDING = 1 + 1e-9


def equal(value: float, relative: float = 1e-12):
    return pytest.approx(value, rel=relative, abs=0)


def at(curve, alpha: float) -> float:
    return float(curve(np.array([alpha]))[0])


def drawn(number: int):
    """A random problem of batches, with noise, lengths, a place and a ball or none."""
    random = np.random.default_rng([15, number])
    size, batches = int(random.integers(1, 50)), int(random.integers(1, 9))
    smoothness = float(random.uniform(0.2, 5))
    curvature = 0.0 if random.random() < 0.2 else smoothness * float(10 ** random.uniform(-4, 0))
    step = float(random.uniform(0.05, 1.99)) / smoothness
    adjacency = "replace" if random.random() < 0.5 else "zero-out"
    problem = Problem(size, curvature, smoothness, float(10 ** random.uniform(-1, 1)), step, adjacency)
    where = {
        "sigma": float(10 ** random.uniform(-3, 1)),
        "epochs": int(random.integers(1, 40)),
        "steps": int(random.integers(1, 60)),
        "radius": None if random.random() < 0.5 else float(10 ** random.uniform(-2, 2)),
    }
    return problem, Cycle(batches, size), where, int(random.integers(1, batches + 1))


def theirs(problem, cycle, *, sigma, epochs, steps, radius, position):
    distance = learned_distance(problem, cycle, epochs=epochs, radius=radius, position=position)
    return hidden_mu(problem, sigma=sigma, distance=distance, steps=steps)


# --- Vectors ---------------------------------------------------------------------------------------------------------


def test_a_case_by_hand():
    # c = 1/2, s = 2 * 1 * 1 / 2 = 1, tau^2 = 2; two batches, two epochs: steps 2 and 4 of 4 differ.
    problem, cycle = Problem(2, 0.5, 1.0, 1.0, 1.0), Cycle(2, 2)
    assert learned_distance(problem, cycle, epochs=2) == equal(1 + 1 / 4)
    assert learned_distance(problem, cycle, epochs=2, position=1) == equal(1 / 2 + 1 / 8)
    assert learned_distance(problem, cycle, epochs=math.inf) == equal(4 / 3)
    assert learned_distance(problem, cycle, epochs=2, radius=0.25) == 0.5
    assert learned_distance(problem, cycle, epochs=2, records=3) == equal(3.75)
    # One step: 5/8 behind noise of variance 2; two steps: 5/16 behind 2 (1 + 1/4).
    assert hidden_mu(problem, sigma=1.0, distance=1.25, steps=1) == equal(0.625 / math.sqrt(2))
    assert hidden_mu(problem, sigma=1.0, distance=1.25, steps=2) == equal(0.3125 / math.sqrt(2.5))
    one, two = (0.3125 / math.sqrt(2)), 0.625 / math.sqrt(2)
    averaged = averaged_curve(problem, cycle, sigma=1.0, epochs=2, steps=1)
    assert at(averaged, 3.0) == equal(math.log((math.exp(3 * one**2) + math.exp(3 * two**2)) / 2) / 2)
    assert sequential_distances(problem, cycle, steps=[1, 2]) == [
        equal(4 / 3),
        equal(4 / 3 * 3 / 2),
        equal(4 / 3 * (1 + 3 / 8)),
    ]


def test_convex_losses_by_hand():
    problem, cycle = Problem(4, 0.0, 1.0, 2.0, 0.5), Cycle(3, 4)
    assert learned_distance(problem, cycle, epochs=10) == equal(10 * 0.5)
    assert learned_distance(problem, cycle, epochs=10, position=1) == equal(5.0)
    assert learned_distance(problem, cycle, epochs=math.inf) == math.inf
    assert learned_distance(problem, cycle, epochs=math.inf, radius=1.0) == 2.0
    assert hidden_mu(problem, sigma=2.0, distance=2.0, steps=9) == equal(2 / math.sqrt(4 * 9))


@pytest.mark.parametrize(
    ("size", "steps", "mu", "worst", "averaged"),
    [
        (32, 1, 2.7578109743183203, 14.60440500182977, 10.488023796105903),
        (128, 88, 0.004422050296212864, 0.009056876029978282, 0.004917442603168643),
        (512, 22, 0.03454693411380222, 0.09679284221603912, 0.07665510932117742),
        (N, 10, 0.04638385158764862, 0.13454717360024088, 0.13454717360024088),
    ],
)
def test_values_in_the_published_codes_setting(size, steps, mu, worst, averaged):
    problem, cycle, epochs = problem_of(size), cycle_of(size), {32: 50, 128: 100, 512: 200, N: 1000}[size]
    where = {"sigma": SIGMA, "epochs": epochs, "steps": steps}
    distance = learned_distance(problem, cycle, epochs=epochs)
    assert hidden_mu(problem, sigma=SIGMA, distance=distance, steps=steps) == equal(mu, 1e-10)
    assert epsilon_of(known_curve(problem, cycle, **where), DELTA) == equal(worst, 1e-9)
    assert epsilon_of(averaged_curve(problem, cycle, **where), DELTA) == equal(averaged, 1e-9)


def test_the_published_codes_formula_is_twice_ours():
    for size, epochs in ((128, 2), (N, 30)):
        problem = problem_of(size)
        kept, alpha = 1 - problem.step_size * problem.strong_convexity, 5.0
        apart = 2 * problem.step_size / size / (1 - kept ** (N / size))
        code = (
            alpha
            * apart**2
            / (2 * problem.step_size * SIGMA**2)
            * (kept**2 - 1)
            / (1 - kept ** (-2 * epochs * N / size))
        )
        steps = epochs * (N // size)
        assert 2 * at(known_curve(problem, cycle_of(size), sigma=SIGMA, epochs=math.inf, steps=steps), alpha) == equal(
            code, 1e-9
        )


# --- A second method -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(0, CASES, 10))
def test_theirs_is_pooling_without_the_noise_of_learning(number):
    problem, cycle, where, place = drawn(number)
    if where["radius"] is not None:
        where["radius"] = None
    found = theirs(problem, cycle, **where, position=place)
    gap = distances.contraction_gap(problem)
    shift = problem.step_size * problem.sensitivity(1)
    tau = math.sqrt(2 * problem.step_size) * where["sigma"]
    silent = [
        NoisyPhase(place - 1, gap, 0.0, 0.0),
        NoisyPhase(1, gap, shift, 0.0),
        NoisyPhase(cycle.batches - place, gap, 0.0, 0.0),
    ]
    phases = [*silent * where["epochs"], NoisyPhase(where["steps"], gap, 0.0, tau)]
    assert found == equal(pooled_mu(phases), 1e-9) or found < 1e-290


@pytest.mark.parametrize("number", range(0, CASES, 10))
def test_ours_is_the_accountant_of_cyclic_mini_batches(number):
    problem, cycle, where, place = drawn(number)
    radius = where.pop("radius")
    whole = Problem(
        cycle.records,
        problem.strong_convexity,
        problem.smoothness,
        problem.lipschitz,
        problem.step_size,
        problem.adjacency,
    )
    curve = cyclic_curve(whole, batches=cycle.batches, batch_size=cycle.batch_size, position=place, **where)
    assert pooled(problem, cycle, **where, position=place) == equal(curve.mu, 1e-9)
    if radius is not None:
        assert pooled(problem, cycle, **where, position=place, radius=radius) <= curve.mu * ROUNDING


def test_a_mixture_of_one_is_that_one_and_of_many_the_mean_of_exponentials():
    assert at(mixed_curve([math.log(0.3)]), 7.0) == equal(7 * 0.3**2 / 2)
    mus = [1e-9, 0.2, 1.5]
    for alpha in (1 + 1e-9, 1.5, 20.0):
        expected = math.log1p(np.mean([math.expm1((alpha - 1) * alpha * mu**2 / 2) for mu in mus])) / (alpha - 1)
        assert at(mixed_curve([math.log(mu) for mu in mus]), alpha) == equal(expected, 1e-6)
    huge = at(mixed_curve([math.log(1e3), -math.inf]), 1e6)
    assert huge == equal(1e6 * 1e6 / 2, 1e-9)


def test_an_averaged_epsilon_of_equal_pairs_is_that_of_one():
    for mu, delta in product((0.01, 0.5, 3.0), (1e-6, 1e-3)):
        assert averaged_epsilon([mu] * 4, delta) == equal(epsilon_from_mu(mu, delta), 1e-7)
    assert averaged_epsilon([0.0, 0.0], 0.1) == 0
    assert averaged_epsilon([math.inf, 1.0], 0.1) == math.inf
    assert averaged_epsilon([0.0, 1.0], 0.1) < epsilon_from_mu(1.0, 0.1)


def test_quadrature_of_one_place_is_the_gaussian_divergence():
    for mu, alpha in product((0.01, 1.0, 3.0), (1.5, 8.0)):
        assert hidden_place_divergence([mu], alpha) == equal(alpha * mu**2 / 2, 1e-6)


def test_sequential_distances_of_finite_learning_are_sums_over_all_visits():
    problem, cycle = Problem(2, 0.3, 1.0, 1.0, 0.5), Cycle(3, 2)
    steps, epochs = (3, 6, 3), 4
    found = sequential_distances(problem, cycle, steps=steps, epochs=epochs)
    kept, shift = 1 - 0.15, 0.5
    apart, expected, end = 0.0, [], epochs * 3
    for number in range(epochs * 3 + sum(steps) + 1):
        if number == end:
            expected.append(apart)
            end += steps[len(expected) - 1] if len(expected) <= len(steps) else 0
        # Records of later requests are in the last batch and count as often as there are requests to come.
        apart = kept * apart + shift * (number % 3 == 2)
    # One record at a time: the distance of a single one, for each request on its own.
    alone = [learned_distance(problem, cycle, epochs=epochs + sum(steps[:count]) // 3) for count in range(4)]
    assert alone == [equal(each) for each in expected]
    total = 0.0
    for count, own in enumerate(alone):
        total = total * kept ** (steps[count - 1] if count else 0) + own
        assert found[count] == equal(total)


# --- Never below ours ------------------------------------------------------------------------------------------------


def above_theirs() -> list[int]:
    """Cases in which ours, or the exact law of quadratic losses, is above theirs."""
    found = []
    for number in range(CASES):
        problem, cycle, where, place = drawn(number)
        bound = theirs(problem, cycle, **where, position=place) * ROUNDING
        ours = pooled(problem, cycle, **where, position=place)
        values = [ours]
        if where["radius"] is None and problem.step_size * (problem.smoothness + problem.strong_convexity) <= 2:
            given = {key: where[key] for key in ("sigma", "epochs")}
            (law,) = quadratic_mus(problem, cycle, **given, steps=[where["steps"]], position=place)
            assert law <= ours * ROUNDING or law < 1e-290
            values.append(law)
        if max(values) > max(bound, 1e-290):
            found.append(number)
    return found


def test_ours_is_never_above_theirs():
    assert above_theirs() == []


@pytest.mark.parametrize("number", range(0, CASES, 25))
def test_averaged_ours_is_never_above_averaged_theirs(number):
    problem, cycle, where, _ = drawn(number)
    where["sigma"] *= 20
    mus = [pooled(problem, cycle, **where, position=place) for place in range(1, cycle.batches + 1)]
    for delta in (1e-6, 1e-2):
        assert averaged_epsilon(mus, delta) <= epsilon_of(averaged_curve(problem, cycle, **where), delta) * ROUNDING


def test_a_stream_of_ours_is_never_above_theirs():
    random = np.random.default_rng(15)
    for number in range(0, CASES, 10):
        problem, cycle, where, _ = drawn(number)
        if problem.strong_convexity == 0:
            continue
        steps = tuple(int(each) * cycle.batches for each in random.integers(1, 4, size=3))
        apart = sequential_distances(problem, cycle, steps=steps[:-1], epochs=where["epochs"])
        if cycle.records < 3:
            continue
        for count, distance in enumerate(apart, start=1):
            schedule = Schedule(
                where["sigma"], 1, steps[:count], learning_steps=where["epochs"] * cycle.batches, cycle=cycle
            )
            bound = hidden_mu(problem, sigma=where["sigma"], distance=distance, steps=steps[count - 1])
            assert stream.curve(problem, schedule).mu <= max(bound * ROUNDING, 1e-290)


def test_theirs_falls_with_steps_and_noise_and_grows_with_epochs_places_and_records():
    for number in range(0, CASES, 5):
        problem, cycle, where, place = drawn(number)
        here = theirs(problem, cycle, **where, position=place)
        assert theirs(problem, cycle, **where | {"steps": where["steps"] + 1}, position=place) <= here * ROUNDING
        assert theirs(problem, cycle, **where | {"sigma": 2 * where["sigma"]}, position=place) == equal(here / 2, 1e-9)
        assert theirs(problem, cycle, **where | {"epochs": where["epochs"] + 1}, position=place) >= here / ROUNDING
        assert theirs(problem, cycle, **where, position=cycle.batches) >= here / ROUNDING


def test_theirs_is_exact_as_unlearning_goes_on():
    problem, cycle = Problem(2, 0.2, 1.0, 1.0, 0.5), Cycle(3, 2)
    quotients = []
    for steps in (1, 5, 20, 60):
        law = quadratic_mus(problem, cycle, sigma=1.0, epochs=10, steps=[steps], position=3)[0]
        quotients.append(law / theirs(problem, cycle, sigma=1.0, epochs=10, steps=steps, radius=None, position=3))
    assert quotients == sorted(quotients)
    assert quotients[-1] == pytest.approx(1, abs=1e-5)


# --- Planted faults --------------------------------------------------------------------------------------------------


def test_a_forgotten_place_is_found(monkeypatch):
    real = distances.learned_distance

    def first(problem, cycle, *, position=None, **options):
        return real(problem, cycle, position=1, **options)

    monkeypatch.setitem(globals(), "learned_distance", first)
    assert len(above_theirs()) > 20


def test_all_records_in_the_place_of_a_batch_are_found(monkeypatch):
    real = distances.learned_distance

    def of_all(problem, cycle, **options):
        return real(problem, cycle, **options) / cycle.batches

    monkeypatch.setitem(globals(), "learned_distance", of_all)
    assert len(above_theirs()) > 50


def test_twice_the_noise_is_found(monkeypatch):
    real = bounds.hidden_mu
    monkeypatch.setitem(
        globals(), "hidden_mu", lambda problem, *, sigma, **options: real(problem, sigma=2 * sigma, **options)
    )
    assert len(above_theirs()) > 50


# --- Refusals --------------------------------------------------------------------------------------------------------


def test_what_makes_no_sense_is_refused():
    problem, cycle = Problem(2, 0.5, 1.0, 1.0, 1.0), Cycle(2, 2)
    with pytest.raises(ParameterError, match="n must be the batch size, 2, got 4"):
        learned_distance(Problem(4, 0.5, 1.0, 1.0, 1.0), cycle, epochs=1)
    with pytest.raises(AssumptionError, match="must keep its place"):
        learned_distance(Problem(2, 0.5, 1.0, 1.0, 1.0, "remove"), cycle, epochs=1)
    with pytest.raises(ParameterError, match="position must be at most batches = 2, got 3"):
        learned_distance(problem, cycle, epochs=1, position=3)
    with pytest.raises(ParameterError, match="steps"):
        distance_curve(problem, sigma=1.0, distance=1.0, steps=0)
    with pytest.raises(ParameterError, match="distance must be at least 0, got -1"):
        hidden_mu(problem, sigma=1.0, distance=-1.0, steps=1)
    with pytest.raises(ParameterError, match="steps must increase, got 1 after 2"):
        quadratic_mus(problem, cycle, sigma=1.0, epochs=1, steps=[2, 1], position=1)
    with pytest.raises(AssumptionError, match="contract only for step_size"):
        hidden_mu(Problem(2, 0.5, 1.0, 1.0, 2.5), sigma=1.0, distance=1.0, steps=1)


def test_planned_requests_meet_the_target_and_one_epoch_less_does_not():
    problem, cycle = problem_of(N), cycle_of(N)
    found = sequential_epochs(problem, cycle, sigma=SIGMA, epsilon=1.0, delta=DELTA, requests=6, factor=1.0)
    apart = sequential_distances(problem, cycle, steps=found[:-1])
    for count, distance in zip(found, apart, strict=True):

        def after(steps, distance=distance):
            return epsilon_of(
                distance_curve(problem, sigma=SIGMA, distance=distance, steps=steps), DELTA, conversion="paper"
            )

        assert after(count) <= 1
        assert count == 1 or after(count - 1) > 1


def test_plans_of_the_published_constants_have_their_numbers_of_epochs():
    def planned(size, **options):
        return sequential_epochs(problem_of(size), cycle_of(size), sigma=SIGMA, delta=DELTA, **options)

    assert [planned(size, epsilon=0.1, requests=1, factor=1.0)[0] for size in (32, 128, 512, N)] == [1, 1, 2, 22]
    stream_of_100 = planned(N, epsilon=1.0, requests=100)
    assert [stream_of_100[each - 1] for each in (1, 2, 3, 10, 50, 100)] == [2, 5, 7, 9, 9, 9]


@pytest.mark.parametrize(("records", "steps"), [(1, 10), (10, 52), (100, 100)])
def test_their_bound_asks_for_more_steps_than_the_6_51_and_98_of_ours(records, steps):
    problem = Problem(500, 1 / 80, 0.25 + 1 / 80, 1.0, 1 / (0.25 + 1 / 80), "zero-out")
    cycle, sigma = Cycle(24, 500), 0.00434741302

    def epsilon(count):
        return epsilon_of(known_curve(problem, cycle, sigma=sigma, epochs=4, steps=count, records=records), 1e-6)

    assert epsilon(steps) <= 1 < epsilon(steps - 1)


@pytest.mark.parametrize(("target", "steps"), [(0.5, 78), (1, 65), (2, 51), (5, 35)])
def test_for_a_group_their_bound_asks_for_more_steps_than_the_76_62_49_and_33_of_ours(target, steps):
    n = 11_982
    problem, cycle = problem_of(1997, n=n), cycle_of(1997, n=n)

    def epsilon(count):
        return epsilon_of(known_curve(problem, cycle, sigma=SIGMA, epochs=200, steps=count, records=100), 1 / n)

    assert epsilon(steps) <= target < epsilon(steps - 1)


def test_whatever_is_infinite_converges():
    problem, cycle = problem_of(512), cycle_of(512)
    long = pooled(problem, cycle, sigma=SIGMA, epochs=3000, steps=3)
    assert pooled(problem, cycle, sigma=SIGMA, epochs=math.inf, steps=3) == equal(long, 1e-9)
    convex = problem_of(512, convex=True)
    assert pooled(convex, cycle, sigma=SIGMA, epochs=math.inf, steps=3) == math.inf
    ball = {"sigma": SIGMA, "epochs": math.inf, "steps": 3, "radius": 1.0}
    limit = exact.pooled(convex, cycle, **ball)
    assert limit <= theirs(convex, cycle, **ball, position=cycle.batches)
