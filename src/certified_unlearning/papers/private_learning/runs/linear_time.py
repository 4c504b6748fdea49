"""X14: recursive regularisation in linear time, by phased descent (Theorem 20, part 2).

Each stage has its own chunk of the records, and splits this chunk into blocks. One pass (Algorithm 17) is made over
each block, and each step of the pass uses one record. Every record is therefore used once. Replacing a record moves the
result of its pass by at most ``2 eta G``, if ``eta`` is at most ``1 / (H + H_Delta)`` (Lemma 23). Noise of ``2 eta G``
times the multiplier of one Gaussian release therefore makes every pass private, and different passes use different
records. The printed noise uses the number of all records, and is too small. Steps are capped at Lemma 23's limit.

Each block of Algorithm 16 has half the records and a quarter of the step size of the block before, as for losses that
are not strongly convex. Lemma 24, on which the proof depends, has ``ln ln n`` blocks of equal size, each with the step
``log(n) / (lambda n)``. Both versions are run at epsilon = 1000. We estimate that, at epsilon = 1 and with up to a
million records, the noise of all stages exceeds the gradient at zero weights.
"""

import math
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor

from certified_unlearning.accounting.private.releases import mean_sensitivity, noise_multiplier
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.descent import project
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.randomness import normal_rows
from certified_unlearning.papers.private_learning.runs.instances import logistic_labels, sphere_rows
from certified_unlearning.papers.private_learning.runs.population import BEST, FRESH, LOGISTIC_FEATURES, logistic_norms
from certified_unlearning.papers.private_learning.runs.table import trial_rows
from certified_unlearning.papers.private_learning.sweeps import PrivateGradients
from certified_unlearning.papers.private_learning.theory.stationary_points import linear_time_strength, stages

LIPSCHITZ, SMOOTHNESS = 1.0, 0.25
"""The constants ``G`` and ``H`` of logistic loss on rows of norm 1."""
EPSILON = 1000.0


def linear_time_rows(sweep: PrivateGradients) -> pd.DataFrame:
    """Return the rows of X14: gradients of the population risk, for logistic regression."""
    best = torch.full((LOGISTIC_FEATURES,), BEST / math.sqrt(LOGISTIC_FEATURES), dtype=torch.float64)
    fresh = sphere_rows(FRESH, LOGISTIC_FEATURES, Draws.at(sweep.seed, "X14", "fresh"))
    tables = []
    for n in sweep.linear_time_n:
        data = []
        for trial in range(sweep.trials):
            draws = Draws.at(sweep.seed, "X14", n, trial)
            rows = sphere_rows(n, LOGISTIC_FEATURES, draws)
            data.append(-logistic_labels(rows, best, draws)[:, None] * rows)
        rate = (LIPSCHITZ + SMOOTHNESS * BEST) / math.sqrt(n)
        rate += LIPSCHITZ * math.sqrt(LOGISTIC_FEATURES) / (n * EPSILON)
        zero = torch.zeros(1, LOGISTIC_FEATURES, dtype=torch.float64)
        for method, equal in (("halved blocks", False), ("equal blocks", True)):
            keys = [address(sweep.seed, "X14", method, n, trial) for trial in range(sweep.trials)]
            found = linear_time(torch.stack(data), keys, epsilon=EPSILON, delta=sweep.delta, equal=equal)
            tables.append(
                trial_rows(
                    "X14", method, errors=logistic_norms(fresh, found, best), n=n, features=LOGISTIC_FEATURES,
                    epsilon=EPSILON, bound=rate, at_zero=float(logistic_norms(fresh, zero, best)),
                )
            )  # fmt: skip
    return pd.concat(tables)


def linear_time(folded: Tensor, keys: list[int], *, epsilon: float, delta: float, equal: bool) -> Tensor:
    """Return the result of the last stage, shape ``(trials, features)``.

    Args:
        folded: ``-y x`` of every record, shape ``(trials, n, features)``, in an order that does not depend on the
            records; rows have norm at most 1.
        keys: The address of each trial's noise.
        epsilon: The epsilon under replace-one.
        delta: The delta under replace-one.
        equal: Whether the blocks of a stage have equal size, as in Lemma 24, or are halved, as in Algorithm 16.
    """
    n = folded.shape[1]
    strength = linear_time_strength(
        n=n, d=folded.shape[2], epsilon=epsilon, lipschitz=LIPSCHITZ, smoothness=SMOOTHNESS, radius=BEST
    )
    count = stages(SMOOTHNESS, strength)
    size = n // count
    noise = noise_multiplier(epsilon, delta) * mean_sensitivity(LIPSCHITZ, n=1, relation="replace-one")
    pull = folded.new_zeros(len(folded), folded.shape[2])
    found = pull
    for number in range(1, count + 1):
        chunk = folded[:, (number - 1) * size : number * size]
        regulariser = strength * (2**number - 1)
        blocks = equal_blocks(size) if equal else halved_blocks(size)
        usual = math.log(blocks[0].records if equal else size) / (strength * 2**number)
        step_size = min(usual / (blocks[0].records if equal else size), 1 / (SMOOTHNESS + regulariser))
        radius = math.pow(2, number / 2) * BEST
        own = [address(str(key), "stage", number) for key in keys]
        found = phased(
            chunk, own, pull, noise, blocks=blocks, step_size=step_size, regulariser=regulariser, radius=radius
        )
        pull = pull + strength * 2**number * found
    return found


class Block(NamedTuple):
    """A block of a stage's chunk: its number of records, and its step size divided by the step size of the stage."""

    records: int
    shorter: float


def halved_blocks(size: int) -> list[Block]:
    """Return Algorithm 16's blocks: each has half the size and a quarter of the step size of the previous block."""
    return [Block(size >> phase, 0.25**phase) for phase in range(1, max(2, math.ceil(math.log2(size))))]


def equal_blocks(size: int) -> list[Block]:
    """Return Lemma 24's blocks: ``ln ln n`` blocks of equal size, rounded up."""
    count = max(1, math.ceil(math.log(math.log(size))))
    return [Block(size // count, 1.0)] * count


def phased(
    chunk: Tensor, keys: list[int], pull: Tensor, noise: float, *, blocks: list[Block], step_size: float,
    regulariser: float, radius: float,
) -> Tensor:  # fmt: skip
    """Return the output of the last block's pass; each pass begins where the previous pass ended."""
    weights, start = torch.zeros_like(pull), 0
    for number, block in enumerate(blocks):
        records = chunk[:, start : start + block.records]
        start += block.records
        length = step_size * block.shorter
        own = [address(str(key), "phase", number) for key in keys]
        passed = one_pass(records, weights, pull, step_size=length, regulariser=regulariser, radius=radius)
        weights = torch.add(passed, normal_rows(own, passed), alpha=noise * length)
    return weights


def one_pass(
    block: Tensor, start: Tensor, pull: Tensor, *, step_size: float, regulariser: float, radius: float
) -> Tensor:
    """Return the weighted mean of a pass's iterates, in which later iterates have larger weights."""
    weights = start.clone()
    project(weights, radius)
    kept = 1 - step_size * regulariser
    total, weight = torch.zeros_like(weights), 0.0
    for record in range(block.shape[1]):
        row = block[:, record]
        gradients = torch.sigmoid((row * weights).sum(dim=1, keepdim=True)) * row
        weights = weights - step_size * (gradients + regulariser * weights - pull)
        project(weights, radius)
        total, weight = kept * total + weights, kept * weight + 1
    return total / weight
