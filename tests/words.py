"""Words that documents, docstrings and messages no longer use: ``python -m tests.words`` names every place.

Documents are to read as scikit-learn's do: subject, verb, object, and no words of our own. `STORED` lists files that
must keep such words. It can only shrink: a file that is clean must leave it.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTEAD = {
    "whoever": "name the reader, or say what happens: 'if the secret state leaks'",
    "reckon": "computed, counted",
    "makes no sense": "is invalid",
    "is told so": "is rejected",
    "the sheet": "the page, the table",
    "delta: Of the target.": "begin a docstring, or the description of an argument, with its noun: 'Target delta.'",
}
"""What is retired, and what to write."""
RETIRED = re.compile(
    r"\b(?:whoever|reckon\w*|makes@no@sense|is@told@so|the@sheet)\b".replace("@", r"\s+(?:#\s)?"), re.IGNORECASE
)
FRAGMENT = re.compile(r'^\s+\*{0,2}\w+: (?:Of|For) \S+|"""(?:Of|For) \S+', re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
"""Code and its output, which other tests compare with what is printed."""

SRC = "src/certified_unlearning"
STORED = {
    f"{SRC}/certificate/former_words.py",
}
"""It has the sentences of certificates that earlier releases wrote, beside those that stand for them now."""


def files() -> Iterator[Path]:
    """Yield the package's sources and declarations, and the documents."""
    yield ROOT / "README.md"
    yield ROOT / "CONTRIBUTING.md"
    yield ROOT / "CHANGELOG.md"
    for folder in ("src", "docs"):
        yield from sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md", ".yaml"})


def found_in(text: str, suffix: str) -> list[tuple[int, str]]:
    """Return the line and the words of each place in a file's text where something is retired."""
    if suffix == ".md":
        text = FENCED.sub(lambda block: "\n" * block[0].count("\n"), text)
    matches = [*RETIRED.finditer(text), *(FRAGMENT.finditer(text) if suffix == ".py" else ())]
    return sorted((text.count("\n", 0, match.end()) + 1, " ".join(match[0].split())) for match in matches)


def places() -> dict[str, list[tuple[int, str]]]:
    """Return what `found_in` returns, for each file that has such places."""
    found = {path.relative_to(ROOT).as_posix(): found_in(path.read_text("utf-8"), path.suffix) for path in files()}
    return {name: here for name, here in found.items() if here}


def complaints(found: dict[str, list[tuple[int, str]]], listed: set[str]) -> list[str]:
    """Return the places in files that are not listed, and the files that are listed and have none."""
    unlisted = [(name, *place) for name, here in found.items() if name not in listed for place in here]
    return [
        *(f"{name}:{line}: {words!r} is retired" for name, line, words in unlisted),
        *(f"{name} is clean: take it off the list in tests/words.py" for name in sorted(listed - {*found})),
    ]


def main() -> int:
    """Print the complaints, and return the exit status."""
    wrong = complaints(places(), STORED)
    if wrong:
        print(
            *wrong, *(f"instead of {word!r}: {better}" for word, better in INSTEAD.items()), sep="\n", file=sys.stderr
        )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
