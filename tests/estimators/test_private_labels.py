"""Private labels of `CertifiedMLPClassifier`: names of classes, what is refused, and removals before and after."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from certified_unlearning import CertifiedMLPClassifier
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.estimators.network.releases import PrivateLabels

X, NUMBERS = make_blobs(300, centers=[[1, 1], [-1, -1]], cluster_std=0.5, random_state=0)
Y = np.array(["cat", "dog"])[NUMBERS]


def fitted(**parameters):
    chosen = {"budgets": range(1, 31), "changes": "additions and removals", "bound": 0.05, "random_state": 0}
    return CertifiedMLPClassifier((), **(chosen | parameters)).fit(X, Y)


def test_labels_are_classes_or_none():
    model = fitted()
    assert (model.certified_radius(X) == 30).mean() > 0.5
    sure = X[model.certified_radius(X) == 30][:40]
    stable = PrivateLabels(model, rule="stable", epsilon=1.0, delta=1e-6, queries=41)
    # Withheld or wrong with probability at most 40 x 0.5e-7: exp(-(30 - 13.8)) / 2 each.
    assert stable.predict(sure).tolist() == model.predict(sure).tolist()
    assert stable.spent_ == pytest.approx((40, 4e-5))
    unsure = PrivateLabels(model, rule="stable", epsilon=1.0, delta=1e-9, queries=200)
    between = np.linspace(-0.3, 0.3, 201)[:, None] * [1, 1]
    row = between[[int(np.argmin(model.certified_radius(between)))]]
    # Its radius is 0: answered with probability 200 x 0.5e-9.
    assert model.certified_radius(row) == [0]
    assert {*unsure.predict(np.repeat(row, 200, axis=0)).tolist()} == {None}
    noisy = PrivateLabels(model, rule="cauchy", epsilon=1.0, queries=200)
    # At radius 0 a label is the other one in 47 %: all of 200 alike with probability below 1e-50.
    assert {*noisy.predict(np.repeat(row, 200, axis=0)).tolist()} == {"cat", "dog"}
    with pytest.raises(ParameterError, match="at most 0, because 0 of 200 queries are left, got 1"):
        noisy.predict(row)


def test_draws_are_new_each_time_whatever_the_seed_of_the_model():
    model = fitted(random_state=3)
    row = np.repeat(X[:1], 100, axis=0)
    one, two = (PrivateLabels(model, rule="laplace", epsilon=0.1, delta=1e-6, queries=100).predict(row) for _ in "12")
    # Both labels have at least 48 % each: equal by chance with probability below 2^-99.
    assert one.tolist() != two.tolist()


def test_what_voids_the_guarantee_is_refused():
    with pytest.raises(AssumptionError, match="boxes for the changes 'additions and removals', got 'removals'"):
        PrivateLabels(fitted(changes="removals"), rule="cauchy", epsilon=1.0)
    with pytest.raises(AssumptionError, match="k = 3 is missing"):
        PrivateLabels(fitted(budgets=(1, 2, 4, 8)), rule="cauchy", epsilon=1.0)
    with pytest.raises(ParameterError, match="delta must lie strictly between 0 and 1"):
        PrivateLabels(fitted(), rule="laplace", epsilon=1.0)


def test_a_model_with_removals_is_trained_anew_first(tmp_path):
    model = fitted().unlearn([3, 4])
    assert model.trainings_ == 1
    found = PrivateLabels(model, rule="cauchy", epsilon=1.0)
    assert model.trainings_ == 2
    assert any("differ by at most one" in each.statement for each in found.release.assumptions)
    assert any("must stay secret" in each for each in found.release.not_promised)
    model.save(tmp_path / "model.safetensors", training_data=False)
    with pytest.raises(DataError, match="saved without its training data"):
        PrivateLabels(CertifiedMLPClassifier.load(tmp_path / "model.safetensors"), rule="cauchy", epsilon=1.0)
