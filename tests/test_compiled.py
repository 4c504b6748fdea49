"""Sources are compiled once, and left out where they cannot be."""

import subprocess
from pathlib import Path

import pytest

from certified_unlearning import compiled as compiling
from certified_unlearning.compiled import library

INSTEAD = "nothing is computed"
needs_a_compiler = pytest.mark.skipif(compiling.shutil.which("c++") is None, reason="no C++ compiler is here")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source to be compiled into a place of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "three.cpp"
    path.write_text('extern "C" int three() { return 3; }')
    return path


@needs_a_compiler
def test_a_source_is_built_once(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, run = [], subprocess.run

    def counted(command, **options):
        calls.append(command)
        return run(command, **options)

    monkeypatch.setattr(compiling.subprocess, "run", counted)
    for _ in range(2):
        found = library(source, instead=INSTEAD)
        assert found is not None
        assert found.three() == 3
    assert len([each for each in calls if "-shared" in each]) == 1


@needs_a_compiler
def test_another_source_or_other_flags_are_built_anew(source: Path) -> None:
    assert library(source, instead=INSTEAD) is not None
    source.write_text('extern "C" int three() { return NUMBER; }')
    found = library(source, "-DNUMBER=4", instead=INSTEAD)
    assert found is not None
    assert found.three() == 4
    found = library(source, "-DNUMBER=5", instead=INSTEAD)
    assert found is not None
    assert found.three() == 5


def test_it_is_left_out_where_the_environment_says_so(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNLEARNING_KERNEL", "off")
    assert library(source, instead=INSTEAD) is None


def test_a_machine_without_a_compiler_does_without(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling.shutil, "which", lambda _: None)
    assert library(source, instead=INSTEAD) is None


@needs_a_compiler
def test_a_compiler_that_fails_is_told_of(source: Path, tmp_path: Path) -> None:
    source.write_text("this is no C++")
    with pytest.warns(UserWarning, match=r"cannot build three.cpp, so nothing is computed, which is slower"):
        assert library(source, instead=INSTEAD) is None
    assert not (tmp_path / "cache").exists()


@needs_a_compiler
def test_a_place_that_cannot_be_written_is_told_of(
    source: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="so nothing is computed, which is slower. Reason: cannot write"):
        assert library(source, instead=INSTEAD) is None


@needs_a_compiler
def test_a_user_without_a_home_directory_is_told_of_it(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(compiling.Path, "home", no_home)
    with pytest.warns(
        UserWarning, match="so nothing is computed, which is slower. Reason: there is no home directory; set HOME"
    ):
        assert library(source, instead=INSTEAD) is None


@needs_a_compiler
def test_a_compiler_that_writes_another_encoding_is_understood(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = source.with_name("c++")
    compiler.write_bytes(b"#!/bin/sh\nprintf 'f\\374r C++'; printf 'f\\374r C++' >&2; exit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setattr(compiling.shutil, "which", lambda _: str(compiler))
    with pytest.warns(UserWarning, match="which is slower. Reason: f.r C"):
        assert library(source, instead=INSTEAD) is None
