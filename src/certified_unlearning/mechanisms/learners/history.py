"""What a learner has removed so far, and what follows from it."""

from collections.abc import Sequence
from itertools import accumulate, islice
from operator import index
from typing import NamedTuple, overload

from certified_unlearning.accounting.core.curves import Places, plain_places
from certified_unlearning.accounting.streams import Stream
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

    def followed_by(self, new: Sequence[Removal]) -> "Answered":
        """Return the same with more removals, of Python's own whole numbers and of tuples.

        Raises:
            TypeError: Something is no whole number.
        """
        removals = [_plain(removal) for removal in new]
        before = self.requests[-1].records_removed if self.requests else 0
        removed = accumulate((removal.records for removal in removals), initial=before)
        requests = [
            Request(
                records_removed=so_far,
                unlearning_steps=removal.steps,
                epsilon=None,
                mu=None,
                places=removal.places,
            )
            for removal, so_far in zip(removals, islice(removed, 1, None), strict=True)
        ]
        # The very objects: schedules that are compared with each other are compared at once.
        told = [request.places for request in requests if request.places is not None]
        earlier = () if not self.removals else self.places
        records, steps = [removal.records for removal in removals], [removal.steps for removal in removals]
        texts = [*self.texts, "[]"] if told and len(self.texts) == 2 else self.texts
        values: list[Sequence[object]] = [records, steps, told]
        return Answered(
            (*self.removals, *removals),
            (*self.requests, *requests),
            (*self.records, *records),
            (*self.steps, *steps),
            None if earlier is None or len(told) < len(removals) else (*earlier, *told),
            tuple(_longer(text, more) for text, more in zip(texts, values, strict=False)),
        )


class History(Sequence[Removal]):
    """What one learner's model was asked to remove so far, in order, and what follows from it.

    A value that whoever has the model keeps: `after` returns another, to which what follows from this one goes along.

    Attributes:
        learner: Whose it is.
        answered: What follows from the removals alone.
        stream: What they came to, where it was asked for.
    """

    def __init__(self, learner: object, answered: Answered, stream: Stream | None = None) -> None:
        """Take what is known so far."""
        self.learner, self.answered, self.stream = learner, answered, stream

    @overload
    def __getitem__(self, number: int) -> Removal: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[Removal, ...]: ...

    def __getitem__(self, number: int | slice) -> Removal | tuple[Removal, ...]:
        return self.answered.removals[number]

    def __len__(self) -> int:
        return len(self.answered.removals)

    def after(self, removal: Removal) -> "History":
        """Return the history with one more removal."""
        answered = self.answered.followed_by([removal])
        return History(self.learner, answered, self.stream and self.stream.after(**answered.removals[-1]._asdict()))


def _plain(removal: Removal) -> Removal:
    places = None if removal.places is None else plain_places(removal.places)
    return Removal(index(removal.records), index(removal.steps), places)


def _longer(text: str, values: Sequence[object]) -> str:
    """Return the canonical JSON of a list with more values."""
    more = canonical(values)
    return text if more == "[]" else more if text == "[]" else f"{text[:-1]},{more[1:]}"
