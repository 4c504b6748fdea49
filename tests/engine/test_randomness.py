"""The noise: its definition, its law, and that batches, threads and blocks do not matter."""

import math

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray
from scipy import stats

from certified_unlearning.engine import randomness

FALSE_ALARM = 1e-9
"""Of each test of a law, over the choice of the keys, which are fixed."""


def block(keys: list[int], number: int, steps: int, d: int, dtype: torch.dtype) -> torch.Tensor:
    noise = torch.empty(len(keys), steps, d, dtype=dtype)
    randomness.fill_block(noise, keys, number)
    return noise


def addresses(count: int, name: str = "randomness") -> list[int]:
    return [randomness.address(name, trial) for trial in range(count)]


def integers(key: int, number: int, count: int, width: type) -> list[int]:
    """AES-128 of successive counters, block by block, with the cipher alone instead of its counter mode."""
    cipher = Cipher(algorithms.AES128(key.to_bytes(16, "little")), modes.ECB()).encryptor()
    size = np.dtype(width).itemsize
    counters = range(-(-count * size // 16))
    stream = b"".join(cipher.update(((number << 64) + counter).to_bytes(16, "big")) for counter in counters)
    return np.frombuffer(stream[: count * size], width).tolist()


@pytest.mark.parametrize(("dtype", "width"), [(torch.float32, np.int32), (torch.float64, np.int64)])
@pytest.mark.parametrize(("steps", "d"), [(16, 37), (1, 5), (3, 3), (1, 1)])
def test_numbers_are_box_and_muller_s_of_the_cipher_s_bits(steps: int, d: int, dtype: torch.dtype, width: type) -> None:
    keys = addresses(3)
    noise = block(keys, 4, steps, d, dtype).double().numpy()
    # A pair's two numbers belong to one step; of an odd number the last pair's second one is left out.
    half = -(-d // 2)
    pairs = steps * half
    scale = 2.0 ** (8 * np.dtype(width).itemsize - 1)
    for key, actual in zip(keys, noise, strict=True):
        bits = integers(key, 4, 2 * pairs, width)
        # The integers as numbers of the type: near 1 its spacing is what limits a small radius.
        sizes = torch.tensor([max(abs(each), 0.25) / scale for each in bits[:pairs]], dtype=dtype).double().numpy()
        radii = np.sqrt(-2 * np.log(sizes)).reshape(steps, half)
        angles = np.pi * (np.array(bits[pairs:], dtype=np.float64) / scale).reshape(steps, half)
        expected = np.concatenate([radii * np.cos(angles), radii * np.sin(angles)], axis=1)[:, :d]
        np.testing.assert_allclose(actual, expected, atol=8 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("trials", "blocks", "steps", "d"), [(1, 5, 16, 21), (3, 4, 16, 1), (2, 9, 16, 785), (4, 3, 2, 7)]
)
def test_blocks_filled_together_have_the_bits_of_each(
    trials: int, blocks: int, steps: int, d: int, dtype: torch.dtype
) -> None:
    keys = addresses(trials)
    together = torch.empty(trials, blocks, steps, d, dtype=dtype)
    randomness.fill_blocks(together, keys, 3)
    for number in range(blocks):
        assert torch.equal(together[:, number], block(keys, 3 + number, steps, d, dtype))


def test_the_smallest_integer_and_zero_give_finite_numbers() -> None:
    for dtype, width in ((torch.float32, torch.int32), (torch.float64, torch.int64)):
        least = torch.iinfo(width).min
        bits = torch.tensor([[0, least, -1, 1, least + 1]], dtype=width)
        radius = randomness._radius(bits, [(0, 0)])
        assert bool(torch.isfinite(radius).all())
        # 0, but for the logarithm's last bits.
        assert float(radius[0, 1]) < torch.finfo(dtype).eps ** 0.5
        # 1024 more bits: as far out as the smallest of them, which would be 0 there.
        assert float(radius.max()) < math.sqrt(-2 * math.log(2.0**-129 / -least))
        assert float(radius[0, 0]) > math.sqrt(-2 * math.log(0.5 / -least))
        angle = torch.tensor([[least, 0, least, 0, 1]], dtype=width)
        out = torch.empty(1, 10, dtype=dtype)
        randomness._box_muller(radius, angle, out=out)
        assert bool(torch.isfinite(out).all())
        assert float(out.abs().max()) == pytest.approx(float(radius.max()), rel=1e-6)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("d", [1, 7, 203, 784])
def test_a_trial_s_noise_does_not_depend_on_its_batch_or_on_threads(
    threads: int, dtype: torch.dtype, d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = addresses(41)
    alone = torch.cat([block([key], 2, randomness.BLOCK_STEPS, d, dtype) for key in keys])
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert torch.equal(block(keys, 2, randomness.BLOCK_STEPS, d, dtype), alone)
        assert torch.equal(block(keys[5:], 2, randomness.BLOCK_STEPS, d, dtype), alone[5:])
        monkeypatch.setattr(randomness, "NUMBERS_AT_ONCE", 1 << 20)
        assert torch.equal(block(keys, 2, randomness.BLOCK_STEPS, d, dtype), alone)
    finally:
        torch.set_num_threads(before)


def test_other_keys_and_blocks_are_other_numbers() -> None:
    first, second = addresses(2)
    seen = [block([key], number, 16, 32, torch.float32) for key in (first, second) for number in (0, 1, 2**62)]
    for one in range(len(seen)):
        for other in range(one):
            assert not bool((seen[one] == seen[other]).any())


@pytest.fixture(scope="module", params=[torch.float32, torch.float64], ids=["float32", "float64"])
def many(request: pytest.FixtureRequest) -> NDArray[np.float64]:
    """Four million numbers: 100 trials, 16 steps, 2501 dimensions (an odd number of them)."""
    return block(addresses(100, "law"), 1, 16, 2501, request.param).double().numpy()


def test_numbers_are_standard_normal(many: NDArray[np.float64]) -> None:
    sample = many.ravel()
    assert stats.kstest(sample, "norm").pvalue > FALSE_ALARM
    # A Kolmogorov-Smirnov test sees little of the tails.
    for inner in (stats.norm.ppf(np.linspace(1e-3, 0.999, 999)), np.array([-4.5, -4.0, -3.5, 3.5, 4.0, 4.5])):
        edges = np.concatenate([[-np.inf], inner, [np.inf]])
        expected = len(sample) * np.diff(stats.norm.cdf(edges))
        assert stats.chisquare(np.histogram(sample, edges)[0], expected).pvalue > FALSE_ALARM


def test_numbers_are_independent_across_trials_steps_and_coordinates(many: NDArray[np.float64]) -> None:
    count = many.size
    limit = stats.norm.isf(FALSE_ALARM / 2)
    half = -(-many.shape[2] // 2)
    for power, values in ((1, many), (2, many**2 - 1)):
        flat = values.reshape(len(many), -1)
        scale = math.sqrt(count) * float(np.mean(values**2))
        for one, other in (
            (flat[:, 1:], flat[:, :-1]),
            (flat[:, 2501:], flat[:, :-2501]),
            (flat[1:], flat[:-1]),
            # The two numbers of a pair, which share a radius.
            (values[..., : many.shape[2] - half], values[..., half:]),
        ):
            assert abs(float(np.sum(one * other))) / scale < limit, power


def test_the_tests_of_the_law_see_planted_faults(many: NDArray[np.float64]) -> None:
    for fault in (lambda x: x * 1.01, lambda x: x + 0.006, lambda x: np.clip(x, -4, 4)):
        with pytest.raises(AssertionError):
            test_numbers_are_standard_normal(fault(many))
    with pytest.raises(AssertionError):
        test_numbers_are_independent_across_trials_steps_and_coordinates(np.repeat(many[::2], 2, axis=0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_gpus_bits_have_full_range_and_belong_to_their_key_and_block(dtype: torch.dtype) -> None:
    """The generator is PyTorch's on any device: here the CPU's stands for a GPU's."""
    like = torch.empty(0, dtype=dtype)
    bits = randomness._bits_of_torch([(5, 3), (6, 3)], 4096, like)
    limits = torch.iinfo(bits.dtype)
    # Each eighth of the range is missed by all 4096 with probability (7/8)^4096, below 1e-200.
    for row in bits:
        assert row.min() < limits.min * 3 / 4
        assert row.max() > limits.max * 3 / 4
    torch.testing.assert_close(randomness._bits_of_torch([(6, 3)], 4096, like)[0], bits[1], rtol=0, atol=0)
    assert (randomness._bits_of_torch([(6, 4)], 4096, like)[0] != bits[1]).any()
