"""The page: everything gathered, then rendered and written."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files as package_files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from certified_unlearning.errors import ParameterError
from certified_unlearning.files import read_json, write_text
from certified_unlearning.report.accountants import accountants
from certified_unlearning.report.certificates import certificates
from certified_unlearning.report.embedding import required
from certified_unlearning.report.exhibits import exhibits
from certified_unlearning.report.headline import accuracy_table, steps_table
from certified_unlearning.report.provenance import provenance
from certified_unlearning.report.verdicts import verdicts
from certified_unlearning.results import RECORD_SCHEMA, read_table


def write_report(results: Path, name: str, presets: Sequence[str], output: Path) -> None:
    """Write one HTML page about the presets' results; it needs no other file and no network.

    The same results give the same page.

    Args:
        results: The directory of all results.
        name: What is reported: a preset, or a collection of presets. The table of claims is
            ``results/<name>/claims.json``; without one, the page says so.
        presets: The presets in the order they are shown; the first one's figure 3a heads the page.
        output: Where the page goes.

    Raises:
        ParameterError: There are no presets.
        DataError: A file that the page needs is missing or damaged; the message names it, and the workflow's rule.
        StorageError: The page cannot be written.
    """
    if not presets:
        raise ParameterError(f"the report {name!r} is about no presets; it needs one or more")
    summaries = {
        preset: read_json(required(results / preset / "data.json", "prepare"), _DATA_KEYS) for preset in presets
    }
    records = {
        preset: read_table(required(results / preset / "records.parquet", "collect"), RECORD_SCHEMA)
        for preset in presets
    }
    shown = exhibits(results, summaries, records)
    certified, unchecked = certificates(results, records)
    style, script = _asset("page.css"), _asset("page.js")
    page = _ENVIRONMENT.get_template("page.html.j2").render(
        name=name,
        presets=list(presets),
        style=style,
        script=script,
        style_digest=_digest(style),
        script_digest=_digest(script),
        headline=shown[0].figures[0],
        accuracies=accuracy_table(records),
        steps=steps_table(records),
        accountants=[accountants(results, preset) for preset in presets],
        exhibits=shown,
        verdicts=verdicts(results / name / "claims.json"),
        certificates=certified,
        unchecked=unchecked,
        provenance=provenance(results, summaries, records),
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


def _asset(name: str) -> Markup:
    """Return a part of the page that this package ships, as it is."""
    return Markup((package_files(__package__ or "") / "templates" / name).read_text(encoding="utf-8"))


def _digest(text: str) -> str:
    """Return what the page's content security policy knows its own style and script by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
