"""The engine against the exact Gaussian laws of a quadratic loss, and against itself when batched or resumed."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from certified_unlearning.engine import descent, randomness
from certified_unlearning.engine.checkpoint import Checkpoint
from certified_unlearning.engine.descent import DescentPhase
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.engine.objectives.quadratic import QuadraticObjective
from tests.support.killing import Killed, Killer

TRIALS = 20_000
STEP_SIZE, SIGMA, LEARNING, UNLEARNING, REMOVED = 0.5, 0.3, 12, 5, 2
CURVATURE = torch.tensor([0.1, 0.4, 1.0], dtype=torch.float64)
FALSE_ALARM_RATE = 1e-9


def quadratic() -> QuadraticObjective:
    rows = torch.from_numpy(np.random.default_rng(5).normal(size=(6, 3)))
    return QuadraticObjective(rows, CURVATURE, replacements=(torch.tensor([4, 1]), 3 + torch.ones(2, 3).double()))


def phases(trials: int = TRIALS, sigma: float = SIGMA, learning: int = LEARNING) -> list[DescentPhase]:
    def phase(name: str, removed: int, steps: int) -> DescentPhase:
        keys = [randomness.address("test", name, trial) for trial in range(trials)]
        return DescentPhase(removed=removed, steps=[steps] * trials, sigma=[sigma] * trials, keys=keys)

    return [phase("learning", 0, learning), phase("unlearning", REMOVED, UNLEARNING)]


def simulate(todo: list[DescentPhase], **options: object) -> descent.DescentResult:
    start = torch.full((len(todo[0].steps), 3), 2.0, dtype=torch.float64)
    return descent.run(quadratic(), start, todo, step_size=STEP_SIZE, measure=lambda w: w[:, 0], **options)


def exact_law() -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each coordinate after learning and unlearning."""
    objective = quadratic()
    contraction = 1 - STEP_SIZE * CURVATURE
    mean, variance = torch.full((3,), 2.0).double(), torch.zeros(3).double()
    for removed, steps in ((0, LEARNING), (REMOVED, UNLEARNING)):
        objective.remove(removed)
        mean = contraction**steps * mean + (1 - contraction**steps) * objective.mean
        stationary = 2 * STEP_SIZE * SIGMA**2 / (1 - contraction**2)
        variance = contraction ** (2 * steps) * variance + (1 - contraction ** (2 * steps)) * stationary
    return mean.numpy(), variance.numpy()


def p_value(weights: torch.Tensor) -> float:
    """Least p-value of six tests (three means, three variances) and three correlations, Bonferroni-corrected."""
    sample = weights.double().numpy()
    mean, variance = exact_law()
    z = (sample.mean(axis=0) - mean) / np.sqrt(variance / len(sample))
    chi = ((sample - sample.mean(axis=0)) ** 2).sum(axis=0) / variance
    tails = stats.chi2.cdf(chi, len(sample) - 1)
    correlations = np.corrcoef(sample.T)[np.triu_indices(3, 1)] * math.sqrt(len(sample))
    p_values = [*2 * stats.norm.sf(abs(z)), *2 * np.minimum(tails, 1 - tails), *2 * stats.norm.sf(abs(correlations))]
    return 9 * min(p_values)


def test_trials_follow_the_exact_gaussian_law() -> None:
    assert p_value(simulate(phases()).weights) > FALSE_ALARM_RATE


@pytest.mark.parametrize(
    ("fault", "todo"),
    [
        ("noise without the factor 2", phases(sigma=SIGMA / math.sqrt(2))),
        ("one step too many", phases(learning=LEARNING + 1)),
        ("unlearning on the old data", [phases()[0], replace(phases()[1], removed=0)]),
        ("one noise for all trials", [replace(each, keys=each.keys[:1] * TRIALS) for each in phases()]),
    ],
)
def test_a_planted_fault_is_caught(fault: str, todo: list[DescentPhase]) -> None:
    assert p_value(simulate(todo).weights) < FALSE_ALARM_RATE, fault


def test_noise_of_the_two_phases_is_independent() -> None:
    same = phases()
    same[1] = replace(same[1], keys=same[0].keys)
    assert p_value(simulate(same).weights) < FALSE_ALARM_RATE


def test_a_trial_does_not_depend_on_the_batch_it_runs_in() -> None:
    together = phases(trials=7)
    alone = [replace(each, steps=each.steps[3:4], sigma=each.sigma[3:4], keys=each.keys[3:4]) for each in together]
    assert torch.equal(simulate(together).weights[3:4], simulate(alone).weights)


def test_trials_with_their_own_steps_and_sigma_equal_trials_run_alone() -> None:
    keys = [randomness.address("own", trial) for trial in range(4)]
    steps, sigma = [3, 40, 0, 17], [0.1, 0.0, 0.2, 0.3]
    mixed = simulate([DescentPhase(removed=1, steps=steps, sigma=sigma, keys=keys, measure_at=[5, 17])])
    for trial in range(4):
        only = slice(trial, trial + 1)
        alone = simulate([DescentPhase(removed=1, steps=steps[only], sigma=sigma[only], keys=keys[only])])
        assert torch.equal(mixed.weights[only], alone.weights)
    assert np.isnan(mixed.curve[0, 5]).tolist() == [True, False, True, False]
    assert mixed.curve[0, 17][3] == mixed.weights[3, 0]


@pytest.mark.parametrize("steps", [[3, 3], [3, 40]])
def test_weights_are_their_callers_to_change(steps: list[int]) -> None:
    """Steps are taken where PyTorch keeps no record for derivatives; what they return can be used everywhere."""
    weights = simulate([DescentPhase(removed=1, steps=steps, sigma=[0.1, 0.1], keys=[1, 2])]).weights
    weights.mul_(2.0)
    assert torch.autograd.grad((weights.requires_grad_() ** 2).sum(), weights)[0].equal(2 * weights)


def test_an_objective_can_be_used_outside_of_a_run_and_a_measure_may_differentiate() -> None:
    rows = torch.randn(50, 3, dtype=torch.float64) / 5
    objective = LogisticObjective(
        rows, torch.ones(50, dtype=torch.float64), strong_convexity=0.1, lipschitz=1.0, normaliser=50
    )

    def slope(weights: torch.Tensor) -> torch.Tensor:
        here = weights.detach().clone().requires_grad_()
        return torch.autograd.grad((here**2).sum(), here)[0].sum(dim=1)

    phase = DescentPhase(removed=0, steps=[3], sigma=[0.1], keys=[1], measure_at=[2])
    found = descent.run(objective, torch.zeros(1, 3, dtype=torch.float64), [phase], step_size=0.5, measure=slope)
    assert np.isfinite(found.curve[0, 2]).all()
    before = found.weights.clone()
    objective.descend(found.weights, 0.5)
    assert not torch.equal(found.weights, before)


def test_projection_keeps_every_trial_in_the_ball() -> None:
    weights = simulate(phases(trials=50), radius=0.25).weights
    norms = torch.linalg.vector_norm(weights, dim=1)
    assert float(norms.max()) <= 0.25 * (1 + 1e-12)
    assert float((norms > 0.2499).double().mean()) > 0.5
    assert torch.equal(simulate(phases(trials=50), radius=1e6).weights, simulate(phases(trials=50)).weights)


def test_an_interrupted_run_ends_with_the_same_bits(tmp_path) -> None:
    todo = [replace(each, steps=[40] * 9, measure_at=[7, 33]) for each in phases(trials=9)]
    undisturbed = simulate(todo)

    interruptions = 0
    for after in range(1, 12):
        checkpoint = Checkpoint(tmp_path / f"{after}.checkpoint", "key", every_seconds=0)
        try:
            simulate(todo, progress=Killer(after), checkpoint=checkpoint)
        except Killed:
            interruptions += 1
        resumed = simulate(todo, checkpoint=checkpoint)
        assert torch.equal(resumed.weights, undisturbed.weights)
        assert np.array_equal(resumed.published, undisturbed.published)
        assert resumed.curve.keys() == undisturbed.curve.keys()
        assert all(np.array_equal(resumed.curve[where], undisturbed.curve[where]) for where in resumed.curve)
    assert interruptions >= 8


def test_a_checkpoint_of_other_inputs_is_not_used(tmp_path) -> None:
    path = tmp_path / "state.checkpoint"
    simulate(phases(trials=2), checkpoint=Checkpoint(path, "these inputs"))
    assert Checkpoint(path, "these inputs").load() is not None
    assert Checkpoint(path, "others").load() is None


def test_published_noise_is_fed_back_only_when_asked() -> None:
    keys = [randomness.address("publish", trial) for trial in range(500)]
    quiet = DescentPhase(removed=0, steps=[4], sigma=[0.0], keys=[0], publication_sigma=[0.7], publication_keys=keys)
    secret = simulate([quiet])
    assert secret.weights.shape == (1, 3)
    noise = secret.published[0] - float(secret.weights[0, 0])
    assert stats.kstest(noise / 0.7, "norm").pvalue > FALSE_ALARM_RATE
    fed_back = simulate([replace(quiet, feeds_back=True)])
    assert fed_back.weights.shape == (500, 3)
    assert np.array_equal(fed_back.weights[:, 0].numpy(), secret.published[0])
