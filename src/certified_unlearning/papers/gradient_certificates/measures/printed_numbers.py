"""Measures of the paper's formulas and tables: costs, requests, schedules, and printed numbers."""

import math

from certified_unlearning.accounting.core import occupancy
from certified_unlearning.reproduction.claims.registry import last_over_first, measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

Shards = tuple[int, int]
"""The number ``d`` of shards, and the number ``k`` of removals that each can bear."""
FIGURE_4 = {("unlearning", 1): 0.975, ("privacy", 1): 0.946, ("unlearning", 5): 0.853, ("privacy", 5): 0.637,
            ("unlearning", 10): 0.665, ("privacy", 10): 0.027}  # fmt: skip
"""The proportion of predictions with guarantees, by mode and k, as printed in the table of Figure 4."""
_TRAININGS = 4
"""The cost of training with bounds divided by the cost of training without bounds, by the paper's count."""


@sweep("k = {requests}")
def boxes_over_retrainings(*, requests: int) -> float:
    """Return the cost of bounds divided by the cost of one training and one retraining per request.

    By the paper's count, the bounds cost as much as training four times without bounds, and then k requests need no
    training.
    """
    return _TRAININGS / (1 + requests)


@sweep("d = {setting[0]}, k = {setting[1]}")
def requests_over_rate(*, setting: Shards) -> float:
    """Return the expected number of requests until no shard has budget left, divided by the rate that the paper states.

    The rate is ``kd ln(kd)``, or ``d ln d`` if k = 0.
    """
    shards, budget = setting
    members = shards * max(budget, 1)
    expected = occupancy.requests_until_all(shards, budget + 1)
    return expected / (members * math.log(members))


@measure
def requests_change(*, setting: list[Shards]) -> list[Quantity]:
    """Return `requests_over_rate` at the last setting divided by its value at the first setting.

    If the rate were exact, the quotient would be 1.
    """
    return last_over_first(requests_over_rate(setting=setting))


@sweep("epsilon = {epsilon:g}")
def advantage_bounds(*, epsilon: float, printed: bool) -> float:
    """Return a bound on the advantage of membership inference: ``exp(epsilon) - 1`` (Yeom et al. 2018).

    Appendix C.1 prints ``1 - exp(epsilon)``.
    """
    sign = -1 if printed else 1
    return sign * math.expm1(epsilon)


@sweep("b = {batch_size}")
def noise_over_dp_sgd(*, batch_size: int) -> float:
    """Return line 16's standard deviation of a mean, ``gamma sigma``, divided by DP-SGD's, ``gamma sigma / b``."""
    gamma, sigma = 0.1, 1.0
    return gamma * sigma / (gamma * sigma / batch_size)


@measure
def amex_records() -> float:
    """Return the number of records of AMEX in Table 1, in millions."""
    return 5_531_451 / 1e6


@measure
def printed_shares(*, most: int) -> dict[str, float]:
    """Return the proportions that the table in Figure 4 prints for k up to ``most``."""
    return {f"{mode}, k = {k}": share for (mode, k), share in FIGURE_4.items() if k <= most}


@measure
def printed_privacy_less_unlearning() -> dict[str, float]:
    """Return the proportion for privacy minus that for unlearning, at each k of the table in Figure 4."""
    ks = sorted({k for _, k in FIGURE_4})
    return {f"k = {k}": FIGURE_4["privacy", k] - FIGURE_4["unlearning", k] for k in ks}
