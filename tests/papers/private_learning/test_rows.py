"""Rows of the experiments, on small grids: laws that are known, and what planted faults do to them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from certified_unlearning.accounting.private.learners import NoisyDescent
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.private import noisy_descent
from certified_unlearning.papers.private_learning.group_privacy import GROUP_ROWS
from certified_unlearning.papers.private_learning.private_rates import RATE_ROWS
from certified_unlearning.papers.private_learning.runs import lower_bounds, stationary
from certified_unlearning.papers.private_learning.runs.convex import SQUARED, squared_records
from certified_unlearning.papers.private_learning.runs.gradients import gradients_table
from certified_unlearning.papers.private_learning.runs.groups import groups_table
from certified_unlearning.papers.private_learning.runs.instances import neuron_instance, neuron_records, sign_instance
from certified_unlearning.papers.private_learning.runs.records import RepeatedRecords, StackedMoments
from certified_unlearning.papers.private_learning.runs.risk import risk_table
from certified_unlearning.reproduction.simulation.power_laws import fitted, interval
from tests.support.planning import sweep_of

KEYS = [1, 2, 3]


@pytest.fixture(scope="module")
def risk() -> pd.DataFrame:
    return risk_table(sweep_of("smoke", "private_risk"))


@pytest.fixture(scope="module")
def gradients() -> pd.DataFrame:
    return gradients_table(sweep_of("smoke", "private_gradients"))


@pytest.fixture(scope="module")
def groups() -> pd.DataFrame:
    return groups_table(sweep_of("smoke", "group_privacy"))


# Instances.


def test_the_sign_instance_is_that_of_the_notes():
    instance = sign_instance()
    assert instance.radius == pytest.approx(0.7055, abs=5e-7)
    zero = torch.zeros(1, 50, dtype=torch.float64)
    assert float(instance.excess(zero)) == pytest.approx(0.0495708, abs=5e-8)
    rows = instance.rows(100, Draws.at("test"))
    assert torch.linalg.vector_norm(rows, dim=1).tolist() == pytest.approx([1.0] * 100)
    assert float(instance.scaled(0.35).radius) == pytest.approx(instance.radius / 0.35)


def test_excess_is_that_of_the_loss():
    """Against the mean loss over all sign patterns of three features."""
    instance = sign_instance(3)
    signs = torch.tensor([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)], dtype=torch.float64)
    rows, weights = signs * instance.scales, torch.tensor([[0.3, -1.0, 0.5]], dtype=torch.float64)

    def loss(these: torch.Tensor) -> float:
        return float(sum((these @ rows.T - rows @ instance.best - noise).square().mean() for noise in (-0.3, 0.3)) / 2)

    expected = loss(weights) - loss(instance.best[None])
    assert float(instance.excess(weights)) == pytest.approx(expected, rel=1e-12)


def test_moments_of_several_data_sets_learn_what_each_learns_alone():
    instance = sign_instance(5)
    data = [squared_records(instance, 40, "test", trial) for trial in range(3)]
    problem = LinearProblem(n=40, features=5, row_norm=1.0, loss=SQUARED, radius=instance.radius)
    plan = NoisyDescent.plan(problem, epsilon=1, delta=1e-6, steps=30)
    together = noisy_descent.learn(plan, StackedMoments.of(data), KEYS)
    alone = torch.cat([noisy_descent.learn(plan, each, [key]) for each, key in zip(data, KEYS, strict=True)])
    torch.testing.assert_close(together, alone, rtol=1e-10, atol=1e-12)


def test_columns_of_zeros_learn_what_rows_with_zeros_learn():
    instance = sign_instance(5)
    data = squared_records(instance, 40, "test")
    wide = BoundedRecords(torch.nn.functional.pad(data.rows, (0, 4)), data.targets, loss=SQUARED, row_norm=1.0)
    problem = LinearProblem(n=40, features=9, row_norm=1.0, loss=SQUARED, radius=instance.radius)
    plan = NoisyDescent.plan(problem, epsilon=1, delta=1e-6, steps=30)
    short = StackedMoments.of([data], features=9)
    torch.testing.assert_close(
        noisy_descent.learn(plan, short, [1]), noisy_descent.learn(plan, wide, [1]), rtol=1e-10, atol=1e-12
    )


def test_moments_are_of_squared_loss_only():
    with pytest.raises(ParameterError, match="two moments determine the gradients of squared loss, not of the tanh"):
        StackedMoments(
            torch.eye(2)[None], torch.zeros(1, 2), n=4, features=2, loss=ScalarLoss(name="tanh"), row_norm=1.0
        )


@pytest.mark.parametrize("loss", [SQUARED, ScalarLoss(name="tanh")])
def test_copies_of_records_have_their_mean_gradient(loss):
    instance = neuron_instance(4)
    rows, targets = neuron_records(instance, 6, Draws.at("test"))
    repeated = RepeatedRecords(rows, targets, copies=5, loss=loss, row_norm=1.0)
    spelled = BoundedRecords(rows.repeat(5, 1), targets.repeat(5), loss=loss, row_norm=1.0)
    assert len(repeated) == len(spelled) == 30
    weights = torch.tensor([[0.5, -1.0, 2.0, 0.1]], dtype=torch.float64)
    torch.testing.assert_close(repeated.mean_gradients(weights), spelled.mean_gradients(weights))


def test_blocks_of_the_lower_bound_are_those_of_records():
    """Theorem 11's instance has its excess risk by its formula: against records written out."""
    signs, bias, each = torch.tensor([1.0, -1.0], dtype=torch.float64), 0.5, 8
    rows = torch.eye(2, dtype=torch.float64).repeat_interleave(each, dim=0)
    labels = torch.cat([sign * torch.tensor([1.0] * 6 + [-1.0] * 2, dtype=torch.float64) for sign in signs])
    records = BoundedRecords(rows, labels, loss=SQUARED, row_norm=1.0)
    weights = torch.tensor([[0.2, 0.4]], dtype=torch.float64)
    best = (bias * signs)[None]
    excess = records.mean_losses(weights, 100.0) - records.mean_losses(best, 100.0)
    assert float(excess) == pytest.approx(float((weights - best).square().sum() / 2))
    torch.testing.assert_close(
        StackedMoments(
            torch.full((1, 2), 0.5, dtype=torch.float64), best / 2, n=16, features=2, loss=SQUARED, row_norm=1.0
        ).mean_gradients(weights),
        records.mean_gradients(weights),
    )


# Fits.


def power_law(slope: float, *, spread: float = 0.1, trials: int = 40) -> pd.DataFrame:
    generator = np.random.default_rng(1)
    return pd.DataFrame(
        {"n": n, "error": n**slope * np.exp(spread * generator.normal(size=trials))} for n in (1e3, 4e3, 1.6e4)
    ).explode("error", ignore_index=True)


def test_the_slope_of_a_power_law_is_found_and_its_interval_holds_it():
    fit = fitted(power_law(-0.5), x="n")
    assert fit.low <= -0.5 <= fit.high
    assert fit.low < fit.slope < fit.high
    assert fit.half_width < 0.03
    assert fit.reach == 16
    exact = fitted(power_law(-0.5, spread=0.0), x="n")
    assert (exact.slope, exact.low, exact.high, exact.level) == pytest.approx((-0.5, -0.5, -0.5, 1.0))


def test_bootstrap_intervals_cover_the_mean():
    """Of 200 samples of 40, about 5 % miss it; with a probability below 1e-5 more than 15 % do."""
    generator = np.random.default_rng(2)
    misses = 0
    for _ in range(200):
        _, low, high = interval(generator.normal(size=40) + 3)
        misses += not low <= 3 <= high
    assert misses <= 30


# Tables.


def test_tables_have_their_columns_all_parts_and_numbers(risk, gradients, groups):
    for table, schema in ((risk, RATE_ROWS), (gradients, RATE_ROWS), (groups, GROUP_ROWS)):
        assert set(schema.names) == set(table.columns)
        for field in schema:
            assert field.nullable or table[field.name].notna().all(), field.name
    assert set(risk["part"]) == {"X1", "X2", "X3", "X4", "X5", "X6", "X11", "X13"}
    assert set(gradients["part"]) == {"X7", "X8", "X9", "X10", "X14", "X15", "X16"}
    assert set(groups["system"]) >= {"private", "retraining", "langevin", "descent-to-delete"}
    assert (risk.loc[risk["part"] != "X13", "error"] >= 0).all()  # X13: over shares that a median may beat.
    assert (gradients["error"] >= 0).all()


def test_the_same_sweep_gives_the_same_rows(risk):
    again = risk_table(sweep_of("smoke", "private_risk"))
    pd.testing.assert_frame_equal(risk.drop(columns="seconds"), again.drop(columns="seconds"))


def test_a_private_model_takes_no_gradients_and_the_noise_of_so_many_deletions(groups):
    private = groups[groups["system"] == "private"]
    assert (private["gradients"] == 0).all()
    problem = LinearProblem(n=1000, features=3, row_norm=1.0, loss=ScalarLoss(name="logistic"), radius=5.0)
    one, ten = (NoisyDescent.plan(problem, epsilon=1, delta=1e-5, steps=50, runs=k * k) for k in (1, 10))
    assert ten.sigma == pytest.approx(10 * one.sigma, rel=1e-3)
    assert ten.guarantee.epsilon(1e-5, records=10) <= 1 + 1e-9
    # Forgotten noise is seen: the model for one deletion does not cover ten.
    assert one.guarantee.epsilon(1e-5, records=10) > 10


def test_noise_without_its_root_makes_the_lower_bound_fall():
    """X11 catches a forgotten sqrt(T): the error over the bound falls with n, where true noise keeps it."""
    ratios = {}
    for forgotten in (False, True):
        found = []
        for n in (500, 8_000):
            count, bias, signs = lower_bounds.blocks(n, 1.0, 1e-6, 5)
            problem = LinearProblem(n=n, features=count, row_norm=1.0, loss=SQUARED, radius=0.5)
            plan = NoisyDescent.plan(problem, epsilon=1, delta=1e-6, steps=n)
            if forgotten:
                plan = replace(plan, sigma=plan.sigma / n**0.5, step_size=0.125)
            records = StackedMoments(
                torch.full((1, count), 1 / count, dtype=torch.float64), bias * signs[None] / count,
                n=n, features=count, loss=SQUARED, row_norm=1.0,
            )  # fmt: skip
            weights = noisy_descent.learn(plan, records, [7])
            found.append(float((weights - bias * signs).square().sum()) / count * n ** (2 / 3))
        ratios[forgotten] = found[1] / found[0]
    assert ratios[False] > 0.7
    assert ratios[True] < 0.5


def test_gradients_along_a_path_are_those_of_its_steps():
    """Without noise the estimates are exact; with an offset they are off by just that."""
    instance = neuron_instance(3)
    rows, targets = neuron_records(instance, 20, Draws.at("test"))
    records = BoundedRecords(rows, targets, loss=stationary.NEURON, row_norm=1.0)
    for offset in (0.0, 0.3):
        path = [torch.zeros(2, 3, dtype=torch.float64)]
        for _ in range(30):
            path.append(path[-1] - 0.1 * (records.mean_gradients(path[-1]) + offset / 3**0.5))
        norms, errors = stationary.along(records, iter(path), 30, 0.1, 1)
        assert errors.tolist() == pytest.approx([offset] * 2, abs=1e-9)
        mean = torch.stack([torch.linalg.vector_norm(records.mean_gradients(each), dim=1) for each in path[1:30]])
        assert norms.tolist() == pytest.approx(mean.mean(dim=0).tolist())


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("private_risk", {"features": [20, 50]}, "features contains 20, but 50 columns of X3 are not zero"),
        (
            "private_gradients",
            {"spider_n": [150, 400], "distinct": 100},
            "spider_n contains 150, which is not a multiple of `distinct`, 100",
        ),
        ("private_gradients", {"full_features": [5, 20]}, "full_features contains 5, but 10 columns of X10"),
        ("group_privacy", {"data": ["cifar10"]}, "data contains 'cifar10', but must name built-in data sets of two"),
    ],
)
def test_sweeps_whose_values_do_not_fit_are_refused(name, changes, sentence):
    assert sweep_of("smoke", name, **changes).check().startswith(sentence)
