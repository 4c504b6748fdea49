"""The mean cost of a deletion, given what was learned.

This mean is far less noisy than counts of actual deletions. The deleted record is uniform over the present ones. Along
a learned trajectory, the direction of each iteration that used the deleted record stays the same with some probability.
This probability follows from the stored noise and from the change of the batch's gradient when another record replaces
the deleted one. So probabilities, iterations and gradients are averages over all records. Only the trajectory and the
replacing records are random.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.trajectory import Trajectory

_SURE = 1 - 2.0**-52
"""The number that replaces a probability of 1, so that its complement has a logarithm."""


@dataclass(frozen=True)
class ExpectedWork:
    """Averages of `work.Work` over all choices of the deleted record, each of shape ``(trials,)``.

    Attributes:
        gradients: Number of gradients of single records' losses, including tests.
        rejection_tests: Number of iterations that are tested.
        recompute_probability: Probability that a part of the run is recomputed.
        iterations_run_again: Number of iterations that are run again.
    """

    gradients: Tensor
    rejection_tests: Tensor
    recompute_probability: Tensor
    iterations_run_again: Tensor


def expected_deletion(descent: ExactDescent[Any], state: Trajectory[Any], draws: Draws) -> ExpectedWork:
    """Return the mean cost of deleting a record.

    Args:
        descent: The learner.
        state: The learner's trajectory; it is not changed.
        draws: Source of random numbers for the replacements of the deleted record.
    """
    settings, (trials, steps, members) = state.settings, state.batches.shape
    # If an iteration draws only its batch, the first iteration that used the record is run again without a test.
    used_whole = not settings.keeps_randomness
    rejections = state.weights.new_ones(trials, steps, members)
    if not used_whole:
        for step in range(steps):
            rejections[:, step] = _rejections(descent, state, step, draws)
    # The uses of each record, in the order of iterations.
    order = state.batches.flatten(1).argsort(dim=1, stable=True)
    records = state.batches.flatten(1).gather(1, order)
    rejected = rejections.flatten(1).gather(1, order)
    at = (order // members).to(rejected.dtype)
    kept = torch.log1p(-rejected.clamp(max=_SURE))
    before = kept.cumsum(dim=1) - kept
    first = torch.searchsorted(records, records)
    reached = torch.exp(before - before.gather(1, first))
    again = steps - at - (0 if used_whole else 1)
    n = len(state.alive)
    tests = reached.sum(dim=1) / n
    iterations = (reached * rejected * again).sum(dim=1) / n
    return ExpectedWork(
        gradients=members * iterations + (0 if used_whole else 2) * tests,
        rejection_tests=torch.zeros_like(tests) if used_whole else tests,
        recompute_probability=(reached * rejected).sum(dim=1) / n,
        iterations_run_again=iterations,
    )


def _rejections(descent: ExactDescent[Any], state: Trajectory[Any], step: int, draws: Draws) -> Tensor:
    """Return the probability that a direction changes when a member of its batch leaves, shape ``(trials, m)``."""
    trials, _, members = state.batches.shape
    rows = torch.arange(trials, device=draws.device)
    points = state.points(rows, torch.full_like(rows, step)).repeat_interleave(members, dim=0)
    batch = state.batches[:, step]
    leaving = batch.reshape(-1, 1)
    entering = _outside(state.alive.ids, batch, draws).reshape(-1, 1)
    change = (descent.records.sums(points, entering) - descent.records.sums(points, leaving)) / members
    old, kept = (each[:, step].repeat_interleave(members, dim=0) for each in (state.gradients, state.randomness))
    likely: Tensor = state.settings.rejection(kept, old, change)
    return likely.view(trials, members)


def _outside(alive: Tensor, batch: Tensor, draws: Draws) -> Tensor:
    """Return, for each member of each batch, a uniformly drawn record that is not in that batch."""
    drawn = alive[draws.integers(len(alive), *batch.shape)]
    while bool((inside := (drawn[:, :, None] == batch[:, None, :]).any(dim=2)).any()):
        drawn[inside] = alive[draws.integers(len(alive), int(inside.sum()))]
    return drawn
