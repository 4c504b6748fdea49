"""A progress line that kills the run it watches."""

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
