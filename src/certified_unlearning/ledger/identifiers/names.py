"""How a ledger writes people: under pseudonyms or, in ledgers of earlier releases, by their identifiers.

A pseudonym is a keyed hash of an identifier. Without the key nobody can compute one, nor test a guess. Ledgers of both
formats give a person the same pseudonym in proofs, so heads and receipts stay when a ledger is migrated. Free of heavy
imports.
"""

import hmac
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

from certified_unlearning.data.tables.spellings import Group, folded, likely_spellings

UNNAMED = "one that differs from it only in blanks, case, encoding, or how a number is written"
"""What messages call another spelling of an identifier, of which a ledger keeps a pseudonym only."""


def pseudonym(key: bytes, identifier: str) -> str:
    """Return the name of a person in ledgers and proofs: 32 characters that nobody without the key can guess or check.

    Args:
        key: The model directory's key of identifiers.
        identifier: The person's identifier.

    Raises:
        UnicodeEncodeError: The identifier is no UTF-8 text.
    """
    return hmac.digest(key, b"pseudonym\0" + identifier.encode(), "sha256")[:16].hex()


def key_check(key: bytes) -> str:
    """Return a check value that tells whether a key is the original one, and nothing else about it."""
    return hmac.digest(key, b"key check", "sha256").hex()


class Names(ABC):
    """How a ledger writes people.

    Args:
        key: Returns the key of identifiers. It is called only where the key is needed, which may lie elsewhere.
    """

    hides_people: ClassVar[bool]
    """Whether people stand under pseudonyms; then each event has a salt, and each person a digest of the spelling."""
    kept: ClassVar[str]
    """What is kept of a person, in words."""
    without_key: ClassVar[str]
    """What messages add if the key cannot be read."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        self._key = key

    @abstractmethod
    def stored(self, identifier: str) -> str:
        """Return under which name a person stands in the ledger."""

    @abstractmethod
    def folded(self, spelling: str) -> str:
        """Return what the ledger keeps of all spellings that a person would take for one."""

    @abstractmethod
    def pseudonym(self, stored: str) -> str:
        """Return the pseudonym of the person who stands in the ledger under a name."""

    @abstractmethod
    def tag(self, stored: str, row: int) -> bytes:
        """Return the tag of a person's row, which only the key's owner can write."""

    @abstractmethod
    def recognised(self, identifier: str, stored: str) -> str | None:
        """Return the identifier of a person whose identifier resembles a given one; None where it is not known."""

    def in_words(self, identifier: str, stored: str) -> str:
        """Return what messages call a person whose identifier resembles a given one."""
        known = self.recognised(identifier, stored)
        return UNNAMED if known is None else repr(known)

    def with_difference(self, identifier: str, stored: str) -> str:
        """Return the same, and what the two identifiers differ in."""
        known = self.recognised(identifier, stored)
        if known is None:
            return UNNAMED
        return f"{known!r}, which differs only in {Group('', (identifier, known)).difference}"

    def hidden(self, text: str, salt: str | None) -> str:
        """Return the digest of what a leaf of the log does not show.

        Args:
            text: What it does not show.
            salt: The event's, hexadecimal; None in events that were recorded without one.
        """
        if salt is not None:
            return hmac.digest(bytes.fromhex(salt), text.encode(), "sha256").hex()
        return hmac.digest(self._key(), f"hidden\0{text}".encode(), "sha256").hex()

    def sealed(self, earlier_hash: str) -> str:
        """Return a keyed digest of the hash that an event had before a migration.

        That hash is of the identifier in clear and of what the ledger shows: with it anybody could test a guess.
        """
        return hmac.digest(self._key(), f"sealed hash {earlier_hash}".encode(), "sha256").hex()

    def earlier(self, sequence: int, sealed: str, leaf: bytes) -> bytes:
        """Return the tag of an event's sealed hash from before a migration, which only the key's owner can write.

        Args:
            sequence: The event's number.
            sealed: What `sealed` made of the hash of then.
            leaf: The hash of the event's leaf.
        """
        text = f"earlier hash {sequence} {sealed} {leaf.hex()}"
        return hmac.digest(self._key(), text.encode(), "sha256")[:16]


class Identifiers(Names):
    """Names of earlier releases: people stand in the ledger under their identifiers."""

    hides_people = False
    kept = "the identifier"
    without_key = "without it the records cannot be checked"

    def stored(self, identifier: str) -> str:
        """Return the identifier."""
        return identifier

    def folded(self, spelling: str) -> str:
        """Return what all such spellings have in common, as text."""
        return folded(spelling)

    def pseudonym(self, stored: str) -> str:
        """Compute the pseudonym, for proofs."""
        return pseudonym(self._key(), stored)

    def tag(self, stored: str, row: int) -> bytes:
        """Return a digest of the identifier and the row."""
        return hmac.digest(self._key(), f"{row} {stored}".encode(), "sha256")[:16]

    def recognised(self, identifier: str, stored: str) -> str | None:
        """Return the name under which the person stands there: it is the identifier."""
        return stored


class Pseudonyms(Names):
    """Present names: people stand in the ledger under pseudonyms, groups of spellings under keyed digests."""

    hides_people = True
    kept = "a pseudonym of the identifier"
    without_key = (
        "if it lies elsewhere, say where by `unlearn migrate --key-file`; without it nobody can be looked up, so "
        "`request`, `release`, `show`, `add` and `receipt --id` do not work; "
        "`status`, `apply`, `predict`, `evaluate`, `export` and, with fewer checks, `verify` do"
    )

    def stored(self, identifier: str) -> str:
        """Return the pseudonym."""
        return pseudonym(self._key(), identifier)

    def folded(self, spelling: str) -> str:
        """Return a keyed digest of what all such spellings have in common."""
        return hmac.digest(self._key(), b"spelling\0" + folded(spelling).encode(), "sha256")[:16].hex()

    def pseudonym(self, stored: str) -> str:
        """Return the name under which the person stands there: it is the pseudonym."""
        return stored

    def tag(self, stored: str, row: int) -> bytes:
        """Return a digest of the pseudonym and the row. Digests of identifiers differ: those begin with a number."""
        return hmac.digest(self._key(), f"pseudonym {row} {stored}".encode(), "sha256")[:16]

    def recognised(self, identifier: str, stored: str) -> str | None:
        """Try likely spellings, because a pseudonym does not show its identifier."""
        return next((each for each in likely_spellings(identifier) if self.stored(each) == stored), None)


FORMATS: Mapping[int, type[Names]] = {0: Identifiers, 2: Pseudonyms}
"""How people are written, by the number of the format (SQLite's ``user_version``; earlier releases wrote none)."""
PRESENT = 2
"""The format of new ledgers."""
