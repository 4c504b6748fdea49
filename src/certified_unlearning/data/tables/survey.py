"""A survey of a file's columns. It counts block by block, so the file may be larger than memory.

Nothing here goes into a model. The counts depend on the records, so they are only for the author of a declaration.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from certified_unlearning.data.advice.magnitudes import Magnitudes
from certified_unlearning.data.tables.csv_file import Prose
from certified_unlearning.data.tables.spellings import Group, Spellings
from certified_unlearning.data.tables.table_file import batches, column_names, index_columns, is_csv
from certified_unlearning.data.tables.table_values import MISSING, NO_WORDS, Rows, mask_of, parses
from certified_unlearning.errors import DataError

MOST_DISTINCT = 100_000
"""Largest number of distinct values that are kept for a column. All values of the identifier are kept."""
_ROWS_AT_ONCE = 1 << 16
_SENTENCE = r"^\S+(\s+\S+){3}"
MOST_REPEATED = 50
"""A column of sentences may hold categories if it has at most this number of distinct values."""
_DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?)?( ?(Z|UTC|[+-]\d{2}(:?\d{2})?))?"
    r"|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?"
)
_CODE = re.compile(r"0\d+")
_ODD_NUMBER = re.compile(r"[-+]?[$€£]? ?\d+([.,' ]\d+)+ ?[$€£%]?|[-+]?[$€£] ?\d+([.,]\d+)?|[-+]?\d+([.,]\d+)? ?[$€£%]")


@dataclass
class Column:
    """The survey of a column.

    Attributes:
        name: Name of the column.
        rows: Number of rows.
        missing: Number of rows without a value.
        numbers: Number of values that are numbers; true and false are not counted.
        booleans: Number of values that are true or false.
        dates: Number of values that look like dates or times.
        codes: Number of whole numbers with leading zeros.
        odd: Number of values that are numbers in an unsupported form, such as ``1,5`` or ``12 %``.
        words: Number of values that belong to none of the kinds above. Values that are sentences are included.
        sentences: Number of values that are sentences of four words or more, too long for a category.
        infinite: Number of values that are numbers but are not finite.
        whole: Whether all numbers are whole.
        low: The smallest number.
        high: The largest number.
        magnitudes: Tally of the magnitudes of the column's numbers.
        first_word: Number of the row with the first value that is not a number, counted from 1.
        counts: Number of occurrences of each value; None if there are more than `MOST_DISTINCT`.
        missing_words: The words that stand for missing values in the column.
        repeated: Whether a value was seen twice.
        stored: The type that Parquet stores; None for a CSV file.
        unreadable: The reason why the values cannot be read; None if they can be read.
        groups: Spellings that a human reader would take for the same identifier; for the identifier column only.
        is_index: Whether the column is the index of a data frame.
    """

    name: str
    rows: int = 0
    missing: int = 0
    numbers: int = 0
    booleans: int = 0
    dates: int = 0
    codes: int = 0
    odd: int = 0
    words: int = 0
    sentences: int = 0
    infinite: int = 0
    whole: bool = True
    low: float = np.inf
    high: float = -np.inf
    magnitudes: Magnitudes = field(default_factory=Magnitudes)
    first_word: int | None = None
    counts: Counter[str] | None = field(default_factory=Counter)
    missing_words: set[str] = field(default_factory=set)
    repeated: bool = False
    stored: pa.DataType | None = None
    unreadable: str | None = None
    groups: list[Group] = field(default_factory=list)
    is_index: bool = False

    @property
    def present(self) -> int:
        """Number of values."""
        return self.rows - self.missing

    @property
    def distinct(self) -> int | None:
        """Number of different values; None if there are more than `MOST_DISTINCT`."""
        return None if self.counts is None else len(self.counts)

    @property
    def all_differ(self) -> bool:
        """Whether at least two rows have a value, and all of these values differ."""
        return self.present > 1 and not self.repeated

    @property
    def is_prose(self) -> bool:
        """Whether most values are sentences, and there are too many distinct values for categories."""
        return 2 * self.sentences > self.present and (self.distinct is None or self.distinct > MOST_REPEATED)

    @property
    def is_text(self) -> bool:
        """Whether Parquet stores text."""
        return self.stored is not None and (pa.types.is_string(self.stored) or pa.types.is_large_string(self.stored))

    def add(self, part: Rows, *, keep_all: bool) -> None:
        """Count some rows.

        Args:
            part: The rows.
            keep_all: Whether to keep more than `MOST_DISTINCT` values.
        """
        try:
            texts = part.texts(self.name)
        except DataError as error:
            self.unreadable = str(error)
            return
        missing = pc.is_in(pc.utf8_lower(texts), value_set=pa.array([*MISSING, None], pa.string()))
        self.rows += part.count
        self.missing += int(mask_of(missing).sum())
        self.missing_words |= {
            text for text in texts.filter(missing).unique().to_pylist() if text not in (None, *NO_WORDS)
        }
        present = texts.filter(pc.invert(missing))
        if self.counts is not None:
            for each in pc.value_counts(present).to_pylist():
                self.repeated |= each["counts"] > 1 or each["values"] in self.counts
                self.counts[each["values"]] += each["counts"]
            if len(self.counts) > MOST_DISTINCT and not keep_all:
                self.counts = None
        self.sentences += int(mask_of(pc.match_substring_regex(present, _SENTENCE)).sum())
        boolean = mask_of(pc.is_in(present, value_set=pa.array(["true", "false"])))
        self.booleans += int(boolean.sum())
        self._add_numbers(present.filter(pa.array(~boolean)), texts, part.first_row)

    def _add_numbers(self, values: pa.StringArray, texts: pa.StringArray, first_row: int) -> None:
        coded = mask_of(pc.match_substring_regex(values, f"^({_CODE.pattern})$"))
        self.codes += int(coded.sum())
        values = values.filter(pa.array(~coded))
        try:
            numbers = values.cast(pa.float64())
        except pa.ArrowInvalid:
            odd = {text: self._odd(text) for text in values.unique().to_pylist()}
            where = [row for row, text in enumerate(texts.to_pylist(), first_row) if odd.get(text)]
            if self.first_word is None:
                self.first_word = where[0]
            for text, count in ((each["values"], each["counts"]) for each in pc.value_counts(values).to_pylist()):
                if kind := odd[text]:
                    setattr(self, kind, getattr(self, kind) + count)
            numbers = pa.array([text for text in values.to_pylist() if not odd[text]], pa.string()).cast(pa.float64())
        found = np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)
        self.numbers += len(found)
        finite = found[np.isfinite(found)]
        self.infinite += len(found) - len(finite)
        if len(finite):
            self.low, self.high = min(self.low, float(finite.min())), max(self.high, float(finite.max()))
            self.whole &= bool((finite == np.round(finite)).all())
            self.magnitudes.add(finite)

    def _odd(self, text: str) -> str | None:
        """Return the name of the attribute that counts texts like the given one; None if this text is a number."""
        if parses(text):
            return None
        if _DATE.fullmatch(text):
            return "dates"
        return "odd" if _ODD_NUMBER.fullmatch(text) else "words"


def survey(path: str, identifier: str | None = None, texts: Collection[str] = ()) -> dict[str, Column]:
    """Return the surveys of a file's columns, in order.

    Args:
        path: The file.
        identifier: The column that identifies the person of a row; all of its values are kept.
        texts: Columns of text, whose values may run over several lines.

    Raises:
        DataError: The file cannot be read, has no records, or has rounded identifiers.
    """
    columns = {name: Column(name) for name in column_names(path)}
    for name in index_columns(path, list(columns)):
        columns[name].is_index = True
    typed, rows = not is_csv(path), 0
    with Spellings() as spellings:
        for part in _parts(path, list(columns), Prose(texts)):
            rows += part.count
            for column in columns.values():
                if typed:
                    column.stored = part.type_of(column.name)
                if column.unreadable is None:
                    column.add(part, keep_all=column.name == identifier)
            if identifier in columns and columns[identifier].unreadable is None:
                part.require_exact(identifier)
                spellings.add(part.spellings(identifier))
        if identifier in columns:
            columns[identifier].groups = list(spellings.groups())
    if not rows:
        raise DataError(f"{path} holds no records")
    return columns


def _parts(path: str, names: list[str], prose: Prose) -> Iterator[Rows]:
    first_row = 1
    for batch in batches(path, names, _ROWS_AT_ONCE, prose):
        yield Rows(path, first_row, batch)
        first_row += batch.num_rows
