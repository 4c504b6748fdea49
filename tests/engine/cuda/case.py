"""One path through the engine, that can be taken on any device."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from certified_unlearning.engine import randomness
from tests.support.fake_cuda import CUDA, FakeCuda, as_a_gpu_draws, fake_cuda, numbers_of

BLOCK_STEPS = 4
"""Steps of a block of noise here, so that short runs have several."""


@dataclass(frozen=True)
class Case:
    """A path.

    Attributes:
        name: Of the case.
        run: Takes the path on a device, so many rounds of its loop long, and returns tensors.
        waits: The functions in which the host may wait for the device again and again, in every round. All others wait
            as often in many rounds as in few.
    """

    name: str
    run: Callable[[torch.device, int], Any]
    waits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What a case came to.

    Attributes:
        numbers: What it returned after one round.
        short: What was seen of one round.
        long: What was seen of two.
    """

    numbers: Any
    short: FakeCuda
    long: FakeCuda

    def waits_in_the_loop(self) -> set[str]:
        """Return the functions that wait more often in two rounds than in one."""
        return {name for name, count in self.long.waits.items() if count > self.short.waits[name]}


@cache
def outcome(case: Case) -> Outcome:
    """Return what a case comes to on CUDA."""
    return outcome_of(case)


def outcome_of(case: Case) -> Outcome:
    """Return the same, computed now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomness, "BLOCK_STEPS", BLOCK_STEPS)
        with fake_cuda() as short:
            numbers = numbers_of(case.run(CUDA, 1))
        with fake_cuda() as long:
            case.run(CUDA, 2)
    return Outcome(numbers, short, long)


def on_the_cpu(case: Case) -> Any:
    """Return what a case returns after one round on the CPU."""
    with as_a_gpu_draws(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomness, "BLOCK_STEPS", BLOCK_STEPS)
        return case.run(torch.device("cpu"), 1)


def moved(device: torch.device, *tensors: Tensor) -> list[Tensor]:
    """Return copies of tensors on a device."""
    return [each.to(device, copy=True) for each in tensors]


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return standard normal numbers on the CPU."""
    return torch.randn(*shape, generator=_of_cpu(seed), dtype=dtype)


def short_rows(count: int, features: int, *, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return rows of norm just below 1 on the CPU."""
    rows = normal(count, features, seed=seed, dtype=dtype)
    return rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True) * 0.999


def whole(below: int, *shape: int, seed: int = 0) -> Tensor:
    """Return whole numbers from 0 on the CPU."""
    return torch.randint(below, shape, generator=_of_cpu(seed))


def _of_cpu(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
