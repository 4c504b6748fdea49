"""Private SpiderBoost (Algorithm 5) on full batches, for losses that need not be convex, for many trials.

Source: Ullah (2024). `accounting.private.spider.SpiderBoost` says how private it is: the rounding of gradients may take
a share of each sensitivity, and this module keeps to that. Where two points are so near that the rounding of their
difference would be more, the noise is that of points as far apart as it takes; both are public already. How far the
sampler's noise is from exact noise is not counted, other than in noisy descent: there is no certificate of it.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from certified_unlearning.accounting.private.arithmetic import gradient_error
from certified_unlearning.accounting.private.learners import ROUNDING_SHARE
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.engine.randomness import BLOCK_STEPS, fill_blocks
from certified_unlearning.errors import AssumptionError
from certified_unlearning.mechanisms.private.fitting import require_fitting

LENGTH_ERROR = 1e-9
"""More than a computed distance is off by, relatively."""


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
        error = max(error, _rounding(plan, weights))
        if step % plan.period == 0:
            _require_share(plan, error)
            estimate = gradients + plan.sigma_gradient * fresh
        else:
            apart = torch.linalg.vector_norm(weights - previous, dim=1, keepdim=True)
            # A difference has the rounding of two gradients.
            least = 4 * error * plan.problem.n / (ROUNDING_SHARE * plan.problem.smoothness)
            _require_share(plan, 2 * error)
            scale = (apart * (1 + LENGTH_ERROR)).clamp(min=least, max=max(least, plan.farthest))
            # In this order: what is added to the estimate is rounded with its noise.
            estimate = estimate + ((gradients - before) + plan.sigma_difference * scale * fresh)
        previous, before = weights, gradients
        weights = weights - plan.step_size * estimate
        yield weights


def _rounding(plan: SpiderBoost, weights: Tensor) -> float:
    """Return how far a mean gradient at public weights may be from the exact one."""
    problem = plan.problem
    norm = float(torch.linalg.vector_norm(weights, dim=1).max())
    return gradient_error(
        n=problem.n,
        features=problem.features,
        row_norm=problem.row_norm,
        slope=plan.gradient_bound / problem.row_norm,
        smoothness=problem.loss.smoothness,
        weight_norm=norm,
    )


def _require_share(plan: SpiderBoost, error: float) -> None:
    """Raise `AssumptionError` where rounding is more than its share of a gradient's sensitivity: of public numbers."""
    allowed = ROUNDING_SHARE * plan.gradient_bound / plan.problem.n
    if not 2 * error <= allowed:
        raise AssumptionError(
            f"gradients are computed to {error:.3g} in float64 at weights so large, of which the plan allows "
            f"{allowed / 2:.3g}; a smaller step_size, or less noise, keeps weights small"
        )
