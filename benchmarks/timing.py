"""Timings that a machine whose speed drifts, or which others use, distorts as little as it can."""

import platform
import time
from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray

SQUARE = 4096
"""Rows and columns of the matrix product that stands for the machine's peak."""


def seconds(action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return how long ``action`` takes by a clock."""
    start = clock()
    action()
    return clock() - start


def in_turn(
    actions: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, NDArray[np.float64]]:
    """Return the seconds of every action in every round; the actions take turns, after a round to warm up.

    Ratios are to be taken within a round, or between the best rounds of each. `time.process_time` is a clock for
    machines that are busy, where only one thread computes.
    """
    for action in actions.values():
        action()
    timings = [[seconds(action, clock) for action in actions.values()] for _ in range(rounds)]
    return dict(zip(actions, np.array(timings).T, strict=True))


def to_its_end(action: Callable[[], object]) -> Callable[[], object]:
    """Return an action that ends when the GPU, if there is one, has done what it was given."""

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
    """Return the share of the square product's speed that ``action`` reaches: the median, and of the best rounds."""
    relative = operations / (2 * SQUARE**3)
    return {
        "median": float(np.median(relative * square / action)),
        "best": float(relative * square.min() / action.min()),
    }


def machine(device: str = "cpu") -> dict[str, str]:
    """Return what the timings depend on besides the code."""
    processor = platform.processor() or platform.machine()
    computed_by = (
        torch.cuda.get_device_name() if device == "cuda" else f"{processor}, {torch.get_num_threads()} threads"
    )
    return {"machine": computed_by, "torch": torch.__version__}
