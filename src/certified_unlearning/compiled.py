"""C++ sources that the machine's own compiler builds, once; where there is none, their work is done more slowly.

The environment variable ``UNLEARNING_KERNEL=off`` leaves them out.
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
"""The longest that a compiler may take."""


def library(source: Path, *flags: str, instead: str) -> ctypes.CDLL | None:
    """Return the compiled source, built now if it never was on this machine; None where that cannot be.

    A compiler that fails is warned of.

    Args:
        source: The file.
        flags: Of the compiler, besides `FLAGS`.
        instead: What happens without it, in words.
    """
    compiler = shutil.which("c++") or shutil.which("g++")
    if os.environ.get("UNLEARNING_KERNEL", "on") == "off" or compiler is None:
        return None
    try:
        return ctypes.CDLL(str(_built(compiler, source, (*FLAGS, *flags))))
    except (StorageError, OSError, subprocess.SubprocessError) as error:
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
        warnings.warn(
            f"{compiler} cannot build {source.name}, so {instead}, more slowly: {said.strip()[:300]}",
            stacklevel=2,
        )
        return None


def _built(compiler: str, source: Path, flags: tuple[str, ...]) -> Path:
    """Return the source's library, built now if it is not there."""
    path = _cache() / f"{source.stem}-{_key(compiler, source, flags)}.so"
    if not path.exists():
        with tempfile.TemporaryDirectory() as directory:
            built = Path(directory) / path.name
            command = [compiler, *flags, str(source), "-o", str(built)]
            subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
            with atomic_path(path) as temporary:
                temporary.write_bytes(built.read_bytes())
    return path


def _cache() -> Path:
    """Return where built libraries lie."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "certified-unlearning"


def _key(compiler: str, source: Path, flags: tuple[str, ...]) -> str:
    """Return a name for source, compiler and processor: a library for one processor may not run on another."""
    asked = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=SECONDS, check=True)
    parts = (source.read_text(encoding="utf-8"), *flags, asked.stdout, platform.machine(), _processor())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _processor() -> str:
    """Return what the processor can do, as far as the system says it."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else [platform.processor()]
    return next((line for line in lines if line.startswith(("flags", "Features"))), lines[0])
