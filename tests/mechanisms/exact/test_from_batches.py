"""Gradients computed from batches as they become: the same edits, without the rows of who is removed."""

import copy

import pytest
import torch

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.plan import descent_of
from certified_unlearning.vocabulary import ExactMechanism

RECORDS = 30


def records() -> LinearRecords:
    draws = Draws(3)
    rows = draws.normal(RECORDS, 3)
    labels = torch.where(rows[:, 0] > 0, 1.0, -1.0)
    return LinearRecords(rows / rows.norm(dim=1, keepdim=True), labels, loss="logistic", strong_convexity=0.01)


@pytest.mark.parametrize("mechanism", ["noisy-sgd", "accelerated-noisy-sgd", "quantized-sgd", "subsample-gd"])
def test_an_edit_without_the_removed_rows_is_the_edit_with_them(mechanism: ExactMechanism) -> None:
    settings = descent_of(mechanism, steps=20, batch_size=4, step_size=2.0, sigma=0.3, quantum=0.5)
    whole, erased = records(), records()
    by_difference = ExactDescent(settings, whole)
    from_batches = ExactDescent(settings, erased, from_batches=True)
    one = by_difference.learn(torch.arange(RECORDS), Draws(1), trials=200)
    other = copy.deepcopy(one)
    for number, removed in enumerate(([4], [7, 20])):
        erased.erase(torch.tensor(removed))
        ours = from_batches.edit(other, removed, [], Draws(10 + number))
        theirs = by_difference.edit(one, removed, [], Draws(10 + number))
        assert torch.equal(ours.recomputations, theirs.recomputations)
        assert torch.equal(ours.iterations_run_again, theirs.iterations_run_again)
        # Each examined iteration costs its batch, and what is run again costs the same.
        assert torch.equal(ours.gradients, 4 * (ours.rejection_tests + ours.iterations_run_again))
    for name, tensor in one.tensors().items():
        torch.testing.assert_close(other.tensors()[name], tensor, rtol=0, atol=1e-9)
    from_batches.check(other)


def test_its_gradients_have_the_bits_of_ones_that_were_never_edited() -> None:
    settings = descent_of("noisy-sgd", steps=40, batch_size=4, step_size=2.0, sigma=3.0, quantum=None)

    def changed(descent: ExactDescent) -> bool:
        state = descent.learn(torch.arange(RECORDS), Draws(2))
        work = descent.edit(state, [4], [], Draws(5))
        assert int(work.rejection_tests) > 0
        assert not int(work.recomputations)
        before = state.gradients.clone()
        descent.refresh(state)
        return not torch.equal(before, state.gradients)

    assert not changed(ExactDescent(settings, records(), from_batches=True))
    assert changed(ExactDescent(settings, records()))
