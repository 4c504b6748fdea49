"""Faults of every kind that the cases are there for, planted: each is seen."""

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from certified_unlearning.engine import descent, minibatch, randomness
from certified_unlearning.engine.abstract_training import extremes
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.propagation import Factors
from certified_unlearning.engine.objectives import linear, logistic
from tests.engine.cuda.case import on_the_cpu, outcome_of
from tests.engine.cuda.reached import public_functions
from tests.engine.cuda.test_cases import CASES
from tests.support.fake_cuda import CUDA, fake_cuda, on_cuda

CASE = {each.name: each for each in CASES}
TWO_DEVICES = "two devices|Mismatching|same device"


def weights_on_the_host(labels: Tensor, class_weights: Sequence[float], dtype: torch.dtype) -> Tensor:
    """The fault: the constants lie where Python makes them."""
    return torch.tensor(class_weights, dtype=dtype)[(labels.cpu() > 0).long()]


def angles_by_a_constant(radius: Tensor, angle_bits: Tensor, *, out: Tensor) -> None:
    """The fault: a float64 constant, of one number, that lies on the CPU."""
    turn = torch.tensor([math.pi / -float(torch.iinfo(angle_bits.dtype).min)], dtype=torch.float64)
    torch.mul(radius, (angle_bits * turn).cos(), out=out[..., : radius.shape[-1]])


def draws_of_the_host(self: Draws, *shape: int) -> Tensor:
    """The fault: the device is forgotten."""
    return torch.rand(shape, dtype=torch.float64)


def ones_on_the_host(weight: Factors) -> Factors:
    """The fault: the inputs of a bias, ones, are made with the shape alone."""
    ones = torch.ones(weight.columns.lower[:1, :, :, :1].shape, dtype=torch.float64)
    return Factors(weight.derivatives, Interval.point(ones), True)


@pytest.mark.parametrize(
    ("where", "name", "fault", "case"),
    [
        (logistic, "multipliers", weights_on_the_host, "logistic-float64-weighted"),
        (randomness, "_box_muller", angles_by_a_constant, "softmax-float64"),
        (extremes, "bias_factors", ones_on_the_host, "train clipped"),
        (Draws, "uniform", draws_of_the_host, "edits"),
    ],
    ids=["constants", "a float64 constant", "a tensor of ones", "draws"],
)
def test_two_devices_are_not_mixed(
    where: Any, name: str, fault: Any, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, fault)
    with pytest.raises(RuntimeError, match=TWO_DEVICES):
        outcome_of(CASE[case])


def projecting_only_what_is_too_long(weights: Tensor, radius: float) -> None:
    """The fault: a number is read in every step, to save work."""
    norms = torch.linalg.vector_norm(weights, dim=1, keepdim=True)
    if float(norms.max()) > radius:
        weights.mul_((radius / norms).clamp_(max=1.0))


def rows_that_are_too_long(weights: Tensor, radius: float) -> None:
    """The fault: how many rows are changed follows from numbers."""
    norms = torch.linalg.vector_norm(weights, dim=1, keepdim=True)
    long = (norms > radius)[:, 0]
    weights[long] = weights[long] * (radius / norms[long])


def new_weights_of_classes(labels: Tensor, class_weights: Tensor, dtype: torch.dtype) -> Tensor:
    """The fault that was there: constants are copied to the device in every step."""
    return torch.tensor([0.5, 1.0], dtype=dtype, device=labels.device)[(labels > 0).long()]


@pytest.mark.parametrize(
    ("where", "name", "fault", "case"),
    [
        (descent, "project", projecting_only_what_is_too_long, "squared-float64"),
        (descent, "project", rows_that_are_too_long, "squared-float64"),
        (minibatch, "multipliers", new_weights_of_classes, "cyclic-float64-weighted"),
    ],
    ids=["a number is read", "a shape follows from numbers", "constants are copied"],
)
def test_a_step_does_not_wait_for_the_device(
    where: ModuleType, name: str, fault: Callable[..., Any], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step still computes the right numbers: only the waiting is wrong."""
    monkeypatch.setattr(where, name, fault)
    found = outcome_of(CASE[case])
    torch.testing.assert_close(found.numbers, on_the_cpu(CASE[case]))
    assert found.waits_in_the_loop() - set(CASE[case].waits)


def test_what_is_done_on_a_gpu_alone_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetting_the_last_row(coefficients: Tensor, rows: Tensor, gradient: Tensor) -> None:
        some = slice(0, -1 if rows.is_cuda else None)
        gradient.addmm_(coefficients[:, some], rows[some])

    monkeypatch.setattr(linear, "_add_product", forgetting_the_last_row)
    case = CASE["logistic-float64"]
    with pytest.raises(AssertionError, match="not close"):
        torch.testing.assert_close(outcome_of(case).numbers, on_the_cpu(case))


def test_a_function_that_no_case_reaches_is_named() -> None:
    module = ModuleType("certified_unlearning.engine.new")
    exec("def add(values, device=None): ...\nclass Kept:\n def put(self, rows: 'Tensor'): ...", vars(module))
    module.add.__module__ = module.Kept.__module__ = module.__name__
    assert [*public_functions([module])] == ["engine.new:add", "engine.new:Kept.put"]


@pytest.mark.parametrize(
    "fault",
    [
        lambda values: values + torch.ones(3),
        lambda values: torch.ones(3).add_(values),
        lambda values: torch.ones(3)[values.long()],
        lambda values: torch.masked_select(values, torch.tensor([True, False, True])),
        lambda values: values.numpy(),
        lambda values: values.data_ptr(),
    ],
)
def test_what_cuda_refuses_is_refused(fault: Callable[[Tensor], Any]) -> None:
    with fake_cuda(), pytest.raises((RuntimeError, TypeError)):
        fault(on_cuda(torch.arange(3.0)))


def test_numbers_go_to_a_gpu_and_come_back() -> None:
    with fake_cuda():
        values = on_cuda(torch.arange(6.0).view(2, 3))
        row = values[1]
        row += 1
        assert (values.is_cuda, values.device, row.cpu().tolist()) == (True, CUDA, [4, 5, 6])
        assert values[values > 4].tolist() == [5, 6]
        assert float(values.sum()) == 18
        with torch.inference_mode():
            assert values.new_tensor([1.0, 2.0]).is_cuda
    if not torch.cuda.is_available():
        with pytest.raises((RuntimeError, AssertionError)):
            torch.ones(1).to(CUDA)
