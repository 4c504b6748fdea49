"""Pooling of single steps, compiled: where not many steps count, most of a request's time would go around the work.

What it returns is what `pooling` does, to some units in the last place; where there is no compiler, that is used.
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
"""More are sooner put together to runs of steps that differ alike."""


def takes(steps: int) -> bool:
    """Return whether so many steps are pooled here."""
    return steps <= MOST_STEPS and library() is not None


def differing(pairs: Whole, *, batches: int, start: int, steps: int) -> Array:
    """Return in how many records each of so many steps on cyclic mini-batches differs.

    Args:
        pairs: Shape ``(3, pairs)``: a batch, how many of its records differ, and before which step they do.
        batches: ``l``.
        start: The first step's number; its batch is that modulo ``l``.
        steps: As many as `takes`.
    """
    found = np.empty(steps)
    pairs = np.ascontiguousarray(pairs, dtype=np.int64)
    number, where = pairs.shape[1], pairs.ctypes.data
    rows = (where + row * 8 * number for row in range(3))
    _library().differing(number, *rows, batches, start, steps, found.ctypes.data)
    return found


class Decays:
    """What 0, 1, ... steps that contract alike leave of a distance.

    Attributes:
        contraction_gap: ``1 - c``.
        log_of_one: Logarithm of what one step leaves.
    """

    def __init__(self, contraction_gap: float) -> None:
        """Take ``1 - c``, as of `pooling.NoisyPhase`."""
        self.contraction_gap = contraction_gap
        self.log_of_one = math.log1p(-contraction_gap) if contraction_gap < 1 else -math.inf

    def __reduce__(self) -> tuple[type["Decays"], tuple[float]]:
        """Leave the table out of files and copies: it is long, and soon made."""
        return Decays, (self.contraction_gap,)

    @functools.cached_property
    def table(self) -> Array:
        """Of up to `MOST_STEPS` steps."""
        if self.log_of_one == -math.inf:
            decays: Array = np.eye(1, MOST_STEPS + 1)[0]
        else:
            decays = np.exp(np.arange(MOST_STEPS + 1) * self.log_of_one)
        return decays


def pool(sensitivities: Array, *, decays: Decays, noise_std: float, starting_distance: float) -> Pool:
    """Return the blocks of single steps that contract alike and have the same noise; see `Pool.of_runs`.

    Args:
        sensitivities: Shape ``(steps,)``, at least one and as many as `takes`.
        decays: What steps leave of a distance.
        noise_std: As of `pooling.NoisyPhase`, above 0.
        starting_distance: ``z_0``.
    """
    unit = float(max(starting_distance, sensitivities.max())) or 1.0
    scaled, found = _doubles(sensitivities, unit), np.empty((len(sensitivities), 3))
    number = _library().single_steps(
        len(scaled), scaled.ctypes.data, starting_distance / unit, decays.table.ctypes.data, found.ctypes.data
    )
    # Every block has a step, so that none decays by 0 times infinity.
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
    """Return ``mu`` of several runs that follow each other, each counted on its own; see `pooling.mu_of_all`.

    Of a run longer than twice the window its last steps are counted, from a distance.

    Args:
        sensitivities: Shape ``(steps,)``, of the steps from ``first`` to the end of all, as many as `takes`.
        ends: Shape ``(runs + 1,)``: before which step the first run begins, and before which each one ends.
        first: The first step that is counted.
        window: How many steps of a long run are counted.
        decays: What steps leave of a distance.
        noise_std: As of `pooling.NoisyPhase`, above 0.
        distance: ``z_0`` of a run that is cut, at least that of any other.
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
    """Return values in a unit, as doubles whatever numbers they were: the compiled source reads nothing else."""
    return np.ascontiguousarray(values, dtype=np.float64) / unit


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the compiled source, built now if it never was on this machine; None where that cannot be."""
    found = compiled.library(SOURCE, instead="guarantees of mini-batches are pooled by SciPy")
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
