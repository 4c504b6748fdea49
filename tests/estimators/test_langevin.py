import json
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from typer.testing import CliRunner

from certified_unlearning import certificate
from certified_unlearning.certificate import CertificateError
from certified_unlearning.cli import app
from certified_unlearning.errors import AssumptionError, DataError, ParameterError, StorageError
from certified_unlearning.estimators import LangevinLogisticRegression
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.text import rounded_up

ALMOST_NO_NOISE = {"sigma": 1e-9, "dtype": "float64", "random_state": 1}


def model(**parameters):
    return LangevinLogisticRegression(**{"C": 0.1, "random_state": 0, **parameters})


def liblinear(rows, labels, C):
    """scikit-learn's solver that regularises the intercept, as we do."""
    return LogisticRegression(C=C, solver="liblinear", tol=1e-12, max_iter=1000).fit(rows, labels)


def softmax_with_regularised_intercept(rows, labels, C):
    with_ones = np.column_stack([rows, np.ones(len(rows))])
    return LogisticRegression(C=C, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(with_ones, labels)


def all_weights(fitted):
    return np.column_stack([fitted.coef_, fitted.intercept_])


class TestObjective:
    def test_two_classes_are_scikit_learns_objective_with_the_same_c(self, parity):
        ours, theirs = model(**ALMOST_NO_NOISE).fit(*parity), liblinear(*parity, 0.1)
        np.testing.assert_allclose(all_weights(ours), all_weights(theirs), atol=1e-6)

    def test_ten_classes_are_scikit_learns_objective_with_the_same_c(self, digits):
        ours, theirs = model(**ALMOST_NO_NOISE).fit(*digits), softmax_with_regularised_intercept(*digits, 0.1)
        np.testing.assert_allclose(all_weights(ours), theirs.coef_, atol=1e-6)

    def test_without_intercept_it_is_scikit_learns_too(self, parity):
        ours = model(**ALMOST_NO_NOISE, fit_intercept=False).fit(*parity)
        theirs = LogisticRegression(C=0.1, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(*parity)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
        assert ours.intercept_ == 0

    def test_zero_out_ends_where_scikit_learn_ends_on_the_remaining_records(self, parity):
        rows, labels = parity
        gone = np.arange(0, 600, 7)
        ours = model(**ALMOST_NO_NOISE).fit(rows, labels).unlearn(gone)
        theirs = liblinear(np.delete(rows, gone, 0), np.delete(labels, gone), 0.1)
        np.testing.assert_allclose(all_weights(ours), all_weights(theirs), atol=1e-6)

    def test_remove_ends_at_the_mean_over_the_remaining_records(self, digits):
        rows, labels = digits
        gone = np.arange(0, 600, 7)
        ours = model(**ALMOST_NO_NOISE, adjacency="remove").fit(rows, labels).unlearn(gone)
        same_lambda = 0.1 * 600 / (600 - len(gone))
        theirs = softmax_with_regularised_intercept(np.delete(rows, gone, 0), np.delete(labels, gone), same_lambda)
        np.testing.assert_allclose(all_weights(ours), theirs.coef_, atol=1e-6)

    def test_replace_puts_admissible_records_in_their_places(self, parity):
        rows, labels = parity
        ours = model(adjacency="replace").fit(rows, labels).unlearn([3, 5])
        norms = np.linalg.norm(ours._store.rows, axis=1)
        assert len(norms) == 600
        assert norms.max() <= 1 + 1e-6
        assert not np.isclose(ours._store.rows[3, :-1] * math.sqrt(2), rows[3]).any()

    def test_the_noise_has_the_stationary_spread(self, parity):
        """Of an almost quadratic loss; 65 weights estimate the spread to 45 %, but for a probability below 1e-6."""
        fitted = model(sigma=0.5, C=1e-4).fit(*parity)
        spread = math.sqrt(2) * np.std(all_weights(fitted) - all_weights(liblinear(*parity, 1e-4)))
        problem = fitted._learner.problem
        variance = 0.5**2 / (problem.strong_convexity * (1 - problem.step_size * problem.strong_convexity / 2))
        assert spread == pytest.approx(math.sqrt(variance), rel=0.45)


class TestUnlearning:
    def test_a_certificate_states_what_was_asked_for(self, parity):
        fitted = model(epsilon=0.5, delta=1e-4).fit(*parity).unlearn([0, 1]).unlearn([17])
        stated = fitted.certificate_
        certificate.verify(stated)
        assert stated.epsilon <= 1.0
        assert stated.delta == 1e-4
        assert stated.extra_delta < 1e-20
        assert stated.records_per_request == (2, 1)
        assert stated.unlearning_steps == tuple(removal.steps for removal in fitted.removals_)
        assert stated.epsilon_all_published > stated.epsilon

    @pytest.mark.parametrize("accountant", ["lsi", "lsi-tight"])
    def test_the_papers_accountants_add_their_extra_delta(self, parity, accountant):
        fitted = (
            model(delta="1/n", accountant=accountant, adjacency="replace").fit(*parity).unlearn([5]).unlearn([6, 7])
        )
        certificate.verify(fitted.certificate_)
        # Learning takes a hundredth of delta, rounding in float32 what it takes of epsilon.
        assert 1e-7 < fitted.certificate_.extra_delta < 0.11 / 600
        assert fitted.certificate_.epsilon <= 1

    def test_what_is_constant_is_said_as_the_adjacency_has_it(self, parity):
        for adjacency, said in (
            ("remove", "the normaliser is the number of remaining records"),
            ("zero-out", "step size, regularisation and normaliser are constants"),
        ):
            stated = model(adjacency=adjacency).fit(*parity).unlearn([0]).certificate_
            certificate.verify(stated)
            assert any(said in each.statement for each in stated.assumptions)
        words = model(adjacency="remove").fit(*parity).unlearn([0]).certificate_.assumptions
        with pytest.raises(certificate.CertificateError, match="wrong assumptions"):
            certificate.verify(stated.model_copy(update={"assumptions": words}))

    def test_before_any_removal_the_certificate_guarantees_nothing(self, parity):
        fitted = model().fit(*parity)
        certificate.verify(fitted.certificate_)
        assert fitted.certificate_.epsilon == 0
        assert fitted.certificate_.unlearning_steps == ()
        assert "Nothing has been removed yet" in fitted.privacy_report()

    def test_steps_are_what_records_at_once_take(self, parity):
        fitted = model(steps=40, records=5).fit(*parity)
        assert fitted.unlearn(np.arange(5)).removals_[0].steps == 40

    def test_more_records_than_planned_take_more_steps(self, parity):
        fitted = model(steps=40, records=5).fit(*parity)
        assert fitted.unlearn(np.arange(50)).removals_[0].steps > 40

    def test_the_records_are_gone_from_what_is_kept(self, parity):
        fitted = model().fit(*parity).unlearn([4, 9]).unlearn([2])
        assert fitted.remaining_.tolist() == [index for index in range(600) if index not in (2, 4, 9)]
        kept = parity[0][fitted.remaining_] / math.sqrt(2)
        np.testing.assert_allclose(fitted._store.rows[:, :-1], kept, atol=1e-7)

    def test_an_edited_certificate_is_refused(self, parity):
        stated = model().fit(*parity).unlearn([4]).certificate_
        for edit in (
            {"epsilon": 0.1},
            {"epsilon_all_published": 0.1},
            {"epsilon_all_published": None},
            {"records_per_request": (2,)},
            {"n": 5000},
        ):
            with pytest.raises(CertificateError):
                certificate.verify(stated.model_copy(update=edit))

    def test_a_certificate_passes_through_a_file(self, parity, tmp_path):
        stated = model().fit(*parity).unlearn([4]).certificate_
        certificate.write(stated, tmp_path / "certificate.json")
        assert certificate.read(tmp_path / "certificate.json") == stated

    def test_the_report_says_what_is_covered_and_what_is_assumed(self, parity):
        report = model().fit(*parity).unlearn([4]).privacy_report()
        for words in ("epsilon = ", "adjacency zero-out", "every published model", "Assumed", "means, scales", "seed"):
            assert words in report

    def test_noise_from_the_system_is_not_repeated_and_says_so(self, parity):
        first, second = (model(random_state=None).fit(*parity) for _ in range(2))
        assert not np.allclose(first.coef_, second.coef_)
        assert first.certificate_.noise_source == "system entropy"
        assert "subtract" not in first.privacy_report()

    def test_equal_seeds_give_equal_models(self, parity):
        first, second = (model(random_state=3).fit(*parity).unlearn([1]) for _ in range(2))
        np.testing.assert_array_equal(first.coef_, second.coef_)

    def test_every_removal_has_noise_of_its_own(self, parity):
        """Seeded: noise that learning and removals shared would make a difference of weights predictable."""
        fitted = model(random_state=3, steps=1, sigma=None).fit(*parity)
        steps = []
        for index in (1, 2, 3):
            before = fitted._weights.copy()
            fitted.unlearn([index])
            steps.append((fitted._weights - before).ravel())
        correlations = np.corrcoef(steps)[np.triu_indices(3, 1)]
        assert np.abs(correlations).max() < 0.6  # 65 weights: beyond 0.6 by chance with probability below 1e-6

    def test_the_digest_of_the_data_cannot_be_guessed_from_the_data(self, parity):
        first, second = (model(random_state=3).fit(*parity) for _ in range(2))
        assert first.certificate_.data_sha256 != second.certificate_.data_sha256


class TestAllOrNothing:
    def test_a_fit_that_is_interrupted_leaves_the_model_that_was_there(self, parity, monkeypatch):
        fitted = model().fit(*parity).unlearn([1])
        before = fitted.certificate_

        def interrupted(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr(LangevinLearner, "learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fitted.fit(parity[0][:50, :30], parity[1][:50])
        assert fitted.certificate_ == before
        assert fitted.predict(parity[0]).shape == (600,)
        with pytest.raises(KeyboardInterrupt):
            model().fit(*parity)

    def test_what_the_caller_does_to_the_array_later_does_not_matter(self, parity):
        rows = parity[0].astype(np.float32)
        fitted = model(fit_intercept=False).fit(rows, parity[1])
        rows *= np.nan
        assert np.isfinite(fitted.unlearn([3]).coef_).all()

    def test_a_seed_that_is_set_later_is_stated(self, parity):
        fitted = model(random_state=None).fit(*parity).unlearn([1])
        assert fitted.certificate_.noise_source == "system entropy"
        assert fitted.set_params(random_state=5).unlearn([2]).certificate_.noise_source == "seed"
        assert fitted.set_params(random_state=None).unlearn([3]).certificate_.noise_source == "seed"

    def test_a_class_that_loses_its_last_record_is_told(self, parity):
        rows, labels = parity[0], np.where(np.arange(600) == 7, "rare", parity[1])
        with pytest.warns(UserWarning, match="a class has no record left"):
            model().fit(rows, labels).unlearn([7])

    def test_every_removal_takes_a_step(self, parity):
        assert model(records=300).fit(*parity).unlearn([7]).removals_[0].steps == 1


class TestMistakes:
    @pytest.mark.parametrize(
        ("indices", "message"),
        [
            ([600], "record 600, but records are numbered 0 to 599"),
            ([-1], "record -1"),
            ([3, 3], "record 3 twice"),
            ([0.5], "list of row numbers"),
            ([True, False], "a mask, which must have one truth value for each of the 600 records .* got 2"),
            ([[]], "list of row numbers"),
            (np.delete(np.arange(600), 7), "at least one must remain"),
            ([7], "record 7 was removed before"),
        ],
    )
    def test_indices_that_make_no_sense_change_nothing(self, parity, indices, message):
        fitted = model().fit(*parity).unlearn([7])
        weights, remaining = fitted._weights.copy(), fitted.remaining_.copy()
        with pytest.raises(ParameterError, match=message):
            fitted.unlearn(indices)
        np.testing.assert_array_equal(fitted._weights, weights)
        np.testing.assert_array_equal(fitted.remaining_, remaining)
        assert len(fitted.removals_) == 1

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"epsilon": 0}, "epsilon must be .* above 0, got 0"),
            ({"epsilon": 0, "sigma": 0.1}, "epsilon must be .* above 0, got 0"),
            ({"delta": "1/N"}, 'delta must be "auto", "1/n" or a number'),
            ({"delta": 0}, "delta must lie strictly between 0 and 1, got 0"),
            ({"C": -1}, "C must be .* above 0, got -1"),
            ({"sigma": -0.1}, "sigma must be .* above 0"),
            ({"steps": 0}, "steps must be a whole number, at least 1"),
            ({"records": 601}, "at most n = 600, got 601"),
            ({"steps": 3, "sigma": 0.1}, "sigma and steps cannot both be given"),
            ({"accountant": "magic"}, "accountant must be one of lsi, lsi-tight, shifted, got .magic"),
            ({"adjacency": "add"}, "adjacency must be one of"),
            ({"dtype": "float16"}, "dtype must be one of float32, float64"),
            ({"device": "tpu"}, "device must be auto, cpu or cuda"),
        ],
    )
    def test_a_parameter_that_makes_no_sense_is_named(self, parity, parameters, message):
        with pytest.raises(ParameterError, match=message):
            model(**parameters).fit(*parity)

    def test_noise_below_rounding_is_refused(self, parity):
        with pytest.raises(AssumptionError, match=r"rounding in float64 .* is enough"):
            model(sigma=1e-12).fit(*parity)

    def test_a_type_in_which_rounding_takes_little_is_kept_and_else_float64_is_taken(self, parity):
        assert model(delta="1/n", sigma=0.5).fit(*parity)._weights.dtype == np.float32
        fitted = model(sigma=0.005).fit(*parity)
        assert fitted._weights.dtype == np.float64
        assert fitted.unlearn([3]).certificate_.dtype == "float64"

    def test_what_rounding_adds_is_said_where_it_matters(self, parity, tmp_path):
        fitted = model(delta="1/n", sigma=0.5).fit(*parity)
        assert fitted._weights.dtype == np.float32
        stated = fitted.unlearn(range(40)).certificate_
        assert 1.01 * stated.epsilon_in_exact_arithmetic < stated.epsilon <= 1.0
        assert "In exact arithmetic, epsilon would be" in fitted.privacy_report()
        certificate.write(stated, tmp_path / "certificate.json")
        said = CliRunner().invoke(app, ["verify", str(tmp_path / "certificate.json")]).output
        assert f"({rounded_up(stated.epsilon_in_exact_arithmetic)} in exact arithmetic) at delta" in said
        assert "In exact arithmetic" not in model(sigma=0.005).fit(*parity).unlearn([3]).privacy_report()

    @pytest.mark.parametrize("accountant", ["lsi", "lsi-tight", "shifted"])
    def test_what_was_planned_can_be_certified_also_at_a_large_epsilon(self, parity, accountant):
        fitted = model(accountant=accountant, epsilon=12, steps=1000).fit(*parity).unlearn([3])
        certificate.verify(fitted.certificate_)
        assert fitted.certificate_.epsilon <= 12

    def test_a_removal_that_no_certificate_could_state_is_refused_before_it_is_carried_out(self, parity):
        fitted = model(accountant="lsi").fit(*parity)
        fitted._learner = fitted._learner.model_copy(update={"learning_steps": 5})
        weights = fitted._weights.copy()
        with pytest.raises(AssumptionError, match=r"after 5 learning steps"):
            fitted.unlearn([3])
        np.testing.assert_array_equal(fitted._weights, weights)
        assert len(fitted.remaining_) == 600

    def test_short_floats_and_text_are_taken_or_refused(self, parity):
        fitted = model(epsilon=np.float32(0.5), delta=np.float32(1e-3)).fit(*parity).unlearn([3])
        certificate.verify(fitted.certificate_)
        for wrong in ({"epsilon": "a"}, {"sigma": "a"}, {"sigma": 1e300}, {"delta": "a"}):
            with pytest.raises(ParameterError, match=next(iter(wrong))):
                model(**wrong).fit(*parity)

    def test_huge_and_tiny_rows_are_normalised_like_others(self, parity):
        fitted = model(normalize=True).fit(*parity)
        for factor in (1e200, 1e-200):
            np.testing.assert_allclose(
                fitted.decision_function(parity[0] * factor), fitted.decision_function(parity[0])
            )

    def test_the_longest_row_is_named(self, parity):
        rows = parity[0].copy()
        rows[[5, 8]] *= [[1.5], [2.5]]
        with pytest.raises(DataError, match=r"row 8 of X has norm 2\.5, .* \(2 rows have a norm above 1"):
            model().fit(rows, parity[1])
        assert model(normalize=True).fit(rows, parity[1]).score(*parity) > 0.8

    def test_one_class_is_refused(self, parity):
        with pytest.raises(DataError, match="one class only"):
            model().fit(parity[0], ["same"] * 600)

    def test_it_must_be_fitted_first(self, parity):
        for act in (lambda: model().unlearn([1]), lambda: model().certificate_, lambda: model().predict(parity[0])):
            with pytest.raises(NotFittedError):
                act()


class TestCompany:
    def test_it_works_behind_a_normalizer_and_in_a_search(self, parity):
        rows, labels = parity
        pipeline = make_pipeline(Normalizer(), LangevinLogisticRegression(random_state=0))
        search = GridSearchCV(pipeline, {"langevinlogisticregression__C": [0.01, 0.1]}, cv=3).fit(rows * 9, labels)
        assert search.best_score_ > 0.75
        search.best_estimator_[-1].unlearn([0, 1])
        assert cross_val_score(model(), rows, labels, cv=3).min() > 0.7

    def test_a_clone_has_the_parameters_and_nothing_else(self, parity):
        fitted = model(epsilon=2, records=3).fit(*parity)
        copy = clone(fitted)
        assert copy.get_params() == fitted.get_params()
        with pytest.raises(NotFittedError):
            copy.predict(parity[0])

    @pytest.mark.parametrize("backend", ["float64", "float64[pyarrow]"])
    def test_it_takes_data_frames(self, parity, backend):
        rows, labels = parity
        frame = pd.DataFrame(rows, columns=[f"pixel {number}" for number in range(64)]).astype(backend)
        target = pd.Series(labels, dtype="string[pyarrow]" if "arrow" in backend else "object")
        fitted = model().fit(frame, target)
        np.testing.assert_array_equal(fitted.coef_, model().fit(rows, labels).coef_)
        assert fitted.feature_names_in_[0] == "pixel 0"
        assert set(fitted.unlearn([2]).predict(frame)) == {"even", "odd"}


class TestFiles:
    def test_a_loaded_estimator_goes_on_as_the_saved_one_would(self, parity, tmp_path):
        frame = pd.DataFrame(parity[0]).add_prefix("x")
        fitted = model().fit(frame, parity[1]).unlearn([4])
        fitted.save(tmp_path / "model.safetensors")
        loaded = LangevinLogisticRegression.load(tmp_path / "model.safetensors")
        assert loaded.get_params() == fitted.get_params()
        assert loaded.certificate_ == fitted.certificate_
        np.testing.assert_array_equal(loaded.predict_proba(frame), fitted.predict_proba(frame))
        np.testing.assert_array_equal(loaded.unlearn([9]).coef_, fitted.unlearn([9]).coef_)
        with pytest.raises(ParameterError, match="record 4 was removed before"):
            loaded.unlearn([4])

    def test_a_parameter_search_leaves_numbers_that_can_be_saved(self, digits, tmp_path):
        fitted = model(C=np.float64(0.1), records=np.int64(2)).fit(*digits)
        fitted.save(tmp_path / "model.safetensors")
        loaded = LangevinLogisticRegression.load(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(loaded.predict(digits[0]), fitted.predict(digits[0]))

    def test_without_training_data_it_predicts_but_cannot_unlearn(self, parity, tmp_path):
        fitted = model().fit(*parity)
        fitted.save(tmp_path / "model.safetensors", training_data=False)
        loaded = LangevinLogisticRegression.load(tmp_path / "model.safetensors")
        assert loaded.score(*parity) == fitted.score(*parity)
        assert loaded.certificate_ == fitted.certificate_
        assert loaded.random_state is None  # who knows the seed can subtract the noise
        with pytest.raises(DataError, match="without its training data"):
            loaded.unlearn([1])

    def test_a_removed_record_is_in_no_byte_of_the_file(self, parity, tmp_path):
        fitted = model().fit(*parity)
        removed = fitted._store.rows[11].tobytes()[:128]
        fitted.save(tmp_path / "before.safetensors")
        assert removed in (tmp_path / "before.safetensors").read_bytes()  # the search would find it
        fitted.unlearn([11]).save(tmp_path / "after.safetensors")
        assert removed not in (tmp_path / "after.safetensors").read_bytes()

    def test_wrong_files_are_refused_in_one_sentence(self, parity, tmp_path):
        (tmp_path / "text").write_text("no estimator")
        with pytest.raises(DataError, match="damaged or not a safetensors file"):
            LangevinLogisticRegression.load(tmp_path / "text")
        with pytest.raises(DataError, match=r"cannot read .*missing"):
            LangevinLogisticRegression.load(tmp_path / "missing")
        with pytest.raises(ParameterError, match="random_state is a generator"):
            model(random_state=np.random.RandomState(0)).fit(*parity).save(tmp_path / "model")
        with pytest.raises(StorageError, match="is not a directory"):
            model().fit(*parity).save(tmp_path / "text" / "model")

    def test_a_file_with_an_accountant_that_there_is_not_is_refused(self, parity, tmp_path):
        path = tmp_path / "model.safetensors"
        model().fit(*parity).save(path)
        path.write_bytes(path.read_bytes().replace(b"shifted", b"shiftes"))
        with pytest.raises(DataError, match="accountant must be one of lsi, lsi-tight, shifted, got 'shiftes'"):
            LangevinLogisticRegression.load(path)

    def test_a_file_holds_json_and_numbers_only(self, parity, tmp_path):
        model().fit(*parity).save(tmp_path / "model.safetensors")
        content = (tmp_path / "model.safetensors").read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        assert json.loads(header["__metadata__"]["estimator"])["class"] == "LangevinLogisticRegression"
