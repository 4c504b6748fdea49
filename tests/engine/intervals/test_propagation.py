"""Bounds through networks: the vectors, random members, layers that are refused."""

import pytest
import torch
from torch import Tensor, nn

from certified_unlearning.engine.intervals.clipping import clamped, clipped_by_norm
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.margins import certify, margin_bounds, possible
from certified_unlearning.engine.intervals.network import Network, parameters_of
from certified_unlearning.engine.intervals.products import outer_products, signed_product
from certified_unlearning.engine.intervals.propagation import (
    RUMP,
    TIGHTEST,
    Bounding,
    Factors,
    backward,
    differences,
    forward,
)
from certified_unlearning.errors import ParameterError
from tests.engine.intervals.test_products import member

SINGLE = Bounding(softmax="tight")


class Skipping(nn.Sequential):
    def forward(self, values: Tensor) -> Tensor:
        return values + super().forward(values)


def hooked() -> nn.Sequential:
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lambda module, given, found: 2 * found)
    return nn.Sequential(layer)


def around(values: list, radius: float) -> Interval:
    centre = torch.tensor(values, dtype=torch.float64)[None]
    return Interval(centre - radius, centre + radius)


def gradient(factors: Factors, record: int = 0) -> Interval:
    """A record's gradient of a weight, from its factors."""
    outer = Interval(*(end[:, record].transpose(1, 2) for end in factors.derivatives))
    inner = Interval(*(end[:, record] for end in factors.columns))
    if outer.lower.shape[2] == 1:
        return outer_products(outer, inner)
    return signed_product(outer, inner)


def ends(values: Interval) -> list[list[float]]:
    return [list(pair) for pair in zip(values.lower.flatten().tolist(), values.upper.flatten().tolist(), strict=True)]


def vector_net() -> tuple[Network, tuple[Interval, ...], Tensor]:
    box = (
        around([[1, -1], [0.5, 2]], 0.1),
        around([-0.4, -0.5], 0.05),
        around([[1, -2], [-1, 1]], 0.1),
        around([0.1, -0.1], 0),
    )
    return Network.dense(2, 2, 2), box, torch.tensor([[[1, 0.5]]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("bounding", "logits", "losses", "weight", "bias", "second"),
    [
        (
            RUMP,
            [[-2.45, -1.05], [0.25, 1.25]],
            [[-0.975873, -0.785835], [0.785835, 0.975873]],
            [[-0.292762, 0.0285057], [-1.17105, -0.59066]],
            [[-2.14692, 0], [2.16233, 3.12279]],
            [[2.16233, 3.12279], [1.08117, 1.5614]],
        ),
        (
            SINGLE,
            [[-2.42, -1.09], [0.29, 1.22]],
            [[-0.974419, -0.798991], [0.798991, 0.974419]],
            [[-0.292326, 0], [-1.1693, -0.639193]],
            [[-2.14372, 0], [2.23717, 3.11814]],
            [[2.23717, 3.11814], [1.11859, 1.55907]],
        ),
    ],
)
def test_vectors_of_two_two_two(bounding: Bounding, logits: list, losses: list, weight: list, bias: list, second: list):
    network, box, row = vector_net()
    seen = forward(network, box, row, bounding)
    assert ends(seen.before[0]) == [pytest.approx([-0.1, 0.3]), pytest.approx([0.8, 1.2])]
    near = {"rel": 1e-5, "abs": 1e-11}
    assert ends(seen.logits) == [pytest.approx(each, **near) for each in logits]
    first, last = backward(network, box, seen, torch.tensor([0]), "cross-entropy", bounding)
    assert ends(last.derivatives) == [pytest.approx(each, **near) for each in losses]
    if bounding is RUMP:
        from certified_unlearning.engine.intervals.products import rump_product

        outer = Interval(*(end[:, 0].transpose(1, 2) for end in last.derivatives))
        found = rump_product(outer, Interval(*(end[:, 0] for end in last.columns)))
    else:
        found = gradient(last)
    assert ends(found)[:2] == [pytest.approx(each, **near) for each in weight]
    assert ends(found)[2:] == [pytest.approx([-each[1], -each[0]], **near) for each in weight]
    assert ends(first.derivatives) == [pytest.approx(each, **near) for each in bias]
    assert ends(gradient(first))[2:] == [pytest.approx(each, **near) for each in second]


def test_vectors_of_pairs_of_logits() -> None:
    network = Network.of(nn.Sequential(nn.Linear(2, 2, bias=False)))
    box = (around([[2, 1], [1, 0.5]], 0.1),)
    rows = Interval(torch.tensor([[[0.2, 0.5]]]).double(), torch.tensor([[[1.0, 2.0]]]).double())
    seen = forward(network, box, rows)
    assert ends(seen.logits) == [pytest.approx([0.83, 4.3]), pytest.approx([0.38, 2.3])]
    assert ends(forward(network, box, rows, RUMP).logits) == [pytest.approx([0.6, 4.3]), pytest.approx([0.15, 2.3])]
    assert ends(differences(network, box, seen))[2] == pytest.approx([0.31, 2.6])
    for joint, due in ((False, (-1.47, 3.92)), (True, (0.31, 2.6))):
        found = margin_bounds(network, box, rows, joint=joint)
        assert (found.lower[0, 0, 1, 0].item(), found.upper[0, 0, 1, 0].item()) == pytest.approx(due)
        assert bool(certify(network, box, rows, joint=joint).certified) is joint
    for bounding, due in ((SINGLE, (0.186945, 0.980541)), (TIGHTEST, (0.576885, 0.930862))):
        (last,) = backward(network, box, seen, torch.tensor([1]), "cross-entropy", bounding)
        assert (last.derivatives.lower[0, 0, 0, 0].item(), last.derivatives.upper[0, 0, 0, 0].item()) == pytest.approx(
            due,
            rel=2e-5,  # 1 / (1 + exp(1.47)) is 0.186943.
        )


def test_vectors_of_clipping() -> None:
    def interval(lower: list, upper: list) -> Interval:
        return Interval(torch.tensor(lower).double(), torch.tensor(upper).double())

    found = clipped_by_norm(interval([0.5, 0], [0.5, 10]), 1.0)
    assert ends(found) == [pytest.approx([0.0499376, 0.5], rel=1e-5), pytest.approx([0, 1], abs=1e-12)]
    found = clipped_by_norm(interval([-0.5, 2], [1, 3]), 1.5)
    assert ends(found) == [pytest.approx([-0.375, 0.75]), pytest.approx([0.948683, 1.5], rel=1e-5)]


def test_a_bound_that_is_no_float32_is_not_rounded_to_one() -> None:
    """0.7 as float32 is below 0.7, which a clipped gradient of one entry may be."""
    for bound in (0.7, 0.1, 1 / 3):
        long = torch.tensor([[9.0], [bound]], dtype=torch.float64)
        clipped = torch.tensor([[bound], [bound]], dtype=torch.float64)
        assert bool(clamped(Interval.point(long), bound).holds(clipped).all())
        assert bool(clipped_by_norm(Interval.point(long), bound).holds(clipped).all())


def test_clipping_the_ends_by_their_own_norms_turns_an_interval_over() -> None:
    """The wrong variant, and a member that leaves it."""
    lower, upper = torch.tensor([0.5, 0]).double(), torch.tensor([0.5, 10]).double()
    wrong = Interval(*(end * min(1.0, 1.0 / float(end.norm())) for end in (lower, upper)))
    assert wrong.lower.tolist() == pytest.approx([0.5, 0])
    assert wrong.upper.tolist() == pytest.approx([0.0499376, 0.998752], rel=1e-5)
    inside = torch.tensor([0.5, 5]).double()
    clipped = inside / inside.norm()
    assert not bool(wrong.holds(clipped).all())
    assert bool(clipped_by_norm(Interval(lower, upper), 1.0).holds(clipped).all())


def test_no_clipped_member_leaves_its_bounds() -> None:
    generator = torch.Generator().manual_seed(5)
    for trial in range(200):
        centre = torch.randn(6, generator=generator, dtype=torch.float64)
        radius = torch.rand(6, generator=generator, dtype=torch.float64) * (1e-15 if trial % 2 else 1.0)
        values = Interval(centre - radius, centre + radius)
        found = clipped_by_norm(values, 0.7)
        for _ in range(10):
            one = member(values, generator)
            assert bool(found.holds(one * (0.7 / one.norm()).clamp_max(1)).all())


def autograd(module: nn.Module, row: Tensor, label: Tensor, loss: str) -> tuple[Tensor, ...]:
    module.zero_grad()
    logits = module(row)
    if loss == "cross-entropy":
        nn.functional.cross_entropy(logits, label).backward()
    else:
        nn.functional.binary_cross_entropy_with_logits(logits[:, 0], label.to(logits)).backward()
    return (logits.detach(), *(each.grad.clone() for each in module.parameters()))


NETS = {
    "dense": lambda: nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3)),
    "deep": lambda: nn.Sequential(
        nn.Linear(3, 6), nn.ReLU(), nn.Sequential(nn.Linear(6, 5), nn.ReLU()), nn.Linear(5, 3)
    ),
    "one logit": lambda: nn.Sequential(nn.Linear(3, 5, bias=False), nn.ReLU(), nn.Linear(5, 1)),
    "convolutions": lambda: nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.Conv2d(2, 2, 2, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)
    ),
}


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("bounding", [TIGHTEST, RUMP])
@pytest.mark.parametrize("radius", [0.0, 1e-3, 0.1])
def test_no_members_logits_and_gradients_leave_their_bounds(name: str, bounding: Bounding, radius: float) -> None:
    """PyTorch's own gradients of random members, bit for bit."""
    torch.manual_seed(7)
    module = NETS[name]().double()
    network = Network.of(module)
    rows = torch.randn(4, 1, 4, 4).double() if name == "convolutions" else torch.randn(4, 3).double()
    labels = torch.randint(0, 2 if network.outputs == 1 else 3, (4,))
    loss = "binary-cross-entropy" if network.outputs == 1 else "cross-entropy"
    box = tuple(Interval(each - radius, each + radius) for each in parameters_of(module))
    seen = forward(network, box, rows[None], bounding)
    factors = backward(network, box, seen, labels, loss, bounding)
    generator = torch.Generator().manual_seed(8)
    for _ in range(30):
        with torch.no_grad():
            for each, values in zip(module.parameters(), box, strict=True):
                each.copy_(member(values, generator)[0])
        for place in range(4):
            logits, *found = autograd(module, rows[place : place + 1], labels[place : place + 1], loss)
            assert bool(Interval(seen.logits.lower[0, place], seen.logits.upper[0, place]).holds(logits[0]).all())
            grads = iter(found)
            for layer, each in zip(network.affine, factors, strict=True):
                bounds = gradient(each, place)
                # PyTorch's own order of operations rounds a single gradient differently by a unit or two.
                slack = 1e-15 * bounds.magnitude
                weight = next(grads).flatten(1)
                assert bool(((bounds.lower[0] - slack <= weight) & (weight <= bounds.upper[0] + slack)).all())
                if layer.bias:
                    sums = each.derivatives.lower[0, place].sum(dim=0), each.derivatives.upper[0, place].sum(dim=0)
                    bias = next(grads)
                    assert bool(((sums[0] - 1e-14 <= bias) & (bias <= sums[1] + 1e-14)).all())


def test_the_tightest_bounds_lie_in_rumps() -> None:
    torch.manual_seed(1)
    module = NETS["deep"]().double()
    network = Network.of(module)
    rows, labels = torch.randn(5, 3).double(), torch.randint(0, 3, (5,))
    box = tuple(Interval(each - 0.1, each + 0.1) for each in parameters_of(module))
    found = [
        backward(network, box, forward(network, box, rows[None], each), labels, "cross-entropy", each)
        for each in (TIGHTEST, RUMP)
    ]
    for inner, outer in zip(*found, strict=True):
        assert bool((outer.derivatives.lower <= inner.derivatives.lower + 1e-12).all())
        assert bool((outer.derivatives.upper >= inner.derivatives.upper - 1e-12).all())


def test_many_boxes_are_bounded_as_each_by_itself() -> None:
    torch.manual_seed(2)
    module = NETS["dense"]().double()
    network, rows = Network.of(module), torch.randn(5, 3).double()
    centre = parameters_of(module)
    radii = torch.tensor([0.0, 0.01, 0.1]).double()
    many = tuple(
        Interval(*(each + sign * radii.reshape(3, *(1,) * (each.ndim - 1)) for sign in (-1, 1))) for each in centre
    )
    together = margin_bounds(network, many, rows[None])
    for run, radius in enumerate(radii.tolist()):
        alone = margin_bounds(network, tuple(Interval(each - radius, each + radius) for each in centre), rows[None])
        torch.testing.assert_close(together.lower[run], alone.lower[0], rtol=0, atol=1e-12)


def test_what_is_not_finite_is_never_certified() -> None:
    network = Network.dense(2, 2)
    for ends_of_bias in ((torch.nan, torch.nan), (-torch.inf, torch.inf)):
        weight = torch.ones(1, 2, 2).double()
        bias = Interval(*(torch.tensor([[5.0, end]]).double() for end in ends_of_bias))
        sure = certify(network, (Interval.point(weight), bias), torch.ones(1, 4, 2).double())
        assert not bool(sure.certified.any())
        assert bool(possible(network, (Interval.point(weight), bias), torch.ones(1, 4, 2).double()).all())


def test_ties_are_not_certified_and_one_row_stays_one_row() -> None:
    network = Network.dense(2, 3)
    box = tuple(Interval.point(torch.zeros(1, *shape).double()) for shape in network.shapes)
    sure = certify(network, box, torch.ones(1, 1, 2).double())
    assert sure.certified.shape == (1, 1)
    assert not bool(sure.certified)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (nn.Linear(2, 2), "torch.nn.Sequential"),
        (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2)), "BatchNorm1d cannot be bounded"),
        (nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.Linear(2, 2)), "Sigmoid"),
        (nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.Linear(2, 2)), "Dropout"),
        (nn.Sequential(nn.Linear(2, 2), nn.ReLU()), "must end with"),
        (nn.Sequential(nn.Conv2d(2, 2, 1)), "must end with a Linear"),
        (Skipping(nn.Linear(2, 2)), "Skipping has its own `forward`"),
        (nn.Sequential(Skipping(nn.Linear(2, 2)), nn.Linear(2, 2)), "Skipping has its own `forward`"),
        (hooked(), "Linear has its own `forward`, or hooks"),
        (nn.Sequential(), "must end with"),
        (nn.Sequential(nn.Conv2d(2, 2, 1, groups=2)), "groups=2"),
        (nn.Sequential(nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect")), "reflect"),
        (nn.Sequential(nn.Flatten(2), nn.Linear(2, 2)), "Flatten"),
    ],
)
def test_other_layers_are_refused_by_name(module: nn.Module, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Network.of(module)


def test_parameters_that_do_not_fit_are_refused() -> None:
    network = Network.dense(2, 3, 1)
    with pytest.raises(ParameterError, match="shapes"):
        network.checked([torch.zeros(1, 2, 3)])
