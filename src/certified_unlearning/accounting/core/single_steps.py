"""Pooling of single steps in compiled code. For few steps, Python's overhead would dominate a request's time.

Results equal those of `pooling`, up to a few units in the last place. Without a compiler, `pooling` is used.
"""

import ctypes
import functools
import math
import sys
from pathlib import Path

import numpy as np

from certified_unlearning import compiled
from certified_unlearning.accounting.core.pooling import Pool
from certified_unlearning.accounting.core.search import Array, Whole

SOURCE = Path(__file__).with_name("single_steps.cpp")
MOST_STEPS = 1 << 14
"""Largest number of steps. For more steps, it is faster to combine steps with equal differences into runs."""


def takes(steps: int) -> bool:
    """Return whether this module pools this number of steps."""
    return steps <= MOST_STEPS and library() is not None


def differing(pairs: Whole, *, batches: int, start: int, steps: int) -> Array:
    """Return, for each step on cyclic mini-batches, how many records of the step's batch differ.

    Args:
        pairs: Shape ``(3, pairs)``. Each column holds a batch, the number of its records that differ, and the number of
            the first step at which they no longer differ.
        batches: Number of batches, ``l``.
        start: Number of the first step. Step ``t`` uses batch ``t mod l``.
        steps: Number of steps, which `takes` must accept.
    """
    found = np.empty(steps)
    pairs = np.ascontiguousarray(pairs, dtype=np.int64)
    number, where = pairs.shape[1], pairs.ctypes.data
    rows = (where + row * 8 * number for row in range(3))
    _library().differing(number, *rows, batches, start, steps, found.ctypes.data)
    return found


class Decays:
    """The factors by which 0, 1, ... steps with equal contraction shrink a distance.

    Attributes:
        contraction_gap: ``1 - c``.
        log_of_one: Logarithm of the factor of one step.
    """

    def __init__(self, contraction_gap: float) -> None:
        """Set the contraction gap ``1 - c``, see `pooling.NoisyPhase`."""
        self.contraction_gap = contraction_gap
        self.log_of_one = math.log1p(-contraction_gap) if contraction_gap < 1 else -math.inf

    def __reduce__(self) -> tuple[type["Decays"], tuple[float]]:
        """Leave the table out of copies and files, because the table is long and quickly computed."""
        return Decays, (self.contraction_gap,)

    @functools.cached_property
    def table(self) -> Array:
        """The factors of up to `MOST_STEPS` steps."""
        if self.log_of_one == -math.inf:
            decays: Array = np.eye(1, MOST_STEPS + 1)[0]
        else:
            decays = np.exp(np.arange(MOST_STEPS + 1) * self.log_of_one)
        return decays


def pool(sensitivities: Array, *, decays: Decays, noise_std: float, starting_distance: float) -> Pool:
    """Return the blocks of single steps, as `Pool.of_runs` does for phases.

    All steps have the same contraction and the same noise.

    Args:
        sensitivities: Sensitivity of each step, shape ``(steps,)``. There must be at least one step, and `takes` must
            accept the number of steps.
        decays: The factors by which steps shrink a distance.
        noise_std: Noise of all steps, see `pooling.NoisyPhase`; above 0.
        starting_distance: ``z_0``, the distance between the starts of the runs.
    """
    unit = float(max(starting_distance, sensitivities.max())) or 1.0
    scaled, found = _doubles(sensitivities, unit), np.empty((len(sensitivities), 3))
    number = _library().single_steps(
        len(scaled), scaled.ctypes.data, starting_distance / unit, decays.table.ctypes.data, found.ctypes.data
    )
    # Every block has a step, so no block decays by 0 times infinity.
    blocks = [(signal, noise, steps * decays.log_of_one) for signal, noise, steps in found[:number].tolist()]
    return Pool(unit, noise_std, tuple(blocks))


def mu_of_all(
    sensitivities: Array,
    ends: Whole,
    *,
    first: int,
    window: int,
    decays: Decays,
    noise_std: float,
    distance: float,
) -> float:
    """Return the joint ``mu`` of successive runs, like `pooling.mu_of_all`.

    If a run is longer than twice the window, only its last steps are counted, and the two models are assumed to be
    ``distance`` apart before these steps.

    Args:
        sensitivities: Sensitivity of each step from ``first`` to the end of all runs, shape ``(steps,)``. `takes` must
            accept the number of these steps.
        ends: Step numbers, shape ``(runs + 1,)``. Run ``r`` begins with step ``ends[r]`` and ends before step
            ``ends[r + 1]``.
        first: The first step that is counted.
        window: Number of steps of a long run that are counted.
        decays: The factors by which steps shrink a distance.
        noise_std: Noise of all steps, see `pooling.NoisyPhase`; above 0.
        distance: Starting distance ``z_0`` of a run of which only the last steps are counted. It is at least as large
            as the starting distance of any other run.
    """
    largest = max(float(distance), float(sensitivities.max()))
    if largest == 0:
        return 0.0
    scaled, ends = _doubles(sensitivities, largest), np.ascontiguousarray(ends, dtype=np.int64)
    where, table = scaled.ctypes.data, decays.table.ctypes.data
    mu: float = _library().single_steps_of_all(
        len(ends) - 1, ends.ctypes.data, first, where, window, distance / largest, table
    )
    return max(mu * (largest / float(noise_std)), sys.float_info.min)


def _doubles(values: Array, unit: float) -> Array:
    """Return values divided by a unit, as doubles, the only type that the compiled source reads."""
    return np.ascontiguousarray(values, dtype=np.float64) / unit


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the compiled source, or None if it cannot be built. Build it if this machine has no build yet."""
    found = compiled.library(SOURCE, instead="SciPy computes the guarantees of mini-batches")
    if found is not None:
        whole, number, address = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
        found.differing.argtypes = [whole, *[address] * 3, *[whole] * 3, address]
        found.differing.restype = None
        found.single_steps.argtypes, found.single_steps.restype = [whole, address, number, address, address], whole
        found.single_steps_of_all.argtypes = [whole, address, whole, address, whole, number, address]
        found.single_steps_of_all.restype = number
    return found


def _library() -> ctypes.CDLL:
    found = library()
    assert found is not None
    return found
