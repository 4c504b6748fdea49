"""Gradients of the population risk after the tree-based Spider (X8) and after recursive regularisation (X9)."""

import math

import pandas as pd
import torch
from torch import Tensor

from certified_unlearning.accounting.private.learners import NoisyDescent
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.recursive import RecursiveRegularisation
from certified_unlearning.accounting.private.releases import mean_sensitivity, noise_multiplier
from certified_unlearning.accounting.private.tree_spider import TreeSpider
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.engine.randomness import normal_rows
from certified_unlearning.mechanisms.private import noisy_descent, recursive, tree_spider
from certified_unlearning.papers.private_learning.runs.instances import (
    SignInstance,
    logistic_labels,
    neuron_instance,
    neuron_records,
    sphere_rows,
)
from certified_unlearning.papers.private_learning.runs.stationary import NEURON
from certified_unlearning.papers.private_learning.runs.table import each_trial, trial_rows
from certified_unlearning.papers.private_learning.sweeps import PrivateGradients

LOGISTIC = ScalarLoss(name="logistic")
LOGISTIC_FEATURES = 5
BEST = 2.0
"""The norm of the best weights of X9."""
FRESH = 100_000
"""The number of fresh records on which gradients of the population risk are measured."""
BASELINE_STEPS, BASELINE_RADIUS = 500, 4.0


def tree_rows(sweep: PrivateGradients) -> pd.DataFrame:
    """Return the rows of X8: the tree-based Spider, and one pass of noisy descent over disjoint batches."""
    instance = neuron_instance(sweep.tree_features)
    fresh = BoundedRecords(
        *neuron_records(instance, FRESH, Draws.at(sweep.seed, "X8", "fresh")), loss=NEURON, row_norm=1.0
    )
    zero = fresh.rows.new_zeros(1, instance.features)
    common = {"features": instance.features, "at_zero": float(_norms(fresh, zero))}
    tables = []
    for n in sweep.tree_n:
        problem = LinearProblem(n=n, features=instance.features, row_norm=1.0, loss=NEURON, radius=1.0)
        plan = TreeSpider.plan(problem, epsilon=sweep.epsilon, delta=sweep.delta)
        found, passed = [], []
        for trial in range(sweep.trials):
            records = _neuron(instance, n, sweep.seed, trial)
            found.append(tree_spider.learn(plan, records, [address(sweep.seed, "X8", "tree", n, trial)]))
            passed.append(float(_norms(fresh, _one_pass(problem, records, sweep, trial))))
        errors = _norms(fresh, torch.cat(found))
        tables.append(trial_rows("X8", "tree", errors=errors, n=n, **common))
        tables.append(trial_rows("X8", "one pass", errors=each_trial(passed), n=n, **common))
    return pd.concat(tables)


def recursive_rows(sweep: PrivateGradients) -> pd.DataFrame:
    """Return the rows of X9: recursive regularisation, and noisy descent on all records, for logistic regression."""
    best = torch.full((LOGISTIC_FEATURES,), BEST / math.sqrt(LOGISTIC_FEATURES), dtype=torch.float64)
    fresh = sphere_rows(FRESH, LOGISTIC_FEATURES, Draws.at(sweep.seed, "X9", "fresh"))
    tables = []
    for n in sweep.recursive_n:
        problem = LinearProblem(n=n, features=LOGISTIC_FEATURES, row_norm=1.0, loss=LOGISTIC, radius=BEST)
        plan = RecursiveRegularisation.plan(problem, epsilon=sweep.epsilon, delta=sweep.delta)
        wide = LinearProblem(n=n, features=LOGISTIC_FEATURES, row_norm=1.0, loss=LOGISTIC, radius=BASELINE_RADIUS)
        descent = NoisyDescent.plan(
            wide, epsilon=sweep.epsilon, delta=sweep.delta, steps=BASELINE_STEPS, step_size=1 / wide.smoothness
        )
        found, compared = [], []
        for trial in range(sweep.trials):
            draws = Draws.at(sweep.seed, "X9", n, trial)
            rows = sphere_rows(n, LOGISTIC_FEATURES, draws)
            records = BoundedRecords(rows, logistic_labels(rows, best, draws), loss=LOGISTIC, row_norm=1.0)
            found.append(recursive.learn(plan, records, [address(sweep.seed, "X9", "recursive", n, trial)]))
            compared.append(_tail(descent, records, address(sweep.seed, "X9", "descent", n, trial)))
        rate = 1 / math.sqrt(n) + math.sqrt(LOGISTIC_FEATURES) / (n * sweep.epsilon)
        common = {
            "n": n, "features": LOGISTIC_FEATURES, "bound": rate,
            "at_zero": float(logistic_norms(fresh, torch.zeros(1, LOGISTIC_FEATURES, dtype=torch.float64), best)),
        }  # fmt: skip
        for method, weights in (("recursive", found), ("noisy descent", compared)):
            tables.append(trial_rows("X9", method, errors=logistic_norms(fresh, torch.cat(weights), best), **common))
    return pd.concat(tables)


def _neuron(instance: SignInstance, n: int, seed: int, trial: int) -> BoundedRecords:
    rows, targets = neuron_records(instance, n, Draws.at(seed, "X8", n, trial))
    return BoundedRecords(rows, targets, loss=NEURON, row_norm=1.0)


def _one_pass(problem: LinearProblem, records: BoundedRecords, sweep: PrivateGradients, trial: int) -> Tensor:
    """Return the last iterate of one pass over batches of ``n^(2/3)`` records; each record is in one release."""
    n = len(records)
    batch = math.floor(n ** (2 / 3))
    bound = problem.loss.ball_lipschitz(row_norm=problem.longest_row, radius=math.inf)
    sigma = noise_multiplier(sweep.epsilon, sweep.delta) * mean_sensitivity(bound, n=batch, relation=problem.relation)
    weights = records.rows.new_zeros(1, problem.features)
    for step in range(n // batch):
        noise = normal_rows([address(sweep.seed, "X8", "one pass", n, trial, step)], weights)
        gradient = records.part(step * batch, (step + 1) * batch).mean_gradients(weights) + sigma * noise
        weights = weights - gradient / (2 * problem.smoothness)
    return weights


def _tail(plan: NoisyDescent, records: BoundedRecords, key: int) -> Tensor:
    """Return the mean of the second half of the iterates."""
    total, counted = torch.zeros(1, records.features, dtype=torch.float64), 0
    for step, weights in enumerate(noisy_descent.iterates(plan, records, [key])):
        if step >= plan.steps // 2:
            total += weights
            counted += 1
    return total / counted


def _norms(fresh: BoundedRecords, weights: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(fresh.mean_gradients(weights), dim=1)
    return norms


def logistic_norms(fresh: Tensor, weights: Tensor, best: Tensor) -> Tensor:
    """Return norms of the population gradient ``E (s(<w, x>) - s(<w*, x>)) x``, with labels averaged out."""
    off = torch.sigmoid(weights @ fresh.T) - torch.sigmoid(fresh @ best)
    norms: Tensor = torch.linalg.vector_norm(off @ fresh / len(fresh), dim=1)
    return norms
