"""Which records a request names: positions, masks, labels of a data frame's index; empty requests; ambiguous ones."""

import copy

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.estimators import (
    CertifiedLogisticRegression,
    LangevinLogisticRegression,
    PublishedStateDescentToDelete,
    SecretStateDescentToDelete,
)

MODELS = {
    "langevin": lambda: LangevinLogisticRegression(C=0.1, random_state=0, batch_size=None),
    "mini-batches": lambda: LangevinLogisticRegression(C=0.1, random_state=0, batch_size=100),
    "secret state": lambda: SecretStateDescentToDelete(C=0.1, random_state=0),
    "published state": lambda: PublishedStateDescentToDelete(C=0.1, random_state=0),
    "certified": lambda: CertifiedLogisticRegression(C=0.1, random_state=0),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())


@pytest.fixture(scope="module")
def people(parity):
    """A frame whose index holds names; the fourth and the last record are one person's."""
    rows, labels = parity
    names = [f"P{number}" for number in range(len(rows))]
    names[-1] = names[3]
    return pd.DataFrame(rows, index=names).add_prefix("x"), labels


def state_of(fitted):
    kept = [fitted._weights, fitted._store.rows, fitted._store.labels, fitted.remaining_]
    return [array.copy() for array in kept], fitted.certificate_.model_dump()


def assert_same_state(first, second):
    for one, other in zip(first[0], second[0], strict=True):
        np.testing.assert_array_equal(one, other)
    assert first[1] == second[1]


@every_model
@pytest.mark.parametrize(
    "named", [{"indices": []}, {"indices": np.zeros(600, dtype=bool)}, {"indices": np.array([])}, {"index": []}]
)
def test_a_request_that_names_nobody_changes_nothing(make, people, named):
    fitted = make().fit(*people).unlearn([7])
    before = state_of(fitted)
    assert fitted.unlearn(**named) is fitted
    assert_same_state(state_of(fitted), before)
    # The next one is answered as if it had never been.
    without = make().fit(*people).unlearn([7]).unlearn([9])
    np.testing.assert_array_equal(fitted.unlearn([9]).coef_, without.coef_)


@every_model
def test_masks_and_labels_name_the_records_that_positions_do(make, people):
    frame, labels = people
    mask = np.isin(np.arange(600), [3, 8, 599])
    by_position = make().fit(frame, labels).unlearn([3, 8, 599])
    for named in (
        {"indices": mask},
        {"indices": mask.tolist()},
        {"indices": pd.Series(mask, index=frame.index)},
        {"indices": pd.Series(mask, index=frame.index, dtype="boolean")},
        {"indices": pd.Series(mask, index=frame.index, dtype="bool[pyarrow]")},
        {"index": ["P3", "P8"]},
        {"index": pd.Index(["P8", "P3"])},
        {"index": np.array(["P3", "P8"])},
    ):
        other = make().fit(frame, labels).unlearn(**named)
        np.testing.assert_array_equal(other.remaining_, by_position.remaining_)
        np.testing.assert_array_equal(other.coef_, by_position.coef_)
    assert make().fit(frame, labels).unlearn(index="P8").remaining_.tolist() == np.delete(np.arange(600), 8).tolist()


@every_model
@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({}, "got neither"),
        ({"indices": [1], "index": ["P1"]}, "got both"),
        ({"indices": np.ones(599, dtype=bool)}, "truth value for each of the 600 records .* got 599"),
        ({"indices": np.ones(600, dtype=bool)}, "record 7 was removed before|at least one must remain"),
        ({"indices": pd.Index([1, 2])}, "pandas object, which may hold positions or labels"),
        ({"indices": pd.Series([1, 2])}, "pandas object"),
        ({"indices": pd.Series(np.zeros(600, dtype=bool))}, "a mask whose index differs"),
        ({"indices": [[1], [2, 3]]}, "list of row numbers"),
        ({"indices": ["P1"]}, "list of row numbers"),
        ({"index": ["P1", "P9999"]}, "index names 'P9999', but no record that is left has this label"),
        ({"index": ["P7"]}, "index names 'P7', but no record that is left"),
        ({"index": ["P1", "P1"]}, "index names 'P1' twice"),
        ({"index": [None]}, "index names None"),
        ({"index": np.ones(600, dtype=bool)}, "not truth values; a mask is for indices"),
    ],
)
def test_requests_that_are_wrong_or_ambiguous_change_nothing(make, people, named, message):
    fitted = make().fit(*people).unlearn([7])
    before = state_of(fitted)
    with pytest.raises(ParameterError, match=message):
        fitted.unlearn(**named)
    assert_same_state(state_of(fitted), before)
    assert fitted._store.index.labels[1] == "P1"


def test_labels_that_only_number_the_records_are_positions(parity):
    rows, labels = parity
    fitted = MODELS["langevin"]().fit(pd.DataFrame(rows).add_prefix("x"), labels)
    assert fitted._store.index.labels is None
    fitted.unlearn(index=[4]).unlearn(pd.Series([5])).unlearn(index=pd.Index([6]))
    assert fitted.remaining_.tolist() == np.delete(np.arange(600), [4, 5, 6]).tolist()
    with pytest.raises(ParameterError, match="record 4 was removed before"):
        fitted.unlearn(index=[4])
    with pytest.raises(ParameterError, match="list of row numbers"):
        fitted.unlearn(index=["P4"])


def test_labels_need_a_frame(parity):
    fitted = MODELS["certified"]().fit(*parity)
    with pytest.raises(ParameterError, match="X was not a data frame, its index was not kept"):
        fitted.unlearn(index=[4])
    assert fitted.unlearn(pd.Series(np.arange(600) == 4)).remaining_[4] == 5


@every_model
def test_a_removed_record_s_label_is_gone_from_memory_and_from_files(make, people, tmp_path):
    fitted = make().fit(*people)
    fitted.save(tmp_path / "before")
    assert b'"P123"' in (tmp_path / "before").read_bytes()  # the search would find it
    fitted.unlearn(index=["P123"]).save(tmp_path / "after")
    assert fitted._store.index.labels[123] is None
    assert b'"P123"' not in (tmp_path / "after").read_bytes()
    fitted.save(tmp_path / "public", training_data=False)
    assert b'"P1"' not in (tmp_path / "public").read_bytes()
    loaded = type(fitted).load(tmp_path / "after")
    np.testing.assert_array_equal(loaded.unlearn(index=["P3"]).coef_, fitted.unlearn(index=["P3"]).coef_)
    with pytest.raises(ParameterError, match="'P123', but no record that is left"):
        loaded.unlearn(index=["P123"])
    with pytest.raises(DataError, match="without its training data"):
        type(fitted).load(tmp_path / "public").unlearn(index=["P4"])


def test_a_shallow_copy_keeps_its_labels(people):
    fitted = MODELS["langevin"]().fit(*people)
    other = copy.copy(fitted)
    fitted.unlearn(index=["P5"])
    assert other.unlearn(index=["P5"]).remaining_.tolist() == fitted.remaining_.tolist()


@pytest.mark.parametrize(
    ("index", "named"),
    [
        (pd.RangeIndex(1000, 1600), [1003]),
        (pd.date_range("2024-01-01", periods=600, tz="UTC"), [pd.Timestamp("2024-01-04", tz="UTC")]),
        (pd.MultiIndex.from_product([range(300), ["a", "b"]]), [(1, "b")]),
        (pd.Index(np.arange(600) / 2), [1.5]),
    ],
    ids=["numbers", "days", "pairs", "floats"],
)
def test_labels_of_other_kinds_pass_through_files(parity, tmp_path, index, named):
    frame = pd.DataFrame(parity[0], index=index).add_prefix("x")
    fitted = MODELS["certified"]().fit(frame, parity[1])
    fitted.save(tmp_path / "model")
    loaded = CertifiedLogisticRegression.load(tmp_path / "model")
    assert loaded._store.index.agrees_with(fitted._store.index)
    assert loaded.unlearn(index=named).remaining_.tolist() == np.delete(np.arange(600), 3).tolist()


def test_labels_that_json_cannot_hold_are_left_out_with_a_word(parity, tmp_path):
    frame = pd.DataFrame(parity[0], index=pd.interval_range(0, 600)).add_prefix("x")
    fitted = MODELS["langevin"]().fit(frame, parity[1])
    with pytest.warns(UserWarning, match="does not keep the data frame's index, because a Interval") as warned:
        fitted.save(tmp_path / "model")
    assert warned[0].filename == __file__
    with pytest.raises(ParameterError, match="its index was not kept"):
        LangevinLogisticRegression.load(tmp_path / "model").unlearn(index=[frame.index[3]])


@every_model
def test_sample_weights_are_refused_with_the_reason(make, parity):
    with pytest.raises(ParameterError, match="sample_weight must be None: the guarantee assumes that every record"):
        make().fit(*parity, sample_weight=np.ones(600))
    make().fit(*parity, sample_weight=None)
