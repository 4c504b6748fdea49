"""Poisson batches: constants of the specification, and what the exact laws say where batches are everything."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.sampled import (
    NoisySums,
    SampledDescent,
    SampledGuarantee,
    delta_of_one,
)
from certified_unlearning.errors import ParameterError

PROBLEM = LinearProblem(n=10_000, features=5, row_norm=1.0, loss=ScalarLoss(name="logistic"), radius=5.0)


def epsilon_of(multiplier, *, share, steps, delta, relation):
    sums = (NoisySums(multiplier=multiplier, share=share, times=steps),)
    return SampledGuarantee(sums=sums, relation=relation).epsilon(delta)


@pytest.mark.parametrize(("relation", "moves"), [("replace-one", 2), ("add-remove", 1)])
def test_full_batches_are_never_below_the_exact_law(relation, moves):
    found = epsilon_of(30.0, share=1.0, steps=100, delta=1e-6, relation=relation)
    exact = epsilon_from_mu(moves * math.sqrt(100) / 30, 1e-6)
    assert exact <= found <= 1.001 * exact


def test_replace_one_is_within_group_privacy_of_add_remove():
    """An independent bound: two changes of (epsilon / 2, delta / (1 + e^(epsilon / 2)))."""
    replaced = epsilon_of(2.0, share=0.01, steps=1000, delta=1e-6, relation="replace-one")
    one = epsilon_of(2.0, share=0.01, steps=1000, delta=1e-6 / (1 + math.exp(replaced / 2)), relation="add-remove")
    assert one < replaced <= 2 * one * 1.01


@pytest.mark.parametrize(
    ("relation", "constant"),
    [(NeighboringRelation.ADD_OR_REMOVE_ONE, 1.61305), (NeighboringRelation.REPLACE_ONE, 3.213)],
)
def test_the_constant_of_theorem_41_depends_on_the_relation(relation, constant):
    """SpiderBoost's 194 gradients and 37 226 differences of 517 of 100 000 records."""
    differences = privacy_loss_distribution.from_gaussian_mechanism(
        517 * 0.00719001 * constant, sampling_prob=517 / 10**5, neighboring_relation=relation
    ).self_compose(37226)
    gradients = privacy_loss_distribution.from_gaussian_mechanism(
        0.000517548 * 10**5 * constant, neighboring_relation=relation
    ).self_compose(194)
    assert differences.compose(gradients).get_epsilon_for_delta(1e-6) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("constant", "epsilon"), [(1.0, 1.68885), (2.0, 0.792539)])
def test_other_constants_under_add_remove(constant, epsilon):
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    differences = privacy_loss_distribution.from_gaussian_mechanism(
        517 * 0.00719001 * constant, sampling_prob=517 / 10**5, neighboring_relation=relation
    ).self_compose(37226)
    gradients = privacy_loss_distribution.from_gaussian_mechanism(0.000517548 * 10**5 * constant).self_compose(194)
    assert differences.compose(gradients).get_epsilon_for_delta(1e-6) == pytest.approx(epsilon, rel=0.01)


@pytest.mark.parametrize(("records", "share"), [(1, 0.3), (2, 0.3), (3, 0.3), (5, 0.05)])
def test_a_group_is_never_below_the_exact_law(records, share):
    """One step under add-remove: the sum has as many of the records more as the batch has, Binomial(k, q)."""
    noise, delta = 2.0, 1e-4
    points, step = np.linspace(-30, 40, 700_001, retstep=True)
    shares = [math.comb(records, m) * share**m * (1 - share) ** (records - m) for m in range(records + 1)]

    def density(mean):
        return np.exp(-((points - mean) ** 2) / (2 * noise**2)) / (noise * math.sqrt(2 * math.pi))

    without = density(0)
    among = sum(weight * density(m) for m, weight in enumerate(shares))
    stated = SampledGuarantee(sums=(NoisySums(multiplier=noise, share=share, times=1),), relation="add-remove").epsilon(
        delta, records=records
    )
    for one, other in ((among, without), (without, among)):
        assert np.clip(one - math.exp(stated) * other, 0, None).sum() * step <= delta * (1 + 1e-6)
    # By how much group privacy is above it, here: what a wrong number of records would not be.
    tighter = stated / records / 2 if records > 1 else 0.99 * stated
    assert np.clip(among - math.exp(tighter) * without, 0, None).sum() * step > delta


def test_a_group_takes_its_share_of_delta():
    guarantee = SampledGuarantee(sums=(NoisySums(multiplier=5.0, share=0.1, times=20),), relation="replace-one")
    two = guarantee.epsilon(1e-6, records=2)
    assert two > 2 * guarantee.epsilon(1e-6)
    assert guarantee.epsilon(delta_of_one(two / 2, 1e-6, records=2)) == pytest.approx(two / 2, rel=2e-6)
    assert delta_of_one(0.0, 0.3, records=3) == pytest.approx(0.1)
    assert math.isinf(guarantee.epsilon(1e-6, records=1000))


def test_sums_that_would_take_minutes_are_refused():
    for sums in (NoisySums(multiplier=0.1, share=0.1, times=1), NoisySums(multiplier=5.0, share=0.1, times=10**400)):
        with pytest.raises(ParameterError, match="the noise of a sum must be at least"):
            SampledGuarantee(sums=(sums,), relation="add-remove").epsilon(1e-6)


def test_a_plan_meets_its_target_with_hardly_more_noise_than_it_takes():
    plan = SampledDescent.plan(PROBLEM, epsilon=1, delta=1e-6, steps=200, share=0.02, step_size=1.0)
    assert 0.999 < plan.epsilon(1e-6) <= 1


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"share": 0.0}, "share"), ({"steps": 0}, "steps"), ({"epsilon": 0.0}, "epsilon"), ({"delta": 2.0}, "delta")],
)
def test_what_makes_no_sense_is_named(changes, named):
    given = {"epsilon": 1, "delta": 1e-6, "steps": 10, "share": 0.1, "step_size": 1.0, **changes}
    with pytest.raises(ParameterError, match=named):
        SampledDescent.plan(PROBLEM, **given)


def test_without_dp_accounting_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ParameterError, match="extra `private`"):
        epsilon_of(1.0, share=0.1, steps=1, delta=0.1, relation="add-remove")


@pytest.mark.parametrize(("times", "mu"), [(1000, 2.0), (100_000, 1.0)])
def test_what_fourier_transforms_round_is_taken_off_a_small_delta(times, mu):
    """Without, epsilon at 1e-12 would be below that of the exact law, where rounding is 2e-12."""
    guarantee = SampledGuarantee(
        sums=(NoisySums(multiplier=math.sqrt(times) / mu, share=1.0, times=times),), relation="add-remove"
    )
    for delta in (1e-6, 1e-9, 1e-10, 1e-12, 1e-14):
        assert guarantee.epsilon(delta) >= epsilon_from_mu(mu, delta)
    assert guarantee.epsilon(1e-6) <= 1.001 * epsilon_from_mu(mu, 1e-6)


@pytest.mark.parametrize("share", [1e-17, 2.0**-53 * 1.5, 1e-4, 0.3, 1.0])
def test_a_share_counts_as_rounded_up_to_what_53_bits_can_draw(share, monkeypatch):
    """A record is in a batch where one of the numbers 0, 2^-53, 2 2^-53, .. is below its share."""
    given = []
    original = privacy_loss_distribution.from_gaussian_mechanism
    monkeypatch.setattr(
        privacy_loss_distribution,
        "from_gaussian_mechanism",
        lambda *args, sampling_prob, **rest: (
            given.append(sampling_prob) or original(*args, sampling_prob=sampling_prob, **rest)
        ),
    )
    epsilon_of(2.0, share=share, steps=1, delta=1e-3, relation="add-remove")
    below = math.ceil(Fraction(share) * 2**53)
    assert (below - 1) * 2.0**-53 < share <= below * 2.0**-53
    assert given == [below * 2.0**-53]


def test_sums_of_little_noise_that_would_take_all_memory_are_refused():
    for share, times in ((1.0, 1000), (1.0, 10**6), (0.01, 100_000)):
        with pytest.raises(ParameterError, match="at most 1000 is allowed, because no privacy is left"):
            SampledGuarantee(
                sums=(NoisySums(multiplier=0.2, share=share, times=times),), relation="replace-one"
            ).epsilon(1e-6)


def test_noise_beyond_all_measure_is_accounted_for():
    sums = NoisySums(multiplier=1e300, share=1.0, times=10**6)
    assert 0 <= SampledGuarantee(sums=(sums,), relation="replace-one").epsilon(1e-6) < 1e-3
