"""Noisy descent: traces, the exact law of its output under linear losses, an audit, and faults that it catches."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from certified_unlearning.accounting.core.conversion import delta_from_mu, epsilon_from_mu
from certified_unlearning.accounting.private.learners import NoisyDescent
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords, shortened
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.mechanisms.exact.one_pass.projected_glm import Projection
from certified_unlearning.mechanisms.private.noisy_descent import embedded, iterates, learn
from certified_unlearning.papers.private_learning import attacks
from certified_unlearning.papers.private_learning.audit_statistics import shown_mu

ROWS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], dtype=torch.float64)
TARGETS = torch.tensor([1.0, -0.5, 0.25], dtype=torch.float64)
SQUARED = ScalarLoss(name="squared")
LOGISTIC = ScalarLoss(name="logistic")
NEVER = 1e-300
"""Noise that changes no digit."""


def three(**changes: object) -> NoisyDescent:
    problem = LinearProblem(n=3, features=2, row_norm=1.0, loss=SQUARED, radius=changes.pop("radius", 1.0))
    return NoisyDescent(**{"problem": problem, "steps": 4, "step_size": 0.1, "sigma": NEVER, **changes})


def test_the_trace_of_the_specification():
    records = BoundedRecords(ROWS, TARGETS, loss=SQUARED, row_norm=1.0)
    found = torch.stack([each[0].clone() for each in iterates(three(), records, [0])])
    expected = [[0, 0], [0.0766667, -0.02], [0.147022, -0.0402667], [0.211647, -0.0605689]]
    assert found.numpy() == pytest.approx(np.array(expected), abs=1e-6)
    output = learn(three(), records, [0])
    assert output[0].numpy() == pytest.approx(np.array([0.108834, -0.0302089]), abs=1e-6)
    assert float(records.mean_losses(output, 9.0)) == pytest.approx(0.352835, abs=1e-6)
    near = torch.stack([each[0].clone() for each in iterates(three(radius=0.15), records, [0])])
    assert near[2:].numpy() == pytest.approx(np.array([[0.144672, -0.039623], [0.144217, -0.0412503]]), abs=1e-6)
    assert learn(three(radius=0.15), records, [0])[0].numpy() == pytest.approx(
        np.array([0.0913888, -0.0252183]), abs=1e-6
    )


def test_iterates_stay_in_the_ball_whatever_the_noise():
    records = BoundedRecords(ROWS, TARGETS, loss=SQUARED, row_norm=1.0)
    norms = [torch.linalg.vector_norm(each, dim=1).max() for each in iterates(three(sigma=50.0), records, [1, 2, 3])]
    assert max(norms) <= 1 + 1e-14
    assert norms[0] == 0


def test_the_output_is_the_mean_of_the_iterates_so_it_stays_in_the_ball():
    """Invariant 1."""
    records = BoundedRecords(ROWS, TARGETS, loss=SQUARED, row_norm=1.0)
    plan = three(sigma=5.0, steps=40)
    path = torch.stack([each.clone() for each in iterates(plan, records, [1, 2, 3])])
    output = learn(plan, records, [1, 2, 3])
    assert output.numpy() == pytest.approx(path.mean(dim=0).numpy(), rel=1e-12)
    assert torch.linalg.vector_norm(output, dim=1).max() < 1


def test_a_trial_does_not_depend_on_those_beside_it():
    records = BoundedRecords(ROWS, TARGETS, loss=SQUARED, row_norm=1.0)
    plan = three(sigma=0.5, steps=40)
    together = learn(plan, records, [5, 6, 7])
    assert torch.equal(together[1:2], learn(plan, records, [6]))
    assert not torch.equal(together[0], together[1])


# --- the law of the output, exactly -------------------------------------------------------------------------

LINEAR = ScalarLoss(name="huber", width=1.0, target=1e6)
"""Where scores are far below targets, its slope is -1 everywhere: a linear loss."""
STEPS, N, TRIALS = 50, 100, 20_000


def audit_plan() -> NoisyDescent:
    """A ball so large that no projection happens."""
    problem = LinearProblem(n=N, features=1, row_norm=1.0, loss=LINEAR, radius=1e4)
    return NoisyDescent.plan(problem, epsilon=1, delta=1e-5, steps=STEPS, step_size=0.1)


def outputs(plan: NoisyDescent, sign: float, seed: int) -> np.ndarray:
    """Models of data that have one record of slope -1 or 1; the others are zeros."""
    rows, targets = torch.zeros(N, 1, dtype=torch.float64), torch.full((N,), 1e6, dtype=torch.float64)
    rows[0] = sign
    records = BoundedRecords(rows, targets, loss=LINEAR, row_norm=1.0)
    keys = [seed * TRIALS + trial for trial in range(TRIALS)]
    return learn(plan, records, keys)[:, 0].numpy()


def test_linear_losses_have_the_gaussian_law_that_composition_bounds():
    """The mean and the deviation of 20 000 runs, wrong once in 1e6; the output tells less than the path."""
    plan = audit_plan()
    noisy = STEPS - 1
    found = outputs(plan, 1.0, 0)
    shift = plan.step_size / N * sum(range(1, noisy + 1)) / STEPS
    spread = plan.step_size * plan.sigma * math.sqrt(sum(k * k for k in range(1, noisy + 1))) / STEPS
    assert abs(found.mean() - shift) < 4.9 * spread / math.sqrt(TRIALS)
    assert abs(found.std() / spread - 1) < 4.9 / math.sqrt(2 * TRIALS)
    mu_out = 2 * shift / spread
    assert mu_out == pytest.approx(plan.mu * math.sqrt(3 * STEPS / (2 * (2 * STEPS - 1))), rel=1e-6)
    assert (plan.mu, mu_out) == pytest.approx((0.268051, 0.233309), abs=2e-6)
    assert epsilon_from_mu(mu_out, 1e-5) < epsilon_from_mu(plan.mu, 1e-5) <= 1


def test_an_attack_shows_no_more_than_is_stated_and_a_forgotten_root_of_the_steps_is_caught():
    """X12 at its constants. False alarms: once in 1e6."""
    plan = audit_plan()
    honest = attacks.descent(plan, runs=TRIALS, seed=1)
    assert honest.mu == pytest.approx(0.233309, abs=2e-6)
    assert shown_mu(honest) <= plan.mu
    planted = attacks.descent(replace(plan, sigma=plan.sigma / math.sqrt(plan.releases)), runs=TRIALS, seed=2)
    assert planted.mu == pytest.approx(1.63, abs=0.01)
    shown = shown_mu(planted)
    assert shown > plan.mu
    assert delta_from_mu(shown, 1.0) > 1e-5


# --- embedding -----------------------------------------------------------------------------------------------


def padded_outputs(features: int, radius: float, seed: int) -> np.ndarray:
    """Return what 2000 models predict for a row, learned from rows with columns of zeros behind two others."""
    rows = torch.nn.functional.pad(ROWS, (0, features - 2))
    problem = LinearProblem(n=3, features=features, row_norm=1.0, loss=LOGISTIC, radius=radius)
    plan = NoisyDescent(problem=problem, steps=12, step_size=0.5, sigma=0.3)
    records = BoundedRecords(rows, TARGETS.sign(), loss=LOGISTIC, row_norm=1.0)
    return (learn(plan, records, [seed + trial for trial in range(2000)]) @ rows[2]).numpy()


def test_columns_of_zeros_change_no_law_where_nothing_is_projected():
    """Experiment X3's claim of rank. False alarms: 1e-6."""
    far = stats.ks_2samp(padded_outputs(2, 1e3, seed=10_000), padded_outputs(60, 1e3, seed=50_000))
    assert far.pvalue > 1e-6
    near = stats.ks_2samp(padded_outputs(2, 0.5, seed=10_000), padded_outputs(60, 0.5, seed=50_000))
    assert near.pvalue < 1e-9, "noise in the other columns fills the ball, and projections shrink the two"


def test_a_lifted_model_scores_as_the_model_of_embedded_rows():
    generator = torch.Generator().manual_seed(3)
    matrix = torch.randn(7, 40, generator=generator, dtype=torch.float64) / math.sqrt(7)
    rows = torch.randn(30, 40, generator=generator, dtype=torch.float64)
    weights = torch.randn(5, 7, generator=generator, dtype=torch.float64)
    assert (weights @ matrix) @ rows.T == pytest.approx((weights @ embedded(matrix, rows).T).numpy(), rel=1e-10)


def test_embedded_rows_keep_their_bound_for_every_matrix():
    matrix = 100 * torch.ones(2, 3, dtype=torch.float64)
    problem = LinearProblem(n=3, features=3, row_norm=1.0, loss=SQUARED, radius=1.0).embedded(2)
    rows = embedded(matrix, torch.eye(3, dtype=torch.float64))
    records = BoundedRecords(rows, TARGETS, loss=SQUARED, row_norm=problem.row_norm)
    assert torch.linalg.vector_norm(records.rows, dim=1).max() <= math.sqrt(2) * (1 + 1e-15)


def test_inner_products_of_a_projection_are_off_as_stated():
    """Invariant 9, 4000 matrices; wrong once in 1e6."""
    generator = torch.Generator().manual_seed(4)
    k, trials = 16, 4000
    u, v = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.5, 0.5, 1.0])
    matrices = torch.randn(trials, k, 3, generator=generator) / math.sqrt(k)
    errors = ((matrices @ u) * (matrices @ v)).sum(dim=1) - float(u @ v)
    variance = (float(u @ u) * float(v @ v) + float(u @ v) ** 2) / k
    assert float((errors**2).mean()) == pytest.approx(variance, rel=5 * math.sqrt(3 / trials))


@pytest.mark.parametrize(("k", "rate"), [(100, 0.32), (400, 0.048)])
def test_how_often_inner_products_are_off_by_a_tenth(k, rate):
    """S6, of orthogonal unit vectors, as the estimators draw their matrices: 3000 pairs; wrong once in 1e6."""
    pairs = 150
    errors = []
    for key in range(20):
        matrix = Projection.draw(dimension=k, features=2 * pairs, draws=Draws(key)).matrix
        errors.append((matrix[:, :pairs] * matrix[:, pairs:]).sum(dim=0))
    found = float((torch.cat(errors).abs() > 0.1).double().mean())
    assert found == pytest.approx(rate, abs=0.005 + 4.9 * math.sqrt(rate * (1 - rate) / 3000))


@pytest.mark.parametrize(("k", "largest"), [(50, 0.035), (100, 1e-5)])
def test_how_often_one_of_a_thousand_rows_is_stretched_beyond_the_cap(k, largest):
    """S6: squared lengths have a chi-squared law (3000 columns, wrong once in 1e6), whose tail is the stated one."""
    lengths = [
        Projection.draw(dimension=k, features=300, draws=Draws(key)).matrix.square().sum(dim=0) for key in range(10)
    ]
    assert stats.kstest(k * torch.cat(lengths).numpy(), stats.chi2(k).cdf).pvalue > 1e-6
    assert 1000 * stats.chi2(k).sf(2 * k) == pytest.approx(largest, rel=0.5)


# --- bounds ----------------------------------------------------------------------------------------------------


def test_bounds_of_records_are_enforced_one_by_one():
    rows = torch.tensor([[3.0, 4.0], [0.3, 0.4], [1e200, 1e200], [0.0, 0.0]], dtype=torch.float64)
    records = BoundedRecords(rows, torch.tensor([5.0, -5.0, 0.5, 0.0]), loss=SQUARED, row_norm=1.0)
    norms = torch.linalg.vector_norm(records.rows, dim=1)
    assert norms[[0, 2]].numpy() == pytest.approx([1, 1], rel=1e-15)
    assert torch.equal(records.rows[[1, 3]], rows[[1, 3]])
    assert records.targets.tolist() == [1, -1, 0.5, 0]
    assert torch.equal(shortened(records.rows, 1.0 + 1e-15), records.rows)


@pytest.mark.parametrize(
    ("rows", "targets", "loss", "named"),
    [
        ([[math.nan]], [0.0], SQUARED, "finite"),
        ([[1.0]], [math.inf], SQUARED, "finite"),
        ([[1.0]], [0.5], ScalarLoss(name="logistic"), "labels of the logistic loss"),
    ],
)
def test_numbers_without_a_bound_are_refused(rows, targets, loss, named):
    with pytest.raises(DataError, match=named):
        BoundedRecords(torch.tensor(rows), torch.tensor(targets), loss=loss, row_norm=1.0)


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"n": 4}, "n = 4"), ({"features": 3}, "features = 3"), ({"row_norm": 0.5}, "norm at most 0.5")],
)
def test_a_plan_for_other_records_is_refused(changes, named):
    records = BoundedRecords(ROWS, TARGETS, loss=SQUARED, row_norm=1.0)
    plan = three()
    with pytest.raises(ParameterError, match=named):
        learn(replace(plan, problem=replace(plan.problem, **changes)), records, [0])


@pytest.mark.parametrize(
    "loss",
    [
        SQUARED,
        ScalarLoss(name="absolute", width=0.1),
        ScalarLoss(name="huber", width=0.2),
        ScalarLoss(name="logistic"),
        ScalarLoss(name="tanh"),
    ],
    ids=lambda loss: loss.name,
)
def test_gradients_are_those_of_the_losses_and_within_their_bound_and_rounding(loss):
    generator = torch.Generator().manual_seed(5)
    rows = torch.randn(40, 3, generator=generator, dtype=torch.float64)
    targets = torch.randn(40, generator=generator, dtype=torch.float64).sign()
    records = BoundedRecords(rows, targets, loss=loss, row_norm=1.0)
    weights = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    exact = torch.stack([_gradient(records, each) for each in weights])
    problem = LinearProblem(n=40, features=3, row_norm=1.0, loss=loss, radius=float(weights.norm(dim=1).max()))
    found = records.mean_gradients(weights)
    assert (found - exact).norm(dim=1).max() <= problem.gradient_error
    assert found.norm(dim=1).max() <= problem.gradient_bound


def _gradient(records: BoundedRecords, weights: torch.Tensor) -> torch.Tensor:
    """By automatic differentiation of the losses as they are written."""
    w = weights.clone().requires_grad_()
    scores = records.rows @ w
    y, loss = records.targets, records.loss
    width = loss.width or 1.0
    off = (scores - y).abs()
    huber = torch.where(off <= width, off**2 / 2, width * (off - width / 2))
    values = {
        "squared": (scores - y) ** 2,
        "absolute": huber / width,
        "huber": huber,
        "logistic": torch.nn.functional.softplus(-y * scores, threshold=40),
        "tanh": (y - torch.tanh(scores)) ** 2,
    }[loss.name]
    values.mean().backward()
    assert w.grad is not None
    return w.grad


def test_the_regret_is_within_its_bound():
    """S1 with Theorem 8's parameters: about 0.034 on average over 20 runs, where the bound is 0.76."""
    generator = torch.Generator().manual_seed(6)
    n, d = 2000, 20
    rows = torch.nn.functional.normalize(torch.randn(n, d, generator=generator, dtype=torch.float64))
    noise = 2 * torch.rand(n, generator=generator, dtype=torch.float64) - 1
    records = BoundedRecords(rows, 0.8 * rows[:, 0] + 0.2 * noise, loss=SQUARED, row_norm=1.0)
    problem = LinearProblem(n=n, features=d, row_norm=1.0, loss=SQUARED, radius=1.0)
    plan = NoisyDescent(problem=problem, steps=n, step_size=0.00341214, sigma=1.46536)
    assert plan.regret_bound == pytest.approx(0.759976, rel=1e-5)
    assert epsilon_from_mu(plan.mu, 1e-5) < 1  # Noise for Lemma 2's bound on gradients is more than enough.
    best = torch.linalg.lstsq(rows, records.targets).solution[None]
    assert best.norm() < 1
    least = float(records.mean_losses(best, math.inf))
    keys = list(range(20))
    losses = sum(records.mean_losses(each, math.inf) for each in iterates(plan, records, keys)) / n
    regret = losses - least
    assert 0.02 < float(regret.mean()) < 0.05
    assert float(regret.max()) < plan.regret_bound


def test_one_replaced_record_moves_the_mean_by_what_lemma_6_allows():
    """S2, 120 replacements without noise: AAS^2 is about 1.6e-5, where Lemma 6 has 0.00117 (0.00233 with c_0 = 16)."""
    generator = torch.Generator().manual_seed(7)
    n, d = 200, 5

    def drawn(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.nn.functional.normalize(torch.randn(count, d, generator=generator, dtype=torch.float64))
        noise = 2 * torch.rand(count, generator=generator, dtype=torch.float64) - 1
        return rows, (0.8 * rows[:, 0] + 0.2 * noise).clamp(-1, 1)

    rows, targets = drawn(n)
    others, other_targets = drawn(120)
    problem = LinearProblem(n=n, features=d, row_norm=1.0, loss=SQUARED, radius=1.0)
    plan = NoisyDescent(problem=problem, steps=n, step_size=0.05, sigma=NEVER)
    whole = BoundedRecords(rows, targets, loss=SQUARED, row_norm=1.0)
    before, moved = learn(plan, whole, [0]), []
    for place in range(120):
        changed, labels = rows.clone(), targets.clone()
        changed[place], labels[place] = others[place], other_targets[place]
        records = BoundedRecords(changed, labels, loss=SQUARED, row_norm=1.0)
        moved.append(float((learn(plan, records, [0]) - before).norm()) ** 2)
    losses = sum(float(whole.mean_losses(each, math.inf)) for each in iterates(plan, whole, [0]))
    lemma_6 = 8 * problem.smoothness * 0.05**2 * n / n**2 * losses
    assert lemma_6 == pytest.approx(0.00117, rel=0.15)
    assert np.mean(moved) == pytest.approx(1.6e-5, rel=0.3)
    assert np.mean(moved) < lemma_6 < 2 * lemma_6
