from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from PIL import Image

from certified_unlearning.errors import DataError, ParameterError, StorageError
from certified_unlearning.figures import FIGURES, render
from certified_unlearning.figures.style import band, looks
from certified_unlearning.parameters import FigureStyle
from certified_unlearning.summaries import summarise

Simulated = Callable[[int], pd.DataFrame]
EXPERIMENTS = pytest.mark.parametrize("experiment", list(FIGURES))
PANELS = {
    "fig3a": {"Test accuracy": ("epsilon_target", "accuracy")},
    "fig3b": {
        "Accumulated steps": ("records_removed", "accumulated_steps"),
        "Test accuracy": ("records_removed", "accuracy"),
    },
    "fig3c": {
        "Unlearning steps K": ("sigma", "unlearning_steps"),
        "Initial epsilon": ("sigma", "initial_epsilon"),
        "Test accuracy": ("sigma", "accuracy"),
    },
}
"""Axis label -> the record columns a panel shows."""


def draw(experiment: str, records: pd.DataFrame, style: FigureStyle) -> Figure:
    return FIGURES[experiment](summarise(records, experiment), style)


def legend_labels(figure: Figure) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def lines(axes: Axes) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {line.get_label(): tuple(np.asarray(v) for v in line.get_data()) for line in axes.get_lines()}


def means(records: pd.DataFrame, x: str, y: str) -> tuple[np.ndarray, np.ndarray]:
    """Positions and means straight from the records, without `summaries`."""
    positions = np.sort(records[x].unique())
    return positions, np.array([np.mean(records.loc[records[x] == value, y]) for value in positions])


def rows_of(records: pd.DataFrame, experiment: str, mechanism: str, variant: str, **columns: object) -> pd.DataFrame:
    chosen = {"experiment": experiment, "mechanism": mechanism, "variant": variant, **columns}
    return records[np.logical_and.reduce([records[name] == value for name, value in chosen.items()])]


def curves(records: pd.DataFrame, experiment: str) -> dict[str, pd.DataFrame]:
    """The records behind every curve of a figure, by the label a reader expects."""
    match experiment:
        case "fig3a":
            descent = ("fig3a", "descent-to-delete", "secret-state")
            return {
                "Langevin, K = 1": rows_of(records, "fig3a", "langevin", "least-sigma"),
                **{
                    f"Descent-to-Delete, I = {steps}, secret state": rows_of(records, *descent, unlearning_steps=steps)
                    for steps in (1, 2, 5)
                },
                "Retraining, noisy": rows_of(records, "fig3a", "retraining", "noisy"),
            }
        case "fig3b":
            langevin = ("fig3b", "langevin", "least-steps")
            return {
                "Descent-to-Delete, state published": rows_of(records, "fig3b", "descent-to-delete", "published-state"),
                **{f"Langevin, S = {s}": rows_of(records, *langevin, records_per_request=s) for s in (5, 10, 20)},
            }
        case _:
            return {
                "Langevin, S = 100": rows_of(records, experiment, "langevin", "least-steps", records_per_request=100)
            }


def check_lines(figure: Figure, records: pd.DataFrame, experiment: str) -> None:
    panels = {axes.get_ylabel(): lines(axes) for axes in figure.axes}
    for name, (x, y) in PANELS[experiment].items():
        for label, rows in curves(records, experiment).items():
            if label.startswith("Retraining") and y != "accuracy":
                continue
            np.testing.assert_allclose(panels[name][label], means(rows, x, y), rtol=1e-12, err_msg=f"{name}: {label}")


@pytest.mark.parametrize("experiment", list(PANELS))
def test_lines_show_the_means_of_the_records(experiment: str, records: pd.DataFrame, style: FigureStyle) -> None:
    check_lines(draw(experiment, records, style), records, experiment)


def test_the_steps_and_accuracies_of_each_group_are_in_figure_4(records: pd.DataFrame, style: FigureStyle) -> None:
    steps, *panels = draw("fig4", records, style).axes
    for size, axes in zip((1, 50, 100), panels, strict=True):
        rows = rows_of(records, "fig4", "langevin", "least-steps", records_removed=size)
        label = f"Langevin, S = {size}"
        np.testing.assert_array_equal(lines(steps)[label], means(rows, "epsilon_target", "unlearning_steps"))
        np.testing.assert_allclose(lines(axes)[label], means(rows, "epsilon_target", "accuracy"), rtol=1e-12)
        for variant in ("noisy", "noiseless"):
            expected = rows_of(records, "fig4", "retraining", variant, records_removed=size)["accuracy"].mean()
            np.testing.assert_allclose(lines(axes)[f"Retraining, {variant}"][1], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("experiment", "variant"),
    [("fig3a", "noiseless"), ("fig3b", "noisy"), ("fig3b", "noiseless"), ("fig3c", "noiseless")],
)
def test_retraining_that_was_not_swept_is_a_level_across_the_panel(
    experiment: str, variant: str, records: pd.DataFrame, style: FigureStyle
) -> None:
    axes = draw(experiment, records, style).axes[-1]
    (line,) = [line for line in axes.get_lines() if line.get_label() == f"Retraining, {variant}"]
    expected = rows_of(records, experiment, "retraining", variant)["accuracy"].mean()
    np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-12)
    assert line.get_transform() == axes.get_yaxis_transform()
    assert (line.get_xdata()[0], line.get_xdata()[-1]) == (0.0, 1.0)


def test_swapped_accuracies_of_two_mechanisms_are_noticed(simulated: Simulated, style: FigureStyle) -> None:
    records = simulated(5)
    swapped = records.copy()
    langevin = rows_of(records, "fig3a", "langevin", "least-sigma", epsilon_target=0.5).index
    descent = rows_of(
        records, "fig3a", "descent-to-delete", "secret-state", epsilon_target=0.5, unlearning_steps=2
    ).index
    swapped.loc[langevin, "accuracy"] = records.loc[descent, "accuracy"].to_numpy()
    swapped.loc[descent, "accuracy"] = records.loc[langevin, "accuracy"].to_numpy()
    with pytest.raises(AssertionError, match="Langevin, K = 1"):
        check_lines(draw("fig3a", swapped, style), records, "fig3a")


def test_the_band_is_the_mean_and_one_sample_standard_deviation(records: pd.DataFrame, style: FigureStyle) -> None:
    (axes,) = draw("fig3a", records, style).axes
    bands = [area.get_paths()[0].vertices for area in axes.collections if isinstance(area, PolyCollection)]
    for vertices, rows in zip(bands, curves(records, "fig3a").values(), strict=True):
        for epsilon, accuracies in rows.groupby("epsilon_target")["accuracy"]:
            mean, std = np.mean(accuracies), np.std(accuracies, ddof=1)
            edges = vertices[vertices[:, 0] == epsilon, 1]
            np.testing.assert_allclose((edges.min(), edges.max()), (mean - std, mean + std), rtol=1e-12)


def test_the_band_stays_between_0_and_1() -> None:
    summary = pd.DataFrame({"accuracy_mean": [0.99, 0.5, 0.01], "accuracy_std": [0.02, 0.1, 0.02]})
    np.testing.assert_allclose(band(summary), ([0.97, 0.4, 0.0], [1.0, 0.6, 0.03]), rtol=1e-12)


@EXPERIMENTS
def test_every_mechanism_of_the_records_is_in_the_legend_once(
    experiment: str, records: pd.DataFrame, style: FigureStyle
) -> None:
    expected = summarise(records, experiment)["label"].unique()
    assert sorted(legend_labels(draw(experiment, records, style))) == sorted(expected)


@EXPERIMENTS
def test_nothing_overlaps_and_nothing_is_cut_off(experiment: str, records: pd.DataFrame, style: FigureStyle) -> None:
    check_layout(draw(experiment, records, style))


def test_labels_of_a_dense_sweep_do_not_overlap(simulated: Simulated, style: FigureStyle) -> None:
    records = simulated(5)
    denser = [
        records.assign(sigma=records["sigma"] * factor, run_key=records["run_key"] + str(factor))
        for factor in (1.1, 1.2, 1.3)
    ]
    swept = pd.concat([records, *(part[part["variant"] != "noiseless"] for part in denser)])
    check_layout(draw("fig3c", swept, style))


def check_layout(figure: Figure) -> None:
    figure.draw_without_rendering()
    legend = figure.legends[0].get_window_extent()
    panels = [axes.get_tightbbox() for axes in figure.axes]
    for one, other in combinations([legend, *panels], 2):
        assert not one.overlaps(other)
    for box in [legend, *panels]:
        assert min(box.x0, box.y0) >= -1  # one pixel of rounding
        assert box.x1 <= figure.bbox.width + 1
        assert box.y1 <= figure.bbox.height + 1
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            boxes = [t.get_window_extent() for t in axis.get_ticklabels() if t.get_visible() and t.get_text()]
            inside = [box for box in boxes if box.width > 0]
            assert not any(one.overlaps(other) for one, other in combinations(inside, 2))


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


def test_lines_of_one_figure_differ_without_colour(simulated: Simulated, style: FigureStyle) -> None:
    for experiment in FIGURES:
        found = looks(summarise(simulated(5), experiment), style).values()
        assert len({(one.marker, one.linestyle) for one in found}) == len(found)


def test_a_mechanism_keeps_its_marker_in_every_figure_and_its_colour_where_it_is_alone(
    simulated: Simulated, style: FigureStyle
) -> None:
    markers: dict[str, set[object]] = {}
    colours: dict[str, set[object]] = {}
    for experiment in FIGURES:
        figure = draw(experiment, simulated(5), style)
        labels = legend_labels(figure)
        for label, line in zip(labels, figure.legends[0].get_lines(), strict=True):
            family = label if label.startswith("Retraining") else label.split(",")[0]
            markers.setdefault(family, set()).add(line.get_marker())
            if sum(other.startswith(family) for other in labels) == 1:
                colours.setdefault(family, set()).add(line.get_color())
    assert len(markers) == 4
    assert all(len(found) == 1 for found in [*markers.values(), *colours.values()])
    assert len(set().union(*markers.values())) == 4


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
    records = simulated(1)
    assert all(path.stat().st_size > 1000 for path in render(experiment, records, style, tmp_path / "figure"))


def test_a_sweep_of_one_point_is_drawn(simulated: Simulated, style: FigureStyle, tmp_path: Path) -> None:
    records = simulated(5)
    render("fig3c", records[records["sigma"].isin([0.0, 0.1])], style, tmp_path / "figure")


@EXPERIMENTS
def test_the_same_records_in_any_order_give_the_same_bytes_whatever_the_users_settings(
    experiment: str, simulated: Simulated, style: FigureStyle, tmp_path: Path
) -> None:
    records = simulated(5)
    first = render(experiment, records, style, tmp_path / "first")
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "pdf.fonttype": 3, "axes.xmargin": 0.3}):
        second = render(experiment, records.sample(frac=1.0, random_state=1), style, tmp_path / "second")
    assert [path.name for path in first] == ["first.png", "first.pdf"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_other_records_give_other_bytes(simulated: Simulated, style: FigureStyle, tmp_path: Path) -> None:
    records = simulated(5)
    moved = records.assign(accuracy=records["accuracy"] * 0.99)
    first = render("fig3a", records, style, tmp_path / "first")
    second = render("fig3a", moved, style, tmp_path / "second")
    assert all(one.read_bytes() != other.read_bytes() for one, other in zip(first, second, strict=True))


def test_png_has_the_resolution_and_pdf_is_vectors_with_truetype_and_no_date(
    simulated: Simulated, style: FigureStyle, tmp_path: Path
) -> None:
    png, pdf = render("fig3b", simulated(5), style, tmp_path / "figure.v1")
    assert (png.name, pdf.name) == ("figure.v1.png", "figure.v1.pdf")
    with Image.open(png) as image:
        assert image.width == round(2 * style.width_inches * style.dots_per_inch)
        assert image.info["dpi"] == pytest.approx((style.dots_per_inch,) * 2, abs=0.1)
    content = pdf.read_bytes()
    assert b"/CIDFontType2" in content
    assert not any(word in content for word in (b"/Type3", b"/Subtype /Image", b"/CreationDate", b"/ModDate"))


def test_no_figure_stays_open_in_pyplot(simulated: Simulated, style: FigureStyle) -> None:
    before = dict(mpl.rcParams)
    draw("fig4", simulated(5), style)
    assert plt.get_fignums() == []
    assert dict(mpl.rcParams) == before


def test_a_figure_that_cannot_be_written_leaves_the_old_one(
    simulated: Simulated, style: FigureStyle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = render("fig3a", simulated(5), style, tmp_path / "figure")
    before = [path.read_bytes() for path in paths]

    def full_disk(figure: Figure, path: Path, **settings: object) -> None:
        path.write_bytes(b"half a figure")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full_disk)
    with pytest.raises(StorageError, match="No space left"):
        render("fig3a", simulated(5), style, tmp_path / "figure")
    assert [path.read_bytes() for path in paths] == before
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_unknown_figures_palettes_and_missing_records_are_named(
    simulated: Simulated, style: FigureStyle, tmp_path: Path
) -> None:
    records = simulated(5)
    with pytest.raises(ParameterError, match="no figure 'fig9'; known are fig3a"):
        render("fig9", records, style, tmp_path / "figure")
    with pytest.raises(ParameterError, match=r"figures\.palette is 'colourblind'"):
        render("fig3a", records, style.model_copy(update={"palette": "colourblind"}), tmp_path / "figure")
    with pytest.raises(DataError, match="no experiment fig4, only fig3a"):
        render("fig4", records[records["experiment"] == "fig3a"], style, tmp_path / "figure")
    assert list(tmp_path.iterdir()) == []
