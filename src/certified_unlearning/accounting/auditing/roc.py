"""Receiver operating characteristics for scores that depend on each other within one model.

Intervals treat models as the independent units. They follow Obuchowski (1997) for the area, and Korn and Graubard
(1998) for rates. Their coverage is approximate. If every model gives the same answer, each model counts as a single
observation.
"""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.accounting.auditing.rates import least_rate
from certified_unlearning.errors import DataError

Array = NDArray[np.float64]
LEAST_MODELS = 4


class Measured(NamedTuple):
    """An estimate, and its interval at the stated confidence."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Roc:
    """The scores of positive and negative observations, and how well the scores tell the two kinds apart.

    Attributes:
        scores: Scores of observations, shape ``(models, records)``; larger means more likely positive.
        positive: Which observations are positive, shape ``(models, records)``.
    """

    scores: Array
    positive: NDArray[np.bool_]

    def __post_init__(self) -> None:
        """Check that there are enough models.

        Raises:
            DataError: Fewer than `LEAST_MODELS` models have positive observations, or fewer than `LEAST_MODELS` have
                negative observations.
        """
        if not self.has_enough(self.positive):
            raise DataError(
                f"an interval needs at least {LEAST_MODELS} models with positive records and at least {LEAST_MODELS} "
                "models with negative records"
            )

    @staticmethod
    def has_enough(positive: NDArray[np.bool_]) -> bool:
        """Return whether each of the two kinds of observations occurs in at least `LEAST_MODELS` models."""
        return _models_with_either(positive) >= LEAST_MODELS

    def area(self, miss: float = 0.05) -> Measured:
        """Return the area under the curve: the share of pairs in which a positive scores higher than a negative.

        Ties count half. The interval is symmetric in the logarithm of the odds. If the area is 1, the interval is from
        ``p`` to 1; if the area is 0, the interval is from 0 to ``1 - p``. Here, ``p`` is a lower bound (Clopper and
        Pearson) on the probability that a single model has the same area.

        Args:
            miss: Approximate probability that the interval misses the area.
        """
        from scipy.special import stdtrit
        from scipy.stats import rankdata

        positive = self.positive
        own = np.empty(positive.shape)
        for kind in (positive, ~positive):
            own[kind] = rankdata(self.scores[kind])
        # Number of observations of the other kind below each observation.
        above = rankdata(self.scores.ravel()).reshape(positive.shape) - own
        positives, negatives = int(positive.sum()), int((~positive).sum())
        value = float(above[positive].sum()) / positives / negatives
        models = _models_with_either(positive)
        if value in (0.0, 1.0):
            least = least_rate(models, models, miss=miss / 2)
            return Measured(value, min(value, least), max(value, 1 - least))
        # By how much each model's positives and negatives raise the area above the value of an average model.
        excess = np.where(positive, above / negatives - value, 1 - above / positives - value)
        excess = np.where(positive, excess / positives, excess / negatives).sum(axis=1)
        deviation = math.sqrt(models / (models - 1) * float(excess @ excess))
        step = -float(stdtrit(models - 1, miss / 2)) * deviation / (value * (1 - value))
        odds = math.log(value / (1 - value))
        return Measured(value, *(1 / (1 + math.exp(min(700.0, -each))) for each in (odds - step, odds + step)))

    def rate(self, false_positives: float, miss: float = 0.05) -> Measured | None:
        """Return the rate of true positives at a given rate of false positives, or None if there are too few negatives.

        The interval covers both the uncertainty of the rate and the uncertainty of the threshold. The two ends use
        different thresholds. With probability at most ``miss / 4``, the threshold of the lower end has more false
        positives than stated. With probability at most ``miss / 4``, the threshold of the upper end has fewer false
        positives than stated. At each threshold, the rate of true positives has a Clopper-Pearson bound with error
        probability ``miss / 4``.

        Args:
            false_positives: The rate of false positives, between 0 and 1.
            miss: Approximate probability that the interval misses the rate.
        """
        negatives, count = len(self._negatives), int(false_positives * len(self._negatives))
        if not count:
            return None
        share = self._effective(~self.positive, self._negatives[count - 1], miss / 4) / negatives
        trials = negatives * share
        # The bounds grow with the count, so the first counts whose bounds are on the other side of the rate are used.
        strict = bisect_right(range(count + 1), false_positives, key=lambda k: _upper(k * share, trials, miss / 4)) - 1
        if strict < 0:
            return None
        loose = bisect_left(range(1, negatives + 1), false_positives, key=lambda k: _lower(k * share, trials, miss / 4))
        value = self._hits(np.nextafter(self._negatives[count], np.inf)).mean()
        low = _lower(*self._counted(np.nextafter(self._negatives[strict], np.inf), miss / 4), miss / 4)
        high = _upper(*self._counted(self._negatives[loose], miss / 4), miss / 4) if loose < negatives else 1.0
        return Measured(float(value), min(low, float(value)), max(high, float(value)))

    @cached_property
    def _negatives(self) -> Array:
        """Scores of negatives, in descending order."""
        return np.sort(self.scores[~self.positive])[::-1]

    def _hits(self, threshold: float) -> NDArray[np.bool_]:
        """Return which positives reach a threshold."""
        hits: NDArray[np.bool_] = self.scores[self.positive] >= threshold
        return hits

    def _counted(self, threshold: float, miss: float) -> tuple[float, float]:
        """Return the number of positives that reach a threshold, and the number of all positives.

        Both numbers are converted to numbers of independent observations, see `_effective`.
        """
        effective = self._effective(self.positive, threshold, miss)
        return float(self._hits(threshold).mean()) * effective, effective

    def _effective(self, kind: NDArray[np.bool_], threshold: float, miss: float) -> float:
        """Return the number of independent observations that these observations are worth.

        With this many independent observations, the rate would vary as much as it varies between models.
        """
        from scipy.special import stdtrit

        sizes = kind.sum(axis=1)
        sizes, hits = sizes[sizes > 0], (kind & (self.scores >= threshold)).sum(axis=1)[sizes > 0]
        models, observations = len(sizes), int(sizes.sum())
        rate = float(hits.sum()) / observations
        if rate in (0.0, 1.0):
            return float(models)
        varies = models / (models - 1) * float(((hits - rate * sizes) ** 2).sum()) / observations**2
        small = float(stdtrit(max(1, observations - 1), miss) / stdtrit(models - 1, miss)) ** 2
        return min(float(observations), rate * (1 - rate) / varies * small) if varies > 0 else float(observations)


def _models_with_either(positive: NDArray[np.bool_]) -> int:
    """Return the number of models with positives or the number of models with negatives, whichever is smaller."""
    return int(min(positive.any(axis=1).sum(), (~positive).any(axis=1).sum()))


def _lower(hits: float, trials: float, miss: float) -> float:
    """Return Clopper and Pearson's lower bound on a rate, from numbers that need not be whole."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, trials - hits + 1, miss)) if hits > 0 else 0.0


def _upper(hits: float, trials: float, miss: float) -> float:
    """Return the Clopper-Pearson upper bound on a rate. The numbers ``hits`` and ``trials`` need not be whole."""
    from scipy.special import betainccinv

    return float(betainccinv(hits + 1, trials - hits, miss)) if hits < trials else 1.0
