"""Formulas of the dissertation: every number of the specification's vectors that no mechanism rests on."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from certified_unlearning.accounting.core.conversion import epsilon_from_mu, mu_from_epsilon
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.releases import noise_multiplier
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.private_learning.theory import counterexamples, privacy
from certified_unlearning.papers.private_learning.theory import linear_models as linear
from certified_unlearning.papers.private_learning.theory import stationary_points as stationary

BASE = linear.Setting(n=10_000, d=100)
DIGITS = {"rel": 5e-6}


def test_rates_of_theorems_8_and_9():
    assert linear.theorem_8_bound(0.339871, BASE) == pytest.approx(6.35810, **DIGITS)
    assert linear.theorem_8_bound(0.339871, BASE, stability=16) == pytest.approx(12.0223, **DIGITS)
    assert linear.theorem_9_rates(BASE) == pytest.approx((0.0141421, 0.00772882), **DIGITS)


def test_strengths_of_theorem_10_and_what_its_proof_has_for_a_bound_on_gradients():
    """E16, E42: the noise of the proof's bound is too little by the sharp bound over it."""
    z = noise_multiplier(1, 1e-5)
    for gradient, strength, sensitivity, sigma in (
        (2 * math.sqrt(2) + 2, 0.0175096, 0.0551518, 0.205751),
        (math.sqrt(2) + 2, 0.0138974, 0.0491347, 0.183303),
    ):
        found = linear.theorem_10_strength(BASE, gradient=gradient)
        assert found == pytest.approx(strength, **DIGITS)
        assert 2 * gradient / (found * BASE.n) == pytest.approx(sensitivity, **DIGITS)
        assert z * 2 * gradient / (found * BASE.n) == pytest.approx(sigma, **DIGITS)
    assert linear.theorem_10_strength(BASE, gradient=1 + 2) == pytest.approx(0.0127493, **DIGITS)  # As printed.
    sharp = ScalarLoss(name="squared").ball_lipschitz(row_norm=1, radius=1)
    assert sharp / (math.sqrt(2) + 2) == pytest.approx(1.17, abs=0.005)
    assert epsilon_from_mu(sharp / (math.sqrt(2) + 2) / z, 1e-5) > 1.15


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


def longest_embedded(columns: float, n: int) -> float:
    """Return how much longer the longest of n rows gets in a Gaussian embedding; more with probability delta / 2."""
    return math.sqrt(chi2.isf(5e-6 / n, columns) / columns)


def test_with_the_columns_of_theorems_9_and_32_rows_hardly_grow_and_the_printed_noise_is_enough():
    """What second readings of both say: the statements stand from some records on, their proofs' steps do not."""

    def epsilon_of_theorem_9(n: int, radius: float) -> float:
        setting = replace(BASE, n=n, radius=radius)
        longer = longest_embedded(linear.theorem_9_dimension(setting), n)
        reached = ScalarLoss(name="squared").ball_lipschitz(row_norm=longer, radius=2 * radius)
        printed = 2 * math.sqrt(2) + 4 * radius
        return epsilon_from_mu(2 * reached / printed / math.sqrt(8 * setting.log), 5e-6)

    few, many = ([epsilon_of_theorem_9(n, radius) for radius in (0.1, 1, 10)] for n in (100, 10_000))
    assert few == pytest.approx([1.14, 1.28, 1.45], abs=0.005)
    assert many == pytest.approx([0.69, 0.80, 0.91], abs=0.005)
    longer = longest_embedded(linear.theorem_32(replace(BASE, n=1_000)).dimension, 1_000)
    assert longer == pytest.approx(1.03, abs=0.005)
    assert epsilon_from_mu(2 * longer / math.sqrt(8 * math.log(2e5)), 5e-6) == pytest.approx(0.79, abs=0.005)
    # The slack of both variances at epsilon = 1, half of delta spent.
    slack = [math.sqrt(2 * math.log(1 / delta)) / noise_multiplier(1, 5e-6) for delta in (1e-5, 5e-6)]
    assert slack == pytest.approx([1.11**2, 1.27], abs=0.005)


def test_lower_bounds():
    assert linear.theorem_11(BASE) == pytest.approx((1, 0.00341995, 0.00141421), **DIGITS)
    assert min(linear.theorem_11(replace(BASE, d=10_000))) == pytest.approx(0.00341995, **DIGITS)
    assert linear.theorem_11(replace(BASE, d=10_000))[2] == pytest.approx(0.0141421, **DIGITS)
    hard = linear.theorem_11_instance(replace(BASE, d=10**6))
    assert (hard.share, hard.blocks, hard.bias) == pytest.approx((1, 464.159, 0.0464159), **DIGITS)
    assert (hard.minimiser, hard.differing, hard.value) == pytest.approx((1, 1, 1.68315e-5), **DIGITS)


def test_the_condition_of_boosting():
    assert linear.theorem_35_condition(BASE, spread=1, beta=0.05) == pytest.approx(4.35061e6, **DIGITS)


def test_stationary_points_of_the_base_case():
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
    assert (found.batch, found.depth) == pytest.approx((2154.43, 7.22091), **DIGITS)
    assert (found.accuracy, found.step, found.rounds) == pytest.approx((0.0304683, 0.0304683, 10.3146), **DIGITS)
    assert (found.constant, found.constant * found.accuracy) == pytest.approx((41640.2, 1268.71), **DIGITS)
    assert 2 * found.constant * found.accuracy > 1  # E28: the first leaf stops at once.
    assert found.length == pytest.approx(0.00269304, **DIGITS)
    z = noise_multiplier(1, 1e-6)
    assert z * 2 / 2154 == pytest.approx(0.00392264, **DIGITS)
    assert z * 2 * found.step * 2**3.5 / 2154 == pytest.approx(0.00135217, **DIGITS)
    assert stationary.tree_batches(2154, 7) == [1077, 538, 269, 134, 67, 33, 16]
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


def test_lemma_25_is_contradicted_by_its_counterexample():
    """E30: uniform rows (e_0 + e_i) / sqrt 2, and weights that tell seen from unseen indices."""
    n, d = 10_000, 100_000
    claimed = counterexamples.lemma_25_bound(n=n, d=d, beta=0.05)
    assert claimed == pytest.approx(0.893700, **DIGITS)
    counts = np.bincount(np.random.default_rng(0).integers(d, size=n), minlength=d)
    slopes = np.where(counts > 0, 1.0, -1.0)  # clip(<w, x>, -1, 1) at w_0 = 0 and w_i = +-sqrt 2.
    # Along e_0, and along every e_i: of the population, less of the sample.
    along_first = (slopes.mean() - 1) / math.sqrt(2)
    along_others = (slopes / d - counts / n) / math.sqrt(2)
    found = math.hypot(along_first, np.linalg.norm(along_others))
    assert found == pytest.approx(1.2796, abs=2e-3)
    assert counterexamples.lemma_25_deviation(n=n, d=d) == pytest.approx(1.2796, abs=1e-4)
    assert counterexamples.lemma_25_bound(n=10**6, d=10**7, beta=0.05) == pytest.approx(0.126211, **DIGITS)
    assert counterexamples.lemma_25_deviation(n=10**6, d=10**7) == pytest.approx(1.2796, abs=1e-4)


def test_a_projection_and_zeros_are_never_near_the_identity():
    """E29: the proof of Theorem 21 bounds this norm by a small number; its mean is 4.39 at d = 400, k = 40."""
    norms = [counterexamples.padded_projection_distance(columns=40, features=400, seed=seed) for seed in range(4)]
    assert min(norms) >= 1
    assert np.mean(norms) == pytest.approx(4.39, abs=0.15)


def test_gradients_of_linear_models_keep_their_length_under_a_projection():
    """E29, S6: what remains true. Signs are chosen against the matrix, and still lose no more than width / sqrt(k)."""
    generator = np.random.default_rng(1)
    n, d = 200, 300
    rows = generator.normal(size=(n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    lost = []
    for k in (10, 40, 160):
        images = rows @ generator.normal(size=(d, k)) / math.sqrt(k)
        lengths = (images**2).sum(axis=1)
        worst = 0.0
        for _ in range(4):
            signs, gained = generator.choice([-1.0, 1.0], n), -1.0
            while True:  # Turn the sign that helps most, until none does.
                v, image = signs @ rows / n, signs @ images / n
                turned = v @ v - 4 * signs * (rows @ v) / n + 4 / n**2
                turned_image = image @ image - 4 * signs * (images @ image) / n + 4 * lengths / n**2
                after = np.sqrt(turned) - np.sqrt(np.maximum(turned_image, 0))
                if after.max() <= gained:
                    break
                gained = float(after.max())
                signs[after.argmax()] *= -1
            worst = max(worst, gained)
        lost.append(worst)
        assert worst <= math.sqrt(2 / math.pi) / math.sqrt(k)
    assert lost == pytest.approx([0.075, 0.067, 0.048], rel=0.25)


@given(seed=st.integers(0, 2**31), d=st.integers(1, 4), stages=st.integers(1, 5), strength=st.floats(0.01, 1))
def test_minimisers_of_recursive_regularisation_stay_near(seed, d, stages, strength):
    """Invariant 6: at most 2^((t + 1) / 2) |w*| for centres anywhere in the balls, and |w*| for exact solves."""
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(d, d))
    curvature = root @ root.T
    best = generator.normal(size=d)

    def minimiser(centres: list[np.ndarray]) -> np.ndarray:
        weights = [strength * 2**number for number in range(len(centres))]
        pulled = curvature @ best + sum(w * c for w, c in zip(weights, centres, strict=True))
        return np.linalg.solve(curvature + sum(weights) * np.eye(d), pulled)

    anywhere, exact = [np.zeros(d)], [np.zeros(d)]
    for stage in range(1, stages + 1):
        # w*_(stage - 1) has regularisers around all centres so far.
        longest = 2 ** (stage / 2) * np.linalg.norm(best)
        assert np.linalg.norm(minimiser(anywhere)) <= longest * (1 + 1e-9)
        found = minimiser(exact)
        assert np.linalg.norm(found) <= np.linalg.norm(best) * (1 + 1e-9)
        exact.append(found)
        centre = generator.normal(size=d)
        centre *= 2 ** (stage / 2) * np.linalg.norm(best) * generator.uniform(0, 1) / np.linalg.norm(centre)
        anywhere.append(centre)


@pytest.mark.parametrize(
    ("strength", "stages", "weights", "size"), [(0.5, 2, None, 0.324761), (0.125, 4, (0.864481, -0.391218), 0.118610)]
)
def test_exact_solves_of_recursive_regularisation_have_one_fixed_point(strength, stages, weights, size):
    """7.5: every stage finds what the first found, whose gradient is the first regulariser's."""
    rows, targets = np.array([[1, 0], [0, 1], [0.6, 0.8]]), np.array([1, -0.5, 0.25])
    curvature, pull = 2 * rows.T @ rows / 3, 2 * targets @ rows / 3
    assert np.linalg.solve(curvature, pull) == pytest.approx([1.015, -0.48], abs=1e-6)
    total, around, found = 0.0, np.zeros(2), np.zeros(2)
    for stage in range(stages):
        total, around = total + strength * 2**stage, around + strength * 2**stage * found
        here = np.linalg.solve(curvature + total * np.eye(2), pull + around)
        assert stage == 0 or here == pytest.approx(found, abs=1e-12)
        found = here
    if weights is not None:
        assert found == pytest.approx(weights, abs=1e-6)
    assert np.linalg.norm(curvature @ found - pull) == pytest.approx(size, abs=1e-6)
    assert strength * np.linalg.norm(found) == pytest.approx(size, abs=1e-6)


def test_theorem_6():
    assert privacy.advanced_composition(0.05, 1e-8, releases=100, slack=1e-6) == pytest.approx(
        (3.84190, 2e-6), rel=2e-6
    )
    assert privacy.advanced_composition(0.5, 0, releases=100, slack=1e-6)[0] == pytest.approx(
        min(50, 49.4152), rel=2e-6
    )
    assert 2 * 0.05 * math.sqrt(100 * math.log(1e6)) > math.sqrt(2) * 0.05 * math.sqrt(100 * math.log(1e6))


def test_theorem_7_in_its_tight_form():
    assert privacy.subsampled(1, 1e-5, share=0.01) == pytest.approx((0.0170369, 1e-7), rel=3e-6)
    assert 0.01 * math.expm1(1) == pytest.approx(0.0171828, abs=1e-7)  # As printed: more.
    with pytest.raises(ParameterError, match="share"):
        privacy.subsampled(1, 0, share=1.5)


def test_lemma_15():
    a, of_gap, of_error = privacy.lemma_15(step_size=0.5, smoothness=1.0, drift=1.0)
    assert (a, of_gap, of_error) == pytest.approx((0.0625, 40, 12))
