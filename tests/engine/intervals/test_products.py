"""Products of interval matrices: the vectors, and members, which never leave them."""

from fractions import Fraction

import pytest
import torch
from torch import Tensor

from certified_unlearning.engine.intervals.interval import Interval, IntervalError
from certified_unlearning.engine.intervals.products import exact_product, outer_products, rump_product, signed_product
from certified_unlearning.engine.intervals.rounding import NAIVE, OUTWARD
from certified_unlearning.errors import ParameterError

PRODUCTS = (rump_product, exact_product, signed_product)


def tensor(values: list) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def box(lower: list, upper: list) -> Interval:
    return Interval(tensor(lower), tensor(upper))


def drawn(*shape: int, width: float = 1.0, dtype: torch.dtype = torch.float64, seed: int = 0) -> Interval:
    generator = torch.Generator().manual_seed(seed)
    centre = torch.randn(*shape, generator=generator, dtype=torch.float64)
    radius = width * torch.rand(*shape, generator=generator, dtype=torch.float64)
    return Interval((centre - radius).to(dtype), (centre + radius).to(dtype))


def member(values: Interval, generator: torch.Generator) -> Tensor:
    """A tensor of the interval: each entry an end, or something between."""
    share = torch.rand(values.lower.shape, generator=generator, dtype=torch.float64)
    kind = torch.randint(0, 3, values.lower.shape, generator=generator)
    between = (values.lower + share * (values.upper - values.lower)).to(values.lower.dtype)
    between = torch.minimum(torch.maximum(between, values.lower), values.upper)
    return torch.where(kind == 0, values.lower, torch.where(kind == 1, values.upper, between))


@pytest.mark.parametrize(
    ("left", "right", "rump", "exact"),
    [
        ((0, 2), (0, 2), (-2, 4), (0, 4)),
        ((-1, 3), (2, 4), (-6, 12), (-4, 12)),
        ((-1, 2), (-3, 1), (-6, 5), (-6, 3)),
        ((1, 2), (-2, -1), (-4, -0.5), (-4, -1)),
    ],
)
def test_vectors_of_single_numbers(left: tuple, right: tuple, rump: tuple, exact: tuple) -> None:
    one, two = (box([[ends[0]]], [[ends[1]]]) for ends in (left, right))
    for multiplied, due in ((rump_product, rump), (exact_product, exact)):
        found = multiplied(one, two)
        assert (found.lower.item(), found.upper.item()) == pytest.approx(due, abs=1e-12)
    found = outer_products(one, two)
    assert (found.lower.item(), found.upper.item()) == exact
    found = signed_product(one, two)
    assert (found.lower.item(), found.upper.item()) == pytest.approx(
        rump if left == (-1, 2) else exact, abs=1e-12
    )  # Both factors of the third may have either sign.


def test_vectors_of_matrices() -> None:
    left = box([[1, -1], [-2, 0]], [[2, 0.5], [-1, 3]])
    right = box([[-1, 2], [0.5, -2]], [[1, 3], [1.5, -1]])
    for multiplied, lower, upper in (
        (rump_product, [[-3.5, 0.25], [-3.5, -12]], [[3, 8], [6.5, 0]]),
        (exact_product, [[-3.5, 1], [-2, -12]], [[2.75, 8], [6.5, -2]]),
        (signed_product, [[-3.5, 1], [-2, -12]], [[2.75, 8], [6.5, -2]]),
    ):
        found = multiplied(left, right)
        torch.testing.assert_close(found.lower, tensor(lower), rtol=0, atol=1e-12)
        torch.testing.assert_close(found.upper, tensor(upper), rtol=0, atol=1e-12)
    for multiplied in PRODUCTS:
        found = multiplied(Interval.point(left.lower), right)
        torch.testing.assert_close(found.lower, tensor([[-2.5, 3], [-2, -6]]), rtol=0, atol=1e-12)
        torch.testing.assert_close(found.upper, tensor([[0.5, 5], [2, -4]]), rtol=0, atol=1e-12)


def test_activations_of_at_least_0_have_exact_products_at_the_price_of_four() -> None:
    left = box([[0, 1, 0.5]], [[2, 1.5, 1]])
    right = box([[-0.1], [0.5], [-1]], [[0.3], [0.7], [-0.5]])
    for found in (exact_product(left, right), signed_product(left, right, nonnegative=True)):
        assert (found.lower.item(), found.upper.item()) == pytest.approx((-0.7, 1.4), abs=1e-12)
    found = rump_product(left, right)
    assert (found.lower.item(), found.upper.item()) == pytest.approx((-0.95, 1.525), abs=1e-12)


def test_exact_ones_lie_in_rumps_which_are_at_most_half_as_wide_again() -> None:
    widest = 0.0
    for trial in range(300):
        left, right = drawn(3, 2, seed=trial), drawn(2, 3, seed=10_000 + trial)
        rump, exact, signed = (multiplied(left, right) for multiplied in PRODUCTS)
        for inner, outer in ((exact, signed), (signed, rump)):
            assert bool((outer.lower <= inner.lower + 1e-12).all() and (inner.upper <= outer.upper + 1e-12).all())
        ratio = (rump.upper - rump.lower) / (exact.upper - exact.lower)
        widest = max(widest, ratio.max().item())
    assert 1.4 < widest <= 1.5


@pytest.mark.parametrize("multiplied", PRODUCTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("signs", ["any", "not negative", "point"])
def test_no_member_leaves_outward_bounds_in_its_own_arithmetic_or_in_real_numbers(
    multiplied, dtype: torch.dtype, signs: str
) -> None:
    generator = torch.Generator().manual_seed(1)
    for trial in range(20):
        # Boxes so narrow that rounding alone decides.
        left = drawn(6, 40, width=1e-7 if trial % 2 else 1e-15, dtype=dtype, seed=trial)
        right = drawn(40, 5, width=1e-7 if trial % 2 else 1e-15, dtype=dtype, seed=99 + trial)
        if signs == "not negative":
            left = Interval(left.lower.clamp_min(0), left.upper.clamp_min(0))
        if signs == "point":
            left = Interval.point(left.lower)
        found = multiplied(left, right, OUTWARD)
        for _ in range(10):
            one, two = member(left, generator), member(right, generator)
            assert bool(found.holds(one @ two).all())
            in_order = sum(one[:, [i]] * two[[i]] for i in range(40))
            assert bool(found.holds(in_order).all())
            truth = (one.double() @ two.double()).to(torch.float64)
            slack = 1e-13 if dtype == torch.float64 else 0.0  # Of the comparison itself.
            assert bool(((found.lower.double() - slack <= truth) & (truth <= found.upper.double() + slack)).all())


@pytest.mark.parametrize("multiplied", PRODUCTS)
def test_naive_bounds_are_left(multiplied) -> None:
    """The planted fault: the same members, without outward rounding."""
    left_bounds = 0
    for trial in range(20):
        point = drawn(6, 40, width=0, dtype=torch.float32, seed=trial).lower
        other = drawn(40, 5, width=0, dtype=torch.float32, seed=99 + trial).lower
        found = multiplied(Interval(point, point.clone()), Interval(other, other.clone()), NAIVE)
        exact = point.double() @ other.double()
        left_bounds += int((~((found.lower.double() <= exact) & (exact <= found.upper.double()))).sum())
    assert left_bounds > 300


def test_underflow_is_counted() -> None:
    tiny = torch.full((1, 30), 1e-162, dtype=torch.float64)
    found = signed_product(Interval(tiny, tiny * 1.0), Interval.point(tiny.T.contiguous()))
    assert bool(found.holds(torch.tensor([[3e-323]], dtype=torch.float64)).all())


@pytest.mark.parametrize("multiplied", PRODUCTS)
@pytest.mark.parametrize(("dtype", "small", "large"), [(torch.float64, 1e-310, 1e150), (torch.float32, 1e-41, 1e15)])
@pytest.mark.parametrize("is_point", [True, False])
def test_slack_that_underflows_is_counted_before_it_is_multiplied(
    multiplied, dtype: torch.dtype, small: float, large: float, *, is_point: bool
) -> None:
    """Weights so small that rounding of a product with large inputs is lost in float64."""
    generator = torch.Generator().manual_seed(2)
    for _ in range(20):
        left, right = (
            (torch.randn(*shape, generator=generator, dtype=torch.float64) * size).to(dtype)
            for shape, size in (((5, 7), large), ((7, 3), small))
        )
        found = multiplied(
            Interval.point(left) if is_point else Interval(left, left.clone()), Interval.point(right), OUTWARD
        )
        for row, column in torch.cartesian_prod(torch.arange(5), torch.arange(3)).tolist():
            terms = zip(left[row].tolist(), right[:, column].tolist(), strict=True)
            exact = sum((Fraction(one) * Fraction(two) for one, two in terms), Fraction(0))
            assert Fraction(found.lower[row, column].item()) <= exact <= Fraction(found.upper[row, column].item())


def test_what_is_no_interval_is_an_error() -> None:
    for lower, upper, said in (
        ([1.0], [0.0], "above"),
        ([torch.nan], [1.0], "not finite"),
        ([0.0], [torch.inf], "not"),
    ):
        with pytest.raises(IntervalError, match=said):
            box(lower, upper).checked("logits")
    assert not bool(box([0.0], [1.0]).holds(tensor([torch.nan])))


def test_a_type_that_is_too_coarse_is_refused() -> None:
    with pytest.raises(ParameterError, match="float16 is not precise enough for sums of 10000 terms"):
        OUTWARD.error_of_sums(10_000, torch.float16)
