"""A draft of a table's declaration, made from the content of the file, with everything that the user must check.

A range or a constant that is taken from the records is not public: no guarantee covers it. So the draft marks such
values, with one mark for all ranges and one for all constants. A list of classes or categories is marked if few people
have one of its values, or if it is unclear which values are meant. Certain entries have no mark, so each mark is worth
checking.
"""

import decimal
import math
import re
import shlex
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from certified_unlearning.data.advice.shares import DROWNING, hardly_count, percent
from certified_unlearning.data.tables.classes import FEWEST_OF_A_CLASS
from certified_unlearning.data.tables.declaration import MOST_CLASSES, Text
from certified_unlearning.data.tables.draft import ENOUGH_ALIKE, Draft, lines
from certified_unlearning.data.tables.spellings import described, groups_of, is_absent
from certified_unlearning.data.tables.survey import Column, survey
from certified_unlearning.data.tables.table import require_columns
from certified_unlearning.data.tables.table_values import listed
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.text import counted, with_commas

MOST_CATEGORIES = 50
"""Columns of words with more distinct values than this are left out."""
FEW_NUMBERS = 10
"""Columns of whole numbers with at most this many different values may hold codes."""
FEW_VALUES = 10
"""In a column with at most this many values, all values may differ by chance."""
LIKELY_CLASSES = 10
"""A column with at most this many different values could be the label."""
_AS_WIDE = 2.5
"""Columns share one range if it is at most this many times as wide as each column's own range."""
_NAME_OF_IDENTIFIER = re.compile(r"(.*[_ -])?(id|uuid|guid|key|number|nr|no)", re.IGNORECASE)


def draft(
    path: str,
    label: str | None,
    identifier: str | None = None,
    *,
    beside: Path | None = None,
    regression: bool = False,
    texts: Collection[str] = (),
) -> Draft:
    """Return the draft of a declaration.

    Args:
        path: The file.
        label: The column to predict. If None, an error names the possible columns.
        identifier: The column that identifies the person of a row, if there is one.
        beside: The directory in which the draft will be saved. The path in the draft is relative to this directory.
        regression: Whether the label is a number to predict, not a class.
        texts: Text columns.

    Raises:
        ParameterError: There is no label, or the label is also the identifier.
        DataError: The file cannot be read or lacks one of the columns, the label is not a class (or not a number), or
            no column can be a feature.
    """
    if label is not None and label == identifier:
        raise ParameterError(f"--label and --id are the same column {label!r}; give each its own")
    columns = survey(path, identifier, texts)
    require_columns(path, list(columns), [*(name for name in (label, identifier) if name is not None), *texts])
    both = next((name for name in texts if name in (label, identifier)), None)
    if both is not None:
        raise ParameterError(f"--text is {both!r}, which is the {'label' if both == label else 'identifier'}")
    if label is None:
        raise ParameterError(
            f"--label is missing: which column of {path} is to be predicted? {_could_be_label(columns, regression)}"
        )
    made = Draft()
    if identifier is not None:
        made.least *= max((columns[identifier].counts or Counter()).values(), default=1)
        made.of_people = True
    if regression:
        _check_target(path, columns[label])
        _look_at_target(columns[label], made)
    else:
        _check_label(path, columns[label])
        _look_at_label(columns[label], made)
    likely = _look_at_identifiers(columns, label, identifier, made)
    for column in columns.values():
        if column.name in texts:
            made.features.append(column.name)
            made.prose.append(column.name)
            made.note(column.name, f"treated as text: its words are hashed into {Text().width:,} columns")
        elif column.name not in (label, identifier):
            _look_at_feature(column, made, identifies=column.name in likely)
    if not made.features:
        reasons = (
            "; ".join(f"{name!r}: {reason}" for name, reason in made.left_out.items()) or "there is no other column"
        )
        raise DataError(f"{path} has no column that could be a feature ({reasons})")
    _take_ranges(columns, made)
    if len(made.features) == 1 and not made.categories and not made.prose:
        made.norm = "at-most-1"
        made.note(
            "norm",
            "at-most-1, because there is only one column of numbers: divided by its own norm, each number would become "
            "-1 or 1",
        )
    elif len(made.features) > 1:
        _look_at_shares(columns, made)
    made.text = "".join(f"{line}\n" for line in lines(path, columns, label, identifier, made, beside))
    return made


def _could_be_label(columns: dict[str, Column], regression: bool) -> str:
    if regression:
        of_numbers = [name for name, each in columns.items() if _is_target(each) and each.low < each.high]
        return (
            f"It could be {listed(of_numbers)}"
            if of_numbers
            else "No column contains only numbers and has at least two different values"
        )
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
        question = "if they are numbers to predict, use --regression" if _is_target(column) else "is it a class?"
        raise DataError(f"{path}: the label {column.name} has more than {MOST_CLASSES} different values; {question}")
    if column.distinct < 2:
        found = listed(sorted(column.counts or ())) or "no value"
        raise DataError(f"{path}: the label {column.name} has only {found}, expected two or more classes")


def _is_target(column: Column) -> bool:
    """Return whether all values of a column are numbers."""
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
    made.target_range = nice_range(column.low, column.high)
    made.checked.add(("target_range", "target_range"))
    made.note(column.name, f"the label; numbers from {with_commas(column.low)} to {with_commas(column.high)}")
    if column.distinct == 2:
        made.note(column.name, "only two different values: if they are classes, leave out --regression")
    if column.missing:
        made.note(column.name, f"{_rows(column.missing)} no label: leave out such rows, because `init` refuses them")


def _look_at_label(column: Column, made: Draft) -> None:
    counts = column.counts or Counter()
    balance = ", ".join(f"{name}: {count:,} ({count / column.present:.1%})" for name, count in counts.most_common(12))
    made.note(column.name, f"the label; rows by class: {balance}")
    rare = [f"{name!r} ({counted(count, 'record')})" for name, count in counts.most_common() if count < made.least]
    if rare:
        few = f"{FEWEST_OF_A_CLASS} {'records' if made.least == FEWEST_OF_A_CLASS else 'people may'}"
        made.note(
            column.name,
            f"fewer than {few} have the class {', '.join(rare)}: if it is listed only because of these records, the "
            "list reveals them, even after they are removed",
        )
    alike = groups_of(counts)
    made.notes += [
        (column.name, f"{listed(group.spellings)} differ only in {group.difference}: one class or several?")
        for group in alike
    ]
    if rare or alike or column.missing_words:
        made.checked.add(("classes", "classes"))
    if not column.missing:
        return
    made.note(column.name, f"{_rows(column.missing)} no label: leave out such rows, because `init` refuses them")
    if column.missing_words:
        words = listed(sorted(column.missing_words))
        made.note(column.name, f"{words} in this column: list it in classes if it is a class and not a missing label")


def _look_at_identifiers(
    columns: dict[str, Column], label: str, identifier: str | None, made: Draft
) -> Collection[str]:
    """Return the columns that could identify the person of a row, if no identifier was given."""
    if identifier is None:
        likely = [
            name
            for name, each in columns.items()
            if name != label
            and not (each.missing or each.is_prose)
            and (_NAME_OF_IDENTIFIER.fullmatch(name) or _identifies(each))
        ]
        could = f"it could be {listed(likely)}" if likely else "no column looks like an identifier"
        made.note(
            "identifier",
            f"the ledger needs a column that identifies the person of each row; {could}; name the column with --id",
        )
        return likely
    column = columns[identifier]
    if column.unreadable is not None:
        raise DataError(column.unreadable)
    counts = column.counts or Counter()
    several = [count for count in counts.values() if count > 1]
    made.note(identifier, f"identifies the person of each row: {counted(len(counts), 'person')}")
    if several:
        made.note(
            identifier,
            f"{counted(len(several), 'identifier')} occur more than once, in {sum(several):,} rows: "
            "does each belong to one person, or is this a mistake?",
        )
    if column.missing:
        words = f" (but {listed(sorted(column.missing_words))})" if column.missing_words else ""
        what = f"{_rows(column.missing)} no identifier{words}: leave out such rows, because `init` refuses them"
        made.note(identifier, what)
    made.notes += [(identifier, sentence) for sentence in described(column.groups)]
    absent = {value: count for value, count in counts.items() if is_absent(value)}
    for value, count in absent.items():
        made.note(
            identifier, f"{value!r} in {counted(count, 'row')}: if it means a missing identifier, leave these rows out"
        )
    mails = sum("@" in value for value in counts)
    if mails:
        look = "looks like an e-mail address" if mails == 1 else "look like e-mail addresses"
        made.note(
            identifier,
            f"{counted(mails, 'value')} {look}: for people who were removed, a ledger keeps a "
            "pseudonym, which can be linked to the address with the ledger's key; use numbers that mean nothing "
            "elsewhere",
        )
    return ()


def _identifies(column: Column) -> bool:
    """Return whether a column looks like identifiers: many values, no measurements, and few rows for each value."""
    if column.dates or not (column.words + column.codes > 0 or column.whole):
        return False
    several = column.words + column.codes > 0 and (column.distinct is None or 4 * column.distinct > column.rows)
    return column.present > FEW_VALUES and (column.all_differ or several)


def _look_at_feature(column: Column, made: Draft, *, identifies: bool) -> None:
    reason = reason_against(column)
    if reason is None and identifies and (column.distinct is None or 2 * column.distinct > column.present):
        reason = "it seems to identify the person of a row"
    if reason is not None:
        if column.is_prose:
            reason += f" (to learn from its words: --text {shlex.quote(column.name)})"
        made.left_out[column.name] = reason
        made.note(column.name, f"left out: {reason}")
        return
    made.features.append(column.name)
    if column.words or column.codes or column.odd or (column.booleans and (column.numbers or column.missing)):
        _take_categories(column, made)
    else:
        _take_numbers(column, made)


def reason_against(column: Column) -> str | None:
    """Return why a column cannot be a feature as it is."""
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
        return f"dates or times{share}; replace them by a number that matters, such as a year or an age"
    if column.infinite:
        return f"{counted(column.infinite, 'value')} are infinite; replace them in the file"
    if column.odd:
        return (
            f"{counted(column.odd, 'number')} in a form that cannot be read, such as a decimal comma, a thousands "
            f"separator, a currency or a per cent sign (first in row {column.first_word}); write plain numbers"
        )
    if column.numbers and texts and (distinct is None or distinct > MOST_CATEGORIES):
        where = f", first in row {column.first_word}" if column.first_word else ""
        return (
            f"{column.numbers:,} numbers and {counted(texts, 'other value')}{where}; empty these other values "
            "if they mean a missing number, or replace them"
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
        made.note(column.name, f"{_rows(column.missing)} no value; null in the list stands for a missing value")
        values.append(None)
    made.categories[column.name] = values
    if column.booleans == column.present:
        made.categories[column.name] = ["true", "false", *([None] if column.missing else [])]
        return
    counts = column.counts or Counter()
    if column.codes:
        made.note(column.name, f"{counted(column.codes, 'number')} with leading zeros: treated as codes")
    rare = sum(count < made.least for count in counts.values())
    if rare:
        few = f"fewer than {FEWEST_OF_A_CLASS} {'records' if made.least == FEWEST_OF_A_CLASS else 'people may'} have"
        made.note(
            column.name,
            f"{few} one of its values: if it is listed only because of these records, the list reveals them"
            if rare == 1
            else f"{few} {rare} of its values: if these values are listed only because of such records, the list "
            "reveals the records",
        )
    alike = groups_of(counts)
    if alike:
        spellings = "; ".join(f"{listed(group.spellings)} differ only in {group.difference}" for group in alike)
        made.note(column.name, f"{spellings}: one category or several?")
    if rare or alike or column.codes or column.missing_words or 0 < column.missing < made.least:
        made.checked.add(("categories", column.name))


def _take_numbers(column: Column, made: Draft) -> None:
    if column.booleans:
        made.ranges[column.name] = (0.0, 1.0)
        return
    made.checked.add(("ranges", column.name))
    if column.is_text:
        made.note(column.name, "numbers that are stored as text; they are read as numbers")
    if column.missing:
        made.checked.add(("missing", column.name))
        made.note(column.name, f"{_rows(column.missing)} no number: the middle of the range replaces it")
    if column.whole and column.distinct is not None and column.distinct <= FEW_NUMBERS:
        made.note(
            column.name,
            f"only {column.distinct} different whole numbers: if they are codes, declare categories instead",
        )


def _take_ranges(columns: Mapping[str, Column], made: Draft) -> None:
    """Give each column of numbers a range; successive columns with nearly equal ranges share one."""
    for some in _alike(columns, made):
        together = len(some) >= ENOUGH_ALIKE
        for column in some:
            of = some if together else [column]
            low, high = nice_range(min(each.low for each in of), max(each.high for each in of))
            made.ranges[column.name] = low, high
            if ("missing", column.name) in made.checked:
                made.missing[column.name] = _short(low / 2 + high / 2)
    # Put the ranges in the order of the features, including those of truth values.
    made.ranges = {name: made.ranges[name] for name in made.features if name in made.ranges}


def _alike(columns: Mapping[str, Column], made: Draft) -> Iterator[list[Column]]:
    """Yield the columns whose ranges are taken from the data; similar successive columns are grouped."""
    some: list[Column] = []
    low, high, narrowest = math.inf, -math.inf, math.inf
    for name in made.features:
        if ("ranges", name) not in made.checked:
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
    """Note the columns that would dominate if they had no range, and the column that dominates although it has one."""
    squares = {
        name: columns[name].magnitudes.mean_square(*made.ranges[name], columns[name].rows)
        if ("ranges", name) in made.checked
        else 1.0  # The contribution of a one-hot row, or of an end of a boolean's range.
        for name in made.features
    }
    others = len(squares) - 1
    for name, square in squares.items():
        rest = sum(squares.values()) - square
        if square > DROWNING * (square + rest):
            made.note(
                name,
                f"it carries about {percent(square / (square + rest))} of a row's squared norm, so "
                f"{hardly_count(others)}: most values of the other columns lie near the middle of these columns' "
                "ranges; narrower ranges help, and need not include the rarest values",
            )
        if ("ranges", name) in made.checked and rest > 0:
            share = columns[name].magnitudes.share(rest, columns[name].rows, made.missing.get(name, 0.0))
            if share > DROWNING:
                made.note(
                    name,
                    f"keep a range: without one it would carry about {percent(share)} of a row's squared norm, and "
                    f"{hardly_count(others, 'would hardly count')}",
                )


def nice_range(low: float, high: float) -> tuple[float, float]:
    """Return round numbers that enclose a range closely."""
    width = high - low
    if not math.isfinite(width):
        return low, high
    if width == 0:
        # A tenth of one of the smallest floats underflows.
        width = abs(low) if abs(low) >= sys.float_info.min * 1e6 else 1.0
    # Computed from the written digits of a number: 0.3 is 3/10, not the stored float.
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
    """Return the number of rows as the subject of a sentence, with its verb."""
    return f"{count:,} {'row has' if count == 1 else 'rows have'}"
