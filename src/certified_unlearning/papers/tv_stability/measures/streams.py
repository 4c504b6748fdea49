"""Measures of streams of insertions and deletions on noisy prefix sums: distributions, places, accuracy, recomputation.

Weak unlearning keeps the order of arrival, except that the last record takes a deleted record's place (Theorem 30).
Exact unlearning keeps the records in a uniformly random order, and gives a new record a uniformly random place, which
may be the end (Theorem 52).
"""

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from certified_unlearning.accounting.tv.tree import Budget, height_sigmas
from certified_unlearning.accounting.tv.tree import heights as count_heights
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.prefix_tree import PrefixTree
from certified_unlearning.papers.tv_stability.measures.simulated import MeanFollower, standard_errors
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

Order = Literal["arrival", "random"]
_POINTS = torch.tensor([0.2, -0.7, 1.5, 0.9, -1.8, 1.1, 0.4, -0.3, 0.8], dtype=torch.float64)
_LEARNED = 5
_STREAM = (("insert", 5), ("delete", 1), ("insert", 6), ("delete", 2), ("insert", 7), ("delete", 5), ("insert", 8))
"""The edits and their records."""
_SENSITIVITY = 3.3
"""The largest change of a sum if one record is replaced: the largest difference between two points."""
_RHO, _BUDGET = 0.6, "quadratic"
_LITTLE_NOISE = 6.0
"""The value of ``rho`` in comparisons of distributions; more noise would hide the differences."""
_TRIALS = 20_000


@measure
def weak_stream() -> list[Quantity]:
    """Return the differences in the last model's mean and variance between a stream and a fresh run.

    The differences are measured after each edit, in standard errors. The fresh run has the records in the order of
    arrival, except that the last record takes a deleted record's place.
    """
    found = []
    for number, (records, tree) in enumerate(_states("arrival"), start=1):
        mean, variance = _moments(records)
        last = tree.models[:, tree.size + 1, 0]
        found += [
            Quantity(standard_errors(last, mean), f"edit {number}, mean"),
            Quantity(standard_errors((last - mean) ** 2, variance), f"edit {number}, variance"),
        ]
    return found


@measure
def exact_stream() -> list[Quantity]:
    """Return the differences in the last model's mean and in the last record between a stream and a fresh run.

    The differences are in standard errors. The mean is compared after each edit. The share of trials in which a new
    record is the last record is compared after each insertion.
    """
    found = []
    for number, (records, tree) in enumerate(_states("random"), start=1):
        mean, _ = _moments([*records], points=_POINTS[records].mean().expand(len(_POINTS)))
        found.append(Quantity(standard_errors(tree.models[:, tree.size + 1, 0], mean), f"edit {number}, mean"))
        kind, record = _STREAM[number - 1]
        if kind == "insert":
            last = (tree.order[:, tree.size] == record).double()
            found.append(Quantity(standard_errors(last, 1 / tree.size), f"edit {number}, place"))
    return found


@sweep("{order}")
def stream_accuracy(*, order: Order) -> float:
    """Return the last model's squared distance from the records' mean minus a fresh run's squared distance.

    The difference is measured after the stream, in its standard errors. The squared distance is twice the excess risk
    of a squared loss.
    """
    *_, (records, tree) = _states(order)
    draws = Draws.at("tv_stability", "fresh", order)
    names = torch.tensor(records)
    orders = names.repeat(_TRIALS, 1) if order == "arrival" else draws.orders(names, _TRIALS)
    fresh, _ = PrefixTree.learn(MeanFollower(_POINTS), _sigmas(_LITTLE_NOISE), orders, draws)
    best = _POINTS[records].mean()
    here, there = ((each.models[:, each.size + 1, 0] - best).square() for each in (tree, fresh))
    spread = math.sqrt(float(here.var() / len(here) + there.var() / len(there)))
    return float(here.mean() - there.mean()) / spread


@sweep("{order}")
def stream_recomputations(*, order: Order) -> Quantity:
    """Return the number of recomputations, divided by ``rho`` times the number of edits.

    The quotient's uncertainty is three standard errors.

    If ``order`` is ``arrival``, insertions do not count as edits, because they never cause a recomputation. If an
    insertion caused a recomputation, the recomputation would count.
    """
    again = _run(order)[1]
    counted = [number for number, (kind, _) in enumerate(_STREAM) if order == "random" or kind == "delete"]
    total = again.sum(dim=1).double() / (_RHO * len(counted))
    return Quantity(float(total.mean()), "", 3 * float(total.std()) / math.sqrt(len(total)))


def _states(order: Order) -> Iterator[tuple[list[int], PrefixTree]]:
    """Yield a pair after each edit: the records in the order of Theorem 30, and the state.

    Every yielded state is the same tree object, and the next step edits it.
    """
    records, tree = list(range(_LEARNED)), _learned(order, _LITTLE_NOISE)
    draws = Draws.at("tv_stability", "stream", order)
    for kind, record in _STREAM:
        _edit(tree, kind, record, order, draws)
        if kind == "insert":
            records.append(record)
        else:
            place, last = records.index(record), records.pop()
            if place < len(records):
                records[place] = last
        yield list(records), tree


def _run(order: Order) -> tuple[PrefixTree, Tensor]:
    """Return the state after the stream, and whether each edit caused a recomputation in each trial."""
    tree, draws = _learned(order, _RHO), Draws.at("tv_stability", "stream", order)
    return tree, torch.stack([_edit(tree, kind, record, order, draws) for kind, record in _STREAM], dim=1)


def _learned(order: Order, rho: float) -> PrefixTree:
    draws, names = Draws.at("tv_stability", "stream learned", order), torch.arange(_LEARNED)
    orders = names.repeat(_TRIALS, 1) if order == "arrival" else draws.orders(names, _TRIALS)
    return PrefixTree.learn(MeanFollower(_POINTS), _sigmas(rho), orders, draws)[0]


def _edit(tree: PrefixTree, kind: str, record: int, order: Order, draws: Draws) -> Tensor:
    """Edit a state, and return the trials in which it was recomputed."""
    if kind == "delete":
        return tree.delete(record, draws).rejections
    places = torch.full((_TRIALS,), tree.size + 1) if order == "arrival" else draws.integers(tree.size + 1, _TRIALS) + 1
    return tree.insert(record, places, draws).rejections


def _sigmas(rho: float) -> Tensor:
    """Return the noise of each height of the tree, for streams of any length."""
    budget: Budget = _BUDGET  # type: ignore[assignment]
    count = count_heights(len(_POINTS))
    return torch.tensor(height_sigmas(budget, rho=rho, sensitivity=_SENSITIVITY, count=count), dtype=torch.float64)


def _moments(records: list[int], *, points: Tensor = _POINTS) -> tuple[float, float]:
    """Return the exact mean and variance of the last model of a run on records in this order.

    Models are linear in the nodes' noise, so the contribution of each node is computed.
    """
    size, sigmas = len(records), _sigmas(_LITTLE_NOISE).numpy()
    model, summed = 0.0, 0.0
    noises, of_sum = np.zeros(size + 1), np.zeros(size + 1)
    for position, record in enumerate(records, start=1):
        summed += model - float(points[record])
        of_sum = of_sum + noises
        read = np.zeros(size + 1)
        node = position
        while node:
            read[node] = 1.0
            node &= node - 1
        model, noises = -MeanFollower.RATE * summed, -MeanFollower.RATE * (of_sum + read)
    deviations = np.array([0.0, *(sigmas[(node & -node).bit_length() - 1] for node in range(1, size + 1))])
    return model, float(((noises * deviations) ** 2).sum())
