"""A progress line that kills the run it watches, and random moments at which a process is killed."""

import random

from certified_unlearning.engine.progress import Progress


class Killed(Exception):
    """Raised by a `Killer`."""


class Killer(Progress):
    """Raises `Killed` when it is told of work for the ``after``-th time."""

    def __init__(self, after: int) -> None:
        super().__init__("test", 10**9)
        self.left = after

    def advance(self, work: int) -> None:
        """Count down."""
        self.left -= 1
        if self.left == 0:
            raise Killed


class Moments:
    """Random moments of a process whose duration the machine's load changes.

    About four of five processes are killed before they end, at any of their moments: one that ended makes the moments
    after it earlier, one that was killed makes them a little later.
    """

    def __init__(self, seed: int, seconds: float) -> None:
        """Begin with moments from 0 to so many seconds."""
        self._random = random.Random(seed)
        self.latest = seconds

    def __call__(self) -> float:
        """Return the next moment, in seconds after the start."""
        return self._random.uniform(0, self.latest)

    def note(self, *, killed: bool) -> None:
        """Say whether the process was killed then, or had ended."""
        self.latest *= 1.05 if killed else 0.8
