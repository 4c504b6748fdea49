"""Comparisons of the bounds with exact distributions, with our analysis, and with Langevin unlearning's bounds."""

import math
from itertools import pairwise
from typing import Literal

import numpy as np

from certified_unlearning.accounting.core.conversion import epsilon_from_mu, epsilon_of
from certified_unlearning.accounting.core.curves import Cycle, Schedule
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.cyclic import stream
from certified_unlearning.accounting.langevin import lsi
from certified_unlearning.papers.noisy_sgd.settings import DELTA, SIGMA, N, cycle_of, problem_of, small
from certified_unlearning.papers.noisy_sgd.theory.bounds import (
    CODE_FACTOR,
    averaged_curve,
    distance_curve,
    hidden_mu,
    known_curve,
)
from certified_unlearning.papers.noisy_sgd.theory.distances import learned_distance, sequential_distances
from certified_unlearning.papers.noisy_sgd.theory.exact import hidden_place_divergence, pooled, quadratic_mus
from certified_unlearning.reproduction.claims.registry import sweep
from certified_unlearning.reproduction.claims.relations import Quantity

_SMALL_SIGMA = 0.5
"""The noise scale of the small problem."""


@sweep("k = {steps}")
def two_points_over_bound(*, steps: int, published_code: bool = False) -> float:
    """Return the exact divergence of order 2 between two runs on quadratic losses, divided by the bound.

    The starting points of the runs are ``Z`` apart.
    """
    problem, _ = small(1)
    kept, noise = 1 - problem.step_size * problem.strong_convexity, 2 * problem.step_size * _SMALL_SIGMA**2
    apart, variance = 1.0, 0.0
    for _ in range(steps):
        apart, variance = kept * apart, kept**2 * variance + noise
    bound = float(distance_curve(problem, sigma=_SMALL_SIGMA, distance=1.0, steps=steps)(np.array([2.0]))[0])
    factor = CODE_FACTOR if published_code else 1.0
    return apart**2 / variance / (factor * bound)


@sweep("l = {batches}, T = {epochs}, k = {steps}")
def enumerated_over_bound(
    *, batches: int, epochs: int, steps: int, of: Literal["exact over ours", "ours over theirs"]
) -> float:
    """Return the largest quotient of two ``mu`` over all positions: exact / ours, or ours / the paper's."""
    problem, cycle = small(batches)
    quotients = []
    for position in range(1, batches + 1):
        where = {"sigma": _SMALL_SIGMA, "epochs": epochs, "position": position}
        ours = pooled(problem, cycle, steps=steps, **where)  # type: ignore[arg-type]
        if of == "exact over ours":
            (exact,) = quadratic_mus(problem, cycle, steps=[steps], **where)  # type: ignore[arg-type]
            quotients.append(exact / ours)
        else:
            distance = learned_distance(problem, cycle, epochs=epochs, position=position)
            quotients.append(ours / hidden_mu(problem, sigma=_SMALL_SIGMA, distance=distance, steps=steps))
    return max(quotients)


@sweep("l = {batches}, k = {steps}, alpha = {alpha:g}")
def place_over_averaged(
    *, batches: int, epochs: int, steps: int, alpha: float, place: Literal["hidden", "published", "last"]
) -> float:
    """Return exact divergences of quadratic losses, divided by the averaged bound.

    The place is drawn and hidden, or drawn and published, or it is the last one.
    """
    problem, cycle = small(batches)
    exact = [
        quadratic_mus(problem, cycle, sigma=_SMALL_SIGMA, epochs=epochs, steps=[steps], position=each)[0]
        for each in range(1, batches + 1)
    ]
    bound = averaged_curve(problem, cycle, sigma=_SMALL_SIGMA, epochs=epochs, steps=steps)
    if place == "hidden":
        divergence = hidden_place_divergence(exact, alpha)
    elif place == "published":
        scale = alpha * (alpha - 1) / 2
        divergence = math.log(np.mean([math.exp(scale * mu**2) for mu in exact])) / (alpha - 1)
    else:
        divergence = alpha * exact[-1] ** 2 / 2
    limit = float(bound(np.array([alpha]))[0])
    return divergence / limit


@sweep("b = {batch_size}, K = {epochs}")
def ours_over_theirs(*, batch_size: int, epochs: float, unit: Literal["mu", "epsilon"] = "mu") -> Quantity:
    """Return our ``mu`` or epsilon divided by the paper's, at the worst position after ``epochs`` epochs.

    The value 0 stands for one step.
    """
    problem, cycle = problem_of(batch_size), cycle_of(batch_size)
    steps = max(1, round(epochs * cycle.batches))
    ours = pooled(problem, cycle, sigma=SIGMA, epochs=math.inf, steps=steps)
    if unit == "mu":
        distance = learned_distance(problem, cycle, epochs=math.inf)
        quotient = ours / hidden_mu(problem, sigma=SIGMA, distance=distance, steps=steps)
    else:
        theirs = known_curve(problem, cycle, sigma=SIGMA, epochs=math.inf, steps=steps)
        quotient = epsilon_from_mu(ours, DELTA) / epsilon_of(theirs, DELTA)
    return Quantity(quotient, f"b = {batch_size}, K = {steps / cycle.batches:.3g}")


@sweep("K = {steps}")
def full_batch_over_langevin(*, steps: int) -> float:
    """Return the paper's epsilon for the full batch divided by that of Langevin unlearning's log-Sobolev bound.

    Both divergences are converted as published.
    """
    problem, cycle = problem_of(N), cycle_of(N)
    theirs = known_curve(problem, cycle, sigma=SIGMA, epochs=math.inf, steps=steps)
    before = lsi.curve(problem, Schedule(SIGMA, 1, (steps,)))
    return epsilon_of(theirs, DELTA, conversion="paper") / epsilon_of(before, DELTA, conversion="paper")


@sweep("l = {batches}, T = {epochs}")
def noisy_cgd_over_ours(*, batches: int, epochs: int) -> float:
    """Return NoisyCGD's published ``(s/tau) sqrt(1 + B)`` divided by our value.

    Both values are at the last position, without unlearning.
    """
    problem, cycle = small(batches)
    ours = pooled(problem, cycle, sigma=_SMALL_SIGMA, epochs=epochs, steps=0)
    return _noisy_cgd(problem, cycle, _SMALL_SIGMA, epochs) / ours


@sweep("b = {batch_size}")
def theirs_over_learning(*, batch_size: int, epochs: int, steps: Literal["step", "epoch"]) -> float:
    """Return the paper's mu after one unlearning step or epoch, divided by NoisyCGD's bound on the mu of learning.

    Post-processing preserves NoisyCGD's bound.
    """
    problem, cycle = problem_of(batch_size), cycle_of(batch_size)
    count = 1 if steps == "step" else cycle.batches
    distance = learned_distance(problem, cycle, epochs=epochs)
    theirs = hidden_mu(problem, sigma=SIGMA, distance=distance, steps=count)
    return theirs / _noisy_cgd(problem, cycle, SIGMA, epochs)


@sweep("b = {batch_size}")
def ours_over_theirs_sequential(*, batch_size: int, epochs: int, requests: int) -> float:
    """Return the largest ratio of our ``mu`` to the paper's ``mu`` among the requests of a stream.

    Every request takes one epoch.
    """
    problem, cycle = problem_of(batch_size), cycle_of(batch_size)
    steps = (cycle.batches,) * requests
    distances = sequential_distances(problem, cycle, steps=steps[:-1], epochs=epochs)
    quotients = []
    for number, distance in enumerate(distances, start=1):
        schedule = Schedule(SIGMA, 1, steps[:number], learning_steps=epochs * cycle.batches, cycle=cycle)
        theirs = hidden_mu(problem, sigma=SIGMA, distance=distance, steps=cycle.batches)
        quotients.append(stream.curve(problem, schedule).mu / theirs)
    return max(quotients)


@sweep("l = {batches}")
def epoch_contractions(*, batches: int, epochs: int) -> list[Quantity]:
    """Return the factor by which an epoch with unequal batches shrinks a distance, divided by ``c^l``.

    The losses are quadratic. The chain of epochs from one start is compared with that from another; the means are
    computed step by step.
    """
    problem, _ = small(batches)
    centres = [math.cos(3 * each) for each in range(batches)]
    here, there, distances = 5.0, -2.0, [7.0]
    for _ in range(epochs):
        for centre in centres:
            step = problem.step_size * problem.strong_convexity
            here, there = here - step * (here - centre), there - step * (there - centre)
        distances.append(here - there)
    kept = (1 - problem.step_size * problem.strong_convexity) ** batches
    return [
        Quantity(after / before / kept, f"l = {batches}, epoch {count}")
        for count, (before, after) in enumerate(pairwise(distances), start=1)
    ]


def _noisy_cgd(problem: Problem, cycle: Cycle, sigma: float, epochs: int) -> float:
    """Return ``(s/tau) sqrt(1 + B)``, ``B = c^(2l-2) (1-c^2)/(1-c^l)^2 (1-c^(l(T-1)))/(1+c^(l(T-1)))``."""
    log_kept = math.log1p(-problem.step_size * problem.strong_convexity)
    kept, epoch = math.exp(log_kept), math.exp(cycle.batches * log_kept)
    earlier = math.exp(cycle.batches * (epochs - 1) * log_kept)
    first = kept ** (2 * cycle.batches - 2) * (1 - kept**2) / (1 - epoch) ** 2
    shift = problem.step_size * problem.sensitivity(1)
    noise = math.sqrt(2 * problem.step_size) * sigma
    return shift / noise * math.sqrt(1 + first * (1 - earlier) / (1 + earlier))
