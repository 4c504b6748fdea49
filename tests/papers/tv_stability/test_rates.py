"""Measured rates: laws of runs on few records that differ, of passes that keep little, and what planted rows turn."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import torch

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.engine.exact.prefix_tree import PrefixTree
from certified_unlearning.errors import DataError
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.exact.one_pass.dual_averaging import DualAveraging, DualAveragingSettings
from certified_unlearning.mechanisms.exact.one_pass.frank_wolfe import FrankWolfe, FrankWolfeSettings
from certified_unlearning.mechanisms.exact.quantized_sgd import QuantizedSgd
from certified_unlearning.mechanisms.exact.subsample_gd import SubsampleGd
from certified_unlearning.papers.tv_stability.experiments import RATE_ROWS
from certified_unlearning.papers.tv_stability.measures.rates import exact_slope
from certified_unlearning.papers.tv_stability.names import RATE_PARTS
from certified_unlearning.papers.tv_stability.rates import figure, mini_batches, one_pass
from certified_unlearning.papers.tv_stability.rates.instance import Blocks, geometric
from certified_unlearning.papers.tv_stability.rates.table import rates_table
from certified_unlearning.reproduction.claims.evidence import MissingEvidence
from certified_unlearning.reproduction.figure_style import FigureStyle
from tests.papers.tv_stability.evidence import BY_ID, OF_RATES, judged
from tests.support.evidence import Tables
from tests.support.planning import sweep_of

STYLE = FigureStyle(context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=50)
TRIALS = 20_000
OWN = {"steps": 4, "batch_size": 3, "step_size": 0.4, "radius": 0.5}
SETTINGS = {
    "sub-sampled": SubsampleGd(**OWN),
    "noisy": NoisySgd(**OWN, sigma=0.3),
    "accelerated": NoisySgd(**OWN, sigma=0.3, accelerated=True),
    "quantized": QuantizedSgd(**OWN, quantum=0.4),
}
COUNTS = (3, 1, 2, 2)
"""Of records (e_1, 1), (e_2, 1), (e_1, -1) and (e_2, -1)."""


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return rates_table(sweep_of("smoke", "exact_rates"))


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference of means, in standard errors, of numbers and of their squares."""
    found = []
    for here, there in ((one, other), (one.square(), other.square())):
        spread = ((here.var(dim=0) + there.var(dim=0)) / len(one)).sqrt()
        found.append(float(((here.mean(dim=0) - there.mean(dim=0)).abs() / spread).max()))
    return max(found)


def spelled_out() -> LinearRecords:
    """Every record of `COUNTS` as often as it is there; a third column is 0 in all."""
    rows = torch.eye(2, 3, dtype=torch.float64).repeat(2, 1).repeat_interleave(torch.tensor(COUNTS), dim=0)
    labels = torch.tensor([1.0, 1.0, -1.0, -1.0]).repeat_interleave(torch.tensor(COUNTS))
    return LinearRecords(rows, labels, loss="squared")


@pytest.mark.parametrize("name", SETTINGS)
def test_models_have_the_law_of_the_engine_on_all_records(name):
    """False alarms: 12 differences above 5 standard errors, below 1e-5; other batches and steps are seen."""
    settings, counts = SETTINGS[name], np.repeat(np.array([COUNTS]), TRIALS, axis=0)

    def few(used):
        return mini_batches.learned(used, counts, dimension=3, draws=Draws.at("few", name), key=5)

    engine = ExactDescent(settings, spelled_out())
    whole = engine.learn(torch.arange(sum(COUNTS)), Draws.at("whole", name), trials=TRIALS).model()
    assert apart(few(settings)[:, :2], whole[:, :2]) < 5
    assert apart(few(dataclasses.replace(settings, batch_size=1, step_size=0.5))[:, :2], whole[:, :2]) > 6


def test_data_of_a_trial_each_are_met_by_that_trial():
    """Trials of all records with one label go to that label, whatever the others have."""
    counts = np.array([[8, 0], [0, 8]])
    settings = SubsampleGd(steps=50, batch_size=2, step_size=0.5)
    found = mini_batches.learned(settings, counts, dimension=1, draws=Draws.at("data"), key=1)
    assert found[0] > 0.9
    assert found[1] < -0.9
    assert mini_batches.excess_empirical(torch.tensor([[1.0], [1.0]]).double(), counts).tolist() == [0.0, 2.0]


@pytest.mark.parametrize("learner", ["dual averaging", "Frank-Wolfe"])
@pytest.mark.parametrize("size", [1, 6, 13])
def test_a_pass_leaves_what_a_tree_leaves(learner, size):
    records = LinearRecords(torch.eye(3, dtype=torch.float64), torch.tensor([1.0, -1.0, 1.0]), loss="logistic")
    method = (
        DualAveraging(records, DualAveragingSettings(0.3, 1.0))
        if learner == "dual averaging"
        else FrankWolfe(records, FrankWolfeSettings(1.0))
    )
    orders = Draws.at("orders", size).integers(3, 4, size)
    sigmas = torch.full((size.bit_length(),), 0.7, dtype=torch.float64)
    tree, _ = PrefixTree.learn(method, sigmas, orders, Draws.at("pass", size))
    passed = one_pass.one_pass(method, 0.7, orders, Draws.at("pass", size))
    torch.testing.assert_close(passed.last, tree.models[:, size + 1])
    torch.testing.assert_close(passed.average, tree.models[:, 1 : size + 1].mean(dim=1))


@pytest.mark.parametrize(
    "law", [geometric(3, length=0.8), geometric(3, length=2.0, loss="logistic")], ids=["squared", "l"]
)
def test_excess_is_that_of_the_losses(law):
    weights = torch.tensor([[0.3, -0.5, 0.1]], dtype=torch.float64)

    def loss(model):
        scores = model.repeat(1, 2)
        losses = {
            "squared": (scores - law.labels).square() / 2,
            "logistic": torch.log1p(torch.exp(-law.labels * scores)),
        }
        return float((losses[law.loss] @ law.law).item())

    assert float(law.law.sum()) == pytest.approx(1)
    assert float(law.excess(weights)) == pytest.approx(loss(weights) - loss(law.best[None]), rel=1e-12)
    assert loss(law.best[None]) < min(loss(law.best[None] + 0.01), loss(law.best[None] - 0.01))


def test_absolute_losses_have_the_sign_for_a_slope():
    law = Blocks("absolute", torch.tensor([0.5, 0.5]).double(), torch.tensor([0.3, -0.2]).double())
    gradients = law.gradients(torch.eye(2, dtype=torch.float64).repeat(2, 1), law.labels)
    weights = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    assert gradients.sums(weights, torch.tensor([[0]])).tolist() == [[1.0, 0.0]]
    assert gradients.sums(weights, torch.tensor([[3]])).tolist() == [[0.0, -1.0]]
    assert float(law.excess(weights)) == pytest.approx((0.7 + 0.8) / 2)


def test_learners_stand_at_the_parameters_of_their_theorems():
    problem = mini_batches.problem_of(n=1_000_000, dimension=10, rho=0.01)
    found = {name: plan(problem).settings for name, plan in mini_batches.EMPIRICAL.items()}
    ratio = problem.stable_records / math.sqrt(10)
    assert {name: each.steps for name, each in found.items()} == {
        "sub-sample-GD": 100,
        "accelerated noisy SGD": math.ceil(ratio**0.4),
        "accelerated noisy SGD, stable": math.ceil(ratio**0.5),
        "noisy SGD": math.ceil(ratio ** (2 / 3)),
        "noisy SGD, stable": math.ceil(ratio),
        "quantized SGD": math.ceil((problem.stable_records / 10**1.5) ** (2 / 3)),
    }
    noisy = found["noisy SGD"]
    assert noisy.sigma == pytest.approx(8 * noisy.steps * 2 / problem.stable_records)
    assert found["sub-sample-GD"].steps * found["sub-sample-GD"].batch_size <= problem.stable_records
    assert found["accelerated noisy SGD"].accelerated
    population = mini_batches.theorem_48_noisy(mini_batches.problem_of(n=400, dimension=10, rho=0.5)).settings
    assert population.steps == 400


def test_rows_fit_their_schema_and_hold_every_part(rows):
    assert set(rows.columns) == set(RATE_ROWS.names)
    assert set(rows["part"]) == set(RATE_PARTS)
    assert {part: set(own["method"]) for part, own in rows.groupby("part")} == {
        part: set(RATE_PARTS[part].slopes) for part in RATE_PARTS
    }
    assert bool((rows["error"] > -1e-12).all())
    assert bool((rows["rate"] > 0).all())
    assert len(rows.drop_duplicates(["part", "method", "n", "features", "rho", "trial"])) == len(rows)


def test_the_figure_has_a_panel_for_each_part(rows):
    drawn = figure.draw_rates(rows, STYLE)
    assert [axes.get_title() for axes in drawn.axes] == [part.title for part in RATE_PARTS.values()]
    with pytest.raises(DataError, match="the rows of exact_rates hold 'magic', which has no line"):
        figure.draw_rates(rows.assign(part="magic"), STYLE)


# Rows of known slopes.


def planted(change: float = 0.0, *, trials: int = 20, reach: int = 64) -> pd.DataFrame:
    """Rows with the slopes of the theorems, all of them changed by as much."""
    generator = np.random.default_rng(4)
    tables = []
    for part, panel in RATE_PARTS.items():
        for method, slope in panel.slopes.items():
            across = np.repeat(np.array([1, 8, reach]), trials) * (10 if panel.x != "rho" else 0.001)
            level = across ** (slope + change)
            row = {"part": part, "method": method, "n": 100, "features": 10, "rho": 0.1, "rate": across**slope}
            errors = level * np.exp(0.1 * generator.normal(size=len(across)))
            tables.append(
                pd.DataFrame({**row, "trial": np.tile(range(trials), 3), "error": errors} | {panel.x: across})
            )
    return pd.concat(tables, ignore_index=True)


def test_slopes_of_theory_are_reproduced_and_others_contradicted():
    """Both ways: shallower lines contradict theorems, steeper ones only that these are reached."""
    reached = {name for name in OF_RATES if name.endswith("-reached")}
    assert judged(Tables(exact_rates=planted()), names=sorted(OF_RATES)) == dict.fromkeys(OF_RATES, "reproduced")
    assert judged(Tables(exact_rates=planted(0.4)), names=["tv-measured-theorem-28"]) == {
        "tv-measured-theorem-28": "contradicted"
    }
    shallow = judged(Tables(exact_rates=planted(0.4)), names=sorted(OF_RATES))
    assert shallow == {name: "reproduced" if name in reached else "contradicted" for name in OF_RATES}
    steep = judged(Tables(exact_rates=planted(-0.3)), names=sorted(OF_RATES))
    assert steep == {name: "contradicted" if name in reached else "reproduced" for name in OF_RATES}
    assert {BY_ID[name].claim.whose for name in reached} == {"ours"}


def test_few_trials_and_a_short_range_decide_nothing():
    for rows in (planted(trials=19), planted(reach=15)):
        with pytest.raises(MissingEvidence):
            exact_slope([Tables(exact_rates=rows)], part=["4 records"], method="noisy SGD")
