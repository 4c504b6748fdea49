"""Variance-reduced Frank-Wolfe: recursion, bounds of increments, accuracy, edits."""

import math

import pytest
import torch

from certified_unlearning.accounting.tv.one_pass import frank_wolfe_sensitivity
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.prefix_tree import PrefixTree
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.balls import least_along
from certified_unlearning.mechanisms.exact.one_pass.frank_wolfe import FrankWolfe, FrankWolfeSettings
from certified_unlearning.mechanisms.exact.one_pass.prefix_sums import PrefixSums, PrefixSumSettings, check_invariants
from tests.mechanisms.exact.one_pass.problems import CENTRE, own_orders, rows, squared_distances
from tests.support.laws import told_apart

RUNS = 200


def learner(count: int, seed: int = 1) -> FrankWolfe:
    return FrankWolfe(squared_distances(rows(count, Draws.at("frank-wolfe", seed))), FrankWolfeSettings(1.0))


def mean_excess(n: int, sigma: float) -> float:
    method = learner(RUNS * n)
    sigmas = torch.full((n.bit_length(),), sigma, dtype=torch.float64)
    tree, _ = PrefixTree.learn(method, sigmas, own_orders(RUNS, n), Draws.at("noise", n, sigma))
    return float(((method.output(tree.models) - CENTRE) ** 2).sum(dim=1).mean() / 2)


@pytest.mark.parametrize(
    ("n", "sigma", "excess"),
    [
        (256, 0.0, 0.00084),
        (1024, 0.0, 0.00021),
        (4096, 0.0, 0.00005),
        (256, 20.0, 0.031),
        (1024, 20.0, 0.0038),
        (4096, 20.0, 0.0004),
    ],
)
def test_excess_risk_falls_with_the_records(n: int, sigma: float, excess: float) -> None:
    """The mean over 200 runs is known to about 6 %, of heavier tails where there is noise; 40 % are allowed."""
    assert mean_excess(n, sigma) == pytest.approx(excess, rel=0.4)


def test_the_sum_of_increments_is_the_recursive_estimate() -> None:
    """``(t + 1)`` times ``u_t = (1 - g)(u_(t-1) + grad(w_t) - grad(w_(t-1))) + g grad(w_t)``, ``g = 1 / (t + 1)``."""
    method = learner(30)
    tree, _ = PrefixTree.learn(method, torch.zeros(5).double(), own_orders(1, 30), Draws(2))
    estimate = torch.zeros(1, 5).double()
    for t in range(1, 31):
        record = tree.order[:, t, None]
        here = method.gradients.sums(tree.models[:, t], record)
        before = method.gradients.sums(tree.models[:, t - 1], record)
        estimate = (1 - 1 / (t + 1)) * (estimate + here - before) + here / (t + 1)
        torch.testing.assert_close(tree.increments[:, : t + 1].sum(dim=1), (t + 1) * estimate)


def test_increments_keep_to_their_bound() -> None:
    """Gradients are ``w - z``: smoothness 1, diameter 2, at most ``1 + |z|`` long."""
    method = learner(40 * 300)
    sigmas = torch.full((9,), 5.0, dtype=torch.float64)
    tree, _ = PrefixTree.learn(method, sigmas, own_orders(40, 300), Draws(3))
    longest = float(torch.linalg.vector_norm(tree.increments, dim=-1).max())
    lipschitz = 1 + float(torch.linalg.vector_norm(method.gradients.rows, dim=-1).max())
    assert longest <= frank_wolfe_sensitivity(lipschitz=lipschitz, smoothness=1, diameter=2) / 2
    assert float(torch.linalg.vector_norm(tree.models, dim=-1).max()) <= 1 + 1e-12


def test_edits_leave_a_state_of_the_learner_and_its_law() -> None:
    """8 comparisons at 1e-9."""
    settings = PrefixSumSettings.equal(1.5, most_records=7)
    mechanism = PrefixSums(learner(7), settings)
    draws = Draws.at("frank-wolfe edits")
    tree, _ = mechanism.learn(torch.arange(6), 30_000, draws)
    mechanism.delete(tree, 2, draws)
    work = mechanism.insert(tree, 6, draws)
    assert 0.1 < float(work.recomputations.double().mean()) < 0.9
    assert bool((work.gradients % 2 == 0).all())
    check_invariants(tree)
    fresh, _ = mechanism.learn(torch.tensor([0, 1, 3, 4, 5, 6]), 30_000, Draws.at("frank-wolfe afresh"))

    def functions(each: PrefixTree) -> dict[str, torch.Tensor]:
        noise = each.noisy - each.sums
        parts = {f"model {axis}": mechanism.model(each)[:, axis] for axis in range(5)}
        parts["length"] = (noise**2).sum(dim=(1, 2))
        parts["increments"] = (each.increments[:, : each.size + 1] * each.models[:, : each.size + 1]).sum(dim=(1, 2))
        parts["along"] = (noise * each.sums).sum(dim=(1, 2))
        return parts

    assert told_apart(functions(tree), functions(fresh), level=1e-9) == []


def test_the_least_point_of_a_ball() -> None:
    found = least_along(torch.tensor([[3.0, 4.0], [0.0, 0.0]]).double(), 2.0)
    assert found.tolist() == [pytest.approx([-1.2, -1.6]), [0, 0]]


@pytest.mark.parametrize("radius", [0.0, -1.0, math.inf, math.nan])
def test_models_need_a_ball(radius: float) -> None:
    with pytest.raises(ParameterError, match="radius must be a finite number above 0"):
        FrankWolfeSettings(radius)
