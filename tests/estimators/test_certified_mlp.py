"""`CertifiedMLPClassifier`: labels are those of a retrained network, requests that are free and those that are not."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import torch

from certified_unlearning import CertifiedMLPClassifier, certificate
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.mechanisms.certified_sgd.learned import Learned
from certified_unlearning.mechanisms.certified_sgd.sgd import CertifiedSgd

BATCH = {"budgets": (1, 2, 5), "random_state": 0, "epochs": 4}


def clouds(n: int = 400, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    centres = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    return centres[labels] + draw.normal(scale=0.6, size=(n, 2)), np.array(["no", "yes", "perhaps"])[labels]


def grid() -> np.ndarray:
    axis = np.linspace(-3, 3, 25)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def retrained(model: CertifiedMLPClassifier) -> CertifiedMLPClassifier:
    """The network trained on what is left, in the same batches from the same start."""
    import copy

    other = copy.deepcopy(model)
    other._settle()
    assert other._network.pending == 0
    return other


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("batch_size", ["auto", 100])
def test_labels_after_free_requests_are_those_of_the_network_trained_anew(classes: int, batch_size: Any) -> None:
    X, y = clouds(classes=classes)
    points = grid()
    model = CertifiedMLPClassifier(batch_size=batch_size, bound=0.05, **BATCH).fit(X, y)
    sure, radii = model.certify(points, 2), model.certified_radius(points)
    assert 0.5 < sure.mean() < 1
    before = model.predict(points)
    for gone in ([3], [50, 51]):
        model.unlearn(gone)
    assert model.trainings_ == 1
    assert 0 < model.budget_left_ < 5
    other = retrained(model)
    after = other.predict(points)
    spent = 5 - model.budget_left_
    assert np.array_equal(before[radii >= spent], after[radii >= spent])
    certified = points[model.certify(points, 0)]
    assert np.array_equal(model.predict(certified), other.predict(certified))
    assert model.trainings_ == 1
    assert np.array_equal(model.predict(points), after)  # Some are not certified: it was trained anew.
    assert model.trainings_ == 2
    assert model.budget_left_ == 5
    assert np.array_equal(model.certified_radius(points), other.certified_radius(points))


def test_certified_labels_are_those_of_any_fit_without_some_records() -> None:
    """Thirty fits, each without other records, by requests beyond all budgets."""
    X, y = clouds(200)
    points = grid()
    model = CertifiedMLPClassifier(**BATCH).fit(X, y)
    radii, labels = model.certified_radius(points), model.predict(points)
    draw = np.random.default_rng(1)
    flips = 0
    for trial in range(30):
        k = (1, 2, 5)[trial % 3]
        other = CertifiedMLPClassifier(**BATCH).fit(X, y)
        # Those of one class at its edge move the boundary most.
        order = np.argsort(X.sum(axis=1) * (1 if trial % 2 else -1)) if trial % 5 == 0 else draw.permutation(200)
        other.unlearn(order[:k])
        other._settle()
        changed = other.predict(points) != labels
        assert not changed[radii >= k].any()
        flips += changed.sum()
    assert flips > 0


def test_a_request_beyond_the_budget_trains_anew_at_once() -> None:
    X, y = clouds()
    model = CertifiedMLPClassifier(**BATCH).fit(X, y)
    model.unlearn([0, 1, 2, 3, 4])
    assert (model.trainings_, model.budget_left_) == (1, 0)
    with pytest.raises(ParameterError, match="k must be at most 0, got 1: removals since the last training"):
        model.certify(X[:3], 1)
    model.unlearn([5])
    assert (model.trainings_, model.budget_left_) == (2, 5)
    assert model.remaining_.tolist() == [*range(6, 400)]
    said = model.privacy_report(X)
    assert (
        "Removed: 6 records in 2 requests. To answer 1 of these requests, no training was needed. Trained 2 times."
        in said
    )
    assert "Certified for 1 removal from each batch:" in said
    model.unlearn([6])
    assert "were learned with 1 record that was removed afterwards" in model.privacy_report()


def test_batches_have_budgets_of_their_own() -> None:
    X, y = clouds()
    model = CertifiedMLPClassifier(batch_size=100, **BATCH).fit(X, y)
    one_of_each = model._network.places[:, 0].tolist()
    model.unlearn(one_of_each)
    assert (model.trainings_, model.budget_left_) == (1, 4)
    model.unlearn(model._network.places[0, 1:5].tolist())
    assert (model.trainings_, model.budget_left_) == (1, 0)
    model.unlearn(model._network.places[1, 1:5].tolist())
    assert model.trainings_ == 1
    model.unlearn([int(model._network.places[1, 5])])
    assert model.trainings_ == 2


def test_what_leaves_leaves_no_bytes_in_a_file(tmp_path: Path) -> None:
    X, y = clouds()
    model = CertifiedMLPClassifier(**BATCH).fit(X, y)
    kept = X[7].tobytes()
    model.save(tmp_path / "model")
    assert kept in (tmp_path / "model").read_bytes()
    model.unlearn([7])
    model.save(tmp_path / "model")
    assert kept not in (tmp_path / "model").read_bytes()


def test_a_file_goes_on_where_the_estimator_stood(tmp_path: Path) -> None:
    X, y = clouds(classes=3)
    points = grid()
    frame = pd.DataFrame(X, columns=["a", "b"], index=[f"customer-{each}" for each in range(400)])
    model = CertifiedMLPClassifier((6, 4), feature_ranges=(-4, 4), step_size=2.0, **BATCH).fit(frame, y)
    model.unlearn(index=["customer-3"])
    model.save(tmp_path / "model")
    again = CertifiedMLPClassifier.load(tmp_path / "model")
    points = pd.DataFrame(points, columns=["a", "b"])
    assert np.array_equal(again.certify(points, 1), model.certify(points, 1))
    assert again.budget_left_ == model.budget_left_ == 4
    for each in (model, again):
        each.unlearn(index=["customer-4", "customer-5"])
    assert np.array_equal(again.predict(points), model.predict(points))
    again.check()
    model.save(tmp_path / "handed-out", training_data=False)
    public = CertifiedMLPClassifier.load(tmp_path / "handed-out")
    assert np.array_equal(public.predict(points), model.predict(points))
    names = set(safetensors.numpy.load_file(tmp_path / "handed-out"))
    assert names == {f"parameters/{place}" for place in range(6)}
    for ask in (lambda: public.unlearn([0]), lambda: public.certify(points), lambda: public.certificate(points)):
        with pytest.raises(DataError, match="without its training data"):
            ask()


def test_a_handed_out_file_was_trained_without_what_was_removed(tmp_path: Path) -> None:
    X, y = clouds()
    model = CertifiedMLPClassifier(**BATCH).fit(X, y)
    model.unlearn([0, 2])
    other = retrained(model)
    model.save(tmp_path / "handed-out", training_data=False)
    found = safetensors.numpy.load_file(tmp_path / "handed-out")
    assert np.array_equal(found["parameters/0"], other._network.learned.parameters[0].numpy())
    assert np.array_equal(model.predict_proba(X), other.predict_proba(X))


def test_the_certificate_is_recomputed(tmp_path: Path) -> None:
    X, y = clouds(classes=3)
    model = CertifiedMLPClassifier(changes="additions and removals", bound=0.02, **BATCH).fit(X, y)
    said = model.certificate(X[:50], y[:50])
    certificate.write(said, tmp_path / "certificate.json")
    certificate.verify(certificate.read_any(tmp_path / "certificate.json"))
    assert said.classes == ("no", "perhaps", "yes")
    assert [said.classes[each] for each in said.predictions] == model.predict(X[:50]).tolist()
    assert [*said.radii] == model.certified_radius(X[:50]).tolist()
    assert said.accuracy is not None
    assert said.accuracy[0][0] <= model.score(X[:50], y[:50]) <= said.accuracy[0][1]
    with pytest.raises(DataError, match="none of the classes"):
        model.certificate(X[:2], ["no", "never"])
    model.check()
    model._network.learned.parameters[0].add_(1e-3)
    with pytest.raises(DataError, match="parameters or boxes that differ"):
        model.check()


def test_lines_of_the_last_update_are_kept_and_checked(tmp_path: Path) -> None:
    X, y = clouds()
    model = CertifiedMLPClassifier(step_size=3.0, budgets=5, bound=0.3, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    again = CertifiedMLPClassifier.load(tmp_path / "model")
    last, kept = model._network.learned.last, again._network.learned.last
    assert last is not None
    assert kept is not None
    assert all(torch.equal(each, kept.tensors[name]) for name, each in last.tensors.items())
    assert np.array_equal(again.certified_radius(grid()), model.certified_radius(grid()))
    again.check()
    kept.above_shifts.add_(1e-3)
    with pytest.raises(DataError, match="lines of the last update that differ"):
        again.check()
    # As in files that were written before there were lines.
    again._network = replace(again._network, learned=replace(again._network.learned, last=None))
    again.check()
    other = CertifiedMLPClassifier(step_size=3.0, budgets=5, bound=0.3, random_state=0, momentum=0.5).fit(X, y)
    assert other._network.learned.last is None
    other._network = replace(other._network, learned=replace(other._network.learned, last=last))
    with pytest.raises(DataError, match="lines of the last update that differ"):
        other.check()


@pytest.mark.parametrize("name", ["before_upper", "above_slopes", "below_shifts"])
def test_a_file_with_wrong_lines_is_refused(name: str, tmp_path: Path) -> None:
    X, y = clouds()
    model = CertifiedMLPClassifier(step_size=3.0, budgets=5, bound=0.3, random_state=0).fit(X, y)
    assert model._network.learned.last is not None
    model._network.learned.last.tensors[name].mul_(torch.nan)
    model.save(tmp_path / "model")
    with pytest.raises(DataError, match=f"{name} of the linear bounds on the last update is not finite"):
        CertifiedMLPClassifier.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (lambda learned: learned.parameters[0].add_(10), "parameters lie outside their box"),
        (lambda learned: learned.box[0].upper[1].add_(10), "a larger budget must have a larger box"),
        (lambda learned: learned.box[0].lower[0].mul_(torch.nan), "bounds of parameters must be finite"),
    ],
)
def test_a_file_whose_boxes_are_none_is_refused(changed: Callable[[Learned], Any], said: str, tmp_path: Path) -> None:
    X, y = clouds()
    model = CertifiedMLPClassifier(step_size=3.0, budgets=(1, 2, 3), bound=0.3, random_state=0).fit(X, y)
    changed(model._network.learned)
    model.save(tmp_path / "model")
    with pytest.raises(DataError, match=said):
        CertifiedMLPClassifier.load(tmp_path / "model")


def test_what_is_interrupted_leaves_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = clouds()
    model = CertifiedMLPClassifier(**BATCH).fit(X, y)
    before = model.predict(X)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CertifiedSgd, "learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.unlearn(np.arange(6))
    assert len(model.remaining_) == 400
    assert np.array_equal(model.predict(X), before)
    assert model._store.rows[:6].abs().sum() > 0


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"budgets": ()}, "budgets"),
        ({"budgets": (2, 1)}, "rising"),
        ({"budgets": 0}, "budgets"),
        ({"hidden_layer_sizes": (0,)}, "hidden_layer_sizes"),
        ({"changes": "substitutions"}, "changes"),
        ({"changes": "additions and removals", "clipping": "none", "bound": None}, "need clipping"),
        ({"clipping": "none"}, "bound"),
        ({"batch_size": 500}, "batch_size must be at most"),
        ({"epochs": 0}, "epochs"),
        ({"step_size": -1.0}, "step_size"),
        ({"weight_decay": 2.0}, "at most 1"),
        ({"budgets": 20, "batch_size": 20}, "would empty a batch"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises((ParameterError, AssumptionError), match=said):
        CertifiedMLPClassifier(**parameters).fit(*clouds())


def test_requests_that_make_no_sense_are_refused() -> None:
    X, y = clouds(20)
    model = CertifiedMLPClassifier(**BATCH).fit(X, y)
    assert model.unlearn([]) is model
    for request, said in (([20], "0 to 19"), ([1, 1], "twice"), ([*range(20)], "every record")):
        with pytest.raises(ParameterError, match=said):
            model.unlearn(request)
    with pytest.raises(ParameterError, match="k must be a whole number"):
        model.certify(X, -1)
    assert len(model.remaining_) == 20
    model.unlearn([4])
    with pytest.raises(ParameterError, match="record 4 was removed before"):
        model.unlearn([4])
    with pytest.warns(UserWarning, match="no record left"):
        model.unlearn(np.flatnonzero(y == "no")[np.flatnonzero(y == "no") != 4])


def test_budgets_that_a_shrunken_batch_cannot_have_are_left_out() -> None:
    X, y = clouds(12)
    model = CertifiedMLPClassifier(**BATCH).fit(X, y)
    model.unlearn([*range(8)])
    assert (model.trainings_, model._network.learned.budgets) == (2, (1, 2))
    with pytest.raises(ParameterError, match="at most 2"):
        model.certify(X, 5)


def test_the_name_of_a_removed_record_leaves_with_it(tmp_path: Path) -> None:
    X, y = clouds()
    frame = pd.DataFrame(X, index=[f"customer-{each}" for each in range(400)])
    model = CertifiedMLPClassifier(**BATCH).fit(frame, y)
    model.unlearn(index=["customer-333"])
    model.save(tmp_path / "model")
    assert b"customer-332" in (tmp_path / "model").read_bytes()
    assert b"customer-333" not in (tmp_path / "model").read_bytes()
    with pytest.raises(ParameterError, match="no record that is left has this label"):
        model.unlearn(index=["customer-333"])


def test_a_request_that_is_refused_keeps_names() -> None:
    X, y = clouds(8)
    frame = pd.DataFrame(X, index=[f"customer-{each}" for each in range(8)])
    model = CertifiedMLPClassifier(batch_size=2, budgets=1, random_state=0).fit(frame, y)
    batch = frame.index[model._network.places[0].numpy()]
    with pytest.raises(AssumptionError, match="all records that are left in a batch"):
        model.unlearn(index=batch)
    model.unlearn(index=batch[:1])
    assert len(model.remaining_) == 7


def test_a_file_without_boxes_certifies_nothing(tmp_path: Path) -> None:
    """A point in the place of each box would certify everything."""
    X, y = clouds()
    model = CertifiedMLPClassifier(step_size=3.0, budgets=5, bound=0.3, random_state=0).fit(X, y)
    assert model.certify(X, 5).mean() < 1
    model.save(tmp_path / "model", training_data=False)
    public = CertifiedMLPClassifier.load(tmp_path / "model")
    said = public.privacy_report(X)
    assert "Nothing is certified here" in said
    assert "Certified for" not in said
    assert "are left" not in said
    with pytest.raises(DataError, match="without its training data"):
        _ = public.budget_left_


def test_a_report_says_that_removals_so_far_count() -> None:
    X, y = clouds()
    model = CertifiedMLPClassifier(**BATCH).fit(X, y)
    model.unlearn([3, 4])
    said = model.privacy_report(X)
    assert "5 removals from each batch, including those since the last training (up to 2 of a batch):" in said
    assert "Certified for 2" not in said


def test_small_batches_answer_on_although_no_budget_is_left() -> None:
    X, y = clouds(10)
    model = CertifiedMLPClassifier(batch_size=2, budgets=1, random_state=0).fit(X, y)
    first, second = model._network.places[:2, 0].tolist()
    model.unlearn([first])
    labels = model.predict(grid())
    assert (model.trainings_, model.budget_left_) == (2, 0)
    assert model.certified_radius(X).max() == 0
    model.unlearn([second])
    assert model.trainings_ == 3
    fresh = CertifiedMLPClassifier(batch_size=2, budgets=1, random_state=0).fit(X, y)
    fresh.unlearn([first])
    assert np.array_equal(fresh.predict(grid()), labels)
    with pytest.raises(AssumptionError, match="no removal can be certified"):
        model.certificate(X)


def test_a_request_that_empties_a_batch_is_refused_at_once() -> None:
    """With additions the budget may be above the batch; nothing could be trained anew afterwards."""
    X, y = clouds(9)
    model = CertifiedMLPClassifier(
        batch_size=3, budgets=5, changes="additions and removals", random_state=0
    ).fit(X, y)  # fmt: skip
    with pytest.raises(AssumptionError, match="all records that are left in a batch"):
        model.unlearn(model._network.places[0].tolist())
    assert len(model.remaining_) == 9
    model.unlearn(model._network.places[0, :2].tolist())
    assert model.decision_function(X).shape == (9,)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"budgets": None}, r"budgets\[0\] must be a whole number, at least 1, got None"),
        ({"hidden_layer_sizes": None}, r"hidden_layer_sizes\[0\] must be"),
        ({"step_size": "fast"}, "step_size must be a finite number above 0, got 'fast'"),
        ({"step_size": None}, "step_size must be"),
        ({"decay": None}, "decay must be a finite number, at least 0, got None"),
        ({"momentum": "much"}, "momentum must be"),
        ({"weight_decay": True}, "weight_decay must be"),
        ({"bound": "tight"}, "bound must be a finite number above 0, got 'tight'"),
        ({"bound": True}, "bound must be"),
    ],
)
def test_what_is_no_number_is_refused_by_name(setting: dict[str, Any], said: str) -> None:
    X, y = clouds(40)
    with pytest.raises(ParameterError, match=said):
        CertifiedMLPClassifier(**setting).fit(X, y)


@pytest.mark.parametrize("y", [["no", "yes"], [["no"], ["yes"], ["no"]], "no"])
def test_a_certificate_needs_a_label_for_each_record(y: Any) -> None:
    X, labels = clouds(40)
    model = CertifiedMLPClassifier(random_state=0).fit(X, labels)
    with pytest.raises(DataError, match="y must hold one class for each of the 3 records"):
        model.certificate(X[:3], y)


@pytest.mark.parametrize("changed", [{"changes": "additions and removals"}, {"epochs": 1}, {"bound": 0.01}])
def test_a_file_states_no_parameters_that_were_set_after_fit(changed: dict[str, Any], tmp_path: Path) -> None:
    """The boxes of removals would be certified as those of additions once loaded."""
    X, y = clouds(40)
    model = CertifiedMLPClassifier(**BATCH).fit(X, y)
    before = model.get_params()
    model.set_params(**changed)
    assert model.certificate(X).epochs == 4
    with pytest.raises(ParameterError, match="changed after fit"):
        model.save(tmp_path / "model")
    model.set_params(**before).save(tmp_path / "model")
    CertifiedMLPClassifier.load(tmp_path / "model").check()
