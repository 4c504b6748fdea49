"""Cases of descent: objectives, mini-batches, measures and noise."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from certified_unlearning.engine import descent, quality, randomness
from certified_unlearning.engine.checkpoint import Checkpoint
from certified_unlearning.engine.minibatch import CyclicObjective
from certified_unlearning.engine.objectives import logistic, softmax
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.engine.objectives.quadratic import QuadraticObjective
from certified_unlearning.engine.objectives.rows import Replacements, StreamedRows
from certified_unlearning.engine.objectives.sharded import ShardedCycle, ShardedObjective
from certified_unlearning.engine.objectives.softmax import SoftmaxObjective
from certified_unlearning.engine.objectives.squared import SquaredObjective
from certified_unlearning.engine.phase import DescentPhase
from tests.engine.cuda.case import BLOCK_STEPS, Case, moved, normal, short_rows, whole

N, FEATURES, TRIALS, CLASSES = 40, 3, 3, 4
RARE = "engine.randomness:_radius"
"""It looks for numbers so rare, and so far out, that they are drawn with more bits: once for all noise that is drawn
together, as many blocks of steps as there is room for."""
READING = "engine.objectives.rows:StreamedRows.__getitem__"
"""Rows that lie on a disk come to the GPU block by block."""


class Source:
    """Rows that lie somewhere else."""

    def __init__(self, rows: Tensor) -> None:
        self._rows, self.shape = rows.numpy().astype(np.float32), tuple(rows.shape)

    def read_into(self, out: np.ndarray, start: int) -> None:
        out[:] = self._rows[start : start + len(out)]


def labels_of(classes: int) -> Tensor:
    numbers = whole(classes, N, seed=1)
    return 2.0 * numbers - 1 if classes == 2 else numbers


def objective(
    kind: str, device: torch.device, dtype: torch.dtype, *, streamed: bool = False, weighted: bool = False
) -> tuple[Any, int]:
    """Return an objective with three removals, and its number of weights."""
    rows, classes = short_rows(N, FEATURES, dtype=dtype), CLASSES if "softmax" in kind else 2
    weights = {"class_weights": [0.5, 1.0, 0.25, 1.0][:classes]} if weighted else {}
    new_rows = torch.zeros(3, FEATURES, dtype=dtype)
    labels = labels_of(classes)
    indices, new_rows, new_labels = moved(device, torch.tensor([4, 39, 17]), new_rows, labels[:3])
    if "cyclic" in kind and classes == 2:
        rows = -labels[:, None].to(dtype) * rows
    (labels,) = moved(device, labels)
    source = StreamedRows(Source(rows), dtype=dtype, device=device) if streamed else moved(device, rows)[0]
    replacements: Replacements = (indices, new_rows, new_labels)
    d = FEATURES * (1 if classes == 2 else classes)
    few = {"strong_convexity": 0.1, "replacements": replacements}
    cyclic = {**few, "classes": classes, "batch_size": 7}
    at_once = {"rows_at_once": 16}
    if kind == "logistic":
        return LogisticObjective(source, labels, lipschitz=0.6, **few, **at_once, **weights), d
    if kind == "softmax":
        return SoftmaxObjective(source, labels, classes=classes, lipschitz=1.5, **few, **at_once, **weights), d
    if kind == "squared":
        return SquaredObjective(source, labels / 2, strong_convexity=0.1, replacements=replacements, **at_once), d
    if kind.startswith("cyclic"):
        return CyclicObjective(source, labels, **cyclic, **weights), d
    if kind.startswith("sharded cycle"):
        assert isinstance(source, Tensor)
        return ShardedCycle(source, labels, **cyclic), d
    loss = partial(LogisticObjective, strong_convexity=0.0, lipschitz=0.6)
    return ShardedObjective(source, labels, loss=lambda *given: loss(*given[:2], replacements=given[2]), d=d, **few), d


def descended(
    kind: str,
    dtype: torch.dtype,
    device: torch.device,
    rounds: int,
    *,
    steps: tuple[int, ...] = (BLOCK_STEPS, 3, BLOCK_STEPS),
    radius: float | None = 0.5,
    measured: bool = True,
    streamed: bool = False,
    weighted: bool = False,
) -> Any:
    """Learn for a block of steps and one more a round, publish, remove three records and go on."""
    made, d = objective(kind, device, dtype, streamed=streamed, weighted=weighted)
    longer = [each + BLOCK_STEPS * (rounds - 1) for each in steps]
    trials, keys, place = len(steps), list(range(1, len(steps) + 1)), 0 if "cycl" in kind else None
    learning = DescentPhase(
        0,
        longer,
        [0.3] * trials,
        keys,
        publication_sigma=[0.1] * trials,
        publication_keys=[each + 10 for each in (*keys, *keys)],
        measure_at=(2,) if measured else (),
        place=place,
    )
    unlearning = DescentPhase(3, longer, [0.3] * trials, [each + 50 for each in keys], place=place)
    tests, answers = moved(device, short_rows(20, FEATURES, seed=5, dtype=dtype), whole(2, 20, seed=6) * 2.0 - 1)
    if "softmax" in kind:
        (answers,) = moved(device, whole(CLASSES, 20, seed=6))
    accuracy = softmax.accuracy if "softmax" in kind else logistic.accuracy
    start = moved(device, normal(trials, d, seed=2, dtype=dtype))[0]
    found = descent.run(
        made,
        start,
        [learning, unlearning],
        step_size=0.5,
        measure=(lambda weights: accuracy(weights, tests, answers)) if measured else None,
        radius=radius,
    )
    return found.weights, found.published, list(found.curve.values())


def _descent(kind: str, dtype: torch.dtype, **options: Any) -> Case:
    name = "-".join((kind.replace(" ", "-"), str(dtype).removeprefix("torch."), *options))
    return Case(name, partial(descended, kind, dtype, **options), (READING,) if options.get("streamed") else ())


def quadratic(device: torch.device, rounds: int) -> Any:
    """Descend with noise that is drawn block by block."""
    rows, others, curvature = moved(device, normal(9, FEATURES), normal(2, FEATURES), 1 + torch.arange(FEATURES) / 1.0)
    made = QuadraticObjective(rows, curvature, replacements=(torch.tensor([1, 2], device=device), others))
    phase = DescentPhase(2, [BLOCK_STEPS * rounds], [0.2], [5])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomness, "NUMBERS_AT_ONCE", 1)
        return descent.run(made, torch.zeros_like(rows[:1]), [phase], step_size=0.1).weights


def resumed(device: torch.device, rounds: int) -> Any:
    """Stop after the first phase, and go on from the checkpoint."""
    made, d = objective("logistic", device, torch.float64)
    start = moved(device, normal(2, d))[0]
    phases = [DescentPhase(0, [6, 3], [0.2, 0.2], [1, 2], measure_at=(2,)), DescentPhase(3, [5, 5], [0.2, 0.2], [3, 4])]
    with tempfile.TemporaryDirectory() as directory:
        kept = Checkpoint(Path(directory) / "checkpoint", "key", every_seconds=0)
        for some in (phases[:1], phases):
            found = descent.run(
                made, start, some, step_size=0.1, measure=lambda weights: weights[:, 0], checkpoint=kept
            )
    return found.weights, found.published, list(found.curve.values())


def measures(classes: int, device: torch.device, rounds: int) -> Tensor:
    outputs = 1 if classes == 2 else classes
    weights, rows, labels = moved(
        device, normal(5, outputs * FEATURES), short_rows(N, FEATURES, seed=3), labels_of(classes)
    )
    return quality.judged(weights, rows, labels, classes=classes)


def noise(device: torch.device, rounds: int) -> list[Tensor]:
    """Draw blocks, one more a round, and one of which an eighth are rare numbers, which are drawn with more bits."""
    like = torch.empty(0, 5, dtype=torch.float32, device=device)
    out = like.new_empty(2, rounds, BLOCK_STEPS, 5)
    randomness.fill_blocks(out, [1, 2], 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(randomness.FINE_FROM, torch.float32, (2.0**28, 2.0**31 - 2.0**15))
        block = like.new_empty(2, BLOCK_STEPS, 7)
        randomness.fill_block(block, [1, 2], 3)
    return [out, block, randomness.normal_rows([3, 4], like)]


CASES = [
    *(_descent(kind, dtype) for kind in ("logistic", "softmax", "squared") for dtype in (torch.float32, torch.float64)),
    *(_descent(kind, torch.float32, streamed=True) for kind in ("logistic", "softmax", "squared", "cyclic softmax")),
    *(_descent(kind, torch.float64, weighted=True) for kind in ("logistic", "softmax", "cyclic", "cyclic softmax")),
    *(_descent(kind, torch.float64) for kind in ("cyclic", "cyclic softmax", "sharded", "sharded cycle")),
    _descent("cyclic", torch.float32, steps=(BLOCK_STEPS,), radius=None),
    _descent("logistic", torch.float64, measured=False, radius=None),
    Case("a run that goes on", resumed),
    Case("quadratic", quadratic, (RARE,)),
    Case("measures of two classes", partial(measures, 2)),
    Case("measures of more classes", partial(measures, CLASSES)),
    Case("noise", noise),
]
