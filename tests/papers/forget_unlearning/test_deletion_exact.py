"""Linear losses, whose laws are Gaussian: every bound on deletion against the exact divergence (sections 7.3, 7.4)."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.integrate import quad

from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion import planning as deletion
from certified_unlearning.accounting.deletion.planning import adaptive_deletion_curve, deletion_curve, plan_deletion
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.papers.forget_unlearning.theory.exact import exact_deletion_curve, kept_after
from tests.accounting.deletion_settings import C1, at, quoted
from tests.papers.forget_unlearning.gaussian_laws import (
    GaussianLaw,
    exact_risk,
    gaussian_divergence,
    law_after,
    least_exact_steps,
)

PLAN = plan_deletion(**C1)
PROBLEM, SIGMA = PLAN.problem, PLAN.sigma
FORMS = ("simplified", "tight", "doubled", "shifted")
ROUNDING = 1 + 1e-6


def exact(before, since, *, alpha=8.0):
    return at(exact_deletion_curve(PROBLEM, sigma=SIGMA, steps=since, steps_before=before), alpha)


def bound(before, since, form):
    return at(deletion_curve(PROBLEM, sigma=SIGMA, steps=since, steps_before=before, form=form), 8)


# --- Section 7.3 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "since", "value"),
    [
        (1, 0, 0.00332755),
        (10, 0, 0.161801),
        (194, 0, 0.479167),
        (194, 1, 0.402633),
        (194, 10, 0.0840844),
        (194, 56, 2.80652e-5),
    ],
)
def test_exact_divergences_are_those_of_the_sheet(before, since, value):
    assert exact(before, since) == quoted(value)


@pytest.mark.parametrize(
    ("since", "simplified", "tight", "doubled"),
    [
        (1, 0.959189, 0.481693, 0.444720),
        (10, 0.659241, 0.234758, 0.105630),
        (56, 0.0969720, 0.00595926, 6.80660e-5),
    ],
)
def test_bounds_after_a_deletion_are_those_of_the_sheet(since, simplified, tight, doubled):
    assert bound(math.inf, since, "simplified") == quoted(simplified)
    assert bound(math.inf, since, "tight") == quoted(tight)
    assert bound(math.inf, since, "doubled") == quoted(doubled)


def test_bounds_before_a_deletion_are_those_of_the_sheet():
    assert [bound(steps, 0, "simplified") for steps in (1, 10, 194)] == quoted([0.0408105, 0.340759, 0.999691])
    assert bound(math.inf, 0, "tight") == quoted(0.521739)
    finest = [bound(before, since, "tight") for before, since in ((1, 0), (10, 0), (194, 10))]
    assert finest == quoted([0.0400463, 0.286981, 0.234758])


def test_variances_from_a_point_are_those_of_the_sheet():
    start = GaussianLaw(np.zeros(1), 0.0)
    found = [law_after(PROBLEM, start, [[0.0]], [steps], sigma=SIGMA).variance for steps in (1, 2, 3, 4, 5)]
    assert found == quoted([0.00213333, 0.00392593, 0.00543220, 0.00669789, 0.00776142])


def test_exact_risks_are_those_of_the_sheet():
    mean = np.eye(10)[0]
    start = GaussianLaw(np.zeros(10), PLAN.start_variance)
    exact_values = []
    for steps in (0, 10, 50, 194):
        law = law_after(PROBLEM, start, [mean], [steps], sigma=SIGMA)
        assert law.variance == pytest.approx(PLAN.start_variance)
        exact_values.append(exact_risk(PROBLEM, law, mean))
    assert exact_values == quoted([10.0033, 1.75814, 0.00500309, 0.00333913])


def test_the_least_steps_of_every_bound_are_those_of_the_sheet():
    assert least_exact_steps(PROBLEM, sigma=SIGMA, alpha=8.0, epsilon=0.1) == 10
    assert exact(math.inf, 10) <= 0.1 < exact(math.inf, 9)
    least = [plan_deletion(**C1, certify_risk=False, form=form).deletion_steps for form in FORMS]
    assert least == [56, 21, 11, 10]


def test_a_divergence_that_meets_its_target_needs_no_steps():
    assert least_exact_steps(PROBLEM, sigma=SIGMA, alpha=8.0, epsilon=0.5) == 0


def test_the_asymptote_of_figure_1_is_below_the_exact_divergence():
    printed = 8 * 1.0**2 / (0.05 * 1000**2 * SIGMA**2)
    assert printed < exact(math.inf, 0) < bound(math.inf, 0, "tight")
    assert exact(math.inf, 0) == pytest.approx(2 * printed * (1 - PROBLEM.step_size * 0.05 / 2))


# --- The oracle -------------------------------------------------------------------------------------------------------


def random_chains(count, *, seed=20230723):
    """Settings of every size, each with learning, requests of any number of records, and the last one's target."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        weight, n = 10 ** random.uniform(-3, 1), int(10 ** random.uniform(0.5, 6))
        smoothness = weight * (1 + 10 ** random.uniform(-3, 3))
        step_size = random.uniform(0.001, 0.999) / smoothness
        problem = Problem(n, weight, smoothness, 10 ** random.uniform(-2, 2), step_size)
        requests = int(random.integers(1, 6))
        scale = 10 ** random.uniform(-1, 1.5)
        steps = [1 + int(scale * 10 ** random.uniform(0, 1.5)) for _ in range(requests + 1)]
        yield problem, 10 ** random.uniform(-4, 1), 1 + 10 ** random.uniform(-2, 2), steps


def certified(problem, sigma, alpha, steps, form):
    curve = deletion_curve(problem, sigma=sigma, steps=steps[-1], steps_before=sum(steps[:-1]), form=form)
    return at(curve, alpha)


def worst_laws(problem, sigma, steps, *, start_variance, others=None):
    """Of two runs: the target is ``L e`` against ``-L e``, and is replaced by the last request.

    The other records have the means ``others``, phase by phase, in both runs; None for 0, which loses no digits.
    """
    direction = np.array([0.6, 0.8, 0.0])
    share = problem.lipschitz / problem.n
    others = np.zeros((len(steps), 3)) if others is None else others
    laws = []
    for sign in (1, -1):
        means = [rest + sign * share * direction for rest in others[:-1]] + [others[-1]]
        laws.append(law_after(problem, GaussianLaw(np.zeros(3), start_variance), means, steps, sigma=sigma))
    return laws


def test_no_certified_divergence_is_below_the_exact_one_in_500_random_streams():
    for problem, sigma, alpha, steps in random_chains(500):
        stationary = deletion.start_variance(problem, sigma)
        for start in (stationary, 0.0, 10 * stationary):
            exact_value = gaussian_divergence(*worst_laws(problem, sigma, steps, start_variance=start), alpha=alpha)
            for form in FORMS:
                assert exact_value <= certified(problem, sigma, alpha, steps, form) * ROUNDING, (problem, steps, form)


def test_the_closed_form_is_the_divergence_of_the_laws():
    for problem, sigma, alpha, steps in random_chains(100, seed=5):
        laws = worst_laws(problem, sigma, steps, start_variance=deletion.start_variance(problem, sigma))
        closed = exact_deletion_curve(problem, sigma=sigma, steps=steps[-1], steps_before=sum(steps[:-1]))
        assert gaussian_divergence(*laws, alpha=alpha) == pytest.approx(at(closed, alpha), rel=1e-6)


def test_requests_that_replace_other_records_change_no_divergence():
    """Sizes and values of other requests move both laws alike."""
    random = np.random.default_rng(8)
    others = random.normal(size=(5, 3)) * 0.3
    steps, start = [20, 3, 5, 2, 4], deletion.start_variance(PROBLEM, SIGMA)
    alone, crowded = (
        gaussian_divergence(*worst_laws(PROBLEM, SIGMA, steps, start_variance=start, others=rest), alpha=8.0)
        for rest in (None, others)
    )
    assert crowded == pytest.approx(alone, rel=1e-9)


def test_shifted_interpolation_is_exact_from_a_point():
    for problem, sigma, alpha, steps in random_chains(200, seed=6):
        if problem.step_size <= 2 / (problem.smoothness + problem.strong_convexity):
            laws = worst_laws(problem, sigma, steps, start_variance=0.0)
            found = certified(problem, sigma, alpha, steps, "shifted")
            assert gaussian_divergence(*laws, alpha=alpha) == pytest.approx(found, rel=1e-6)


def per_step(problem):
    return problem.strong_convexity * problem.step_size


@pytest.mark.parametrize(
    ("fault", "form"),
    [
        (lambda factor, *_: factor / 4, "simplified"),  # Sensitivity halved.
        (lambda factor, *_: factor / 4, "doubled"),
        (lambda factor, *_: factor / 4, "shifted"),
        (lambda factor, *_: factor / 2, "tight"),  # Figure 1's asymptote.
        (lambda factor, *_: min(factor, factor**2), "tight"),  # A square too many.
        (lambda factor, problem, steps, _: factor * math.exp(-4 * steps * per_step(problem)), "tight"),
        (lambda factor, problem, _, before: factor * -math.expm1(-per_step(problem) * before / 50), "tight"),
        (lambda factor, problem, *_: factor * kept_after(problem, 1) ** 2, "shifted"),  # A step too many.
    ],
)
def test_the_oracle_catches_a_planted_fault(monkeypatch, fault, form):
    honest = deletion._factor
    monkeypatch.setattr(
        deletion,
        "_factor",
        lambda problem, steps, before, chosen: fault(honest(problem, steps, before, chosen), problem, steps, before),
    )
    caught = 0
    for problem, sigma, alpha, steps in random_chains(100):
        laws = worst_laws(problem, sigma, steps, start_variance=deletion.start_variance(problem, sigma))
        caught += gaussian_divergence(*laws, alpha=alpha) > certified(problem, sigma, alpha, steps, form) * ROUNDING
    assert caught > 0


# --- An adaptive requester --------------------------------------------------------------------------------------------


def adaptive_divergence(problem, sigma, *, learning, steps, edits, alpha):
    """Of encode-then-delete: exact, of the model released after the deletion, by quadrature."""
    laws = []
    stationary, origin = deletion.start_variance(problem, sigma), GaussianLaw(np.zeros(1), 0.0)
    pull = problem.lipschitz / problem.n
    for target in (1, -1):
        learned = law_after(problem, GaussianLaw(np.zeros(1), stationary), [[target * pull]], [learning], sigma=sigma)
        branches = []
        for sign in (1, -1):
            means = [[(target + sign * written) * pull] for written in range(1, edits + 1)] + [[sign * edits * pull]]
            branches.append(law_after(problem, origin, means, [steps] * (edits + 1), sigma=sigma))
        laws.append((learned, branches))
    carried = kept_after(problem, (edits + 1) * steps)

    def density(released, learned, branches):
        def joint(observed):
            branch = branches[0] if observed < 0 else branches[1]
            centre = carried * observed + branch.mean[0]
            exponent = -((observed - learned.mean[0]) ** 2) / (2 * learned.variance)
            exponent -= (released - centre) ** 2 / (2 * branch.variance)
            return np.exp(exponent) / (2 * math.pi * math.sqrt(learned.variance * branch.variance))

        reach = 12 * math.sqrt(learned.variance)
        return sum(quad(joint, low, high, epsabs=1e-14)[0] for low, high in ((-reach, 0), (0, reach)))

    grid = np.linspace(-1, 1, 301) * (edits * pull / problem.strong_convexity + 12 * math.sqrt(stationary))
    densities = [np.array([density(released, *law) for released in grid]) for law in laws]
    moment = (densities[0] ** alpha * densities[1] ** (1 - alpha)).sum() * (grid[1] - grid[0])
    return math.log(moment) / (alpha - 1)


def test_adaptive_requests_break_the_bound_for_fixed_ones_and_keep_the_adaptive_one():
    plan = plan_deletion(**{**C1, "n": 100, "dimension": 1, "records": 1, "alpha": 2.0}, certify_risk=False)
    learning, steps, edits = 100, plan.deletion_steps, 6
    divergence = adaptive_divergence(plan.problem, plan.sigma, learning=learning, steps=steps, edits=edits, alpha=2.0)
    numbers = {"sigma": plan.sigma, "learning_steps": learning, "request_steps": [steps] * (edits + 1)}
    for form in FORMS:
        fixed = at(adaptive_deletion_curve(plan.problem, **numbers, observed=[], form=form), 2.0)
        adaptive = at(adaptive_deletion_curve(plan.problem, **numbers, observed=[0], form=form), 2.0)
        assert fixed < divergence < adaptive


# --- Laws and their divergences ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "alpha", "value"),
    [(1.2, 1, 2, 0.0204110), (1.2, 1, 4, 0.0615543), (1.2, 1, 6, math.inf), (1 / 0.95, 1, 2, 0.00138696)],
)
def test_divergences_of_centred_gaussians_are_those_of_the_sheet(first, second, alpha, value):
    zero = np.zeros(1)
    found = gaussian_divergence(GaussianLaw(zero, first), GaussianLaw(zero, second), alpha=alpha)
    assert found == quoted(value)


def test_the_divergence_tends_to_kullback_and_leibler():
    zero = np.zeros(1)
    found = gaussian_divergence(GaussianLaw(zero, 1.2), GaussianLaw(zero, 1.0), alpha=1 + 1e-7)
    assert found == pytest.approx(0.00883922, rel=1e-5)


def test_the_divergence_of_gaussians_is_that_of_its_integral():
    first, second, alpha = GaussianLaw(np.array([0.3]), 1.2), GaussianLaw(np.array([-0.4]), 1.5), 3.0
    points = np.linspace(-30, 30, 60001)
    logs = [
        -((points - law.mean[0]) ** 2) / (2 * law.variance) - math.log(2 * math.pi * law.variance) / 2
        for law in (first, second)
    ]
    moment = np.exp(alpha * logs[0] + (1 - alpha) * logs[1]).sum() * (points[1] - points[0])
    assert gaussian_divergence(first, second, alpha=alpha) == pytest.approx(math.log(moment) / (alpha - 1))


def test_laws_are_those_of_single_steps():
    weight, eta = 0.05, PROBLEM.step_size
    mean, variance = np.array([1.0, -2.0]), 0.3
    for record_mean, steps in (([0.5, 0.1], 3), ([-0.2, 0.7], 2)):
        for _ in range(steps):
            mean = (1 - eta * weight) * mean - eta * np.array(record_mean)
            variance = (1 - eta * weight) ** 2 * variance + 2 * eta * SIGMA**2
    start = GaussianLaw(np.array([1.0, -2.0]), 0.3)
    law = law_after(PROBLEM, start, [[0.5, 0.1], [-0.2, 0.7]], [3, 2], sigma=SIGMA)
    np.testing.assert_allclose(law.mean, mean)
    assert law.variance == pytest.approx(variance)


def test_records_with_too_long_gradients_are_refused():
    start = GaussianLaw(np.zeros(2), 1.0)
    with pytest.raises(AssumptionError, match="bounded gradients"):
        law_after(PROBLEM, start, [[1.0, 0.1]], [1], sigma=SIGMA)
    with pytest.raises(AssumptionError, match="bounded gradients"):
        exact_risk(PROBLEM, start, [1.0, 0.1])


def test_laws_need_a_mean_for_every_phase_and_steps_that_contract():
    start = GaussianLaw(np.zeros(1), 1.0)
    with pytest.raises(ParameterError, match="equally many"):
        law_after(PROBLEM, start, [[0.0]], [1, 2], sigma=SIGMA)
    with pytest.raises(AssumptionError, match="step_size < 1 / smoothness"):
        law_after(dataclasses.replace(PROBLEM, step_size=5.0), start, [[0.0]], [1], sigma=SIGMA)
