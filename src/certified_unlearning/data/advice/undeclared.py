"""One message about everything in a table that its declaration does not cover. It says what to declare for each column.

The file is read twice more for this message, so the message is made only after reading has failed. Counts and values
come from the records: they are for the operator only.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from certified_unlearning.data.tables.classes import FEWEST_OF_A_CLASS
from certified_unlearning.data.tables.csv_file import Prose
from certified_unlearning.data.tables.declaration import Table, text_of
from certified_unlearning.data.tables.drafting import reason_against
from certified_unlearning.data.tables.runs import chosen_features, written_out
from certified_unlearning.data.tables.survey import Column
from certified_unlearning.data.tables.table import no_features_by_name
from certified_unlearning.data.tables.table_file import batches, column_names
from certified_unlearning.data.tables.table_values import MISSING, Rows, listed, mask_of, parses
from certified_unlearning.errors import DataError
from certified_unlearning.text import counted

_ROWS_AT_ONCE = 1 << 16
_MOST_LINES = 20
_MOST_NAMED = 12
_LEFT_OUT = "leave it out"
_CHANGED = "leave it out, or change it in the file"
_WITHOUT_ROWS = "leave out such rows"
_NUMBERS_ONLY = "leave out such rows, or write numbers like 1234.5; --regression (target_range) predicts only numbers"
_PLAIN = re.compile(r"\w\S*")


class Unfit(NamedTuple):
    """A column that the declaration does not cover.

    Attributes:
        column: The column's name.
        fact: What is wrong with the column, the number of rows concerned, and the first of these rows.
        flags: Advice for the column, as flags of `unlearn init`.
        keys: The same advice for a declaration in a file, which names keys instead of flags.
    """

    column: str
    fact: str
    flags: str
    keys: str


class UndeclaredError(DataError):
    """A table has columns that its declaration does not cover; the message names each such column and its flags."""

    def __init__(self, table: Table, unfit: Sequence[Unfit], features: Sequence[str], bare: Sequence[str]) -> None:
        self._table, self._unfit, self._features, self._bare = table, unfit, features, bare
        super().__init__(self._message(None))

    def by_keys(self, file: str) -> DataError:
        """Return the same error for a declaration in a file: it names keys instead of flags."""
        return DataError(self._message(file))

    def _message(self, file: str | None) -> str:
        path, lines = self._table.path, [self._line(each, file) for each in self._unfit[:_MOST_LINES]]
        if len(self._unfit) == 1:
            drafts = [] if file is not None else [f"{self._draft()} drafts a declaration of all columns"]
            return "; ".join([f"{path}: {lines[0]}", *self._advice(file), *drafts])
        if len(self._unfit) > _MOST_LINES:
            lines.append(f"and {counted(len(self._unfit) - _MOST_LINES, 'more column')}")
        many = counted(len(self._unfit), "column")
        if file is None:
            first = (
                f"{path} has {many} that your declaration does not cover. Begin with {self._draft()}: it drafts a "
                "declaration of all columns, for `unlearn init MODEL_DIR --table table.yaml`. Or declare by flags:"
            )
        else:
            first = f"{path} has {many} that {file} does not cover:"
        return "\n".join([first, *(f"  {line}" for line in lines), *self._advice(file)])

    def _draft(self) -> str:
        table = self._table
        words = [table.path, "--label", table.label, "--id", str(table.identifier)]
        words += ["--regression"] * table.is_regression
        words += [part for column in table.text for part in ("--text", column)]
        return f"`unlearn declare {shlex.join(words)} -o table.yaml`"

    @staticmethod
    def _line(unfit: Unfit, file: str | None) -> str:
        name = unfit.column if _PLAIN.fullmatch(unfit.column) else repr(unfit.column)
        return f"{name}: {unfit.fact}: {unfit.flags if file is None else unfit.keys}"

    def _advice(self, file: str | None) -> Iterator[str]:
        """Yield messages that concern several columns."""
        left_out = [each.column for each in self._unfit if each.flags in (_LEFT_OUT, _CHANGED)]
        if left_out:
            yield f"to leave out {listed(left_out)}, name the other columns: {self._others(left_out, file)}"
        if self._bare and self._table.norm == "unit":
            how = f"--range {shlex.quote(f'{self._bare[0]}=LOW:HIGH')}" if file is None else "[LOW, HIGH] under ranges"
            yield (
                f"give each of these columns of numbers a range, too ({how}): {listed(self._bare)}; otherwise the "
                "column with the largest numbers dominates all others"
            )
        if any(each.flags not in (_LEFT_OUT, _CHANGED, _WITHOUT_ROWS, _NUMBERS_ONLY) for each in self._unfit):
            yield "write what you know without the file: no guarantee covers ranges and constants taken from it"

    def _others(self, left_out: Sequence[str], file: str | None) -> str:
        others = [column for column in self._features if column not in left_out]
        if file is not None:
            return "list them under features"
        if len(others) > _MOST_NAMED:
            return "--feature for each, or for a run of them: --feature 'first to last'"
        return " ".join(f"--feature {shlex.quote(column)}" for column in others)


@dataclass
class _Rows:
    """The rows of a column that the declaration does not cover.

    Attributes:
        counts: Number of rows by kind: ``missing`` (a required value is missing) and ``others`` (a value was not
            declared).
        first: The first row of each kind, from 1.
        values: The first few undeclared values, in order of occurrence.
    """

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)
    values: dict[str, None] = field(default_factory=dict)

    def add(self, part: Rows, texts: pa.StringArray, missing: NDArray[np.bool_], others: NDArray[np.bool_]) -> None:
        """Count some rows."""
        for name, mask in (("missing", missing), ("others", others)):
            if mask.any():
                self.counts[name] += int(mask.sum())
                self.first.setdefault(name, part.first_row + int(mask.argmax()))
        if len(self.values) <= _MOST_NAMED:
            self.values |= dict.fromkeys(texts.filter(pa.array(others)).unique().to_pylist()[: _MOST_NAMED + 1])

    def where(self, name: str) -> str:
        """Return a text that says how many rows were counted under a name, and which of them is the first."""
        count, first = self.counts[name], f"row {self.first[name]:,}"
        return f"in {counted(count, 'row')}, the first is {first}" if count > 1 else f"in {first}"


def require_covered(table: Table) -> None:
    """Raise `UndeclaredError` if a table has columns that its declaration does not cover.

    Args:
        table: The declaration, resolved or not. The columns to which it gives roles must be in the file.

    Raises:
        UndeclaredError: The table has columns that the declaration does not cover.
        DataError: The file cannot be read.
        ParameterError: The declaration names columns that the file does not have.
    """
    columns = column_names(table.path)
    unfit = []
    if table.features is None:
        by_name = no_features_by_name(table, columns)
        unfit = [Unfit(column, f"it {reason}", _LEFT_OUT, _LEFT_OUT) for column, reason in by_name.items()]
        features = tuple(each for each in columns if each not in by_name and each not in table.roles.values())
    else:
        features = chosen_features(table, columns)
    table = written_out(table.model_copy(update={"features": features}), columns)
    found = _rows_of(table)
    surveyed = _surveyed(table, [column for column, rows in found.items() if rows.counts])
    unfit += [_unfit(table, found[column], survey) for column, survey in surveyed.items()]
    if unfit:
        words = {column for column, survey in surveyed.items() if survey.numbers < survey.present}
        # The advice for columns with missing numbers names the range already.
        missing = {column for column, rows in found.items() if rows.counts["missing"]}
        others = {*table.categories, *table.text, *table.ranges, *words, *missing}
        bare = [column for column in features if column not in others]
        raise UndeclaredError(table, unfit, features, bare)


def _parts(table: Table, columns: Sequence[str]) -> Iterator[Rows]:
    first_row = 1
    for batch in batches(table.path, columns, _ROWS_AT_ONCE, Prose(table.text)):
        yield Rows(table.path, first_row, batch)
        first_row += batch.num_rows


def _rows_of(table: Table) -> Mapping[str, _Rows]:
    """Return, for each column, the rows that the declaration does not cover."""
    columns = [*table.roles.values(), *(each for each in table.features or () if each not in table.text)]
    marks = table.roles.get("split.column")
    found = {column: _Rows() for column in columns if column != marks}
    for part in _parts(table, [*found]):
        for column, rows in found.items():
            try:
                texts = part.texts(column)
            except DataError:  # Parquet stores neither text nor numbers there.
                texts = pa.nulls(part.count, pa.string())
                rows.add(part, texts, np.zeros(part.count, np.bool_), np.ones(part.count, np.bool_))
            else:
                rows.add(part, texts, *_masks(table, column, texts))
    return found


def _masks(table: Table, column: str, texts: pa.StringArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the rows in which a required value is missing, and those in which the value was not declared."""
    none = np.zeros(len(texts), np.bool_)
    if column == table.identifier:
        return mask_of(pc.is_in(texts, value_set=pa.array(["", None], pa.string()))), none
    missing = mask_of(pc.is_in(pc.utf8_lower(texts), value_set=pa.array([*MISSING, None], pa.string())))
    if column == table.label and table.classes is None and not table.is_regression:
        return missing, none  # Any value is a class.
    declared = _declared(table, column)
    if declared is not None:
        known = mask_of(
            pc.is_in(texts, value_set=pa.array([each for each in declared if each is not None], pa.string()))
        )
        return (none if None in declared else missing & ~known), ~known & ~missing
    numbers = [each for each in pc.unique(texts).to_pylist() if each is not None and _is_number(each)]
    others = ~mask_of(pc.is_in(texts, value_set=pa.array(numbers, pa.string()))) & ~missing
    return (none if column in table.missing else missing), others


def _is_number(text: str) -> bool:
    return text in ("true", "false") or (parses(text) and bool(np.isfinite(float(text))))


def _declared(table: Table, column: str) -> list[str | None] | None:
    """Return the texts that a column may have; None for numbers."""
    if column in table.categories:
        return [text_of(value) for value in table.categories[column]]
    if column == table.label and table.classes is not None:
        return [text_of(value) for value in table.classes]
    return None


def _surveyed(table: Table, names: Sequence[str]) -> Mapping[str, Column]:
    columns = {name: Column(name) for name in names}
    for part in _parts(table, names) if names else ():
        for column in columns.values():
            if column.unreadable is None:
                column.add(part, keep_all=False)
    return columns


def _unfit(table: Table, rows: _Rows, column: Column) -> Unfit:
    name = column.name
    missing = f"missing {rows.where('missing')}" if rows.counts["missing"] else ""
    if name == table.label and table.is_regression:
        others = (
            f"{listed([*rows.values], 3)} {rows.where('others')}, expected numbers" if rows.counts["others"] else ""
        )
        return Unfit(name, _joined(missing, others), _NUMBERS_ONLY, _NUMBERS_ONLY)
    if name in table.roles.values():
        others = (
            f"{listed([*rows.values], 3)} {rows.where('others')}, none of its classes" if rows.counts["others"] else ""
        )
        return Unfit(name, _joined(missing, others), _WITHOUT_ROWS, _WITHOUT_ROWS)
    if name in table.categories:
        others = f"{listed([*rows.values], 3)} {rows.where('others')}, not declared" if rows.counts["others"] else ""
        null = ", with null for a missing value" if rows.counts["missing"] else ""
        flag = f"--category {shlex.quote(f'{name}=...')} with all possible values{null}"
        return Unfit(name, _joined(missing, others), flag, f"list all possible values under categories{null}")
    if not rows.counts["others"]:
        ranged = "" if name in table.ranges else f" --range {shlex.quote(f'{name}=LOW:HIGH')}"
        return Unfit(
            name,
            missing,
            f"--missing {shlex.quote(f'{name}=NUMBER')}{ranged}",
            "give a NUMBER for this column under the key missing",
        )
    reason = reason_against(column)
    if reason is not None and column.is_prose:
        return Unfit(
            name,
            reason,
            f"--text {shlex.quote(name)}, or leave it out",
            "write {} for this column under the key text, or leave it out",
        )
    if reason is not None:
        return Unfit(name, reason, _CHANGED, _CHANGED)
    others = f"words such as {next(iter(rows.values))!r} {rows.where('others')}"
    if name in table.ranges or name in table.missing:
        how = "empty these values in the file if they mean a missing number, or leave out such rows"
        return Unfit(name, _joined(missing, others), how, how)
    return Unfit(name, _joined(missing, others), *_as_categories(column))


def _as_categories(column: Column) -> tuple[str, str]:
    """Return how to declare categories for a column, naming the values that many rows have."""
    counts = column.counts or Counter()
    common = sorted(value for value, count in counts.items() if count >= FEWEST_OF_A_CLASS)
    rare = sorted(value for value, count in counts.items() if count < FEWEST_OF_A_CLASS)
    known = ["null"] * (column.missing > 0)
    if rare:
        known.append("...")
    flag = f"--category {shlex.quote(f'{column.name}=' + ','.join([*common, *known]))}"
    if any("," in value or value == "null" for value in common):
        flag = "list its categories in a YAML file, and give this file by --table"
    key = f"[{', '.join([*map(repr, common), *known])}] under categories"
    if not rare:
        return flag, key
    few = (
        f" (fewer than {FEWEST_OF_A_CLASS} rows have {listed(rare, 3)}: replace the three dots by the other "
        "possible values that you know without the file)"
    )
    return flag + few, key + few


def _joined(*facts: str) -> str:
    return "; ".join(filter(None, facts))
