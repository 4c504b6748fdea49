"""Attacks that apply the strongest possible tests to private mechanisms on pairs of neighbouring data sets.

Each attack runs a mechanism many times on each of two data sets that differ in one record. It returns a score for each
run: the log-likelihood ratio up to a factor, so that no other test is stronger. Records are chosen so that this ratio
is known. In most attacks, losses are linear at all weights that occur (see `LINEAR`), rows have one column, and the
rows of all records except the one that differs are 0. No part of a mechanism is replaced: the attack is on the code
that learns.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from certified_unlearning.accounting.private.learners import NoisyDescent, OutputPerturbation
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.phased import OnePass
from certified_unlearning.accounting.private.recursive import RecursiveRegularisation
from certified_unlearning.accounting.private.sampled import SampledDescent
from certified_unlearning.accounting.private.sampled_spider import SampledSpider
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.accounting.private.tree_spider import TreeSpider
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.mechanisms.private import (
    noisy_descent,
    output_perturbation,
    phased,
    recursive,
    sampled_descent,
    spider_boost,
    tree_spider,
)

Array = npt.NDArray[np.float64]
LINEAR = ScalarLoss(name="huber", width=1.0, target=1e6)
"""With a target of 1e6, the slope is -1 at all weights that occur. At target 0, the loss is half a square near 0."""
SQUARED = ScalarLoss(name="squared")
SETTLED = 0.9
"""The share of the radius at which `gradients_in_the_ball` lets weights settle, so that projections are rare."""


@dataclass(frozen=True)
class Attack:
    """The scores of an attack.

    Attributes:
        here: The scores of runs with the record.
        there: The scores of equally many runs in which another record, or none, takes the place of this record.
        mu: The exact distance between the means of the scores; None unless the scores are Gaussian with variance 1. The
            distribution of ``here`` is ``N(mu / 2, 1)``, and that of ``there`` is ``N(-mu / 2, 1)``.
    """

    here: Array
    there: Array
    mu: float | None = None


def one_record(row: float, target: float, *, n: int, loss: ScalarLoss = LINEAR, others: float = 0.0) -> BoundedRecords:
    """Return records of one column: the first has its own row, all others share a row, and all have the same target.

    Args:
        row: The row of the first record; 0 for an empty place.
        target: The target of all records.
        n: The number of records.
        loss: The loss of the records.
        others: The value of every other record's row.
    """
    rows = torch.full((n, 1), others, dtype=torch.float64)
    rows[0] = row
    return BoundedRecords(rows, torch.full((n,), target, dtype=torch.float64), loss=loss, row_norm=1.0)


def descent(plan: NoisyDescent, *, runs: int, seed: int) -> Attack:
    """Attack the Gaussian output of Algorithm 1 under a linear loss; its ``mu`` is below that of the whole path."""
    shares = [plan.step_size * (plan.steps - 1 - step) / plan.steps for step in range(plan.releases)]
    found = [noisy_descent.learn(plan, each, keys)[:, 0] for each, keys in _pair(plan.problem, runs, seed)]
    return _linear(plan.problem, found, shares, plan.sigma)


def stage(plan: RecursiveRegularisation, *, runs: int, seed: int) -> Attack:
    """Attack the Gaussian result of Algorithm 7's first stage under a linear loss."""
    first, n = plan.stages[0], len(plan.stages) * plan.problem.n + plan.unused
    found = [recursive.found_by_stage(plan, each, keys)[0][:, 0] for each, keys in _pair(plan.problem, runs, seed, n)]
    # The share of a step's noise in the weighted mean of the later iterates.
    kept, last = 1 - first.step_size * first.regulariser, first.steps - 1
    total = sum(kept**age for age in range(first.steps))
    shares = [first.step_size * (last - step) * kept ** (last - step - 1) / total for step in range(last)]
    return _linear(first.problem, found, shares, first.sigma)


def one_pass(plan: OnePass, *, runs: int, seed: int) -> Attack:
    """Attack the output of Algorithm 17 under a linear loss, for which the first record moves all iterates."""
    start = torch.zeros(runs, 1, dtype=torch.float64)
    found = [phased.one_pass(plan, each, start, keys)[:, 0] for each, keys in _pair(plan.problem, runs, seed)]
    # The record's own step is not divided by a number of records.
    return _scored(found, _other(plan.problem), mean=plan.step_size, spread=plan.sigma)


def minimiser(plan: OutputPerturbation, *, runs: int, seed: int) -> Attack:
    """Attack the output of Algorithm 3 under a linear loss.

    This loss reaches the sensitivity of the algorithm (check S8).
    """
    found = [output_perturbation.learn(plan, each, keys)[:, 0] for each, keys in _pair(plan.problem, runs, seed)]
    return _scored(found, _other(plan.problem), mean=1 / (plan.strong_convexity * plan.problem.n), spread=plan.sigma)


def gradients_in_the_ball(plan: NoisyDescent, *, runs: int, seed: int) -> Attack:
    """Attack the path of Algorithm 1 under squared loss near the boundary, where gradients are longest.

    The relation is add-remove: on one side, the first record has a row along the weights and the farthest target; on
    the other side, its place is empty. The other records pull the weights to `SETTLED` times the radius. Steps that end
    on the boundary are left out, because a projection may hide what these steps reveal.
    """
    problem, bound = plan.problem, plan.problem.radius
    slope = 1 / (SETTLED * bound)  # The rows of the other records, which reach their targets of 1 at these weights.
    scores = []
    for present, keys in ((1.0, _keys(seed, "here", runs)), (0.0, _keys(seed, "there", runs))):
        records = one_record(present, 1.0, n=problem.n, loss=SQUARED, others=slope)
        records.targets[0] = -1.0
        score = torch.zeros(runs, dtype=torch.float64)
        previous: Tensor | None = None
        for weights in noisy_descent.iterates(plan, records, keys):
            w = weights[:, 0].clone()
            if previous is not None:
                of_others = 2 * slope * (slope * previous - 1) * (problem.n - 1) / problem.n
                seen = (previous - w) / plan.step_size - of_others
                moved = 2 * (previous + 1) / problem.n
                inside = (w.abs() < bound * (1 - 1e-9)).double()
                score += inside * (moved * seen - moved**2 / 2) / plan.sigma**2
            previous = w
        scores.append(score.numpy())
    return Attack(scores[0], scores[1])


def spider_gradients(plan: SpiderBoost | SampledSpider, *, runs: int, seed: int) -> Attack:
    """Attack the noisy gradients of Algorithm 5 under a linear loss, for which the noisy differences show nothing."""
    found = []
    for records, keys in _pair(plan.problem, runs, seed):
        total = torch.zeros(runs, dtype=torch.float64)
        for step, (before, after) in enumerate(_steps(spider_boost.iterates(plan, records, keys))):
            if step % plan.period == 0:
                total += (after - before) / plan.step_size
        found.append(total)
    return _linear(plan.problem, found, [1.0] * plan.gradients, plan.sigma_gradient)


def spider_differences(plan: SpiderBoost, *, runs: int, seed: int) -> Attack:
    """Attack the noisy differences of Algorithm 5 on full batches (add-remove).

    Only one of the two data sets has a record with a quadratic loss; all other rows are 0.
    """
    scores = []
    unit = 1 / (plan.problem.n * plan.sigma_difference)
    for present, keys in ((1.0, _keys(seed, "here", runs)), (0.0, _keys(seed, "there", runs))):
        records = one_record(present, 0.0, n=plan.problem.n)
        score, before = torch.zeros(runs, dtype=torch.float64), [torch.zeros(runs, dtype=torch.float64)] * 2
        for step, (here, there) in enumerate(_steps(spider_boost.iterates(plan, records, keys))):
            estimate = (here - there) / plan.step_size
            if step % plan.period:
                score += (estimate - before[0]) / (here - before[1]) / plan.sigma_difference - unit / 2
            before = [estimate, here]
        scores.append(score.numpy() / math.sqrt(plan.differences))
    return Attack(scores[0], scores[1], unit * math.sqrt(plan.differences))


def spider_batch(plan: SampledSpider, *, runs: int, seed: int) -> Attack:
    """Attack the first noisy difference of a sampled Algorithm 5 (add-remove); the record may be in no batch."""
    scores = []
    for present, keys in ((1.0, _keys(seed, "here", runs)), (0.0, _keys(seed, "there", runs))):
        records = one_record(present, 0.0, n=plan.problem.n)
        (w_0, w_1), (_, w_2) = list(_steps(spider_boost.iterates(plan, records, keys)))[:2]
        change = ((w_1 - w_2) - (w_0 - w_1)) / plan.step_size
        scores.append((change / (w_1 - w_0) / plan.sigma_difference).numpy())
    unit = 1 / (plan.batch * plan.sigma_difference)
    here, there = (_mixture(each, unit, plan.share, here=1.0, there=0.0) for each in scores)
    return Attack(here, there)


def batch(plan: SampledDescent, *, runs: int, seed: int) -> Attack:
    """Attack one step of DP-SGD under a linear loss; the record, or its replacement, may be in the batch."""
    unit = 1 / plan.multiplier
    scale = plan.step_size / (plan.share * plan.problem.n) * plan.clip * plan.multiplier
    found = [sampled_descent.learn(plan, each, keys)[:, 0] / scale for each, keys in _pair(plan.problem, runs, seed)]
    other = _other(plan.problem)
    here, there = (_mixture(each.numpy(), unit, plan.share, here=1.0, there=other) for each in found)
    return Attack(here, there)


def root(plan: TreeSpider, *, runs: int, seed: int) -> Attack:
    """Attack only the gradient of Algorithm 6's first root, under a linear loss."""
    found = []
    for records, keys in _pair(plan.problem, runs, seed):
        roots = [next(tree_spider.nodes(plan, records, key)) for key in keys]
        found.append(-torch.cat([each.estimate[:, 0] for each in roots]))
    return _scored(found, _other(plan.problem), mean=1 / plan.batch, spread=plan.root_sigma)


def right_child(plan: TreeSpider, name: str, *, runs: int, seed: int) -> Attack:
    """Attack a single right child of the first tree (add-remove).

    Only one of the two data sets has a record with a quadratic loss; all other rows are 0.

    Args:
        plan: A plan for rows of one column.
        name: The name of the node, which ends with 1.
        runs: The number of runs on each side.
        seed: The seed of the noise.
    """
    order = [each for each in tree_spider.pre_order(plan.depth) if each.endswith("1")]
    size = plan.node_batch(len(name))
    first = plan.batch + sum(plan.node_batch(len(each)) for each in order[: order.index(name)])
    scores, unit = [], 0.0
    for present, keys in ((1.0, _keys(seed, "here", runs)), (0.0, _keys(seed, "there", runs))):
        rows, targets = torch.zeros(plan.problem.n, 1, dtype=torch.float64), torch.zeros(plan.problem.n)
        rows[first] = present
        records = BoundedRecords(rows, targets, loss=LINEAR, row_norm=1.0)
        side = []
        for key in keys:
            met = {}
            for node in tree_spider.nodes(plan, records, key):
                met[node.name] = node
                if node.name == name:
                    break
            parent, here = met[name[:-1]], met[name]
            apart = float(here.weights - parent.weights)
            if abs(apart) < plan.length / 2:
                continue  # The steps before the record cancel, so they show nothing.
            sigma = plan.node_sigma(len(name), abs(apart))
            unit = abs(apart) / size / sigma
            side.append(float(here.estimate - parent.estimate) / math.copysign(sigma, apart) - unit / 2)
        scores.append(np.array(side))
    return Attack(scores[0], scores[1], unit)


def _other(problem: LinearProblem) -> float:
    """Return the row of the first record in the second data set; in the first data set, the row is 1.

    The result is the farthest row, or 0 if the place stays empty.
    """
    return -1.0 if problem.relation == "replace-one" else 0.0


def _pair(
    problem: LinearProblem, runs: int, seed: int, n: int | None = None
) -> Iterator[tuple[BoundedRecords, list[int]]]:
    """Yield both data sets of linear losses, each with the addresses of its runs."""
    for side, row in (("here", 1.0), ("there", _other(problem))):
        yield one_record(row, LINEAR.target, n=problem.n if n is None else n), _keys(seed, side, runs)


def _keys(seed: int, side: str, runs: int) -> list[int]:
    return [address("audit", seed, side, run) for run in range(runs)]


def _linear(problem: LinearProblem, found: Sequence[Tensor], shares: Sequence[float], sigma: float) -> Attack:
    """Return the attack on a weighted sum of noisy gradients; the weights are the gradients' shares in the output."""
    return _scored(found, _other(problem), mean=sum(shares) / problem.n, spread=sigma * math.hypot(*shares))


def _scored(found: Sequence[Tensor], other: float, *, mean: float, spread: float) -> Attack:
    """Return the attack on Gaussians whose mean is the record's row times a number.

    Args:
        found: The outputs of each side.
        other: The row of the first record in the second data set, or 0 if the place stays empty; in the first data set,
            the row is 1.
        mean: The mean of the Gaussian for a record whose row is 1.
        spread: The standard deviation.
    """
    here, there = ((each.numpy() - (1 + other) / 2 * mean) / spread for each in found)
    return Attack(here, there, (1 - other) * mean / spread)


def _mixture(values: Array, unit: float, share: float, *, here: float, there: float) -> Array:
    """Return log-likelihood ratios of values given in standard deviations; ``share`` is the sampling rate."""

    def density(row: float) -> Array:
        log: Array = np.logaddexp(math.log1p(-share), math.log(share) + unit * row * values - (unit * row) ** 2 / 2)
        return log

    return density(here) - density(there)


def _steps(path: Iterator[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield consecutive iterates of one column."""
    before: Tensor | None = None
    for weights in path:
        here = weights[:, 0].clone()
        if before is not None:
            yield before, here
        before = here
