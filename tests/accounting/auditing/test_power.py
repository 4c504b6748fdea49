"""What audits see of canaries of a given strength: the tables of their specification, by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from certified_unlearning.accounting.auditing.bounds import epsilon_at_least, mu_at_least
from certified_unlearning.accounting.auditing.guesses import log_tail
from certified_unlearning.accounting.auditing.rates import least_rate, most_rate

STRENGTHS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
"""How far a canary moves what is published, in standard deviations of its noise."""
SHARES = {
    (20, 0.05): (8, (0.08, 0.17, 0.30, 0.45, 0.63, 0.88, 1, 1)),
    (50, 0.05): (17, (0.19, 0.43, 0.69, 0.88, 0.97, 1, 1, 1)),
    (100, 0.05): (31, (0.40, 0.78, 0.95, 1, 1, 1, 1, 1)),
    (200, 0.05): (58, (0.76, 0.98, 1, 1, 1, 1, 1, 1)),
    (20, 1e-3): (10, (0, 0, 0, 0.01, 0.02, 0.08, 0.48, 0.86)),
    (50, 1e-3): (19, (0.02, 0.08, 0.23, 0.47, 0.73, 0.97, 1, 1)),
    (100, 1e-3): (34, (0.07, 0.31, 0.68, 0.93, 0.99, 1, 1, 1)),
    (200, 1e-3): (63, (0.22, 0.74, 0.98, 1, 1, 1, 1, 1)),
}
"""By canaries and level: from how many right guesses on epsilon is above 1, and how often there are so many."""
DRAWS = 2000


@pytest.mark.parametrize(("m", "alpha"), SHARES)
def test_canaries_of_a_strength_are_seen_as_often_as_specified(m: int, alpha: float) -> None:
    """The specification drew 4000 times or more: a share is off by 5 standard errors with probability 1e-6. Seeded."""
    least, shares = SHARES[m, alpha]
    tails = [log_tail(canaries=m, members=m // 2, named=m // 2, right=right) for right in range(m // 2 + 1)]
    assert next(right for right, log_p in enumerate(tails) if epsilon_at_least(alpha, log_p) > 1) == least
    rng = np.random.default_rng(m)
    for strength, share in zip(STRENGTHS, shares, strict=True):
        scores = rng.standard_normal((DRAWS, m))
        scores[:, : m // 2] += strength
        named = np.argpartition(-scores, m // 2, axis=1)[:, : m // 2]
        found = float(((named < m // 2).sum(axis=1) >= least).mean())
        error = math.sqrt(max(share * (1 - share), 0.005) * (1 / DRAWS + 1 / 4000))
        assert abs(found - share) < 5 * error + 0.005, strength


def test_strength_times_the_root_of_the_number_decides() -> None:
    """At 14, and 50 canaries or more, .97 are seen at 1e-3. Seeded."""
    rng = np.random.default_rng(0)
    for m, least in ((50, 19), (100, 34), (200, 63)):
        scores = rng.standard_normal((DRAWS, m))
        scores[:, : m // 2] += 14 / math.sqrt(m)
        named = np.argpartition(-scores, m // 2, axis=1)[:, : m // 2]
        assert ((named < m // 2).sum(axis=1) >= least).mean() > 0.95


BY_LAWS = {
    (0.2367, 10_000): (0.791, 0.650),
    (0.2367, 18_000): (0.844, 0.739),
    (0.5, 10_000): (0.900, 0.832),
    (0.5, 18_000): (0.926, 0.876),
    (1.0, 10_000): (0.948, 0.913),
    (1.0, 18_000): (0.962, 0.936),
    (2.0, 10_000): (0.970, 0.951),
    (2.0, 18_000): (0.978, 0.963),
}
"""By mu and how many models of each law are counted: which share of mu is shown at .05, and at 1e-3, on average."""


def shown_of(mu: float, counted: int, alpha: float, likely: int, rare: int) -> float:
    """Return the bound that so many of each law in an event give."""
    rate = least_rate(likely, counted, miss=alpha / 2)
    return mu_at_least(rate, math.log(most_rate(rare, counted, miss=alpha / 2)))


@pytest.mark.statistical
@pytest.mark.parametrize(("mu", "counted"), BY_LAWS)
def test_audits_of_two_gaussian_laws_show_as_much_as_specified(mu: float, counted: int) -> None:
    """2000 audits, beside 20 000 of the specification: off by 5 standard errors with probability 1e-6 each. Seeded."""
    rng = np.random.default_rng(int(1000 * mu) + counted)
    likely, rare = (rng.binomial(counted, stats.norm.cdf(each), 2000).tolist() for each in (mu / 2, -mu / 2))
    for alpha, share in zip((0.05, 1e-3), BY_LAWS[mu, counted], strict=True):
        found = np.array([shown_of(mu, counted, alpha, *each) for each in zip(likely, rare, strict=True)]) / mu
        error = found.std() * math.sqrt(1 / 2000 + 1 / 20_000)
        assert abs(found.mean() - share) < 5 * error + 0.0005
        # The mu is true: .0025 of audits lie above it at .05, none at 1e-3.
        assert (found > 1).sum() <= stats.binom.isf(1e-6, 2000, 0.0025 if alpha == 0.05 else 1e-5)


@pytest.mark.parametrize(("mu", "by_epsilon", "by_mu"), [(0.236704, 0.315, 0.79), (1.00242, 2.22, 0.95)])
def test_events_that_counts_can_see_show_a_part_of_epsilon_and_nearly_all_of_mu(
    mu: float, by_epsilon: float, by_mu: float
) -> None:
    """10 000 counted, as many as expected, and the best threshold: certified are 1 and 4.9 at delta 1e-6."""
    counted, found = 10_000, []
    for threshold in np.linspace(-4, 4, 801):
        likely, rare = (round(counted * float(stats.norm.cdf(each))) for each in (mu - threshold, -threshold))
        rate = least_rate(likely, counted, miss=0.025)
        found.append(epsilon_at_least(rate, math.log(most_rate(rare, counted, miss=0.025)), delta=1e-6))
    # A rare model more or less is worth .02 of the larger one.
    assert max(found) == pytest.approx(by_epsilon, abs=0.025)
    counts = (round(counted * float(stats.norm.cdf(each))) for each in (mu / 2, -mu / 2))
    assert shown_of(mu, counted, 0.05, *counts) / mu == pytest.approx(by_mu, abs=0.006)
