"""Generalised linear models in few dimensions: scores, lengths, learning and edits below the projection."""

import math

import pytest
import torch

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.one_pass.dual_averaging import DualAveraging, DualAveragingSettings
from certified_unlearning.mechanisms.exact.one_pass.prefix_sums import PrefixSums, PrefixSumSettings, check_invariants
from certified_unlearning.mechanisms.exact.one_pass.projected_glm import Projection
from certified_unlearning.papers.tv_stability.theory.single_pass import GeneralisedLinearProblem


def drawn(dimension: int = 12, features: int = 300) -> Projection:
    return Projection.draw(dimension=dimension, features=features, draws=Draws.at("projection"))


def test_a_lifted_model_gives_the_scores_of_the_projected_one() -> None:
    projection = drawn()
    rows, models = Draws(1).normal(7, 300), Draws(2).normal(4, 12)
    records = projection.records(rows, torch.ones(7), loss="logistic")
    assert records.dimension == 12
    torch.testing.assert_close(projection.lift(models) @ rows.T, models @ records.rows.T)
    of_classes = Draws(3).normal(4, 12 * 3)
    records = projection.records(rows, torch.zeros(7), loss="softmax", classes=3)
    lifted = projection.lift(of_classes).view(4, 300, 3)
    torch.testing.assert_close(rows @ lifted, records.rows @ of_classes.view(4, 12, 3))


def test_entries_have_the_variance_that_keeps_scores() -> None:
    """200 000 entries: their mean square is known to 0.3 %, that of 2 500 scores of pairs of columns to 5 %."""
    matrix = drawn(40, 5000).matrix
    assert float((matrix**2).sum()) == pytest.approx(5000, rel=0.02)
    scores = (matrix[:, ::2] * matrix[:, 1::2]).sum(dim=0)
    assert float((scores**2).mean()) == pytest.approx(1 / 40, rel=0.3)


def test_edits_below_the_projection_and_what_they_cost() -> None:
    """Rows of length 1; the projection stretches few of them to 2 and more, and their gradients keep to that."""
    draws = Draws.at("glm")
    rows = draws.normal(60, 300)
    rows /= torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    labels = torch.where(rows[:, 0] + 0.02 * draws.normal(60) > 0, 1, -1)
    projection = drawn(40)
    problem = GeneralisedLinearProblem(n=50, lipschitz=1, smoothness=0.25, row_norm=1, model_norm=3, rho=0.5)
    records = projection.records(rows, labels, loss="logistic")
    settings = DualAveragingSettings(0.2, 2 * problem.model_norm)
    mechanism = PrefixSums(DualAveraging(records, settings), PrefixSumSettings.equal(1.0, most_records=60))
    state, _ = mechanism.learn(torch.arange(50), 20, draws)
    before = projection.matrix.clone()
    for edit, record in [("delete", 7), ("insert", 55)]:
        getattr(mechanism, edit)(state, record, draws)
        check_invariants(state)
    assert torch.equal(projection.matrix, before)
    assert float(torch.linalg.vector_norm(state.increments, dim=-1).max()) <= 2 * problem.lipschitz
    assert float(torch.linalg.vector_norm(mechanism.model(state), dim=-1).max()) <= 2 * problem.model_norm
    assert projection.lift(mechanism.model(state)).shape == (20, 300)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ParameterError, match="dimension"):
        drawn(0)
    with pytest.raises(ParameterError, match=r"rows must have shape \(n, 300\), got \(5, 299\)"):
        drawn().records(torch.zeros(5, 299).double(), torch.ones(5), loss="hinge")
    assert math.isclose(float(drawn().matrix.mean()), 0, abs_tol=0.02)
