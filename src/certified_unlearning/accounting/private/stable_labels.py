"""Private labels of one trained model, by noise with smooth sensitivity or by a noisy test of stability.

A *radius* is a whole number that one record changes by at most one. If the radius is above 0, all neighbours have the
same label. The certified radius of a prediction is such a radius under the rules of
`mechanisms.certified_sgd.releases`. For a radius ``k``, ``S = exp(-beta k)`` is at least the smooth sensitivity of a
label of 0 or 1. ``S`` is smooth, too: one record changes ``S`` by at most the factor ``e^beta``.

Source: Nissim, Raskhodnikova and Smith (2007), *Smooth Sensitivity and Sampling in Private Data Analysis*, for the
noise. The test of stability is a propose-test-release (Dwork and Lei, 2009). Wicker et al. release certified labels
unchanged, which is not private, because the records determine whether a label is certified.

The noise itself is not drawn. Only its outcome is drawn: whether the label is published as predicted. So each radius
has one probability, a float64 number that is sampled exactly. `delta_of` computes the resulting delta with exact
fractions. So nothing is assumed about the rounding of the logarithms, exponentials and arc tangents from which the
probabilities are computed.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from certified_unlearning.accounting.core.checks import (
    require_count,
    require_non_negative,
    require_positive,
    require_probability,
)
from certified_unlearning.accounting.residual.rounding import OUTWARD
from certified_unlearning.errors import ParameterError

LabelRule = Literal["cauchy", "laplace", "stable"]
"""``cauchy`` and ``laplace`` add noise, scaled by smooth sensitivity, to a label of 0 or 1. ``stable`` publishes the
label or nothing."""
LARGEST_EXPONENT = 700.0
"""The largest exponent. Exponentials of larger numbers overflow or vanish."""
LEAST_EPSILON = 1e-100
"""The least epsilon. With a smaller epsilon, scales of noise overflow."""
Law = Mapping[Hashable, Fraction]


@dataclass(frozen=True)
class LabelLaw:
    """The probability that a label is published as predicted, for each radius.

    Attributes:
        rule: Name of the rule.
        epsilon: Epsilon of one label.
        delta: Delta of one label.
        kept: The exact probabilities for the radii 0, 1, ... Larger radii have the last probability.
    """

    rule: LabelRule
    epsilon: float
    delta: float
    kept: tuple[Fraction, ...]

    def outcomes(self, radius: int, label: int) -> Law:
        """Return the distribution of the published label if the model predicts ``label``. None means no label."""
        kept = self.kept[min(radius, len(self.kept) - 1)]
        return {label: kept, None if self.rule == "stable" else 1 - label: 1 - kept}


def smoothness(rule: LabelRule, *, epsilon: float, delta: float) -> float:
    """Return ``beta``, rounded down: ``epsilon / 6`` for Cauchy, ``epsilon / (2 log(2 / delta))`` for Laplace noise.

    Raises:
        ParameterError: The rule is neither ``cauchy`` nor ``laplace``.
    """
    _require(rule, epsilon, delta)
    if rule == "cauchy":
        return epsilon / 6 / OUTWARD
    if rule == "laplace":
        return epsilon / (2 * math.log(2 / delta)) / OUTWARD
    raise ParameterError("rule must be cauchy or laplace: the test of stability has no smooth sensitivity")


def smooth_sensitivity_bound(radius: int, *, beta: float) -> float:
    """Return ``exp(-beta k)``, rounded up, a bound on the smooth sensitivity of a label with radius ``k``.

    ``exp(-beta (k + 1))`` would be wrong: at radius 0, a neighbour may have the other label, so the sensitivity is 1.
    Twice the exponent would be wrong, too: a box that covers ``k`` additions and ``k`` removals covers neither ``2 k``
    additions nor ``2 k`` removals.
    """
    require_count(least=0, radius=radius)
    require_positive(beta=beta)
    return min(1.0, math.exp(-beta * radius) * OUTWARD)


def noise_scale(rule: LabelRule, sensitivity: float, *, epsilon: float) -> float:
    """Return the scale of noise, rounded up: ``6 S / epsilon`` for Cauchy and ``2 S / epsilon`` for Laplace noise."""
    require_non_negative(sensitivity=sensitivity)
    require_positive(epsilon=epsilon)
    return {"cauchy": 6, "laplace": 2}[rule] * sensitivity / epsilon * OUTWARD


def flip_probability(rule: LabelRule, scale: float) -> float:
    """Return the probability that noise of this scale moves a label of 0 or 1 past one half, to the other label.

    It is ``arctan(2 s) / pi`` for Cauchy and ``exp(-1 / (2 s)) / 2`` for Laplace noise. The equivalent form ``1/2 -
    arctan(1 / (2 s)) / pi`` would suffer cancellation.
    """
    require_non_negative(scale=scale)
    if rule == "cauchy":
        return math.atan(2 * scale) / math.pi
    return math.exp(-1 / (2 * scale)) / 2 if scale else 0.0


def pass_probability(radius: int, *, epsilon: float, delta: float) -> Fraction:
    """Return the probability that ``k + Lap(1 / epsilon)`` passes the threshold. At radius 0, it is ``delta / 2``.

    The exponential is computed in float64 and is then converted to an exact fraction, so subtracting it from 1 loses no
    digits.
    """
    require_count(least=0, radius=radius)
    _require("stable", epsilon, delta)
    exponent = epsilon * radius + math.log(delta)
    tail = Fraction(math.exp(-abs(exponent))) / 2
    return 1 - tail if exponent > 0 else tail


def label_law(rule: LabelRule, *, epsilon: float, delta: float = 0.0, largest: int) -> LabelLaw:
    """Return the distribution of a label for all radii up to ``largest``, after checking its guarantee by `delta_of`.

    Args:
        rule: Name of the rule.
        epsilon: Epsilon of one label.
        delta: Delta of one label; 0 for Cauchy noise.
        largest: The largest radius that was searched. If a radius is so large that the noise would vanish, a smaller
            radius is used instead.

    Raises:
        ParameterError: The float64 probabilities miss the guarantee.
    """
    _require(rule, epsilon, delta)
    require_count(least=1, largest=largest)
    if rule == "stable":
        capped = int(min(largest, LARGEST_EXPONENT / epsilon))
        kept = tuple(pass_probability(radius, epsilon=epsilon, delta=delta) for radius in range(capped + 1))
    else:
        beta = smoothness(rule, epsilon=epsilon, delta=delta)
        # Larger radii count as this one. This is allowed because the minimum of a radius and a constant is a radius,
        # too.
        capped = int(min(largest, LARGEST_EXPONENT / beta))
        scales = [
            noise_scale(rule, smooth_sensitivity_bound(radius, beta=beta), epsilon=epsilon)
            for radius in range(capped + 1)
        ]
        kept = tuple(1 - Fraction(flip_probability(rule, scale)) for scale in scales)
    law = LabelLaw(rule, epsilon, delta, kept)
    spent = delta_of(law, epsilon)
    if spent > delta:
        raise ParameterError(
            f"in float64, a label with epsilon = {epsilon!r} has delta = {spent!r}, which is above {delta!r}: use a "
            "larger delta"
        )
    return law


def delta_of(law: LabelLaw, epsilon: float) -> float:
    """Return the least delta at ``epsilon`` that covers all possible neighbours, computed exactly and rounded up.

    The radii of neighbours differ by at most one. The labels of neighbours are the same unless both radii are 0.
    """
    last = len(law.kept) - 1
    pairs = [
        (law.outcomes(one, 1), law.outcomes(two, 1))
        for one in range(last + 1)
        for two in (one - 1, one + 1)
        if 0 <= two <= last
    ]
    pairs += [(law.outcomes(0, 1), law.outcomes(0, 0)), (law.outcomes(0, 0), law.outcomes(0, 1))]
    return max(divergence(one, two, epsilon) for one, two in pairs)


def divergence(one: Law, two: Law, epsilon: float) -> float:
    """Return ``sum_o max(0, P(o) - e^epsilon Q(o))`` of two small distributions, in exact fractions and rounded up."""
    require_non_negative(epsilon=epsilon)
    growth = Fraction(_exp_below(epsilon))
    exact = sum(
        (max(Fraction(0), mass - growth * two.get(each, Fraction(0))) for each, mass in one.items()), Fraction(0)
    )
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)


def composed_labels(epsilon: float, delta: float, *, labels: int) -> tuple[float, float]:
    """Return the joint epsilon and delta of a number of labels: the sums of the labels' values, rounded up."""
    require_non_negative(epsilon=epsilon, delta=delta)
    require_count(least=0, labels=labels)
    return labels * epsilon * OUTWARD, min(1.0, labels * delta * OUTWARD)


def _exp_below(epsilon: float) -> float:
    """Return a number below ``e^epsilon``. Exponentials are accurate to 4 units in the last place."""
    return max(1.0, math.exp(min(epsilon, LARGEST_EXPONENT)) * (1 - 2.0**-50))


def _require(rule: LabelRule, epsilon: float, delta: float) -> None:
    if rule not in get_args(LabelRule):
        raise ParameterError(f"rule must be one of {', '.join(get_args(LabelRule))}, got {rule!r}")
    require_positive(epsilon=epsilon)
    if not LEAST_EPSILON <= epsilon <= LARGEST_EXPONENT:
        raise ParameterError(f"epsilon must be from {LEAST_EPSILON:g} to {LARGEST_EXPONENT:g}, got {epsilon!r}")
    if rule != "cauchy":
        require_probability(delta=delta)
    elif delta != 0:
        raise ParameterError(f"delta must be 0 for Cauchy noise, which is purely epsilon-private, got {delta!r}")


def mean_share_sensitivity(largest: int, *, inputs: int, own: bool) -> float:
    """Return how far one record moves the mean of certified shares for ``k = 1, ..., K``, rounded up.

    The mean share is the mean radius of the inputs divided by ``K``, where radii above ``K`` count as ``K``. One record
    moves every radius by at most one. The share at a single ``k`` has no such bound: one record may move it from 0 to
    1.

    Args:
        largest: The largest radius that is counted, ``K``.
        inputs: Number of inputs.
        own: Whether the inputs are the records themselves. In that case, neighbours differ in one input, whose radius
            moves by up to ``K``. Otherwise, neighbours have the same inputs.
    """
    require_count(least=1, largest=largest, inputs=inputs)
    moved = (inputs - 1 + largest) / inputs if own else 1.0
    return min(1.0, moved / largest * OUTWARD)
