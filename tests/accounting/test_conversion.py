"""Conversions against closed forms, 50-digit arithmetic and dp-accounting."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism, rdp
from hypothesis import assume, given
from hypothesis import strategies as st

from certified_unlearning.accounting.core.conversion import (
    delta_from_mu,
    delta_from_renyi,
    epsilon_from_mu,
    epsilon_from_renyi,
    epsilon_of,
    least_over_orders,
    mu_from_epsilon,
    order_overhead,
)
from certified_unlearning.accounting.core.curves import GaussianCurve, RenyiCurve
from certified_unlearning.errors import ParameterError

SCALES = st.floats(-25, 25).map(lambda exponent: 10**exponent)
DELTAS = st.floats(-15, -0.01).map(lambda exponent: 10**exponent)
CONVERSIONS = ("paper", "tight")


def decaying(scale, decay=0.0, orders=None):
    """``scale * alpha * exp(-decay / alpha)``: the shape of Langevin unlearning's curves."""
    return RenyiCurve(lambda alpha: np.log(scale * alpha) - decay / alpha, orders)


# --- Rényi curves: Prop. M.2. -------------------------------------------------------------------------------


@given(scale=SCALES, delta=DELTAS)
def test_a_linear_curve_gives_the_closed_form_minimum(scale, delta):
    # Spec, section 4: A + 2 sqrt(A l) at alpha = 1 + sqrt(l / A).
    log_inverse_delta = -math.log(delta)
    epsilon, alpha = epsilon_from_renyi(decaying(scale), delta, conversion="paper")
    assert epsilon == pytest.approx(scale + 2 * math.sqrt(scale * log_inverse_delta), rel=1e-12)
    if 1e-6 < scale < 1e6:  # Beyond that the value is too flat in doubles to tell the order.
        assert alpha - 1 == pytest.approx(math.sqrt(log_inverse_delta / scale), rel=1e-5)


@given(scale=st.floats(-6, 2).map(lambda exponent: 10**exponent), delta=DELTAS)
def test_the_delta_of_a_linear_curve_is_the_closed_form(scale, delta):
    # (alpha - 1) (A alpha - epsilon) is least at alpha - 1 = (epsilon - A) / (2 A).
    epsilon = scale + 2 * math.sqrt(scale * -math.log(delta))
    assert delta_from_renyi(decaying(scale), epsilon, conversion="paper") == pytest.approx(delta, rel=1e-11)


def test_an_epsilon_below_the_curve_has_no_delta_below_one():
    assert delta_from_renyi(decaying(2.0), 2.0, conversion="paper") == pytest.approx(1, abs=1e-14)
    assert delta_from_renyi(decaying(2.0), 0.5, conversion="paper") == pytest.approx(1, abs=1e-14)
    assert delta_from_renyi(decaying(2.0), 0.5, conversion="paper") <= 1


# --- Rényi curves: both conversions. ------------------------------------------------------------------------


def overhead(alpha, delta, conversion):
    """Return what a conversion adds to a Rényi bound, as the papers write it, in 50 digits."""
    with mpmath.workdps(50):
        alpha, delta = mpmath.mpf(alpha), mpmath.mpf(delta)
        if conversion == "paper":
            return mpmath.log(1 / delta) / (alpha - 1)
        return mpmath.log(1 - 1 / alpha) - (mpmath.log(delta) + mpmath.log(alpha)) / (alpha - 1)


@pytest.mark.parametrize("log_excess", [-30.0, -3.0, 0.0, 0.7, 5.0, 30.0, 75.0])
@pytest.mark.parametrize("delta", [1e-15, 0.3])
@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_the_overhead_is_the_papers_at_all_orders(log_excess, delta, conversion):
    with mpmath.workdps(50):
        alpha = 1 + mpmath.exp(mpmath.mpf(log_excess))
        expected = overhead(alpha, delta, conversion)
    (found,) = order_overhead(np.array([log_excess]), -math.log(delta), conversion)
    # The tight overhead is a difference: as good as its terms.
    terms = float(abs(overhead(alpha, delta, "paper")) + (math.exp(-log_excess) if conversion == "tight" else 0))
    assert found == pytest.approx(float(expected), rel=1e-13, abs=4e-15 * terms)


@given(scale=SCALES, decay=st.floats(0, 50), delta=DELTAS, conversion=st.sampled_from(CONVERSIONS))
def test_no_order_of_a_fine_grid_does_better(scale, decay, delta, conversion):
    curve = decaying(scale, decay)
    epsilon, alpha = epsilon_from_renyi(curve, delta, conversion=conversion)
    log_excess = np.linspace(-30, 78, 20_001)
    values = curve(1 + np.exp(log_excess)) + order_overhead(log_excess, -math.log(delta), conversion)
    assert epsilon <= max(0.0, values.min()) * (1 + 1e-12)
    at_the_order = float(curve(np.array([alpha]))[0]) + float(overhead(alpha, delta, conversion))
    if 1 + 1e-6 < alpha < 1e12 and epsilon > 0:  # Else the order's own rounding counts.
        assert epsilon == pytest.approx(at_the_order, rel=1e-8)


@pytest.mark.parametrize(
    ("scale", "decay", "delta"),
    list(itertools.product([0.01, 0.5, 10], [0, 7], [1e-15, 1e-9, 1e-5])),
)
def test_the_tight_conversion_is_dp_accountings_on_a_refined_grid_and_never_above_it(scale, decay, delta):
    curve = decaying(scale, decay)
    epsilon, alpha = epsilon_from_renyi(curve, delta)
    orders = 1 + (alpha - 1) * np.exp(np.linspace(-1, 1, 401))
    theirs, their_order = rdp.compute_epsilon(orders, curve(orders), delta)
    assert theirs * (1 - 1e-4) <= epsilon <= theirs * (1 + 1e-14)
    assert orders[0] < their_order < orders[-1]
    usual = rdp.rdp_privacy_accountant.DEFAULT_RDP_ORDERS
    assert epsilon <= rdp.compute_epsilon(usual, curve(np.array(usual)), delta)[0]


@pytest.mark.parametrize(("scale", "delta"), [(0.5, 1e-5), (0.001, 1e-10), (50.0, 0.1)])
def test_the_tight_epsilon_is_the_minimum_to_twelve_digits(scale, delta):
    epsilon, alpha = epsilon_from_renyi(decaying(scale), delta)
    with mpmath.workdps(50):
        # The derivative of scale alpha + overhead(alpha), times (alpha - 1)^2.
        best = mpmath.findroot(lambda order: scale * (order - 1) ** 2 + mpmath.log(delta * order), alpha)
        assert epsilon == pytest.approx(float(scale * best + overhead(best, delta, "tight")), rel=1e-13)
    assert alpha == pytest.approx(float(best), rel=1e-5)


def test_the_tight_conversion_is_below_the_papers_and_is_the_default():
    curve = decaying(0.1, 3)
    tight = epsilon_from_renyi(curve, 1e-5, conversion="tight")
    assert epsilon_from_renyi(curve, 1e-5) == tight
    assert tight.epsilon < 0.95 * epsilon_from_renyi(curve, 1e-5, conversion="paper").epsilon
    assert delta_from_renyi(curve, 1.0) == delta_from_renyi(curve, 1.0, conversion="tight")
    assert delta_from_renyi(curve, 1.0) < 0.5 * delta_from_renyi(curve, 1.0, conversion="paper")


@given(
    scale=st.floats(-6, 2).map(lambda exponent: 10**exponent),
    decay=st.floats(0, 50),
    delta=st.floats(-15, -1).map(lambda exponent: 10**exponent),
    conversion=st.sampled_from(CONVERSIONS),
)
def test_delta_from_renyi_undoes_epsilon_from_renyi(scale, decay, delta, conversion):
    curve = decaying(scale, decay)
    epsilon = epsilon_from_renyi(curve, delta, conversion=conversion).epsilon
    assume(epsilon > 0)
    back = delta_from_renyi(curve, epsilon, conversion=conversion)
    assert math.log(back) == pytest.approx(math.log(delta), rel=1e-9)


def test_a_curve_that_is_infinite_above_some_order_is_minimised_below_it():
    # Such a curve is what a clipped or divergent Rényi bound looks like.
    curve = RenyiCurve(lambda orders: np.where(orders < 3, np.log(1e-3 * orders), np.inf))
    epsilon, alpha = epsilon_from_renyi(curve, 1e-5, conversion="paper")
    assert alpha < 3
    assert epsilon == pytest.approx(3e-3 + math.log(1e5) / 2, rel=1e-5)


def test_a_curve_of_zero_costs_nothing():
    nothing = RenyiCurve(lambda orders: np.full_like(orders, -np.inf))
    assert epsilon_from_renyi(nothing, 1e-15, conversion="paper").epsilon < 1e-30
    assert epsilon_from_renyi(nothing, 1e-15).epsilon == 0
    assert delta_from_renyi(nothing, 1.0) == 0


def test_a_curve_that_is_infinite_everywhere_certifies_nothing():
    everything = RenyiCurve(lambda orders: np.full_like(orders, np.inf))
    assert epsilon_from_renyi(everything, 1e-5).epsilon == math.inf
    assert delta_from_renyi(everything, 1.0) == 1


# --- Rényi curves on a grid of orders. ----------------------------------------------------------------------


@pytest.mark.parametrize("conversion", CONVERSIONS)
@pytest.mark.parametrize("orders", [[2.0, 8.0, 32.0], [8.0, 32.0], [2.0, 8.0], [8.0]])
def test_a_gridded_curve_is_asked_at_its_orders_only(orders, conversion):
    asked = []

    def log_divergence(alpha):
        asked.extend(alpha)
        return np.log(0.1 * alpha)

    epsilon, alpha = epsilon_from_renyi(RenyiCurve(log_divergence, np.array(orders)), 1e-5, conversion=conversion)
    assert alpha == pytest.approx(8.0, rel=1e-15)
    assert epsilon == pytest.approx(0.8 + float(overhead(8, 1e-5, conversion)), rel=1e-14)
    assert asked == pytest.approx(orders, rel=1e-15)
    log_delta = 7 * (0.8 - epsilon) + 7 * float(overhead(8, 1, conversion))
    found = delta_from_renyi(RenyiCurve(log_divergence, np.array([8.0])), epsilon, conversion=conversion)
    assert found == pytest.approx(math.exp(log_delta), rel=1e-13)


@pytest.mark.parametrize("conversion", CONVERSIONS)
@pytest.mark.parametrize(("scale", "decay"), [(1e-4, 0), (0.01, 5), (0.5, 40), (20, 3)])
def test_refining_a_grid_of_orders_changes_epsilon_by_less_than_a_ten_thousandth(scale, decay, conversion):
    exact = epsilon_from_renyi(decaying(scale, decay), 1e-5, conversion=conversion).epsilon
    values = [
        epsilon_from_renyi(
            decaying(scale, decay, 1 + np.exp(np.arange(-10, 15, spacing))), 1e-5, conversion=conversion
        ).epsilon
        for spacing in (0.01, 0.005)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-4)
    assert exact * (1 - 1e-13) <= values[1] <= exact * (1 + 1e-4)


def test_the_least_value_over_orders_comes_with_its_place():
    value, log_excess = least_over_orders(lambda x: (x - 1) ** 2, decaying(1.0))
    assert (value, log_excess) == pytest.approx((0, 1), abs=1e-8)
    value, log_excess = least_over_orders(lambda x: (x - 1) ** 2, decaying(1.0, orders=1 + np.exp([0.0, 0.5, 3.0])))
    assert (value, log_excess) == pytest.approx((0.25, 0.5), rel=1e-14)


# --- mu of Gaussian DP: the published numbers. --------------------------------------------------------------

VECTORS = [
    (100, 1e-12, 5702.48201573891),
    (0.001, 1e-12, 0.00569954646842628),
    (1, 1e-5, 4.37717809568122),
    (30, 1e-5, 577.011973688017),
    (0.3, 1 / 11_982, 0.965339868530722),
]
# Section 7's table and section 4, at delta = 1e-5 and 1/11982.
MORE_VECTORS = [
    (0.161482659155745, 1e-5, 0.574346392502),
    (0.507334380040685, 1e-5, 2.02577528716),
    (0.217952164874162, 1e-5, 0.797060984515),
    (0.0807413295778723, 1e-5, 0.269860737159),
    (1.22474487139159, 1e-5, 5.54483092266),
    (4.79468350952051, 1 / 11_982, 28.8086207658),
    (0.0321037334346213, 1 / 11_982, 0.0779434002448),
]


@pytest.mark.parametrize(("mu", "delta", "epsilon"), VECTORS)
def test_epsilons_of_mu_are_the_published_ones(mu, delta, epsilon):
    assert epsilon_from_mu(mu, delta) == pytest.approx(epsilon, rel=1e-12)
    assert delta_from_mu(mu, epsilon) == pytest.approx(delta, rel=1e-9)
    assert mu_from_epsilon(epsilon, delta) == pytest.approx(mu, rel=1e-12)


@pytest.mark.parametrize(("mu", "delta", "epsilon"), MORE_VECTORS)
def test_epsilons_of_the_tables_are_the_published_ones(mu, delta, epsilon):
    assert epsilon_from_mu(mu, delta) == pytest.approx(epsilon, rel=3e-12)


@pytest.mark.parametrize(("mu", "delta"), list(itertools.product([0.01, 0.3, 1, 7, 80], [1e-15, 1e-6, 0.1])))
def test_epsilons_of_mu_are_dp_accountings(mu, delta):
    theirs = gaussian_mechanism.get_epsilon_gaussian(1 / mu, delta)
    assert epsilon_from_mu(mu, delta) == pytest.approx(theirs, rel=1e-9, abs=1e-12)
    if theirs > 0:
        assert mu_from_epsilon(theirs, delta) == pytest.approx(
            1 / gaussian_mechanism.get_sigma_gaussian(theirs, delta), rel=1e-9
        )


# --- mu of Gaussian DP: 60 digits. --------------------------------------------------------------------------


def exact_delta(mu, epsilon):
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


MUS = st.floats(-6, 2).map(lambda exponent: 10**exponent)


def assert_epsilon_is_exact(mu, delta):
    """Never below the truth, and above it by no more than 2e-14: delta falls strictly in epsilon."""
    epsilon = epsilon_from_mu(mu, delta)
    with mpmath.workdps(60):
        assert exact_delta(mu, epsilon) <= delta
        below = mpmath.mpf(epsilon) - mpmath.mpf(2e-14) * (mpmath.mpf(epsilon) + mu)
        assert epsilon == 0 or below <= 0 or exact_delta(mu, below) > delta


@given(mu=MUS, delta=DELTAS)
def test_epsilon_of_mu_is_exact_and_never_too_small(mu, delta):
    assert_epsilon_is_exact(mu, delta)


@pytest.mark.parametrize("mu", [1e-6, 0.1, 0.2999, 0.3, 0.3001, 1, 100])
@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-15, 0.5, 0.999])
def test_epsilon_of_mu_is_exact_at_the_edges(mu, delta):
    assert_epsilon_is_exact(mu, delta)


@pytest.mark.parametrize(("mu", "delta"), [(1e-18, 1e-30), (1e-12, 1e-13), (1e4, 0.3), (1e9, 1e-9), (1e15, 1e-3)])
def test_epsilon_of_mu_is_exact_far_beyond(mu, delta):
    assert_epsilon_is_exact(mu, delta)


@given(mu=MUS, standard=st.floats(-8, 6))
def test_delta_of_mu_is_exact(mu, standard):
    epsilon = max(0.0, mu * (mu / 2 - standard))
    with mpmath.workdps(60):
        expected = float(exact_delta(mu, epsilon))
    assert delta_from_mu(mu, epsilon) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("mu", [1e-9, 1e-3, 0.25, 0.3, 0.35, 2, 9])
def test_delta_without_epsilon_is_the_total_variation(mu):
    assert delta_from_mu(mu, 0.0) == pytest.approx(math.erf(mu / math.sqrt(8)), rel=4e-15)


@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.29, 0.31, 5])
def test_epsilon_is_zero_exactly_where_delta_covers_the_total_variation(mu):
    total_variation = math.erf(mu / math.sqrt(8))
    assert epsilon_from_mu(mu, total_variation * (1 + 1e-10)) == 0
    assert 0 < epsilon_from_mu(mu, total_variation * (1 - 1e-10)) < 1e-8 * mu


def assert_is_largest(mu, epsilon, delta):
    assert epsilon_from_mu(mu, delta) <= epsilon
    assert epsilon_from_mu(mu * (1 + 1e-12), delta) > epsilon


@given(epsilon=st.floats(-6, 4).map(lambda exponent: 10**exponent), delta=DELTAS)
def test_mu_from_epsilon_is_the_largest_that_meets_it(epsilon, delta):
    assert_is_largest(mu_from_epsilon(epsilon, delta), epsilon, delta)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-30, 1e20, 1e27, 1e28, 1e40, 1e307])
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.5, 0.999])
def test_mu_from_epsilon_is_the_largest_far_beyond(epsilon, delta):
    assert_is_largest(mu_from_epsilon(epsilon, delta), epsilon, delta)


@given(mu=MUS, delta=DELTAS)
def test_mu_survives_the_way_to_epsilon_and_back(mu, delta):
    epsilon = epsilon_from_mu(mu, delta)
    assume(epsilon > 0)
    assert mu_from_epsilon(epsilon, delta) == pytest.approx(mu, rel=1e-12)


def test_epsilon_grows_with_mu_and_falls_with_delta():
    epsilons = [epsilon_from_mu(mu, 1e-5) for mu in np.geomspace(1e-4, 100, 200)]
    assert all(np.diff(epsilons) > 0)
    epsilons = [epsilon_from_mu(0.29, delta) for delta in np.geomspace(1e-15, 0.1, 200)]
    assert all(np.diff(epsilons) < 0)


def test_the_limits_of_mu_have_their_limits():
    assert epsilon_from_mu(0.0, 1e-300) == 0
    assert epsilon_from_mu(1e-308, 1e-300) == 0
    assert epsilon_from_mu(math.inf, 0.999) == math.inf
    assert epsilon_from_mu(1e200, 0.5) == math.inf
    assert epsilon_from_mu(1e100, 0.5) == pytest.approx(0.5e200, rel=1e-13)
    assert delta_from_mu(0.0, 0.0) == 0
    assert delta_from_mu(math.inf, 1e300) == 1
    assert delta_from_mu(1e-300, 1e300) == 0
    assert delta_from_mu(1.0, 40.0) == pytest.approx(3.19e-346, abs=1e-300)
    assert delta_from_mu(1e8, 1.0) == 1


# --- Curves of either kind. ---------------------------------------------------------------------------------


def test_a_curve_is_converted_by_its_kind():
    assert epsilon_of(GaussianCurve(0.7), 1e-6) == epsilon_from_mu(0.7, 1e-6)
    assert epsilon_of(GaussianCurve(0.7), 1e-6, conversion="paper") == epsilon_from_mu(0.7, 1e-6)
    curve = decaying(0.2)
    assert epsilon_of(curve, 1e-6) == epsilon_from_renyi(curve, 1e-6, conversion="tight").epsilon
    assert epsilon_of(curve, 1e-6, conversion="paper") == epsilon_from_renyi(curve, 1e-6, conversion="paper").epsilon


@given(mu=st.floats(0.01, 20), delta=DELTAS)
def test_the_exact_conversion_is_below_that_of_the_gaussians_renyi_curve(mu, delta):
    # D_alpha = alpha mu^2 / 2 is exact for the two Gaussians, so any conversion of it is looser.
    tight = epsilon_from_renyi(decaying(mu**2 / 2), delta).epsilon
    assert epsilon_from_mu(mu, delta) <= tight + 1e-12
    assert tight <= epsilon_from_renyi(decaying(mu**2 / 2), delta, conversion="paper").epsilon


# --- Bad input. ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_a_delta_outside_zero_to_one_is_refused(delta):
    message = f"^delta must lie strictly between 0 and 1, got {delta}$"
    for convert in (
        lambda: epsilon_from_renyi(decaying(1.0), delta),
        lambda: epsilon_from_mu(1.0, delta),
        lambda: epsilon_from_mu(math.inf, delta),
        lambda: mu_from_epsilon(1.0, delta),
        lambda: epsilon_of(GaussianCurve(1.0), delta),
        lambda: epsilon_of(decaying(1.0), delta),
    ):
        with pytest.raises(ParameterError, match=message):
            convert()


@pytest.mark.parametrize("epsilon", [-1e-9, math.nan, math.inf])
def test_an_epsilon_that_is_no_number_from_zero_on_is_refused(epsilon):
    message = f"^epsilon must be a finite number, at least 0, got {epsilon}$"
    with pytest.raises(ParameterError, match=message):
        delta_from_renyi(decaying(1.0), epsilon)
    with pytest.raises(ParameterError, match=message):
        delta_from_mu(1.0, epsilon)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_no_mu_is_found_for_an_epsilon_that_is_not_above_zero(epsilon):
    with pytest.raises(ParameterError, match=f"^epsilon must be a finite number above 0, got {epsilon}$"):
        mu_from_epsilon(epsilon, 1e-5)


@pytest.mark.parametrize("epsilon", [1e-301, 1e-310, 5e-324])
def test_an_epsilon_of_few_digits_is_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon must be at least 1e-300"):
        mu_from_epsilon(epsilon, 1e-3)
    assert mu_from_epsilon(1e-300, 1e-3) > 0


@pytest.mark.parametrize("mu", [-1e-9, math.nan, -math.inf])
def test_a_mu_below_zero_is_refused(mu):
    message = f"^mu must be at least 0, got {mu}$"
    for convert in (lambda: epsilon_from_mu(mu, 1e-5), lambda: delta_from_mu(mu, 1.0)):
        with pytest.raises(ParameterError, match=message):
            convert()


@pytest.mark.parametrize("orders", [None, np.array([2.0, 3.0])])
def test_a_curve_of_nan_is_refused(orders):
    nan = RenyiCurve(lambda alpha: alpha * np.nan, orders)
    for convert in (lambda: epsilon_from_renyi(nan, 1e-5), lambda: delta_from_renyi(nan, 1.0)):
        with pytest.raises(ParameterError, match=r"^the Rényi curve must give numbers, got NaN$"):
            convert()
