"""The draft of a table's declaration, and its form as YAML with comments that say what its author must check."""

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from certified_unlearning.data.tables.classes import FEWEST_OF_A_CLASS
from certified_unlearning.data.tables.declaration import RUN, Text
from certified_unlearning.data.tables.notes import grouped, which
from certified_unlearning.data.tables.survey import Column
from certified_unlearning.text import counted

MARK = "check: from the data"
"""Mark at the end of a line whose value was taken from the data. A person who confirms that the value is public removes
the mark."""
ENOUGH_ALIKE = 4
"""Smallest number of successive columns that become one run."""
_LISTED_ALONE = 12
"""Up to this number of features, each has a separate line."""
_MARKED = re.compile(rf"^ *(?P<key>\"(?:[^\"\\]|\\.)*\"|[^ :#\"][^:#\n]*):.*#\s*{MARK}[^\[\]{{}}\"'\n]*$", re.MULTILINE)
_NEEDS = {
    "classes": "list all possible classes",
    "target_range": "write the lowest and the highest label that you know without the file, such as 0 and 1000000",
    "categories": "list all possible values",
    "ranges": "write the lowest and the highest value that you know without the file, such as 0 and 120 for an age",
    "missing": "write a number that you would choose without the file",
}
"""What the author must write in place of each kind of mark."""
_HEAD = (
    'Values marked "check: from the data" are not public: they may reveal a record that is removed later, and no',
    "guarantee covers that. Each mark says what to write instead, using only what you know without the file. Then",
    "remove the mark: `unlearn init` refuses marked values. By removing a mark, you state that you would have written",
    "the line without this file. Nobody can check that, and certificates assume it. A list without a mark has only",
    "values of at least {fewest} each. The counts in comments are from the data, too: delete them before you pass this",
    "file on. To use this file: `unlearn init MODEL_DIR --table THIS_FILE --epsilon 1`{pipeline}.",
)
_PLAIN = re.compile(rf"[A-Za-z_][A-Za-z0-9_.]*({RUN}[A-Za-z_][A-Za-z0-9_.]*)?")


@dataclass
class Draft:
    """The draft of a declaration.

    Attributes:
        text: YAML, with comments.
        notes: What the author must check, as pairs of a column and a sentence.
        features: The columns that the draft uses as features.
        left_out: The columns that are not used as features, each with the reason.
        norm: The draft's statement on the norm of rows, if any.
        least: The smallest number such that this many rows always belong to enough people, even if some people have
            many rows.
        of_people: Whether a column identifies the person of each row.
        categories: The values of each feature of categories; None is a missing value.
        prose: The text features.
        ranges: The lowest and the highest value of each numeric feature.
        missing: The number that replaces a missing value, for each feature.
        target_range: The lowest and the highest label of a regression; None for classes.
        checked: The marked entries, as pairs of a key and a column.
    """

    text: str = ""
    notes: list[tuple[str, str]] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    norm: str | None = None
    least: int = FEWEST_OF_A_CLASS
    of_people: bool = False
    categories: dict[str, list[str | None]] = field(default_factory=dict)
    prose: list[str] = field(default_factory=list)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    missing: dict[str, float] = field(default_factory=dict)
    target_range: tuple[float, float] | None = None
    checked: set[tuple[str, str]] = field(default_factory=set)

    def note(self, name: str, sentence: str) -> None:
        """Add a note for the author."""
        self.notes.append((name, sentence))

    @property
    def said(self) -> list[tuple[list[str], str]]:
        """The notes as pairs of columns and a sentence; equal notes on several features are combined."""
        others = {*self.features, *self.left_out}
        alone = [([name], sentence) for name, sentence in self.notes if name not in others]
        return alone + grouped((name, sentence) for name, sentence in self.notes if name in others)

    @property
    def marks(self) -> list[tuple[str, str]]:
        """The keys that are marked in the text, each with the required replacement."""
        return [
            (key, f"{which(columns)}: {need}" if columns[0] != key else need)
            for key, need in _NEEDS.items()
            if (columns := [name for marked_key, name in self._marks if marked_key == key])
        ]

    @property
    def _marks(self) -> list[tuple[str, str]]:
        order = {name: place for place, name in enumerate(self.features)}
        return sorted(self.checked, key=lambda mark: order.get(mark[1], -1))


def marked(text: str) -> list[str]:
    """Return the keys of a declaration's lines that still have the `MARK` of a draft."""
    return [match["key"].strip('"') for match in _MARKED.finditer(text)]


def lines(
    path: str, columns: Mapping[str, Column], label: str, identifier: str | None, made: Draft, beside: Path | None
) -> Iterator[str]:
    """Yield the lines of a draft's text. The arguments are those of `drafting.draft`."""
    target = columns[label]
    yield f"# A draft, made by `unlearn declare` from {_in_comment(Path(path).name)} ({counted(target.rows, 'row')})."
    fewest = counted(FEWEST_OF_A_CLASS, "person" if made.of_people else "record")
    is_class = made.target_range is None
    for_pipeline = is_class and not made.prose
    pipeline = "; for the pipeline, insert it into own_data under a name" if for_pipeline else ""
    yield from (f"# {line.format(fewest=fewest, pipeline=pipeline)}" for line in _HEAD)
    yield f"path: {_scalar(_shown_path(path, beside))}"
    yield f"label: {_scalar(label)}{_comment(made, label)}"
    if made.target_range is not None:
        yield f"target_range: {_sequence(made.target_range)}  # {_mark('target_range')}"
    else:
        classes = sorted(target.counts or (), key=_by_size)
        remarks = [_mark("classes")] if ("classes", "classes") in made.checked else []
        remarks += ["the second is +1"] if len(classes) == 2 else []
        yield f"classes: {_sequence(classes)}" + (f"  # {'; '.join(remarks)}" if remarks else "")
    if identifier is None:
        yield f"# identifier: FILL_IN{_comment(made, 'identifier')}"
    else:
        yield f"identifier: {_scalar(identifier)}{_comment(made, identifier)}"
    yield "features:"
    for several, sentence in made.said:
        if len(several) > 1 and several[0] in made.features:
            yield f"  # {_in_comment(f'{which(several)}: {sentence}')}"
    for name in _feature_lines(columns, made):
        yield f"  - {_scalar(name)}{_comment(made, name)}"
    for key in ("categories", "ranges", "missing"):
        yield from _section(key, columns, made)
    if made.prose:
        yield "text:  # only for `unlearn init`; choose widths without the file, such as 16384 for short texts"
    for name in made.prose:
        yield f"  {_scalar(name)}: {{width: {Text().width}}}"
    if made.norm is not None:
        yield f"norm: {made.norm}{_comment(made, 'norm')}"
    if made.left_out:
        yield "# Left out of the features:"
    for several, reason in grouped(made.left_out.items()):
        yield f"#   {_in_comment(f'{which(several)}: {reason}')}"
    if for_pipeline:
        yield "# split: {test: 0.2}  # only for the pipeline, which needs test records; `unlearn init` takes none"


def _section(key: str, columns: Collection[str], made: Draft) -> Iterator[str]:
    """Yield the draft's lines for one key and for the columns below it.

    Each uncertain list has a mark on its own line. Uncertain numbers have one common mark, on the line of the key.
    """
    values: dict[str, Any] = getattr(made, key)
    if not values:
        return
    unsure = {name for name in values if (key, name) in made.checked}
    each = key == "categories"
    yield f"{key}:{f'  # {_mark(key)}' if unsure and not each else ''}"
    places = {name: place for place, name in enumerate(made.features)}
    for some in _runs(values, places, lambda name: (values[name], name in unsure)):
        value = values[some[0]]
        comment = ""
        if each and some[0] in unsure:
            comment = f"  # {_mark(key)}"
        elif key == "ranges" and some[0] not in unsure:
            comment = "  # true or false"
        shown = _sequence(value) if isinstance(value, list | tuple) else _scalar(value)
        yield from (f"  {_scalar(name)}: {shown}{comment}" for name in _as_run(some, columns))


def _mark(key: str) -> str:
    return f"{MARK}; {_NEEDS[key]}"


def _feature_lines(columns: Mapping[str, Column], made: Draft) -> list[str]:
    """Return the lines of the list of features.

    A feature with a comment has its own line. In a long list, successive features without comments become runs.
    """
    if len(made.features) <= _LISTED_ALONE:
        return made.features
    places = {name: place for place, name in enumerate(columns)}
    alone = {several[0] for several, _ in made.said if len(several) == 1}
    runs = _runs(
        made.features, places, lambda name: name if name in alone else (name in made.categories, name in made.prose)
    )
    return [name for some in runs for name in _as_run(some, columns)]


def _runs(names: Iterable[str], places: Mapping[str, int], kind: Callable[[str], object]) -> Iterator[list[str]]:
    """Yield groups of successive names. The names of a group have adjacent places and the same kind."""
    some: list[str] = []
    for name in names:
        if some and (places[name] != places[some[-1]] + 1 or kind(name) != kind(some[-1])):
            yield some
            some = []
        some.append(name)
    if some:
        yield some


def _as_run(names: Sequence[str], columns: Collection[str]) -> Sequence[str]:
    """Return the names of columns, or one text for all of them, such as ``pixel_0 to pixel_767``.

    The text is returned if there are enough names and the text has no other meaning.
    """
    run = f"{names[0]}{RUN}{names[-1]}"
    unclear = run in columns or RUN in names[0] or RUN in names[-1]
    return names if len(names) < ENOUGH_ALIKE or unclear else [run]


def _comment(made: Draft, name: str) -> str:
    sentences = [sentence for several, sentence in made.said if several == [name]]
    return f"  # {_in_comment('; '.join(sentences))}" if sentences else ""


def _in_comment(text: str) -> str:
    """Return a text that cannot end a comment."""
    return "".join(each if each.isprintable() else " " for each in text)


def _shown_path(path: str, beside: Path | None) -> str:
    if beside is None:
        return path
    try:
        return str(Path(path).resolve().relative_to(beside.resolve()))
    except ValueError:
        return os.path.relpath(path, beside) if not Path(path).is_absolute() else path


def _by_size(text: str) -> tuple[int, float, str]:
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text


def _sequence(values: Any) -> str:
    return f"[{', '.join(map(_scalar, values))}]"


def _scalar(value: str | float | None) -> str:
    """Return a value as YAML, on one line."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else _number(value)
    if _PLAIN.fullmatch(value) and yaml.safe_load(value) == value:
        return value
    return str(yaml.safe_dump(value, default_style='"', allow_unicode=True, width=math.inf)).strip()


def _number(value: float) -> str:
    """Return a number in YAML 1.1, where 1e+20 is text but 1.0e+20 is a number."""
    text = repr(value)
    mantissa, exponent, power = text.partition("e")
    return text if not exponent else f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(power):+d}"
