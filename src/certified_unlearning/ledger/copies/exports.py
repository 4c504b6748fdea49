"""The command `export`: copy the current version to another place, and record where, so that it can be replaced later.

A registry, a cache or a device that serves predictions keeps the old model after a removal. Only its operator can
replace the model there. The ledger has a list of the copies that must be replaced.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from certified_unlearning.errors import DataError, LedgerError, ParameterError, StorageError
from certified_unlearning.files import atomic_path
from certified_unlearning.ledger.database.events import Event
from certified_unlearning.ledger.directory import ModelDirectory, file_sha256
from certified_unlearning.ledger.state import State, read_state
from certified_unlearning.ledger.store import Ledger

WEIGHTS, CERTIFICATE, COLUMNS = "weights.safetensors", "certificate.json", "columns.json"
_LONGEST_NAME = 500


class Registered(NamedTuple):
    """A registered model of MLflow, whose versions are copies.

    Attributes:
        address: The address of MLflow, without a password.
        model: The registered model's name.
    """

    address: str
    model: str


@dataclass(frozen=True)
class Copy:
    """A copy of the model outside the model directory.

    Attributes:
        name: The operator's name for the copy. A newer copy of the same name replaces it.
        version: The number of the copied version.
        time: The time when the copy was recorded, in UTC.
        path: The directory that `export` wrote; None if the operator made the copy.
        weights_sha256: The SHA-256 of the copied weights.
        registered: The registered model to which `track` added the copy as a version; None for other copies.
    """

    name: str
    version: int
    time: str
    path: Path | None
    weights_sha256: str
    registered: Registered | None = None

    def is_outdated(self, state: State) -> bool:
        """Return whether records were removed since the copy was made, or whether the copied version is lost."""
        since = (version for version in state.versions if version.version > self.version)
        return self.is_lost(state) or any(version.batch is not None and version.batch.records for version in since)

    def is_lost(self, state: State) -> bool:
        """Return whether a restore lost the copied version, so that the current version does not follow from it."""
        # The weights are compared, too: after a restore, a version number may have been used a second time.
        known = {(version.version, version.weights_sha256) for version in state.versions}
        return (self.version, self.weights_sha256) not in known

    def trouble(self) -> str | None:
        """Return a note about the files that `export` wrote; None if they are unchanged."""
        if self.path is None:
            return None
        try:
            found = file_sha256(self.path / WEIGHTS)
        except DataError:
            return f"{self.path / WEIGHTS} cannot be read"
        return None if hmac.compare_digest(found, self.weights_sha256) else f"{self.path / WEIGHTS} holds other weights"


@dataclass(frozen=True)
class Exported:
    """Result of `export` and `withdraw`.

    Attributes:
        name: The copy's name.
        version: The number of the copied version.
        head: The head of the log.
    """

    name: str
    version: int
    head: str


def export(path: Path, *, to: Path | None = None, name: str | None = None) -> Exported:
    """Record that the current version is copied to another place. If that place is a directory, write the copy there.

    The copy is recorded before it is written, so that no copy exists without a record.

    Args:
        path: The model directory.
        to: The directory for the weights, the certificate and the declaration of the columns. The directory is made, or
            replaced if it contains an earlier copy. If ``to`` is None, the operator makes the copy, and this function
            only records the copy.
        name: The copy's name, such as ``mlflow: churn version 3``; by default the directory's absolute path.

    Raises:
        ParameterError: Neither a directory nor a name is given; the directory is the model directory or contains other
            files; a copy of this name is in another place; or the model's weights are secret.
        DataError: The model directory cannot be read.
        LedgerError: The weights differ from those that the log records.
        StorageError: The directory or the ledger cannot be written, or another command is running.
    """
    if to is None and name is None:
        raise ParameterError(
            "give --to with a directory for the copy, or --name with a name for a copy that you make yourself"
        )
    name = checked_name(str(to.resolve()) if name is None and to is not None else str(name))
    directory = ModelDirectory(path)
    if to is not None:
        _require_free(to, directory)
    from certified_unlearning.ledger.proofs.head import head_of

    with directory.locked(shared=True), Ledger.opened(directory.ledger) as ledger:
        state = read_state(ledger)
        current = state.current
        files = files_of(directory, state)
        recorded = {
            "name": name,
            "version": current.version,
            "path": None if to is None else str(to.resolve()),
            "weights_sha256": current.weights_sha256,
        }
        _require_same_place(ledger, name, to)
        with ledger.transaction():
            ledger.append("exported", recorded)
            head = head_of(directory, ledger)
        if to is not None:
            _write(to, files)
    return Exported(name, current.version, head)


def withdraw(path: Path, name: str) -> Exported:
    """Record that a copy is gone.

    Args:
        path: The model directory.
        name: The copy's name.

    Raises:
        ParameterError: There is no such copy.
        DataError: The model directory cannot be read.
        StorageError: The ledger cannot be written.
    """
    from certified_unlearning.ledger.proofs.head import head_of

    directory = ModelDirectory(path)
    with Ledger.opened(directory.ledger) as ledger, ledger.transaction():
        known = {each.name: each for each in copies(ledger)}
        if name not in known:
            names = ", ".join(map(repr, known)) or "there are none"
            raise ParameterError(f"no copy is called {name!r} (copies: {names}); nothing was recorded")
        ledger.append("withdrawn", {"name": name})
        return Exported(name, known[name].version, head_of(directory, ledger))


def copies(ledger: Ledger) -> list[Copy]:
    """Return the copies that were not withdrawn, in the order in which they were recorded.

    Raises:
        LedgerError: An event does not have the form that `export` records.
    """
    found: dict[str, Copy] = {}
    for event in ledger.events("exported", "withdrawn"):
        try:
            if event.kind == "withdrawn":
                del found[event.payload["name"]]
            else:
                copy = _copy_of(event)
                found.pop(copy.name, None)
                found[copy.name] = copy
        except (KeyError, TypeError) as error:
            raise LedgerError(f"event {event.sequence} of the ledger was tampered with: {error!r}") from error
    return list(found.values())


def _copy_of(event: Event) -> Copy:
    payload: Mapping[str, Any] = event.payload
    where, registered = payload["path"], payload.get("registered")
    return Copy(
        payload["name"],
        payload["version"],
        event.time,
        None if where is None else Path(where),
        payload["weights_sha256"],
        None if registered is None else Registered(**registered),
    )


def _require_same_place(ledger: Ledger, name: str, to: Path | None) -> None:
    """Raise `ParameterError` if the ledger has a copy of this name in another place.

    Otherwise, the ledger would lose track of that copy.
    """
    known = next((each for each in copies(ledger) if each.name == name), None)
    place = None if to is None else to.resolve()
    if known is not None and known.path != place:
        where, again = ("was made by you", "leave --to out")
        if known.path is not None:
            where, again = f"is in {known.path}", f"give --to {known.path}"
        raise ParameterError(
            f"the copy {name!r} {where}: {again} to replace it, use --withdraw if the copy is gone, or choose another "
            "name; nothing was recorded"
        )


def checked_name(name: str) -> str:
    """Return the name of a copy without leading and trailing blanks; raise `ParameterError` if it is invalid."""
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise ParameterError(
            f"the name of a copy must have from 1 to {_LONGEST_NAME} printable characters, got {name[:40]!r}"
        )
    return name.strip()


def _require_free(to: Path, directory: ModelDirectory) -> None:
    """Raise `ParameterError` unless a directory is new or empty, or contains an earlier copy."""
    place, model = to.resolve(), directory.path.resolve()
    if place.is_relative_to(model) or model.is_relative_to(place):
        raise ParameterError(f"{to} must not be the model directory, lie inside it or contain it")
    if to.exists() and not to.is_dir():
        raise ParameterError(f"{to} is no directory")
    others = sorted(each.name for each in to.iterdir()) if to.is_dir() else []
    strange = [each for each in others if each not in (WEIGHTS, CERTIFICATE, COLUMNS)]
    if strange:
        raise ParameterError(
            f"{to} contains {strange[0]}, which is not part of a copy of a model; choose a new directory"
        )


def files_of(directory: ModelDirectory, state: State) -> dict[str, bytes]:
    """Return the files of a copy of the current version, by name. None of them holds the model's random numbers.

    The files are the weights, the certificate and the declaration of the columns.

    Raises:
        ParameterError: The model's weights are secret.
        DataError: A file of the model directory cannot be read.
        LedgerError: A file differs from what the log records about it.
    """
    from certified_unlearning.ledger.method import answered_of
    from certified_unlearning.ledger.model import method_of, read_stored

    current = state.current
    if not current.certificate.publishes_weights:
        raise ParameterError(
            "this model must not be copied: its weights are secret, and its certificate covers only answers"
        )
    weights, model = directory.recorded_weights(current), read_stored(directory, state)
    certificate = directory.recorded_certificate(current)
    if current.lost_since:
        # The stored certificate does not count versions that were published after it and lost by a restore.
        method = method_of(directory, model)
        counting = method.certificate(answered_of(state), state.training_digest, len(state.lost))
        certificate = f"{counting.model_dump_json(indent=2)}\n".encode()
    table = model.table.model_dump(mode="json", exclude={"path", "identifier"})
    columns = {"table": table, "intercept": model.intercept, "version": current.version}
    return {
        WEIGHTS: weights,
        CERTIFICATE: certificate,
        COLUMNS: (json.dumps(columns, indent=2, sort_keys=True, allow_nan=False) + "\n").encode(),
    }


def _write(to: Path, files: Mapping[str, bytes]) -> None:
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot make {to}: {error.strerror}; the ledger has recorded this copy, so export it again"
        raise StorageError(message) from error
    for name, content in files.items():
        with atomic_path(to / name) as temporary:
            temporary.write_bytes(content)
