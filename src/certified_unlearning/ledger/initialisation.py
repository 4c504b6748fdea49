"""`init`: a table becomes a model directory, which appears whole or not at all."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from certified_unlearning.accounting import AccountantName
from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.accounting.core.losses import regularisation_of
from certified_unlearning.accounting.core.scale import QUICK_CONDITION
from certified_unlearning.data.advice.ranges import shares_of
from certified_unlearning.data.advice.shares import Shares
from certified_unlearning.data.tables.classes import FEWEST_OF_A_CLASS, require_common
from certified_unlearning.data.tables.spellings import Group, Spellings, is_absent
from certified_unlearning.data.tables.table import Table, label_values, read_blocks, require_known, resolve
from certified_unlearning.data.tables.table_file import column_names
from certified_unlearning.engine.devices import pick_device
from certified_unlearning.errors import DataError, ParameterError, StorageError
from certified_unlearning.files import write_model
from certified_unlearning.ledger import training
from certified_unlearning.ledger.contents import Contents
from certified_unlearning.ledger.directory import ModelDirectory, file_sha256, new_key, synchronise
from certified_unlearning.ledger.model import Learner, StoredModel, method_of, with_intercept, write_version
from certified_unlearning.ledger.requests import Status, status
from certified_unlearning.ledger.state import Start
from certified_unlearning.ledger.store import Ledger, Record
from certified_unlearning.mechanisms.certified_sgd.ensemble_plan import EnsemblePlan
from certified_unlearning.mechanisms.exact.plan import ExactPlan
from certified_unlearning.mechanisms.learners.duration import seconds_to_learn
from certified_unlearning.mechanisms.learners.learner import require_one_of
from certified_unlearning.mechanisms.learners.minibatch import plan_learner
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from certified_unlearning.vocabulary import ClassesFrom, Delta, DType, ExactMechanism

LedgerMechanism = Literal["langevin", "newton-removal", "certified-ensemble"] | ExactMechanism

REFIT_SIGMA = 1e-3
"""Standard deviation of the noise on weights that are compared with an exact refit, if nothing else is asked for."""


def initialise(
    path: Path,
    table: Table,
    *,
    epsilon: float | None = None,
    C: float | None = None,
    delta: Delta = "auto",
    sigma: float | None = None,
    steps: int | None = None,
    records: int = 1,
    accountant: AccountantName = "shifted",
    dtype: DType = "float32",
    device: Literal["auto", "cpu", "cuda"] = "auto",
    intercept: bool = True,
    batch_size: int | Literal["auto"] | None = "auto",
    mechanism: LedgerMechanism = "newton-removal",
    records_between_reads: int | None = None,
    strict_timing: bool = False,
    step_size: float | None = None,
    radius: float | None = None,
    quantum: float | None = None,
    shards: int | None = None,
    slices: int | None = None,
    budgets: Sequence[int] | None = None,
    hidden: Sequence[int] | None = None,
    bound: float | None = None,
    planned: Callable[[Contents, float, Learner], None] | None = None,
) -> Status:
    """Copy a table's records, learn version 1 of a model from them, and begin its ledger.

    Args:
        path: The model directory, which must not exist yet, or be empty and neither the working directory nor a mount
            point.
        table: The records: where they lie, and how they become rows, labels and identifiers. All are training
            records, so it must have no split.
        epsilon: The target after every removal; None where removals are exact, or answers are certified.
        C: Inverse strength of the regulariser, as in scikit-learn: the objective is
            ``C sum_i loss_i + ||(coef, intercept)||^2 / 2``. None: 1, scikit-learn's; of mechanisms that learn by
            steps 100 / n.
        delta: Of the target: a number, ``"auto"`` or ``"1/n"`` (`required_delta`).
        sigma: Noise scale. None: the least with which ``steps`` steps remove ``records`` records. With Newton removal
            the deviation of the noise on published weights; None: `REFIT_SIGMA`. Of exact mechanisms see `ExactPlan`.
        steps: Steps that a removal of ``records`` records shall take. None: as the learner chooses. Of exact mechanisms
            the steps of learning, all of which are kept; of certified-ensemble the updates of each stage.
        records: How many records ``steps`` steps shall be able to remove at once.
        accountant: Which analysis.
        dtype: Of the weights.
        device: Where noisy steps are taken, now and later.
        intercept: Whether rows ``x`` become ``(x, 1) / sqrt(2)``, which gives the model an intercept.
        batch_size: Records of a mini-batch; ``"auto"`` for mini-batches where there are enough records, None for all
            records in every step.
        mechanism: Newton removal (with three classes or more, or more than `LARGEST_FACTOR` columns, certified refit),
            compared with an exact refit; or noisy steps, compared with learning anew by noisy steps; or a descent that
            forgets exactly: equal in law to learning anew; or an ensemble whose answers are those of one that never
            knew the removed records. An argument that means nothing for it is refused.
        records_between_reads: Of Newton removal: see `RefitPlan`. None: planned.
        strict_timing: Of Newton removal: whether counts alone decide when data are read again.
        step_size: Of exact mechanisms: see `ExactPlan`, as the next two; of certified-ensemble: see `EnsemblePlan`.
        radius: Of the ball that models are projected on.
        quantum: Of quantized-sgd.
        shards: Of certified-ensemble: see `EnsemblePlan`, as the next four.
        slices: Of each shard.
        budgets: How many records may leave a shard before it is trained again, the largest; rising.
        hidden: Units of each hidden layer; None for none.
        bound: What entries of gradients are clipped to.
        planned: Called with what was taken from the table, ``C`` and the learner before learning begins.

    Returns:
        Where the model stands.

    Raises:
        ParameterError: A value makes no sense, or ``path`` is taken.
        DataError: The table cannot be read or is not what was declared, or classes that nobody declared have few
            records.
        InfeasibleError: The target cannot be met.
        StorageError: The directory cannot be written, or another `init` is making it.
    """
    if C is not None:
        require_positive(C=C)
    if epsilon is not None:
        require_positive(epsilon=epsilon)
    known = ("langevin", "newton-removal", "certified-ensemble", *get_args(ExactMechanism))
    require_one_of(known, mechanism=mechanism)
    if mechanism == "newton-removal":
        _require_usual(mechanism, "langevin", steps=(steps, None), batch_size=(batch_size, "auto"))
    else:
        _require_usual(
            mechanism, records_between_reads=(records_between_reads, None), strict_timing=(strict_timing, False)
        )
    if mechanism != "langevin":
        of_langevin = {"records": (records, 1), "dtype": (dtype, "float32"), "accountant": (accountant, "shifted")}
        _require_usual(mechanism, "langevin", **of_langevin)
    if mechanism == "certified-ensemble":
        _require_usual(
            mechanism, batch_size=(batch_size, "auto"), intercept=(intercept, True), C=(C, None), sigma=(sigma, None)
        )
        # Layers have biases of their own.
        intercept = False
    else:
        own = {"shards": shards, "slices": slices, "budgets": budgets, "hidden": hidden, "bound": bound}
        _require_usual(mechanism, "certified-ensemble", **{name: (value, None) for name, value in own.items()})
    if mechanism in (*get_args(ExactMechanism), "certified-ensemble"):
        _require_usual(mechanism, epsilon=(epsilon, None), delta=(delta, "auto"))
        if device == "cuda":
            raise ParameterError(f"device must be left out: {mechanism} computes on the CPU, got 'cuda'")
        if batch_size is None:
            raise ParameterError(f"batch_size must be a number or 'auto': a batch of {mechanism} leaves a record out")
    else:
        _require_usual(mechanism, step_size=(step_size, None))
        if epsilon is None:
            raise ParameterError(
                "epsilon is missing: the target after every removal, such as 1; exact mechanisms have none"
            )
    if mechanism not in get_args(ExactMechanism):
        _require_usual(mechanism, radius=(radius, None), quantum=(quantum, None))
    if table.identifier is None:
        raise ParameterError("identifier is missing: without a column that says whose a record is nobody can ask")
    if table.split is not None:
        raise ParameterError("split must be left out: a model directory holds training records only")
    id_column = table.identifier
    place = pick_device(device)
    classes_from: ClassesFrom = "records" if table.classes is None else "declaration"
    all_columns = table.features is None
    table = resolve(table, fewest=FEWEST_OF_A_CLASS)
    with _whole_or_absent(path) as directory, Ledger.create(directory.ledger) as ledger:
        source = Path(table.path)
        modified = _modified(source)
        shares = shares_of(table)
        copied = _copy(directory, ledger, table, intercept, shares, all_columns=all_columns)
        require_known(table, copied.absent)
        if classes_from == "records":
            people = dict(zip(map(str, table.classes or ()), copied.people_by_class, strict=True))
            require_common(table, people, fewest=FEWEST_OF_A_CLASS, noun="person")
        n, features = copied.records, copied.features
        if C is None:
            C = 1.0 if mechanism == "newton-removal" else QUICK_CONDITION / n
        classes = len(table.classes or ())
        regularisation = regularisation_of(C=C, n=n, intercept=intercept)
        learner: Learner
        if mechanism == "langevin":
            learner = plan_learner(
                batch_size,
                C=C,
                intercept=intercept,
                n=n,
                features=features,
                classes=classes,
                epsilon=epsilon,
                delta=delta,
                sigma=sigma,
                steps=steps,
                records=records,
                accountant=accountant,
                adjacency="zero-out",
                dtype=dtype,
            )
        elif mechanism == "newton-removal":
            assert epsilon is not None
            learner = RefitPlan.make(
                n=n,
                features=features,
                classes=classes,
                strong_convexity=n * regularisation,
                epsilon=epsilon,
                delta=delta,
                sigma=REFIT_SIGMA if sigma is None else sigma,
                strict=strict_timing,
                records_between_reads=records_between_reads,
            )
        elif mechanism == "certified-ensemble":
            learner = EnsemblePlan.make(
                n=n,
                features=features,
                classes=classes,
                shards=shards,
                slices=slices,
                budgets=budgets,
                hidden=hidden or (),
                epochs=steps,
                step_size=step_size,
                bound=bound,
            )
        else:
            assert batch_size is not None
            learner = ExactPlan.make(
                n=n,
                features=features,
                classes=classes,
                mechanism=mechanism,
                strong_convexity=n * regularisation,
                steps=steps,
                batch_size=batch_size,
                step_size=step_size,
                radius=radius,
                sigma=sigma,
                quantum=quantum,
            )
        # With its suffix the name is none of a built-in data set.
        model = StoredModel(
            format=1,
            dataset=source.name,
            table=table,
            intercept=intercept,
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
            records=n,
            people=ledger.count_people(),
            model_sha256=file_sha256(directory.model),
            training_digest=training.digest(directory, features, key),
            source=str(source.resolve()),
            source_digest=training.digest_of_file(source, key),
            source_modified=modified,
        )
        if _modified(source) != modified:
            raise DataError(f"{source} was changed while it was read; try again")
        if planned is not None:
            used = {*table.roles.values(), *(table.features or ())}
            training_rows = np.memmap(directory.features, np.float32, "r").reshape(-1, features)
            contents = Contents(
                table=table,
                drowning=shares.largest(),
                left_out=[column for column in column_names(table.path) if column not in used],
                numbers=features - intercept,
                classes=dict(zip(map(str, table.classes or ()), copied.by_class, strict=True)),
                classes_from=classes_from,
                records=n,
                people=start.people,
                spellings=copied.spellings,
                absent=[*copied.absent],
                seconds=seconds_to_learn(training_rows, learner),
            )
            planned(contents, C, learner)
        certified = method.certificate([], start.training_digest)
        version = write_version(directory, model, 1, method.learn(place), certified)
        with ledger.transaction():
            ledger.append("initialised", {"start": start.as_payload(), "version": version})
    return status(path)


def _require_usual(mechanism: str, other: str | None = None, **values: tuple[Any, Any]) -> None:
    """Raise `ParameterError` if a value is another than the usual one, which is the second: it would do nothing.

    Args:
        mechanism: The one that was chosen.
        other: The one for which the values mean something.
        values: By their names.
    """
    instead = "" if other is None else f", or add --mechanism {other}"
    for name, (value, usual) in values.items():
        if value != usual:
            raise ParameterError(f"{name} means nothing for {mechanism}; leave it out{instead}, got {value!r}")


class _Copied(NamedTuple):
    """What was copied.

    Attributes:
        records: Number of rows.
        features: Number of columns of the training copy.
        by_class: Number of rows of each class.
        people_by_class: Number of people with rows of each class, counted up to `FEWEST_OF_A_CLASS`.
        spellings: Identifiers that a person would take for one.
        absent: Identifiers that say that there is none, and how many rows have each.
    """

    records: int
    features: int
    by_class: Sequence[int]
    people_by_class: Sequence[int]
    spellings: Sequence[Group]
    absent: Mapping[str, int]


def _copy(
    directory: ModelDirectory, ledger: Ledger, table: Table, intercept: bool, shares: Shares, *, all_columns: bool
) -> _Copied:
    """Write rows and labels to the training copy and who has which rows to the ledger.

    What each column carries of a row's norm is counted in ``shares``, which are for the operator's eyes.
    """
    n = features = 0
    labels = label_values(table)
    by_class = np.zeros(len(labels), np.int64)
    people: list[set[str]] = [set() for _ in labels]
    absent: Counter[str] = Counter()
    key = new_key(directory.identifier_key)
    with (
        Spellings() as spellings,
        ledger.transaction(),
        directory.features.open("wb") as feature_file,
        directory.labels.open("wb") as label_file,
    ):
        for block in read_blocks(table, all_columns=all_columns):
            shares.add(block.features)
            rows = with_intercept(block.features) if intercept else block.features
            feature_file.write(rows.data)
            label_file.write(block.labels.data)
            ledger.add_records(
                Record(identifier, row, training.tag(key, identifier, row))
                for row, identifier in enumerate(block.identifiers or [], n)
            )
            spellings.add(block.spellings or [])
            absent.update(each for each in block.identifiers or [] if is_absent(each))
            by_class += (block.labels[:, None] == labels).sum(axis=0)
            for some, label in zip(people, labels, strict=True):
                rows_of_class = iter(np.flatnonzero(block.labels == label).tolist())
                while len(some) < FEWEST_OF_A_CLASS and (row := next(rows_of_class, None)) is not None:
                    some.add((block.identifiers or [])[row])
            n, features = n + len(rows), rows.shape[1]
        groups = list(spellings.groups())
        ledger.add_spellings(groups)
        for file in (feature_file, label_file):
            file.flush()
            os.fsync(file.fileno())
    synchronise(directory.features.parent)
    return _Copied(n, features, by_class.tolist(), [len(some) for some in people], groups, absent)


def _modified(source: Path) -> int:
    try:
        return source.stat().st_mtime_ns
    except OSError as error:
        raise DataError(f"cannot read {source}: {error.strerror}") from error


def unfinished(path: Path) -> Path:
    """Return where a model directory lies while it is made."""
    path = path.resolve()
    return path.with_name(f".{path.name}.unfinished")


@contextmanager
def _whole_or_absent(path: Path) -> Iterator[ModelDirectory]:
    """Yield a directory beside ``path`` that becomes ``path`` when the block succeeds, and is deleted when it fails.

    What a killed `init` leaves there, the next one deletes.
    """
    path = path.resolve()
    _require_vacant(path)
    directory = ModelDirectory(unfinished(path))
    try:
        # For the owner's eyes only: it holds people's records.
        directory.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.lock.touch()
        with directory.locked():
            _require_vacant(path)  # Another `init` may have finished meanwhile.
            try:
                _empty(directory)
                directory.features.parent.mkdir()
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
        raise StorageError(f"cannot make {path}: {error.strerror or error}") from error


def _require_vacant(path: Path) -> None:
    if path.is_dir() and not any(path.iterdir()):
        # The finished directory is renamed over this one, which ceases to exist.
        if path.samefile(Path.cwd()):
            raise ParameterError(
                f"{path} is the working directory, which `init` would replace; run it from another one, such as "
                f"{path.parent}"
            )
        if path.is_mount():
            raise ParameterError(f"{path} is a mount point, which `init` cannot replace; name a directory inside it")
        return
    if path.exists() or path.is_symlink():
        raise ParameterError(f"{path} exists already and is not an empty directory; a new model needs one of its own")


def _empty(directory: ModelDirectory) -> None:
    for entry in directory.path.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry != directory.lock:
            entry.unlink()
