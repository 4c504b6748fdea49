"""What streams of requests came to, kept from one request of each to the next.

A request changes nothing before it, so whoever knows what the earlier ones of its stream came to adds to that.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """The values that were kept last, the latest first.

    Threads may use it at once: each sees the values of one moment, and at worst a value is found anew.
    """

    def __init__(self, most: int) -> None:
        """Keep so many at most."""
        self._most = most
        self._values: tuple[Value, ...] = ()

    def __iter__(self) -> Iterator[Value]:
        """Return the values of this moment."""
        return iter(self._values)

    def longest(self, fits: Callable[[Value], bool], length: Callable[[Value], int]) -> Value | None:
        """Return the longest value that fits, the latest of equally long ones; None where none does."""
        found, most = None, -1
        for value in self._values:
            # The latest is mostly the longest: of the others it is then enough to see how long they are.
            size = length(value)
            if size > most and fits(value):
                found, most = value, size
        return found

    def keep(self, value: Value, *, instead_of: Value | None = None) -> None:
        """Keep a value, and no longer the one, the very object, that it goes on from."""
        self._values = (value, *(each for each in self if each is not instead_of))[: self._most]

    def clear(self) -> None:
        """Keep nothing."""
        self._values = ()
