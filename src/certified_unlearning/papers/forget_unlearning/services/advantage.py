"""How often an attack guesses 1 under each hypothesis, and the attack's advantage with exact confidence bounds."""

from dataclasses import dataclass
from typing import NamedTuple

from certified_unlearning.accounting.auditing.rates import least_rate, most_rate


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def clopper_pearson(successes: int, trials: int, *, miss: float) -> Interval:
    """Return an exact confidence interval; it misses the true success rate with probability at most ``miss``.

    Raises:
        ParameterError: There are more successes than trials, or no trials.
    """
    low, high = (rate(successes, trials, miss=miss / 2) for rate in (least_rate, most_rate))
    return Interval(low, high)


@dataclass(frozen=True)
class Measured:
    """The result of an attack: how often the attack guessed 1.

    Attributes:
        interactions: The number of interactions under each hypothesis.
        right: The number of guesses of 1 under hypothesis 1.
        wrong: The number of guesses of 1 under hypothesis 0.
        seconds: The wall time in seconds.
    """

    interactions: int
    right: int
    wrong: int
    seconds: float = 0.0

    @property
    def advantage(self) -> float:
        """The measured advantage ``P[1 | H_1] - P[1 | H_0]``."""
        return (self.right - self.wrong) / self.interactions

    def interval(self, miss: float) -> Interval:
        """Return a confidence interval of the advantage.

        The interval follows from exact intervals of the two rates, each of which misses its rate with half the allowed
        probability.
        """
        right, wrong = (clopper_pearson(count, self.interactions, miss=miss / 2) for count in (self.right, self.wrong))
        return Interval(right.low - wrong.high, right.high - wrong.low)
