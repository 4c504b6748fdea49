"""The probability that a deletion causes a recomputation, at all noise scales of Section C.12 at once."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from certified_unlearning.data.sets import load
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.expected import expected_deletion
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.papers.tv_stability.measures.runs import STANDARD_ERRORS
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

_SCALES, _WIDTH, _PARTS = 221, 0.005, 5
"""The noise scales are from 0 to 1.1 at intervals of 0.005."""
_STEP_SIZE, _ROW_NORM = 0.05, 28.0
"""The step size and the norm of rows in the experiment `edits` on MNIST.

Rows of pixels from -1 to 1 have norm 28, and our rows have norm 1.
"""
_STEPS, _BATCH_SIZE, _RUNS, _SEED = 100, 8, 4, 123


@dataclass(frozen=True, kw_only=True)
class _EachItsNoise(NoisySgd):
    """Noisy descent in which each trial has its own noise scale; ``sigma`` is not used."""

    scales: Tensor

    def randomness(self, gradients: Tensor, draws: Draws) -> Tensor:
        """Return noisy gradients."""
        return gradients + self.scales[:, None] * draws.normal(*gradients.shape)

    def rejection(self, randomness: Tensor, old: Tensor, change: Tensor) -> Tensor:
        """Return the probability that noisy gradients are reflected; see `NoisySgd.rejection`."""
        scales = self.scales.repeat_interleave(len(change) // len(self.scales))
        log_ratio = ((randomness - old - change / 2) * change).sum(dim=1) / scales**2
        without_noise = (change != 0).any(dim=1).to(change.dtype)
        return torch.where(scales > 0, -torch.expm1(log_ratio.clamp(max=0)), without_noise)


@measure
def change_over_scales() -> list[Quantity]:
    """Return how the probability that a deletion causes a recomputation changes as the noise grows.

    The noise scales are divided into parts. Each number is the probability in one part minus the probability in the
    part before it. The scale without noise is left out, so that all parts have the same size. The probability in a part
    is the mean over its scales, over runs, and over deleted records.
    """
    again = _recompute_probabilities()[1:].reshape(_PARTS, -1)
    means = again.mean(dim=1).tolist()
    errors = (again.std(dim=1) / math.sqrt(again.shape[1])).tolist()
    size = (_SCALES - 1) // _PARTS
    ends = [_WIDTH * size * part for part in range(1, _PARTS + 1)]
    return [
        Quantity(
            after - before,
            f"part up to sigma = {high:g} minus part up to sigma = {low:g}",
            STANDARD_ERRORS * math.hypot(*pair),
        )
        for (before, after), (low, high), pair in zip(
            itertools.pairwise(means), itertools.pairwise(ends), itertools.pairwise(errors), strict=True
        )
    ]


def _recompute_probabilities() -> Tensor:
    """Return the probability for each scale, smallest first, and each run; shape ``(scales, runs)``."""
    data = load("digits", seed=_SEED)
    records = LinearRecords(
        torch.as_tensor(np.asarray(data.train_features), dtype=torch.float64),
        torch.as_tensor(data.train_labels.astype(np.int64)),
        loss="logistic",
    )
    scales = _WIDTH * torch.arange(_SCALES, dtype=torch.float64) / _ROW_NORM
    settings = _EachItsNoise(
        steps=_STEPS,
        batch_size=_BATCH_SIZE,
        step_size=_STEP_SIZE * _ROW_NORM**2,
        sigma=0.0,
        scales=scales.repeat_interleave(_RUNS),
    )
    descent, draws = ExactDescent(settings, records), Draws.at(_SEED, "noise scales")
    state = descent.learn(torch.arange(len(records)), draws, trials=_SCALES * _RUNS)
    return expected_deletion(descent, state, draws).recompute_probability.view(_SCALES, _RUNS)
