"""The mean cost of a deletion from linear queries, given what was learned; see also `mechanisms.exact.expected`.

The deleted record is uniform over the present ones. Along a learned run, a noisy sum keeps its value with a probability
that follows from the drawn noise and from the record's contribution to the sum.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from certified_unlearning.engine.exact.reflection import log_density_ratio
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.expected import ExpectedWork
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries, QueryRun

Parts = Callable[[Tensor, Tensor], Tensor]
"""A function of models, shape ``(k, d)``, and of one record for each model, shape ``(k,)``.

The result contains, for each pair of a model and a record, the record's contribution to the sum at this model, shape
``(k, q)``.
"""
RECORDS_AT_ONCE = 8192


def expected_deletion_of_queries(system: LinearQueries, run: QueryRun, parts: Parts) -> ExpectedWork:
    """Return the mean cost of deleting a record, for each trial.

    ``gradients`` counts records' contributions.

    Args:
        system: The learner.
        run: The learner's state, with noise; it is not changed.
        parts: Function that returns contributions of single records to sums. It must be the same in every step.

    Raises:
        ParameterError: There is only one record, or no noise.
    """
    if len(run.records) < 2 or not system.settings.sigma:
        raise ParameterError("the mean cost of a deletion is known only for two or more records, if sums have noise")
    n, found = len(run.records), []
    for trial in range(len(run.models)):
        sums = [_of_trial(system, run, parts, trial, block) for block in torch.split(run.records, RECORDS_AT_ONCE)]
        found.append(torch.stack(sums).sum(dim=0) / n)
    tests, rejected, again = torch.stack(found).T
    return ExpectedWork(tests + (n - 1) * again, tests, rejected, again)


def _of_trial(system: LinearQueries, run: QueryRun, parts: Parts, trial: int, records: Tensor) -> Tensor:
    """Return three sums over some records: tests, probabilities of a recomputation, and steps run again."""
    steps = system.settings.steps
    reached = run.models.new_ones(len(records))
    tests = rejected = again = run.models.new_zeros(())
    for step in range(steps):
        old = run.sums[trial, step]
        new = old - parts(run.models[trial, step].expand(len(records), -1), records)
        ratios = log_density_ratio(run.noisy[trial, step], old, new, system.settings.sigma)
        rejections = -reached * torch.expm1(ratios.clamp(max=0))
        tests, rejected = tests + reached.sum(), rejected + rejections.sum()
        again = again + rejections.sum() * (steps - 1 - step)
        reached = reached - rejections
    return torch.stack([tests, rejected, again])
