"""Consecutive rows of a file. A column is read as texts, numbers or positions in a list; other values are errors."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from certified_unlearning.data.tables.declaration import SPACES, text_of
from certified_unlearning.data.tables.spellings import ROUNDED
from certified_unlearning.errors import DataError

MISSING = ("", r"\n", "na", "n/a", "nan", "null", "none")
"""Words for missing values in text, in lower case. PostgreSQL and MySQL write a missing value as ``\\N``."""
NO_WORDS = ("", r"\N")
"""The words in `MISSING` that mean a missing value in every kind of column, in their usual spelling."""
_MANY_LONG = 10
"""This many long numbers would not all end in a zero by chance."""


class Remedies(NamedTuple):
    """Advice for values that are not numbers.

    Attributes:
        missing: Advice if the value is missing.
        word: Advice if the value is a word; ``{column}`` is replaced by the column.
        stored: Advice if the column stores something else.
    """

    missing: str
    word: str
    stored: str


_FEATURE = Remedies(
    "declare a constant for this column in missing, or leave out the row or the column",
    "declare categories for {column}, or leave it out of the features",
    "leave it out of the features",
)
TARGET = Remedies(
    "leave out the row, because --regression (target_range in a file) needs a number in every row",
    "write it like 1234.5; --regression (target_range in a file) predicts numbers only",
    "--regression (target_range in a file) predicts numbers only",
)
"""Remedies for a label that is a number to predict."""


class UnfitError(DataError):
    """A row or a column holds something undeclared.

    Attributes:
        fact: What the row or the column holds, without advice on the declaration.
    """

    def __init__(self, fact: str, advice: str = "") -> None:
        super().__init__(f"{fact}; {advice}" if advice else fact)
        self.fact = fact


class Rows:
    """Consecutive rows of a file. Its methods raise DataError; the message names row and column.

    Args:
        path: The file.
        first_row: Number of the first of these rows in the file, from 1.
        batch: The rows.
    """

    def __init__(self, path: str, first_row: int, batch: pa.RecordBatch) -> None:
        self.path = path
        self.first_row = first_row
        self.count: int = batch.num_rows
        self._columns = dict(zip(batch.schema.names, batch.columns, strict=True))

    def where(self, index: int) -> str:
        """Return how error messages name a row."""
        return f"{self.path}, row {self.first_row + index}"

    def type_of(self, column: str) -> pa.DataType:
        """Return the stored type of a column."""
        return self._columns[column].type

    def texts(self, column: str) -> pa.StringArray:
        """Return `declaration.text_of` of each value."""
        values = self._decoded(column)
        # An extension type does not store the text of its values: a UUID is stored as 16 bytes.
        if isinstance(values.type, pa.BaseExtensionType):
            raise DataError(f"{self.path}: column {column} holds {values.type}, expected text or numbers")
        if pa.types.is_floating(values.type):
            return pa.array([text_of(value) for value in values.to_pylist()], pa.string())
        try:
            texts = pc.utf8_trim(values.cast(pa.string()), characters=SPACES)
        # The second error is raised for bytes that are not text.
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
            raise DataError(f"{self.path}: column {column} holds {values.type}, expected text or numbers") from error
        lower = pc.utf8_lower(texts)
        texts = pc.if_else(pc.is_in(lower, value_set=pa.array(["true", "false"])), lower, texts)
        return pc.replace_substring_regex(texts, pattern=r"^(-?\d+)\.0+$", replacement=r"\1")

    def numbers(
        self, column: str, missing: float | None = None, *, remedies: Remedies = _FEATURE
    ) -> NDArray[np.float64]:
        """Return each value as a finite number.

        Args:
            column: The column.
            missing: Replacement for a missing number; None if no number may be missing.
            remedies: Advice in error messages.
        """
        values = self._decoded(column)
        if _is_text(values):
            values = self.texts(column)
            lower = pc.utf8_lower(values)
            absent = pc.is_in(lower, value_set=pa.array([*MISSING, None], pa.string()))
            if missing is None:
                self._refuse_missing(absent, column, remedies.missing)
            values = pc.if_else(absent, pa.scalar(None, pa.string()), values)
            self._refuse_truth_among_numbers(lower, absent, column)
            values = pc.if_else(pc.equal(lower, "true"), "1", pc.if_else(pc.equal(lower, "false"), "0", values))
        elif not (pa.types.is_null(values.type) or _is_number(values.type)):
            raise UnfitError(f"{self.path}: column {column} holds {values.type}, expected numbers", remedies.stored)
        elif pa.types.is_boolean(values.type):
            values = values.cast(pa.uint8())
        try:
            numbers = values.cast(pa.float64(), safe=False)
        except pa.ArrowInvalid as error:
            wrong, text = next(
                (index, text) for index, text in enumerate(values.to_pylist()) if text and not parses(text)
            )
            raise UnfitError(
                f"{self.where(wrong)}: {column} is {text!r}, expected a number", remedies.word.format(column=column)
            ) from error
        absent = pc.is_null(numbers, nan_is_null=True)
        if missing is None:
            self._refuse_missing(absent, column, remedies.missing)
        else:
            numbers = pc.if_else(absent, pa.scalar(missing, pa.float64()), numbers)
        array = np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)
        if (index := _first(~np.isfinite(array))) is not None:
            found = values[index].as_py()  # Shown as in the file, because 1e400 is infinite only in float64.
            raise UnfitError(f"{self.where(index)}: {column} is {found}, expected a finite number")
        return array

    def positions(self, column: str, declared: Sequence[str | None], kind: str, remedy: str) -> NDArray[np.int64]:
        """Return the position of each value in a list of declared texts.

        Args:
            column: The column.
            declared: The possible values; None for a missing value.
            kind: Name of the declared values in messages.
            remedy: Advice on a missing value.
        """
        texts = self.texts(column)
        if None in declared:
            missing = pc.is_in(pc.utf8_lower(texts), value_set=pa.array([*MISSING, None], pa.string()))
            own = pc.is_in(texts, value_set=pa.array([text for text in declared if text is not None], pa.string()))
            texts = pc.if_else(pc.and_(missing, pc.invert(own)), pa.scalar(None, pa.string()), texts)
        found = pc.index_in(texts, value_set=pa.array(declared, pa.string()))
        if (index := _first(mask_of(found.is_null()))) is not None:
            text = texts[index].as_py()
            if text is None or text.lower() in MISSING:
                raise UnfitError(f"{self.where(index)}: {column} is missing", remedy)
            raise UnfitError(
                f"{self.where(index)}: {column} is {text!r}, which is none of its {kind} {listed(declared)}"
            )
        return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)

    def prose(self, column: str) -> list[str]:
        """Return each stored value, which must be text; a missing value becomes an empty string."""
        values = self._decoded(column)
        if not (_is_text(values) or pa.types.is_null(values.type)):
            raise DataError(
                f"{self.path}: column {column} holds {values.type}, expected text; leave it out of the text columns"
            )
        return [text or "" for text in values.to_pylist()]

    def identifiers(self, column: str) -> list[str]:
        """Return each value as text; none may be missing.

        Raises:
            DataError: The column holds numbers that may have been rounded, which could merge two people into one.
        """
        self.require_exact(column)
        texts = self.texts(column)
        self._refuse_missing(pc.is_in(texts, value_set=pa.array(["", None], pa.string())), column, "leave out the row")
        return [str(text) for text in texts.to_pylist()]

    def spellings(self, column: str) -> list[str]:
        """Return the identifiers as spelled in the file, leaving out missing ones.

        Several of these spellings may be equal for `identifiers`, such as 7.0 and 7, or two spellings that differ only
        in surrounding blanks.
        """
        return [str(text) for text in self._decoded(column).cast(pa.string()).drop_null().to_pylist()]

    def require_exact(self, column: str) -> None:
        """Raise `DataError` unless a column's values are exact: text, or numbers that were not rounded."""
        values = self._decoded(column)
        if pa.types.is_floating(values.type):
            raise DataError(
                f"{self.path}: the identifier {column} is stored as floating-point numbers ({values.type}), which are "
                "rounded from 2^53 on and could merge several people into one; store whole numbers or text (if "
                'identifiers are missing, pandas needs the type "Int64")'
            )
        if not _is_text(values) and not pa.types.is_integer(values.type):
            return
        values = values.cast(pa.string())  # Not every function accepts views.
        self._refuse_cut(values, column)
        rounded = pc.match_substring_regex(values, pattern=f"^({ROUNDED.pattern})$")
        if (index := _first(mask_of(pc.fill_null(rounded, False)))) is not None:
            raise DataError(
                f"{self.where(index)}: the identifier {column} is {values[index].as_py()!r}, a number that a program "
                "has rounded; export the column as text"
            )

    def _refuse_cut(self, values: pa.StringArray, column: str) -> None:
        long, cut = (
            mask_of(pc.fill_null(pc.match_substring_regex(values, pattern), False))
            for pattern in (r"^\s*\d{16,}\s*$", r"^\s*\d{15}0+\s*$")
        )
        if long.sum() >= _MANY_LONG and not (long & ~cut).any():
            place = int(long.argmax())
            raise DataError(
                f"{self.where(place)}: the identifier {column} is {values[place].as_py()}, and all long identifiers "
                "end in zeros after 15 digits, because spreadsheets round longer numbers; export the column as text"
            )

    def _refuse_truth_among_numbers(self, lower: pa.StringArray, absent: pa.BooleanArray, column: str) -> None:
        truth = mask_of(pc.fill_null(pc.is_in(lower, value_set=pa.array(["true", "false"])), False))
        if not truth.any():
            return
        known = mask_of(pc.is_in(lower, value_set=pa.array(["true", "false", "0", "1"])))
        if (index := _first(~known & ~mask_of(absent))) is not None:
            place = int(truth.argmax())
            raise DataError(
                f"{self.where(place)}: {column} is {lower[place].as_py()}, but in row {self.first_row + index} it is "
                f"{lower[index].as_py()!r}; a column holds truth values or numbers, not both"
            )

    def _decoded(self, column: str) -> pa.Array:
        values = self._columns[column]
        return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values

    def _refuse_missing(self, missing: pa.BooleanArray, column: str, remedy: str) -> None:
        if (index := _first(mask_of(missing))) is not None:
            raise UnfitError(f"{self.where(index)}: {column} is missing", remedy)


def listed(names: Sequence[str | None], most: int = 12) -> str:
    """Return at most a given number of names for an error message."""
    shown = ", ".join(repr(name) if name is not None else "null" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def mask_of(values: pa.BooleanArray) -> NDArray[np.bool_]:
    """Return Arrow's booleans, none of them null, as an array."""
    return np.asarray(values.to_numpy(zero_copy_only=False), np.bool_)


def _first(mask: NDArray[np.bool_]) -> int | None:
    """Return the place of the first True, if there is one."""
    return int(mask.argmax()) if mask.any() else None


def _is_text(values: pa.Array) -> bool:
    kinds = pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view
    return any(is_kind(values.type) for is_kind in kinds)


def _is_number(kind: pa.DataType) -> bool:
    kinds = pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean
    return any(is_kind(kind) for is_kind in kinds)


def parses(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        pa.scalar(text).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True
