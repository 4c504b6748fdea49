"""Lines can be told apart, with normal sight, with colour blindness and in print, and keep their look."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.accounting.accountant import Accountant
from certified_unlearning.accounting.accountants import ACCOUNTANTS
from certified_unlearning.errors import ParameterError
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import looks as looks_module
from certified_unlearning.reproduction.figures.looks import Look, accountant_look, looks, row_look
from certified_unlearning.reproduction.summaries import summarise
from tests.reproduction.figures.figure_reading import FIGURES, NOISELESS, REFITS, draw, in_legend, legend
from tests.reproduction.row_names import named

pytestmark = pytest.mark.sampled

Simulated = Callable[[int], pd.DataFrame]
EXPERIMENTS = pytest.mark.parametrize("experiment", FIGURES)
LANGEVIN = ("Langevin (lsi)", "Langevin (lsi-tight)", "Langevin (shifted)")
DESCENT = ("Descent-to-Delete (printed)", "Descent-to-Delete (tightened)")
RETRAINING = ("Retraining, noisy", "Retraining, noiseless")
ANEW = (*RETRAINING, *REFITS)
ROWS = {
    name: {"mechanism": mechanism, "variant": variant, "accountant": accountant, "sigma": sigma}
    for name, mechanism, variant, accountant, sigma in (
        ("Langevin (lsi)", "langevin", "least-steps", "lsi", 0.1),
        ("Langevin (lsi-tight)", "langevin", "least-steps", "lsi-tight", 0.1),
        ("Langevin (shifted)", "langevin", "least-steps", "shifted", 0.1),
        ("Descent-to-Delete (printed)", "descent-to-delete", "secret-state", "descent-to-delete N.1", 0.1),
        ("Descent-to-Delete (tightened)", "descent-to-delete", "secret-state", "descent-to-delete shifted", 0.1),
        ("Retraining, noisy", "retraining", "noisy", "none", 0.1),
        ("Retraining, noiseless", "retraining", "noiseless", "none", 0.0),
    )
}
COLUMNS = {"fig3b": "records_per_request", "fig4": "records_removed", "fig5a": "epsilon_target"}
"""What figures have a panel for, each."""
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
"""Matrices that linear red, green and blue are mapped by (Machado, Oliveira and Fernandes 2009, severity 1)."""


def method_look(name: str, style: FigureStyle) -> Look:
    return row_look(ROWS[name], style)


def cielab(colour: tuple[float, float, float], sight: str) -> np.ndarray:
    """Coordinates in which distance is perceived difference (CIE 1976, white point D65)."""
    channels = np.array(colour)
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    seen = np.clip(SIGHT[sight] @ linear, 0, 1)
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    )
    relative = to_xyz @ seen / np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.where(relative > 216 / 24389, np.cbrt(relative), (24389 / 27 * relative + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", list(SIGHT))
def test_methods_differ_in_colour_whatever_the_sight(sight: str, style: FigureStyle) -> None:
    colours = {name: method_look(name, style).color for name in (*LANGEVIN, *DESCENT, *RETRAINING)}
    for one, other in combinations(colours, 2):
        difference = np.linalg.norm(cielab(colours[one], sight) - cielab(colours[other], sight))
        assert difference > 20, (one, other)  # ten times what is just noticed


def test_red_and_green_would_fail_that_check() -> None:
    red, green = (0.8, 0.25, 0.0), (0.45, 0.45, 0.0)
    assert np.linalg.norm(cielab(red, "normal") - cielab(green, "normal")) > 50
    assert np.linalg.norm(cielab(red, "protanopia") - cielab(green, "protanopia")) < 20


@EXPERIMENTS
def test_lines_of_one_figure_differ_without_colour(experiment: str, simulated: Simulated, style: FigureStyle) -> None:
    summary = summarise(simulated(5), experiment)
    found = looks(summary, style, dashed=experiment not in COLUMNS)
    for _, panel in summary.groupby(COLUMNS.get(experiment, "experiment")):
        # Retraining with an accountant's noise lies below that accountant's line and needs no look of its own.
        labels = [label for label in panel["label"].unique() if not label.startswith("Retraining, noisy (")]
        drawn = [found[label] for label in labels]
        assert len({(look.marker, look.dashes, look.size) for look in drawn}) == len(drawn)


@EXPERIMENTS
def test_every_method_is_in_the_legend_once_and_every_member_where_there_are_several(
    experiment: str, simulated: Simulated, style: FigureStyle
) -> None:
    methods = dict.fromkeys(FIGURES, LANGEVIN) | dict.fromkeys(("fig3a", "fig3b"), LANGEVIN + DESCENT)
    members = {
        "fig3a": ("I = 1", "I = 2", "I = 5"),
    }
    figure = draw(experiment, simulated(5), style)
    names = tuple(map(in_legend, methods[experiment]))
    assert tuple(legend(figure)) == names + ANEW + members.get(experiment, ())


def test_members_begin_a_column_of_their_own_in_the_legend(simulated: Simulated, style: FigureStyle) -> None:
    figure = draw("fig3a", simulated(5), style)
    figure.draw_without_rendering()
    left = {text.get_text(): text.get_window_extent().x0 for text in figure.legends[0].get_texts()}
    members = {left[f"I = {steps}"] for steps in (1, 2, 5)}
    assert len(members) == 1
    assert members.pop() > max(left[name] for name in (*map(in_legend, (*LANGEVIN, *DESCENT)), *ANEW)) + 50


@EXPERIMENTS
def test_the_legend_shows_the_hue_and_marker_and_the_dashes_of_the_lines(
    experiment: str, simulated: Simulated, style: FigureStyle
) -> None:
    figure = draw(experiment, simulated(5), style)
    key = legend(figure)
    for axes in figure.axes:
        for line in axes.get_lines():
            label = line.get_label()
            parts = label.split(", ")
            if parts[0] in ("Retraining", "majority"):
                continue
            if (
                experiment == "fig3b"
                and parts[0] in DESCENT
                and axes.get_title().partition("\n")[0] not in ("", "S = 1")
            ):
                assert (line.get_color(), line.get_marker()) == (key[in_legend(label)].get_color(), "")  # a thin repeat
                continue
            entry = key[label if label in REFITS else in_legend(label)]
            assert (line.get_color(), line.get_marker()) == (entry.get_color(), entry.get_marker())
            assert line.get_markersize() == entry.get_markersize()
            if label in REFITS:
                assert dashes_of(line) == pytest.approx(dashes_of(entry))
            elif parts[1] in key:
                assert dashes_of(line) == pytest.approx(dashes_of(key[parts[1]]))


def dashes_of(line: object) -> list[float]:
    offset, pattern = line._unscaled_dash_pattern
    return [offset, *(pattern or [])]


def test_a_method_keeps_its_look_in_every_figure(simulated: Simulated, style: FigureStyle) -> None:
    seen: dict[str, set[object]] = {}
    for experiment in FIGURES:
        for name, line in legend(draw(experiment, simulated(5), style)).items():
            look = (line.get_color(), line.get_marker(), line.get_markersize(), line.get_linewidth())
            seen.setdefault(name, set()).add(look)
    assert {name for name in seen if " = " not in name} == {*map(in_legend, (*LANGEVIN, *DESCENT)), *ANEW}
    assert all(len(found) == 1 for found in seen.values())


def test_what_adds_no_noise_is_black_without_markers_and_told_apart_by_its_dashes(
    simulated: Simulated, style: FigureStyle
) -> None:
    for experiment in FIGURES:
        key = legend(draw(experiment, simulated(5), style))
        found = [key[name] for name in NOISELESS]
        assert len({line.get_color() for line in found}) == 1
        assert {line.get_marker() for line in found} == {""}
        assert [line.is_dashed() for line in found] == [False, True, True]
        dotted, dash_dotted = (dashes_of(line)[1:] for line in found[1:])
        assert (len(dotted), len(dash_dotted)) == (2, 4)
        assert dotted[0] < 0.5 * dash_dotted[0]


def test_retraining_lies_below_the_line_of_its_accountant_in_a_paler_hue(style: FigureStyle) -> None:
    for name in LANGEVIN:
        above, below = (row_look(ROWS[name] | {"mechanism": each}, style) for each in ("langevin", "retraining"))
        assert below.layer < above.layer
        assert below.size > 2 * above.size
        assert below.color == pytest.approx([0.5 + 0.5 * channel for channel in above.color])


def test_later_accountants_are_drawn_over_earlier_ones_with_smaller_markers(style: FigureStyle) -> None:
    for names in (LANGEVIN, DESCENT):
        found = [method_look(name, style) for name in names]
        assert sorted(found, key=lambda look: look.layer) == found
        assert sorted(found, key=lambda look: -look.marker_size) == found


def test_the_least_member_of_every_letter_is_solid(simulated: Simulated, style: FigureStyle) -> None:
    found = looks(summarise(simulated(5), "fig3a"), style)
    solid = {label.split(", ")[1] for label, look in found.items() if look.dashes == "-" and " = " in label}
    assert solid == {"K = 1", "I = 1"}


def test_more_members_than_dashes_begin_anew(simulated: Simulated, style: FigureStyle) -> None:
    stream = simulated(5).query("experiment == 'fig3b' and accountant == 'shifted' and records_per_request == 20")
    sizes = named(pd.concat([stream.assign(records_per_request=s, run_key=str(s)) for s in range(2, 9)]))
    found = list(looks(summarise(sizes, "fig3b"), style).values())
    assert found[6].dashes == found[0].dashes
    assert len({look.dashes for look in found}) == 6


def test_accountants_that_do_not_say_how_their_lines_look_get_looks_that_are_free(
    style: FigureStyle, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = [Accountant(name, name, "langevin", {}) for name in ("first", "second")]
    monkeypatch.setattr(looks_module, "ACCOUNTANTS", ACCOUNTANTS | {each.name: each for each in new})
    found = {each.form: accountant_look(each, style) for each in (*ACCOUNTANTS.values(), *new)}
    assert len({look.marker for look in found.values()}) == len(found)
    assert len({look.color for look in found.values()}) == len(found)


def test_an_unknown_palette_is_named(style: FigureStyle) -> None:
    with pytest.raises(ParameterError, match=r"figures\.palette is 'colourblind', but must be a seaborn palette"):
        method_look("Langevin (lsi)", style.model_copy(update={"palette": "colourblind"}))
