"""Stable means: how often an edit changes them, how far off they are, what is refused. Their law: the battery."""

import math

import pytest
import torch
from scipy import stats

from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.mechanisms.exact import means
from certified_unlearning.mechanisms.exact.means import MeanState, NoisyMean, SubsampledMean
from certified_unlearning.papers.tv_stability.theory.baselines import noisy_mean_sigma

TRIALS = 40_000
ROWS = torch.nn.functional.normalize(Draws(1).normal(40, 3)) * Draws(2).uniform(40, 1).sqrt()
IDS = torch.arange(30)


@pytest.mark.parametrize("size", [1, 6, 29])
def test_as_many_parts_change_as_have_the_record(size: int) -> None:
    """Binomial tests, false-alarm rate 1e-9 each: m / n, and m / (n + 1) of an insertion."""
    own = SubsampledMean(ROWS, size)
    state = own.learn(IDS, Draws.at("part", size), trials=TRIALS)
    before = state.values.clone()
    requests = [("insert", 35, size / 31), ("delete", 4, size / 31), ("insert", 36, size / 31)]
    for kind, record, share in requests:
        work = getattr(own, kind)(state, record, Draws.at("part", size, record))
        own.check(state)
        assert stats.binomtest(int(work.recomputations.sum()), TRIALS, share).pvalue > 1e-9
        assert torch.equal(work.gradients, size * work.recomputations)
        changed = (state.values != before).any(dim=1)
        assert torch.equal(changed, work.recomputations.bool())
        before = state.values.clone()
    assert not bool((state.members == 4).any())


@pytest.mark.parametrize("rho", [0.05, 0.5])
def test_as_many_noisy_means_change_as_their_laws_differ_by_and_at_most_rho(rho: float) -> None:
    """Binomial tests, false-alarm rate 1e-9 each."""
    sigma = noisy_mean_sigma(n=30, rho=rho)
    own = NoisyMean(ROWS, sigma)
    state = own.learn(IDS, Draws.at("noisy", rho), trials=TRIALS)
    for kind, record in [("insert", 35), ("delete", 4), ("insert", 36), ("delete", 35)]:
        before, values = state.mean, state.values.clone()
        work = getattr(own, kind)(state, record, Draws.at("noisy", rho, kind, record))
        own.check(state)
        expected = gaussian_tv(float((state.mean - before).norm()) / sigma)
        assert 0 < expected <= rho
        assert stats.binomtest(int(work.recomputations.sum()), TRIALS, expected).pvalue > 1e-9
        assert torch.equal((state.values != values).any(dim=1), work.recomputations.bool())
    torch.testing.assert_close(state.mean, ROWS[state.alive.ids].mean(dim=0))


def test_squared_errors_are_those_of_claims_11_and_12() -> None:
    """Means over 40 000 trials, 6 standard errors."""
    centre = ROWS[IDS].mean(dim=0)
    spread = float(((ROWS[IDS] - centre) ** 2).sum() / 29)
    for own, expected in [
        (SubsampledMean(ROWS, 6), spread / 6 * (1 - 6 / 30)),
        (NoisyMean(ROWS, 0.2), 3 * 0.04),
    ]:
        errors = ((own.learn(IDS, Draws.at("error"), trials=TRIALS).values - centre) ** 2).sum(dim=1)
        assert abs(float(errors.mean()) - expected) < 6 * float(errors.std()) / math.sqrt(TRIALS)


def test_without_noise_an_edited_mean_is_the_mean() -> None:
    own = NoisyMean(ROWS, 0.0)
    state = own.learn(IDS, Draws(1), trials=2)
    assert own.delete(state, 3, Draws(2)).recomputations.tolist() == [1, 1]
    torch.testing.assert_close(state.values, ROWS[state.alive.ids].mean(dim=0).expand(2, -1))


def test_a_stored_state_goes_on_as_the_one_in_memory() -> None:
    for own in (SubsampledMean(ROWS, 6), NoisyMean(ROWS, 0.3)):
        state = own.learn(IDS, Draws(1), trials=50)
        own.delete(state, 7, Draws(2))
        again = MeanState.from_tensors(state.tensors())
        for each in (state, again):
            own.insert(each, 33, Draws(3))
            own.check(each)
        assert torch.equal(state.members, again.members)
        torch.testing.assert_close(state.values, again.values)
        with pytest.raises(ParameterError, match="ascend and be at least 34"):
            own.insert(again, 33, Draws(4))


def test_a_state_that_no_run_leaves_is_found() -> None:
    part, noisy = SubsampledMean(ROWS, 6), NoisyMean(ROWS, 0.3)
    state = part.learn(IDS, Draws(1), trials=3)
    state.values[2, 1] += 1e-6
    with pytest.raises(DataError, match="means are off by 1e-06"):
        part.check(state)
    state.members[1, 5] = 38
    with pytest.raises(DataError, match="a record that is not present"):
        part.check(state)
    state = noisy.learn(IDS, Draws(1), trials=3)
    state.mean = state.mean + 1e-6
    with pytest.raises(DataError, match="coordinates of the mean are off by 1e-06"):
        noisy.check(state)
    state = noisy.learn(IDS, Draws(1), trials=3)
    state.values[0, 0] = math.nan
    with pytest.raises(DataError, match="must be finite"):
        noisy.check(state)


def test_a_part_that_keeps_the_deleted_record_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    own = SubsampledMean(ROWS, 6)
    state = own.learn(IDS, Draws(1), trials=50)
    right = means.edited_batches
    nobody = torch.tensor([], dtype=torch.int64)
    monkeypatch.setattr(
        means,
        "edited_batches",
        lambda batches, alive, removed, inserted, draws: right(batches, alive, nobody, inserted, draws),
    )
    own.delete(state, 4, Draws(2))
    with pytest.raises(DataError, match="a record that is not present"):
        own.check(state)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: SubsampledMean(ROWS, 0), ParameterError, "size must be a whole number, at least 1, got 0"),
        (lambda: SubsampledMean(ROWS[0], 1), ParameterError, r"rows must have shape \(N, d\)"),
        (lambda: NoisyMean(ROWS, -1.0), ParameterError, r"sigma must be a finite number, at least 0, got -1\.0"),
        (lambda: SubsampledMean(ROWS, 30).learn(IDS, Draws(1)), AssumptionError, "got 30 with n = 30"),
        (
            lambda: NoisyMean(ROWS, 1.0).learn(torch.tensor([40]), Draws(1)),
            ParameterError,
            "one of the 40 rows, got 40",
        ),
        (lambda: NoisyMean(ROWS, 1.0).learn(IDS[:0], Draws(1)), ParameterError, "there must be records"),
        (lambda: NoisyMean(ROWS, 1.0).learn(IDS, Draws(1), trials=0), ParameterError, "trials"),
    ],
)
def test_what_makes_no_sense_is_refused(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
    noisy = NoisyMean(ROWS, 1.0)
    state = noisy.learn(torch.tensor([3]), Draws(1))
    with pytest.raises(ParameterError, match="record 3 is the only one left"):
        noisy.delete(state, 3, Draws(2))
    with pytest.raises(ParameterError, match="record 4 cannot be deleted"):
        noisy.delete(state, 4, Draws(2))
    with pytest.raises(ParameterError, match="one of the 40 rows, got 40"):
        noisy.insert(state, 40, Draws(2))
