"""The last lines that a run prints: the number of claims by verdict, the findings, and the path of the report."""

import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path

from certified_unlearning.files import read_json
from certified_unlearning.reproduction.claims import findings
from certified_unlearning.reproduction.claims.verdicts import counted_by_owner, read

SHOWN = 3
"""Number of findings to print; the report contains all of them."""
_WIDEST = 120


def ending(results: Path, name: str, members: Sequence[str] = ()) -> str:
    """Return the last lines of a run of a preset or collection, including the report's first findings.

    Args:
        results: Directory of all results.
        name: Name of the preset or of the collection.
        members: Presets of a collection. For each preset, the last lines name the experiments that are missing in
            MLflow, and say how to see its runs there.

    Raises:
        DataError: The verdicts, the findings or a status file of tracking are missing or damaged.
    """
    verdicts = read(results / name / "claims.json")
    width = min(shutil.get_terminal_size((100, 24)).columns, _WIDEST)
    first, *others = counted_by_owner(verdicts)
    lines = [line for each in (f"{name}: {first}", *others) for line in textwrap.wrap(each, width)]
    for number, each in enumerate(findings.read(results / name / "findings.json")[:SHOWN], start=1):
        text = f"contradicted: {each.text}" if each.claim else each.text
        limit = 2 * (width - 3) if each.claim else None
        clipped = text if limit is None or len(text) <= limit else textwrap.shorten(text, limit - 4, placeholder=" ...")
        lines += textwrap.wrap(
            clipped, width, initial_indent=f"{number}. ", subsequent_indent="   ", break_on_hyphens=False
        )
        if each.claim:
            numbers = f"-> expected {each.expected}; measured {each.measured}"
            lines.append(f"   {textwrap.shorten(numbers, width - 3)}")
    lines += [line for each in untracked(results, members or (name,)) for line in textwrap.wrap(each, width)]
    lines += pages(results, members or (name,))
    lines += [f"All verdicts: unlearn claims --preset {name}", f"Report: {results / name / 'report.html'}"]
    return "\n".join(lines)


def untracked(results: Path, presets: Sequence[str]) -> list[str]:
    """Return a sentence for each preset whose results are missing in MLflow: which results, why, and what to do.

    Raises:
        DataError: A status file of tracking is damaged.
    """
    sentences = []
    for preset in presets:
        noted = {
            path.stem.partition("-")[2]: read_json(path, keys=["warning"])["warning"]
            for path in sorted((results / preset / "tracking").glob("*-*.json"))
        }
        missing = {name: warning for name, warning in noted.items() if warning is not None}
        if missing:
            why = next(iter(missing.values()))
            sentences.append(f"warning: {preset}: not in MLflow: {', '.join(missing)}. {why}.")
    return sentences


def pages(results: Path, presets: Sequence[str]) -> list[str]:
    """Return lines on how to see the presets' runs in MLflow: the command to start, and the page to open.

    Raises:
        DataError: The status file of MLflow's store is damaged.
    """
    paths = [results / preset / "tracking" / "store.json" for preset in presets]
    noted = [read_json(path, keys=["tracking_uri"]) for path in paths if path.exists()]
    there = [store for store in noted if store.get("page")]
    local = dict.fromkeys(store["tracking_uri"] for store in there if not store["tracking_uri"].startswith("http"))
    return [
        *(f"To see the runs in MLflow: mlflow ui --backend-store-uri {uri}" for uri in local),
        *(f"MLflow: {store['page']}" for store in there),
    ]
