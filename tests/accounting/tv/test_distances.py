"""Total variation of Gaussians and of groups, against integrals, enumeration and the dissertation's numbers."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from certified_unlearning.accounting.tv import distances as tv
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.tv_stability.theory import distances

GAPS = st.floats(1e-6, 12)


@pytest.mark.parametrize(
    ("gap", "value"),
    [
        (0.05, 0.0199450),
        (0.1, 0.0398776),
        (0.25, 0.0994764),
        (0.5, 0.197413),
        (1, 0.382925),
        (math.sqrt(0.5) / 0.7, 0.386495),
        (2, 0.682689),
        (3, 0.866386),
        (4, 0.954500),
    ],
)
def test_total_variation_of_gaussians(gap: float, value: float) -> None:
    assert tv.gaussian_tv(gap) == pytest.approx(value, rel=5e-6)
    low, high = -12, gap + 12
    difference = quad(lambda x: abs(norm.pdf(x) - norm.pdf(x, gap)), low, high, points=[gap / 2])[0] / 2
    assert tv.gaussian_tv(gap) == pytest.approx(difference, rel=1e-9)


@given(GAPS)
def test_bounds_are_above_the_exact_value(gap: float) -> None:
    exact = tv.gaussian_tv(gap)
    kl = distances.gaussian_renyi(gap, 1)
    assert exact <= distances.gaussian_tv_bound(gap)
    assert exact <= distances.pinsker(kl)
    assert exact <= distances.bretagnolle_huber(kl)


@given(GAPS, st.floats(1.001, 2))
def test_total_variation_grows_with_the_gap(gap: float, factor: float) -> None:
    assert tv.gaussian_tv(gap) <= tv.gaussian_tv(gap * factor)
    assert distances.gaussian_renyi(gap, 1) < distances.gaussian_renyi(gap, factor)


@given(st.floats(1e-9, 1 - 1e-9))
def test_the_gap_of_a_total_variation_is_the_inverse(value: float) -> None:
    assert tv.gaussian_tv(tv.gap_of_tv(value)) == pytest.approx(value, rel=1e-12)


def test_renyi_divergence_is_the_integral() -> None:
    moment = quad(lambda x: norm.pdf(x) ** 1.7 * norm.pdf(x, 0.8) ** -0.7, -30, 30)[0]
    assert distances.gaussian_renyi(0.8, 1.7) == pytest.approx(math.log(moment) / 0.7, rel=1e-9)


@pytest.mark.parametrize(("divergence", "huber", "pinsker"), [(0.05, 0.220841, 0.158114), (0.5, 0.627271, 0.5)])
def test_bounds_by_divergence(divergence: float, huber: float, pinsker: float) -> None:
    assert distances.bretagnolle_huber(divergence) == pytest.approx(huber, rel=5e-6)
    assert distances.pinsker(divergence) == pytest.approx(pinsker, rel=5e-6)


def test_groups_count_replaced_records_twice() -> None:
    assert distances.group_stability(0.01, replaced=3, added=2) == pytest.approx(0.08)
    assert distances.group_stability(0.3, replaced=2) == 1


def test_the_example_of_proposition_5() -> None:
    case = {"n": 50, "batch_size": 5, "steps": 10, "lipschitz": 1.0, "sigma": 2.0}
    assert distances.last_iterate_tv(**case) == pytest.approx(0.0252128, rel=5e-6)
    assert 8 * math.sqrt(10) / (50 * 2) == pytest.approx(0.252982, rel=5e-6)


def test_the_example_of_proposition_5_by_enumerating_batches() -> None:
    """The law of ``sum xi_t`` is a mixture over which batches have the record; the two laws mirror each other."""
    n, m, steps, sigma = 4, 1, 3, 0.6
    total = 0.0
    for hits in product((0, 1), repeat=steps):
        weight = np.prod([m / n if hit else 1 - m / n for hit in hits])
        total += weight * tv.gaussian_tv(2 * sum(hits) / m / (math.sqrt(steps) * sigma))
    assert distances.last_iterate_tv(n=n, batch_size=m, steps=steps, lipschitz=1.0, sigma=sigma) == pytest.approx(total)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tv.gaussian_tv(-1.0), "gap"),
        (lambda: tv.gap_of_tv(1.0), "tv must lie strictly between 0 and 1"),
        (lambda: distances.gaussian_renyi(1.0, 0.5), "alpha must be a finite number, at least 1, got 0.5"),
        (lambda: distances.pinsker(-0.1), "divergence"),
        (lambda: distances.group_stability(0.1, replaced=-1), "replaced"),
        (lambda: distances.last_iterate_tv(n=5, batch_size=6, steps=1, lipschitz=1, sigma=1), "at most n = 5, got 6"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
