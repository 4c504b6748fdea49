"""Copies in a registry of models: which files are copied there, and what the log records about them.

A registry keeps several versions of one model, so each version is a copy of its own. This module does the part of the
work that concerns the ledger. The module does not depend on MLflow, the software of the registry.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from certified_unlearning.errors import StorageError
from certified_unlearning.ledger.copies.exports import Copy, Registered, checked_name, copies, files_of
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.log.second_place import require_in_step
from certified_unlearning.ledger.log.setting import standing_settled
from certified_unlearning.ledger.proofs.head import head_of
from certified_unlearning.ledger.requests import current_certificate
from certified_unlearning.ledger.state import State, Version, read_state
from certified_unlearning.ledger.store import Ledger

if TYPE_CHECKING:
    from certified_unlearning.certificate.base import Certificate


SCRATCH = ".track"
"""Directory for files before they are in the registry. After a kill, the system's directory would keep the files."""


@dataclass(frozen=True)
class Publication:
    """The current version while it is copied to a registry, with the model directory locked.

    Attributes:
        directory: The model directory.
        ledger: The ledger of the directory.
        state: State of the ledger.
        owner: The ledger's identity: the hash of its first event.
        certificate: The certificate of the current version.
        files: The content of the files that are copied to the registry, keyed by file name.
        scratch: An empty directory for these files before they are in the registry. They must not be written elsewhere.
    """

    directory: ModelDirectory
    ledger: Ledger
    state: State
    owner: str
    certificate: "Certificate"
    files: Mapping[str, bytes]
    scratch: Path

    @property
    def version(self) -> Version:
        """The version that is copied to the registry."""
        return self.state.current

    @property
    def lost(self) -> frozenset[tuple[int, str]]:
        """The published versions that a restore lost, as pairs of version number and SHA-256 of the weights."""
        return frozenset((each.version, each.weights_sha256) for each in self.state.lost)

    def is_outdated(self, version: int, weights_sha256: str) -> bool:
        """Return whether records were removed after the version with this number and these weights was made."""
        return Copy("", version, "", None, weights_sha256).is_outdated(self.state)

    def record(self, place: Registered) -> str:
        """Record that the current version is copied to a registry, unless the log has this record already.

        Args:
            place: The registered model.

        Returns:
            The head of the log.

        Raises:
            ParameterError: The name and address of the registered model are too long.
            LedgerError: The log was tampered with; nothing was recorded.
        """
        version = self.version
        recorded = {
            "name": checked_name(f"mlflow: {place.model} at {place.address}, version {version.version}"),
            "version": version.version,
            "path": None,
            "weights_sha256": version.weights_sha256,
            "registered": place._asdict(),
        }
        with self.ledger.transaction():
            known = [(each.version, each.weights_sha256) for each in self._copies(place)]
            if (version.version, version.weights_sha256) not in known:
                self.ledger.append("exported", recorded)
            return head_of(self.directory, self.ledger)

    def withdraw_others(self, place: Registered) -> str:
        """Record that a registry no longer has copies of any other version.

        Args:
            place: The registered model.

        Returns:
            The head of the log.
        """
        with self.ledger.transaction():
            for each in self._copies(place):
                if (each.version, each.weights_sha256) != (self.version.version, self.version.weights_sha256):
                    self.ledger.append("withdrawn", {"name": each.name})
            return head_of(self.directory, self.ledger)

    def _copies(self, place: Registered) -> list[Copy]:
        return [each for each in copies(self.ledger) if each.registered == place]


@contextmanager
def publication(path: Path) -> Iterator[Publication]:
    """Lock a model directory, and yield its current version after a check against the log.

    Args:
        path: The model directory.

    Raises:
        ParameterError: The model's weights are secret.
        DataError: A file of the model directory cannot be read, or the second copy of the log has more events, as after
            a restore.
        LedgerError: A file differs from what the log records about it.
        StorageError: Another command is running, or the second copy of the log is missing.
    """
    directory = ModelDirectory(path)
    with directory.locked(), Ledger.opened(directory.ledger) as ledger:
        standing = standing_settled(ledger)
        if standing is not None:
            require_in_step(standing, path)
        state = read_state(ledger)
        files = files_of(directory, state)
        (first,) = ledger.events("initialised")
        certified = current_certificate(directory, state)
        with _scratch(directory) as scratch:
            yield Publication(directory, ledger, state, first.hash, certified, files, scratch)


@contextmanager
def _scratch(directory: ModelDirectory) -> Iterator[Path]:
    """Yield an empty directory within a locked model directory. First delete what a killed process left there."""
    path = directory.path / SCRATCH
    try:
        if path.exists():
            shutil.rmtree(path)
        path.mkdir(mode=0o700)
    except OSError as error:
        raise StorageError(f"cannot make {path}: {error.strerror}") from error
    try:
        yield path
    finally:
        shutil.rmtree(path)
