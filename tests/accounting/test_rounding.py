"""The cost of rounding: errors of a step, of sigmoid and softmax."""

import itertools

import mpmath
import numpy as np
import pytest
import torch

from certified_unlearning.accounting.core import rounding as rounding_module
from certified_unlearning.accounting.core.losses import loss_constants
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.rounding import UNIT_ROUNDOFF, rounding
from certified_unlearning.accounting.descent.published import descent_problem
from certified_unlearning.engine import descent as engine_descent
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.engine.objectives.softmax import SoftmaxObjective

DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])
TORCH = {"float32": torch.float32, "float64": torch.float64}
WIDE = {"float32": np.float64, "float64": np.longdouble}
"""A type whose own rounding does not matter."""


def planted_rows(kind, n, features, rng):
    """Rows of norm at most 1."""
    if kind == "equal":
        rows = np.ones((n, features))
    elif kind == "alternating":
        rows = np.ones((n, features)) * np.where(np.arange(n) % 2, -1.0, 1.0)[:, None]
    elif kind == "axis":
        rows = np.zeros((n, features))
        rows[:, 0] = 1
    elif kind == "thirds":
        # Every partial sum needs rounding, always the same way for a while.
        rows = np.full((n, features), 1 / 3) + rng.random((1, features)) / 10
    elif kind == "mixed":
        rows = rng.standard_normal((n, features)) * 10.0 ** rng.uniform(-25, 0, (n, 1))
        rows[1 :: max(1, n // 5)] = 0
    else:
        rows = rng.standard_normal((n, features))
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    longest = norms.max() if kind == "mixed" else norms
    # A hair below 1, so that no type rounds a row to more.
    return rows / longest * (1 - 1e-7)


def planted_weights(rows, dimension, largest, rng):
    """Weights of norms from 0 to the largest."""
    outputs = dimension // rows.shape[1]
    along = np.tile(rows[0], outputs) * np.repeat(np.where(np.arange(outputs) % 2, -1.0, 1.0), rows.shape[1])
    directions = [along, -along, np.eye(1, dimension)[0], np.ones(dimension), *rng.standard_normal((2, dimension))]
    weights = [np.zeros(dimension)]
    for direction, norm in zip(
        itertools.cycle(directions), [1e-30, 1e-3, 0.7, 3.0, 20.0, *[largest] * 6], strict=False
    ):
        length = np.linalg.norm(direction)
        if length > 0:
            weights.append(direction / length * min(norm, largest))
    return np.array(weights)


def exact_step(rows, labels, weights, classes, strong_convexity, step_size, normaliser, wide):
    """One gradient step in a wide type."""
    rows, weights = rows.astype(wide), weights.astype(wide)
    if classes == 2:
        rows = -labels.astype(wide)[:, None] * rows
        coefficients = sigmoid(weights @ rows.T)
        gradient = coefficients @ rows
    else:
        by_class = weights.reshape(len(weights) * classes, -1)
        scores = (by_class @ rows.T).reshape(len(weights), classes, -1)
        coefficients = softmax(scores)
        coefficients[:, labels, np.arange(len(labels))] -= 1
        gradient = (coefficients.reshape(len(by_class), -1) @ rows).reshape(len(weights), -1)
    step_size = wide(step_size)
    return weights - step_size * (wide(strong_convexity) * weights + gradient / normaliser)


def sigmoid(scores):
    small = np.exp(-np.abs(scores))
    return np.where(scores < 0, small, 1) / (1 + small)


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def problem_of(n, classes, strong_convexity, *, descent=False):
    constants = loss_constants(classes=classes, n=n, regularisation=strong_convexity / n, bounds="tight")
    problem = Problem(
        n,
        constants.strong_convexity,
        constants.smoothness,
        constants.lipschitz,
        1 / constants.smoothness,
        adjacency="zero-out",
    )
    return descent_problem(problem) if descent else problem


def errors_of_a_step(dtype, kind, n, features, classes, strong_convexity, *, descent, seed):
    """Return the largest error of one engine step and of the sum that follows, and what bounds it."""
    rng = np.random.default_rng(seed)
    problem = problem_of(n, classes, strong_convexity, descent=descent)
    dimension = features if classes == 2 else features * classes
    removed = min(n // 3, 5)
    rows = planted_rows(kind, n, features, rng)
    rows[:removed] = 0  # zeroed out
    rows = torch.from_numpy(rows).to(TORCH[dtype])
    if classes == 2:
        labels = {"equal": np.ones(n), "thirds": np.ones(n)}.get(kind, rng.choice([-1.0, 1.0], n))
        labels = torch.from_numpy(labels).to(TORCH[dtype])
    else:
        labels = torch.from_numpy({"equal": np.zeros(n, int)}.get(kind, rng.integers(classes, size=n)))
    start_norm = 2.0
    bound = rounding(
        n=n,
        features=features,
        classes=classes,
        strong_convexity=problem.strong_convexity,
        lipschitz=problem.lipschitz,
        step_size=problem.step_size,
        dtype=dtype,
        start_norm=start_norm,
        noise="publication",
    )
    largest = start_norm + problem.lipschitz / problem.strong_convexity
    weights = planted_weights(rows[removed:].double().numpy(), dimension, largest * (1 - 1e-6), rng)
    weights = torch.from_numpy(weights).to(TORCH[dtype])
    settings_of_both = {"strong_convexity": problem.strong_convexity, "lipschitz": problem.lipschitz, "normaliser": n}
    # Half the runs leave removed records out instead.
    used = slice(removed if seed % 2 else 0, None)
    if classes == 2:
        objective = LogisticObjective(rows[used].clone(), labels[used], **settings_of_both)
    else:
        objective = SoftmaxObjective(rows[used].clone(), labels[used], classes=classes, **settings_of_both)
    before = weights.numpy().copy()
    objective.descend(weights, problem.step_size)
    exact = exact_step(
        rows[used].numpy(),
        labels[used].numpy(),
        before,
        classes,
        problem.strong_convexity,
        problem.step_size,
        n,
        WIDE[dtype],
    )
    after = weights.numpy().astype(WIDE[dtype])
    # Noise is added next, and the sum, which is no longer than the weights may be, is rounded.
    error = np.sqrt(((after - exact) ** 2).sum(axis=1)).max() + UNIT_ROUNDOFF[dtype] * largest
    return float(error), bound, problem


LARGEST_SIZE = {"float32": 4_000_000, "float64": 400_000}
SHAPES = [
    (n, features, classes)
    for n in (1, 2, 7, 100, 1025, 5000, 20_000)
    for features in (1, 3, 33, 1000)
    for classes in (2, 3, 10)
]
KINDS = ["equal", "alternating", "axis", "thirds", "mixed", "random"]


def cases_of(dtype):
    """Every shape and kind that is small enough, with constants in turn."""
    fitting = [(n, f, c) for n, f, c in SHAPES if n * f * (c if c > 2 else 1) <= LARGEST_SIZE[dtype]]
    strengths = itertools.cycle([1e-4, 1e-2, 1.0, 30.0, 1e-3])
    seeds = itertools.count()
    for shape, kind in itertools.product(fitting, KINDS):
        yield (kind, *shape, next(strengths)), {"descent": next(seeds) % 3 == 0, "seed": next(seeds)}


@DTYPES
def test_a_step_errs_by_less_than_the_bound(dtype):
    count = 0
    for case, more in cases_of(dtype):
        error, bound, _ = errors_of_a_step(dtype, *case, **more)
        assert error <= bound.fixed, (case, more, error, bound)
        count += 1
    assert count > 250


def test_faulty_bounds_of_a_step_are_exceeded():
    without_sums = without_norm = 0
    for case, more in cases_of("float32"):
        _, n, features, classes, _ = case
        if n * features * classes > 100_000 and features > 1:
            continue
        error, bound, problem = errors_of_a_step("float32", *case, **more)
        arguments = {
            "n": n,
            "features": features,
            "classes": classes,
            "lipschitz": problem.lipschitz,
            "step_size": problem.step_size,
            "dtype": "float32",
            "noise": "publication",
        }
        strength = problem.strong_convexity
        norm = 2.0 + problem.lipschitz / strength
        error -= UNIT_ROUNDOFF["float32"] * norm
        # The weights' norm is M / m: nothing is left of it where m is huge, and that enters nowhere else.
        without_norm += error > rounding(**arguments, strong_convexity=1e12).fixed
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(rounding_module, "_gamma", lambda count, unit: 0.0)
            without_sums += error > rounding(**arguments, strong_convexity=strength, start_norm=2.0).fixed
        assert error <= bound.fixed
    assert without_sums > 0
    assert without_norm > 0


def test_a_projection_errs_by_less_than_what_is_counted_for_it():
    rng = np.random.default_rng(7)
    unit = UNIT_ROUNDOFF["float32"]
    for d in (1, 2, 17, 1000, 20_000):
        weights = torch.from_numpy(rng.standard_normal((20, d))).float()
        weights[:5] = 1.1
        for radius in (1e-3, 0.3, float(torch.linalg.vector_norm(weights[7])), 1e3):
            exact = weights.double().numpy()
            exact = exact * np.minimum(radius / np.linalg.norm(exact, axis=1, keepdims=True), 1)
            projected = weights.clone()
            engine_descent.project(projected, radius)
            errors = np.linalg.norm(projected.double().numpy() - exact, axis=1)
            assert (errors <= (d + 6) * unit * np.linalg.norm(exact, axis=1)).all()


# Sigmoid and softmax.


@DTYPES
def test_sigmoid_errs_by_less_than_eight_roundings(dtype):
    rng = np.random.default_rng(1)
    grid = np.concatenate([np.linspace(-120, 120, 400_001), rng.normal(0, 3, 200_000), rng.uniform(-1e4, 1e4, 10_000)])
    grid = np.concatenate([grid, [0.0, -0.0, 750, -750], 10.0 ** rng.uniform(-40, 4, 10_000)])
    scores = torch.from_numpy(grid).to(TORCH[dtype])
    expected = sigmoid(scores.numpy().astype(WIDE[dtype]))
    ways = [scores.sigmoid(), torch.cat([part.clone().sigmoid_() for part in torch.split(scores[:60_000], 7)])]
    for found in ways:
        worst = float(np.abs(found.numpy() - expected[: len(found)]).max())
        assert worst <= 8 * UNIT_ROUNDOFF[dtype], worst / UNIT_ROUNDOFF[dtype]


def test_the_wide_sigmoid_is_right():
    scores = np.linspace(-60, 60, 241)
    with mpmath.workdps(40):
        exact = [1 / (1 + mpmath.exp(-mpmath.mpf(float(score)))) for score in scores]
        found = sigmoid(scores.astype(np.longdouble))
        for each, expected in zip(found, exact, strict=True):
            # A long double is the sum of two doubles.
            value = mpmath.mpf(float(each)) + mpmath.mpf(float(each - np.longdouble(float(each))))
            assert abs(value - expected) <= 2.0**-60


@DTYPES
@pytest.mark.parametrize("classes", [3, 10, 100])
def test_softmax_errs_by_less_than_the_bound(dtype, classes):
    rng = np.random.default_rng(classes)
    worst = 0.0
    for scale in (1e-3, 1.0, 5.0, 50.0, 1e4):
        for rows in (1, 5, 64, 1000):
            scores = rng.standard_normal((4, classes, rows)) * scale
            scores[0] = np.round(scores[0])  # with ties
            scores[1, :] = scale  # all equal
            scores = torch.from_numpy(scores).to(TORCH[dtype])
            found = torch.softmax(scores, dim=1, out=torch.empty_like(scores)).numpy()
            exact = softmax(scores.numpy().astype(WIDE[dtype]))
            worst = max(worst, float(np.sqrt(((found - exact) ** 2).sum(axis=1)).max()))
    assert worst <= (2 * classes + 16) * UNIT_ROUNDOFF[dtype], worst / UNIT_ROUNDOFF[dtype]
