"""Plans: every published number; a wrong accountant gives others."""

import dataclasses
import math

import pytest

from certified_unlearning.accounting import (
    Schedule,
    initial_epsilon,
    least_sigma,
    least_steps,
    least_stream_steps,
    most_records,
    published_state_plan,
    unlearning_epsilon,
)
from certified_unlearning.accounting.langevin import accountants
from tests.accounting.paper_settings import (
    ADULT,
    CIFAR,
    CIFAR_SPECTRAL,
    EPSILONS,
    MNIST,
    MNIST_SPECTRAL,
    TEN_CLASSES,
    for_descent,
)

NAMES = ("lsi", "lsi-tight", "shifted")
FIG4_EPSILONS = (0.5, 1, 2, 5)
FIG3C_SIGMAS = (0.05, 0.1, 0.2, 0.5, 1)


def certified(problem, *steps, sigma, delta, records, accountant="lsi", learning_steps=math.inf):
    schedule = Schedule(sigma=sigma, records_per_request=records, steps=steps, learning_steps=learning_steps)
    return unlearning_epsilon(problem, schedule, delta=delta, accountant=accountant)


def steps_from_one(problem, *, sigma, target, records, accountant="lsi"):
    """The least K as the paper counts it, and the check that it is 1 only in place of a 0."""
    arguments = {"sigma": sigma, "delta": 1 / problem.n, "records": records, "accountant": accountant}
    counted_from_zero = least_steps(problem, **arguments, epsilon=target)
    counted_from_one = least_steps(problem, **arguments, epsilon=target, minimum_steps=1)
    assert counted_from_one == max(1, counted_from_zero)
    assert (initial_epsilon(problem, **arguments) <= target) == (counted_from_zero == 0)
    return counted_from_one


# --- Least steps: the published numbers. --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "records", "expected"),
    [
        (MNIST, 50, [3799, 1644, 705, 222]),
        (CIFAR, 50, [4728, 2078, 913, 308]),
        (TEN_CLASSES, 50, [2685, 992, 302, 1]),
        (MNIST, 100, [4461, 1997, 903, 327]),
        (CIFAR, 100, [5496, 2488, 1143, 429]),
        (TEN_CLASSES, 100, [3444, 1404, 541, 115]),
        (MNIST_SPECTRAL, 50, [2824, 1222, 524, 165]),
        (CIFAR_SPECTRAL, 50, [3330, 1463, 643, 217]),
        (MNIST_SPECTRAL, 100, [3315, 1485, 671, 243]),
        (CIFAR_SPECTRAL, 100, [3871, 1752, 805, 302]),
        (ADULT, 100, [1528, 630, 248, 57]),
    ],
)
def test_least_steps_against_epsilon_are_the_published_ones(problem, records, expected):
    assert [steps_from_one(problem, sigma=0.03, target=target, records=records) for target in FIG4_EPSILONS] == expected


@pytest.mark.parametrize(
    ("accountant", "problem", "records", "expected"),
    [
        ("lsi-tight", MNIST, 100, [2693, 1342, 670, 271]),
        ("lsi-tight", MNIST, 50, [2263, 1087, 512, 178]),
        ("lsi-tight", CIFAR, 100, [3307, 1671, 850, 357]),
        ("lsi-tight", CIFAR, 50, [2811, 1377, 668, 250]),
        ("lsi-tight", TEN_CLASSES, 100, [2126, 941, 388, 82]),
        ("shifted", MNIST, 100, [73, 60, 47, 30]),
        ("shifted", MNIST, 50, [58, 45, 32, 16]),
        ("shifted", CIFAR, 100, [94, 78, 63, 43]),
        ("shifted", CIFAR, 50, [76, 60, 45, 25]),
        ("shifted", TEN_CLASSES, 100, [43, 30, 17, 1]),
        ("shifted", ADULT, 100, [20, 14, 8, 1]),
    ],
)
def test_least_steps_of_the_sharper_accountants_are_the_published_ones(accountant, problem, records, expected):
    steps = [
        steps_from_one(problem, sigma=0.03, target=target, records=records, accountant=accountant)
        for target in FIG4_EPSILONS
    ]
    assert steps == expected


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (MNIST, [1738, 1378, 1006, 472, 1]),
        (CIFAR, [2186, 1770, 1342, 739, 209]),
        (TEN_CLASSES, [1103, 670, 167, 1, 1]),
        (MNIST_SPECTRAL, [1292, 1024, 748, 351, 1]),
        (CIFAR_SPECTRAL, [1540, 1247, 945, 521, 147]),
    ],
)
def test_least_steps_against_sigma_are_the_published_ones(problem, expected):
    assert [steps_from_one(problem, sigma=sigma, target=1, records=100) for sigma in FIG3C_SIGMAS] == expected


def test_the_most_steps_that_the_papers_text_mentions_are_those_of_sigma_one_hundredth():
    assert steps_from_one(MNIST, sigma=0.01, target=1, records=100) == 2546


# --- Least sigma: the published numbers. --------------------------------------------------------------------

LEAST_SIGMAS = {
    "MNIST": (MNIST, [0.1871571, 0.0936968, 0.0189265, 0.0095777, 0.0048995, 0.0020824]),
    "CIFAR": (CIFAR, [0.2431048, 0.1217102, 0.0245916, 0.0124484, 0.0063716, 0.0027116]),
    "10 classes": (TEN_CLASSES, [0.0471250, 0.0235883, 0.0047586, 0.0024044, 0.0012265, 0.0005178]),
    "Adult": (ADULT, [0.0512016, 0.0256285, 0.0051697, 0.0026118, 0.0013321, 0.0005621]),
}


def sigmas_for_one_step(problem, accountant):
    return [
        least_sigma(problem, steps=1, epsilon=target, delta=1 / problem.n, records=1, accountant=accountant)
        for target in EPSILONS
    ]


@pytest.mark.parametrize("name", LEAST_SIGMAS)
def test_least_sigmas_for_one_step_are_the_exact_ones(name):
    problem, expected = LEAST_SIGMAS[name]
    assert sigmas_for_one_step(problem, "lsi") == pytest.approx(expected, abs=5.1e-8)


@pytest.mark.parametrize(
    ("accountant", "problem", "expected"),
    [
        ("lsi", MNIST, ".187157 .0936968 .0189265 .00957769 .00489947 .00208236"),
        ("lsi-tight", MNIST, ".112954 .0609981 .0142973 .00764811 .00411803 .00185845"),
        ("shifted", MNIST, ".065975 .035999 .008613 .004647 .002525 .001156"),
        ("shifted", ADULT, ".0177361 .00955964 .00223748 .00119752 .000645674 .000292430"),
    ],
)
def test_least_sigmas_of_every_accountant_are_the_published_ones(accountant, problem, expected):
    for value, printed in zip(sigmas_for_one_step(problem, accountant), expected.split(), strict=True):
        assert f"{value:.{len(printed) - 1}f}" == f"0{printed}"


TABLE_3 = {
    "CIFAR": [0.2431, 0.1220, 0.0250, 0.0125, 0.0064, 0.0028],
    "10 classes": [0.0473, 0.0238, 0.0049, 0.0025, 0.0012, 0.0005],
    "MNIST": [0.1872, 0.094, 0.0190, 0.0096, 0.0049, 0.0021],
}
# Printed below the least sigma, so that one step misses its epsilon.
TABLE_3_MISSES = {("CIFAR", 0.2431), ("10 classes", 0.0012), ("10 classes", 0.0005)}


@pytest.mark.parametrize("name", TABLE_3)
def test_the_papers_table_3_meets_its_epsilons_but_for_three_values(name):
    problem, _ = LEAST_SIGMAS[name]
    for printed, target in zip(TABLE_3[name], EPSILONS, strict=True):
        reached = certified(problem, 1, sigma=printed, delta=1 / problem.n, records=1)
        assert (reached > target) == ((name, printed) in TABLE_3_MISSES)
        exact = least_sigma(problem, steps=1, epsilon=target, delta=1 / problem.n, records=1)
        assert printed == pytest.approx(exact, rel=0.04)


def test_the_published_codes_own_sigmas_do_reach_the_last_two_epsilons_of_ten_classes():
    assert certified(TEN_CLASSES, 1, sigma=0.00125, delta=1 / 50_000, records=1) <= 2
    assert certified(TEN_CLASSES, 1, sigma=0.00052, delta=1 / 50_000, records=1) <= 5
    # The first CIFAR-10 binary value misses by 1e-6 only.
    assert certified(CIFAR, 1, sigma=0.2431, delta=1e-4, records=1) == pytest.approx(0.05, abs=1.5e-6)


# --- Streams: the published numbers. ------------------------------------------------------------------------


def stream(problem, records_per_request, minimum_steps=1, accountant="lsi"):
    return least_stream_steps(
        problem,
        sigma=0.03,
        epsilon=1,
        delta=1 / problem.n,
        records_per_request=records_per_request,
        requests=100 // records_per_request,
        minimum_steps=minimum_steps,
        accountant=accountant,
    )


@pytest.mark.parametrize(
    ("problem", "records_per_request", "expected"),
    [
        (MNIST_SPECTRAL, 20, [864, 1030, 1044, 1054, 1066]),
        (MNIST_SPECTRAL, 10, [579, 776, 806, 830, 855, 887, 926, 973, 1025, 1082]),
        (CIFAR_SPECTRAL, 20, [1072, 1248, 1260, 1267, 1276]),
        (CIFAR_SPECTRAL, 10, [762, 965, 990, 1010, 1031, 1059, 1095, 1142, 1195, 1255]),
        (TEN_CLASSES, 20, [391, 782, 863, 927, 991]),
        (TEN_CLASSES, 10, [1, 401, 569, 665, 752, 838, 927, 1017, 1108, 1200]),
        (MNIST, 20, [1163, 1386, 1405, 1418, 1434]),
        (MNIST, 10, [778, 1044, 1085, 1116, 1151, 1193, 1246, 1309, 1379, 1455]),
    ],
)
def test_streams_are_the_published_ones(problem, records_per_request, expected):
    assert [request.steps for request in stream(problem, records_per_request)] == expected


@pytest.mark.parametrize(
    ("problem", "first", "last", "total"),
    [
        (MNIST_SPECTRAL, [263, 531, 586, 630, 674, 721], 1566, 19_717),
        (CIFAR_SPECTRAL, [430, 689, 739, 778, 819, 865], 1785, 23_142),
        (TEN_CLASSES, [1, 1, 225, 421, 524, 623], 1937, 20_462),
        (MNIST, [354, 715, 789, 848, 906, 970], 2107, 26_529),
    ],
)
def test_streams_of_twenty_requests_are_the_published_ones(problem, first, last, total):
    steps = [request.steps for request in stream(problem, 5)]
    assert len(steps) == 20
    assert (steps[:6], steps[-1], sum(steps)) == (first, last, total)


@pytest.mark.parametrize(
    ("records_per_request", "expected", "total", "total_of_the_paper"),
    [
        (20, [26, 31, 31, 31, 31], 150, 6806),
        (10, [11, *[21] * 9], 200, 11_756),
        (5, [1, 10, *[13] * 18], 245, 26_529),
    ],
)
def test_streams_of_the_exact_accountant_are_the_published_ones(
    records_per_request, expected, total, total_of_the_paper
):
    steps = [request.steps for request in stream(MNIST, records_per_request, accountant="shifted")]
    assert steps == expected
    assert sum(steps) == total
    assert sum(request.steps for request in stream(MNIST, records_per_request)) == total_of_the_paper


def test_a_stream_counted_from_zero_begins_with_requests_that_need_nothing():
    assert [request.steps for request in stream(TEN_CLASSES, 5, minimum_steps=0)][:2] == [0, 0]


@pytest.mark.parametrize(
    ("problem", "langevin", "descent", "saving"),
    [(MNIST_SPECTRAL, 5058, 9118, 0.445), (CIFAR_SPECTRAL, 6123, 10_098, 0.394)],
)
def test_requests_of_twenty_save_the_published_share_of_descent_to_deletes_steps(problem, langevin, descent, saving):
    dimension = 784 if problem is MNIST_SPECTRAL else 512
    plan = published_state_plan(
        for_descent(problem), epsilon=1, delta=1 / problem.n, dimension=dimension, request_count=100
    )
    total = sum(request.steps for request in stream(problem, 20))
    assert (total, sum(plan.steps_per_request)) == (langevin, descent)
    assert 1 - total / sum(plan.steps_per_request) == pytest.approx(saving, abs=5e-4)


@pytest.mark.parametrize("accountant", NAMES)
@pytest.mark.parametrize("adjacency", ["replace", "zero-out", "remove"])
def test_every_request_of_a_stream_has_the_epsilon_of_its_own_steps_and_would_miss_with_one_less(accountant, adjacency):
    problem = dataclasses.replace(MNIST, adjacency=adjacency)
    plan = least_stream_steps(
        problem, sigma=0.03, epsilon=1, delta=1e-5, records_per_request=30, requests=10, accountant=accountant
    )
    arguments = {"sigma": 0.03, "delta": 1e-5, "records": 30, "accountant": accountant}
    for number, request in enumerate(plan):
        earlier = [each.steps for each in plan[:number]]
        assert request.epsilon == certified(problem, *earlier, request.steps, **arguments) <= 1
        assert request.steps > 0
        assert certified(problem, *earlier, request.steps - 1, **arguments) > 1


@pytest.mark.parametrize("accountant", NAMES)
def test_a_stream_of_one_request_is_one_removal(accountant):
    arguments = {"sigma": 0.03, "epsilon": 1, "delta": 1e-5, "accountant": accountant}
    (request,) = least_stream_steps(MNIST, **arguments, records_per_request=100, requests=1)
    assert request.steps == least_steps(MNIST, **arguments, records=100)


@pytest.mark.parametrize("accountant", NAMES)
def test_the_paper_is_the_default_accountant_of_nothing_but_itself(accountant):
    # All planners default to lsi.
    target = {"epsilon": 1, "delta": 1e-5}
    chosen = {"accountant": accountant}
    pairs = [
        (
            least_steps(MNIST, sigma=0.03, records=100, **target),
            least_steps(MNIST, sigma=0.03, records=100, **target, **chosen),
        ),
        (
            least_sigma(MNIST, steps=5, records=100, **target),
            least_sigma(MNIST, steps=5, records=100, **target, **chosen),
        ),
        (
            most_records(MNIST, sigma=0.03, steps=900, **target),
            most_records(MNIST, sigma=0.03, steps=900, **target, **chosen),
        ),
        (
            least_stream_steps(MNIST, sigma=0.03, records_per_request=9, requests=2, **target),
            least_stream_steps(MNIST, sigma=0.03, records_per_request=9, requests=2, **target, **chosen),
        ),
    ]
    assert all((default == asked) == (accountant == "lsi") for default, asked in pairs)


# --- Planted faults: a plan by a wrong accountant is not the published one. ---------------------------------


@pytest.mark.parametrize(("name", "factor"), [("step_size", 0.5), ("strong_convexity", 2), ("lipschitz", 0.5)])
@pytest.mark.parametrize(("accountant", "published"), [("lsi", 1997), ("lsi-tight", 1342), ("shifted", 60)])
def test_a_wrong_constant_gives_other_steps(name, factor, accountant, published):
    wrong = dataclasses.replace(MNIST, **{name: factor * getattr(MNIST, name)})
    arguments = {"sigma": 0.03, "epsilon": 1, "delta": 1 / MNIST.n, "records": 100, "accountant": accountant}
    assert least_steps(wrong, **arguments) != published == least_steps(MNIST, **arguments)


@pytest.mark.parametrize("factor", [0.9, 1.1])
@pytest.mark.parametrize(("accountant", "published"), [("lsi", 1997), ("lsi-tight", 1342), ("shifted", 60)])
def test_an_estimate_that_is_off_is_corrected(monkeypatch, factor, accountant, published):
    # The planner's estimate of the steps divides by the contraction; what is certified does not use it.
    right = accountants.ACCOUNTANTS[accountant]
    wrong = dataclasses.replace(right, contraction_gap=lambda problem: factor * right.contraction_gap(problem))
    monkeypatch.setitem(accountants.ACCOUNTANTS, accountant, wrong)
    arguments = {"sigma": 0.03, "epsilon": 1, "delta": 1 / MNIST.n, "records": 100, "accountant": accountant}
    assert least_steps(MNIST, **arguments) == published
