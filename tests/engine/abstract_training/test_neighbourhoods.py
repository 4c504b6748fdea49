"""Bounds of a batch's direction: the vectors, and the largest values that enumerated neighbours attain."""

import itertools
from functools import reduce
from operator import add

import pytest
import torch
from torch import Tensor

from certified_unlearning.engine.abstract_training.extremes import Extremes, Sums, extremes
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood, direction_bounds
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.engine.intervals.propagation import TIGHTEST, Factors
from certified_unlearning.engine.intervals.rounding import NAIVE, OUTWARD
from certified_unlearning.errors import AssumptionError, ParameterError

UPPER = [[0.9, -0.2, 0.5], [0.1, 0.3, -0.7], [-0.4, 0.8, 0.2], [0.6, -0.9, 1.0], [-1.0, 0.0, 0.4]]
LOWER = [[0.6, -0.3, 0.3], [-0.1, -0.2, -1.0], [-0.5, 0.5, 0.2], [0.2, -1.0, 0.4], [-1.0, -0.2, -0.1]]
REMOVALS = Neighbourhood()
BOTH = Neighbourhood("additions and removals")
EDITS = Neighbourhood("additions or removals")
SUBSTITUTIONS = Neighbourhood("substitutions")


def fixed(neighbourhood: Neighbourhood) -> Neighbourhood:
    return Neighbourhood(neighbourhood.changes, "fixed")


def summary(lower: Tensor, upper: Tensor, most: int, public: Interval | None = None, extra: int = 0) -> Extremes:
    """What streaming leaves of some records' bounds, shape ``(records, entries)``."""
    most = min(most, len(lower))
    size = torch.maximum(lower.abs(), upper.abs()).sum(dim=0)[None]
    sums = Sums(
        Interval(lower.sum(dim=0)[None], upper.sum(dim=0)[None]),
        size,
        upper.sort(dim=0).values[None, :most],
        lower.sort(dim=0, descending=True).values[None, :most],
    )
    known = None if public is None else Interval(*(end[None] for end in public))
    return Extremes(sums, known, size, len(lower), extra, len(lower) + extra)


def bounds(
    lower: Tensor, upper: Tensor, k: int, neighbourhood: Neighbourhood, bound: float = 1.0, **options
) -> Interval:
    public, extra = options.pop("public", None), options.pop("extra", 0)
    batch = options.get("batch") or len(lower)
    found = summary(lower, upper, neighbourhood.kept(k, len(lower), batch), public, extra)
    return direction_bounds(
        found,
        neighbourhood,
        torch.tensor([k]),
        torch.tensor([bound]).double(),
        divisor=options.pop("divisor", len(lower) + extra),
        rounding=options.pop("rounding", OUTWARD),
        **options,
    )


@pytest.mark.parametrize(
    ("neighbourhood", "k", "lower", "upper"),
    [
        (REMOVALS, 0, (-0.16, -0.24, -0.04), (0.04, 0, 0.28)),
        (BOTH, 0, (-0.16, -0.24, -0.04), (0.04, 0, 0.28)),
        (EDITS, 0, (-0.16, -0.24, -0.04), (0.04, 0, 0.28)),
        (fixed(REMOVALS), 0, (-0.16, -0.24, -0.04), (0.04, 0, 0.28)),
        (REMOVALS, 1, (-0.35, -0.425, -0.15), (0.3, 0.225, 0.525)),
        (REMOVALS, 2, (-0.533333, -0.5, -0.3), (0.533333, 0.366667, 0.633333)),
        (BOTH, 1, (-0.48, -0.54, -0.32), (0.44, 0.38, 0.62)),
        (BOTH, 2, (-0.72, -0.7, -0.58), (0.72, 0.62, 0.78)),
        (SUBSTITUTIONS, 2, (-0.72, -0.7, -0.58), (0.72, 0.62, 0.78)),
        (fixed(SUBSTITUTIONS), 2, (-0.72, -0.7, -0.58), (0.72, 0.62, 0.78)),
        (BOTH, 5, (-1, -1, -1), (1, 1, 1)),
        (BOTH, 9, (-1, -1, -1), (1, 1, 1)),
        (fixed(REMOVALS), 1, (-0.28, -0.34, -0.12), (0.24, 0.18, 0.42)),
        (fixed(REMOVALS), 2, (-0.32, -0.34, -0.18), (0.32, 0.22, 0.42)),
        (fixed(BOTH), 2, (-0.72, -0.74, -0.58), (0.72, 0.62, 0.82)),
        (fixed(EDITS), 2, (-0.56, -0.64, -0.44), (0.44, 0.4, 0.68)),
        (EDITS, 1, (-0.35, -0.425, -0.2), (0.3, 0.225, 0.525)),
        (EDITS, 2, (-0.533333, -0.54, -0.32), (0.533333, 0.38, 0.633333)),
    ],
)
def test_vectors(neighbourhood: Neighbourhood, k: int, lower: tuple, upper: tuple) -> None:
    found = bounds(torch.tensor(LOWER).double(), torch.tensor(UPPER).double(), k, neighbourhood)
    assert found.lower[0].tolist() == pytest.approx(lower, rel=1e-5, abs=1e-7)
    assert found.upper[0].tolist() == pytest.approx(upper, rel=1e-5, abs=1e-7)


def attained(values: Tensor, public: Tensor, k: int, neighbourhood: Neighbourhood, divisor: int) -> tuple[float, float]:
    """The smallest and the largest direction over all neighbours, whose added gradients are 1 or -1."""
    found = []
    for removed in range(min(k, len(values)) + 1):
        added = {
            "removals": [0],
            "additions and removals": range(k + 1),
            "substitutions": [removed],
            "additions or removals": range(k - removed + 1),
        }[neighbourhood.changes]
        for kept in itertools.combinations(values.tolist(), len(values) - removed):
            for more in added:
                count = len(kept) + more + len(public)
                if neighbourhood.normaliser == "fixed":
                    count = divisor
                total = sum(kept) + float(public.sum())
                found += [(total + sign * more) / count if count else 0.0 for sign in (1, -1)]
    return min(found), max(found)


@pytest.mark.parametrize("changes", ["removals", "additions and removals", "substitutions", "additions or removals"])
@pytest.mark.parametrize("normaliser", ["present", "fixed"])
@pytest.mark.parametrize("public", [0, 4])
def test_every_row_is_what_neighbours_attain(changes: str, normaliser: str, public: int) -> None:
    neighbourhood = Neighbourhood(changes, normaliser)
    generator = torch.Generator().manual_seed(1)
    for trial in range(25):
        values = 2 * torch.rand(5, generator=generator, dtype=torch.float64) - 1
        if trial < 6:  # Signs that decide which of many mixed numbers of changes is the largest.
            values = values.abs() * (-1) ** trial * 0.2
        known = (2 * torch.rand(public, generator=generator, dtype=torch.float64) - 1) * (1 if trial % 2 else 0.1)
        for k in range(0, 5):
            found = bounds(
                values[:, None],
                values[:, None],
                k,
                neighbourhood,
                public=Interval.point(known.sum()[None]) if public else None,
                extra=public,
            )
            low, high = attained(values, known, k, neighbourhood, 5 + public)
            assert found.lower.item() == pytest.approx(low, abs=1e-12)
            assert found.upper.item() == pytest.approx(high, abs=1e-12)
            assert found.lower.item() <= low
            assert high <= found.upper.item()


def test_public_records_make_additions_alone_the_worst_and_the_plain_formula_unsound() -> None:
    private = torch.full((10, 1), 0.1).double()
    public = Interval.point(torch.tensor([-9.0]).double())
    found = bounds(private, private, 5, BOTH, bound=0.1, public=public, extra=90)
    assert found.upper.item() == pytest.approx(-0.0714286, rel=1e-5)
    wrong = (-9.0 + 0.5 + 0.5) / 100  # Mixed rows by the formula of substitutions.
    assert wrong == pytest.approx(-0.08)
    counterexample = (-9.0 + 1.0 + 5 * 0.1) / 105
    assert wrong < counterexample <= found.upper.item()
    assert bounds(private, private, 5, SUBSTITUTIONS, bound=0.1, public=public, extra=90).upper.item() == pytest.approx(
        wrong
    )


def test_a_divisor_that_stays_breaks_the_formula_of_means() -> None:
    """Two gradients of gamma: one more over the same divisor passes gamma, which is all that line 14 gives."""
    values = torch.ones(2, 1).double()
    wrong, right = bounds(values, values, 1, BOTH), bounds(values, values, 1, fixed(BOTH))
    attained_by_one_more = 3 * 1.0 / 2
    assert wrong.upper.item() == pytest.approx(1.0)
    assert wrong.upper.item() < attained_by_one_more
    assert right.upper.item() == pytest.approx(1.5)
    assert attained_by_one_more <= right.upper.item()


def test_an_adds_or_removals_row_does_not_cover_a_substitution() -> None:
    """The wrong variant: a substitution is two edits."""
    generator = torch.Generator().manual_seed(4)
    left = 0
    for _ in range(100):
        values = 2 * torch.rand(5, 1, generator=generator, dtype=torch.float64) - 1
        substituted = (values.sum() - values.min() + 1).item() / 5
        left += substituted > bounds(values, values, 1, EDITS).upper.item()
        assert substituted <= bounds(values, values, 1, SUBSTITUTIONS).upper.item()
    assert left > 20


def test_batches_of_any_order_draw_from_all_records() -> None:
    generator = torch.Generator().manual_seed(5)
    for changes in ("removals", "additions and removals"):
        neighbourhood = Neighbourhood(changes, order_free=True)
        for k in range(3):
            values = 2 * torch.rand(6, generator=generator, dtype=torch.float64) - 1
            found = bounds(values[:, None], values[:, None], k, neighbourhood, batch=3)
            reached = []
            for size in range(3 - k, 4):
                for kept in itertools.combinations(values.tolist(), size):
                    for more in range(k + 1 if changes != "removals" else 1):
                        if size + more:
                            reached += [(sum(kept) + sign * more) / (size + more) for sign in (1, -1)]
            assert found.lower.item() <= min(reached)
            assert max(reached) <= found.upper.item()
            if changes == "removals":
                assert found.upper.item() == pytest.approx(max(reached), abs=1e-12)


@pytest.mark.parametrize("outer", ["exact", "rump"])
@pytest.mark.parametrize("most", [0, 1, 3, 7])
def test_reading_a_batch_in_pieces_is_reading_it_at_once(outer: str, most: int, monkeypatch) -> None:
    from dataclasses import replace

    from certified_unlearning.engine.abstract_training import extremes as module

    torch.manual_seed(6)
    network = Network.dense(4, 3)
    ends = [torch.sort(torch.randn(2, 2, 7, 1, size).double(), dim=0).values for size in (3, 4)]
    factors = Factors(
        Interval(*ends[0]), Interval(ends[1][0, :1].abs(), ends[1][0, :1].abs() + ends[1][1, :1].abs()), True
    )
    bounding = replace(TIGHTEST, outer=outer)
    found = []
    for numbers in (1, 40, 10**6):
        monkeypatch.setattr(module, "NUMBERS_AT_ONCE", numbers)
        found.append(
            extremes(
                network,
                [factors],
                most=most,
                clipping="clamp",
                bound=torch.tensor([0.5, 1.5]).double(),
                bounding=bounding,
                public=torch.tensor([True, False, False, False, False, True, False]),
            )
        )
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            torch.testing.assert_close(one.private, two.private, rtol=0, atol=1e-12)
            torch.testing.assert_close(one.public, two.public, rtol=0, atol=1e-12)
    assert found[0][0].private.smallest.shape[1] == min(most, 5)
    assert found[0][0].records == 5


def test_naive_bounds_say_what_they_are_and_are_left() -> None:
    """A mean of the same numbers in other orders."""
    generator = torch.Generator().manual_seed(7)
    values = torch.rand(30, 1, generator=generator, dtype=torch.float64)
    naive, outward = (bounds(values, values, 0, REMOVALS, rounding=each) for each in (NAIVE, OUTWARD))
    orders = [values[torch.randperm(30, generator=generator)].flatten().tolist() for _ in range(50)]
    means = [reduce(add, order) / 30 for order in orders]
    assert not all(naive.lower.item() <= each <= naive.upper.item() for each in means)
    assert all(outward.lower.item() <= each <= outward.upper.item() for each in means)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ParameterError, match="changes must be one of"):
        Neighbourhood("replacements")
    with pytest.raises(ParameterError, match="normaliser must be one of"):
        Neighbourhood(normaliser="mean")
    with pytest.raises(ParameterError, match="order_free"):
        Neighbourhood("substitutions", order_free=True)
    with pytest.raises(AssumptionError, match="k = 1 removals would empty a batch of 1"):
        REMOVALS.require(1, batch=1, removable=1, clips=True)
    with pytest.raises(ParameterError, match="need clipping"):
        BOTH.require(1, batch=5, removable=5, clips=False)
