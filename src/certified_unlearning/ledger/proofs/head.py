"""The head of a log: the number of its events, and the root of the Merkle tree of these events."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from certified_unlearning.errors import LedgerError, ParameterError
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.identifiers.names import key_check
from certified_unlearning.ledger.proofs import merkle
from certified_unlearning.ledger.proofs.leaves import Leaf
from certified_unlearning.ledger.store import Ledger

_HEAD = re.compile(r"([1-9]\d{0,14}):([0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True)
class Head:
    """A number and a hash that determine all events of a log and their order.

    Attributes:
        size: The number of events.
        root: The root of the Merkle tree of these events.
    """

    size: int
    root: bytes

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the head that a command printed as this text.

        Raises:
            ParameterError: The text is not a head.
        """
        match = _HEAD.fullmatch(text.strip())
        if match is None:
            raise ParameterError(
                f"{text!r} is not a head of a log: a head is a number, a colon and 64 characters from 0 to 9 and a to f"
            )
        return cls(int(match[1]), bytes.fromhex(match[2]))

    @classmethod
    def over(cls, hashes: Sequence[bytes]) -> Self:
        """Return the head of the log whose leaves have these hashes."""
        return cls(len(hashes), merkle.root(hashes))

    def __str__(self) -> str:
        return f"{self.size}:{self.root.hex()}"


def require_prefix(earlier: Head, hashes: Sequence[bytes], where: Path) -> None:
    """Raise `LedgerError` unless a log begins with the events of an earlier head.

    Args:
        earlier: The earlier head.
        hashes: The hashes of the log's leaves.
        where: Path of the log's file, for the message.
    """
    if earlier.size > len(hashes):
        raise LedgerError(
            f"{where} is behind: the head {earlier} covers {earlier.size:,} events, but the log has {len(hashes):,}. "
            "Either events were dropped from the end of the log, or the directory was restored from a backup. In the "
            "latter case, `unlearn replay` brings it up to date, from the log in a second place or from the "
            "ledger.sqlite of the lost directory"
        )
    if merkle.root(hashes[: earlier.size]) != earlier.root:
        raise LedgerError(
            f"{where} was tampered with: its first {earlier.size:,} events are not those of the head {earlier} (or the "
            "head is another ledger's)"
        )


def head_of(directory: ModelDirectory, ledger: Ledger) -> str:
    """Return the head of a model directory's log as commands print it. Raises the same errors as `leaves_of`."""
    return str(Head.over(hashes_of(directory, ledger)))


def hashes_of(directory: ModelDirectory, ledger: Ledger) -> list[bytes]:
    """Return the hashes of all leaves of a model directory's log. Raises the same errors as `leaves_of`."""
    return [leaf.hash() for leaf in leaves_of(directory, ledger)]


def leaves_of(directory: ModelDirectory, ledger: Ledger) -> list[Leaf]:
    """Return all leaves of a model directory's log, after a check of its chain.

    If the ledger names people by pseudonyms, the key of identifiers is not needed. Such a ledger stores the hidden
    parts of the events that were recorded before a migration.

    Raises:
        MissingKeyError: The key of identifiers is needed, and cannot be read.
        LedgerError: The log was tampered with, or the key differs from the one that `init` made.
    """
    events, names = ledger.verify_chain(), ledger.names
    stored: dict[int, str | None] = {}
    missing = ledger.missing_key()
    if missing is not None:
        if not names.hides_people:
            raise missing
        stored = {each.sequence: each.hidden for each in ledger.earlier()}
        lost = next((event.sequence for event in events if event.salt is None and event.sequence not in stored), None)
        if lost is not None:
            raise LedgerError(f"{ledger.path} was tampered with: it lacks the hidden part of event {lost}")
    elif events[0].payload.get("key_check", key_check(ledger.key())) != key_check(ledger.key()):
        raise LedgerError(f"{directory.ledger} was tampered with: its first event records another key of identifiers")
    return [Leaf.of(event, names, stored.get(event.sequence)) for event in events]
