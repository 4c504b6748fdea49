"""Quality of predictions on labelled records, with measures that stay informative if one class is rare.

Records come block by block, so they may exceed memory. The module has no heavy imports.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.text import counted, noun_of, with_commas

MOST_SCORES = 1 << 23
"""Largest number of scores kept for the AUC of three or more classes (64 MB). For two classes, all scores are kept."""
HARDLY = 0.02
"""A model is useful if its balanced accuracy exceeds that of a constant prediction by at least this much. This number
is also the smallest useful R^2."""
_CLASSES_SHOWN = 12
RANKS = 0.6
"""Smallest AUC that counts as informative, even if predictions at a threshold of one half are not."""
RARE = 0.5
"""A class is rare if its share of the records is below this fraction of an even share."""
_LEAST_PROBABILITY = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class ClassQuality:
    """Quality of predictions for one class.

    Attributes:
        name: Name of the class.
        precision: Share of correct predictions among the records for which this class is predicted; None if there
            are no such records.
        recall: Share of its records that are predicted as the class; None if it has no records.
        records: Number of its records.
        predicted: Number of records that are predicted as the class.
    """

    name: object
    precision: float | None
    recall: float | None
    records: int
    predicted: int

    @property
    def line(self) -> str:
        """All numbers in one line."""
        precision = "no precision (never predicted)" if self.precision is None else f"precision {self.precision:.3f}"
        recall = "no recall" if self.recall is None else f"recall {self.recall:.3f}"
        return f"class {self.name!r}: {precision}, {recall} ({counted(self.records, 'record')})"


@dataclass(frozen=True)
class Quality:
    """Quality of class predictions.

    Attributes:
        accuracy: Share of the records that are classified correctly.
        balanced_accuracy: The mean of the classes' recalls, that is, of the shares of their records that are classified
            correctly. Classes without records do not count.
        auc: The probability that a record of the second class scores higher than one of the first; ties count half. For
            more than two classes, the mean over one-against-the-rest AUCs. None if a class has no records, or if there
            are more than two classes and more than `MOST_SCORES` scores.
        log_loss: Mean of ``-log p(right class)``; probabilities count as at least 2.2e-16.
        majority: The majority line: the share of the most frequent class, which is the accuracy of always predicting
            it.
        records: Number of records.
        no_auc: Why there is no ``auc``; None if there is one.
        classes: Number of classes with records.
        by_class: Quality of predictions for each class.
    """

    accuracy: float
    balanced_accuracy: float
    auc: float | None
    log_loss: float
    majority: float
    records: int
    no_auc: str | None = None
    classes: int = 2
    by_class: tuple[ClassQuality, ...] = ()

    @property
    def beats_majority(self) -> bool:
        """Whether the predictions are correct more often than always predicting the most frequent class."""
        return self.accuracy > self.majority

    @property
    def hardly_tells(self) -> bool:
        """Whether balanced accuracy is near that of a constant prediction and the scores do not rank the records.

        Balanced accuracy alone does not decide, because a rare class may never have a probability above one half, even
        if the records are ranked well.
        """
        return self._hardly_differs and not self.ranks

    @property
    def ranks(self) -> bool:
        """Whether the scores tell the classes apart; False if there is no AUC."""
        return self.auc is not None and self.auc >= RANKS

    @property
    def _hardly_differs(self) -> bool:
        """Whether balanced accuracy is near that of a constant prediction."""
        return self.balanced_accuracy < 1 / self.classes + HARDLY

    @property
    def fact(self) -> str | None:
        """The warning for users; None if there is none."""
        if self.classes < 2:
            return "all records are of one class, so nothing here says whether the model tells the classes apart"
        against = (
            f"accuracy {self.accuracy:.3f} against {self.majority:.3f} for always predicting the most frequent class"
        )
        balanced = f"balanced accuracy {self.balanced_accuracy:.3f} against {1 / self.classes:.3f}"
        if self.hardly_tells:
            return f"the model hardly tells the classes apart: {balanced}, {against}"
        ranked = ""
        if self.ranks:
            how = "choose a threshold other than one half"
            if self.classes > 2:
                how = "divide each class's probability by its mean before you compare them"
            ranked = f"; its scores rank the records (AUC {self.auc:.3f}), so {how}"
        missed = self._missed
        if missed is not None:
            return (
                f"the model finds few records of the rare class {missed.name!r}, {missed.records:,} of "
                f"{self.records:,}: recall {missed.recall:.3f}, {balanced}, {against}{ranked}"
            )
        if self._hardly_differs:
            return f"the model nearly always predicts the same class: {balanced}, {against}{ranked}"
        if not self.beats_majority:
            return (
                f"the model is right no more often than always predicting the most frequent class, but it tells the "
                f"classes apart: {balanced}, {against}; if classes are rare, use balanced accuracy or AUC instead"
            )
        return None

    @property
    def finds_all_classes(self) -> bool:
        """Whether the recall of every class is higher than that of guessing, possibly at the cost of accuracy."""
        recalls = [each.recall for each in self.by_class if each.recall is not None]
        return self.classes > 1 and len(recalls) == self.classes and min(recalls) > 1 / self.classes

    @property
    def _missed(self) -> ClassQuality | None:
        """The rare class with the lowest recall, if that recall is below that of guessing; otherwise None."""
        rare = [
            (each.recall, place)
            for place, each in enumerate(self.by_class)
            if each.recall is not None
            and each.recall < 1 / self.classes
            and each.records < RARE * self.records / self.classes
        ]
        return self.by_class[min(rare)[1]] if rare else None

    @property
    def comparable(self) -> "Quality | None":
        """This quality, or None if it cannot be used to compare models because all records are of one class."""
        return self if self.classes >= 2 else None

    @property
    def numbers(self) -> dict[str, Any]:
        """All attributes by name."""
        return asdict(self)

    @property
    def line(self) -> str:
        """All numbers in one line."""
        auc = f"no AUC ({self.no_auc})" if self.auc is None else f"AUC {self.auc:.3f}"
        return (
            f"accuracy {self.accuracy:.3f}, balanced accuracy {self.balanced_accuracy:.3f}, {auc}, "
            f"log loss {self.log_loss:.3f}; always predicting the most frequent class gives accuracy "
            f"{self.majority:.3f}"
        )

    @property
    def lines_by_class(self) -> list[str]:
        """A line for each class; if there are many classes, only for the first ones."""
        shown = [each.line for each in self.by_class[:_CLASSES_SHOWN]]
        more = len(self.by_class) - len(shown)
        return shown if more <= 0 else [*shown, f"and {counted(more, 'more class')}"]

    def in_words(self) -> list[str]:
        """Return a line for a report, and a warning if the predictions are useless."""
        auc = f"AUC {self.auc:.3f}" if self.auc is not None else f"no AUC ({self.no_auc})"
        said = [
            f"Quality on {self.records} {noun_of(self.records, 'record')}: accuracy {self.accuracy:.3f}, balanced "
            "accuracy "
            f"{self.balanced_accuracy:.3f}, {auc}, log loss {self.log_loss:.3f}; always predicting the most frequent "
            f"class gives accuracy {self.majority:.3f}."
        ]
        if self.fact is not None:
            said.append(f"Warning: {self.fact}.")
        return said


def quality_of(probabilities: ArrayLike, labels: ArrayLike, classes: ArrayLike) -> Quality:
    """Return the quality of predicted probabilities.

    If a record's probabilities are equal, the first class is predicted.

    Args:
        probabilities: Shape ``(n, len(classes))``.
        labels: The true class of each record, shape ``(n,)``.
        classes: The classes, in the order of the columns.

    Raises:
        ParameterError: Shapes do not fit, a label is not one of the classes, or a probability is not a number from 0 to
            1.
        DataError: There are no records.
    """
    given, names = np.asarray(labels), np.asarray(classes)
    if given.ndim != 1:
        raise ParameterError(f"labels must be one class for each record, got shape {given.shape}")
    order = np.argsort(names)
    found = np.searchsorted(names, given, sorter=order).clip(max=len(names) - 1)
    positions = order[found]
    unknown = names[positions] != given
    if unknown.any():
        known = ", ".join(map(repr, names.tolist()))
        raise ParameterError(f"labels contain {given[unknown].tolist()[0]!r}, but must be among the classes {known}")
    tally = Tally(len(names), names.tolist())
    tally.add(probabilities, positions)
    return tally.quality()


class Tally:
    """A tally of predictions and true classes, block by block.

    For the AUC, 9 bytes per record are kept for two classes, and 8 k + 1 bytes for k classes. Its computation needs 8
    more bytes per record.

    Args:
        classes: Number of classes, at least 2.
        names: Names of the classes; by default their numbers.
    """

    def __init__(self, classes: int, names: Sequence[object] | None = None) -> None:
        self._names = range(classes) if names is None else names
        self._right = np.zeros(classes, np.int64)
        self._all = np.zeros(classes, np.int64)
        self._said = np.zeros(classes, np.int64)
        self._loss = 0.0
        self._scores: list[NDArray[np.float64]] | None = []
        self._positions: list[NDArray[np.int8]] = []

    def add(self, probabilities: ArrayLike, positions: ArrayLike, predicted: ArrayLike | None = None) -> None:
        """Count some records.

        Args:
            probabilities: Shape ``(n, classes)``.
            positions: Number of each record's true class, from 0; shape ``(n,)``.
            predicted: Number of each record's predicted class; by default, the one with the largest probability.

        Raises:
            ParameterError: Shapes do not fit, or a probability is not a number from 0 to 1.
        """
        p, right = np.asarray(probabilities, np.float64), np.asarray(positions, np.int64)
        classes = len(self._all)
        if p.shape != (len(right), classes):
            raise ParameterError(f"probabilities must have shape {(len(right), classes)}, got {p.shape}")
        if not ((p >= 0) & (p <= 1)).all():  # NaN fails both comparisons.
            raise ParameterError("probabilities must be numbers from 0 to 1")
        said = p.argmax(axis=1) if predicted is None else np.asarray(predicted)
        self._all += np.bincount(right, minlength=classes)
        self._said += np.bincount(said, minlength=classes)
        self._right += np.bincount(right[said == right], minlength=classes)
        self._loss -= float(np.log(np.maximum(p[np.arange(len(right)), right], _LEAST_PROBABILITY)).sum())
        if classes > 2 and int(self._all.sum()) * classes > MOST_SCORES:
            self._scores = None
        if self._scores is not None:
            of = p[:, 1:] if classes == 2 else p
            with np.errstate(divide="ignore"):
                self._scores.append(np.log(of) - np.log1p(-of))
            self._positions.append(right.astype(np.int8))

    def quality(self) -> Quality:
        """Return the quality of all predictions.

        Raises:
            DataError: There are no records.
        """
        records = int(self._all.sum())
        if not records:
            raise DataError("there are no records to compare predictions with")
        present = self._all > 0
        auc = self._auc() if present.all() else None
        absent = f"no record of class {self._names[int(present.argmin())]!r}"
        return Quality(
            accuracy=int(self._right.sum()) / records,
            balanced_accuracy=float((self._right[present] / self._all[present]).mean()),
            auc=auc,
            no_auc=None if auc is not None else "too many scores" if present.all() else absent,
            log_loss=self._loss / records,
            majority=int(self._all.max()) / records,
            records=records,
            classes=int(present.sum()),
            by_class=tuple(self._of_class(place) for place in range(len(present))),
        )

    def _of_class(self, place: int) -> ClassQuality:
        right, records, said = (int(counts[place]) for counts in (self._right, self._all, self._said))
        precision, recall = (right / many if many else None for many in (said, records))
        return ClassQuality(self._names[place], precision, recall, records, said)

    def _auc(self) -> float | None:
        if self._scores is None:
            return None
        members = range(1, 2) if len(self._all) == 2 else range(len(self._all))
        return float(np.mean([self._area(column, each) for column, each in enumerate(members)]))

    def _area(self, column: int, member: int) -> float:
        """Return the probability that a record of a class scores higher than a record outside it (Mann and Whitney)."""
        kept = list(zip(self._scores or (), self._positions, strict=True))
        outside = np.empty(sum(int((positions != member).sum()) for _, positions in kept))
        filled = 0
        for scores, positions in kept:
            others = scores[positions != member, column]
            outside[filled : filled + len(others)] = others
            filled += len(others)
        outside.sort()
        wins = members = 0
        for scores, positions in kept:
            inside = scores[positions == member, column]
            below = np.searchsorted(outside, inside, side="left").sum(dtype=np.int64)
            wins += int(below + np.searchsorted(outside, inside, side="right").sum(dtype=np.int64))
            members += len(inside)
        return wins / 2 / (members * len(outside))


@dataclass(frozen=True)
class TargetQuality:
    """Quality of numeric predictions.

    Attributes:
        r2: The share of the targets' variance that is explained; None if all targets are equal.
        root_mean_squared_error: The root mean squared error, in units of the target.
        mean_absolute_error: The mean absolute error, in units of the target.
        mean_line: The root mean squared error of always predicting the mean of these targets.
        records: Number of records.
    """

    r2: float | None
    root_mean_squared_error: float
    mean_absolute_error: float
    mean_line: float
    records: int
    finds_all_classes: ClassVar[bool] = False
    """Always False, because numbers have no classes."""
    lines_by_class: ClassVar[tuple[str, ...]] = ()
    """Always empty, because numbers have no classes."""

    @property
    def hardly_tells(self) -> bool:
        """Whether predictions are at most slightly better than the mean of the targets."""
        return self.r2 is None or self.r2 < HARDLY

    @property
    def fact(self) -> str | None:
        """The warning for users; None if there is none."""
        if self.r2 is None:
            return "all targets are the same, so nothing here says how good the model is"
        if self.root_mean_squared_error >= self.mean_line:
            return "the model is no better than always predicting the mean of these targets"
        if self.hardly_tells:
            return "the model is hardly better than always predicting the mean of these targets"
        return None

    @property
    def comparable(self) -> "TargetQuality | None":
        """This quality, or None if it cannot be used to compare models because all targets are equal."""
        return None if self.r2 is None else self

    @property
    def numbers(self) -> dict[str, Any]:
        """All attributes by name."""
        return asdict(self)

    @property
    def line(self) -> str:
        """All numbers in one line."""
        return (
            f"{self._r2}, root mean squared error {with_commas(self.root_mean_squared_error, 4)}, mean absolute error "
            f"{with_commas(self.mean_absolute_error, 4)}; always predicting the mean of the targets "
            f"gives root mean squared error {with_commas(self.mean_line, 4)}"
        )

    @property
    def _r2(self) -> str:
        return "no R^2 (all targets are the same)" if self.r2 is None else f"R^2 {self.r2:.3f}"

    def in_words(self) -> list[str]:
        """Return a line for a report, and a warning if the predictions are useless."""
        said = [
            f"Quality on {self.records} {noun_of(self.records, 'record')}: {self._r2}, root mean squared error "
            f"{self.root_mean_squared_error:.4g}, "
            f"mean absolute error {self.mean_absolute_error:.4g}; always predicting the mean of the targets "
            f"gives root mean squared error {self.mean_line:.4g}."
        ]
        if self.fact is not None:
            said.append(f"Warning: {self.fact}.")
        return said


def target_quality_of(predictions: ArrayLike, targets: ArrayLike) -> TargetQuality:
    """Return the quality of numeric predictions.

    Args:
        predictions: Shape ``(n,)``.
        targets: Shape ``(n,)``.

    Raises:
        ParameterError: Shapes do not fit.
        DataError: There are no records.
    """
    said, right = np.asarray(predictions, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    if said.shape != right.shape or right.ndim != 1:
        raise ParameterError(f"targets must be one number for each of {said.shape} records, got shape {right.shape}")
    if not len(right):
        raise DataError("there are no records to measure predictions on")
    squared, variance = float(((said - right) ** 2).mean()), float(right.var())
    return TargetQuality(
        r2=None if variance == 0 else 1 - squared / variance,
        root_mean_squared_error=float(np.sqrt(squared)),
        mean_absolute_error=float(np.abs(said - right).mean()),
        mean_line=float(np.sqrt(variance)),
        records=len(right),
    )
