"""How often a guess about removed records can be right, against exact oracles."""

import math
from decimal import Decimal, localcontext

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from certified_unlearning.accounting import epsilon_from_mu
from certified_unlearning.accounting.core.guessing import right_guesses, right_guesses_of_gaussian
from certified_unlearning.errors import ParameterError

EPSILONS = st.one_of(st.floats(0, 40), st.floats(0, 1e-6), st.floats(40, 1e6))
DELTAS = st.one_of(st.floats(0, 1), st.floats(0, 1e-9))


def excess(share: float, epsilon: float, delta: float) -> Decimal:
    """Return how far a share is above that of the best guesser, on the two laws that attain the guarantee."""
    with localcontext() as context:
        context.prec = 400
        ratio, rest = Decimal(min(epsilon, 900.0)).exp(), 1 - Decimal(delta)
        first = (Decimal(delta), rest * ratio / (1 + ratio), rest / (1 + ratio), Decimal(0))
        second = tuple(reversed(first))
        return Decimal(share) - sum(map(max, first, second), Decimal(0)) / 2


@given(EPSILONS, DELTAS)
@example(0.0, 0.0)
@example(1e-17, 0.0)
@example(0.0, 5e-324)
@example(800.0, 0.5)
def test_the_share_is_never_below_the_one_that_some_pair_of_laws_attains(epsilon: float, delta: float) -> None:
    share = right_guesses(epsilon=epsilon, delta=delta)
    above = excess(share, epsilon, delta)
    assert above >= 0 or share == 1
    assert above <= 2e-12


@given(st.one_of(st.floats(0, 80), st.floats(0, 1e-9)))
@example(0.0)
@example(1e-17)
def test_the_share_of_a_gaussian_guarantee_is_never_below_phi_of_half_of_mu(mu: float) -> None:
    share = right_guesses_of_gaussian(mu)
    with mpmath.workdps(400):
        above = mpmath.mpf(share) - mpmath.ncdf(mpmath.mpf(mu) / 2)
        assert above >= 0
        assert above <= 2e-12


def test_a_guarantee_of_zero_leaves_a_coin() -> None:
    assert right_guesses(epsilon=0.0, delta=0.0) == right_guesses_of_gaussian(0.0) == 0.5


def test_what_is_added_to_delta_counts_by_its_half() -> None:
    assert right_guesses_of_gaussian(1.0, extra_delta=0.1) == pytest.approx(right_guesses_of_gaussian(1.0) + 0.05)
    assert right_guesses_of_gaussian(0.0, extra_delta=1e-300) > 0.5


def test_mu_tells_more_than_the_epsilon_that_follows_from_it() -> None:
    for mu in (0.1, 0.5, 1.0, 2.0):
        share = right_guesses_of_gaussian(mu)
        assert all(share < right_guesses(epsilon=epsilon_from_mu(mu, delta), delta=delta) for delta in (1e-6, 1e-3))


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_a_delta_that_is_none_is_refused(value: float) -> None:
    with pytest.raises(ParameterError, match=r"^delta must lie between 0 and 1, got"):
        right_guesses(epsilon=1.0, delta=value)
    with pytest.raises(ParameterError, match=r"^extra_delta must lie between 0 and 1, got"):
        right_guesses_of_gaussian(1.0, extra_delta=value)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_an_epsilon_or_mu_that_is_none_is_refused(value: float) -> None:
    with pytest.raises(ParameterError, match="epsilon must be a finite number, at least 0"):
        right_guesses(epsilon=value, delta=0.0)
    with pytest.raises(ParameterError, match="mu must be a finite number, at least 0"):
        right_guesses_of_gaussian(value)
