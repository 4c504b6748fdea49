"""Measures of membership inference against certified predictions, and measures of the noise in Algorithm 1, line 16."""

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
"""The numbers of records, targets and updates; the records are overlapping blobs in one batch."""
_BOXED = 15
"""The number of targets for which boxes are trained again, which takes longer than training networks."""
_DRAWS = 30
_SIGMA = 1.0
"""The noise multiplier of DP-SGD; the paper does not state it."""


@dataclass(frozen=True, eq=False)
class _Attacked:
    """A network trained with all targets, networks trained without one target each, and the first network's box.

    Attributes:
        network: The architecture, 6-8-2.
        descent: The training of all networks.
        start: The initial parameters of all networks.
        batch: The records; the targets are the first of them.
        with_all: The parameters of the network that learned from all targets, in one run.
        without: The parameters of the networks that were each trained without one target; there is one such network for
            each target.
        box: The box around the network that learned from all targets. The box is for privacy, that is, for up to one
            removal and up to one addition.
        queries: The adversary's queries: records that no network learned.
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
    """Return the advantage of an adversary that knows the start, the batches and all records except one.

    The adversary does not know whether a target is a record. The adversary trains a network with the target and a
    network without it, and compares their labels with the observed answers. If any label differs, the adversary is
    right; otherwise, it guesses. No other adversary has a larger advantage. Because the networks have no noise, the
    true-positive rate minus the false-positive rate is the share of targets for which an answer differs.
    """
    attacked = _attacked()
    sure = certify(attacked.network, attacked.box, attacked.queries[None]).certified[0]
    seen = attacked.queries[sure if answers == "certified" else ~sure]
    return float((_labels(attacked, seen) != _labels(attacked, seen, without=False)).any(dim=1).double().mean())


@measure
def advantage_by_right_labels(*, answers: Answers) -> float:
    """Return the advantage of guessing "learned" for each target whose predicted label is right (Yeom et al. 2018).

    The advantage is measured on the targets whose own prediction is certified, or on the other targets. Each of these
    targets gets two labels: one from the network trained with all targets, the other from the network trained without
    this target. The advantage is the share of right labels among the first labels minus the share of right labels among
    the second labels.
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
    """Return the advantage of an adversary with full knowledge that sees only which queries are certified."""
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
    """Return the share of draws in which noisy parameters leave the box of training without noise.

    The noise is added to the mean of a batch, as line 16 prints it, or to the sum of a batch, as in DP-SGD. Its
    standard deviation is the clipping level times the multiplier.
    """
    attacked = _attacked()
    scale = _SIGMA * float(attacked.descent.bound or 0)
    if noise_on == "sum":
        scale /= len(attacked.batch.rows)
    return sum(not _passes(attacked, _noise(attacked, scale, draw)) for draw in range(_DRAWS)) / _DRAWS


@measure
def unsafe_after_the_check(*, noise: Literal["own", "shared"]) -> float:
    """Return the number of draws in which noisy parameters pass the check but a neighbour's parameters do not.

    Each neighbour lacks one target and has the same noise. With ``own``, the box is that of training without noise, as
    in Algorithm 1, and the noise is so small that half of the draws pass. With ``shared``, the noise moves the box,
    too.
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
    """Return the number of draws that pass the check and in which a neighbour gives a certified query another label.

    The noise is that of ``own`` in `unsafe_after_the_check`.
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
    """Return the parameters of trained networks.

    If ``without``, there is one network for each target, and it is trained without this target. Otherwise, there is
    only one network, which is trained with all records.
    """
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
    """Return the labels that trained networks give to rows.

    If ``without``, the labels come from the networks that were each trained without one target. Otherwise, the labels
    come from the network that was trained with all targets.
    """
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
    """Return whether noisy parameters pass the check of Section 4.4.2.

    The noisy parameters must be in the box that results from training without noise.
    """
    return bool(_inside(attacked.box, _retrained(attacked, noise, without=False)).all())


@cache
def _scale_of_half() -> float:
    """Return, by bisection, a standard deviation of the noise with which about half of the draws pass the check."""
    attacked, low, high = _attacked(), 0.0, float(_attacked().descent.bound or 0)
    for _ in range(8):
        middle = (low + high) / 2
        passed = sum(_passes(attacked, _noise(attacked, middle, draw)) for draw in range(10))
        low, high = (middle, high) if passed > 5 else (low, middle)
    return low


def _inside(box: Box, parameters: Parameters) -> Tensor:
    """Return, for each run, whether all its parameters are in the box."""
    return torch.stack(
        [side.holds(each).flatten(1).all(dim=1) for side, each in zip(box, parameters, strict=True)]
    ).all(dim=0)
