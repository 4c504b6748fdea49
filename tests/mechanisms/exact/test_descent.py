"""What all exact descent has in common: requests that are refused, invariants that are watched, stored states."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.lean_subsample_gd import LeanSubsampleDescent
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.exact.quantized_sgd import QuantizedSgd
from certified_unlearning.mechanisms.exact.subsample_gd import SubsampleDescent, SubsampleGd

CONSTANTS = {"steps": 6, "batch_size": 3, "step_size": 0.3, "radius": 2.0}
N, ROWS = 12, 20


def records() -> LinearRecords:
    return LinearRecords(Draws(1).normal(ROWS, 4), Draws(2).integers(2, ROWS) * 2 - 1, loss="logistic")


LEARNERS: dict[str, Callable[[], Any]] = {
    "plain": lambda: SubsampleDescent(SubsampleGd(**CONSTANTS), records()),
    "lean": lambda: LeanSubsampleDescent(SubsampleGd(**CONSTANTS), records()),
    "noisy": lambda: ExactDescent(NoisySgd(**CONSTANTS, sigma=0.4), records()),
    "accelerated": lambda: ExactDescent(NoisySgd(**CONSTANTS, sigma=0.4, accelerated=True), records()),
    "quantized": lambda: ExactDescent(QuantizedSgd(**CONSTANTS, quantum=0.7), records()),
}
each = pytest.mark.parametrize("name", LEARNERS)


def learned(name: str, trials: int = 30) -> tuple[Any, Any]:
    own = LEARNERS[name]()
    return own, own.learn(torch.arange(N), Draws(3), trials=trials)


@each
def test_a_long_stream_keeps_every_invariant(name: str) -> None:
    """Sixty edits; and the model is the mean of all iterates, or the last if accelerated."""
    own, state = learned(name)
    generator = torch.Generator().manual_seed(4)
    for number in range(60):
        grows = len(state.alive) < 6 or (state.alive.next_id < ROWS and number % 2)
        if grows and state.alive.next_id < ROWS:
            own.insert(state, state.alive.next_id, Draws.at(name, number))
        elif len(state.alive) > 4:
            place = int(torch.randint(len(state.alive), (1,), generator=generator))
            own.delete(state, int(state.alive.ids[place]), Draws.at(name, number))
        own.check(state)
    if name != "lean":
        expected = state.weights[:, -1] if name == "accelerated" else state.weights.mean(dim=1)
        assert torch.equal(state.model(), expected)


@each
@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        (lambda own, state: own.delete(state, 15, Draws(1)), ParameterError, "record 15 cannot be deleted"),
        (lambda own, state: own.insert(state, 5, Draws(1)), ParameterError, "ascend and be at least 12"),
        (lambda own, state: own.insert(state, ROWS, Draws(1)), ParameterError, "one of the 20 rows, got 20"),
    ],
)
def test_a_request_that_does_not_fit_is_refused_and_changes_nothing(
    name: str, request_: Callable[[Any, Any], Any], error: type[Exception], message: str
) -> None:
    own, state = learned(name)
    before = {key: tensor.clone() for key, tensor in state.tensors().items()}
    with pytest.raises(error, match=message):
        request_(own, state)
    assert all(torch.equal(tensor, before[key]) for key, tensor in state.tensors().items())


@each
def test_a_batch_always_leaves_a_record_out(name: str) -> None:
    own = LEARNERS[name]()
    with pytest.raises(AssumptionError, match=r"must be below the number of records.*got 3 with n = 3"):
        own.learn(torch.arange(3), Draws(1))
    state = own.learn(torch.arange(4), Draws(1))
    with pytest.raises(AssumptionError, match="got 3 with n = 3"):
        own.delete(state, 0, Draws(1))
    assert sorted(state.alive.ids.tolist()) == [0, 1, 2, 3]


@each
def test_constants_stay_as_they_were_learned_with(name: str) -> None:
    own, state = learned(name)
    with pytest.raises(FrozenInstanceError):
        own.settings.steps = 7
    other = type(own)(replace(own.settings, step_size=0.2), records())
    with pytest.raises(AssumptionError, match=r"no edit may change these constants, got .*step_size=0\.2"):
        other.delete(state, 0, Draws(1))
    with pytest.raises(AssumptionError, match="no edit may change these constants"):
        other.check(state)


@each
def test_a_stored_state_goes_on_as_the_one_in_memory(name: str, tmp_path: Path) -> None:
    own, state = learned(name)
    own.insert(state, 14, Draws(5))
    own.delete(state, 14, Draws(6))
    save_file(state.tensors(), tmp_path / "state.safetensors")
    again = type(state).from_tensors(load_file(tmp_path / "state.safetensors"), own.settings)
    own.check(again)
    assert all(torch.equal(tensor, again.tensors()[key]) for key, tensor in state.tensors().items())
    with pytest.raises(ParameterError, match="ascend and be at least 15"):
        own.insert(again, 13, Draws(7))
    own.delete(again, 3, Draws(7))
    own.check(again)


@pytest.mark.parametrize("name", ["plain", "noisy", "accelerated", "quantized"])
def test_batches_and_what_was_drawn_are_enough_to_go_on(name: str) -> None:
    own, state = learned(name)
    for record in range(4):
        own.delete(state, record, Draws.at("least", record))
    least = state.least_tensors()
    again = own.restored(least)
    assert sum(tensor.numel() for tensor in least.values()) < sum(each.numel() for each in state.tensors().values()) / 2
    own.check(again)
    for key, tensor in state.tensors().items():
        torch.testing.assert_close(again.tensors()[key], tensor, rtol=0, atol=1e-12)
    own.insert(again, 15, Draws(9))
    own.check(again)


def test_nothing_in_a_stored_state_tells_in_which_order_it_came_about() -> None:
    """Members of batches and ids ascend: else the place of an inserted or moved record would be known."""
    own, state = learned("noisy")
    own.edit(state, [0, 4], [15], Draws(8))
    stored = state.tensors()
    assert stored["alive"].tolist() == sorted(stored["alive"].tolist())
    assert bool((stored["batches"].diff(dim=-1) > 0).all())


@pytest.mark.parametrize(
    ("tensor", "place", "value", "message"),
    [
        ("batches", (4, 2, 0), 19, "must be distinct and in ascending order"),
        ("batches", (4, 2, 2), 19, "a record that is not present"),
        ("gradients", (7, 5, 1), 9.0, "gradients of iteration 6 are off by"),
        ("randomness", (0, 3, 3), 9.0, "weights after iteration 4 are off by"),
        ("weights", (2, 6, 0), float("nan"), "weights after iteration 6 are off by nan"),
        ("weights", (2, 0, 0), 1e-300, "weights of iteration 1 must be 0"),
    ],
)
def test_a_damaged_state_is_found(tensor: str, place: tuple[int, ...], value: float, message: str) -> None:
    own, state = learned("noisy")
    getattr(state, tensor)[place] = value
    with pytest.raises(DataError, match=message):
        own.check(state)


def test_what_was_updated_is_computed_anew_to_the_last_bit() -> None:
    own, state = learned("accelerated")
    for record in range(6):
        own.delete(state, record, Draws.at("refresh", record))
    with pytest.raises(DataError, match="gradients of iteration"):
        own.check(state, tolerance=1e-17)
    before = state.weights.clone()
    own.refresh(state)
    own.check(state, tolerance=1e-15)
    assert torch.equal(state.weights, before)


def test_a_damaged_lean_state_is_found() -> None:
    own, state = learned("lean")
    state.weights[3, 1] += 1e-6
    with pytest.raises(DataError, match="models are off by 1e-06"):
        own.check(state)


def test_plain_and_lean_descent_give_the_same_models_from_the_same_batches() -> None:
    (_, full), (_, small) = learned("plain"), learned("lean")
    assert torch.equal(full.batches, small.batches)
    torch.testing.assert_close(full.model(), small.model())


@pytest.mark.parametrize(
    ("settings", "wrong", "message"),
    [
        (SubsampleGd, {"steps": 0}, "steps must be a whole number, at least 1, got 0"),
        (SubsampleGd, {"batch_size": 0}, "batch_size must be a whole number, at least 1, got 0"),
        (SubsampleGd, {"step_size": -1}, "step_size must be a finite number above 0, got -1"),
        (SubsampleGd, {"radius": 0.0}, r"radius must be a finite number above 0, got 0\.0"),
        (NoisySgd, {"sigma": -0.1}, r"sigma must be a finite number, at least 0, got -0\.1"),
        (QuantizedSgd, {"quantum": 0.0}, r"quantum must be a finite number above 0, got 0\.0"),
    ],
)
def test_constants_that_make_no_sense_are_refused(settings: type, wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        settings(**{**CONSTANTS, **wrong})
    with pytest.raises(ParameterError, match="trials must be a whole number, at least 1, got 0"):
        LEARNERS["noisy"]().learn(torch.arange(5), Draws(1), trials=0)
