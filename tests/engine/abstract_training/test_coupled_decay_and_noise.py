"""Weight decay inside the velocity, up to where parameters begin to oscillate; noise that all neighbours share."""

import itertools
import math
from fractions import Fraction

import pytest
import torch

from certified_unlearning.engine.abstract_training.descent import Descent, Parameters
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.abstract_training.training import Batch, train
from certified_unlearning.engine.intervals.network import Dense, Network
from certified_unlearning.errors import DataError, ParameterError
from tests.support.retraining import SMALL, exact_line, inside, removals, retrained, small_problem

SLOPE = Network((Dense(1, 1, bias=False),))
ORIGIN = (torch.zeros(1, 1, 1, dtype=torch.float64),)
PULLS = Batch(torch.tensor([[1 / 1024], [1 / 1024]], dtype=torch.float64), torch.tensor([500.0, -500.0]).double())
"""Two records that pull in opposite directions, whatever the slope is."""


def coupled(step_size: float, momentum: float, weight_decay: float) -> Descent:
    return Descent(
        loss="squared", step_size=step_size, momentum=momentum, weight_decay=weight_decay, couples_decay=True
    )


@pytest.mark.parametrize(
    ("step_size", "momentum", "decay"),
    [(0.5, 0.9, 0.005), (0.5, 0.25, 0.5), (0.1, 0.9, 0.01), (0.5, 0.01, 1.6), (1.0, 0.5, 0.08)],
)
def test_the_box_holds_every_choice_of_records_in_exact_fractions(
    step_size: float, momentum: float, decay: float
) -> None:
    """The second case lies at the threshold: there all changes still have one sign."""
    updates = 6
    found = train(SLOPE, coupled(step_size, momentum, decay), ORIGIN, [PULLS] * updates, k=[1])
    low, high = (Fraction(float(each)) for each in found.box[0])
    one, two = ((Fraction(1, 1024), Fraction(each)) for each in (500, -500))
    reached = [
        exact_line(choice, step_size=step_size, momentum=momentum, coupled_decay=decay)
        for choice in itertools.product(([one], [two], [one, two]), repeat=updates)
    ]
    assert low <= min(reached) < max(reached) <= high
    assert max(reached) > Fraction(999, 1000) * high


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_box_holds_what_rounding_of_parameters_and_velocities_takes(dtype: torch.dtype) -> None:
    """Gradients of 1e-18 leave rounding of the recursion alone; without slack for it the box is a wrong number."""
    step_size, momentum, decay, start = 0.125, 0.5, 0.3125, 1 / 3
    row = 2.0**-30
    batch = Batch(torch.tensor([[row]], dtype=dtype), torch.zeros(1, dtype=dtype))
    begin = torch.full((1, 1, 1), start, dtype=dtype)
    (box,) = train(SLOPE, coupled(step_size, momentum, decay), (begin,), [batch] * 30, k=[0]).box
    exact = exact_line(
        [[(Fraction(row), Fraction(0))]] * 30,
        step_size=step_size,
        momentum=momentum,
        coupled_decay=decay,
        start=float(begin),
    )
    assert Fraction(float(box.lower)) <= exact <= Fraction(float(box.upper))
    # Of about the size of rounding, and not much more.
    assert float(box.upper - box.lower) < 1e4 * torch.finfo(dtype).eps


def worst_reach(descent: Descent, updates: int) -> float:
    """The largest slope over all patterns of which record is left over."""
    patterns = torch.tensor([[True, False], [False, True]])
    runs = 2**updates
    present = [patterns[torch.arange(runs) // 2**update % 2] for update in range(updates)]
    return float(retrained(SLOPE, descent, ORIGIN, [PULLS] * updates, present)[0].max())


def test_above_the_threshold_the_box_would_be_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: without the check, twelve updates leave the box, just above as well as far above."""
    with pytest.raises(ParameterError, match=r"is at most \(1 - sqrt\(momentum\)\)\^2 = 0.25, got 0.5 x 0.500"):
        coupled(0.5, 0.25, math.nextafter(0.5, 1))
    monkeypatch.setattr(Descent, "_require_one_sign", lambda self: None)
    for decay, leaves in ((0.5, False), (1.5, True), (1.9, True)):
        descent = coupled(0.5, 0.25, decay)
        box = train(SLOPE, descent, ORIGIN, [PULLS] * 12, k=[1]).box[0]
        assert (worst_reach(descent, 12) > float(box.upper)) == leaves


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("clipping", ["none", "clamp"])
def test_networks_trained_without_some_records_lie_in_the_box_bit_for_bit(dtype: torch.dtype, clipping: str) -> None:
    start, batches = small_problem()
    start = tuple(each.to(dtype) for each in start)
    batches = [Batch(each.rows.to(dtype), each.labels) for each in batches] * 2
    descent = Descent(
        step_size=0.2,
        momentum=0.5,
        weight_decay=0.3,
        couples_decay=True,
        clipping=clipping,
        bound=None if clipping == "none" else 0.1,
    )
    trained = train(SMALL, descent, start, batches, k=[0, 1, 2])
    generator = torch.Generator().manual_seed(1)
    for run, k in enumerate((0, 1, 2)):
        present = [removals(10, k, 400, generator) for _ in batches]
        assert bool(inside(trained, retrained(SMALL, descent, start, batches, present), run).all())
    # Records of another order have other roundings.
    order = torch.randperm(10, generator=generator)
    shuffled = [Batch(each.rows[order], each.labels[order]) for each in batches]
    everyone = [torch.ones(1, 10, dtype=torch.bool)] * len(batches)
    assert bool(inside(trained, retrained(SMALL, descent, start, shuffled, everyone)).all())


def test_coupled_decay_trains_as_pytorchs_sgd() -> None:
    """By its formula: importing its optimiser takes ten seconds."""
    weight, velocity = torch.ones(1, 1, dtype=torch.float64, requires_grad=True), 0.0
    rows, labels = torch.tensor([[1.0], [2.0]]).double(), torch.tensor([3.0, -1.0]).double()
    for _ in range(5):
        loss = ((rows @ weight.T)[:, 0] - labels).square().mean()
        (gradient,) = torch.autograd.grad(loss, weight)
        velocity = 0.9 * velocity + gradient + 0.01 * weight.detach()
        weight = (weight.detach() - 0.1 * velocity).requires_grad_()
    start = (torch.ones(1, 1, 1, dtype=torch.float64),)
    ours = train(SLOPE, coupled(0.1, 0.9, 0.01), start, [Batch(rows, labels)] * 5, k=[1]).parameters
    assert float(ours[0]) == pytest.approx(weight.item(), rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"momentum": 0.0}, "needs both momentum and weight_decay"),
        ({"weight_decay": 0.0}, "needs both momentum and weight_decay"),
        ({"nesterov": True}, "without Nesterov momentum, got decay=0.0 and nesterov=True"),
        ({"decay": 0.1}, "constant step sizes"),
    ],
)
def test_what_the_threshold_does_not_cover_is_refused(changes: dict, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Descent(**{"step_size": 0.1, "momentum": 0.9, "weight_decay": 0.01, "couples_decay": True} | changes)


# --- Noise -----------------------------------------------------------------------------------------------------------


def drawn(updates: int, scale: float, seed: int = 1) -> list[Parameters]:
    generator = torch.Generator().manual_seed(seed)
    return [
        tuple(scale * torch.randn(1, *shape, generator=generator, dtype=torch.float64) for shape in SMALL.shapes)
        for _ in range(updates)
    ]


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_neighbours_with_the_same_noise_lie_in_the_box_and_others_do_not(momentum: float) -> None:
    start, batches = small_problem()
    noise = drawn(len(batches), 0.3)
    descent = Descent(step_size=0.2, clipping="clamp", bound=0.1, momentum=momentum)
    both = Neighbourhood("additions and removals")
    trained = train(SMALL, descent, start, batches, k=[2], neighbourhood=both, noise=noise)
    generator = torch.Generator().manual_seed(2)
    present = [removals(10, 2, 500, generator) for _ in batches]
    assert bool(inside(trained, retrained(SMALL, descent, start, batches, present, noise=noise)).all())
    # The planted fault: noise of one's own, or none.
    other = drawn(len(batches), 0.3, seed=2)
    for wrong in (other, None):
        assert not bool(inside(trained, retrained(SMALL, descent, start, batches, present, noise=wrong)).any())


def test_the_box_of_a_noisy_line_in_exact_fractions() -> None:
    noise = [0.3, -1.7, 0.1]
    found = train(
        SLOPE, Descent(loss="squared", step_size=0.1), ORIGIN, [PULLS] * 3, k=[1],
        noise=[(torch.full((1, 1, 1), each, dtype=torch.float64),) for each in noise],
    )  # fmt: skip
    one, two = ((Fraction(1, 1024), Fraction(each)) for each in (500, -500))
    reached = [
        exact_line(choice, step_size=0.1, noise=noise)
        for choice in itertools.product(([one], [two], [one, two]), repeat=3)
    ]
    low, high = (Fraction(float(each)) for each in found.box[0])
    assert low <= min(reached) < max(reached) <= high


def test_noise_that_does_not_fit_is_refused() -> None:
    start, batches = small_problem()
    noise = drawn(4, 0.1)
    for wrong, error, said in (
        (noise[:2], ParameterError, "`noise` must have one entry for each update, got only 2"),
        ([tuple(each.expand(2, *each.shape[1:]) for each in noise[0])] * 4, ParameterError, "same for all runs"),
        ([tuple(each * torch.nan for each in noise[0])] * 4, DataError, "the noise of update 0 is not finite"),
    ):
        with pytest.raises(error, match=said):
            train(SMALL, Descent(), start, batches, k=[1], noise=wrong)
