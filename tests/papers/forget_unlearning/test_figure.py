"""The figure *what leaks to whom*: a number in every cell that there is, and marks where certificates promised less."""

import pytest
from matplotlib.colors import to_hex

from certified_unlearning.errors import DataError
from certified_unlearning.papers import parameters
from certified_unlearning.papers.forget_unlearning import figure as deletion
from certified_unlearning.papers.forget_unlearning.experiments import DELETION
from certified_unlearning.papers.forget_unlearning.names import ATTACKS, MECHANISMS
from certified_unlearning.reproduction.figures.drawing import render, shown
from tests.support.planning import ROOT

STYLE = parameters.load(ROOT / "params.yaml").figures


def texts(figure):
    """Return the texts of the cells by place, the large one first."""
    axes = figure.axes[0]
    found = {}
    for text in axes.texts:
        x, y = text.get_position()
        found.setdefault((MECHANISMS[round(y)], ATTACKS[round(x)]), []).append(text.get_text())
    return found


def test_every_cell_shows_its_advantage_interval_and_mark(attacks):
    found = texts(deletion.draw(attacks, STYLE))
    assert len(found) == len(attacks)
    for row in attacks.itertuples():
        number, interval = found[row.mechanism, row.attack]
        assert float(number.removesuffix(" ▲").replace("−", "-")) == pytest.approx(row.advantage, abs=5.1e-4)
        assert number.endswith(" ▲") == row.promise_broken
        low, high = (float(end.replace("−", "-")) for end in interval.split(" to "))
        assert (low, high) == pytest.approx((row.low, row.high), abs=5.1e-4)


def test_colours_darken_with_the_advantage_and_the_scale_is_all_of_0_to_1(attacks):
    (image,) = deletion.draw(attacks, STYLE).axes[0].images
    assert image.get_clim() == (0, 1)
    shades = [sum(image.cmap(value)[:3]) for value in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert shades == sorted(shades, reverse=True)
    assert to_hex(image.cmap(1.0)) != to_hex(image.cmap(0.0))


def test_uncertainty_and_marks_are_explained_on_the_figure(attacks):
    words = deletion.draw(attacks, STYLE).get_supxlabel()
    assert "2,500 interactions under each hypothesis" in words
    assert "exact 95 % confidence interval" in words
    assert "▲: more than the published certificate promises for requests fixed in advance" in words


def test_the_files_are_the_same_bytes_for_the_same_rows(attacks, tmp_path):
    first, again = (
        [path.read_bytes() for path in render(DELETION, attacks, STYLE, tmp_path / name)] for name in ("a", "b")
    )
    assert first == again


def test_a_table_without_the_experiment_is_refused(attacks):
    with pytest.raises(DataError, match="there are no rows of deletion"):
        shown(DELETION, attacks.assign(experiment="other"))


@pytest.mark.parametrize("column", ["attack", "mechanism"])
def test_an_unknown_name_is_refused(attacks, column):
    with pytest.raises(DataError, match=f"contain the {column} 'guess'"):
        deletion.draw(attacks.replace({column: {attacks[column].iloc[0]: "guess"}}), STYLE)


def test_a_cell_that_is_there_twice_is_refused(attacks):
    with pytest.raises(DataError, match="twice"):
        deletion.draw(attacks.assign(attack="sum"), STYLE)
