"""The figures of bounds show the table's numbers: nothing is simulated, nothing is averaged."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from certified_unlearning.errors import DataError
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures.drawing import render
from certified_unlearning.reproduction.figures.wording import greek
from certified_unlearning.reproduction.rows import BOUND_ROWS, read_table, write_table
from tests.reproduction.figures import figure_reading
from tests.reproduction.figures.figure_reading import BOUND_FIGURES, BOUNDS, check_layout, legend, lines
from tests.support.planning import experiment_called

pytestmark = pytest.mark.sampled

Bounds = dict[str, pd.DataFrame]
EXPERIMENTS = pytest.mark.parametrize("experiment", BOUND_FIGURES)
EXACT = "exact on quadratics"


def draw(experiment: str, bounds: Bounds, style: FigureStyle) -> Figure:
    return figure_reading.draw(experiment, bounds[experiment], style)


def check_curve(curve: tuple[np.ndarray, np.ndarray], rows: pd.DataFrame, value: str) -> None:
    assert not rows.empty
    np.testing.assert_array_equal(curve, (rows["steps"], rows[value]))


@EXPERIMENTS
def test_the_tables_of_these_tests_have_the_columns_of_real_ones(experiment: str, bounds: Bounds) -> None:
    assert experiment_called(experiment).rows is BOUND_ROWS
    assert set(bounds[experiment].columns) == set(BOUND_ROWS.names)


def test_recuperation_shows_the_epsilon_of_every_accountant_and_the_exact_one_dashed_over_them(
    bounds: Bounds, style: FigureStyle
) -> None:
    (axes,) = draw("recuperation", bounds, style).axes
    table = bounds["recuperation"]
    found = lines(axes)
    assert list(found) == ["lsi", "lsi-tight", "shifted", EXACT]
    for bound, curve in found.items():
        check_curve(curve, table[table["bound"] == bound], "epsilon")
    assert list(legend(axes.get_figure())) == [*(f"{BOUNDS[bound]} ({bound})" for bound in list(found)[:3]), EXACT]
    drawn = {line.get_label(): line for line in axes.get_lines()}
    assert all(drawn[EXACT].get_zorder() > drawn[bound].get_zorder() for bound in ("lsi", "lsi-tight", "shifted"))
    assert drawn[EXACT].is_dashed()
    assert not drawn["shifted"].is_dashed()


def test_recuperation_begins_at_no_steps_and_ends_where_epsilon_hardly_differs_from_0(
    bounds: Bounds, style: FigureStyle
) -> None:
    figure = draw("recuperation", bounds, style)
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("symlog", "log")
    left, right = axes.get_xlim()
    assert left < 0 < 5000 < right
    bottom, top = axes.get_ylim()
    assert bottom == pytest.approx(0.008)
    assert top > 57
    figure.draw_without_rendering()
    assert {"0", "1", "10", "100", "1,000"} <= {label.get_text() for label in axes.get_xticklabels()}


def test_recuperation_of_one_accountant_uses_the_height_of_the_panel(bounds: Bounds, style: FigureStyle) -> None:
    table = bounds["recuperation"]
    (axes,) = draw("recuperation", {"recuperation": table[table["bound"] == "lsi"]}, style).axes
    least = table.loc[table["bound"] == "lsi", "epsilon"].min()
    assert axes.get_ylim()[0] == pytest.approx(0.8 * least)


def test_the_first_figure_of_dynamics_shows_every_pair_solid_and_composition_dashed(
    bounds: Bounds, style: FigureStyle
) -> None:
    figure = draw("dynamics1", bounds, style)
    (axes,) = figure.axes
    table, found = bounds["dynamics1"], lines(axes)
    pairs = [(10, 1), (10, 2), (10, 4), (20, 1), (30, 1)]
    expected = {f"corollary-1, alpha = {a}, lambda = {m}": ("corollary-1", a, m) for a, m in pairs}
    expected |= {f"composition, alpha = {a}": ("composition", a, None) for a in (10, 20, 30)}
    assert set(found) == set(expected)
    for label, (bound, alpha, curvature) in expected.items():
        rows = table[(table["bound"] == bound) & (table["alpha"] == alpha)]
        check_curve(found[label], rows if curvature is None else rows[rows["strong_convexity"] == curvature], "renyi")
    assert all(line.is_dashed() == line.get_label().startswith("composition") for line in axes.get_lines())
    assert axes.get_ylim() == (0, pytest.approx(1.25 * 0.048, rel=0.02))


def test_the_legend_of_the_first_figure_of_dynamics_tells_alpha_by_hue_and_lambda_by_marker(
    bounds: Bounds, style: FigureStyle
) -> None:
    figure = draw("dynamics1", bounds, style)
    key = legend(figure)
    assert list(key) == [
        *(f"α = {alpha}" for alpha in (10, 20, 30)),
        *(f"λ = {curvature}" for curvature in (1, 2, 4)),
        "Corollary 1 (upper bound)",
        "Composition (upper bound)",
    ]
    for line in figure.axes[0].get_lines():
        _, alpha, *curvature = greek(line.get_label()).split(", ")
        assert line.get_color() == key[alpha].get_color()
        assert line.get_marker() == (key[curvature[0]].get_marker() if curvature else "")
    assert len({key[f"α = {alpha}"].get_color() for alpha in (10, 20, 30)}) == 3
    assert len({key[f"λ = {curvature}"].get_marker() for curvature in (1, 2, 4)}) == 3


def test_composition_may_carry_the_lambda_of_its_problem(bounds: Bounds, style: FigureStyle) -> None:
    table = bounds["dynamics1"].fillna({"strong_convexity": 1.0})
    same = draw("dynamics1", {"dynamics1": table}, style)
    assert legend(same).keys() == legend(draw("dynamics1", bounds, style)).keys()
    assert lines(same.axes[0]).keys() == lines(draw("dynamics1", bounds, style).axes[0]).keys()


def test_the_second_figure_of_dynamics_has_a_panel_for_each_alpha_with_every_bound(
    bounds: Bounds, style: FigureStyle
) -> None:
    figure = draw("dynamics2", bounds, style)
    names = {
        "corollary-2": "Corollary 2 (upper bound)",
        "theorem-3": "Theorem 3 (lower bound)",
        "exact": "Exact",
        "composition": "Composition (upper bound)",
    }
    assert set(legend(figure)) == set(names.values())
    for alpha, axes in zip((10, 20, 30), figure.axes, strict=True):
        assert axes.get_title() == f"α = {alpha}"
        rows = bounds["dynamics2"].query("alpha == @alpha")
        assert set(lines(axes)) == set(names.values())
        for bound, name in names.items():
            check_curve(lines(axes)[name], rows[rows["bound"] == bound], "renyi")
        dashed = {line.get_label() for line in axes.get_lines() if line.is_dashed()}
        assert dashed == set(names.values()) - {"Corollary 2 (upper bound)"}
        assert axes.get_ylim() == (0, pytest.approx(1.25 * 0.0242424, rel=0.01))


@pytest.mark.parametrize(
    ("experiment", "title"),
    [
        ("recuperation", "Privacy recuperation, 100 records at once\nn = 11,982, σ = 0.03, δ = 8.35 × 10⁻⁵"),
        ("dynamics1", "Noisy gradient descent, last iterate published\nn = 11,982, σ = 0.03, step size η = 3.8"),
        ("dynamics2", "Noisy gradient descent, last iterate published\nn = 11,982, σ = 0.03, step size η = 3.8"),
    ],
)
def test_the_title_says_what_was_computed(experiment: str, title: str, bounds: Bounds, style: FigureStyle) -> None:
    assert draw(experiment, bounds, style).get_suptitle() == title


@EXPERIMENTS
def test_nothing_overlaps_and_nothing_is_cut_off(experiment: str, bounds: Bounds, style: FigureStyle) -> None:
    check_layout(draw(experiment, bounds, style))


@EXPERIMENTS
def test_bounds_give_the_same_bytes_and_leave_out_other_experiments(
    experiment: str, bounds: Bounds, style: FigureStyle, tmp_path: Path
) -> None:
    write_table(tmp_path / "rows.parquet", pd.concat(bounds.values()), BOUND_ROWS)
    shown = experiment_called(experiment)
    first = render(shown, bounds[experiment], style, tmp_path / "first")
    second = render(shown, read_table(tmp_path / "rows.parquet", BOUND_ROWS), style, tmp_path / "second")
    assert [path.name for path in first] == ["first.png", "first.pdf", "first.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


@EXPERIMENTS
def test_an_unknown_bound_is_named(experiment: str, bounds: Bounds, style: FigureStyle, tmp_path: Path) -> None:
    table = bounds[experiment].replace({"bound": {"lsi": "moments", "composition": "moments"}})
    with pytest.raises(DataError, match=f"the bounds of {experiment} hold 'moments', which has no line"):
        render(experiment_called(experiment), table, style, tmp_path / "figure")


def test_missing_bounds_and_those_of_another_experiment_are_named(
    bounds: Bounds, style: FigureStyle, tmp_path: Path
) -> None:
    recuperation = experiment_called("recuperation")
    with pytest.raises(DataError, match="there are no rows of recuperation"):
        render(recuperation, bounds["recuperation"].iloc[:0], style, tmp_path / "figure")
    with pytest.raises(DataError, match="there are no rows of recuperation"):
        render(recuperation, bounds["dynamics1"], style, tmp_path / "figure")
    assert list(tmp_path.iterdir()) == []
