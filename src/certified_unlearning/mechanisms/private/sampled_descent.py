"""DP-SGD for linear models with Poisson batches, run for many trials, as a baseline.

`accounting.private.sampled.SampledDescent` computes the privacy.
"""

from collections.abc import Sequence

from torch import Tensor

from certified_unlearning.accounting.private.sampled import SampledDescent
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.descent import project
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.engine.randomness import BLOCK_STEPS, fill_blocks
from certified_unlearning.mechanisms.private.fitting import require_fitting


def learn(plan: SampledDescent, records: BoundedRecords, keys: Sequence[int]) -> Tensor:
    """Return the last weights of each trial.

    Every step projects onto the problem's ball. The arguments are those of `noisy_descent.learn`. The key of a trial
    reveals its batches and its noise.
    """
    require_fitting(plan.problem, records)
    weights = records.rows.new_zeros(len(keys), records.features)
    noise = weights.new_empty(len(keys), 1, BLOCK_STEPS, records.features)
    draws = [Draws(address(str(key), "batches"), device=weights.device) for key in keys]
    expected = plan.share * len(records)
    for step in range(plan.steps):
        if step % BLOCK_STEPS == 0:
            fill_blocks(noise, keys, step // BLOCK_STEPS)
        members = [(each.uniform(len(records)) < plan.share).nonzero()[:, 0] for each in draws]
        sums = records.clipped_sums(weights, members, plan.clip)
        sums.add_(noise[:, 0, step % BLOCK_STEPS], alpha=plan.multiplier * plan.clip)
        weights.sub_(sums, alpha=plan.step_size / expected)
        project(weights, plan.problem.radius)
    return weights
