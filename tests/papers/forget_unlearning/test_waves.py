"""Exact laws of noisy gradient descent on waves, against a fine grid, and Theorem 5.2 on them with planted faults."""

import math

import numpy as np
import pytest

from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.forget_unlearning.measures import nonconvex
from certified_unlearning.papers.forget_unlearning.theory.soundness import necessary_epsilon
from certified_unlearning.papers.forget_unlearning.theory.waves import Waves, _polynomials, divergence
from tests.accounting.deletion_settings import quoted

SINE = Waves(amplitude=0.1, regularisation=1.0, sigma=math.sqrt(0.4), step_size=0.02)
RECORDS = (0.0, 1.0)


def on_a_grid(waves: Waves, records: tuple[float, ...], steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a fine grid and the law after some steps there, step by step."""
    grid = np.linspace(-10, 10, 801) * waves.sigma
    slope = waves.amplitude * np.mean([np.cos(grid + phase) for phase in records], axis=0)
    moved = grid - waves.step_size * (slope + waves.regularisation * grid)
    kernel = np.exp(-((grid - moved[:, np.newaxis]) ** 2) / (4 * waves.step_size * waves.sigma**2))
    kernel /= kernel.sum(axis=1, keepdims=True)
    law = np.exp(-(grid**2) * waves.regularisation / (2 * waves.sigma**2))
    law /= law.sum()
    for _ in range(steps):
        law = law @ kernel
    return grid, law


@pytest.mark.parametrize("steps", [1, 10, 150])
def test_laws_are_those_that_a_fine_grid_has_step_by_step(steps: int) -> None:
    grid, law = on_a_grid(SINE, RECORDS, steps)
    moments = _polynomials(grid / SINE.sigma)[:12] @ law
    found = SINE.after(SINE.start(), RECORDS, steps=steps)
    np.testing.assert_allclose(found[:12], moments, atol=1e-7)
    assert np.abs(found[1:12]).max() > 1e-3


def test_many_steps_at_once_are_the_same_as_one_by_one() -> None:
    law = SINE.start()
    for _ in range(13):
        law = SINE.after(law, RECORDS, steps=1)
    np.testing.assert_allclose(SINE.after(SINE.start(), RECORDS, steps=13), law, atol=1e-13)
    np.testing.assert_array_equal(SINE.after(law, RECORDS, steps=0), law)


def test_small_steps_end_near_the_gibbs_law_and_nearer_than_large_ones() -> None:
    ends = []
    for step_size in (0.02, 0.005):
        waves = Waves(0.1, 1.0, math.sqrt(0.4), step_size)
        law = waves.after(waves.start(), RECORDS, steps=100_000)
        ends.append(divergence(waves.density(law), waves.gibbs(RECORDS), alpha=2.0))
    # The bias of a step is of the order of its size, and the divergence of that order squared.
    assert 1e-9 < ends[1] < ends[0] / 10


def test_gibbs_laws_have_the_divergences_and_the_risk_of_the_specification() -> None:
    first, second = SINE.gibbs((0.0,)), SINE.gibbs((1.0,))
    assert divergence(first, second, alpha=2.0) == quoted(0.00530608)
    assert divergence(second, first, alpha=64.0) == quoted(0.286360)
    assert SINE.risk(first, (0.0,)) == quoted(0.200357)


def test_a_law_that_the_polynomials_do_not_resolve_is_refused() -> None:
    steep = Waves(amplitude=8.0, regularisation=1.0, sigma=1.0, step_size=0.01)
    law = steep.after(steep.start(), (0.0,), steps=200)
    with pytest.raises(ParameterError, match="take a smaller sigma or a larger regularisation"):
        steep.density(law)


def test_the_losses_of_the_service_are_the_largest_that_theorem_5_2_admits() -> None:
    plan, waves, data, models = nonconvex._service()
    assert waves.amplitude <= plan.largest_loss <= 1.0001 * waves.amplitude
    assert plan.deletion_steps < plan.learning_steps
    assert len(data) == len(models) == 4


# --- Planted faults ---------------------------------------------------------------------------------------------------


def test_a_sixth_of_the_noise_breaks_the_promise_to_present_records(monkeypatch: pytest.MonkeyPatch) -> None:
    service = nonconvex._service()
    plan, waves = service.plan, service.waves
    assert max(each.value for each in nonconvex.exact_over_epsilon_dp()) < 1
    quiet = Waves(waves.amplitude, waves.regularisation, waves.sigma / 6, waves.step_size)
    models = (quiet.after(quiet.start(), service.data[0], steps=plan.learning_steps),)
    monkeypatch.setattr(nonconvex, "_service", lambda: service._replace(waves=quiet, models=models))
    assert max(each.value for each in nonconvex.exact_over_epsilon_dp()) > 1


def test_without_deletion_steps_a_model_is_farther_from_its_gibbs_law_than_is_promised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = nonconvex._service()
    assert max(each.value for each in nonconvex.exact_over_epsilon_dd()) < 1
    idle = service._replace(models=service.models[:1] * 4)
    monkeypatch.setattr(nonconvex, "_service", lambda: idle)
    assert nonconvex.exact_over_epsilon_dd()[1].value > 1


# --- Theorem 4.5 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "advantage", "expected"),
    [(2.0, 0.5, 0.03125), (8.0, 0.9, 0.328050), (32.0, 0.5, 0.0644355), (32.0, 0.9, 0.446560), (1000.0, 0.5, 0.214758)],
)
def test_the_necessary_epsilon_is_that_of_the_specification(alpha: float, advantage: float, expected: float) -> None:
    assert necessary_epsilon(advantage, alpha=alpha) == quoted(expected)


def test_an_advantage_above_1_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"advantage must be at most 1, got 1\.5"):
        necessary_epsilon(1.5, alpha=2.0)
