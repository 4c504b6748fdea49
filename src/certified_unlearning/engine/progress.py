"""Lines that occasionally report how much of a job is done and how long the rest will take."""

import sys
import time


class Progress:
    """Counts work, and prints lines with the remaining time.

    Lines are plain text, so they are the same on a terminal and in a log. Short jobs print nothing.

    Args:
        name: Start of every line.
        total: Total amount of work, in a unit that always takes about the same time.
        first_seconds: Seconds before the first line is printed.
        every_seconds: Least time between two lines.
    """

    def __init__(self, name: str, total: int, first_seconds: float = 5.0, every_seconds: float = 15.0) -> None:
        self._name = name
        self._total = total
        self._every_seconds = every_seconds
        self._done = 0
        self._skipped = 0
        self._start = time.monotonic()
        self._next = self._start + first_seconds

    def skip(self, work: int) -> None:
        """Count work that an earlier, interrupted job did; this job's speed is computed without that work."""
        self._done += work
        self._skipped += work

    def advance(self, work: int) -> None:
        """Count work that was just done, and print a line if the next line is due."""
        self._done += work
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._every_seconds
        left = (now - self._start) * (self._total - self._done) / (self._done - self._skipped)
        share = 100 * self._done / self._total
        print(f"[{self._name}] {share:.0f} % done, {duration(left)} left", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Return a time span in words.

    >>> duration(7.4), duration(754), duration(7800)
    ('7 s', '12 min 34 s', '2 h 10 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
