"""The largest share of right guesses about removed records: its value, its formula, and sentences that state it."""

import math
from fractions import Fraction
from typing import NamedTuple, Self

from certified_unlearning.accounting.core.guessing import right_guesses, right_guesses_of_gaussian
from certified_unlearning.text import rounded_up


class Share(NamedTuple):
    """An upper bound on the share of right guesses.

    Attributes:
        value: The share, from 0.5 to 1, rounded up.
        formula: The formula for the value, in technical terms.
        terms: The numbers that the formula uses, rounded up, as text.
    """

    value: float
    formula: str
    terms: str

    @classmethod
    def of_gaussian(cls, mu: float, extra_delta: float) -> Self:
        """Return the share that Gaussian differential privacy allows; see `right_guesses_of_gaussian`."""
        return cls(
            right_guesses_of_gaussian(mu, extra_delta=extra_delta),
            "Phi(mu / 2) + extra_delta / 2",
            f"mu = {rounded_up(mu)} and extra_delta = {rounded_up(extra_delta)}",
        )

    @classmethod
    def of_epsilon(cls, epsilon: float, delta: float) -> Self:
        """Return the share that an (epsilon, delta) guarantee allows; see `right_guesses`."""
        return cls(
            right_guesses(epsilon=epsilon, delta=delta),
            "1/2 + (e^epsilon - 1 + 2 delta) / (2 (e^epsilon + 1))",
            f"epsilon = {rounded_up(epsilon)} and delta = {rounded_up(delta)}",
        )

    @property
    def percent(self) -> str:
        """The share in per cent with three digits, rounded up."""
        return f"{self.of_1000 / 10:g}"

    @property
    def of_1000(self) -> int:
        """The largest mean number of right guesses among 1,000, rounded up."""
        return math.ceil(1000 * Fraction(self.value))


def so_many_are_right(share: Share) -> str:
    """Return a clause that states the largest share of right guesses."""
    if share.value == 0.5:
        return "half of such guesses are right on average, as with a coin"
    if share.value > 0.999:
        return "perhaps all such guesses are right"
    return f"at most {share.percent} % of such guesses are right on average; a coin is right 50 % of the time"


def so_many_of_1000_are_right(share: Share) -> str:
    """Return a clause that states the largest mean number of right guesses among 1,000."""
    if share.value == 0.5:
        return "500 of 1,000 such guesses (50 %) are right on average, as with a coin"
    if share.value > 0.999:
        return "perhaps all such guesses are right; a coin is right about 500 times in 1,000"
    return (
        f"at most {share.of_1000} of 1,000 such guesses ({share.percent} %) are right on average; a coin is "
        "right about 500 times"
    )
