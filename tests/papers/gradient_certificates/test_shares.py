"""Certified shares: rows follow their cases, fall with k, and every k means what it says."""

import re

import pytest
import torch

from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.certified_sgd.sgd import CertifiedSgd
from certified_unlearning.papers.gradient_certificates.figures.shares import draw
from certified_unlearning.papers.gradient_certificates.findings import shares
from certified_unlearning.papers.gradient_certificates.learning import CHANGES, certified, learned, uniform_start
from certified_unlearning.papers.gradient_certificates.sweeps import Case, Shares
from certified_unlearning.papers.gradient_certificates.tables.shares import shares_table
from certified_unlearning.papers.gradient_certificates.tasks import task_of
from certified_unlearning.reproduction.figure_style import FigureStyle

STYLE = FigureStyle(context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=50)
SMALL = {
    "data": "near",
    "pooled": 1,
    "hidden": [8],
    "batch_size": 1000,
    "epochs": 1,
    "step_size": 2.0,
    "decay": 0.6,
    "weight_decay": 0.02,
    "gamma": [0.04, 0.08],
    "k": [5, 100, 400],
    "bounds": ["tighter", "published"],
}


def sweep(**changes) -> Shares:
    cases = [Case(name=mode, mode=mode, **{**SMALL, **changes}) for mode in CHANGES]
    return Shares(cases=cases, trials=2, seed=1)


@pytest.fixture(scope="module")
def rows():
    return shares_table(sweep())


def test_every_case_level_way_of_bounding_and_k_has_its_row(rows):
    assert len(rows) == 2 * 2 * 2 * 3
    assert not rows.duplicated(["case", "gamma", "bounds", "k"]).any()
    assert set(rows["updates"]) == {3}
    assert set(rows["parameters"]) == {6 * 8 + 8 + 8 * 2 + 2}


def test_shares_fall_with_k_and_are_those_of_labels_too(rows):
    for _, line in rows.groupby(["case", "gamma", "bounds"]):
        assert line.sort_values("k")["share"].is_monotonic_decreasing
    assert (rows["certain_accuracy"] <= rows["share"]).all()
    assert (rows["certain_accuracy"] <= rows["accuracy"]).all()
    assert rows["share"].max() > 0.9
    assert rows["share"].min() < 0.1


def test_tighter_bounds_certify_no_less_and_here_more(rows):
    keys = ["case", "gamma", "k"]
    both = rows[rows["bounds"] == "tighter"].merge(rows[rows["bounds"] == "published"], on=keys)
    assert (both["share_x"] >= both["share_y"]).all()
    assert (both["share_x"] > both["share_y"]).any()


def test_privacy_certifies_no_more_than_unlearning(rows):
    ours = rows.pivot_table("share", ["gamma", "bounds", "k"], "mode")
    assert (ours["privacy"] <= ours["unlearning"]).all()


def test_what_is_certified_survives_removals_from_every_batch():
    task = task_of("near", seed=3)
    case = sweep().cases[0]
    whole = learned(task, case, mode="unlearning", gamma=0.08, k=[5], seed=3)
    sure = certified(whole, task.test_rows)[0]
    assert 0.5 < sure.double().mean() < 1
    # Without records that speak for one class, which moves the boundary most: 5 of each of three batches.
    generator = torch.Generator().manual_seed(3)
    for least in (True, False):
        generator.manual_seed(3)
        start = uniform_start(whole.network, generator)
        sgd = CertifiedSgd(whole.network, descent_of(case), case.batch_size, case.epochs)
        places = sgd.places(len(task), generator)
        present = torch.ones(len(task), dtype=torch.bool)
        for batch in places:
            order = task.rows[batch, 0].argsort(descending=not least)
            present[batch[order[:5]]] = False
        again = sgd.learn(task.rows, task.labels, places, start, present, [0])
        assert any(not torch.equal(a, b) for a, b in zip(again.parameters, whole.parameters, strict=True))
        same = again.classes(task.test_rows) == whole.classes(task.test_rows)
        assert bool(same[sure].all())


def descent_of(case):
    return Descent(
        step_size=case.step_size, decay=case.decay, weight_decay=case.weight_decay, clipping="clamp", bound=0.08
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"k": [5, 3]}, r"cases has k = \[5, 3\], but the values of k must be in increasing order"),
        ({"k": [1000]}, "cases has k = 1000 removals in batches of 1000 records, but k must be below the batch size"),
        ({"data": "nowhere"}, "cases has the data 'nowhere', but must be one of near, far, digits"),
    ],
)
def test_cases_that_make_no_sense_are_refused_in_a_sentence(changes, words):
    assert re.match(words, sweep(**changes).check())
    assert sweep().check() is None


def test_images_that_cannot_be_divided_are_refused():
    with pytest.raises(
        ParameterError, match="`pooled` must divide the side of square images, got pooled = 3 and images of 64 pixels"
    ):
        task_of("digits", seed=1, pooled=3)
    assert task_of("digits", seed=1, pooled=2).features == 16


def test_the_figure_has_a_panel_for_each_case_and_a_line_for_each_level(rows):
    figure = draw(rows, STYLE)
    assert len(figure.axes) == 2
    assert all(len(axes.lines) == 4 for axes in figure.axes)
    (legend,) = figure.legends
    shown = {text.get_text() for text in legend.get_texts()} - {""}
    assert shown == {"γ = 0.04", "γ = 0.08", "bounded as published", "± 1 standard deviation of 2 trials"}


def test_the_finding_says_what_the_rows_say(rows):
    own = rows[(rows["bounds"] == "tighter") & (rows["k"] == 400)]
    assert f"{own[own['mode'] == 'privacy']['share'].max():.0%} stay the same if any 400" in shares(rows).replace(
        "\xa0", " "
    )
