"""The compiled kernel does what plain PyTorch does, and is left out where it cannot be."""

from collections.abc import Iterator

import pytest
import torch

from certified_unlearning.engine.abstract_training import extremes
from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.engine.abstract_training.extremes import gradients
from certified_unlearning.engine.abstract_training.training import train
from certified_unlearning.engine.intervals import kernel, products
from certified_unlearning.engine.intervals.clipping import clamped
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.propagation import TIGHTEST, Factors
from tests.support.retraining import SMALL, inside, removals, retrained, small_problem


@pytest.fixture
def anew() -> Iterator[None]:
    """The kernel is looked for again, now and afterwards."""
    kernel.library.cache_clear()
    yield
    kernel.library.cache_clear()


def interval(shape: tuple[int, ...], seed: int, *, kind: str) -> Interval:
    torch.manual_seed(seed)
    one, two = torch.randn(2, *shape, dtype=torch.float64)
    if kind == "point":
        return Interval.point(one)
    lower, upper = torch.minimum(one, two), torch.maximum(one, two)
    return Interval(lower.clamp_min(0), upper.clamp_min(0)) if kind == "not negative" else Interval(lower, upper)


def both_ways(factors: Factors, most: int, bound: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> list[extremes.Sums]:
    if kernel.library() is None:
        pytest.skip("no C++ compiler is here")
    found = [extremes.summed(factors, most, bound, TIGHTEST)]
    with monkeypatch.context() as patch:
        patch.setattr(kernel, "takes", lambda *_: False)
        return [*found, extremes.summed(factors, most, bound, TIGHTEST)]


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["any", "not negative", "point", "points"])
@pytest.mark.parametrize("most", [0, 1, 2, 9])
@pytest.mark.parametrize(("outputs", "inputs"), [(1, 1), (3, 1), (1, 40), (5, 16), (2, 37), (16, 17)])
@pytest.mark.parametrize("shared", [True, False])
def test_compiled_sums_and_extremes_are_those_of_pytorch(
    kind: str, most: int, outputs: int, inputs: int, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for records in (9, 530):
        derivatives = interval((2, records, 1, outputs), 1, kind="point" if kind == "points" else "any")
        columns = interval((1 if shared else 2, records, 1, inputs), 2, kind="point" if kind == "points" else kind)
        factors = Factors(derivatives, columns, kind == "not negative")
        each = gradients(factors, slice(None), TIGHTEST)
        for bound in ([0.5, 1.5], [torch.inf, torch.inf], [0.5, torch.inf]):
            clips = torch.tensor(bound).double()
            one, two = both_ways(factors, most, clips, monkeypatch)
            torch.testing.assert_close(one._replace(size=two.size), two, rtol=0, atol=1e-11)
            # The extremes themselves are the same numbers: no order matters to them.
            assert torch.equal(one.smallest, two.smallest)
            assert torch.equal(one.largest, two.largest)
            # Both bound the sum of magnitudes; PyTorch's bound is by norms.
            due = clamped(each, clips[:, None, None, None]).magnitude.sum(dim=-1)
            torch.testing.assert_close(one.size, due, rtol=1e-12, atol=0)
            assert bool((due * (1 - 1e-12) <= two.size).all())


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("inner", [1, 7, 32, 131])
def test_compiled_products_are_those_of_pytorch(outputs: int, inner: int) -> None:
    if kernel.library() is None:
        pytest.skip("no C++ compiler is here")
    torch.manual_seed(3)
    left, middle = torch.randn(1, 50, inner).double(), torch.randn(1, outputs, inner).double().mT
    radius = torch.rand(1, inner, outputs).double()
    assert kernel.multiplies(left, middle)
    found = kernel.centre_and_spread(left, middle, radius)
    torch.testing.assert_close(found, (left @ middle, left.abs() @ radius), rtol=1e-13, atol=1e-13)
    for wrong in (torch.inf, -torch.inf, torch.nan):
        left[0, 4, inner - 1] = wrong
        for each in kernel.centre_and_spread(left, middle, radius):
            assert not bool(torch.isfinite(each[0, 4]).any())
            assert bool(torch.isfinite(each[0, 5:]).all())


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("rows", [1, 40, 700])
def test_few_columns_are_multiplied_soundly_both_ways(
    rows: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members of boxes so narrow that rounding decides, by PyTorch's product and in order, without tolerance."""
    if not compiled:
        monkeypatch.setattr(kernel, "multiplies", lambda *_: False)
        monkeypatch.setattr(products, "NUMBERS_IN_CACHE", 64)
    torch.manual_seed(4)
    left = torch.randn(1, rows, 33).double()
    centre = torch.randn(1, 33, 1).double()
    right = Interval(centre - 1e-16, centre + 1e-16)
    for multiplied in (products.signed_product, products.rump_product):
        found = multiplied(Interval.point(left), right)
        for end in (*right, centre):
            assert bool(found.holds(left @ end).all())
            assert bool(found.holds(sum(left[..., [place]] * end[:, [place]] for place in range(33))).all())
        assert float((found.upper - found.lower).max()) < 1e-11


def test_products_of_more_columns_runs_or_other_types_are_pytorchs() -> None:
    one = torch.ones(1, 5, 4).double()
    for left, right in (
        (one, torch.ones(1, 4, 3).double()),
        (one.expand(2, -1, -1), torch.ones(2, 4, 1).double()),
        (one[0], torch.ones(4, 1).double()),
        (one.float(), torch.ones(1, 4, 1)),
    ):
        assert not kernel.multiplies(left, right)


@pytest.mark.parametrize("kind", ["any", "not negative", "point"])
@pytest.mark.parametrize("bound", [0.5, torch.inf])
def test_what_is_no_number_stays_none(kind: str, bound: float) -> None:
    for wrong in (torch.nan, torch.inf):
        derivatives = interval((1, 20, 1, 3), 1, kind="any")
        derivatives.upper[0, 4, 0, 1] = wrong
        columns = interval((1, 20, 1, 4), 2, kind=kind)
        clips = torch.full((1,), bound, dtype=torch.float64)
        if kernel.library() is not None:
            assert kernel.summed(derivatives, columns, clips, 1, nonnegative=False) is None
        factors = Factors(derivatives, columns, kind == "not negative")
        found = extremes.summed(factors, 1, torch.tensor([bound]).double(), TIGHTEST)
        if wrong != wrong:
            assert bool(found.total.upper[0, 1].isnan().all())
        columns.upper[0, 3, 0, 2] = wrong
        if kernel.library() is not None:
            finite = interval((1, 20, 1, 3), 1, kind="any")
            if not columns.is_point:
                assert kernel.summed(finite, columns, clips, 1, nonnegative=False) is None
            columns.lower[0, 3, 0, 2] = wrong
            assert kernel.summed(finite, columns, clips, 1, nonnegative=False) is None


def test_roles_change_where_less_of_the_kernel_is_idle() -> None:
    def factors(outputs: int, inputs: int, kind: str) -> tuple[Interval, Interval]:
        return interval((1, 2, 1, outputs), 1, kind="any"), interval((1, 2, 1, inputs), 2, kind=kind)

    assert kernel.turns(*factors(32, 49, "point"))
    assert not kernel.turns(*factors(1, 40, "point"))
    assert not kernel.turns(*factors(32, 49, "any"))
    assert not kernel.turns(*factors(128, 784, "point"))
    assert kernel.turns(*factors(3, 1, "any"))


def test_other_types_and_positions_are_pytorchs() -> None:
    for shape, dtype in (((1, 5, 1, 2), torch.float32), ((1, 5, 3, 2), torch.float64)):
        values = Interval.point(torch.ones(shape, dtype=dtype))
        assert not kernel.takes(values, values)


def test_boxes_without_the_kernel_hold_retrainings_as_well(anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNLEARNING_KERNEL", "off")
    assert kernel.library() is None
    start, batches = small_problem()
    generator = torch.Generator().manual_seed(1)
    for descent in (Descent(step_size=0.2), Descent(step_size=0.2, clipping="clamp", bound=0.1)):
        trained = train(SMALL, descent, start, batches, k=[2])
        present = [removals(10, 2, 1000, generator) for _ in batches]
        assert bool(inside(trained, retrained(SMALL, descent, start, batches, present)).all())
