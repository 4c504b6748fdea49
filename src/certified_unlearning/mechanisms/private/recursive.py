"""Recursive regularisation (Algorithm 7) with noisy descent on regularised losses (Algorithm 18), for many trials.

Source: Ullah (2024). `accounting.private.recursive.RecursiveRegularisation` computes the privacy.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from certified_unlearning.accounting.private.learners import NoisyDescent
from certified_unlearning.accounting.private.recursive import RecursiveRegularisation
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.mechanisms.private.fitting import require_count_of
from certified_unlearning.mechanisms.private.noisy_descent import iterates


def learn(plan: RecursiveRegularisation, records: BoundedRecords, keys: Sequence[int]) -> Tensor:
    """Return the result of the last stage, for each trial.

    Arguments are those of `noisy_descent.learn`. The order of records must not depend on their values.
    """
    return found_by_stage(plan, records, keys)[-1]


def found_by_stage(plan: RecursiveRegularisation, records: BoundedRecords, keys: Sequence[int]) -> list[Tensor]:
    """Return the result of each stage.

    All results together are as private as the last. Arguments are those of `learn`.
    """
    require_count_of(plan, records)
    size = plan.problem.n
    pull = records.rows.new_zeros(len(keys), records.features)
    found: list[Tensor] = []
    for number, stage in enumerate(plan.stages):
        chunk = records.part(number * size, (number + 1) * size)
        own = [address(str(key), "stage", number) for key in keys]
        found.append(_selected(stage, chunk, own, pull))
        # The next regulariser is centred at this point and twice as strong.
        pull = pull + plan.strength * 2 ** (number + 1) * found[-1]
    return found


def _selected(stage: NoisyDescent, chunk: BoundedRecords, keys: Sequence[int], pull: Tensor) -> Tensor:
    """Return the weighted mean of a stage's iterates, with larger weights for later ones."""
    kept = 1 - stage.step_size * stage.regulariser
    total, weight = torch.zeros_like(pull), 0.0
    for weights in iterates(stage, chunk, keys, pull=pull):
        total, weight = kept * total + weights, kept * weight + 1
    return total / weight
