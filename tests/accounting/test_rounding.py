"""The cost of rounding: step errors, sigmoid and softmax, the sampler, and the accountants' price for them."""

import dataclasses
import itertools
import math

import mpmath
import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from certified_unlearning.accounting import Schedule, delta_from_mu, mu_from_epsilon
from certified_unlearning.accounting.core import rounding as rounding_module
from certified_unlearning.accounting.core.losses import loss_constants
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.rounding import (
    EXACT,
    RADIUS_ERROR,
    SHARE,
    UNIT_ROUNDOFF,
    Rounding,
    resolution,
    rounding,
)
from certified_unlearning.accounting.deletion.planning import plan_deletion
from certified_unlearning.accounting.descent import shifted as descent_shifted
from certified_unlearning.accounting.descent.published import descent_problem
from certified_unlearning.accounting.shifted import interpolation as shifted
from certified_unlearning.accounting.shifted.arithmetic import (
    FREE,
    chosen_arithmetic,
    computed,
    descent_floor,
    failure_delta,
    langevin_floor,
    triangle_price,
)
from certified_unlearning.accounting.shifted.interpolation import contraction_gap, phase
from certified_unlearning.engine import descent as engine_descent
from certified_unlearning.engine import randomness
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.engine.objectives.softmax import SoftmaxObjective
from certified_unlearning.errors import AssumptionError
from certified_unlearning.mechanisms.learners.descent import DescentLearner
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner

DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])
TORCH = {"float32": torch.float32, "float64": torch.float64}
WIDE = {"float32": np.float64, "float64": np.longdouble}
"""A type whose own rounding does not matter."""
INTEGERS = {"float32": torch.int32, "float64": torch.int64}
FALSE_ALARM = 1e-9
"""Of each test of a law, over the choice of the keys, which are fixed."""


# The step error.


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


# The sampler.


def largest_of(dtype):
    return 2 ** (31 if dtype == "float32" else 63)


def is_refined(number, dtype):
    """Whether an integer is too small or too large a sample to be one."""
    low, high = randomness.FINE_FROM[TORCH[dtype]]
    return not low <= abs(float(torch.tensor(number, dtype=INTEGERS[dtype]).to(TORCH[dtype]))) <= high


def planted_integers(dtype, rng):
    """Integers at the sampler's corners, and random ones of every size."""
    largest = largest_of(dtype)
    low, high = (int(each) for each in randomness.FINE_FROM[TORCH[dtype]])
    corners = [0, 1, -1, 2, -2, 3, largest - 1, -largest]
    corners += [sign * (each + more) for each in (low, high) for more in range(-2, 3) for sign in (1, -1)]
    for power in range(60):
        if 2**power < largest // 2:
            corners += [largest - 1 - 2**power, 1 - largest + 2**power, high + 2**power, high - 2**power]
            corners += [low + 2**power, low - 2**power]
    drawn = [int(each) for each in largest * 2.0 ** -rng.uniform(0, math.log2(largest), 300)]
    drawn += [int(each) for each in rng.integers(-largest, largest, 300)]
    return [max(-largest, min(each, largest - 1)) for each in corners + drawn]


def cell(number, largest):
    """The numbers that an integer stands for: those that round to it."""
    low = mpmath.mpf(max(2 * abs(number) - 1, 0)) / (2 * largest)
    high = min(mpmath.mpf(2 * abs(number) + 1), mpmath.mpf(2 * largest)) / (2 * largest)
    return low, high


def radius_of(uniform):
    return mpmath.sqrt(-2 * mpmath.log(uniform))


def refined(number, largest, key, block, place):
    """The uniform number that a coarse integer becomes, from the cipher alone."""
    first = block << 64 | 1 << 63 | 8 * place
    counters = b"".join((first + number).to_bytes(16, "big") for number in range(8))
    cipher = Cipher(algorithms.AES128(key.to_bytes(16, "little")), modes.ECB()).encryptor()
    share = mpmath.mpf(int.from_bytes(cipher.update(counters), "little") + 1) / mpmath.mpf(2) ** 1024
    if abs(number) == largest:
        return 1 - share / 2 / largest
    return (share / 2 if number == 0 else abs(number) - mpmath.mpf(0.5) + share) / largest


def drawn_radii(dtype, numbers, key=5, block=3):
    bits = torch.tensor([numbers], dtype=INTEGERS[dtype])
    return randomness._radius(bits, [(key, block)])[0]


@DTYPES
def test_a_radius_is_near_that_of_every_number_of_its_cell(dtype):
    numbers = planted_integers(dtype, np.random.default_rng(2))
    largest, unit, allowed = largest_of(dtype), UNIT_ROUNDOFF[dtype], RADIUS_ERROR[dtype]
    without_it = refinements = 0
    with mpmath.workdps(50):
        for place, (number, found) in enumerate(zip(numbers, drawn_radii(dtype, numbers).tolist(), strict=True)):
            low, high = cell(number, largest)
            if is_refined(number, dtype):
                refinements += 1
                exact = refined(number, largest, 5, 3, place)
                # From 2^-129 on: the share may be as small as that.
                assert low <= exact <= high
                assert abs(found - radius_of(exact)) <= 4 * unit * radius_of(exact)
                # As the types round it, it may reach the cell's edge, no more.
                slack = 4 * unit * radius_of(exact)
                assert radius_of(high) - slack <= found
                assert number == 0 or found <= radius_of(low) + slack
                continue
            for uniform in (low, (low + high) / 2, high, low + (high - low) / 1000, high - (high - low) / 1000):
                exact = radius_of(uniform)
                assert abs(found - exact) <= allowed + 4 * unit * exact, (number, uniform)
                without_it += abs(found - exact) > 20 * unit * exact
    assert refinements > 50
    assert without_it > 0  # it cannot be left out


@DTYPES
def test_a_refined_draw_depends_on_key_block_and_place_only(dtype, monkeypatch):
    keys = [randomness.address("refined", trial) for trial in range(7)]
    steps, d = 4, 6
    pairs = steps * -(-d // 2)
    rng = np.random.default_rng(3)
    largest = largest_of(dtype)
    low, high = (int(each) for each in randomness.FINE_FROM[TORCH[dtype]])
    planted = rng.integers(-high, high, (len(keys), 2 * pairs))
    planted[:, :pairs] += np.where(np.abs(planted[:, :pairs]) < low, low, 0)
    rare = rng.random((len(keys), pairs)) < 0.4
    count = int(rare.sum())
    small, large = rng.integers(1 - low, low, count), rng.integers(high + (largest - high) // 2, largest, count)
    planted[:, :pairs][rare] = np.where(rng.random(count) < 0.5, small, large)
    planted[:, 0] = 0
    rare[:, 0] = True
    by_key = {key: torch.from_numpy(row).to(INTEGERS[dtype]) for key, row in zip(keys, planted, strict=True)}
    monkeypatch.setattr(
        randomness, "_random_bits", lambda some, count, kind: torch.stack([by_key[key] for key, _ in some])
    )

    def drawn(some, block):
        out = torch.empty(len(some), steps, d, dtype=TORCH[dtype])
        randomness.fill_block(out, some, block)
        return out

    together = drawn(keys, 9)
    for number, key in enumerate(keys):
        assert torch.equal(drawn([key], 9)[0], together[number])
    assert torch.equal(drawn(keys[::-1], 9).flip(0), together)
    monkeypatch.setattr(randomness, "NUMBERS_AT_ONCE", 3 * 2 * pairs)
    assert torch.equal(drawn(keys, 9), together)
    # Another block, key or place refines differently; other integers have no more bits to them.
    fine = torch.from_numpy(~rare).view(len(keys), steps, -1)
    same = drawn(keys, 10) == together
    for half in (same[..., :3], same[..., 3:]):
        assert bool(half[fine].all())
        assert not bool(half[~fine].any())
    zeros = [drawn_radii(dtype, [0, 0], key=key, block=block).tolist() for key in (1, 2) for block in (0, 1)]
    assert len({each for pair in zeros for each in pair}) == 8


@DTYPES
def test_a_pair_is_near_the_exact_pair(dtype):
    """Scaled by a step's noise, too: by a number that is itself rounded."""
    rng = np.random.default_rng(4)
    radii = planted_integers(dtype, rng)
    largest, unit, allowed = largest_of(dtype), UNIT_ROUNDOFF[dtype], RADIUS_ERROR[dtype]
    corners = [0, 1, -1, largest - 1, -largest, largest // 2, -largest // 2, largest // 4, 3 * (largest // 4)]
    drawn = [int(each) for each in rng.integers(-largest, largest, len(radii))]
    angles = [corners[i % len(corners)] if i % 3 == 0 else drawn[i] for i in range(len(radii))]
    out = torch.empty(1, 1, 2 * len(radii), dtype=TORCH[dtype])
    radius = drawn_radii(dtype, radii)
    randomness._box_muller(radius.view(1, 1, -1), torch.tensor([[angles]], dtype=INTEGERS[dtype]), out=out)
    scale = torch.tensor(0.3, dtype=torch.float64)
    scaled = (torch.zeros_like(out).addcmul_(out, scale.to(out))).view(2, -1).double().T.tolist()
    fair = 0
    with mpmath.workdps(50):
        for place, (number, angle, (x, y)) in enumerate(zip(radii, angles, scaled, strict=True)):
            low, high = cell(number, largest)
            uniforms = [refined(number, largest, 5, 3, place)] if is_refined(number, dtype) else [low, high]
            for uniform, off in itertools.product(uniforms, (-0.5, 0.0, 0.5)):
                exact, theta = radius_of(uniform), mpmath.pi * (angle + mpmath.mpf(off)) / largest
                tau = mpmath.mpf(float(scale))
                distance = mpmath.hypot(x / tau - exact * mpmath.cos(theta), y / tau - exact * mpmath.sin(theta))
                assert distance <= allowed + 20 * unit * exact, (number, angle)
                fair += distance > 2 * unit * exact
    assert fair > 0


@DTYPES
@pytest.mark.parametrize("d", [1, 2, 5, 8])
def test_both_numbers_of_a_pair_lie_in_one_step(dtype, d, monkeypatch):
    steps = 5
    half = -(-d // 2)
    pairs = steps * half
    rng = np.random.default_rng(d)
    largest = largest_of(dtype)
    plain = torch.from_numpy(rng.integers(-largest, largest, (1, 2 * pairs))).to(INTEGERS[dtype])

    def drawn(bits):
        monkeypatch.setattr(randomness, "_random_bits", lambda places, count, kind: bits.clone())
        out = torch.empty(1, steps, d, dtype=TORCH[dtype])
        randomness.fill_block(out, [1], 0)
        return out[0]

    before = drawn(plain)
    for place in range(2 * pairs):
        bits = plain.clone()
        bits[0, place] ^= 1 << (25 if dtype == "float32" else 55)
        changed = drawn(bits) != before
        step, column = divmod(place % pairs, half)
        expected = torch.zeros_like(changed)
        expected[step, column] = True
        if column + half < d:
            expected[step, column + half] = True
        assert torch.equal(changed, expected)


@DTYPES
def test_the_law_s_tails_are_a_normal_one_s(dtype):
    out = torch.empty(63, randomness.BLOCK_STEPS, 9999, dtype=TORCH[dtype])
    randomness.fill_block(out, [randomness.address("tails", dtype, trial) for trial in range(len(out))], 2)
    assert out.numel() > 1e7
    for limit in (3.0, 4.0, 5.0):
        for beyond in (out > limit, out < -limit):
            count = int(beyond.sum())
            assert stats.binomtest(count, out.numel(), stats.norm.sf(limit)).pvalue > FALSE_ALARM
    # Rows of a step: their squared lengths, where a norm of a step's noise enters the bounds.
    lengths = (out.double() ** 2).sum(dim=2).numpy().ravel()
    assert stats.kstest(lengths, stats.chi2(9999).cdf).pvalue > FALSE_ALARM
    assert np.sqrt(lengths.max()) < rounding_module.longest_noise(9999)
    # The test sees tails that end at 4.9, and ones a hundredth too wide.
    few = int((out.clamp(-4.2, 4.2).abs() > 4.2).sum())
    assert stats.binomtest(few, out.numel(), 2 * stats.norm.sf(4.2)).pvalue < FALSE_ALARM
    wide = int((out.abs() > 4 / 1.1).sum())
    assert stats.binomtest(wide, out.numel(), 2 * stats.norm.sf(4.0)).pvalue < FALSE_ALARM


def test_whole_steps_are_within_the_resolution():
    """The discrete noise of many steps against exact noise of the same bits, in double the digits."""
    dtype = "float32"
    steps, largest, unit = 200, largest_of(dtype), UNIT_ROUNDOFF[dtype]
    low, high = (int(each) for each in randomness.FINE_FROM[TORCH[dtype]])
    rng = np.random.default_rng(6)
    for d in (1, 2, 3, 10, 999):
        half = -(-d // 2)
        bits = rng.integers(-largest, largest, (2, steps, half))
        # The worst that are not refined, in many places.
        worst = rng.choice([low, low + 1, high - 1, high], (steps, half))
        bits[0] = np.where(rng.random((steps, half)) < 0.5, worst, np.clip(np.abs(bits[0]), low, high))
        whole = torch.from_numpy(bits).to(INTEGERS[dtype])
        out = torch.empty(steps, d, dtype=TORCH[dtype])
        radius = randomness._radius(whole[0], [(1, 0)] * steps)
        randomness._box_muller(radius, whole[1], out=out)
        for shift in (-0.5, 0.0, 0.5):
            uniform = np.minimum((np.abs(bits[0].astype(float)) + shift) / largest, 1.0)
            exact_radius = np.sqrt(-2 * np.log(uniform))
            angle = np.pi * (bits[1] + shift) / largest
            exact = np.concatenate([exact_radius * np.cos(angle), exact_radius * np.sin(angle)], axis=1)[:, :d]
            distance = np.linalg.norm(out.double().numpy() - exact, axis=1)
            radii = np.linalg.norm(exact_radius, axis=1)
            assert (distance <= RADIUS_ERROR[dtype] * math.sqrt(half) + 20 * unit * radii).all()
            assert (distance <= resolution(d, dtype)).all()


# What is made of it.


def arguments(**changed):
    usual = {
        "n": 1000,
        "features": 20,
        "classes": 2,
        "strong_convexity": 0.05,
        "lipschitz": 1.0,
        "step_size": 3.0,
        "dtype": "float32",
    }
    return {**usual, **changed}


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 10**6),
    st.integers(1, 1000),
    st.sampled_from([2, 3, 10]),
    st.floats(1e-4, 1.0),
    st.floats(0, 100),
    st.sampled_from(["every step", "publication", "publication, fed back"]),
    st.booleans(),
)
def test_rounding_grows_with_what_makes_it_larger(n, features, classes, strength, start, noise, projects):
    def found(**changed):
        usual = {
            "n": n,
            "features": features,
            "classes": classes,
            "strong_convexity": strength,
            "start_norm": start,
            "noise": noise,
            "projects": projects,
            "dtype": "float64",
        }
        return rounding(**arguments(**{**usual, **changed}))

    base = found()
    assert 0 < base.fixed < math.inf
    assert (base.per_noise == 0) == (noise == "publication")
    larger = [found(n=2 * n), found(features=features + 1), found(dtype="float32"), found(start_norm=start + 1)]
    larger += [found(classes=classes + 1), found(strong_convexity=strength / 2), found(projects=True)]
    for number, other in enumerate(larger):
        # Smaller strong convexity and more weights also lengthen the noise.
        assert other.fixed >= base.fixed, number
        assert other.per_noise >= base.per_noise, number
    assert larger[2].fixed > base.fixed
    assert larger[2].resolution > base.resolution
    assert larger[3].fixed > base.fixed
    assert larger[1].resolution >= base.resolution > 0


def test_rounding_that_makes_weights_grow_is_infinite():
    assert rounding(**arguments(strong_convexity=1e-9)).fixed == math.inf
    assert rounding(**arguments(strong_convexity=1e-9, dtype="float64")).fixed < math.inf


FLOORS = pytest.mark.parametrize(("floor_of", "descent"), [(langevin_floor, False), (descent_floor, True)])


def problems(*, descent, n=1000, strength=0.01, features=20, classes=2):
    exact = problem_of(n, classes, strength, descent=descent)
    noise = "publication, fed back" if descent else "every step"
    return {
        dtype: computed(exact, features=features, classes=classes, dtype=dtype, noise=noise)
        for dtype in ("float32", "float64")
    }


@FLOORS
@DTYPES
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
def test_the_least_sigma_makes_the_floor_its_share(floor_of, descent, dtype, epsilon):
    problem = problems(descent=descent)[dtype]
    floor, target = floor_of(problem), mu_from_epsilon(epsilon, 1e-4)
    least = floor.least_sigma(epsilon, 1e-4)
    if least == math.inf:
        assert floor.relative >= SHARE * target
    else:
        assert floor.mu(least) == pytest.approx(SHARE * target, rel=1e-9)
        assert floor.mu(0.99 * least) > SHARE * target
    # Exact arithmetic has none.
    assert floor_of(dataclasses.replace(problem, rounding=EXACT)).least_sigma(epsilon, 1e-4) == 0


@FLOORS
def test_what_the_accountants_count_is_no_less_than_rounding_alone_and_no_more_than_its_floor(floor_of, descent):
    sigma = 0.05
    for problem in problems(descent=descent).values():
        floor = floor_of(problem).mu(sigma)
        for steps, count in ((10_000, 1), (1, 5), (30, 3), (10_000, 3)):
            schedule = Schedule(sigma=sigma, records_per_request=1, steps=(steps,) * count, learning_steps=10_000)
            # Longer rows contract less, which is no error of a step.
            exact = dataclasses.replace(problem, rounding=Rounding(norm_excess=problem.rounding.norm_excess))

            def mu_of(problem, schedule=schedule):
                if not descent:
                    return shifted.curve(problem, schedule).mu
                return descent_shifted.published_state_curve(
                    problem, sigma=sigma, steps_per_request=schedule.steps, learning_steps=10_000
                ).mu

            added = mu_of(problem) - mu_of(exact)
            assert 0 < added <= floor * (1 + 1e-6) + 1e-12 * mu_of(exact)


@FLOORS
def test_the_arithmetic_is_the_coarsest_that_does_or_names_the_noise_that_is_enough(floor_of, descent):
    candidates = problems(descent=descent, strength=0.1)
    target = {"epsilon": 1.0, "delta": 1e-3}
    least = {dtype: floor_of(problem).least_sigma(1.0, 1e-3) for dtype, problem in candidates.items()}
    assert least["float64"] < least["float32"] < math.inf

    def chosen(sigma, *, may_rise=False, **changed):
        return chosen_arithmetic(candidates, floor_of, sigma=sigma, may_rise=may_rise, **{**target, **changed})

    assert chosen(least["float32"]) == "float32"
    assert chosen(0.99 * least["float32"]) == "float64"
    assert chosen(least["float64"]) == "float64"
    with pytest.raises(AssumptionError, match="is enough") as raised:
        chosen(0.5 * least["float64"])
    assert chosen(0.5 * least["float64"], may_rise=True) == "float64"
    named = float(str(raised.value).split("; sigma = ")[1].split(" is enough")[0])
    assert least["float64"] <= named <= 1.1 * least["float64"]
    assert chosen(named) == "float64"
    with pytest.raises(AssumptionError, match="at every sigma"):
        chosen(1.0, epsilon=1e-14, delta=1e-12)


@pytest.mark.parametrize("learner", ["langevin", "secret-state", "published-state"])
def test_with_the_noise_that_an_error_names_a_plan_passes(learner):
    settings_of_all = {"n": 400, "features": 10, "classes": 2, "regularisation": 1e-7, "epsilon": 1.0, "delta": 1e-4}

    def plan(sigma):
        if learner == "langevin":
            return LangevinLearner.plan(**settings_of_all, sigma=sigma)
        return DescentLearner.plan(**settings_of_all, sigma=sigma, variant=learner)

    with pytest.raises(AssumptionError, match="is enough") as raised:
        plan(1e-13)
    named = float(str(raised.value).split("; sigma = ")[1].split(" is enough")[0])
    planned = plan(named)
    assert planned.dtype == "float64"
    floor_of = langevin_floor if learner == "langevin" else descent_floor
    assert floor_of(planned.problem).mu(planned.sigma) <= SHARE * mu_from_epsilon(1.0, 1e-4) * (1 + 1e-9)
    with pytest.raises(AssumptionError, match="is enough"):
        plan(named * 0.9)


# The triangle.


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("mu", [1e-12, 1e-6, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("sides", [1, 2])
def test_the_triangle_holds_for_every_pair_of_exact_runs(epsilon, delta, mu, sides):
    """Composition of what is known: ``P' <= e^epsilon Q' + delta`` between two Gaussian trade-offs, exactly."""
    price = triangle_price(mu, epsilon=epsilon, delta=delta, sides=sides)
    assert price.epsilon >= 0
    assert price.delta >= 0
    with mpmath.workdps(60):
        for z in [*np.linspace(-30, 8, 58)]:
            other = mpmath.ncdf(mpmath.mpf(z))  # Q(E)
            exact_other = mpmath.ncdf(mpmath.mpf(z) + mu)  # Q'(E), at most
            exact = mpmath.exp(epsilon) * exact_other + delta  # P'(E), at most
            sums = [(exact, other)] if sides == 1 else []
            if sides == 2 and exact < 1:
                upper = mpmath.mpf(float(stats.norm.isf(float(exact)))) if exact < 0.5 else None
                quantile = -upper if upper is not None else mpmath.mpf(float(stats.norm.ppf(float(exact))))
                # One Newton step makes the quantile of doubles exact to 30 digits.
                quantile -= (mpmath.ncdf(quantile) - exact) / mpmath.npdf(quantile)
                sums = [(mpmath.ncdf(quantile + mu), other)]
            for own, base in sums:
                allowed = mpmath.exp(mpmath.mpf(epsilon) + mpmath.mpf(price.epsilon)) * base + delta + price.delta
                assert min(own, 1) <= allowed * (1 + mpmath.mpf(10) ** -12)


@pytest.mark.parametrize(("between", "mu"), [(0.5, 0.01), (1.0, 1e-4), (3.0, 0.3), (0.01, 1e-6)])
def test_the_triangle_holds_for_shifted_gaussians(between, mu):
    for epsilon in (0.01, 0.5, 2.0, 8.0):
        delta = delta_from_mu(between, epsilon)
        if delta < 1e-250:
            continue
        price = triangle_price(mu, epsilon=epsilon, delta=delta)
        assert delta_from_mu(between + 2 * mu, epsilon + price.epsilon) <= delta + price.delta
        # Half the price is too little, where delta is so large that it says something.
        assert delta_from_mu(between + 2 * mu, epsilon) > delta


def test_the_triangle_costs_nothing_where_nothing_is_rounded_and_little_where_little_is():
    assert triangle_price(0.0, epsilon=1.0, delta=1e-5) == FREE
    price = triangle_price(1e-9, epsilon=1.0, delta=1e-5)
    assert price.epsilon < 2e-8
    assert price.delta < 1e-10


def test_failure_is_negligible():
    problem = problems(descent=False)["float64"]
    assert 0 < failure_delta(problem, steps=10**9, epsilon=5.0) < 1e-24
    assert failure_delta(dataclasses.replace(problem, rounding=EXACT), steps=10**9, epsilon=5.0) == 0


def test_a_phase_counts_two_step_errors_also_where_the_data_agree():
    problem = problems(descent=False)["float32"]
    sigma = 0.3
    noise_std = math.sqrt(2 * problem.step_size) * sigma
    two = 2 * problem.rounding.step_error(noise_std)
    assert phase(problem, sigma=sigma, records=0, steps=1).sensitivity == two
    exact = phase(dataclasses.replace(problem, rounding=EXACT), sigma=sigma, records=3, steps=1).sensitivity
    assert phase(problem, sigma=sigma, records=3, steps=1).sensitivity == pytest.approx(
        exact * (1 + problem.rounding.norm_excess) + two, rel=1e-14
    )


@pytest.mark.parametrize("step_size", [0.5, 1.0, 1.9])
def test_the_contraction_allows_for_rows_that_are_too_long(step_size):
    """Quadratic losses whose curvature is larger by the square of the excess, at either end."""
    problem = Problem(100, 0.2, 1.0, 1.0, step_size, rounding=Rounding(norm_excess=1e-3))
    curvatures = [0.2, 1.0, 0.2 + 0.8 * 1.001**2]
    largest = max(abs(1 - step_size * curvature) for curvature in curvatures)
    assert 1 - contraction_gap(problem) >= min(largest, 1.0) - 1e-15


def test_steps_that_rows_too_long_could_drive_apart_are_refused():
    with pytest.raises(AssumptionError, match=r"rows may be longer than 1 by 0\.001"):
        contraction_gap(Problem(100, 0.2, 1.0, 1.0, 2.0, rounding=Rounding(norm_excess=1e-3)))


@pytest.mark.parametrize("norm", [1.0, 128.0, 1e-3])
def test_deletion_on_rows_of_another_norm_is_that_on_unit_rows_scaled(norm):
    """Rows of norm R are unit rows with weights R times as large: step errors shrink by R, in bits for powers of 2."""
    common = {"n": 5000, "dimension": 100, "alpha": 8.0, "epsilon_dp": 1.0, "epsilon_dd": 0.1, "dtype": "float64"}
    unit = plan_deletion(lipschitz=1.0, strong_convexity=0.05, smoothness=0.3, **common).problem.rounding
    scaled = plan_deletion(
        lipschitz=norm, strong_convexity=0.05 * norm**2, smoothness=0.3 * norm**2, **common
    ).problem.rounding
    assert scaled.fixed * norm == pytest.approx(unit.fixed, rel=1e-12)
    assert scaled.per_noise == pytest.approx(unit.per_noise, rel=1e-12)


def test_clipped_gradients_have_no_bound_on_rounding():
    with pytest.raises(AssumptionError, match="gradients that are not clipped"):
        plan_deletion(
            n=50, dimension=3, lipschitz=1.0, strong_convexity=0.05, smoothness=0.3, alpha=8.0, epsilon_dp=1.0,
            epsilon_dd=0.1, gradient_field="clipped-convex", dtype="float64",
        )  # fmt: skip
