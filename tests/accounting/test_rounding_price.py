"""What rounding costs a guarantee: floors, the arithmetic that is chosen, the triangle, failures."""

import dataclasses
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from certified_unlearning.accounting import Schedule, delta_from_mu, mu_from_epsilon
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.rounding import EXACT, SHARE, Rounding, rounding
from certified_unlearning.accounting.deletion.planning import plan_deletion
from certified_unlearning.accounting.descent import shifted as descent_shifted
from certified_unlearning.accounting.shifted import interpolation as shifted
from certified_unlearning.accounting.shifted.arithmetic import (
    FREE,
    chosen_arithmetic,
    computed,
    descent_floor,
    failure_delta,
    langevin_floor,
    triangle_price,
)
from certified_unlearning.accounting.shifted.interpolation import contraction_gap, phase
from certified_unlearning.errors import AssumptionError
from certified_unlearning.mechanisms.learners.descent import DescentLearner
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from tests.accounting.test_rounding import DTYPES, problem_of


def arguments(**changed):
    usual = {
        "n": 1000,
        "features": 20,
        "classes": 2,
        "strong_convexity": 0.05,
        "lipschitz": 1.0,
        "step_size": 3.0,
        "dtype": "float32",
    }
    return {**usual, **changed}


@given(
    st.integers(1, 10**6),
    st.integers(1, 1000),
    st.sampled_from([2, 3, 10]),
    st.floats(1e-4, 1.0),
    st.floats(0, 100),
    st.sampled_from(["every step", "publication", "publication, fed back"]),
    st.booleans(),
)
def test_rounding_grows_with_what_makes_it_larger(n, features, classes, strength, start, noise, projects):
    def found(**changed):
        usual = {
            "n": n,
            "features": features,
            "classes": classes,
            "strong_convexity": strength,
            "start_norm": start,
            "noise": noise,
            "projects": projects,
            "dtype": "float64",
        }
        return rounding(**arguments(**{**usual, **changed}))

    base = found()
    assert 0 < base.fixed < math.inf
    assert (base.per_noise == 0) == (noise == "publication")
    larger = [found(n=2 * n), found(features=features + 1), found(dtype="float32"), found(start_norm=start + 1)]
    larger += [found(classes=classes + 1), found(strong_convexity=strength / 2), found(projects=True)]
    for number, other in enumerate(larger):
        # Smaller strong convexity and more weights also lengthen the noise.
        assert other.fixed >= base.fixed, number
        assert other.per_noise >= base.per_noise, number
    assert larger[2].fixed > base.fixed
    assert larger[2].resolution > base.resolution
    assert larger[3].fixed > base.fixed
    assert larger[1].resolution >= base.resolution > 0


def test_rounding_that_makes_weights_grow_is_infinite():
    assert rounding(**arguments(strong_convexity=1e-9)).fixed == math.inf
    assert rounding(**arguments(strong_convexity=1e-9, dtype="float64")).fixed < math.inf


FLOORS = pytest.mark.parametrize(("floor_of", "descent"), [(langevin_floor, False), (descent_floor, True)])


def problems(*, descent, n=1000, strength=0.01, features=20, classes=2):
    exact = problem_of(n, classes, strength, descent=descent)
    noise = "publication, fed back" if descent else "every step"
    return {
        dtype: computed(exact, features=features, classes=classes, dtype=dtype, noise=noise)
        for dtype in ("float32", "float64")
    }


@FLOORS
@DTYPES
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
def test_the_least_sigma_makes_the_floor_its_share(floor_of, descent, dtype, epsilon):
    problem = problems(descent=descent)[dtype]
    floor, target = floor_of(problem), mu_from_epsilon(epsilon, 1e-4)
    least = floor.least_sigma(epsilon, 1e-4)
    if least == math.inf:
        assert floor.relative >= SHARE * target
    else:
        assert floor.mu(least) == pytest.approx(SHARE * target, rel=1e-9)
        assert floor.mu(0.99 * least) > SHARE * target
    # Exact arithmetic has none.
    assert floor_of(dataclasses.replace(problem, rounding=EXACT)).least_sigma(epsilon, 1e-4) == 0


@FLOORS
def test_what_the_accountants_count_is_no_less_than_rounding_alone_and_no_more_than_its_floor(floor_of, descent):
    sigma = 0.05
    for problem in problems(descent=descent).values():
        floor = floor_of(problem).mu(sigma)
        for steps, count in ((10_000, 1), (1, 5), (30, 3), (10_000, 3)):
            schedule = Schedule(sigma=sigma, records_per_request=1, steps=(steps,) * count, learning_steps=10_000)
            # Longer rows contract less, which is no error of a step.
            exact = dataclasses.replace(problem, rounding=Rounding(norm_excess=problem.rounding.norm_excess))

            def mu_of(problem, schedule=schedule):
                if not descent:
                    return shifted.curve(problem, schedule).mu
                return descent_shifted.published_state_curve(
                    problem, sigma=sigma, steps_per_request=schedule.steps, learning_steps=10_000
                ).mu

            added = mu_of(problem) - mu_of(exact)
            assert 0 < added <= floor * (1 + 1e-6) + 1e-12 * mu_of(exact)


@FLOORS
def test_the_arithmetic_is_the_coarsest_that_does_or_names_the_noise_that_is_enough(floor_of, descent):
    candidates = problems(descent=descent, strength=0.1)
    target = {"epsilon": 1.0, "delta": 1e-3}
    least = {dtype: floor_of(problem).least_sigma(1.0, 1e-3) for dtype, problem in candidates.items()}
    assert least["float64"] < least["float32"] < math.inf

    def chosen(sigma, *, may_rise=False, **changed):
        return chosen_arithmetic(candidates, floor_of, sigma=sigma, may_rise=may_rise, **{**target, **changed})

    assert chosen(least["float32"]) == "float32"
    assert chosen(0.99 * least["float32"]) == "float64"
    assert chosen(least["float64"]) == "float64"
    with pytest.raises(AssumptionError, match="is enough") as raised:
        chosen(0.5 * least["float64"])
    assert chosen(0.5 * least["float64"], may_rise=True) == "float64"
    named = float(str(raised.value).split("; sigma = ")[1].split(" is enough")[0])
    assert least["float64"] <= named <= 1.1 * least["float64"]
    assert chosen(named) == "float64"
    with pytest.raises(AssumptionError, match="at every sigma"):
        chosen(1.0, epsilon=1e-14, delta=1e-12)


@pytest.mark.parametrize("learner", ["langevin", "secret-state", "published-state"])
def test_with_the_noise_that_an_error_names_a_plan_passes(learner):
    settings_of_all = {"n": 400, "features": 10, "classes": 2, "regularisation": 1e-7, "epsilon": 1.0, "delta": 1e-4}

    def plan(sigma):
        if learner == "langevin":
            return LangevinLearner.plan(**settings_of_all, sigma=sigma)
        return DescentLearner.plan(**settings_of_all, sigma=sigma, variant=learner)

    with pytest.raises(AssumptionError, match="is enough") as raised:
        plan(1e-13)
    named = float(str(raised.value).split("; sigma = ")[1].split(" is enough")[0])
    planned = plan(named)
    assert planned.dtype == "float64"
    floor_of = langevin_floor if learner == "langevin" else descent_floor
    assert floor_of(planned.problem).mu(planned.sigma) <= SHARE * mu_from_epsilon(1.0, 1e-4) * (1 + 1e-9)
    with pytest.raises(AssumptionError, match="is enough"):
        plan(named * 0.9)


# The triangle.


@pytest.mark.sampled
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("mu", [1e-12, 1e-6, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("sides", [1, 2])
def test_the_triangle_holds_for_every_pair_of_exact_runs(epsilon, delta, mu, sides):
    """Composition of what is known: ``P' <= e^epsilon Q' + delta`` between two Gaussian trade-offs, exactly."""
    price = triangle_price(mu, epsilon=epsilon, delta=delta, sides=sides)
    assert price.epsilon >= 0
    assert price.delta >= 0
    with mpmath.workdps(60):
        for z in [*np.linspace(-30, 8, 58)]:
            other = mpmath.ncdf(mpmath.mpf(z))  # Q(E)
            exact_other = mpmath.ncdf(mpmath.mpf(z) + mu)  # Q'(E), at most
            exact = mpmath.exp(epsilon) * exact_other + delta  # P'(E), at most
            sums = [(exact, other)] if sides == 1 else []
            if sides == 2 and exact < 1:
                upper = mpmath.mpf(float(stats.norm.isf(float(exact)))) if exact < 0.5 else None
                quantile = -upper if upper is not None else mpmath.mpf(float(stats.norm.ppf(float(exact))))
                # One Newton step makes the quantile of doubles exact to 30 digits.
                quantile -= (mpmath.ncdf(quantile) - exact) / mpmath.npdf(quantile)
                sums = [(mpmath.ncdf(quantile + mu), other)]
            for own, base in sums:
                allowed = mpmath.exp(mpmath.mpf(epsilon) + mpmath.mpf(price.epsilon)) * base + delta + price.delta
                assert min(own, 1) <= allowed * (1 + mpmath.mpf(10) ** -12)


@pytest.mark.parametrize(("between", "mu"), [(0.5, 0.01), (1.0, 1e-4), (3.0, 0.3), (0.01, 1e-6)])
def test_the_triangle_holds_for_shifted_gaussians(between, mu):
    for epsilon in (0.01, 0.5, 2.0, 8.0):
        delta = delta_from_mu(between, epsilon)
        if delta < 1e-250:
            continue
        price = triangle_price(mu, epsilon=epsilon, delta=delta)
        assert delta_from_mu(between + 2 * mu, epsilon + price.epsilon) <= delta + price.delta
        # Half the price is too little, where delta is so large that it says something.
        assert delta_from_mu(between + 2 * mu, epsilon) > delta


def test_the_triangle_costs_nothing_where_nothing_is_rounded_and_little_where_little_is():
    assert triangle_price(0.0, epsilon=1.0, delta=1e-5) == FREE
    price = triangle_price(1e-9, epsilon=1.0, delta=1e-5)
    assert price.epsilon < 2e-8
    assert price.delta < 1e-10


def test_failure_is_negligible():
    problem = problems(descent=False)["float64"]
    assert 0 < failure_delta(problem, steps=10**9, epsilon=5.0) < 1e-24
    assert failure_delta(dataclasses.replace(problem, rounding=EXACT), steps=10**9, epsilon=5.0) == 0


def test_a_phase_counts_two_step_errors_also_where_the_data_agree():
    problem = problems(descent=False)["float32"]
    sigma = 0.3
    noise_std = math.sqrt(2 * problem.step_size) * sigma
    two = 2 * problem.rounding.step_error(noise_std)
    assert phase(problem, sigma=sigma, records=0, steps=1).sensitivity == two
    exact = phase(dataclasses.replace(problem, rounding=EXACT), sigma=sigma, records=3, steps=1).sensitivity
    assert phase(problem, sigma=sigma, records=3, steps=1).sensitivity == pytest.approx(
        exact * (1 + problem.rounding.norm_excess) + two, rel=1e-14
    )


@pytest.mark.parametrize("step_size", [0.5, 1.0, 1.9])
def test_the_contraction_allows_for_rows_that_are_too_long(step_size):
    """Quadratic losses whose curvature is larger by the square of the excess, at either end."""
    problem = Problem(100, 0.2, 1.0, 1.0, step_size, rounding=Rounding(norm_excess=1e-3))
    curvatures = [0.2, 1.0, 0.2 + 0.8 * 1.001**2]
    largest = max(abs(1 - step_size * curvature) for curvature in curvatures)
    assert 1 - contraction_gap(problem) >= min(largest, 1.0) - 1e-15


def test_steps_that_rows_too_long_could_drive_apart_are_refused():
    with pytest.raises(AssumptionError, match=r"rows may be longer than 1 by 0\.001"):
        contraction_gap(Problem(100, 0.2, 1.0, 1.0, 2.0, rounding=Rounding(norm_excess=1e-3)))


@pytest.mark.parametrize("norm", [1.0, 128.0, 1e-3])
def test_deletion_on_rows_of_another_norm_is_that_on_unit_rows_scaled(norm):
    """Rows of norm R are unit rows with weights R times as large: step errors shrink by R, in bits for powers of 2."""
    common = {"n": 5000, "dimension": 100, "alpha": 8.0, "epsilon_dp": 1.0, "epsilon_dd": 0.1, "dtype": "float64"}
    unit = plan_deletion(lipschitz=1.0, strong_convexity=0.05, smoothness=0.3, **common).problem.rounding
    scaled = plan_deletion(
        lipschitz=norm, strong_convexity=0.05 * norm**2, smoothness=0.3 * norm**2, **common
    ).problem.rounding
    assert scaled.fixed * norm == pytest.approx(unit.fixed, rel=1e-12)
    assert scaled.per_noise == pytest.approx(unit.per_noise, rel=1e-12)


def test_clipped_gradients_have_no_bound_on_rounding():
    with pytest.raises(AssumptionError, match="gradients that are not clipped"):
        plan_deletion(
            n=50, dimension=3, lipschitz=1.0, strong_convexity=0.05, smoothness=0.3, alpha=8.0, epsilon_dp=1.0,
            epsilon_dd=0.1, gradient_field="clipped-convex", dtype="float64",
        )  # fmt: skip
