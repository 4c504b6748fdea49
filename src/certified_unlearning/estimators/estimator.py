"""Base class of all estimators: the common part of `fit`, removal requests, public scaling, the seed, and files."""

import secrets
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from certified_unlearning.certificate.base import Certificate
from certified_unlearning.data.advice.shares import Shares, sampled
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.estimators import documentation, storage
from certified_unlearning.estimators.advice import warn_of_a_drowning_column
from certified_unlearning.estimators.records import Positions, RecordStore
from certified_unlearning.estimators.requests import FrameIndex, warn_of_an_empty_class
from certified_unlearning.estimators.scaling import Array, PublicScaling, dense, unit

Fit = TypeVar("Fit", bound=Callable[..., Any])


def without_sample_weight(fit: Fit) -> Fit:
    """Decorate a ``fit`` so that it refuses ``sample_weight`` and says why.

    The wrapper keeps the signature of ``fit``. If ``fit`` had a parameter ``sample_weight``, scikit-learn would
    conclude that the estimator supports weights. Then scikit-learn's checks would test weights, and its searches would
    pass weights on.
    """

    @wraps(fit)
    def refusing(self: Any, X: Any, y: Any = None, sample_weight: Any = None, **others: Any) -> Any:
        if sample_weight is not None:
            raise ParameterError(
                "sample_weight must be None: the guarantee assumes that every record has a weight of at most 1, and "
                "individual weights would change how much a record can move the model; class_weight takes public "
                "weights of classes"
            )
        return fit(self, X, y, **others)

    return cast(Fit, refusing)


@dataclass(kw_only=True, repr=False, eq=False)
class UnlearningEstimator(BaseEstimator):  # type: ignore[misc]
    """Base class of all estimators, with a `RecordStore` and public scaling of features.

    Subclasses are data classes whose fields are scikit-learn's parameters. Each parameter is described once, in the
    docstring of the class that declares it (`documentation`). An estimator must not be used by several threads at once.

    Args:
        normalize: Whether every row is divided by its own norm. Otherwise, a row of norm above 1 is an error, unless
            ``feature_ranges`` or ``data_norm`` scales the row down.
        feature_ranges: Public bounds of the features: one pair ``(low, high)`` for all features, or one pair for each
            feature, shape ``(features, 2)``. Values outside these ranges are clipped, and the ranges are mapped to [-1,
            1]. Rows are then divided by ``sqrt(features)``. If ``normalize`` is true, each row is divided by its own
            norm instead. If ``data_norm`` is given, rows are scaled with ``data_norm`` instead. Use what is known about
            such data in general, *not* the smallest and largest values of these records. Those values would reveal
            something about removed records, contrary to what the certificate states.
        data_norm: Public bound on the norm of a row. Like the ranges, the bound must not be computed from the data.
            Rows of a larger norm are scaled down to the bound. Then all rows are divided by the bound. With
            ``feature_ranges``, the bound applies to the rows after the mapping to [-1, 1]. ``data_norm`` cannot be
            combined with ``normalize``.
        random_state: None: noise comes from the operating system's random numbers, and its seed is not stored. A number
            makes results repeatable, but it is a secret: anybody who knows it, or tries all 2^32 numbers, can subtract
            the noise. Two models that were fitted with the same number have the same noise. The noise cancels in their
            difference, which then shows the record in which their data differ, even to somebody who does not know the
            number.

    Attributes:
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, if ``X`` was a data frame.
    """

    normalize: bool = False
    feature_ranges: ArrayLike | None = None
    data_norm: float | None = None
    random_state: int | np.random.RandomState | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        documentation.complete(cls)

    @abstractmethod
    def _validated(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return dense records with labels or targets in the model's form, and set attributes that depend on them."""

    @abstractmethod
    def _planned(self, n: int) -> Any:
        """Return the plan for learning from ``n`` records, whose columns and classes are already known."""

    @abstractmethod
    def _learn_from(self, plan: Any, X: NDArray[Any], labels: NDArray[Any]) -> None:
        """Learn according to a plan, and store the records."""

    @abstractmethod
    def _remove(self, named: NDArray[Any]) -> bool:
        """Remove records and their labels: all or none of them, even after an interruption.

        Returns:
            Whether all records of a class have now been removed.
        """

    @abstractmethod
    def _saved(self, training_data: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
        """Return a file's header entries and arrays, without parameters, columns and the data frame's index."""

    def _require_law(self) -> None:
        """Raise `AssumptionError` if the certificate does not cover the distribution of what the model publishes."""
        raise AssumptionError(
            f"{type(self).__name__} certifies answers, and not the distribution of a model; an audit needs a "
            "certificate of the model's distribution"
        )

    def _range(self) -> tuple[float, float] | None:
        """Return the range to which targets are clipped; None for classes."""
        return None

    def _long_rows(self, directions: Array) -> Array:
        """Return features whose scaled rows have these directions and the largest norm that the guarantee allows.

        Args:
            directions: Directions, as rows of norm 1.
        """
        if self.feature_ranges is None:
            longest: Array = directions * (1.0 if self.data_norm is None else self.data_norm)
            return longest
        low, high = np.broadcast_to(np.asarray(self.feature_ranges, dtype=np.float64), (directions.shape[1], 2)).T
        inside = directions / np.abs(directions).max(axis=1, keepdims=True)
        rows: Array = np.clip(low + (high - low) * (1 + inside) / 2, low, high)
        return rows

    def _warn_of(self, plan: Any, X: NDArray[Any]) -> None:
        """Warn the caller of `fit` if a plan leads to a useless model or to slow learning."""

    def _require_short(self, features: Array) -> None:
        """Raise an error if a row's norm is larger than the model allows and no parameter scales the row down."""

    @without_sample_weight
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from records.

        There is no ``sample_weight``, because an individual weight would change how much a record can move the model.

        Args:
            X: Features, shape ``(n, features)``: an array, a data frame, or a sparse matrix. The rows of a sparse
                matrix become dense, except in `CertifiedLogisticRegression` and `CertifiedRidge`. Rows of linear models
                must have norm at most 1, unless ``normalize``, ``feature_ranges`` or ``data_norm`` ensures this. Rows
                of private models must be bounded by one of these parameters.
            y: Classes of any type, shape ``(n,)``; for regression, targets in the units of ``target_range``.

        Returns:
            The fitted estimator. `unlearn` names records by their position in this ``X``, or by their labels in the
            index of ``X``.

        Raises:
            DataError: A row's norm is above 1 (the message names the longest row), there are too few classes or
                records, there are too many classes for the model, or sparse rows would not fit in memory as dense rows.
            ParameterError: A parameter is invalid.
            AssumptionError: The noise would be lost in rounding, float64 is not precise enough for the noise or the
                regulariser, or a batch or a budget does not suit the number of records.
            InfeasibleError: The target cannot be met, or a solver did not become accurate enough for its budget.
            IntervalError: The bounds of a network overflow: use clipping, fewer epochs, smaller steps or smaller
                budgets.
        """
        with self._all_or_nothing():
            self._store = RecordStore(FrameIndex.of(X, y))
            X, labels = self._validated(X, y)
            self._fits_sparse_rows = issparse(X)
            plan = self._planned(X.shape[0])
            self._warn_of(plan, X)
            self._require_short(X)
            self._warn_if_a_column_drowns(X)
            self._learn_from(plan, X, labels)
        return self

    def unlearn(self, indices: ArrayLike | None = None, *, index: Any = None) -> Self:
        """Remove records from the model and from the training data that it keeps.

        A request that names no record changes nothing: weights, certificate and counts are kept. For a whole pipeline,
        use `certified_unlearning.unlearn`.

        Args:
            indices: Positions of the records in the ``X`` of `fit`; or a mask with one truth value for each record of
                ``X``. No position may occur twice, or be that of a record that was removed before.
            index: Labels in the index of the data frame passed to `fit`, instead of ``indices``. All records with one
                of these labels are removed, as with pandas' ``drop``.

        Returns:
            The estimator, with a new ``certificate_``. If an error is raised, the estimator is unchanged, with one
            exception. If warnings are turned into errors, the warning that all records of a class were removed is
            raised after the removal.

        Raises:
            ParameterError: A position or label is invalid, occurs twice, or names a record that was removed before; or
                no record would remain; or it is not clear which records are meant.
            DataError: The estimator was saved without its training data.
            InfeasibleError: The target cannot be met, or a solver did not become accurate enough for its budget.
        """
        self._require_records("but not unlearn")
        named = self._store.named(indices, index)
        if len(named) and self._remove(named):
            warn_of_an_empty_class()
        return self

    @property
    def remaining_(self) -> Positions:
        """Positions of the remaining records in the ``X`` of `fit`, in order; a new array each time."""
        self._require_fitted()
        return self._store.remaining

    @property
    def _rows_are_only_numbered(self) -> bool:
        """Whether the index of the fitted data frame has only row numbers, as after a step that drops the labels."""
        index = self._store.index
        return index is not None and index.labels is None

    @property
    def _labels_are_of_y(self) -> bool:
        """Whether ``index=`` names records by the labels of ``y``, because the fitted rows had no labels."""
        return self._store.index is not None and self._store.index.of_y

    def _remove_in_place(
        self,
        gone: Positions,
        carry_on: Callable[[NDArray[Any], NDArray[Any]], dict[str, Any]],
        others: tuple[Any, Any] = (0, 0),
    ) -> None:
        """Replace records in place by zeros or other records, and continue without them.

        Rows are not copied, because copying all rows would take longer than the rest of the removal. If the removal is
        interrupted, the records are restored.

        Args:
            gone: Positions of the records to remove.
            carry_on: Function that maps the records' rows and labels to the changed attributes of the estimator.
            others: Rows and labels that replace those of the removed records.
        """
        store, taken = self._store, self._store.take(gone)
        try:
            store.put(gone, *others)
            # All attributes change in one step, so that the stored records and the statements about them agree even
            # after an interruption.
            self.__dict__.update(carry_on(taken.rows, taken.labels), _store=store.shrunk(len(gone)))
        except BaseException:
            if self._store is store:
                store.put_back(gone, taken)
            raise

    def _seen(self, features: Any) -> Any:
        """Return features after the public scaling of the model."""
        scaling = self._scaling()
        if scaling is not None:
            return scaling(features)
        return unit(features) if self.normalize else features

    def _scaling(self) -> PublicScaling | None:
        """Return the scaling by ranges or a norm; None if neither ranges nor a norm is given.

        Raises:
            ParameterError: The numbers for the ranges or the norm are invalid.
        """
        if self.feature_ranges is None and self.data_norm is None:
            return None
        return PublicScaling(
            features=self.n_features_in_,
            ranges=self.feature_ranges,
            data_norm=self.data_norm,
            normalize=self.normalize,
        )

    def _scaling_in_words(self) -> list[str]:
        """Return the report's lines on public scaling, which are added to the certificate's assumptions."""
        given = [name for name in ("feature_ranges", "data_norm") if getattr(self, name) is not None]
        if not given:
            return []
        return [
            f"- {' and '.join(given)} {'were' if given != ['data_norm'] else 'was'} not taken from the records: each "
            "record was clipped or scaled separately, with the given numbers"
        ]

    def _report(self, stated: Certificate, said: Sequence[str], measured: Sequence[str] = ()) -> str:
        """Return a report: what the guarantee means, what is certified, and what was not checked."""
        meaning = stated.meaning()
        opening = [] if meaning is None else [meaning]
        assumed = [f"- {each.statement}: {each.by}" for each in stated.unchecked]
        return "\n".join([*opening, *said, "Assumed, not checked:", *assumed, *self._scaling_in_words(), *measured])

    def _warn_if_a_column_drowns(self, features: Array) -> None:
        """Warn the caller of `fit` if one column contributes nearly all of a row's squared norm.

        The share is computed from at most 2,500 records, which are the same ones every time.

        Args:
            features: Features after all checks.
        """
        count = features.shape[1]
        some = self._seen(features[sampled(features.shape[0], count)].astype(np.float64))
        names = getattr(self, "feature_names_in_", None)
        shares = Shares(count if names is None else names.tolist())
        shares.add(some)
        largest = shares.largest()
        if largest is not None:
            warn_of_a_drowning_column(largest, ranges=self.feature_ranges, records=some.shape[0])

    def _checked(self, X: Any) -> Any:
        """Return the features of records to predict, after checks, shape ``(records, features)``."""
        return self._in_form(validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False))

    def _in_form(self, X: Any) -> Any:
        """Return checked features in the model's form, which is an array unless a subclass keeps sparse features."""
        return dense(X)

    def _noise_key(self) -> int:
        """Return the key of new noise, from the operating system or from ``random_state``."""
        if self.random_state is None:
            return secrets.randbits(128)
        wrong = (
            "random_state must be None, a whole number from 0 to 2**32 - 1, or a numpy.random.RandomState, got "
            f"{self.random_state!r}"
        )
        if isinstance(self.random_state, bool):
            raise ParameterError(wrong)
        try:
            generator = check_random_state(self.random_state)
        except ValueError as error:
            raise ParameterError(wrong) from error
        words: Sequence[int] = generator.randint(2**32, size=4, dtype=np.uint32).tolist()
        return sum(word << 32 * place for place, word in enumerate(words))

    def save(self, path: str | Path, *, training_data: bool = True) -> None:
        """Write the estimator as one safetensors file, with its parameters as JSON in the header, without pickle.

        Files that were saved before a removal still contain the removed records: delete or overwrite those files.

        Args:
            path: Path of the file.
            training_data: Whether the file includes everything that the loaded estimator needs to unlearn. This
                comprises the kept records, the positions of the remaining records, the labels in a data frame's index,
                a secret state, and the seed. Such a file is as secret as these contents. With False, the loaded
                estimator can only predict and show its certificate. This is the file to give to others.

        Raises:
            ParameterError: ``random_state`` is a generator, which JSON cannot represent.
            StorageError: The file cannot be written.
        """
        self._require_fitted()
        header, arrays = self._saved(training_data and self._store.places is not None)
        header |= {**self._described(), "parameters": self._parameters(secrets_too=training_data)}
        if training_data:
            index, labels = self._store.described()
            header, arrays = header | index, arrays | labels
        storage.write(path, header, arrays)

    def _parameters(self, *, secrets_too: bool) -> dict[str, Any]:
        """Return the parameters for a file's header.

        The seed is included only with ``secrets_too``.

        Raises:
            ParameterError: ``random_state`` is a generator, which JSON cannot represent.
        """
        parameters: dict[str, Any] = self.get_params(deep=False)
        if not secrets_too:
            parameters["random_state"] = None
        if parameters["feature_ranges"] is not None:
            parameters["feature_ranges"] = np.asarray(parameters["feature_ranges"], dtype=np.float64).tolist()
        for name, value in parameters.items():
            if isinstance(value, np.ndarray | range):
                parameters[name] = np.asarray(value).tolist()
        if parameters.get("class_weight") is not None:
            # Stored as pairs, because JSON objects would turn labels that are numbers into strings.
            parameters["class_weight"] = list(parameters["class_weight"].items())
        if not isinstance(parameters["random_state"], int | np.integer | None):
            raise ParameterError(
                "an estimator whose random_state is a generator cannot be saved; set random_state to a number or None"
            )
        return parameters

    def _described(self) -> dict[str, Any]:
        """Return the header entries that all models share."""
        return {
            "class": type(self).__name__,
            "n_features_in": self.n_features_in_,
            "feature_names_in": getattr(self, "feature_names_in_", np.array([])).tolist(),
        }

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an estimator that `save` wrote.

        Raises:
            DataError: The file is missing or damaged, or contains something else.
        """
        header, arrays = storage.read(path, cls.__name__)
        try:
            estimator = cls(**header["parameters"])
            estimator._restore(header, arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise storage.no_estimator(path, error) from error
        return estimator

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore all attributes except parameters from a saved file; missing or wrong entries may raise an error."""
        self.n_features_in_ = header["n_features_in"]
        if header["feature_names_in"]:
            self.feature_names_in_ = np.array(header["feature_names_in"], dtype=object)
        # Older files do not contain these two entries.
        self._store = RecordStore(FrameIndex.unpacked(header.get("has_index", False), arrays.get("frame_index")))

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore all attributes if the block fails or is interrupted; the block must not change arrays in place."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_store")

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)

    def _require_records(self, what: str = "and nothing else") -> None:
        """Raise `DataError` if the model lacks the records, or the information about them, that a request needs."""
        self._require_fitted()
        if self._store.places is None:
            raise DataError(f"this estimator was saved without its training data: it can predict, {what}")
