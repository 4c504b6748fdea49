"""Random numbers of a real GPU that are the CPU's, so that what both compute from them can be compared."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from certified_unlearning.engine import randomness
from certified_unlearning.engine.exact.draws import Draws
from tests.support.fake_cuda import as_a_gpu_draws


@contextmanager
def same_draws() -> Iterator[None]:
    """Let both devices take the numbers of PyTorch's generator on the CPU, and the CPU no kernel of this package."""

    def seeded(draws: Draws, seed: int, *, device: torch.device | str = "cpu") -> None:
        draws._device = torch.device(device)
        draws._torch = torch.Generator().manual_seed(seed % 2**64)

    def bits(places: randomness.Places, count: int, like: Tensor) -> Tensor:
        return randomness._bits_of_torch(places, count, like.new_empty(0, device="cpu")).to(like.device)

    def normal(draws: Draws, *shape: int) -> Tensor:
        return torch.randn(shape, generator=draws._torch, dtype=torch.float64).to(draws._device)

    def uniform(draws: Draws, *shape: int) -> Tensor:
        return torch.rand(shape, generator=draws._torch, dtype=torch.float64).to(draws._device)

    def integers(draws: Draws, below: int, *shape: int) -> Tensor:
        return torch.randint(below, shape, generator=draws._torch).to(draws._device)

    with as_a_gpu_draws(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomness, "_random_bits", bits)
        patch.setattr(Draws, "__init__", seeded)
        for method in (normal, uniform, integers):
            patch.setattr(Draws, method.__name__, method)
        yield
