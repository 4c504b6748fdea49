"""The classes of a label column, the number of records of each, and which classes may reveal a record."""

import json
import shlex
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Literal, NoReturn

from certified_unlearning.accounting.core.losses import ClassWeights
from certified_unlearning.data.tables.csv_file import Prose
from certified_unlearning.data.tables.declaration import MOST_CLASSES, Table, text_of
from certified_unlearning.data.tables.spellings import folded
from certified_unlearning.data.tables.table_file import batches
from certified_unlearning.data.tables.table_values import MISSING, Rows, listed, parses
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.text import counted

FEWEST_OF_A_CLASS = 10
"""A class with fewer records than this reveals each of them, because the list of classes outlives these records."""
_ROWS_AT_ONCE = 1 << 22
_MOST_NAMED = 12
_FEW_NUMBERS = 10
"""Labels with more distinct numbers than this are hardly ever classes."""


def count_classes(table: Table) -> dict[str, int]:
    """Count the records with each label. Labels that are numbers come first, in increasing order, and texts follow.

    Raises:
        DataError: The file cannot be read, or its label has fewer than 2 or more than 128 values.
    """
    counts: Counter[str] = Counter()
    first_row = 1
    for batch in batches(table.path, [table.label], _ROWS_AT_ONCE, Prose(table.text)):
        texts = Rows(table.path, first_row, batch).texts(table.label)
        for each in texts.value_counts().to_pylist():
            text = each["values"]
            if text is not None and text.lower() not in MISSING:
                counts[text] += each["counts"]
        if len(counts) > MOST_CLASSES:
            raise DataError(
                f"{table.path}: the label {table.label} has more than {MOST_CLASSES} different values; "
                + (in_place_of_classes(table.label) if are_numbers(counts) else "is it a class?")
            )
        first_row += batch.num_rows
    if first_row == 1:
        raise DataError(f"{table.path} holds no records")
    if len(counts) < 2:
        raise DataError(
            f"{table.path}: the label {table.label} has only {listed(sorted(counts)) or 'no value'}, expected two or "
            "more classes (words such as NA and None count as missing, unless classes are declared)"
        )
    return {
        text: counts[text]
        for text in sorted(counts, key=lambda text: (0, float(text), text) if parses(text) else (1, 0.0, text))
    }


def are_numbers(classes: Collection[str]) -> bool:
    """Return whether the labels are so many different numbers that they are probably not classes."""
    return len(classes) > _FEW_NUMBERS and all(map(parses, classes))


def in_place_of_classes(label: str) -> str:
    """Return advice for a label whose numbers are not classes."""
    quoted = shlex.quote(f"{label}=LOW:HIGH")
    return (
        f"if they are numbers to predict, not classes: `unlearn init --regression --range {quoted}` (in a YAML "
        "file: target_range: [LOW, HIGH]) with two numbers known beforehand"
    )


def require_common(
    table: Table, counts: Mapping[str, int], *, fewest: int, noun: Literal["record", "person"] = "record"
) -> None:
    """Raise `DataError` if a class has too few records or people.

    The error names the class and what to declare instead.
    """
    rare = [text for text in sorted(counts, key=counts.__getitem__) if counts[text] < fewest]
    if not rare:
        return
    if 2 * len(rare) > len(counts) and are_numbers(counts):
        raise DataError(
            f"{table.path}: the label {table.label} has {len(counts)} different numbers, and most of them belong to "
            f"fewer than {counted(fewest, noun)}; {in_place_of_classes(table.label)}"
        )
    misspelt = {text: common for text in rare if (common := _more_common_spelling(text, counts)) is not None}
    named = ", ".join(
        f"{text!r} ({counted(counts[text], noun)}"
        + (f", probably a misspelling of {misspelt[text]!r})" if text in misspelt else ")")
        for text in rare[:_MOST_NAMED]
    )
    if len(rare) > _MOST_NAMED:
        named += f" and {len(rare) - _MOST_NAMED} more"
    flags = " ".join(f"--class {shlex.quote(text)}" for text in counts)
    correct = "correct the misspelling, or " if misspelt else ""
    one = len(rare) == 1
    which = "this class" if one else "these classes"
    who = "this person is" if one and counts[rare[0]] == 1 else "these people are"
    raise DataError(
        f"{table.path}: fewer than {counted(fewest, noun)} have the {'class' if one else 'classes'} {named} of the "
        f"label {table.label}, and the classes are not declared. If the list of classes were taken from the records, "
        f"it would contain {which} even after {who} removed, and would reveal that such records existed; "
        f"{correct}declare the classes that you know without these records: {flags} "
        f"(in a YAML file: classes: {json.dumps([*counts], ensure_ascii=False)})"
    )


def weights_of(table: Table) -> ClassWeights:
    """Return a resolved table's class weights, in the order of the classes."""
    given = table.class_weight
    return ClassWeights() if given is None else ClassWeights.divided([*given.values()])


def suggested_weights(counts: Mapping[str, int]) -> dict[str, float]:
    """Return a weight for each class.

    The weight is the size of the most frequent class divided by the size of the weighted class, to one significant
    digit.

    Args:
        counts: Number of records of each class; classes without records get the weight of the most frequent one.
    """
    most = max(counts.values())
    return {name: float(f"{most / count:.1g}") if count else 1.0 for name, count in counts.items()}


def flag_of_weights(weights: Mapping[str, float]) -> str:
    """Return weights in the form of an option of `unlearn init`."""
    if any(set(name) & set(",={") for name in weights):
        return f"--class-weight {shlex.quote(json.dumps(weights, ensure_ascii=False))}"
    return f"--class-weight {shlex.quote(','.join(f'{name}={weight:g}' for name, weight in weights.items()))}"


def refuse_balanced(table: Table) -> NoReturn:
    """Raise `ParameterError` for weights that depend on a table's labels, and propose constants instead.

    Raises:
        DataError: The labels cannot be read.
        ParameterError: In all other cases.
    """
    counts = count_classes(table)
    names = [*counts] if table.classes is None else [str(text_of(value)) for value in table.classes]
    weights = suggested_weights({name: counts.get(name, 0) for name in names})
    raise ParameterError(
        "class_weight is 'balanced', which is computed from all labels, including labels of people who ask to be "
        "removed later, so no guarantee would cover it; give fixed numbers that you know or choose, and keep them. "
        f"Rounded to one digit, 'balanced' would be {flag_of_weights(weights)}, which still reveals roughly how rare "
        "each class is in this file"
    )


def _more_common_spelling(text: str, counts: Mapping[str, int]) -> str | None:
    """Return the most common class with which this one may be confused, if it is more common than this one."""
    others = [other for other in counts if folded(other) == folded(text) and counts[other] > counts[text]]
    return max(others, key=counts.__getitem__, default=None)
