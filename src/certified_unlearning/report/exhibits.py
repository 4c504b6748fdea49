"""The figures and tables of each preset, with their data and where they come from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from certified_unlearning.errors import DataError
from certified_unlearning.report.captions import CAPTIONS, PAPER_NUMBERS, Caption, caption_of
from certified_unlearning.report.embedding import Download, EmbeddedImage, download, image, read_csv, required
from certified_unlearning.report.tables import PaperTable, paper_tables


@dataclass(frozen=True)
class ShownFigure:
    """One figure.

    Attributes:
        anchor: The id of its place on the page.
        preset: The preset it belongs to.
        source: Where the papers have it.
        caption: Its words.
        picture: The figure.
        downloads: Its data, and its PDF where there is one.
        origin: The files that its numbers were read from.
        code_versions: The code that wrote the records it shows, where it shows records.
    """

    anchor: str
    preset: str
    source: str
    caption: Caption
    picture: EmbeddedImage
    downloads: tuple[Download, ...]
    origin: str
    code_versions: str


@dataclass
class Exhibits:
    """What one preset shows.

    Attributes:
        preset: The preset's name.
        figures: In the order of `captions.CAPTIONS`.
        repeats: Figures that another preset has already shown with the same data.
        tables: In the order of `captions.TABLES`.
    """

    preset: str
    figures: list[ShownFigure] = field(default_factory=list)
    repeats: list[ShownFigure] = field(default_factory=list)
    tables: list[PaperTable] = field(default_factory=list)


def exhibits(
    results: Path, summaries: Mapping[str, Mapping[str, Any]], records: Mapping[str, pd.DataFrame]
) -> list[Exhibits]:
    """Return every preset's figures and tables; the same data is shown under the first preset that has it.

    Args:
        results: The directory of all results.
        summaries: The summary of the data set of each preset (``data.json``).
        records: The records of each preset.

    Raises:
        DataError: A figure's data is missing, or a file is not what its name says.
    """
    shown: dict[tuple[str, bytes], ShownFigure] = {}
    every = []
    for preset, summary in summaries.items():
        own = Exhibits(preset, tables=paper_tables(results / preset))
        for name in _drawn(results / preset / "figures"):
            key = (name, _data(results / preset / "plots" / f"{name}.csv", name))
            if key in shown:
                own.repeats.append(shown[key])
            else:
                shown[key] = _figure(results / preset, name, str(summary["name"]), records[preset])
                own.figures.append(shown[key])
        every.append(own)
    return every


def _data(path: Path, name: str) -> bytes:
    """Return what the file holds, if it is what the figure shows: each of its rows says so."""
    rule = _rule(name)
    frame = read_csv(path, rule)
    if "experiment" not in frame or set(frame["experiment"]) != {name}:
        raise DataError(f"{path} does not hold the data of {name} alone; the workflow's rule {rule} makes it")
    return path.read_bytes()


def _rule(name: str) -> str:
    """Return the workflow's rule that writes a figure's files."""
    return caption_of(name).rules.rpartition(", ")[2]


def _drawn(directory: Path) -> Iterable[str]:
    """Return the figures that the directory holds, ones without a caption last."""
    required(directory / "fig3a.png", "figure")
    order = list(CAPTIONS)
    names = sorted(path.stem for path in directory.glob("*.png"))
    return sorted(names, key=lambda name: order.index(name) if name in order else len(order))


def _figure(directory: Path, name: str, dataset: str, records: pd.DataFrame) -> ShownFigure:
    caption = caption_of(name)
    files = [directory / "plots" / f"{name}.csv", directory / "figures" / f"{name}.pdf"]
    versions = records.loc[records["experiment"] == name, "code_version"].unique()
    return ShownFigure(
        anchor=f"{directory.name}-{name}",
        preset=directory.name,
        source=PAPER_NUMBERS.get((name, dataset), caption.source),
        caption=caption,
        picture=image(directory / "figures" / f"{name}.png"),
        downloads=tuple(
            download(file, f"{directory.name}-{file.name}", _rule(name)) for file in files if file.exists()
        ),
        origin=f"results/{directory.name}/{caption.sweep}",
        code_versions=", ".join(versions),
    )
