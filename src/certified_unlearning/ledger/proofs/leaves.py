"""Events of the log as leaves of a Merkle tree: they hold what a receipt may show, and nothing that names a person."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from certified_unlearning.errors import DataError
from certified_unlearning.ledger.database.events import Event
from certified_unlearning.ledger.identifiers.names import Names
from certified_unlearning.ledger.proofs import merkle

_SHOWN: Mapping[str, frozenset[str]] = {
    "requested": frozenset({"records", "added_with", "received", "due", "held"}),
    "held": frozenset({"records", "added_with", "received", "due"}),
    "absent": frozenset({"received"}),
    "planned": frozenset({"version", "after", "up_to", "requests", "records", "steps"}),
    "applied": frozenset(
        {
            "version",
            "weights_sha256",
            "certificate_sha256",
            "kind",
            "epsilon",
            "delta",
            "extra_delta",
            "epsilon_all_published",
            "reading",
        }
    ),
}
"""The fields that a receipt shows, by kind of event. All other fields enter the
tree as a digest that nobody can guess."""


@dataclass(frozen=True)
class Leaf:
    """One event of the log as it enters the tree.

    Attributes:
        sequence: The event's number: 1, 2, 3, ...; its place in the tree is one less.
        time: The time when the event was recorded, in UTC.
        kind: The kind of event.
        subject: The pseudonym of the person whom the event is about; None for kinds that are about nobody.
        shown: The other fields that a receipt shows.
        hidden: A salted or keyed digest of the fields that a receipt does not show; None if there are none.
    """

    sequence: int
    time: str
    kind: str
    subject: str | None
    shown: Mapping[str, Any]
    hidden: str | None

    @classmethod
    def of(cls, event: Event, names: Names, hidden: str | None = None) -> Self:
        """Return the leaf of an event.

        Args:
            event: The event.
            names: The format in which the event's ledger names people.
            hidden: The digest of the fields that the leaf does not show, if it is known already.
        """
        allowed = _SHOWN.get(event.kind, frozenset())
        shown = {name: value for name, value in event.payload.items() if name in allowed}
        rest = {name: value for name, value in event.payload.items() if name not in allowed}
        if rest and hidden is None:
            hidden = names.hidden(_text([event.sequence, rest]), event.salt)
        subject = None if event.subject is None else names.pseudonym(event.subject)
        return cls(event.sequence, event.time, event.kind, subject, shown, hidden if rest else None)

    @classmethod
    def read(cls, fields: Any) -> Self:
        """Return the leaf that `as_json` wrote.

        Raises:
            DataError: The fields are not those of a leaf.
        """
        names = {"sequence": int, "time": str, "kind": str, "subject": str | None, "shown": dict, "hidden": str | None}
        if not isinstance(fields, dict) or fields.keys() != names.keys():
            raise DataError(f"an event of a receipt has the fields {', '.join(names)}")
        for name, kind in names.items():
            if not isinstance(fields[name], kind) or isinstance(fields[name], bool):
                raise DataError(f"{name} of an event of a receipt cannot be {fields[name]!r}")
        return cls(**fields)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as a receipt stores them."""
        return dict(vars(self))

    def hash(self) -> bytes:
        """Return the leaf's hash in the tree."""
        fields = [self.sequence, self.time, self.kind, self.subject, self.shown, self.hidden]
        return merkle.leaf_hash(_text(fields).encode())


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
