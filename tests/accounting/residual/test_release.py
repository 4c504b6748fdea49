"""What a bounded gradient and noise are worth: the numbers of the design, their inverses, and refusals."""

import math

import pytest

from certified_unlearning.accounting import delta_from_mu, epsilon_from_mu
from certified_unlearning.accounting.residual import release
from certified_unlearning.errors import AssumptionError, ParameterError

PROBLEM = {"n": 30_000, "features": 21, "classes": 2, "strong_convexity": 1 / 160, "sigma": 1e-3, "delta": 1e-6}


def test_the_computed_example():
    mu = release.mu_of(1e-8, strong_convexity=0.1, sigma=1e-5)
    assert mu == pytest.approx(0.01, rel=1e-12)
    assert mu >= 0.01
    assert epsilon_from_mu(mu, 1e-6) == pytest.approx(0.0336738, rel=2e-6)


def test_all_releases_and_adaptive_requests_cost_the_root_of_their_number():
    assert release.mu_of_all(0.01, 1) == pytest.approx(0.01, rel=1e-12)
    assert release.mu_of_all(0.01, 100) == pytest.approx(0.1, rel=1e-12)
    # A hundred shifts by 0.01 standard deviations, each in a coordinate of its own, are one of norm 0.1.
    assert release.mu_of_all(0.01, 100) >= math.sqrt(sum(0.01**2 for _ in range(100))) * (1 - 1e-15)
    assert epsilon_from_mu(release.mu_of_all(0.01, 100), 1e-6) > 9 * epsilon_from_mu(0.01, 1e-6)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_the_budget_spends_epsilon_and_is_on_the_safe_side(epsilon: float, delta: float):
    budget = release.budget_of(epsilon=epsilon, delta=delta, strong_convexity=0.01, sigma=1e-3)
    mu = release.mu_of(budget, strong_convexity=0.01, sigma=1e-3)
    assert epsilon_from_mu(mu, delta) <= epsilon
    assert delta_from_mu(mu * (1 + 1e-9), epsilon) > delta * (1 - 1e-9)


def test_random_norms_beyond_what_is_supposed_cost_almost_nothing():
    assert 0 < release.noise_delta(1.0, dimension=785, releases=10_000) < 1e-140
    assert release.noise_resolution(1e-3, 785) < 1e-14


def test_a_usual_problem_is_representable():
    budget = release.budget_of(epsilon=1, delta=1e-6, strong_convexity=1 / 160, sigma=1e-3)
    release.require_representable(**PROBLEM, budget=budget)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"sigma": 1e-13}, "sigma = "),  # Its budget is below the rounding of one gradient.
        ({"strong_convexity": 1e-12}, "strong_convexity"),  # The mean enters twice: weights grow, the budget shrinks.
        ({"sigma": 1e4, "delta": 1e-13, "epsilon": 1e-13}, "published"),  # The shift is as small as the last bits.
        ({"epsilon": 400.0}, "epsilon = 400 is too large .* would add 1 to delta = 1e-06"),
    ],
)
def test_what_float64_cannot_keep_to_is_refused(change: dict[str, float], named: str):
    problem = PROBLEM | change
    epsilon = problem.pop("epsilon", 1.0)
    given = {name: problem[name] for name in ("delta", "strong_convexity", "sigma")}
    budget = release.budget_of(epsilon=epsilon, **given)
    with pytest.raises(AssumptionError, match=named):
        release.require_representable(**problem, budget=budget)


def test_the_noise_that_a_refusal_names_is_enough():
    def budget(sigma: float) -> float:
        return release.budget_of(epsilon=1, delta=1e-6, strong_convexity=1e-6, sigma=sigma)

    problem = PROBLEM | {"strong_convexity": 1e-6, "sigma": 1e-6}
    with pytest.raises(AssumptionError, match="is enough") as refused:
        release.require_representable(**problem, budget=budget(1e-6))
    enough = float(str(refused.value).split("sigma = ")[2].split(" ")[0])
    release.require_representable(**problem | {"sigma": enough * (1 + 1e-3)}, budget=budget(enough * (1 + 1e-3)))


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan])
def test_an_impossible_target_is_refused(epsilon: float):
    with pytest.raises(ParameterError, match="epsilon"):
        release.budget_of(epsilon=epsilon, delta=1e-6, strong_convexity=0.1, sigma=1e-3)


def test_no_release_is_no_guarantee():
    with pytest.raises(ParameterError, match="releases"):
        release.mu_of_all(0.1, 0)
