"""The version of the code that produced a result."""

import functools
import hashlib
import subprocess
from importlib.metadata import version
from pathlib import Path


@functools.cache
def code_version() -> str:
    """Return the package version and, in a git checkout, the commit (``+dirty`` with uncommitted changes)."""
    directory = Path(__file__).parent
    try:
        described = subprocess.run(
            ["git", "-C", str(directory), "describe", "--always", "--dirty=+dirty", "--exclude=*"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        # Installed from a wheel, or without git: the package version suffices.
        return version("certified-unlearning")
    return f"{version('certified-unlearning')}+{described.stdout.strip()}"


@functools.cache
def source_sha256() -> str:
    """Return the digest of the package's source. If it changes, a half-finished computation is discarded."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    for path in sorted((*root.rglob("*.py"), *root.rglob("*.cpp"))):
        digest.update(f"{path.relative_to(root)}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
