"""Timings that depend as little as possible on the drift and the load of a machine."""

import platform
import time
from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray

SQUARE = 4096
"""Number of rows and columns of the matrix product that represents the machine's peak."""


def seconds(action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the time that ``action`` takes, by the given clock."""
    start = clock()
    action()
    return clock() - start


def in_turn(
    actions: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, NDArray[np.float64]]:
    """Return the seconds of every action in every round; after one round to warm up, the actions take turns.

    Compute ratios only within a round, or between the best rounds. On a busy machine, use `time.process_time` as the
    clock, if only one thread computes.
    """
    for action in actions.values():
        action()
    timings = [[seconds(action, clock) for action in actions.values()] for _ in range(rounds)]
    return dict(zip(actions, np.array(timings).T, strict=True))


def to_its_end(action: Callable[[], object]) -> Callable[[], object]:
    """Return an action that also waits for the GPU, if there is one, to finish its work."""

    def whole() -> None:
        action()
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    return whole


def square_product(device: str = "cpu") -> Callable[[], object]:
    """Return a product of two large square float32 matrices, of ``2 * SQUARE**3`` operations."""
    square = torch.randn(SQUARE, SQUARE, generator=torch.Generator().manual_seed(1)).to(device)
    product = torch.empty_like(square)
    return lambda: torch.mm(square, square, out=product)


def shares(operations: float, action: NDArray[np.float64], square: NDArray[np.float64]) -> dict[str, float]:
    """Return the speed of ``action`` divided by the square product's: the median, and the ratio of the best rounds."""
    relative = operations / (2 * SQUARE**3)
    return {
        "median": float(np.median(relative * square / action)),
        "best": float(relative * square.min() / action.min()),
    }


def machine(device: str = "cpu") -> dict[str, str]:
    """Return the facts, besides the code, on which the timings depend."""
    processor = platform.processor() or platform.machine()
    computed_by = (
        torch.cuda.get_device_name() if device == "cuda" else f"{processor}, {torch.get_num_threads()} threads"
    )
    return {"machine": computed_by, "torch": torch.__version__}
