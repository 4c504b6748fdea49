"""The noise sampler: how far radii and pairs are from the exact ones, and their law."""

import itertools
import math

import mpmath
import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from certified_unlearning.accounting.core import rounding as rounding_module
from certified_unlearning.accounting.core.rounding import RADIUS_ERROR, UNIT_ROUNDOFF, resolution
from certified_unlearning.engine import randomness
from tests.accounting.test_rounding import DTYPES, TORCH

INTEGERS = {"float32": torch.int32, "float64": torch.int64}
FALSE_ALARM = 1e-9
"""Of each test of a law, over the choice of the keys, which are fixed."""


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
