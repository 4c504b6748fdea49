"""The names of people in a ledger: pseudonyms or, in ledgers of earlier releases, their identifiers.

A pseudonym is a keyed hash of an identifier. Without the key, nobody can compute a pseudonym or test a guess. In
proofs, a person has the same pseudonym in both formats, so heads and receipts stay valid when a ledger is migrated. The
module has no heavy imports.
"""

import hmac
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

from certified_unlearning.data.tables.spellings import Group, folded, likely_spellings

UNNAMED = "an identifier that differs from it only in blanks, case, encoding, or how a number is written"
"""The text that messages show in place of a similar identifier if the ledger has only its pseudonym."""


def pseudonym(key: bytes, identifier: str) -> str:
    """Return the name of a person in ledgers and proofs: 32 characters that nobody without the key can guess or check.

    Args:
        key: The model directory's key of identifiers.
        identifier: The person's identifier.

    Raises:
        UnicodeEncodeError: The identifier is not UTF-8 text.
    """
    return hmac.digest(key, b"pseudonym\0" + identifier.encode(), "sha256")[:16].hex()


def key_check(key: bytes) -> str:
    """Return a check value that tells whether a key is the original one, and nothing else about the key."""
    return hmac.digest(key, b"key check", "sha256").hex()


class Names(ABC):
    """The format in which a ledger names people.

    Args:
        key: A function that returns the key of identifiers. It is called only when needed: the key may be elsewhere.
    """

    hides_people: ClassVar[bool]
    """Whether people have pseudonyms. Each event then has a salt, and each person a digest of the spelling."""
    kept: ClassVar[str]
    """The words for what the ledger keeps of a person's identifier."""
    without_key: ClassVar[str]
    """The part of an error message that says what cannot be done if the key cannot be read."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        self._key = key

    @abstractmethod
    def stored(self, identifier: str) -> str:
        """Return the name that the ledger stores for a person."""

    @abstractmethod
    def folded(self, spelling: str) -> str:
        """Return the value that the ledger keeps for all spellings that a reader would take for the same identifier."""

    @abstractmethod
    def pseudonym(self, stored: str) -> str:
        """Return the pseudonym of the person with a stored name."""

    @abstractmethod
    def tag(self, stored: str, row: int) -> bytes:
        """Return the tag of a person's row, which nobody can compute without the key."""

    @abstractmethod
    def recognised(self, identifier: str, stored: str) -> str | None:
        """Return the identifier of a stored person, given a similar identifier; None if it cannot be determined."""

    def in_words(self, identifier: str, stored: str) -> str:
        """Return the text that messages show for a stored person whose identifier is similar to ``identifier``."""
        known = self.recognised(identifier, stored)
        return UNNAMED if known is None else repr(known)

    def with_difference(self, identifier: str, stored: str) -> str:
        """Return the text of `in_words`, followed by the difference between the two identifiers."""
        known = self.recognised(identifier, stored)
        if known is None:
            return UNNAMED
        return f"{known!r}, which differs only in {Group('', (identifier, known)).difference}"

    def hidden(self, text: str, salt: str | None) -> str:
        """Return the digest of a text that a leaf of the log hides.

        Args:
            text: The hidden text.
            salt: The event's salt, hexadecimal; None for events that were recorded without a salt.
        """
        if salt is not None:
            return hmac.digest(bytes.fromhex(salt), text.encode(), "sha256").hex()
        return hmac.digest(self._key(), f"hidden\0{text}".encode(), "sha256").hex()

    def sealed(self, earlier_hash: str) -> str:
        """Return a keyed digest of the hash that an event had before a migration.

        The old hash depends on the identifier, and otherwise only on what the ledger shows, so it would let anybody
        test a guess of the identifier.
        """
        return hmac.digest(self._key(), f"sealed hash {earlier_hash}".encode(), "sha256").hex()

    def earlier(self, sequence: int, sealed: str, leaf: bytes) -> bytes:
        """Return the tag of a sealed hash, which stands for the hash that an event had before a migration.

        Nobody can compute the tag without the key.

        Args:
            sequence: The event's number.
            sealed: The result of `sealed` for the old hash.
            leaf: The hash of the event's leaf.
        """
        text = f"earlier hash {sequence} {sealed} {leaf.hex()}"
        return hmac.digest(self._key(), text.encode(), "sha256")[:16]


class Identifiers(Names):
    """The format of earlier releases: the ledger stores people's identifiers."""

    hides_people = False
    kept = "the identifier"
    without_key = "without it the records cannot be checked"

    def stored(self, identifier: str) -> str:
        """Return the identifier itself."""
        return identifier

    def folded(self, spelling: str) -> str:
        """Return the common form of similar spellings, as text."""
        return folded(spelling)

    def pseudonym(self, stored: str) -> str:
        """Compute the pseudonym, which only proofs use."""
        return pseudonym(self._key(), stored)

    def tag(self, stored: str, row: int) -> bytes:
        """Return a digest of the identifier and the row."""
        return hmac.digest(self._key(), f"{row} {stored}".encode(), "sha256")[:16]

    def recognised(self, identifier: str, stored: str) -> str | None:
        """Return the stored name, which is the identifier."""
        return stored


class Pseudonyms(Names):
    """The present format: the ledger stores pseudonyms of people, and keyed digests of the spellings of identifiers."""

    hides_people = True
    kept = "a pseudonym of the identifier"
    without_key = (
        "if the key is elsewhere, name its file with `unlearn migrate --key-file`; without the key nobody can be "
        "looked up, so `request`, `release`, `show`, `add` and `receipt --id` do not work; "
        "`status`, `apply`, `predict`, `evaluate`, `export` and, with fewer checks, `verify` still work"
    )

    def stored(self, identifier: str) -> str:
        """Return the pseudonym of the identifier."""
        return pseudonym(self._key(), identifier)

    def folded(self, spelling: str) -> str:
        """Return a keyed digest of the common form of similar spellings."""
        return hmac.digest(self._key(), b"spelling\0" + folded(spelling).encode(), "sha256")[:16].hex()

    def pseudonym(self, stored: str) -> str:
        """Return the stored name, which is the pseudonym."""
        return stored

    def tag(self, stored: str, row: int) -> bytes:
        """Return a keyed digest of the pseudonym and the row. It differs from all tags of `Identifiers`."""
        return hmac.digest(self._key(), f"pseudonym {row} {stored}".encode(), "sha256")[:16]

    def recognised(self, identifier: str, stored: str) -> str | None:
        """Try likely spellings, because a pseudonym does not reveal its identifier."""
        return next((each for each in likely_spellings(identifier) if self.stored(each) == stored), None)


FORMATS: Mapping[int, type[Names]] = {0: Identifiers, 2: Pseudonyms}
"""The formats of names by number (SQLite's ``user_version``; earlier releases did not set it, so it is 0)."""
PRESENT = 2
"""The format of names in new ledgers: a key of `FORMATS`."""
