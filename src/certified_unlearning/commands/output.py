"""How commands print data, and how they report finished work even if nothing can be printed."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from certified_unlearning.engine.processes import is_launched
from certified_unlearning.errors import Interrupted, OutputError, UnlearningError


def show_command() -> None:
    """Print the command itself first, once, so that a job's log shows how to repeat the job by hand."""
    if is_launched():
        return
    print("$", shlex.join(["unlearn", *sys.argv[1:]]), flush=True)


def print_data(text: str) -> None:
    """Print data for programs, in UTF-8 whatever the terminal's encoding is, so that no character is changed."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()


@contextmanager
def after(done: str) -> Iterator[None]:
    """Guard a block that prints: if printing fails or is interrupted, the raised error reports the finished work.

    Args:
        done: The finished work, as a sentence without its full stop. It tells the user not to repeat the work.

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
    """Add a message for the user to an `Interrupted` that the block raises, unless it already has a message."""
    try:
        yield
    except Interrupted as interrupt:
        interrupt.known = interrupt.known or known()
        raise


def discard_output() -> None:
    """Discard what is left in standard output's buffer; otherwise Python reports the error once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
