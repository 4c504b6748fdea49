"""Files that are either whole or absent: written under a temporary name, synchronised, then renamed."""

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from certified_unlearning.errors import DataError, StorageError

ModelType = TypeVar("ModelType", bound=BaseModel)


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the directory of ``path``; its file replaces ``path`` when the block succeeds.

    Missing parent directories are created. If the block raises, the temporary file is removed, and ``path`` keeps its
    old content.

    Args:
        path: The file to write.

    Yields:
        The temporary path. It has the suffixes of ``path``, because some writers look at them.

    Raises:
        StorageError: The directory cannot be made or written to, or the disk is full.
    """
    path = Path(path)
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    if path.exists() and not (path.is_file() or path.is_dir()):
        # The rename would replace a device or a pipe.
        raise StorageError(f"cannot write {path}: it is not a regular file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.replace(path)
            synchronise(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except StorageError:
        raise
    except FileExistsError as error:
        raise StorageError(f"cannot write {path}: {path.parent} is not a directory") from error
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error


def read_yaml(path: str | Path) -> Any:
    """Read a YAML file. Refuse duplicate keys, because a YAML parser would silently keep the last one.

    Raises:
        DataError: The file cannot be read, or is not valid YAML.
    """
    try:
        return yaml.load(Path(path).read_text(encoding="utf-8"), _UniqueKeys)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise DataError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error


_ODD_NUMBER = re.compile(r"[-+]?(0\d|0[xob]|\d*_|\d+:).*", re.IGNORECASE)
"""Numbers that YAML reads in an unexpected way: 010 becomes 8, 12:30 becomes 750."""


class _UniqueKeys(yaml.SafeLoader):
    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        number = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
        if number and _ODD_NUMBER.fullmatch(str(node.value)):
            line = node.start_mark.line + 1
            raise yaml.YAMLError(f"{node.value} in line {line} would be read as another number; put quotes around it")
        return super().construct_object(node, deep)

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                name, line = (key.tag, key.value), key.start_mark.line + 1
                if name in lines:
                    raise yaml.YAMLError(f"the key {key.value!r} occurs in lines {lines[name]} and {line}")
                lines[name] = line
        return node


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` as UTF-8, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write ``value`` as indented JSON with sorted keys, atomically. NaN and infinity are refused."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: str | Path, keys: Collection[str] = ()) -> Any:
    """Read a JSON file. Refuse duplicate keys in objects, because a JSON parser would silently keep the last one.

    Args:
        path: The file.
        keys: Keys that the file's object must have, if any.

    Raises:
        DataError: The file is missing, is not JSON, or lacks one of the keys.
    """
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=_unique_keys)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {error}") from error
    if keys and not isinstance(value, dict):
        raise DataError(f"{path} does not hold a JSON object")
    missing = [key for key in keys if key not in value]
    if missing:
        raise DataError(f"{path} lacks {', '.join(missing)}")
    return value


def write_model(path: str | Path, model: BaseModel) -> None:
    """Write a Pydantic model as indented JSON, atomically."""
    write_text(path, model.model_dump_json(indent=2) + "\n")


def read_model(path: str | Path, model: type[ModelType], what: str) -> ModelType:
    """Read a Pydantic model from JSON, and refuse duplicate keys in objects.

    Args:
        path: The file.
        model: The model's class.
        what: Description of the file for the message, such as "a plan".

    Raises:
        DataError: The file is missing or is not such a model; the message names the first wrong field.
    """
    try:
        content = Path(path).read_bytes()
        found = model.model_validate_json(content)
        # Duplicate keys are checked last, so that other errors get the model's messages.
        json.loads(content, object_pairs_hook=_unique_keys)
        return found
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DataError(": ".join(filter(None, [f"{path} is not {what}", where, first["msg"]]))) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not {what}: {error}") from error


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise ValueError(f"the key {twice!r} occurs twice in an object")
    return found


def content_key(value: Any) -> str:
    """Return the SHA-256 of ``value`` as canonical JSON. Equal values have equal keys."""
    return key_of(canonical(value))


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
"""One encoder for all calls: `json.dumps` would create an encoder each time."""


def canonical(value: Any) -> str:
    """Return ``value`` as canonical JSON. Equal values have equal texts."""
    return _CANONICAL.encode(value)


def key_of(text: str) -> str:
    """Return the content key of the value whose canonical JSON is ``text``."""
    return hashlib.sha256(text.encode()).hexdigest()


def synchronise(directory: Path) -> None:
    """Write a directory's entries to the disk, so that they survive a crash."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
