from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from PIL import Image

from certified_unlearning.errors import DataError, ParameterError, StorageError
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures.drawing import render
from certified_unlearning.reproduction.figures.style import band
from certified_unlearning.reproduction.summaries import summarise
from tests.reproduction.figures.figure_reading import (
    ACCOUNTANTS,
    BOUNDS,
    FIGURES,
    NOISELESS,
    bands_of_legend,
    check_layout,
    draw,
    expected,
    legend,
    lines,
    rows_of,
)
from tests.reproduction.row_names import named, names_of
from tests.support.planning import ANEW, experiment_called, make, settings_of, sweep_of

pytestmark = pytest.mark.sampled

Simulated = Callable[[int], pd.DataFrame]
DATA = {
    "features": "pixels", "n": 11982, "d": 784, "classes": {"train": {"-1": 5851, "+1": 6131}},
    "largest_eigenvalue": 0.7308741769, "sha256": "0" * 64,
}  # fmt: skip
EXPERIMENTS = pytest.mark.parametrize("experiment", FIGURES)
SUBSETS = pytest.mark.parametrize("subset", [("lsi",), ("shifted",), ("lsi-tight", "shifted")], ids="+".join)


def of_accountants(records: pd.DataFrame, subset: tuple[str, ...]) -> pd.DataFrame:
    """The records of a run whose sweeps list only these accountants."""
    return records[~records["accountant"].isin(set(ACCOUNTANTS) - set(subset))]


def shuffled(records: pd.DataFrame) -> pd.DataFrame:
    """The records in another order, mechanism after mechanism and variant after variant as before."""
    return records.sample(frac=1.0, random_state=1).sort_values(
        ["mechanism", "variant"],
        key=lambda column: column.map(list(records[column.name].unique()).index),
        kind="stable",
    )


def check_lines(figure: Figure, records: pd.DataFrame, experiment: str) -> None:
    for axes, curves in zip(figure.axes, expected(records, experiment), strict=True):
        found = lines(axes)
        assert sorted(found) == sorted(curves)
        for label, curve in curves.items():
            np.testing.assert_allclose(found[label], curve, rtol=1e-12, err_msg=label)


@EXPERIMENTS
def test_the_runs_of_these_tests_have_the_names_of_real_ones(experiment: str) -> None:
    plan = make(experiment, settings_of("smoke"), sweep_of("smoke", experiment), DATA)
    for run in plan.runs:
        last = run.requests[-1]
        assert run.model_dump(include={"method", "member", "line", "point"}) == names_of(
            run.model_dump() | last.model_dump()
        )


@EXPERIMENTS
def test_every_panel_shows_the_means_of_the_records_and_nothing_else(
    experiment: str, records: pd.DataFrame, style: FigureStyle
) -> None:
    check_lines(draw(experiment, records, style), records, experiment)


@pytest.mark.parametrize(("experiment", "count"), [("fig3a", 3), ("fig3b", 4), ("fig3c", 3), ("fig4", 4)])
def test_what_learns_anew_and_was_not_swept_is_a_level_across_the_panel(
    experiment: str, count: int, simulated: Simulated, style: FigureStyle
) -> None:
    axes = draw(experiment, simulated(5), style).axes[-1]
    levels = [line for line in axes.get_lines() if line.get_transform() == axes.get_yaxis_transform()]
    guessed = ["majority"] if experiment == "fig3a" else []
    assert [line.get_label() for line in levels] == ["Retraining, noisy", *NOISELESS][-count:] + guessed


def test_swapped_accuracies_of_two_mechanisms_are_noticed(simulated: Simulated, style: FigureStyle) -> None:
    records = simulated(5)
    swapped = records.copy()
    unlearned = rows_of(records, "fig3a", "langevin", accountant="lsi", epsilon_target=0.5).index
    descent = ("fig3a", "descent-to-delete")
    deleted = rows_of(
        records, *descent, accountant="descent-to-delete N.1", epsilon_target=0.5, unlearning_steps=2
    ).index
    swapped.loc[unlearned, "accuracy"] = records.loc[deleted, "accuracy"].to_numpy()
    swapped.loc[deleted, "accuracy"] = records.loc[unlearned, "accuracy"].to_numpy()
    with pytest.raises(AssertionError, match=r"Langevin \(lsi\), K = 1"):
        check_lines(draw("fig3a", swapped, style), records, "fig3a")


def test_swapped_steps_of_two_accountants_are_noticed(simulated: Simulated, style: FigureStyle) -> None:
    records = simulated(5)
    names = {"lsi": "shifted", "shifted": "lsi"}
    swapped = named(records.assign(accountant=records["accountant"].replace(names)))
    with pytest.raises(AssertionError, match=r"Langevin \(lsi\), S = 50"):
        check_lines(draw("fig4", swapped, style), records, "fig4")


def test_a_warm_start_that_is_taken_for_a_fit_from_zero_is_noticed(simulated: Simulated, style: FigureStyle) -> None:
    records = simulated(5)
    names = {"from zero": "warm start", "warm start": "from zero"}
    swapped = named(records.assign(variant=records["variant"].replace(names)))
    with pytest.raises(AssertionError, match="scikit-learn, from zero"):
        check_lines(draw("fig3b", swapped, style), records, "fig3b")


def test_the_band_is_the_mean_and_one_sample_standard_deviation(records: pd.DataFrame, style: FigureStyle) -> None:
    axes = draw("fig3a", records, style).axes[0]
    bands = [area.get_paths()[0].vertices for area in axes.collections if isinstance(area, PolyCollection)]
    banded = [
        rows_of(records, "fig3a", mechanism, accountant=accountant)
        for mechanism in ("retraining", "langevin")
        for accountant in ACCOUNTANTS
    ]
    for vertices, rows in zip(bands, banded, strict=True):
        for epsilon, accuracies in rows.groupby("epsilon_target")["accuracy"]:
            mean, std = np.mean(accuracies), np.std(accuracies, ddof=1)
            edges = vertices[vertices[:, 0] == epsilon, 1]
            np.testing.assert_allclose((edges.min(), edges.max()), (mean - std, mean + std), rtol=1e-12)


@EXPERIMENTS
def test_every_accuracy_that_was_measured_for_its_panel_has_a_band(
    experiment: str, simulated: Simulated, style: FigureStyle
) -> None:
    for axes in draw(experiment, simulated(5), style).axes:
        shown = set(lines(axes))
        if axes.get_yscale() == "linear":
            is_reference = any(label.startswith("Descent") for label in shown) and experiment == "fig3a"
            bands = len(axes.collections) + len(axes.patches)
            assert bands == len(shown) - is_reference


@EXPERIMENTS
def test_the_legend_says_what_bands_are_and_of_how_many_trials(
    experiment: str, simulated: Simulated, style: FigureStyle
) -> None:
    assert bands_of_legend(draw(experiment, simulated(5), style)) == ["± 1 standard deviation of 5 trials"]
    assert bands_of_legend(draw(experiment, simulated(1), style)) == []


def test_the_band_stays_between_0_and_1() -> None:
    summary = pd.DataFrame({"accuracy_mean": [0.99, 0.5, 0.01], "accuracy_std": [0.02, 0.1, 0.02]})
    np.testing.assert_allclose(band(summary), ([0.97, 0.4, 0.0], [1.0, 0.6, 0.03]), rtol=1e-12)


@EXPERIMENTS
def test_nothing_overlaps_and_nothing_is_cut_off(experiment: str, records: pd.DataFrame, style: FigureStyle) -> None:
    check_layout(draw(experiment, records, style))


@EXPERIMENTS
@pytest.mark.parametrize("guessed", [0.6, 0.78, 0.95])
def test_what_guessing_gets_right_is_seen_above_all_accuracies_too(
    experiment: str, guessed: float, simulated: Simulated, style: FigureStyle
) -> None:
    records = simulated(5)
    lower = records.assign(accuracy=0.5 + 0.3 * records["accuracy"], majority=guessed)
    figure = draw(experiment, lower, style)
    check_layout(figure)
    for axes in figure.axes:
        for line in axes.get_lines():
            if line.get_label() == "majority":
                assert axes.get_ylim()[0] <= guessed <= axes.get_ylim()[1]


@SUBSETS
@EXPERIMENTS
def test_a_sweep_of_some_accountants_only_is_drawn_and_keyed(
    experiment: str, subset: tuple[str, ...], simulated: Simulated, style: FigureStyle
) -> None:
    records = of_accountants(simulated(5), subset)
    figure = draw(experiment, records, style)
    shown = {label for axes in figure.axes for label in lines(axes)}
    assert shown == set(summarise(records, experiment)["label"])
    assert [name for name in legend(figure) if name.startswith("Langevin")] == [
        f"Langevin, {BOUNDS[a]} ({a})" for a in subset
    ]
    check_layout(figure)


@pytest.mark.parametrize(("experiment", "most"), [("fig3b", 26_529), ("fig3c", 1738), ("fig4", 4461)])
def test_no_steps_are_seen_beside_thousands(
    experiment: str, most: int, simulated: Simulated, style: FigureStyle
) -> None:
    figure = draw(experiment, simulated(5), style)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    labels = {label.get_text(): label.get_position()[1] for label in axes.get_yticklabels()}
    assert (labels["0"], labels["1"], labels["1,000"]) == (0, 1, 1000)
    shown = np.concatenate(
        [y for panel in figure.axes if panel.get_yscale() == "symlog" for _, y in lines(panel).values()]
    )
    assert (shown.min(), shown.max()) == (0, most)
    heights = axes.transData.transform([(1, value) for value in (0, 1, 10, 100, 1000)])[:, 1]
    points = (heights - axes.bbox.y0) / figure.dpi * 72
    assert points[0] > 3  # the marker of 0 steps clears the axis ...
    assert points[1] - points[0] > 4  # ... and that of 1 step
    assert np.ptp(np.diff(points)[1:]) == pytest.approx(0, abs=1e-6)  # decades have equal height


@pytest.mark.parametrize(
    ("experiment", "steps", "names"),
    [
        ("fig3b", "Accumulated steps", ("S = 1", "S = 5", "S = 10", "S = 20")),
        ("fig4", "Unlearning steps K", ("S = 1", "S = 50", "S = 100")),
    ],
    ids=["fig3b", "fig4"],
)
def test_a_column_for_each_number_of_records_is_labelled_at_the_outside_only(
    experiment: str, steps: str, names: tuple[str, ...], simulated: Simulated, style: FigureStyle
) -> None:
    figure = draw(experiment, simulated(5), style)
    above, below = figure.axes[: len(names)], figure.axes[len(names) :]
    assert [axes.get_title().partition("\n")[0] for axes in above] == list(names)
    assert [axes.get_title() for axes in below] == [""] * len(names)
    for row, label in ((above, steps), (below, "Test accuracy")):
        for number, axes in enumerate(row):
            assert axes.get_ylabel() == (label if number == 0 else "")
            assert any(tick.label1.get_visible() for tick in axes.yaxis.get_major_ticks()) == (number == 0)
            assert any(tick.label1.get_visible() for tick in axes.xaxis.get_major_ticks()) == (row is below)
            assert bool(axes.get_xlabel()) == (row is below)


def test_no_panel_of_fig3b_has_two_lines_of_one_hue_but_for_levels(simulated: Simulated, style: FigureStyle) -> None:
    for axes in draw("fig3b", simulated(5), style).axes:
        hues = [line.get_color() for line in axes.get_lines() if line.get_transform() == axes.transData]
        assert len(set(hues)) == len(hues) <= 5


def test_fig3b_writes_the_total_at_the_end_of_each_stream(simulated: Simulated, style: FigureStyle) -> None:
    figure = draw("fig3b", simulated(5), style)
    written = [{text.get_text() for text in axes.texts} for axes in figure.axes[:4]]
    assert written == [
        {"12,476", "3,100"},
        {"26,529", "9,705", "245"},
        {"11,756", "6,780", "200"},
        {"6,806", "4,401", "150"},
    ]


def test_five_groups_have_five_columns(simulated: Simulated, style: FigureStyle) -> None:
    records = simulated(5).query("experiment == 'fig4'")
    largest = records[records["records_removed"] == 100]
    more = [
        largest.assign(records_removed=size, records_per_request=size, run_key=largest["run_key"] + str(size))
        for size in (10, 20)
    ]
    figure = draw("fig4", named(pd.concat([records, *more])), style)
    assert [axes.get_title() for axes in figure.axes[:5]] == ["S = 1", "S = 10", "S = 20", "S = 50", "S = 100"]
    check_layout(figure)


@pytest.mark.parametrize("epsilons", [(1.0,), (0.5, 1.0), (0.5, 1.0, 2.0, 3.0, 5.0)])
def test_every_epsilon_has_a_panel_of_its_own(
    epsilons: tuple[float, ...], simulated: Simulated, style: FigureStyle
) -> None:
    records = simulated(5).query("experiment == 'fig5a'")
    like = records[(records["mechanism"] == "langevin") & (records["epsilon_target"] == 1.0)]
    swept = [like.assign(epsilon_target=epsilon, run_key=like["run_key"] + str(epsilon)) for epsilon in epsilons]
    figure = draw("fig5a", named(pd.concat([*swept, records[records["mechanism"].isin(ANEW)]])), style)
    assert [axes.get_title() for axes in figure.axes] == [f"ε = {epsilon:g}" for epsilon in epsilons]
    assert figure.get_figwidth() == pytest.approx(style.width_inches * 2)
    assert figure.axes[0].get_ylabel() == "Test accuracy"
    assert figure.axes[-1].get_xlabel() == "Records removed"
    assert figure.axes[0].get_xscale() == "log"
    check_layout(figure)


def test_every_point_of_fig5a_names_its_epsilon_and_its_number_of_records(simulated: Simulated) -> None:
    points = summarise(simulated(5), "fig5a")["point"]
    assert points.is_unique
    assert len(points) == 6 * (3 * 4 + 4)
    assert {
        "Langevin (lsi), epsilon = 0.5, S = 1",
        "Langevin (shifted), epsilon = 5, S = 1000",
        "Retraining, noisy, S = 10",
        "Retraining, noiseless, S = 500",
        "scikit-learn, from zero, S = 1",
        "scikit-learn, warm start, S = 1000",
    } <= set(points)


def test_swapped_groups_of_two_epsilons_are_noticed(simulated: Simulated, style: FigureStyle) -> None:
    records = simulated(5)
    swapped = named(records.assign(epsilon_target=records["epsilon_target"].replace({0.5: 1.0, 1.0: 0.5})))
    with pytest.raises(AssertionError, match=r"Langevin \(lsi\), epsilon = 0\.5"):
        check_lines(draw("fig5a", swapped, style), records, "fig5a")


def test_few_steps_have_ticks_of_their_own(simulated: Simulated, style: FigureStyle) -> None:
    axes = draw("fig4", of_accountants(simulated(5), ("shifted",)), style).axes[0]
    bottom, top = axes.get_ylim()
    assert [tick for tick in axes.get_yticks() if bottom <= tick <= top] == [0, 1, 2, 5, 10, 20, 50, 100]


def test_labels_of_a_dense_sweep_do_not_overlap(simulated: Simulated, style: FigureStyle) -> None:
    records = simulated(5)
    denser = [
        records.assign(sigma=records["sigma"] * factor, run_key=records["run_key"] + str(factor))
        for factor in (1.1, 1.2, 1.3)
    ]
    swept = pd.concat([records, *(part[part["sigma"] > 0] for part in denser)])
    check_layout(draw("fig3c", named(swept), style))


@EXPERIMENTS
def test_all_data_are_inside_their_panel(experiment: str, simulated: Simulated, style: FigureStyle) -> None:
    records = simulated(5)
    largest = records["records_removed"] == records["records_removed"].max()
    records = records.assign(accuracy=records["accuracy"] - np.where(largest, 0.3, 0.0))
    for axes in draw(experiment, records, style).axes:
        bottom, top = axes.get_ylim()
        for label, (_, y) in lines(axes).items():
            assert bottom <= y.min(), label
            assert y.max() <= top, label


@EXPERIMENTS
def test_the_title_names_the_data_set_and_n(experiment: str, simulated: Simulated, style: FigureStyle) -> None:
    assert draw(experiment, simulated(5), style).get_suptitle().endswith("\nMNIST 3 vs 8, n = 11,982")


def test_an_accuracy_axis_does_not_blow_up_noise(simulated: Simulated, style: FigureStyle) -> None:
    records = simulated(5)
    records = records.assign(accuracy=0.9 + 1e-4 * records["trial"])
    bottom, top = draw("fig3a", records, style).axes[0].get_ylim()
    assert top - bottom == pytest.approx(0.02)


@EXPERIMENTS
def test_a_single_trial_is_drawn_without_spread(
    experiment: str, simulated: Simulated, style: FigureStyle, tmp_path: Path
) -> None:
    paths = render(experiment_called(experiment), simulated(1), style, tmp_path / "figure")
    assert all(path.stat().st_size > 1000 for path in paths)


def test_a_sweep_of_one_point_is_drawn(simulated: Simulated, style: FigureStyle, tmp_path: Path) -> None:
    records = simulated(5)
    render(experiment_called("fig3c"), records[records["sigma"].isin([0.0, 0.1])], style, tmp_path / "figure")


@EXPERIMENTS
def test_the_same_records_in_any_order_give_the_same_bytes_whatever_the_users_settings(
    experiment: str, simulated: Simulated, style: FigureStyle, tmp_path: Path
) -> None:
    records = simulated(5)
    shown = experiment_called(experiment)
    first = render(shown, records, style, tmp_path / "first")
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "pdf.fonttype": 3, "axes.xmargin": 0.3}):
        second = render(shown, shuffled(records), style, tmp_path / "second")
    assert [path.name for path in first] == ["first.png", "first.pdf", "first.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_other_records_give_other_bytes(simulated: Simulated, style: FigureStyle, tmp_path: Path) -> None:
    records = simulated(5)
    moved = records.assign(accuracy=records["accuracy"] * 0.99)
    first = render(experiment_called("fig3a"), records, style, tmp_path / "first")
    second = render(experiment_called("fig3a"), moved, style, tmp_path / "second")
    assert all(one.read_bytes() != other.read_bytes() for one, other in zip(first, second, strict=True))


def test_png_has_the_resolution_and_pdf_and_svg_are_vectors_without_a_date(
    simulated: Simulated, style: FigureStyle, tmp_path: Path
) -> None:
    png, pdf, svg = render(experiment_called("fig3b"), simulated(5), style, tmp_path / "figure.v1")
    assert (png.name, pdf.name, svg.name) == ("figure.v1.png", "figure.v1.pdf", "figure.v1.svg")
    with Image.open(png) as image:
        assert image.width == round(2 * style.width_inches * style.dots_per_inch)
        assert image.info["dpi"] == pytest.approx((style.dots_per_inch,) * 2, abs=0.1)
    content = pdf.read_bytes()
    assert b"/CIDFontType2" in content
    assert not any(word in content for word in (b"/Type3", b"/Subtype /Image", b"/CreationDate", b"/ModDate"))
    drawn = svg.read_bytes()
    assert b"<path" in drawn
    assert not any(word in drawn for word in (b"<image", b"<text", b"<dc:date>"))


def test_no_figure_stays_open_in_pyplot(simulated: Simulated, style: FigureStyle) -> None:
    before = dict(mpl.rcParams)
    draw("fig4", simulated(5), style)
    assert plt.get_fignums() == []
    assert dict(mpl.rcParams) == before


def test_a_figure_that_cannot_be_written_leaves_the_old_one(
    simulated: Simulated, style: FigureStyle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = render(experiment_called("fig3a"), simulated(5), style, tmp_path / "figure")
    before = [path.read_bytes() for path in paths]

    def full_disk(figure: Figure, path: Path, **settings: object) -> None:
        path.write_bytes(b"half a figure")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full_disk)
    with pytest.raises(StorageError, match="No space left"):
        render(experiment_called("fig3a"), simulated(5), style, tmp_path / "figure")
    assert [path.read_bytes() for path in paths] == before
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_unknown_figures_palettes_and_missing_records_are_named(
    simulated: Simulated, style: FigureStyle, tmp_path: Path
) -> None:
    records = simulated(5)
    fig3a, table = experiment_called("fig3a"), experiment_called("table1")
    with pytest.raises(ParameterError, match="table1 has no figure"):
        render(table, records, style, tmp_path / "figure")
    with pytest.raises(ParameterError, match=r"figures\.fig3a:paint names nothing: the module .* has no paint"):
        render(replace(fig3a, draw=fig3a.draw.replace(":draw", ":paint")), records, style, tmp_path / "figure")
    with pytest.raises(ParameterError, match=r"figures\.palette is 'colourblind'"):
        render(fig3a, records, style.model_copy(update={"palette": "colourblind"}), tmp_path / "figure")
    with pytest.raises(DataError, match="no experiment fig4, only fig3a"):
        render(experiment_called("fig4"), records[records["experiment"] == "fig3a"], style, tmp_path / "figure")
    assert list(tmp_path.iterdir()) == []
