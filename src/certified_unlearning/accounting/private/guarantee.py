"""What a private learner guarantees: of one record, and of several that are deleted later.

A learner that never depended much on anybody answers every deletion by doing nothing. One record: its model is
``mu``-Gaussian DP, and where a selection on other records follows, whoever is among those meets that selection's pure
epsilon alone: parts of a learner that read disjoint records guarantee the *maximum* of what each does.

Several records: Gaussian DP of a group of ``k`` is ``k mu``, exactly (Dong, Roth and Su, 2022, Theorem 2.14), pure DP
``k epsilon``. Of ``k`` records, ``j`` may be among those that are learned from and the others among those that select:
then both compose.
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
"""Numbers of deleted records that certificates speak of."""
LARGEST_EXPONENT = 700.0
AGREEMENT = 1e-9
"""How far, relatively, a recomputed epsilon may be above the one that was asked: the recomputed one is stated."""


class Guarantee(ABC):
    """A privacy guarantee, for a relation that is named beside it.

    Attributes:
        mu: Of all Gaussian releases together; None where there is none.
        selection_epsilon: Pure epsilon of a selection that reads other records than the releases; 0 without.
    """

    mu: float | None
    selection_epsilon: float = 0.0

    @abstractmethod
    def epsilon(self, delta: float, *, records: int = 1) -> float:
        """Return the epsilon of a group of records.

        Args:
            delta: Strictly between 0 and 1.
            records: ``k``, in how many records two data sets differ.
        """

    def deletions(self, epsilon: float, delta: float) -> int:
        """Return how many deleted records a model covers with no work: the most whose epsilon is at most this one."""
        require_positive(epsilon=epsilon)
        if self.mu == self.selection_epsilon == 0:
            raise ParameterError("mu must be above 0: a learner that looks at no record covers any number of deletions")
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
    """The guarantee of Gaussian releases, and of a selection where there is one.

    Attributes:
        mu: Of all Gaussian releases together.
        selection_epsilon: Pure epsilon of a selection that reads other records than the releases; 0 without.

    Raises:
        ParameterError: A value is below 0.
    """

    mu: float
    selection_epsilon: float = 0.0

    def __post_init__(self) -> None:
        """Check both."""
        require_non_negative(mu=self.mu, selection_epsilon=self.selection_epsilon)

    def epsilon(self, delta: float, *, records: int = 1) -> float:
        """Return the epsilon of a group of records, as of the base."""
        require_count(least=1, records=records)
        require_probability(delta=delta)
        if not self.selection_epsilon:
            return self._learned(records, delta)
        return max(
            self._learned(learned, delta) + _outward((records - learned) * self.selection_epsilon, records - learned)
            for learned in range(records + 1)
        )

    def _learned(self, records: int, delta: float) -> float:
        """Return the epsilon of so many records among those that are learned from."""
        return epsilon_from_mu(_outward(records * self.mu, records), delta) if records else 0.0


def _outward(value: float, factor: int) -> float:
    """Return a product by a whole number rounded up; by 1, or none, it is exact."""
    return value if factor <= 1 else value * OUTWARD


def extra_delta(failure: float, epsilon: float) -> float:
    """Return what an event of small probability, on which nothing is guaranteed, adds to delta at most.

    Args:
        failure: Its probability, on any data.
        epsilon: Of the guarantee.
    """
    return min(1.0, failure * (1 + math.exp(min(epsilon, LARGEST_EXPONENT))) * OUTWARD)


class GaussianPlan(ABC):
    """A learner that publishes Gaussian noise on what it computes, one release after another, of the same records."""

    problem: LinearProblem

    @property
    @abstractmethod
    def mu(self) -> float:
        """Of all its releases together."""

    @property
    def releases(self) -> int:
        """How many noisy vectors it publishes: one, where a subclass does not say otherwise."""
        return 1

    @property
    def guarantee(self) -> PrivateGuarantee:
        """What it guarantees, but with probability `failure`."""
        return PrivateGuarantee(mu=self.mu)

    @property
    def failure(self) -> float:
        """Probability on which nothing is guaranteed."""
        return failure(self.problem.features, self.releases)


def require_met(guarantee: PrivateGuarantee, *, epsilon: float, delta: float) -> None:
    """Raise `AssumptionError` where what was planned is less private than what was asked.

    A plan's noise is chosen by one formula, and its guarantee recomputed from its constants by another: a forgotten
    factor in the first does not get past this. Both round, so `AGREEMENT` is allowed between them.

    Args:
        guarantee: Recomputed.
        epsilon: Asked.
        delta: Asked.
    """
    found = guarantee.epsilon(delta)
    if not found <= epsilon * (1 + AGREEMENT):
        raise AssumptionError(
            f"the planned noise gives epsilon = {found:.9g} at delta = {delta:g}, where {epsilon:.9g} was asked: this "
            "is a fault of the planner, and nothing was learned"
        )
