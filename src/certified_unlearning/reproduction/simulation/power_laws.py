"""Slopes of lines on logarithmic axes, with intervals: the basis of verdicts on rates.

Intervals are the bootstrap's: trials of every setting are drawn again, with replacement, and the line is fitted to
their means. A rate says how an *upper* bound falls, so a steeper line does not contradict it.
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
"""A slope over a smaller range of x says little about a rate."""
Statistic = Literal["mean", "root mean square"]


@dataclass(frozen=True)
class Part:
    """A panel of measured errors.

    Attributes:
        title: Its title.
        x: The column that is swept.
        across: Title of the x axis.
        up: Title of the y axis.
        slopes: Slope that theory states, by method; methods without one are left out.
        y: The column that is shown.
        statistic: Statistic of the trials.
        over_bound: Whether it is divided by the row's bound.
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
    """A power law.

    Attributes:
        slope: Slope on logarithmic axes.
        low: End of the slope's interval.
        high: The other one.
        level: What the fitted line is where x is 1.
        reach: Largest x divided by the least.
    """

    slope: float
    low: float
    high: float
    level: float
    reach: float

    @property
    def half_width(self) -> float:
        """Half width of an interval around the slope that holds the bootstrap's interval."""
        return max(self.high - self.slope, self.slope - self.low)


def fitted(rows: pd.DataFrame, *, x: str, y: str = "error", statistic: Statistic = "mean") -> Fit:
    """Return the power law through the settings' means, in units of trials.

    Args:
        rows: Rows of one line, at least two values of x, each with several trials.
        x: The swept column.
        y: The measured one, above 0.
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
    """Return the values of x in order, and each one's trials."""
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
    """Return the slopes of least squares, one for each entry of the means."""
    off = np.log(across) - np.log(across).mean()
    return np.asarray(off @ np.log(np.stack(means)) / (off @ off))
