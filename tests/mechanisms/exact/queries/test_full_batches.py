"""Gradient descent on full batches: against steps by hand, in blocks, its law in closed form, edits."""

import math

import pytest
import torch

from certified_unlearning.accounting.tv.planning import plan_queries
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.queries import full_batches
from certified_unlearning.mechanisms.exact.queries.full_batches import FullBatches, FullBatchSettings
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries, LinearQuerySettings


def regression(n: int) -> LinearRecords:
    draws = Draws.at("full batches")
    rows = draws.normal(n, 3)
    rows /= torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return LinearRecords(rows, rows[:, 0] + 0.1 * draws.normal(n), loss="squared")


def test_without_noise_it_is_gradient_descent_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    records = regression(50)
    mechanism = LinearQueries(FullBatches(records, FullBatchSettings(0.8, 40)), LinearQuerySettings(5, 0.0))
    model = torch.zeros(3).double()
    for _ in range(5):
        model = model - 0.8 / 40 * records.rows[:40].T @ (records.rows[:40] @ model - records.labels[:40])
    for most in (full_batches.MOST_NUMBERS, 50):
        monkeypatch.setattr(full_batches, "MOST_NUMBERS", most)
        run, work = mechanism.learn(torch.arange(40), 2, Draws(1))
        torch.testing.assert_close(mechanism.model(run), model.expand(2, 3))
    assert work.gradients.tolist() == [200, 200]


def test_models_have_the_gaussian_law_of_the_remaining_records() -> None:
    """Squared loss is linear: mean and variance follow step by step. 40 000 runs, 6 standard errors each."""
    rows, labels = torch.ones(6, 1).double(), torch.tensor([0, 0.3, -0.5, 1.2, 3.0, -2.0]).double()
    method = FullBatches(LinearRecords(rows, labels, loss="squared"), FullBatchSettings(0.4, 6))
    mechanism = LinearQueries(method, LinearQuerySettings(4, 2.0))
    run, _ = mechanism.learn(torch.arange(6), 40_000, Draws.at("law"))
    assert float(mechanism.delete(run, 4, Draws.at("law", 1)).recomputations.double().mean()) > 0.5
    assert float(mechanism.delete(run, 5, Draws.at("law", 2)).recomputations.double().mean()) > 0.3
    mean, variance, left = 0.0, 0.0, labels[:4]
    for _ in range(4):
        mean -= 0.4 / 6 * (4 * mean - float(left.sum()))
        variance = (1 - 0.4 * 4 / 6) ** 2 * variance + (0.4 / 6 * 2.0) ** 2
    models = mechanism.model(run)[:, 0]
    assert abs(float(models.mean()) - mean) < 6 * math.sqrt(variance / 40_000)
    assert abs(float(models.var()) / variance - 1) < 6 * math.sqrt(2 / 40_000)


def test_planned_noise_keeps_edits_from_computing_again() -> None:
    """Logistic losses on rows of norm 1 have gradients of at most 1; 6 standard errors above the plan are allowed."""
    records = regression(60)
    logistic = LinearRecords(records.rows, torch.where(records.labels > 0, 1, -1), loss="logistic")
    plan = plan_queries(queries=10, bound=1.0, recompute_probability=0.3)
    method = FullBatches(logistic, FullBatchSettings(2.0, 50, radius=5.0))
    mechanism = LinearQueries(method, LinearQuerySettings(10, plan.noise))
    run, _ = mechanism.learn(torch.arange(50), 4000, Draws.at("plan"))
    for edit, record in (("delete", 7), ("insert", 55)):
        rate = float(getattr(mechanism, edit)(run, record, Draws.at("plan", edit)).recomputations.double().mean())
        assert 0.02 < rate < 0.3 + 6 * math.sqrt(0.21 / 4000)
        mechanism.check_invariants(run)
    assert float(torch.linalg.vector_norm(run.models, dim=-1).max()) <= 5 + 1e-12


@pytest.mark.parametrize(
    ("case", "message"),
    [((0.0, 5, 1.0), "step_size"), ((0.1, 0, 1.0), "nominal_records"), ((0.1, 5, -1.0), "radius")],
)
def test_what_makes_no_sense_is_refused(case: tuple[float, int, float], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        FullBatchSettings(*case)
