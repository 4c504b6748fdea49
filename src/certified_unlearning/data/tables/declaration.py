"""Declarations of users' own tables: `own_data` in `params.yaml`. The tables are not opened here."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from certified_unlearning.data.tables.targets import TargetScale
from certified_unlearning.errors import ParameterError

DECLARED = "declared"
"""The name that certificates give to declared features.

Declared features are made as a declaration says, from a table or from a user's own data set.
"""
CLASSES_FROM_RECORDS = "declared, classes from the records"
"""The name that certificates give to declared features if the list of classes is taken from the records."""

Value = str | bool | int | float
MOST_CLASSES = 128
"""Largest number of classes: labels are stored as 8-bit whole numbers from 0 on."""
LEAST_WEIGHT, LARGEST_WEIGHT = 1e-6, 1e6
"""The smallest and the largest class weight; values outside this range are treated as mistakes."""
_BARE = ("true", "false")
RUN = " to "
"""Separator between the first and the last column of a run: ``pixel_0 to pixel_767``."""
MOST_WIDE = 1 << 24
"""Largest number of columns that text is hashed into."""
SPACES = " \t\r\n"
"""Characters that may surround a value without being part of it."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Split(_Model):
    """Which rows of a table are test records."""

    test: Value = Field(
        description="if `column` is given, the value that marks test records; otherwise the fraction of records, "
        "strictly between 0 and 1, that are drawn as test records by the seed"
    )
    column: str | None = Field(None, description="the column that marks test records; null: test records are drawn")


class Text(_Model):
    """The settings by which `HashingVectorizer` of scikit-learn turns text into numbers; it keeps no vocabulary."""

    width: int = Field(
        default=1 << 16,
        ge=2,
        le=MOST_WIDE,
        description="number of columns into which the words are hashed, chosen without looking at this file: 65536, or "
        "16384 for short texts; words that share a column cost a little accuracy",
    )
    ngrams: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] = Field(
        default=(1, 1), description="[least, most] number of neighbouring words, or characters, that form one n-gram"
    )
    analyzer: Literal["word", "char", "char_wb"] = Field(
        default="word", description="word, char, or char_wb (characters within words), as scikit-learn calls them"
    )


class Table(_Model):
    """A CSV or Parquet file of labelled records, and how each row becomes features, independently of other rows.

    In ``features``, and as a key of ``categories``, ``ranges`` and ``missing``, a run such as ``pixel_0 to pixel_767``
    represents many columns; `table.resolve` expands it.
    """

    path: str = Field(description="a .csv, .csv.gz or .parquet file, relative to the directory of params.yaml")
    label: str = Field(description="the column to predict")
    classes: tuple[Value, ...] | None = Field(
        None,
        description="the label's values, at least two, in the order of the classes; if there are two, the second is "
        "+1. null: the values in the file, sorted; this list may show that a removed record existed",
    )
    target_range: tuple[float, float] | None = Field(
        None,
        exclude_if=lambda ends: ends is None,
        description="[lowest, highest] for a numeric label (regression): two numbers that are known beforehand and not "
        "taken from this file. A label outside this range is replaced by the nearer end of the range. null: the "
        "label's values are classes. Only `unlearn init` predicts numbers",
    )
    identifier: str | None = Field(
        None, description="the column that identifies each record's person, or null; a person may have several records"
    )
    features: tuple[str, ...] | None = Field(
        None,
        description="a list of columns, or of runs such as 'pixel_0 to pixel_767' (all columns from the first to the "
        "last, in the file's order); null: all other columns",
    )
    categories: dict[str, Annotated[tuple[Value | None, ...], Field(min_length=1)]] = Field(
        {},
        description="a list of possible values for each column, or for a run of columns such as 'q1 to q20' (null: a "
        "missing value); each value becomes a feature of 0 or 1",
    )
    ranges: dict[str, tuple[float, float]] = Field(
        {},
        description="[lowest, highest]: two numbers for each column (or for a run of columns such as 'pixel_0 to "
        "pixel_767') that are known beforehand and not taken from this file. They become -1 and 1, and a value outside "
        "this range is replaced by the nearer end of the range",
    )
    missing: dict[str, float] = Field(
        {},
        description="the number that replaces missing values in a column of numbers, or in a run of such columns. It "
        "must be known beforehand and not taken from this file, and lie in the column's range if there is one",
    )
    text: dict[str, Text] = Field(
        {},
        exclude_if=lambda columns: not columns,
        description="{width: 65536} for each column of free text: its words are hashed into this number of columns. A "
        "missing text has no words. Only `unlearn init` accepts text",
    )
    norm: Literal["unit", "at-most-1"] = Field(
        "unit",
        description="unit (each row is divided by its own norm; a row of zeros stays) or at-most-1 (rows stay as they "
        "are, and a longer row is an error)",
    )
    class_weight: dict[str, float] | None = Field(
        None,
        exclude_if=lambda weights: weights is None,
        description="a number above 0 for each class, by which the losses of its records are multiplied. It must be "
        "fixed beforehand and not be computed from this file. null: 1 for all classes (the pipeline requires null: it "
        "weighs all classes equally)",
    )
    split: Split | None = Field(
        None,
        description="{test: 0.2} (drawn), {column: part, test: holdout} (marked), or null (no "
        "test records; the pipeline needs some)",
    )

    @field_validator("class_weight", mode="before")
    @classmethod
    def _are_weights(cls, given: Any) -> dict[str, float] | None:
        return None if given is None else weights_by_class(given)

    @property
    def is_regression(self) -> bool:
        """Whether the label is a number to predict; otherwise its values are classes."""
        return self.target_range is not None

    @property
    def roles(self) -> dict[str, str]:
        """The columns that are not features, by role."""
        marks = self.split.column if self.split else None
        roles = {"label": self.label, "identifier": self.identifier, "split.column": marks}
        return {role: column for role, column in roles.items() if column is not None}


def check(table: Table, where: str, *, written_out: bool = False) -> None:
    """Check that the parts of a declaration fit together.

    Args:
        table: The declaration.
        where: Name of the declaration in error messages.
        written_out: Whether runs of columns were expanded. Otherwise, conditions on runs are not checked where they
            need the file's columns.

    Raises:
        ParameterError: The parts do not fit together; the message names the key.
    """
    roles = table.roles
    for role, column in roles.items():
        if other := next((each for each in roles if each != role and roles[each] == column), None):
            raise ParameterError(
                f"{where}: {role} and {other} are the same column {column!r}; give each a column of its own"
            )
        for key in ("features", "categories", "ranges", "missing", "text"):
            if column in (getattr(table, key) or ()):
                instead = ""
                if key == "ranges" and role == "label" and not table.is_regression:
                    instead = "; a number to predict needs --regression, or target_range in a file"
                raise ParameterError(f"{where}.{key} contains {column!r}, which is the {role}, not a feature{instead}")
    if table.features is not None and not table.features:
        raise ParameterError(f"{where}.features is empty, but must list at least one column, or be null")
    _check_distinct(table.features or (), f"{where}.features")
    open_ended = not written_out and any(RUN in name for name in table.features or ())
    for key in ("categories", "ranges", "missing", "text"):
        for column in getattr(table, key):
            if open_ended or (RUN in column and not written_out):
                continue
            if table.features is not None and column not in table.features:
                raise ParameterError(f"{where}.{key} names {column!r}, which is not among the features")
            if key == "ranges" and column in table.categories:
                raise ParameterError(f"{where}: {column!r} has categories and a range; leave one of them out")
            if key == "text":
                _check_text(table, column, where)
    for column, values in table.categories.items():
        _check_distinct(values, f"{where}.categories.{column}")
    for column, (low, high) in table.ranges.items():
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ParameterError(
                f"{where}.ranges.{column} is [{low:g}, {high:g}], but must be two numbers, the lower one first"
            )
    _check_missing(table, where)
    if table.target_range is not None:
        if table.class_weight is not None:
            raise ParameterError(
                f"{where} has both class_weight and target_range, but numbers have no classes to weight"
            )
        if table.classes is not None:
            raise ParameterError(
                f"{where} has both classes and target_range, but a label is either a class or a number to predict"
            )
        TargetScale.of(table.target_range, f"{where}.target_range", intercept=True)
    if table.classes is not None:
        _check_distinct(table.classes, f"{where}.classes")
        if not 2 <= len(table.classes) <= MOST_CLASSES:
            raise ParameterError(
                f"{where}.classes lists {len(table.classes)} values, but must list between 2 and {MOST_CLASSES}"
            )
        check_weights(table, where)
    if table.split is not None and table.split.column is None:
        fraction = table.split.test
        if isinstance(fraction, str | bool) or not 0 < fraction < 1:
            raise ParameterError(
                f"{where}.split.test is {fraction!r}, but without a column it must be the fraction of test records, "
                "strictly between 0 and 1"
            )


def _check_text(table: Table, column: str, where: str) -> None:
    other = next((key for key in ("categories", "ranges", "missing") if column in getattr(table, key)), None)
    if other is not None:
        raise ParameterError(f"{where}: {column!r} is text, but is also named in {other}; leave one of them out")
    least, most = table.text[column].ngrams
    if least > most:
        raise ParameterError(f"{where}.text.{column}.ngrams is [{least}, {most}], but the lower number must come first")


def _check_missing(table: Table, where: str) -> None:
    for column, value in table.missing.items():
        key = f"{where}.missing.{column}"
        if column in table.categories:
            raise ParameterError(
                f"{key} is {value:g}, but {column!r} has categories: declare null as one of them if values may be "
                "missing"
            )
        if not math.isfinite(value):
            raise ParameterError(f"{key} is {value}, but must be a finite number")
        low, high = table.ranges.get(column, (-math.inf, math.inf))
        if not low <= value <= high:
            raise ParameterError(f"{key} is {value:g}, but must lie in the range of {column!r}, [{low:g}, {high:g}]")


def weights_by_class(given: object) -> dict[str, float]:
    """Return class weights by class; each key is the text that identifies its class.

    Raises:
        PydanticCustomError: The value is not a mapping, has no class or a duplicate class, or a weight is not a number
            above 0.
    """
    if not isinstance(given, Mapping) or not given:
        raise _no_weights(
            "must give a number for each class, such as {example}, got {given}",
            example='{"no": 1, "yes": 10}',
            given=repr(given),
        )
    found: dict[str, float] = {}
    for name, weight in given.items():
        text = str(text_of(name))
        if text in found:
            raise _no_weights("names the class {name} twice; name it once", name=repr(text))
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not LEAST_WEIGHT <= weight <= LARGEST_WEIGHT:
            raise _no_weights(
                "gives the class {name} the weight {weight}, but a weight must be a number above 0, from {least} to "
                "{most}",
                name=repr(text),
                weight=repr(weight)[:40],
                least=f"{LEAST_WEIGHT:g}",
                most=f"{LARGEST_WEIGHT:g}",
            )
        found[text] = float(weight)
    return found


def in_words(class_weight: Mapping[str, float]) -> str:
    """Return class weights as words for a message."""
    return ", ".join(f"{name!r} {weight:g}" for name, weight in class_weight.items())


def _no_weights(sentence: str, **named: str) -> PydanticCustomError:
    return PydanticCustomError("class_weight", sentence, named)


def check_weights(table: Table, where: str) -> None:
    """Check that each class has a weight and nothing else does, or that there are no weights.

    Args:
        table: The declaration, with its classes.
        where: Name of the declaration in error messages.

    Raises:
        ParameterError: A class is missing or unknown.
    """
    if table.class_weight is None:
        return
    weights, classes = table.class_weight, [str(text_of(value)) for value in table.classes or ()]
    names = ", ".join(map(repr, classes))
    unknown = next((name for name in weights if name not in classes), None)
    if unknown is not None:
        quotes = "; YAML reads a bare yes or no as true or false: put quotes around it" if unknown in _BARE else ""
        raise ParameterError(f"{where}.class_weight names {unknown!r}, which is none of the classes {names}{quotes}")
    left_out = next((name for name in classes if name not in weights), None)
    if left_out is not None:
        raise ParameterError(
            f"{where}.class_weight names no weight for {left_out!r}; give each of the classes {names} a weight, "
            "1 for an ordinary class"
        )


def parse(text: str, where: str) -> Table:
    """Read a declaration from JSON.

    Raises:
        ParameterError: The text is not a declaration; the message names the first wrong key.
    """
    try:
        table = Table.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ParameterError(": ".join(filter(None, [where, key, first["msg"]]))) from error
    check(table, where)
    return table


def text_of(value: Value | None) -> str | None:
    """Return the text that identifies a value, whatever type it was stored as; None for a missing number.

    Surrounding blanks are ignored; 7 and 7.0 give the same text, and so do true and True.
    """
    if value is None or value != value:  # Only NaN differs from itself.
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = str(value).strip(SPACES)
    if text.lower() in ("true", "false"):
        return text.lower()
    return re.sub(r"^(-?\d+)\.0+\Z", r"\1", text, flags=re.ASCII)


def _check_distinct(values: tuple[Value | None, ...], where: str) -> None:
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        raise ParameterError(f"{where} lists a number that is not finite; put quotes around it if it is a word")
    texts = [text_of(value) for value in values]
    for value, text in zip(values, texts, strict=True):
        if texts.count(text) > 1:
            raise ParameterError(f"{where} lists {value!r} twice")
