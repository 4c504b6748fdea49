"""Compiled steps of mini-batches do what PyTorch's do, within the rounding that is counted, and only where they can."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import torch

from certified_unlearning.accounting.core.losses import logistic_constants
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.rounding import ROWS_IN_A_ROW, UNIT_ROUNDOFF
from certified_unlearning.accounting.guarantees import as_computed
from certified_unlearning.engine import descent, randomness
from certified_unlearning.engine.checkpoint import Checkpoint
from certified_unlearning.engine.compiled import minibatch as compiled
from certified_unlearning.engine.minibatch import CyclicObjective
from certified_unlearning.engine.objectives.rows import StreamedRows
from certified_unlearning.engine.phase import DescentPhase

if compiled.library() is None:
    pytest.skip("no C++ compiler is here", allow_module_level=True)

STRENGTH, STEP = 0.05, 3.0
UNIT = UNIT_ROUNDOFF["float64"]
CPU = torch.device("cpu")


def rows_of(n: int, features: int, seed: int = 1) -> torch.Tensor:
    rows = torch.randn(n, features, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return rows / rows.norm(dim=1, keepdim=True)


def objective(n: int, features: int, batch_size: int, **options: Any) -> CyclicObjective:
    labels = torch.randint(2, (n,), generator=torch.Generator().manual_seed(2)) * 2 - 1
    given = {"rows": rows_of(n, features), "labels": labels, "classes": 2, "strong_convexity": STRENGTH, **options}
    return CyclicObjective(given.pop("rows"), given.pop("labels"), batch_size=batch_size, **given)


def run(loss: CyclicObjective, steps: int, *, sigma: float = 0.1, place: int = 0, **options: Any) -> torch.Tensor:
    start = options.pop("start", torch.full((1, loss.d), 0.1, dtype=torch.float64))
    phase = DescentPhase(0, [steps], [sigma], [77], place=place, measure_at=options.pop("measure_at", ()))
    return descent.run(loss, start, [phase], step_size=STEP, **options).weights


def by_pytorch(loss: CyclicObjective) -> CyclicObjective:
    loss._is_compiled = False
    return loss


@pytest.mark.parametrize("features", [1, 2, 3, 4, 5, 8, 21, 131])
@pytest.mark.parametrize(("n", "batch_size"), [(5, 5), (23, 6), (40, 8), (70, 17), (300, 129)])
@pytest.mark.parametrize("class_weights", [None, (0.25, 1.0)])
def test_compiled_steps_are_those_of_pytorch(
    features: int, n: int, batch_size: int, class_weights: tuple[float, float] | None
) -> None:
    for sigma, steps, place in ((0.1, 3, 0), (0.1, 40, 2), (0.0, 17, 5)):
        losses = [objective(n, features, batch_size, class_weights=class_weights) for _ in range(2)]
        assert losses[0]._is_compiled
        found = run(losses[0], steps, sigma=sigma, place=place)
        due = run(by_pytorch(losses[1]), steps, sigma=sigma, place=place)
        torch.testing.assert_close(found, due, rtol=0, atol=2e-14)
        assert float((found - due).abs().max()) < 1e-3 * float((found - 0.1).abs().max())
        assert losses[0]._batch == losses[1]._batch


@pytest.mark.parametrize("features", [1, 2, 21, 784, 785])
def test_compiled_noise_is_that_of_randomness(features: int) -> None:
    size, key = randomness.BLOCK_STEPS, 2**100 + 5
    whole = torch.empty(1, 4, size, features, dtype=torch.float64)
    randomness.fill_blocks(whole, [key], 3)
    due = whole.view(-1, features).numpy()
    for steps in (range(48, 112), range(50, 51), range(63, 65), range(70, 111)):
        found = compiled.normal_numbers(key, steps, features)
        np.testing.assert_allclose(found, due[steps.start - 48 : steps.stop - 48], rtol=0, atol=2e-15)


def test_blocks_with_a_rare_radius_are_those_of_randomness(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if one number in fifty took more bits: some blocks have one, and some have none."""
    low, high = 2.0**56, 2.0**63 - 2.0**56
    monkeypatch.setitem(randomness.FINE_FROM, torch.float64, (low, high))
    whole = torch.empty(1, 16, randomness.BLOCK_STEPS, 9, dtype=torch.float64)
    randomness.fill_blocks(whole, [5], 0)
    found = compiled.normal_numbers(5, range(256), 9).reshape(16, -1)
    bits = np.abs(randomness.cipher_bits(5, range(16), 160)[:, :80].astype(float))
    rare = ((bits < low) | (bits > high)).any(axis=1)
    assert 0 < rare.sum() < 16
    due = whole[0].reshape(16, -1).numpy()
    np.testing.assert_array_equal(found[rare], due[rare])
    np.testing.assert_allclose(found[~rare], due[~rare], rtol=0, atol=2e-15)
    assert not np.array_equal(found[~rare], due[~rare])  # In their last bits: that is how the two are told apart.


def sigmoid(scores: np.ndarray) -> np.ndarray:
    """The kernel's, read from what a step without decay makes of the weight of a constant column."""
    rows = np.stack([scores, np.ones(len(scores))], axis=1)
    found = []
    for batch in range(len(scores)):
        weights = np.array([[1.0, 0.0]])
        taken = compiled.noisy_steps(
            weights,
            rows,
            rows,
            batch=batch,
            batch_size=1,
            class_weights=None,
            strong_convexity=0.0,
            step_size=1.0,
            noise_std=0.0,
            key=1,
            steps=range(1),
        )
        assert taken == 1
        found.append(-float(weights[0, 1]))
    return np.array(found)


def test_sigmoids_are_off_by_less_than_is_counted() -> None:
    """`core.rounding` counts 8 u for a coefficient, twice what a sigmoid may be off by."""
    generator = np.random.default_rng(3)
    scores = np.concatenate(
        [
            generator.uniform(-3, 3, 4000),
            generator.uniform(-50, 50, 4000),
            generator.uniform(-900, 900, 1000),
            math.log(2) * (np.arange(-60, 60) + 0.5) * (1 + 1e-15 * generator.standard_normal(120)),
            [0.0, -0.0, 1e-300, -1e-300, 700.0, -700.0, 1e300, -1e300, math.inf, -math.inf],
        ]
    )
    found = sigmoid(scores)
    with mpmath.workprec(200):
        due = [1 / (1 + mpmath.exp(-mpmath.mpf(each))) for each in scores]
        worst = max(abs(mpmath.mpf(one) - two) for one, two in zip(found, due, strict=True))
    assert worst <= 3 * UNIT
    assert ((found >= 0) & (found <= 1)).all()


def test_what_is_no_number_stays_none() -> None:
    for wrong in (math.nan, -math.nan, *np.array([0x7FF0000000000FFF, -1], dtype=np.int64).view(np.float64)):
        assert np.isnan(sigmoid(np.array([wrong]))).all()
        loss = objective(23, 5, 6)
        loss._rows[8, 3] = wrong
        assert not bool(run(loss, 1).isnan().any())
        assert bool(run(loss, 2).isnan().all())


@pytest.mark.parametrize(("features", "batch_size"), [(3, 40), (21, 1000), (300, 129)])
def test_a_compiled_step_ends_as_near_to_the_exact_one_as_is_counted(features: int, batch_size: int) -> None:
    """Against 64 bits more; the bound is for the worst weights and rows, so that a fault must be large to be seen."""
    rows = rows_of(batch_size, features)
    constants = logistic_constants(n=batch_size, regularisation=STRENGTH / batch_size)
    problem = Problem(batch_size, STRENGTH, constants.smoothness, constants.lipschitz, STEP, adjacency="zero-out")
    counted = as_computed(problem, dimension=features, classes=2, dtype="float64", variant="least-steps")
    assert counted.rounding.step_error(0.0) < 1e-9
    worst = 0.0
    for scale in (0.1, 1.0, 1 / STRENGTH):
        start = scale * rows_of(1, features, seed=9)
        found = run(objective(batch_size, features, batch_size, rows=rows.clone()), 1, sigma=0.0, start=start)
        long_rows, long_start = rows.numpy().astype(np.longdouble), start[0].numpy().astype(np.longdouble)
        gradient = (1 / (1 + np.exp(-(long_rows @ long_start)))) @ long_rows / np.longdouble(batch_size)
        exact = (1 - np.longdouble(STEP) * np.longdouble(STRENGTH)) * long_start - np.longdouble(STEP) * gradient
        worst = max(worst, float(np.linalg.norm(found[0].numpy() - exact)))
    assert 0 < worst <= counted.rounding.step_error(0.0)


def test_bits_do_not_depend_on_how_many_steps_a_call_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    due = run(objective(70, 5, 17), 61)
    for numbers in (1, 17 * 5 * 7, 17 * 5 * 16):
        monkeypatch.setattr(compiled, "NUMBERS_OF_A_CALL", numbers)
        assert torch.equal(run(objective(70, 5, 17), 61), due)
    monkeypatch.setattr(randomness, "NUMBERS_AT_ONCE", 5 * 11)  # Of noise.
    assert torch.equal(run(objective(70, 5, 17), 61), due)
    halfway = run(objective(70, 5, 17), 61, measure_at=[1, 20], measure=lambda weights: weights[:, 0])
    assert torch.equal(halfway, due)


def test_a_run_that_was_stopped_ends_with_the_same_bits(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "NUMBERS_OF_A_CALL", 17 * 5 * 9)

    class Stopping:
        left, skipped = 30, 0

        def skip(self, steps: int) -> None:
            self.skipped = steps

        def advance(self, steps: int) -> None:
            self.left -= steps
            if self.left < 0:
                raise KeyboardInterrupt

    due = run(objective(70, 5, 17), 61)
    stop: Any = Stopping()
    checkpoint = Checkpoint(tmp_path / "state", "key", every_seconds=0)
    with pytest.raises(KeyboardInterrupt):
        run(objective(70, 5, 17), 61, checkpoint=checkpoint, progress=stop)
    stop.left = 1000
    assert torch.equal(run(objective(70, 5, 17), 61, checkpoint=checkpoint, progress=stop), due)
    assert 0 < stop.skipped < 61
    assert stop.left == 1000 - 61 + stop.skipped


def test_other_types_losses_and_places_are_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert objective(40, 5, 8)._is_compiled
    assert not objective(40, 5, 8, rows=rows_of(40, 5).float())._is_compiled
    assert not objective(40, 5, 8, classes=3, labels=torch.zeros(40).long())._is_compiled
    assert not objective(40, 5, 8, rows=rows_of(5, 40).t())._is_compiled
    assert not objective(40, 5, 8, labels=torch.ones(40), class_weights=(0.5, 1.0))._is_compiled
    assert not objective(40, 5, 8, labels=torch.ones(39).long(), class_weights=(0.5, 1.0))._is_compiled
    assert objective(40, 5, 8, labels=torch.ones(40))._is_compiled  # Labels are not looked at.
    assert not objective(40, 5, ROWS_IN_A_ROW + 1)._is_compiled
    monkeypatch.setattr(torch, "get_num_threads", lambda: 16)
    assert objective(40, 5, 8)._is_compiled
    monkeypatch.setattr(compiled, "WORTH_THREADS", 40)
    assert not objective(40, 5, 8)._is_compiled


def test_weights_of_another_type_or_layout_are_not_touched() -> None:
    loss = objective(40, 5, 8)
    for weights in (torch.zeros(1, 5), torch.zeros(1, 10, dtype=torch.float64)[:, ::2]):
        assert loss.noisy_steps(weights, STEP, 0.1, key=1, steps=range(3)) == 0
        assert not weights.any()
    assert loss.noisy_steps(torch.zeros(1, 5, dtype=torch.float64), STEP, 0.1, key=1, steps=range(3)) == 3


def test_rows_that_require_gradients_are_read_as_others() -> None:
    due = run(objective(40, 5, 8), 7)
    assert torch.equal(run(objective(40, 5, 8, rows=rows_of(40, 5).requires_grad_()), 7), due)


def test_several_trials_and_balls_are_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> int:
        raise AssertionError

    monkeypatch.setattr(CyclicObjective, "noisy_steps", never)
    with pytest.raises(AssertionError):
        run(objective(40, 5, 8), 3)
    run(objective(40, 5, 8), 3, radius=1.0)
    phase = DescentPhase(0, [3, 3], [0.1, 0.1], [1, 2], place=0)
    descent.run(objective(40, 5, 8), torch.zeros(2, 5).double(), [phase], step_size=STEP)


def test_rows_on_disk_are_pytorchs() -> None:
    class Source:
        shape = (40, 5)

        def read_into(self, out: np.ndarray, start: int) -> None:
            out[:] = rows_of(40, 5)[start : start + len(out)].numpy()

    streamed = StreamedRows(Source(), dtype=torch.float64, device=CPU)
    loss = objective(40, 5, 8, rows=streamed)
    due = by_pytorch(objective(40, 5, 8, rows=rows_of(40, 5).float().double()))
    assert torch.equal(run(loss, 9), run(due, 9))
