"""Streams of deletion requests to an ensemble with budgets and to plain SISA: the answers and work of both systems."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from certified_unlearning.accounting.core.occupancy import requests_until_all, requests_until_first
from certified_unlearning.engine.abstract_training.descent import Descent, State, directions
from certified_unlearning.engine.abstract_training.training import Batch, train
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.certified_sgd.ensemble import CertifiedEnsemble
from certified_unlearning.mechanisms.certified_sgd.sgd import initial_parameters
from certified_unlearning.mechanisms.certified_sgd.shards import Sharding, ShardState
from certified_unlearning.mechanisms.certified_sgd.votes import NO_ANSWER
from certified_unlearning.papers.gradient_certificates.service_sweep import Service
from certified_unlearning.papers.gradient_certificates.tasks import Task, task_of

RANDOM_STREAMS = 1000
"""The number of streams of random records whose waiting times are counted, without training."""


@dataclass(frozen=True)
class Trial:
    """The results of a stream that is answered with one budget.

    Attributes:
        first: The number of the request that first causes the retraining of a shard.
        out: The number of the request after which no shard has budget left, counted as if no shard were ever retrained.
            The number is None if the stream ends before such a request.
        trainings: The number of retrained shards.
        refused: The share of queries without an answer after each request.
        gradients: The number of single-record gradients that the ensemble computes. Every stage of training counts as
            one pass.
        sisa: The number of gradients of plain SISA.
        retraining: The number of gradients if all shards are retrained after every request.
        compared: The number of answers that were compared with the retrained ensemble's.
        wrong: The number of compared answers that differ from the retrained ensemble's.
        changed: The number of the retrained ensemble's labels that differ from the labels before the first request.
        accuracy: The share of correct answers among the compared answers.
    """

    first: int
    out: int | None
    trainings: int
    refused: list[float]
    gradients: int
    sisa: int
    retraining: int
    compared: int
    wrong: int
    changed: int
    accuracy: float


def service_table(sweep: Service) -> pd.DataFrame:
    """Return the work and the answers of streams: one row for each stream and budget.

    Raises:
        ParameterError: There are fewer records than a stream needs.
        DataError: The raw files of a data set are missing.
    """
    tasks = [task_of(sweep.data, seed=sweep.seed + trial, pooled=sweep.pooled) for trial in range(sweep.trials)]
    rows = [
        _row(sweep, stream, budget, tasks, [_trial(sweep, stream, budget, task, at) for at, task in enumerate(tasks)])
        for stream in sweep.streams
        for budget in sweep.budgets
    ]
    return pd.DataFrame(rows).assign(experiment="service", box_cost=_box_cost(sweep, tasks[0]))


def boxes_of(budget: int) -> tuple[int, ...]:
    """Return the budgets whose boxes are trained: the powers of 2 below the largest budget, and the largest."""
    powers = [2**each for each in range(budget.bit_length()) if 2**each < budget]
    return (*powers, budget)


def ensemble_of(sweep: Service, task: Task, budget: int) -> CertifiedEnsemble:
    """Return the ensemble of a sweep, before its training, with one logit for each class."""
    descent = Descent(step_size=sweep.step_size, clipping="clamp", bound=sweep.gamma)
    sharding = Sharding(len(task), sweep.shards, sweep.slices, boxes_of(budget))
    hidden = [sweep.hidden] if sweep.hidden else []
    network = Network.dense(task.features, *hidden, task.classes)
    return CertifiedEnsemble(network, descent, sharding, sweep.epochs)


def stream_of(sweep: Service, stream: str, slices: Sequence[int], generator: torch.Generator) -> list[int]:
    """Return at least as many records as there are requests, in the order in which the records leave.

    Args:
        sweep: The numbers of shards, slices and requests.
        stream: The name of the stream.
        slices: The slice of every record.
        generator: The generator that draws the order of the records within the rules of the stream.

    Raises:
        ParameterError: There are no more records than requests.
    """
    order = torch.randperm(len(slices), generator=generator).tolist()
    of_shard: list[list[int]] = [[] for _ in range(sweep.shards)]
    for record in order:
        of_shard[slices[record] // sweep.slices].append(record)
    if stream == "one shard":
        order = of_shard[0]
    elif stream == "in turn":
        order = [record for records in zip(*of_shard, strict=False) for record in records]
    if sweep.requests >= len(order):
        raise ParameterError(
            f"`requests` must be below the number of records of the stream ({stream}), {len(order)}, got "
            f"{sweep.requests}"
        )
    return order


def _trial(sweep: Service, stream: str, budget: int, task: Task, at: int) -> Trial:
    settings = ensemble_of(sweep, task, budget)
    everyone = torch.ones(len(task), dtype=torch.bool)
    seed = sweep.seed + at
    shards = settings.learn(task.rows, task.labels, everyone, torch.Generator().manual_seed(seed))
    order = stream_of(sweep, stream, shards.slices.tolist(), torch.Generator().manual_seed(seed + 1))
    places = [shards.places([record]) for record in order]
    queries, labels = task.test_rows[: sweep.queries], task.test_labels[: sweep.queries]
    before = shards.votes(queries).labels
    refused, compared, wrong, changed, right = [], 0, 0, 0, 0
    compare = {(place + 1) * sweep.requests // sweep.comparisons for place in range(sweep.comparisons)}
    for request, record in enumerate(order[: sweep.requests], 1):
        shards.forget([record])
        found = shards.votes(queries).labels
        given = found != NO_ANSWER
        refused.append(1 - float(given.double().mean()))
        if request in compare:
            due = shards.fresh().votes(queries).labels
            compared += int(given.sum())
            wrong += int((found[given] != due[given]).sum())
            changed += int((due != before).sum())
            right += int((found[given] == labels[given]).sum())
    of_shards = torch.tensor([place // sweep.slices for ((place, _),) in places])
    first, out = waits(of_shards, count=sweep.shards, hits=budget + 1)
    sisa, retraining = compared_work(settings.sharding, places[: sweep.requests])
    standing = shards.standing
    return Trial(
        first,
        out,
        standing.trainings,
        refused,
        standing.gradients,
        sisa,
        retraining,
        compared,
        wrong,
        changed,
        right / compared if compared else 0.0,
    )


def waits(shards: Tensor, *, count: int, hits: int) -> tuple[int, int | None]:
    """Return the request at which the first shard reaches ``hits`` requests, and that at which the last shard does.

    The second number is None if some shard never reaches ``hits`` requests.

    Args:
        shards: The shard of every request, in the order of the requests, shape ``(requests,)``.
        count: The number of shards.
        hits: The budget plus one.
    """
    seen = torch.nn.functional.one_hot(shards, count).cumsum(dim=0)
    first, out = (seen.amax(dim=1) < hits).sum(), (seen.amin(dim=1) < hits).sum()
    return int(first) + 1, int(out) + 1 if int(out) < len(shards) else None


def random_waits(sharding: Sharding, generator: torch.Generator) -> list[tuple[int, int | None]]:
    """Return `waits` of `RANDOM_STREAMS` random streams of records, without any training."""
    shards = torch.arange(sharding.n) % sharding.shards
    hits = sharding.budgets[-1] + 1
    return [
        waits(shards[torch.randperm(sharding.n, generator=generator)], count=sharding.shards, hits=hits)
        for _ in range(RANDOM_STREAMS)
    ]


def compared_work(sharding: Sharding, places: Sequence[Sequence[tuple[int, int]]]) -> tuple[int, int]:
    """Count the gradients of plain SISA, and the gradients of retraining all shards after each request.

    Every stage of training counts as one pass.
    """
    plain, everything = ShardState(sharding), 0
    for each in places:
        plain.remove(each)
        plain.retrain([place // sharding.slices for place, _ in each])
        everything += sum(count * (sharding.slices - place % sharding.slices) for place, count in enumerate(plain.left))
    return plain.gradients, everything


def _row(sweep: Service, stream: str, budget: int, tasks: Sequence[Task], trials: Sequence[Trial]) -> dict[str, Any]:
    settings = ensemble_of(sweep, tasks[0], budget)
    random, hits = stream == "random", budget + 1
    generator = torch.Generator().manual_seed(sweep.seed)
    waited = random_waits(settings.sharding, generator) if random else [(each.first, each.out) for each in trials]
    outs = [out for _, out in waited if out is not None]
    known = len(outs) == len(waited)
    refused = [statistics.mean(each.refused) for each in trials]
    works = all(each.gradients for each in trials)
    saved = [each.sisa / each.gradients for each in trials if each.gradients]
    return {
        "stream": stream,
        "budget": budget,
        "data": sweep.data,
        "parameters": settings.network.size,
        "n": len(tasks[0]),
        **{name: getattr(sweep, name) for name in _CONSTANTS},
        "waits": len(waited),
        "first": statistics.mean(first for first, _ in waited),
        "first_std": statistics.stdev(first for first, _ in waited),
        "out": statistics.mean(outs) if known else None,
        "out_std": statistics.stdev(outs) if known else None,
        "first_expected": requests_until_first(sweep.shards, hits) if random else None,
        "out_expected": requests_until_all(sweep.shards, hits) if random else None,
        "trainings": statistics.mean(each.trainings for each in trials),
        "trainings_std": statistics.stdev(each.trainings for each in trials),
        "refused": statistics.mean(refused),
        "refused_std": statistics.stdev(refused),
        "refused_most": max(max(each.refused) for each in trials),
        "against_sisa": statistics.mean(saved) if works else None,
        "against_sisa_std": statistics.stdev(saved) if works else None,
        "against_retraining": statistics.mean(each.retraining / each.gradients for each in trials) if works else None,
        "compared": sum(each.compared for each in trials),
        "wrong": sum(each.wrong for each in trials),
        "changed": sum(each.changed for each in trials),
        "accuracy": statistics.mean(each.accuracy for each in trials),
    }


_CONSTANTS = ("hidden", "shards", "slices", "epochs", "step_size", "gamma", "requests", "trials", "seed")


def _box_cost(sweep: Service, task: Task) -> float:
    """Return the time of a stage with boxes divided by that without boxes; each time is the shortest of three."""
    settings = ensemble_of(sweep, task, sweep.budgets[-1])
    members = slice(0, max(1, len(task) // sweep.shards))
    batch = Batch(task.rows[members], task.labels[members])
    start = initial_parameters(settings.network, torch.Generator().manual_seed(sweep.seed))
    budgets = settings.sharding.budgets

    def with_boxes() -> None:
        train(settings.network, settings.descent, start, [batch] * sweep.epochs, k=budgets)

    def without() -> None:
        state = State(start)
        for _ in range(sweep.epochs):
            found = directions(settings.network, settings.descent, state.parameters, batch.rows[None], batch.labels)
            state.follow(settings.descent, found)

    return min(_seconds(with_boxes) for _ in range(3)) / min(_seconds(without) for _ in range(3))


def _seconds(run: Callable[[], None]) -> float:
    # The time is that of the processor, which other programs may keep busy.
    begun = time.process_time()
    run()
    return time.process_time() - begun
