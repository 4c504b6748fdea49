"""Slopes of lines on logarithmic axes, with the intervals that decide the verdicts about rates.

The intervals are bootstrap intervals: trials of every setting are resampled with replacement, and the line is fitted to
their means. A rate states how an *upper* bound decreases, so a steeper line does not contradict it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

RESAMPLES = 4000
CONFIDENCE = 0.95
LEAST_RANGE = 16
"""Smallest ratio of the largest x to the smallest x; over a shorter range, a slope says little about a rate."""
Statistic = Literal["mean", "root mean square"]


@dataclass(frozen=True)
class Part:
    """A panel that shows measured errors.

    Attributes:
        title: Title of the panel.
        x: Swept column.
        across: Title of the x axis.
        up: Title of the y axis.
        slopes: Theoretical slope by method; methods without a theoretical slope are not keys.
        y: Column that is shown.
        statistic: Statistic of the trials.
        over_bound: Whether the column is divided by the row's bound.
    """

    title: str
    x: str
    across: str
    up: str
    slopes: Mapping[str, float] = field(default_factory=dict)
    y: str = "error"
    statistic: Statistic = "mean"
    over_bound: bool = False


@dataclass(frozen=True)
class Fit:
    """A fitted power law.

    Attributes:
        slope: Slope on logarithmic axes.
        low: Lower end of the slope's interval.
        high: Upper end of the slope's interval.
        level: Value of the fitted line at x = 1.
        reach: Largest x divided by the smallest x.
    """

    slope: float
    low: float
    high: float
    level: float
    reach: float

    @property
    def half_width(self) -> float:
        """Half the width of the smallest interval, centred at the slope, that contains the bootstrap interval."""
        return max(self.high - self.slope, self.slope - self.low)


def fitted(rows: pd.DataFrame, *, x: str, y: str = "error", statistic: Statistic = "mean") -> Fit:
    """Return the power law fitted to the settings' means, with an interval from a bootstrap of trials.

    Args:
        rows: Rows of one line, with at least two values of x and several trials for each.
        x: Swept column.
        y: Measured column, whose values are above 0.
        statistic: Statistic of a setting's trials.
    """
    across, values = cells(rows, x=x, y=y)
    generator = np.random.default_rng(0)
    found = _slopes(across, [_statistic(each[None], statistic) for each in values])
    again = _slopes(
        across,
        [_statistic(each[generator.integers(len(each), size=(RESAMPLES, len(each)))], statistic) for each in values],
    )
    low, high = np.quantile(again, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    slope = float(found[0])
    means = np.log([float(_statistic(each[None], statistic)[0]) for each in values])
    level = math.exp(float(means.mean() - slope * np.log(across).mean()))
    return Fit(slope, float(low), float(high), level, float(across[-1] / across[0]))


def cells(rows: pd.DataFrame, *, x: str, y: str = "error") -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the values of x in order, and the trials for each value."""
    values = np.sort(rows[x].unique())
    trials = [rows.loc[rows[x] == value, y].to_numpy(dtype=float) for value in values]
    return values.astype(float), trials


def interval(values: np.ndarray, *, statistic: Statistic = "mean") -> tuple[float, float, float]:
    """Return a setting's mean over trials, and the ends of its bootstrap interval."""
    generator = np.random.default_rng(0)
    again = _statistic(values[generator.integers(len(values), size=(RESAMPLES, len(values)))], statistic)
    low, high = np.quantile(again, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(_statistic(values[None], statistic)[0]), float(low), float(high)


def _statistic(values: np.ndarray, statistic: Statistic) -> np.ndarray:
    return np.asarray(values.mean(axis=1) if statistic == "mean" else np.sqrt((values**2).mean(axis=1)))


def _slopes(across: np.ndarray, means: list[np.ndarray]) -> np.ndarray:
    """Return the least-squares slopes, one for each entry of the means."""
    off = np.log(across) - np.log(across).mean()
    return np.asarray(off @ np.log(np.stack(means)) / (off @ off))
