"""Measures of the bounds against exact laws, our analysis, and Langevin unlearning's."""

import math
from collections.abc import Sequence
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
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

_SMALL_SIGMA = 0.5
"""Noise of the small problem."""


@measure
def two_points_over_bound(
    evidence: Sequence[Evidence], *, steps: list[int], published_code: bool = False
) -> list[Quantity]:
    """Return the exact divergence of quadratic losses from two points ``Z`` apart over the bound, at order 2."""
    problem, _ = small(1)
    kept, noise = 1 - problem.step_size * problem.strong_convexity, 2 * problem.step_size * _SMALL_SIGMA**2
    found = []
    for count in steps:
        apart, variance = 1.0, 0.0
        for _ in range(count):
            apart, variance = kept * apart, kept**2 * variance + noise
        bound = float(distance_curve(problem, sigma=_SMALL_SIGMA, distance=1.0, steps=count)(np.array([2.0]))[0])
        factor = CODE_FACTOR if published_code else 1.0
        found.append(Quantity(apart**2 / variance / (factor * bound), f"k = {count}"))
    return found


@measure
def enumerated_over_bound(
    evidence: Sequence[Evidence],
    *,
    batches: list[int],
    epochs: list[int],
    steps: list[int],
    of: Literal["exact over ours", "ours over theirs"],
) -> list[Quantity]:
    """Return the largest quotient of two ``mu`` over all positions: the exact law's over ours, or ours over theirs."""
    found = []
    for number in batches:
        problem, cycle = small(number)
        for count in epochs:
            for left in steps:
                quotients = []
                for position in range(1, number + 1):
                    where = {"sigma": _SMALL_SIGMA, "epochs": count, "position": position}
                    ours = pooled(problem, cycle, steps=left, **where)  # type: ignore[arg-type]
                    if of == "exact over ours":
                        (exact,) = quadratic_mus(problem, cycle, steps=[left], **where)  # type: ignore[arg-type]
                        quotients.append(exact / ours)
                    else:
                        distance = learned_distance(problem, cycle, epochs=count, position=position)
                        quotients.append(ours / hidden_mu(problem, sigma=_SMALL_SIGMA, distance=distance, steps=left))
                found.append(Quantity(max(quotients), f"l = {number}, T = {count}, k = {left}"))
    return found


@measure
def place_over_averaged(
    evidence: Sequence[Evidence],
    *,
    batches: list[int],
    epochs: int,
    steps: list[int],
    alpha: list[float],
    place: Literal["hidden", "published", "last"],
) -> list[Quantity]:
    """Return exact divergences of quadratic losses over the averaged bound: place drawn and hidden, told, the last."""
    found = []
    for number in batches:
        problem, cycle = small(number)
        for left in steps:
            exact = [
                quadratic_mus(problem, cycle, sigma=_SMALL_SIGMA, epochs=epochs, steps=[left], position=each)[0]
                for each in range(1, number + 1)
            ]
            bound = averaged_curve(problem, cycle, sigma=_SMALL_SIGMA, epochs=epochs, steps=left)
            for order in alpha:
                if place == "hidden":
                    divergence = hidden_place_divergence(exact, order)
                elif place == "published":
                    scale = order * (order - 1) / 2
                    divergence = math.log(np.mean([math.exp(scale * mu**2) for mu in exact])) / (order - 1)
                else:
                    divergence = order * exact[-1] ** 2 / 2
                limit = float(bound(np.array([order]))[0])
                found.append(Quantity(divergence / limit, f"l = {number}, k = {left}, alpha = {order:g}"))
    return found


@measure
def ours_over_theirs(
    evidence: Sequence[Evidence], *, batch_size: list[int], epochs: list[float], unit: Literal["mu", "epsilon"] = "mu"
) -> list[Quantity]:
    """Return our ``mu`` or epsilon over theirs, worst position, after numbers of epochs; 0 stands for one step."""
    found = []
    for size in batch_size:
        problem, cycle = problem_of(size), cycle_of(size)
        for each in epochs:
            steps = max(1, round(each * cycle.batches))
            ours = pooled(problem, cycle, sigma=SIGMA, epochs=math.inf, steps=steps)
            distance = learned_distance(problem, cycle, epochs=math.inf)
            if unit == "mu":
                quotient = ours / hidden_mu(problem, sigma=SIGMA, distance=distance, steps=steps)
            else:
                theirs = known_curve(problem, cycle, sigma=SIGMA, epochs=math.inf, steps=steps)
                quotient = epsilon_from_mu(ours, DELTA) / epsilon_of(theirs, DELTA)
            found.append(Quantity(quotient, f"b = {size}, K = {steps / cycle.batches:.3g}"))
    return found


@measure
def full_batch_over_langevin(evidence: Sequence[Evidence], *, steps: list[int]) -> list[Quantity]:
    """Return epsilon of the full batch over Langevin unlearning's log-Sobolev bound, both converted as published."""
    problem, cycle = problem_of(N), cycle_of(N)
    found = []
    for count in steps:
        theirs = known_curve(problem, cycle, sigma=SIGMA, epochs=math.inf, steps=count)
        before = lsi.curve(problem, Schedule(SIGMA, 1, (count,)))
        quotient = epsilon_of(theirs, DELTA, conversion="paper") / epsilon_of(before, DELTA, conversion="paper")
        found.append(Quantity(quotient, f"K = {count}"))
    return found


@measure
def noisy_cgd_over_ours(evidence: Sequence[Evidence], *, batches: list[int], epochs: list[int]) -> list[Quantity]:
    """Return NoisyCGD's published ``(s/tau) sqrt(1 + B)`` over our value at the last position, without unlearning."""
    found = []
    for number in batches:
        problem, cycle = small(number)
        for count in epochs:
            ours = pooled(problem, cycle, sigma=_SMALL_SIGMA, epochs=count, steps=0)
            found.append(Quantity(_noisy_cgd(problem, cycle, _SMALL_SIGMA, count) / ours, f"l = {number}, T = {count}"))
    return found


@measure
def theirs_over_learning(
    evidence: Sequence[Evidence], *, batch_size: list[int], epochs: int, steps: Literal["step", "epoch"]
) -> list[Quantity]:
    """Return theirs after one step or epoch over NoisyCGD's bound on learning, which post-processing keeps."""
    found = []
    for size in batch_size:
        problem, cycle = problem_of(size), cycle_of(size)
        count = 1 if steps == "step" else cycle.batches
        distance = learned_distance(problem, cycle, epochs=epochs)
        theirs = hidden_mu(problem, sigma=SIGMA, distance=distance, steps=count)
        found.append(Quantity(theirs / _noisy_cgd(problem, cycle, SIGMA, epochs), f"b = {size}"))
    return found


@measure
def ours_over_theirs_sequential(
    evidence: Sequence[Evidence], *, batch_size: list[int], epochs: int, requests: int
) -> list[Quantity]:
    """Return our ``mu`` after each of equal requests over theirs, one epoch a request, largest quotient of a stream."""
    found = []
    for size in batch_size:
        problem, cycle = problem_of(size), cycle_of(size)
        steps = (cycle.batches,) * requests
        distances = sequential_distances(problem, cycle, steps=steps[:-1], epochs=epochs)
        quotients = []
        for number, distance in enumerate(distances, start=1):
            schedule = Schedule(SIGMA, 1, steps[:number], learning_steps=epochs * cycle.batches, cycle=cycle)
            theirs = hidden_mu(problem, sigma=SIGMA, distance=distance, steps=cycle.batches)
            quotients.append(stream.curve(problem, schedule).mu / theirs)
        found.append(Quantity(max(quotients), f"b = {size}"))
    return found


@measure
def epoch_contractions(evidence: Sequence[Evidence], *, batches: list[int], epochs: int) -> list[Quantity]:
    """Return what an epoch leaves of the distance of two means over ``c^l``, on quadratic losses of unequal batches.

    The chain of epochs of one start against that of another: means are carried on step by step.
    """
    found = []
    for number in batches:
        problem, _ = small(number)
        centres = [math.cos(3 * each) for each in range(number)]
        here, there, distances = 5.0, -2.0, [7.0]
        for _ in range(epochs):
            for centre in centres:
                step = problem.step_size * problem.strong_convexity
                here, there = here - step * (here - centre), there - step * (there - centre)
            distances.append(here - there)
        kept = (1 - problem.step_size * problem.strong_convexity) ** number
        found += [
            Quantity(after / before / kept, f"l = {number}, epoch {count}")
            for count, (before, after) in enumerate(pairwise(distances), start=1)
        ]
    return found


def _noisy_cgd(problem: Problem, cycle: Cycle, sigma: float, epochs: int) -> float:
    """Return ``(s/tau) sqrt(1 + B)``, ``B = c^(2l-2) (1-c^2)/(1-c^l)^2 (1-c^(l(T-1)))/(1+c^(l(T-1)))``."""
    log_kept = math.log1p(-problem.step_size * problem.strong_convexity)
    kept, epoch = math.exp(log_kept), math.exp(cycle.batches * log_kept)
    earlier = math.exp(cycle.batches * (epochs - 1) * log_kept)
    first = kept ** (2 * cycle.batches - 2) * (1 - kept**2) / (1 - epoch) ** 2
    shift = problem.step_size * problem.sensitivity(1)
    noise = math.sqrt(2 * problem.step_size) * sigma
    return shift / noise * math.sqrt(1 + first * (1 - earlier) / (1 + earlier))
