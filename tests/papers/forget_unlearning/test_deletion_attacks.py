"""Advantages of attacks on deletion: section 7.5's numbers, and small cases counted out."""

import itertools
import math
import statistics

import numpy as np
import pytest
from scipy.special import ndtr

from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.planning import adaptive_deletion_curve, plan_deletion
from certified_unlearning.accounting.deletion.soundness import largest_advantage
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.papers.forget_unlearning.theory.attacks import (
    encode_then_delete_advantage,
    keyed_count_advantage,
    majority_advantage,
    median_success,
    sign_attack_advantage,
)
from certified_unlearning.papers.forget_unlearning.theory.counting import (
    counting_advantage,
    counting_limits,
    exposed_record,
    release_of_exposure,
    repaired_counting_success,
)
from certified_unlearning.papers.forget_unlearning.theory.exact import exact_deletion_curve
from certified_unlearning.papers.forget_unlearning.theory.soundness import gaussian_advantage
from tests.accounting.deletion_settings import C1, at, quoted
from tests.papers.forget_unlearning.gaussian_laws import GaussianLaw, law_after

PLAN = plan_deletion(**C1, certify_risk=False)


# --- Sum and median ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "request_number", "exact", "paper", "claimed"),
    [
        (11, 4, 0.878788, 0.636364, 0.5),
        (11, 6, 0.987013, 0.969697, 0.875),
        (101, 4, 0.875038, 0.514851, 0.5),
        (101, 8, 0.993269, 0.974923, 0.96875),
        (101, 12, 0.999700, 0.998931, 0.998047),
    ],
)
def test_the_median_attack_succeeds_as_the_sheet_says(n, request_number, exact, paper, claimed):
    assert median_success(n, request=request_number) == quoted((exact, paper, claimed))


@pytest.mark.parametrize("replacement", [-1.0, 99.0])
@pytest.mark.parametrize("request_number", [4, 5, 6])
def test_the_median_attack_succeeds_as_counted_out(request_number, replacement):
    """All choices of records that the requester writes the median over, of seven records."""
    records, median = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3.0
    successes = []
    for chosen in itertools.combinations(range(7), request_number - 1):
        edited = [median if index in chosen else value for index, value in enumerate(records)]
        edited[3] = replacement
        successes.append(statistics.median(edited) == median)
    assert median_success(7, request=request_number).exact == pytest.approx(np.mean(successes))


@pytest.mark.parametrize(("n", "request_number"), [(10, 4), (1, 4), (11, 3), (11, 13)])
def test_the_median_attack_needs_an_odd_number_of_records_and_requests_enough(n, request_number):
    with pytest.raises(ParameterError):
        median_success(n, request=request_number)


# --- Counting with secret state ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "divergence", "affinity"),
    [(0.1, 0.00802875, 0.997994), (0.5, 0.183143, 0.955011), (1.0, 0.659815, 0.845501), (2.0, 2.20218, 0.561459)],
)
def test_the_printed_counting_has_the_sheets_limits(epsilon, divergence, affinity):
    limits = counting_limits(epsilon)
    assert limits.divergence == quoted(divergence)
    assert limits.affinity == quoted(affinity)
    assert limits.least == quoted(1 - limits.affinity)
    assert limits.most == quoted(math.sqrt(1 - limits.affinity**2))


@pytest.mark.parametrize("request_number", [1, 2, 10])
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 7.0])
def test_limits_of_the_printed_counting_are_those_of_its_product_and_sum(epsilon, request_number):
    releases = np.arange(request_number, 2_000_000, dtype=float)
    shifts = epsilon / releases
    limits = counting_limits(epsilon, request=request_number)
    assert limits.affinity == pytest.approx(np.exp(np.sum(np.log1p(shifts / 2) - shifts / 2)), rel=1e-4)
    assert limits.divergence == pytest.approx(np.sum(shifts + np.expm1(-shifts)), rel=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "request_number", "simulated"),
    [(0.5, 1, 0.247), (1.0, 1, 0.453), (2.0, 1, 0.733), (0.5, 10, 0.064), (1.0, 10, 0.128), (2.0, 10, 0.253)],
)
def test_the_printed_counting_reveals_as_little_as_the_sheet_says(epsilon, request_number, simulated):
    found = counting_advantage(epsilon, request=request_number)
    assert found == pytest.approx(simulated, abs=0.01)
    limits = counting_limits(epsilon, request=request_number)
    assert limits.least <= found <= limits.most


def laplace_ratio_signs(widths, trials, *, seed):
    """Signs of the summed log-likelihood ratios of Laplace shifts; a tie is 0."""
    noise = np.random.default_rng(seed).laplace(size=(trials, len(widths)))
    return np.sign(np.round((np.abs(noise + widths) - np.abs(noise)).sum(axis=1), 9))


def test_the_printed_counting_is_simulated_with_the_advantage_it_has():
    """False alarm below 1e-6: 5 standard errors. What lies beyond 300 releases adds less than 0.001."""
    signs = laplace_ratio_signs(1.0 / np.arange(1, 301), 20_000, seed=3)
    assert abs(signs.mean() - counting_advantage(1.0)) < 5 / math.sqrt(20_000) + 0.001


@pytest.mark.parametrize(
    ("epsilon", "successes"), [(1.0, (0.697, 0.917, 0.997, 1.000)), (0.5, (0.611, 0.769, 0.929, 0.990))]
)
def test_the_repaired_counting_reveals_the_bit_as_the_sheet_says(epsilon, successes):
    found = [repaired_counting_success(epsilon, exposures=exposures) for exposures in (1, 10, 40, 100)]
    assert found == pytest.approx(list(successes), abs=0.005)
    assert found[0] == pytest.approx(1 - math.exp(-epsilon / 2) / 2, abs=1e-6)


def test_the_repaired_counting_is_simulated_with_the_success_it_has():
    """False alarm below 1e-6: 5 standard errors; ties count half, as between two equally likely bits."""
    signs = laplace_ratio_signs(np.full(6, 0.8), 100_000, seed=4)
    success = repaired_counting_success(0.8, exposures=6)
    assert abs((1 + signs.mean()) / 2 - success) < 5 * 0.5 / math.sqrt(100_000)


def test_the_repaired_counting_sweeps_over_the_deleted_records():
    assert [exposed_record(release) for release in range(1, 12)] == [1, 1, 2, 1, 2, 3, 1, 2, 3, 4, 1]
    for record in (1, 2, 5):
        releases = [release for release in range(1, 200) if exposed_record(release) == record]
        assert releases == [release_of_exposure(record, exposure=k + 1) for k in range(len(releases))]
        assert releases[0] >= record


# --- Encode, then delete ----------------------------------------------------------------------------------------------


def encoded(**changed):
    numbers = {"sigma": PLAN.sigma, "learning_steps": 194, "deletion_steps": 56, "edits": 999}
    return encode_then_delete_advantage(PLAN.problem, **{**numbers, **changed})


def test_encode_then_delete_reveals_as_much_as_the_learned_model():
    learned = at(exact_deletion_curve(PLAN.problem, sigma=PLAN.sigma, steps=0, steps_before=194), 8)
    assert learned == quoted(0.479167)
    assert gaussian_advantage(learned, alpha=8) == quoted(0.137392)
    assert encoded() == quoted(0.137392)
    assert encoded(deletion_steps=112) == quoted(0.137392)
    assert encoded(retrains=True) == quoted(0.137392)


def test_an_adaptive_requester_breaks_the_promise_for_fixed_requests_and_nearly_attains_the_adaptive_one():
    """Few records and a loose budget, so that every number is large."""
    setting = {**C1, "n": 20, "dimension": 1, "alpha": 32.0, "epsilon_dp": 60.0, "records": 1}
    plan = plan_deletion(**setting, certify_risk=False, form="shifted")
    numbers = {"sigma": plan.sigma, "learning_steps": 100}
    attained = encode_then_delete_advantage(plan.problem, **numbers, deletion_steps=plan.deletion_steps, edits=19)
    certified = {
        observed: at(
            adaptive_deletion_curve(
                plan.problem,
                **numbers,
                request_steps=[plan.deletion_steps] * 20,
                observed=list(observed),
                form="shifted",
            ),
            32,
        )
        for observed in ((), (0,))
    }
    assert certified[()] < 0.1
    assert attained > largest_advantage(certified[()], alpha=32)
    assert 0.99 * gaussian_advantage(certified[0,], alpha=32) < attained < gaussian_advantage(certified[0,], alpha=32)


def test_a_deletion_of_fixed_requests_reveals_next_to_nothing():
    left = at(exact_deletion_curve(PLAN.problem, sigma=PLAN.sigma, steps=56, steps_before=194), 8)
    assert gaussian_advantage(left, alpha=8) == quoted(0.00105673)


@pytest.mark.parametrize(("epsilon_dp", "advantage"), [(0.1, 0.0436422), (0.01, 0.0138071)])
def test_only_the_privacy_of_present_records_helps(epsilon_dp, advantage):
    plan = plan_deletion(**{**C1, "epsilon_dp": epsilon_dp, "epsilon_dd": epsilon_dp})
    assert encoded(sigma=plan.sigma) == quoted(advantage)


def test_payloads_are_told_apart_without_error():
    """The released model's means and standard deviation, as the sheet prints them."""
    pull = 1.0 / 1000
    start = GaussianLaw(np.zeros(1), PLAN.start_variance)
    means = [[pull]] + [[(1 + written) * pull] for written in range(1, 1000)] + [[999 * pull]]
    law = law_after(PLAN.problem, start, means, [194] + [56] * 1000, sigma=PLAN.sigma)
    assert law.mean[0] == pytest.approx(-19.98, rel=1e-4)
    assert math.sqrt(law.variance) == pytest.approx(0.1156, abs=5e-5)


@pytest.mark.parametrize("edits", [1, 5, 20])
def test_encode_then_delete_is_simulated_with_the_advantage_it_has(edits):
    """False alarm below 1e-6: 5 standard errors of a difference of two frequencies."""
    random, trials, steps = np.random.default_rng(edits), 200_000, 2
    weight, eta, pull = PLAN.problem.strong_convexity, PLAN.problem.step_size, 1.0 / 1000
    noise = math.sqrt(2 * eta) * PLAN.sigma
    named = []
    for target in (1, -1):
        # 194 steps from the stationary law, at once.
        learned = -target * pull / weight * (1 - (1 - eta * weight) ** 194)
        model = random.normal(learned, math.sqrt(PLAN.start_variance), trials)
        payload = np.where(model < 0, pull, -pull)
        means = [target * pull + written * payload for written in range(1, edits + 1)] + [edits * payload]
        for mean in means:
            for _ in range(steps):
                model = (1 - eta * weight) * model - eta * mean + noise * random.normal(size=trials)
        named.append(np.mean(model < 0))
    expected = encoded(edits=edits, deletion_steps=steps)
    assert abs(named[0] - named[1] - expected) < 5 / math.sqrt(2 * trials)


def test_signs_of_independent_models_multiply_their_advantages():
    found = sign_attack_advantage(
        first_mean=-0.3, first_variance=1.0, carried=0.0, payload_mean=-0.7, target_mean=0.0, last_variance=4.0
    )
    assert found == pytest.approx((2 * ndtr(0.3) - 1) * (2 * ndtr(0.35) - 1))


def test_a_model_that_is_carried_on_unchanged_keeps_its_advantage():
    found = sign_attack_advantage(
        first_mean=0.3, first_variance=1.0, carried=1.0, payload_mean=0.0, target_mean=0.0, last_variance=1e-6
    )
    assert found == pytest.approx(2 * ndtr(0.3) - 1, abs=1e-6)


def test_payloads_for_more_records_than_there_are_and_steps_too_long_are_refused():
    with pytest.raises(ParameterError, match="edits must be below n"):
        encoded(edits=1000)
    with pytest.raises(ParameterError, match="deletion_steps"):
        encoded(deletion_steps=0)
    with pytest.raises(AssumptionError, match="strong_convexity"):
        encode_then_delete_advantage(
            Problem(1000, 0.0, 0.3, 1.0, 1.0),
            sigma=1.0,
            learning_steps=1,
            deletion_steps=1,
            edits=1,
        )


# --- The two counterexamples ------------------------------------------------------------------------------------------


def test_the_majority_of_later_releases_has_the_sheets_advantages():
    found = [majority_advantage(0.1, releases=releases) for releases in (1, 100, 1000, 5000)]
    assert found == quoted([0.0499584, 0.381973, 0.885988, 0.999592])


@pytest.mark.parametrize("releases", [1, 2, 7, 8])
def test_the_majority_is_as_counted_out(releases):
    kept = 1 / (1 + math.exp(-0.6))

    def above(probability):
        counts = range(releases // 2 + 1, releases + 1)
        return sum(math.comb(releases, k) * probability**k * (1 - probability) ** (releases - k) for k in counts)

    assert majority_advantage(0.6, releases=releases) == pytest.approx(above(kept) - above(1 - kept))


@pytest.mark.parametrize(("key_length", "epsilon", "advantage"), [(500, 0.2, 0.940369), (2000, 0.2, 0.999971)])
def test_the_keyed_count_has_the_sheets_advantages(key_length, epsilon, advantage):
    assert keyed_count_advantage(epsilon, key_length=key_length) == quoted(advantage)


def test_the_keyed_count_is_simulated_with_the_advantage_it_has():
    """False alarm below 1e-6: 5 standard errors of a difference of two frequencies."""
    random, trials = np.random.default_rng(9), 200_000
    kept = 1 / (1 + math.exp(-0.5))
    ones = [
        np.mean(random.binomial(6, probability, trials) + random.laplace(scale=2, size=trials) > 3)
        for probability in (kept, 1 - kept)
    ]
    assert abs(ones[0] - ones[1] - keyed_count_advantage(0.5, key_length=6)) < 5 / math.sqrt(2 * trials)


@pytest.mark.parametrize(
    "call",
    [
        lambda: majority_advantage(0.1, releases=0),
        lambda: majority_advantage(0.0, releases=1),
        lambda: keyed_count_advantage(0.1, key_length=0),
        lambda: counting_limits(0.0),
        lambda: counting_advantage(1.0, request=0),
        lambda: repaired_counting_success(1.0, exposures=0),
        lambda: exposed_record(0),
        lambda: release_of_exposure(0, exposure=1),
    ],
)
def test_values_that_make_no_sense_are_refused(call):
    with pytest.raises(ParameterError):
        call()
