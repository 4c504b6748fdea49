"""Boxes of poisoned batches: the vectors, and poisoned retrainings, which lie in them bit for bit."""

import itertools

import pytest
import torch

from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.engine.abstract_training.poisoning import Poisoning
from certified_unlearning.engine.abstract_training.training import Batch, Trained, train
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.errors import ParameterError
from tests.support.retraining import SMALL, inside, retrained, small_problem

LINE = Network.dense(1, 1)
THREE = Batch(torch.tensor([[-1.0], [0.5], [2.0]]).double(), torch.tensor([0, 1, 1]))
ORIGIN = (torch.zeros(1, 1, 1).double(), torch.zeros(1, 1).double())
DESCENT = Descent(loss="binary-cross-entropy", step_size=0.5)


def ends(trained: Trained) -> list[float]:
    return [end[0].item() for box in trained.box for end in box]


@pytest.mark.parametrize(
    ("poisoning", "box", "reached"),
    [
        (Poisoning(1, 0.1), (0.497797, 0.535147, 0.136649, 0.141389), (0.502757, 0.529634, 0.137336, 0.140636)),
        (
            Poisoning(relabelled=1),
            (-0.172605, 0.611426, -0.227858, 0.526709),
            (-0.0690442, 0.516345, -0.169229, 0.461473),
        ),
        (Poisoning(1, 0.1, 1), (-0.558208, 0.707085, -0.572345, 0.567740), (-0.0844329, 0.529634, -0.170611, 0.462435)),
        (
            Poisoning(1, 0.1, 1, together=True),
            (-0.196391, 0.631362, -0.230147, 0.529108),
            (-0.0827034, 0.529634, -0.169552, 0.462435),
        ),
    ],
)
def test_vectors(poisoning: Poisoning, box: tuple, reached: tuple) -> None:
    """The box, and what one poisoned point reaches, or one moved and one relabelled."""
    trained = train(LINE, DESCENT, ORIGIN, [THREE] * 2, k=[0], poisoning=poisoning)
    assert ends(trained) == pytest.approx(box, rel=1e-5)
    shifts = [s * 0.025 for s in range(-4, 5)] if poisoning.moved else [0.0]
    moved_points = range(3) if poisoning.moved else [0]
    flips = [None, 0, 1, 2] if poisoning.relabelled else [None]
    rows, labels = [], []
    for point, shift, flip in itertools.product(moved_points, shifts, flips):
        if poisoning.together and flip not in (None, point):
            continue
        x, y = THREE.rows[:, 0].clone(), THREE.labels.clone()
        x[point] += shift
        if flip is not None:
            y[flip] = 1 - y[flip]
        rows.append(x)
        labels.append(y)
    added = (torch.stack(rows)[..., None], torch.stack(labels))
    present = torch.tensor([[False] * 3 + [True] * 3]).expand(len(rows), -1)
    found = retrained(LINE, DESCENT, ORIGIN, [THREE] * 2, [present] * 2, [added] * 2)
    assert bool(inside(trained, found).all())
    w, c = (each.flatten() for each in found)
    assert [w.min().item(), w.max().item(), c.min().item(), c.max().item()] == pytest.approx(reached, rel=1e-5)


@pytest.mark.parametrize("clipping", ["none", "clamp", "l2"])
def test_poisoned_retrainings_lie_in_the_box(clipping: str) -> None:
    start, batches = small_problem()
    descent = Descent(step_size=0.2, clipping=clipping, bound=None if clipping == "none" else 0.2)
    poisoning = Poisoning(2, 0.05, 1)
    trained = train(SMALL, descent, start, batches, k=[0], poisoning=poisoning)
    generator = torch.Generator().manual_seed(1)
    runs = 700
    added = []
    for batch in batches:
        order = torch.rand(runs, 10, generator=generator).argsort(dim=1)
        shift = 0.1 * torch.rand(runs, 10, 2, generator=generator, dtype=torch.float64) - 0.05
        rows = batch.rows + torch.where((order < 2)[..., None], shift.sign() * 0.05, 0)
        flipped = torch.rand(runs, 10, generator=generator).argsort(dim=1) == 0
        added.append((rows, torch.where(flipped, 1 - batch.labels, batch.labels)))
    present = torch.cat([torch.zeros(runs, 10), torch.ones(runs, 10)], dim=1).bool()
    found = retrained(SMALL, descent, start, batches, [present] * 4, added)
    assert bool(inside(trained, found).all())
    few = train(SMALL, descent, start, batches, k=[0], poisoning=Poisoning(1, 0.001))
    assert not bool(inside(few, found).all())


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ParameterError, match="at least 0"):
        Poisoning(-1)
    with pytest.raises(ParameterError, match="k must be 0"):
        train(LINE, DESCENT, ORIGIN, [THREE], k=[1], poisoning=Poisoning(1, 0.1))
    with pytest.raises(ParameterError, match="squared loss"):
        train(LINE, Descent(loss="squared"), ORIGIN, [THREE], k=[0], poisoning=Poisoning(relabelled=1))
