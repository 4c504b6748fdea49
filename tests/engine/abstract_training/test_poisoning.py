"""Boxes of poisoned batches: the vectors, and poisoned retrainings, which lie in them bit for bit."""

import itertools
from fractions import Fraction

import pytest
import torch

from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.engine.abstract_training.poisoning import Poisoning
from certified_unlearning.engine.abstract_training.training import Batch, Trained, train
from certified_unlearning.engine.intervals.network import Dense, Network
from certified_unlearning.errors import ParameterError
from tests.support.retraining import SMALL, exact_line, inside, retrained, small_problem

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


SLOPE = Network((Dense(1, 1, bias=False),))
SQUARES = Descent(loss="squared", step_size=0.125)


def test_shifted_numbers_of_the_squared_loss_in_exact_fractions() -> None:
    """The attacker moves two of three labels, by up to 1/4 and otherwise in every update; the box holds all of it."""
    points = [(Fraction(1), Fraction(1, 2)), (Fraction(-3, 2), Fraction(2)), (Fraction(1, 3), Fraction(-1))]
    batch = Batch(
        torch.tensor([[float(x)] for x, _ in points], dtype=torch.float64), torch.tensor([float(y) for _, y in points])
    )
    points = [(Fraction(float(x)), Fraction(float(y))) for x, y in points]  # As the trainer is given them.
    batch = Batch(batch.rows, batch.labels.double())
    poisoning, origin = Poisoning(relabelled=2, shift=0.25), (torch.zeros(1, 1, 1).double(),)
    (box,) = train(SLOPE, SQUARES, origin, [batch] * 2, k=[0], poisoning=poisoning).box
    shifts = [each for each in itertools.product((-1, 0, 1), repeat=3) if sum(map(abs, each)) <= 2]
    reached = [
        exact_line(
            [[(x, y + Fraction(move, 4)) for (x, y), move in zip(points, moves, strict=True)] for moves in both],
            step_size=0.125,
        )
        for both in itertools.product(shifts, repeat=2)
    ]
    low, high = (Fraction(float(each)) for each in box)
    assert low <= min(reached) < max(reached) <= high
    # No more than rounding: of one weight and records whose sides are known the first update's bound is attained.
    (first,) = train(SLOPE, SQUARES, origin, [batch], k=[0], poisoning=poisoning).box
    once = [exact_line([each], step_size=0.125) for each in [
        [(x, y + Fraction(move, 4)) for (x, y), move in zip(points, moves, strict=True)] for moves in shifts
    ]]  # fmt: skip
    assert [float(first.lower), float(first.upper)] == pytest.approx([float(min(once)), float(max(once))], rel=1e-12)
    # The planted fault: one label fewer than move leaves the box.
    (narrow,) = train(SLOPE, SQUARES, origin, [batch] * 2, k=[0], poisoning=Poisoning(relabelled=1, shift=0.25)).box
    assert min(reached) < Fraction(float(narrow.lower))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_labels_shifted_by_numbers_that_floats_round(dtype: torch.dtype) -> None:
    """What is cast to float32 moves by half a unit in the last place, which the box must hold, too."""
    generator = torch.Generator().manual_seed(2)
    network = Network.dense(2, 3, 1)
    start = tuple(torch.randn(1, *shape, generator=generator).to(dtype) for shape in network.shapes)
    rows = torch.randn(6, 2, generator=generator).to(dtype)
    labels = torch.randn(6, generator=generator, dtype=torch.float64)
    descent = Descent(loss="squared", step_size=0.05)
    trained = train(network, descent, start, [Batch(rows, labels)], k=[0], poisoning=Poisoning(relabelled=6, shift=0.1))
    moved = labels + 0.1 * torch.tensor([*itertools.product((-1.0, 1.0), repeat=6)], dtype=torch.float64)
    present = torch.tensor([[False] * 6 + [True] * 6]).expand(len(moved), -1)
    found = retrained(
        network, descent, start, [Batch(rows, labels)], [present], [(rows.expand(len(moved), -1, -1), moved)]
    )
    assert bool(inside(trained, found).all())


@pytest.mark.parametrize("outputs", [1, 3])
def test_flips_to_one_class_are_fewer_than_flips_to_any(outputs: int) -> None:
    generator = torch.Generator().manual_seed(4)
    network, classes = Network.dense(2, 4, outputs), max(2, outputs)
    start = tuple(0.5 * torch.randn(1, *shape, generator=generator).double() for shape in network.shapes)
    batch = Batch(torch.randn(8, 2, generator=generator).double(), torch.arange(8) % classes)
    loss = "binary-cross-entropy" if outputs == 1 else "cross-entropy"
    descent = Descent(loss=loss, step_size=0.3, clipping="clamp", bound=0.2)
    boxes = {
        to: train(network, descent, start, [batch] * 2, k=[0], poisoning=Poisoning(relabelled=2, to=to))
        for to in (None, 0, 1)
    }

    def flipped(to: int) -> tuple[torch.Tensor, ...]:
        labels = []
        for which in itertools.combinations(range(8), 2):
            other = batch.labels.clone()
            other[[*which]] = to
            labels.append(other)
        present = torch.tensor([[False] * 8 + [True] * 8]).expand(len(labels), -1)
        rows = batch.rows.expand(len(labels), -1, -1)
        return retrained(network, descent, start, [batch] * 2, [present] * 2, [(rows, torch.stack(labels))] * 2)

    for to in (0, 1):
        assert bool(inside(boxes[to], flipped(to)).all())
        assert bool(inside(boxes[None], flipped(to)).all())
        for one, every in zip(boxes[to].box, boxes[None].box, strict=True):
            assert bool((every.lower <= one.lower + 1e-12).all() and (one.upper <= every.upper + 1e-12).all())
    # The planted fault: flips to another class leave the box.
    assert not bool(inside(boxes[0], flipped(1)).all())


def test_rounding_costs_poisoning_about_what_it_costs_removals() -> None:
    """Nothing is poisoned and nothing removed: what boxes are wide is slack, which was 19 times as much."""
    generator = torch.Generator().manual_seed(5)
    network = Network.dense(20, 16, 2)
    start = tuple(0.3 * torch.randn(1, *shape, generator=generator).double() for shape in network.shapes)
    batch = Batch(torch.randn(2000, 20, generator=generator).double(), torch.arange(2000) % 2)
    descent = Descent(step_size=0.5, clipping="clamp", bound=0.1)
    widths = [
        sum(
            float((each.upper - each.lower).sum()) for each in train(network, descent, start, [batch], k=[0], **how).box
        )
        for how in ({}, {"poisoning": Poisoning()}, {"poisoning": Poisoning(1, 0.0, 1, together=True)})
    ]
    assert widths[1] < 3 * widths[0]


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ParameterError, match="at least 0"):
        Poisoning(-1)
    with pytest.raises(ParameterError, match="k must be 0"):
        train(LINE, DESCENT, ORIGIN, [THREE], k=[1], poisoning=Poisoning(1, 0.1))
    for wrong in ({"to": 0}, {"shift": 0.1}):
        with pytest.raises(ParameterError, match="`relabelled` must be at least 1"):
            Poisoning(1, 0.1, **wrong)
    for descent, poisoning, said in (
        (Descent(loss="squared"), Poisoning(relabelled=1), "`shift` must be above 0"),
        (Descent(loss="squared"), Poisoning(relabelled=1, shift=0.1, to=1), "which names a class, must not be given"),
        (DESCENT, Poisoning(relabelled=1, shift=0.1), "`shift` must be 0 for the loss binary-cross-entropy"),
        (DESCENT, Poisoning(relabelled=1, to=2), "`to` must be the number of a class, from 0 to 1, got 2"),
    ):
        with pytest.raises(ParameterError, match=said):
            train(LINE, descent, ORIGIN, [THREE], k=[0], poisoning=poisoning)
