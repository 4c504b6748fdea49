"""Ctrl-C at any moment: one line on standard error, exit status 130, and a model directory that is whole or absent."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from certified_unlearning.ledger import requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Original
from tests.ledger.test_ledger_commands import FLAGS
from tests.support.waiting import PATIENCE

PROGRAM = """
import os, signal
install = signal.signal
def tell(*arguments):
    before = install(*arguments)
    if (arguments[0], signal.signal) == (signal.SIGINT, tell):
        signal.signal = install
        os.write({ready}, b".")
    return before
signal.signal = tell
from certified_unlearning.cli import main
main()
"""
"""The program, which says when it has begun: what Python does before that is not the program's."""


class Ended(NamedTuple):
    status: int
    printed: str
    errors: str
    seconds: float


def run(*arguments: object, interrupted_after: float = PATIENCE, again_after: float | None = None) -> Ended:
    ready, told = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(ready=told), *map(str, arguments)],
        pass_fds=[told],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A suite that runs in the background ignores Ctrl-C, and what it starts would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    os.close(told)
    begun = os.read(ready, 1)
    os.close(ready)
    assert begun == b".", "the program ended without a handler of Ctrl-C"
    began = time.monotonic()
    try:
        process.wait(interrupted_after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        if again_after is not None:
            time.sleep(again_after)
            process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=PATIENCE)
    return Ended(process.returncode, printed, errors, time.monotonic() - began)


def interrupt(count: int, arguments: Callable[[int], list[object]], check: Callable[[int, Ended], None]) -> None:
    """Interrupt a command so many times, at random moments of the shortest of its runs that were finished.

    Args:
        count: How many times.
        arguments: Returns the arguments of the next run, by its number.
        check: Is called with the number of an interrupted or finished run, and how it ended.
    """
    moments, seconds, interruptions, number = random.Random(1), float(PATIENCE), 0, 0
    while interruptions < count:
        # The first is finished, so that it says how long others take.
        after = moments.uniform(0, seconds) if number else seconds
        ended = run(*arguments(number), interrupted_after=after)
        if ended.status == 130:
            interruptions += 1
            assert ended.errors.startswith("interrupted")
            assert ended.errors.count("\n") == 1
        else:
            assert (ended.status, "Traceback" in ended.errors) == (0, False), ended.errors
            seconds = min(seconds, ended.seconds)
        check(number, ended)
        number += 1


@pytest.mark.parametrize("count", [1, pytest.param(6, marks=pytest.mark.exhaustive)])
def test_apply_goes_on_after_it_was_interrupted_at_any_moment(model: Path, tmp_path: Path, count: int) -> None:
    """Six interruptions at random moments, between which the program starts anew each time."""
    requests.request(model, ["p3", "p4"])

    def arguments(number: int) -> list[object]:
        return ["apply", shutil.copytree(model, tmp_path / f"copy-{number}"), "--no-quality"]

    def check(number: int, ended: Ended) -> None:
        known = ("nothing is lost; `unlearn apply", "version 2 was made (head: ", "interrupted\n")
        assert ended.status == 0 or any(each in ended.errors for each in known)
        apply(tmp_path / f"copy-{number}")
        assert [batch.requests for batch in verify(tmp_path / f"copy-{number}").state.batches] == [2]

    interrupt(count, arguments, check)


@pytest.mark.parametrize("count", [1, pytest.param(6, marks=pytest.mark.exhaustive)])
def test_init_that_was_interrupted_at_any_moment_made_a_whole_model_or_nothing(
    original: Original, tmp_path: Path, count: int
) -> None:
    """Six interruptions at random moments, between which the program starts anew each time."""

    def arguments(number: int) -> list[object]:
        return ["init", tmp_path / f"model-{number}", "--data", original.data, *FLAGS, "--no-quality"]

    def check(number: int, ended: Ended) -> None:
        made = (tmp_path / f"model-{number}").exists()
        said = "head: " in ended.printed or " was made" in ended.errors.replace("nothing was made", "")
        assert made == said
        assert not list(tmp_path.glob(".*"))
        if made:
            verify(tmp_path / f"model-{number}")

    interrupt(count, arguments, check)


@pytest.mark.parametrize("count", [1, pytest.param(6, marks=pytest.mark.exhaustive)])
def test_a_request_that_was_interrupted_says_whether_it_was_recorded_or_how_to_see_it(
    model: Path, tmp_path: Path, count: int
) -> None:
    def arguments(number: int) -> list[object]:
        return ["request", shutil.copytree(model, tmp_path / f"copy-{number}"), "--id", "p3"]

    def check(number: int, ended: Ended) -> None:
        recorded = requests.status(tmp_path / f"copy-{number}").state.pending == 1
        if "says whether" not in ended.errors:
            assert recorded == ("head: " in ended.printed or "the request was recorded" in ended.errors)

    interrupt(count, arguments, check)


@pytest.mark.parametrize(
    "command",
    ["status", *(pytest.param(each, marks=pytest.mark.exhaustive) for each in ("predict", "evaluate", "audit"))],
)
def test_commands_that_only_read_say_in_one_line_that_they_were_interrupted(
    original: Original, model: Path, tmp_path: Path, command: str
) -> None:
    """Three interruptions at random moments, between which the program starts anew each time."""
    arguments: list[object] = [command, model]
    if command == "audit":
        arguments += ["--runs", 5, "--canaries", 20]
    elif command != "status":
        arguments.append(original.data)
    if command == "predict":
        arguments += ["--output", tmp_path / "predictions.csv"]

    def check(number: int, ended: Ended) -> None:
        assert {path.name for path in tmp_path.iterdir()} <= {"model", "predictions.csv"}

    interrupt(3, lambda _: arguments, check)


@pytest.mark.sampled
@pytest.mark.parametrize("wait", [0, 0.01, 0.1])
def test_a_second_ctrl_c_prints_no_traceback(original: Original, tmp_path: Path, wait: float) -> None:
    # 45,000 steps and more, so that the first one comes while it learns.
    long = ["init", tmp_path / "model", "--data", original.data, *FLAGS[:10], "--C", 1000, "--batch-size", "all"]
    ended = run(*long, interrupted_after=2, again_after=wait)
    assert ended.status in (130, -signal.SIGINT)
    assert "Traceback" not in ended.errors
    assert not (tmp_path / "model").exists()
