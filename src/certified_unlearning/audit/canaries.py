"""Canaries: an audit draws some of these records at random, learns them and removes them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.accounting.auditing.guesses import log_tail, log_tail_by_class, log_tail_of_both
from certified_unlearning.errors import DataError, ParameterError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Known:
    """Everything that a guesser knows in addition to the published numbers.

    Attributes:
        X: The records that stay, shape ``(n, features)``.
        y: Classes or targets of ``X``, shape ``(n,)``.
        rows: The canaries, shape ``(m, features)``.
        labels: Classes or targets of the canaries, shape ``(m,)``.
        copies: Number of equal records that make up one canary.
        members: Number of canaries that were drawn, learned and removed.
    """

    X: Array
    y: NDArray[Any]
    rows: Array
    labels: NDArray[Any]
    copies: int
    members: int

    def with_canaries(self, drawn: NDArray[np.int64]) -> tuple[Array, NDArray[Any], NDArray[np.int64]]:
        """Return records and labels with the drawn canaries at their end, and the positions of these canaries.

        Canaries that are not drawn leave no gap, so the positions do not reveal which canaries were drawn.
        """
        added = np.repeat(drawn, self.copies)
        X, y = np.concatenate([self.X, self.rows[added]]), np.concatenate([self.y, self.labels[added]])
        return X, y, np.arange(len(self.X), len(X))


@dataclass(frozen=True)
class Guessing:
    """How members are drawn and named, and the probability of at least a given number of right guesses.

    Attributes:
        canaries: Number of candidates for canaries. If a fixed number is drawn from each class, there is one entry for
            each class; otherwise, there is a single entry.
        members: Number of candidates that are drawn from each class.
        named: Number of canaries that a guess names as members.
        named_others: Number of canaries that a guess names as non-members.
    """

    canaries: tuple[int, ...]
    members: tuple[int, ...]
    named: int
    named_others: int = 0

    @property
    def most_right(self) -> int:
        """The largest possible number of right guesses."""
        members, others = sum(self.members), sum(self.canaries) - sum(self.members)
        return min(self.named, members) + min(self.named_others, others)

    def log_p_value(self, right: int) -> float:
        """Return the logarithm of the probability of at least this many right guesses by chance."""
        canaries, members = sum(self.canaries), sum(self.members)
        if len(self.canaries) > 1:
            return log_tail_by_class(canaries=self.canaries, members=self.members, named=self.named, right=right)
        if self.named_others:
            return log_tail_of_both(
                canaries=canaries, members=members, named=self.named, named_others=self.named_others, right=right
            )
        return log_tail(canaries=canaries, members=members, named=self.named, right=right)

    def right(self, scores: Array, is_member: NDArray[np.bool_], ties: Array) -> int:
        """Return the number of right guesses.

        Args:
            scores: Scores of all canaries, shape ``(m,)``. Canaries with the largest scores are named as members, those
                with the smallest scores as non-members.
            is_member: Whether each canary was drawn, shape ``(m,)``.
            ties: Random numbers that decide between equal scores, shape ``(m,)``. They are independent of the drawn
                canaries.
        """
        order = np.lexsort((ties, -scores))
        named, others = order[: self.named], order[len(order) - self.named_others :]
        return int(is_member[named].sum() + (~is_member[others]).sum())


def orthogonal_directions(canaries: int, features: int, rng: np.random.Generator) -> Array:
    """Draw rows of norm 1 that are orthogonal to each other within groups of at most ``features`` rows.

    Args:
        canaries: Number of rows.
        features: Number of features of each row.
        rng: Generator that draws the rows.
    """
    groups = [
        np.linalg.qr(rng.standard_normal((features, features)))[0] for _ in range(-(-canaries // features))
    ]  # fmt: skip
    return np.concatenate(groups)[:canaries]


def drawn_canaries(
    canaries: int,
    X: Array,
    y: NDArray[Any],
    long_rows: Callable[[Array], Array] | None,
    target_range: tuple[float, float] | None,
    rng: np.random.Generator,
) -> tuple[Array, NDArray[Any]]:
    """Return orthogonal canaries with random labels.

    Args:
        canaries: Number of canaries.
        X: The records that stay, shape ``(n, features)``.
        y: Classes of these records, from which the canaries' classes are drawn. If ``y`` contains targets and no range
            is known, each canary gets the smallest or the largest target in ``y``.
        long_rows: Function that turns directions into rows of the largest norm that the guarantee allows. None: rows
            have the median norm of ``X``.
        target_range: Smallest and largest target; each canary gets one of the two. None for classes, or if no range is
            known.
        rng: Generator that draws the canaries.
    """
    directions = orthogonal_directions(canaries, X.shape[1], rng)
    rows = directions * np.median(np.linalg.norm(X, axis=1)) if long_rows is None else long_rows(directions)
    if target_range is not None:
        return rows, rng.choice(np.array(target_range), size=canaries)
    return rows, rng.choice(np.unique(y) if is_classes(y) else np.array([y.min(), y.max()]), size=canaries)


def is_classes(y: NDArray[Any]) -> bool:
    """Return whether labels are classes, according to scikit-learn's `type_of_target`."""
    from sklearn.utils.multiclass import type_of_target

    return type_of_target(y) in ("binary", "multiclass")


def require_canaries(known: Known, target_range: tuple[float, float] | None) -> None:
    """Check canaries against the records that stay.

    Args:
        known: The canaries and the records that stay.
        target_range: Smallest and largest target; None for classes, or if no range is known.

    Raises:
        DataError: The columns or labels of the canaries differ from those of the records that stay.
        ParameterError: There are too few canaries, or a number is invalid.
    """
    if known.rows.ndim != 2 or known.rows.shape[1] != known.X.shape[1] or len(known.rows) != len(known.labels):
        raise DataError(
            f"canaries must be rows of {known.X.shape[1]} features, with one label for each row; got rows of shape "
            f"{known.rows.shape} and labels of shape {known.labels.shape}"
        )
    if not 0 < known.members < len(known.rows):
        raise ParameterError(
            f"the number of removed canaries must be from 1 to {len(known.rows) - 1}, because there are "
            f"{len(known.rows)} canaries and at least one must not be learned; got {known.members}"
        )
    if known.copies < 1:
        raise ParameterError(f"copies must be at least 1, got {known.copies}")
    if target_range is None and is_classes(known.y):
        unknown = np.setdiff1d(known.labels, known.y).tolist()
        if unknown:
            raise DataError(
                f"canaries have the class {unknown[0]!r}, which no record of y has, so the list of classes would "
                "reveal which canaries were learned"
            )
