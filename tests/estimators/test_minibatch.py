"""Langevin unlearning on mini-batches as an estimator: the same objective, certificates, edits in place."""

import copy
import json
import pickle
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from certified_unlearning import certificate
from certified_unlearning.accounting.core.curves import Cycle
from certified_unlearning.accounting.cyclic import stream
from certified_unlearning.errors import DataError, InfeasibleError, ParameterError
from certified_unlearning.estimators import LangevinLogisticRegression
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner


def model(**parameters):
    return LangevinLogisticRegression(**{"C": 0.1, "batch_size": 100, "random_state": 0, "delta": 1e-4, **parameters})


def synthetic(n=12_000, features=20):
    generator = np.random.default_rng(7)
    rows = generator.standard_normal((n + 4000, features))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    direction = generator.standard_normal(features)
    labels = rows @ direction * 9 + generator.logistic(size=n + 4000) > 0
    return rows[:n], labels[:n], rows[n:], labels[n:]


def snapshot(fitted):
    store = fitted._store
    arrays = {"rows": store.rows, "labels": store.labels, "places": store.places}
    arrays |= {"classes": fitted._class_sizes, "weights": fitted._weights}
    return {name: array.copy() for name, array in arrays.items()} | {"removals": list(fitted.removals_)}


def same(first, second):
    return first.pop("removals") == second.pop("removals") and all(
        np.array_equal(first[name], second[name]) for name in first
    )


def test_it_is_about_as_accurate_as_scikit_learn_and_the_default_where_there_are_many_records():
    rows, labels, test_rows, test_labels = synthetic()
    fitted = LangevinLogisticRegression(C=80 / 12_000, delta=1e-6).fit(rows, labels)
    assert isinstance(fitted._learner, MiniBatchLearner)
    theirs = LogisticRegression(C=80 / 12_000).fit(rows, labels).score(test_rows, test_labels)
    # The noise of 20 scores and a batch's gradient: 0.02 is four times what was seen.
    assert fitted.unlearn(range(10)).score(test_rows, test_labels) > theirs - 0.02
    assert fitted.certificate_.epsilon <= 1.0
    few = LangevinLogisticRegression(C=80 / 500).fit(rows[:500], labels[:500])
    assert isinstance(few._learner, LangevinLearner)
    assert isinstance(few.set_params(accountant="lsi").fit(rows, labels)._learner, LangevinLearner)


@pytest.mark.parametrize("which", ["digits", "parity"])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_certificates_hold_request_after_request(which, adjacency, request):
    fitted = model(adjacency=adjacency).fit(*request.getfixturevalue(which))
    for gone in ([3], [5, 100, 200], [599]):
        fitted.unlearn(gone)
        stated = fitted.certificate_
        certificate.verify(stated)
        assert stated.epsilon <= 1.0
    assert stated.cycle == Cycle(6, 100)
    assert stated.records_per_request == (1, 3, 1)
    assert [sum(count for _, count in places) for places in stated.places] == [1, 3, 1]
    # Of all models: so much, with little noise, that where it is told at all it is more.
    assert stated.epsilon_all_published is None or stated.epsilon_all_published > stated.epsilon
    assert fitted.remaining_.tolist() == [index for index in range(600) if index not in (3, 5, 100, 200, 599)]
    assert "by cyclic" in fitted.privacy_report()
    assert "Removing one more record" in fitted.privacy_report()


def test_rows_lie_in_dealt_order_signed_and_removed_ones_are_zero(parity):
    rows, labels = parity
    fitted = model().fit(rows, labels)
    before = fitted._store.rows.copy()
    signs = np.where(labels == "odd", 1, -1)
    expected = -signs[:, None] * np.column_stack([rows, np.ones(600)]) / np.sqrt(2)
    np.testing.assert_allclose(before[fitted._store.places], expected, atol=1e-7)
    kept = fitted._store.rows
    places = fitted._store.places[[4, 9]].copy()
    fitted.unlearn([4, 9])
    assert fitted._store.rows is kept
    changed = np.flatnonzero((kept != before).any(axis=1))
    assert sorted(changed) == sorted(places)
    assert not kept[places].any()


def test_a_request_that_fails_leaves_everything_as_it_was(parity, monkeypatch):
    fitted = model().fit(*parity).unlearn([1])
    before = snapshot(fitted)
    for wrong, error, said in (
        ([2, 2], ParameterError, "record 2 twice"),
        ([1], ParameterError, "record 1 was removed before"),
        ([600], ParameterError, "numbered 0 to 599"),
        ([0, *range(2, 600)], ParameterError, "every record that is left"),
    ):
        with pytest.raises(error, match=said):
            fitted.unlearn(wrong)
        assert same(snapshot(fitted), dict(before))

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(MiniBatchLearner, "unlearn_one", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted.unlearn([2, 3])
    assert same(snapshot(fitted), dict(before))


def test_a_loaded_estimator_goes_on_as_the_saved_one_would(parity, tmp_path):
    fitted = model().fit(*parity).unlearn([1, 2])
    fitted.save(tmp_path / "own.safetensors")
    loaded = LangevinLogisticRegression.load(tmp_path / "own.safetensors")
    assert loaded.certificate_ == fitted.certificate_
    for each in (fitted, loaded):
        each.unlearn([5, 77])
    np.testing.assert_array_equal(loaded.coef_, fitted.coef_)
    np.testing.assert_array_equal(loaded.remaining_, fitted.remaining_)
    certificate.verify(loaded.certificate_)


def test_a_file_to_hand_out_holds_no_records_and_no_places(parity, tmp_path):
    fitted = model().fit(*parity).unlearn([1, 2])
    fitted.save(tmp_path / "public.safetensors", training_data=False)
    content = (tmp_path / "public.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert set(header) == {"__metadata__", "_weights"}
    loaded = LangevinLogisticRegression.load(tmp_path / "public.safetensors")
    np.testing.assert_array_equal(loaded.predict(parity[0]), fitted.predict(parity[0]))
    with pytest.raises(DataError, match="without its training data"):
        loaded.unlearn([5])


def test_a_class_that_loses_its_last_record_is_said(parity):
    rows, labels = parity
    odd = np.flatnonzero(labels == "odd")
    fitted = model(epsilon=10.0).fit(rows, labels)
    fitted.unlearn(odd[:-1])
    with pytest.warns(UserWarning, match="a class has no record left"):
        fitted.unlearn(odd[-1:])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number, at least 1, got 0"),
        ({"batch_size": 601}, "batch_size must be at most the number of records, 600, got 601"),
        ({"accountant": "lsi"}, "batch_size must be None or 'auto' with accountant lsi"),
        ({"adjacency": "remove"}, "batch_size must be None or 'auto'"),
    ],
)
def test_what_mini_batches_cannot_do_is_refused(parity, change, said):
    with pytest.raises(ParameterError, match=said):
        model(**change).fit(*parity)


def test_steps_and_noise_are_planned_from_each_other(parity):
    fitted = model(steps=40, records=5).fit(*parity)
    assert fitted._learner.plan_removal([], 5).steps == 40
    assert fitted.unlearn([1, 2, 3, 4, 5]).removals_[0].steps <= 40
    assert model(sigma=0.07).fit(*parity)._learner.sigma == 0.07
    with pytest.raises((ParameterError, InfeasibleError)):
        model(sigma=0.07, steps=3).fit(*parity)


def test_a_warning_that_is_an_error_does_not_undo_half_of_a_removal(parity):
    rows, labels = parity
    odd = np.flatnonzero(labels == "odd")
    fitted = model(epsilon=10.0).fit(rows, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="no record left"):
            fitted.unlearn(odd)
    assert [removal.records for removal in fitted.removals_] == [len(odd)]
    assert len(fitted.remaining_) == 600 - len(odd)
    certificate.verify(fitted.certificate_)


@pytest.mark.parametrize("when", ["_class_sizes_of", "_after_steps_on"])
def test_an_interruption_at_any_moment_leaves_all_or_nothing(parity, monkeypatch, when):
    fitted = model().fit(*parity)
    before = snapshot(fitted)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LangevinLogisticRegression, when, interrupted)
        with pytest.raises(KeyboardInterrupt):
            fitted.unlearn([2, 3])
    assert same(snapshot(fitted), before)
    assert fitted.unlearn([2, 3]).removals_[0].records == 2


def test_the_first_request_is_planned_where_its_records_lie(parity):
    fitted = model().fit(*parity)
    early, late = (int(np.flatnonzero(fitted._store.places // 100 == batch)[0]) for batch in (0, 5))
    learner = fitted._learner
    steps = [
        learner.plan_removal([], 1, learner.places_of(fitted._store.places[[each]])).steps for each in (early, late)
    ]
    assert steps[0] < steps[1] == learner.plan_removal([], 1).steps


def test_a_request_counts_itself_alone_however_many_were_before_it(parity, monkeypatch):
    """As computed, and in exact arithmetic. So it is with copies."""
    fitted = model().fit(*parity)
    for gone in range(0, 60, 2):
        fitted.unlearn([gone, gone + 1]).certificate_  # noqa: B018
    counted, of_one = [], stream.Steps.before_answer
    monkeypatch.setattr(
        stream.Steps, "before_answer", lambda steps, requests: counted.append(steps) or of_one(steps, requests)
    )
    certificates = set()
    for each in (copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted)), fitted):
        for gone in ([100, 101, 102], [200], [300, 301]):
            counted.clear()
            stated = each.unlearn(gone).certificate_
            assert len(counted) == 2
        certificate.verify(stated)
        certificates.add(stated.model_copy(update={"run_key": "", "data_sha256": None}).model_dump_json())
    assert len(certificates) == 1


def test_a_loaded_model_finds_what_its_requests_came_to_once(parity, tmp_path, monkeypatch):
    fitted = model().fit(*parity)
    for gone in range(10):
        fitted.unlearn([gone])
    fitted.save(tmp_path / "model")
    loaded = LangevinLogisticRegression.load(tmp_path / "model")
    assert loaded.certificate_ == fitted.certificate_
    counted, of_one = [], stream.Steps.before_answer
    monkeypatch.setattr(
        stream.Steps, "before_answer", lambda steps, requests: counted.append(steps) or of_one(steps, requests)
    )
    assert loaded.unlearn([300]).certificate_.epsilon == fitted.unlearn([300]).certificate_.epsilon
    assert len(counted) == 2 * 2
