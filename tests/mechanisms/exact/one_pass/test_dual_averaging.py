"""Dual averaging: which output and which step size are right, edits, projection."""

import math

import pytest
import torch

from certified_unlearning.accounting.tv import one_pass, planning
from certified_unlearning.accounting.tv.erm import ConvexProblem
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.engine.exact.prefix_tree import PrefixTree
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.balls import project
from certified_unlearning.mechanisms.exact.one_pass.dual_averaging import DualAveraging, DualAveragingSettings
from certified_unlearning.mechanisms.exact.one_pass.prefix_sums import PrefixSums, PrefixSumSettings, check_invariants
from certified_unlearning.papers.tv_stability.theory import single_pass, trees
from tests.mechanisms.exact.one_pass.problems import CENTRE, distances, own_orders, rows

RUNS, SIZE = 100, 1024
PROBLEM = ConvexProblem(n=SIZE, dimension=5, lipschitz=1, smoothness=1, diameter=2, rho=0.5)
SIGMA = trees.calibrated_sigma(n=SIZE, rho=0.5, sensitivity=one_pass.dual_averaging_sensitivity(lipschitz=1))


def excesses(step_size: float, sigma: float) -> tuple[float, float]:
    """Mean excess risk of the average and of the last model, by 20 000 records that nobody learned."""
    draws = Draws.at("dual averaging", step_size, sigma)
    method = DualAveraging(distances(rows(RUNS * SIZE, draws)), DualAveragingSettings(step_size, 1.0))
    sigmas = torch.full((SIZE.bit_length(),), sigma, dtype=torch.float64)
    learned, _ = PrefixTree.learn(method, sigmas, own_orders(RUNS, SIZE), draws)
    seen = rows(20_000, Draws.at("test"))
    least = torch.cdist(CENTRE[None], seen).mean()
    models = learned.models[:, 1 : SIZE + 2]
    return tuple(float(torch.cdist(each, seen).mean() - least) for each in (method.output(models), models[:, -1]))


def test_the_average_is_far_better_than_the_last_model_and_printed_steps_are_too_long() -> None:
    """Means over 100 runs; factors of 1.5 are allowed."""
    assert pytest.approx(17.55, rel=1e-3) == SIGMA
    balanced = one_pass.balanced_step_size(n=SIZE, dimension=5, lipschitz=1, diameter=2, sigma=SIGMA)
    printed = single_pass.theorem_27_printed_step_size(PROBLEM)
    assert (printed, balanced) == (pytest.approx(0.348, rel=2e-3), pytest.approx(0.0040, rel=0.02))
    without = one_pass.balanced_step_size(n=SIZE, dimension=5, lipschitz=1, diameter=2, sigma=0.0)
    assert without == pytest.approx(0.0442, rel=1e-3)
    for step_size, sigma, average, last in [
        (printed, SIGMA, 0.009, 0.43),
        (balanced, SIGMA, 0.008, 0.053),
        (printed, 0.0, 0.0003, 0.089),
        (without, 0.0, 0.0004, 0.011),
    ]:
        found = excesses(step_size, sigma)
        assert average / 1.5 < found[0] < 1.5 * average, (step_size, sigma)
        assert last / 1.5 < found[1] < 1.5 * last, (step_size, sigma)


def mean_excess(settings: DualAveragingSettings, n: int) -> float:
    """Mean excess risk of the average over 50 runs without noise."""
    method = DualAveraging(distances(rows(50 * n, Draws.at("anytime", n))), settings)
    learned, _ = PrefixTree.learn(method, torch.zeros(n.bit_length()).double(), own_orders(50, n), Draws(1))
    seen = rows(20_000, Draws.at("test"))
    models = method.output(learned.models[:, 1 : n + 2])
    return float(torch.cdist(models, seen).mean() - torch.cdist(CENTRE[None], seen).mean())


def test_steps_of_a_stream_need_no_number_of_records() -> None:
    """One ``eta`` for all sizes: the excess risk falls with n, as with the step that was chosen for each size."""
    stream = DualAveragingSettings(0.5, 1.0, anytime=True)
    for n in (64, 1024):
        chosen = one_pass.balanced_step_size(n=n, dimension=5, lipschitz=1, diameter=2, sigma=0.0)
        assert mean_excess(stream, n) < 2 * mean_excess(DualAveragingSettings(chosen, 1.0), n)
    assert mean_excess(stream, 1024) < mean_excess(stream, 64) / 4


def test_the_average_leaves_out_the_model_after_the_last_record() -> None:
    method = DualAveraging(distances(rows(1, Draws(1))), DualAveragingSettings(0.1, 1.0))
    models = torch.arange(8).double().view(1, 8, 1)
    assert method.output(models).item() == 3


def test_edits_keep_the_state_of_logistic_regression() -> None:
    draws = Draws.at("logistic")
    features, labels = draws.normal(40, 3) / 3, torch.where(draws.uniform(40) < 0.5, -1, 1)
    method = DualAveraging(LinearRecords(features, labels, loss="logistic"), DualAveragingSettings(0.3, 4.0))
    mechanism = PrefixSums(method, PrefixSumSettings.equal(1.0, most_records=40))
    state, work = mechanism.learn(torch.arange(30), 20, draws)
    assert work.gradients.tolist() == [30] * 20
    for edit, record in [("delete", 3), ("insert", 33), ("delete", 33), ("insert", 39), ("delete", 0)]:
        getattr(mechanism, edit)(state, record, draws)
        check_invariants(state)
    assert mechanism.model(state).shape == (20, 3)
    longest = float(torch.linalg.vector_norm(state.increments, dim=-1).max())
    assert longest <= float(torch.linalg.vector_norm(features, dim=-1).max())


def mixture(n: int, draws: Draws) -> LinearRecords:
    """Two classes that overlap; rows of norm at most 1, so gradients of norm at most 1."""
    labels = torch.where(draws.uniform(n) < 0.5, -1, 1)
    rows = draws.normal(n, 3) / 3 + 0.4 * labels[:, None]
    return LinearRecords(project(rows, 1.0), labels, loss="logistic")


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_edits_compute_again_less_often_than_planned(share: float) -> None:
    """4 000 runs of deletions and insertions; 6 standard errors above the plan are allowed. Plans are for the worst."""
    draws = Draws.at("planned", share)
    plan = planning.plan_tree(n=40, sensitivity=2.0, recompute_probability=share)
    mechanism = PrefixSums(
        DualAveraging(mixture(40, draws), DualAveragingSettings(0.3, 4.0)),
        PrefixSumSettings.equal(plan.noise, most_records=40),
    )
    state, _ = mechanism.learn(torch.arange(33), 4000, draws)
    for edit, record in [("insert", 35), ("delete", 3), ("delete", 12)]:
        rate = float(getattr(mechanism, edit)(state, record, draws).recomputations.double().mean())
        assert share / 20 < rate < share + 6 * math.sqrt(share * (1 - share) / 4000)


def test_noise_of_streams_is_best_shared_equally_and_worst_as_printed() -> None:
    """Mean squared length of what noise adds to all prefix sums of 512 records, by theory and in runs."""
    lengths = []
    for budget in ("equal", "quadratic", "printed"):
        settings = PrefixSumSettings.anytime(budget, rho=0.5, sensitivity=2.0, most_records=1023)
        draws = Draws.at("shared", budget)
        mechanism = PrefixSums(DualAveraging(mixture(512, draws), DualAveragingSettings(0.01, 4.0)), settings)
        state, _ = mechanism.learn(torch.arange(512), 40, draws)
        everywhere = torch.arange(1, 513).repeat(40)
        sums = state.prefixes(torch.arange(40).repeat_interleave(512), everywhere)[:, 0].view(40, 512)
        off = sums - state.increments[:, 1:513, 0].cumsum(dim=1)
        expected = sum(trees.prefix_noise(length, list(settings.sigmas)) ** 2 for length in range(1, 513)) / 512
        assert float((off**2).mean()) == pytest.approx(expected, rel=0.5)
        lengths.append(expected)
    assert lengths[0] < lengths[1] < lengths[2] / 4


def test_projection_to_a_ball() -> None:
    points = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]).double()
    assert project(points, 1.0).tolist() == [pytest.approx([0.6, 0.8]), pytest.approx([0.3, 0.4]), [0, 0]]
    assert torch.equal(project(points, None), points)


@pytest.mark.parametrize(
    ("step_size", "radius", "message"),
    [(0.0, 1.0, "step_size"), (0.1, 0.0, "radius"), (0.1, math.inf, "radius")],
)
def test_what_makes_no_sense_is_refused(step_size: float, radius: float, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        DualAveragingSettings(step_size, radius)
