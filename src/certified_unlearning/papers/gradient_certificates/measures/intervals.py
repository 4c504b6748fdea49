"""Measures of interval arithmetic as the paper prints it: products, softmax, clipping, and backward passes."""

from typing import Literal

import torch
from torch import Tensor

from certified_unlearning.engine.abstract_training.descent import Descent, directions, logits
from certified_unlearning.engine.intervals.clipping import clamped, clipped_by_norm
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.losses import softmax_bounds
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.engine.intervals.products import exact_product, rump_product
from certified_unlearning.engine.intervals.rounding import NAIVE
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

_SEED = 1
_BOXES = 500


@measure
def members_outside_products() -> float:
    """Draw members of random boxes, and return how many of their products are outside the midpoint-radius product."""
    generator = torch.Generator().manual_seed(_SEED)
    left, right = _box((_BOXES, 3, 4), generator), _box((_BOXES, 4, 2), generator)
    bounds = rump_product(left, right)
    outside = 0
    for _ in range(20):
        member = _member(left, generator) @ _member(right, generator)
        outside += int(((member < bounds.lower) | (member > bounds.upper)).sum())
    return outside


@measure
def width_over_exact() -> dict[str, float]:
    """Return the width of products that are computed from midpoints and radii, divided by the exact width.

    One product is ``[0, 2]`` times ``[0, 2]``. The other products are those of random boxes.
    """
    ends = torch.zeros(1, 1, dtype=torch.float64), torch.full((1, 1), 2.0, dtype=torch.float64)
    generator = torch.Generator().manual_seed(_SEED)
    found = {}
    for name, left, right in (
        ("[0, 2] [0, 2]", Interval(*ends), Interval(*ends)),
        ("random", _box((_BOXES, 3, 4), generator), _box((_BOXES, 4, 2), generator)),
    ):
        loose, exact = rump_product(left, right, NAIVE), exact_product(left, right, NAIVE)
        found[name] = float(((loose.upper - loose.lower) / (exact.upper - exact.lower)).max())
    return found


@measure
def matrix_products(*, form: Literal["printed", "factored"]) -> float:
    """Return how many matrix products are needed for a product's midpoint and radius ``|A| Br + Ar |B| + Ar Br``.

    ``factored`` computes ``Ar (|B| + Br)`` as one product; the check compares it with the printed form on random boxes.
    """
    generator = torch.Generator().manual_seed(_SEED)
    counted = _CountedProducts()
    a, ar, b, br = (torch.rand(3, 3, generator=generator, dtype=torch.float64) for _ in range(4))
    counted(a, b)
    printed = a @ br + ar @ b + ar @ br
    if form == "printed":
        radius = counted(a, br) + counted(ar, b) + counted(ar, br)
    else:
        radius = counted(a, br) + counted(ar, b + br)
    assert torch.allclose(radius, printed)
    return counted.count


@measure
def softmax_upper(*, low: list[float], high: list[float], printed: bool) -> list[Quantity]:
    """Return upper bounds on softmax for a box of logits: the printed bounds, or the corrected ones.

    In the corrected bounds, a class's own term in the denominator is 1.
    """
    logits_box = Interval(*(torch.tensor([each], dtype=torch.float64) for each in (low, high)))
    if printed:
        upper = (logits_box.lower[:, None, :] - logits_box.upper[:, :, None]).exp().sum(dim=-1).reciprocal()
    else:
        upper = softmax_bounds(logits_box, rounding=NAIVE).upper
    return [Quantity(float(each), f"class {number}") for number, each in enumerate(upper[0])]


@measure
def softmax_members_outside(*, printed: bool) -> float:
    """Draw members of random boxes of logits, and return how many of their softmax values are outside their bounds."""
    generator = torch.Generator().manual_seed(_SEED)
    box = _box((_BOXES, 3), generator)
    lower, upper = softmax_bounds(box)
    if printed:
        lower = (box.upper[:, None, :] - box.lower[:, :, None]).exp().sum(dim=-1).reciprocal()
        upper = (box.lower[:, None, :] - box.upper[:, :, None]).exp().sum(dim=-1).reciprocal()
    outside = 0
    for _ in range(20):
        shares = _member(box, generator).softmax(dim=-1)
        outside += int(((shares < lower) | (shares > upper)).sum())
    return outside


@measure
def clipped_widths(
    *,
    low: list[float],
    high: list[float],
    bound: float,
    clipping: Literal["clamp", "ends by norm", "sound by norm"],
) -> list[Quantity]:
    """Return the widths of a box of gradients after clipping; a negative width means that the ends form no interval."""
    lower, upper = (torch.tensor([each], dtype=torch.float64) for each in (low, high))
    if clipping == "ends by norm":
        lower, upper = (each * min(1.0, bound / float(each.norm())) for each in (lower, upper))
    elif clipping == "clamp":
        lower, upper = clamped(Interval(lower, upper), bound)
    else:
        lower, upper = clipped_by_norm(Interval(lower, upper), bound, NAIVE)
    return [Quantity(float(each), f"entry {number}") for number, each in enumerate((upper - lower)[0])]


@measure
def weight_gradients_apart(*, factor: Literal["pre-activation", "activation"]) -> float:
    """Return the largest difference between the gradient of the last weights and a formula for it.

    The formula multiplies the derivative with respect to the logits by the values of the hidden layer. The values are
    taken before or after ReLU, as ``factor`` states. The check uses a 3-4-2 network and one record; the trainer
    computes the gradient.
    """
    generator = torch.Generator().manual_seed(_SEED)
    network = Network.dense(3, 4, 2)
    start = tuple(torch.randn(1, *shape, generator=generator, dtype=torch.float64) for shape in network.shapes)
    row = torch.randn(1, 1, 3, generator=generator, dtype=torch.float64)
    label = torch.zeros(1, dtype=torch.int64)
    gradient = directions(network, Descent(), start, row, label)[2]
    before = row[0] @ start[0][0].T + start[1][0]
    values = before if factor == "pre-activation" else before.clamp_min(0)
    outer = logits(network, start, row)[0].softmax(dim=1) - torch.eye(2, dtype=torch.float64)[label]
    return float((gradient[0] - outer.T @ values).abs().max())


class _CountedProducts:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, left: Tensor, right: Tensor) -> Tensor:
        self.count += 1
        return left @ right


def _box(shape: tuple[int, ...], generator: torch.Generator) -> Interval:
    middle = torch.randn(*shape, generator=generator, dtype=torch.float64)
    radius = torch.rand(*shape, generator=generator, dtype=torch.float64)
    return Interval(middle - radius, middle + radius)


def _member(box: Interval, generator: torch.Generator) -> Tensor:
    place = torch.rand(box.lower.shape, generator=generator, dtype=torch.float64)
    return (box.lower + place * (box.upper - box.lower)).clamp(box.lower, box.upper)
