"""Output perturbation: minimisers, how far one record moves them, the law of what is published, and its audit."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize

from certified_unlearning.accounting.core.conversion import delta_from_mu
from certified_unlearning.accounting.private.learners import OutputPerturbation
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.errors import InfeasibleError
from certified_unlearning.mechanisms.private import output_perturbation
from certified_unlearning.mechanisms.private.output_perturbation import learn, minimiser
from certified_unlearning.papers.private_learning.theory.privacy import PRINTED

ROWS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], dtype=torch.float64)
TARGETS = torch.tensor([1.0, -0.5, 0.25], dtype=torch.float64)
SQUARED = ScalarLoss(name="squared")
LOSSES = [
    SQUARED,
    ScalarLoss(name="absolute", width=0.05),
    ScalarLoss(name="huber", width=0.3),
    ScalarLoss(name="logistic"),
]


def plan_for(n: int, features: int, loss: ScalarLoss, radius: float, strength: float) -> OutputPerturbation:
    problem = LinearProblem(n=n, features=features, row_norm=1.0, loss=loss, radius=radius)
    return OutputPerturbation.plan(problem, epsilon=1, delta=1e-5, strong_convexity=strength)


def exactly(plan: OutputPerturbation, records: BoundedRecords) -> np.ndarray:
    """The minimiser, far closer than a plan asks for."""
    return minimiser(replace(plan, inexactness=1e-10), records)[0].numpy()


@pytest.mark.parametrize(
    ("radius", "expected"), [(10.0, (0.601039, -0.246234)), (0.2, (0.190614, -0.0605503))], ids=["inside", "boundary"]
)
def test_the_minimisers_of_the_specification(radius, expected):
    records = BoundedRecords(ROWS, TARGETS, loss=SQUARED, row_norm=1.0)
    found = exactly(plan_for(3, 2, SQUARED, radius, 0.5), records)
    assert found == pytest.approx(np.array(expected), abs=1e-6)
    assert np.linalg.norm(found) == pytest.approx(min(radius, 0.649522), abs=1e-6)
    if radius == 0.2:  # The multiplier of the ball, from the gradient there.
        gradient = records.mean_gradients(torch.tensor(found)[None])[0].numpy() + 0.5 * found
        assert np.linalg.norm(gradient) / 0.2 == pytest.approx(2.71708, abs=1e-4)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_the_distance_that_is_certified_holds(loss):
    """Against SciPy, inside the ball; the certificate is not allowed to be too small."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(60, 4, generator=generator, dtype=torch.float64) / 2
    targets = torch.randn(60, generator=generator, dtype=torch.float64).sign()
    records = BoundedRecords(rows, targets, loss=loss, row_norm=1.0)
    plan = plan_for(60, 4, loss, 20.0, 0.2)

    def objective(weights: np.ndarray) -> tuple[float, np.ndarray]:
        w = torch.tensor(weights)[None]
        value = float(records.mean_losses(w, 1e9)) + 0.1 * float(weights @ weights)
        return value, records.mean_gradients(w)[0].numpy() + 0.2 * weights

    reference = minimize(objective, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    for inexactness in (0.1, 1e-3, 1e-6):
        found = minimiser(replace(plan, inexactness=inexactness), records)[0].numpy()
        assert np.linalg.norm(found - reference) <= inexactness + 1e-7


@given(
    seed=st.integers(0, 2**31),
    loss=st.sampled_from(LOSSES),
    radius=st.sampled_from([0.3, 1.0, 30.0]),
    strength=st.sampled_from([0.05, 0.5]),
)
def test_a_replaced_record_moves_the_minimiser_by_no_more_than_stated(seed, loss, radius, strength):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(6, 2, generator=generator, dtype=torch.float64)
    targets = torch.randn(6, generator=generator, dtype=torch.float64).sign()
    plan = plan_for(6, 2, loss, radius, strength)
    before = exactly(plan, BoundedRecords(rows, targets, loss=loss, row_norm=1.0))
    rows[0], targets[0] = -rows[0], targets[1]
    after = exactly(plan, BoundedRecords(rows, targets, loss=loss, row_norm=1.0))
    assert np.linalg.norm(after - before) <= plan.exact_sensitivity + 2e-9


LINEAR = ScalarLoss(name="huber", width=1.0, target=1e6)
"""Far from targets a linear loss: its slope is -1 everywhere."""


def linear_pair() -> tuple[OutputPerturbation, np.ndarray, np.ndarray]:
    n, strength = 10, 0.1
    rows, targets = torch.zeros(n, 1, dtype=torch.float64), torch.full((n,), 1e6, dtype=torch.float64)
    plan = plan_for(n, 1, LINEAR, 1e3, strength)
    rows[0] = 1.0
    here = exactly(plan, BoundedRecords(rows, targets, loss=LINEAR, row_norm=1.0))
    there = exactly(plan, BoundedRecords(-rows, targets, loss=LINEAR, row_norm=1.0))
    return plan, here, there


def test_linear_losses_attain_the_sensitivity():
    plan, here, there = linear_pair()
    assert abs(here - there) == pytest.approx(plan.exact_sensitivity, rel=1e-6)
    assert plan.exact_sensitivity == pytest.approx(2 * 1 / (0.1 * 10), rel=1e-9)


def test_what_is_published_has_the_stated_law_and_printed_noise_is_not_private():
    """S8: the likelihood-ratio attack on an attained sensitivity is exact. 20 000 runs, wrong once in 1e6."""
    plan, here, there = linear_pair()
    records = BoundedRecords(
        torch.cat([torch.ones(1, 1), torch.zeros(9, 1)]), torch.full((10,), 1e6), loss=LINEAR, row_norm=1.0
    )
    published = learn(plan, records, list(range(20_000)))[:, 0].numpy()
    assert stats.kstest(published, stats.norm(here[0], plan.sigma).cdf).pvalue > 1e-6
    gap = float(abs(here - there)[0])
    assert delta_from_mu(gap / plan.sigma, 1.0) <= 1e-5
    printed = PRINTED["theorem 12"](1, 1e-5) * plan.exact_sensitivity
    assert delta_from_mu(gap / printed, 1.0) == pytest.approx(4.28435e-5, rel=1e-4)


def test_a_solver_that_stops_too_early_is_seen(monkeypatch):
    monkeypatch.setattr(output_perturbation, "MOST_STEPS", 3)
    records = BoundedRecords(ROWS, TARGETS, loss=SQUARED, row_norm=1.0)
    with pytest.raises(InfeasibleError, match="within"):
        learn(plan_for(3, 2, SQUARED, 10.0, 0.01), records, [0])


def test_noise_costs_what_is_stated_on_average():
    """Theorem 10's cost of noise, exact for squared loss: ``sigma^2 E |x|^2``. Wrong once in 1e6."""
    records = BoundedRecords(ROWS, TARGETS, loss=SQUARED, row_norm=1.0)
    plan = plan_for(3, 2, SQUARED, 10.0, 0.5)
    exact = minimiser(plan, records)
    models = learn(plan, records, list(range(8000)))
    noise = models - exact
    cost = records.mean_losses(models, math.inf) - records.mean_losses(exact, math.inf)
    # Without the part that is linear in the noise, whose mean is 0.
    cost -= noise @ records.mean_gradients(exact)[0]
    expected = plan.sigma**2 * float((records.rows**2).sum() / 3)
    assert float(cost.mean()) == pytest.approx(expected, abs=5 * float(cost.std()) / math.sqrt(8000))
