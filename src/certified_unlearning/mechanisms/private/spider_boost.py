"""Private SpiderBoost (Algorithm 5), for losses that need not be convex, on full or Poisson batches, for many trials.

Source: Ullah (2024). `accounting.private.spider.SpiderBoost` has its privacy, and `SampledSpider` that with differences
of batches that each record enters at random. The rounding of gradients may take a share of each sensitivity, which this
module enforces. If two points are so near that the rounding of their difference would exceed it, the noise is that of
points far enough apart; both are already public. Unlike in noisy descent, the distance of the sampler's noise from
exact noise is not counted: a certificate states this as an assumption.
"""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from certified_unlearning.accounting.private.spider import VarianceReduced
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.engine.randomness import BLOCK_STEPS, fill_blocks
from certified_unlearning.mechanisms.private.fitting import require_fitting
from certified_unlearning.mechanisms.private.rounding_share import counted_distances, mean_gradient_error, require_share

Batches = Callable[[int], Sequence[Tensor]]
"""Returns the positions of the records in a step's batch, for each trial."""
Differences = Callable[[int, Tensor, Tensor], Tensor]
"""Returns the mean difference of gradients in a step, between weights and the previous ones."""


def learn(plan: VarianceReduced, records: BoundedRecords, keys: Sequence[int]) -> Tensor:
    """Return, for each trial, one of the iterates ``w_1`` to ``w_T``, each with the same probability.

    Arguments are those of `noisy_descent.learn`.

    Raises:
        AssumptionError: Weights became so large that rounding would exceed its share.
    """
    chosen = torch.stack([Draws(address(str(key), "iterate")).integers(plan.steps, 1)[0] for key in keys]) + 1
    found = records.rows.new_empty(len(keys), records.features)
    for step, weights in enumerate(iterates(plan, records, keys)):
        here = chosen == step
        found[here] = weights[here]
    return found


def iterates(
    plan: VarianceReduced, records: BoundedRecords, keys: Sequence[int], *, batches: Batches | None = None
) -> Iterator[Tensor]:
    """Yield the iterates ``w_0 = 0`` to ``w_T``, each shape ``(trials, features)``.

    Publishing them all is as private as publishing one. Errors are those of `learn`.

    Args:
        plan: As for `learn`.
        records: As for `learn`.
        keys: As for `learn`.
        batches: Chooses the batches of a sampled plan, in tests; None: they are drawn.
    """
    require_fitting(plan.problem, records)
    weights = records.rows.new_zeros(len(keys), records.features)
    noise = weights.new_empty(len(keys), 1, BLOCK_STEPS, records.features)
    previous, before, gradients, estimate, error = weights, weights, weights, weights, 0.0
    sampled = None if plan.batch is None else _of_batches(plan, plan.batch, records, keys, batches)
    yield weights
    for step in range(plan.steps):
        if step % BLOCK_STEPS == 0:
            fill_blocks(noise, keys, step // BLOCK_STEPS)
        fresh = noise[:, 0, step % BLOCK_STEPS]
        reset = step % plan.period == 0
        if reset or sampled is None:
            gradients = records.mean_gradients(weights)
        # The error of the mean over all records: sums over a batch have no more terms, so their error is no larger.
        error = max(error, mean_gradient_error(plan.problem, plan.gradient_bound, plan.problem.n, weights))
        if reset:
            require_share(error, plan.gradient_bound, plan.problem.n)
            estimate = gradients + plan.sigma_gradient * fresh
        else:
            require_share(2 * error, plan.gradient_bound, plan.problem.n)
            scale = counted_distances(plan.problem, error, plan.problem.n, plan.farthest, weights, previous)
            difference = gradients - before if sampled is None else sampled(step, weights, previous)
            # In this order, because the addition to the estimate is rounded with its noise.
            estimate = estimate + (difference + plan.sigma_difference * scale * fresh)
        previous, before = weights, gradients
        weights = weights - plan.step_size * estimate
        yield weights


def _of_batches(
    plan: VarianceReduced, size: int, records: BoundedRecords, keys: Sequence[int], batches: Batches | None
) -> Differences:
    """Return a function that sums the differences of a batch and divides by its expected size."""
    share = size / plan.problem.n
    draws = [Draws(address(str(key), "batches"), device=records.rows.device) for key in keys]

    def members(step: int) -> Sequence[Tensor]:
        if batches is not None:
            return batches(step)
        return [(each.uniform(len(records)) < share).nonzero()[:, 0] for each in draws]

    def differences(step: int, weights: Tensor, previous: Tensor) -> Tensor:
        some = members(step)
        # No gradient exceeds the bound that it is clipped to, so no difference exceeds H times the distance.
        here, there = (records.clipped_sums(each, some, plan.gradient_bound) for each in (weights, previous))
        return (here - there).div_(size)

    return differences
