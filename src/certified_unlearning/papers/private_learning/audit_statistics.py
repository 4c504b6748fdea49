"""The statistics of `audits`: what the outputs of a mechanism show, with a stated rate of false alarms."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from certified_unlearning.accounting.auditing.rates import least_rate
from certified_unlearning.accounting.private.sampled import NoisySums, SampledGuarantee
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.private_learning import attacks
from certified_unlearning.papers.private_learning.attacks import Attack
from certified_unlearning.vocabulary import Relation

FALSE_ALARM = 1e-6
"""The largest probability of a false alarm in one audit."""
LIKELY = 0.05
"""The delta at which mechanisms with sampling are audited; the usual number of runs is enough to measure it."""
EXACTLY = 1e-9
"""An enumerated or exact value counts as larger than the stated value if its relative excess is above this number."""

Method = Literal["likelihood ratio", "exact law", "enumeration", "recomputed guarantee"]


@dataclass(frozen=True, kw_only=True)
class Audit:
    """One row of X12.

    Attributes:
        mechanism: The mechanism.
        planted: The fault that was planted in the mechanism; empty if there is none.
        method: The method of the audit.
        unit: The unit of the numbers: ``mu``, ``delta`` or ``epsilon``.
        relation: The neighbouring relation of data sets.
        runs: The number of runs on each data set; 0 if nothing was sampled.
        stated: The value that the mechanism states if no fault is planted.
        shown: A lower bound on the true value. The bound is wrong with probability at most ``false_alarm``, and exact
            if nothing was sampled.
        exact: The exact value for the audit's two data sets, if outputs are Gaussian and their distribution was
            confirmed.
        false_alarm: The largest probability that the audit finds a fault although the statement is true; 0 if nothing
            was sampled.
        caught: Whether the shown value exceeds the stated one.
    """

    mechanism: str
    planted: str
    method: Method
    unit: str
    relation: Relation
    runs: int
    stated: float
    shown: float
    exact: float | None
    false_alarm: float
    caught: bool


def shown_mu(attack: Attack, *, false_alarm: float = FALSE_ALARM) -> float:
    """Return a non-negative lower bound on the ``mu`` of Gaussian DP.

    The bound comes from the test that compares each score with 0. ``Phi^-1(power) - Phi^-1(alarms)`` is at most ``mu``
    for every test; both rates are bounded exactly.

    Args:
        attack: The scores.
        false_alarm: The largest probability that the bound exceeds the true value.
    """
    from scipy.special import ndtri

    power, alarm = (
        rate_above(attack.here, false_alarm / 2),
        1 - rate_above(-attack.there, false_alarm / 2),
    )
    # An infinite difference means that a rate is not bounded away from 0 or 1, so nothing is shown.
    found = float(ndtri(power) - ndtri(alarm))
    return max(0.0, found) if math.isfinite(found) else 0.0


def shown_delta(attack: Attack, epsilon: float, *, false_alarm: float = FALSE_ALARM) -> float:
    """Return a non-negative lower bound on ``delta`` at a given epsilon.

    The bound comes from the best event, ``score > epsilon``.

    Args:
        attack: The scores, which are log-likelihood ratios.
        epsilon: The epsilon of the statement.
        false_alarm: The largest probability that the bound exceeds the true value.
    """
    power = rate_above(attack.here - epsilon, false_alarm / 2)
    alarm = 1 - rate_above(epsilon - attack.there, false_alarm / 2)
    return max(0.0, power - math.exp(epsilon) * alarm)


def rate_above(scores: attacks.Array, miss: float) -> float:
    """Return a lower bound on the probability of a score above 0, by Clopper and Pearson.

    Args:
        scores: The scores of independent runs.
        miss: The largest probability that the bound exceeds the true probability.
    """
    return least_rate(int((scores > 0).sum()), len(scores), miss=miss)


def law_holds(attack: Attack, *, false_alarm: float = FALSE_ALARM) -> bool:
    """Return whether scores have the Gaussian distribution that the attack states, by two Kolmogorov-Smirnov tests."""
    if attack.mu is None:
        raise ParameterError("the scores of this attack are not Gaussian")
    from scipy.stats import kstest, norm

    sides = ((attack.here, attack.mu / 2), (attack.there, -attack.mu / 2))
    return all(kstest(scores, norm(mean).cdf).pvalue > false_alarm / 2 for scores, mean in sides)


def audited(
    mechanism: str,
    attack: Attack,
    stated: float,
    *,
    relation: Relation,
    planted: str = "",
    false_alarm: float = FALSE_ALARM,
) -> Audit:
    """Return the audit of a statement in ``mu``; it uses the exact value, too, if the distribution is confirmed.

    Args:
        mechanism: The mechanism.
        attack: The scores.
        stated: The ``mu`` of the mechanism without a fault.
        relation: The neighbouring relation of data sets.
        planted: The fault; empty for none.
        false_alarm: The largest probability of a false alarm in this audit.
    """
    shown = shown_mu(attack, false_alarm=false_alarm / 2)
    exact = attack.mu if attack.mu is not None and law_holds(attack, false_alarm=false_alarm / 2) else None
    return Audit(
        mechanism=mechanism,
        planted=planted,
        method="likelihood ratio" if attack.mu is None else "exact law",
        unit="mu",
        relation=relation,
        runs=len(attack.here),
        stated=stated,
        shown=shown,
        exact=exact,
        false_alarm=false_alarm,
        # A distribution that is not confirmed is a fault, too: noise of another size, or records that count twice.
        caught=shown > stated
        or (attack.mu is not None and exact is None)
        or (exact is not None and exact > stated * (1 + EXACTLY)),
    )


def audited_batches(mechanism: str, attack: Attack, sums: NoisySums, *, relation: Relation, planted: str = "") -> Audit:
    """Return the audit of one release on Poisson batches at delta `LIKELY`.

    Args:
        mechanism: The mechanism.
        attack: The scores, which are log-likelihood ratios.
        sums: The release without the fault, which is the release that was accounted for.
        relation: The neighbouring relation of data sets.
        planted: The fault; empty for none.
    """
    epsilon = SampledGuarantee(sums=(sums._replace(times=1),), relation=relation).epsilon(LIKELY)
    shown = shown_delta(attack, epsilon)
    return Audit(
        mechanism=mechanism,
        planted=planted,
        method="likelihood ratio",
        unit="delta",
        relation=relation,
        runs=len(attack.here),
        stated=LIKELY,
        shown=shown,
        exact=None,
        false_alarm=FALSE_ALARM,
        caught=shown > LIKELY,
    )


def least_of_noisy(scores: Sequence[float], scale: float) -> attacks.Array:
    """Return, for each score, the probability that it is the smallest after Laplace noise is added.

    The probabilities are computed by quadrature.

    Args:
        scores: The scores of the candidates.
        scale: The scale of the noise.
    """
    from scipy.integrate import quad

    def above(x: float, score: float) -> float:
        tail = 0.5 * math.exp(-abs(x - score) / scale)
        return tail if x >= score else 1 - tail

    def of(which: int) -> float:
        others = [score for number, score in enumerate(scores) if number != which]

        def density(x: float) -> float:
            own = math.exp(-abs(x - scores[which]) / scale) / (2 * scale)
            return own * math.prod(above(x, score) for score in others)

        low, high = min(scores) - 60 * scale, max(scores) + 60 * scale
        return float(quad(density, low, high, points=sorted(set(scores)), limit=400)[0])

    return np.array([of(which) for which in range(len(scores))])


def worst_ratio(
    probabilities: Callable[[Sequence[float]], attacks.Array], losses: Sequence[float], moves: Sequence[float]
) -> float:
    """Return the largest log-ratio of selection probabilities if every loss moves up or down by its bound.

    Args:
        probabilities: A function from the losses of the candidates to their probabilities.
        losses: The losses before any of them moves.
        moves: The largest distance by which one record moves each loss.
    """
    before, worst = probabilities(losses), 0.0
    for signs in product((-1, 1), repeat=len(losses)):
        after = probabilities([loss + sign * move for loss, sign, move in zip(losses, signs, moves, strict=True)])
        worst = max(worst, float(np.abs(np.log(after / before)).max()))
    return worst
