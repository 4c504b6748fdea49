"""`strategy="one-vs-rest"`: scikit-learn's OneVsRestClassifier, with removals, one certificate, files, sparse rows."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import normalize

from certified_unlearning import certificate
from certified_unlearning.certificate import ResidualCertificate
from certified_unlearning.engine.objectives.float64 import Regression
from certified_unlearning.errors import ParameterError
from certified_unlearning.estimators import CertifiedLogisticRegression
from certified_unlearning.mechanisms import refit_plan
from certified_unlearning.mechanisms.newton_removal import NewtonRemoval

C = 80 / 600


def model_of(**options: object) -> CertifiedLogisticRegression:
    given = {"epsilon": 1, "delta": 1e-6, "C": C, "random_state": 0, "strategy": "one-vs-rest", "fit_intercept": False}
    return CertifiedLogisticRegression(**given | options)


def theirs(rows: np.ndarray, labels: np.ndarray, C: float = C, **options: object) -> OneVsRestClassifier:
    return OneVsRestClassifier(LogisticRegression(C=C, fit_intercept=False, tol=1e-12, max_iter=10_000, **options)).fit(
        rows, labels
    )


def coefficients(model: OneVsRestClassifier) -> np.ndarray:
    return np.concatenate([each.coef_ for each in model.estimators_])


def secret(model: CertifiedLogisticRegression) -> np.ndarray:
    return model._model.weights.reshape(len(model.classes_), -1)


def test_it_is_as_accurate_as_scikit_learns():
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(normalize(images - 8), labels, test_size=1000, random_state=0, stratify=labels)
    rows, test, labels, test_labels = split
    for strength in (1.0, 80 / len(rows)):
        ours = CertifiedLogisticRegression(1, 1e-6, C=strength, strategy="one-vs-rest", random_state=0)
        usual = OneVsRestClassifier(LogisticRegression(C=strength)).fit(rows, labels)
        assert abs(ours.fit(rows, labels).score(test, test_labels) - usual.score(test, test_labels)) <= 0.002


def test_scores_and_probabilities_are_scikit_learns(digits):
    rows, numbers = digits
    labels = np.array([f"digit {each}" for each in numbers])
    model, usual = model_of(sigma=1e-5).fit(rows, labels), theirs(rows, labels)
    assert secret(model) == pytest.approx(coefficients(usual), abs=1e-5)
    assert model.coef_.shape == (10, 64)
    assert model.decision_function(rows) == pytest.approx(usual.decision_function(rows), abs=1e-3)
    assert model.predict_proba(rows) == pytest.approx(usual.predict_proba(rows), abs=1e-3)
    assert np.exp(model.predict_log_proba(rows)) == pytest.approx(model.predict_proba(rows))
    assert (model.predict(rows) == usual.predict(rows)).mean() > 0.995
    assert model.predict_log_proba(1000 * rows[:5]).max() <= 0
    assert np.isfinite(model.predict_log_proba(1000 * rows[:5])).all()


@pytest.mark.parametrize("options", [{}, {"downdate": False}, {"strict_timing": True, "sigma": 3.0}], ids=str)
def test_removals_end_where_refits_from_scratch_do(options: dict[str, object], digits):
    rows, labels = digits
    gone = np.random.default_rng(1).permutation(600)[:30]
    model = model_of(**options).fit(rows, labels)
    for each in gone.reshape(10, 3):
        model.unlearn(each)
        certificate.verify(model.certificate_)
    kept = np.setdiff1d(np.arange(600), gone)
    said = model.certificate_
    apart = np.linalg.norm(secret(model) - coefficients(theirs(rows[kept], labels[kept])))
    assert apart <= said.budget / said.strong_convexity + 1e-6
    assert (said.loss, said.mechanism, said.releases, said.d) == ("one-vs-rest", "newton-removal", 11, 640)
    assert "against the rest" in said.comparator
    assert said.strict == ("strict_timing" in options)
    if said.strict:
        assert said.unscheduled_reads == 0
        assert said.scheduled_reads < 10


def test_the_noise_and_the_certificate_are_those_of_all_classes_together(digits):
    rows, labels = digits
    model = model_of(sigma=0.01, random_state=None).fit(rows, labels)
    noise = (model.coef_ - secret(model)).ravel()
    # 640 numbers: outside this range with a probability below 1e-6.
    assert 0.0085 < noise.std() < 0.0115
    said, softmax = model.certificate_, CertifiedLogisticRegression(1, 1e-6, C=C).fit(rows, labels).certificate_
    assert (said.epsilon, said.mu) == pytest.approx((softmax.epsilon, softmax.mu))
    assert said.noise_resolution > 0
    with pytest.raises(certificate.CertificateError, match="mechanism"):
        certificate.verify(ResidualCertificate.model_validate(said.model_dump() | {"loss": "logistic"}))
    with pytest.raises(certificate.CertificateError, match="mechanism"):
        certificate.verify(ResidualCertificate.model_validate(said.model_dump() | {"loss": "softmax"}))


@pytest.mark.parametrize("removals", [0, 4])
def test_class_weights_are_those_of_each_records_own_class(removals: int, digits):
    """As liblinear and scikit-learn's former ``multi_class="ovr"`` count them, not as weights of 0 and 1."""
    rows, labels = digits
    weights = {3: 0.1, 8: 0.5}
    model = model_of(class_weight=weights, C=4 * C).fit(rows, labels)
    for each in range(removals):
        model.unlearn([2 * each, 2 * each + 1])
    kept = np.arange(2 * removals, 600)
    of_record = np.array([weights.get(each, 1.0) for each in labels[kept]])
    refit = [
        LogisticRegression(C=4 * C, fit_intercept=False, tol=1e-12, max_iter=10_000)
        .fit(rows[kept], labels[kept] == each, sample_weight=of_record)
        .coef_[0]
        for each in range(10)
    ]
    said = model.certificate_
    assert np.linalg.norm(secret(model) - refit) <= said.budget / said.strong_convexity + 1e-6
    certificate.verify(said)


def test_a_saved_model_goes_on_with_the_same_bits(digits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(refit_plan, "DEAR", 0)
    rows, labels = digits
    model = model_of(sigma=0.01).fit(rows.astype(np.float32), labels).unlearn([1, 2])
    assert model._plan.by_passes
    assert model._store.rows.dtype == np.float32
    model.save(tmp_path / "model")
    again = CertifiedLogisticRegression.load(tmp_path / "model")
    assert again.certificate_ == model.certificate_
    for request in ([3], [5, 4], [17]):
        model.unlearn(request)
        again.unlearn(request)
        assert again.coef_.tobytes() == model.coef_.tobytes()
        assert [each.left for each in again._model.of_class] == [each.left for each in model._model.of_class]
    assert again.certificate_ == model.certificate_
    assert model.certificate_.passes
    model.save(tmp_path / "published", training_data=False)
    published = CertifiedLogisticRegression.load(tmp_path / "published")
    assert (published.predict_proba(rows) == model.predict_proba(rows)).all()
    certificate.verify(published.certificate_)


def test_float32_rows_give_the_model_of_float64_ones(digits):
    rows, labels = digits[0].astype(np.float32), digits[1]
    narrow, wide = (model_of().fit(each, labels) for each in (rows, rows.astype(np.float64)))
    for each in range(5):
        narrow.unlearn([each])
        wide.unlearn([each])
    allowed = 2 * narrow.certificate_.budget / narrow.certificate_.strong_convexity
    assert np.linalg.norm(secret(narrow) - secret(wide)) <= allowed


@pytest.mark.parametrize("columns", [64, 3000])
def test_sparse_rows_stay_sparse(columns: int, digits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Up to a thousand columns by Newton steps where these pay, else requests refit in passes over the entries."""
    rows, labels = digits
    rows = np.pad(np.where(np.abs(rows) > 0.12, rows, 0.0), ((0, 0), (0, columns - 64)))
    model = model_of(sigma=0.1).fit(sparse.csr_array(rows), labels).unlearn([3, 8]).unlearn([5])
    kept = np.setdiff1d(np.arange(600), [3, 5, 8])
    said = model.certificate_
    certificate.verify(said)
    assert sparse.issparse(model._store.rows)
    assert (said.mechanism == "newton-removal") == (columns == 64)
    apart = np.linalg.norm(secret(model) - coefficients(theirs(rows[kept], labels[kept])))
    assert apart <= said.budget / said.strong_convexity + 1e-6
    model.save(tmp_path / "model")
    again = CertifiedLogisticRegression.load(tmp_path / "model")
    assert (again.unlearn([60])._model.weights == model.unlearn([60])._model.weights).all()


def test_public_rows_stay_in_the_models_of_all_classes(digits):
    """They guarantee no curvature here: the budget is that of the regulariser alone."""
    rows, labels = digits
    model = model_of().fit(rows[:400], labels[:400], public_X=rows[400:], public_y=labels[400:])
    for each in range(5):
        model.unlearn([each])
    said = model.certificate_
    certificate.verify(said)
    assert (said.n, said.public_records, said.public_curvature) == (600, 200, 0)
    assert "public row" in said.comparator
    assert "against the rest" in said.comparator
    apart = np.linalg.norm(secret(model) - coefficients(theirs(rows[5:], labels[5:])))
    assert apart <= said.budget / said.strong_convexity + 1e-6


def test_most_requests_read_nothing(monkeypatch: pytest.MonkeyPatch):
    draw = np.random.default_rng(0)
    rows = normalize(draw.standard_normal((20_000, 8)))
    labels = (rows[:, :4] + 0.1 * draw.standard_normal((20_000, 4))).argmax(axis=1)
    model = model_of(C=80 / 20_000).fit(rows, labels)
    reads, blocks = [], Regression.blocks
    monkeypatch.setattr(Regression, "blocks", lambda self: reads.append(self) or blocks(self))
    for each in range(10):
        model.unlearn([each])
    assert not reads
    certificate.verify(model.certificate_)


def test_with_two_classes_both_strategies_are_the_same(parity):
    rows, labels = parity
    ours, usual = model_of().fit(rows, labels).unlearn([1]), model_of(strategy="softmax").fit(rows, labels).unlearn([1])
    assert ours.coef_.tobytes() == usual.coef_.tobytes()
    assert ours.certificate_ == usual.certificate_
    assert (ours.predict_proba(rows) == usual.predict_proba(rows)).all()


def test_another_strategy_is_refused(digits):
    with pytest.raises(ParameterError, match="strategy must be 'softmax' or 'one-vs-rest', got 'ovo'"):
        model_of(strategy="ovo").fit(*digits)


def test_a_class_may_lose_its_last_record(digits):
    rows, labels = digits
    model = model_of().fit(rows, labels)
    gone = np.flatnonzero(labels == 7)
    with pytest.warns(UserWarning, match="class"):
        model.unlearn(gone)
    kept = np.flatnonzero(labels != 7)
    said = model.certificate_
    with pytest.warns(UserWarning, match="Label"):
        refit = theirs(rows[kept], np.array([labels[kept] == each for each in range(10)]).T.astype(int))
    of_rest = np.delete(secret(model), 7, axis=0)
    those = np.array([each.coef_[0] for number, each in enumerate(refit.estimators_) if number != 7])
    assert np.linalg.norm(of_rest - those) <= said.budget / said.strong_convexity + 1e-6
    certificate.verify(said)


def test_an_interrupted_removal_leaves_the_model_as_it_was(digits, monkeypatch: pytest.MonkeyPatch):
    rows, labels = digits
    model = model_of(sigma=0.03).fit(rows, labels)
    before, said, right = model.coef_, model.certificate_, NewtonRemoval.after

    def interrupted(self: NewtonRemoval, *given: object) -> object:
        if self.positive == 5:
            raise KeyboardInterrupt
        return right(self, *given)

    monkeypatch.setattr(NewtonRemoval, "after", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.unlearn([1, 2])
    monkeypatch.undo()
    assert (model.coef_ == before).all()
    assert model.certificate_ == said
    assert len(model.remaining_) == 600
    model.unlearn([1, 2])
    assert model.certificate_.unscheduled_reads == 1, "some matrices have lost the records, others have not"
    for each in model._model.of_class:
        each.curvature.matrix.setflags(write=False)
    model.unlearn([3])
    assert model.certificate_.unscheduled_reads == 1
