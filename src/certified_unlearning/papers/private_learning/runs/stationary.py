"""X7 and X10: gradients of a tanh neuron's empirical risk under SpiderBoost, noisy descent, and an embedding.

X7 compares SpiderBoost with noisy descent; X10 compares SpiderBoost on rows with SpiderBoost on embedded rows.
"""

import math
from collections.abc import Iterator

import pandas as pd
import torch
from torch import Tensor

from certified_unlearning.accounting.core.conversion import mu_from_epsilon
from certified_unlearning.accounting.private.learners import NoisyDescent
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.mechanisms.private import noisy_descent, spider_boost
from certified_unlearning.papers.private_learning.runs.instances import gaussian_matrix, neuron_instance, neuron_records
from certified_unlearning.papers.private_learning.runs.records import RepeatedRecords
from certified_unlearning.papers.private_learning.runs.table import each_trial, trial_rows
from certified_unlearning.papers.private_learning.sweeps import PrivateGradients
from certified_unlearning.papers.private_learning.theory.stationary_points import descent_bound

NEURON = ScalarLoss(name="tanh")
GAP = 1.0
"""The gap ``L_0``: the loss at 0 is at most 1, and never below 0."""
WIDE = 1e3
"""The radius of a ball whose boundary no run reaches; the compared algorithms have no ball."""
LOOKS = 400
"""The largest number of iterates of a run at which gradients are measured."""
ACTIVE = 10
"""The number of features of X10's rows; further columns are zero."""


def spider_rows(sweep: PrivateGradients) -> pd.DataFrame:
    """Return the rows of X7: SpiderBoost and noisy descent on the same records, with more and more copies of each."""
    instance = neuron_instance(sweep.spider_features)
    rows, targets = neuron_records(instance, sweep.distinct, Draws.at(sweep.seed, "X7"))
    tables = []
    for n in sweep.spider_n:
        records = RepeatedRecords(rows, targets, copies=n // sweep.distinct, loss=NEURON, row_norm=1.0)
        problem = _problem(len(records), sweep.spider_features)
        keys = [address(sweep.seed, "X7", n, trial) for trial in range(sweep.trials)]
        spider = SpiderBoost.plan(problem, epsilon=sweep.epsilon, delta=sweep.delta, gap=GAP)
        gradient, estimate = along(
            records, spider_boost.iterates(spider, records, keys), spider.steps, spider.step_size, sweep.seed
        )
        common = {"n": len(records), "features": sweep.spider_features, "at_zero": _at_zero(records)}
        tables.append(
            trial_rows(
                "X7", "SpiderBoost", errors=gradient, estimate_error=estimate, level=float(spider.steps),
                bound=spider.stationarity_bound(GAP), **common,
            )
        )  # fmt: skip
        descent = _descent(problem, sweep)
        gradient, estimate = along(
            records,
            (weights.clone() for weights in noisy_descent.iterates(descent, records, keys)),
            descent.releases,
            descent.step_size,
            sweep.seed,
        )
        bound = descent_bound(
            n=problem.n, d=problem.features, mu=mu_from_epsilon(sweep.epsilon, sweep.delta),
            lipschitz=spider.gradient_bound, smoothness=problem.smoothness, gap=GAP,
        )  # fmt: skip
        tables.append(
            trial_rows(
                "X7", "noisy descent", errors=gradient, estimate_error=estimate, level=float(descent.releases),
                bound=bound, **common,
            )
        )  # fmt: skip
    return pd.concat(tables)


def embedding_rows(sweep: PrivateGradients) -> pd.DataFrame:
    """Return the rows of X10: SpiderBoost on rows with more and more columns of zeros, and on their embeddings.

    The distribution of an embedding of such rows does not depend on the number of zeros.
    """
    instance = neuron_instance(ACTIVE)
    rows, targets = neuron_records(instance, sweep.distinct, Draws.at(sweep.seed, "X10"))
    copies = sweep.embedding_n // sweep.distinct
    records = RepeatedRecords(rows, targets, copies=copies, loss=NEURON, row_norm=1.0)
    common = {"n": len(records), "at_zero": _at_zero(records)}
    tables = []
    for features in sweep.full_features:
        wide = torch.nn.functional.pad(rows, (0, features - ACTIVE))
        full = RepeatedRecords(wide, targets, copies=copies, loss=NEURON, row_norm=1.0)
        plan = SpiderBoost.plan(_problem(len(records), features), epsilon=sweep.epsilon, delta=sweep.delta, gap=GAP)
        keys = [address(sweep.seed, "X10", "full", features, trial) for trial in range(sweep.trials)]
        found, _ = along(full, spider_boost.iterates(plan, full, keys), plan.steps, plan.step_size, sweep.seed)
        tables.append(trial_rows("X10", "all columns", errors=found, features=features, **common))
    for columns in sweep.columns:
        problem = _problem(len(records), ACTIVE).embedded(columns)
        plan = SpiderBoost.plan(problem, epsilon=sweep.epsilon, delta=sweep.delta, gap=GAP)
        errors = []
        for trial in range(sweep.trials):
            matrix = gaussian_matrix(columns, ACTIVE, Draws.at(sweep.seed, "X10", "matrix", columns, trial))
            short = RepeatedRecords(
                noisy_descent.embedded(matrix, rows), targets, copies=copies, loss=NEURON, row_norm=problem.row_norm
            )
            key = address(sweep.seed, "X10", "embedded", columns, trial)
            path = (weights @ matrix for weights in spider_boost.iterates(plan, short, [key]))
            errors.append(float(along(records, path, plan.steps, plan.step_size, sweep.seed)[0]))
        tables.append(trial_rows("X10", "embedding", errors=each_trial(errors), features=columns, **common))
    return pd.concat(tables)


def along(
    records: BoundedRecords, path: Iterator[Tensor], steps: int, step_size: float, seed: int
) -> tuple[Tensor, Tensor]:
    """Return the mean norm of the gradient along a path, and the root mean square error of the steps' estimates.

    Args:
        records: The records whose mean gradient is measured.
        path: The weights ``w_0`` to ``w_T``, each a separate tensor of shape ``(trials, features)``.
        steps: The number ``T`` of steps.
        step_size: The step size ``eta`` of ``w_(t + 1) = w_t - eta g_t``.
        seed: The seed with which the measured weights are drawn, uniformly among ``w_1`` to ``w_(T - 1)``.
    """
    places = 1 + Draws.at(seed, "looks", steps).integers(max(1, steps - 1), LOOKS)
    looks = set(places.tolist() if steps > LOOKS else range(1, max(2, steps)))
    norms: list[Tensor] = []
    errors: list[Tensor] = []
    before = None
    for step, weights in enumerate(path):
        if before is not None:
            errors.append((before[0] - weights) / step_size - before[1])
            before = None
        if step in looks:
            gradients = records.mean_gradients(weights)
            norms.append(torch.linalg.vector_norm(gradients, dim=1))
            before = weights, gradients
    squares = torch.stack(errors).square().sum(dim=2) if errors else norms[0].new_zeros(1, len(norms[0]))
    return torch.stack(norms).mean(dim=0), squares.mean(dim=0).sqrt()


def _descent(problem: LinearProblem, sweep: PrivateGradients) -> NoisyDescent:
    """Return the plan of noisy descent with the number of steps for which its bound is smallest."""
    mu = mu_from_epsilon(sweep.epsilon, sweep.delta)
    bound, smoothness = problem.gradient_bound, problem.smoothness
    steps = math.sqrt(GAP * smoothness / 2) * problem.n * mu / (bound * math.sqrt(problem.features))
    return NoisyDescent.plan(
        problem, epsilon=sweep.epsilon, delta=sweep.delta, steps=max(2, round(steps)) + 1, step_size=1 / smoothness
    )


def _problem(n: int, features: int) -> LinearProblem:
    return LinearProblem(n=n, features=features, row_norm=1.0, loss=NEURON, radius=WIDE)


def _at_zero(records: BoundedRecords) -> float:
    zero = records.rows.new_zeros(1, records.features)
    return float(torch.linalg.vector_norm(records.mean_gradients(zero)))
