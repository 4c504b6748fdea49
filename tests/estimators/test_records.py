"""A store of records by itself: what leaves it, what is put back, and what another store still knows."""

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.estimators.records import RecordStore
from certified_unlearning.estimators.requests import FrameIndex

ROWS = np.arange(12.0).reshape(6, 2)
LABELS = np.array([1, -1, 1, -1, 1, -1])
NAMES = list("abcdef")


@pytest.fixture
def store():
    made = RecordStore(FrameIndex.of(pd.DataFrame(ROWS, index=NAMES)))
    made.keep(np.arange(6), ROWS.copy(), LABELS.copy())
    return made


def test_a_compacted_store_holds_the_rows_that_are_left_in_order(store):
    after = store.compacted(np.array([1, 4])).compacted(np.array([0]))
    assert after.remaining.tolist() == [2, 3, 5]
    np.testing.assert_array_equal(after.rows, ROWS[[2, 3, 5]])
    np.testing.assert_array_equal(after.rows[after.places[after.remaining]], ROWS[after.remaining])
    assert after.labels.tolist() == [1, -1, -1]
    assert after.index.labels.tolist() == [None, None, "c", "d", None, "f"]
    assert (after.left, store.left, store.rows.tolist()) == (3, 6, ROWS.tolist())


def test_others_stand_in_the_places_of_new_arrays(store):
    after = store.with_others(np.array([2]), np.array([[7.0, 7.0]]), np.array([-1]))
    assert after.rows[2].tolist() == [7, 7]
    assert after.remaining.tolist() == [0, 1, 3, 4, 5]
    np.testing.assert_array_equal(store.rows, ROWS)
    again = RecordStore(None)
    again.keep_left(after.remaining, 6, after.rows, after.labels)
    np.testing.assert_array_equal(again.places, after.places)


def test_what_was_put_in_place_is_undone_by_what_was_taken(store):
    gone = np.array([0, 5])
    taken = store.take(gone)
    store.put(gone, 0, 0)
    assert not store.rows[gone].any()
    assert store.removed.tolist() == [True, False, False, False, False, True]
    assert store.index.labels.tolist() == [None, *NAMES[1:5], None]
    store.put_back(gone, taken)
    np.testing.assert_array_equal(store.rows, ROWS)
    assert store.labels.tolist() == LABELS.tolist()
    assert store.places.tolist() == [*range(6)]
    assert store.index.labels.tolist() == NAMES


def test_each_set_of_records_has_a_name_of_its_own_that_tells_nothing(store):
    after = store.without(np.array([3]))
    assert store.digest == store.digest != after.digest
    assert len(after.digest) == 64
    assert after.shrunk(1).known_digest is None


def test_requests_name_records_that_are_left(store):
    assert store.named(None, ["e", "b"]).tolist() == [4, 1]
    assert store.removable([4, 1]).tolist() == [1, 4]
    after = store.without(np.array([1, 2, 3, 4]))
    with pytest.raises(ParameterError, match="record 4 was removed before"):
        after.removable([0, 4])
    with pytest.raises(ParameterError, match="at least one must remain"):
        after.removable([0, 5])
    with pytest.raises(ParameterError, match="no record that is left has this label"):
        after.named(None, "b")


def test_records_that_come_later_get_places_behind_the_others(store):
    after = store.extended(FrameIndex.of(pd.DataFrame(ROWS[:2], index=["y", "z"])), 2)
    assert after.places.tolist() == [*range(8)]
    assert after.named(None, "z").tolist() == [7]
    assert store.left == 6


def test_a_store_without_records_says_so():
    with pytest.raises(DataError, match="so it is unknown which records are left"):
        RecordStore(None).remaining  # noqa: B018
