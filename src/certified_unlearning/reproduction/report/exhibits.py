"""The figures and tables of each preset, with their data and where they come from."""

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
"""The experiments of a preset with their papers, in the order in which the page shows them."""


@dataclass(frozen=True)
class ShownFigure:
    """One figure.

    Attributes:
        anchor: The id of its place on the page.
        preset: The preset it belongs to.
        experiment: The experiment's name.
        paper: The paper's title.
        source: Where the papers have it.
        caption: Its words.
        drawn_by: The function that draws it.
        picture: The figure.
        downloads: Its data, and the figure as SVG and PDF.
        origin: The files that its numbers were read from.
        code_versions: The code that wrote the rows it shows, where it shows runs.
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
    """One table: its title, how to read it, what it holds, and its data."""

    title: str
    text: str
    table: ShownTable
    download: Download


@dataclass
class Exhibits:
    """Figures and tables that one preset shows.

    Attributes:
        preset: The preset's name.
        figures: The figures, in the order of papers and their experiments.
        repeats: Figures that another preset has already shown with the same data.
        tables: The tables, in the same order.
    """

    preset: str
    figures: list[ShownFigure] = field(default_factory=list)
    repeats: list[ShownFigure] = field(default_factory=list)
    tables: list[ExhibitedTable] = field(default_factory=list)

    @property
    def by_paper(self) -> dict[str, list[ShownFigure]]:
        """The figures by the titles of their papers."""
        titles = dict.fromkeys(figure.paper for figure in self.figures)
        return {title: [figure for figure in self.figures if figure.paper == title] for title in titles}


def exhibits(
    results: Path,
    shown: Mapping[str, Shown],
    summaries: Mapping[str, Mapping[str, Any]],
    runs: Mapping[str, pd.DataFrame],
) -> list[Exhibits]:
    """Return every preset's figures and tables; the same data is shown under the first preset that has it.

    Args:
        results: The directory of all results.
        shown: The experiments of each preset.
        summaries: The summary of the data set of each preset (``data.json``).
        runs: The rows of runs of each preset.

    Raises:
        DataError: A figure's data is missing, or a file is not what its name says.
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
    """Return the content of the file, after checking that each of its rows belongs to the figure."""
    frame = read_csv(path, "draw")
    if "experiment" not in frame or set(frame["experiment"]) != {name}:
        raise DataError(f"{path} does not hold the data of {name} alone; the workflow's rule draw makes it")
    return path.read_bytes()


def _source(paper: Paper, experiment: Experiment, dataset: str) -> str:
    source = experiment.sources.get(dataset, experiment.source)
    return f"{paper.title}, {source}" if source else "Not in the papers"


def _table(layout: Layout, paper: Paper, experiment: Experiment) -> ExhibitedTable:
    path, rows = layout.numbers(paper.name, experiment.name), layout.rows(paper.name, experiment.name)
    read_csv(path, "tabulate")  # Reading it raises an error unless it is a table.
    file = download(path, f"{layout.preset}-{path.name}", "tabulate")
    table = tabulate(experiment, read_table(required(rows, "make"), experiment.rows))
    return ExhibitedTable(experiment.title, experiment.caption.text, table, file)


def _caption(layout: Layout, paper: Paper, experiment: Experiment) -> Caption:
    """Return the caption, with the experiment's description of the data and sizes of its rows."""
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
