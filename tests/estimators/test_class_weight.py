"""Weights of classes: scikit-learn's objective, records that count for at most 1, certificates that say so."""

import json

import numpy as np
import pytest
import safetensors
import torch
from sklearn.linear_model import LogisticRegression

from certified_unlearning import certificate
from certified_unlearning.certificate import CertificateError
from certified_unlearning.certificate.kinds import read_any
from certified_unlearning.engine import descent
from certified_unlearning.errors import ParameterError
from certified_unlearning.estimators import (
    CertifiedLogisticRegression,
    LangevinLogisticRegression,
    PublishedStateDescentToDelete,
    SecretStateDescentToDelete,
)
from certified_unlearning.estimators.class_weights import class_weights
from certified_unlearning.estimators.classifier import NoisyClassifier
from certified_unlearning.mechanisms.learners.descent import DescentLearner
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner
from certified_unlearning.mechanisms.refit_plan import RefitPlan

WEIGHTS = {"odd": 3.0, "even": 0.5}
C = 0.02


def theirs(rows, labels, weights, C=C):
    """scikit-learn's minimiser, the intercept regularised as ours."""
    with_one = np.column_stack([rows, np.ones(len(rows))])
    model = LogisticRegression(C=C, fit_intercept=False, class_weight=weights, tol=1e-12, max_iter=100_000)
    return model.fit(with_one, labels).coef_


def ours(model):
    return model._model.weights.reshape(1 if len(model.classes_) == 2 else len(model.classes_), -1) / np.sqrt(2)


def test_a_certified_model_is_scikit_learns_minimiser_before_and_after_removals(parity):
    rows, labels = parity
    model = CertifiedLogisticRegression(C=C, class_weight=WEIGHTS).fit(rows, labels)
    assert ours(model) == pytest.approx(theirs(rows, labels, WEIGHTS), abs=1e-6)
    assert ours(model) != pytest.approx(theirs(rows, labels, None), abs=1e-2), "the planted fault: no weights"
    gone = np.random.default_rng(0).permutation(600)[:60]
    for some in gone.reshape(20, 3):
        model.unlearn(some)
    kept = model.remaining_
    assert ours(model) == pytest.approx(theirs(rows[kept], labels[kept], WEIGHTS), abs=1e-5)
    certificate.verify(model.certificate_)


def test_newton_steps_read_no_data_and_end_within_their_budget():
    n, draw = 20_000, np.random.default_rng(1)
    rows = draw.standard_normal((n, 6))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.where(rows[:, 0] + 0.5 * draw.standard_normal(n) > 0, "odd", "even")
    model = CertifiedLogisticRegression(C=30 / n, class_weight=WEIGHTS).fit(rows, labels)
    for first in range(0, 12, 3):
        model.unlearn(range(first, first + 3))
    said = model.certificate_
    assert (said.scheduled_reads, said.unscheduled_reads) == (0, 0)
    apart = np.linalg.norm(ours(model) - theirs(rows[12:], labels[12:], WEIGHTS, C=30 / n)) * np.sqrt(2)
    assert apart <= said.budget / said.strong_convexity + 1e-7


def test_more_classes_are_weighted_alike(digits):
    rows, labels = digits
    weights = {0: 4.0, 7: 0.25}
    # So little noise has a budget that is finer than what is compared.
    model = CertifiedLogisticRegression(C=C, class_weight=weights, sigma=1e-4).fit(rows, labels).unlearn([3, 4])
    expected = theirs(np.delete(rows, [3, 4], axis=0), np.delete(labels, [3, 4]), weights)
    assert ours(model) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("several", [False, True])
def test_descent_without_noise_ends_at_scikit_learns_minimiser(parity, digits, several):
    rows, labels = digits if several else parity
    weights = {0: 4.0, 7: 0.25} if several else WEIGHTS
    model = SecretStateDescentToDelete(C=C, class_weight=weights, epsilon=50, dtype="float64").fit(rows, labels)
    found = model._state.reshape(model.coef_.shape[0], -1) / np.sqrt(2)
    assert found == pytest.approx(theirs(rows, labels, weights), abs=1e-4)
    certificate.verify(model.unlearn([1]).certificate_)


@pytest.mark.parametrize("batch_size", [None, 150])
@pytest.mark.parametrize("several", [False, True])
def test_noisy_steps_settle_around_scikit_learns_minimiser(parity, digits, batch_size, several, monkeypatch):
    """Without its noise: the law's centre. Records of two classes, or of ten; all at once, or in mini-batches."""
    monkeypatch.setattr(descent.randomness, "fill_blocks", lambda noise, *_: noise.zero_())
    rows, labels = digits if several else parity
    weights = {0: 4.0, 7: 0.25} if several else WEIGHTS
    options = {"C": C, "batch_size": batch_size, "dtype": "float64", "random_state": 0, "epsilon": 20}
    model = LangevinLogisticRegression(class_weight=weights, **options).fit(rows, labels)
    found = np.column_stack([model.coef_, model.intercept_])
    expected = theirs(rows, labels, weights)
    apart = np.linalg.norm(found - expected)
    # A cycle of mini-batches settles beside the minimiser; without weights it would be beside another.
    assert apart < (1e-3 if batch_size is None else 0.5 * np.linalg.norm(found - theirs(rows, labels, None)))
    certificate.verify(model.unlearn([1, 2]).certificate_)


@pytest.mark.parametrize(
    "make",
    [
        lambda **options: CertifiedLogisticRegression(C=C, **options),
        lambda **options: LangevinLogisticRegression(C=C, epsilon=5, batch_size=None, adjacency="replace", **options),
        lambda **options: LangevinLogisticRegression(C=C, epsilon=5, batch_size=150, **options),
        lambda **options: PublishedStateDescentToDelete(C=C, epsilon=5, **options),
    ],
)
class TestEveryEstimator:
    def test_equal_weights_of_2_are_twice_the_c(self, make, parity):
        heavy = make(random_state=0, class_weight={"odd": 2, "even": 2}).fit(*parity).unlearn([5])
        plain = make(random_state=0).set_params(C=2 * C).fit(*parity).unlearn([5])
        assert (heavy.coef_ == plain.coef_).all()
        assert plain.certificate_.class_weights is None
        assert heavy.certificate_.epsilon == plain.certificate_.epsilon

    def test_the_certificate_states_them_and_no_others_are_verified(self, make, parity, tmp_path):
        stated = make(random_state=0, class_weight=WEIGHTS).fit(*parity).unlearn([5]).certificate_
        assert stated.class_weights == (0.5 / 3, 1.0)
        assert any("class weights are constants" in each.statement for each in stated.assumptions)
        certificate.write(stated, tmp_path / "stated.json")
        again = read_any(tmp_path / "stated.json")
        certificate.verify(again)
        for forged in [(0.5, 3.0), (0.5,), (-0.1, 1.0), None]:
            with pytest.raises(CertificateError, match=r"class_weights|assumptions"):
                certificate.verify(again.model_copy(update={"class_weights": forged}))

    def test_a_certificate_without_weights_is_what_it_was(self, make, parity):
        plain = make(random_state=0).fit(*parity).unlearn([5]).certificate_
        assert "class_weights" not in plain.model_dump(mode="json")
        assert not any("class weights" in each.statement for each in plain.assumptions)

    def test_files_keep_them(self, make, digits, tmp_path):
        rows, labels = digits
        weights = {0: 2.0, 1: 1.0}
        model = make(random_state=0, class_weight=weights).fit(rows, labels % 2)
        model.save(tmp_path / "model")
        again = type(model).load(tmp_path / "model")
        assert again.get_params() == model.get_params()
        assert again.class_weight == weights, "labels that are numbers stay numbers"
        assert (again.unlearn([2, 9]).coef_ == model.unlearn([2, 9]).coef_).all()
        assert again.certificate_.class_weights == (1.0, 0.5)

    def test_files_of_before_they_were_kept_are_read(self, make, parity, tmp_path):
        model = make(random_state=0).fit(*parity)
        model.save(tmp_path / "model")
        with safetensors.safe_open(tmp_path / "model", framework="numpy") as file:
            header = json.loads(file.metadata()["estimator"])
            arrays = {name: torch.from_numpy(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
        assert "class_weights" not in json.dumps(header), "what is planned without weights says nothing of them"
        del header["parameters"]["class_weight"]
        safetensors.torch.save_file(arrays, tmp_path / "old", {"estimator": json.dumps(header)})
        assert (type(model).load(tmp_path / "old").unlearn([2]).coef_ == model.unlearn([2]).coef_).all()

    @pytest.mark.parametrize(
        ("weights", "said"),
        [
            ("balanced", "computed from the labels, so it depends on records that are removed later"),
            ("heavy", "must be None or a dict"),
            ([1, 2], "must be None or a dict"),
            ({"odd": -1}, "got -1 for 'odd'"),
            ({"odd": np.nan}, "got nan"),
            ({"odd": "much"}, "got 'much'"),
            ({"off": 2}, r"names \['off'\], but the classes of y are \['even', 'odd'\]"),
            ({"odd": 0, "even": 0}, "nothing would be learned"),
            (
                {"odd": 5e-324, "even": 5e-324},
                "weights in class_weight must be 0, or from 1e-100 to 1e.100, got 5e-324",
            ),
            ({"odd": 10**400}, "weights in class_weight must be 0, or from 1e-100 to 1e.100, got 1000"),
            ({"odd": np.complex128(0.5 + 9j)}, "weights in class_weight must be 0, or"),
        ],
    )
    def test_what_makes_no_sense_is_refused_in_one_sentence(self, make, parity, weights, said):
        with pytest.raises(ParameterError, match=said) as refused:
            make(class_weight=weights).fit(*parity)
        assert "\n" not in str(refused.value)


def test_no_share_is_above_1_and_classes_that_are_not_named_have_1():
    assert class_weights({3: 0.5}, np.array([1, 2, 3])) == (1.0, (1.0, 1.0, 0.5))
    draw = np.random.default_rng(2)
    for _ in range(200):
        weights = dict(enumerate(draw.lognormal(0, 3, 4)))
        largest, shares = class_weights(weights, np.arange(4))
        assert max(shares) == 1.0
        assert np.array(shares) * largest == pytest.approx(list(weights.values()), rel=1e-15)


def test_the_advice_counts_the_largest_weight(parity):
    model = LangevinLogisticRegression(C=1, epsilon=0.5, batch_size=None, class_weight={"odd": 1000})
    model.n_features_in_, model.classes_ = parity[0].shape[1], np.array(["even", "odd"])
    with pytest.warns(UserWarning, match="little can be learned") as warned:
        NoisyClassifier._warn_of(model, model._planned(len(parity[0])), parity[0])
    assert "would do" in str(warned[0].message), "an advised C is found among small ones, too"


@pytest.mark.parametrize("shares", [(0.5, 3.0), (1.0,), (-0.1, 1.0), (float("nan"), 1.0)])
@pytest.mark.parametrize(
    "plan",
    [
        lambda **some: LangevinLearner.plan(regularisation=1e-3, **some),
        lambda **some: MiniBatchLearner.plan(regularisation=1e-3, batch_size=10, **some),
        lambda **some: DescentLearner.plan(regularisation=1e-3, variant="secret-state", **some),
        lambda **some: RefitPlan.make(strong_convexity=0.1, sigma=0.01, **some),
    ],
)
def test_no_plan_takes_weights_with_which_a_record_would_count_for_more_than_1(plan, shares):
    with pytest.raises(ParameterError, match="class_weights must be 2 numbers from 0 to 1"):
        plan(n=100, features=3, classes=2, epsilon=1.0, delta=1e-3, class_weights=shares)
