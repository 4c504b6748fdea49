"""Decision thresholds for two classes, chosen on labelled records: the least probability at which a class is predicted.

A threshold chosen on a model's training records depends on them even after they are removed, so callers must pass other
records.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.errors import DataError, ParameterError

CRITERIA = "balanced, f1, recall=NUMBER or precision=NUMBER"
"""Criteria for choosing a threshold: the largest balanced accuracy or F1, the highest threshold with a given recall, or
the lowest threshold with a given precision."""
_MOST_DIGITS = 17

Array = NDArray[np.float64]


class Threshold(NamedTuple):
    """The threshold for one of two classes: the smallest probability of this class at which it is predicted.

    Attributes:
        probability: The threshold, strictly between 0 and 1.
        position: The number of the class, 0 or 1.
        name: Name of the class.
    """

    probability: float
    position: int
    name: str

    def predicted(self, probabilities: Array) -> NDArray[np.int64]:
        """Return the number of the predicted class, shape ``(n,)``, for probabilities of shape ``(n, 2)``."""
        enough = probabilities[:, self.position] >= self.probability
        return np.where(enough, self.position, 1 - self.position)

    def in_words(self) -> str:
        """Return the class and its threshold as text."""
        return f"{self.name!r} where its probability is at least {self.probability!r}"


class Counts(NamedTuple):
    """Counts of predictions for each candidate threshold, from the highest to the lowest.

    Attributes:
        thresholds: The distinct probabilities of the class, in descending order, shape ``(candidates,)``.
        right: Number of records of the class that are predicted correctly.
        wrong: Number of records of the other class that are predicted as this class.
    """

    thresholds: Array
    right: Array
    wrong: Array

    @property
    def recall(self) -> Array:
        """The share of the class's records that are predicted correctly."""
        return np.asarray(self.right / self.right[-1])

    @property
    def precision(self) -> Array:
        """The share of records that belong to the class among all records for which the class is predicted."""
        return self.right / (self.right + self.wrong)

    @property
    def balanced_accuracy(self) -> Array:
        """The mean of both classes' recalls."""
        return np.asarray((self.recall + 1 - self.wrong / self.wrong[-1]) / 2)

    @property
    def f1(self) -> Array:
        """The harmonic mean of precision and recall."""
        return np.asarray(2 * self.right / (self.right + self.wrong + self.right[-1]))


class Criterion(NamedTuple):
    """The criterion by which a threshold is chosen.

    Attributes:
        name: ``balanced``, ``f1``, ``recall`` or ``precision``.
        least: The minimum recall or precision; None for other criteria.
    """

    name: str
    least: float | None = None

    @classmethod
    def read(cls, text: str, name_of_option: str = "choose_threshold") -> "Criterion":
        """Read one of `CRITERIA`; messages refer to it as ``name_of_option``.

        Raises:
            ParameterError: The text is not one of `CRITERIA`.
        """
        name, separator, number = text.partition("=")
        if name not in _CHOICES or bool(separator) != (name in ("recall", "precision")):
            raise ParameterError(f"{name_of_option} must be {CRITERIA}, got {text!r}")
        if not separator:
            return cls(name)
        try:
            least = float(number)
        except ValueError:
            least = math.nan
        if not 0 < least <= 1:
            raise ParameterError(
                f"{name_of_option} is {text!r}, but {name} must be a number above 0 and at most 1, such as {name}=0.8"
            )
        return cls(name, least)

    def choose(self, probabilities: Array, is_of_class: NDArray[np.bool_]) -> float:
        """Use records to choose a threshold.

        The threshold has few digits, so that it is hardly ever a record's own probability.

        Args:
            probabilities: Probabilities of the class, shape ``(n,)``.
            is_of_class: Whether each record is of the class, shape ``(n,)``.

        Raises:
            DataError: All records are of one class, or no threshold has the requested precision.
        """
        if is_of_class.all() or not is_of_class.any():
            raise DataError("all records are of one class, but a threshold can be chosen only on records of both")
        counts = _counted(probabilities, is_of_class)
        place = _CHOICES[self.name](counts, self.least or 0.0)
        below = counts.thresholds[place + 1] if place + 1 < len(counts.thresholds) else 0.0
        return _between(float(below), float(counts.thresholds[place]))


def _counted(probabilities: Array, is_of_class: NDArray[np.bool_]) -> Counts:
    from sklearn.metrics import roc_curve  # Imported here, because most commands do not need it.

    wrong, right, thresholds = roc_curve(is_of_class, probabilities, drop_intermediate=False)
    members = int(is_of_class.sum())
    # The first threshold is infinite: no record is predicted.
    return Counts(thresholds[1:], np.rint(right * members)[1:], np.rint(wrong * (len(is_of_class) - members))[1:])


def _with_recall(counts: Counts, least: float) -> int:
    return int(np.argmax(counts.recall >= least))


def _with_precision(counts: Counts, least: float) -> int:
    precision = counts.precision
    if not (precision >= least).any():
        best = int(precision.argmax())
        raise DataError(
            f"no threshold has precision {least:g} on these records: the largest is {precision[best]:.3f}, with recall "
            f"{counts.recall[best]:.3f}"
        )
    return int(np.flatnonzero(precision >= least)[-1])


_CHOICES: Mapping[str, Callable[[Counts, float], int]] = {
    "balanced": lambda counts, _: int(counts.balanced_accuracy.argmax()),
    "f1": lambda counts, _: int(counts.f1.argmax()),
    "recall": _with_recall,
    "precision": _with_precision,
}
"""Functions that return the position of the best candidate, by criterion."""


def _between(below: float, at: float) -> float:
    """Return a number with few digits in the interval (``below``, ``at``] and in (0, 1), near the interval's middle."""
    for digits in range(1, _MOST_DIGITS + 1):
        short = float(f"{(below + at) / 2:.{digits}g}")
        if below < short <= at and 0 < short < 1:
            return short
    return min(at, math.nextafter(1, 0))
