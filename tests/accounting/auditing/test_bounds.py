"""Lower bounds of audits: the vectors of their specification, enumeration, and the tail of a binomial law."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import optimize, stats

from certified_unlearning.accounting.auditing.bounds import epsilon_at_least, log_most_probability, mu_at_least
from certified_unlearning.accounting.auditing.guesses import log_tail, log_tail_by_class, log_tail_of_both
from certified_unlearning.accounting.auditing.rates import least_rate, most_rate
from certified_unlearning.accounting.core.conversion import delta_from_mu
from certified_unlearning.errors import ParameterError

PRINTED = 5e-6
"""Relative, of numbers printed with six digits."""


def tail(m: int, s: int, v: int, k: int | None = None) -> float:
    return log_tail(canaries=m, members=s, named=s if k is None else k, right=v)


@pytest.mark.parametrize(
    ("numbers", "p", "epsilon", "mu"),
    [
        ((20, 10, 8), 2126 / 184756, 1.469061, 0.628346),
        ((20, 10, 9), 101 / 184756, 4.515939, 1.620485),
        ((20, 10, 10), 1 / 184756, 9.131059, 2.755146),
        ((50, 25, 19), 2.71754e-4, 5.214880, 1.813490),
        ((50, 25, 24), 626 / 126410606437752, 23.035474, 5.163034),
        ((50, 25, 25), 1 / 126410606437752, 29.474824, 6.035852),
        ((100, 50, 18, 20), 4.41861e-5, 7.031369, None),
        ((100, 50, 10, 10), 5.93420e-4, 4.433876, None),
        ((50, 25, 10, 10), 3.18212e-4, 5.057061, None),
    ],
)
def test_one_run_has_the_vectors_of_its_specification(
    numbers: tuple[int, ...], p: float, epsilon: float, mu: float | None
) -> None:
    log_p = tail(*numbers)
    assert math.exp(log_p) == pytest.approx(p, rel=PRINTED)
    assert epsilon_at_least(0.05, log_p) == pytest.approx(epsilon, abs=1e-5)
    assert mu is None or mu_at_least(0.05, log_p) == pytest.approx(mu, abs=1e-6)


@pytest.mark.parametrize(
    ("numbers", "epsilon", "mu"),
    [
        ((20, 10, 9), 0.603916, 0.175106),
        ((50, 25, 24), 19.123451, 3.717655),
        ((50, 25, 25), 25.562801, 4.590473),
    ],
)
def test_one_run_has_the_vectors_of_verdicts(numbers: tuple[int, ...], epsilon: float, mu: float) -> None:
    assert epsilon_at_least(1e-3, tail(*numbers)) == pytest.approx(epsilon, abs=1e-6)
    assert mu_at_least(1e-3, tail(*numbers)) == pytest.approx(mu, abs=1e-6)


@pytest.mark.parametrize(
    ("numbers", "p", "epsilon"),
    [((100, 50, 10, 10, 18), 2.15294e-4, 5.447773), ((20, 10, 5, 5, 10), 1.363961e-3, 3.60163)],
)
def test_naming_others_too_has_the_vectors_of_its_specification(numbers: tuple[int, ...], p: float, epsilon: float):
    canaries, members, named, others, right = numbers
    log_p = log_tail_of_both(canaries=canaries, members=members, named=named, named_others=others, right=right)
    assert math.exp(log_p) == pytest.approx(p, rel=PRINTED)
    assert epsilon_at_least(0.05, log_p) == pytest.approx(epsilon, abs=1e-5)


def test_naming_others_too_is_no_hypergeometric_law_of_all_guesses() -> None:
    both = log_tail_of_both(canaries=100, members=50, named=10, named_others=10, right=18)
    assert both - tail(100, 50, 18, 20) > math.log(4.8)


@pytest.mark.parametrize(("right", "p"), [(9, 8.03099e-4), (10, 1.574704e-5)])
def test_members_drawn_by_class_have_the_vectors_of_their_specification(right: int, p: float) -> None:
    log_p = log_tail_by_class(canaries=(10, 10), members=(5, 5), named=10, right=right)
    assert math.exp(log_p) == pytest.approx(p, rel=PRINTED)


@pytest.mark.parametrize(
    ("numbers", "runs", "alpha", "delta", "least", "epsilon", "mu"),
    [
        ((20, 10, 7), (200, 60), 0.05, 1e-6, 0.246697, 1.014501, 0.659242),
        ((20, 10, 8), (100, 5), 0.05, 0.0, 0.019906, 0.548038, 0.217497),
        ((20, 10, 8), (100, 30), 0.05, 1e-6, 0.224923, 2.972793, 1.517529),
        ((20, 10, 9), (1000, 40), 0.05, 1e-6, 0.030330, 4.016036, 1.389380),
        ((50, 25, 17), (100, 20), 0.001, 1e-6, 0.094505, 2.119103, 0.964811),
        ((20, 10, 10), (10, 10), 0.05, 0.0, 0.741134, 11.827218, 5.046847),
        ((200, 2, 1, 1), (20, 20), 0.05, 0.0, None, 4.455, None),
        ((200, 2, 1, 1), (20, 20), 0.001, 0.0, None, 4.260, None),
        ((50, 2, 1, 1), (100, 100), 0.05, 0.0, None, 3.189, None),
        ((50, 2, 1, 1), (100, 100), 0.001, 0.0, None, 3.150, None),
    ],
)
def test_several_runs_have_the_vectors_of_their_specification(
    numbers, runs, alpha: float, delta: float, least: float | None, epsilon: float, mu: float | None
) -> None:
    (count, found), rate = runs, least_rate(runs[1], runs[0], miss=alpha)
    assert found <= count
    assert least is None or rate == pytest.approx(least, abs=6e-7)
    digits = 5e-4 if least is None else 1e-6
    assert epsilon_at_least(rate, tail(*numbers), delta=delta) == pytest.approx(epsilon, abs=digits)
    assert mu is None or mu_at_least(rate, tail(*numbers)) == pytest.approx(mu, abs=1e-6)


@pytest.mark.parametrize(
    ("unlearned", "comparator", "alpha", "delta", "low", "up", "mu", "epsilon"),
    [
        ((6900, 10000), (3100, 10000), 0.05, 1e-6, 0.680831, 0.319169, 0.940047, 0.757592),
        ((5500, 10000), (4500, 10000), 0.05, 1e-6, 0.540186, 0.459814, 0.201804, 0.161089),
        ((300, 10000), (100, 10000), 0.05, 1e-6, 0.026744, 0.012150, 0.321408, 0.788985),
        ((500, 500), (0, 500), 0.05, 0.0, 0.992649, 0.007351, 4.879314, 4.905594),
        ((6900, 10000), (3100, 10000), 0.001, 1e-6, 0.674592, 0.325408, 0.905256, 0.729025),
    ],
)
def test_two_laws_have_the_vectors_of_their_specification(
    unlearned, comparator, alpha: float, delta: float, low: float, up: float, mu: float, epsilon: float
) -> None:
    rate, other = least_rate(*unlearned, miss=alpha / 2), most_rate(*comparator, miss=alpha / 2)
    assert (rate, other) == (pytest.approx(low, abs=6e-7), pytest.approx(up, abs=6e-7))
    assert mu_at_least(rate, math.log(other)) == pytest.approx(mu, abs=1e-6)
    assert epsilon_at_least(rate, math.log(other), delta=delta) == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize(
    ("m", "v", "p"),
    [
        (20, 8, 0.0115071), (20, 9, 5.46667e-4), (50, 16, 0.0443711), (50, 19, 2.71754e-4), (100, 30, 0.0356712),
        (100, 34, 3.00627e-4),
    ],
)  # fmt: skip
def test_levels_that_are_attained_are_those_of_the_specification(m: int, v: int, p: float) -> None:
    """The largest tails at most .05 and 1e-3: what the null tests compare with."""
    assert math.exp(tail(m, m // 2, v)) == pytest.approx(p, rel=PRINTED)
    alpha = 0.05 if p > 1e-3 else 1e-3
    assert math.exp(tail(m, m // 2, v)) <= alpha < math.exp(tail(m, m // 2, v - 1))


def test_tails_of_eight_canaries_are_those_of_enumeration() -> None:
    """All subsets of each size, by one fixed guess of each size: for one kind of guess, and for both."""
    for members in range(9):
        subsets = [set(each) for each in combinations(range(8), members)]
        for named in range(9):
            hits = np.array([len(set(range(named)) & each) for each in subsets])
            for right in range(named + 1):
                found = math.exp(log_tail(canaries=8, members=members, named=named, right=right))
                assert found == pytest.approx(np.mean(hits >= right), abs=1e-12)
            for others in range(9 - named):
                misses = np.array([others - len(set(range(named, named + others)) & each) for each in subsets])
                for right in range(named + others + 1):
                    log_p = log_tail_of_both(canaries=8, members=members, named=named, named_others=others, right=right)
                    assert math.exp(log_p) == pytest.approx(np.mean(hits + misses >= right), abs=1e-12)


@pytest.mark.parametrize(("first", "second"), [((4, 2), (4, 2)), ((3, 1), (5, 3)), ((2, 2), (6, 1))])
def test_tails_by_class_are_the_largest_of_enumeration(first: tuple[int, int], second: tuple[int, int]) -> None:
    (m, s), (other_m, other_s) = first, second
    subsets = [
        {*one, *two} for one in combinations(range(m), s) for two in combinations(range(m, m + other_m), other_s)
    ]
    for named in range(9):
        guesses = [set(each) for each in combinations(range(8), named)]
        for right in range(named + 1):
            most = max(np.mean([len(each & guess) >= right for each in subsets]) for guess in guesses)
            log_p = log_tail_by_class(canaries=(m, other_m), members=(s, other_s), named=named, right=right)
            assert math.exp(log_p) == pytest.approx(most, abs=1e-12)


@pytest.mark.parametrize(
    ("successes", "trials", "miss"), [(1, 10, 0.05), (30, 100, 1e-3), (500, 500, 0.025), (40, 1000, 1e-6)]
)
def test_rates_are_roots_of_the_tail_of_the_binomial_law(successes: int, trials: int, miss: float) -> None:
    root = optimize.brentq(lambda p: stats.binom.sf(successes - 1, trials, p) - miss, 1e-12, 1 - 1e-12, xtol=1e-14)
    assert least_rate(successes, trials, miss=miss) == pytest.approx(root, rel=1e-9)
    assert most_rate(trials - successes, trials, miss=miss) == pytest.approx(1 - root, rel=1e-9)


def test_nothing_is_shown_where_nothing_can_be() -> None:
    log_p = tail(50, 25, 25)
    assert epsilon_at_least(1e-3, log_p, delta=1e-3) == 0  # alpha at most delta
    assert mu_at_least(1e-3, log_p, extra_delta=1e-3) == 0
    rate = least_rate(0, 100, miss=0.05)
    assert (rate, most_rate(100, 100, miss=0.05)) == (0.0, 1.0)
    assert epsilon_at_least(rate, log_p) == mu_at_least(rate, log_p) == 0
    assert mu_at_least(0.05, 0.0) == epsilon_at_least(0.05, 0.0) == 0  # as many right as any guess has


def test_certified_epsilon_8_is_contradicted_by_fewer_canaries_where_it_states_mu() -> None:
    """Alpha 1e-3, delta 1e-6, mu 1.531545; m = 22 or 26 where all are right, and v = 21 or 22 where m = 50."""
    even = range(10, 40, 2)
    assert min(m for m in even if mu_at_least(1e-3, tail(m, m // 2, m // 2)) > 1.531545) == 22
    assert min(m for m in even if epsilon_at_least(1e-3, tail(m, m // 2, m // 2), delta=1e-6) > 8) == 26
    assert min(v for v in range(26) if mu_at_least(1e-3, tail(50, 25, v)) > 1.531545) == 21
    assert min(v for v in range(26) if epsilon_at_least(1e-3, tail(50, 25, v), delta=1e-6) > 8) == 22


def test_what_a_curve_allows_is_never_more_than_its_point_does() -> None:
    mu, epsilon = 1.5, 3.0
    for log_p in np.linspace(-30, -0.01, 50):
        by_curve = log_most_probability(log_p, epsilon=math.inf, delta=0.0, mu=mu)
        by_point = log_most_probability(log_p, epsilon=epsilon, delta=delta_from_mu(mu, epsilon))
        assert by_curve <= by_point + 1e-12


def test_bounds_are_inverse_to_what_a_statement_allows() -> None:
    for log_p in (-1.0, -5.0, -12.0):
        allowed = math.exp(log_most_probability(log_p, epsilon=0.5, delta=1e-6))
        assert epsilon_at_least(allowed, log_p, delta=1e-6) == pytest.approx(0.5, abs=1e-9)
        allowed = math.exp(log_most_probability(log_p, epsilon=9.0, delta=1.0, mu=0.7, extra_delta=1e-19))
        assert mu_at_least(allowed, log_p, extra_delta=1e-19) == pytest.approx(0.7, abs=1e-9)


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ParameterError, match="got successes = 3 and trials = 2"):
        least_rate(3, 2, miss=0.1)
    with pytest.raises(ParameterError, match="got 9 members and 3 named"):
        log_tail(canaries=8, members=9, named=3, right=1)
    with pytest.raises(ParameterError, match="ways to name 25 canaries"):
        log_tail_by_class(canaries=(10,) * 10, members=(5,) * 10, named=25, right=25)
