"""What a learner has removed so far, and what follows from it.

Each request asks for those before it once more, so the last answer is kept, and taken where the removals are equal.
"""

from collections.abc import Sequence
from operator import index
from typing import NamedTuple

from certified_unlearning.accounting.core.curves import Places
from certified_unlearning.files import canonical
from certified_unlearning.mechanisms.run import Request


class Removal(NamedTuple):
    """One answered request: how many records it removed, by how many steps, and where in a cycle they lay."""

    records: int
    steps: int
    places: Places | None = None

    @classmethod
    def read(cls, records: int, steps: int, places: Sequence[Sequence[int]] | None = None) -> "Removal":
        """Return a removal as JSON has it, where lists stand for tuples."""
        return cls(records, steps, None if places is None else tuple((batch, count) for batch, count in places))

    def __repr__(self) -> str:
        told = "" if self.places is None else f", places={self.places!r}"
        return f"Removal(records={self.records!r}, steps={self.steps!r}{told})"


class Answered(NamedTuple):
    """What follows from removals.

    Attributes:
        removals: In order.
        requests: As a run has them.
        records: How many records each removed.
        steps: By how many steps.
        places: Where in a cycle they lay; None where that is not told of all.
        texts: Records, steps and, of those that tell them, places as canonical JSON: what names a run.
    """

    removals: tuple[Removal, ...] = ()
    requests: tuple[Request, ...] = ()
    records: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    places: tuple[Places, ...] | None = None
    texts: tuple[str, ...] = ("[]", "[]")

    def followed_by(self, removal: Removal) -> "Answered":
        """Return the same with one more removal, of Python's own whole numbers and of tuples.

        Raises:
            TypeError: Something is no whole number.
        """
        removal = _plain(removal)
        request = Request(
            records_removed=removal.records + (self.requests[-1].records_removed if self.requests else 0),
            unlearning_steps=removal.steps,
            epsilon=None,
            mu=None,
            places=removal.places,
        )
        earlier = () if not self.removals else self.places
        texts = _longer(self.texts[0], removal.records), _longer(self.texts[1], removal.steps), *self.texts[2:]
        if removal.places is not None:
            texts = *texts[:2], _longer("[]" if len(texts) == 2 else texts[2], removal.places)
        return Answered(
            (*self.removals, removal),
            (*self.requests, request),
            (*self.records, removal.records),
            (*self.steps, removal.steps),
            # Of the request, the very object: schedules that are compared with each other are compared at once.
            None if earlier is None or request.places is None else (*earlier, request.places),
            texts,
        )


_LAST = [Answered()]
"""What `answered` returned last."""


def answered(history: Sequence[Removal]) -> Answered:
    """Return what follows from all removals so far."""
    known = _LAST[0]
    number = len(known.removals)
    if tuple(history[:number]) != known.removals:
        known, number = Answered(), 0
    for removal in history[number:]:
        known = known.followed_by(removal)
    _LAST[0] = known
    return known


def _plain(removal: Removal) -> Removal:
    places = removal.places
    if places is not None:
        places = tuple((index(batch), index(count)) for batch, count in places)
    return Removal(index(removal.records), index(removal.steps), places)


def _longer(texts: str, value: object) -> str:
    """Return the canonical JSON of a list with one more value."""
    return f"{texts[:-1]}{'' if texts == '[]' else ','}{canonical(value)}]"
