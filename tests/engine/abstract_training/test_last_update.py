"""Lines of the last update: no retraining leaves them, bit for bit, and what they say is more than a box does."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from certified_unlearning.engine.abstract_training import last_update as module
from certified_unlearning.engine.abstract_training.descent import Descent, Parameters, State, directions, logits
from certified_unlearning.engine.abstract_training.extremes import Extremes
from certified_unlearning.engine.abstract_training.last_update import clamped_logistic, last_update
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.abstract_training.training import Batch, Trained, train
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.last_update import LastUpdate, supporting
from certified_unlearning.engine.intervals.margins import margin_bounds
from certified_unlearning.engine.intervals.network import Network, parameters_of
from certified_unlearning.engine.intervals.propagation import TIGHTEST, Bounding
from certified_unlearning.engine.intervals.rounding import NAIVE
from tests.engine.abstract_training.test_soundness import BOTH, GRID, newcomers
from tests.support.retraining import SMALL, combined, removals, retrained, small_problem, subsets

REMOVALS = Neighbourhood()
ONE_LOGIT = Network.dense(2, 8, 1)
DEEPER = Network.dense(2, 6, 5, 2)


def lines(
    trained: Trained,
    descent: Descent,
    batches: list[Batch],
    k: list[int],
    neighbourhood: Neighbourhood = REMOVALS,
    *,
    network: Network = SMALL,
    divisor: int | None = None,
    bounding: Bounding = TIGHTEST,
) -> LastUpdate | None:
    assert trained.before is not None
    update = trained.updates - 1
    return last_update(
        network,
        descent,
        trained.before,
        batches[-1],
        k,
        neighbourhood,
        bounding,
        update=update,
        divisor=divisor,
    )


def problem(network: Network, dtype: torch.dtype = torch.float64) -> tuple[Parameters, list[Batch]]:
    start, batches = small_problem()
    if network != SMALL:
        generator = torch.Generator().manual_seed(5)
        start = tuple(torch.randn(1, *shape, generator=generator, dtype=torch.float64) for shape in network.shapes)
    return tuple(each.to(dtype) for each in start), [Batch(each.rows.to(dtype), each.labels) for each in batches]


def differences(network: Network, parameters: Parameters, rows: Tensor) -> Tensor:
    scores = logits(network, parameters, rows)
    return scores[..., 0] if network.outputs == 1 else scores[..., 1] - scores[..., 0]


def bounds(network: Network, trained: Trained, last: LastUpdate | None, rows: Tensor = GRID) -> Interval:
    found = margin_bounds(network, trained.box, rows, last=last)
    return Interval(found.lower[0, :, 0, 1], found.upper[0, :, 0, 1])


def assert_between(found: Tensor, ends: Interval, most: float) -> None:
    """No difference is outside; some come nearer to their bounds than so much of the interval's width."""
    assert bool(((ends.lower <= found) & (found <= ends.upper)).all())
    apart = torch.minimum(found.amin(dim=0) - ends.lower, ends.upper - found.amax(dim=0))
    assert float((apart / (ends.upper - ends.lower)).min()) < most


@pytest.mark.parametrize("network", [SMALL, ONE_LOGIT, DEEPER])
@pytest.mark.parametrize("k", [1, 2])
def test_all_removals_of_up_to_k_records_from_each_batch(network: Network, k: int) -> None:
    start, batches = problem(network)
    loss = "cross-entropy" if network.outputs == 2 else "binary-cross-entropy"
    descent = Descent(loss=loss, step_size=0.2, weight_decay=0.1, decay=0.2)
    trained = train(network, descent, start, batches, k=[k])
    last = lines(trained, descent, batches, [k], network=network)
    present = [*combined(subsets(10, k), 2)] * 2  # 121 or 3136 data sets, each removed for good.
    found = differences(network, retrained(network, descent, start, batches, present), GRID)
    ends, plain = bounds(network, trained, last), bounds(network, trained, None)
    assert_between(found, ends, 0.3)
    assert bool((ends.lower >= plain.lower).all() and (ends.upper <= plain.upper).all())
    assert float(((ends.upper - ends.lower) / (plain.upper - plain.lower)).mean()) < 1


def members(
    descent: Descent,
    changes: str,
    k: int,
    *,
    network: Network = SMALL,
    dtype: torch.dtype = torch.float64,
    divisor: int | None = None,
    runs: int = 800,
) -> tuple[Trained, Tensor, list[Batch]]:
    """A box, and differences of logits of retrainings with removals and additions that change with every update."""
    start, batches = problem(network, dtype)
    neighbourhood = Neighbourhood(changes, "present" if divisor is None else "fixed")
    trained = train(network, descent, start, batches, k=[k], neighbourhood=neighbourhood, divisor=divisor)
    generator = torch.Generator().manual_seed(k)
    present, added = [], []
    for _ in batches:
        rows, labels, there = newcomers(runs, k, generator)
        left = removals(10, k, runs, generator)
        if changes == "removals":
            there = torch.zeros_like(there)
        elif changes == "substitutions":
            there = torch.arange(k) < 10 - left.sum(dim=1, keepdim=True)
        present.append(torch.cat([left, there], dim=1))
        added.append((rows.to(dtype), labels))
    found = retrained(network, descent, start, batches, present, added, divisor=divisor)
    return trained, differences(network, found, GRID.to(dtype)), batches


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("divisor", [None, 10])
@pytest.mark.parametrize("changes", ["removals", "additions and removals", "substitutions"])
@pytest.mark.parametrize(("k", "bound"), [(1, 1.0), (2, 0.1), (4, 0.02)])
def test_changes_of_any_kind(changes: str, k: int, bound: float, divisor: int | None, dtype: torch.dtype) -> None:
    descent = Descent(step_size=0.5, weight_decay=0.1, clipping="clamp", bound=bound)
    trained, found, batches = members(descent, changes, k, divisor=divisor, dtype=dtype)
    neighbourhood = Neighbourhood(changes, "present" if divisor is None else "fixed")
    last = lines(trained, descent, batches, [k], neighbourhood, divisor=divisor)
    assert last is not None
    assert_between(found, bounds(SMALL, trained, last, GRID.to(dtype)), 0.45)


@pytest.mark.parametrize("network", [ONE_LOGIT, DEEPER])
def test_other_networks_with_any_changes(network: Network) -> None:
    loss = "cross-entropy" if network.outputs == 2 else "binary-cross-entropy"
    descent = Descent(loss=loss, step_size=0.3, clipping="clamp", bound=0.2)
    trained, found, batches = members(descent, "additions and removals", 2, network=network)
    last = lines(trained, descent, batches, [2], BOTH, network=network)
    assert last is not None
    assert_between(found, bounds(network, trained, last), 0.45)


def test_one_update_from_a_point_is_bounded_to_rounding() -> None:
    descent = Descent(step_size=0.5)
    start, batches = problem(SMALL)
    box = tuple(Interval.point(each) for each in start)
    last = last_update(SMALL, descent, box, batches[0], [1], REMOVALS, TIGHTEST, update=0)
    assert last is not None
    found = retrained(SMALL, descent, start, batches[:1], [subsets(10, 1)])
    reached = found[2][:, 1] - found[2][:, 0]
    at = last.before.lower[0, :8]
    least, most = (
        (slopes[0, :8, :8] @ at + slopes[0, :8, 8] * last.before.lower[0, 8] + shifts[0, :8])
        for slopes, shifts in ((last.below_slopes, last.below_shifts), (last.above_slopes, last.above_shifts))
    )
    torch.testing.assert_close(least, reached.amin(dim=0), rtol=0, atol=1e-11)
    torch.testing.assert_close(most, reached.amax(dim=0), rtol=0, atol=1e-11)
    assert bool((least <= reached.amin(dim=0)).all() and (most >= reached.amax(dim=0)).all())


def _unchanged(found: Extremes, divisor: int) -> Interval:
    return Interval(*(end / divisor for end in found.private.total))


def _through_ends(argument: Interval, height: Tensor, limit: float) -> tuple[Tensor, Tensor]:
    slopes, _ = clamped_logistic(argument, height, limit, is_above=torch.tensor(True))
    return slopes, (torch.sigmoid(argument.lower) * height).clamp_max(limit) - slopes * argument.lower


FAULTS: dict[str, tuple[str, Callable[..., object]]] = {
    "removals forgotten": (
        "direction_bounds",
        lambda found, neighbourhood, k, *rest, **more: _unchanged(found, more["divisor"]),
    ),
    "lines through the ends alone": ("clamped_logistic", lambda *given, **more: _through_ends(*given)),
}


def outside(radius: float, k: int, fault: str | None, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many corners of a box, one update later, have last weights that are not between lines through their own."""
    start, batches = problem(SMALL)
    descent = Descent(step_size=1.0, clipping="clamp", bound=0.4)
    box = tuple(Interval(each - radius, each + radius) for each in start)
    with monkeypatch.context() as patch:
        if fault is not None:
            patch.setattr(module, *FAULTS[fault])
        last = last_update(SMALL, descent, box, batches[0], [k], REMOVALS, TIGHTEST, update=0)
    assert last is not None
    generator = torch.Generator().manual_seed(4)
    found, count = 0, len(subsets(10, k))
    for _ in range(300 if radius else 1):
        corners = tuple(
            each + radius * (2.0 * (torch.rand(count, *each.shape[1:], generator=generator) < 0.5) - 1)
            for each in start
        )
        state = State(corners)
        given = {"present": subsets(10, k)}
        state.follow(descent, directions(SMALL, descent, corners, batches[0].rows[None], batches[0].labels, **given))
        own, moved = (
            torch.cat([weight[:, 1] - weight[:, 0], (bias[:, 1] - bias[:, 0])[:, None]], dim=1)
            for weight, bias in (corners[2:], state.parameters[2:])
        )
        lines = {name: each.expand(count, *each.shape[1:]) for name, each in last.lines.items()}
        # A difference of floats is off the difference by a rounding, which is not in the lines' own.
        here = replace(last, before=Interval(own - 1e-15, own + 1e-15), **lines)
        found += int((~here.holds(moved)).sum())
    return found


@pytest.mark.parametrize(
    ("fault", "radius", "k"),
    [
        ("lines through the ends alone", 0.4, 0),
        ("removals forgotten", 0.0, 1),
        ("removals forgotten", 0.01, 2),
    ],
)
def test_corners_of_a_box_leave_wrong_lines(fault: str, radius: float, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outside(radius, k, None, monkeypatch) == 0
    assert outside(radius, k, fault, monkeypatch) > 0


def test_lines_are_above_and_below_the_clamped_logistic_function() -> None:
    generator = torch.Generator().manual_seed(3)

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(4000, generator=generator, dtype=torch.float64)

    for limit in (float("inf"), 0.02, 0.08, 1.0):
        for scale in (1e-6, 0.1, 3.0, 30.0, 700.0):
            low = scale * uniform(-1, 1)
            high = low + scale * uniform(0, 1) * (uniform(0, 1) > 0.05)
            height = torch.where(uniform(0, 1) < 0.1, 0, 10 ** uniform(-8, 3))
            found = {
                above: clamped_logistic(Interval(low, high), height, limit, is_above=torch.full((4000,), above))
                for above in (True, False)
            }
            knee = np.log(limit) - torch.log(height - limit) if limit < float("inf") else low
            special = torch.stack([low, high, torch.zeros_like(low), torch.nan_to_num(knee)])
            places = torch.cat([low + torch.linspace(0, 1, 101)[:, None] * (high - low), special.clamp(low, high)])
            at = places.numpy().astype(np.longdouble)
            values = np.minimum(limit, height.numpy() / (1 + np.exp(-at)))
            for above, (slopes, shifts) in found.items():
                line = slopes.numpy() * at + shifts.numpy()
                gap = (line - values) if above else (values - line)
                assert gap.min() >= 0
                assert bool((slopes >= 0).all())
                # They touch it somewhere, up to what is added for rounding and the places that were looked at.
                size = (height + slopes) * (1 + high.abs() + low.abs()) + min(limit, 1e3)
                assert bool((torch.as_tensor(gap.min(axis=0).astype(float)) <= 1e-3 * size).all())


def test_a_supporting_point_bounds_products() -> None:
    generator = torch.Generator().manual_seed(1)
    ends = torch.randn(2, 300, 7, generator=generator, dtype=torch.float64).sort(dim=0).values
    weights = Interval(*ends)
    heights = torch.rand(2, 300, 5, 7, generator=generator, dtype=torch.float64).sort(dim=0).values
    units = Interval(*heights)
    point, gap = supporting(weights, units)
    assert bool(((units.lower <= point) & (point <= units.upper)).all())
    without = 0
    for _ in range(200):
        v, u = (
            torch.where(torch.rand(each.lower.shape, generator=generator) < 0.5, each.lower, each.upper)
            for each in (weights, units)
        )
        above = (v[:, None] * (u - point)).sum(dim=-1)
        assert bool((above >= -gap).all())
        without += int((above < 0).sum())
    assert without > 0
    known = (weights.lower > 0).all(dim=-1)
    assert bool((gap[known] < 1e-200).all())


def test_gaps_hold_where_a_processor_flushes_small_differences() -> None:
    weights = Interval(*(torch.tensor([[end]], dtype=torch.float64) for end in (-5.5e173, 2.64)))
    units = Interval(*(torch.tensor([[[end]]], dtype=torch.float64) for end in (7.149e-308, 8.161e-308)))
    for flushes in (False, True):
        torch.set_flush_denormal(flushes)
        point, gap = supporting(weights, units)
        torch.set_flush_denormal(False)
        assert Fraction(float(gap)) >= Fraction(5.5e173) * (Fraction(8.161e-308) - Fraction(float(point)))
        assert Fraction(float(gap)) >= Fraction(2.64) * (Fraction(float(point)) - Fraction(7.149e-308))


def test_a_point_of_training_is_between_its_lines() -> None:
    start, batches = problem(SMALL)
    descent = Descent(step_size=0.5)
    trained = train(SMALL, descent, start, batches, k=[1, 2])
    last = lines(trained, descent, batches, [1, 2])
    assert last is not None
    row, bias = trained.parameters[2][0], trained.parameters[3][0]
    values = torch.cat([row[1] - row[0], (bias[1] - bias[0])[None]])
    assert bool(last.holds(values).all())
    assert not bool(last.holds(values + 1).any())
    assert {name: each.shape for name, each in last.of_runs(slice(1, 2)).tensors.items()} == {
        name: (1, *each.shape[1:]) for name, each in last.tensors.items()
    }


@pytest.mark.parametrize(
    ("descent", "neighbourhood", "change"),
    [
        (Descent(momentum=0.5), REMOVALS, {}),
        (Descent(clipping="l2", bound=1.0), REMOVALS, {}),
        (Descent(), Neighbourhood("additions or removals"), {}),
        (Descent(), BOTH, {}),
        (Descent(), Neighbourhood("substitutions"), {}),
        (Descent(), Neighbourhood(order_free=True), {}),
        (Descent(), REMOVALS, {"bounding": Bounding(rounding=NAIVE)}),
        (Descent(), REMOVALS, {"bounding": Bounding(differences="relaxed")}),
        (Descent(), REMOVALS, {"k": [10]}),
        (Descent(), REMOVALS, {"public": torch.arange(10) < 3}),
        (Descent(loss="squared"), REMOVALS, {}),
    ],
)
def test_there_are_none_where_they_would_not_hold(
    descent: Descent, neighbourhood: Neighbourhood, change: dict[str, object]
) -> None:
    start, batches = problem(SMALL)
    box = tuple(Interval.point(each) for each in start)
    k, bounding = change.get("k", [1]), change.get("bounding", TIGHTEST)
    batch = replace(batches[0], public=change.get("public"))
    assert last_update(SMALL, descent, box, batch, k, neighbourhood, bounding, update=0) is None


def test_there_are_none_where_records_are_too_many_for_their_sums_to_be_bounded() -> None:
    """Training with boxes may still be possible, by a few records, and must not end in an error after it."""
    network, n = Network.dense(1, 3, 1), 524_270
    start = tuple(torch.ones(1, *shape) for shape in network.shapes)
    batch = Batch(torch.ones(n, 1), torch.arange(n) % 2)
    descent = Descent(loss="binary-cross-entropy")
    trained = train(network, descent, start, [batch], k=[1])
    assert lines(trained, descent, [batch], [1], network=network) is None


def test_a_unit_of_rounding_moves_lines_by_as_little() -> None:
    """So that who trains again on another machine finds the same lines."""
    start, batches = problem(SMALL)
    box = tuple(Interval.point(each) for each in start)
    moved = tuple(
        Interval(*(torch.nextafter(end, end + sign) for end, sign in zip(each, (-1, 1), strict=True))) for each in box
    )
    found = [
        last_update(SMALL, Descent(), each, batches[0], [1], REMOVALS, TIGHTEST, update=0) for each in (box, moved)
    ]
    one, two = (each.tensors for each in found if each is not None)
    assert all(torch.allclose(one[name], two[name], rtol=1e-9, atol=1e-12) for name in one)


def test_there_are_none_for_other_networks_and_too_many_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    start, batches = problem(SMALL)
    box = tuple(Interval.point(each) for each in start)
    assert last_update(SMALL, Descent(), box, batches[0], [1], REMOVALS, TIGHTEST, update=0) is not None
    for layers in (
        [nn.Linear(2, 2)],
        [nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 3)],
        [nn.Linear(2, 3), nn.Linear(3, 2)],
    ):
        model = nn.Sequential(*layers).double()
        other = tuple(Interval.point(each) for each in parameters_of(model))
        assert last_update(Network.of(model), Descent(), other, batches[0], [1], REMOVALS, TIGHTEST, update=0) is None
    monkeypatch.setattr(module, "NUMBERS_KEPT", 2 * 9 * 9 - 1)
    assert last_update(SMALL, Descent(), box, batches[0], [1], REMOVALS, TIGHTEST, update=0) is None
