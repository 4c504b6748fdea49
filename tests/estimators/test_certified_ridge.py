"""`CertifiedRidge`: scikit-learn's model, removals that read nothing, requests, certificates, files."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import ndtr
from sklearn.linear_model import Ridge

from certified_unlearning import certificate
from certified_unlearning.certificate import CertificateError
from certified_unlearning.certificate.kinds import read_any
from certified_unlearning.engine.objectives import float64
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.estimators import CertifiedLogisticRegression, CertifiedRidge

RANGE = (5.0, 35.0)
ALPHA = 2.0


def records(n=2000, d=6, seed=0):
    draw = np.random.default_rng(seed)
    rows = draw.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, 22 + 6 * rows[:, 0] - 2 * rows[:, 1] + draw.standard_normal(n)


def made(**options):
    return CertifiedRidge(**{"alpha": ALPHA, "target_range": RANGE} | options)


def theirs(rows, targets, fit_intercept=True):
    """scikit-learn's minimiser; the intercept is regularised, towards the middle of the range."""
    model = Ridge(alpha=ALPHA, fit_intercept=False, solver="cholesky")
    if not fit_intercept:
        return model.fit(rows, targets).coef_
    return model.fit(np.column_stack([rows, np.ones(len(rows))]), targets - 20).coef_


def ours(model):
    return model._model.weights * (15 / np.sqrt(2) if model.fit_intercept else 35)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_is_scikit_learns_minimiser_plus_noise_before_and_after_removals(fit_intercept):
    rows, targets = records()
    model = made(fit_intercept=fit_intercept).fit(rows, targets)
    expected = theirs(rows, targets, fit_intercept)
    assert ours(model) == pytest.approx(expected, abs=1e-9)
    assert model.coef_ == pytest.approx(expected[:6], abs=0.2)
    assert model.coef_ != pytest.approx(expected[:6], abs=1e-9)
    gone = np.random.default_rng(1).permutation(2000)[:150]
    for some in gone.reshape(50, 3):
        model.unlearn(some)
    assert (model._counts.scheduled, model._counts.unscheduled) == (0, 0)
    kept = np.setdiff1d(np.arange(2000), gone)
    assert model.remaining_.tolist() == kept.tolist()
    apart = np.linalg.norm(ours(model) - theirs(rows[kept], targets[kept], fit_intercept))
    said = model.certificate_
    assert apart <= (15 / np.sqrt(2) if fit_intercept else 35) * said.budget / said.strong_convexity
    assert apart < 1e-5
    model.unlearn(kept[:100])
    assert model._counts.scheduled == 1, "more than a tenth has left"
    assert ours(model) == pytest.approx(theirs(rows[kept[100:]], targets[kept[100:]], fit_intercept), abs=1e-9)


def test_a_good_model_is_as_good_as_scikit_learns():
    rows, targets = records(20_000)
    model = made(alpha=20).fit(rows, targets)
    assert model.score(rows, targets) >= Ridge().fit(rows, targets).score(rows, targets) - 0.005
    quality = model.quality(rows, targets)
    assert quality.r2 == pytest.approx(model.score(rows, targets), rel=1e-12)
    assert quality.root_mean_squared_error < 0.6 * quality.mean_line
    assert "R^2 0.8" in model.privacy_report(rows, targets)
    assert "no better than always predicting the mean" in "".join(model.quality(-rows, targets).in_words())


def test_a_removal_reads_no_data(monkeypatch):
    rows, targets = records()
    model = made().fit(rows, targets)

    def read(*_):
        raise AssertionError("the data were read")

    monkeypatch.setattr(float64.Regression, "blocks", read)
    model.unlearn([1, 7]).unlearn([3])
    assert not model._store.rows[[1, 3, 7]].any()


def test_published_noise_has_the_planned_size_and_its_law_keeps_epsilon():
    """Two Gaussians at most budget / m apart: their exact delta at epsilon is at most delta. Noise: 1 in 1e9 fails."""
    rows, targets = records(400, 3)
    model = made(sigma=0.05).fit(rows, targets)
    noise = [made(sigma=0.05).fit(rows, targets)._weights - model._model.weights for _ in range(100)]
    assert np.std(noise) == pytest.approx(0.05, rel=0.22)
    said = model.unlearn([0]).certificate_
    exact = theirs(rows[1:], targets[1:]) * np.sqrt(2) / 15
    mu = np.linalg.norm(model._model.weights - exact) / said.sigma
    assert mu <= said.mu
    worst = said.mu
    delta = ndtr(worst / 2 - said.epsilon / worst) - np.exp(said.epsilon) * ndtr(-worst / 2 - said.epsilon / worst)
    assert delta <= said.delta * (1 + 1e-9)


def test_the_certificate_states_the_loss_and_forged_ones_are_refused(tmp_path):
    stated = made(random_state=0).fit(*records()).unlearn([5]).certificate_
    assert (stated.loss, stated.classes, stated.mechanism, stated.d) == ("squared", 1, "newton-removal", 7)
    assert any("range of targets" in each.statement for each in stated.assumptions)
    certificate.write(stated, tmp_path / "stated.json")
    again = read_any(tmp_path / "stated.json")
    certificate.verify(again)
    for forged in [
        {"loss": "logistic"},
        {"classes": 2},
        {"strict": True},
        {"downdate": False},
        {"epsilon": 0.5},
        {"budget": stated.budget * 2},
        {"class_weights": (1.0,)},
        {"assumptions": stated.assumptions[:-1]},
    ]:
        with pytest.raises(CertificateError):
            certificate.verify(again.model_copy(update=forged))


def test_requests_by_position_mask_and_label_are_the_same():
    rows, targets = records(300)
    frame = pd.DataFrame(rows, index=[f"P{i}" for i in range(300)]).rename(columns=str)
    mask = np.zeros(300, dtype=bool)
    mask[[4, 17]] = True
    by_position, by_mask = made(random_state=0).fit(frame, targets), made(random_state=0).fit(frame, targets)
    by_label = made(random_state=0).fit(frame, targets)
    expected = by_position.unlearn([4, 17]).coef_
    assert (by_mask.unlearn(mask).coef_ == expected).all()
    assert (by_label.unlearn(index=["P4", "P17"]).coef_ == expected).all()
    for again in ({"indices": [4]}, {"index": ["P17"]}):
        with pytest.raises(ParameterError):
            by_label.unlearn(**again)
    assert (by_label.coef_ == expected).all()


def test_files_keep_everything_without_pickle(tmp_path):
    rows, targets = records(300)
    model = made(random_state=0).fit(rows, targets).unlearn([2])
    model.save(tmp_path / "model")
    again = CertifiedRidge.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert (again.predict(rows) == model.predict(rows)).all()
    assert (again.unlearn([8, 9]).coef_ == model.unlearn([8, 9]).coef_).all()
    assert again.certificate_ == model.certificate_
    model.save(tmp_path / "public", training_data=False)
    public = CertifiedRidge.load(tmp_path / "public")
    assert (public.predict(rows) == model.predict(rows)).all()
    with pytest.raises(DataError, match="saved without its training data"):
        public.unlearn([1])
    with pytest.raises(DataError, match="holds a CertifiedRidge, not a CertifiedLogisticRegression"):
        CertifiedLogisticRegression.load(tmp_path / "model")


@pytest.mark.parametrize("of_classes", [False, True])
def test_nothing_of_a_removed_record_stays_in_memory_or_in_a_file(of_classes, tmp_path):
    rows, targets = records(200)
    model = CertifiedLogisticRegression(C=0.5) if of_classes else made()
    model.fit(rows, targets > 20 if of_classes else targets).unlearn([7, 100])
    model.save(tmp_path / "model.safetensors")
    for each in (model, type(model).load(tmp_path / "model.safetensors")):
        assert not each._store.rows[[7, 100]].any()
        assert not each._store.labels[[7, 100]].any()
        assert np.count_nonzero(each._store.labels) == 198


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_targets_are_clipped_to_their_range_with_and_without_intercept(fit_intercept):
    rows, targets = records()
    wild = np.where(np.arange(2000) % 7, targets, np.tile([-300.0, 900.0], 1000))
    model = made(fit_intercept=fit_intercept).fit(rows, wild)
    assert ours(model) == pytest.approx(theirs(rows, np.clip(wild, *RANGE), fit_intercept), abs=1e-9)


def test_sparse_rows_and_clipped_targets():
    rows, targets = records(300)
    rows = np.where(np.abs(rows) > 0.2, rows, 0)
    plain = made(random_state=0).fit(rows, np.clip(targets, *RANGE))
    wild = targets.copy()
    plain_coef = plain.coef_
    # The noise is the same; what is under it is off by rounding.
    assert made(random_state=0).fit(sparse.csc_array(rows), targets).coef_ == pytest.approx(plain_coef, abs=1e-12)
    wild[0] = 1e300
    clipped = np.clip(wild, *RANGE)
    assert (made(random_state=0).fit(rows, wild).coef_ == made(random_state=0).fit(rows, clipped).coef_).all()
    assert abs(made(random_state=0).fit(rows, wild)._store.labels).max() <= 1


def test_more_than_5000_features_are_refitted(monkeypatch):
    monkeypatch.setattr("certified_unlearning.mechanisms.refit_plan.LARGEST_FACTOR", 3)
    rows, targets = records(500)
    model = made().fit(rows, targets).unlearn([1, 2])
    assert model.certificate_.mechanism == "certified-refit"
    certificate.verify(model.certificate_)
    expected = theirs(np.delete(rows, [1, 2], axis=0), np.delete(targets, [1, 2]))
    assert ours(model) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"alpha": 0}, r"alpha must be a number above 0, got 0: without a regulariser \(linear regression\)"),
        ({"alpha": -1.0}, "alpha must be a number above 0, got -1"),
        ({"alpha": np.inf}, "alpha must be a number above 0, got inf"),
        ({"alpha": 1e200}, "alpha / n, must lie between 1e-50 and 1e.50, got 1e.198"),
        ({"target_range": (0, 5e-324)}, "target_range must be a pair"),
        ({"alpha": "much"}, "alpha must be a number above 0, got 'much'"),
        ({"target_range": None}, r"target_range must be a pair \(low, high\).*known without these records, got None"),
        ({"target_range": (3, 3)}, "target_range must be a pair"),
        ({"target_range": (1, 2, 3)}, "target_range must be a pair"),
        ({"target_range": (0, np.inf)}, "target_range must be a pair"),
        ({"sigma": 0.0}, "sigma must be"),
        ({"records_between_reads": -1}, "records_between_reads must be"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(options, said):
    with pytest.raises(ParameterError, match=said) as refused:
        made(**options).fit(*records(50))
    assert "\n" not in str(refused.value)


def test_what_float64_cannot_keep_is_refused():
    with pytest.raises(AssumptionError, match="rounding in float64"):
        made(alpha=1e-9, sigma=1e-6).fit(*records())


def test_rows_that_are_too_long_and_weights_of_records_are_refused():
    rows, targets = records(50)
    with pytest.raises(DataError, match="row 3 of X has norm"):
        made().fit(np.vstack([rows[:3], 2 * rows[3:4], rows[4:]]), targets)
    with pytest.raises(ParameterError, match="sample_weight must be None"):
        made().fit(rows, targets, sample_weight=np.ones(50))


def test_an_interrupted_removal_leaves_the_model_as_it_was(monkeypatch):
    rows, targets = records(300)
    model = made(random_state=0).fit(rows, targets)
    before, stored = copy.deepcopy(model.coef_), model._store.rows.copy()
    with monkeypatch.context() as patched:
        patched.setattr(CertifiedRidge, "_released", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            model.unlearn([3])
    assert (model.coef_ == before).all()
    assert (model._store.rows == stored).all()
    assert len(model.remaining_) == 300
    expected = theirs(np.delete(rows, 3, axis=0), np.delete(targets, 3))
    assert ours(model.unlearn([3])) == pytest.approx(expected, abs=1e-6)
