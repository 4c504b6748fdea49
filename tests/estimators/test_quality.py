"""How good a model is, beside the majority line; and the warning when noise drowns whatever is learned."""

import warnings

import numpy as np
import pytest
from sklearn import metrics

from certified_unlearning.accounting.core.scale import weights_bound
from certified_unlearning.data.quality import ClassQuality, Quality, quality_of
from certified_unlearning.errors import ParameterError, UnlearningError
from certified_unlearning.estimators import (
    CertifiedLogisticRegression,
    LangevinLogisticRegression,
    PublishedStateDescentToDelete,
    SecretStateDescentToDelete,
)
from certified_unlearning.estimators.classifier import NoisyClassifier
from certified_unlearning.mechanisms.learners.descent import DescentLearner
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from tests.estimators.conftest import CLASSIFIERS


class TestLogProbabilities:
    @pytest.mark.parametrize("classes", [2, 10])
    def test_they_are_the_logarithms_of_the_probabilities(self, digits, parity, classes):
        rows, labels = parity if classes == 2 else digits
        fitted = CertifiedLogisticRegression(C=0.1, random_state=0).fit(rows, labels)
        logarithms = fitted.predict_log_proba(rows)
        assert logarithms.shape == (600, classes)
        np.testing.assert_allclose(logarithms, np.log(fitted.predict_proba(rows)), rtol=1e-12)

    @pytest.mark.parametrize("classes", [2, 10])
    def test_they_stay_finite_where_probabilities_are_zero(self, digits, parity, classes):
        rows, labels = parity if classes == 2 else digits
        fitted = CertifiedLogisticRegression(C=0.1, random_state=0).fit(rows, labels)
        fitted._weights = fitted._weights * 1e5
        scores = fitted.decision_function(rows)
        assert (fitted.predict_proba(rows) == 0).any()
        logarithms = fitted.predict_log_proba(rows)
        assert np.isfinite(logarithms).all()
        if classes == 2:
            np.testing.assert_allclose(logarithms[:, 1] - logarithms[:, 0], scores, rtol=1e-9)
        else:
            np.testing.assert_allclose(logarithms, scores - scores.max(axis=1, keepdims=True), rtol=1e-6, atol=1e-3)


class TestQuality:
    @pytest.mark.parametrize("classes", [2, 10])
    def test_it_is_what_scikit_learns_metrics_say(self, digits, parity, classes):
        rows, labels = parity if classes == 2 else digits
        fitted = LangevinLogisticRegression(C=0.1, random_state=0).fit(rows[:400], labels[:400])
        said, true = fitted.quality(rows[400:], labels[400:]), labels[400:]
        probabilities = fitted.predict_proba(rows[400:])
        scores = probabilities[:, 1] if classes == 2 else probabilities
        assert said.records == 200
        assert said.accuracy == fitted.score(rows[400:], true)
        assert said.balanced_accuracy == metrics.balanced_accuracy_score(true, fitted.predict(rows[400:]))
        assert said.auc == pytest.approx(metrics.roc_auc_score(true, scores, multi_class="ovr"), rel=1e-12)
        assert said.log_loss == pytest.approx(metrics.log_loss(true, probabilities), rel=1e-12)
        assert said.majority == np.unique(true, return_counts=True)[1].max() / 200
        assert said.beats_majority
        assert said.no_auc is None

    def test_an_absent_class_leaves_no_auc_and_says_which(self):
        probabilities = [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            said = quality_of(probabilities, ["a", "b", "a"], ["a", "b", "c"])
        assert said.auc is None
        assert said.no_auc == "no record of class 'c'"
        assert said.accuracy == pytest.approx(2 / 3)
        assert said.balanced_accuracy == 0.75
        assert said.majority == pytest.approx(2 / 3)
        assert said.log_loss == pytest.approx(-np.log([0.7, 0.7, 0.1]).mean())
        assert "no AUC (no record of class 'c')" in said.in_words()[0]
        assert "no more often than always predicting the most frequent class" in said.in_words()[1]
        by_class = (ClassQuality(3, None, None, 0, 0), ClassQuality(7, 1.0, 1.0, 1, 1))
        assert quality_of([[0.4, 0.6]], [7], [3, 7]) == Quality(1, 1, None, -np.log(0.6), 1, 1, said_of(3), 1, by_class)

    @pytest.mark.parametrize(
        ("probabilities", "labels", "message"),
        [
            ([[0.5, 0.5]], ["c"], "labels contain 'c', but must be among the classes 'a', 'b'"),
            ([[0.5, 0.5]], [], "must have shape .0, 2., got .1, 2."),
            ([[0.5, 0.5]], [["a"]], "labels must be one class for each record, got shape"),
            ([[0.5, 0.5]], ["a", "b"], "must have shape .2, 2., got .1, 2."),
        ],
    )
    def test_labels_that_do_not_fit_are_refused(self, probabilities, labels, message):
        with pytest.raises(ParameterError, match=message):
            quality_of(probabilities, labels, ["a", "b"])

    @pytest.mark.parametrize("make", CLASSIFIERS)
    def test_a_report_has_a_line_on_it_when_data_are_given(self, make, parity):
        fitted = make(C=0.1, random_state=0).fit(*parity)
        before = fitted.privacy_report()
        report = fitted.privacy_report(*parity)
        assert report.startswith(before)
        (line,) = report.removeprefix(before).strip().split("\n")
        assert line.startswith("Quality on 600 records: accuracy 0.")
        assert "Warning" not in report
        with pytest.raises(ParameterError, match="give X and y together, or neither, got X only"):
            fitted.privacy_report(parity[0])

    def test_a_report_warns_of_a_model_that_is_worth_nothing(self, parity):
        fitted = CertifiedLogisticRegression(C=0.1, random_state=0).fit(*parity)
        fitted._weights = -fitted._weights
        assert "Warning: the model hardly tells the classes apart: balanced accuracy 0." in fitted.privacy_report(
            *parity
        )


def said_of(number):
    return f"no record of class {number}"


class TestDrowning:
    @pytest.mark.parametrize("make", CLASSIFIERS)
    @pytest.mark.parametrize("parameters", [{}, {"epsilon": 0.1, "delta": "1/n"}, {"C": 0.1}, {"C": 1e-3}, {"C": 3}])
    def test_reasonable_models_do_not_warn(self, make, parameters):
        """Planned, not fitted, with the sizes of ordinary tables."""
        for n in (150, 1000, 30_000):
            for classes in (2, 10):
                model = make(**parameters)
                try:
                    model.n_features_in_, model.classes_, model._fits_sparse_rows = 19, np.arange(classes), False
                    plan = model._planned(n)
                except UnlearningError:
                    continue  # Refused anyway, with a sentence of its own.
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    NoisyClassifier._warn_of(model, plan, np.empty((n, 19)))

    @pytest.mark.parametrize("make", CLASSIFIERS)
    def test_defaults_do_not_warn_when_fitted(self, make, digits, parity):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for data in (digits, parity):
                make(C=0.1, random_state=0).fit(*data)

    @pytest.mark.parametrize(
        ("make", "n", "parameters"),
        [
            (LangevinLogisticRegression, 300, {"C": 30.0, "epsilon": 0.05}),
            (SecretStateDescentToDelete, 300, {"C": 30.0, "epsilon": 0.05}),
            (PublishedStateDescentToDelete, 20, {"C": 5000.0, "epsilon": 0.05}),
            (CertifiedLogisticRegression, 300, {"C": 1e-7}),
        ],
    )
    def test_a_hopeless_c_warns_and_the_one_advised_does_not(self, make, n, parameters, parity, monkeypatch):
        rows, labels = parity
        for learner in (LangevinLearner, DescentLearner):
            monkeypatch.setattr(learner, "learn", nothing_learned)  # It would take long, and comes after.
        model = make(**parameters, random_state=0)
        with pytest.warns(UserWarning, match="little can be learned with C = ") as warned:
            model.fit(rows[:n], labels[:n])
        assert warned[0].filename == __file__
        advised = float(str(warned[0].message).split("; C = ")[1].split(" would do")[0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.set_params(C=advised).fit(rows[:n], labels[:n])

    def test_where_no_c_would_do_it_says_so(self, parity, monkeypatch):
        monkeypatch.setattr(LangevinLearner, "learn", nothing_learned)
        with pytest.warns(UserWarning, match="no value of C would do: this takes less noise than sigma = 50"):
            LangevinLogisticRegression(sigma=50.0).fit(*parity)

    @pytest.mark.parametrize("classes", [2, 10])
    @pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 100.0])
    def test_no_score_of_the_optimum_is_above_the_bound(self, digits, parity, classes, C):
        rows, labels = parity if classes == 2 else digits
        fitted = CertifiedLogisticRegression(1, 1e-4, C=C, sigma=1e-4, fit_intercept=False).fit(rows, labels)
        largest = np.abs(fitted.decision_function(rows)).max()
        assert largest <= weights_bound(classes=classes, strong_convexity=fitted._plan.strong_convexity) + 1e-2


def nothing_learned(self, rows, labels, *_, **__):
    return rows.new_zeros(1, self.dimension)
