"""Whether edited states and states of retraining have one law: Kolmogorov-Smirnov distances of many functionals."""

import math

import torch
from torch import Tensor

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.trajectory import Trajectory

FALSE_ALARM_RATE = 1e-10
"""Of one distance. The tests of exact descent look at fewer than 1000: all together raise a false alarm below 1e-7."""
RUNS = 100_000
"""Edited runs, and as many retrainings."""
Request = tuple[list[int], list[int]]
"""Who is removed and who is inserted."""


def critical(runs: int = RUNS) -> float:
    """A distance that two samples of one law exceed at most with `FALSE_ALARM_RATE`.

    The two-sample inequality of Wei and Dudley (2012, from 458 a sample on): P(D > x) <= 2 exp(-runs x^2).
    """
    return math.sqrt(math.log(2 / FALSE_ALARM_RATE) / runs)


def distance(first: Tensor, second: Tensor) -> float:
    """The largest difference between two empirical distribution functions of equally many numbers, to 9 decimals.

    An updated gradient and one computed anew differ in their last bits; without noise these would be told apart.
    """
    first, second = first.round(decimals=9).sort().values, second.round(decimals=9).sort().values
    both = torch.cat([first, second])
    below = torch.searchsorted(first, both, right=True) - torch.searchsorted(second, both, right=True)
    return float(below.abs().max()) / len(first)


def functionals(state: Trajectory) -> dict[str, Tensor]:
    """What is compared: of models, noise, gradients, batches, and of what binds them together."""
    draws = Draws(5)
    steps, m = state.batches.shape[1:]
    gradients, kept = state.gradients.flatten(1), state.randomness.flatten(1)
    directions = state.settings.directions(state.gradients, state.randomness).flatten(1)
    errors = directions - gradients
    marks = draws.normal(steps, 20)
    members = marks[torch.arange(steps)[:, None].expand(-1, m), state.batches].sum(dim=-1)
    last = state.weights[:, -1]
    found = {
        "model": state.model()[:, 0],
        "last iterate": last[:, 0],
        "second iterate": state.weights[:, 1, 0],
        "length of the errors": errors.square().sum(dim=1),
        "first error": errors[:, 0],
        "errors along gradients": (errors * gradients).sum(dim=1),
        "random part of what is kept": kept @ draws.normal(kept.shape[1]) + gradients[:, 1],
        "random part of the errors": errors @ draws.normal(errors.shape[1]),
        "batch members": members.sum(dim=1),
        "uses of the newest record": (state.batches == state.alive.ids.max()).sum(dim=(1, 2)).double(),
        "members with errors": (members * errors.view(len(errors), steps, -1).sum(dim=-1)).sum(dim=1),
        "members with the model": members.sum(dim=1) * last.sum(dim=1),
    }
    return {name: values for name, values in found.items() if bool((values != values[0]).any())}


def edited(
    learner: ExactDescent, ids: Tensor, requests: list[Request], runs: int = RUNS, *, check: bool = True
) -> Trajectory:
    """Learn, then serve requests; look at the invariants."""
    state = learner.learn(ids, Draws.at("learn then edit", len(ids)), trials=runs)
    for number, (removed, inserted) in enumerate(requests):
        draws = Draws.at("edit", number)
        if len(removed) + len(inserted) > 1:
            learner.edit(state, removed, inserted, draws)
        elif removed:
            learner.delete(state, *removed, draws)
        else:
            learner.insert(state, *inserted, draws)
    if check:
        learner.check(state)
    return state


def retrained(learner: ExactDescent, state: Trajectory, runs: int = RUNS) -> Trajectory:
    """Learn on what is left."""
    return learner.learn(state.alive.ids.sort().values, Draws.at("retrain"), trials=runs)


def distances(first: Trajectory, second: Trajectory) -> dict[str, float]:
    ours, theirs = functionals(first), functionals(second)
    return {name: distance(values, theirs[name]) for name, values in ours.items()}
