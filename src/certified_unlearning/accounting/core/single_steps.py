"""Pooling of single steps, compiled: where not many steps count, most of a request's time would go around the work.

What it returns is what `pooling` does, to some units in the last place; where there is no compiler, that is used.
"""

import ctypes
import functools
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certified_unlearning import compiled
from certified_unlearning.accounting.core.pooling import Pool
from certified_unlearning.accounting.core.search import Array

SOURCE = Path(__file__).with_name("single_steps.cpp")
MOST_STEPS = 1 << 14
"""More are sooner put together to runs of steps that differ alike."""


def takes(steps: int) -> bool:
    """Return whether so many steps are pooled here."""
    return steps <= MOST_STEPS and library() is not None


def pool(sensitivities: Array, *, contraction_gap: float, noise_std: float, starting_distance: float) -> Pool:
    """Return the blocks of single steps that contract alike and have the same noise; see `Pool.of_runs`.

    Args:
        sensitivities: Shape ``(steps,)``, at least one and as many as `takes`.
        contraction_gap: As of `pooling.Phase`.
        noise_std: As of `pooling.Phase`, above 0.
        starting_distance: ``z_0``.
    """
    count = len(sensitivities)
    unit = float(max(starting_distance, sensitivities.max())) or 1.0
    scaled, decays = _doubles(sensitivities, unit), _decays(contraction_gap)
    signals, noises = np.empty((2, count))
    steps = np.empty(count, dtype=np.int64)
    where = signals.ctypes.data, noises.ctypes.data, steps.ctypes.data
    number = _library().single_steps(count, scaled.ctypes.data, starting_distance / unit, decays.ctypes.data, *where)
    log_decays = steps[:number] * math.log1p(-contraction_gap) if contraction_gap < 1 else np.full(number, -math.inf)
    blocks = zip(signals[:number].tolist(), noises[:number].tolist(), log_decays.tolist(), strict=True)
    return Pool(unit, noise_std, tuple(blocks))


def mu_of_all(
    sensitivities: Array,
    firsts: NDArray[np.int64],
    *,
    contraction_gap: float,
    noise_std: float,
    starting_distances: Array,
) -> float:
    """Return ``mu`` of several runs that follow each other, each counted on its own; see `pooling.mu_of_all`.

    Args:
        sensitivities: Shape ``(steps,)``, of all runs, as many as `takes`.
        firsts: Shape ``(runs,)``: the first step of each run; every run has one.
        contraction_gap: As of `pooling.Phase`.
        noise_std: As of `pooling.Phase`, above 0.
        starting_distances: ``z_0`` of each run.
    """
    largest = max(float(starting_distances.max()), float(sensitivities.max()))
    if largest == 0:
        return 0.0
    scaled, distances = _doubles(sensitivities, largest), _doubles(starting_distances, largest)
    mu: float = _library().single_steps_of_all(
        len(firsts),
        np.ascontiguousarray(firsts, dtype=np.int64).ctypes.data,
        len(scaled),
        scaled.ctypes.data,
        distances.ctypes.data,
        _decays(contraction_gap).ctypes.data,
    )
    return max(mu * (largest / float(noise_std)), sys.float_info.min)


def _doubles(values: Array, unit: float) -> Array:
    """Return values in a unit, as doubles whatever numbers they were: the compiled source reads nothing else."""
    return np.ascontiguousarray(values, dtype=np.float64) / unit


@functools.lru_cache(maxsize=16)
def _decays(contraction_gap: float) -> Array:
    """Return what 0, 1, ... `MOST_STEPS` steps leave of a distance."""
    if contraction_gap == 1:
        decays: Array = np.eye(1, MOST_STEPS + 1)[0]
    else:
        decays = np.exp(np.arange(MOST_STEPS + 1) * math.log1p(-contraction_gap))
    return decays


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the compiled source, built now if it never was on this machine; None where that cannot be."""
    found = compiled.library(SOURCE, instead="guarantees of mini-batches are pooled by SciPy")
    if found is not None:
        whole, number, address = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
        arguments: list[Any] = [whole, address, number, address, address, address, address]
        found.single_steps.argtypes, found.single_steps.restype = arguments, whole
        found.single_steps_of_all.argtypes = [whole, address, whole, address, address, address]
        found.single_steps_of_all.restype = number
    return found


def _library() -> ctypes.CDLL:
    found = library()
    assert found is not None
    return found
