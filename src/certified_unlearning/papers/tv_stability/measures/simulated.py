"""Measures of simulated mechanisms: small problems with known distributions, many trials, and fixed seeds.

Differences between observed and expected values are in standard errors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance
from typing import Literal

import torch
from torch import Tensor

from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.accounting.tv.subsampling import probability_of_any
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.engine.exact.prefix_tree import PrefixTree
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.exact.trajectory import Trajectory
from certified_unlearning.papers.tv_stability.theory.trees import mean_recompute_probability
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

_POINTS = (0.0, 0.3, -0.5, 1.2, 3.0, -2.0, 0.7)
"""The points ``z`` of the losses ``(w - z)^2 / 2``; the last point is inserted, and the fifth is deleted."""
_LEARNED = 6
_LEAVES = 4
_SETTINGS = NoisySgd(steps=4, batch_size=2, step_size=0.4, sigma=0.6, accelerated=True)
_IN_A_BALL = replace(_SETTINGS, radius=1.0)
_TRIALS = 40_000

Change = Literal["delete", "insert"]


@sweep("{edit}")
def edited_moments(*, edit: Change, accelerated: bool) -> list[Quantity]:
    """Return the last iterate's mean and variance after one edit, each minus the exact value of retraining."""
    settings = replace(_SETTINGS, accelerated=accelerated)
    state, _ = _edited(settings, edit)
    last = state.weights[:, -1, 0]
    mean, spread = last_iterate_moments(_points_after(edit), settings)
    return [
        Quantity(standard_errors(last, mean), f"{edit}, mean"),
        Quantity(standard_errors((last - mean) ** 2, spread), f"{edit}, variance"),
    ]


@sweep("{edit}")
def edited_recomputations(*, edit: Change) -> float:
    """Return the share of edits that caused a recomputation minus our exact probability."""
    _, recomputed = _edited(_SETTINGS, edit)
    others = [z for number, z in enumerate(_POINTS[:_LEARNED]) if edit == "insert" or number != _LEAVES]
    moving = _POINTS[_LEARNED] if edit == "insert" else _POINTS[_LEAVES]
    gaps = [abs(moving - z) / (_SETTINGS.batch_size * _SETTINGS.sigma) for z in others]
    share = _SETTINGS.batch_size / (_LEARNED + (edit == "insert"))
    expected = probability_of_any(share * fmean(gaussian_tv(gap) for gap in gaps), _SETTINGS.steps)
    return standard_errors(recomputed, expected)


@measure
def verification_cost(*, n: int, batch_size: int, steps: int) -> float:
    """Return the mean number of gradients that a deletion without rejections computes, minus ``2 T m / n``.

    The difference is in standard errors.
    """
    records = LinearRecords(torch.ones(n, 1).double(), torch.zeros(n).double(), loss="squared")
    settings = NoisySgd(steps=steps, batch_size=batch_size, step_size=0.1, sigma=1.0)
    draws = Draws.at("tv_stability", "verification", n, batch_size, steps)
    descent = ExactDescent(settings, records)
    state = descent.learn(torch.arange(n), draws, trials=_TRIALS)
    work = descent.delete(state, 0, draws)
    assert not bool(work.recomputations.any())  # All records are equal.
    return standard_errors(work.gradients.double(), 2 * steps * batch_size / n)


@measure
def iterates_after_edit() -> float:
    """Return the largest distance of iterates after an edit from ``w_t - eta xi_t``, Algorithm 10's line 17.

    Algorithm 9 and the engine take the step from the extrapolated point, and project.
    """
    state, _ = _edited(_IN_A_BALL, "delete", trials=100)
    printed = state.weights[:, :-1] - _IN_A_BALL.step_size * state.randomness
    return float((state.weights[:, 1:] - printed).abs().max())


@measure
def followed_after_edit() -> float:
    """Return the largest distance between two noisy gradients of one iteration, over all iterations that an edit keeps.

    The first noisy gradient is the one that the iteration followed. The second noisy gradient is the new gradient plus
    the old noise.
    """
    draws = Draws.at("tv_stability", "followed")
    descent = ExactDescent(_SETTINGS, _records())
    state = descent.learn(torch.arange(_LEARNED), draws, trials=100)
    before, noise = state.randomness.clone(), state.randomness - state.gradients
    descent.delete(state, _LEAVES, draws)
    kept = (state.randomness == before).all(dim=2)
    return float((state.gradients + noise - before)[kept].abs().max())


@sweep("{edit}")
def tree_means(*, edit: Change) -> float:
    """Return the mean of the last model after an edit of noisy prefix sums, minus the exact mean after retraining.

    The difference is in standard errors.
    """
    points = torch.tensor([0.2, -0.7, 1.5, 0.9, -1.8, 2.5, 0.4, -0.3], dtype=torch.float64)
    method = MeanFollower(points)
    draws = Draws.at("tv_stability", "tree", edit)
    sigmas = torch.full((4,), 0.8, dtype=torch.float64)
    state, _ = PrefixTree.learn(method, sigmas, draws.orders(torch.arange(7), _TRIALS), draws)
    if edit == "delete":
        state.delete(5, draws)
        alive = [0, 1, 2, 3, 4, 6]
    else:
        state.insert(7, draws.integers(8, _TRIALS) + 1, draws)
        alive = list(range(8))
    model, total = 0.0, 0.0
    for _ in alive:
        total += model - float(points[alive].mean())
        model = -MeanFollower.RATE * total
    return standard_errors(state.models[:, len(alive) + 1, 0], model)


@sweep("n = {n}")
def tree_recomputations(*, n: int, gap: float) -> float:
    """Return the observed share of deletions that caused a recomputation, minus our exact probability.

    All points except the deleted one are equal, and increments do not depend on a model. Every sum therefore moves by
    ``gap`` standard deviations of its noise.
    """
    points = torch.zeros(n, dtype=torch.float64)
    points[0] = gap
    draws = Draws.at("tv_stability", "tree recomputations", n)
    sigmas = torch.ones(n.bit_length(), dtype=torch.float64)
    orders = draws.orders(torch.arange(n), _TRIALS)
    state, _ = PrefixTree.learn(MeanFollower(points, follows=False), sigmas, orders, draws)
    rejected = state.delete(0, draws).rejections.double()
    expected = mean_recompute_probability(n=n, sigma=1.0, sensitivity=gap)
    return standard_errors(rejected, expected)


def last_iterate_moments(points: Sequence[float], settings: NoisySgd) -> tuple[float, float]:
    """Return the exact mean and variance of the last iterate of noisy descent on ``(w - z)^2 / 2``, unprojected."""
    contraction = 1 - settings.step_size
    share = settings.batch_size / len(points)
    sampled = variance(points) / settings.batch_size * (1 - share)
    added = settings.step_size**2 * (settings.sigma**2 + sampled)
    now, before = 0.0, 0.0
    spread, shared, spread_before = 0.0, 0.0, 0.0
    for step in range(1, settings.steps + 1):
        alpha = (1 - step) / (step + 2) if settings.accelerated else 0.0
        a, b = contraction * (1 - alpha), contraction * alpha
        now, before = a * now + b * before + settings.step_size * fmean(points), now
        next_spread = a**2 * spread + 2 * a * b * shared + b**2 * spread_before + added
        spread, shared, spread_before = next_spread, a * spread + b * shared, spread
    return now, spread


@dataclass(frozen=True)
class MeanFollower:
    """A learner: models are ``-rate`` times the noisy sum of ``w - z``, or of ``-z`` if increments ignore the model."""

    points: Tensor
    follows: bool = True
    RATE = 0.6

    @property
    def dimension(self) -> int:
        """The dimension, 1."""
        return 1

    def start(self) -> Tensor:
        """Return the start, 0."""
        return torch.zeros(1, dtype=torch.float64)

    def increments(self, positions: Tensor, models: Tensor, previous: Tensor, records: Tensor) -> Tensor:
        """Return the increments, ``w - z`` or ``-z``."""
        return models * self.follows - self.points[records][:, None]

    def updates(self, positions: Tensor, models: Tensor, prefixes: Tensor) -> Tensor:
        """Return the sum times ``-rate``."""
        return -self.RATE * prefixes


def _edited(settings: NoisySgd, edit: Change, *, trials: int = _TRIALS) -> tuple[Trajectory[NoisySgd], Tensor]:
    """Return states after one edit, and for each state whether it was recomputed."""
    draws = Draws.at("tv_stability", edit, str(settings))
    descent = ExactDescent(settings, _records())
    state = descent.learn(torch.arange(_LEARNED), draws, trials=trials)
    work = descent.insert(state, _LEARNED, draws) if edit == "insert" else descent.delete(state, _LEAVES, draws)
    return state, work.recomputations.double()


def _records() -> LinearRecords:
    points = torch.tensor(_POINTS, dtype=torch.float64)
    return LinearRecords(torch.ones(len(points), 1).double(), points, loss="squared")


def _points_after(edit: Change) -> list[float]:
    if edit == "insert":
        return list(_POINTS)
    return [z for number, z in enumerate(_POINTS[:_LEARNED]) if number != _LEAVES]


def standard_errors(values: Tensor, expected: float) -> float:
    """Return the mean of trials minus the expected value, in standard errors."""
    return float((values.mean() - expected) / (values.std() / math.sqrt(len(values))))
