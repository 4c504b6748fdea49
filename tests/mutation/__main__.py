"""Plant faults, one at a time, and see which size of the suite catches each: `python -m tests.mutation --size all`.

Each fault is planted in a copy of the working tree, so this tree stays as it is. The smallest size runs first, and a
larger one only where it catches nothing; of a size, the nearest tests run first. Larger sizes hold the tests of the
smaller ones. A test that fails must pass in a copy without the fault: otherwise its failure says nothing of the fault.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from certified_unlearning.engine.progress import Progress, duration
from certified_unlearning.text import table_lines
from tests.mutation.fault import Fault, chosen_faults
from tests.workflow.working_tree import WorkingTree, copy_working_tree

CHOSEN = "not statistical and not exhaustive and not workflow"
QUICK = ["tests/accounting", "tests/certificate", "tests/engine", "tests/mechanisms"]
SIZES: dict[str, list[str]] = {
    "quick": ["-m", CHOSEN, "--hypothesis-profile=quick", "--one-case", "--case-seed=1"],
    "default": ["-m", CHOSEN, "--case-seed=1"],
    "all": ["--hypothesis-profile=full"],
}
"""Arguments of pytest that select the tests of each size, the smallest first, as the Makefile gives them."""
ROOMS = {"quick": QUICK}
"""Where a size's tests lie; everywhere, if it is not named."""
# The checks of these very faults would fail in every copy with a fault.
PYTEST = [sys.executable, "-m", "pytest", "-x", "-q", "--ignore=tests/mutation"]
PASSED, NONE_SELECTED = 0, 5
"""Exit codes of pytest."""
LAST_FAILED = Path(".pytest_cache") / "v" / "cache" / "lastfailed"
"""Where pytest writes the names of the tests that failed."""
SECONDS = 3 * 3600
"""A run of pytest that takes longer is stopped, and counts as a failure: a fault may make a loop endless."""
RUNNING: set["subprocess.Popen[bytes]"] = set()
"""What an interruption has to end."""


@dataclass(frozen=True)
class Verdict:
    """What became of a planted fault.

    Attributes:
        size: The smallest size that catches it; None where the fault survived.
        caught_by: The first test that failed; None where the fault survived.
        seconds: How long tests ran until then.
        trouble: Why the run says nothing of the fault; None where it does.
    """

    size: str | None
    caught_by: str | None
    seconds: float
    trouble: str | None = None

    @property
    def in_words(self) -> str:
        if self.trouble is not None:
            return f"UNKNOWN: {self.trouble}"
        return "SURVIVED" if self.caught_by is None else f"`{self.caught_by}`"


class PytestError(Exception):
    """Pytest ended otherwise than with passed or failed tests."""


def first_failure(tree: WorkingTree, arguments: Sequence[str]) -> str | None:
    """Run tests in a copy up to the first that fails; return its name, or None where all pass.

    Raises:
        PytestError: Pytest could not run the tests.
    """
    # Without its own package first, a copy would test the installed one.
    environment = tree.environment | {"OMP_NUM_THREADS": "1"}
    if "UNLEARNING_DATA" in os.environ:
        environment["UNLEARNING_DATA"] = os.environ["UNLEARNING_DATA"]
    log, last_failed = tree.root.with_suffix(".log"), tree.root / LAST_FAILED
    last_failed.unlink(missing_ok=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*PYTEST, *arguments],
            cwd=tree.root,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        RUNNING.add(process)
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            return f"no end after {duration(SECONDS)}"
        finally:
            # Also what tests have started and left running.
            stop(process)
            RUNNING.discard(process)
    if code in (PASSED, NONE_SELECTED):
        return None
    if not last_failed.exists():
        said = log.read_text(encoding="utf-8", errors="replace")
        raise PytestError(f"pytest ended with code {code}: {said.strip().rpartition(os.linesep)[2]}")
    return str(next(iter(json.loads(last_failed.read_text(encoding="utf-8")))))


def stop(process: "subprocess.Popen[bytes]") -> None:
    """End a process that leads a session, and whatever else runs in that session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def copied(to: Path) -> WorkingTree:
    """Return a copy of the working tree that is a git repository, as some tests need."""
    tree = copy_working_tree(to)
    author = ("-c", "user.name=mutation", "-c", "user.email=mutation@localhost")
    for command in (["init"], ["add", "--all"], [*author, "commit", "--message", "a copy"]):
        made = tree.run("git", "-c", "core.hooksPath=/dev/null", *command)
        if made.returncode:
            raise OSError(f"git {command[0]} failed in {to}: {made.stdout}")
    return tree


def verdict_of(fault: Fault, largest: str, *, nearest_only: bool) -> Verdict:
    """Plant a fault in a copy and return what became of it."""
    try:
        return _planted(fault, largest, nearest_only=nearest_only)
    except PytestError as error:
        return Verdict(None, None, 0.0, str(error))


def sizes_up_to(largest: str) -> list[str]:
    """Return the sizes to try, in order."""
    return list(SIZES)[: list(SIZES).index(largest) + 1]


def attempts(fault: Fault, largest: str, *, nearest_only: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the sizes, the smallest first, each with tests to run: the nearest to a fault, and then all of the size."""
    for size in sizes_up_to(largest):
        rooms = ROOMS.get(size, [])
        nearest = [each for each in fault.nearest if each.startswith(tuple(rooms) or "")]
        if nearest:
            yield size, nearest
        if not nearest_only:
            yield size, rooms


def _planted(fault: Fault, largest: str, *, nearest_only: bool) -> Verdict:
    with TemporaryDirectory(prefix="mutation-") as directory:
        tree = copied(Path(directory) / "planted")
        tree.edit(fault.file, fault.old, fault.new)
        begun = time.monotonic()
        seconds = 0.0
        for size, tests in attempts(fault, largest, nearest_only=nearest_only):
            caught_by = first_failure(tree, [*SIZES[size], *tests])
            seconds = time.monotonic() - begun
            if caught_by is None:
                continue
            if "::" not in caught_by:
                return Verdict(size, caught_by, seconds)
            clean = copied(Path(directory) / "clean")
            fails_anyway = first_failure(clean, [*SIZES[size], caught_by]) is not None
            trouble = f"{caught_by} fails without the fault, too" if fails_anyway else None
            return Verdict(size, caught_by, seconds, trouble)
        return Verdict(None, None, seconds)


def table_of(verdicts: dict[Fault, Verdict], largest: str, *, nearest_only: bool) -> str:
    """Return the verdicts as a table in Markdown, with a sentence for each size that counts them."""
    rows = [
        [
            fault.room,
            fault.name,
            "yes" if fault.blind else "no",
            verdict.size or "none",
            verdict.in_words.replace("|", r"\|"),
            duration(verdict.seconds),
        ]
        for fault, verdict in verdicts.items()
    ]
    lines = table_lines(["room", "fault", "blind", "smallest size", "caught by", "after"], rows)
    tests = "the nearest tests" if nearest_only else "the tests"
    caught = 0
    for size in sizes_up_to(largest):
        caught += sum(verdict.size == size and verdict.trouble is None for verdict in verdicts.values())
        lines += ["", f"{caught} of {len(verdicts)} faults are caught by {tests} of the size {size}."]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Plant faults as the command line says, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="default", help="the largest to try; default: of `make test`")
    parser.add_argument("--only", nargs="+", metavar="TEXT", default=[], help="faults whose names hold a text")
    parser.add_argument("--nearest-only", action="store_true", help="run each fault's nearest tests and no others")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many faults are tried side by side")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where the table is written; default: printed")
    given = parser.parse_args(arguments)
    try:
        faults = chosen_faults(given.only)
    except ValueError as error:
        parser.error(str(error))
    if given.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {given.jobs}")
    progress = Progress("mutation", len(faults)) if sys.stderr.isatty() else None
    verdicts = {}
    with ThreadPoolExecutor(given.jobs) as pool:
        running = {
            pool.submit(verdict_of, fault, given.size, nearest_only=given.nearest_only): fault for fault in faults
        }
        try:
            for done in as_completed(running):
                verdicts[running[done]] = done.result()
                if progress is not None:
                    progress.advance(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(RUNNING):
                stop(process)
            raise
    in_order = {fault: verdicts[fault] for fault in faults}
    table = table_of(in_order, given.size, nearest_only=given.nearest_only)
    if given.output is None:
        print(table)
    else:
        given.output.write_text(f"{table}\n", encoding="utf-8")
    if any(verdict.trouble for verdict in verdicts.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
