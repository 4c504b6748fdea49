"""A model directory: the paths of its files, the lock against simultaneous changes, and secure deletion."""

import hashlib
import hmac
import os
import re
import secrets
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from certified_unlearning.errors import DataError, LedgerError, StorageError
from certified_unlearning.files import atomic_path
from certified_unlearning.ledger.identifiers import keys
from certified_unlearning.ledger.state import State, Version

_VERSIONED = re.compile(
    r"(?:weights|secret|certificate|digest-key|rows|added-features|added-labels|added-rows)-(\d+)"
    r"(?:\.safetensors|\.json|\.float32|\.int8)?"
)
_UNFINISHED = re.compile(rf"\.\d+\.({_VERSIONED.pattern})")
"""Pattern of the names that `files.atomic_path` gives to files while they are written."""
PATIENCE_SECONDS = 0.2
"""Seconds that a command waits for a lock."""


class BusyError(StorageError):
    """Another command is using the same model directory."""


class ModelDirectory:
    """The files of one model.

    Attributes:
        path: The directory.
        lock: An empty file, locked while `apply` or `add` runs.
        ledger: The log with requests, batches and versions (SQLite).
        model: The part of the model that never changes: the learner, the table's declaration (JSON).
        features: The training copy's rows as float32 numbers, without any header.
        labels: The labels of these rows, int8.
        targets: The targets from -1 to 1, float64, which replace the labels if numbers are predicted.
        places: Row numbers in the training copy, int64, one number for each row of the table. The file exists if rows
            were dealt into batches.
        identifier_key: The key of pseudonyms and of the tags of the rows' owners, if the directory keeps it.
        key_pointer: A file with the path of that key (JSON), if the key is elsewhere.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = path / "lock"
        self.ledger = path / "ledger.sqlite"
        self.model = path / "model.json"
        self.features = path / "training" / "features.float32"
        self.labels = path / "training" / "labels.int8"
        self.targets = path / "training" / "targets.float64"
        self.places = path / "training" / "places.int64"
        self.identifier_key = path / keys.IN_DIRECTORY
        self.key_pointer = path / keys.POINTER

    def label_file(self) -> Path:
        """Return the path of the labels, or of the targets if numbers are predicted."""
        return self.targets if self.targets.exists() else self.labels

    @property
    def is_sparse(self) -> bool:
        """Whether the training copy is sparse. Each version then has its own file of rows."""
        return not self.features.parent.exists()

    def sparse_rows(self, version: int) -> Path:
        """Return the path of a version's sparse training copy, with rows and labels, whether or not it exists."""
        return self.path / f"rows-{version}.safetensors"

    def weights(self, version: int) -> Path:
        """Return the path of a version's weights, whether or not the file exists."""
        return self.path / f"weights-{version}.safetensors"

    def certificate(self, version: int) -> Path:
        """Return the path of a version's certificate."""
        return self.path / f"certificate-{version}.json"

    def recorded_weights(self, version: Version) -> bytes:
        """Return the content of the file with a version's weights.

        Raises:
            DataError: The file cannot be read.
            LedgerError: The content of the file differs from what the log records.
        """
        return _recorded(self.weights(version.version), version.weights_sha256, "model")

    def recorded_certificate(self, version: Version) -> bytes:
        """Return the content of a version's certificate file; errors as for `recorded_weights`."""
        return _recorded(self.certificate(version.version), version.certificate_sha256, "certificate")

    def secret(self, version: int) -> Path:
        """Return the path of a version's secret, whether or not the file exists."""
        return self.path / f"secret-{version}.safetensors"

    def digest_key(self, version: int) -> Path:
        """Return the path of the key of a version's digests, whether or not the file exists.

        Somebody who has all other records could guess a removed record. If the digest of the data before the removal
        had no key, it would show whether the guess is right. So the digest has a key, and once this key is destroyed,
        nobody can check a guess.
        """
        return self.path / f"digest-key-{version}"

    def added_features(self, version: int) -> Path:
        """Return the path where a version's new rows wait until they are in the training copy."""
        return self.path / f"added-features-{version}.float32"

    def added_labels(self, version: int) -> Path:
        """Return the path where a version's new labels or targets wait until they are in the training copy."""
        return self.path / f"added-labels-{version}{self.label_file().suffix}"

    def added_rows(self, version: int) -> Path:
        """Return the path of a version's new sparse rows and labels, before they are added.

        The rows and labels wait at this path until they are in the version's own training copy.
        """
        return self.path / f"added-rows-{version}.safetensors"

    def _added(self, version: int) -> tuple[Path, ...]:
        """Return the paths of all files in which a version's new records may wait until the records are added."""
        return self.added_features(version), self.added_labels(version), self.added_rows(version)

    def leftovers(self, state: State) -> list[Path]:
        """Return files to delete: temporary files, and files of unfinished or earlier versions except certificates."""
        version, known = state.current.version, {each.version for each in state.versions}
        # A planned version already uses its key, and the records that it adds are in no other file.
        kept = [self.digest_key(version)]
        if state.planned is not None:
            kept.append(self.digest_key(state.planned.version))
            if state.planned.addition is not None:
                kept += self._added(state.planned.version)
        # The records that the current version added are in the training copy.
        added = self._added(version)
        found = []
        for path in sorted(self.path.iterdir()):
            match = _VERSIONED.fullmatch(path.name)
            number = int(match[1]) if match else 0
            stays = number == version or path in kept or (number in known and path == self.certificate(number))
            stays &= path not in added
            if _UNFINISHED.fullmatch(path.name) or (match and not stays):
                found.append(path)
        return found

    def interruption(self, state: State, leftovers: Sequence[Path], finish: str) -> str | None:
        """Return a note about an interrupted command; None if no command was interrupted.

        Args:
            state: State of the ledger.
            leftovers: Files that the interrupted command left behind.
            finish: The command that finishes interrupted work.
        """
        if state.planned is not None:
            return f"an `{state.planned.command}` was interrupted: {finish} finishes it"
        if leftovers:
            return self.lost_addition(state, leftovers) or f"an `apply` was interrupted: {finish} finishes it"
        return None

    def lost_addition(self, state: State, leftovers: Sequence[Path]) -> str | None:
        """Return a note about an `add` that was interrupted before it recorded its plan; None if there was none."""
        version = state.next_version
        if {*self._added(version)} & set(leftovers):
            return "an `add` was interrupted before it recorded anything, so nothing was added: run it again"
        return None

    def strangers(self) -> list[Path]:
        """Return files that do not belong to a model directory; somebody must have put them there."""
        database = [self.ledger.with_name(f"{self.ledger.name}{suffix}") for suffix in ("", "-wal", "-shm")]
        copied = self.features, self.label_file(), self.places
        # A copy of the key in the directory, though the key is kept elsewhere, is worth a note.
        key = self.key_pointer if self.key_pointer.exists() else self.identifier_key
        own = {self.lock, *database, self.model, *copied, key}
        files = (path for path in self.path.rglob("*") if not path.is_dir() and path not in own)
        return sorted(
            path
            for path in files
            if path.parent != self.path or not (_VERSIONED.fullmatch(path.name) or _UNFINISHED.fullmatch(path.name))
        )

    @contextmanager
    def locked(self, *, shared: bool = False) -> Iterator[None]:
        """Hold the directory's lock during the block, so that no `apply` can run.

        The system releases the lock when the process ends, even if it is killed.

        Args:
            shared: Whether the lock is shared, so that other commands may hold a shared lock at the same time. No
                `apply` can run while a command holds a shared lock.

        Raises:
            BusyError: Another command holds the lock.
            DataError: There is no lock file, so this is not a model directory.
            StorageError: The lock file cannot be opened.
        """
        try:
            descriptor = os.open(self.lock, os.O_RDONLY if shared else os.O_RDWR)
        except (FileNotFoundError, NotADirectoryError) as error:
            why = (
                "lock is missing"
                if self.path.is_dir()
                else "it is a file"
                if self.path.exists()
                else "nothing is there"
            )
            raise DataError(f"{self.path} is not a model directory ({why}); `unlearn init` makes one") from error
        except OSError as error:
            raise StorageError(f"cannot lock {self.path}: {error.strerror}") from error
        try:
            if not _flock(descriptor, shared):
                raise BusyError(f"another `unlearn` command is using {self.path}; wait until it has finished")
            yield
        finally:
            os.close(descriptor)


def shell_command(name: str, path: Path) -> str:
    """Return the command line that runs `unlearn NAME` on a model directory, quoted for a shell."""
    # A path that begins with a dash would be read as an option.
    return f"unlearn {name} {shlex.quote(f'./{path}' if str(path).startswith('-') else str(path))}"


def _flock(descriptor: int, shared: bool) -> bool:
    """Try to take the lock for a moment, because `status` holds it only briefly; return whether it was taken."""
    import fcntl  # Windows has no such module; the other commands still work there.

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(PATIENCE_SECONDS / 10)
        else:
            return True


def drawn_key() -> bytes:
    """Return a random key of 32 bytes."""
    return secrets.token_bytes(32)


def new_key(path: Path) -> bytes:
    """Write a random key to a new file, and return it."""
    key = drawn_key()
    write_key(path, key)
    return key


def write_key(path: Path, key: bytes) -> None:
    """Write a key to a file, durably."""
    with atomic_path(path) as temporary:
        temporary.touch(mode=0o600)
        temporary.write_bytes(key)


def read_key(path: Path) -> bytes:
    """Read a key from a file.

    Raises:
        DataError: The file cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; without it the records cannot be checked") from error


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        DataError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def _recorded(path: Path, sha256: str, what: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    if not hmac.compare_digest(hashlib.sha256(content).hexdigest(), sha256):
        raise LedgerError(f"{path} was tampered with: it is not the {what} that the ledger recorded")
    return content


@contextmanager
def finished_by_the_next(path: Path, how: str) -> Iterator[None]:
    """If a file operation fails in the block, raise its error together with a note on how the work continues.

    Args:
        path: The model directory.
        how: A note on what the operator must do, or on what happens next.
    """
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}; {how}") from error


def destroy(path: Path) -> None:
    """Overwrite a file's bytes and delete it.

    Copies of the bytes that a file system, a disk or a backup keeps elsewhere are beyond a program's reach.
    """
    with path.open("r+b", buffering=0) as file:
        file.write(bytes(path.stat().st_size))
        os.fsync(file.fileno())
    path.unlink()
