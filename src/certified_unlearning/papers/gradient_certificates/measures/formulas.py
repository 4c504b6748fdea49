"""Measures of what the paper states in formulas and tables: costs, requests, schedules, printed numbers."""

import math
from collections.abc import Sequence

from certified_unlearning.accounting.core import occupancy
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity

Shards = tuple[int, int]
"""``d`` shards, ``k`` removals that each may bear."""
FIGURE_4 = {("unlearning", 1): 0.975, ("privacy", 1): 0.946, ("unlearning", 5): 0.853, ("privacy", 5): 0.637,
            ("unlearning", 10): 0.665, ("privacy", 10): 0.027}  # fmt: skip
"""Proportion of predictions with guarantees as the table in figure 4 prints it, by mode and k."""
_TRAININGS = 4
"""What training with bounds costs, in trainings without them, as the paper counts."""


@measure
def boxes_over_retrainings(evidence: Sequence[Evidence], *, requests: list[int]) -> list[Quantity]:
    """Return what bounds cost over training once and again for every request, by the paper's count of trainings.

    Four trainings in all, after which k requests need none.
    """
    return [Quantity(_TRAININGS / (1 + each), f"k = {each}") for each in requests]


@measure
def requests_over_rate(evidence: Sequence[Evidence], *, settings: list[Shards]) -> list[Quantity]:
    """Return the expected requests until no shard has budget left, over ``kd ln(kd)``; of k = 0 over ``d ln d``."""
    found = []
    for shards, budget in settings:
        members = shards * max(budget, 1)
        expected = occupancy.requests_until_all(shards, budget + 1)
        found.append(Quantity(expected / (members * math.log(members)), f"d = {shards}, k = {budget}"))
    return found


@measure
def requests_change(evidence: Sequence[Evidence], *, settings: list[Shards]) -> list[Quantity]:
    """Return that quotient at the last setting over that at the first: 1 where the rate is the right one."""
    first, *_, last = requests_over_rate(evidence, settings=settings)
    return [Quantity(last.value / first.value, f"{last.name} over {first.name}")]


@measure
def advantage_bounds(evidence: Sequence[Evidence], *, epsilon: list[float], printed: bool) -> list[Quantity]:
    """Return bounds of the advantage of membership inference: ``exp(epsilon) - 1`` (Yeom et al. 2018).

    Appendix C.1 prints ``1 - exp(epsilon)``.
    """
    sign = -1 if printed else 1
    return [Quantity(sign * math.expm1(each), f"epsilon = {each:g}") for each in epsilon]


@measure
def noise_over_dp_sgd(evidence: Sequence[Evidence], *, batch_size: list[int]) -> list[Quantity]:
    """Return line 16's standard deviation of a mean, ``gamma sigma``, over DP-SGD's, ``gamma sigma / b``."""
    gamma, sigma = 0.1, 1.0
    return [Quantity(gamma * sigma / (gamma * sigma / each), f"b = {each}") for each in batch_size]


@measure
def amex_records(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return how many million records of AMEX Table 1 has."""
    return [Quantity(5_531_451 / 1e6)]


@measure
def printed_shares(evidence: Sequence[Evidence], *, most: int) -> list[Quantity]:
    """Return the proportions that figure 4's table prints for k up to a number."""
    return [Quantity(share, f"{mode}, k = {k}") for (mode, k), share in FIGURE_4.items() if k <= most]


@measure
def printed_privacy_less_unlearning(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return the proportion for privacy less that for unlearning, at each k of figure 4's table."""
    ks = sorted({k for _, k in FIGURE_4})
    return [Quantity(FIGURE_4["privacy", k] - FIGURE_4["unlearning", k], f"k = {k}") for k in ks]


@measure
def elsewhere(evidence: Sequence[Evidence], *, needs: str) -> list[Quantity]:
    """Say what a number would need that is not here.

    Raises:
        MissingEvidence: Always.
    """
    raise MissingEvidence(f"it needs {needs}, which this package cannot fetch")
