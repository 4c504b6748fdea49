"""The tables of a ledger that store who owns each row, and which identifiers look alike."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from certified_unlearning.data.tables.spellings import Group
from certified_unlearning.ledger.identifiers.names import Names

_PEOPLE_REQUESTED = "SELECT subject FROM events WHERE kind = 'requested' AND subject IS NOT NULL"
_REQUESTED = "identifier IN (SELECT subject FROM events WHERE kind = 'requested' AND sequence > ? AND sequence <= ?)"


class Record(NamedTuple):
    """The owner of a row.

    Attributes:
        identifier: The person's name in the ledger.
        row: The row's number in the training copy.
        tag: Proof that `init` wrote this pair of person and row.
    """

    identifier: str
    row: int
    tag: bytes


class Owners:
    """The owners of the rows of the training copy. A row that was removed has no owner any more.

    Args:
        connection: The ledger's file, opened.
        names: A function that returns the format in which the ledger names people.
    """

    def __init__(self, connection: sqlite3.Connection, names: Callable[[], Names]) -> None:
        self._connection = connection
        self._names = names

    def add_records(self, owners: Iterable[tuple[str, int]]) -> None:
        """Add rows.

        Args:
            owners: The person's identifier and the row's number in the training copy, for each row.
        """
        names, people = self._names(), dict[str, str]()
        records = []
        for identifier, row in owners:
            if identifier not in people:
                people[identifier] = names.stored(identifier)
            records.append((people[identifier], row, names.tag(people[identifier], row)))
        # The order is that of the names, because SQLite appends rows fast and inserts them slowly.
        records.sort()
        self._connection.executemany("INSERT INTO records (identifier, row, tag) VALUES (?, ?, ?)", records)
        if names.hides_people:
            self.insert_spellings(sorted((names.folded(identifier), name) for identifier, name in people.items()))

    def add_spellings(self, groups: Iterable[Group]) -> None:
        """Add groups of identifiers that look like spellings of one identifier, but belong to different people.

        If people have pseudonyms, this does nothing, because `add_records` has added the spelling of each person.
        """
        if self._names().hides_people or not self._has_spellings():
            return
        self.insert_spellings(
            (group.folded, identifier) for group in groups for identifier in group.people if len(group.people) > 1
        )

    def insert_spellings(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add pairs of a spelling, as `Names.folded` returns it, and the name of a person in the ledger."""
        self._connection.executemany("INSERT OR IGNORE INTO spellings (folded, identifier) VALUES (?, ?)", pairs)

    def other_spellings(self, identifier: str) -> list[str]:
        """Return the names of other people who still have rows and whose identifier looks like this one."""
        if not self._has_spellings():
            return []
        names = self._names()
        query = (
            "SELECT identifier FROM spellings WHERE folded = ? AND identifier != ? "
            "AND EXISTS (SELECT 1 FROM records WHERE records.identifier = spellings.identifier) ORDER BY identifier"
        )
        found = self._connection.execute(query, (names.folded(identifier), names.stored(identifier)))
        return [str(other) for (other,) in found]

    def like(self, identifier: str) -> str | None:
        """Return the name of a person who has rows, and whose identifier looks like this one; None if there is none."""
        return self._like(identifier, "SELECT identifier FROM records")

    def requested_like(self, identifier: str) -> str | None:
        """Return the name of a person whose removal was requested and whose identifier looks like this one, if any."""
        return self._like(identifier, _PEOPLE_REQUESTED)

    def _like(self, identifier: str, people: str) -> str | None:
        names = self._names()
        wanted = names.folded(identifier)
        if names.hides_people:
            query = f"SELECT identifier FROM spellings WHERE folded = ? AND identifier IN ({people}) LIMIT 1"
            row = self._connection.execute(query, (wanted,)).fetchone()
            return None if row is None else str(row[0])
        everybody = self._connection.execute(f"SELECT DISTINCT * FROM ({people})")
        return next((str(each) for (each,) in everybody if names.folded(each) == wanted), None)

    def alike(self, identifiers: Iterable[str]) -> dict[str, list[str]]:
        """Return people whose identifiers look like given ones, and who have rows or whose removal was requested.

        Args:
            identifiers: The given identifiers, in clear text.

        Returns:
            For each given identifier that has look-alikes: the look-alikes' names in the ledger.
        """
        names = self._names()
        if names.hides_people:
            spellings: Iterable[tuple[str, str]] = self._connection.execute("SELECT identifier, folded FROM spellings")
        else:
            spellings = ((each, names.folded(each)) for each in self.people() | self.people_requested())
        by_spelling: dict[str, list[str]] = {}
        for name, spelling in spellings:
            by_spelling.setdefault(spelling, []).append(name)
        found = {}
        for identifier in identifiers:
            name = names.stored(identifier)
            others = [each for each in by_spelling.get(names.folded(identifier), []) if each != name]
            if others:
                found[identifier] = others
        return found

    def _has_spellings(self) -> bool:
        """Return whether there is a table of spellings; older ledgers have none."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'spellings'"
        return self._connection.execute(query).fetchone() is not None

    def count_records_of(self, identifier: str) -> int:
        """Return the number of a person's rows."""
        return self.count_records_named(self._names().stored(identifier))

    def count_records_named(self, name: str) -> int:
        """Return the number of rows of the person with this name in the ledger."""
        query = "SELECT count(*) FROM records WHERE identifier = ?"
        return int(self._connection.execute(query, (name,)).fetchone()[0])

    def row_of(self, identifier: str) -> int | None:
        """Return the number of a person's first row; None if the person has no rows."""
        query = "SELECT min(row) FROM records WHERE identifier = ?"
        row = self._connection.execute(query, (self._names().stored(identifier),)).fetchone()[0]
        return None if row is None else int(row)

    def people(self) -> set[str]:
        """Return the names of all people who have rows."""
        return {str(each) for (each,) in self._connection.execute("SELECT DISTINCT identifier FROM records")}

    def people_requested(self) -> set[str]:
        """Return the names of all people whose removal was requested."""
        return {str(each) for (each,) in self._connection.execute(_PEOPLE_REQUESTED)}

    def count_records(self) -> int:
        """Return the number of rows with an owner."""
        return int(self._connection.execute("SELECT count(*) FROM records").fetchone()[0])

    def count_rows(self) -> int:
        """Return the number of different rows with an owner."""
        return int(self._connection.execute("SELECT count(DISTINCT row) FROM records").fetchone()[0])

    def count_people(self) -> int:
        """Return the number of people who have rows."""
        return int(self._connection.execute("SELECT count(DISTINCT identifier) FROM records").fetchone()[0])

    def rows(self) -> Iterator[int]:
        """Yield the numbers of all rows with an owner."""
        return (row for (row,) in self._connection.execute("SELECT row FROM records"))

    def records(self) -> Iterator[Record]:
        """Yield all rows with their owners."""
        return map(Record._make, self._connection.execute("SELECT identifier, row, tag FROM records"))

    def records_requested(self, after: int, up_to: int) -> list[Record]:
        """Return the rows of the people in all requests with numbers in ``(after, up_to]``, sorted by row."""
        query = f"SELECT identifier, row, tag FROM records WHERE {_REQUESTED} ORDER BY row"
        return [Record._make(record) for record in self._connection.execute(query, (after, up_to))]

    def forget_records(self, after: int, up_to: int) -> None:
        """Delete the rows of the people in all requests with numbers in ``(after, up_to]``.

        If people have pseudonyms, the pseudonyms are kept, and also the keyed digests of the spellings of identifiers.
        With these digests, `add` can refuse people who come back.
        """
        clear = self._has_spellings() and not self._names().hides_people
        tables = ["records", "spellings"] if clear else ["records"]
        for table in tables:
            self._connection.execute(f"DELETE FROM {table} WHERE {_REQUESTED}", (after, up_to))
