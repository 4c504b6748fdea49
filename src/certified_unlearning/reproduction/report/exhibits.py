"""The figures and tables of each preset, with their data and the origin of the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from certified_unlearning.errors import DataError
from certified_unlearning.reproduction import declared
from certified_unlearning.reproduction.experiment import Caption, Experiment
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.paper import Paper
from certified_unlearning.reproduction.report.embedding import (
    Download,
    EmbeddedImage,
    download,
    image,
    read_csv,
    required,
)
from certified_unlearning.reproduction.rows import read_table
from certified_unlearning.reproduction.tabulation import ShownTable, tabulate

Shown = Sequence[tuple[Paper, Experiment]]
"""The experiments of a preset, with their papers, in the order in which the page shows them."""


@dataclass(frozen=True)
class ShownFigure:
    """A figure in the page.

    Attributes:
        anchor: Id of the figure's place on the page.
        preset: Preset to which the figure belongs.
        experiment: Name of the experiment.
        paper: Title of the paper.
        source: Place of the figure in the paper.
        caption: Title and text of the figure.
        drawn_by: Function that draws the figure.
        picture: The image.
        downloads: Files to download: the data, and the figure as SVG and PDF.
        origin: Files from which the numbers were read.
        code_versions: Versions of the code that wrote the rows, if the figure shows runs.
    """

    anchor: str
    preset: str
    experiment: str
    paper: str
    source: str
    caption: Caption
    drawn_by: str
    picture: EmbeddedImage
    downloads: tuple[Download, ...]
    origin: str
    code_versions: str


@dataclass(frozen=True)
class ExhibitedTable:
    """A table in the page: its title, how to read it, its content, and its data."""

    title: str
    text: str
    table: ShownTable
    download: Download


@dataclass
class Exhibits:
    """The figures and tables of one preset.

    Attributes:
        preset: Name of the preset.
        figures: Figures, in the order of papers and their experiments.
        repeats: Figures that were already shown for another preset with the same data.
        tables: Tables, in the same order.
    """

    preset: str
    figures: list[ShownFigure] = field(default_factory=list)
    repeats: list[ShownFigure] = field(default_factory=list)
    tables: list[ExhibitedTable] = field(default_factory=list)

    @property
    def by_paper(self) -> dict[str, list[ShownFigure]]:
        """Figures by the titles of their papers."""
        titles = dict.fromkeys(figure.paper for figure in self.figures)
        return {title: [figure for figure in self.figures if figure.paper == title] for title in titles}


def exhibits(
    results: Path,
    shown: Mapping[str, Shown],
    summaries: Mapping[str, Mapping[str, Any]],
    runs: Mapping[str, pd.DataFrame],
) -> list[Exhibits]:
    """Return the figures and tables of every preset; equal data are shown only under the first preset.

    Args:
        results: The directory of all results.
        shown: Experiments of each preset.
        summaries: Summary of each preset's data set (``data.json``).
        runs: Rows of each preset's runs.

    Raises:
        DataError: The data of a figure are missing, or the content of a file does not fit its name.
    """
    figures: dict[tuple[str, bytes], ShownFigure] = {}
    every = []
    for preset, experiments in shown.items():
        layout, own = Layout(results, preset), Exhibits(preset)
        for paper, experiment in experiments:
            if not experiment.shown:
                continue
            if experiment.draw is None or experiment.page is not None:
                own.tables.append(_table(layout, paper, experiment))
            if experiment.draw is None:
                continue
            key = (experiment.name, _data(layout.numbers(paper.name, experiment.name), experiment.name))
            if key in figures:
                own.repeats.append(figures[key])
            else:
                dataset = str(summaries[preset]["name"])
                figures[key] = _figure(layout, paper, experiment, dataset, runs[preset])
                own.figures.append(figures[key])
        every.append(own)
    return every


def _data(path: Path, name: str) -> bytes:
    """Return the content of the file, after checking that every row belongs to the figure."""
    frame = read_csv(path, "draw")
    if "experiment" not in frame or set(frame["experiment"]) != {name}:
        raise DataError(f"{path} must contain only the data of {name}; the workflow's rule draw makes this file")
    return path.read_bytes()


def _source(paper: Paper, experiment: Experiment, dataset: str) -> str:
    source = experiment.sources.get(dataset, experiment.source)
    return f"{paper.title}, {source}" if source else "Not in the papers"


def _table(layout: Layout, paper: Paper, experiment: Experiment) -> ExhibitedTable:
    path, rows = layout.numbers(paper.name, experiment.name), layout.rows(paper.name, experiment.name)
    read_csv(path, "tabulate")  # Reading raises an error if this is not a table.
    file = download(path, f"{layout.preset}-{path.name}", "tabulate")
    table = tabulate(experiment, read_table(required(rows, "make"), experiment.rows))
    return ExhibitedTable(experiment.title, experiment.caption.text, table, file)


def _caption(layout: Layout, paper: Paper, experiment: Experiment) -> Caption:
    """Return the caption, followed by the sentences about data and sizes of rows that `Experiment.setting` returns."""
    if not experiment.setting:
        return experiment.caption
    rows = read_table(required(layout.rows(paper.name, experiment.name), "make"), experiment.rows)
    if rows.empty:
        return experiment.caption
    said = declared.function(experiment.setting)(rows)
    return replace(experiment.caption, text=f"{experiment.caption.text} {said}")


def _figure(layout: Layout, paper: Paper, experiment: Experiment, dataset: str, runs: pd.DataFrame) -> ShownFigure:
    drawn = [layout.figure(paper.name, experiment.name, kind) for kind in ("svg", "pdf")]
    files = [layout.numbers(paper.name, experiment.name), *drawn]
    versions = runs.loc[runs["experiment"] == experiment.name, "code_version"].unique()
    made = "*.rows.parquet" if experiment.mechanisms else "rows.parquet"
    return ShownFigure(
        anchor=f"{layout.preset}-{experiment.name}",
        preset=layout.preset,
        experiment=experiment.name,
        paper=paper.title,
        source=_source(paper, experiment, dataset),
        caption=_caption(layout, paper, experiment),
        drawn_by=str(experiment.draw),
        picture=image(required(layout.figure(paper.name, experiment.name, "png"), "draw")),
        downloads=tuple(download(file, f"{layout.preset}-{file.name}", "draw") for file in files),
        origin=f"results/{layout.preset}/{paper.name}/{experiment.name}/{made}",
        code_versions=", ".join(versions),
    )
