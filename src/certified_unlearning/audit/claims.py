"""The claim that an audit tries to refute, and the lower bounds that it finds."""

from dataclasses import dataclass
from typing import Self

from certified_unlearning.accounting.auditing.bounds import epsilon_at_least, mu_at_least
from certified_unlearning.accounting.core.checks import require_non_negative
from certified_unlearning.certificate.base import Stated
from certified_unlearning.errors import AssumptionError, ParameterError


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement that a model is close in distribution to one that has never seen the removed records.

    By default, it is the claim that holds for retraining: the distributions are equal.

    Attributes:
        epsilon: Epsilon for all removed records together.
        delta: The delta at which epsilon holds, including every addition to delta.
        mu: The claimed ``mu`` of Gaussian differential privacy; None if no ``mu`` is claimed.
        extra_delta: The delta that is added to the Gaussian curve of ``mu``.
    """

    epsilon: float = 0.0
    delta: float = 0.0
    mu: float | None = None
    extra_delta: float = 0.0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ParameterError: A number is negative or not a number.
        """
        require_non_negative(delta=self.delta, extra_delta=self.extra_delta)
        for name, value in (("epsilon", self.epsilon), ("mu", self.mu)):
            if value is not None and not value >= 0:
                raise ParameterError(f"{name} must be at least 0, got {value!r}")

    @classmethod
    def of(cls, stated: Stated) -> Self:
        """Return a certificate's claim about the last release.

        Raises:
            AssumptionError: The certificate states no epsilon.
        """
        if stated.epsilon is None or stated.whole_delta is None:
            raise AssumptionError(
                "the certificate states no epsilon for a model's distribution, so an audit has nothing to compare with"
            )
        return cls(
            epsilon=stated.epsilon, delta=stated.whole_delta, mu=stated.mu, extra_delta=stated.extra_delta or 0.0
        )

    def largest(self, other: "Claim") -> "Claim":
        """Return a claim that both claims imply: each number is the larger of the two claims' numbers."""
        known = self.mu is not None and other.mu is not None
        return Claim(
            epsilon=max(self.epsilon, other.epsilon),
            delta=max(self.delta, other.delta),
            mu=max(self.mu, other.mu) if known else None,  # type: ignore[type-var]
            extra_delta=max(self.extra_delta, other.extra_delta),
        )

    def shown(self, rate: float, log_p: float) -> "LowerBound":
        """Return lower bounds on epsilon and ``mu`` at the claim's deltas. They follow from probabilities of one event.

        Args:
            rate: Lower bound on the event's probability under the model's distribution.
            log_p: Logarithm of an upper bound on the event's probability under the comparator's distribution.
        """
        return LowerBound(
            epsilon=epsilon_at_least(rate, log_p, delta=self.delta),
            mu=mu_at_least(rate, log_p, extra_delta=self.extra_delta),
        )

    def is_below(self, bound: "LowerBound") -> bool:
        """Return whether a bound refutes the claim.

        The comparison uses ``mu`` if the claim states it, because a claim about ``mu`` is never weaker than the claim
        about epsilon. Otherwise, the comparison uses epsilon.
        """
        return bound.epsilon > self.epsilon if self.mu is None else bound.mu > self.mu


@dataclass(frozen=True, kw_only=True)
class LowerBound:
    """Lower bounds on how much a model's distribution differs from the comparator's.

    Attributes:
        epsilon: Lower bound on epsilon, at the claim's delta.
        mu: Lower bound on ``mu`` of Gaussian differential privacy.
    """

    epsilon: float
    mu: float
