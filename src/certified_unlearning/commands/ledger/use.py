"""The commands `show`, `predict` and `evaluate`, and what the ledger's other commands print about a model's quality."""

import csv
import io
import json
import math
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from certified_unlearning.commands.options import AsJson, ModelDir
from certified_unlearning.commands.output import after
from certified_unlearning.errors import DataError, ParameterError, UnlearningError
from certified_unlearning.ledger.directory import shell_command
from certified_unlearning.text import counted

if TYPE_CHECKING:
    from certified_unlearning.data.advice.thresholds import Threshold
    from certified_unlearning.data.quality import Quality, TargetQuality
    from certified_unlearning.data.tables.table import Records
    from certified_unlearning.ledger import LoadedModel
    from certified_unlearning.ledger.prediction import AnswersQuality

NOT_FOR_PUBLICATION = "on the remaining training records, without noise: not for publication"
_WITHOUT_NOISE = "These numbers are computed from the records without noise: the guarantee does not cover them."
_MEMORY = 1 << 24
ThresholdOption = Annotated[
    str | None,
    typer.Option(
        metavar="PROBABILITY", help="Smallest probability at which the --positive class is predicted; by default 0.5."
    ),
]
Positive = Annotated[
    str | None, typer.Option(metavar="CLASS", help="Class that --threshold applies to; by default the second one.")
]


def show(
    model_dir: ModelDir,
    identifier: Annotated[
        str, typer.Option("--id", help="Identifier of the person whose records the report is about.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="HTML file for the page, to print or send; by default text is printed."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a page for one person: what was requested and done, what is and is not guaranteed, and how to check it."""
    from certified_unlearning.files import write_text
    from certified_unlearning.ledger.personal.report import report_on

    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"--output must name a file that ends with .html, got {str(output)!r}")
    if output is not None and as_json:
        raise ParameterError("--json prints the report, and --output writes it to a file: leave one of them out")
    if output is not None and output.resolve().is_relative_to(model_dir.resolve()):
        raise ParameterError(f"--output must lie outside the model directory, got {str(output)!r}")
    report = report_on(model_dir, identifier)
    if output is not None:
        write_text(output, report.as_html())
        print(f"{output}: {report.title}, a page that can be printed")
        print(report.for_operator)
    elif as_json:
        print(json.dumps(asdict(report), indent=2))
    else:
        print(report.as_text())
    if report.like is not None:
        print_warnings(
            [f"the data have records with a similar identifier ({report.like!r}); do not disclose this to the person"]
        )


def predict(
    model_dir: ModelDir,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Records with the columns that `init` read: CSV or Parquet; needs no label."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(help="File for the table, .csv or .parquet; by default it is printed as CSV."),
    ] = None,
    threshold: ThresholdOption = None,
    positive: Positive = None,
) -> None:
    """Predict the label of each record, and write a table with each record's identifier (or row) and prediction.

    If the model predicts classes, the table also has the probability of each class.
    """
    from certified_unlearning.ledger import load_model

    if output is not None:
        _require_place(output, model_dir, file)
    model = load_model(model_dir)
    decided = _threshold(model, threshold, positive)
    with _written(output) as write:
        count = sum(_write_predictions(model, file, write, decided))
    if output is None:
        return
    how = "" if decided is None else f": {decided.in_words()}"
    with after(f"{output} was written"):
        print(f"{output}: {counted(count, 'prediction')} by version {model.version} of {model_dir}{how}")


def _threshold(model: "LoadedModel", threshold: str | None, positive: str | None) -> "Threshold | None":
    """Return the threshold that the options name, or None for the usual decision."""
    if threshold is not None:
        return model.threshold(_probability(threshold), positive)
    if positive is not None:
        raise ParameterError(f"--positive is {positive!r}, but has no effect without a threshold")
    return None


def _probability(text: str) -> float:
    """Return the probability that ``--threshold`` gives."""
    try:
        probability = float(text)
    except ValueError:
        probability = math.nan
    if not 0 < probability < 1:
        raise ParameterError(f"--threshold must be a number strictly between 0 and 1, such as 0.3, got {text!r}")
    return probability


def evaluate(
    model_dir: ModelDir,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Labelled records that the model did not learn from: CSV or Parquet, with the columns that `init` "
            "read.",
        ),
    ],
    threshold: ThresholdOption = None,
    choose_threshold: Annotated[
        str | None,
        typer.Option(
            metavar="CRITERION",
            help="Criterion by which a threshold is chosen on these records and printed: balanced (largest balanced "
            "accuracy), f1, recall=0.8 (highest with that recall) or precision=0.5 (lowest with that precision).",
        ),
    ] = None,
    positive: Positive = None,
    as_json: AsJson = False,
) -> None:
    """Measure how good the current version is on labelled records that were not used for training."""
    from certified_unlearning.ledger import load_model
    from certified_unlearning.ledger.identifiers.keys import MissingKeyError
    from certified_unlearning.ledger.requests import count_known

    if threshold is not None and choose_threshold is not None:
        raise ParameterError("--threshold gives a threshold, and --choose-threshold chooses one: leave one of them out")
    model = load_model(model_dir)
    notes: list[str] = []
    if choose_threshold is None:
        decided = _threshold(model, threshold, positive)
    else:
        decided, notes = _chosen(model, model_dir, file, choose_threshold, positive)
    trained = removed = 0
    unknown: list[str] = []

    def blocks() -> Iterator["Records"]:
        nonlocal trained, removed
        for block in model.read(file, labelled=True):
            try:
                some = count_known(model_dir, block.identifiers or [])
            except MissingKeyError as error:
                unknown[:] = [f"nobody has checked whether people of the model are in {file}: {error.fact}"]
            else:
                trained, removed = trained + some[0], removed + some[1]
            yield block

    quality = model.judged(blocks(), decided)
    about = warnings_about(quality, model_dir, decided=decided is not None)
    warnings = [*notes, *about, *unknown, *_warnings_about_people(trained, removed)]
    if as_json:
        found = {"model": str(model_dir), "file": str(file), "version": model.version, **quality.numbers}
        if decided is not None:
            chosen = {"probability": decided.probability, "positive": decided.name, "chosen_by": choose_threshold}
            found["threshold"] = chosen
        print(json.dumps(found | {"covered_by_guarantee": False, "warnings": warnings}, indent=2))
        return
    print(f"{file}: {counted(quality.records, 'record')}, version {model.version} of the model")
    if decided is not None:
        print(f"predictions: {decided.in_words()}")
    print(quality.line)
    for line in quality.lines_by_class:
        print(line)
    print(_WITHOUT_NOISE)
    if decided is not None and choose_threshold is not None:
        _print_chosen(model, model_dir, decided)
    print_warnings(warnings)


def _chosen(
    model: "LoadedModel", model_dir: Path, file: Path, criterion: str, positive: str | None
) -> tuple["Threshold", list[str]]:
    """Use records of people unknown to the ledger to choose a threshold; return it, and warnings about the records."""
    from certified_unlearning.data.advice.thresholds import Criterion
    from certified_unlearning.ledger.requests import count_known

    seen = True

    def blocks() -> Iterator["Records"]:
        nonlocal seen
        for block in model.read(file, labelled=True):
            seen = seen and block.identifiers is not None
            known = sum(count_known(model_dir, block.identifiers or []))
            if known:
                raise DataError(
                    f"{file}: {known:,} of the first {block.first_row - 1 + block.features.shape[0]:,} records "
                    f"{_belongs(known)} whom the ledger knows: a threshold that is chosen on training records depends "
                    "on them, even after their removal; choose it on records of other people"
                )
            yield block

    Criterion.read(criterion, "--choose-threshold")
    threshold = model.choose_threshold(criterion, blocks(), positive)
    if seen:
        return threshold, []
    return threshold, [
        f"{file} has no column {model.table.identifier!r}, so it may hold training records: a threshold that is chosen "
        "on training records depends on them, even after their removal"
    ]


def _print_chosen(model: "LoadedModel", model_dir: Path, threshold: "Threshold") -> None:
    """Print how to use a chosen threshold, and how long it may be used."""
    flags = f"--threshold {threshold.probability!r} --positive {shlex.quote(threshold.name)}"
    print(
        "The threshold was chosen on these records, so it looks too good on them; judge it on other records: "
        f"`unlearn evaluate {shlex.quote(str(model_dir))} FILE {flags}`"
    )
    print(
        f"`unlearn predict` takes the same options. Choose a new threshold after every `unlearn apply`: this threshold "
        f"depends on version {model.version}, and therefore on the records that version {model.version} was made from."
    )


def _warnings_about_people(trained: int, removed: int) -> list[str]:
    """Return warnings about the records that belong to people whom the ledger knows."""
    warnings = []
    if trained:
        warnings.append(
            f"{trained:,} of the records {_belongs(trained)} whose records the model was made from: if "
            "they are the same records, these numbers are too good"
        )
    if removed:
        warnings.append(f"{removed:,} of the records {_belongs(removed)} whose removal was requested")
    return warnings


def _belongs(records: int) -> str:
    return "belongs to a person" if records == 1 else "belong to people"


def warnings_about(
    quality: "Quality | TargetQuality | AnswersQuality",
    model_dir: Path,
    *,
    names_columns: bool = True,
    decided: bool = False,
) -> list[str]:
    """Return warnings for the user, with advice that was tried on the remaining training records.

    Args:
        quality: The quality that was measured.
        model_dir: Path of the model directory.
        names_columns: Whether to name a column that dominates the norm of the rows.
        decided: Whether the user has chosen the threshold.
    """
    fact = warning_of(quality, model_dir, decided=decided)
    if fact is None:
        return []
    if quality.comparable is None:
        return [fact]
    # Imported here because the import takes seconds, and is needed only if there is a warning.
    from certified_unlearning.ledger.trouble import trouble_left

    try:
        return [fact, *trouble_left(model_dir, quality.comparable, names_columns=names_columns)]
    except UnlearningError as error:
        return [fact, f"no advice can be computed now: {error}"]


def warning_of(
    quality: "Quality | TargetQuality | AnswersQuality", model_dir: Path, *, decided: bool = False
) -> str | None:
    """Return the warning for the user, without advice; None if there is none. Arguments are as in `warnings_about`."""
    # A loss of accuracy that comes from chosen weights or a chosen threshold needs no warning: the user wanted it.
    told_apart = quality.comparable is not None and not quality.comparable.hardly_tells
    if quality.fact is None or (decided and told_apart) or (quality.finds_all_classes and _weighs_classes(model_dir)):
        return None
    return quality.fact


def _weighs_classes(model_dir: Path) -> bool:
    """Return whether a model's classes have weights; if so, a low accuracy may be intended."""
    from certified_unlearning.ledger.directory import ModelDirectory
    from certified_unlearning.ledger.requests import about_labels

    return about_labels(ModelDirectory(model_dir)).class_weight is not None


def print_left_out(columns: Sequence[str]) -> None:
    """Print which columns of a file are not used; rows are never left out."""
    from certified_unlearning.data.tables.table_values import listed

    print(f"left out: no rows; {f'columns {listed(columns)}' if columns else 'no columns'}")


def print_warnings(warnings: list[str]) -> None:
    """Print warnings to standard error, so that they do not get into a pipe."""
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def look_at_quality(model_dir: Path) -> "Quality | TargetQuality | str":
    """Return the model's quality on the remaining training records, or the reason why it cannot be computed now."""
    from certified_unlearning.ledger.quality import quality_left

    try:
        return quality_left(model_dir)
    except UnlearningError as error:
        return str(error)


def print_quality(model_dir: Path, *, names_columns: bool = True, again: bool = False) -> None:
    """Print the model's quality on the remaining training records, for its operator.

    Args:
        model_dir: Path of the model directory.
        names_columns: Whether to name a column that dominates the norm of the rows.
        again: Whether `init` has already warned the operator. If so, no advice is computed, because that takes
            seconds; instead, one line names the command that repeats the warning. A model that became useless causes a
            warning every time.
    """
    quality = look_at_quality(model_dir)
    if isinstance(quality, str):
        print(f"quality: not computed: {quality}")
        return
    print(f"quality {NOT_FOR_PUBLICATION}")
    print(f"  {quality.line} ({counted(quality.records, 'record')})")
    if not again:
        print_warnings(warnings_about(quality, model_dir, names_columns=names_columns))
        return
    status = f"`{shell_command('status', model_dir)}`"
    if quality.hardly_tells:
        print_warnings([f"{quality.fact}; {status} says what helps"])
    elif warning_of(quality, model_dir) is not None:
        print(f"  {status} warns about this quality, and says what helps")


def _require_place(output: Path, model_dir: Path, file: Path) -> None:
    if output.suffix not in (".csv", ".parquet"):
        raise ParameterError(f"--output is {output}, but its name must end in .csv or .parquet")
    if output.resolve() == file.resolve():
        raise ParameterError(f"--output is {output}, which is FILE itself; name another file")
    if model_dir.resolve() in output.resolve().parents:
        raise ParameterError(f"--output is {output}, but must not lie in the model directory {model_dir}")


class _Write(Protocol):
    def __call__(self, columns: dict[str, Any]) -> None:
        """Append rows, given as a mapping from column names to values."""


def _write_predictions(model: "LoadedModel", file: Path, write: _Write, threshold: "Threshold | None") -> Iterator[int]:
    """Write the predictions block by block; yield the number of predictions in each block."""
    import numpy as np

    for records in model.read(file):
        count = records.features.shape[0]
        others = model.answers(records.features, threshold)
        if records.identifiers is None:
            who: dict[str, Any] = {"row": np.arange(records.first_row, records.first_row + count)}
        else:
            name = str(model.table.identifier)
            who = {"identifier" if name in others else name: records.identifiers}
        write(who | others)
        yield count


@contextmanager
def _written(output: Path | None) -> Iterator[_Write]:
    """Yield a function that writes rows. The file or printed table appears whole, and only if the block succeeds."""
    from certified_unlearning.files import atomic_path

    if output is None:
        with SpooledTemporaryFile(_MEMORY, mode="w+b") as spool:
            with _csv(spool) as write:
                yield write
            spool.seek(0)
            sys.stdout.flush()
            # Bytes, because no character of an identifier may change, whatever the terminal's encoding is.
            shutil.copyfileobj(spool, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    with atomic_path(output) as temporary:
        if output.suffix == ".csv":
            with temporary.open("wb") as file, _csv(file) as write:
                yield write
        else:
            with _parquet(temporary) as write:
                yield write


@contextmanager
def _csv(file: Any) -> Iterator[_Write]:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    names: list[str] = []

    def write(columns: dict[str, Any]) -> None:
        if not names:
            names.extend(columns)
            writer.writerow(names)
        lists = [each if isinstance(each, list) else each.tolist() for each in columns.values()]
        writer.writerows(zip(*lists, strict=True))

    yield write
    text.flush()
    text.detach()


@contextmanager
def _parquet(path: Path) -> Iterator[_Write]:
    import pyarrow as pa
    import pyarrow.parquet

    writers: list[Any] = []

    def kind(values: Any) -> Any:
        # Labels get a fixed type: otherwise a block of None alone would get Arrow's null type, unlike the next block.
        return pa.string() if getattr(getattr(values, "dtype", None), "hasobject", False) else None

    def write(columns: dict[str, Any]) -> None:
        table = pa.table({name: pa.array(values, type=kind(values)) for name, values in columns.items()})
        if not writers:
            writers.append(pa.parquet.ParquetWriter(path, table.schema))
        writers[0].write_table(table)

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()
