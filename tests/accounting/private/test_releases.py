"""Gaussian releases: printed vectors, 60-digit arithmetic, dp-accounting, and what the source has too small."""

import mpmath
import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.pld import pld_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.core.conversion import epsilon_from_mu, mu_from_epsilon
from certified_unlearning.accounting.private.releases import (
    composed,
    mean_sensitivity,
    mu_of,
    noise_multiplier,
    sigma_for,
)
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.private_learning.theory.privacy import PRINTED, printed_epsilon

EPSILONS = st.floats(-3, 1.5).map(lambda exponent: 10**exponent)
DELTAS = st.floats(-14, -1).map(lambda exponent: 10**exponent)


def exact_delta(multiplier: float, epsilon: float) -> mpmath.mpf:
    """Delta of one Gaussian release, to 60 digits, of the very doubles that were given."""
    with mpmath.workdps(60):
        z, eps = mpmath.mpf(multiplier), mpmath.mpf(epsilon)
        below, above = 1 / (2 * z) - eps * z, -1 / (2 * z) - eps * z
        return mpmath.ncdf(below) - mpmath.exp(eps) * mpmath.ncdf(above)


@pytest.mark.parametrize(
    ("epsilon", "delta", "exact", "classical", "theorem_4", "theorem_8", "theorem_12"),
    [
        (0.1, 1e-5, 30.7496, 48.4481, 135.723, 47.9853, 33.9307),
        (0.5, 1e-5, 7.03183, 9.68961, 27.1446, 9.59705, 6.78614),
        (1, 1e-5, 3.73063, 4.84481, 13.5723, 4.79853, 3.39307),
        (1, 1e-6, 4.22468, 5.29880, 14.8677, 5.25652, 3.71692),
        (2, 1e-6, 2.23048, 2.64940, 7.43384, 2.62826, 1.85846),
        (8, 1e-6, 0.652935, 0.662350, 1.85846, 0.657065, 0.464615),
    ],
)
def test_the_table_of_multipliers(epsilon, delta, exact, classical, theorem_4, theorem_8, theorem_12):
    assert noise_multiplier(epsilon, delta) == pytest.approx(exact, rel=3e-6)
    printed = [PRINTED[rule](epsilon, delta) for rule in ("classical", "theorem 4", "theorem 8", "theorem 12")]
    assert printed == pytest.approx([classical, theorem_4, theorem_8, theorem_12], rel=3e-6)


def test_the_true_epsilon_of_printed_noise():
    found = {rule: printed_epsilon(rule, epsilon=1, delta=1e-5) for rule in PRINTED}
    assert found["theorem 4"] == pytest.approx(0.244251, abs=1e-6)
    assert found["theorem 8"] == pytest.approx(0.758904, abs=1e-6)
    assert found["theorem 12"] == pytest.approx(1.10987, abs=1e-5)  # E1: not private as claimed.
    assert float(exact_delta(PRINTED["theorem 12"](1, 1e-5), 1)) == pytest.approx(4.28435e-5, rel=1e-5)


@pytest.mark.parametrize(("delta", "limit"), [(1e-5, 0.3244), (1e-6, 0.143256)])
def test_theorem_12_is_private_below_a_small_epsilon_only(delta, limit):
    assert printed_epsilon("theorem 12", epsilon=limit * 0.999, delta=delta) <= limit * 0.999
    assert printed_epsilon("theorem 12", epsilon=limit * 1.001, delta=delta) > limit * 1.001


@pytest.mark.parametrize(("delta", "limit"), [(1e-5, 7.97), (1e-6, 8.34)])
def test_theorem_8_is_private_up_to_about_eight(delta, limit):
    assert printed_epsilon("theorem 8", epsilon=limit - 0.01, delta=delta) <= limit - 0.01
    assert printed_epsilon("theorem 8", epsilon=limit + 0.02, delta=delta) > limit + 0.02


@given(epsilon=EPSILONS, delta=DELTAS)
def test_the_multiplier_is_enough_to_the_last_digit_and_no_more_than_enough(epsilon, delta):
    multiplier = noise_multiplier(epsilon, delta)
    assert exact_delta(multiplier, epsilon) <= delta
    assert exact_delta(multiplier * (1 - 1e-9), epsilon) > delta


def test_a_multiplier_that_is_a_millionth_too_small_would_be_found():
    assert exact_delta(noise_multiplier(1, 1e-5) * (1 - 1e-6), 1) > 1e-5


@given(epsilon=EPSILONS, delta=DELTAS, sensitivity=st.floats(1e-6, 1e3), releases=st.integers(1, 10**6))
def test_planned_noise_is_certified_within_what_was_asked(epsilon, delta, sensitivity, releases):
    sigma = sigma_for(sensitivity, epsilon=epsilon, delta=delta, releases=releases)
    mu = mu_of(sensitivity, sigma=sigma, releases=releases)
    assert mu <= mu_from_epsilon(epsilon, delta)
    with mpmath.workdps(60):
        exact = mpmath.sqrt(releases) * mpmath.mpf(sensitivity) / mpmath.mpf(sigma)
        assert exact <= mu <= exact * (1 + mpmath.mpf("1e-12"))


def test_many_releases_are_what_a_numerical_accountant_finds():
    accountant = pld_privacy_accountant.PLDAccountant()
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(30.0), 100))
    assert epsilon_from_mu(mu_of(1.0, sigma=30.0, releases=100), 1e-5) == pytest.approx(
        accountant.get_epsilon(1e-5), rel=1e-4
    )


def test_unequal_releases_add_up_by_their_squares():
    assert composed([0.3, 0.4]) == pytest.approx(0.5, rel=1e-12)
    assert composed([0.3, 0.4]) >= 0.5


@given(bound=st.floats(1e-9, 1e9), n=st.integers(1, 10**9))
def test_a_replaced_record_moves_a_mean_by_twice_its_bound(bound, n):
    replaced = mean_sensitivity(bound, n=n, relation="replace-one")
    assert replaced == 2 * mean_sensitivity(bound, n=n, relation="add-remove")
    with mpmath.workdps(40):
        assert replaced >= 2 * mpmath.mpf(bound) / n


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: mean_sensitivity(1, n=10, relation="remove"), "relation"),
        (lambda: mean_sensitivity(1, n=0, relation="replace-one"), "n"),
        (lambda: mu_of(1, sigma=0), "sigma"),
        (lambda: noise_multiplier(0, 0.1), "epsilon"),
    ],
)
def test_what_makes_no_sense_is_named(call, named):
    with pytest.raises(ParameterError, match=named):
        call()
