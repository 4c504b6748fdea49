"""Lines through hidden layers, and derivatives that add up to 0: no member leaves the bounds, as floats compute it."""

import itertools

import pytest
import torch
from torch import Tensor, nn

from certified_unlearning.engine.abstract_training.descent import logits
from certified_unlearning.engine.intervals import propagation, relaxation
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.losses import derivatives
from certified_unlearning.engine.intervals.margins import certify, margin_bounds
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.engine.intervals.propagation import TIGHTEST, Bounding, backward, forward
from certified_unlearning.engine.intervals.relaxation import is_chain
from certified_unlearning.engine.intervals.rounding import NAIVE
from tests.engine.intervals.test_products import member

JOINT = Bounding(differences="joint")
DEEP = [(3, 2, 2, 1), (2, 5, 4, 2), (3, 8, 8, 3), (2, 6, 6, 6, 2), (4, 5, 3, 5, 4, 4)]
RADII = [0.0, 1e-4, 0.03, 0.3]

Box = tuple[Interval, ...]


def drawn(sizes: tuple[int, ...], radius: float, dtype: torch.dtype, seed: int) -> tuple[Network, Box, Tensor]:
    """A network, two boxes of its parameters, and inputs."""
    generator = torch.Generator().manual_seed(seed)
    network = Network.dense(*sizes)
    radii = radius * torch.tensor([0.5, 1.0])
    centre = [torch.randn(1, *shape, generator=generator) for shape in network.shapes]
    box = tuple(
        Interval(*((each + sign * radii.view(2, *[1] * (each.ndim - 1))).to(dtype) for sign in (-1, 1)))
        for each in centre
    )
    return network, box, torch.randn(1, 6, sizes[0], generator=generator).to(dtype)


def worst_members(network: Network, box: Box, rows: Tensor, i: int, j: int, record: int) -> list[tuple[Tensor, ...]]:
    """Members of a box with a small difference of logits ``j`` less ``i``, by descent along signs."""
    found, generator = [], torch.Generator().manual_seed(1)
    for _ in range(3):
        inside = [member(each, generator).requires_grad_() for each in box]
        for share in (1.0, 0.5, 0.3, 0.2, 0.1, 0.05):
            apart = difference(network, tuple(inside), rows, i, j)[:, record].sum()
            slopes = torch.autograd.grad(apart, inside)
            inside = [
                (each - share * (values.upper - values.lower) * slope.sign())
                .clamp(values.lower, values.upper)
                .detach()
                .requires_grad_()
                for each, values, slope in zip(inside, box, slopes, strict=True)
            ]
        found.append(tuple(each.detach() for each in inside))
    return found


def difference(network: Network, parameters: tuple[Tensor, ...], rows: Tensor, i: int, j: int) -> Tensor:
    scores = logits(network, parameters, rows)
    if network.outputs == 1:
        scores = torch.cat([torch.zeros_like(scores), scores], dim=-1)
    return scores[..., j] - scores[..., i]


def violations(sizes: tuple[int, ...], radius: float, dtype: torch.dtype, seed: int) -> tuple[int, float]:
    """How many members are outside; how much of the way from a difference to its bound the worst one goes."""
    network, box, rows = drawn(sizes, radius, dtype, seed)
    bounds = margin_bounds(network, box, rows)
    count, share = 0, 0.0
    for i, j in itertools.permutations(range(max(2, network.outputs)), 2):
        middle = difference(network, tuple((each.lower + each.upper) / 2 for each in box), rows, i, j)
        for record in range(2):
            for each in worst_members(network, box, rows, i, j, record):
                apart = difference(network, each, rows, i, j)
                count += int((apart < bounds.lower[..., i, j]).sum() + (apart > bounds.upper[..., i, j]).sum())
                reached = (middle - apart) / (middle - bounds.lower[..., i, j]).clamp_min(1e-30)
                share = max(share, float(reached[:, record].max()))
    return count, share


@pytest.mark.sampled
@pytest.mark.parametrize("sizes", DEEP)
@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_members_differences_leave_their_bounds(sizes: tuple[int, ...], radius: float, dtype: torch.dtype) -> None:
    found = [violations(sizes, radius, dtype, seed) for seed in range(3)]
    assert sum(count for count, _ in found) == 0
    # The search comes near the bounds, or it would find nothing.
    assert radius in (0.0, 0.3) or max(share for _, share in found) > 0.7


def test_a_line_that_cuts_relu_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = relaxation._line
    monkeypatch.setattr(relaxation, "_line", lambda *given: (right(*given)[0], torch.zeros_like(right(*given)[1])))
    assert sum(violations(sizes, 0.03, torch.float64, seed)[0] for sizes in DEEP[1:] for seed in range(5)) > 0


def test_the_wrong_end_of_weights_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = relaxation._least

    def wrong(layers, before, *given):  # type: ignore[no-untyped-def]
        middles = [(layer, Interval.point((weight.lower + weight.upper) / 2), bias) for layer, weight, bias in layers]
        return right(middles, before, *given)

    monkeypatch.setattr(relaxation, "_least", wrong)
    assert sum(violations(sizes, 0.03, torch.float64, seed)[0] for sizes in DEEP[1:] for seed in range(5)) > 0


@pytest.mark.parametrize("sizes", DEEP)
def test_what_floats_compute_lies_between_and_naive_bounds_lose_it(sizes: tuple[int, ...]) -> None:
    """A point has one value; its computed differences are off it by rounding that the bounds must cover."""
    outside = {"outward": 0, "naive": 0}
    for seed in range(40):
        network, box, rows = drawn(sizes, 0.0, torch.float32, seed)
        rows = 100 * rows
        middle = tuple(each.lower for each in box)
        for name, bounding in (("outward", TIGHTEST), ("naive", Bounding(rounding=NAIVE))):
            bounds = margin_bounds(network, box, rows, bounding)
            for i, j in itertools.permutations(range(max(2, network.outputs)), 2):
                apart = difference(network, middle, rows, i, j)
                outside[name] += int((apart < bounds.lower[..., i, j]).sum() + (apart > bounds.upper[..., i, j]).sum())
    assert outside["outward"] == 0
    assert outside["naive"] > 0


@pytest.mark.parametrize("sizes", DEEP)
def test_differences_are_never_wider_and_mostly_narrower(sizes: tuple[int, ...]) -> None:
    network, box, rows = drawn(sizes, 0.1, torch.float64, 3)
    one, two = margin_bounds(network, box, rows), margin_bounds(network, box, rows, JOINT)
    assert bool(((two.lower <= one.lower) & (one.upper <= two.upper)).all())
    width, before = (float((each.upper - each.lower).sum()) for each in (one, two))
    assert width < 0.99 * before
    assert bool((certify(network, box, rows, JOINT).certified <= certify(network, box, rows).certified).all())


def test_training_knows_no_lines() -> None:
    """Boxes of more changes are to hold those of fewer, and lines of a larger box may give narrower bounds."""
    network, box, rows = drawn((3, 8, 8, 2), 0.1, torch.float64, 3)
    labels = torch.tensor([0, 1, 0, 1, 0, 1])
    found = [
        backward(network, box, forward(network, box, rows, each), labels, "cross-entropy", each)
        for each in (TIGHTEST, JOINT)
    ]
    for one, two in zip(*found, strict=True):
        assert torch.equal(one.derivatives.lower, two.derivatives.lower)
        assert torch.equal(one.derivatives.upper, two.derivatives.upper)


def test_what_flows_back_is_never_narrower_for_a_larger_box() -> None:
    for seed in range(50):
        for sizes in ((3, 8, 2), (3, 8, 8, 3), (2, 6, 10)):
            network, box, rows = drawn(sizes, 0.1, torch.float64, seed)
            labels = torch.randint(0, sizes[-1], (6,), generator=torch.Generator().manual_seed(seed))
            for factors in backward(network, box, forward(network, box, rows), labels, "cross-entropy"):
                lower, upper = factors.derivatives
                assert bool((lower[1] <= lower[0] + 1e-12).all() and (upper[0] <= upper[1] + 1e-12).all())


def test_lines_of_a_larger_box_may_give_narrower_bounds() -> None:
    """It happens: so lines are used neither in training nor where radii of neighbours may differ by one at most."""
    narrower = {"updated": 0, "joint": 0}
    for seed in range(40):
        for sizes in DEEP:
            network, box, rows = drawn(sizes, 0.2, torch.float64, seed)
            nearly = [Interval(*(torch.stack([0.9 * end[1] + 0.1 * end[0], end[1]]) for end in each)) for each in box]
            for bounding in (TIGHTEST, JOINT):
                bounds = margin_bounds(network, nearly, rows, bounding)
                narrower[bounding.differences] += int((bounds.lower[1] > bounds.lower[0] + 1e-9).sum())
    assert narrower["updated"] > 0
    assert narrower["joint"] == 0


def test_records_may_be_many_or_few(monkeypatch: pytest.MonkeyPatch) -> None:
    network, box, rows = drawn((3, 8, 8, 3), 0.03, torch.float64, 1)
    together = margin_bounds(network, box, rows)
    monkeypatch.setattr(relaxation, "NUMBERS_AT_ONCE", 1)
    one_by_one = margin_bounds(network, box, rows)
    for both in zip(together, one_by_one, strict=True):
        torch.testing.assert_close(*both, rtol=1e-12, atol=1e-12)


def test_infinite_boxes_certify_nothing() -> None:
    network, box, rows = drawn((2, 5, 4, 2), 0.03, torch.float64, 1)
    wide = (*box[:-1], Interval(box[-1].lower - torch.inf, box[-1].upper + torch.inf))
    assert not bool(certify(network, wide, rows).certified.any())
    huge = tuple(Interval(each.lower - 1e200, each.upper + 1e200) for each in box)
    assert not bool(certify(network, huge, rows).certified.any())


def test_no_records_have_no_bounds() -> None:
    network, box, rows = drawn((2, 5, 4, 2), 0.03, torch.float64, 1)
    assert margin_bounds(network, box, rows[:, :0]).lower.shape == (2, 0, 2, 2)
    assert certify(network, box, rows[:, :0]).certified.shape == (2, 0)


def points(*values: list) -> Box:
    return tuple(Interval.point(torch.tensor(each)[None]) for each in values)


@pytest.mark.parametrize("units", [1, 4, 100])
def test_underflow_is_counted_where_a_large_coefficient_multiplies_it(units: int) -> None:
    """Every product of the second layer is flushed to 0, which the last layer multiplies by 2^120."""
    tiny, large = torch.finfo(torch.float32).tiny, 2.0**120
    bias = 40 * (units + 1) * tiny
    shift = large * (bias + 0.45 * units * tiny)
    box = points([[1.0]] * units, [0.0] * units, [[2.0**-63] * units], [bias], [[0.0], [large]], [shift, 0.0])
    rows = torch.full((1, 1, 1), 0.9 * 2.0**-63)
    network = Network.dense(1, units, 1, 2)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush denormal numbers to 0")
    try:
        scores = logits(network, tuple(each.lower for each in box), rows).flatten()
        bounds = margin_bounds(network, box, rows)
        assert bounds.lower[0, 0, 0, 1] <= scores[1] - scores[0] <= bounds.upper[0, 0, 0, 1]
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.sampled
@pytest.mark.parametrize("depth", [600, 1400, 2000])
def test_rounding_of_many_layers_is_counted(depth: int) -> None:
    network, large = Network.dense(1, *[1] * depth, 2), 2.0**20
    biases = [0.51 / 8] * (depth - 1) + [large]
    box = points(*(each for bias in biases for each in ([[1.0]], [bias])), [[0.0], [1.0]], [0.0, 0.0])
    rows = torch.ones(1, 1, 1)
    scores = logits(network, tuple(each.lower for each in box), rows).flatten()
    bounds = margin_bounds(network, box, rows)
    assert bounds.lower[0, 0, 0, 1] <= scores[1] - scores[0] <= bounds.upper[0, 0, 0, 1]


@pytest.mark.parametrize(
    ("module", "chain"),
    [
        (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), True),
        (nn.Sequential(nn.Flatten(), nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)), True),
        (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), False),
        (nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), False),
        (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), False),
        (
            nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2)),
            False,
        ),
    ],
)
def test_only_dense_layers_with_relu_between_them_are_chains(module: nn.Sequential, chain: bool) -> None:
    assert is_chain(Network.of(module)) == chain


def outside_of_backward(classes: int, dtype: torch.dtype, weight: Tensor, radius: float, seed: int) -> tuple[int, int]:
    """How many computed derivatives by a hidden layer leave their bounds, and how many bounds are narrower than before.

    The hidden units are active for certain, so that what flows back to them is what flows on.
    """
    generator = torch.Generator().manual_seed(seed)
    units, records = weight.shape[1], 12
    network = Network.dense(units, units, classes)
    identity = torch.eye(units, dtype=dtype)[None]
    noise = (radius * torch.rand(1, classes, units, generator=generator)).to(dtype)
    box = (
        Interval.point(identity),
        Interval.point(torch.zeros(1, units, dtype=dtype)),
        Interval(weight[None] - noise, weight[None] + noise),
        Interval.point(torch.randn(1, classes, generator=generator).to(dtype)),
    )
    rows = (0.5 + torch.rand(1, records, units, generator=generator)).to(dtype) / weight.abs().max()
    labels = torch.randint(0, classes, (records,), generator=generator)
    found = backward(network, box, forward(network, box, rows), labels, "cross-entropy")[0].derivatives
    single = backward(network, box, forward(network, box, rows), labels, "cross-entropy", Bounding(softmax="tight"))
    narrower = int(
        (found.upper - found.lower < 0.9 * (single[0].derivatives.upper - single[0].derivatives.lower)).sum()
    )
    count = 0
    for _ in range(30):
        inside = member(box[2], generator)
        scores = logits(network, (box[0].lower, box[1].lower, inside, box[3].lower), rows)
        flowing = derivatives(scores, labels, "cross-entropy") @ inside
        count += int((~found.holds(flowing[:, :, None])).sum())
    return count, narrower


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_derivative_that_flows_back_leaves_its_bounds(classes: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(9)
    narrower = 0
    for seed, radius in itertools.product(range(5), (0.0, 1e-3, 0.2)):
        weight = torch.randn(classes, 7, generator=generator).to(dtype)
        outside, some = outside_of_backward(classes, dtype, weight, radius, seed)
        narrower += some
        assert outside == 0
    assert narrower > 100


@pytest.mark.parametrize("classes", [2, 3])
def test_weights_that_differ_little_keep_the_rounding_of_large_ones(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their differences are small, what floats lose of them is not."""
    weight = 1e4 + torch.randn(classes, 7, generator=torch.Generator().manual_seed(2)) / 100
    assert sum(outside_of_backward(classes, torch.float32, weight, 0.0, seed)[0] for seed in range(20)) == 0
    right = propagation.product

    def without_slack(*given, **named):  # type: ignore[no-untyped-def]
        return right(*given, **named | {"more": None, "shift": None})

    monkeypatch.setattr(propagation, "product", without_slack)
    assert sum(outside_of_backward(classes, torch.float32, weight, 0.0, seed)[0] for seed in range(20)) > 0


def test_labels_of_each_run_are_taken_by_the_bounds_that_need_none() -> None:
    network, box, rows = drawn((3, 8, 3), 0.03, torch.float64, 1)
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    seen = forward(network, box, rows)
    together = backward(network, box, seen, labels.expand(2, -1), "cross-entropy")[0].derivatives
    alone = backward(network, box, seen, labels, "cross-entropy")[0].derivatives
    assert bool(((together.lower <= alone.lower) & (alone.upper <= together.upper)).all())
