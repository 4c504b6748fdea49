"""Phased descent (Algorithms 16 and 17): one pass that reads each record once, for many trials.

Source: Ullah (2024). `accounting.private.phased` computes the privacy, and the condition that limits the step size.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from certified_unlearning.accounting.private.phased import OnePass, PhasedDescent
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.descent import project
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.engine.randomness import normal_rows
from certified_unlearning.mechanisms.private.fitting import require_count_of, require_fitting


def learn(plan: PhasedDescent, records: BoundedRecords, keys: Sequence[int]) -> Tensor:
    """Return the published weights of the last phase, not projected.

    Arguments are those of `noisy_descent.learn`. The order of records must not depend on their values.
    """
    require_count_of(plan, records)
    weights = records.rows.new_zeros(len(keys), records.features)
    start = 0
    for number, phase in enumerate(plan.phases):
        block = records.part(start, start + phase.problem.n)
        start += phase.problem.n
        own = [address(str(key), "phase", number) for key in keys]
        weights = one_pass(phase, block, weights, own)
    return weights


def one_pass(plan: OnePass, records: BoundedRecords, start: Tensor, keys: Sequence[int]) -> Tensor:
    """Return the noisy mean of a pass' iterates, shape ``(trials, features)``.

    Args:
        plan: The plan for these records.
        records: A block of records, which are read in order.
        start: Public weights, which are projected first, shape ``(trials, features)``.
        keys: The address of each trial's noise.

    Raises:
        ParameterError: The plan is for other records.
    """
    require_fitting(plan.problem, records)
    weights, total = start.clone(), torch.zeros_like(start)
    project(weights, plan.problem.radius)
    for record in range(len(records)):
        weights = weights - plan.step_size * records.part(record, record + 1).mean_gradients(weights)
        project(weights, plan.problem.radius)
        total += weights
    return torch.add(total.div_(len(records)), normal_rows(keys, total), alpha=plan.sigma)
