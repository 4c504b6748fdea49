"""X12: every mechanism passes its audit, every planted fault is caught, and audits are wrong as rarely as they say."""

import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy import stats

from certified_unlearning.accounting.core.conversion import delta_from_mu
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.private_learning import audits
from certified_unlearning.papers.private_learning.attacks import Attack
from certified_unlearning.papers.private_learning.audit_statistics import (
    audited,
    law_holds,
    least_of_noisy,
    rate_above,
    shown_delta,
    shown_mu,
)

OF_THE_ISSUE = {
    "a forgotten sqrt(T)",
    "L0 for G",
    "n for the chunk size",
    "an inner radius too small",
    "c = 1.61 for replace-one",
}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, object]]:
    """At an epsilon so large that so few runs see faults; where dp-accounting plans, it would take long for that."""
    found = [asdict(each) for each in audits.sampled(runs=3000, seed=0, epsilon=2.0)]
    return audits.rows(runs=1500, epsilon=8.0, with_sampling=False) + found


@pytest.mark.statistical
def test_no_mechanism_shows_more_than_is_stated_and_every_planted_fault_is_caught(rows):
    """False alarms: at most 1e-6 a row that samples, 3e-5 in all.

    Its setup audits every mechanism, and every planted fault, with thousands of runs.
    """
    assert {row["planted"] for row in rows} >= OF_THE_ISSUE
    assert {row["false_alarm"] for row in rows} == {0.0, 1e-6}
    for row in rows:
        assert row["caught"] == bool(row["planted"]), row


@pytest.mark.statistical
def test_each_fault_of_the_issue_is_caught_by_runs_of_a_mechanism_and_by_its_recomputed_guarantee(rows):
    for fault in OF_THE_ISSUE:
        ways = {row["method"] == "recomputed guarantee" for row in rows if row["planted"] == fault}
        assert ways == {True, False}, fault


def test_gaussian_outputs_have_their_law_to_the_last_digit_and_attain_what_is_stated(rows):
    exact = {row["mechanism"]: row for row in rows if row["method"] == "exact law" and not row["planted"]}
    assert all(row["exact"] is not None and row["exact"] <= row["stated"] for row in exact.values())
    for mechanism in ("output perturbation", "phased descent", "tree Spider, root", "tree Spider, node 11"):
        assert exact[mechanism]["exact"] > 0.98 * exact[mechanism]["stated"]


def gaussians(mu: float, runs: int, generator: np.random.Generator) -> Attack:
    return Attack(generator.normal(mu / 2, 1, runs), generator.normal(-mu / 2, 1, runs), mu)


@pytest.mark.parametrize("mu", [0.2, 1.5])
def test_lower_bounds_are_above_the_truth_as_rarely_as_they_say(mu):
    """4000 audits with a false-alarm rate of 2 %; this test is wrong once in 1e6."""
    generator, audited, rate = np.random.default_rng(0), 4000, 0.02
    epsilon = 0.5
    some = [gaussians(mu, 200, generator) for _ in range(audited)]
    too_much = sum(shown_mu(each, false_alarm=rate) > mu for each in some)
    # A log-likelihood ratio is mu times the score.
    ratios = [Attack(mu * each.here, mu * each.there) for each in some]
    true_delta = delta_from_mu(mu, epsilon)
    too_large = sum(shown_delta(each, epsilon, false_alarm=rate) > true_delta for each in ratios)
    most = stats.binom(audited, rate).ppf(1 - 1e-6)
    assert max(too_much, too_large) <= most


def test_lower_bounds_near_the_truth_with_more_runs():
    attack = gaussians(1.0, 400_000, np.random.default_rng(1))
    assert shown_mu(attack) == pytest.approx(1.0, abs=0.03)
    assert shown_mu(attack) < 1
    ratios = Attack(attack.here, attack.there)
    assert shown_delta(ratios, 0.5) == pytest.approx(delta_from_mu(1.0, 0.5), abs=0.02)
    assert rate_above(np.array([-1.0, 1.0, 1.0, 1.0]), 0.01) == pytest.approx(stats.beta.ppf(0.01, 3, 2))
    assert rate_above(np.full(5, -1.0), 0.01) == 0


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_law_with_other_noise_is_not_confirmed_and_counts_as_caught(factor):
    honest = gaussians(1.0, 20_000, np.random.default_rng(2))
    assert law_holds(honest)
    other = replace(honest, here=honest.here * factor, there=honest.there * factor)
    assert not law_holds(other)
    assert audited("a mechanism", other, 5.0, relation="replace-one").caught
    assert not audited("a mechanism", honest, 1.0, relation="replace-one").caught
    with pytest.raises(ParameterError, match="not Gaussian"):
        law_holds(replace(honest, mu=None))


def test_what_cannot_be_bounded_shows_nothing():
    assert shown_mu(Attack(np.full(5, -1.0), np.full(5, -1.0))) == 0
    with pytest.raises(ParameterError, match="runs"):
        audits.rows(runs=0)


def test_a_noisy_minimum_by_quadrature_is_that_of_a_simulation():
    """40 000 draws, chi-squared; wrong once in 1e6."""
    scores, scale, draws = [0.0, 0.3, 1.0], 0.5, 40_000
    law = least_of_noisy(scores, scale)
    assert law.sum() == pytest.approx(1, abs=1e-7)
    noisy = np.array(scores) + np.random.default_rng(3).laplace(scale=scale, size=(draws, 3))
    counts = np.bincount(noisy.argmin(axis=1), minlength=3)
    assert stats.chisquare(counts, draws * law / law.sum()).pvalue > 1e-6
    two = least_of_noisy([0.0, 1.0], 1.0)
    assert two[0] == pytest.approx(1 - math.exp(-1) * (1 + 0.5) / 2, abs=1e-7)
