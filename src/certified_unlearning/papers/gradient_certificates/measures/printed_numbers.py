"""Measures of what the paper states in formulas and tables: costs, requests, schedules, printed numbers."""

import math

from certified_unlearning.accounting.core import occupancy
from certified_unlearning.reproduction.claims.registry import last_over_first, measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

Shards = tuple[int, int]
"""``d`` shards, ``k`` removals that each may bear."""
FIGURE_4 = {("unlearning", 1): 0.975, ("privacy", 1): 0.946, ("unlearning", 5): 0.853, ("privacy", 5): 0.637,
            ("unlearning", 10): 0.665, ("privacy", 10): 0.027}  # fmt: skip
"""Proportion of predictions with guarantees as the table in figure 4 prints it, by mode and k."""
_TRAININGS = 4
"""What training with bounds costs, in trainings without them, as the paper counts."""


@sweep("k = {requests}")
def boxes_over_retrainings(*, requests: int) -> float:
    """Return what bounds cost, divided by training once and again for every request, by the paper's count of trainings.

    Four trainings in all, after which k requests need none.
    """
    return _TRAININGS / (1 + requests)


@sweep("d = {setting[0]}, k = {setting[1]}")
def requests_over_rate(*, setting: Shards) -> float:
    """Return the expected requests until no shard has budget left, over ``kd ln(kd)``; of k = 0 over ``d ln d``."""
    shards, budget = setting
    members = shards * max(budget, 1)
    expected = occupancy.requests_until_all(shards, budget + 1)
    return expected / (members * math.log(members))


@measure
def requests_change(*, setting: list[Shards]) -> list[Quantity]:
    """Return that quotient at the last setting, divided by that at the first: 1 where the rate is the right one."""
    return last_over_first(requests_over_rate(setting=setting))


@sweep("epsilon = {epsilon:g}")
def advantage_bounds(*, epsilon: float, printed: bool) -> float:
    """Return bounds of the advantage of membership inference: ``exp(epsilon) - 1`` (Yeom et al. 2018).

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
    """Return how many million records of AMEX Table 1 has."""
    return 5_531_451 / 1e6


@measure
def printed_shares(*, most: int) -> dict[str, float]:
    """Return the proportions that figure 4's table prints for k up to a number."""
    return {f"{mode}, k = {k}": share for (mode, k), share in FIGURE_4.items() if k <= most}


@measure
def printed_privacy_less_unlearning() -> dict[str, float]:
    """Return the proportion for privacy less that for unlearning, at each k of figure 4's table."""
    ks = sorted({k for _, k in FIGURE_4})
    return {f"k = {k}": FIGURE_4["privacy", k] - FIGURE_4["unlearning", k] for k in ks}
