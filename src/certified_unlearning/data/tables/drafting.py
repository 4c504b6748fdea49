"""A draft of a table's declaration, made from what its file holds, and everything that its author must look at.

A range or a constant that is taken from the records is not public: no guarantee covers it. So these are marked in the
draft, one mark for all ranges and one for all constants. A list of classes or categories is marked where it has a value
that few people have, or where it is not sure which values are meant. What is sure has no mark, so that each mark is
worth a look.
"""

import decimal
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from certified_unlearning.data.advice.shares import DROWNING, hardly_count, percent
from certified_unlearning.data.tables.classes import FEWEST_OF_A_CLASS
from certified_unlearning.data.tables.declaration import MOST_CLASSES, RUN
from certified_unlearning.data.tables.notes import grouped, which
from certified_unlearning.data.tables.spellings import described, groups_of, is_absent
from certified_unlearning.data.tables.survey import Column, survey
from certified_unlearning.data.tables.table import require_columns
from certified_unlearning.data.tables.table_values import listed
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.text import counted, with_commas

MOST_CATEGORIES = 50
"""Columns with more different words are left out."""
FEW_NUMBERS = 10
"""Columns of whole numbers with so few different ones may hold codes."""
FEW_VALUES = 10
"""That so few values all differ says nothing."""
LIKELY_CLASSES = 10
"""A column with so few different values could be the label."""
MARK = "check: from the data"
"""Stands at the end of a line whose value was taken from the data, until somebody confirms that it is public."""
_ENOUGH_ALIKE = 4
"""So many columns in a row become one run."""
_LISTED_ALONE = 12
"""Up to so many features each have a line of their own."""
_AS_WIDE = 2.5
"""Columns have one range if it is at most so many times as wide as that of each."""
_MARKED = re.compile(rf"^ *(?P<key>\"(?:[^\"\\]|\\.)*\"|[^ :#\"][^:#\n]*):.*#\s*{MARK}[^\[\]{{}}\"'\n]*$", re.MULTILINE)
_NEEDS = {
    "classes": "list the classes that there can be",
    "target_range": "write the lowest and the highest label that you know without the file, such as 0 and 1000000",
    "categories": "list the values that there can be",
    "ranges": "write the lowest and the highest value that you know without the file, such as 0 and 120 of an age",
    "missing": "write a number that you would take without the file",
}
"""What must be written in the place of what is marked."""
_HEAD = (
    'What is marked "check: from the data" is not public: it may tell of a record that is removed later, and no',
    "guarantee covers that. Each mark says what to write there from what you know without the file. Remove a mark when",
    "that is written: `unlearn init` refuses what is marked. A list of classes or categories without a mark has only",
    "values of at least {fewest} each. The counts in comments are from the data, too: delete them before you hand this",
    "on. For `unlearn init MODEL_DIR --table THIS_FILE --epsilon 1`{pipeline}.",
)
_NAME_OF_IDENTIFIER = re.compile(r"(.*[_ -])?(id|uuid|guid|key|number|nr|no)", re.IGNORECASE)
_PLAIN = re.compile(rf"[A-Za-z_][A-Za-z0-9_.]*({RUN}[A-Za-z_][A-Za-z0-9_.]*)?")


@dataclass
class Draft:
    """The draft of a declaration.

    Attributes:
        text: YAML, with comments.
        notes: What its author must look at: of which column, and a sentence.
        features: The columns that it takes as features.
        left_out: Those that it does not, and why.
        norm: What the draft says of the norm of rows, if anything.
    """

    text: str = ""
    notes: list[tuple[str, str]] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    norm: str | None = None
    _least: int = FEWEST_OF_A_CLASS
    _of_people: bool = False
    _categories: dict[str, list[str | None]] = field(default_factory=dict)
    _ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    _target_range: tuple[float, float] | None = None
    _missing: dict[str, float] = field(default_factory=dict)
    _checked: set[tuple[str, str]] = field(default_factory=set)

    @property
    def said(self) -> list[tuple[list[str], str]]:
        """The notes, those that say the same of several features as one: of which columns, and a sentence."""
        others = {*self.features, *self.left_out}
        alone = [([name], sentence) for name, sentence in self.notes if name not in others]
        return alone + grouped((name, sentence) for name, sentence in self.notes if name in others)

    @property
    def marks(self) -> list[tuple[str, str]]:
        """What is marked in the text: the key, and what must be written there."""
        return [
            (key, f"{which(columns)}: {need}" if columns[0] != key else need)
            for key, need in _NEEDS.items()
            if (columns := [name for marked_key, name in self._marks if marked_key == key])
        ]

    @property
    def _marks(self) -> list[tuple[str, str]]:
        order = {name: place for place, name in enumerate(self.features)}
        return sorted(self._checked, key=lambda mark: order.get(mark[1], -1))


def draft(
    path: str,
    label: str | None,
    identifier: str | None = None,
    *,
    beside: Path | None = None,
    regression: bool = False,
) -> Draft:
    """Return the draft of a declaration.

    Args:
        path: The file.
        label: The column to predict. None: an error names those that could be.
        identifier: The column that says whose a row is, if there is one.
        beside: The directory that the draft is going to lie in; its path to the file begins there.
        regression: Whether the label is a number to predict, and no class.

    Raises:
        ParameterError: There is no label, or it is the identifier, too.
        DataError: The file cannot be read or lacks one of the columns, the label is no class (or no number), or no
            column can be a feature.
    """
    if label is not None and label == identifier:
        raise ParameterError(f"--label and --id are the same column {label!r}; give each its own")
    columns = survey(path, identifier)
    require_columns(path, list(columns), [name for name in (label, identifier) if name is not None])
    if label is None:
        raise ParameterError(
            f"--label is missing: which column of {path} is to be predicted? {_could_be_label(columns, regression)}"
        )
    made = Draft()
    if identifier is not None:
        # So many rows hold a value of enough people, whoever they are.
        made._least *= max((columns[identifier].counts or Counter()).values(), default=1)
        made._of_people = True
    if regression:
        _check_target(path, columns[label])
        _look_at_target(columns[label], made)
    else:
        _check_label(path, columns[label])
        _look_at_label(columns[label], made)
    likely = _look_at_identifiers(columns, label, identifier, made)
    for column in columns.values():
        if column.name not in (label, identifier):
            _look_at_feature(column, made, identifies=column.name in likely)
    if not made.features:
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in made.left_out.items()) or "there is no other one"
        raise DataError(f"{path} has no column that could be a feature ({reasons})")
    _take_ranges(columns, made)
    if len(made.features) == 1 and not made._categories:
        made.norm = "at-most-1"
        made.notes.append(
            ("norm", "at-most-1, for there is one column of numbers: divided by its own norm each would become -1 or 1")
        )
    elif len(made.features) > 1:
        _look_at_shares(columns, made)
    made.text = "".join(f"{line}\n" for line in _lines(path, columns, label, identifier, made, beside))
    return made


def marked(text: str) -> list[str]:
    """Return the keys of a declaration's lines that still bear the `MARK` of a draft."""
    return [match["key"].strip('"') for match in _MARKED.finditer(text)]


# What is found.


def _could_be_label(columns: dict[str, Column], regression: bool) -> str:
    if regression:
        of_numbers = [name for name, each in columns.items() if _is_target(each) and each.low < each.high]
        return f"It could be {listed(of_numbers)}" if of_numbers else "None holds different numbers, and numbers alone"
    few = {name: each.distinct or 0 for name, each in columns.items() if each.unreadable is None}
    likely = [name for name, distinct in few.items() if 2 <= distinct <= LIKELY_CLASSES and not columns[name].dates]
    likely.sort(key=lambda name: (few[name], columns[name].missing > 0))
    if not likely:
        return f"None has between 2 and {LIKELY_CLASSES} different values"
    shown = ", ".join(f"{name!r} ({few[name]} values)" for name in likely[:12])
    return f"It could be {shown}{' ...' if len(likely) > 12 else ''}"


def _check_label(path: str, column: Column) -> None:
    if column.unreadable is not None:
        raise DataError(column.unreadable)
    if column.distinct is None or column.distinct > MOST_CLASSES:
        question = "if they are numbers to predict: use --regression" if _is_target(column) else "is it a class?"
        raise DataError(f"{path}: the label {column.name} has more than {MOST_CLASSES} different values; {question}")
    if column.distinct < 2:
        found = listed(sorted(column.counts or ())) or "no value"
        raise DataError(f"{path}: the label {column.name} has {found} only, expected two or more classes")


def _is_target(column: Column) -> bool:
    """Return whether a column holds numbers, and nothing else."""
    return column.unreadable is None and 0 < column.numbers == column.present and not column.infinite


def _check_target(path: str, column: Column) -> None:
    if column.unreadable is not None:
        raise DataError(column.unreadable)
    if not _is_target(column):
        others = column.infinite or column.present - column.numbers
        where = f" (first in row {column.first_word})" if column.first_word else ""
        what = f"{counted(others, 'value')} that cannot be predicted{where}" if column.present else "no value"
        raise DataError(f"{path}: the label {column.name} has {what}; --regression predicts finite numbers")
    if column.low == column.high:
        raise DataError(f"{path}: the label {column.name} is {column.low:g} in every row: nothing to predict")


def _look_at_target(column: Column, made: Draft) -> None:
    made._target_range = nice_range(column.low, column.high)
    made._checked.add(("target_range", "target_range"))
    made.notes.append((column.name, f"the label; numbers from {with_commas(column.low)} to {with_commas(column.high)}"))
    if column.distinct == 2:
        made.notes.append((column.name, "two different values only: if they are classes, leave out --regression"))
    if column.missing:
        made.notes.append(
            (column.name, f"{_rows(column.missing)} no label: leave them out of the file, `init` refuses them")
        )


def _look_at_label(column: Column, made: Draft) -> None:
    counts = column.counts or Counter()
    balance = ", ".join(f"{name}: {count:,} ({count / column.present:.1%})" for name, count in counts.most_common(12))
    made.notes.append((column.name, f"the label; rows by class: {balance}"))
    rare = [f"{name!r} ({counted(count, 'record')})" for name, count in counts.most_common() if count < made._least]
    if rare:
        few = f"{FEWEST_OF_A_CLASS} {'records' if made._least == FEWEST_OF_A_CLASS else 'people may'} have"
        made.notes.append(
            (
                column.name,
                f"fewer than {few} the class {', '.join(rare)}: to list it because of these "
                "records tells of them, also after they are removed",
            )
        )
    alike = groups_of(counts)
    made.notes += [
        (column.name, f"{listed(group.spellings)} differ only in {group.difference}: one class or several?")
        for group in alike
    ]
    if rare or alike or column.missing_words:
        made._checked.add(("classes", "classes"))
    if not column.missing:
        return
    made.notes.append(
        (column.name, f"{_rows(column.missing)} no label: leave them out of the file, `init` refuses them")
    )
    if column.missing_words:
        words = listed(sorted(column.missing_words))
        made.notes.append(
            (column.name, f"{words} in this column: list it in classes if it is a class, and not missing")
        )


def _look_at_identifiers(
    columns: dict[str, Column], label: str, identifier: str | None, made: Draft
) -> Collection[str]:
    """Return the columns that could say whose a row is, where none is named."""
    if identifier is None:
        likely = [
            name
            for name, each in columns.items()
            if name != label and not each.missing and (_NAME_OF_IDENTIFIER.fullmatch(name) or _identifies(each))
        ]
        could = f"it could be {listed(likely)}" if likely else "no column looks like one"
        made.notes.append(
            ("identifier", f"the ledger needs a column that says whose a row is; {could}; name it with --id")
        )
        return likely
    column = columns[identifier]
    if column.unreadable is not None:
        raise DataError(column.unreadable)
    counts = column.counts or Counter()
    several = [count for count in counts.values() if count > 1]
    made.notes.append((identifier, f"whose a row is: {counted(len(counts), 'person')}"))
    if several:
        made.notes.append(
            (
                identifier,
                f"{counted(len(several), 'identifier')} in {sum(several):,} rows: one person's rows, or a mistake?",
            )
        )
    if column.missing:
        words = f" (but {listed(sorted(column.missing_words))})" if column.missing_words else ""
        what = f"{_rows(column.missing)} no identifier{words}: leave them out of the file, `init` refuses them"
        made.notes.append((identifier, what))
    made.notes += [(identifier, sentence) for sentence in described(column.groups)]
    absent = {value: count for value, count in counts.items() if is_absent(value)}
    for value, count in absent.items():
        made.notes.append(
            (identifier, f"{value!r} in {counted(count, 'row')}: if it means that there is none, leave the rows out")
        )
    mails = sum("@" in value for value in counts)
    if mails:
        made.notes.append(
            (
                identifier,
                f"{counted(mails, 'value')} like an e-mail address: who asks to be removed stays in the ledger by it; "
                "use numbers that mean nothing elsewhere",
            )
        )
    return ()


def _identifies(column: Column) -> bool:
    """Return whether values are many, and not measurements: every row has another, or one is a few rows'."""
    if column.dates or not (column.words + column.codes > 0 or column.whole):
        return False
    several = column.words + column.codes > 0 and (column.distinct is None or 4 * column.distinct > column.rows)
    return column.present > FEW_VALUES and (column.all_differ or several)


def _look_at_feature(column: Column, made: Draft, *, identifies: bool) -> None:
    reason = _reason_against(column)
    if reason is None and identifies and (column.distinct is None or 2 * column.distinct > column.present):
        reason = "it looks like what says whose a row is"
    if reason is not None:
        made.left_out[column.name] = reason
        made.notes.append((column.name, f"left out: {reason}"))
        return
    made.features.append(column.name)
    if column.words or column.codes or column.odd or (column.booleans and (column.numbers or column.missing)):
        _take_categories(column, made)
    else:
        _take_numbers(column, made)


def _reason_against(column: Column) -> str | None:
    """Return why a column can be no feature as it is."""
    texts, distinct = column.words + column.codes, column.distinct
    if column.unreadable is not None:
        return f"it holds {column.stored or 'what is neither text nor numbers'}"
    if column.is_index:
        return "its name says that it is an index"
    if not column.present:
        return "it has no value at all"
    if distinct == 1 and not column.missing:
        return "it has the same value in every row"
    if column.dates:
        share = "" if column.dates == column.present else f", {column.dates:,} of {column.present:,} values"
        return f"dates or times{share}; make a number of them that matters, such as a year or an age"
    if column.infinite:
        return f"{counted(column.infinite, 'value')} are infinite; replace them in the file"
    if column.odd:
        return (
            f"{counted(column.odd, 'number')} in a form that is not read, such as a decimal comma, a thousands "
            f"separator, a currency or a per cent sign (first in row {column.first_word}); write plain numbers"
        )
    if column.numbers and texts and (distinct is None or distinct > MOST_CATEGORIES):
        where = f", first in row {column.first_word}" if column.first_word else ""
        return (
            f"{column.numbers:,} numbers and {counted(texts, 'other value')}{where}; empty these if they mean a "
            "missing number, or replace them"
        )
    many = column.present > FEW_VALUES
    if texts and column.all_differ and many:
        return "it has a different value in every row: identifiers, or text?"
    if texts and (distinct is None or distinct > MOST_CATEGORIES):
        count = "very many" if distinct is None else f"{distinct:,}"
        return f"{count} different words are too many for categories; group them"
    if not texts and column.all_differ and column.whole and column.numbers and many:
        dense = column.high - column.low < 2 * column.present
        if dense or _NAME_OF_IDENTIFIER.fullmatch(column.name):
            return "it has a different whole number in every row: identifiers, or row numbers?"
    return None


def _take_categories(column: Column, made: Draft) -> None:
    values: list[str | None] = [*sorted(column.counts or ())]
    if column.missing:
        made.notes.append(
            (column.name, f"{_rows(column.missing)} no value, which null among the categories stands for")
        )
        values.append(None)
    made._categories[column.name] = values
    if column.booleans == column.present:
        made._categories[column.name] = ["true", "false", *([None] if column.missing else [])]
        return
    counts = column.counts or Counter()
    if column.codes:
        made.notes.append((column.name, f"{counted(column.codes, 'number')} with zeros in front: taken for codes"))
    rare = sum(count < made._least for count in counts.values())
    if rare:
        few = f"fewer than {FEWEST_OF_A_CLASS} {'records' if made._least == FEWEST_OF_A_CLASS else 'people may'} have"
        which_values = "one of its values: to list it" if rare == 1 else f"{rare} of its values: to list them"
        made.notes.append((column.name, f"{few} {which_values} because of these records tells of these records"))
    alike = groups_of(counts)
    if alike:
        spellings = "; ".join(f"{listed(group.spellings)} differ only in {group.difference}" for group in alike)
        made.notes.append((column.name, f"{spellings}: one category or several?"))
    if rare or alike or column.codes or column.missing_words or 0 < column.missing < made._least:
        made._checked.add(("categories", column.name))


def _take_numbers(column: Column, made: Draft) -> None:
    if column.booleans:
        made._ranges[column.name] = (0.0, 1.0)
        return
    made._checked.add(("ranges", column.name))
    if column.is_text:
        made.notes.append((column.name, "numbers that are stored as text; they are read as numbers"))
    if column.missing:
        made._checked.add(("missing", column.name))
        made.notes.append((column.name, f"{_rows(column.missing)} no number: the middle of the range stands there"))
    if column.whole and column.distinct is not None and column.distinct <= FEW_NUMBERS:
        made.notes.append(
            (
                column.name,
                f"{column.distinct} different whole numbers only: if they are codes, declare categories instead",
            )
        )


def _take_ranges(columns: Mapping[str, Column], made: Draft) -> None:
    """Give each column of numbers a range, and those in a row that have nearly the same one range."""
    for some in _alike(columns, made):
        together = len(some) >= _ENOUGH_ALIKE
        for column in some:
            of = some if together else [column]
            low, high = nice_range(min(each.low for each in of), max(each.high for each in of))
            made._ranges[column.name] = low, high
            if ("missing", column.name) in made._checked:
                made._missing[column.name] = _short(low / 2 + high / 2)
    # In the order of the features, with those of truth values.
    made._ranges = {name: made._ranges[name] for name in made.features if name in made._ranges}


def _alike(columns: Mapping[str, Column], made: Draft) -> Iterator[list[Column]]:
    """Yield the columns whose ranges are read off the data, those together that follow each other and are alike."""
    some: list[Column] = []
    low, high, narrowest = math.inf, -math.inf, math.inf
    for name in made.features:
        if ("ranges", name) not in made._checked:
            yield some
            some, low, high, narrowest = [], math.inf, -math.inf, math.inf
            continue
        column = columns[name]
        width = _width(column.low, column.high)
        low, high, narrowest = min(low, column.low), max(high, column.high), min(narrowest, width)
        if _width(low, high) > _AS_WIDE * narrowest:
            yield some
            some, low, high, narrowest = [], column.low, column.high, width
        some.append(column)
    yield some


def _width(low: float, high: float) -> float:
    first, last = nice_range(low, high)
    return last - first


def _look_at_shares(columns: dict[str, Column], made: Draft) -> None:
    """Say which columns would drown the others without their range, and whether one still does with it."""
    squares = {
        name: columns[name].magnitudes.mean_square(*made._ranges[name], columns[name].rows)
        if ("ranges", name) in made._checked
        else 1.0  # A one-hot row, or an end of the range of a boolean.
        for name in made.features
    }
    others = len(squares) - 1
    for name, square in squares.items():
        rest = sum(squares.values()) - square
        if square > DROWNING * (square + rest):
            made.notes.append(
                (
                    name,
                    f"it carries about {percent(square / (square + rest))} of a row's squared norm, so "
                    f"{hardly_count(others)}: most of their values lie near the middle of their ranges; narrower ones, "
                    "which need not hold the rarest values, help",
                )
            )
        if ("ranges", name) in made._checked and rest > 0:
            share = columns[name].magnitudes.share(rest, columns[name].rows, made._missing.get(name, 0.0))
            if share > DROWNING:
                made.notes.append(
                    (
                        name,
                        f"keep a range: without one it would carry about {percent(share)} of a row's squared norm, and "
                        f"{hardly_count(others, 'would hardly count')}",
                    )
                )


def nice_range(low: float, high: float) -> tuple[float, float]:
    """Return round numbers that hold a range between them, not much further apart."""
    width = high - low
    if not math.isfinite(width):
        return low, high
    if width == 0:
        # Of the smallest numbers that floats have, a tenth is none any more.
        width = abs(low) if abs(low) >= sys.float_info.min * 1e6 else 1.0
    # By the digits that a number is written with: 0.3 is 3/10, not what is stored for it.
    least, most, span = (decimal.Decimal(repr(value)) for value in (low, high, width))
    with decimal.localcontext(prec=400):
        step = decimal.Decimal(10) ** (span.adjusted() - 1)
        step *= 10 if span / step >= 50 else 5 if span / step >= 20 else 2
        first = (least / step).to_integral_value(decimal.ROUND_FLOOR) * step
        last = (most / step).to_integral_value(decimal.ROUND_CEILING) * step
        if first == last:
            last += step
    return float(first), float(last)


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _rows(count: int) -> str:
    """Return the subject of a sentence and its verb."""
    return f"{count:,} {'row has' if count == 1 else 'rows have'}"


# What is written.


def _lines(
    path: str, columns: Mapping[str, Column], label: str, identifier: str | None, made: Draft, beside: Path | None
) -> Iterator[str]:
    target = columns[label]
    yield f"# A draft, made by `unlearn declare` from {_in_comment(Path(path).name)} ({counted(target.rows, 'row')})."
    fewest = counted(FEWEST_OF_A_CLASS, "person" if made._of_people else "record")
    is_class = made._target_range is None
    pipeline = "; for the pipeline, below own_data and a name" if is_class else ""
    yield from (f"# {line.format(fewest=fewest, pipeline=pipeline)}" for line in _HEAD)
    yield f"path: {_scalar(_shown_path(path, beside))}"
    yield f"label: {_scalar(label)}{_comment(made, label)}"
    if made._target_range is not None:
        yield f"target_range: {_sequence(made._target_range)}  # {_mark('target_range')}"
    else:
        classes = sorted(target.counts or (), key=_by_size)
        remarks = [_mark("classes")] if ("classes", "classes") in made._checked else []
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
    if made.norm is not None:
        yield f"norm: {made.norm}{_comment(made, 'norm')}"
    if made.left_out:
        yield "# Left out of the features:"
    for several, reason in grouped(made.left_out.items()):
        yield f"#   {_in_comment(f'{which(several)}: {reason}')}"
    if is_class:
        yield "# split: {test: 0.2}  # only for the pipeline, which needs test records; `unlearn init` takes none"


def _section(key: str, columns: Collection[str], made: Draft) -> Iterator[str]:
    """Yield what the draft gives columns by a key.

    Of lists each that is not sure is marked; of numbers all at once, beside the key.
    """
    values: dict[str, Any] = getattr(made, f"_{key}")
    if not values:
        return
    unsure = {name for name in values if (key, name) in made._checked}
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
    """Return what the list of features names: many as runs, but alone what a comment stands beside."""
    if len(made.features) <= _LISTED_ALONE:
        return made.features
    places = {name: place for place, name in enumerate(columns)}
    alone = {several[0] for several, _ in made.said if len(several) == 1}
    runs = _runs(made.features, places, lambda name: name if name in alone else name in made._categories)
    return [name for some in runs for name in _as_run(some, columns)]


def _runs(names: Iterable[str], places: Mapping[str, int], kind: Callable[[str], object]) -> Iterator[list[str]]:
    """Yield names in a row: their places follow each other, and their kinds are equal."""
    some: list[str] = []
    for name in names:
        if some and (places[name] != places[some[-1]] + 1 or kind(name) != kind(some[-1])):
            yield some
            some = []
        some.append(name)
    if some:
        yield some


def _as_run(names: Sequence[str], columns: Collection[str]) -> Sequence[str]:
    """Return names as one run, if they are enough and it is read as it is meant."""
    run = f"{names[0]}{RUN}{names[-1]}"
    unclear = run in columns or RUN in names[0] or RUN in names[-1]
    return names if len(names) < _ENOUGH_ALIKE or unclear else [run]


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
    """Return a value as YAML writes it, on one line."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else _number(value)
    if _PLAIN.fullmatch(value) and yaml.safe_load(value) == value:
        return value
    return str(yaml.safe_dump(value, default_style='"', allow_unicode=True, width=math.inf)).strip()


def _number(value: float) -> str:
    """Return a number as YAML 1.1 knows it: 1e+20 is text there, 1.0e+20 is none."""
    text = repr(value)
    mantissa, exponent, power = text.partition("e")
    return text if not exponent else f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(power):+d}"
