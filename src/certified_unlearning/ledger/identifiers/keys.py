"""Where the key of a model directory's identifiers is kept: in the directory or elsewhere.

The module has no heavy imports.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from certified_unlearning.errors import DataError, ParameterError, StorageError
from certified_unlearning.files import read_json, synchronise, write_json

ENVIRONMENT = "UNLEARNING_KEY_FILE"
"""The environment variable with the path of the key, if the key is not at the path that the directory names."""
IN_DIRECTORY = "identifier-key"
"""Name of the key's file in a directory that keeps its own key."""
POINTER = "key-file.json"
"""Name of the file that contains the path of the key. A directory has this file if its key is elsewhere."""


class MissingKeyError(DataError):
    """The key of identifiers cannot be read.

    Attributes:
        fact: A sentence that says why the key cannot be read.
    """

    def __init__(self, fact: str, without: str) -> None:
        super().__init__(f"{fact}; {without}")
        self.fact = fact


def place_of(directory: Path) -> Path:
    """Return the path of a model directory's key.

    The variable `ENVIRONMENT` is used only if the directory says that its key is elsewhere.

    Raises:
        DataError: The file that names the key's path cannot be read.
    """
    pointer = directory / POINTER
    if not pointer.exists():
        return directory / IN_DIRECTORY
    said = read_json(pointer, ["key_file"])["key_file"]
    if not isinstance(said, str) or not Path(said).is_absolute():
        raise DataError(f"{pointer} is damaged: key_file must be an absolute path, got {said!r}")
    return Path(os.environ.get(ENVIRONMENT) or said)


def read_key_file(path: Path, without: str) -> bytes:
    """Read a key from a file.

    Args:
        path: Path of the key's file.
        without: The part of the error message that says what cannot be done without the key.

    Raises:
        MissingKeyError: The file cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise MissingKeyError(f"cannot read {in_words(path)}: {error.strerror}", without) from error


def in_words(place: Path) -> str:
    """Return a key's path as messages name it, with a note if it comes from the environment variable."""
    named = os.environ.get(ENVIRONMENT)
    return f"{place} (named by {ENVIRONMENT})" if named and Path(named) == place else str(place)


def point_to(directory: Path, key_file: Path) -> None:
    """Write the path of the key's file into a model directory."""
    write_json(directory / POINTER, {"key_file": str(key_file.resolve())})


def require_apart(key_file: Path, directory: Path) -> None:
    """Raise `ParameterError` if the key must not or cannot be written to this file."""
    if key_file.resolve().is_relative_to(directory.resolve()):
        raise ParameterError(f"--key-file must lie outside the model directory, got {str(key_file)!r}")
    if key_file.is_dir():
        raise ParameterError(f"--key-file must name a file, but {str(key_file)!r} is a directory")
    if not key_file.resolve().parent.is_dir():
        raise ParameterError(f"--key-file is {str(key_file)!r}, but there is no directory {key_file.resolve().parent}")
    named = os.environ.get(ENVIRONMENT)
    if named and Path(named).resolve() != key_file.resolve():
        raise ParameterError(
            f"--key-file is {str(key_file)!r}, but the variable {ENVIRONMENT} names {named!r}: unset it, or name that "
            "file"
        )


@contextmanager
def written_apart(key_file: Path, key: bytes, directory: Path) -> Iterator[None]:
    """Write a key to a new file, durably. Delete the file again if the block fails before the directory exists.

    Args:
        key_file: Path of the new file.
        key: The key.
        directory: The model directory to which the key belongs.

    Raises:
        ParameterError: The file exists. It may hold another model's key, which nobody could restore.
        StorageError: The file cannot be written.
    """
    try:
        descriptor = os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise ParameterError(
            f"--key-file is {str(key_file)!r}, which exists already: each model has a key of its own, so name a new "
            "file (a file that a killed `init` left can be deleted)"
        ) from error
    except OSError as error:
        raise StorageError(f"cannot write {key_file}: {error.strerror}") from error
    try:
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(key)
                file.flush()
                os.fsync(file.fileno())
            synchronise(key_file.resolve().parent)
        except OSError as error:
            raise StorageError(f"cannot write {key_file}: {error.strerror}") from error
        yield
    except BaseException:
        # If the failure comes after the directory appeared, the key must stay, because nothing could replace it.
        if not (directory / POINTER).exists():
            key_file.unlink(missing_ok=True)
        raise
