"""What commands print: data as they are, and what was done even where nothing can be printed."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from certified_unlearning.engine.processes import is_launched
from certified_unlearning.errors import Interrupted, OutputError, UnlearningError


def show_command() -> None:
    """Print the command itself first, once: a job's log says how to repeat the job by hand."""
    if is_launched():
        return
    print("$", shlex.join(["unlearn", *sys.argv[1:]]), flush=True)


def print_data(text: str) -> None:
    """Print what programs read as UTF-8, whatever the encoding of the terminal: no character may become another."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()


@contextmanager
def after(done: str) -> Iterator[None]:
    """Print in the block that something was done; where that fails or is interrupted, standard error says it.

    Args:
        done: What was done, as a sentence without its full stop: nobody may take it for undone.

    Raises:
        OutputError: Standard output cannot be written.
        Interrupted: Somebody pressed Ctrl-C.
    """
    try:
        yield
        sys.stdout.flush()
    except Interrupted as interrupt:
        interrupt.known = done
        raise
    except OSError as error:
        if isinstance(error, UnlearningError) or error.filename is not None:
            raise
        discard_output()
        raise OutputError(f"cannot write to standard output: {error.strerror}; {done}") from error


@contextmanager
def interruptible(known: Callable[[], str]) -> Iterator[None]:
    """Let an interruption of the block say what a user must know, unless it knows something already."""
    try:
        yield
    except Interrupted as interrupt:
        interrupt.known = interrupt.known or known()
        raise


def discard_output() -> None:
    """Send what is left of standard output nowhere; otherwise Python complains once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
