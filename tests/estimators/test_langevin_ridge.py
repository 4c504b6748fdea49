"""`LangevinRidge`: scikit-learn's objective in a ball, requests, certificates, forged ones, advice, accuracy, files."""

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from typer.testing import CliRunner

from certified_unlearning import certificate
from certified_unlearning.accounting.core.losses import ridge_radius
from certified_unlearning.accounting.langevin.learning_start import starting_std
from certified_unlearning.certificate import CertificateError
from certified_unlearning.cli import app
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.estimators import CertifiedRidge, LangevinLogisticRegression, LangevinRidge
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner

RANGE = (5.0, 35.0)
N = 600
ALMOST_NO_NOISE = {"sigma": 1e-9, "dtype": "float64", "random_state": 1}


def records(n=N, d=6, seed=0):
    draw = np.random.default_rng(seed)
    rows = draw.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, 22 + 6 * rows[:, 0] - 2 * rows[:, 1] + draw.standard_normal(n)


@pytest.fixture(scope="module")
def table():
    return records()


def model(**parameters):
    return LangevinRidge(**{"alpha": 60.0, "target_range": RANGE, "random_state": 0, **parameters})


def theirs(rows, targets, *, alpha=60.0, fit_intercept=True):
    """scikit-learn's weights; the intercept is regularised, towards the middle of the range."""
    ridge = Ridge(alpha=alpha, fit_intercept=False, solver="cholesky", tol=1e-12)
    if not fit_intercept:
        return ridge.fit(rows, targets).coef_
    weights = ridge.fit(np.column_stack([rows, np.ones(len(rows))]), targets - 20).coef_
    return np.append(weights[:-1], weights[-1] + 20)


def all_weights(fitted):
    return np.append(fitted.coef_, fitted.intercept_) if fitted.fit_intercept else fitted.coef_


class TestObjective:
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("alpha", [6.0, 60.0, 2000.0])
    def test_it_is_scikit_learns_objective_with_the_same_alpha(self, table, fit_intercept, alpha):
        ours = model(**ALMOST_NO_NOISE, alpha=alpha, fit_intercept=fit_intercept).fit(*table)
        expected = theirs(*table, alpha=alpha, fit_intercept=fit_intercept)
        np.testing.assert_allclose(all_weights(ours), expected, atol=1e-5)

    def test_zero_out_ends_where_scikit_learn_ends_on_the_remaining_records(self, table):
        rows, targets = table
        gone = np.arange(0, N, 7)
        ours = model(**ALMOST_NO_NOISE).fit(rows, targets).unlearn(gone)
        expected = theirs(np.delete(rows, gone, 0), np.delete(targets, gone))
        np.testing.assert_allclose(all_weights(ours), expected, atol=1e-5)

    def test_remove_ends_at_the_mean_over_the_remaining_records(self, table):
        rows, targets = table
        gone = np.arange(0, N, 7)
        ours = model(**ALMOST_NO_NOISE, adjacency="remove").fit(rows, targets).unlearn(gone)
        same_m = 60.0 * (N - len(gone)) / N
        expected = theirs(np.delete(rows, gone, 0), np.delete(targets, gone), alpha=same_m)
        np.testing.assert_allclose(all_weights(ours), expected, atol=1e-5)

    def test_replace_puts_admissible_records_in_their_places(self, table):
        ours = model(adjacency="replace").fit(*table)
        before = ours._store.labels.copy()
        ours.unlearn([3, 5])
        assert len(ours._store.rows) == N
        assert np.linalg.norm(ours._store.rows, axis=1).max() <= 1 + 1e-6
        assert np.abs(ours._store.labels).max() <= 1
        assert (ours._store.labels != before).nonzero()[0].tolist() == [3, 5]

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_targets_are_clipped_to_their_range(self, table, fit_intercept):
        rows, targets = table
        wild = np.where(np.arange(N) % 7, targets, np.tile([-300.0, 900.0], N // 2))
        options = {**ALMOST_NO_NOISE, "fit_intercept": fit_intercept}
        expected = theirs(rows, np.clip(wild, *RANGE), fit_intercept=fit_intercept)
        np.testing.assert_allclose(all_weights(model(**options).fit(rows, wild)), expected, atol=1e-5)

    @pytest.mark.filterwarnings("ignore:little can be learned")
    def test_every_published_model_lies_in_the_ball_that_its_certificate_states(self, table):
        at_the_edge = 0
        for seed in range(20):
            fitted = model(random_state=seed, alpha=30, sigma=2.0).fit(*table)
            learned = fitted._weights.astype(np.float64)
            unlearned = fitted.unlearn([1])._weights.astype(np.float64)
            radius = fitted.certificate_.radius
            assert radius == ridge_radius(fitted._learner.exact_problem.strong_convexity)
            for weights in (learned, unlearned):
                assert np.linalg.norm(weights) <= radius * (1 + 1e-6)
                at_the_edge += np.linalg.norm(weights) > 0.999 * radius
        assert at_the_edge > 5

    @pytest.mark.filterwarnings("ignore:little can be learned")
    def test_the_start_of_learning_lies_in_the_ball(self, table):
        rows, targets = model()._validated(*table)
        fitted = model(alpha=60, sigma=5.0).fit(*table)
        learner = fitted._learner.model_copy(update={"learning_steps": 0})
        starts = learner.learn(*fitted._tensors(fitted._rows(rows), targets), keys=range(50)).double()
        assert float(starts.norm(dim=1).max()) <= learner._ball * (1 + 1e-6)
        unbounded = starting_std(sigma=5.0, strong_convexity=learner.exact_problem.strong_convexity)
        assert unbounded > 10 * learner._ball


class TestUnlearning:
    @pytest.mark.filterwarnings("ignore:little can be learned")
    @pytest.mark.parametrize("accountant", ["shifted", "lsi", "lsi-tight"])
    @pytest.mark.parametrize("adjacency", ["zero-out", "replace", "remove"])
    def test_a_certificate_states_what_was_asked_for(self, table, accountant, adjacency):
        fitted = model(epsilon=0.8, delta=1e-3, accountant=accountant, adjacency=adjacency).fit(*table)
        stated = fitted.unlearn([0, 1]).unlearn([17]).certificate_
        certificate.verify(stated)
        assert stated.epsilon <= 0.8
        assert (stated.loss, stated.classes, stated.target_range) == ("squared", 1, RANGE)
        m = 60 / N / 2
        assert stated.strong_convexity == pytest.approx(m, rel=1e-12)
        assert stated.smoothness_constant == pytest.approx(1 + m, rel=1e-12)
        assert stated.radius == pytest.approx(1 / (2 * math.sqrt(m)), rel=1e-12)
        assert stated.lipschitz == pytest.approx(stated.radius + 1, rel=1e-12)
        assert stated.records_per_request == (2, 1)
        assert stated.epsilon_all_published > stated.epsilon

    def test_a_certificate_passes_through_a_file_and_the_program(self, table, tmp_path):
        stated = model().fit(*table).unlearn([4]).certificate_
        certificate.write(stated, tmp_path / "certificate.json")
        assert certificate.read(tmp_path / "certificate.json") == stated
        found = CliRunner().invoke(app, ["verify", str(tmp_path / "certificate.json")])
        assert found.exit_code == 0
        assert "epsilon = " in found.output
        forged = json.loads((tmp_path / "certificate.json").read_text()) | {"lipschitz": 1.0}
        (tmp_path / "forged.json").write_text(json.dumps(forged))
        assert CliRunner().invoke(app, ["verify", str(tmp_path / "forged.json")]).exit_code == 1

    @pytest.mark.parametrize(
        ("edit", "said"),
        [
            ({"epsilon": 0.1}, "epsilon"),
            ({"epsilon_all_published": None}, "epsilon_all_published"),
            ({"radius": 1.0, "lipschitz": 2.0}, "radius = 1.0, .* must be 2.23.* a smaller ball need not contain"),
            ({"radius": None}, "radius = None, .* must be 2.23"),
            ({"radius": 5.0, "lipschitz": 6.0}, "radius = 5.0, .* must be 2.23.* gradients are longer"),
            ({"lipschitz": 3.2}, "lipschitz = 3.2, .* bounded by 3.23"),
            ({"lipschitz": 3.3}, "states .* but its constants give"),
            ({"smoothness_constant": 0.3, "step_size": 1.0}, "smoothness_constant = 0.3"),
            ({"strong_convexity": 0.2}, "radius"),
            ({"strong_convexity": 0.2, "radius": ridge_radius(0.2)}, "smoothness_constant"),
            ({"smoothness": "spectral"}, "'bound', the rule that holds for all"),
            ({"classes": 2}, "left out: the number of classes"),
            ({"classes": 2, "loss": None, "target_range": None}, "assumptions"),
            ({"loss": None}, "'squared'"),
            ({"target_range": None}, "from a number to a larger one"),
            ({"target_range": (3.0, 3.0)}, "from a number to a larger one"),
            ({"target_range": (-math.inf, 3.0)}, "from a number to a larger one"),
            ({"class_weights": (1.0,)}, "class_weights"),
            ({"dataset": "digits"}, "classes = 1"),
            ({"rounding_error": None}, "rounding_error"),
            ({"assumptions": ()}, "wrong assumptions"),
            ({"n": 5000}, "epsilon|mu"),
        ],
    )
    def test_an_edited_certificate_is_refused(self, table, edit, said):
        stated = model().fit(*table).unlearn([4]).certificate_
        with pytest.raises(CertificateError, match=said):
            certificate.verify(stated.model_copy(update=edit))

    def test_classes_need_no_range_and_no_loss(self, table):
        rows, targets = table
        stated = LangevinLogisticRegression(C=0.1, random_state=0).fit(rows, targets > 20).unlearn([1]).certificate_
        assert not {"loss", "target_range"} & set(json.loads(stated.model_dump_json()))
        with pytest.raises(CertificateError, match="target_range"):
            certificate.verify(stated.model_copy(update={"target_range": RANGE}))

    def test_another_mechanism_that_claims_targets_is_refused(self, table):
        stated = model().fit(*table).unlearn([4]).certificate_
        edit = {"mechanism": "descent-to-delete", "accountant": "descent-to-delete shifted", "variant": "secret-state"}
        with pytest.raises(CertificateError, match="only the mechanism 'langevin'"):
            certificate.verify(stated.model_copy(update={**edit, "epsilon_all_published": None}))

    def test_before_any_removal_nothing_is_guaranteed(self, table):
        fitted = model().fit(*table)
        certificate.verify(fitted.certificate_)
        assert fitted.certificate_.epsilon == 0
        assert "Nothing has been removed yet" in fitted.privacy_report()

    def test_the_report_says_what_is_covered_and_what_is_assumed(self, table):
        report = model().fit(*table).unlearn([4]).privacy_report(*table)
        for words in ("epsilon = ", "every published model", "Assumed", "range of targets", "R^2", "seed"):
            assert words in report
        stated = [each.statement for each in model().fit(*table).certificate_.assumptions if each.status == "checked"]
        assert any("the norm of weights is at most radius" in each for each in stated)

    def test_the_records_are_gone_from_what_is_kept(self, table):
        fitted = model().fit(*table).unlearn([4, 9]).unlearn([2])
        kept = [index for index in range(N) if index not in (2, 4, 9)]
        assert fitted.remaining_.tolist() == kept
        np.testing.assert_allclose(fitted._store.rows[:, :-1], table[0][kept] / math.sqrt(2), atol=1e-7)
        np.testing.assert_allclose(fitted._store.labels, (table[1][kept] - 20) / 15, atol=1e-12)

    def test_requests_by_position_mask_and_label_are_the_same(self, table):
        rows, targets = table
        frame = pd.DataFrame(rows, index=[f"P{i}" for i in range(N)]).add_prefix("x")
        mask = np.isin(np.arange(N), [4, 17])
        expected = model().fit(frame, targets).unlearn([4, 17])
        np.testing.assert_array_equal(model().fit(frame, targets).unlearn(mask).coef_, expected.coef_)
        by_label = model().fit(frame, targets).unlearn(index=["P17", "P4"])
        np.testing.assert_array_equal(by_label.coef_, expected.coef_)
        before = by_label.certificate_
        for again in ({"indices": [4]}, {"index": ["P17"]}):
            with pytest.raises(ParameterError):
                by_label.unlearn(**again)
        assert by_label.unlearn([]).certificate_ == before

    def test_an_interrupted_removal_leaves_the_model_as_it_was(self, table, monkeypatch):
        fitted = model().fit(*table)
        before, weights = fitted.certificate_, fitted._weights.copy()
        with monkeypatch.context() as patched:
            patched.setattr(LangevinLearner, "unlearn", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                fitted.unlearn([3])
        assert fitted.certificate_ == before
        np.testing.assert_array_equal(fitted._weights, weights)
        assert len(fitted.unlearn([3]).remaining_) == N - 1

    def test_equal_seeds_give_equal_models_and_no_seed_others(self, table):
        first, second = (model(random_state=3).fit(*table).unlearn([1]) for _ in range(2))
        np.testing.assert_array_equal(first.coef_, second.coef_)
        first, second = (model(random_state=None).fit(*table) for _ in range(2))
        assert not np.allclose(first.coef_, second.coef_)
        assert first.certificate_.noise_source == "system entropy"


class TestAccuracy:
    def test_on_diabetes_it_comes_near_scikit_learn_and_certified_ridge(self):
        """The median of seven seeds; those of 50 were between 0.24 and 0.42, beside 0.355 of scikit-learn."""
        X, y = load_diabetes(return_X_y=True)
        public = {"alpha": 44, "target_range": (0, 400), "data_norm": 0.25}
        scores = []
        for seed in range(7):
            fitted = LangevinRidge(**public, random_state=seed).fit(X, y).unlearn([3, 14, 159])
            scores.append(fitted.score(X, y))
        alike = Ridge(alpha=44).fit(X / 0.25, y).score(X / 0.25, y)
        exact = CertifiedRidge(**public, random_state=0).fit(X, y).score(X, y)
        assert alike > 0.3
        assert np.median(scores) > alike - 0.1
        assert np.median(scores) > exact - 0.1

    def test_with_many_records_noise_costs_little(self):
        rows, targets = records(20_000)
        fitted = model(alpha=600).fit(rows, targets).unlearn([1, 2])
        assert fitted.score(rows, targets) > Ridge(alpha=600).fit(rows, targets).score(rows, targets) - 0.02
        quality = fitted.quality(rows, targets)
        assert quality.r2 == pytest.approx(fitted.score(rows, targets), rel=1e-12)
        assert quality.root_mean_squared_error < 0.6 * quality.mean_line


class TestAdvice:
    @pytest.mark.parametrize(("n", "alpha", "advised"), [(442, 1.0, "alpha = 150"), (20_000, 20.0, "alpha = 200")])
    def test_drowned_noise_is_said_and_the_alpha_advised_does(self, n, alpha, advised, monkeypatch):
        # Planned, not learned: that would take long, and comes after.
        monkeypatch.setattr(LangevinRidge, "_learn_from", lambda *_: None)
        rows, targets = records(n)
        with pytest.warns(UserWarning, match=f"little can be learned .* {advised} would do") as said:
            model(alpha=alpha).fit(rows, targets)
        assert said[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model(alpha=float(advised.split()[-1])).fit(rows, targets)

    def test_where_no_alpha_would_do_that_is_said(self, monkeypatch):
        monkeypatch.setattr(LangevinRidge, "_learn_from", lambda *_: None)
        with pytest.warns(UserWarning, match="no value of alpha would do: this takes less noise than sigma = 2"):
            model(sigma=2.0, alpha=30.0).fit(*records())

    def test_what_it_warns_of_is_worth_nothing(self):
        rows, targets = records(300)
        with pytest.warns(UserWarning, match="little can be learned"):
            fitted = model(alpha=3.0).fit(rows, targets)
        assert fitted.score(rows, targets) < 0


class TestMistakes:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"alpha": 0}, r"alpha must be a number above 0, got 0: without a regulariser \(linear regression\)"),
            ({"alpha": -1.0}, "alpha must be a number above 0, got -1"),
            ({"alpha": 1e200}, r"alpha must be at most 1e\+09 n = 6e\+11, got 1e\+200: nothing would be learned"),
            ({"alpha": "much"}, "alpha must be a number above 0, got 'much'"),
            ({"target_range": None}, r"target_range must be a pair \(low, high\).*without these records, got None"),
            ({"target_range": (3, 3)}, "target_range must be a pair"),
            ({"target_range": (0, np.inf)}, "target_range must be a pair"),
            ({"epsilon": 0}, "epsilon must be .* above 0, got 0"),
            ({"delta": 0}, "delta must lie strictly between 0 and 1, got 0"),
            ({"sigma": -0.1}, "sigma must be .* above 0"),
            ({"steps": 3, "sigma": 0.1}, "sigma and steps cannot both be given"),
            ({"records": N + 1}, f"at most n = {N}, got {N + 1}"),
            ({"accountant": "magic"}, "accountant must be one of lsi, lsi-tight, shifted, got .magic"),
            ({"adjacency": "add"}, "adjacency must be one of"),
            ({"dtype": "float16"}, "dtype must be one of float32, float64"),
            ({"device": "tpu"}, "device must be auto, cpu or cuda"),
        ],
    )
    def test_a_parameter_that_makes_no_sense_is_named(self, table, parameters, message):
        with pytest.raises(ParameterError, match=message) as refused:
            model(**parameters).fit(*table)
        assert "\n" not in str(refused.value)

    def test_noise_below_rounding_and_rows_that_are_too_long_are_refused(self, table):
        rows, targets = table
        with pytest.raises(AssumptionError, match=r"rounding in float64 .* is enough"):
            model(sigma=1e-14).fit(rows, targets)
        with pytest.raises(DataError, match="row 3 of X has norm"):
            model().fit(np.where(np.arange(N)[:, None] == 3, 2 * rows, rows), targets)
        with pytest.raises(ParameterError, match="sample_weight must be None"):
            model().fit(rows, targets, sample_weight=np.ones(N))

    def test_it_must_be_fitted_first(self, table):
        for act in (lambda: model().unlearn([1]), lambda: model().certificate_, lambda: model().predict(table[0])):
            with pytest.raises(NotFittedError):
                act()

    def test_a_learner_of_targets_needs_a_range_and_one_of_classes_takes_none(self):
        sizes = {"n": 100, "features": 3, "regularisation": 1e-3, "epsilon": 1.0, "delta": "1/n"}
        with pytest.raises(
            ParameterError, match=r"classes must be at least 2, or 1 with a target_range .* got classes = 1"
        ):
            LangevinLearner.plan(**sizes, classes=1)
        with pytest.raises(ParameterError, match=r"at least 2, or 1 with a target_range .* got classes = 2"):
            LangevinLearner.plan(**sizes, classes=2, target_range=RANGE)


class TestCompany:
    def test_sparse_rows_and_public_scaling_are_taken(self, table):
        rows, targets = np.where(np.abs(table[0]) > 0.2, table[0], 0), table[1]
        plain = model().fit(rows, targets)
        np.testing.assert_array_equal(model().fit(sparse.csc_array(rows), targets).coef_, plain.coef_)
        for scaling in ({"feature_ranges": (-3, 3)}, {"data_norm": 3.0}, {"normalize": True}):
            fitted = model(**scaling).fit(3 * rows, targets).unlearn([2])
            certificate.verify(fitted.certificate_)
            assert fitted.score(3 * rows, targets) > -0.5

    def test_it_works_in_a_search_and_a_clone_is_not_fitted(self, table):
        search = GridSearchCV(model(), {"alpha": [60.0, 200.0]}, cv=3).fit(*table)
        search.best_estimator_.unlearn([0, 1])
        assert cross_val_score(model(), *table, cv=3).min() > 0
        copy = clone(model(epsilon=2).fit(*table))
        assert copy.epsilon == 2
        with pytest.raises(NotFittedError):
            copy.predict(table[0])


class TestFiles:
    def test_a_loaded_estimator_goes_on_as_the_saved_one_would(self, table, tmp_path):
        frame = pd.DataFrame(table[0]).add_prefix("x")
        fitted = model(alpha=np.float64(60)).fit(frame, table[1]).unlearn([4])
        fitted.save(tmp_path / "model.safetensors")
        loaded = LangevinRidge.load(tmp_path / "model.safetensors")
        assert loaded.get_params() == fitted.get_params()
        assert loaded.certificate_ == fitted.certificate_
        np.testing.assert_array_equal(loaded.predict(frame), fitted.predict(frame))
        np.testing.assert_array_equal(loaded.unlearn([9]).coef_, fitted.unlearn([9]).coef_)
        assert loaded.certificate_.epsilon == fitted.certificate_.epsilon
        with pytest.raises(ParameterError, match="record 4 was removed before"):
            loaded.unlearn([4])
        with pytest.raises(DataError, match="holds a LangevinRidge, not a CertifiedRidge"):
            CertifiedRidge.load(tmp_path / "model.safetensors")

    def test_without_training_data_it_predicts_but_cannot_unlearn(self, table, tmp_path):
        fitted = model().fit(*table).unlearn([1])
        fitted.save(tmp_path / "model.safetensors", training_data=False)
        loaded = LangevinRidge.load(tmp_path / "model.safetensors")
        assert loaded.score(*table) == fitted.score(*table)
        assert loaded.certificate_ == fitted.certificate_
        assert loaded.random_state is None
        with pytest.raises(DataError, match="without its training data"):
            loaded.unlearn([1])

    def test_a_removed_record_is_in_no_byte_of_the_file(self, table, tmp_path):
        fitted = model().fit(*table)
        row, target = fitted._store.rows[11].tobytes(), fitted._store.labels[11].tobytes()
        fitted.save(tmp_path / "before.safetensors")
        before = (tmp_path / "before.safetensors").read_bytes()
        assert row in before  # the search would find it
        assert target in before
        fitted.unlearn([11]).save(tmp_path / "after.safetensors")
        after = (tmp_path / "after.safetensors").read_bytes()
        assert row not in after
        assert target not in after
