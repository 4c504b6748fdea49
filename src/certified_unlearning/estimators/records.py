"""The records that a model was fitted to: rows and labels, which of them are left, and how requests name them."""

import copy
import secrets
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.errors import DataError
from certified_unlearning.estimators.requests import FrameIndex, distinct, positions_named, require_removable

Positions = NDArray[np.int64]


class RemovedRecords(NamedTuple):
    """Copies of what a store knows of some records: where they lie, their rows and labels, and the frame's labels."""

    places: Positions
    rows: NDArray[Any]
    labels: NDArray[Any]
    names: NDArray[Any] | None


@dataclass(eq=False)
class RecordStore:
    """The records that a model was fitted to, as far as it keeps them.

    An estimator owns one. Most methods return another store, so that an estimator puts it in the place of this one when
    all of a removal is done; `put`, `put_back` and `make_writeable` change arrays in place.

    Attributes:
        index: The index of the data frame that was fitted; None if it was none.
        places: Where the row of each fitted record lies, in order of the records; below 0 for a record that was
            removed. None where the model was saved without its training data.
        left: How many records are left.
        rows: Rows, an array or a tensor; None where the model keeps none.
        labels: Their labels or targets.
        known_digest: The `digest`, once it was asked for.
    """

    index: FrameIndex | None
    places: Positions | None = None
    left: int = 0
    rows: Any = None
    labels: Any = None
    known_digest: str | None = None

    def keep(self, places: Positions, rows: Any = None, labels: Any = None) -> None:
        """Keep records, of which those with places below 0 were removed before."""
        self.places, self.left = places, int((places >= 0).sum())
        self.rows, self.labels = rows, labels

    def keep_left(self, remaining: Positions, n: int, rows: Any, labels: Any) -> None:
        """Keep those of ``n`` fitted records that remain; rows of the others are left out, or others stand there."""
        places = np.full(n, -1)
        places[remaining] = remaining if len(rows) == n else np.arange(len(remaining))
        self.keep(places, rows, labels)

    @property
    def known_places(self) -> Positions:
        """`places`.

        Raises:
            DataError: They are not known.
        """
        if self.places is None:
            raise DataError("this estimator was saved without its training data, which say which records are left")
        return self.places

    @property
    def remaining(self) -> Positions:
        """Positions in the fitted ``X`` of the records that are left, in order; made anew every time."""
        return np.flatnonzero(self.known_places >= 0)

    @property
    def removed(self) -> NDArray[np.bool_]:
        """Whether each fitted record was removed."""
        return self.known_places < 0

    @property
    def digest(self) -> str:
        """A name of the records that are left, drawn at random.

        A digest would let anyone who has the other records guess a removed one and check the guess; a digest by a key
        that nobody has tells as little as this, and reads every record.
        """
        if self.known_digest is None:
            self.known_digest = secrets.token_hex(32)
        return self.known_digest

    def named(self, indices: Any, index: Any) -> NDArray[Any]:
        """Return the positions that a request names, in its order; none for an empty request."""
        return positions_named(indices, index, n=len(self.known_places), frame_index=self.index)

    def removable(self, named: Any) -> Positions:
        """Return positions in rising order.

        Raises:
            ParameterError: One is named twice, or was removed before, or no record would be left.
        """
        places = self.known_places
        wanted = distinct(named, len(places))
        require_removable(wanted, places[wanted] < 0, left=self.left)
        return wanted

    def without(self, gone: Positions) -> "RecordStore":
        """Return the store in which records have no place and no label of the frame any more, with the same rows."""
        places = self.known_places.copy()
        places[gone] = -1
        index = None if self.index is None else self.index.without(gone)
        return replace(self, places=places, index=index, left=self.left - len(gone), known_digest=None)

    def compacted(self, gone: Positions) -> "RecordStore":
        """Return the store without some records, whose rows new arrays leave out; rows are in the order of records."""
        at, after = self.known_places[gone], self.without(gone)
        places = after.known_places
        places[places >= 0] = np.arange(after.left)
        return replace(after, rows=np.delete(self.rows, at, axis=0), labels=np.delete(self.labels, at), places=places)

    def with_others(self, gone: Positions, rows: Any, labels: Any) -> "RecordStore":
        """Return the store without some records, in whose places others stand in new arrays."""
        at = self.known_places[gone]
        after = replace(self.without(gone), rows=copy.deepcopy(self.rows), labels=copy.deepcopy(self.labels))
        after.rows[at], after.labels[at] = rows, labels
        return after

    def extended(self, more: FrameIndex | None, records: int) -> "RecordStore":
        """Return the store with the places of so many more records, whose frame may have had an index."""
        index = None if self.index is None else self.index.extended(more, records)
        first = len(self.known_places)
        places = np.concatenate([self.known_places, np.arange(first, first + records)])
        return replace(self, index=index, places=places, left=self.left + records, known_digest=None)

    def take(self, gone: Positions) -> RemovedRecords:
        """Return copies of what is known of some records."""
        at = self.known_places[gone]
        names = None if self.index is None or self.index.labels is None else self.index.labels[gone]
        return RemovedRecords(at, self.rows[at], self.labels[at], names)

    def put(self, gone: Positions, rows: Any, labels: Any) -> None:
        """Put others, or zeros, in the places of records, which have no place and no name any more."""
        at = self.known_places[gone]
        self.rows[at], self.labels[at] = rows, labels
        self._call(gone, -1, None)

    def put_back(self, gone: Positions, taken: RemovedRecords) -> None:
        """Put records back where they were taken from."""
        self.rows[taken.places], self.labels[taken.places] = taken.rows, taken.labels
        self._call(gone, taken.places, taken.names)

    def _call(self, records: Positions, places: Any, names: Any) -> None:
        """Say where records lie and what they are called."""
        self.known_places[records] = places
        if self.index is not None and self.index.labels is not None:
            self.index.labels[records] = names

    def shrunk(self, records: int) -> "RecordStore":
        """Return the store with the same arrays, from which so many records were taken in place."""
        # Not by `replace`, which takes longer than the rest of a small request's bookkeeping.
        return RecordStore(self.index, self.places, self.left - records, self.rows, self.labels)

    def make_writeable(self) -> None:
        """Take private copies of those arrays that must not be written to: maps of a file, shared by processes."""
        self.places = writeable(self.known_places)
        self.rows, self.labels = writeable(self.rows), writeable(self.labels)

    def described(self) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
        """Return what a file says of the fitted frame's index: in its header, and as an array."""
        packed = None if self.index is None else self.index.packed()
        known = self.index is not None and (packed is not None or self.index.labels is None)
        return {"has_index": known}, {"frame_index": packed}


def writeable(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, or a private copy where it must not be written to: a map of a file, shared by processes."""
    return array if array.flags.writeable else np.array(array)
