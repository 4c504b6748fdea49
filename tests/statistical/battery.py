"""A battery of functionals of models and states, for every mechanism of exact unlearning that runs many trials at once.

Seven records in the plane; three ways of coming to the same five of them, so that one set of retrainings serves all.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import GivenRecords, LinearRecords
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.lean_subsample_gd import LeanSubsampleDescent
from certified_unlearning.mechanisms.exact.means import NoisyMean, SubsampledMean
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.exact.one_pass.dual_averaging import DualAveraging, DualAveragingSettings
from certified_unlearning.mechanisms.exact.one_pass.frank_wolfe import FrankWolfe, FrankWolfeSettings
from certified_unlearning.mechanisms.exact.one_pass.prefix_sums import Order, PrefixSums, PrefixSumSettings
from certified_unlearning.mechanisms.exact.quantized_sgd import QuantizedSgd
from certified_unlearning.mechanisms.exact.queries.federated_averaging import (
    FederatedAveraging,
    FederatedAveragingSettings,
)
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries, LinearQuerySettings
from certified_unlearning.mechanisms.exact.queries.lloyd import Lloyd
from certified_unlearning.mechanisms.exact.sisa import Sisa
from certified_unlearning.mechanisms.exact.subsample_gd import SubsampleDescent, SubsampleGd

RUNS = 50_000
"""Edited runs, and as many retrainings: of every comparison that must agree, and of every fault that must be caught."""
MANY_RUNS = 400_000
"""Of each, where a comparison that must agree is repeated with more."""
FALSE_ALARMS = 1e-6
"""How likely a correct program fails somewhere, all comparisons of so many runs together."""
COMPARISONS = 600
"""At least as many distances as are looked at with so many runs."""

Edit = tuple[str, int]
LEFT = [0, 1, 5, 3, 6]
"""The records after the edits of every scenario, in the order in which weak unlearning then has them."""
SCENARIOS: dict[str, tuple[list[int], list[Edit]]] = {
    "an insertion": ([0, 1, 5, 3], [("insert", 6)]),
    "a deletion": ([0, 1, 2, 3, 6, 5], [("delete", 2)]),
    "three requests": ([0, 1, 2, 3, 4, 5], [("delete", 2), ("delete", 4), ("insert", 6)]),
}
"""Who is there at first, and what is asked for."""

POINTS = torch.tensor(
    [[0.2, -0.4], [-0.7, 0.3], [1.9, 1.2], [0.6, 0.9], [-1.5, -1.1], [0.1, -1.3], [1.0, -0.8]], dtype=torch.float64
)
MEANS = GivenRecords(lambda w, z: w[:, None, :] - z, POINTS, dimension=2)
"""Losses ``|w - z|^2 / 2``."""
LABELS = torch.tensor([1, -1, 1, 1, -1, -1, 1])


@dataclass(frozen=True)
class Mechanism:
    """How a mechanism's many runs are learned, edited and looked at.

    Attributes:
        learn: Of records in an order, and how many runs.
        edit: Of a state, ``insert`` or ``delete``, and a record; changes the state.
        functionals: Of a state: numbers of every run.
    """

    learn: Callable[[list[int], int, Draws], Any]
    edit: Callable[[Any, str, int, Draws], Any]
    functionals: Callable[[Any], dict[str, Tensor]]

    def edited(self, scenario: str, runs: int) -> Any:
        """Learn, then serve the requests of a scenario."""
        first, edits = SCENARIOS[scenario]
        state = self.learn(first, runs, Draws.at("battery", scenario, "learned"))
        for number, (kind, record) in enumerate(edits):
            self.edit(state, kind, record, Draws.at("battery", scenario, number))
        return state

    def afresh(self, runs: int, order: list[int] = LEFT) -> dict[str, Tensor]:
        """Return the functionals of runs that learned what is left."""
        return self.functionals(self.learn(order, runs, Draws.at("battery", "afresh", *order)))


def critical(runs: int) -> float:
    """A distance that two samples of one law exceed with probability `FALSE_ALARMS` over `COMPARISONS` at most.

    The two-sample inequality of Wei and Dudley (2012, from 458 a sample on): P(D > x) <= 2 exp(-runs x^2).
    """
    return math.sqrt(math.log(2 * COMPARISONS / FALSE_ALARMS) / runs)


def distances(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> dict[str, float]:
    """Return the Kolmogorov-Smirnov distance of each functional between as many runs of one and of the other.

    Numbers are rounded to 9 decimals: one that is updated and one that is computed anew differ in their last bits.
    """
    found = {}
    for name, values in ours.items():
        runs = len(values)
        assert len(theirs[name]) == runs
        both = torch.cat([values, theirs[name]]).round(decimals=9)
        ascending, order = both.sort()
        steps = torch.where(order < runs, 1, -1).cumsum(0)
        last = torch.ones_like(order, dtype=torch.bool)
        last[:-1] = ascending[1:] != ascending[:-1]
        found[name] = float(steps[last].abs().max()) / runs
    return found


def of_parts(
    drawn: Tensor, means: Tensor, models: Tensor, published: Tensor, marks: Tensor | None = None
) -> dict[str, Tensor]:
    """Return functionals of noise, of what it is added to, of models, of who is where, and of what binds them together.

    Args:
        drawn: Noisy values, shape ``(runs, T, q)``.
        means: What they are noisy values of, of the same shape.
        models: Shape ``(runs, T + 1, d)``.
        published: Shape ``(runs, d)``.
        marks: Shape ``(runs, T)``: sums of random weights of who is used when; None where all are, always.
    """
    draws = Draws(7)
    _, steps, width = drawn.shape
    errors = drawn - means
    weights = draws.normal(steps, width)
    found = {
        "model": published[:, 0],
        "model, at random": published @ draws.normal(published.shape[1]),
        "longest iterate": torch.linalg.vector_norm(models, dim=2).amax(dim=1),
        "second iterate": models[:, 1, 0],
        "squares of noise": errors.square().sum(dim=(1, 2)),
        "noise along means": (errors * means).sum(dim=(1, 2)),
        "first noise": errors[:, 0, 0],
        "noise, at random": (errors * weights).sum(dim=(1, 2)),
        "values, at random": (drawn * weights).sum(dim=(1, 2)) + means[:, 1, -1],
        "noise with later models": (errors.sum(dim=2) * models[:, 1:].sum(dim=2)).sum(dim=1),
        "means with models": (means.sum(dim=2) * models[:, :-1].sum(dim=2)).sum(dim=1),
    }
    if marks is not None:
        found |= {
            "who is where": marks.sum(dim=1),
            "who, with noise": (marks * errors.sum(dim=2)).sum(dim=1),
            "who, with the model": marks.sum(dim=1) * published.sum(dim=1),
        }
    return {name: values for name, values in found.items() if bool((values != values[0]).any())}


def _marks(numbers: int, records: int) -> Tensor:
    return Draws(11).normal(numbers, records)


def descent(own: Any) -> Mechanism:
    """Return mini-batch descent that keeps its trajectory."""

    def functionals(state: Any) -> dict[str, Tensor]:
        steps = state.batches.shape[1]
        of_records = _marks(steps, len(POINTS))
        marks = of_records[torch.arange(steps)[:, None], state.batches].sum(dim=2)
        directions = state.settings.directions(state.gradients, state.randomness)
        newest = (state.batches == LEFT[-1]).sum(dim=(1, 2)).double()
        found = of_parts(directions, state.gradients, state.weights, state.model(), marks)
        twice = (state.batches.sort(dim=2).values.diff(dim=2) == 0).sum(dim=(1, 2)).double()
        return {**found, "uses of the newest record": newest, "members that stand twice": twice}

    def learn(records: list[int], runs: int, draws: Draws) -> Any:
        return own.learn(torch.tensor(records), draws, trials=runs)

    return Mechanism(learn, lambda state, kind, record, draws: getattr(own, kind)(state, record, draws), functionals)


def lean(own: LeanSubsampleDescent) -> Mechanism:
    """Return plain descent that keeps batches and models."""

    def functionals(state: Any) -> dict[str, Tensor]:
        steps = state.batches.shape[1]
        marks = _marks(steps, len(POINTS))[torch.arange(steps)[:, None], state.batches].sum(dim=2)
        return {
            "model": state.weights[:, 0],
            "model, other coordinate": state.weights[:, 1],
            "who is where": marks.sum(dim=1),
            "who was first": marks[:, 0],
            "who, with the model": marks.sum(dim=1) * state.weights.sum(dim=1),
        }

    def learn(records: list[int], runs: int, draws: Draws) -> Any:
        return own.learn(torch.tensor(records), draws, trials=runs)

    return Mechanism(learn, lambda state, kind, record, draws: getattr(own, kind)(state, record, draws), functionals)


def prefix_sums(own: PrefixSums) -> Mechanism:
    """Return prefix sums on a tree."""

    def functionals(state: Any) -> dict[str, Tensor]:
        size = state.size
        present = slice(1, size + 1)
        marks = _marks(size, len(POINTS))[torch.arange(size), state.order[:, present]]
        models, noisy = state.models[:, 1 : size + 2], state.noisy[:, present]
        found = of_parts(noisy, state.sums[:, present], models, own.model(state), marks)
        increments = state.increments[:, present]
        last = marks[:, -1] * noisy[:, -1, 0] + noisy[:, 3, 0] * models[:, -1, 0]
        newest = (state.order[:, present] == LEFT[-1]).int().argmax(dim=1).double()
        found |= {"increments with models": (increments * models[:, 1:]).sum(dim=(1, 2)), "the last record": last}
        return found if own.settings.order == "arrival" else {**found, "where the newest record is": newest}

    def learn(records: list[int], runs: int, draws: Draws) -> Any:
        return own.learn(torch.tensor(records), runs, draws)[0]

    return Mechanism(learn, lambda state, kind, record, draws: getattr(own, kind)(state, record, draws), functionals)


def queries(own: LinearQueries) -> Mechanism:
    """Return linear queries."""

    def learn(records: list[int], runs: int, draws: Draws) -> Any:
        return own.learn(torch.tensor(records), runs, draws)[0]

    return Mechanism(
        learn,
        lambda state, kind, record, draws: getattr(own, kind)(state, record, draws),
        lambda state: of_parts(state.noisy, state.sums, state.models, own.model(state)),
    )


def sisa(own: Sisa) -> Mechanism:
    """Return shards and slices."""

    def functionals(state: Any) -> dict[str, Tensor]:
        places = state.places[:, state.alive.argsort()].double()
        return {
            "model": state.model[:, 0],
            "model, other coordinate": state.model[:, 1],
            "first checkpoint": state.checkpoints[:, 0, 1, 0],
            "all checkpoints": state.checkpoints.square().sum(dim=(1, 2, 3)),
            "places": places @ Draws(3).normal(places.shape[1]),
            "places with the model": (places * state.checkpoints[:, :, -1].sum(dim=(1, 2))[:, None]).sum(dim=1),
        }

    def learn(records: list[int], runs: int, draws: Draws) -> Any:
        return own.learn(MEANS, torch.tensor(records), draws, trials=runs)

    return Mechanism(learn, lambda state, kind, record, draws: getattr(state, kind)(record, draws), functionals)


def stable_mean(own: Any) -> Mechanism:
    """Return a stable mean."""

    def functionals(state: Any) -> dict[str, Tensor]:
        marks = _marks(1, len(POINTS))[0][state.members].sum(dim=1)
        found = {
            "value": state.values[:, 0],
            "value, at random": state.values @ Draws(3).normal(2),
            "squares of noise": (state.values - state.mean).square().sum(dim=1),
            "noise along the mean": (state.values - state.mean) @ state.mean,
        }
        return found | {"who": marks, "who, with the value": marks * state.values.sum(dim=1)}

    def learn(records: list[int], runs: int, draws: Draws) -> Any:
        return own.learn(torch.tensor(records), draws, trials=runs)

    return Mechanism(learn, lambda state, kind, record, draws: getattr(own, kind)(state, record, draws), functionals)


def tree_settings(order: Order = "random") -> PrefixSumSettings:
    return PrefixSumSettings.equal(0.9, most_records=7, order=order)


def hinges() -> DualAveraging:
    """Return dual averaging of the hinge loss, which is not smooth, in a ball."""
    records = LinearRecords(POINTS, LABELS, loss="hinge")
    return DualAveraging(records, DualAveragingSettings(step_size=0.5, radius=1.2))


def anytime(order: Order = "random") -> PrefixSums:
    """Return Frank-Wolfe with the noise of a stream whose size is not known: less and less of it, the lower a node."""
    settings = PrefixSumSettings.anytime("quadratic", rho=4.0, sensitivity=3.0, most_records=7, order=order)
    return PrefixSums(FrankWolfe(MEANS, FrankWolfeSettings(1.5)), settings)


def clients() -> FederatedAveraging:
    """Return clients each of which moves the model half the way to its point, by 1 at most."""

    def train(models: Tensor, names: Tensor) -> Tensor:
        return (models[:, None] + POINTS[names]) / 2

    return FederatedAveraging(train, torch.zeros(2).double(), FederatedAveragingSettings(clip=0.7, nominal_clients=5))


CONSTANTS: dict[str, Any] = {"steps": 3, "batch_size": 2, "step_size": 0.6, "radius": 0.8}
NOISY = NoisySgd(**CONSTANTS, sigma=0.6)
ACCELERATED = NoisySgd(**CONSTANTS, sigma=0.6, accelerated=True)
QUANTIZED = QuantizedSgd(**CONSTANTS, quantum=1.5)
PLAIN = SubsampleGd(**CONSTANTS)
CENTRES = torch.tensor([[0.5, 0.5], [-0.5, -0.5]], dtype=torch.float64)

MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    "sub-sample-GD": lambda: descent(SubsampleDescent(PLAIN, MEANS)),
    "lean sub-sample-GD": lambda: lean(LeanSubsampleDescent(PLAIN, MEANS)),
    "noisy SGD": lambda: descent(ExactDescent(NOISY, MEANS)),
    "accelerated noisy SGD": lambda: descent(ExactDescent(ACCELERATED, MEANS)),
    "quantized SGD": lambda: descent(ExactDescent(QUANTIZED, MEANS)),
    "federated averaging": lambda: queries(LinearQueries(clients(), LinearQuerySettings(steps=3, sigma=0.9))),
    "Lloyd": lambda: queries(LinearQueries(Lloyd(POINTS, CENTRES, row_norm=2.3), LinearQuerySettings(2, 1.2))),
    "dual averaging": lambda: prefix_sums(PrefixSums(hinges(), tree_settings())),
    "Frank-Wolfe, anytime": lambda: prefix_sums(anytime()),
    "dual averaging, weak": lambda: prefix_sums(PrefixSums(hinges(), tree_settings("arrival"))),
    "Frank-Wolfe, anytime, weak": lambda: prefix_sums(anytime("arrival")),
    "sub-sampled mean": lambda: stable_mean(SubsampledMean(POINTS, 2)),
    "noisy mean": lambda: stable_mean(NoisyMean(POINTS, 0.4)),
    "SISA": lambda: sisa(Sisa(shards=2, slices=2, steps=3, batch_size=2, step_size=0.4)),
}
