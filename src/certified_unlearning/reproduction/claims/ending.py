"""What a run ends with on the terminal: where the report lies, the verdicts in numbers, what matters most of them."""

import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path

from certified_unlearning.reproduction.claims.verdicts import Verdict, counts, findings, read, severities

SHOWN = 3
"""How many findings are printed; `unlearn claims` has all."""
_WIDEST = 120


def ending(results: Path, name: str) -> str:
    """Return the last lines of a run of a preset or collection.

    Raises:
        DataError: There are no verdicts, or they are damaged.
    """
    verdicts = read(results / name / "claims.json")
    width = min(shutil.get_terminal_size((100, 24)).columns, _WIDEST)
    lines = [f"{name}: {counts(verdicts)}"]
    shown = findings(verdicts, SHOWN)
    if shown:
        lines.append(f"contradicted are {severity_counts(verdicts)}; worst of each paper:")
    for number, each in enumerate(shown, start=1):
        text = f"{each.source}: {each.statement}"
        limit = 2 * (width - 3)
        clipped = text if len(text) <= limit else textwrap.shorten(text, limit - 4, placeholder=" ...")
        lines += textwrap.wrap(clipped, width, initial_indent=f"{number}. ", subsequent_indent="   ")
        lines.append(textwrap.shorten(f"-> expected {each.expected}; measured {each.measured}", width - 3))
        lines[-1] = f"   {lines[-1]}"
    lines += [f"All of them: unlearn claims --preset {name}", f"Report: {results / name / 'report.html'}"]
    return "\n".join(lines)


def severity_counts(verdicts: Sequence[Verdict]) -> str:
    """Return how many contradicted claims have which severity: ``2 different in kind, 1 rounding``."""
    return ", ".join(f"{number} {name}" for name, number in severities(verdicts).items() if number)
