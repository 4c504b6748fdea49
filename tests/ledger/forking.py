"""A process with everything imported that forks a child for each job: a line of JSON in, the child's exit status out.

A job names what the child does (``apply``, ``add``, ``request``, ``release``, ``migrate``, ``replay``, ``init``), and
what happens: SIGKILL before its ``kill_at``-th call that changes a file or the ledger, or after ``kill_after``
seconds, or as soon as exact unlearning takes steps again (``kill_long_ones``, what a time limit would do); a full
disk at its ``fail_at``-th such call; no file may grow beyond ``most_bytes``. With ``numbers``, ``init`` makes a model
that predicts them. ``new_seed`` plants a fault: exact unlearning draws by this seed, not by the one that is kept.
"""

import contextlib
import errno
import json
import os
import resource
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from certified_unlearning.errors import UnlearningError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.adding.addition import add
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.identifiers.migration import migrate
from certified_unlearning.ledger.log.replay import replay
from certified_unlearning.ledger.methods.exact_steps import ExactSteps
from certified_unlearning.ledger.terms.release import release
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from tests.ledger.tables import (
    make_model,
    make_refit,
    make_regression,
    make_text,
    write_new,
    write_table,
    write_tickets,
)

CHANGES = {
    "posix": {"fsync", "pwrite", "rename", "replace", "unlink"},
    "_io": {"write"},
    "sqlite3": {"execute", "executemany", "executescript"},
}


def module_of(function: Any) -> str:
    """Return where a built-in function or method comes from."""
    owner = getattr(function, "__self__", None)
    return str(getattr(owner, "__name__", None) or type(owner).__module__)


class At:
    """A profile function that does something before the ``number``-th call that changes something."""

    def __init__(self, number: int, action: Callable[[Any], None]) -> None:
        self.left = number
        self.action = action

    def __call__(self, frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and getattr(function, "__name__", "") in CHANGES.get(module_of(function), ()):
            self.left -= 1
            if self.left == 0:
                self.action(function)


def die(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def find_disk_full(function: Any) -> None:
    if module_of(function) == "sqlite3":
        raise sqlite3.OperationalError("database or disk is full")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def die_if_long(descent: ExactDescent[Any], state: Any, starts: Any, *rest: Any) -> None:
    """Stand in for `ExactDescent._run_again`: only requests that take steps again get here with an early start."""
    if int(starts.min()) < descent.settings.steps:
        die(None)


def work(job: dict[str, Any]) -> None:
    """Do a job in this process."""
    path = Path(job["path"])
    if "most_bytes" in job:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["most_bytes"],) * 2)
    if job.get("kill_long_ones"):
        ExactDescent._run_again = die_if_long  # type: ignore[method-assign]
    if job.get("new_seed") is not None:
        kept = ExactSteps._kept
        ExactSteps._kept = lambda *given: (kept(*given)[0], job["new_seed"])  # type: ignore[method-assign]
    if "kill_at" in job:
        sys.setprofile(At(job["kill_at"], die))
    if "fail_at" in job:
        sys.setprofile(At(job["fail_at"], find_disk_full))
    if job["do"] == "apply":
        apply(path)
    elif job["do"] == "add":
        add(path, Path(job["data"]))
    elif job["do"] == "request":
        requests.request(path, job["identifiers"])
    elif job["do"] == "release":
        release(path, job["identifiers"])
    elif job["do"] == "migrate":
        migrate(path, Path(job["key_file"]) if "key_file" in job else None)
    elif job["do"] == "replay":
        replay(path, Path(job["source"]))
    else:
        make: Callable[..., Any] = make_regression if job.get("numbers") else make_model
        make = make_text if job.get("text") else make
        make(path, Path(job["data"]))


def say(text: str) -> None:
    """Print to standard error, unless it is a file that may not grow either."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Fork for every line."""
    with tempfile.TemporaryDirectory() as scratch:
        # Once here, what is imported and computed on first use, instead of in every child.
        path = Path(scratch)
        write_table(path / "people.csv")
        make_model(path / "model", path / "people.csv")
        requests.request(path / "model", ["p1"])
        apply(path / "model")
        make_refit(path / "refit", path / "people.csv")
        write_new(path / "new.csv")
        add(path / "refit", path / "new.csv")
        write_tickets(path / "tickets.csv", 20)
        make_text(path / "text", path / "tickets.csv")
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                work(job)
            except UnlearningError as error:
                say(f"error: {error}")
                os._exit(1)
            except BaseException as error:
                say(f"{type(error).__name__}: {error}")
                os._exit(2)
            os._exit(0)
        if "kill_after" in job:
            time.sleep(job["kill_after"])
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
