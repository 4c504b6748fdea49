"""Attack advantages under deletion bounds: section 7.2's tables, and claims of the paper that fail (E2, E3, E6)."""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from certified_unlearning.accounting.core.conversion import epsilon_from_renyi
from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.accounting.deletion.soundness import largest_advantage
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.forget_unlearning.theory.attacks import keyed_count_advantage, majority_advantage
from certified_unlearning.papers.forget_unlearning.theory.soundness import (
    adaptive_epsilon,
    coin_divergence,
    gaussian_advantage,
    laplace_divergence,
    least_noise_multiplier,
    randomised_response_divergence,
)
from tests.accounting.deletion_settings import quoted


def second_entry_of_10(alpha, epsilon):
    """As the sheet prints it, without the cap that `largest_advantage` has."""
    return alpha / (alpha - 1) * math.exp(epsilon * (alpha - 1) / alpha) * (2 * (alpha - 1)) ** (1 / alpha) - 1


@pytest.mark.parametrize(
    ("alpha", "epsilon", "root", "second"),
    [
        (2, 0.1, 0.447214, 1.97344),
        (8, 0.01, 0.141421, 0.603460),
        (32, 0.1, 0.447214, 0.293817),
        (32, 0.5, 1.00000, 0.906171),
        (1000, 0.1, 0.447214, 0.114605),
        (10**6, 0.3, 0.774597, 0.349879),
    ],
)
def test_the_largest_advantage_has_the_sheets_values(alpha, epsilon, root, second):
    assert math.sqrt(2 * epsilon) == quoted(root)
    assert second_entry_of_10(alpha, epsilon) == quoted(second)
    assert largest_advantage(epsilon, alpha=alpha) == quoted(min(root, second, 1.0))


def test_the_largest_advantage_is_capped_and_has_its_limits():
    assert largest_advantage(50.0, alpha=2.0) == 1.0
    assert largest_advantage(0.0, alpha=2.0) == 0.0
    assert largest_advantage(0.3, alpha=math.inf) == quoted(0.349859)


def test_the_design_rule_converts_back_to_its_epsilon():
    curve = RenyiCurve(lambda alpha: np.full_like(alpha, math.log(0.5)), orders=np.array([1 + 2 * math.log(1e5)]))
    assert epsilon_from_renyi(curve, 1e-5, conversion="paper").epsilon == quoted(1.0)


def test_the_largest_advantage_is_never_below_that_between_two_gaussians():
    for alpha in (1.01, 2, 8, 100, 1e5):
        for divergence in np.geomspace(1e-6, 20, 60):
            assert gaussian_advantage(divergence, alpha=alpha) <= largest_advantage(divergence, alpha=alpha)


def test_the_advantage_between_two_gaussians_is_that_of_the_normal_law():
    assert gaussian_advantage(0.7, alpha=3.0) == pytest.approx(2 * ndtr(math.sqrt(2 * 0.7 / 3) / 2) - 1)


# --- E6 --------------------------------------------------------------------------------------


def achieved(multiplier, steps, delta):
    """``min over alpha of 2 alpha K / z^2 + log(1 / delta) / (alpha - 1)``, at the order that remark G.8 takes."""
    alpha = 1 + 2 * math.log(1 / delta)
    return 2 * alpha * steps / multiplier**2 + math.log(1 / delta) / (alpha - 1)


def test_remark_g8_lacks_a_factor_2():
    needed = least_noise_multiplier(1.0, 1e-5, steps=1000)
    assert needed == quoted(310.005)
    assert achieved(needed, 1000, 1e-5) == quoted(1.0)
    printed = needed / 2
    assert printed == quoted(155.003)
    assert achieved(printed, 1000, 1e-5) == quoted(2.5)


# --- E2 and E3: what the printed theorems promise, and attacks that break it ------------------------------------------


def test_the_first_counterexample_breaks_theorem_4_1_for_the_whole_stream():
    one_release = coin_divergence(0.1, alpha=2.0)
    assert one_release == quoted(0.00249273)
    promised = largest_advantage(one_release, alpha=2.0)
    assert promised == quoted(0.0706078)
    assert majority_advantage(0.1, releases=1) < promised < majority_advantage(0.1, releases=100)


def test_the_second_counterexample_breaks_theorem_4_3_as_printed():
    response, laplace = randomised_response_divergence(0.2, alpha=2.0), laplace_divergence(0.2, alpha=2.0)
    assert (response, laplace) == (quoted(0.0393491), quoted(0.0370149))
    printed = adaptive_epsilon(0.0, max(response, laplace), observed=1)
    promised = largest_advantage(printed, alpha=2.0)
    assert promised == quoted(0.280532)
    attained = keyed_count_advantage(0.2, key_length=500)
    assert attained > promised
    # All calls composed do promise no less than is attained.
    assert attained <= largest_advantage(501 * max(response, laplace), alpha=2.0)


@pytest.mark.parametrize("alpha", [1.1, 2.0, 8.0])
def test_divergences_of_responses_and_laplace_laws_are_those_of_their_integrals(alpha):
    kept = 1 / (1 + math.exp(-0.7))

    def discrete(first, second):
        return math.log(sum(p**alpha * r ** (1 - alpha) for p, r in zip(first, second, strict=True))) / (alpha - 1)

    assert randomised_response_divergence(0.7, alpha=alpha) == pytest.approx(
        discrete((kept, 1 - kept), (1 - kept, kept))
    )
    assert coin_divergence(0.7, alpha=alpha) == pytest.approx(discrete((kept, 1 - kept), (0.5, 0.5)))
    points = np.linspace(-60, 61, 1_210_001)
    exponents = -0.7 * (alpha * np.abs(points) + (1 - alpha) * np.abs(points - 1))
    integral = 0.35 * np.exp(exponents).sum() * (points[1] - points[0])
    assert laplace_divergence(0.7, alpha=alpha) == pytest.approx(math.log(integral) / (alpha - 1), rel=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda: largest_advantage(-1.0, alpha=2.0),
        lambda: largest_advantage(1.0, alpha=1.0),
        lambda: adaptive_epsilon(0.1, 1.0, observed=-1),
        lambda: least_noise_multiplier(1.0, 1.0, steps=10),
        lambda: gaussian_advantage(-0.1, alpha=2.0),
    ],
)
def test_values_that_make_no_sense_are_refused(call):
    with pytest.raises(ParameterError):
        call()


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.7, 30.0, 2000.0])
@pytest.mark.parametrize("alpha", [1 + 1e-9, 1 + 1e-6, 1.5, 3.0, 200.0])
def test_divergences_of_bits_keep_their_digits_at_extreme_orders(epsilon, alpha):
    """Against 60 digits; the mean of gains that nearly cancel keeps half of a double's."""
    with mpmath.workdps(60):
        order = mpmath.mpf(alpha)
        kept, flipped = (1 / (1 + mpmath.exp(sign * mpmath.mpf(epsilon))) for sign in (-1, 1))
        for found, second in (
            (coin_divergence(epsilon, alpha=alpha), (mpmath.mpf(1) / 2, mpmath.mpf(1) / 2)),
            (randomised_response_divergence(epsilon, alpha=alpha), (flipped, kept)),
        ):
            terms = [p**order * q ** (1 - order) for p, q in zip((kept, flipped), second, strict=True)]
            exact = float(mpmath.log(sum(terms)) / (order - 1))
            assert found == pytest.approx(exact, rel=1e-5, abs=1e-16)
