"""The program `unlearn`: its commands, and how a mistake of the user's ends."""

import gc
import io
import os
import sys

from certified_unlearning.commands import app
from certified_unlearning.engine.processes import tell_launcher
from certified_unlearning.errors import UnlearningError

_PACKAGES = {
    "jinja2": "jinja2",
    "matplotlib": "matplotlib",
    "mlflow": "mlflow",
    "PIL": "pillow",
    "requests": "mlflow",
    "seaborn": "seaborn",
    "sqlalchemy": "mlflow",
}
"""Which package of the extra `workflow` brings a module."""


def main() -> None:
    """Run the command line; a mistake of the user's ends with one sentence and exit status 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character gets a question mark, not a traceback.
            stream.reconfigure(errors="replace")
    # PyTorch's import makes objects by the hundred thousand, all of which stay:
    # to search them for garbage again and again, and once more at exit, takes a third of a short command's time.
    gc.set_threshold(100_000)
    try:
        try:
            app()
        finally:
            gc.freeze()
            print(end="", flush=True)
    except UnlearningError as error:
        if not tell_launcher(error):
            print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except ModuleNotFoundError as error:
        package = _PACKAGES.get((error.name or "").partition(".")[0])
        if package is None:
            raise
        advice = 'pip install "certified-unlearning[workflow]"'
        print(f"error: this command needs {package}, which is not installed: {advice}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        if error.filename is not None:
            raise
        # It was standard output. What is left of it goes nowhere; otherwise Python complains once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # Whoever closed a pipe has seen enough.
        if not isinstance(error, BrokenPipeError):
            print(f"error: cannot write to standard output: {error.strerror}", file=sys.stderr)
        sys.exit(1)
