"""Formulas of the dissertation: every number of the specification's vectors that no mechanism rests on."""

import math
from dataclasses import replace

import pytest

from certified_unlearning.accounting.core.conversion import epsilon_from_mu, mu_from_epsilon
from certified_unlearning.accounting.private.learners import LinearProblem
from certified_unlearning.accounting.private.losses import ScalarLoss
from certified_unlearning.accounting.private.releases import noise_multiplier
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.papers.private_learning.theory import linear_models as linear
from certified_unlearning.papers.private_learning.theory import stationary_points as stationary

BASE = linear.Setting(n=10_000, d=100)
DIGITS = {"rel": 5e-6}


def test_rates_of_theorems_8_and_9():
    assert linear.theorem_8_rates(BASE, gradient=6.82843) == pytest.approx((0.0141421, 0.0231693), **DIGITS)
    assert linear.theorem_8_bound(0.339871, BASE) == pytest.approx(6.35810, **DIGITS)
    assert linear.theorem_8_bound(0.339871, BASE, stability=16) == pytest.approx(12.0223, **DIGITS)
    assert linear.theorem_9_rates(BASE) == pytest.approx((0.0141421, 0.00772882), **DIGITS)
    assert linear.switching_dimension(BASE) == pytest.approx(464.159, **DIGITS)


def test_columns_of_theorem_9():
    assert linear.theorem_9_dimension(BASE) == pytest.approx(2506.06, **DIGITS)
    long = replace(BASE, row_norm=3.0)
    forms = [linear.theorem_9_dimension(long, form=form) for form in ("corrected", "printed", "proof")]
    assert forms == pytest.approx([3108.53, 1494.43, 941.429], **DIGITS)


@pytest.mark.parametrize(
    ("n", "dimension", "printed", "corrected"),
    [(1_000, 19113.8, 2.13233e-5, 1.94311e-6), (10_000, 214164, 8.60821e-7, 5.82473e-8)],
)
def test_theorem_32(n, dimension, printed, corrected):
    found = linear.theorem_32(replace(BASE, n=n))
    assert found.dimension == pytest.approx(dimension, **DIGITS)
    assert (found.printed_step_size, found.step_size) == pytest.approx((printed, corrected), **DIGITS)
    if n == 1_000:
        assert (found.steps, found.variance) == (10**6, pytest.approx(97.6486, **DIGITS))


def test_noise_of_theorem_32_is_too_small():
    """E3: embedded rows are up to twice as long, or sqrt(2) with a cap; half of delta is spent."""
    # sigma^2 = 8 T G^2 log(2 / delta) / (n epsilon)^2 for a sensitivity of 2 c G / n, T times.
    mu = 2 / math.sqrt(8 * math.log(2 / 1e-5))
    assert epsilon_from_mu(2 * mu, 5e-6) == pytest.approx(1.64231, **DIGITS)
    assert epsilon_from_mu(math.sqrt(2) * mu, 5e-6) == pytest.approx(1.12265, **DIGITS)


def test_lower_bounds():
    assert linear.theorem_11(BASE) == pytest.approx((1, 0.00341995, 0.00141421), **DIGITS)
    assert min(linear.theorem_11(replace(BASE, d=10_000))) == pytest.approx(0.00341995, **DIGITS)
    assert linear.theorem_11(replace(BASE, d=10_000))[2] == pytest.approx(0.0141421, **DIGITS)
    hard = linear.theorem_11_instance(replace(BASE, d=10**6))
    assert (hard.share, hard.blocks, hard.bias) == pytest.approx((1, 464.159, 0.0464159), **DIGITS)
    assert (hard.minimiser, hard.differing, hard.value) == pytest.approx((1, 1, 1.68315e-5), **DIGITS)
    assert linear.theorem_13(BASE, rank=100) == pytest.approx(0.001)
    assert linear.theorem_13(BASE, rank=1e5) == pytest.approx(0.01)
    assert linear.THEOREM_33_CONSTANT * linear.theorem_13(BASE, rank=100) == pytest.approx(9.76563e-7, **DIGITS)
    assert linear.theorem_13(BASE, rank=100, exponent=4) == pytest.approx(0.00316228, **DIGITS)
    assert linear.theorem_13(BASE, rank=100, exponent=math.inf) == pytest.approx(0.01)
    assert linear.corollary_6(BASE) == pytest.approx(0.0102)
    assert linear.theorem_38(BASE) == pytest.approx(0.01)


def test_concentration_and_searches():
    found = linear.lemma_12(BASE, spread=1, largest=9, beta=0.05)
    assert (found.slope, found.above, found.below) == pytest.approx((0.247885, 0.267091, 0.458072), **DIGITS)
    assert linear.theorem_35_condition(BASE, spread=1, beta=0.05) == pytest.approx(4.35061e6, **DIGITS)
    given = {"error": 0.05, "largest": 9, "candidates": 9, "beta": 0.05}
    assert linear.theorem_14(BASE, **given) == pytest.approx(0.105800, **DIGITS)
    assert linear.theorem_14(BASE, **given, with_logarithm=True) == pytest.approx(0.130907, **DIGITS)
    assert linear.selection_cost(BASE, largest=9, candidates=9, beta=0.05) == pytest.approx(0.0962584, **DIGITS)


def test_stationary_points_of_the_base_case():
    found = stationary.theorem_17(n=10_000, d=100, epsilon=1, delta=1e-5, lipschitz=1)
    assert found == pytest.approx(0.00339307, **DIGITS)
    bar = stationary.rate_unit(n=10**5, d=100, epsilon=1, delta=1e-6)
    assert bar == pytest.approx(3.71692e-4, **DIGITS)
    # A private oracle of Q queries has errors sqrt(Q) alpha bar, and the barrier does not depend on Q.
    barriers = [
        stationary.oracle_barrier(queries=q, gap=1, gradient=bar * math.sqrt(q), difference=bar * math.sqrt(q))
        for q in (1, 100, 1e6)
    ]
    assert barriers == pytest.approx([0.00554127] * 3, **DIGITS)


def test_bounds_of_spider_boost_and_plain_descent_cross_far_out():
    """6.3: from about 3e8 records on SpiderBoost's explicit bound is the smaller one."""
    mu = mu_from_epsilon(1, 1e-6)
    unit = {"lipschitz": 1.0, "smoothness": 1.0, "gap": 1.0}
    plain = [stationary.descent_bound(n=n, d=100, mu=mu, **unit) for n in (10**5, 10**6, 10**7, 10**8, 10**9)]
    assert plain == pytest.approx([0.0489, 0.0155, 0.00489, 0.00155, 4.89e-4], rel=4e-3)
    # A Huber loss of width 1 has G = H = 1; plans leave rounding a share of 1 %.
    huber = ScalarLoss(name="huber", width=1.0)
    for n, expected, descends_better in ((10**5, 0.187, True), (10**6, 0.0405, True), (10**9, 4.05e-4, False)):
        problem = LinearProblem(n=n, features=100, row_norm=1.0, loss=huber, radius=1.0)
        if n < 10**9:
            found = SpiderBoost.plan(problem, epsilon=1, delta=1e-6, gap=1.0).stationarity_bound(1.0)
            assert found == pytest.approx(expected, rel=0.015)
        assert (stationary.descent_bound(n=n, d=100, mu=mu, **unit) < expected) == descends_better


def test_tree_spider():
    found = stationary.tree_spider(n=10**5, d=10, epsilon=1, delta=1e-6, lipschitz=1, smoothness=1, gap=1, failure=0.05)
    assert (found.batch, found.depth, found.whole_depth) == pytest.approx((2154.43, 7.22091, 7), **DIGITS)
    assert (found.accuracy, found.step, found.rounds) == pytest.approx((0.0304683, 0.0304683, 10.3146), **DIGITS)
    assert (found.constant, found.constant * found.accuracy) == pytest.approx((41640.2, 1268.71), **DIGITS)
    assert 2 * found.constant * found.accuracy > 1  # E28: the first leaf stops at once.
    assert (found.root_noise, found.node_noise) == pytest.approx((0.00491897, 0.00169562), **DIGITS)
    assert found.length == pytest.approx(0.00269304, **DIGITS)
    z = noise_multiplier(1, 1e-6)
    assert z * 2 / 2154 == pytest.approx(0.00392264, **DIGITS)
    assert z * 2 * found.step * 2**3.5 / 2154 == pytest.approx(0.00135217, **DIGITS)
    assert stationary.tree_batches(2154, 7) == [1077, 538, 269, 134, 67, 33, 16]
    assert stationary.records_per_round(2154, 7) == 9607
    # E12: a node of floor(b / 2^s) records moves farther than printed.
    worst = max(2154 / 2**level / size for level, size in enumerate(stationary.tree_batches(2154, 7), start=1))
    assert worst == pytest.approx(1.05176, abs=1e-5)


def test_recursive_regularisation():
    given = {"n": 10_000, "d": 10, "epsilon": 1.0, "lipschitz": 1.0, "smoothness": 1.0, "radius": 1.0}
    strength = stationary.strong_convexity(**given)
    assert strength == pytest.approx(1e-4)
    assert (stationary.stages(1, strength), 10_000 // 14) == (14, 714)
    assert stationary.stages(1, 1e-7) == 24  # E23: as printed.
    # The first stage has strength 2 lambda.
    assert stationary.least_steps(1, 2 * strength) == pytest.approx(42595.5, **DIGITS)
    assert stationary.least_steps(1, 2e-7) == pytest.approx(7.71248e7, **DIGITS)
    linear_time = math.log(10_000) / 10_000
    assert linear_time == pytest.approx(9.21034e-4, **DIGITS)
    assert (stationary.stages(1, linear_time), 10_000 // 11) == (11, 909)
    sigma = stationary.lemma_21_sigma(steps=10_000, records=714, epsilon=1, delta=1e-6, lipschitz=1)
    assert sigma == pytest.approx(4.16462, **DIGITS)
    assert epsilon_from_mu(100 * 2 / 714 / sigma, 1e-6) == pytest.approx(0.259751, **DIGITS)
    assert noise_multiplier(1, 1e-6) * 100 * 2 / 714 == pytest.approx(1.18338, **DIGITS)
    errors = [1 / (strength * 2**t * 714) + 10 * math.log(1e6) / (strength * 2**t * 714**2) for t in range(1, 15)]
    found = stationary.recursive_bound(errors, strength=strength, smoothness=1, radius=1)
    assert found == pytest.approx(3.24791, rel=1e-4)


def test_printed_noise_of_theorem_20_for_all_records_instead_of_a_chunk():
    """E8: in linear time a factor T too little; n for the chunk size."""
    mu = 11 * 2 / (8 * math.sqrt(math.log(1e6)))
    assert epsilon_from_mu(mu, 1e-6) == pytest.approx(3.47911, **DIGITS)
    # Literal part 1: sigma = 8 G K sqrt(log(1 / delta)) / (n epsilon), K releases on chunks of m.
    few = math.sqrt(10) * 2 / 714 / (8 * 10 * math.sqrt(math.log(1e6)) / 10_000)
    assert epsilon_from_mu(few, 1e-6) == pytest.approx(1.28188, **DIGITS)


def test_one_pass():
    step = math.log(10_000) / (0.01 * 10_000)
    assert step == pytest.approx(0.0921034, **DIGITS)
    sigma = stationary.lemma_23_sigma(step_size=step, epsilon=1, delta=1e-6, lipschitz=1)
    assert sigma == pytest.approx(2.73873, **DIGITS)
    found = stationary.lemma_22(n=10_000, step_size=step, strength=0.01, distance=1, deviation=1)
    assert found == pytest.approx(0.0921044, **DIGITS)
    weights = stationary.selector_weights(4, 0.15)
    assert weights == pytest.approx([0.19272, 0.226729, 0.26674, 0.313812], rel=1e-5)


@pytest.mark.parametrize(
    ("n", "convex", "columns", "value"),
    [
        (10_000, False, 4303, 0.326050),
        (10**5, False, 41100, 0.134250),
        (10_000, True, 12090, None),
        (10**5, True, 151127, None),
    ],
)
def test_columns_of_algorithm_8(n, convex, columns, value):
    def objective(count: int) -> float:
        return stationary.embedding_objective(count, n=n, epsilon=1, delta=1e-6, convex=convex)

    low, high = 1, 10**7
    while high - low > 2:  # The objective has one valley.
        third = (high - low) // 3 or 1
        left, right = low + third, high - third
        low, high = (low, right) if objective(left) <= objective(right) else (left, high)
    best = min(range(low, high + 1), key=objective)
    assert best == pytest.approx(columns, abs=2)
    if value is not None:
        assert objective(best) == pytest.approx(value, **DIGITS)


def test_columns_that_a_public_rank_allows():
    found = [stationary.rank_columns(rank, n=10_000, delta=1e-6) for rank in (10, 100)]
    assert found == [238, 2372]
