"""Request streams on quadratic losses, where every law is Gaussian: the oracle of the accountants' upper bounds."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from certified_unlearning.accounting import Problem


def exact_stream_renyi(alpha, problem, *, sigma, records_per_request, steps):
    """The Rényi divergence of unlearned from retrained model on ``(m/2) ||x - d||^2``, followed step by step.

    Learning is stationary, N(mean of the data, v). A request moves that mean by sensitivity / m, every time in the
    same direction; each step shrinks the model's distance from it. The variance stays v: it is the fixed point.
    Requests remove the same number of records, or each its own.
    """
    contraction = 1 - problem.step_size * problem.strong_convexity
    variance = 2 * problem.step_size * sigma**2 / (1 - contraction**2)
    distance, removed = 0.0, 0
    for records, count in zip(np.broadcast_to(records_per_request, len(steps)).tolist(), steps, strict=True):
        sensitivity = problem.sensitivity(records, removed_before=removed)
        removed += records
        distance += sensitivity / problem.strong_convexity
        for _ in range(count):
            distance *= contraction
    return alpha * distance**2 / (2 * variance)


def mean_gradient_gaps(problem, records):
    """By how much the mean gradient on the data after 0, 1, ... requests exceeds that after all, on actual data.

    The records to be erased have the gradient M. What takes their place, and under `remove` everyone who stays, has -M;
    the others have 0.
    """
    requests = len(records)
    erased_by = np.repeat(np.arange(requests + 1), [*records, problem.n - sum(records)])

    def mean(done):
        erased, stays = erased_by < done, erased_by == requests
        gradients = np.where(stays, 0, np.where(erased, 0, 1))
        if problem.adjacency == "replace":
            gradients[erased] = -1
        if problem.adjacency == "remove":
            gradients[stays] = -1
            gradients = gradients[~erased]
        return Fraction(int(gradients.sum()), len(gradients))

    return [problem.lipschitz * float(mean(done) - mean(requests)) for done in range(requests + 1)]


def exact_stream_mus(problem, *, sigma, records, steps, learning_steps=math.inf):
    """The mu between unlearned and retrained model on losses (m/2) x^2 - g x, followed step by step.

    First that of the last model; then of what each published model, the learned one first, adds to those before it:
    given these, both runs go on from the same point.
    """
    eta, m = problem.step_size, problem.strong_convexity
    c = 1 - eta * m
    difference = mean_gradient_gaps(problem, records)
    gap = variance = 0.0
    alone = []
    for number, count in enumerate([learning_steps, *steps]):
        gap_alone = variance_alone = 0.0
        if count == math.inf:
            gap = gap_alone = difference[number] / m
            variance = variance_alone = 2 * sigma**2 / (m * (2 - eta * m))
        for _ in range(0 if count == math.inf else count):
            gap, gap_alone = (c * each + eta * difference[number] for each in (gap, gap_alone))
            variance, variance_alone = (c**2 * each + 2 * eta * sigma**2 for each in (variance, variance_alone))
        alone.append(gap_alone / math.sqrt(variance_alone) if gap_alone else 0.0)
    return gap / math.sqrt(variance), alone


def sequential_bound(alpha, initials, exponents):
    """Corollary 3.4 with Hölder exponents 2 as it is printed: initial divergences per order, and the steps' E."""
    *earlier, exponent = exponents
    decay = math.exp(-exponent / alpha)
    if not earlier:
        return decay * initials[0] * alpha
    before = sequential_bound(2 * alpha, initials[:-1], earlier)
    return decay * (alpha - 0.5) / (alpha - 1) * (initials[-1] * 2 * alpha + before)


def problem_of_each_request(problem, records):
    """Return the problem that each request of a stream meets: under `remove`, with fewer records."""
    removed = (0, *itertools.accumulate(records))[:-1]
    fewer = removed if problem.adjacency == "remove" else (0,) * len(records)
    return [dataclasses.replace(problem, n=problem.n - gone) for gone in fewer]


@st.composite
def problems(draw):
    smoothness = 10 ** draw(st.floats(-2, 2))
    return Problem(
        n=draw(st.integers(200, 100_000)),
        strong_convexity=smoothness * 10 ** draw(st.floats(-4, 0)),
        smoothness=smoothness,
        lipschitz=10 ** draw(st.floats(-2, 2)),
        step_size=draw(st.floats(0.01, 1)) / smoothness,
        adjacency=draw(st.sampled_from(["replace", "zero-out", "remove"])),
    )


ORDERS = st.floats(-3, 4).map(lambda exponent: 1 + 10**exponent)
SIGMAS = st.floats(-3, 2).map(lambda exponent: 10**exponent)
RECORDS = st.integers(1, 20)
STEPS = st.lists(st.integers(0, 300), min_size=1, max_size=5)


@st.composite
def unequal_requests(draw, *, most_requests=5):
    """Sizes and steps of a stream of requests."""
    count = draw(st.integers(1, most_requests))
    sizes = draw(st.lists(st.integers(1, 40), min_size=count, max_size=count))
    return tuple(sizes), tuple(draw(st.lists(st.integers(0, 60), min_size=count, max_size=count)))
