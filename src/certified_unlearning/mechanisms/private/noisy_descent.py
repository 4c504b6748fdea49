"""Noisy gradient descent (Algorithm 1), and the same on rows of few random columns (Algorithm 2), for many trials.

Source: Ullah (2024). Every step takes all records, adds noise to their mean gradient and projects; the mean of all
iterates is published. `accounting.private.learners.NoisyDescent` has its privacy.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from certified_unlearning.accounting.private.learners import NoisyDescent
from certified_unlearning.engine.descent import project
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.engine.randomness import BLOCK_STEPS, fill_blocks
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.private.fitting import require_fitting


def learn(plan: NoisyDescent, records: BoundedRecords, keys: Sequence[int]) -> Tensor:
    """Return the mean of the iterates of each trial.

    Args:
        plan: The plan, for this number of records with the same bounds.
        records: The records to learn from.
        keys: The address of each trial's noise, with which it can be subtracted.

    Returns:
        Shape ``(trials, features)``, float64.

    Raises:
        ParameterError: The plan is for other records.
    """
    total = records.rows.new_zeros(len(keys), records.features)
    for weights in iterates(plan, records, keys):
        total += weights
    return total.div_(plan.steps)


def iterates(
    plan: NoisyDescent, records: BoundedRecords, keys: Sequence[int], *, pull: Tensor | None = None
) -> Iterator[Tensor]:
    """Yield the iterates, the start first, each shape ``(trials, features)``; each is overwritten by the next.

    Publishing them all is as private as publishing their mean.

    Args:
        plan: As for `learn`.
        records: As for `learn`.
        keys: As for `learn`.
        pull: If the plan has a regulariser, the public term that its gradient ``regulariser w - pull`` subtracts.

    Raises:
        ParameterError: The plan is for other records, or only one of pull and regulariser is given.
    """
    require_fitting(plan.problem, records)
    if (pull is None) != (plan.regulariser == 0):
        raise ParameterError("a pull goes with a regulariser, and neither alone")
    weights = records.rows.new_zeros(len(keys), records.features)
    noise = weights.new_empty(len(keys), 1, BLOCK_STEPS, records.features)
    yield weights
    for step in range(plan.releases):
        if step % BLOCK_STEPS == 0:
            fill_blocks(noise, keys, step // BLOCK_STEPS)
        gradients = records.mean_gradients(weights)
        gradients.add_(noise[:, 0, step % BLOCK_STEPS], alpha=plan.sigma)
        if pull is not None:
            # With noise included, everything that depends on records is already public.
            gradients.add_(weights, alpha=plan.regulariser).sub_(pull)
        weights.sub_(gradients, alpha=plan.step_size)
        project(weights, plan.problem.radius)
        yield weights


def embedded(matrix: Tensor, rows: Tensor) -> Tensor:
    """Return rows in few columns, whose bound must be enforced again; see `LinearProblem.embedded`.

    Args:
        matrix: Shape ``(k, features)``, drawn before any record was read.
        rows: Shape ``(n, features)``, with the bound of the original rows.
    """
    return torch.as_tensor(rows, dtype=torch.float64) @ matrix.T
