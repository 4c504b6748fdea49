import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(source: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build the documents; a warning is an error."""
    return subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", f"{site}-doctrees", str(source), str(site)],
        cwd=ROOT,
        env=os.environ | {"NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
