"""Noisy gradient descent on rows (Algorithm 1), or on randomly projected rows (Algorithm 2), for many trials.

Source: Ullah (2024). Every step uses all records, adds noise to their mean gradient, and projects. The mean of all
iterates is published. `accounting.private.learners.NoisyDescent` computes the privacy.
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
        plan: The plan, which must be for this number of records with the same bounds.
        records: The records to learn from.
        keys: The address of each trial's noise, with which the noise could be subtracted.

    Returns:
        The mean iterates, shape ``(trials, features)``, float64.

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
    """Yield the iterates, beginning with the start, each of shape ``(trials, features)``.

    The same tensor is yielded each time, with new values. Publishing all iterates is as private as publishing their
    mean.

    Args:
        plan: The plan, as for `learn`.
        records: The records, as for `learn`.
        keys: The addresses of the noise, as for `learn`.
        pull: A public term, shape ``(trials, features)``, for plans with a regulariser, whose gradient is
            ``regulariser w - pull``. None for other plans.

    Raises:
        ParameterError: The plan is for other records, or there is a regulariser without a pull, or a pull without a
            regulariser.
    """
    require_fitting(plan.problem, records)
    if (pull is None) != (plan.regulariser == 0):
        raise ParameterError("pull must be given if the plan has a regulariser, and must be None otherwise")
    weights = records.rows.new_zeros(len(keys), records.features)
    noise = weights.new_empty(len(keys), 1, BLOCK_STEPS, records.features)
    yield weights
    for step in range(plan.releases):
        if step % BLOCK_STEPS == 0:
            fill_blocks(noise, keys, step // BLOCK_STEPS)
        gradients = records.mean_gradients(weights)
        gradients.add_(noise[:, 0, step % BLOCK_STEPS], alpha=plan.sigma)
        if pull is not None:
            # The gradients contain noise already, so everything here that depends on records is public.
            gradients.add_(weights, alpha=plan.regulariser).sub_(pull)
        weights.sub_(gradients, alpha=plan.step_size)
        project(weights, plan.problem.radius)
        yield weights


def embedded(matrix: Tensor, rows: Tensor) -> Tensor:
    """Return projected rows with few columns. Their bound must be enforced again; see `LinearProblem.embedded`.

    Args:
        matrix: The projection, drawn before any record was read, shape ``(k, features)``.
        rows: Rows within the bound of the original rows, shape ``(n, features)``.
    """
    return torch.as_tensor(rows, dtype=torch.float64) @ matrix.T
