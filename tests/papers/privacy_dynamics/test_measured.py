"""Runs of noisy gradient descent beside the exact divergence of their laws and its bounds."""

import itertools

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from certified_unlearning.engine import descent as dynamics
from certified_unlearning.engine.objectives.quadratic import QuadraticObjective
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.papers.privacy_dynamics.experiments import MEASURED_ROWS
from certified_unlearning.papers.privacy_dynamics.measured import measured_table, sampled
from certified_unlearning.papers.privacy_dynamics.measured_figure import draw
from certified_unlearning.papers.privacy_dynamics.sampled import divergence_by_order
from certified_unlearning.papers.privacy_dynamics.sweeps import Measured
from certified_unlearning.reproduction.figure_style import FigureStyle
from tests.reproduction.figures.figure_reading import check_layout, legend
from tests.support.planning import sweep_of

DEFAULT = sweep_of("digits", "measured")


def changed(**changes: object) -> Measured:
    return Measured.model_validate(DEFAULT.model_dump() | changes)


STYLE = FigureStyle(context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=200)
# Intervals so wide that right code fails in fewer than one of 10^7 seeds, and faults are found all the same.
SMALL = changed(trials=4000, steps=[20, 1, 5], seed=7, false_alarms=1e-7)


def recursion(sweep: Measured, steps: int) -> float:
    """The divergence by its order: both coordinates' mean gaps and variances, followed step by step."""
    by_order = 0.0
    for curvature, gradient_gap in ((sweep.strong_convexity, 2 * sweep.lipschitz / sweep.n), (sweep.smoothness, 0.0)):
        gap = variance = 0.0
        for _ in range(steps):
            gap = (1 - sweep.step_size * curvature) * gap + sweep.step_size * gradient_gap
            variance = (1 - sweep.step_size * curvature) ** 2 * variance + 2 * sweep.step_size * sweep.sigma**2
        by_order += gap**2 / (2 * variance)
    return by_order


def rows(table: pd.DataFrame, bound: str) -> pd.DataFrame:
    return table[table["bound"] == bound].set_index(["alpha", "steps"]).sort_index()


# --- The table -------------------------------------------------------------------------------------------------------


def test_the_table_has_one_row_for_each_bound_order_and_number_of_steps(measured):
    sweep = DEFAULT
    assert set(measured.columns) == set(MEASURED_ROWS.names)
    assert not measured.duplicated(["bound", "alpha", "steps"]).any()
    for bound, steps in itertools.chain(
        [("sampled", sorted(sweep.steps))],
        ((bound, list(range(61))) for bound in ("exact", "corollary-1", "composition")),
    ):
        expected = list(itertools.product(sweep.alpha, steps))
        assert list(rows(measured, bound).index) == expected
    assert measured.drop(columns=["low", "high"]).notna().all(axis=None)
    assert (measured[["low", "high"]].notna().all(axis=1) == (measured["bound"] == "sampled")).all()
    assert dict(zip(measured["bound"], measured["guarantee"], strict=True)) == {
        "exact": "exact",
        "sampled": "measured",
        "corollary-1": "upper bound",
        "composition": "upper bound",
    }


def test_the_exact_divergence_is_that_of_the_recursion_of_means_and_variances(measured):
    exact = rows(measured, "exact")["renyi"]
    for (alpha, steps), value in exact.items():
        assert value == pytest.approx(alpha * recursion(DEFAULT, steps) if steps else 0.0, rel=1e-12)


def test_bounds_are_at_least_exact_and_composition_is_exact_after_one_step(measured):
    exact, damped, composed = (rows(measured, name)["renyi"] for name in ("exact", "corollary-1", "composition"))
    assert (damped >= exact).all()
    assert (composed >= exact * (1 - 1e-12)).all()
    assert composed.xs(1, level="steps").to_numpy() == pytest.approx(exact.xs(1, level="steps").to_numpy(), rel=1e-12)
    # The bounds cross: either is the better one somewhere.
    after = damped.index.get_level_values("steps") > 0
    assert set(damped[after] < composed[after]) == {True, False}


def test_intervals_hold_the_estimate_and_the_exact_divergence(measured):
    # By default one of 10^6 seeds fails.
    found, exact = rows(measured, "sampled"), rows(measured, "exact")["renyi"]
    assert ((found["low"] < found["renyi"]) & (found["renyi"] < found["high"])).all()
    assert ((found["low"] <= exact[found.index]) & (exact[found.index] <= found["high"])).all()


def off_by(sweep: Measured) -> np.ndarray:
    """How far the recursion's value lies outside every interval; 0 inside."""
    estimate = sampled(sweep)
    exact = np.array([recursion(sweep, steps) for steps in sorted(sweep.steps)])
    return np.maximum(np.maximum(estimate.low - exact, exact - estimate.high), 0)


@pytest.mark.parametrize("seed", range(3))
def test_other_seeds_cover_the_exact_divergence_too(seed):
    assert not off_by(SMALL.model_copy(update={"seed": seed})).any()


def test_steps_are_sampled_in_any_order_and_other_curvatures_too():
    other = SMALL.model_copy(update={"strong_convexity": 3.0, "smoothness": 3.0, "step_size": 0.2, "n": 10})
    assert not off_by(other).any()


def test_the_same_sweep_gives_the_same_table_and_another_seed_another():
    first, second = (measured_table(SMALL) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    other = measured_table(SMALL.model_copy(update={"seed": 8}))
    assert (rows(other, "sampled")["renyi"] != rows(first, "sampled")["renyi"]).all()
    assert (rows(other, "exact")["renyi"] == rows(first, "exact")["renyi"]).all()


# --- Planted faults --------------------------------------------------------------------------------------------------


def test_half_the_noise_in_the_engine_is_noticed(monkeypatch):
    fill = dynamics.randomness.fill_blocks

    def half(out, keys, first):
        fill(out, keys, first)
        out.mul_(0.5)

    monkeypatch.setattr(dynamics.randomness, "fill_blocks", half)
    assert off_by(SMALL).all()


def test_a_tenth_too_much_noise_is_noticed_with_more_runs(monkeypatch):
    fill = dynamics.randomness.fill_blocks

    def more(out, keys, first):
        fill(out, keys, first)
        out.mul_(1.1)

    monkeypatch.setattr(dynamics.randomness, "fill_blocks", more)
    assert off_by(SMALL.model_copy(update={"trials": 30_000}))[-1] > 0


def test_a_record_that_is_not_replaced_is_noticed(monkeypatch):
    monkeypatch.setattr(QuadraticObjective, "remove", lambda self, count: None)
    assert off_by(SMALL)[1:].all()


def test_a_step_too_few_is_noticed(monkeypatch):
    descend = QuadraticObjective.descend
    monkeypatch.setattr(QuadraticObjective, "descend", lambda self, weights, size: descend(self, weights, size / 2))
    assert off_by(SMALL)[1:].all()


# --- The interval ----------------------------------------------------------------------------------------------------


def test_intervals_miss_no_more_often_than_they_say():
    # 40 000 intervals that miss with a probability of at most 0.1: 6 standard deviations are 0.009.
    rng = np.random.default_rng(3)
    first, second = rng.normal(0.7, 2.0, (40_000, 8)), rng.normal(0.0, 2.0, (40_000, 8))
    estimate = divergence_by_order(first, second, miss=0.1)
    truth = 0.7**2 / (2 * 2.0**2)
    missed = np.mean((estimate.low > truth) | (estimate.high < truth))
    assert 0.005 < missed < 0.1 + 0.009
    # Equal means are covered by the lower end 0.
    none = divergence_by_order(first - 0.7, second, miss=0.1)
    assert 0 < np.mean(none.low > 0) < 0.05 + 0.007


def test_an_interval_multiplies_out():
    first, second = np.array([1.0, 3.0, 5.0]), np.array([0.0, 1.0, 2.0])
    found = divergence_by_order(first, second, miss=0.2)
    # Pooled variance (4 + 1) / 2 with 4 degrees of freedom; every end misses with 0.05: Student's quantile is 2.13185,
    # chi-square's are 0.710723 and 9.487729.
    gap, variance, reach = 2.0, 2.5, 2.13185 * np.sqrt(2 * 2.5 / 3)
    assert found.value == pytest.approx(gap**2 / (2 * variance))
    assert found.low == pytest.approx(max(gap - reach, 0) ** 2 / (2 * 4 * variance / 0.710723), rel=1e-5)
    assert found.high == pytest.approx((gap + reach) ** 2 / (2 * 4 * variance / 9.487729), rel=1e-5)


def test_intervals_scale_with_nothing_but_the_ratio_of_gap_and_deviation():
    rng = np.random.default_rng(4)
    first, second = rng.normal(0.7, 2.0, 50), rng.normal(0.0, 2.0, 50)
    one, other = (
        divergence_by_order(first, second, miss=0.01),
        divergence_by_order(9 - 3 * second, 9 - 3 * first, miss=0.01),
    )
    assert tuple(one) == pytest.approx(tuple(other), rel=1e-12)


@pytest.mark.parametrize("miss", [0.0, 1.0, -0.1])
def test_a_senseless_probability_is_refused(miss):
    with pytest.raises(ParameterError, match=r"^miss must lie strictly between 0 and 1, got "):
        divergence_by_order(np.zeros(3), np.zeros(3), miss=miss)


@pytest.mark.parametrize(("first", "second"), [(np.zeros(3), np.zeros(4)), (np.zeros(1), np.zeros(1))])
def test_too_few_samples_are_refused(first, second):
    with pytest.raises(ParameterError, match=r"^both samples must have the same shape, with at least two trials, got "):
        divergence_by_order(first, second, miss=0.1)


# --- The sweep -------------------------------------------------------------------------------------------------------


def test_every_field_of_the_sweep_is_described():
    assert all(field.description for field in Measured.model_fields.values())


@pytest.mark.parametrize(
    "wrong",
    [{"n": 0}, {"sigma": 0.0}, {"alpha": [1.0]}, {"alpha": []}, {"steps": [0]}, {"steps": []}, {"trials": 1},
     {"seed": -1}, {"false_alarms": 0.0}, {"false_alarms": 1.0}, {"records": 1}],
)  # fmt: skip
def test_senseless_sweeps_are_refused(wrong):
    with pytest.raises(ValidationError):
        changed(**wrong)


def test_too_large_a_step_breaks_an_assumption():
    with pytest.raises(AssumptionError, match="step_size"):
        measured_table(SMALL.model_copy(update={"step_size": 0.25}))
    with pytest.raises(AssumptionError, match="strong_convexity must be at most smoothness"):
        measured_table(SMALL.model_copy(update={"strong_convexity": 5.0}))


# --- The figure ------------------------------------------------------------------------------------------------------


def test_the_figure_shows_every_bound_and_the_intervals_of_the_table(measured):
    figure = draw(measured, STYLE)
    assert set(legend(figure)) == {
        "Corollary 1 (upper bound)",
        "Composition (upper bound)",
        "Exact",
        "Runs of the engine, joint confidence intervals",
    }
    assert figure.axes[0].get_ylabel() == "Rényi divergence (nats)"
    for alpha, axes in zip((10, 20, 30), figure.axes, strict=True):
        assert axes.get_title() == f"α = {alpha}"
        assert axes.get_xlabel() == "Steps K"
        drawn = {str(line.get_label()): line for line in axes.get_lines()}
        for bound, name in (("corollary-1", "Corollary 1 (upper bound)"), ("exact", "Exact")):
            of_bound = rows(measured, bound).xs(alpha)
            np.testing.assert_array_equal(drawn[name].get_data(), (of_bound.index, of_bound["renyi"]))
        of_runs = rows(measured, "sampled").xs(alpha)
        (container,) = axes.containers
        points, _, (bars,) = container
        np.testing.assert_array_equal(points.get_data(), (of_runs.index, of_runs["renyi"]))
        ends = np.array([segment[:, 1] for segment in bars.get_segments()])
        np.testing.assert_allclose(ends, of_runs[["low", "high"]], rtol=1e-12)


def test_nothing_overlaps_and_nothing_is_cut_off(measured):
    figure = draw(measured, STYLE)
    check_layout(figure)
    assert figure.axes[0].get_ylim()[1] > measured["high"].max()


def test_what_cannot_be_drawn_is_named(measured):
    with pytest.raises(DataError, match="the bounds of measured hold 'moments', which has no line"):
        draw(measured.replace({"bound": {"exact": "moments"}}), STYLE)
    with pytest.raises(DataError, match="the bounds of measured hold nothing that was sampled"):
        draw(measured[measured["bound"] != "sampled"], STYLE)
