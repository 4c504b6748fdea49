"""A reading washes out what was removed: the secret state after it is a function of the remaining records alone."""

from typing import Any

import numpy as np
import pytest

from certified_unlearning.estimators import CertifiedLogisticRegression, CertifiedRidge
from certified_unlearning.mechanisms import certified_refit
from certified_unlearning.mechanisms.certified_refit import Fitted, objective_of
from certified_unlearning.mechanisms.newton_removal import Model, NewtonRemoval
from certified_unlearning.mechanisms.refit_plan import RefitPlan

GONE = np.array([3, 17, 40, 256])


def records(n: int, d: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm 1, and targets in [-1, 1] (1 class), signs (2 classes) or numbers of classes."""
    draw = np.random.default_rng(seed)
    rows = draw.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scores = rows @ draw.standard_normal((d, max(classes, 2))) + 0.3 * draw.standard_normal((n, max(classes, 2)))
    if classes == 1:
        return rows, np.clip(scores[:, 0], -1, 1)
    labels = scores.argmax(axis=1)
    return rows, (2.0 * labels - 1 if classes == 2 else labels)


def others_removed(n: int, d: int, classes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two data sets that differ in the records that are going to be removed, and in nothing else."""
    rows, labels = records(n, d, classes)
    other_rows = rows.copy()
    other_rows[GONE] *= -1
    return [(rows, labels), (other_rows, labels.copy())]


def numbers_of(model: Model | Fitted) -> list[np.ndarray]:
    """All numbers of a secret state."""
    numbers = [model.weights, np.array(model.residual)]
    if isinstance(model, Model):
        c = model.curvature
        numbers += [c.at, c.matrix, c.factor, np.array([c.error, c.not_downdated, c.usable])]
    return numbers


def are_equal(one: Model | Fitted, other: Model | Fitted) -> bool:
    return all((a == b).all() for a, b in zip(numbers_of(one), numbers_of(other), strict=True))


def after_a_reading(rows: np.ndarray, labels: np.ndarray, kind: str, **options: Any) -> tuple[Model, Model]:
    """Remove `GONE` by Newton removal with a reading of some kind; return the model before it and after."""
    classes = 1 if len(np.unique(labels)) > 2 else 2
    between = 3 if kind == "scheduled" else len(rows)
    given = {"strong_convexity": 1 / 80, "epsilon": 1, "delta": 1e-6, "sigma": 1e-3, "records_between_reads": between}
    plan = RefitPlan.make(n=len(rows), features=rows.shape[1], classes=classes, **given | options)
    how = NewtonRemoval(plan)
    before = how.fit(rows, labels)
    if kind == "interrupted":
        before.curvature.usable = False
    gone, gone_labels = rows[GONE].copy(), labels[GONE].copy()
    rows[GONE], labels[GONE] = 0, 0
    after, reading = how.remove(before, gone, gone_labels, rows, labels, since_read=0)
    assert reading == ("scheduled" if kind == "scheduled" else "unscheduled")
    return before, after


@pytest.mark.parametrize("n", [500, 7000])
@pytest.mark.parametrize("downdate", [True, False])
@pytest.mark.parametrize("kind", ["scheduled", "unscheduled", "interrupted"])
def test_a_reading_of_newton_removal_depends_on_no_removed_record(kind: str, downdate: bool, n: int):
    # So little noise has so small a budget that four records exceed it.
    options = {"downdate": downdate, "sigma": 1e-7 if kind == "unscheduled" else 1e-3}
    (_, one), (_, other) = (after_a_reading(*data, kind, **options) for data in others_removed(n, 4, 2))
    assert are_equal(one, other)


@pytest.mark.parametrize("kind", ["scheduled", "interrupted"])
def test_a_reading_of_ridge_regression_depends_on_no_removed_record(kind: str):
    (_, one), (_, other) = (after_a_reading(*data, kind) for data in others_removed(500, 4, 1))
    assert are_equal(one, other)


@pytest.mark.parametrize("classes", [1, 2])
def test_after_an_interruption_no_number_of_the_old_weights_stays(classes: int):
    rows, labels = records(500, 4, classes)
    before, after = after_a_reading(rows, labels, "interrupted", sigma=100.0)
    assert not np.isin(before.weights, np.concatenate([after.weights, after.curvature.at])).any()


@pytest.mark.parametrize(
    ("estimator", "classes", "shape"),
    [
        (CertifiedLogisticRegression(C=0.1, sigma=0.1, records_between_reads=3, random_state=0), 2, (500, 4)),
        (CertifiedLogisticRegression(C=0.1, sigma=0.1, random_state=0), 3, (500, 4)),
        (CertifiedLogisticRegression(C=0.01, sigma=0.1, random_state=0), 3, (7000, 4)),
        (CertifiedLogisticRegression(C=0.1, sigma=0.1, random_state=0), 2, (300, 5001)),
        (CertifiedRidge(sigma=0.1, target_range=(-1, 1), records_between_reads=3, random_state=0), 1, (500, 4)),
        (CertifiedRidge(sigma=0.1, target_range=(-1, 1), random_state=0), 1, (300, 5001)),
    ],
    ids=["two classes", "three classes", "three classes, a sample first", "wide rows", "ridge", "wide rows, ridge"],
)
def test_a_file_saved_after_a_reading_is_the_same_whatever_the_removed_records_were(
    tmp_path, estimator: Any, classes: int, shape: tuple[int, int]
):
    """All of it, byte for byte: weights without noise, matrix and factor, the training copy, counts."""
    saved = []
    for each, (rows, labels) in enumerate(others_removed(*shape, classes)):
        model = estimator.fit(rows, labels)
        for gone in (GONE[:2], GONE[2:]):
            model.unlearn(gone)
        assert model.certificate_.scheduled_reads >= 1
        model.save(tmp_path / str(each))
        saved.append((tmp_path / str(each)).read_bytes())
    assert saved[0] == saved[1]


def test_a_refit_takes_steps_although_the_old_weights_are_within_the_budget():
    """One record of many: the old weights' gradient is small enough without it, and yet the secret weights change."""
    rows, labels = records(20_000, 4, 3)
    model = CertifiedLogisticRegression(C=80 / 20_000, delta=1e-6, sigma=0.1, random_state=0).fit(rows, labels)
    plan, before = model._plan, model._model.weights
    model.unlearn([3])
    left = objective_of(plan, model._store.rows, model._store.labels)
    assert np.linalg.norm(left.gradient(before)) < certified_refit.SOLVER_SHARE * plan.budget
    assert (model._model.weights != before).all()
