"""`certified_unlearning.unlearn`: a whole pipeline forgets, and says what its earlier steps keep."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

import certified_unlearning
from certified_unlearning import estimators, unlearn
from certified_unlearning.errors import ParameterError
from certified_unlearning.estimators import (
    CertifiedLogisticRegression,
    CertifiedMLPClassifier,
    CertifiedRidge,
    ExactLogisticRegression,
    LangevinLogisticRegression,
    PrivateLogisticRegression,
)
from certified_unlearning.estimators.pipelines import PipelineReport

RECORDS = 60


@pytest.fixture(scope="module")
def people():
    """Ages, cities and words of people whose index holds names, and whether they are over 50."""
    generator = np.random.default_rng(0)
    ages = generator.permutation(np.linspace(18, 90, RECORDS))
    cities = generator.choice(["Bonn", "Ulm"], RECORDS)
    words = generator.choice(["a quiet life", "a loud life", "no life"], RECORDS)
    index = [f"P{number}" for number in range(RECORDS)]
    frame = pd.DataFrame({"age": ages, "city": cities, "words": words}, index=index)
    return frame, (frame["age"] > 50).map({True: "old", False: "young"})


def last(**parameters):
    return CertifiedLogisticRegression(normalize=True, random_state=0, **parameters)


def quietly(*arguments, **named):
    """Unlearn where no step learned anything, so that nothing warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return unlearn(*arguments, **named)


class Own(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.middle_ = 1.0
        return self

    def transform(self, X):
        return X


class Plain:
    """A transformer that knows nothing of scikit-learn."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


class SaysItNeedsNoFit(Own):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class OwnStateless(SaysItNeedsNoFit):
    def fit(self, X, y=None):
        return self


class OwnFlag(SaysItNeedsNoFit):
    def fit(self, X, y=None):
        self.has_outliers_ = bool((X > 80).to_numpy().any())
        return self


def test_a_pipeline_forgets_what_its_last_step_would_have_forgotten(people):
    frame, labels = people
    for named in ({"indices": [3, 8]}, {"index": ["P3", "P8"]}, {"indices": frame.index.isin(["P3", "P8"])}):
        pipeline = make_pipeline(Normalizer(), last()).fit(frame[["age"]], labels)
        quietly(pipeline, **named)
        direct = last().fit(Normalizer().fit_transform(frame[["age"]]), labels).unlearn([3, 8])
        np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)
        np.testing.assert_array_equal(pipeline[-1].remaining_, np.delete(np.arange(RECORDS), [3, 8]))


@pytest.mark.parametrize(
    "estimator",
    [
        LangevinLogisticRegression(C=0.1, normalize=True, random_state=0),
        ExactLogisticRegression(C=0.1, normalize=True, random_state=0),
        PrivateLogisticRegression(random_state=0),
        CertifiedMLPClassifier((2,), epochs=1, random_state=0),
        CertifiedRidge(target_range=(0, 1), normalize=True, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_labels_reach_every_estimator_behind_a_step_that_returns_an_array(people, estimator):
    frame, labels = people
    labels = (labels == "old").astype(int)
    pipeline = make_pipeline(FunctionTransformer(np.log1p), Normalizer(), estimator).fit(frame[["age"]], labels)
    quietly(pipeline, index=["P3"])
    assert pipeline[-1].remaining_.tolist() == np.delete(np.arange(RECORDS), 3).tolist()


def test_inserted_records_are_named_by_the_labels_of_their_series():
    rows = np.eye(4)[[0, 1, 2, 3, 0, 1]]
    labels = pd.Series([0, 1, 0, 1, 0, 1], index=list("abcdef"))
    model = ExactLogisticRegression(random_state=0).fit(rows, labels)
    model.insert(rows[:2], pd.Series([0, 1], index=["g", "h"]))
    assert model.unlearn(index=["b", "h"]).remaining_.tolist() == [0, 2, 3, 4, 5, 6]


def test_labels_are_known_from_a_frame_or_from_a_series_and_else_the_error_says_what_to_set(people):
    frame, labels = people
    scaled = make_pipeline(Normalizer(), last())
    quietly(scaled.fit(frame[["age"]], labels), index=["P3"])
    with pytest.raises(ParameterError) as error:
        unlearn(scaled.fit(frame[["age"]], labels.tolist()), index=["P3"])
    for remedy in ("frame.index.isin(labels)", "a column of the data frame as y", 'set_output(transform="pandas")'):
        assert remedy in str(error.value)
    quietly(scaled.set_output(transform="pandas").fit(frame[["age"]], labels.tolist()), index=["P3"])
    assert scaled[-1].remaining_[3] == 4


def test_a_number_that_could_mean_two_records_removes_neither(people):
    frame, labels = people
    backwards = frame[["age"]].set_axis(np.arange(RECORDS)[::-1])
    loses = make_pipeline(Normalizer(), FunctionTransformer(pd.DataFrame), last()).fit(backwards, labels.tolist())
    with pytest.raises(
        ParameterError, match=r"could select other records than the ones you mean: .* positions \(indices=\)"
    ):
        unlearn(loses, index=[5])
    assert len(loses[-1].remaining_) == RECORDS
    # As the estimator sees it: rows without labels, and classes with other ones.
    other = last().fit(pd.DataFrame({"age": frame["age"].to_numpy()}), labels.set_axis(backwards.index))
    with pytest.raises(ParameterError, match="or the index of y had other labels"):
        other.unlearn(index=[5])
    # A series that only numbers its classes does not tell what the labels of the rows were.
    renumbered = make_pipeline(Normalizer(), last()).fit(backwards, labels.reset_index(drop=True))
    with pytest.raises(ParameterError, match="X was not a data frame"):
        renumbered[-1].unlearn(index=[5])
    # Without a step before, nothing was lost.
    numbered = backwards.reset_index(drop=True), labels.tolist()
    assert unlearn(last().fit(*numbered), index=[5]).steps == ()
    searched = GridSearchCV(last(), {"C": [0.1, 1.0]}, cv=2).fit(*numbered)
    with pytest.warns(UserWarning, match="search"):
        unlearn(searched, index=[5])
    assert searched.best_estimator_.remaining_[5] == 6


LEARNS_NOTHING = {
    "normalizer": Normalizer(),
    "logarithm": FunctionTransformer(np.log1p),
    "polynomials": PolynomialFeatures(),
    "constant": SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True),
}
LEARNS = {
    "mean_, n_samples_seen_, scale_, var_": StandardScaler(),
    "components_": PCA(1),
    "statistics_": SimpleImputer(),
    "from all records": KNNImputer(),
}


@pytest.mark.parametrize("step", LEARNS_NOTHING.values(), ids=LEARNS_NOTHING.keys())
def test_a_step_that_learns_nothing_is_said_to_learn_nothing(people, step):
    frame, labels = people
    report = quietly(make_pipeline(step, last()).fit(frame[["age"]], labels), [3])
    assert [each.learned for each in report.steps] == ["nothing"]
    assert str(report).endswith(
        "the certificate of the last step (CertifiedLogisticRegression) holds for the pipeline."
    )


@pytest.mark.parametrize(("kept", "step"), LEARNS.items(), ids=lambda value: type(value).__name__)
def test_a_step_that_learned_is_named_with_what_it_keeps_in_a_warning_and_the_report(people, kept, step):
    frame, labels = people
    pipeline = Pipeline([("first", step), ("last", last())]).fit(frame[["age"]], labels)
    name = f"first ({type(step).__name__})"
    with pytest.warns(UserWarning, match="does not cover what earlier steps keep of the removed records") as warned:
        report = unlearn(pipeline, [3])
    assert name in str(warned[0].message)
    assert warned[0].filename == __file__
    assert f"- {name} keeps what it learned" in str(report)
    assert kept in str(report)
    assert "does not cover what stays in first." in str(report)
    assert "holds" not in str(report)


@pytest.mark.parametrize(
    ("column", "step", "learned"),
    [
        (["city"], OneHotEncoder(sparse_output=False), "learned"),
        (["city"], OneHotEncoder(categories=[["Bonn", "Ulm"]]), "nothing"),
        (["city"], OneHotEncoder(categories=[["Bonn", "Ulm"]], min_frequency=2), "learned"),
        (["city"], OrdinalEncoder(), "learned"),
        (["city"], OrdinalEncoder(categories=[["Bonn", "Ulm"]]), "nothing"),
        ("words", CountVectorizer(), "learned"),
        ("words", CountVectorizer(vocabulary=["quiet", "loud"]), "nothing"),
        ("words", TfidfVectorizer(), "learned"),
        ("words", TfidfVectorizer(vocabulary=["quiet", "loud"]), "learned"),
        ("words", TfidfVectorizer(vocabulary=["quiet", "loud"], use_idf=False), "nothing"),
        ("words", HashingVectorizer(n_features=8), "nothing"),
        (["age"], FunctionTransformer(lambda rows: rows - rows.mean()), "unchecked"),
        (["age"], Own(), "unknown"),
        (["age"], OwnStateless(), "unchecked"),
        (["age"], SaysItNeedsNoFit(), "unknown"),
        (["age"], OwnFlag(), "unknown"),
        (["age"], FunctionTransformer(np.abs), "nothing"),
        (["age"], FunctionTransformer(expit), "nothing"),
        (["age"], FunctionTransformer(np.frompyfunc(float, 1, 1)), "unchecked"),
        (["age"], FrozenEstimator(FunctionTransformer(lambda rows: rows - rows.mean())), "unchecked"),
        (["age"], FrozenEstimator(StandardScaler().fit([[18], [90]])), "unchecked"),
        ([], StandardScaler(), "nothing"),
    ],
)
def test_every_step_within_a_column_transformer_is_looked_at_by_itself(people, column, step, learned):
    frame, labels = people
    columns = ColumnTransformer([("one", step, column)], remainder="drop" if column else Normalizer())
    pipeline = make_pipeline(columns, last())
    report = PipelineReport.of(pipeline.fit(frame if column else frame[["age"]], labels))
    assert (report.steps[0].name, report.steps[0].learned) == ("columntransformer__one", learned)
    assert bool(report.kept) == (learned in ("learned", "unknown"))


@pytest.mark.parametrize("chosen", [lambda rows: ["age"], make_column_selector(dtype_include="number")])
def test_a_callable_that_chose_columns_by_the_records_is_reported_as_learned(people, chosen):
    frame, labels = people
    pipeline = make_pipeline(make_column_transformer((Normalizer(), chosen), ("drop", ["city"])), last())
    with pytest.warns(UserWarning, match=r"columntransformer \(ColumnTransformer\)"):
        report = unlearn(pipeline.fit(frame, labels), [3])
    assert [step.learned for step in report.steps] == ["learned", "nothing"]
    assert "keeps what it learned from all records: the columns that its callable chose for normalizer" in str(report)


def test_what_is_not_checked_or_not_known_is_said(people):
    frame, labels = people
    own_function = make_pipeline(FunctionTransformer(lambda rows: rows + 1), last()).fit(frame[["age"]], labels)
    report = str(quietly(own_function, [3]))
    assert "keeps nothing if it looks at one record at a time; this condition is not checked" in report
    assert report.endswith("holds for the pipeline if the conditions that are not checked are true.")
    own_class = make_pipeline(Own(), last()).fit(frame[["age"]], labels)
    with pytest.warns(UserWarning, match=r"own \(Own, unknown\)"):
        report = str(unlearn(own_class, [3]))
    assert "is not one of scikit-learn's: what it learned from the records is unknown" in report
    assert "middle_" in report
    plain = make_pipeline(Plain(), last()).fit(frame[["age"]], labels)
    assert [step.learned for step in PipelineReport.of(plain).steps] == ["unknown"]


def test_steps_of_nested_pipelines_and_unions_are_named_as_in_set_params(people):
    frame, labels = people
    inner = make_pipeline(SimpleImputer(), StandardScaler())
    whole = make_pipeline(
        make_union(inner, "passthrough", Normalizer()), "passthrough", make_pipeline(PCA(1), last())
    ).fit(frame[["age"]], labels)
    names = [step.name for step in PipelineReport.of(whole).steps]
    assert names == [
        "featureunion__pipeline__simpleimputer",
        "featureunion__pipeline__standardscaler",
        "featureunion__normalizer",
        "pipeline__pca",
    ]
    assert set(names) <= set(whole.get_params())


def test_a_cache_that_keeps_removed_records_is_named(people, tmp_path):
    frame, labels = people
    pipeline = make_pipeline(Normalizer(), last(), memory=str(tmp_path)).fit(frame[["age"]], labels)
    with pytest.warns(UserWarning, match=r"memory \(Pipeline\)"):
        report = unlearn(pipeline, index=["P3"])
    assert f"keeps the transformed records in {str(tmp_path)!r}, removed ones among them" in str(report)


def test_a_search_forgets_by_its_best_estimator_and_says_that_it_chose_by_all_records(people):
    frame, labels = people
    choices = {"certifiedlogisticregression__C": [0.1, 1.0]}
    search = GridSearchCV(make_pipeline(Normalizer(), last()), choices, cv=2).fit(frame[["age"]], labels)
    with pytest.warns(UserWarning, match=r"search \(GridSearchCV\)"):
        report = unlearn(search, index=["P3"])
    assert f"chose {search.best_params_} with all records" in str(report)
    assert search.best_estimator_[-1].remaining_[3] == 4
    within = make_pipeline(Normalizer(), GridSearchCV(last(), {"C": [0.1, 1.0]}, cv=2)).fit(frame[["age"]], labels)
    with pytest.warns(UserWarning, match=r"gridsearchcv \(GridSearchCV\)"):
        unlearn(within, index=["P3"])
    assert within[-1].best_estimator_.remaining_[3] == 4


def test_a_number_that_could_mean_two_records_is_refused_in_a_search_within_a_search(people):
    frame, labels = people
    backwards = frame[["age"]].set_axis(np.arange(RECORDS)[::-1])
    pipeline = make_pipeline(Normalizer(), FunctionTransformer(pd.DataFrame), last())
    search = GridSearchCV(GridSearchCV(pipeline, {"normalizer__norm": ["l2"]}, cv=2), {"cv": [2]}, cv=2)
    search.fit(backwards, labels.tolist())
    with pytest.raises(ParameterError, match="could select other records than the ones you mean"):
        unlearn(search, index=[5])
    assert len(search.best_estimator_.best_estimator_[-1].remaining_) == RECORDS
    # A pipeline of one step loses no label, wherever it stands.
    alone = GridSearchCV(make_pipeline(last()), {"certifiedlogisticregression__C": [1.0]}, cv=2)
    with pytest.warns(UserWarning, match="search"):
        unlearn(alone.fit(backwards.reset_index(drop=True), labels.tolist()), index=[5])
    assert alone.best_estimator_[-1].remaining_[5] == 6


def test_a_frozen_last_step_is_refused_for_it_may_know_other_records(people):
    frame, labels = people
    ages = frame[["age"]]
    before = last().fit(ages[::-1], labels[::-1])
    frozen = FrozenEstimator(before)
    pipeline = make_pipeline(Normalizer(), frozen).fit(ages, labels)
    with pytest.raises(
        ParameterError, match=r"^frozenestimator is a FrozenEstimator, .*; give unlearn the frozen model"
    ):
        unlearn(pipeline, [3])
    with pytest.raises(ParameterError, match=r"^the model is a FrozenEstimator"):
        unlearn(frozen, [3])
    assert len(before.remaining_) == RECORDS
    quietly(frozen.estimator, index=["P3"])
    assert len(before.remaining_) == RECORDS - 1


def test_a_report_says_that_labels_of_y_decide_where_rows_reach_the_last_step_without_any(people):
    frame, labels = people
    others = labels.set_axis(labels.index[::-1])
    said = "If the index of X had other labels, the labels of y decide which records are meant"
    pipeline = make_pipeline(Normalizer(), last()).fit(frame[["age"]], others)
    assert said in str(PipelineReport.of(pipeline))
    assert said not in str(quietly(pipeline, [0]))
    assert said in str(quietly(pipeline, index=["P3"]))
    assert pipeline[-1].remaining_.tolist() == np.delete(np.arange(RECORDS), [0, RECORDS - 4]).tolist()
    assert said in str(quietly(pipeline, index=["P5"]))  # Still known after a removal.
    # Where the labels of X reach the last step, these decide.
    pipeline.set_output(transform="pandas").fit(frame[["age"]], others)
    assert said not in str(quietly(pipeline, index=["P3"]))
    assert pipeline[-1].remaining_[3] == 4
    assert said not in str(quietly(last().fit(Normalizer().fit_transform(frame[["age"]]), labels), index=["P3"]))


def test_models_that_cannot_unlearn_are_refused_with_what_to_do(people):
    frame, labels = people
    ages = frame[["age"]]
    fitted = make_pipeline(StandardScaler(), last()).fit(ages, labels)
    for unfitted in (make_pipeline(Normalizer(), last()), clone(fitted), last(), GridSearchCV(last(), {"C": [1.0]})):
        with pytest.raises(NotFittedError, match=f"This {type(unfitted).__name__} instance is not fitted yet. Call"):
            unlearn(unfitted, [3])
    with pytest.raises(ParameterError, match="the last step, LogisticRegression, cannot unlearn; use an estimator of"):
        unlearn(make_pipeline(Normalizer(), LogisticRegression()).fit(ages, labels), [3])
    of_a_class = make_pipeline(Normalizer(), Pipeline([("last", CertifiedLogisticRegression)]))
    for wrong in ("model", make_pipeline(Normalizer(), "passthrough").fit(ages), type(last()), of_a_class):
        with pytest.raises(ParameterError, match="takes a fitted Pipeline whose last step is an estimator of"):
            unlearn(wrong, [3])


def test_a_step_that_changes_which_records_there_are_is_refused(people):
    class Resampling(Own):
        def fit_resample(self, X, y):
            return X, y

    frame, labels = people
    pipeline = make_pipeline(Resampling(), last()).fit(frame[["age"]], labels)
    with pytest.raises(ParameterError, match=r"resampling \(Resampling\) adds or drops records"):
        unlearn(pipeline, [3])
    assert len(pipeline[-1].remaining_) == RECORDS


def test_a_request_that_the_last_step_refuses_changes_and_warns_of_nothing(people):
    frame, labels = people
    pipeline = make_pipeline(StandardScaler(), last()).fit(frame[["age"]], labels)
    for named in ({}, {"indices": [RECORDS]}, {"index": ["nobody"]}, {"indices": [1], "index": ["P1"]}):
        with pytest.raises(ParameterError):
            quietly(pipeline, **named)
    assert len(pipeline[-1].remaining_) == RECORDS


def test_everything_that_can_unlearn_here_has_the_request_that_a_pipeline_hands_on():
    assert certified_unlearning.unlearn is unlearn
    assert all(hasattr(getattr(estimators, name), "unlearn") for name in estimators.__all__)
