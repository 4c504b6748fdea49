"""Private SpiderBoost (Algorithm 5), for losses that need not be convex, on full or Poisson batches, for many trials.

Source: Ullah (2024). `accounting.private.spider` computes the privacy: `SpiderBoost` with full batches, `SampledSpider`
with differences over batches that each record joins at random. The rounding of gradients may use up a share of each
sensitivity, and this module checks that it does not use more. If two points are so close that the rounding error of the
difference of their gradients would exceed the share, the noise is as large as for points at a larger distance. Both
points are already public. Unlike in noisy descent, the distance of the sampler's noise from exact noise is not counted.
Certificates state this as an assumption.
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
"""A function that returns, for each trial, the positions of the records in the batch of a given step."""
Differences = Callable[[int, Tensor, Tensor], Tensor]
"""A function that returns the mean difference of gradients, given a step, its weights and the previous weights."""


def learn(plan: VarianceReduced, records: BoundedRecords, keys: Sequence[int]) -> Tensor:
    """Return, for each trial, one of the iterates ``w_1`` to ``w_T``, each with the same probability.

    Arguments are those of `noisy_descent.learn`.

    Raises:
        AssumptionError: Weights became so large that the rounding of gradients would exceed its share of the
            sensitivity.
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
    """Yield the iterates ``w_0 = 0`` to ``w_T``, each of shape ``(trials, features)``.

    Publishing all iterates is as private as publishing one. Raises the same errors as `learn`.

    Args:
        plan: The plan, as for `learn`.
        records: The records, as for `learn`.
        keys: The addresses of the noise, as for `learn`.
        batches: Function that chooses the batches of a sampled plan, for tests; None: they are drawn.
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
        # The error of the mean over all records. Sums over a batch have no more terms, so their error is not larger.
        error = max(error, mean_gradient_error(plan.problem, plan.gradient_bound, plan.problem.n, weights))
        if reset:
            require_share(error, plan.gradient_bound, plan.problem.n)
            estimate = gradients + plan.sigma_gradient * fresh
        else:
            require_share(2 * error, plan.gradient_bound, plan.problem.n)
            scale = counted_distances(plan.problem, error, plan.problem.n, plan.farthest, weights, previous)
            difference = gradients - before if sampled is None else sampled(step, weights, previous)
            # The order matters: the addition to the estimate must be rounded together with its noise.
            estimate = estimate + (difference + plan.sigma_difference * scale * fresh)
        previous, before = weights, gradients
        weights = weights - plan.step_size * estimate
        yield weights


def _of_batches(
    plan: VarianceReduced, size: int, records: BoundedRecords, keys: Sequence[int], batches: Batches | None
) -> Differences:
    """Return a function that sums the differences over a batch and divides by the batch's expected size."""
    share = size / plan.problem.n
    draws = [Draws(address(str(key), "batches"), device=records.rows.device) for key in keys]

    def members(step: int) -> Sequence[Tensor]:
        if batches is not None:
            return batches(step)
        return [(each.uniform(len(records)) < share).nonzero()[:, 0] for each in draws]

    def differences(step: int, weights: Tensor, previous: Tensor) -> Tensor:
        some = members(step)
        # Every gradient is clipped to its bound, so no difference exceeds H times the distance.
        here, there = (records.clipped_sums(each, some, plan.gradient_bound) for each in (weights, previous))
        return (here - there).div_(size)

    return differences
