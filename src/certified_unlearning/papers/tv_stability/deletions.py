"""The accuracy and the cost of deleting a record, for every system on a grid of its constants."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from certified_unlearning.accounting.tv.one_pass import dual_averaging_sensitivity, frank_wolfe_sensitivity
from certified_unlearning.accounting.tv.recomputation import query_recompute_probability
from certified_unlearning.accounting.tv.subsampling import subsampling_tv
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.engine.exact.prefix_tree import PrefixTree
from certified_unlearning.estimators import LangevinLogisticRegression
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.expected import expected_deletion
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.exact.one_pass.dual_averaging import DualAveraging, DualAveragingSettings
from certified_unlearning.mechanisms.exact.one_pass.expected import expected_deletion_of_prefix_sums
from certified_unlearning.mechanisms.exact.one_pass.frank_wolfe import FrankWolfe, FrankWolfeSettings
from certified_unlearning.mechanisms.exact.one_pass.prefix_sums import PrefixLearner, PrefixSums, PrefixSumSettings
from certified_unlearning.mechanisms.exact.one_pass.projected_glm import Projection
from certified_unlearning.mechanisms.exact.quantized_sgd import QuantizedSgd
from certified_unlearning.mechanisms.exact.queries.expected import expected_deletion_of_queries
from certified_unlearning.mechanisms.exact.queries.full_batches import FullBatches, FullBatchSettings
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries, LinearQuerySettings
from certified_unlearning.mechanisms.exact.sisa import Sisa
from certified_unlearning.mechanisms.exact.subsample_gd import SubsampleDescent, SubsampleGd
from certified_unlearning.papers.tv_stability.sweeps import Deletions
from certified_unlearning.papers.tv_stability.theory.trees import mean_recompute_probability
from certified_unlearning.reproduction.simulation.held_out import HeldOut, with_error

_LANGEVIN_DELTA = 1e-5


def deletions_table(sweep: Deletions) -> pd.DataFrame:
    """Return accuracy and costs: one row for each data set, system and setting.

    Raises:
        DataError: The raw files of a data set are missing.
    """
    rows = [row for name in sweep.data for row in _of_task(HeldOut.load(name, sweep.seed), sweep)]
    return pd.DataFrame(rows).assign(experiment="deletions", trials=sweep.trials, seed=sweep.seed)


def descents(records: LinearRecords, sweep: Deletions) -> Iterator[tuple[str, ExactDescent[Any], float]]:
    """Return every setting of mini-batch descent: the system, its learner, and its noise."""
    for steps, batch_size, step_size in product(sweep.steps, sweep.batch_size, sweep.step_size):
        own: dict[str, Any] = {"steps": steps, "batch_size": batch_size, "step_size": step_size}
        yield "subsample-gd", SubsampleDescent(SubsampleGd(**own), records), 0.0
        for sigma in sweep.sigma:
            yield "noisy-sgd", ExactDescent(NoisySgd(**own, sigma=sigma), records), sigma
            accelerated = NoisySgd(**own, sigma=sigma, accelerated=True)
            yield "accelerated-noisy-sgd", ExactDescent(accelerated, records), sigma
        for quantum in sweep.quantum:
            yield "quantized-sgd", ExactDescent(QuantizedSgd(**own, quantum=quantum), records), quantum


def _of_task(task: HeldOut, sweep: Deletions) -> Iterator[dict[str, Any]]:
    shape = {"data": task.name, "n": len(task.records), "d": task.records.dimension}
    for system, descent, noise in descents(task.records, sweep):
        for row in _descent(task, system, descent, noise, sweep):
            yield {**shape, **row}
    for shards, slices, steps, batch_size, step_size in product(
        sweep.shards, sweep.slices, sweep.steps, sweep.batch_size, sweep.step_size
    ):
        sharded = Sisa(shards=shards, slices=slices, steps=steps, batch_size=batch_size, step_size=step_size)
        yield {**shape, **_sisa(task, sharded, sweep)}
    for one in _one_pass(task, sweep):
        yield {**shape, **_prefix_sums(task, one, sweep)}
    for steps, step_size, sigma in product(sweep.full_steps, sweep.step_size, sweep.full_sigma):
        yield {**shape, **_full_batches(task, steps, step_size, sigma, sweep)}
    for epsilon in sweep.epsilon:
        yield {**shape, **_langevin(task, epsilon, sweep)}


def _descent(
    task: HeldOut, system: str, descent: ExactDescent[Any], noise: float, sweep: Deletions
) -> Iterator[dict[str, Any]]:
    begun, settings = time.monotonic(), descent.settings
    n, address = len(task.records), (sweep.seed, task.name, system, str(settings))
    chosen = descent.learn(torch.arange(task.first), Draws.at(*address, "select"), trials=sweep.trials)
    draws = Draws.at(*address, "report")
    state = descent.learn(torch.arange(n), draws, trials=sweep.trials)
    work = expected_deletion(descent, state, draws)
    bound = subsampling_tv(n=n, batch_size=settings.batch_size, steps=settings.steps)
    learning = float(settings.steps * settings.batch_size)
    row = {
        **_constants(steps=settings.steps, batch_size=settings.batch_size, step_size=settings.step_size, noise=noise),
        "validation_accuracy": task.validated(chosen.model()),
        **with_error("accuracy", task.tested(state.model())),
        "learning_gradients": learning,
        "seconds": time.monotonic() - begun,
    }
    yield {
        **row,
        "system": system,
        **with_error("gradients", work.gradients),
        "recompute_probability": float(work.recompute_probability.mean()),
        "recompute_bound": bound,
    }
    if system == "subsample-gd":
        # The same runs, made again for every deletion.
        again = {"recompute_probability": 1.0, "recompute_bound": 1.0}
        yield {**row, "system": "retraining", "gradients": learning, "gradients_error": 0.0, **again}


def _sisa(task: HeldOut, settings: Sisa, sweep: Deletions) -> dict[str, Any]:
    begun, address = time.monotonic(), (sweep.seed, task.name, "sisa", str(settings))
    n, draws = len(task.records), Draws.at(*address, "report")
    chosen = settings.learn(task.records, torch.arange(task.first), Draws.at(*address, "select"), trials=sweep.trials)
    state = settings.learn(task.records, torch.arange(n), draws, trials=sweep.trials)
    # A record's slice is uniform, and the stages of its shard are run again from this slice on.
    stages = [settings.steps_of(stage) for stage in range(settings.slices)]
    average = settings.batch_size * sum(sum(stages[first:]) for first in range(settings.slices)) / settings.slices
    return {
        **_constants(
            steps=settings.steps,
            batch_size=settings.batch_size,
            step_size=settings.step_size,
            shards=settings.shards,
            slices=settings.slices,
        ),
        "system": "sisa",
        "validation_accuracy": task.validated(chosen.model),
        **with_error("accuracy", task.tested(state.model)),
        "gradients": average,
        "gradients_error": 0.0,
        "learning_gradients": float(settings.shards * settings.batch_size * sum(stages)),
        "recompute_probability": 1.0,
        "recompute_bound": 1.0,
        "seconds": time.monotonic() - begun,
    }


@dataclass(frozen=True, eq=False)
class _OnePass:
    """A one-pass learner with one choice of its constants.

    ``sensitivity`` is the sensitivity of a sum to one record. ``lift`` maps the learned models to models of whole rows.
    """

    constants: dict[str, Any]
    learner: PrefixLearner
    sensitivity: float
    lift: Callable[[Tensor], Tensor] = field(default=lambda models: models)


def _one_pass(task: HeldOut, sweep: Deletions) -> Iterator[_OnePass]:
    rows, labels = task.records.rows, task.records.labels
    hinge, of_hinge = LinearRecords(rows, labels, loss="hinge"), dual_averaging_sensitivity(lipschitz=1.0)
    for sigma, step_size in product(sweep.node_sigma, sweep.sum_step_size):
        learner = DualAveraging(hinge, DualAveragingSettings(step_size))
        yield _OnePass({"system": "dual-averaging", "step_size": step_size, "noise": sigma}, learner, of_hinge)
    for features, sigma, step_size in product(sweep.projected_features, sweep.node_sigma, sweep.sum_step_size):
        draws = Draws.at(sweep.seed, task.name, "projection", features)
        projection = Projection.draw(dimension=features, features=task.records.dimension, draws=draws)
        learner = DualAveraging(projection.records(rows, labels, loss="hinge"), DualAveragingSettings(step_size))
        own = {"system": "projected-dual-averaging", "step_size": step_size, "noise": sigma, "d": features}
        # Rows become at most twice as long, except for a share that is negligible from 16 dimensions on.
        yield _OnePass(own, learner, 2 * of_hinge, projection.lift)
    for sigma, radius in product(sweep.node_sigma, sweep.radius):
        sensitivity = frank_wolfe_sensitivity(lipschitz=1.0, smoothness=0.25, diameter=2 * radius)
        own = {"system": "frank-wolfe", "step_size": 0.0, "noise": sigma, "radius": radius}
        yield _OnePass(own, FrankWolfe(task.records, FrankWolfeSettings(radius)), sensitivity)


def _prefix_sums(task: HeldOut, one: _OnePass, sweep: Deletions) -> dict[str, Any]:
    begun, n, sigma = time.monotonic(), len(task.records), one.constants["noise"]
    own = PrefixSums(one.learner, PrefixSumSettings.equal(sigma, most_records=n))
    address = (sweep.seed, task.name, str(one.constants))

    def learned(records: int, purpose: str) -> PrefixTree:
        return own.learn(torch.arange(records), sweep.trials, Draws.at(*address, purpose))[0]

    # One tree at a time is in memory: for every trial, it is four times as large as the data.
    validated = task.validated(one.lift(own.model(learned(task.first, "select"))))
    state = learned(n, "report")
    work = expected_deletion_of_prefix_sums(own, state)
    return {
        **_constants(steps=n, batch_size=1, **one.constants),
        "validation_accuracy": validated,
        **with_error("accuracy", task.tested(one.lift(own.model(state)))),
        **with_error("gradients", work.gradients),
        "learning_gradients": float(one.learner.gradients_per_increment * n),
        "recompute_probability": float(work.recompute_probability.mean()),
        "recompute_bound": mean_recompute_probability(n=n, sigma=sigma, sensitivity=one.sensitivity),
        "seconds": time.monotonic() - begun,
    }


def _full_batches(task: HeldOut, steps: int, step_size: float, sigma: float, sweep: Deletions) -> dict[str, Any]:
    begun, n = time.monotonic(), len(task.records)
    method = FullBatches(task.records, FullBatchSettings(step_size, n))
    own = LinearQueries(method, LinearQuerySettings(steps, sigma))
    address = (sweep.seed, task.name, "full-batches", steps, step_size, sigma)
    # The same step with the mean of fewer gradients.
    smaller = FullBatches(task.records, FullBatchSettings(step_size, task.first))
    chosen, _ = LinearQueries(smaller, own.settings).learn(
        torch.arange(task.first), sweep.trials, Draws.at(*address, "select")
    )
    state, _ = own.learn(torch.arange(n), sweep.trials, Draws.at(*address, "report"))
    work = expected_deletion_of_queries(own, state, method.parts)
    return {
        **_constants(steps=steps, batch_size=n, step_size=step_size, noise=sigma),
        "system": "full-batches",
        "validation_accuracy": task.validated(own.model(chosen)),
        **with_error("accuracy", task.tested(own.model(state))),
        **with_error("gradients", work.gradients),
        "learning_gradients": float(steps * n),
        "recompute_probability": float(work.recompute_probability.mean()),
        "recompute_bound": query_recompute_probability(queries=steps, sigma=sigma, bound=1.0),
        "seconds": time.monotonic() - begun,
    }


def _langevin(task: HeldOut, epsilon: float, sweep: Deletions) -> dict[str, Any]:
    """Return the row of `LangevinLogisticRegression`, whose constants are planned instead of chosen."""
    begun = time.monotonic()
    rows, labels, n = task.records.rows.numpy(), task.records.labels.numpy(), len(task.records)
    models, validated, gradients = [], [], []
    for trial in range(sweep.trials):
        fit = LangevinLogisticRegression(
            epsilon, _LANGEVIN_DELTA, C=sweep.strength / n, fit_intercept=False, random_state=sweep.seed + trial
        )
        chosen = fit.fit(rows[: task.first], labels[: task.first])
        validated.append(chosen.score(rows[task.first :], labels[task.first :]))
        stated = fit.fit(rows, labels).unlearn([trial]).certificate_
        records_of_a_step = n if stated.cycle is None else stated.cycle.batch_size
        gradients.append(records_of_a_step * stated.unlearning_steps[-1])
        models.append(fit.coef_[0])
    return {
        **_constants(
            steps=stated.learning_steps,
            batch_size=records_of_a_step,
            step_size=stated.step_size,
            noise=stated.sigma,
            epsilon=epsilon,
            guarantee=stated.guarantee,
        ),
        "system": "langevin",
        "validation_accuracy": float(np.mean(validated)),
        **with_error("accuracy", task.tested(torch.as_tensor(np.stack(models)))),
        **with_error("gradients", torch.tensor(gradients, dtype=torch.float64)),
        "learning_gradients": float(stated.learning_steps * records_of_a_step),
        "recompute_probability": 0.0,
        "recompute_bound": 0.0,
        "seconds": time.monotonic() - begun,
    }


def _constants(**given: Any) -> dict[str, Any]:
    """Return a system's constants; constants that the system does not have are 0."""
    return {"guarantee": "exact", "epsilon": 0.0, "noise": 0.0, "radius": 0.0, "shards": 0, "slices": 0, **given}
