"""The gallery has every figure with its words as they are declared, and pictures that are small and up to date."""

import re
from pathlib import Path

import pytest

from certified_unlearning.papers import parameters
from certified_unlearning.reproduction import declared
from certified_unlearning.reproduction.experiment import Inputs
from docs import gallery

PAPERS = parameters.load().known
FIGURES = list(gallery.drawn(PAPERS))
DOCS = Path(gallery.__file__).parent
PICTURES = sorted((DOCS / "pictures").rglob("*.svg"))
OF_THE_TUTORIAL = re.findall(r"\]\(pictures/(.*?)\)", (DOCS / "tutorial.md").read_text(encoding="utf-8"))


def words(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def coordinates(svg: str) -> list[float]:
    return [float(number) for path in re.findall(r' d="([^"]*)"', svg) for number in re.findall(r"-?[\d.]+", path)]


def test_the_page_is_what_the_experiments_declare() -> None:
    assert (DOCS / "gallery.md").read_text(encoding="utf-8") == gallery.page(PAPERS)


def test_every_figure_has_its_picture_and_every_picture_its_figure() -> None:
    wanted = {Path(gallery.picture(*each)).name for each in FIGURES} | set(OF_THE_TUTORIAL)
    wanted |= {f"{name}.svg" for name in gallery.EXAMPLES}
    assert len(FIGURES) > 10
    assert len(OF_THE_TUTORIAL) == 2
    assert {path.name for path in PICTURES} == wanted


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_a_picture_is_small_loads_nothing_and_writes_greek_letters(path: Path) -> None:
    svg = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 100_000
    assert not re.search(r'<script|href="(?!#|data:image/png)', svg)
    assert words(svg)
    assert not [text for text in words(svg) if re.search(r"\b(epsilon|sigma|delta|alpha|lambda)\b", text)]


def test_a_picture_is_what_its_command_draws(tmp_path: Path) -> None:
    """Of a figure that takes no run; numbers of a point's hundredth may differ between machines."""
    preset = parameters.load().presets[gallery.PRESET]
    paper, experiment = next(each for each in FIGURES if each[1].name == "dynamics1")
    sweep = experiment.sweep.model_validate(preset.papers[paper.name][experiment.name])
    rows = experiment.make(Inputs(gallery.PRESET, preset.settings, sweep))
    style = parameters.load().figures
    gallery.save(declared.function(experiment.draw)(rows, style), style, tmp_path / "drawn.svg")
    drawn = (tmp_path / "drawn.svg").read_text(encoding="utf-8")
    committed = (DOCS / gallery.picture(paper, experiment)).read_text(encoding="utf-8")
    assert words(drawn) == words(committed)
    assert coordinates(drawn) == pytest.approx(coordinates(committed), abs=0.05)


def test_slimming_changes_no_word_of_a_picture() -> None:
    text = '<text style="a: 1.2345" x="1.23456">L = 0.2787</text>'
    svg = f'<svg><defs><style type="text/css"></style></defs>\n {text}</svg>'
    slim = gallery.slim(svg)
    assert words(slim) == ["L = 0.2787"]
    assert 'class="s0" x="1.23"' in slim
