"""The records that a request names: by position, by a mask, or by the labels of a data frame's index."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.errors import ParameterError
from certified_unlearning.estimators.advice import callers_level


@dataclass(frozen=True, eq=False)
class FrameIndex:
    """The index of the data frame to which the model was fitted.

    Attributes:
        labels: One label for each record. The label of a removed record becomes None, because it may be a person's
            name. The attribute itself is None if the index only numbers the records from ``0`` to ``n - 1``.
        of_y: Whether the labels come from the index of ``y``, because the rows ``X`` had no index with labels.
    """

    labels: NDArray[Any] | None
    of_y: bool = False

    @classmethod
    def of(cls, X: Any, y: Any = None) -> Self | None:
        """Return the index of the data frame ``X``; if ``X`` is not a data frame, return the index of ``y``.

        Args:
            X: Data frame, or any other object.
            y: Classes or targets. If ``X`` is not a data frame, for instance because a scaler returned an array, and
                ``y`` is a pandas series, the index of ``y`` is used.

        Returns:
            The index. None if there is no index. Also None if ``X`` is only numbered and ``y`` has labels, because a
            number could then mean two records.
        """
        of_x, of_y = cls._of_one(X), cls._of_one(y)
        labelled = of_y is not None and of_y.labels is not None
        if of_x is None:
            return cls(of_y.labels, of_y=True) if of_y is not None and labelled else None
        return None if of_x.labels is None and labelled else of_x

    @classmethod
    def _of_one(cls, values: Any) -> Self | None:
        if not _is_pandas(values):
            return None
        index = values.index
        if index.nlevels == 1 and index.dtype.kind in "iu" and np.array_equal(index, np.arange(len(index))):
            return cls(None)
        return cls(np.array(index.to_numpy(dtype=object)))

    def positions_of(self, named: Any) -> NDArray[Any]:
        """Return the positions of all records that have one of the named labels.

        Raises:
            ParameterError: A label is named twice, or no record has it, or its records were removed before.
        """
        wanted = _as_labels(named)
        if self.labels is None:
            return np.array(wanted, dtype=np.int64 if _whole(wanted) else object)
        found: dict[Any, list[int]] = {label: [] for label in wanted}
        for place, label in enumerate(self.labels):
            if label in found:
                found[label].append(place)
        for label, places in found.items():
            if not places or label is None:
                raise ParameterError(
                    f"index names {label!r}, but no record that is left has this label in the index of the X that was "
                    "fitted"
                )
        return np.array([place for places in found.values() for place in places], dtype=np.int64)

    def agrees_with(self, other: "FrameIndex | None") -> bool:
        """Return whether another index has the same labels for the same records, to the extent that both are known."""
        if other is None or self.labels is None or other.labels is None:
            return other is not None and self.labels is other.labels is None
        if len(self.labels) != len(other.labels):
            return False
        return all(mine is None or mine == theirs for mine, theirs in zip(self.labels, other.labels, strict=True))

    def extended(self, more: "FrameIndex | None", records: int) -> "FrameIndex":
        """Return the index, extended by the labels of new records; a record without a label gets the label None."""
        if self.labels is None:
            return self
        labels = np.full(records, None) if more is None or more.labels is None else more.labels
        return replace(self, labels=np.concatenate([self.labels, labels]))

    def without(self, positions: NDArray[Any]) -> "FrameIndex":
        """Return an index without the labels of removed records, in a new array."""
        if self.labels is None:
            return self
        labels = self.labels.copy()
        labels[positions] = None
        return replace(self, labels=labels)

    def packed(self) -> NDArray[np.uint8] | None:
        """Return the labels for a file, as JSON; None if there are no labels, or if JSON cannot represent them."""
        if self.labels is None:
            return None
        try:
            text = json.dumps([_packed(label) for label in self.labels], separators=(",", ":"))
        except TypeError as error:
            warnings.warn(
                f"the file does not keep the data frame's index, because {error}; after loading, give positions",
                stacklevel=callers_level(),
            )
            return None
        return np.frombuffer(text.encode(), dtype=np.uint8)

    @classmethod
    def unpacked(cls, known: bool, packed: NDArray[np.uint8] | None) -> Self | None:
        """Return the index that a file stores.

        Args:
            known: Whether there was an index.
            packed: Result of `packed`.
        """
        if not known:
            return None
        if packed is None:
            return cls(None)
        labels = json.loads(packed.tobytes())
        array = np.empty(len(labels), dtype=object)
        for place, label in enumerate(labels):
            array[place] = _unpacked(label)
        return cls(array)


def positions_named(indices: Any, index: Any, *, n: int, frame_index: FrameIndex | None) -> NDArray[Any]:
    """Return the positions that a request names among ``n`` records, in the request's order; empty if it names none.

    Args:
        indices: Positions, or a mask of ``n`` truth values.
        index: Labels of the fitted frame's index, instead of ``indices``.
        n: Number of fitted records.
        frame_index: Index of the fitted data frame; None if ``X`` was not a data frame.

    Raises:
        ParameterError: Both or neither of ``indices`` and ``index`` are given. It is unclear which records are meant.
    """
    if (indices is None) == (index is None):
        raise ParameterError(
            "name the records either by positions or a mask (indices=) or by labels of the data frame (index=), got "
            + ("neither" if index is None else "both")
        )
    if index is not None:
        if frame_index is None:
            raise ParameterError(
                "index= names records by the labels in the index of a data frame, but these labels are unknown: X was "
                "not a data frame, its index was not kept, or the index of y had other labels; give positions; give a "
                "mask such as frame.index.isin(labels); fit again with a column of the data frame as y; or fit a "
                'pipeline after set_output(transform="pandas")'
            )
        return frame_index.positions_of(index)
    try:
        wanted = np.atleast_1d(np.asarray(indices))
    except ValueError as error:
        raise _no_positions(indices) from error
    if wanted.ndim != 1:
        raise _no_positions(indices)
    if wanted.dtype == object and all(isinstance(each, bool) for each in wanted):
        wanted = wanted.astype(bool)  # pandas' own truth values have dtype object here.
    if wanted.dtype == np.bool_ and len(wanted):
        if len(wanted) != n:
            raise ParameterError(
                f"indices is a mask, which must have one truth value for each of the {n} records that were fitted, got "
                f"{len(wanted)}; positions must be a list of row numbers"
            )
        if frame_index is not None and _is_pandas(indices) and not frame_index.agrees_with(FrameIndex.of(indices)):
            raise ParameterError(
                "indices is a mask whose index differs from that of the X that was fitted; give the mask as an array, "
                "in the order of that X"
            )
        return np.flatnonzero(wanted)
    if len(wanted) and frame_index is not None and frame_index.labels is not None and _came_from_pandas(indices):
        raise ParameterError(
            "indices is a pandas object, which may hold positions or labels: use index= for labels, or give positions "
            "as an array"
        )
    return wanted


def distinct(indices: Any, n: int) -> NDArray[np.int64]:
    """Return row numbers in ascending order.

    Raises:
        ParameterError: ``indices`` are not row numbers of ``n`` records, or a number occurs twice.
    """
    wanted = np.atleast_1d(np.asarray(indices))
    if wanted.ndim != 1 or not len(wanted) or wanted.dtype.kind not in "iu":
        raise _no_positions(indices)
    wanted = np.sort(wanted.astype(np.int64))
    twice = wanted[1:] == wanted[:-1]
    if twice.any():
        raise ParameterError(f"indices names record {wanted[1:][twice][0]} twice")
    if wanted[0] < 0 or wanted[-1] >= n:
        outside = wanted[(wanted < 0) | (wanted >= n)]
        raise ParameterError(f"indices names record {outside[0]}, but records are numbered 0 to {n - 1}")
    return wanted


def require_removable(wanted: NDArray[np.int64], gone: NDArray[np.bool_], *, left: int) -> None:
    """Raise `ParameterError` if a record was removed before, or if none of the ``left`` records would remain."""
    if gone.any():
        raise ParameterError(f"record {wanted[gone][0]} was removed before")
    if len(wanted) == left:
        raise ParameterError("indices name every record that is left; at least one must remain")


def warn_of_an_empty_class() -> None:
    """Warn the caller of `unlearn` that all records of a class were removed."""
    warnings.warn(
        "a class has no record left, but its name stays in classes_ and reveals that it had records",
        stacklevel=callers_level(),
    )


def _no_positions(indices: Any) -> ParameterError:
    return ParameterError(
        "indices must be a list of row numbers of the X that was fitted, or a mask with one truth value for each, got "
        f"{indices!r}"
    )


def _is_pandas(X: Any) -> bool:
    """Return whether ``X`` is a data frame or a series, without importing pandas."""
    return hasattr(X, "iloc") and hasattr(X, "index")


def _came_from_pandas(values: Any) -> bool:
    return _is_pandas(values) or hasattr(values, "nlevels")


def _as_labels(named: Any) -> list[Any]:
    """Return labels as a list of Python's types instead of pandas' types.

    Raises:
        ParameterError: A label is a truth value, or occurs twice.
    """
    import pandas as pd

    labels: list[Any] = pd.Index([named] if pd.api.types.is_scalar(named) else named).to_numpy(dtype=object).tolist()
    if any(isinstance(label, bool | np.bool_) for label in labels):
        raise ParameterError(
            "index must hold labels of the data frame's index, not truth values; a mask is for indices"
        )
    seen: set[Any] = set()
    for label in labels:
        if label in seen:
            raise ParameterError(f"index names {label!r} twice")
        seen.add(label)
    return labels


def _whole(labels: Sequence[Any]) -> bool:
    return all(isinstance(label, int | np.integer) for label in labels)


def _packed(label: Any) -> Any:
    """Return a label as a JSON value; times and tuples are tagged with the name of their type.

    Raises:
        TypeError: JSON cannot represent the label.
    """
    import pandas as pd

    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, pd.Timestamp):
        return {"time": label.isoformat()}
    if isinstance(label, tuple):
        return {"tuple": [_packed(part) for part in label]}
    if label is None or isinstance(label, str | int | float):
        return label
    raise TypeError(f"a {type(label).__name__} cannot be written as JSON")


def _unpacked(label: Any) -> Any:
    import pandas as pd

    if not isinstance(label, dict):
        return label
    return pd.Timestamp(label["time"]) if "time" in label else tuple(map(_unpacked, label["tuple"]))
