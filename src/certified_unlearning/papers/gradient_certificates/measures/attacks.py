"""Measures of membership inference against certified predictions, and of the noise of line 16 of Algorithm 1."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import torch
from torch import Tensor

from certified_unlearning.engine.abstract_training.descent import Descent, Parameters, State, directions, logits
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.abstract_training.training import Batch, Box, train
from certified_unlearning.engine.intervals.margins import certify
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.papers.gradient_certificates.learning import CHANGES, uniform_start
from certified_unlearning.papers.gradient_certificates.tasks import task_of
from certified_unlearning.reproduction.claims.registry import measure

Answers = Literal["certified", "uncertified"]
_SEED = 1
_RECORDS, _TARGETS, _UPDATES = 100, 60, 6
"""Overlapping blobs, all records in one batch; every one of the targets is left out in turn."""
_BOXED = 15
"""Targets for which boxes are trained again, which takes longer than networks."""
_DRAWS = 30
_SIGMA = 1.0
"""The noise multiplier of DP-SGD; the paper states none."""


@dataclass(frozen=True, eq=False)
class _Attacked:
    """A network with every target, and one without each; boxes for one record of each batch (privacy).

    Attributes:
        network: 6-8-2.
        descent: How all were trained.
        start: The start of the attack.
        batch: The records; targets are the first of them.
        with_all: Parameters, one run.
        without: Parameters, a run for each target that is left out.
        box: Around the first, for one removal and one addition.
        queries: What the adversary asks for: records that nobody learned from.
    """

    network: Network
    descent: Descent
    start: Parameters
    batch: Batch
    with_all: Parameters
    without: Parameters
    box: Box
    queries: Tensor


@measure
def advantage_of_full_knowledge(*, answers: Answers) -> float:
    """Return the advantage of an adversary that knows all records but whether a target is one, start and batches.

    It trains both networks itself and compares labels with the answers that it sees: it is right if any differs, and
    guesses otherwise. No adversary has more. Networks have no noise, so that its true-positive rate less its
    false-positive rate is the share of targets for which an answer differs.
    """
    attacked = _attacked()
    sure = certify(attacked.network, attacked.box, attacked.queries[None]).certified[0]
    seen = attacked.queries[sure if answers == "certified" else ~sure]
    return float((_labels(attacked, seen) != _labels(attacked, seen, without=False)).any(dim=1).double().mean())


@measure
def advantage_by_right_labels(*, answers: Answers) -> float:
    """Return the advantage of guessing that a target was learned if its own label is predicted (Yeom et al. 2018).

    Over the targets whose own prediction is certified, or over those whose is not: the share of right labels of the
    network with the target, less that of the networks without it.
    """
    attacked = _attacked()
    rows, labels = attacked.batch.rows[:_TARGETS], attacked.batch.labels[:_TARGETS]
    sure = certify(attacked.network, attacked.box, rows[None]).certified[0]
    asked = sure if answers == "certified" else ~sure
    learned = _labels(attacked, rows, without=False)[0] == labels
    left_out = _labels(attacked, rows).diagonal() == labels
    return float((learned.double() - left_out.double())[asked].mean())


@measure
def advantage_by_status() -> float:
    """Return the advantage of an adversary that knows all else, and sees nothing but which queries are certified."""
    attacked = _attacked()
    whole = certify(attacked.network, attacked.box, attacked.queries[None]).certified[0]
    differ = 0
    for target in range(_BOXED):
        left = torch.arange(len(attacked.batch.rows)) != target
        box = _boxes(attacked, Batch(attacked.batch.rows[left], attacked.batch.labels[left]))
        differ += not torch.equal(certify(attacked.network, box, attacked.queries[None]).certified[0], whole)
    return differ / _BOXED


@measure
def noisy_parameters_outside(*, noise_on: Literal["mean", "sum"]) -> float:
    """Return the share of draws in which noisy parameters leave the box of the noise-free ones.

    Noise has the deviation of clipping level times multiplier, on the mean of a batch as line 16 prints it, or on its
    sum as DP-SGD has it.
    """
    attacked = _attacked()
    scale = _SIGMA * float(attacked.descent.bound or 0)
    if noise_on == "sum":
        scale /= len(attacked.batch.rows)
    return sum(not _passes(attacked, _noise(attacked, scale, draw)) for draw in range(_DRAWS)) / _DRAWS


@measure
def unsafe_after_the_check(*, noise: Literal["own", "shared"]) -> float:
    """Return in how many draws noisy parameters pass the check and those of a neighbour, with the same noise, do not.

    The neighbours lack one target each. ``own``: the box is that of training without noise, as Algorithm 1 has it, and
    noise is so small that half of the draws pass. ``shared``: the noise moves the box, too.
    """
    attacked, found = _attacked(), 0
    for draw in range(_DRAWS):
        drawn = _noise(attacked, _scale_of_half(), draw)
        box = attacked.box if noise == "own" else _boxes(attacked, attacked.batch, drawn)
        if noise == "shared" or _passes(attacked, drawn):
            found += not bool(_inside(box, _retrained(attacked, drawn)).all())
    return found


@measure
def labels_changed_after_the_check() -> float:
    """Return in how many draws noisy parameters pass the check and a neighbour's give a certified query another label.

    Noise is that of ``own`` in `unsafe_after_the_check`.
    """
    attacked, found = _attacked(), 0
    sure = certify(attacked.network, attacked.box, attacked.queries[None]).certified[0]
    certified, asked = _labels(attacked, attacked.queries[sure], without=False), attacked.queries[None, sure]
    for draw in range(_DRAWS):
        drawn = _noise(attacked, _scale_of_half(), draw)
        if _passes(attacked, drawn):
            labels = logits(attacked.network, _retrained(attacked, drawn), asked).argmax(dim=-1)
            found += bool((labels != certified).any())
    return found


@cache
def _attacked() -> _Attacked:
    task = task_of("near", seed=_SEED)
    network = Network.dense(task.features, 8, 2)
    descent = Descent(step_size=2.0, decay=0.1, clipping="clamp", bound=0.1)
    start = uniform_start(network, torch.Generator().manual_seed(_SEED))
    batch = Batch(task.rows[:_RECORDS], task.labels[:_RECORDS])
    known = _Attacked(network, descent, start, batch, start, start, (), task.test_rows)
    return replace(
        known, with_all=_retrained(known, without=False), without=_retrained(known), box=_boxes(known, batch)
    )


def _boxes(attacked: _Attacked, batch: Batch, noise: list[Parameters] | None = None) -> Box:
    return train(
        attacked.network,
        attacked.descent,
        attacked.start,
        [batch] * _UPDATES,
        k=[1],
        neighbourhood=Neighbourhood(CHANGES["privacy"]),
        noise=noise,
    ).box


def _retrained(attacked: _Attacked, noise: list[Parameters] | None = None, *, without: bool = True) -> Parameters:
    """Return parameters trained without each target, a run for each; or with all records, one run."""
    runs = _TARGETS if without else 1
    present = torch.ones(runs, len(attacked.batch.rows), dtype=torch.bool)
    if without:
        present[torch.arange(runs), torch.arange(runs)] = False
    state = State(tuple(each.expand(runs, *each.shape[1:]) for each in attacked.start))
    rows, labels = attacked.batch.rows[None], attacked.batch.labels
    for update in range(_UPDATES):
        found = directions(attacked.network, attacked.descent, state.parameters, rows, labels, present=present)
        if noise is not None:
            found = tuple(each + more for each, more in zip(found, noise[update], strict=True))
        state.follow(attacked.descent, found)
    return state.parameters


def _labels(attacked: _Attacked, rows: Tensor, *, without: bool = True) -> Tensor:
    """Return the labels by the networks that were each trained without one target, or by the one trained with all."""
    parameters = attacked.without if without else attacked.with_all
    return logits(attacked.network, parameters, rows[None]).argmax(dim=-1)


def _noise(attacked: _Attacked, scale: float, draw: int) -> list[Parameters]:
    generator = torch.Generator().manual_seed(1000 + draw)
    return [
        tuple(
            scale * torch.randn(1, *shape, generator=generator, dtype=torch.float64)
            for shape in attacked.network.shapes
        )
        for _ in range(_UPDATES)
    ]


def _passes(attacked: _Attacked, noise: list[Parameters]) -> bool:
    """Return whether noisy parameters lie in the box of the noise-free ones: the check that Section 4.4.2 proposes."""
    return bool(_inside(attacked.box, _retrained(attacked, noise, without=False)).all())


@cache
def _scale_of_half() -> float:
    """Return a deviation of noise with which about half of the draws pass the check, by bisection."""
    attacked, low, high = _attacked(), 0.0, float(_attacked().descent.bound or 0)
    for _ in range(8):
        middle = (low + high) / 2
        passed = sum(_passes(attacked, _noise(attacked, middle, draw)) for draw in range(10))
        low, high = (middle, high) if passed > 5 else (low, middle)
    return low


def _inside(box: Box, parameters: Parameters) -> Tensor:
    """Return for each run whether all its parameters lie in the box."""
    return torch.stack(
        [side.holds(each).flatten(1).all(dim=1) for side, each in zip(box, parameters, strict=True)]
    ).all(dim=0)
