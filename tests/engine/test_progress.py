"""Progress lines on a simulated clock: when they come, and whether they are right about the time left."""

import re

import numpy as np
import pytest

from certified_unlearning.engine import progress
from certified_unlearning.engine.progress import Progress, duration


class Clock:
    """A clock that moves only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress.time, "monotonic", clock.monotonic)
    return clock


def seconds(line: str) -> float:
    """The time left that a line states."""
    stated = re.search(r"done, (?:(\d+) h )?(?:(\d+) min ?)?(?:(\d+) s )?left$", line)
    assert stated, line
    hours, minutes, rest = (int(part or 0) for part in stated.groups())
    return 3600 * hours + 60 * minutes + rest


def work(bar: Progress, clock: Clock, amount: int, seconds_each: float) -> None:
    for _ in range(amount):
        clock.now += seconds_each
        bar.advance(1)


def test_a_short_job_prints_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    work(Progress("short", 100), clock, 100, 0.049)
    assert capsys.readouterr().err == ""


def test_the_time_left_is_what_it_then_takes(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    work(Progress("fig3a learn", 1000), clock, 1000, 0.25)
    lines = capsys.readouterr().err.splitlines()
    printed_after = [5 + 15 * number for number in range(17)]
    assert len(lines) == len(printed_after)
    for line, passed in zip(lines, printed_after, strict=True):
        assert line.startswith(f"[fig3a learn] {100 * passed / 250:.0f} % done, ")
        assert seconds(line) == pytest.approx(250 - passed, abs=0.5)


def test_uneven_speed_moves_the_time_left_by_little(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    bar = Progress("uneven", 10_000)
    for each in np.random.default_rng(0).uniform(0.01, 0.03, 10_000):
        work(bar, clock, 1, each)
    for number, line in enumerate(capsys.readouterr().err.splitlines()):
        assert seconds(line) == pytest.approx(200 - (5 + 15 * number), rel=0.1, abs=1)


def test_work_of_an_earlier_process_counts_as_done_but_not_as_speed(clock: Clock, capsys) -> None:
    bar = Progress("resumed", 1000)
    bar.skip(500)
    work(bar, clock, 100, 0.06)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("[resumed] 58 % done")
    # 416 units are left at the first line after 5 s, at 0.06 s each.
    assert seconds(line) == pytest.approx(416 * 0.06, abs=1)


def test_skipped_work_counted_as_speed_would_be_caught(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    bar = Progress("resumed", 1000)
    clock.now += 1e-9
    bar.advance(500)
    work(bar, clock, 100, 0.06)
    (line,) = capsys.readouterr().err.splitlines()
    assert seconds(line) != pytest.approx(416 * 0.06, abs=1)


@pytest.mark.parametrize(
    ("span", "said"),
    [
        (0.2, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (754, "12 min 34 s"),
        (3599.9, "1 h 0 min"),
        (7800, "2 h 10 min"),
    ],
)
def test_durations_read_as_people_say_them(span: float, said: str) -> None:
    assert duration(span) == said
