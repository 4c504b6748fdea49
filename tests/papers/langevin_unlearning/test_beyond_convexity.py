"""Theorems 3.2 and 3.3 beyond strong convexity, early stops, Gibbs laws, Fig. 3a: rows, figure, planted faults."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

from certified_unlearning import accounting
from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.papers.langevin_unlearning.bounds.beyond_convexity import BEYOND_CONVEXITY, ROWS
from certified_unlearning.papers.langevin_unlearning.constants import paper_problem
from certified_unlearning.papers.langevin_unlearning.figures.beyond_convexity import draw
from certified_unlearning.papers.langevin_unlearning.measures import authors, beyond_convexity
from certified_unlearning.papers.langevin_unlearning.sweeps import BeyondConvexity
from certified_unlearning.papers.langevin_unlearning.theory import general, training
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.rows import read_table, write_table
from tests.support.planning import make, settings_of, sweep_of

STYLE = FigureStyle(context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=100)
MNIST = paper_problem([], "mnist-3-vs-8", "bound")
CONVEX = dataclasses.replace(MNIST, strong_convexity=0.0)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    sweep = sweep_of("mnist", "beyond_convexity")
    table = make("beyond_convexity", settings_of("mnist"), sweep, {}, preset_name="mnist")
    assert isinstance(table, pd.DataFrame)
    return table


def curve(rows: pd.DataFrame, part: str, bound: str, x: str, radius: float | None = None) -> pd.Series:
    chosen = rows[(rows["part"] == part) & (rows["bound"] == bound)]
    if radius is not None:
        chosen = chosen[chosen["radius"] == radius]
    return chosen.set_index(x)["log10_epsilon"]


# --- Rows and figure --------------------------------------------------------------------------------------------------


def test_the_experiment_has_the_constants_of_mnist() -> None:
    sweep = sweep_of("mnist", "beyond_convexity")
    assert isinstance(sweep, BeyondConvexity)
    assert (sweep.n, sweep.lipschitz) == (MNIST.n, MNIST.lipschitz)
    assert sweep.strong_convexity == pytest.approx(MNIST.strong_convexity)
    assert sweep.smoothness == pytest.approx(MNIST.smoothness)


def test_along_learning_the_general_cases_lie_above_composition_and_the_strongly_convex_one_levels_off(rows) -> None:
    composed, strong, convex, smooth = (
        curve(rows, "learning", bound, "learning_steps")
        for bound in ("composition", "strongly convex", "convex", "smooth")
    )
    assert (convex >= composed - 1e-9).all()
    assert (smooth >= convex - 1e-9).all()
    limit = math.log10(accounting.initial_epsilon(MNIST, sigma=0.03, delta=1 / MNIST.n, records=1))
    assert strong.iloc[-1] == pytest.approx(limit)
    assert convex.iloc[-1] > 1.5


def test_along_unlearning_only_the_strongly_convex_case_falls_far(rows) -> None:
    fallen = {
        bound: curve(rows, "unlearning", bound, "unlearning_steps").iloc[[0, -1]].diff().iloc[-1]
        for bound in ("strongly convex", "convex", "smooth", "composition")
    }
    assert fallen["strongly convex"] < -0.8
    assert -0.2 < fallen["convex"] < 0
    assert -0.01 < fallen["smooth"] <= 0
    assert fallen["composition"] == 0


@pytest.mark.parametrize("radius", [1.0, 100.0])
def test_the_limits_plunge_at_a_sigma_that_grows_with_the_radius(rows, radius: float) -> None:
    limits = curve(rows, "limit", "convex", "sigma", radius)
    assert limits.iloc[0] > 1e4
    assert limits.iloc[-1] < 0
    promised = limits.index[limits < 0].min()
    assert radius / 10 < promised < 10 * (radius + MNIST.step_size)


def test_rows_survive_their_file(tmp_path, rows) -> None:
    write_table(tmp_path / "rows.parquet", rows, ROWS)
    again = read_table(tmp_path / "rows.parquet", ROWS)
    np.testing.assert_array_equal(again["log10_epsilon"], rows["log10_epsilon"])
    assert set(BEYOND_CONVEXITY.rows.names) == set(rows.columns)


def test_the_figure_has_a_panel_for_each_part_and_shows_the_rows(rows) -> None:
    figure = draw(rows, STYLE)
    learning, unlearning, limit = figure.axes
    drawn = {str(line.get_label()): line for line in learning.get_lines()}
    assert set(drawn) == {"strongly convex", "composition", "convex", "smooth"}
    shown = curve(rows, "learning", "convex", "learning_steps")
    np.testing.assert_allclose(drawn["convex"].get_ydata(), 10.0**shown)
    assert len(unlearning.get_lines()) == 4
    # Without a radius, and two cases and Proposition E.1 for each of two.
    assert len(limit.get_lines()) == 1 + 2 * 3
    assert [text.get_text() for text in limit.texts] == [" R = 1", " R = 100"]


def test_limits_that_nowhere_plunge_bear_no_radius(rows) -> None:
    quiet = rows[(rows["part"] != "limit") | (rows["sigma"] > 100)]
    assert list(draw(quiet, STYLE).axes[2].texts) == []


def test_a_bound_that_nobody_knows_has_no_line(rows) -> None:
    with pytest.raises(DataError, match="'planted', which has no line"):
        draw(rows.assign(bound="planted"), STYLE)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"strong_convexity": 1.0}, "strong_convexity is 1.0, but must be at most smoothness"),
        ({"least_sigma": 2000.0}, "least_sigma is 2000.0, but must be below most_sigma"),
    ],
)
def test_constants_that_do_not_fit_are_named(changed, message: str) -> None:
    sweep = sweep_of("mnist", "beyond_convexity").model_copy(update=changed)
    assert (sweep.check() or "").startswith(message)


# --- Formulas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learning_steps", [1, 500, math.inf])
def test_the_logarithm_of_epsilon_is_that_of_the_converted_curve(learning_steps) -> None:
    """Noise of the ball's size, where a double holds the limit."""
    arguments = {"sigma": 10.0, "records": 3, "learning_steps": learning_steps, "radius": 1.0, "convex": True}
    initial = general.initial_curve(CONVEX, **arguments)
    expected = accounting.epsilon_from_renyi(initial, 1e-4, conversion="paper").epsilon
    found = general.initial_log_epsilon(CONVEX, delta=1e-4, **arguments)
    assert math.exp(found) == pytest.approx(expected, rel=1e-7)


def test_where_no_double_holds_epsilon_its_logarithm_is_known() -> None:
    """The exponent 4 (R + eta M)^2 / (eta sigma^2) outweighs all else."""
    arguments = {"sigma": 0.03, "records": 1, "learning_steps": math.inf, "radius": 1.0, "convex": True}
    exponent = 4 * (1 + MNIST.step_size) ** 2 / (2 * MNIST.step_size * 0.03**2)
    assert general.initial_log_epsilon(CONVEX, delta=1e-4, **arguments) == pytest.approx(exponent, rel=5e-3)


def test_the_stationary_constant_is_where_long_learning_ends() -> None:
    descent = general._ProjectedDescent(CONVEX, 10.0, 1.0, True)
    constants = descent.log_constants(10_000, -math.inf)
    assert general.log_stationary_constant(CONVEX, sigma=10.0, radius=1.0, convex=True) == constants[-1]
    assert constants[-1] == constants[-2] > constants[1]


def test_after_finite_learning_nothing_is_lost_where_nothing_is_left_but_the_orders_and_factors() -> None:
    nothing = RenyiCurve(lambda alpha: np.full_like(alpha, -np.inf))
    linear = RenyiCurve(lambda alpha: np.log(alpha))
    found = training.after_finite_learning(nothing, linear)(np.array([3.0]))
    assert found[0] == pytest.approx(12 * (2.5 / 2) * (5.5 / 5))
    found = training.after_finite_learning(linear, nothing)(np.array([3.0]))
    assert found[0] == pytest.approx((2.5 / 2) * (6 + 12 * (5.5 / 5)))


def test_what_learning_leaves_by_equation_6_falls_with_the_steps_at_the_rate_of_the_order() -> None:
    before, after = (
        training.remaining_curve(MNIST, sigma=0.03, learning_steps=steps, distance=2.0)(np.array([5.0]))[0]
        for steps in (0, 100)
    )
    assert before == pytest.approx(5 * MNIST.strong_convexity * 4 / (4 * 0.03**2))
    decay = 100 * MNIST.step_size * MNIST.strong_convexity / 5
    assert after / before == pytest.approx(math.exp(-decay))


def test_a_bound_without_its_second_remainder_is_below_the_exact_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"alpha": [3.0], "learning_steps": [1], "steps": [100]}
    (honest,) = beyond_convexity.exact_over_insufficient_training(**arguments)
    assert honest.value <= 1
    monkeypatch.setattr(beyond_convexity, "after_finite_learning", lambda remaining, unlearned: unlearned)
    (faulty,) = beyond_convexity.exact_over_insufficient_training(**arguments)
    assert faulty.value > 1


def test_gibbs_laws_of_equal_losses_do_not_diverge_and_of_far_ones_come_near_the_bound() -> None:
    assert training.exact_gibbs_divergence(alpha=10.0, loss_range=1e-6, n=1) == pytest.approx(0.0, abs=1e-9)
    exact = training.exact_gibbs_divergence(alpha=100.0, loss_range=1.0, n=1)
    assert 0.4 < exact / training.gibbs_divergence(loss_range=1.0, n=1) <= 1


def test_small_steps_approach_the_gibbs_law() -> None:
    exact = training.exact_gibbs_divergence(alpha=10.0, loss_range=1.0, n=1)
    gaps = [
        abs(training.exact_stationary_divergence(alpha=10.0, loss_range=1.0, step_size=step_size) / exact - 1)
        for step_size in (0.2, 0.1, 0.05)
    ]
    assert gaps[0] > 1.8 * gaps[1] > 3.2 * gaps[2] > 0


@pytest.mark.parametrize("step_size", [0.001, 0.3])
def test_step_sizes_that_the_grid_does_not_resolve_are_refused(step_size: float) -> None:
    with pytest.raises(ParameterError, match=r"step_size must be from 0\.01 to 0\.2"):
        training.exact_stationary_divergence(alpha=2.0, loss_range=1.0, step_size=step_size)


# --- Fig. 3a ----------------------------------------------------------------------------------------------------------


def test_the_authors_gains_are_the_differences_of_their_trials() -> None:
    (gain,) = authors.authors_gains(better="langevin", worse="descent-to-delete, I = 1", epsilon=[0.1])
    assert gain.value == pytest.approx(0.812434 - 0.51562)
    assert gain.name == "epsilon = 0.1 (0.8124 against 0.5156)"
    assert 0 < gain.uncertainty < 0.05


def test_at_the_largest_epsilon_the_authors_trials_cannot_tell_five_steps_from_langevins_one() -> None:
    (gain,) = authors.authors_gains(better="langevin", worse="descent-to-delete, I = 5", epsilon=[5.0])
    assert abs(gain.value) < gain.uncertainty
