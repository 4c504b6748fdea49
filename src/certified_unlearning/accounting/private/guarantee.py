"""The privacy guarantee of a learner for one record, and for several records that are deleted later.

A learner that hardly depends on any single record can answer every deletion by doing nothing. For one record, the
learned model is ``mu``-Gaussian DP. If one of several models is then selected on other records, the guarantee for these
other records is the pure epsilon of the selection. If the parts of a learner read disjoint records, the whole learner
guarantees the *maximum* of the parts' epsilons.

For several records, the Gaussian DP of a group of ``k`` is exactly ``k mu`` (Dong, Roth and Su, 2022, Theorem 2.14),
and its pure DP is ``k epsilon``. If learning used some of the ``k`` records and the selection used the remaining ones,
the two guarantees compose.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from certified_unlearning.accounting.core.checks import (
    require_count,
    require_non_negative,
    require_positive,
    require_probability,
)
from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.private.arithmetic import failure
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.accounting.residual.rounding import OUTWARD
from certified_unlearning.errors import AssumptionError, ParameterError

GROUPS = (1, 2, 5, 10, 100)
"""Numbers of deleted records for which certificates state an epsilon."""
LARGEST_EXPONENT = 700.0
AGREEMENT = 1e-9
"""Largest relative excess of a recomputed epsilon over the requested one. Certificates state the recomputed epsilon."""


class Guarantee(ABC):
    """A privacy guarantee. The neighbouring relation to which it refers is stated elsewhere.

    Attributes:
        mu: ``mu`` of all Gaussian releases together; None if there are no Gaussian releases.
        selection_epsilon: Pure epsilon of a selection that reads records which the releases do not read; 0 without a
            selection.
    """

    mu: float | None
    selection_epsilon: float = 0.0

    @abstractmethod
    def epsilon(self, delta: float, *, records: int = 1) -> float:
        """Return the epsilon of the guarantee for a group of records.

        Args:
            delta: Strictly between 0 and 1.
            records: Number ``k`` of records in which two data sets differ.
        """

    def deletions(self, epsilon: float, delta: float) -> int:
        """Return the largest number of deletions that a model covers without any work, with at most this epsilon."""
        require_positive(epsilon=epsilon)
        if self.mu == self.selection_epsilon == 0:
            raise ParameterError("mu must be above 0; with mu = 0, a learner reads no record and covers all deletions")
        covered, too_many = 0, 1
        while self.epsilon(delta, records=too_many) <= epsilon:
            covered, too_many = too_many, 2 * too_many
        while too_many - covered > 1:
            middle = (covered + too_many) // 2
            if self.epsilon(delta, records=middle) <= epsilon:
                covered = middle
            else:
                too_many = middle
        return covered


@dataclass(frozen=True, kw_only=True)
class PrivateGuarantee(Guarantee):
    """The guarantee of Gaussian releases, and of a selection if there is one.

    Attributes:
        mu: ``mu`` of all Gaussian releases together.
        selection_epsilon: Pure epsilon of a selection that reads records which the releases do not read; 0 without a
            selection.

    Raises:
        ParameterError: A value is below 0.
    """

    mu: float
    selection_epsilon: float = 0.0

    def __post_init__(self) -> None:
        """Check that both values are at least 0."""
        require_non_negative(mu=self.mu, selection_epsilon=self.selection_epsilon)

    def epsilon(self, delta: float, *, records: int = 1) -> float:
        """Return the epsilon of the guarantee for a group of records, as the base class describes."""
        require_count(least=1, records=records)
        require_probability(delta=delta)
        if not self.selection_epsilon:
            return self._learned(records, delta)
        return max(
            self._learned(learned, delta) + _outward((records - learned) * self.selection_epsilon, records - learned)
            for learned in range(records + 1)
        )

    def _learned(self, records: int, delta: float) -> float:
        """Return the epsilon for a group of records that were learned from."""
        return epsilon_from_mu(_outward(records * self.mu, records), delta) if records else 0.0


def _outward(value: float, factor: int) -> float:
    """Return the product of a value and an integer factor, rounded up. It is exact for factors 0 and 1."""
    return value if factor <= 1 else value * OUTWARD


def extra_delta(failure: float, epsilon: float) -> float:
    """Return the addition to delta that covers an event of small probability on which the guarantee fails.

    Args:
        failure: Largest probability of the event on any data.
        epsilon: Epsilon of the guarantee.
    """
    return min(1.0, failure * (1 + math.exp(min(epsilon, LARGEST_EXPONENT))) * OUTWARD)


class GaussianPlan(ABC):
    """A learner that makes successive releases with Gaussian noise, all computed from the same records."""

    problem: LinearProblem

    @property
    @abstractmethod
    def mu(self) -> float:
        """``mu`` of all releases of the learner together."""

    @property
    def releases(self) -> int:
        """Number of noisy vectors that the learner publishes: one, unless a subclass overrides this."""
        return 1

    @property
    def guarantee(self) -> PrivateGuarantee:
        """The guarantee of the learner, which may fail with probability `failure`."""
        return PrivateGuarantee(mu=self.mu)

    @property
    def failure(self) -> float:
        """Largest probability of an event on which the guarantee fails."""
        return failure(self.problem.features, self.releases)


def require_met(guarantee: PrivateGuarantee, *, epsilon: float, delta: float) -> None:
    """Raise `AssumptionError` if a plan is less private than requested.

    One formula chooses a plan's noise, and another recomputes the guarantee from the plan's constants. So this check
    would find a factor that is missing in the first formula. The results of both formulas are rounded, so they may
    differ by `AGREEMENT`.

    Args:
        guarantee: The recomputed guarantee.
        epsilon: The requested epsilon.
        delta: The requested delta.
    """
    found = guarantee.epsilon(delta)
    if not found <= epsilon * (1 + AGREEMENT):
        raise AssumptionError(
            f"the planned noise gives epsilon = {found:.9g} at delta = {delta:g}, but {epsilon:.9g} was requested: "
            "this is a fault of the planner, and no model was learned"
        )
