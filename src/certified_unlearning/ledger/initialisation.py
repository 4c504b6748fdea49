"""The command `init`: make a model directory from a table. The directory appears whole or not at all."""

import contextlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.data.advice.ranges import shares_of
from certified_unlearning.data.advice.shares import DominantColumn, Shares
from certified_unlearning.data.advice.undeclared import require_covered
from certified_unlearning.data.tables.classes import FEWEST_OF_A_CLASS, require_common, weights_of
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.data.tables.spellings import Group, Spellings, is_absent
from certified_unlearning.data.tables.table import label_values, read_blocks, require_known, resolve
from certified_unlearning.data.tables.table_file import column_names
from certified_unlearning.data.tables.table_values import UnfitError
from certified_unlearning.data.tables.targets import TargetCounts
from certified_unlearning.engine.devices import pick_device
from certified_unlearning.errors import DataError, ParameterError, StorageError
from certified_unlearning.files import synchronise, write_model
from certified_unlearning.ledger.directory import ModelDirectory, drawn_key, file_sha256, new_key, write_key
from certified_unlearning.ledger.identifiers import keys
from certified_unlearning.ledger.identifiers.names import key_check
from certified_unlearning.ledger.log.setting import checked_place
from certified_unlearning.ledger.mechanisms import DEFAULT, require_text, require_weighing, settings_of
from certified_unlearning.ledger.model import Learner, StoredModel, method_of, with_intercept, write_version
from certified_unlearning.ledger.requests import Status, status
from certified_unlearning.ledger.settings.base import Words
from certified_unlearning.ledger.state import Start
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.training.copies import Asked
from certified_unlearning.ledger.training.forms import beginning, copy_of
from certified_unlearning.ledger.training.keyed import digest_of_file
from certified_unlearning.mechanisms.learners.duration import seconds_to_learn
from certified_unlearning.text import with_commas
from certified_unlearning.vocabulary import ClassesFrom


@dataclass(frozen=True)
class Contents:
    """The data that `init` read, and the plan that it made; the operator sees both before learning begins.

    The counts depend on the records, so they are printed and never stored.

    Attributes:
        table: The declaration, resolved.
        drowning: The column that dominates a row's norm; None if no column does.
        left_out: The columns of the table that are not used.
        numbers: The length of the list of numbers that represents the features of one record.
        classes: The number of records of each class; empty if numbers are predicted.
        classes_from: Whether the classes were declared, or taken from the records; None if numbers are predicted.
        targets: Counts of the targets; None if classes are predicted.
        noise: An upper bound on the standard deviation of the noise in a prediction, in the unit of the label; None if
            classes are predicted.
        records: The number of records, which is the number of rows of the table.
        people: The number of different identifiers.
        spellings: Groups of identifiers that look like spellings of one identifier.
        absent: Identifiers that stand for a missing identifier, such as NULL, and occur in one row each.
        wordless: The number of rows without words, for each column of text.
        plan: The plan of the mechanism.
        words: A description of the plan, as text.
        seconds: The estimated time that learning takes, in seconds.
    """

    table: Table
    drowning: DominantColumn | None
    left_out: Sequence[str]
    numbers: int
    classes: Mapping[str, int]
    classes_from: ClassesFrom | None
    targets: TargetCounts | None
    noise: float | None
    records: int
    people: int
    spellings: Sequence[Group]
    absent: Sequence[str]
    wordless: Mapping[str, int]
    plan: Learner
    words: Words
    seconds: float


def initialise(
    path: Path,
    table: Table,
    *,
    mechanism: str = DEFAULT,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    key_file: Path | None = None,
    planned: Callable[[Contents], None] | None = None,
    log: Path | None = None,
    **asked: Any,
) -> Status:
    """Copy a table's records, learn version 1 of a model from them, and begin its ledger.

    Args:
        path: The model directory. If it exists, it must be empty, and neither the working directory nor a mount point.
        table: The declaration of the table: the path of the records, and how they become rows, labels and identifiers.
            All records are training records, so the declaration must have no split.
        mechanism: The name of one of `MECHANISMS`.
        device: The device on which noisy steps are computed, now and later.
        key_file: A new file for the key of identifiers; by default, the key is kept in the directory.
        planned: A function that is called before learning begins, with what was read and what is planned.
        log: A new file outside the directory, for a second copy of the log.
        asked: Settings of the mechanism. A setting of another mechanism is refused, unless it has its default value.

    Returns:
        The status of the new model.

    Raises:
        ParameterError: A value is invalid, or ``path`` is in use.
        DataError: The table cannot be read or does not fit the declaration, or classes that were not declared have few
            records.
        InfeasibleError: No plan meets the target.
        StorageError: The directory cannot be written, or another `init` is making it.
    """
    second_place = None if log is None else checked_place(log, path)
    if second_place is not None and second_place.exists():
        raise ParameterError(
            f"--log is {log}, which exists already: the log of a new model must be a new file (if an interrupted "
            "`init` left this file, it can be deleted)"
        )
    # What the mechanism does not support at all is refused first, because no other option would help.
    usual = settings_of(mechanism, {})
    if table.is_regression:
        usual.check_regression(mechanism)
    if table.class_weight is not None:
        require_weighing(mechanism)
    if table.text:
        require_text(mechanism)
    settings = settings_of(mechanism, asked)
    settings.check(mechanism, device)
    if table.identifier is None:
        raise ParameterError(
            "identifier is missing: without a column that says whose record each row is, nobody can request a removal"
        )
    if table.split is not None:
        raise ParameterError("split must be left out: a model directory holds training records only")
    id_column = table.identifier
    if table.is_regression:
        settings.check_regression(mechanism)
    place = pick_device(device)
    classes_from: ClassesFrom | None = "records" if table.classes is None else "declaration"
    if table.is_regression:
        classes_from = None
    all_columns = table.features is None
    with _explained(table):
        table = resolve(table, fewest=FEWEST_OF_A_CLASS)
    key_of_identifiers = drawn_key()
    with (
        _kept_apart(key_file, path, key_of_identifiers),
        _whole_or_absent(path) as directory,
        Ledger.create(directory.ledger, key_of_identifiers) as ledger,
    ):
        if key_file is None:
            write_key(directory.identifier_key, key_of_identifiers)
        else:
            keys.point_to(directory.path, key_file)
        source = Path(table.path)
        modified = _modified(source)
        shares = shares_of(table)
        with _explained(table):
            copied = _copy(directory, ledger, table, settings.has_intercept, shares, all_columns=all_columns)
        require_known(table, copied.absent)
        classes = [str(name) for name in table.classes or ()]
        if classes_from == "records":
            people = dict(zip(classes, copied.people_by_class, strict=True))
            require_common(table, people, fewest=FEWEST_OF_A_CLASS, noun="person")
        if copied.targets is not None:
            _require_varied(table, copied.targets)
        weights = weights_of(table)
        sizes: dict[str, Any] = {"n": copied.records, "features": copied.features, "classes": len(classes)}
        if table.text:
            from certified_unlearning.data.tables.hashing.rows import require_memory  # Not at the top: scikit-learn.

            require_memory(table, copied.features, 1 if table.is_regression else scores_per_record(len(classes)))
            sizes |= {"sparse": True}
        if table.is_regression:
            sizes |= {"classes": 1, "target_range": table.target_range}
        if settings.records_are_clients:
            sizes |= {"clients": ledger.owners.count_people()}
        learner = settings.plan(mechanism, weights=weights, **sizes)
        # The suffix in the name distinguishes the table from a built-in data set.
        model = StoredModel(
            format=1,
            dataset=source.name,
            table=table,
            intercept=settings.has_intercept,
            learner=learner,
            device=device,
            classes_from=classes_from,
        )
        write_model(directory.model, model)
        method = method_of(directory, model)
        method.deal()
        key = new_key(directory.digest_key(1))
        start = Start(
            id_column=id_column,
            records=copied.records,
            people=ledger.owners.count_people(),
            model_sha256=file_sha256(directory.model),
            training_digest=copy_of(directory, copied.features, 1).digests([Asked(key)])[0],
            source=str(source.resolve()),
            source_digest=digest_of_file(source, key),
            source_modified=modified,
        )
        if _modified(source) != modified:
            raise DataError(f"{source} was changed while it was read; try again")
        if planned is not None:
            used = {*table.roles.values(), *(table.features or ())}
            training_rows = copy_of(directory, copied.features, 1).rows(copied.records)
            contents = Contents(
                table=table,
                drowning=shares.largest(),
                left_out=[column for column in column_names(table.path) if column not in used],
                numbers=copied.features - settings.has_intercept,
                classes=dict(zip(classes, copied.by_class, strict=True)),
                classes_from=classes_from,
                targets=copied.targets,
                noise=None if copied.targets is None else settings.score_noise(learner) * copied.targets.scale.half,
                records=copied.records,
                people=start.people,
                spellings=copied.spellings,
                absent=[*copied.absent],
                wordless=copied.wordless,
                plan=learner,
                words=settings.words(learner, weights),
                seconds=seconds_to_learn(training_rows, learner),
            )
            planned(contents)
        certified = method.certificate([], start.training_digest)
        version = write_version(directory, model, 1, method.learn(place), certified)
        with ledger.transaction():
            check = {"key_check": key_check(key_of_identifiers)}
            ledger.append("initialised", {"start": start.as_payload(), "version": version} | check)
            if second_place is not None:
                ledger.append("logged", {"path": str(second_place)})
    return status(path)


class _Copied(NamedTuple):
    """Counts of the rows that were copied.

    Attributes:
        records: Number of rows.
        features: Number of columns of the training copy.
        by_class: Number of rows of each class.
        people_by_class: Number of people with rows of each class, counted up to `FEWEST_OF_A_CLASS`.
        targets: Counts of the targets; None if classes are predicted.
        spellings: Groups of identifiers that look like spellings of one identifier.
        absent: Identifiers that stand for a missing identifier, and the number of rows of each.
        wordless: Number of rows without words, for each column of text.
    """

    records: int
    features: int
    by_class: Sequence[int]
    people_by_class: Sequence[int]
    targets: TargetCounts | None
    spellings: Sequence[Group]
    absent: Mapping[str, int]
    wordless: Mapping[str, int]


def _copy(
    directory: ModelDirectory, ledger: Ledger, table: Table, intercept: bool, shares: Shares, *, all_columns: bool
) -> _Copied:
    """Write rows and labels to the training copy, and the rows' owners to the ledger.

    ``shares`` tallies how much of a row's norm each column carries. Only the operator sees this tally.
    """
    n = features = 0
    labels = label_values(table)
    targets = TargetCounts.of(table.target_range, intercept=intercept)
    by_class = np.zeros(len(labels), np.int64)
    people: list[set[str]] = [set() for _ in labels]
    absent: Counter[str] = Counter()
    wordless: Counter[str] = Counter()
    with (
        Spellings() as spellings,
        ledger.transaction(),
        beginning(directory, sparse=bool(table.text), targets=targets is not None) as writer,
    ):
        for block in read_blocks(table, all_columns=all_columns):
            shares.add(block.features)
            rows = with_intercept(block.features) if intercept else block.features
            writer.add(rows, block.labels if targets is None else targets.scaled(block.labels))
            if table.text:
                from certified_unlearning.data.tables.hashing.rows import without_words  # Not at the top.

                wordless.update(without_words(table, block.features))
            ledger.owners.add_records((identifier, row) for row, identifier in enumerate(block.identifiers or [], n))
            spellings.add(block.spellings or [])
            absent.update(each for each in block.identifiers or [] if is_absent(each))
            by_class += (block.labels[:, None] == labels).sum(axis=0)
            for some, label in zip(people, labels, strict=True):
                rows_of_class = iter(np.flatnonzero(block.labels == label).tolist())
                while len(some) < FEWEST_OF_A_CLASS and (row := next(rows_of_class, None)) is not None:
                    some.add((block.identifiers or [])[row])
            n, features = n + rows.shape[0], rows.shape[1]
        groups = list(spellings.groups())
    counts = by_class.tolist(), [len(some) for some in people], targets
    return _Copied(n, features, *counts, groups, absent, wordless)


@contextmanager
def _explained(table: Table) -> Iterator[None]:
    """Replace an error about the first undeclared value by an error that names all columns with undeclared values."""
    try:
        yield
    except UnfitError:
        require_covered(table)
        raise


def _require_varied(table: Table, targets: TargetCounts) -> None:
    """Raise `DataError` if all targets become the same number."""
    low, high = table.target_range or (0.0, 0.0)
    if targets.least == targets.most:
        raise DataError(
            f"{table.path}: the label {table.label} is {with_commas(targets.least)} in every row, so there is nothing "
            "to predict"
        )
    if targets.most <= low or targets.least >= high:
        raise DataError(
            f"{table.path}: every {table.label} lies outside its range, {with_commas(low)} to {with_commas(high)}, "
            "so all values would be replaced by the same end of the range; declare a range that contains values of "
            f"{table.label}"
        )


def _modified(source: Path) -> int:
    try:
        return source.stat().st_mtime_ns
    except OSError as error:
        raise DataError(f"cannot read {source}: {error.strerror}") from error


def _kept_apart(key_file: Path | None, path: Path, key: bytes) -> contextlib.AbstractContextManager[None]:
    """Write the key of identifiers to a separate file, which stays if the block succeeds."""
    if key_file is None:
        return contextlib.nullcontext()
    keys.require_apart(key_file, path)
    return keys.written_apart(key_file, key, path)


def unfinished(path: Path) -> Path:
    """Return the path of a model directory that is not finished yet."""
    path = path.resolve()
    return path.with_name(f".{path.name}.unfinished")


@contextmanager
def _whole_or_absent(path: Path) -> Iterator[ModelDirectory]:
    """Yield a temporary directory that becomes ``path`` if the block succeeds, and is deleted if it fails.

    If `init` is killed, the next `init` deletes the temporary directory.
    """
    path = path.resolve()
    _require_vacant(path)
    directory = ModelDirectory(unfinished(path))
    try:
        # Only the owner may read the directory, because it holds people's records.
        directory.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.lock.touch()
        with directory.locked():
            _require_vacant(path)  # Another `init` may have finished meanwhile.
            try:
                _empty(directory)
                yield directory
                synchronise(directory.path)
                directory.path.rename(path)
                synchronise(path.parent)
            except BaseException:
                shutil.rmtree(directory.path, ignore_errors=True)
                raise
    except StorageError:
        raise
    except OSError as error:
        why = error.strerror or str(error)
        if isinstance(error, FileNotFoundError) and path.parent.is_dir():
            why = f"no directories can be made in {path.parent}"
        raise StorageError(f"cannot make {path}: {why}") from error


def _require_vacant(path: Path) -> None:
    if path.is_dir() and not any(path.iterdir()):
        # The finished directory is renamed over an empty one, which ceases to exist.
        if path.samefile(Path.cwd()):
            raise ParameterError(
                f"{path} is the working directory, which `init` would replace; run it from another directory, "
                f"such as {path.parent}"
            )
        if path.is_mount():
            raise ParameterError(f"{path} is a mount point, which `init` cannot replace; name a directory inside it")
        return
    if path.exists() or path.is_symlink():
        raise ParameterError(f"{path} exists already and is not an empty directory; a new model needs its own")


def _empty(directory: ModelDirectory) -> None:
    for entry in directory.path.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry != directory.lock:
            entry.unlink()
