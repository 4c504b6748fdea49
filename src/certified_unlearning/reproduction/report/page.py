"""The page: all of its parts are collected, rendered and written."""

import base64
import hashlib
import math
import re
from collections.abc import Mapping
from importlib.resources import files as package_files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from certified_unlearning.data.sets import built_in
from certified_unlearning.errors import ParameterError
from certified_unlearning.files import read_json, write_text
from certified_unlearning.reproduction import declared
from certified_unlearning.reproduction.claims import findings
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.report.certificates import certificates
from certified_unlearning.reproduction.report.embedding import required
from certified_unlearning.reproduction.report.exhibits import Shown, exhibits
from certified_unlearning.reproduction.report.provenance import provenance
from certified_unlearning.reproduction.report.verdicts import verdicts
from certified_unlearning.reproduction.rows import RUN_ROWS, read_table


def write_report(results: Path, name: str, shown: Mapping[str, Shown], output: Path) -> None:
    """Write one HTML page about the presets' results; the page needs no other file and no network.

    Equal results give equal pages.

    Args:
        results: The directory of all results.
        name: Name of the preset, or of the collection of presets. The table of claims is
            ``results/<name>/claims.json``, and ``findings.json`` is in the same directory. If there is no such table,
            the page says so.
        shown: Experiments of each preset with their papers, in the order in which they are shown; the first figure is
            at the top of the page.
        output: Path of the page.

    Raises:
        ParameterError: There are no presets.
        DataError: A file that the page needs is missing or damaged; the message names the file and the workflow's rule
            that creates it.
        StorageError: The page cannot be written.
    """
    if not shown:
        raise ParameterError(f"the report {name!r} has no presets; it needs at least one")
    layouts = {preset: Layout(results, preset) for preset in shown}
    summaries = {preset: read_json(required(each.summary, "prepare"), _DATA_KEYS) for preset, each in layouts.items()}
    runs = {preset: read_table(required(each.records, "collect"), RUN_ROWS) for preset, each in layouts.items()}
    exhibited = exhibits(results, shown, summaries, runs)
    certified, unchecked = certificates(results, shown, runs)
    papers = list(dict.fromkeys(paper for experiments in shown.values() for paper, _ in experiments))
    names = list(dict.fromkeys(str(each["name"]) for each in summaries.values()))
    judged = verdicts(results / name / "claims.json", papers)
    style, script = _asset("page.css"), _asset("page.js")
    page = _ENVIRONMENT.get_template("page.html.j2").render(
        name=name,
        presets=list(shown),
        data=summaries,
        findings=[] if judged is None else findings.read(required(results / name / "findings.json", "claims")),
        style=style,
        script=script,
        style_digest=_digest(style),
        script_digest=_digest(script),
        headline=next((figure for each in exhibited for figure in each.figures), None),
        headline_tables=[
            table for paper in papers if paper.headline for table in declared.function(paper.headline)(runs)
        ],
        exhibits=exhibited,
        verdicts=judged,
        own_data=[] if any(map(built_in, names)) else names,
        certificates=certified,
        unchecked=unchecked,
        provenance=provenance(results, shown, summaries, runs),
    )
    write_text(output, page)


_DATA_KEYS = ("name", "features", "preprocessing", "n", "n_test", "d", "sha256")

_ENVIRONMENT = Environment(
    loader=PackageLoader(__package__ or ""),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


_CAPTION_LINES = 4
_LINE = 90
"""Approximate number of characters in a line below a figure."""


def _opening(text: str, title: str) -> tuple[str, str]:
    """Return a caption in two parts: as many sentences as fit in four lines together with the title, and the rest.

    The first sentence is always included as a whole.
    """
    room = _LINE * (_CAPTION_LINES - math.ceil(len(title) / _LINE))
    first, *others = re.split(r"(?<=[.!?])\s+(?=[A-Z])", text)
    while others and len(first) + len(others[0]) < room:
        first = f"{first} {others.pop(0)}"
    return first, " ".join(others)


_ENVIRONMENT.filters["opening"] = _opening


def _asset(name: str) -> Markup:
    """Return the content of a template file of this package; the page includes the content unchanged."""
    return Markup((package_files(__package__ or "") / "templates" / name).read_text(encoding="utf-8"))


def _digest(text: str) -> str:
    """Return the digest by which the page's content security policy identifies its own style or script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
