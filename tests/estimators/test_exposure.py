"""Reports of exposed records, which nothing prints by itself; the mean certified share, published with noise."""

import itertools
import math

import numpy as np
import pytest
import torch

from certified_unlearning import CertifiedMLPClassifier
from certified_unlearning.accounting.core.conversion import delta_from_mu
from certified_unlearning.accounting.private.stable_labels import mean_share_sensitivity
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.estimators.network.exposure import exposed_records
from certified_unlearning.estimators.network.releases import publish_mean_share
from certified_unlearning.mechanisms.certified_sgd import releases
from tests.estimators.test_certified_mlp import clouds
from tests.estimators.test_private_labels import X, Y, fitted


def overlapping(**parameters) -> CertifiedMLPClassifier:
    rows, labels = clouds(150)
    chosen = {"budgets": (1, 3), "changes": "additions and removals", "bound": 0.2, "random_state": 0, "epochs": 3}
    return CertifiedMLPClassifier((4,), **(chosen | parameters)).fit(rows, labels)


def test_exposed_records_are_those_whose_own_prediction_is_not_certified() -> None:
    model = overlapping()
    found = exposed_records(model)
    rows, labels = clouds(150)
    assert sorted(found.positions.tolist()) == [*range(150)]
    assert found.radii.tolist() == model.certified_radius(rows[found.positions]).tolist()
    assert found.radii.tolist() == sorted(found.radii.tolist())
    assert 0 < (found.radii == 0).sum() < 150
    assert found.right.tolist() == (model.predict(rows) == labels)[found.positions].tolist()
    table = found.most(5)
    assert table["record"].tolist() == found.positions[:5].tolist()
    pairs = list(zip(found.radii.tolist(), found.margins.tolist(), strict=True))
    assert pairs == sorted(pairs)
    assert found.of(int(found.positions[-1])) == found.radii[-1]
    assert (
        f"Of 150 records, {int((found.radii == 0).sum())} have a prediction that no budget certifies" in found.summary()
    )


def test_only_exposed_records_are_predicted_otherwise_without_them() -> None:
    """Each record is left out in turn; some predictions change, so that this can fail."""
    model = overlapping(bound=0.5, step_size=4.0)
    found = exposed_records(model)
    radii = dict(zip(found.positions.tolist(), found.radii.tolist(), strict=True))
    changed = []
    for record in range(150):
        present = torch.arange(150) != record
        network, store, row = model._network, model._store, model._store.rows[[record]]
        other = network.settings.learn(store.rows, store.labels, network.places, network.start, present, [0])
        if not torch.equal(other.classes(row), network.learned.classes(row)):
            changed.append(record)
    assert changed
    assert all(radii[record] == 0 for record in changed)


def test_nothing_about_a_record_is_printed_by_itself() -> None:
    found = exposed_records(overlapping())
    assert repr(found) == str(found) == f"{found}" == "<secret: exposure of 150 records; see most() and summary()>"
    assert found.summary().splitlines()[-1].startswith("Secret: ")


def test_records_that_left_or_were_never_in_a_batch_are_not_reported(tmp_path) -> None:
    model = overlapping(batch_size=60)
    unseen = sorted({*range(150)} - {*model._network.places.flatten().tolist()})
    assert len(unseen) == 30
    gone = int(model._network.places[0, 0])
    model.unlearn([gone])
    found = exposed_records(model)
    assert model.trainings_ == 2
    assert sorted(found.positions.tolist()) == sorted({*range(150)} - {*unseen, gone})
    for record in (gone, unseen[0], 150):
        with pytest.raises(ParameterError, match="a remaining record that is in a batch"):
            found.of(record)
    with pytest.raises(ParameterError, match="count must be a whole number, at least 1"):
        found.most(0)
    model.save(tmp_path / "handed-out", training_data=False)
    with pytest.raises(DataError, match="without its training data"):
        exposed_records(CertifiedMLPClassifier.load(tmp_path / "handed-out"))


def test_public_rows_are_nobodys() -> None:
    rows, labels = clouds(150)
    model = CertifiedMLPClassifier((4,), budgets=1, random_state=0, epochs=3)
    found = exposed_records(model.fit(rows[:50], labels[:50], public_X=rows[50:], public_y=labels[50:]))
    assert sorted(found.positions.tolist()) == [*range(50)]


# --- The mean share --------------------------------------------------------------------------------------------------


def test_the_share_is_that_of_all_k_with_the_noise_that_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted()
    points = X[::3]
    quiet = monkeypatch.context
    exact = np.mean([model.certify(points, k).mean() for k in range(1, 31)])
    with quiet() as patch:
        patch.setattr(releases.secrets, "SystemRandom", lambda: type("Still", (), {"gauss": lambda *_: 0.0})())
        released = publish_mean_share(model, points, epsilon=1.0, delta=1e-6)
    assert released.share == pytest.approx(exact, abs=released.sigma / 100)
    assert released.sensitivity == pytest.approx(1 / 30, rel=1e-12)
    # The exact mechanism: at this sigma delta is what was asked for, and not more.
    spent = delta_from_mu(released.sensitivity / released.sigma, 1.0)
    assert spent <= 1e-6
    assert spent == pytest.approx(1e-6, rel=1e-6)


def test_radii_are_of_bounds_that_neighbours_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """By lines that depend on the box neighbours' radii could differ by more than one."""
    seen = []
    monkeypatch.setattr(releases, "_radii", lambda learned, rows: seen.append(learned.differences) or [0] * len(rows))
    model = CertifiedMLPClassifier((4,), budgets=(1,), changes="additions and removals", random_state=0).fit(X, Y)
    assert model._network.learned.differences == "updated"
    publish_mean_share(model, X, epsilon=1.0, delta=1e-6)
    assert seen == ["joint"]


def test_noise_has_the_deviation_that_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """2000 draws: their mean square over sigma^2 is chi-square; outside these bounds with probability below 1e-8."""
    model = fitted()
    monkeypatch.setattr(releases, "_radii", lambda learned, rows: [15] * len(rows))
    drawn = [publish_mean_share(model, X[:4], epsilon=2.0, delta=1e-3) for _ in range(2000)]
    sigma = drawn[0].sigma
    assert 3.5 * sigma < 0.5  # So that hardly any is cut off at 0 or 1.
    ratio = np.mean([(each.share - 0.5) ** 2 for each in drawn]) / sigma**2
    assert 1 - 6.2 * math.sqrt(2 / 2000) < ratio < 1 + 6.2 * math.sqrt(2 / 2000)


@pytest.mark.parametrize("own", [True, False])
def test_no_neighbour_moves_a_mean_share_by_more_than_its_sensitivity(own: bool) -> None:
    """Every change of radii by at most one, and of one's own by any amount; some neighbour attains it."""
    largest, inputs = 3, 3
    moved = 0.0
    for radii in itertools.product(range(largest + 1), repeat=inputs):
        for steps in itertools.product((-1, 0, 1), repeat=inputs):
            others = [each + step for each, step in zip(radii, steps, strict=True)]
            for replaced in range(largest + 1) if own else (others[0],):
                changed = [replaced, *others[1:]]
                if all(0 <= each <= largest for each in changed):
                    moved = max(moved, abs(sum(changed) - sum(radii)) / (inputs * largest))
    assert moved <= mean_share_sensitivity(largest, inputs=inputs, own=own)
    assert moved == pytest.approx(mean_share_sensitivity(largest, inputs=inputs, own=own))


def test_radii_of_trained_neighbours_move_shares_by_no_more() -> None:
    """One record of the batch is replaced by others, far ones among them."""
    rows, labels = clouds(60)
    settings = {
        "budgets": range(1, 6),
        "changes": "additions and removals",
        "bound": 0.2,
        "random_state": 0,
        "epochs": 2,
    }

    def shares(X: np.ndarray, y: np.ndarray) -> float:
        model = CertifiedMLPClassifier((3,), **settings).fit(X, y)
        learned = model._network.learned
        joint = releases.replace(learned, bounding=releases.replace(learned.bounding, differences="joint"))
        return float(np.mean(releases._radii(joint, torch.as_tensor(clouds(200, seed=1)[0])))) / 5

    whole, moved = shares(rows, labels), []
    for record, value, label in ((0, 100.0, "yes"), (1, -3.0, "yes"), (2, 0.0, "no")):
        X, y = rows.copy(), labels.copy()
        X[record], y[record] = value, label
        moved.append(abs(shares(X, y) - whole))
    assert 0 < max(moved) <= mean_share_sensitivity(5, inputs=200, own=False)


def test_what_voids_the_guarantee_is_refused() -> None:
    with pytest.raises(AssumptionError, match="boxes for the changes 'additions and removals', got 'removals'"):
        publish_mean_share(fitted(changes="removals"), X, epsilon=1.0, delta=1e-6)
    with pytest.raises(AssumptionError, match="k = 3 is missing"):
        publish_mean_share(fitted(budgets=(1, 2, 4)), X, epsilon=1.0, delta=1e-6)
    model = fitted()
    with pytest.raises(AssumptionError, match=r"must be 'replace-one' .* got 'add-remove'"):
        publish_mean_share(model, epsilon=1.0, delta=1e-6, relation="add-remove")
    assert publish_mean_share(model, X, epsilon=1.0, delta=1e-6, relation="add-remove").relation == "add-remove"
    for wrong in ({"epsilon": 0.0, "delta": 1e-6}, {"epsilon": 1.0, "delta": 0.0}):
        with pytest.raises(ParameterError):
            publish_mean_share(model, X, **wrong)
    own = publish_mean_share(model, epsilon=1.0, delta=1e-6)
    assert (own.own, own.inputs) == (True, len(Y))
    assert own.sensitivity == pytest.approx((299 + 30) / (300 * 30))
