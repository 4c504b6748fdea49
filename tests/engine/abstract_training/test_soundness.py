"""Soundness by force: neighbours are retrained, and their parameters lie in the box bit for bit, without tolerance.

Retrainings use the trainer's own arithmetic, in the order in which it sums what is there. The file retrains more than
20 000 neighbours; a single one outside fails it.
"""

import pytest
import torch
from torch import Tensor, nn

from certified_unlearning.engine.abstract_training.descent import Descent, Parameters, State, directions, logits
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.abstract_training.training import Batch, Trained, train
from certified_unlearning.engine.intervals import kernel
from certified_unlearning.engine.intervals.clipping import clipped_by_norm
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.margins import certify
from certified_unlearning.engine.intervals.network import Dense, Network, parameters_of
from certified_unlearning.engine.intervals.propagation import RUMP, TIGHTEST, Bounding
from certified_unlearning.engine.intervals.rounding import NAIVE
from tests.support.retraining import SMALL, inside, removals, retrained, small_problem, subsets

BOTH = Neighbourhood("additions and removals")
GRID = torch.cartesian_prod(*[torch.linspace(-2, 2, 21, dtype=torch.float64)] * 2)[None]


def hull_share(trained: Trained, parameters: Parameters) -> float:
    """How much of the box retrainings reach, on average: none at all would be no test."""
    shares = [
        ((each.amax(dim=0) - each.amin(dim=0)) / (box.upper[0] - box.lower[0])).flatten()
        for box, each in zip(trained.box, parameters, strict=True)
    ]
    return torch.cat(shares).mean().item()


def newcomers(runs: int, k: int, generator: torch.Generator, *, features: int = 2, classes: int = 2):
    """From 0 to k added records for each run: near, far and very far ones, with any label."""
    scale = 10 ** torch.randint(0, 5, (runs, k, 1), generator=generator).double()
    rows = scale * torch.randn(runs, k, features, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, classes, (runs, k), generator=generator)
    present = torch.arange(k) < torch.randint(0, k + 1, (runs, 1), generator=generator)
    return rows, labels, present


@pytest.mark.parametrize("bounding", [TIGHTEST, RUMP])
@pytest.mark.parametrize("k", [1, 2])
def test_all_removals_of_up_to_k_records_from_each_batch(k: int, bounding: Bounding) -> None:
    start, batches = small_problem()
    descent = Descent(step_size=0.2)
    trained = train(SMALL, descent, start, batches, k=[k], bounding=bounding)
    masks = subsets(10, k)
    one, two = torch.meshgrid(torch.arange(len(masks)), torch.arange(len(masks)), indexing="ij")
    present = [masks[one.flatten()], masks[two.flatten()]] * 2  # 121 or 3136 data sets, each removed for good.
    found = retrained(SMALL, descent, start, batches, present)
    assert bool(inside(trained, found).all())
    assert hull_share(trained, found) > 0.2
    sure = certify(SMALL, trained.box, GRID)
    told = logits(SMALL, found, GRID).argmax(dim=-1)
    assert bool((told == sure.classes)[:, sure.certified[0]].all())
    assert bool((told != told[:1])[:, ~sure.certified[0]].any())


@pytest.mark.parametrize(
    "descent",
    [
        Descent(step_size=0.2),
        Descent(step_size=0.2, clipping="clamp", bound=0.1),
        Descent(step_size=0.2, clipping="l2", bound=0.3),
        Descent(step_size=0.2, momentum=0.9, weight_decay=0.5, decay=0.3),
        Descent(step_size=0.2, momentum=0.5, nesterov=True),
    ],
)
@pytest.mark.parametrize("k", [1, 2])
def test_removals_that_change_from_update_to_update(descent: Descent, k: int) -> None:
    start, batches = small_problem()
    generator = torch.Generator().manual_seed(k)
    trained = train(SMALL, descent, start, batches, k=[k])
    present = [removals(10, k, 800, generator) for _ in batches]
    found = retrained(SMALL, descent, start, batches, present)
    assert bool(inside(trained, found).all())
    assert hull_share(trained, found) > 0.15


@pytest.mark.parametrize("clipping", ["clamp", "l2"])
@pytest.mark.parametrize(("k", "bound"), [(1, 1.0), (2, 0.1), (4, 0.02)])
def test_removals_and_additions_of_any_records(k: int, bound: float, clipping: str) -> None:
    start, batches = small_problem()
    generator = torch.Generator().manual_seed(k)
    descent = Descent(step_size=0.2, clipping=clipping, bound=bound)
    trained = train(SMALL, descent, start, batches, k=[k], neighbourhood=BOTH)
    runs = 1000
    present, added = [], []
    for _ in batches:
        rows, labels, there = newcomers(runs, k, generator)
        present.append(torch.cat([removals(10, k, runs, generator), there], dim=1))
        added.append((rows, labels))
    found = retrained(SMALL, descent, start, batches, present, added)
    assert bool(inside(trained, found).all())
    sure = certify(SMALL, trained.box, GRID)
    told = logits(SMALL, found, GRID).argmax(dim=-1)
    assert bool((told == sure.classes)[:, sure.certified[0]].all())


@pytest.mark.parametrize("changes", ["removals", "additions and removals", "substitutions", "additions or removals"])
def test_a_divisor_that_stays(changes: str) -> None:
    start, batches = small_problem()
    generator = torch.Generator().manual_seed(1)
    runs, k = 500, 2
    descent = Descent(step_size=0.2, clipping="clamp", bound=0.3)
    trained = train(SMALL, descent, start, batches, k=[k], neighbourhood=Neighbourhood(changes, "fixed"), divisor=10)
    present, added = [], []
    for _ in batches:
        rows, labels, there = newcomers(runs, k, generator)
        left = removals(10, k, runs, generator)
        gone = 10 - left.sum(dim=1, keepdim=True)
        room = {"removals": 0 * gone, "additions and removals": 0 * gone + k, "substitutions": gone}
        there = there & (torch.arange(k) < room.get(changes, k - gone))
        if changes == "substitutions":
            there = torch.arange(k) < gone
        present.append(torch.cat([left, there], dim=1))
        added.append((rows, labels))
    found = retrained(SMALL, descent, start, batches, present, added, divisor=10)
    assert bool(inside(trained, found).all())


NETS = {
    "two hidden layers": lambda: nn.Sequential(
        nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 5, bias=False), nn.ReLU(), nn.Linear(5, 3)
    ),
    "logistic": lambda: nn.Sequential(nn.Linear(2, 1)),
    "convolutions": lambda: nn.Sequential(
        nn.Conv2d(1, 2, 2, padding=1), nn.ReLU(), nn.Conv2d(2, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)
    ),
}


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("clipping", ["none", "clamp", "l2"])
def test_other_networks_and_types(name: str, dtype: torch.dtype, clipping: str) -> None:
    torch.manual_seed(3)
    module = NETS[name]().to(dtype)
    network = Network.of(module)
    rows = torch.randn(24, 1, 2, 2) if name == "convolutions" else torch.randn(24, 2)
    labels = torch.randint(0, max(2, network.outputs), (24,))
    loss = "binary-cross-entropy" if network.outputs == 1 else "cross-entropy"
    descent = Descent(loss=loss, step_size=0.1, clipping=clipping, bound=None if clipping == "none" else 0.3)
    batches = [Batch(rows[:12].to(dtype), labels[:12]), Batch(rows[12:].to(dtype), labels[12:])] * 2
    start = parameters_of(module)
    trained = train(network, descent, start, batches, k=[1, 3])
    generator = torch.Generator().manual_seed(4)
    for run, k in enumerate((1, 3)):
        present = [removals(12, k, 200, generator) for _ in batches]
        found = retrained(network, descent, start, batches, present)
        assert bool(inside(trained, found, run).all())


def narrow(dtype: torch.dtype) -> tuple[Network, Descent, Parameters, list[Batch]]:
    """One update of logistic regression on records that are nearly alike: rounding decides, for bounds are attained."""
    generator = torch.Generator().manual_seed(5)
    network = Network.dense(6, 1)
    rows = torch.randn(1, 6, generator=generator) + 1e-4 * torch.randn(300, 6, generator=generator)
    start = tuple(0.3 * torch.randn(1, *shape, generator=generator).to(dtype) for shape in network.shapes)
    batch = Batch(rows.to(dtype), torch.ones(300, dtype=torch.int64))
    return network, Descent(loss="binary-cross-entropy", step_size=0.5), start, [batch]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_naive_bounds_are_left_by_retrainings_where_outward_ones_are_not(dtype: torch.dtype) -> None:
    """The planted fault: every single record removed, with and without outward rounding."""
    network, descent, start, batches = narrow(dtype)
    present = [torch.cat([torch.ones(1, 300), 1 - torch.eye(300)]).bool()]
    orders = [torch.randperm(300, generator=torch.Generator().manual_seed(seed)) for seed in range(4)]
    outside = {}
    for bounding in (TIGHTEST, Bounding(rounding=NAIVE)):
        trained = train(network, descent, start, batches, k=[1], bounding=bounding)
        outside[bounding.rounding.name] = 0
        for order in orders:  # Sums in other orders, as other machines have.
            shuffled = [Batch(batches[0].rows[order], batches[0].labels)]
            found = retrained(network, descent, start, shuffled, [present[0][:, order]])
            outside[bounding.rounding.name] += int((~inside(trained, found)).sum())
    assert outside["outward"] == 0
    assert outside["naive"] > 0


def test_boxes_of_float32_hold_sums_one_after_another_and_stay_within_a_few_times_those_of_float64() -> None:
    """Ten thousand records: sums of bounds in float32 made them 10 to 30 times as wide."""
    generator = torch.Generator().manual_seed(5)
    network = Network.dense(4, 3, 2)
    start = [0.3 * torch.randn(1, *shape, generator=generator).double() for shape in network.shapes]
    rows = torch.randn(10_000, 4, generator=generator).double()
    labels = (rows[:, 0] > 0).long()
    widths = []
    for dtype in (torch.float64, torch.float32):
        batch = Batch(rows.to(dtype), labels)
        descent = Descent(step_size=0.5, clipping="clamp", bound=0.1)
        box = train(network, descent, [each.to(dtype) for each in start], [batch] * 2, k=[1], neighbourhood=BOTH).box
        widths.append(sum(float((each.upper - each.lower).sum()) for each in box))
    assert widths[0] < widths[1] < 8 * widths[0]
    # Equal numbers one after another are off by more than in any other order.
    alike = Batch(torch.full((10_000, 1), 0.3217), torch.ones(10_000, dtype=torch.int64))
    slope = Network((Dense(1, 1, bias=False),))
    origin, update = [torch.zeros(1, 1, 1)], Descent(loss="binary-cross-entropy", step_size=1.0)
    (side,) = train(slope, update, origin, [alike], k=[0]).box
    one_after_another = (-0.5 * alike.rows[:, 0]).numpy().cumsum(dtype="float32")[-1] / 10_000
    assert bool(side.holds(torch.tensor(-one_after_another)).all())
    assert abs(float(one_after_another) + 0.5 * float(alike.rows[0])) > 1e-6


def test_clamping_ends_does_not_cover_a_trainer_that_clips_norms() -> None:
    """The wrong variant: gradients clipped by their norm, a box that was clamped entry by entry."""
    start, batches = small_problem()
    generator = torch.Generator().manual_seed(6)
    clamping = train(SMALL, Descent(step_size=0.2, clipping="clamp", bound=0.1), start, batches, k=[1])
    present = [removals(10, 1, 300, generator) for _ in batches]
    descent = Descent(step_size=0.2, clipping="l2", bound=0.1)
    found = retrained(SMALL, descent, start, batches, present)
    assert not bool(inside(clamping, found).any())
    assert bool(inside(train(SMALL, descent, start, batches, k=[1]), found).all())


def test_public_records_may_not_change_and_others_may() -> None:
    start, batches = small_problem()
    public = torch.arange(10) < 6
    mixed = [Batch(each.rows, each.labels, public) for each in batches]
    generator = torch.Generator().manual_seed(7)
    for neighbourhood, bound in ((Neighbourhood(), None), (BOTH, 0.1)):
        descent = Descent(step_size=0.2, clipping="none" if bound is None else "clamp", bound=bound)
        trained = train(SMALL, descent, start, mixed, k=[3], neighbourhood=neighbourhood)
        wide = train(SMALL, descent, start, batches, k=[3], neighbourhood=neighbourhood)
        present, added = [], []
        for _ in batches:
            left = torch.cat([torch.ones(500, 6).bool(), removals(4, 3, 500, generator)], dim=1)
            rows, labels, there = newcomers(500, 3, generator)
            present.append(left if bound is None else torch.cat([left, there], dim=1))
            added.append((rows, labels))
        found = retrained(SMALL, descent, start, batches, present, None if bound is None else added)
        assert bool(inside(trained, found).all())
        if bound is None:
            widths = [sum((box.upper - box.lower).sum().item() for box in each.box) for each in (trained, wide)]
            assert widths[0] < widths[1]


@pytest.mark.parametrize("clipping", ["clamp", "l2"])
def test_a_neighbours_box_of_less_budget_lies_in_the_box(clipping: str) -> None:
    """One substitution, addition or removal in one batch takes one of the budget."""
    start, batches = small_problem()
    descent = Descent(step_size=0.2, clipping=clipping, bound=0.2)
    wide = train(SMALL, descent, start, batches, k=[2], neighbourhood=BOTH)
    generator = torch.Generator().manual_seed(8)
    for trial in range(15):
        rows, labels, _ = newcomers(1, 1, generator)
        place = int(torch.randint(10, (1,), generator=generator))
        kept = torch.arange(10) != place if trial % 3 else torch.ones(10).bool()
        parts = [(batches[0].rows[kept], batches[0].labels[kept])]
        if trial % 3 != 1:
            parts.append((rows[0], labels[0]))
        changed = Batch(*(torch.cat(each) for each in zip(*parts, strict=True)))
        narrow = train(SMALL, descent, start, [changed, batches[1]] * 2, k=[1], neighbourhood=BOTH)
        for inner, outer in zip(narrow.box, wide.box, strict=True):
            assert bool((outer.lower <= inner.lower + 1e-12).all() and (inner.upper <= outer.upper + 1e-12).all())


def test_a_box_that_parameters_leave_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from certified_unlearning.engine.abstract_training import training
    from certified_unlearning.engine.intervals.interval import IntervalError

    start, batches = small_problem()

    def shifted(*given, **more) -> Interval:
        low, high = right(*given, **more)
        return Interval(low + 0.5, high + 0.5)

    right = training.direction_bounds
    monkeypatch.setattr(training, "direction_bounds", shifted)
    with pytest.raises(IntervalError, match="left its box in update 1"):
        train(SMALL, Descent(step_size=0.2), start, batches, k=[1])


@pytest.mark.parametrize("compiled", [True, False])
def test_memory_does_not_grow_with_batch_times_parameters(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No tensor as large as all gradients of a batch is ever made."""
    if not compiled:
        monkeypatch.setattr(kernel, "takes", lambda *_: False)
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        numbers = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for each in result if isinstance(result, tuple | list) else [result]:
                if isinstance(each, Tensor):
                    Largest.numbers = max(Largest.numbers, each.untyped_storage().nbytes() // each.element_size())
            return result

    torch.manual_seed(0)
    network = Network.dense(60, 40, 2)
    start = tuple(torch.randn(1, *shape).double() / 10 for shape in network.shapes)
    batch = Batch(torch.randn(3000, 60).double(), torch.randint(0, 2, (3000,)))
    with Largest():
        train(
            network,
            Descent(clipping="clamp", bound=0.1),
            start,
            [batch],
            k=[1, 4],
            neighbourhood=BOTH,
        )
    everything = 2 * 3000 * network.size
    assert Largest.numbers < everything / 10


@pytest.mark.parametrize(
    ("dtype", "bias", "row", "bound"),
    [
        (torch.float32, -53.0, 1e19, 1e-5),
        (torch.float32, -45.0, 1e17, 1e-5),
        (torch.float32, 53.0, 1e38, 1e-5),
        (torch.float64, -372.7, 1e153, 1e-10),
        (torch.float64, -372.7, 1e300, 1e-10),
    ],
)
def test_records_whose_squares_are_no_floats_are_clipped_too(
    dtype: torch.dtype, bias: float, row: float, bound: float
) -> None:
    """A tiny derivative times a huge input: its square was lost, and the record came unclipped."""
    network = Network.dense(1, 1)
    descent = Descent(loss="binary-cross-entropy", clipping="l2", bound=bound, step_size=1.0)
    start = (torch.zeros(1, 1, 1, dtype=dtype), torch.full((1, 1), bias, dtype=dtype))
    rows, labels = torch.zeros(2, 1, dtype=dtype), torch.tensor([0, 0])
    neighbourhood = Neighbourhood("additions and removals")
    found = train(network, descent, start, [Batch(rows, labels)], k=[1], neighbourhood=neighbourhood)
    state = State(start)
    more = torch.cat([rows, torch.full((1, 1), row, dtype=dtype)])
    state.follow(descent, directions(network, descent, start, more[None], torch.tensor([0, 0, 0])))
    assert all(bool(box.holds(values).all()) for box, values in zip(found.box, state.parameters, strict=True))


@pytest.mark.parametrize("size", [1e25, 1e-25])
def test_norms_hold_where_squares_overflow_or_vanish(size: float) -> None:
    entries = torch.tensor([size, size])
    found = clipped_by_norm(Interval.point(entries), size / 10)
    assert bool(found.holds(torch.full((2,), size / 10 / 2**0.5)).all())
    assert bool((found.upper - found.lower <= 1e-4 * size).all())
