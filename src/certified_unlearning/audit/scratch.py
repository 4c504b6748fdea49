"""Scratch copies of models under audit: private, beside the model, and deleted at the end, or by the next audit.

A process that is killed deletes nothing. Its copy holds people's records, so the next audit of the model looks for it.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from certified_unlearning.errors import StorageError


@contextmanager
def scratch_beside(path: Path) -> Iterator[Path]:
    """Yield an empty directory that only its owner can read, and delete it at the end; first delete abandoned ones.

    Args:
        path: The model directory, next to which it is created.

    Raises:
        StorageError: The directory cannot be created.
    """
    path = path.resolve()
    for abandoned in path.parent.glob(f".{path.name}.audit-*"):
        _delete_if_abandoned(abandoned)
    try:
        made = Path(tempfile.mkdtemp(prefix=f".{path.name}.new-audit-", dir=path.parent))
        descriptor = os.open(made, os.O_RDONLY)
    except OSError as error:
        raise StorageError(f"cannot make a scratch directory in {path.parent}: {error.strerror}") from error
    try:
        # It gets the name that other audits look for once it is locked.
        _lock(descriptor)
        made = made.rename(made.with_name(made.name.replace(".new-audit-", ".audit-")))
        yield made
    finally:
        shutil.rmtree(made)
        os.close(descriptor)


def _delete_if_abandoned(path: Path) -> None:
    """Delete a scratch directory unless its audit is still at work."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return  # Its audit has ended since.
    try:
        if _lock(descriptor):
            # Another audit may be deleting it, too.
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Return whether a lock that ends with the process was obtained; False if the file system has no locks."""
    import fcntl  # Not on Windows, where ledgers are not audited.

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
