"""SISA: exact in law, for models, checkpoints and places; what it costs."""

from fractions import Fraction

import pytest
import torch
from scipy import stats

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import GivenRecords
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.sisa import Shards, Sisa

VALUES = torch.tensor([0.0, 0.3, -0.5, 1.2, 3.0, -2.0, 0.7], dtype=torch.float64)
RECORDS = GivenRecords(lambda w, z: w[:, None, :] - z[..., None], VALUES, dimension=1)
SETTINGS = Sisa(shards=2, slices=3, steps=5, batch_size=2, step_size=0.3)
TRIALS = 30_000


def functionals(state: Shards) -> list[torch.Tensor]:
    """The model, every stage of a shard, where a record is, and with whom."""
    parts = [state.model[:, 0], *state.checkpoints[:, 0, 1:, 0].T]
    order = state.alive.argsort()
    places = state.places[:, order].double()
    return [
        *parts,
        places[:, 0],
        places[:, -1] * places[:, 0],
        places.sum(dim=1),
        (state.checkpoints**2).sum((1, 2, 3)),
    ]


def disagreement(state: Shards, again: Shards) -> float:
    """Return the least p-value of two-sample tests of all functionals, times their number."""
    pairs = list(zip(functionals(state), functionals(again), strict=True))
    return len(pairs) * min(stats.ks_2samp(a.numpy(), b.numpy(), method="asymp").pvalue for a, b in pairs)


def edited(draws: Draws) -> Shards:
    state = SETTINGS.learn(RECORDS, torch.arange(6), draws, trials=TRIALS)
    state.delete(4, draws)
    state.delete(5, draws)
    state.insert(6, draws)
    return state


def test_after_edits_the_state_has_the_law_of_a_fresh_run() -> None:
    """Two-sample tests of 30 000 runs, all together wrong once in 1e8 seeds."""
    again = SETTINGS.learn(RECORDS, torch.tensor([0, 1, 2, 3, 6]), Draws(2), trials=TRIALS)
    assert disagreement(edited(Draws(1)), again) > 1e-8


def test_a_shard_that_is_not_learned_again_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    again = SETTINGS.learn(RECORDS, torch.tensor([0, 1, 2, 3, 6]), Draws(2), trials=TRIALS)
    relearn = Shards.relearn

    def from_the_next_slice(
        state: Shards, trial: torch.Tensor, shard: torch.Tensor, first: torch.Tensor, draws: Draws
    ) -> object:
        later = (first + (len(state.alive) != 6)).clamp(max=SETTINGS.slices - 1)
        return relearn(state, trial, shard, later, draws)

    monkeypatch.setattr(Shards, "relearn", from_the_next_slice)
    assert disagreement(edited(Draws(1)), again) < 1e-8


def test_work_is_that_of_the_stages_from_the_slice_on() -> None:
    """The mean over uniform places, exactly: stage r costs its steps."""
    state = SETTINGS.learn(RECORDS, torch.arange(6), Draws(3), trials=TRIALS)
    place = state.places[:, 2] % SETTINGS.slices
    work = state.delete(2, Draws(4))
    steps = torch.tensor([SETTINGS.steps_of(stage) for stage in range(3)])
    assert steps.tolist() == [2, 4, 5]
    assert torch.equal(work.iterations_run_again, steps.flip(0).cumsum(0).flip(0)[place])
    assert bool((work.recomputations == 1).all())
    assert bool((work.gradients <= 2 * work.iterations_run_again).all())
    # Slices of equal weight: the average saving over learning all is 3 R S / (2 R + 1), not (R + 1) S / 2.
    even = Sisa(shards=4, slices=5, steps=100, batch_size=1, step_size=0.1)
    costs = [sum(even.steps_of(stage) for stage in range(first, 5)) for first in range(5)]
    assert Fraction(4 * costs[0], 1) / Fraction(sum(costs), 5) == Fraction(3 * 5 * 4, 11)


def test_a_state_is_written_and_read() -> None:
    state = SETTINGS.learn(RECORDS, torch.arange(6), Draws(5), trials=3)
    again = Shards.from_tensors(SETTINGS, RECORDS, state.tensors())
    state.delete(1, Draws(6))
    again.delete(1, Draws(6))
    assert torch.equal(state.model, again.model)


def test_a_slice_without_records_teaches_nothing() -> None:
    settings = Sisa(shards=3, slices=2, steps=4, batch_size=2, step_size=0.5)
    state = settings.learn(RECORDS, torch.tensor([4]), Draws(7), trials=200)
    shard, slice_ = state.places[:, 0] // 2, state.places[:, 0] % 2
    trained = state.checkpoints[:, :, -1, 0] != 0
    assert torch.equal(trained.sum(dim=1), torch.ones(200, dtype=torch.int64))
    assert torch.equal(trained.int().argmax(dim=1), shard)
    assert torch.equal(state.learned.gradients, torch.where(slice_ == 0, 2 * 6, 2 * 4))


def test_records_that_are_not_there_are_refused() -> None:
    state = SETTINGS.learn(RECORDS, torch.arange(3), Draws(8))
    with pytest.raises(ParameterError, match="record 5 is not present"):
        state.delete(5, Draws(9))
    with pytest.raises(ParameterError, match="record 2 is there already"):
        state.insert(2, Draws(9))
    with pytest.raises(ParameterError, match="shards"):
        Sisa(shards=0, slices=1, steps=1, batch_size=1, step_size=1.0)
