"""Group privacy: how indistinguishability under one edit weakens under several edits."""

import math
from dataclasses import dataclass
from fractions import Fraction

from certified_unlearning.accounting.core.checks import (
    require_count,
    require_non_negative,
    require_positive,
    require_probability,
)
from certified_unlearning.errors import ParameterError


def group_guarantee(epsilon: float, delta: float, *, edits: int) -> tuple[float, float]:
    """Return the epsilon and delta of indistinguishability under several edits, given the values under one edit.

    For ``g`` edits, the result is ``(g epsilon, g e^((g - 1) epsilon) delta)``.

    Args:
        epsilon: Epsilon under one edit, at least 0.
        delta: Delta under one edit, at least 0.
        edits: Number of edits ``g``, at least 1.
    """
    require_non_negative(epsilon=epsilon, delta=delta)
    require_count(least=1, edits=edits)
    return edits * epsilon, edits * math.exp((edits - 1) * epsilon) * delta


@dataclass(frozen=True, kw_only=True)
class GroupBudget:
    """The privacy that a learner needs if its model stays in use over several edits (Ullah, 2024, Algorithm 25).

    Attributes:
        rho: Share of the edits that cause a recomputation: every ``floor(1 / rho)``-th edit does. Above 0, at most 1.
        epsilon: Target epsilon of approximate unlearning, after any number of edits.
        delta: Target delta of approximate unlearning, between 0 and 1.
    """

    rho: float
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        require_positive(rho=self.rho, epsilon=self.epsilon)
        require_probability(delta=self.delta)
        if self.rho > 1:
            raise ParameterError(f"rho must be at most 1 (a recomputation for every edit), got {self.rho!r}")

    @property
    def edits(self) -> int:
        """Number ``g`` of edits after which the model is recomputed: exactly ``floor(1 / rho)``."""
        return int(1 / Fraction(self.rho))

    @property
    def learner_epsilon(self) -> float:
        """The epsilon that the learner needs under one edit."""
        return self.rho * self.epsilon

    @property
    def learner_delta(self) -> float:
        """The delta that the learner needs under one edit: ``delta / (g e^((g - 1) rho epsilon))``."""
        return self.delta / group_guarantee(self.learner_epsilon, 1.0, edits=self.edits)[1]
