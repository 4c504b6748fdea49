"""The constants of a learning problem, which every accountant needs."""

from dataclasses import dataclass
from typing import get_args

from certified_unlearning.accounting.core.checks import (
    make_plain,
    require_count,
    require_non_negative,
    require_positive,
)
from certified_unlearning.accounting.core.rounding import EXACT, Rounding
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.vocabulary import Adjacency


@dataclass(frozen=True)
class Problem:
    """The constants of an objective, ``f(x) = (1/n) sum_i l(x; d_i) + (m/2) ||x||^2``, and the step size.

    These are constants of the *algorithm*. Learning, unlearning and the comparator's retraining use the same constants,
    which are never recomputed from the remaining data. Code that applies a theorem checks the theorem's condition on
    ``step_size``.

    Attributes:
        n: Number of training records, the normaliser of the mean.
        strong_convexity: Strong convexity ``m`` of each record's loss with the regulariser; 0 if the losses are only
            convex.
        smoothness: Smoothness ``L`` of each record's loss with the regulariser.
        lipschitz: Bound ``M`` on the norm of each record's *data-loss* gradient (the regulariser cancels when the
            gradients for two data sets are subtracted).
        step_size: Step size ``eta``.
        adjacency: The way in which a record is erased from the comparator's data set. ``replace``: another admissible
            record takes its place. ``zero-out``: the record's data loss becomes 0, while ``n``, the regulariser, the
            step size and the noise stay the same. ``remove``: the sum is taken over the remaining records and divided
            by their number, while the regulariser, the step size and the noise stay the same.
        rounding: The rounding errors of a step. By default, arithmetic is exact, as the papers assume.

    Raises:
        AssumptionError: ``strong_convexity`` exceeds ``smoothness``.
    """

    n: int
    strong_convexity: float
    smoothness: float
    lipschitz: float
    step_size: float
    adjacency: Adjacency = "replace"
    rounding: Rounding = EXACT

    def __post_init__(self) -> None:
        require_count(least=1, n=self.n)
        require_non_negative(strong_convexity=self.strong_convexity)
        require_positive(
            smoothness=self.smoothness,
            lipschitz=self.lipschitz,
            step_size=self.step_size,
        )
        make_plain(self, "n", "strong_convexity", "smoothness", "lipschitz", "step_size")
        if self.adjacency not in get_args(Adjacency):
            known = ", ".join(get_args(Adjacency))
            raise ParameterError(f"adjacency must be one of {known}, got {self.adjacency!r}")
        if self.strong_convexity > self.smoothness:
            raise AssumptionError(
                "strong_convexity must be at most smoothness (no function is more convex than it is smooth), "
                f"got strong_convexity = {self.strong_convexity} > smoothness = {self.smoothness}"
            )

    def sensitivity(self, records: int, *, removed_before: int = 0) -> float:
        """Return the largest distance between the gradients of ``f_D`` and ``f_D'``.

        The data sets ``D`` and ``D'`` differ in ``records`` records. The distance is ``2 M S / n`` for ``replace`` and
        ``M S / n`` for ``zero-out``. Langevin unlearning's bounds are stated for ``replace``. These bounds depend on
        adjacency only through this distance. For ``remove``, the distance is ``2 M S / n_t``, where ``n_t`` is the
        number of records in the larger of the two sets. Half of this distance comes from the records, and half from the
        normaliser. If rounding is counted, the possible excess of a row's norm above 1 is counted, too.

        Args:
            records: Number of records ``S``.
            removed_before: Number of records that were removed earlier, from both data sets.

        Raises:
            ParameterError: ``records`` is not a whole number from 1 to the number of remaining records.
        """
        require_count(least=1, records=records)
        require_count(least=0, removed_before=removed_before)
        if records + removed_before > self.n:
            already = f" (after the earlier removal of {removed_before})" if removed_before else ""
            raise ParameterError(f"records must be at most n = {self.n}, got {records}{already}")
        if self.adjacency == "remove" and records + removed_before == self.n:
            raise ParameterError(f"with adjacency remove, a record must remain, got records = n = {self.n}")
        per_record = self.lipschitz if self.adjacency == "zero-out" else 2 * self.lipschitz
        normaliser = self.n - removed_before if self.adjacency == "remove" else self.n
        return per_record * records / normaliser * (1 + self.rounding.norm_excess)

    def require_strong_convexity(self) -> None:
        """Raise `AssumptionError` unless ``strong_convexity`` is above 0."""
        if self.strong_convexity == 0:
            raise AssumptionError(
                "this bound needs a strongly convex objective: strong_convexity must be above 0, got 0 "
                "(add an l2 regulariser)"
            )
