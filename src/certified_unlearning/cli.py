"""The program `unlearn`: it runs the commands, and reports user errors and Ctrl-C in one sentence."""

# Modules that take long to import are imported in `_run`, which turns Ctrl-C into one sentence.
import atexit
import gc
import io
import os
import signal
import sys
from types import FrameType
from typing import Any

from certified_unlearning.errors import Interrupted, UnlearningError

_PACKAGES = {
    "jinja2": "jinja2",
    "matplotlib": "matplotlib",
    "mlflow": "mlflow",
    "PIL": "pillow",
    "requests": "mlflow",
    "seaborn": "seaborn",
    "sqlalchemy": "mlflow",
}
"""Packages of the extra `workflow`. Each key is a module, and its value is the package that provides the module."""
_LATER = 0.02
"""Number of seconds to wait before an interrupt that came at a bad moment is raised again."""


def main() -> None:
    """Run the command line. A user error prints one sentence and exits with status 1. Ctrl-C exits with status 130."""
    before = signal.getsignal(signal.SIGINT), sys.unraisablehook
    if before[0] is signal.default_int_handler:  # Otherwise Ctrl-C is ignored, as in the background of a script.
        signal.signal(signal.SIGINT, _interrupt)
        sys.unraisablehook = _interrupt_later
    try:
        _run()
    except (Interrupted, KeyboardInterrupt) as interrupt:
        if "WORLD_SIZE" not in os.environ:  # The launcher of several processes prints the message for them.
            known = interrupt.known if isinstance(interrupt, Interrupted) else ""
            print("; ".join(filter(None, ["interrupted", known])), file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)  # A late interrupt must not disturb Python's exit.
        atexit.unregister(_end_undisturbed)
        atexit.register(_end_undisturbed)
        signal.signal(signal.SIGINT, before[0])
        sys.unraisablehook = before[1]


def __getattr__(name: str) -> Any:
    """Return the attribute ``app``, the program with all commands."""
    if name == "app":
        from certified_unlearning.commands import program

        return program()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _run() -> None:
    _open_standard_streams()
    _require_working_directory()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Messages get a question mark for a character that the terminal lacks. `print_data` keeps data as they are.
            stream.reconfigure(errors="replace")
    # PyTorch's import creates hundreds of thousands of objects, and all of them stay. Searching them for garbage again
    # and again, and once more at exit, takes a third of a short command's time.
    gc.set_threshold(100_000)
    from certified_unlearning.commands import run
    from certified_unlearning.commands.output import discard_output
    from certified_unlearning.engine.processes import tell_launcher

    try:
        try:
            run()
        finally:
            gc.freeze()
            sys.stdout.flush()
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
            print(f"error: cannot use {error.filename}: {error.strerror}", file=sys.stderr)
            sys.exit(1)
        # The error was in writing to standard output.
        discard_output()
        # A closed pipe is no error: its reader has seen enough.
        if not isinstance(error, BrokenPipeError):
            print(f"error: cannot write to standard output: {error.strerror}", file=sys.stderr)
        sys.exit(1)


def _open_standard_streams() -> None:
    """Open standard streams that the caller closed: otherwise the next opened file would become standard output."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # This takes the lowest free number. Writing to it fails, as it should.
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def _require_working_directory() -> None:
    """Exit if the working directory was deleted: PyTorch's libraries would end the process without a message."""
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        print("error: the working directory was deleted; change to another one", file=sys.stderr)
        sys.exit(1)


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raise `Interrupted` on the first Ctrl-C; the second one ends the process at once, as `kill -9` does.

    Imports and code in C libraries finish first: an import must not stop halfway, and a C library would end the process
    with its own message.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _interrupt_soon()
            return
        frame = frame.f_back
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise Interrupted


def _interrupt_soon() -> None:
    signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, _LATER)


def _interrupt_later(unraisable: Any) -> None:
    """Interrupt again if an interrupt was lost in a destructor; print other errors that cannot be raised."""
    if issubclass(unraisable.exc_type, Interrupted):
        _interrupt_soon()
    else:
        sys.__unraisablehook__(unraisable)


def _end_undisturbed() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
