"""Measures of couplings of a single value: probabilities of keeping the value, results, and bounds on distances."""

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.accounting.tv.recomputation import quantiser_disagreement_bound
from certified_unlearning.engine.exact.couplings import cells, quantized
from certified_unlearning.engine.exact.reflection import log_density_ratio, reflection_step
from certified_unlearning.papers.tv_stability.theory.distances import (
    bretagnolle_huber,
    gaussian_renyi,
    gaussian_tv_bound,
    group_stability,
    pinsker,
)
from certified_unlearning.papers.tv_stability.theory.stability import quantiser_disagreement, quantiser_variance
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

Rule = Literal["ours", "translated", "inverse ratio"]
_POINTS = 400_001
_REACH = 12.0


@sweep("gap = {gap:g}")
def acceptance_and_overlap(*, gap: float) -> float:
    """Return the probability that a Gaussian value is kept, plus the total variation between the two Gaussians.

    The probability is computed by quadrature. If the coupling is maximal, the sum is 1.
    """
    points, density = _normal_density()
    kept = _integral(density * _kept(points, gap))
    return kept + gaussian_tv(gap)


@measure
def densities_of_reflected(*, dimension: int, gap: float) -> dict[str, float]:
    """Return the largest absolute values of ``log phi_Q(v) - log phi_P(u)`` and of ``log phi_P(v) - log phi_Q(u)``.

    ``v`` is the reflection of a rejected value ``u``.
    """
    old = torch.zeros(1, dimension, dtype=torch.float64)
    new = torch.full_like(old, gap / math.sqrt(dimension))
    values = torch.linspace(-3, 0, 50, dtype=torch.float64)[:, None] + torch.linspace(-1, 0, dimension).double()
    reflected, accepted = reflection_step(values, old, new, 1.0, torch.full((50,), _ALMOST_ONE, dtype=torch.float64))
    values, reflected = values[~accepted], reflected[~accepted]

    def log_density(points: Tensor, mean: Tensor) -> Tensor:
        return -((points - mean) ** 2).sum(dim=1) / 2

    ahead = (log_density(reflected, new) - log_density(values, old)).abs().max()
    back = (log_density(reflected, old) - log_density(values, new)).abs().max()
    return {"Q of v over P of u": float(ahead), "P of v over Q of u": float(back)}


@measure
def coupled_moments(*, gap: float, rule: Rule) -> dict[str, float]:
    """Return the mean and variance of the results of a coupling from ``N(0, 1)`` to ``N(gap, 1)``.

    The mean and the variance are computed by quadrature.

    ``translated`` uses ``mu_P - mu_Q + p`` in place of the reflection, and ``inverse ratio`` accepts by the old density
    divided by the new density.
    """
    points, density = _normal_density()
    kept = _kept(points, gap)
    rejected = _reflected(points, gap)
    if rule == "inverse ratio":
        kept = np.exp(np.minimum(gap**2 / 2 - gap * points, 0))
        rejected = gap - points
    elif rule == "translated":
        rejected = points - gap
    mean = _integral(density * (kept * points + (1 - kept) * rejected))
    second = _integral(density * (kept * points**2 + (1 - kept) * rejected**2))
    return {"mean": mean, "variance": second - mean**2}


@sweep("gap = {gap:g}")
def distance_over_bound(*, bound: Literal["linear", "pinsker", "lemma 33"], gap: float) -> float:
    """Return the total variation of two Gaussians divided by a bound on it."""
    divergence = gaussian_renyi(gap, 1.0)
    values = {
        "linear": gaussian_tv_bound(gap),
        "pinsker": pinsker(divergence),
        "lemma 33": bretagnolle_huber(divergence),
    }
    return gaussian_tv(gap) / values[bound]


@sweep("k1 = {edit[0]}, k2 = {edit[1]}")
def group_distance_over_bound(*, edit: tuple[int, int], rho: float, swapped: bool = False) -> float:
    """Return the total variation of noisy sums under an edit of a group, divided by the bound for groups.

    The sums are of numbers in [-1, 1].

    Args:
        edit: The number ``k_1`` of replaced records and the number ``k_2`` of added records. Each replaced record
            changes from 1 to -1.
        rho: The total variation of the sums under one additional record.
        swapped: Whether the bound is Remark 5's, in which the two counts are swapped.
    """
    replaced, added = edit
    sigma = 1 / (math.sqrt(2 * math.pi) * rho)
    counts = (added, replaced) if swapped else edit
    bound = group_stability(rho, replaced=counts[0], added=counts[1])
    return gaussian_tv((2 * replaced + added) / sigma) / bound


@measure
def rounding_error(*, quantum: float, point: list[float]) -> dict[str, float]:
    """Return the shifted grid's bias divided by its spacing, and its mean squared error divided by ``d tau^2 / 12``."""
    errors = _rounded(torch.tensor(point, dtype=torch.float64), quantum) - torch.tensor(point, dtype=torch.float64)
    exact = quantiser_variance(dimension=len(point), resolution=quantum)
    return {
        "bias": float(errors.mean(dim=0).abs().max()) / quantum,
        "mean squared error": float((errors**2).mean(dim=0).sum()) / exact,
    }


@measure
def rounding_error_over_printed(*, quantum: float, dimension: int) -> Quantity:
    """Return the mean squared error of the shifted grid divided by Lemma 31's bound ``d tau^2``."""
    errors = _rounded(torch.zeros(dimension, dtype=torch.float64), quantum)
    printed = quantiser_variance(dimension=dimension, resolution=quantum, printed=True)
    return Quantity(float((errors**2).mean(dim=0).sum()) / printed, f"d = {dimension}")


@measure
def grids_that_tell_apart(*, quantum: float, first: list[float], second: list[float], over: str) -> float:
    """Return the probability that a shifted grid separates two points, divided by the stated probability.

    The stated probability is the exact formula (``exact``) or Lemma 31's bound (``printed``).
    """
    together = np.ones(())
    for one, other in zip(first, second, strict=True):
        ends = torch.tensor([one, other], dtype=torch.float64)
        shifted = cells(ends.expand(len(_OFFSETS), 2), quantum, _OFFSETS[:, None].expand(-1, 2))
        together = together * float((shifted[:, 0] == shifted[:, 1]).double().mean())
    differences = [one - other for one, other in zip(first, second, strict=True)]
    bound = (
        quantiser_disagreement(differences, resolution=quantum)
        if over == "exact"
        else quantiser_disagreement_bound(
            math.hypot(*differences), dimension=len(first), resolution=quantum, printed=True
        )
    )
    return float(1 - together) / bound


@measure
def rounded_after_edit(*, quantum: float, old: float, new: float, fresh: bool) -> float:
    """Return the quotient of the mean rounded gradient after an edit and the new gradient; the quotient should be 1.

    Args:
        quantum: The spacing ``tau``.
        old: The gradient before the edit.
        new: The gradient after the edit.
        fresh: Whether a fresh grid is drawn after a failed test; otherwise, the current grid is kept.
    """
    ends = torch.tensor([old, new], dtype=torch.float64).expand(len(_OFFSETS), 2)
    offsets = _OFFSETS[:, None].expand(-1, 2)
    shifted, rounded = cells(ends, quantum, offsets), quantized(ends, quantum, offsets)
    kept = shifted[:, 0] == shifted[:, 1]
    otherwise = rounded[:, 1].mean() if fresh else rounded[:, 1]
    after = torch.where(kept, rounded[:, 0], otherwise)
    return float(after.mean()) / new


_ALMOST_ONE = 1 - 2.0**-53
_OFFSETS = (torch.arange(1_000_000, dtype=torch.float64) + 0.5) / 1_000_000 - 0.5


def _rounded(point: Tensor, quantum: float) -> Tensor:
    """Return a point rounded to one grid for each offset, shape ``(offsets, d)``.

    A grid has the same offset in all coordinates.
    """
    return quantized(point, quantum, _OFFSETS[:, None].expand(-1, len(point)))


def _normal_density() -> tuple[np.ndarray, np.ndarray]:
    points = np.linspace(-_REACH, _REACH, _POINTS)
    return points, np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)


def _integral(values: np.ndarray) -> float:
    return float(values.sum() * (2 * _REACH / (_POINTS - 1)))


def _kept(points: np.ndarray, gap: float) -> np.ndarray:
    """Return the probability that the engine accepts a value from ``N(0, 1)`` as a value from ``N(gap, 1)``."""
    means = torch.zeros(len(points), 1, dtype=torch.float64)
    ratios = log_density_ratio(torch.from_numpy(points)[:, None], means, means + gap, 1.0)
    return ratios.clamp(max=0).exp().numpy()


def _reflected(points: np.ndarray, gap: float) -> np.ndarray:
    """Return the result of the engine's coupling from ``N(0, 1)`` to ``N(gap, 1)`` for a value that the engine rejects.

    If the engine never rejects a value, the result for this value has no meaning.
    """
    means = torch.zeros(len(points), 1, dtype=torch.float64)
    uniforms = torch.full((len(points),), _ALMOST_ONE, dtype=torch.float64)
    values, _ = reflection_step(torch.from_numpy(points)[:, None], means, means + gap, 1.0, uniforms)
    return values[:, 0].numpy()
