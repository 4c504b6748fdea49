"""X1 to X4: how the excess risk of private linear models depends on the numbers of records and of columns."""

import math

import pandas as pd
import torch
from torch import Tensor

from certified_unlearning.accounting.private.learners import NoisyDescent, OutputPerturbation, embedding_dimension
from certified_unlearning.accounting.private.losses import CAP, LinearProblem, ScalarLoss
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.descent import project
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.engine.randomness import normal_rows
from certified_unlearning.mechanisms.private import noisy_descent, output_perturbation
from certified_unlearning.papers.private_learning.runs.instances import SignInstance, gaussian_matrix, sign_instance
from certified_unlearning.papers.private_learning.runs.records import StackedMoments
from certified_unlearning.papers.private_learning.runs.table import each_trial, trial_rows
from certified_unlearning.papers.private_learning.sweeps import PrivateRisk
from certified_unlearning.papers.private_learning.theory.linear_models import (
    Setting,
    theorem_10_strength,
    theorem_12_strength,
)

SQUARED = ScalarLoss(name="squared")
ABSOLUTE = ScalarLoss(name="absolute", width=0.002)
NOISES = 4
"""The number of noise draws for a trial of output perturbation; the trial's error is the mean over them."""
FRESH = 10_000
"""The number of fresh rows on which an excess risk without a formula is measured."""


def output_perturbation_rows(sweep: PrivateRisk) -> pd.DataFrame:
    """Return the rows of X1: output perturbation with the printed strength and with the strength of least cost.

    The records are those of the sign instance.
    """
    instance = sign_instance()
    tables = []
    for n in sweep.output_perturbation_n:
        problem = LinearProblem(n=n, features=instance.features, row_norm=1.0, loss=SQUARED, radius=instance.radius)
        setting = Setting(n=n, d=problem.features, epsilon=sweep.epsilon, delta=sweep.delta, radius=instance.radius)
        plans = {
            method: OutputPerturbation.plan(
                problem, epsilon=sweep.epsilon, delta=sweep.delta, strong_convexity=strength
            )
            for method, strength in (("printed strength", theorem_10_strength(setting)), ("least cost", None))
        }
        # Only one trial's records are in memory, because all of them are gigabytes.
        minimisers: dict[str, list[Tensor]] = {method: [] for method in plans}
        for trial in range(sweep.trials):
            records = squared_records(instance, n, sweep.seed, "X1", trial)
            for method, plan in plans.items():
                minimisers[method].append(output_perturbation.minimiser(plan, records))
        for method, plan in plans.items():
            exact = torch.cat(minimisers[method])
            found = with_noise(plan, exact, (sweep.seed, "X1", method, n))
            tables.append(
                trial_rows(
                    "X1", method, n=n, features=problem.features, epsilon=sweep.epsilon,
                    errors=over_noises(instance.excess(found)), noiseless=instance.excess(exact),
                    bound=plan.privacy_cost, at_zero=float(at_zero(instance)),
                )
            )  # fmt: skip
    return pd.concat(tables)


def descent_rows(sweep: PrivateRisk) -> pd.DataFrame:
    """Return the rows of X2: noisy descent with as many iterates as records, on the sign instance."""
    instance = sign_instance()
    tables = []
    for n in sweep.descent_n:
        data = StackedMoments.of(squared_records(instance, n, sweep.seed, "X2", trial) for trial in range(sweep.trials))
        tables.append(_descended("X2", instance, data, sweep))
    return pd.concat(tables)


def feature_rows(sweep: PrivateRisk) -> pd.DataFrame:
    """Return the rows of X3: the three methods on rows with more and more columns of zeros."""
    instance, n = sign_instance(), sweep.features_n
    data = [squared_records(instance, n, sweep.seed, "X3", trial) for trial in range(sweep.trials)]
    tables = []
    for features in sweep.features:
        wide = StackedMoments.of(data, features=features)
        tables.append(_descended("X3", instance, wide, sweep))
        # Rows are 0 in further columns, and no projection follows noise, so the active columns determine everything.
        problem = LinearProblem(n=n, features=instance.features, row_norm=1.0, loss=SQUARED, radius=instance.radius)
        plan = OutputPerturbation.plan(problem, epsilon=sweep.epsilon, delta=sweep.delta)
        found, exact = perturbed(plan, data, (sweep.seed, "X3", features), noises=NOISES)
        tables.append(
            trial_rows(
                "X3", "output perturbation", n=n, features=features, errors=over_noises(instance.excess(found)),
                noiseless=instance.excess(exact), bound=plan.privacy_cost, at_zero=float(at_zero(instance)),
            )
        )  # fmt: skip
        tables.append(_embedded(instance, data, features, sweep))
    return pd.concat(tables)


def absolute_rows(sweep: PrivateRisk) -> pd.DataFrame:
    """Return the rows of X4: output perturbation for absolute loss, for several values of epsilon."""
    instance = sign_instance()
    fresh = instance.rows(FRESH, Draws.at(sweep.seed, "X4", "fresh"))
    tables = []
    for n in sweep.absolute_n:
        data = []
        for trial in range(sweep.trials):
            draws = Draws.at(sweep.seed, "X4", n, trial)
            rows = instance.rows(n, draws)
            targets = instance.targets(rows, draws, noise=0.0)
            data.append(BoundedRecords(rows, targets, loss=ABSOLUTE, row_norm=1.0))
        problem = LinearProblem(n=n, features=instance.features, row_norm=1.0, loss=ABSOLUTE, radius=instance.radius)
        for epsilon in sweep.absolute_epsilon:
            setting = Setting(n=n, d=50, epsilon=epsilon, delta=sweep.delta, radius=instance.radius)
            for method, strength in (("printed strength", theorem_12_strength(setting)), ("least cost", None)):
                plan = OutputPerturbation.plan(problem, epsilon=epsilon, delta=sweep.delta, strong_convexity=strength)
                found, exact = perturbed(plan, data, (sweep.seed, "X4", method, n, epsilon), noises=NOISES)
                tables.append(
                    trial_rows(
                        "X4", method, n=n, features=problem.features, epsilon=epsilon,
                        errors=over_noises(_missed(instance, fresh, found)), noiseless=_missed(instance, fresh, exact),
                        bound=plan.privacy_cost, at_zero=float((fresh @ instance.best).abs().mean()),
                    )
                )  # fmt: skip
    return pd.concat(tables)


def squared_records(instance: SignInstance, n: int, *where: int | str) -> BoundedRecords:
    """Return the records of a trial for squared loss; their targets have noise of 0.3."""
    draws = Draws.at(*where, n)
    rows = instance.rows(n, draws)
    return BoundedRecords(rows, instance.targets(rows, draws, noise=0.3), loss=SQUARED, row_norm=1.0)


def perturbed(
    plan: OutputPerturbation, data: list[BoundedRecords], where: tuple[str | int | float, ...], *, noises: int = 1
) -> tuple[Tensor, Tensor]:
    """Return each trial's models and its minimiser without noise; the shapes are those of `with_noise`."""
    exact = torch.cat([output_perturbation.minimiser(plan, records) for records in data])
    return with_noise(plan, exact, where, noises=noises), exact


def with_noise(
    plan: OutputPerturbation, exact: Tensor, where: tuple[str | int | float, ...], *, noises: int = NOISES
) -> Tensor:
    """Return each trial's minimiser with ``noises`` draws of noise, shape ``(noises * trials, features)``."""
    keys = [address(*where, "noise", trial, draw) for draw in range(noises) for trial in range(len(exact))]
    means = exact.repeat(noises, 1)
    return torch.add(means, normal_rows(keys, means), alpha=plan.sigma)


def over_noises(errors: Tensor, *, noises: int = NOISES) -> Tensor:
    """Return the mean error of each trial over its noise draws."""
    return errors.view(noises, -1).mean(dim=0)


def at_zero(instance: SignInstance) -> Tensor:
    """Return the excess risk of zero weights."""
    return instance.excess(torch.zeros(1, instance.features, dtype=torch.float64))[0]


def without_noise(records: BoundedRecords, trials: int, *, steps: int, radius: float, step_size: float) -> Tensor:
    """Return the mean iterate of descent without noise."""
    weights = records.rows.new_zeros(trials, records.features)
    total = torch.zeros_like(weights)
    for _ in range(steps - 1):
        total += weights
        weights = weights - step_size * records.mean_gradients(weights)
        project(weights, radius)
    return (total + weights) / steps


def _descended(part: str, instance: SignInstance, records: StackedMoments, sweep: PrivateRisk) -> pd.DataFrame:
    n, features = len(records), records.features
    problem = LinearProblem(n=n, features=features, row_norm=1.0, loss=SQUARED, radius=instance.radius)
    plan = NoisyDescent.plan(problem, epsilon=sweep.epsilon, delta=sweep.delta, steps=n)
    keys = [address(sweep.seed, part, "descent", n, features, trial) for trial in range(sweep.trials)]
    found = noisy_descent.learn(plan, records, keys)
    columns = {}
    if features == instance.features:
        step_size = min(
            problem.radius / math.sqrt(n * problem.smoothness * SQUARED.at_zero**2), 1 / (4 * problem.smoothness)
        )
        exact = without_noise(records, sweep.trials, steps=n, radius=problem.radius, step_size=step_size)
        columns["noiseless"] = instance.excess(exact)
    return trial_rows(
        part, "noisy descent", n=n, features=features, errors=instance.excess(found), bound=plan.regret_bound,
        at_zero=float(at_zero(instance)), **columns,
    )  # fmt: skip


def _embedded(instance: SignInstance, data: list[BoundedRecords], features: int, sweep: PrivateRisk) -> pd.DataFrame:
    """Return the results of the embedding; its matrix is drawn only for features that are not zero."""
    n = len(data[0])
    whole = LinearProblem(n=n, features=max(features, 1), row_norm=1.0, loss=SQUARED, radius=instance.radius)
    columns = min(embedding_dimension(whole, sweep.epsilon), sweep.embedding_columns)
    problem = whole.embedded(columns)
    matrices = [
        gaussian_matrix(columns, instance.features, Draws.at(sweep.seed, "X3", "matrix", features, trial))
        for trial in range(sweep.trials)
    ]
    short = [
        BoundedRecords(noisy_descent.embedded(matrix, each.rows), each.targets, loss=SQUARED, row_norm=problem.row_norm)
        for matrix, each in zip(matrices, data, strict=True)
    ]
    assert problem.row_norm == CAP
    plan = NoisyDescent.plan(problem, epsilon=sweep.epsilon, delta=sweep.delta, steps=n)
    keys = [address(sweep.seed, "X3", "embedded", features, trial) for trial in range(sweep.trials)]
    found = noisy_descent.learn(plan, StackedMoments.of(short), keys)
    lifted = torch.stack([weights @ matrix for weights, matrix in zip(found, matrices, strict=True)])
    return trial_rows(
        "X3", "embedding", n=n, features=features, level=float(columns), errors=instance.excess(lifted),
        at_zero=float(at_zero(instance)),
    )  # fmt: skip


def _missed(instance: SignInstance, fresh: Tensor, weights: Tensor) -> Tensor:
    """Return the mean of ``|<w - w*, x>|`` over fresh rows: the excess of absolute loss if targets have no noise."""
    return each_trial([float((fresh @ (each - instance.best)).abs().mean()) for each in weights])
