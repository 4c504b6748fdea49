"""Private SpiderBoost (Algorithm 5) on full batches, for losses that need not be convex, for many trials.

Source: Ullah (2024). `accounting.private.spider.SpiderBoost` says how private it is: the rounding of gradients may take
a share of each sensitivity, and this module keeps to that. Where two points are so near that the rounding of their
difference would be more, the noise is that of points as far apart as it takes; both are public already. How far the
sampler's noise is from exact noise is not counted, other than in noisy descent: there is no certificate of it.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.engine.randomness import BLOCK_STEPS, fill_blocks
from certified_unlearning.mechanisms.private.fitting import require_fitting
from certified_unlearning.mechanisms.private.rounding_share import (
    counted_distances,
    mean_gradient_error,
    require_share,
)


def learn(plan: SpiderBoost, records: BoundedRecords, keys: Sequence[int]) -> Tensor:
    """Return, of each trial, one of the iterates ``w_1`` to ``w_T``, each with the same probability.

    Args:
        plan: What was planned, for as many records with the same bounds.
        records: What is learned from.
        keys: The address of each trial's randomness; whoever knows one can subtract its noise.

    Returns:
        Shape ``(trials, features)``, float64.

    Raises:
        ParameterError: The plan is for other records.
        AssumptionError: Weights became so large that rounding would take more than its share.
    """
    chosen = torch.stack([Draws(address(str(key), "iterate")).integers(plan.steps, 1)[0] for key in keys]) + 1
    found = records.rows.new_empty(len(keys), records.features)
    for step, weights in enumerate(iterates(plan, records, keys)):
        here = chosen == step
        found[here] = weights[here]
    return found


def iterates(plan: SpiderBoost, records: BoundedRecords, keys: Sequence[int]) -> Iterator[Tensor]:
    """Yield the iterates ``w_0 = 0`` to ``w_T``, each shape ``(trials, features)``.

    Arguments and errors are those of `learn`. Publishing them all is as private as publishing one.
    """
    require_fitting(plan.problem, records)
    weights = records.rows.new_zeros(len(keys), records.features)
    noise = weights.new_empty(len(keys), 1, BLOCK_STEPS, records.features)
    previous, before, estimate, error = weights, weights, weights, 0.0
    yield weights
    for step in range(plan.steps):
        if step % BLOCK_STEPS == 0:
            fill_blocks(noise, keys, step // BLOCK_STEPS)
        fresh = noise[:, 0, step % BLOCK_STEPS]
        gradients = records.mean_gradients(weights)
        error = max(error, mean_gradient_error(plan.problem, plan.gradient_bound, plan.problem.n, weights))
        if step % plan.period == 0:
            require_share(error, plan.gradient_bound, plan.problem.n)
            estimate = gradients + plan.sigma_gradient * fresh
        else:
            require_share(2 * error, plan.gradient_bound, plan.problem.n)
            scale = counted_distances(plan.problem, error, plan.problem.n, plan.farthest, weights, previous)
            # In this order: what is added to the estimate is rounded with its noise.
            estimate = estimate + ((gradients - before) + plan.sigma_difference * scale * fresh)
        previous, before = weights, gradients
        weights = weights - plan.step_size * estimate
        yield weights
