"""Boxes of small problems against hand-made ones: logistic regression of three points, batches cut anew, momentum."""

import itertools

import pytest
import torch
from torch import nn

from certified_unlearning.engine.abstract_training.descent import Descent, State, directions
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.abstract_training.training import Batch, Trained, train
from certified_unlearning.engine.intervals.interval import IntervalError
from certified_unlearning.engine.intervals.margins import certify
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.engine.intervals.propagation import RUMP, TIGHTEST, Bounding
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from tests.support.retraining import SMALL, inside, logistic, retrained, small_problem

LINE = Network.dense(1, 1)
SLOPE = Network.of(nn.Sequential(nn.Linear(1, 1, bias=False)))
BCE = "binary-cross-entropy"
BOTH = Neighbourhood("additions and removals")
FIXED = Neighbourhood(normaliser="fixed")


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def line(x: list[float], y: list[float]) -> Batch:
    return Batch(tensor(x)[:, None], tensor(y))


THREE = line([-1, 0.5, 2], [0, 1, 1])
ORIGIN = (tensor([[[0.0]]]), tensor([[0.0]]))


def ends(trained: Trained, run: int = 0) -> list[float]:
    return [end[run].item() for box in trained.box for end in box]


def final(present: list[bool], divisor: int | None = None, descent: Descent | None = None) -> list[float]:
    """Weight and intercept after both updates."""
    found = retrained(
        LINE,
        descent or Descent(loss=BCE, step_size=0.5),
        ORIGIN,
        [THREE] * 2,
        [torch.tensor([present])] * 2,
        divisor=divisor,
    )
    return [each.item() for each in found]


LEFT_OUT = {
    None: (0.516345, 0.139016),
    0: (0.509584, 0.423507),
    1: (0.637244, -0.0216280),
    2: (0.360388, 0.00582945),
}


@pytest.mark.parametrize("gone", LEFT_OUT)
def test_three_points_without_each(gone: int | None) -> None:
    assert final([place != gone for place in range(3)]) == pytest.approx(LEFT_OUT[gone], rel=1e-5)


def test_three_points_unlearning() -> None:
    descent = Descent(loss=BCE, step_size=0.5)
    first = train(LINE, descent, ORIGIN, [THREE], k=[1])
    assert ends(first) == pytest.approx([0.1875, 0.375, 0, 0.25], abs=1e-9)
    both = train(LINE, descent, ORIGIN, [THREE] * 2, k=[1])
    assert ends(both) == pytest.approx([0.338375, 0.707572, -0.0616696, 0.470978], rel=1e-5)
    for gone in LEFT_OUT:
        w, c = final([place != gone for place in range(3)])
        low_w, high_w, low_c, high_c = ends(both)
        assert low_w <= w <= high_w
        assert low_c <= c <= high_c
    sure = certify(LINE, both.box, tensor([[[2], [0.5], [-2], [-1], [-0.5], [0]]]))
    assert sure.certified[0].tolist() == [True, True, True, False, False, False]
    assert sure.classes[0, :3].tolist() == [1, 1, 0]


def test_a_fixed_divisor_needs_its_own_row() -> None:
    descent = Descent(loss=BCE, step_size=0.5)
    mean = train(LINE, descent, ORIGIN, [THREE] * 2, k=[1])
    fixed = train(LINE, descent, ORIGIN, [THREE] * 2, k=[1], neighbourhood=Neighbourhood(normaliser="fixed"), divisor=3)
    assert ends(fixed) == pytest.approx([0.231475, 0.563042, -0.0315990, 0.320367], rel=1e-5)
    without_the_third = final([True, True, False], divisor=3)
    assert without_the_third == pytest.approx([0.243497, 0.00259824], rel=1e-5)
    assert without_the_third[0] < ends(mean)[0]  # The counterexample to means.
    for gone in LEFT_OUT:
        w, c = final([place != gone for place in range(3)], divisor=3)
        low_w, high_w, low_c, high_c = ends(fixed)
        assert low_w <= w <= high_w
        assert low_c <= c <= high_c


def test_three_points_privacy_and_every_added_point() -> None:
    descent = Descent(loss=BCE, step_size=0.5, clipping="clamp", bound=0.5)
    first = train(LINE, descent, ORIGIN, [THREE], k=[1], neighbourhood=BOTH)
    assert ends(first) == pytest.approx([0.0416667, 0.25, -0.0833333, 0.25], rel=1e-5)
    both = train(LINE, descent, ORIGIN, [THREE] * 2, k=[1], neighbourhood=BOTH)
    assert ends(both) == pytest.approx([0.0618494, 0.5, -0.196530, 0.5], rel=1e-5)
    assert final([True] * 3, descent=descent) == pytest.approx([0.407570, 0.143669], rel=1e-5)
    masks = torch.cat([torch.ones(1, 3), 1 - torch.eye(3)]).bool()
    x = torch.arange(-200, 201).double() / 10
    more = torch.cartesian_prod(x, tensor([0, 1]))
    runs = [(mask, point) for mask in masks for point in more] + [(mask, None) for mask in masks]
    present = torch.stack([torch.cat([mask, torch.tensor([point is not None])]) for mask, point in runs])
    points = torch.stack([tensor([0, 0]) if point is None else point for _, point in runs])
    added = (points[:, None, :1], points[:, None, 1])
    found = retrained(LINE, descent, ORIGIN, [THREE] * 2, [present] * 2, [added] * 2)
    assert len(runs) == 3212
    assert bool(inside(both, found).all())
    w, c = (each.flatten() for each in found)
    assert [w.min().item(), w.max().item()] == pytest.approx([0.0777252, 0.493072], rel=1e-5)
    assert [c.min().item(), c.max().item()] == pytest.approx([-0.164078, 0.475022], rel=1e-5)
    assert certify(LINE, both.box, tensor([[[5], [2]]])).certified[0].tolist() == [True, False]


def test_batches_that_are_cut_anew_leave_the_box_of_places() -> None:
    first, second = line([1, 1], [1, 1]), line([-1, -1], [1, 1])
    descent, start = Descent(loss=BCE, step_size=1), (tensor([[[0.0]]]),)
    places = train(SLOPE, descent, start, [first, second], k=[1])
    assert ends(places) == pytest.approx([-0.122459] * 2, rel=1e-5)
    state = State(start)
    for batch in (line([1, -1], [1, 1]), line([-1], [1])):
        state.follow(descent, directions(SLOPE, descent, state.parameters, batch.rows[None], batch.labels))
    cut_anew = state.parameters[0].item()
    assert cut_anew == pytest.approx(-0.5)
    assert cut_anew < ends(places)[0]


def test_any_order_needs_the_number_of_updates_to_stay() -> None:
    four, half = line([1] * 4, [1] * 4), line([1] * 2, [1] * 2)
    descent, start = Descent(loss=BCE, step_size=1), (tensor([[[0.0]]]),)
    free = train(
        SLOPE, descent, start, [half, half], k=[1], neighbourhood=Neighbourhood(order_free=True), everyone=four
    )
    assert ends(free) == pytest.approx([0.877541] * 2, rel=1e-5)
    dropped = 1 - logistic(0)
    assert dropped == 0.5  # One update, for the batch of the one record left over was dropped.
    assert dropped < ends(free)[0]


@pytest.mark.parametrize(
    ("changes", "bound", "k", "kind", "mean", "widest", "weight", "bias"),
    [
        ("removals", None, 1, "rump", 0.111767, 0.297410, (0.199141, 0.313126), (-0.00323998, 0.199848)),
        ("removals", None, 1, "exact", 0.108576, 0.293182, (0.201030, 0.310623), (-0.00222086, 0.198039)),
        ("removals", None, 2, "rump", 0.213061, 0.555405, (0.141892, 0.360933), (-0.0929387, 0.322085)),
        ("additions and removals", 1.0, 1, "rump", 0.372026, 0.634702, (0.0572101, 0.448885), (-0.145928, 0.354724)),
        ("additions and removals", 0.1, 1, "rump", 0.0323925, 0.0426545, (0.289276, 0.323168), (0.008, 0.04)),
        ("additions and removals", 0.1, 2, "exact", 0.0602716, 0.0770751, (0.276895, 0.340028), (-0.008, 0.056)),
    ],
)
def test_the_box_of_42_parameters(changes, bound, k, kind, mean, widest, weight, bias) -> None:
    start, batches = small_problem()
    descent = Descent(step_size=0.2, clipping="none" if bound is None else "clamp", bound=bound)
    bounding = Bounding(kind, kind, "tight")
    neighbourhood = Neighbourhood(changes)
    found = train(SMALL, descent, start, batches, k=[k], neighbourhood=neighbourhood, bounding=bounding)
    widths = torch.cat([(box.upper - box.lower).flatten() for box in found.box])
    assert (widths.mean().item(), widths.max().item()) == pytest.approx((mean, widest), rel=1e-5)
    assert [end[0, 0, 0].item() for end in found.box[2]] == pytest.approx(weight, rel=1e-5)
    assert [end[0, 1].item() for end in found.box[3]] == pytest.approx(bias, rel=1e-5)
    tightest = train(SMALL, descent, start, batches, k=[k], neighbourhood=neighbourhood)
    for inner, outer in zip(tightest.box, found.box, strict=True):
        assert bool((inner.lower >= outer.lower - 1e-9).all() and (inner.upper <= outer.upper + 1e-9).all())


@pytest.mark.parametrize(
    ("changes", "bound", "k", "mean", "widest"),
    [
        ("removals", None, 1, 0.110238, 0.296986),
        ("removals", None, 2, 0.206706, 0.553615),
        ("additions and removals", 1.0, 1, 0.359115, 0.632097),
        ("additions and removals", 0.1, 1, 0.0323451, 0.0426541),
    ],
)
def test_exact_outer_products_tighten_rumps_box(changes, bound, k, mean, widest) -> None:
    start, batches = small_problem()
    descent = Descent(step_size=0.2, clipping="none" if bound is None else "clamp", bound=bound)
    bounding = Bounding("rump", "exact", "tight")
    found = train(SMALL, descent, start, batches, k=[k], neighbourhood=Neighbourhood(changes), bounding=bounding)
    widths = torch.cat([(box.upper - box.lower).flatten() for box in found.box])
    assert (widths.mean().item(), widths.max().item()) == pytest.approx((mean, widest), rel=1e-5)


def test_certified_points_of_a_grid_and_their_radii() -> None:
    start, batches = small_problem()
    descent = Descent(step_size=0.2, clipping="clamp", bound=0.02)
    axis = torch.linspace(-2, 2, 21, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)[None]
    found = train(SMALL, descent, start, batches, k=[*range(9)], neighbourhood=BOTH, bounding=RUMP)
    widths = [torch.cat([(box.upper - box.lower)[k].flatten() for box in found.box]).mean().item() for k in range(9)]
    assert widths[1] == pytest.approx(0.00621707, rel=1e-5)
    assert widths[8] == pytest.approx(0.0310873, rel=1e-5)
    separate = certify(SMALL, found.box, grid, RUMP, joint=False).certified
    assert separate.sum(dim=1).tolist() == [441, 414, 385, 356, 334, 323, 302, 293, 287]
    joint = certify(SMALL, found.box, grid).certified
    assert joint.sum(dim=1).tolist() == [441, 414, 386, 356, 335, 324, 306, 301, 294]
    points = certify(SMALL, found.box, tensor([[[0, 0], [2, -2], [2, 2], [-2, 2], [-2, -2]]]), RUMP, joint=False)
    radii = points.certified[1:].cumprod(dim=0).sum(dim=0).tolist()
    assert radii[:2] == [1, 3]
    assert all(radius == 8 for radius in radii[2:])
    for k in range(8):  # Boxes are nested.
        assert all(
            bool((box.lower[k + 1] <= box.lower[k]).all() and (box.upper[k] <= box.upper[k + 1]).all())
            for box in found.box
        )
    single = [train(SMALL, descent, start, batches, k=[k], neighbourhood=BOTH, bounding=RUMP) for k in (1, 5)]
    for k, alone in zip((1, 5), single, strict=True):
        for box, other in zip(found.box, alone.box, strict=True):
            torch.testing.assert_close(box.lower[k], other.lower[0], rtol=0, atol=1e-12)


def test_training_without_bounds_is_plain_descent() -> None:
    start, batches = small_problem()
    found = train(SMALL, Descent(step_size=0.2), start, batches, k=[0])
    assert found.parameters[0][0, 0].tolist() == pytest.approx([0.556629, -0.657193], rel=1e-5)
    assert found.parameters[1][0, 0].item() == pytest.approx(0.0804107, rel=1e-5)
    assert found.parameters[2][0, 0, :3].tolist() == pytest.approx([0.260102, -0.615020, 0.163908], rel=1e-5)
    assert found.parameters[3][0, 1].item() == pytest.approx(0.0919594, rel=1e-5)
    assert all(bool((box.upper - box.lower < 1e-12).all()) for box in found.box)
    module = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)).double()
    with torch.no_grad():
        for each, value in zip(module.parameters(), start, strict=True):
            each.copy_(value[0])
    optimiser = torch.optim.SGD(module.parameters(), lr=0.2)
    for batch in batches:
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(batch.rows), batch.labels).backward()
        optimiser.step()
    assert all(
        bool(box.holds(each.detach()[None]).all()) for box, each in zip(found.box, module.parameters(), strict=True)
    )


@pytest.mark.parametrize(
    ("step_size", "decay", "rates"),
    [
        (0.03, 0.3, {0: 0.03, 1: 0.0230769, 2: 0.01875, 32: 0.00283019}),
        (0.1, 20, {0: 0.1, 1: 0.0047619, 2: 0.00243902, 249: 2.00763e-5}),
        (0.001, 0.6, {1: 0.000625, 4: 0.000294118}),
    ],
)
def test_schedules(step_size: float, decay: float, rates: dict) -> None:
    descent = Descent(step_size=step_size, decay=decay)
    assert {n: descent.rate(n) for n in rates} == pytest.approx(rates, rel=1e-5)
    if decay == 20:
        assert sum(descent.rate(n) for n in range(250)) == pytest.approx(0.130088, rel=1e-5)


def test_radii_of_neighbours_differ_by_at_most_one() -> None:
    """All data sets of five places, each empty or one of four points; their order does not matter."""
    kinds = [(-1.0, 0.0), (1.0, 1.0), (1.0, 0.0), (-1.0, 1.0)]
    descent = Descent(loss=BCE, step_size=0.5, clipping="clamp", bound=0.5)
    start = (tensor([[[0.02]]]), tensor([[0.01]]))
    queries = tensor([[[0.3], [1.5], [-0.4], [0.05]]])
    found = {}
    for size in range(1, 6):
        for chosen in itertools.combinations_with_replacement(range(4), size):
            batch = line([kinds[each][0] for each in chosen], [kinds[each][1] for each in chosen])
            trained = train(LINE, descent, start, [batch] * 2, k=[*range(1, 7)], neighbourhood=BOTH)
            sure = certify(LINE, trained.box, queries)
            label = (trained.parameters[0][0, 0] * queries[0, :, 0] + trained.parameters[1][0] > 0).tolist()
            found[chosen] = sure.certified.long().cumprod(dim=0).sum(dim=0).tolist(), label
    counts, pairs = {0: 0, 1: 0, 2: 0}, 0
    for places in itertools.product(range(5), repeat=5):
        here = tuple(sorted(each for each in places if each < 4))
        if not here:
            continue
        for radius in found[here][0]:
            counts[radius] += 1
        for place, other in itertools.product(range(5), range(5)):
            changed = (*places[:place], other, *places[place + 1 :])
            there = tuple(sorted(each for each in changed if each < 4))
            if other == places[place] or not there:
                continue
            pairs += 1
            for one, two, label, their in zip(
                *found[here][:1], *found[there][:1], found[here][1], found[there][1], strict=True
            ):
                assert abs(one - two) <= 1
                assert one == 0 or label == their
    assert (counts, pairs) == ({0: 10402, 1: 1999, 2: 95}, 62_460)


PULLS = line([1e-3, 1e-3], [500, -500])


def coupled_step(weight: float, velocity: float, target: float, decay: float, nesterov: bool) -> tuple[float, float]:
    """One update of the wrong variant, with weight decay inside the velocity, at momentum 0.9 and step size 0.5."""
    direction = 2e-3 * (1e-3 * weight - target) + decay * weight
    velocity = 0.9 * velocity + direction
    return weight - 0.5 * (direction + 0.9 * velocity if nesterov else velocity), velocity


def coupled_box(decay: float, updates: int, nesterov: bool) -> float:
    """The upper end of the box that ends give, which is symmetric, each with a velocity of its own."""
    end = velocity = 0.0
    for _ in range(updates):
        # The loss at the lower end of the box, where its derivative is smallest; decay at the end itself.
        direction = 2e-3 * (-1e-3 * end - 500) + decay * end
        velocity = 0.9 * velocity + direction
        end -= 0.5 * (direction + 0.9 * velocity if nesterov else velocity)
    return end


def coupled_reach(decay: float, updates: int, nesterov: bool) -> float:
    """The largest weight when each update leaves the point of the better sign: weights are linear in targets."""

    def end(targets: list[float]) -> float:
        weight = velocity = 0.0
        for target in targets:
            weight, velocity = coupled_step(weight, velocity, target, decay, nesterov)
        return weight

    signs = [end([0.0] * place + [500.0] + [0.0] * (updates - place - 1)) > 0 for place in range(updates)]
    return end([500.0 if sign else -500.0 for sign in signs])


@pytest.mark.parametrize(
    ("decay", "updates", "nesterov", "box", "reached"),
    [
        (0.1, 20, False, 11.2117, 18.3466),
        (0.1, 40, False, 11.0200, 25.1451),
        (0.1, 40, True, 10.3440, 19.4894),
        (0.02, 40, False, 56.8690, 58.4482),
    ],
)
def test_decay_inside_the_velocity_leaves_the_box_of_ends(decay, updates, nesterov, box, reached) -> None:
    assert coupled_box(decay, updates, nesterov) == pytest.approx(box, rel=1e-5)
    assert coupled_reach(decay, updates, nesterov) == pytest.approx(reached, rel=1e-5)


def test_decay_inside_the_velocity_is_refused() -> None:
    with pytest.raises(ParameterError, match="has no sound box"):
        Descent(loss="squared", momentum=0.9, weight_decay=0.1, couples_decay=True)
    with pytest.raises(ParameterError, match=r"step_size x weight_decay must be at most 1"):
        Descent(step_size=2.0, weight_decay=0.6)


def test_momentum_and_decoupled_decay_stay_inside() -> None:
    """Every pattern of which of two points is left over, eight updates; the two differ as much as can be."""
    for nesterov, decay in itertools.product((False, True), (0.0, 0.1, 2.0)):
        descent = Descent(loss="squared", step_size=0.5, momentum=0.9, nesterov=nesterov, weight_decay=decay)
        start, updates = (tensor([[[0.0]]]),), 8
        found = train(SLOPE, descent, start, [PULLS] * updates, k=[1])
        patterns = torch.tensor([[True, False], [False, True], [True, True]])
        runs = 3**updates
        present = [patterns[torch.arange(runs) // 3**update % 3] for update in range(updates)]
        reached = retrained(SLOPE, descent, start, [PULLS] * updates, present)
        assert bool(inside(found, reached).all())
        assert reached[0].max().item() > 0.8 * ends(found)[1]


@pytest.mark.parametrize("budget", [1, 5])
def test_batches_that_would_be_emptied_are_refused(budget: int) -> None:
    with pytest.raises(AssumptionError, match="would empty a batch of 1"):
        train(LINE, Descent(loss=BCE), ORIGIN, [line([1.0], [1.0])], k=[budget])
    found = train(
        LINE,
        Descent(loss=BCE, clipping="clamp", bound=0.1),
        ORIGIN,
        [line([1.0], [1.0])],
        k=[budget],
        neighbourhood=BOTH,
    )
    assert ends(found) == pytest.approx([-0.01, 0.01] * 2)


def test_bounds_that_overflow_are_an_error() -> None:
    start, batches = small_problem()
    with pytest.raises(IntervalError, match="not finite"):
        train(SMALL, Descent(step_size=1e200), start, batches * 3, k=[1])
    with pytest.raises(DataError, match="not finite"):
        train(LINE, Descent(loss=BCE), ORIGIN, [line([torch.nan], [1.0])], k=[0])


def test_logits_that_may_overflow_are_an_error_although_their_derivatives_are_bounded() -> None:
    """The softmax of infinite logits lies between 0 and 1, but training makes NaN of it."""
    network = Network.dense(1, 2)
    start = (tensor([[[100.0], [-100.0]]]), tensor([[0.0, 0.0]]))
    batch = Batch(tensor([[1.0], [1.0], [1e307]]), torch.tensor([0, 1, 0]))
    with pytest.raises(IntervalError, match="the bounds of the logits are not finite"):
        train(network, Descent(step_size=1e3, clipping="clamp", bound=1.0), start, [batch], k=[1])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"k": []}, "k must hold at least one number"),
        ({"k": [-1]}, r"k\[0\] must be a whole number, at least 0, got -1"),
        ({"k": [1.5]}, r"k\[0\] must be a whole number"),
        (
            {"divisor": 0, "neighbourhood": Neighbourhood(normaliser="fixed")},
            "divisor must be a whole number, at least 1",
        ),
        ({"divisor": 3}, "`divisor` must be given"),
        ({"everyone": THREE}, "`everyone` must be given"),
        ({"batches": [Batch(THREE.rows, THREE.labels[:2])]}, "one label for each record"),
        ({"batches": [Batch(THREE.rows, THREE.labels, torch.ones(2).bool())]}, "`public` must have"),
        ({"descent": Descent(loss="cross-entropy")}, "at least 2 logits"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict, said: str) -> None:
    given = {"descent": Descent(loss=BCE), "batches": [THREE], "k": [1], **changes}
    with pytest.raises(ParameterError, match=said):
        train(LINE, given.pop("descent"), ORIGIN, given.pop("batches"), **given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"step_size": 0.0}, "step_size"),
        ({"bound": 1.0}, "left out without clipping"),
        ({"clipping": "l2"}, "given with clipping"),
        ({"clipping": "clamp", "bound": -1.0}, "above 0"),
        ({"clipping": "norm"}, "clipping must be one of"),
        ({"momentum": 1.0}, "below 1"),
        ({"weight_decay": -1.0}, "weight_decay"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(given: dict, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Descent(**given)


def test_coarser_products_than_bounds_assume_are_refused() -> None:
    def single(dtype: torch.dtype) -> Trained:
        start = [each.to(dtype) for each in ORIGIN]
        return train(LINE, Descent(loss=BCE), start, [Batch(THREE.rows.to(dtype), THREE.labels)], k=[1])

    single(torch.float32)
    with pytest.raises(ParameterError, match=r"bounds need float64 or float32, got torch\.bfloat16"):
        single(torch.bfloat16)
    with torch.autocast("cpu"), pytest.raises(ParameterError, match="autocast"):
        single(torch.float64)
    torch.set_float32_matmul_precision("medium")
    try:
        single(torch.float64)
        with pytest.raises(ParameterError, match="must be 'highest'"):
            single(torch.float32)
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("wrong", [7.0, -1.0, 0.5, torch.nan])
@pytest.mark.parametrize("loss", [BCE, "cross-entropy"])
def test_labels_that_are_no_classes_are_refused(wrong: float, loss: str) -> None:
    network = Network.dense(1, 1 if loss == BCE else 3)
    start = [torch.zeros(1, *shape, dtype=torch.float64) for shape in network.shapes]
    with pytest.raises(DataError, match="labels must be whole numbers from 0 to"):
        train(network, Descent(loss=loss), start, [line([1.0, 2.0, 3.0], [0.0, 1.0, wrong])], k=[1])


def test_tightest_is_the_default() -> None:
    assert Bounding("exact", "exact", "pairwise") == TIGHTEST
