"""Removal from a whole scikit-learn pipeline, with a report on what its earlier steps keep of the removed records."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, Self

import numpy as np
import scipy.special
from numpy.typing import ArrayLike
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted, check_memory

from certified_unlearning.errors import ParameterError

Learned = Literal["nothing", "unchecked", "learned", "unknown"]


@dataclass(frozen=True)
class StepReport:
    """A report on what one step of a pipeline, other than the last step, learned from the records.

    Attributes:
        name: Name of the step; names of nested steps are joined by two underscores, as in ``set_params``.
        transformer: Class of the step.
        learned: ``nothing``; ``unchecked``, which means ``nothing`` if the condition in `said` is true; ``learned``, if
            the step keeps something that depends on removed records; or ``unknown``.
        said: What the step learned, in words that complete a sentence.
    """

    name: str
    transformer: str
    learned: Learned
    said: str

    def __str__(self) -> str:
        """Return a sentence without its full stop."""
        return f"{self.name} ({self.transformer}) {self.said}"


@dataclass(frozen=True, repr=False)
class PipelineReport:
    """A report on what the steps before a pipeline's last step learned from the records, including removed records.

    Attributes:
        last: Class of the last step, which unlearns.
        steps: Reports on the other steps. Steps within a ``ColumnTransformer``, a ``FeatureUnion`` or a nested pipeline
            are listed one by one. A parameter search and the cache of ``Pipeline(memory=...)`` are also listed.
        labels_of_y: Whether ``index=`` names records by the labels of ``y``, because rows reached the last step without
            labels. Whether ``X`` had the same labels is unknown.
    """

    last: str
    steps: tuple[StepReport, ...]
    labels_of_y: bool = False

    @classmethod
    def of(cls, model: Any) -> Self:
        """Return the report of a fitted pipeline before anything is removed from it.

        Raises:
            ParameterError: The last step cannot unlearn.
            sklearn.exceptions.NotFittedError: The pipeline is not fitted.
        """
        last, steps = _taken_apart(model)
        return cls(type(last).__name__, tuple(steps), _labels_are_of_y(model, last))

    @property
    def kept(self) -> tuple[StepReport, ...]:
        """Reports on steps that keep, or may keep, something that depends on removed records."""
        return tuple(step for step in self.steps if step.learned in ("learned", "unknown"))

    def __repr__(self) -> str:
        """Return the report as text."""
        said = [f"- {step}" for step in self.steps]
        if self.labels_of_y:
            said.append(
                "index= refers to the labels in the index of y, because rows reached the last step without labels. If "
                "the index of X had other labels, the labels of y decide which records are meant."
            )
        return "\n".join([*said, self._conclusion()])

    def _conclusion(self) -> str:
        if self.kept:
            return (
                f"The certificate of the last step ({self.last}) does not cover what stays in "
                f"{', '.join(step.name for step in self.kept)}. It assumes that no step before the last one depends on "
                "removed records, and compares with a model that is learned from the remaining records, as transformed "
                "by these steps."
            )
        if any(step.learned == "unchecked" for step in self.steps):
            return (
                f"The certificate of the last step ({self.last}) holds for the pipeline if the conditions that are "
                "not checked are true."
            )
        return (
            f"No earlier step learned from the records: the certificate of the last step ({self.last}) holds for the "
            "pipeline."
        )


def unlearn(model: Any, indices: ArrayLike | None = None, *, index: Any = None) -> PipelineReport:
    """Remove records from the last step of a fitted scikit-learn pipeline, and report what other steps keep of them.

    The last step unlearns in place, as if its method ``unlearn`` were called directly. The other steps are not changed.
    A warning names the steps that keep what they learned from the removed records, because the certificate of the last
    step does not cover these steps.

    Args:
        model: A fitted ``Pipeline`` whose last step is an estimator of this package, or such an estimator alone. A
            parameter search over one of these, such as ``GridSearchCV``, is also possible; its ``best_estimator_``
            unlearns.
        indices: Positions of the records in the ``X`` on which the pipeline was fitted, or a mask.
        index: Labels of the records in the index of the data frame, instead of ``indices``. The last step knows these
            labels from its ``X`` (after ``pipeline.set_output(transform="pandas")``) or from ``y`` (if ``y`` was a
            pandas series). If they come from ``y``, the labels of the pipeline's ``X`` have no effect.

    Returns:
        A report on every earlier step; it prints as text.

    Raises:
        ParameterError: The last step cannot unlearn, the last step refuses the request, or another step adds or drops
            records. In these cases, nothing is removed.
        sklearn.exceptions.NotFittedError: The pipeline is not fitted.
    """
    last, steps = _taken_apart(model)
    if index is not None and _is_behind_steps(model) and getattr(last, "_rows_are_only_numbered", False):
        raise ParameterError(
            "index= could select other records than the ones you mean: the last step saw rows numbered from 0, perhaps "
            "because an earlier step dropped the data frame's index. If the frame's own index is 0 to n - 1, give the "
            "labels as positions (indices=)"
        )
    last.unlearn(indices, index=index)
    labels_of_y = index is not None and _labels_are_of_y(model, last)
    report = PipelineReport(type(last).__name__, tuple(steps), labels_of_y)
    if report.kept:
        warnings.warn(
            f"the certificate of the last step ({report.last}) does not cover what earlier steps keep of the removed "
            f"records: {', '.join(map(_named, report.kept))}; for details, print the report that unlearn returns",
            stacklevel=2,
        )
    return report


def _named(step: StepReport) -> str:
    return f"{step.name} ({step.transformer}{', unknown' if step.learned == 'unknown' else ''})"


def _is_behind_steps(model: Any) -> bool:
    """Return whether steps of a pipeline, which may drop labels, come before the estimator that unlearns."""
    if isinstance(model, Pipeline):
        return not all(_does_nothing(step) for _, step in model.steps[:-1]) or _is_behind_steps(model.steps[-1][1])
    return hasattr(model, "best_estimator_") and _is_behind_steps(model.best_estimator_)


def _labels_are_of_y(model: Any, last: Any) -> bool:
    return _is_behind_steps(model) and getattr(last, "_labels_are_of_y", False)


def _taken_apart(model: Any, prefix: str = "") -> tuple[Any, list[StepReport]]:
    """Return the estimator at the end of a fitted model, and reports on everything before it.

    Args:
        model: Model, or last step of a model.
        prefix: Prefix of the names of the model's steps.
    """
    name = type(model).__name__
    if isinstance(model, FrozenEstimator):
        raise ParameterError(
            f"{prefix.removesuffix('__') or 'the model'} is a FrozenEstimator, which was fitted before, perhaps on "
            "other records; give unlearn the frozen model (its attribute estimator), and name only records on which "
            "this model was fitted"
        )
    end = model
    while isinstance(end, Pipeline) and end.steps:
        end = end.steps[-1][1]
    if isinstance(end, type):
        model = end  # scikit-learn cannot check whether a class, or a pipeline that ends with one, is fitted.
    if isinstance(model, type) or not hasattr(model, "fit"):
        raise ParameterError(
            f"unlearn takes a fitted Pipeline whose last step is an estimator of certified_unlearning, got {model!r}"
        )
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        steps = [*_cached(model, prefix)]
        for step, transformer in model.steps[:-1]:
            steps += _transformers(f"{prefix}{step}", transformer)
        step, end = model.steps[-1]
        last, more = _taken_apart(end, f"{prefix}{step}__")
        return last, steps + more
    if hasattr(model, "best_estimator_"):
        said = f"chose {model.best_params_} with all records, and keeps the scores in cv_results_"
        last, more = _taken_apart(model.best_estimator_, prefix)
        return last, [StepReport(prefix.removesuffix("__") or "search", name, "learned", said), *more]
    if not hasattr(model, "unlearn"):
        raise ParameterError(
            f"the last step, {name}, cannot unlearn; use an estimator of certified_unlearning, such as "
            "CertifiedLogisticRegression or CertifiedRidge"
        )
    return model, []


def _transformers(name: str, step: Any) -> Iterator[StepReport]:
    """Yield a report on each transformer within a step."""
    if _does_nothing(step):
        return
    if hasattr(step, "fit_resample"):
        raise ParameterError(
            f"{name} ({type(step).__name__}) adds or drops records, so positions and labels no longer name the records "
            "of X; fit the pipeline anew without the records to remove"
        )
    if isinstance(step, Pipeline):
        yield from _cached(step, f"{name}__")
        for inner, transformer in step.steps:
            yield from _transformers(f"{name}__{inner}", transformer)
    elif isinstance(step, ColumnTransformer):
        check_is_fitted(step)
        chosen = [inner for inner, _, columns in step.transformers if callable(columns)]
        if chosen:
            what = f"the columns that its callable chose for {', '.join(chosen)}"
            yield StepReport(name, type(step).__name__, "learned", f"keeps what it learned from all records: {what}")
        for inner, transformer, _ in step.transformers_:
            yield from _transformers(f"{name}__{inner}", transformer)
    elif isinstance(step, FeatureUnion):
        for inner, transformer in step.transformer_list:
            yield from _transformers(f"{name}__{inner}", transformer)
    else:
        yield StepReport(name, type(step).__name__, *_learned_by(step))


def _cached(pipeline: Pipeline, prefix: str) -> Iterator[StepReport]:
    """Yield a report on a pipeline's disk cache, if it has one."""
    location = check_memory(pipeline.memory).location
    if location is not None:
        said = f"keeps the transformed records in {str(location)!r}, removed ones among them, until it is cleared"
        yield StepReport(f"{prefix}memory", type(pipeline).__name__, "learned", said)


def _learned_by(step: Any) -> tuple[Learned, str]:
    """Return what a transformer learned from the records: a keyword, and a phrase that describes it."""
    name = type(step).__name__
    of_scikit_learn = type(step).__module__.startswith("sklearn.")
    if of_scikit_learn and name == "FrozenEstimator":
        return "unchecked", "was fitted before and is frozen; it is not checked whether it was fitted on these records"
    if hasattr(step, "__sklearn_tags__") and not step.__sklearn_tags__().requires_fit:
        if of_scikit_learn and (name != "FunctionTransformer" or _is_known_ufunc(step.func)):
            return "nothing", "learned nothing: it looks at one record at a time"
        if of_scikit_learn or not _fitted_attributes(step, flags=True):
            return "unchecked", "keeps nothing if it looks at one record at a time; this condition is not checked"
    attributes = _fitted_attributes(step, flags=not of_scikit_learn)
    if not of_scikit_learn:
        among = f"; its fitted attributes are {attributes}" if attributes else ""
        return "unknown", f"is not one of scikit-learn's: what it learned from the records is unknown{among}"
    learns_nothing, why = _LEARNS_NOTHING.get(name, (_never, ""))
    if learns_nothing(step):
        return "nothing", f"learned nothing: {why}"
    try:
        check_is_fitted(step)
    except NotFittedError:
        return "nothing", "learned nothing: it was not fitted"  # This happens in a ColumnTransformer without columns.
    return "learned", f"keeps what it learned from all records{f': {attributes}' if attributes else ''}"


def _is_known_ufunc(function: Any) -> bool:
    """Return whether a function is NumPy's or SciPy's own ufunc; ``np.frompyfunc`` can make a ufunc of any function."""
    return isinstance(function, np.ufunc) and any(
        getattr(module, function.__name__, None) is function for module in (np, scipy.special)
    )


def _fitted_attributes(step: Any, *, flags: bool) -> str:
    """Return the names of fitted attributes, which end with an underscore in scikit-learn.

    Args:
        step: A fitted transformer.
        flags: Whether truth values are listed, too; in scikit-learn's own transformers, they depend only on parameters.
    """
    names = (name for name in dir(step) if name.endswith("_") and not name.startswith("_"))
    values = {name: getattr(step, name, None) for name in names}
    for given_with_the_data in ("n_features_in_", "feature_names_in_"):
        values.pop(given_with_the_data, None)
    left_out = (NoneType,) if flags else (NoneType, bool)
    return ", ".join(name for name, value in values.items() if not isinstance(value, left_out))


def _does_nothing(step: Any) -> bool:
    """Return whether a step is "passthrough" or "drop", also in the form that a fitted ``ColumnTransformer`` stores."""
    return step is None or isinstance(step, str) or (isinstance(step, FunctionTransformer) and step.func is None)


def _never(_: Any) -> bool:
    return False


def _has_given_categories(encoder: Any) -> bool:
    return not isinstance(encoder.categories, str) and encoder.min_frequency is None and encoder.max_categories is None


_LEARNS_NOTHING: dict[str, tuple[Callable[[Any], bool], str]] = {
    "CountVectorizer": (lambda step: step.vocabulary is not None, "its vocabulary was given"),
    "GaussianRandomProjection": (lambda step: step.n_components != "auto", "its directions are random"),
    "MissingIndicator": (lambda step: step.features == "all", "it looks at one record at a time"),
    "OneHotEncoder": (_has_given_categories, "its categories were given"),
    "OrdinalEncoder": (_has_given_categories, "its categories were given"),
    "PolynomialFeatures": (lambda step: True, "it looks at one record at a time"),
    "SimpleImputer": (
        lambda step: step.strategy == "constant" and step.keep_empty_features and not step.add_indicator,
        "its constant was given",
    ),
    "SparseRandomProjection": (lambda step: step.n_components != "auto", "its directions are random"),
    "TfidfTransformer": (lambda step: not step.use_idf, "it looks at one record at a time"),
    "TfidfVectorizer": (
        lambda step: step.vocabulary is not None and not step.use_idf,
        "its vocabulary was given, and it does not weight words by how many records contain them",
    ),
}
"""Transformers of scikit-learn that, with certain parameters, learn nothing from the records. All other transformers
are assumed to learn something.
"""
