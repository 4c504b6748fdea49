"""`CertifiedMLPClassifier` with public rows, and with poisoned records: labels are those of retrained networks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from certified_unlearning import CertifiedMLPClassifier, certificate
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.estimators.network import trained
from tests.estimators.test_certified_mlp import clouds, grid

BATCH = {"budgets": (1, 2, 5), "random_state": 0, "epochs": 3, "step_size": 2.0, "bound": 0.3}


def fitted(records: int = 60, public: int = 300, **parameters: Any) -> CertifiedMLPClassifier:
    X, y = clouds(records + public)
    model = CertifiedMLPClassifier((8,), **{**BATCH, **parameters})
    given = {"public_X": X[records:], "public_y": y[records:]} if public else {}
    return model.fit(X[:records], y[:records], **given)


def labels_without(model: CertifiedMLPClassifier, gone: np.ndarray, points: np.ndarray) -> np.ndarray:
    """What the network says that is trained, from the same start and in the same batches, without some records."""
    network, store = model._network, model._store
    present = network.present(store)
    present[gone] = False
    found = network.settings.learn(store.rows, store.labels, network.places, network.start, present, [0])
    return model.classes_[found.classes(torch.as_tensor(points)).numpy()]


def wrong_labels(model: CertifiedMLPClassifier, records: int, k: int = 5) -> int:
    """How many certified labels change when k records leave: those that speak most for either side of either axis."""
    points, wrong = grid(), 0
    sure, before = model.certify(points, k), model.predict(points)
    assert sure.mean() > 0
    rows = model._store.rows[:records].numpy()
    for way in ([1, 1], [-1, -1], [1, -1], [-1, 1]):
        after = labels_without(model, (rows @ way).argsort()[:k], points)
        wrong += int((after != before)[sure].sum())
    return wrong


def test_no_removal_of_private_records_changes_a_certified_label() -> None:
    model = fitted()
    assert wrong_labels(model, 60) == 0
    alone = fitted(public=0)
    assert model.certify(grid(), 5).mean() > alone.certify(grid(), 5).mean()


def test_if_private_records_were_taken_for_public_ones_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: boxes are points then, and certify everything."""
    monkeypatch.setattr(trained, "_is_public", lambda places, n, public_records: torch.ones(n, dtype=torch.bool))
    assert wrong_labels(fitted(records=20, public=20), 20) > 0


def test_requests_are_free_as_long_as_records_leave_and_public_rows_stay() -> None:
    model = fitted()
    points = grid()
    model.unlearn([3, 5])
    assert (model.trainings_, model.budget_left_) == (1, 3)
    sure = model.certify(points, 0)
    expected = labels_without(model, np.array([3, 5]), points)
    assert np.array_equal(model.predict(points[sure]), expected[sure])
    assert np.array_equal(model.predict(points), expected)
    assert "Also learned from 300 public rows, which cannot be removed" in model.privacy_report()
    with pytest.raises(ParameterError, match="the 300 rows of public_X stay in the model and cannot be removed"):
        model.unlearn([60])
    model.unlearn([*range(6, 60)])
    assert model.remaining_.tolist() == [0, 1, 2, 4]


def test_a_batch_with_a_public_row_may_lose_all_others() -> None:
    model = fitted(records=4, public=1, budgets=(1, 4), step_size=0.1)
    model.unlearn([0, 1, 2])
    assert (model.trainings_, model.budget_left_) == (1, 1)
    assert np.array_equal(model.predict(grid()), labels_without(model, np.array([0, 1, 2]), grid()))
    with pytest.raises(AssumptionError, match="would empty a batch of 4"):
        fitted(records=4, public=0, budgets=(1, 4))


def test_a_file_and_a_certificate_know_public_rows(tmp_path: Path) -> None:
    model = fitted()
    model.unlearn([7])
    model.save(tmp_path / "model")
    again = CertifiedMLPClassifier.load(tmp_path / "model")
    assert np.array_equal(again.certified_radius(grid()), model.certified_radius(grid()))
    stated = again.certificate(grid())
    assert (stated.n, stated.public_records) == (59, 300)
    again.check()
    certificate.write(stated, tmp_path / "certificate.json")
    read = certificate.read_any(tmp_path / "certificate.json")
    certificate.verify(read)
    assert "public rows are in every data set" in " ".join(each.statement for each in read.assumptions)
    for wrong in (0, 301):
        with pytest.raises(certificate.CertificateError, match=r"smallest_batch = 359|constants, budgets or names"):
            certificate.verify(read.model_copy(update={"public_records": wrong}))
    alone = fitted(public=0).certificate(grid())
    assert "public_records" not in alone.model_dump_json()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"public_X": np.zeros((2, 2))}, "public_X came without public_y"),
        ({"public_X": np.zeros((2, 3)), "public_y": ["no", "yes"]}, "public_X has 3 columns, but X has 2"),
        ({"public_X": np.zeros((2, 2)), "public_y": ["no", "never"]}, "public_y holds the class 'never'"),
        ({"public_X": np.zeros((2, 2)), "public_y": ["no"]}, "public_y has 1 value, but public_X has 2 rows"),
    ],
)
def test_public_rows_that_do_not_fit_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises((DataError, ParameterError), match=said):
        CertifiedMLPClassifier(**BATCH).fit(*clouds(40), **given)


# --- Poisoned records ------------------------------------------------------------------------------------------------


def labels_of_poisoned(model: CertifiedMLPClassifier, rows: torch.Tensor, labels: torch.Tensor) -> np.ndarray:
    network, present = model._network, model._network.present(model._store)
    found = network.settings.learn(rows, labels, network.places, network.start, present, [0])
    return found.classes(torch.as_tensor(grid())).numpy()


def changed_labels(model: CertifiedMLPClassifier, records: int, **how: Any) -> int:
    """How many labels that are certified for ``how`` change when so many records are moved or relabelled."""
    sure = model.certify_poisoned(grid(), **how)
    before = model._network.learned.classes(torch.as_tensor(grid())).numpy()
    assert 0 < sure.mean() < 1
    wrong = 0
    for way in ([1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]):
        rows, labels = model._store.rows.clone(), model._store.labels.clone()
        which = (rows @ torch.tensor(way).double()).argsort()[:records]
        rows[which] += how.get("by", 0) * torch.tensor(way).double().sign()
        if how.get("relabelled"):
            labels[which] = 1 - labels[which]
        wrong += int((labels_of_poisoned(model, rows, labels) != before)[sure].sum())
    return wrong


def test_no_poisoning_changes_a_label_that_is_certified_for_it() -> None:
    model = fitted(records=200, public=0)
    assert changed_labels(model, 3, moved=3, by=0.2) == 0
    assert changed_labels(model, 3, relabelled=3) == 0
    assert changed_labels(model, 2, moved=2, by=0.1, relabelled=2, together=True) == 0
    # The planted fault: more than was certified for.
    assert changed_labels(model, 60, relabelled=3) > 0


def test_more_poison_certifies_less_and_one_class_more_than_any() -> None:
    model = fitted(records=200, public=0)
    shares = [model.certify_poisoned(grid(), relabelled=each).mean() for each in (0, 2, 4)]
    assert shares[0] == 1
    assert shares[0] > shares[1] > shares[2]
    assert model.certify_poisoned(grid(), relabelled=4, to="no").mean() > shares[2]


def test_poisoning_is_of_the_records_that_are_left() -> None:
    model = fitted(records=200, public=0)
    model.unlearn([3])
    sure = model.certify_poisoned(grid(), relabelled=2)
    fresh = fitted(records=200, public=0)
    fresh.unlearn([3])
    fresh.decision_function(grid())
    assert np.array_equal(fresh.certify_poisoned(grid(), relabelled=2), sure)
    assert model.trainings_ == 2


def test_poison_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    model = fitted(records=40, public=0)
    for how, said in (
        ({"moved": -1}, "moved must be a whole number, at least 0"),
        ({"relabelled": 1, "to": "never"}, r"`to` must be one of the classes \['no', 'yes'\], got 'never'"),
        ({"relabelled": 1, "to": ["no"]}, r"`to` must be one of the classes \['no', 'yes'\], got \['no'\]"),
        ({"to": "no"}, "`relabelled` must be at least 1"),
        ({"moved": 1, "by": np.nan}, "by must be a finite number"),
    ):
        with pytest.raises(ParameterError, match=said):
            model.certify_poisoned(grid(), **how)
    model.save(tmp_path / "handed-out", training_data=False)
    with pytest.raises(DataError, match="without its training data"):
        CertifiedMLPClassifier.load(tmp_path / "handed-out").certify_poisoned(grid(), relabelled=1)
