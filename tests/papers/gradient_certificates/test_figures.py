"""Figures of certified predictions: every panel, line and level that the rows have, and uncertainty that is named."""

import itertools

import pandas as pd
import pytest

from certified_unlearning.papers.gradient_certificates.figures import batches, fine_tuning, head, regions
from certified_unlearning.reproduction.figure_style import FigureStyle

STYLE = FigureStyle(context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=50)
MODES = ("unlearning", "privacy")
SHARE = {"share": 0.8, "share_std": 0.05, "accuracy": 0.9, "accuracy_std": 0.01, "trials": 3}


def entries(figure) -> set[str]:
    (legend,) = figure.legends
    return {text.get_text() for text in legend.get_texts()} - {""}


def test_regions_have_a_panel_for_each_cloud_level_and_mode_and_a_colour_for_each_k():
    rows = pd.DataFrame(
        [
            {"data": data, "mode": mode, "gamma": gamma, "x": x, "y": y, "predicted": int(x > 0), "radius": radius}
            for data, mode, gamma in itertools.product(("near", "far"), MODES, (0.04, 0.08))
            for x, y, radius in ((-1.0, -1.0, 0), (-1.0, 1.0, 5), (1.0, -1.0, 5), (1.0, 1.0, 50))
        ]
    )
    figure = regions.draw(rows, STYLE)
    assert len(figure.axes) == 8
    assert entries(figure) == {"not certified", "k = 5", "k = 50", "boundary of classes"}
    # Row and column of the picture are y and x: at (-1, 1), above to the left, k is 5.
    (image,) = figure.axes[0].images
    assert image.get_array().tolist() == [[0, 1], [1, 2]]


def test_a_region_with_one_class_only_has_no_boundary():
    rows = pd.DataFrame(
        [
            {"data": "near", "mode": mode, "gamma": 1.0, "x": x, "y": y, "predicted": 1, "radius": 0}
            for mode, x, y in itertools.product(MODES, (0.0, 1.0), (0.0, 1.0))
        ]
    )
    assert len(regions.draw(rows, STYLE).axes) == 2


@pytest.fixture
def of_batches():
    return pd.DataFrame(
        [
            {**SHARE, "data": "near", "mode": mode, "depth": depth, "batch_size": size, "k": 2, "wanted": 0.9}
            | {"share": share}
            for mode in MODES
            for depth, size, share in ((0, 100, 0.5), (0, 200, 0.95), (1, 100, 0.1), (1, 200, 0.2))
        ]
    )


def test_batches_have_a_line_for_each_depth_and_the_least_that_certifies_enough(of_batches):
    assert batches.least_batches(of_batches).to_dict() == {0: 200}
    figure = batches.draw(of_batches, STYLE)
    unlearning, privacy, least = figure.axes
    assert len(unlearning.lines) == len(privacy.lines) == 2 + 1  # and what is wanted
    assert [list(line.get_ydata()) for line in least.lines] == [[200], [200]]
    assert "± 1 standard deviation of 3 trials" in entries(figure)


def test_fine_tuning_has_a_line_for_each_level_and_accuracies_beside_those_before():
    rows = pd.DataFrame(
        [
            {**SHARE, "data": "digits", "new_class": "9", "accuracy_before": 0.5, "mode": mode, "gamma": gamma, "k": k}
            for mode, gamma, k in itertools.product(MODES, (0.1, 0.2, 0.4), (1, 2))
        ]
    )
    figure = fine_tuning.draw(rows, STYLE)
    assert [len(axes.lines) for axes in figure.axes[:2]] == [3, 3]
    assert figure.axes[2].get_ylabel() == "Test accuracy of 9"
    assert {"γ = 0.1", "γ = 0.2", "γ = 0.4", "before fine-tuning"} < entries(figure)


def test_a_head_has_bounds_of_accuracy_for_each_k_along_epochs():
    rows = pd.DataFrame(
        [
            {**SHARE, "data": "digits", "mode": mode, "epochs": epochs, "k": k}
            | {"least_accuracy": 0.9 - k / 10, "largest_accuracy": 1.0}
            for mode, epochs, k in itertools.product(MODES, (1, 2), (1, 5))
        ]
    )
    figure = head.draw(rows, STYLE)
    shares, along = figure.axes
    assert len(shares.containers) == 2
    assert len(along.collections) >= 2
    assert entries(figure) == {*MODES, "accuracy", "bounds for k = 1", "bounds for k = 5"}
