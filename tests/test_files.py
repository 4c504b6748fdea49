"""Files are whole or absent, whatever happens while they are written."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.errors import DataError, StorageError
from certified_unlearning.files import atomic_path, content_key, read_json, write_json, write_text
from tests.support.waiting import PATIENCE


def content_of(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def interrupted_write(write: Callable[[Path], None], directory: Path) -> dict[str, str]:
    """Return what a directory with one old file holds after a writer of it was interrupted."""
    (directory / "result.txt").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write(directory / "result.txt")
    return content_of(directory)


def write_half(path: Path) -> None:
    with atomic_path(path) as temporary:
        temporary.write_text("half of the n")
        raise KeyboardInterrupt


def write_half_in_place(path: Path) -> None:
    path.write_text("half of the n")
    raise KeyboardInterrupt


def test_a_file_is_replaced_when_the_block_ends(tmp_path: Path) -> None:
    (tmp_path / "result.txt").write_text("old")
    with atomic_path(tmp_path / "result.txt") as temporary:
        temporary.write_text("new")
        assert (tmp_path / "result.txt").read_text() == "old"
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".txt"
    assert content_of(tmp_path) == {"result.txt": "new"}


def test_an_interrupted_write_leaves_the_old_content_and_no_temporary_file(tmp_path: Path) -> None:
    assert interrupted_write(write_half, tmp_path) == {"result.txt": "old"}


def test_a_write_in_place_would_be_caught(tmp_path: Path) -> None:
    assert interrupted_write(write_half_in_place, tmp_path) != {"result.txt": "old"}


def test_a_first_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), atomic_path(tmp_path / "result.txt") as temporary:
        temporary.write_text(str(1 / 0))
    assert content_of(tmp_path) == {}


def test_a_killed_writer_leaves_the_old_content(tmp_path: Path) -> None:
    (tmp_path / "result.txt").write_text("old")
    code = (
        "import os, signal, sys; from certified_unlearning.files import atomic_path\n"
        "with atomic_path(sys.argv[1]) as temporary:\n"
        "    temporary.write_text('half of the n')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path / "result.txt")], timeout=PATIENCE)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "result.txt").read_text() == "old"


def test_missing_directories_are_made(tmp_path: Path) -> None:
    write_text(tmp_path / "a/b/result.txt", "new")
    assert (tmp_path / "a/b/result.txt").read_text() == "new"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_that_takes_no_more_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Some file systems notice only when the content is synchronised that there is no room for it."""

    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    (tmp_path / "result.txt").write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match=f"^cannot write {tmp_path}/result.txt: {os.strerror(number)}$"):
        write_text(tmp_path / "result.txt", "new")
    assert content_of(tmp_path) == {"result.txt": "old"}


def test_the_content_is_on_the_disk_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (events.append("synchronise"), fsync(descriptor)))
    monkeypatch.setattr(Path, "replace", lambda self, target: (events.append("rename"), replace(self, target)))
    write_text(tmp_path / "result.txt", "new")
    assert events == ["synchronise", "rename", "synchronise"]


def test_a_place_below_a_file_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("whole")
    with pytest.raises(StorageError, match=f"^cannot write .*/file/result.txt: {tmp_path}/file is not a directory$"):
        write_text(tmp_path / "file/result.txt", "new")
    with pytest.raises(StorageError, match=r"Not a directory$"):
        write_text(tmp_path / "file/below/result.txt", "new")
    assert content_of(tmp_path) == {"file": "whole"}


def test_a_directory_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "result").mkdir()
    with pytest.raises(StorageError, match=f"^cannot write {tmp_path}/result: Is a directory$"):
        write_text(tmp_path / "result", "new")
    assert list(tmp_path.iterdir()) == [tmp_path / "result"]


@pytest.mark.skipif(os.geteuid() == 0, reason="permission bits do not bind root")
def test_a_directory_without_write_permission_is_a_storage_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match=r"Permission denied$"):
        write_text(tmp_path / "result.txt", "new")


def test_two_processes_that_write_the_same_file_do_not_mix(tmp_path: Path) -> None:
    code = (
        "import sys; from certified_unlearning.files import write_text\n"
        "for _ in range(50): write_text(sys.argv[1], sys.argv[2] * 100_000)\n"
    )
    path = tmp_path / "result.txt"
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), letter]) for letter in "ab"]
    assert [writer.wait(timeout=PATIENCE) for writer in writers] == [0, 0]
    assert path.read_text() in {"a" * 100_000, "b" * 100_000}
    assert list(tmp_path.iterdir()) == [path]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(), values, max_size=4),
    max_leaves=10,
)


@given(value=json_values)
def test_json_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.getbasetemp() / "value.json"
    write_json(path, value)
    assert read_json(path) == value
    assert content_key(read_json(path)) == content_key(value)


def test_json_has_no_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "value.json", {"accuracy": float("nan")})
    assert content_of(tmp_path) == {}


def test_the_content_key_knows_values_and_not_their_order() -> None:
    assert content_key({"a": 1, "b": [2.0]}) == content_key({"b": [2.0], "a": 1})
    different = [{"a": 1}, {"a": 2}, {"a": "1"}, {"a": 1.5}, {"b": 1}, [1], {"a": [1]}]
    assert len({content_key(value) for value in different}) == len(different)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "^cannot read .*value.json: No such file or directory$"),
        (b"{", "is not valid JSON: "),
        (b"\xff", "is not valid JSON: "),
        (b"[" * 200_000, "is not valid JSON: "),
        (b'{"n": 1, "d": [{"epsilon": 0.1, "n": 2, "epsilon": 1}]}', "the key 'epsilon' occurs twice in an object$"),
        (b"[]", "does not hold a JSON object$"),
        (b'{"n": 1}', "lacks d$"),
    ],
)
def test_json_that_is_not_what_it_should_be_is_a_data_error(tmp_path: Path, content: bytes | None, sentence) -> None:
    path = tmp_path / "value.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=f"{path}.*{sentence}" if content is not None else sentence):
        read_json(path, keys=("n", "d"))


def test_a_device_or_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError, match="pipe: it is not a regular file"):
        write_text(tmp_path / "pipe", "text")
    assert not (tmp_path / "pipe").is_file()
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]
