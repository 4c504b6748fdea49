"""The removals of a learner so far, with values that follow from them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import index
from typing import NamedTuple, overload

from certified_unlearning.accounting.core.curves import Places, plain_places
from certified_unlearning.accounting.streams import Stream
from certified_unlearning.files import canonical
from certified_unlearning.mechanisms.run import Request


class Removal(NamedTuple):
    """One answered request: its numbers of records and steps, and the records' places in a cycle."""

    records: int
    steps: int
    places: Places | None = None

    @classmethod
    def read(cls, records: int, steps: int, places: Sequence[Sequence[int]] | None = None) -> "Removal":
        """Return a removal from JSON, in which tuples are lists."""
        return cls(records, steps, None if places is None else tuple((batch, count) for batch, count in places))

    def __repr__(self) -> str:
        told = "" if self.places is None else f", places={self.places!r}"
        return f"Removal(records={self.records!r}, steps={self.steps!r}{told})"


@dataclass
class History(Sequence[Removal]):
    """The removals from one learner's model so far, in order, with values that follow from them.

    A history is kept with the model. `after` does not change it, but returns a new history that reuses its values.

    Attributes:
        learner: The learner.
        removals: The removals, in order.
        requests: The requests, in the form in which a `Run` stores them.
        records: Number of records that each request removed.
        steps: Number of steps of each request.
        places: Places of the removed records in a cycle, for each request; None unless all are known.
        texts: Canonical JSON of the records, of the steps, and of any known places. Together, these texts identify a
            run.
        stream: The effect of the requests; None until it is first needed.
    """

    learner: object
    removals: tuple[Removal, ...] = ()
    requests: tuple[Request, ...] = ()
    records: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    places: tuple[Places, ...] | None = None
    texts: tuple[str, ...] = ("[]", "[]")
    stream: Stream | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, learner: object, removals: Sequence[Removal]) -> "History":
        """Return removals as a history.

        A history of the same learner is returned unchanged.
        """
        if isinstance(removals, History) and removals.learner is learner:
            return removals
        return cls(learner).after(*removals)

    @overload
    def __getitem__(self, number: int) -> Removal: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[Removal, ...]: ...

    def __getitem__(self, number: int | slice) -> Removal | tuple[Removal, ...]:
        return self.removals[number]

    def __len__(self) -> int:
        return len(self.removals)

    def after(self, *new: Removal) -> "History":
        """Return the history with further removals at its end.

        Raises:
            TypeError: A value is not a whole number.
        """
        removals = [_plain(removal) for removal in new]
        removed, stream = self.requests[-1].records_removed if self.requests else 0, self.stream
        requests = []
        for removal in removals:
            removed += removal.records
            request = Request(
                records_removed=removed, unlearning_steps=removal.steps, epsilon=None, mu=None, places=removal.places
            )
            requests.append(request)
            stream = stream and stream.after(**removal._asdict())
        # These are the same objects as before, so that comparing schedules needs no time.
        told = [request.places for request in requests if request.places is not None]
        earlier = self.places if self.removals else ()
        all_places = None if earlier is None or len(told) < len(removals) else (*earlier, *told)
        records, steps = [removal.records for removal in removals], [removal.steps for removal in removals]
        texts = [*self.texts, "[]"] if told and len(self.texts) == 2 else self.texts
        values: list[Sequence[object]] = [records, steps, told]
        return History(
            self.learner,
            (*self.removals, *removals),
            (*self.requests, *requests),
            (*self.records, *records),
            (*self.steps, *steps),
            all_places or None,
            tuple(_longer(text, more) for text, more in zip(texts, values, strict=False)),
            stream,
        )


def _plain(removal: Removal) -> Removal:
    places = None if removal.places is None else plain_places(removal.places)
    return Removal(index(removal.records), index(removal.steps), places)


def _longer(text: str, values: Sequence[object]) -> str:
    """Return the canonical JSON of a list with more values at its end."""
    more = canonical(values)
    return text if more == "[]" else more if text == "[]" else f"{text[:-1]},{more[1:]}"
