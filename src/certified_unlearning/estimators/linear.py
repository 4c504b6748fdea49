"""A linear model as scikit-learn knows it: records checked and made rows, requests, noise, files."""

import secrets
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from certified_unlearning.data.advice.shares import Shares, sampled
from certified_unlearning.data.prepared import NORM_TOLERANCE
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.estimators import storage
from certified_unlearning.estimators.advice import warn_of_a_drowning_column
from certified_unlearning.estimators.requests import FrameIndex, positions_named, warn_of_an_empty_class
from certified_unlearning.estimators.scaling import Array, PublicScaling, dense, unit
from certified_unlearning.text import counted

Fit = TypeVar("Fit", bound=Callable[..., Any])


def without_sample_weight(fit: Fit) -> Fit:
    """Let a ``fit`` refuse ``sample_weight`` with the reason.

    The signature stays ``fit(X, y)``, for scikit-learn takes an estimator that names ``sample_weight`` there for one
    that supports it: its checks would demand that, and its searches would pass weights on.
    """

    @wraps(fit)
    def refusing(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if sample_weight is not None:
            raise ParameterError(
                "sample_weight must be None: the guarantee counts every record for at most 1, and a weight of its own "
                "would change how much a record can move the model; class_weight takes public weights of classes"
            )
        return fit(self, X, y)

    return cast(Fit, refusing)


class LinearModel(BaseEstimator):  # type: ignore[misc]
    """Scores by weights of rows of norm at most 1, with or without a regularised intercept.

    The model of a record ``x`` is that of the row ``(x, 1) / sqrt(2)``, without an intercept: its norm is at most 1
    where that of ``x`` is, and the weights are scikit-learn's times ``sqrt(2)``, so the regulariser's strength is
    halved. An estimator must not be used by several threads at once.

    Subclasses set ``_weights``, of the rows; they have the parameters ``normalize``, ``feature_ranges``, ``data_norm``,
    ``fit_intercept`` and ``random_state``. ``coef_`` and ``intercept_`` are of the features as the model sees them:
    after ``feature_ranges``, ``data_norm`` or ``normalize``.

    Attributes:
        n_features_in_: Number of features.
        feature_names_in_: Their names, if ``X`` was a data frame.
    """

    _training_rows: Any
    _NEEDS_SHORT_ROWS: ClassVar[str] = "the guarantee needs norms of at most 1"

    @property
    @abstractmethod
    def _dtype(self) -> str:
        """The type of rows."""

    @property
    @abstractmethod
    def _fitted_records(self) -> int:
        """The number of records that were fitted."""

    @abstractmethod
    def _remove(self, indices: Any) -> bool:
        """Remove records and their labels, all or none, whenever it is interrupted.

        Returns:
            Whether a class has lost all of its own.
        """

    def unlearn(self, indices: ArrayLike | None = None, *, index: Any = None) -> Self:
        """Remove records from the model, and from what it keeps of its training data.

        A request that names no record changes nothing: weights, certificate and counts stay. For a whole pipeline there
        is `certified_unlearning.unlearn`.

        Args:
            indices: Positions of the records in the ``X`` that was fitted, all different, none removed before; or a
                mask with one truth value for each of them.
            index: Labels of the records in the index of the data frame that was fitted, instead; all records that have
                one of them, as in pandas' ``drop``.

        Returns:
            The estimator, with a new ``certificate_``. When an error is raised it is as it was before, but for the
            warning that a class has lost its last record: then the removal is done.

        Raises:
            ParameterError: An index is none, or appears twice, or was removed before, or no record would be left, or
                it is not clear which records are meant.
            DataError: The estimator was saved without its training data.
            InfeasibleError: The target cannot be met, or a solver did not reach its budget.
        """
        self._require_fitted()
        if self._training_rows is None:
            raise DataError("this estimator was saved without its training data: it can predict, but not unlearn")
        named = self._named(indices, index, self._fitted_records)
        if not len(named):
            return self
        if self._remove(named):
            warn_of_an_empty_class()
        return self

    def _rows(self, features: Array) -> NDArray[Any]:
        """Return features as rows of norm at most 1, in an array that nobody else has."""
        self._require_short(features)
        return self._mapped(features)

    def _require_short(self, features: Array) -> None:
        """Raise `DataError` if a row is longer than 1 and nothing makes it shorter."""
        if not self.normalize and self._scaling() is None:
            require_short_rows(features, self._NEEDS_SHORT_ROWS)

    def _mapped(self, features: Array) -> NDArray[Any]:
        """Return checked features as rows, in an array that nobody else has."""
        if self.normalize or self._scaling() is not None:
            features = self._seen(features.astype(np.float64, copy=False))  # float32 would leave some too long.
        return self._with_intercept(features)

    def _with_intercept(self, features: Array) -> NDArray[Any]:
        """Return features as the model sees them as rows, in an array that nobody else has."""
        if self.fit_intercept:
            rows = np.empty((len(features), features.shape[1] + 1), dtype=features.dtype)
            np.divide(features, np.sqrt(2), out=rows[:, :-1])
            rows[:, -1] = 1 / np.sqrt(2)
            return rows.astype(self._dtype, copy=False)
        # A copy in any case: what the caller does to X later must not reach the training records.
        return np.array(features, dtype=self._dtype, order="C")

    def _seen(self, features: NDArray[Any]) -> NDArray[Any]:
        """Return features as the model sees them."""
        scaling = self._scaling()
        if scaling is not None:
            return scaling(features)
        return unit(features) if self.normalize else features

    def _warn_if_a_column_drowns(self, features: Array) -> None:
        """Warn the caller of `fit` if one column carries nearly all of a row's squared norm.

        So much is computed from 2,500 of the records at most, the same ones every time.

        Args:
            features: Checked features that are not refused for their length.
        """
        count = features.shape[1]
        some = self._seen(features[sampled(len(features), count)].astype(np.float64))
        names = getattr(self, "feature_names_in_", None)
        shares = Shares([f"column {place} of X" for place in range(count)] if names is None else names.tolist())
        shares.add(some)
        largest = shares.largest()
        if largest is not None:
            warn_of_a_drowning_column(largest, ranges=self.feature_ranges, records=len(some))

    def _scaling(self) -> PublicScaling | None:
        """Return the map to ranges or to a norm; None where neither is given.

        Raises:
            ParameterError: Their numbers make no sense.
        """
        if self.feature_ranges is None and self.data_norm is None:
            return None
        return PublicScaling(
            features=self.n_features_in_,
            ranges=self.feature_ranges,
            data_norm=self.data_norm,
            normalize=self.normalize,
        )

    def _checked(self, X: Any) -> Array:
        """Return records to predict as dense features, shape ``(records, features)``."""
        return dense(validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False))

    @staticmethod
    def _require_both_or_neither(X: Any, y: Any) -> None:
        if (X is None) != (y is None):
            raise ParameterError(f"give X and y together, or neither, got {'y' if X is None else 'X'} only")

    def _note_index(self, X: Any, y: Any) -> None:
        """Keep the labels of a data frame's records, by which requests may name them."""
        self._frame_index = FrameIndex.of(X, y)

    @property
    def _rows_are_only_numbered(self) -> bool:
        """Whether the fitted frame's index only numbers its rows, as it does where labels were lost before."""
        return self._frame_index is not None and self._frame_index.labels is None

    def _named(self, indices: Any, index: Any, n: int) -> NDArray[Any]:
        """Return the positions that a request names among ``n`` fitted records; none for an empty request."""
        return positions_named(indices, index, n=n, frame_index=self._frame_index)

    def _labels_at(self, positions: NDArray[Any]) -> NDArray[Any] | None:
        """Return a copy of the data frame's labels of some records; None where it has none."""
        known = None if self._frame_index is None else self._frame_index.labels
        return None if known is None else known[positions]

    def _index_without(self, positions: NDArray[Any]) -> FrameIndex | None:
        """Return the fitted frame's index without the labels of removed records; a shallow copy keeps what it had."""
        return None if self._frame_index is None else self._frame_index.without(positions)

    def _label(self, positions: NDArray[Any], labels: NDArray[Any] | None) -> None:
        """Put labels in the place of those of some records, in place: None for records that are removed."""
        if self._frame_index is not None and self._frame_index.labels is not None:
            self._frame_index.labels[positions] = labels

    def _has_an_empty_class(self) -> bool:
        """Return whether a class has lost all of its records; of numbers there are none."""
        return False

    def _scaling_in_words(self) -> list[str]:
        """Return what a report says of public scaling, beside the certificate's assumptions."""
        given = [name for name in ("feature_ranges", "data_norm") if getattr(self, name) is not None]
        if not given:
            return []
        return [
            f"- {' and '.join(given)} {'were' if given != ['data_norm'] else 'was'} not taken from the records: each "
            "record was clipped or scaled by itself to what was given"
        ]

    def _noise_key(self) -> int:
        """Return the address of new noise: from the operating system, or from ``random_state``."""
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

    def _described_index(self) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
        """Return what a file says of the fitted frame's index: in its header, and as an array."""
        packed = None if self._frame_index is None else self._frame_index.packed()
        known = self._frame_index is not None and (packed is not None or self._frame_index.labels is None)
        return {"has_index": known}, {"frame_index": packed}

    def _parameters(self, *, secrets_too: bool) -> dict[str, Any]:
        """Return the parameters for a file's header, without the seed unless ``secrets_too``.

        Raises:
            ParameterError: ``random_state`` is a generator, which JSON cannot hold.
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
            # As pairs: JSON's objects would make words of labels that are numbers.
            parameters["class_weight"] = list(parameters["class_weight"].items())
        if not isinstance(parameters["random_state"], int | np.integer | None):
            raise ParameterError(
                "an estimator whose random_state is a generator cannot be saved; give a number or None"
            )
        return parameters

    def _described(self) -> dict[str, Any]:
        """Return what a file's header says of every model."""
        return {
            "class": type(self).__name__,
            "n_features_in": self.n_features_in_,
            "feature_names_in": getattr(self, "feature_names_in_", np.array([])).tolist(),
        }

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an estimator that `save` wrote.

        Raises:
            DataError: The file is missing, damaged, or holds something else.
        """
        header, arrays = storage.read(path, cls.__name__)
        try:
            estimator = cls._from_file(header, arrays)
            estimator._restore(header, arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise storage.no_estimator(path, error) from error
        return estimator

    @abstractmethod
    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set what a file of `save` says besides parameters and columns; what is missing or wrong may raise."""

    @classmethod
    def _from_file(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return a model with what a file says of every model."""
        estimator = cls(**header["parameters"])
        estimator.n_features_in_ = header["n_features_in"]
        if header["feature_names_in"]:
            estimator.feature_names_in_ = np.array(header["feature_names_in"], dtype=object)
        # Files of before these were kept have neither.
        estimator._frame_index = FrameIndex.unpacked(header.get("has_index", False), arrays.get("frame_index"))
        return estimator

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Put everything back as it was when the block is interrupted or fails. No array is changed in place."""
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

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)


def writeable(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, or a private copy where it must not be written to: a map of a file, shared by processes."""
    return array if array.flags.writeable else np.array(array)


ROWS_AT_ONCE = 8192
"""Rows that stay in a processor's cache."""


def require_short_rows(features: Array, why: str) -> None:
    """Raise `DataError` if a row is longer than 1: the message names the longest, and says why it must not be."""
    norms = np.empty(len(features))
    for start in range(0, len(features), ROWS_AT_ONCE):
        some = features[start : start + ROWS_AT_ONCE].astype(np.float64, copy=False)
        # A sum that overflows is infinite, and longer than 1.
        np.einsum("ij,ij->i", some, some, out=norms[start : start + len(some)])
    np.sqrt(norms, out=norms)
    worst, longer = int(norms.argmax()), int((norms > 1 + NORM_TOLERANCE).sum())
    if longer:
        raise DataError(
            f"row {worst} of X has norm {norms[worst]:.7g}, the longest of {counted(longer, 'row')} above 1, but "
            f"{why}; "
            "give feature_ranges, a pair (low, high) for each column, known without these "
            "records; or divide X by a public constant, or say normalize=True to divide every row by its own norm"
        )
