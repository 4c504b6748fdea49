"""The records to which a model was fitted: rows, labels, the names that requests use, and which records remain."""

import copy
import secrets
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from certified_unlearning.engine.objectives import sparse
from certified_unlearning.errors import DataError
from certified_unlearning.estimators.requests import FrameIndex, distinct, positions_named, require_removable

Positions = NDArray[np.int64]


class RemovedRecords(NamedTuple):
    """Copies of a store's information on some records: places, rows, labels, and labels in the data frame's index.

    Attributes:
        whole: All rows before the change, if they are sparse; sparse rows are changed by creating new ones.
    """

    places: Positions
    rows: Any
    labels: NDArray[Any]
    names: NDArray[Any] | None
    whole: Any


@dataclass(eq=False)
class RecordStore:
    """The records to which a model was fitted, or the information about them that the model keeps.

    Each estimator has one store. Most methods return a new store, which replaces the estimator's store when a removal
    is complete. `put`, `put_back` and `make_writeable` change arrays in place.

    Attributes:
        index: Index of the fitted data frame; None if it was not a data frame.
        places: Position of each fitted record's row, in the order of the records; below 0 for a removed record. None if
            the model was saved without its training data.
        left: Number of remaining records.
        rows: Rows as an array, a tensor or a sparse matrix; None if the model keeps no rows.
        labels: Labels or targets of the rows.
        known_digest: The `digest`, after its first use.
    """

    index: FrameIndex | None
    places: Positions | None = None
    left: int = 0
    rows: Any = None
    labels: Any = None
    known_digest: str | None = None

    def keep(self, places: Positions, rows: Any = None, labels: Any = None) -> None:
        """Store records; places below 0 mark records that were removed before."""
        self.places, self.left = places, int((places >= 0).sum())
        self.rows, self.labels = rows, labels

    def keep_left(self, remaining: Positions, n: int, rows: Any, labels: Any) -> None:
        """Store the remaining records of ``n`` fitted records; rows of removed records were left out or replaced."""
        places = np.full(n, -1)
        places[remaining] = remaining if len(rows) == n else np.arange(len(remaining))
        self.keep(places, rows, labels)

    @property
    def known_places(self) -> Positions:
        """Places, if they are known.

        Raises:
            DataError: The places are not known.
        """
        if self.places is None:
            raise DataError(
                "this estimator was saved without its training data, so it is unknown which records are left"
            )
        return self.places

    @property
    def remaining(self) -> Positions:
        """Positions of the remaining records in the fitted ``X``, in order; a new array each time."""
        return np.flatnonzero(self.known_places >= 0)

    @property
    def removed(self) -> NDArray[np.bool_]:
        """Whether each fitted record was removed."""
        return self.known_places < 0

    @property
    def digest(self) -> str:
        """Random name of the set of remaining records.

        With a real digest, anybody who has the other records could check a guess about a removed record. A digest with
        a discarded key reveals as little as a random name, but its computation would read every record.
        """
        if self.known_digest is None:
            self.known_digest = secrets.token_hex(32)
        return self.known_digest

    def named(self, indices: Any, index: Any) -> NDArray[Any]:
        """Return the positions of the records that a request names, in the request's order; empty if it names none."""
        return positions_named(indices, index, n=len(self.known_places), frame_index=self.index)

    def removable(self, named: Any) -> Positions:
        """Return positions in ascending order.

        Raises:
            ParameterError: A position is named twice or was removed before, or no record would remain.
        """
        places = self.known_places
        wanted = distinct(named, len(places))
        require_removable(wanted, places[wanted] < 0, left=self.left)
        return wanted

    def without(self, gone: Positions) -> "RecordStore":
        """Return a store with the same rows, in which the removed records have no place and no label in the index."""
        places = self.known_places.copy()
        places[gone] = -1
        index = None if self.index is None else self.index.without(gone)
        return replace(self, places=places, index=index, left=self.left - len(gone), known_digest=None)

    def compacted(self, gone: Positions) -> "RecordStore":
        """Return a store with new arrays that lack some records; rows are in the order of the records."""
        at, after = self.known_places[gone], self.without(gone)
        places = after.known_places
        places[places >= 0] = np.arange(after.left)
        return replace(after, rows=np.delete(self.rows, at, axis=0), labels=np.delete(self.labels, at), places=places)

    def with_others(self, gone: Positions, rows: Any, labels: Any) -> "RecordStore":
        """Return a store with new arrays, in which some records are replaced with others."""
        at = self.known_places[gone]
        after = replace(self.without(gone), rows=copy.deepcopy(self.rows), labels=copy.deepcopy(self.labels))
        after.rows[at], after.labels[at] = rows, labels
        return after

    def extended(self, more: FrameIndex | None, records: int) -> "RecordStore":
        """Return a store with places for more records; ``more`` is the index of these records, if they have one."""
        index = None if self.index is None else self.index.extended(more, records)
        first = len(self.known_places)
        places = np.concatenate([self.known_places, np.arange(first, first + records)])
        return replace(self, index=index, places=places, left=self.left + records, known_digest=None)

    def take(self, gone: Positions) -> RemovedRecords:
        """Return copies of all information on some records."""
        at = self.known_places[gone]
        names = None if self.index is None or self.index.labels is None else self.index.labels[gone]
        whole = self.rows if issparse(self.rows) else None
        return RemovedRecords(at, self.rows[at], self.labels[at], names, whole)

    def put(self, gone: Positions, rows: Any, labels: Any) -> None:
        """Replace records with others or with zeros; the replaced records lose their places and names.

        If rows are sparse, new arrays are created, in which the rows of replaced records are empty. In the old arrays,
        a row of zeros would reveal its number of entries.
        """
        at = self.known_places[gone]
        if issparse(self.rows):
            self.rows = sparse.wiped(self.rows, at)
        else:
            self.rows[at] = rows
        self.labels[at] = labels
        self._call(gone, -1, None)

    def put_back(self, gone: Positions, taken: RemovedRecords) -> None:
        """Put records back in their places."""
        if taken.whole is None:
            self.rows[taken.places] = taken.rows
        else:
            self.rows = taken.whole
        self.labels[taken.places] = taken.labels
        self._call(gone, taken.places, taken.names)

    def _call(self, records: Positions, places: Any, names: Any) -> None:
        """Set the places and names of records."""
        self.known_places[records] = places
        if self.index is not None and self.index.labels is not None:
            self.index.labels[records] = names

    def shrunk(self, records: int) -> "RecordStore":
        """Return a store with the same arrays, after ``records`` records were removed in place."""
        # `dataclasses.replace` would take longer than all other bookkeeping of a small request.
        return RecordStore(self.index, self.places, self.left - records, self.rows, self.labels)

    def make_writeable(self) -> None:
        """Copy arrays that must not be written to, because they map a file that several processes share."""
        self.places = writeable(self.known_places)
        self.labels = writeable(self.labels)
        if not issparse(self.rows):
            self.rows = writeable(self.rows)

    def described(self) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
        """Return the header entries and arrays that store the index of the fitted data frame."""
        packed = None if self.index is None else self.index.packed()
        known = self.index is not None and (packed is not None or self.index.labels is None)
        return {"has_index": known}, {"frame_index": packed}


def writeable(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array; or a copy, if it maps a file that several processes share and must not be written to."""
    return array if array.flags.writeable else np.array(array)
