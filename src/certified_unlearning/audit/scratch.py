"""Scratch copies of models under audit: private directories next to the model's, which are deleted at the end.

A killed process deletes nothing, and its copy contains people's records. So the next audit of the same model looks for
abandoned copies and deletes them.
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
    """Yield a private empty directory, and delete it at the end.

    Directories of dead audits are deleted first.

    Args:
        path: The model directory. The scratch directory is created next to it.

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
        # Other audits look for this name, so the directory gets it only after it is locked.
        _lock(descriptor)
        made = made.rename(made.with_name(made.name.replace(".new-audit-", ".audit-")))
        yield made
    finally:
        shutil.rmtree(made)
        os.close(descriptor)


def _delete_if_abandoned(path: Path) -> None:
    """Delete a scratch directory unless its audit is still running."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return  # The audit has ended since.
    try:
        if _lock(descriptor):
            # Another audit may delete the directory at the same time.
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Try to get a lock that ends with the process, and return whether this succeeded.

    The result is False if the file system has no locks.
    """
    import fcntl  # Not on Windows, where ledgers are not audited.

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
