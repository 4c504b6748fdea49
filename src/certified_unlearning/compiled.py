"""C++ sources that this machine's compiler builds once. Without a compiler, slower code does the same work.

The environment variable ``UNLEARNING_KERNEL=off`` disables the compiled code.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

from certified_unlearning.errors import StorageError
from certified_unlearning.files import atomic_path

FLAGS = ("-O3", "-march=native", "-fno-fast-math", "-std=c++17", "-shared", "-fPIC", "-Wno-psabi")
SECONDS = 120
"""Time limit of a compilation, in seconds."""


def library(source: Path, *flags: str, instead: str) -> ctypes.CDLL | None:
    """Return the compiled source; compile it first if this machine has not done so yet. None if that is not possible.

    A compiler failure causes a warning.

    Args:
        source: Path of the C++ file.
        flags: Flags of the compiler, in addition to `FLAGS`.
        instead: A clause for the warning, on what happens without the library.
    """
    compiler = shutil.which("c++") or shutil.which("g++")
    if os.environ.get("UNLEARNING_KERNEL", "on") == "off" or compiler is None:
        return None
    try:
        return ctypes.CDLL(str(_built(compiler, source, (*FLAGS, *flags))))
    except (StorageError, OSError, subprocess.SubprocessError) as error:
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
        warnings.warn(
            f"{compiler} cannot build {source.name}, so {instead}, which is slower. Reason: {said.strip()[:300]}",
            stacklevel=2,
        )
        return None


def _built(compiler: str, source: Path, flags: tuple[str, ...]) -> Path:
    """Return the path of the source's library; build it if it does not exist."""
    path = _cache() / f"{source.stem}-{_key(compiler, source, flags)}.so"
    if not path.exists():
        with tempfile.TemporaryDirectory() as directory:
            built = Path(directory) / path.name
            command = [compiler, *flags, str(source), "-o", str(built)]
            _run(command)
            with atomic_path(path) as temporary:
                temporary.write_bytes(built.read_bytes())
    return path


def _cache() -> Path:
    """Return the directory of built libraries.

    Raises:
        StorageError: The user has no home directory, as in a container with an unknown user ID.
    """
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "certified-unlearning"
    except RuntimeError as error:
        raise StorageError("there is no home directory; set HOME or XDG_CACHE_HOME to a directory") from error


def _key(compiler: str, source: Path, flags: tuple[str, ...]) -> str:
    """Return a key for source, compiler and processor: a library for one processor may not run on another."""
    parts = (
        source.read_text(encoding="utf-8"),
        *flags,
        _run([compiler, "--version"]),
        platform.machine(),
        _processor(),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _run(command: list[str]) -> str:
    """Return a command's output as text, whatever encoding the compiler uses."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=True)
    return done.stdout


def _processor() -> str:
    """Return the processor's features, as far as the system reports them."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text(errors="replace").splitlines() if described.exists() else []
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
