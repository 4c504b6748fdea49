"""Derivatives of losses over boxes of logits."""

import pytest
import torch

from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.losses import (
    derivatives,
    loss_bounds,
    pairs_of,
    require_loss,
    softmax_bounds,
)
from certified_unlearning.errors import ParameterError


def box(lower: list, upper: list) -> Interval:
    return Interval(*(torch.tensor([[ends]], dtype=torch.float64) for ends in (lower, upper)))


def printed(logits: Interval) -> Interval:
    """Softmax as Appendix B prints it, with the term of the class itself bounded like the others."""
    apart = (
        logits.upper[..., None, :] - logits.lower[..., :, None],
        logits.lower[..., None, :] - logits.upper[..., :, None],
    )
    return Interval(*(each.exp().sum(dim=-1).reciprocal() for each in apart))


def test_vectors_of_softmax() -> None:
    three = box([0.2, -0.5, 1.0], [0.8, 0.1, 1.2])
    found, wrong = softmax_bounds(three), printed(three)
    for got, due in (
        (found.lower, [0.216304, 0.0985878, 0.449378]),
        (found.upper, [0.400973, 0.219069, 0.644927]),
        (wrong.lower, [0.183647, 0.0911963, 0.408713]),
        (wrong.upper, [0.489537, 0.243097, 0.730304]),
    ):
        assert got.flatten().tolist() == pytest.approx(due, rel=1e-5)
    two = box([-2, -2], [2, 2])
    found, wrong = softmax_bounds(two), printed(two)
    assert found.lower[0, 0].tolist() == pytest.approx([0.0179862] * 2, rel=1e-5)
    assert found.upper[0, 0].tolist() == pytest.approx([0.982014] * 2, rel=1e-5)
    assert (wrong.lower[0, 0, 0].item(), wrong.upper[0, 0, 0].item()) == pytest.approx((0.00915782, 27.2991), rel=1e-5)


def test_exponents_that_overflow_leave_shares_of_0_and_1() -> None:
    found = softmax_bounds(box([-1000, 900], [-900, 1000]))
    assert found.lower[0, 0].tolist() == pytest.approx([0, 1], abs=1e-12)
    assert found.upper[0, 0].tolist() == pytest.approx([0, 1], abs=1e-12)


@pytest.mark.parametrize("loss", ["cross-entropy", "binary-cross-entropy", "squared"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [0.0, 1e-6, 1.0])
def test_no_derivative_leaves_its_bounds(loss: str, dtype: torch.dtype, width: float) -> None:
    generator = torch.Generator().manual_seed(3)
    outputs = 5 if loss == "cross-entropy" else 1
    for scale in (1.0, 30.0, 1000.0):
        centre = scale * torch.randn(1, 400, outputs, generator=generator, dtype=torch.float64)
        logits = Interval((centre - width).to(dtype), (centre + width).to(dtype))
        labels = torch.randint(0, max(outputs, 2), (400,), generator=generator)
        bounds = loss_bounds(logits, labels, loss)
        for share in (0, 1, *torch.rand(10, generator=generator).tolist()):
            inside = (logits.lower + share * (logits.upper - logits.lower)).clamp(logits.lower, logits.upper)
            assert bool(bounds.holds(derivatives(inside, labels, loss)).all())
            exact = derivatives(inside.double(), labels, loss)
            slack = 1e-15 * (1 + exact.abs()) if dtype == torch.float64 else 0.0
            assert bool(((bounds.lower - slack <= exact) & (exact <= bounds.upper + slack)).all())


def test_differences_tighten() -> None:
    logits = box([-2, -2], [2, 2])
    apart = box([-0.5], [0.5])
    found, single = softmax_bounds(logits, apart), softmax_bounds(logits)
    assert bool((found.lower > single.lower).all() and (found.upper < single.upper).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("far", [80.0, 88.0, 100.0, 700.0, 709.0, 1e4])
def test_shares_of_logits_that_are_far_apart(dtype: torch.dtype, far: float) -> None:
    """No bound is lost to an exponential that overflows or vanishes."""
    for classes in (2, 3, 10):
        values = torch.zeros(1, 1, classes, dtype=dtype)
        values[..., 0] = far
        found = softmax_bounds(Interval(values, values.clone()))
        true = torch.softmax(values.double(), dim=-1)
        assert bool(((found.lower.double() <= true) & (true <= found.upper.double())).all())
        assert bool(found.holds(torch.softmax(values, dim=-1)).all())
        assert float((found.upper - found.lower).max()) < 1e-3


@pytest.mark.parametrize("scale", [1.0, 50.0, 2000.0])
def test_shares_by_pairs_are_those_of_the_formula(scale: float) -> None:
    """Every difference in its place, with its sign; exponents beyond what floats hold."""
    generator = torch.Generator().manual_seed(3)
    centre = scale * torch.randn(2, 30, 4, generator=generator, dtype=torch.float64)
    logits = Interval(centre - 0.1 * scale, centre + 0.1 * scale)
    first, second = pairs_of(4)
    middle = centre[..., second] - centre[..., first]
    pairs = Interval(middle - 0.15 * scale, middle + 0.12 * scale)
    found = softmax_bounds(logits, pairs)
    for one in range(4):
        sums = [torch.ones(2, 30, dtype=torch.float64), torch.ones(2, 30, dtype=torch.float64)]
        for place, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            if one in (i, j):
                low, high = (end[..., place] * (1 if one == i else -1) for end in pairs)
                sums[0] += torch.maximum(low, high).exp()
                sums[1] += torch.minimum(low, high).exp()
        torch.testing.assert_close(found.lower[..., one], 1 / sums[0], rtol=1e-11, atol=1e-300)
        torch.testing.assert_close(found.upper[..., one], 1 / sums[1], rtol=1e-11, atol=1e-300)
        assert bool((found.lower[..., one] <= 1 / sums[0]).all() and (found.upper[..., one] >= 1 / sums[1]).all())


@pytest.mark.parametrize(
    ("loss", "outputs", "said"),
    [("hinge", 1, "loss must be one of"), ("cross-entropy", 1, "at least 2"), ("binary-cross-entropy", 2, "1 logit")],
)
def test_losses_that_do_not_fit_are_refused(loss: str, outputs: int, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        require_loss(loss, outputs)
