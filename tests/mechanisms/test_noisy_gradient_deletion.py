"""Noisy gradient deletion against its exact law, planted faults included; what is kept, and what clipping leaves.

False alarms: mean and variance of a phase are compared within 6 standard errors, each below 2e-9.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from certified_unlearning.accounting.deletion.planning import plan_deletion
from certified_unlearning.engine import descent, randomness
from certified_unlearning.engine.descent import DescentPhase
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.noisy_gradient_deletion import NoisyGradientDeletion
from certified_unlearning.papers.forget_unlearning.services.encoding import one_record
from certified_unlearning.papers.forget_unlearning.services.linear_losses import (
    LangevinService,
    LinearLossObjective,
    NoisyGradientService,
)
from certified_unlearning.papers.forget_unlearning.theory.gibbs import BoundedProblem
from certified_unlearning.papers.forget_unlearning.theory.nonconvex import plan_nonconvex_deletion
from tests.papers.forget_unlearning.gaussian_laws import GaussianLaw, law_after
from tests.papers.forget_unlearning.small_settings import PLAN

STANDARD_ERRORS = 6.0
SHORT = replace(PLAN, learning_steps=20, deletion_steps=4)


def deviations(service, chains, plan=SHORT, start_variance=None):
    """Return how many standard errors means and variances lie from the exact ones, after learning and two requests."""
    values = [0.5, -1.0, 1.0]
    data = np.zeros((chains, plan.problem.n))
    data[:, 0] = values[0]
    model = service.learn(data, ("law", "learn"))
    models = [model]
    for number, value in enumerate(values[1:]):
        request = one_record(np.full(chains, value), index=number)
        model = service.answer(data, request, model, ("law", f"request {number}"))
        data = request.applied_to(data)
        models.append(model)
    means = np.array([0.5, -1.0, 0.0]) / plan.problem.n
    steps = [plan.learning_steps, plan.deletion_steps, plan.deletion_steps]
    found = []
    for phase in range(3):
        start = GaussianLaw(np.zeros(1), plan.start_variance if start_variance is None else start_variance)
        law = law_after(
            plan.problem, start, [[mean] for mean in means[: phase + 1]], steps[: phase + 1], sigma=plan.sigma
        )
        found.append((models[phase].mean() - law.mean[0]) / np.sqrt(law.variance / chains))
        found.append((models[phase].var() / law.variance - 1) / np.sqrt(2 / chains))
    return np.abs(found)


def test_a_million_chains_have_the_exact_means_and_variances():
    assert deviations(NoisyGradientService(SHORT), 1_000_000).max() < STANDARD_ERRORS


def test_langevin_unlearning_has_its_own_start_and_the_same_law():
    plan = replace(SHORT, learning_steps=5)
    variance = 2 * plan.sigma**2 / plan.problem.strong_convexity
    service = LangevinService(plan.problem, plan.sigma, plan.learning_steps, plan.deletion_steps)
    assert deviations(service, 200_000, plan, start_variance=variance).max() < STANDARD_ERRORS
    assert deviations(service, 200_000, plan).max() > 2 * STANDARD_ERRORS


@dataclass(frozen=True)
class OldData(NoisyGradientService):
    """Takes its steps on the data from before the request."""

    def answer(self, databases, request, model, key):
        unchanged = replace(request, records=databases[np.arange(len(databases))[:, None], request.indices])
        return super().answer(databases, unchanged, model, key)


@dataclass(frozen=True)
class OneStepOnOldData(NoisyGradientService):
    """Takes the first of its steps on the data from before the request."""

    def answer(self, databases, request, model, key):
        old = one_record(databases[:, request.indices[0, 0]], index=request.indices[0, 0])
        first = NoisyGradientService(replace(self.plan, deletion_steps=1))
        rest = NoisyGradientService(replace(self.plan, deletion_steps=self.plan.deletion_steps - 1))
        model = first.answer(databases, old, model, (*key, "first"))
        return rest.answer(databases, request, model, (*key, "rest"))


@dataclass(frozen=True)
class ReusedNoise(NoisyGradientService):
    """Draws the same noise at every request."""

    def answer(self, databases, request, model, key):
        return super().answer(databases, request, model, ("the same",))


@dataclass(frozen=True)
class StartsAfresh(NoisyGradientService):
    """Does not go on from the published model."""

    def answer(self, databases, request, model, key):
        return super().answer(databases, request, np.zeros_like(model), key)


FAULTS = {
    "a step on the old data": OneStepOnOldData(SHORT),
    "all steps on the old data": OldData(SHORT),
    "noise reused between requests": ReusedNoise(SHORT),
    "another start": StartsAfresh(SHORT),
    "sigma halved": NoisyGradientService(replace(SHORT, sigma=SHORT.sigma / 2)),
    "one step too few": NoisyGradientService(replace(SHORT, deletion_steps=3)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_caught(fault):
    assert deviations(FAULTS[fault], 200_000).max() > 2 * STANDARD_ERRORS


# --- Any losses -------------------------------------------------------------------------------------------------------

ROWS = torch.nn.functional.normalize(
    torch.randn(30, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
)
LABELS = torch.where(torch.arange(30) % 2 == 0, 1.0, -1.0).double()
LOGISTIC = plan_deletion(
    n=30,
    dimension=4,
    lipschitz=1.0,
    strong_convexity=0.1,
    smoothness=0.35,
    alpha=4.0,
    epsilon_dp=2.0,
    epsilon_dd=0.5,
    certify_risk=False,
)
KEYS = [randomness.address("mechanism", trial) for trial in range(5)]


def logistic(rows=ROWS, lipschitz=1.0):
    indices = torch.tensor([3, 8])
    replacements = (indices, -rows[indices], LABELS[indices])
    return LogisticObjective(rows, LABELS, strong_convexity=0.1, lipschitz=lipschitz, replacements=replacements)


def test_a_fixed_stream_is_one_run_of_phases_with_the_same_bits():
    mechanism, objective = NoisyGradientDeletion(LOGISTIC), logistic()
    learned = mechanism.learn(objective, KEYS)
    requests = [[randomness.address(str(key), number) for key in KEYS] for number in (1, 2)]
    weights = learned
    for number, keys in enumerate(requests, start=1):
        weights = mechanism.delete(objective, weights, keys, removed=number)
    sigma = [LOGISTIC.sigma] * 5
    phases = [
        DescentPhase(number, [LOGISTIC.deletion_steps] * 5, sigma, keys)
        for number, keys in enumerate(requests, start=1)
    ]
    whole = descent.run(
        logistic(), learned, phases, step_size=LOGISTIC.step_size, measure=lambda rows: rows[:, 0]
    ).weights
    assert weights.numpy().tobytes() == whole.numpy().tobytes()


def test_without_steps_the_model_stays_bit_by_bit():
    mechanism = NoisyGradientDeletion(replace(LOGISTIC, deletion_steps=0))
    learned = mechanism.learn(logistic(), KEYS)
    assert mechanism.delete(logistic(), learned, KEYS, removed=1).numpy().tobytes() == learned.numpy().tobytes()


def test_equal_keys_give_equal_bits_and_others_others():
    mechanism = NoisyGradientDeletion(LOGISTIC)
    learned = mechanism.learn(logistic(), KEYS)
    assert mechanism.learn(logistic(), KEYS).numpy().tobytes() == learned.numpy().tobytes()
    before = learned.clone()
    first, again = (mechanism.delete(logistic(), learned, keys, removed=1) for keys in (KEYS, KEYS[::-1]))
    assert torch.equal(learned, before)
    assert (first != again).all(dim=1)[[0, 1, 3, 4]].all()


def test_learning_and_deletion_never_share_noise():
    """A start, a learning and a deletion of equal keys: no two of their noises are alike."""
    zero = LinearLossObjective(torch.zeros(5, 4, dtype=torch.float64), n=30, strong_convexity=0.1)
    one_step = replace(LOGISTIC, learning_steps=1, deletion_steps=1)
    start = NoisyGradientDeletion(replace(one_step, learning_steps=0)).learn(zero, KEYS)
    learned = NoisyGradientDeletion(one_step).learn(zero, KEYS)
    deleted = NoisyGradientDeletion(one_step).delete(zero, learned, KEYS)
    kept = 1 - one_step.step_size * 0.1
    scale = (2 * one_step.step_size) ** 0.5 * one_step.sigma
    noises = [
        start / one_step.start_variance**0.5,
        (learned - kept * start) / scale,
        (deleted - kept * learned) / scale,
    ]
    for first in range(3):
        for second in range(first):
            assert not torch.isclose(noises[first], noises[second], rtol=1e-6).any()


@pytest.mark.parametrize(("lipschitz", "moves_too_far"), [(1.0, False), (100.0, True)])
def test_one_record_moves_clipped_steps_no_further_than_unclipped_ones_of_its_length(lipschitz, moves_too_far):
    """Rows of length 30: with the same noise, K steps on neighbouring data part by 2 eta L K / n at most."""
    plan = replace(LOGISTIC, gradient_field="clipped-convex", learning_steps=20)
    other = 30 * ROWS
    other[5] *= -1
    models = [NoisyGradientDeletion(plan).learn(logistic(rows, lipschitz), KEYS) for rows in (30 * ROWS, other)]
    apart = torch.linalg.vector_norm(models[0] - models[1], dim=1).max()
    assert bool(apart > 2 * plan.step_size * 20 / 30) == moves_too_far


def test_a_plan_for_losses_that_are_not_convex_has_its_own_start():
    """False alarm: 6 standard errors of a variance of 20 000 numbers, below 2e-9."""
    problem = BoundedProblem(1000, 4, 1.0, 1.0, 1.5, 2.0)
    plan = plan_nonconvex_deletion(problem, alpha=2.0, epsilon_dp=1.0, epsilon_dd=0.1)
    keys = [randomness.address("start", trial) for trial in range(5000)]
    zero = LinearLossObjective(torch.zeros(5000, 4, dtype=torch.float64), n=1000, strong_convexity=1.0)
    weights = NoisyGradientDeletion(replace(plan, learning_steps=0)).learn(zero, keys)
    assert abs(float(weights.var()) / plan.sigma**2 - 1) < 6 * (2 / 20_000) ** 0.5


def test_linear_losses_refuse_removals_and_trials_that_have_no_mean():
    losses = LinearLossObjective(torch.zeros(5, 4, dtype=torch.float64), n=30, strong_convexity=0.1)
    with pytest.raises(ParameterError, match="count = 1"):
        losses.remove(1)
    with pytest.raises(ParameterError, match="shape of the means"):
        losses.descend(torch.zeros(4, 4, dtype=torch.float64), 0.1)
