"""The bounds of noisy gradient descent against laws that are followed numerically (sections 7.4 to 7.6, 7.8 item 7)."""

import math

import numpy as np
import pytest
from scipy.special import expit, logsumexp, ndtr

from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import (
    BOUNDS,
    composition,
    corollary_1,
    theorem_1,
    time_optimal,
)
from certified_unlearning.papers.privacy_dynamics.theory.gaussians import exact_hessian, exact_quadratic, inverse_lsi
from tests.papers.privacy_dynamics.dynamics_settings import tracked_inverse_lsi

QUOTED = 1e-5
ALPHAS = (2.0, 5.0, 10.0)


def quoted(expected):
    return pytest.approx(expected, rel=QUOTED)


def value(bound, problem, steps, *, alpha, sigma):
    return float(bound(problem, sigma=sigma, steps=steps)(np.array([alpha]))[0])


# --- Section 7.4: the differential inequality itself -----------------------------------------------------------------


def integrated(strong_convexity, steps, *, step_size=0.02, sigma=0.02, alpha=10.0, substeps=400):
    """Runge-Kutta on dr/dt = min over gamma of A / gamma - (1 - gamma) 2 sigma^2 r / v(t), from a point."""
    strength = (4 / 5000 / sigma) ** 2 / 4

    def slope(since, r, start):
        if r <= 0:
            return strength
        variance = tracked_inverse_lsi(start, map_lipschitz=1, noise_variance=2 * since * sigma**2)
        damping = 2 * sigma**2 * r / variance
        gamma = min(1.0, math.sqrt(strength / damping))
        return strength / gamma - (1 - gamma) * damping

    r, start, h = 0.0, 0.0, step_size / substeps
    for _ in range(steps):
        start = tracked_inverse_lsi(start, map_lipschitz=1 - step_size * strong_convexity, noise_variance=0)
        for i in range(substeps):
            since = i * h
            a = slope(since, r, start)
            b = slope(since + h / 2, r + h / 2 * a, start)
            c = slope(since + h / 2, r + h / 2 * b, start)
            r += h / 6 * (a + 2 * b + 2 * c + slope(since + h, r + h * c, start))
        start = tracked_inverse_lsi(start, map_lipschitz=1, noise_variance=2 * step_size * sigma**2)
    return alpha * r


@pytest.mark.parametrize(("strong_convexity", "steps"), [(1, 10), (1, 50), (4, 50)])
def test_the_time_optimal_bound_solves_the_differential_inequality(strong_convexity, steps):
    problem = Problem(5000, strong_convexity, 4, 2, 0.02)
    found = value(time_optimal, problem, steps, alpha=10.0, sigma=0.02)
    assert integrated(strong_convexity, steps) == pytest.approx(found, rel=1e-7)


# --- Section 7.5: two Gaussians --------------------------------------------------------------------------------------


def gaussian_divergence(alpha, m1, v1, m2, v2):
    mixed = (1 - alpha) * v1 + alpha * v2
    logs = math.log(mixed) - (1 - alpha) * math.log(v1) - alpha * math.log(v2)
    return alpha * (m1 - m2) ** 2 / (2 * mixed) - logs / (2 * (alpha - 1))


def gaussian_information_ratio(alpha, m1, v1, m2, v2):
    """I_alpha / E_alpha."""
    variance = 1 / (alpha / v1 + (1 - alpha) / v2)
    mean = variance * (alpha * m1 / v1 + (1 - alpha) * m2 / v2)
    slope = 1 / v2 - 1 / v1
    return (m1 / v1 - m2 / v2 + slope * mean) ** 2 + slope**2 * variance


def test_the_identities_of_two_gaussians_have_the_sheets_values():
    laws = (0.3, 1.2, 0.0, 1.5)
    divergence, ratio = gaussian_divergence(3, *laws), gaussian_information_ratio(3, *laws)
    moment = math.exp(2 * divergence)
    by_order = (gaussian_divergence(3 + 1e-5, *laws) - gaussian_divergence(3 - 1e-5, *laws)) / 2e-5
    assert [moment, divergence, moment * ratio, ratio] == quoted([1.20139, 0.0917394, 0.0531227, 0.0442177])
    assert by_order == quoted(0.0185896)
    # Lemma 3, c = 1 / 1.5.
    left, right = divergence + 3 * 2 * by_order, 9 / 2 * 1.5 * ratio
    assert [left, right] == quoted([0.203277, 0.298469])


def test_two_gaussians_agree_with_quadrature():
    x = np.linspace(-30, 30, 200_001)
    log_first = -((x - 0.3) ** 2) / 2.4 - math.log(2.4 * math.pi) / 2
    log_second = -(x**2) / 3 - math.log(3 * math.pi) / 2
    density = np.exp(3 * log_first - 2 * log_second)
    moment = np.trapezoid(density, x)
    assert math.log(moment) / 2 == pytest.approx(gaussian_divergence(3, 0.3, 1.2, 0, 1.5), rel=1e-9)
    squares = ((0.3 - x) / 1.2 + x / 1.5) ** 2
    ratio = np.trapezoid(density * squares, x) / moment
    assert ratio == pytest.approx(gaussian_information_ratio(3, 0.3, 1.2, 0, 1.5), rel=1e-9)


def test_gaussians_of_one_variance_make_lemma_3_an_equality_and_quadratics_exact():
    divergence = gaussian_divergence(3, 0.3, 1.5, 0, 1.5)
    ratio = gaussian_information_ratio(3, 0.3, 1.5, 0, 1.5)
    # The divergence is linear in the order.
    assert divergence + 3 * 2 * divergence / 3 == quoted(0.27)
    assert 9 / 2 * 1.5 * ratio == quoted(0.27)
    # One step from a point with mean gap 0.3 and variance 1.5.
    one_step = exact_hessian([1.0], [0.6], step_size=0.5, sigma=math.sqrt(1.5), steps=1)
    assert one_step(np.array([3.0]))[0] == pytest.approx(divergence, rel=1e-12)


# --- Section 7.6: logistic loss in one dimension, followed on a grid -------------------------------------------------

# l(theta; y) = log(1 + exp(-y theta)) + theta^2 / 2; 6 of 10 labels are +1 in the first data set, 5 in the second.
LOGISTIC = Problem(10, 1, 1.25, 0.5, 0.2)
LOGISTIC_SIGMA = 0.1
NOISE = 2 * 0.2 * LOGISTIC_SIGMA**2


def gradient(theta, share):
    return expit(theta) - share + theta


def step(theta, share):
    return theta - LOGISTIC.step_size * gradient(theta, share)


def normal(x, mean, variance):
    return np.exp(-((x - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def divergence(first, second, alpha, weights):
    """R_alpha of two vectors of densities, in log space."""
    both = (first > 0) & (second > 0)
    logs = alpha * np.log(first[both]) + (1 - alpha) * np.log(second[both]) + np.log(weights[both])
    return float(logsumexp(logs)) / (alpha - 1)


def densities(share, steps, *, half_width=2.5, start_variance=0.0, count=2001):
    """The densities after each of the steps on a grid."""
    x, spacing = np.linspace(-half_width, half_width, count, retstep=True)
    kernel = normal(x[:, np.newaxis], step(x, share), NOISE) * spacing
    density = normal(x, step(0.0, share), NOISE) if start_variance == 0 else kernel @ normal(x, 0, start_variance)
    found = [density]
    for _ in range(steps - 1):
        found.append(kernel @ found[-1])
    return found


SHEET_POINT = {
    1: (0.100000, 0.250000, 0.500000),
    2: (0.196002, 0.490013, 0.980073),
    5: (0.431568, 1.07926, 2.16087),
    10: (0.625733, 1.56592, 3.14233),
    60: (0.700651, 1.75402, 3.52361),
}
SHEET_GAUSSIAN = {
    1: (0.0262162, 0.0655295, 0.130974),
    2: (0.0973401, 0.243239, 0.485648),
    5: (0.381664, 0.954274, 1.90925),
    10: (0.621422, 1.55517, 3.12104),
    60: (0.700651, 1.75402, 3.52361),
}
# Time-optimal, Corollary 1 and composition at order 2.
SHEET_BOUNDS = {
    1: (0.100000, 0.190325, 0.1),
    2: (0.197561, 0.362538, 0.2),
    5: (0.455748, 0.786939, 0.5),
    10: (0.725467, 1.26424, 1),
    60: (0.899997, 1.99504, 6),
}
# Corollary 2 is about squared distances only.
ADMISSIBLE = [name for name, bound in BOUNDS.items() if bound.is_guarantee and name != "corollary-2"]


def assert_below_every_guarantee(found, alpha, steps):
    for name in ADMISSIBLE:
        bound = value(BOUNDS[name].curve, LOGISTIC, steps, alpha=alpha, sigma=LOGISTIC_SIGMA)
        assert found <= bound * (1 + 1e-9), name


def test_bounds_on_the_logistic_loss_have_the_sheets_values():
    for steps, expected in SHEET_BOUNDS.items():
        for bound, sheet in zip((time_optimal, corollary_1, composition), expected, strict=True):
            assert value(bound, LOGISTIC, steps, alpha=2.0, sigma=LOGISTIC_SIGMA) == quoted(sheet)


@pytest.mark.parametrize(("start_variance", "sheet"), [(0.0, SHEET_POINT), (0.02, SHEET_GAUSSIAN)])
def test_the_logistic_loss_diverges_as_the_sheet_says_and_by_less_than_every_guarantee(start_variance, sheet):
    first, second = (densities(share, 60, start_variance=start_variance) for share in (0.6, 0.5))
    spacing = np.full(2001, 5 / 2000)
    for steps, expected in sheet.items():
        for alpha, known in zip(ALPHAS, expected, strict=True):
            found = divergence(first[steps - 1], second[steps - 1], alpha, spacing)
            assert found == quoted(known)
            assert_below_every_guarantee(found, alpha, steps)


def test_eta_for_two_eta_would_be_below_the_logistic_losss_divergence():
    # The planted fault: a step counted with twice its noise variance leaks half as much.
    for steps, (found, *_) in SHEET_POINT.items():
        halved = value(time_optimal, LOGISTIC, steps, alpha=2.0, sigma=LOGISTIC_SIGMA) / 2
        assert halved < found


LOW, HIGH = -0.1, 0.15


def projected_densities(share, steps, count=200):
    """The masses at both ends and the densities at Gauss-Legendre nodes between them, after each of the steps."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    nodes, weights = (LOW + HIGH) / 2 + (HIGH - LOW) / 2 * nodes, (HIGH - LOW) / 2 * weights
    points, weights = np.concatenate([[LOW, HIGH], nodes]), np.concatenate([[1.0, 1.0], weights])

    def moved(theta):
        mean, spread = step(theta, share), math.sqrt(NOISE)
        low, high = ndtr((LOW - mean) / spread), ndtr((mean - HIGH) / spread)
        return np.concatenate([[low, high], normal(nodes, mean, NOISE)])

    kernel = np.stack([moved(theta) for theta in points], axis=1) * weights
    found = [moved(0.0)]
    for _ in range(steps - 1):
        found.append(kernel @ found[-1])
    return found, weights


def test_a_projection_diverges_as_the_sheet_says_and_by_less_than_every_guarantee():
    (first, weights), (second, _) = (projected_densities(share, 60) for share in (0.6, 0.5))
    sheet = {
        1: (0.0993844, 0.243154, 0.431768),
        10: (0.420086, 0.771484, 0.972260),
        60: (0.429182, 0.782520, 0.982489),
    }
    for steps, expected in sheet.items():
        assert weights @ first[steps - 1] == pytest.approx(1, rel=1e-9)
        for alpha, known in zip(ALPHAS, expected, strict=True):
            found = divergence(first[steps - 1], second[steps - 1], alpha, weights)
            assert found == quoted(known)
            assert_below_every_guarantee(found, alpha, steps)
    assert first[59][:2] == quoted(np.array([0.0265599, 0.152910]))


def within_step(start, share, since, x, spacing):
    """The density at a time inside a step: the common map at once, the half gap and the noise in proportion."""
    mean = x - LOGISTIC.step_size * gradient(x, 0.55) - since * (gradient(x, share) - gradient(x, 0.55))
    return normal(x[:, np.newaxis], mean, 2 * since * LOGISTIC_SIGMA**2) @ start * spacing


@pytest.mark.parametrize(
    ("since", "sheet", "lemma_3"),
    [
        (0.05, (1.55234, -0.0260481, 101.039, -0.0259808, 0.403676), (7.77872, 25.2598)),
        (0.10, (1.55992, 0.304422, 87.3990, 0.315026, 0.574179), (7.81685, 21.8497)),
        (0.19, (1.60439, 0.645825, 71.8448, 0.703880, 0.768606), (8.03823, 17.9612)),
    ],
)
def test_inside_a_step_the_divergence_grows_no_faster_than_lemma_2_says(since, sheet, lemma_3):
    alpha, field_sensitivity, count = 5.0, 0.1, 2001
    x, spacing = np.linspace(-1.2, 1.2, count, retstep=True)
    starts = [densities(share, 10, half_width=1.2, count=count)[-1] for share in (0.6, 0.5)]
    weights = np.full(count, spacing)

    def laws(time):
        return [within_step(start, share, time, x, spacing) for start, share in zip(starts, (0.6, 0.5), strict=True)]

    def renyi(time, order=alpha):
        return divergence(*laws(time), order, weights)

    h = 1e-4
    rate = (8 * (renyi(since + h) - renyi(since - h)) - renyi(since + 2 * h) + renyi(since - 2 * h)) / (12 * h)
    first, second = laws(since)
    tilted = np.exp(alpha * np.log(first) + (1 - alpha) * np.log(second))
    ratio = np.sum(tilted * np.gradient(np.log(first) - np.log(second), spacing) ** 2) / np.sum(tilted)
    undamped = theorem_1(field_sensitivity=field_sensitivity, sigma=LOGISTIC_SIGMA, time=1.0)(np.array([alpha]))[0]
    bounds = [undamped / gamma - (1 - gamma) * LOGISTIC_SIGMA**2 * alpha * ratio for gamma in (0.5, 0.75, 1.0)]
    assert [renyi(since), rate, ratio, *bounds] == quoted([*sheet, 1.25])
    assert all(rate <= bound for bound in bounds)

    # Lemma 3 with Lemma 5's constant, 50.
    by_order = (renyi(since, alpha + 1e-3) - renyi(since, alpha - 1e-3)) / 2e-3
    left, right = renyi(since) + alpha * (alpha - 1) * by_order, alpha**2 / (2 * 50) * ratio
    assert [left, right] == quoted(lemma_3)
    assert left <= right


# --- Section 7.8, item 7: simulated chains ---------------------------------------------------------------------------

CHAINS, STEPS, STEP_SIZE, SIGMA = 10**6, 50, 0.02, 0.02
UNIT = Problem(5000, 1, 1, 2, STEP_SIZE)


def simulated(noise_scale, steps):
    """Noisy gradient descent on |theta - x|^2 / 2, whose mean of the data is 2 / 5000, from 0."""
    rng = np.random.default_rng(1)
    theta = np.zeros(CHAINS)
    for _ in range(steps):
        theta += -STEP_SIZE * (theta - 2 / 5000) + noise_scale * rng.standard_normal(CHAINS)
    return theta


# Both checks allow 6 standard errors: a right sampler fails one of them in 4e-9 of all seeds.
def test_simulated_chains_have_the_law_that_the_exact_divergence_assumes():
    theta = simulated(math.sqrt(2 * STEP_SIZE) * SIGMA, STEPS)
    variance = inverse_lsi(UNIT, sigma=SIGMA, steps=STEPS, start=0.0)
    # The two data sets lie on opposite sides of 0.
    mean = math.sqrt(value(exact_quadratic, UNIT, STEPS, alpha=2.0, sigma=SIGMA) * variance) / 2
    assert [mean, variance] == quoted([2.54332e-04, 3.50457e-04])
    mean_error, variance_error = math.sqrt(variance / CHAINS), variance * math.sqrt(2 / CHAINS)
    assert [mean_error, variance_error] == pytest.approx([1.87e-05, 4.96e-07], rel=2e-3)
    assert abs(theta.mean() - mean) < 6 * mean_error
    assert abs(theta.var() - variance) < 6 * variance_error


def test_simulated_chains_whose_noise_has_deviation_sigma_are_found_out():
    theta = simulated(SIGMA, 5)
    variance = inverse_lsi(UNIT, sigma=SIGMA, steps=5, start=0.0)
    assert theta.var() / variance == pytest.approx(25, rel=0.01)
