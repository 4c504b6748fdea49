"""Whether two samples have one law: Kolmogorov-Smirnov tests of functions of a run's state, at a stated level."""

import torch
from scipy import stats
from torch import Tensor


def distances(one: dict[str, Tensor], other: dict[str, Tensor]) -> dict[str, float]:
    """Return the Kolmogorov-Smirnov distance of each function's samples, shape ``(runs,)`` each."""
    return {name: float(_compare(one[name], other[name]).statistic) for name in one}


def told_apart(one: dict[str, Tensor], other: dict[str, Tensor], *, level: float) -> list[str]:
    """Return the functions whose samples differ; each of them does with probability at most ``level`` if laws agree."""
    return [name for name in one if _compare(one[name], other[name]).pvalue < level]


def _compare(one: Tensor, other: Tensor):
    """Ties make the test conservative. Values are rounded: sums in another order are no difference."""
    one, other = (torch.round(each.double(), decimals=9).numpy() for each in (one, other))
    return stats.ks_2samp(one, other, method="asymp")
