"""Ullah (2024), chapters 1 to 5: printed noise, bounds and selections, and formulas that only comparisons need.

The printed noise multipliers are in `PRINTED`. Formulas on which privacy depends are only in `accounting.private`.
"""

import math
from collections.abc import Sequence

import numpy as np

from certified_unlearning.accounting.core.checks import (
    require_count,
    require_non_negative,
    require_positive,
    require_probability,
)
from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.private.selections import Array, softmax
from certified_unlearning.accounting.residual.rounding import OUTWARD
from certified_unlearning.errors import ParameterError


def advanced_composition(epsilon: float, delta: float, *, releases: int, slack: float) -> tuple[float, float]:
    """Return the epsilon and delta of ``releases`` (epsilon, delta)-private releases, by Theorem 6 with its constant 2.

    The epsilon is ``min{k epsilon, 2 epsilon sqrt(k log(1 / slack)) + k epsilon (e^epsilon - 1) / (e^epsilon + 1)}``,
    and the delta is ``k delta + slack``. The usual constant, ``sqrt(2)``, is smaller than 2, so the theorem holds.
    """
    require_non_negative(epsilon=epsilon, delta=delta)
    require_count(least=1, releases=releases)
    require_probability(slack=slack)
    advanced = 2 * epsilon * math.sqrt(releases * -math.log(slack)) + releases * epsilon * math.tanh(epsilon / 2)
    return min(releases * epsilon, advanced) * OUTWARD, (releases * delta + slack) * OUTWARD


def subsampled(epsilon: float, delta: float, *, share: float) -> tuple[float, float]:
    """Return the guarantee of a private learner on a uniform subset of the records, in the tight form of Theorem 7.

    The guarantee is ``(log(1 + q (e^epsilon - 1)), q delta)`` for a share ``q``. Theorem 7 prints ``q (e^epsilon -
    1)``, which is larger.
    """
    require_non_negative(epsilon=epsilon, delta=delta)
    if not 0 < share <= 1:
        raise ParameterError(f"share must be above 0 and at most 1, got {share!r}")
    return math.log1p(share * math.expm1(epsilon)) * OUTWARD, share * delta * OUTWARD


PRINTED = {
    "classical": lambda epsilon, delta: math.sqrt(2 * math.log(1.25 / delta)) / epsilon,
    "theorem 4": lambda epsilon, delta: 4 * math.sqrt(math.log(1 / delta)) / epsilon,
    "theorem 8": lambda epsilon, delta: math.sqrt(2 * math.log(1 / delta)) / epsilon,
    "theorem 12": lambda epsilon, delta: math.sqrt(math.log(1 / delta)) / epsilon,
}
"""The printed noise multipliers.

The multiplier of Theorem 12 is too small for every usual epsilon, and no mechanism uses this multiplier.
"""


def printed_epsilon(rule: str, *, epsilon: float, delta: float) -> float:
    """Return the true epsilon of a printed multiplier, by its name in `PRINTED`."""
    return epsilon_from_mu(1 / PRINTED[rule](epsilon, delta), delta)


def lemma_2(*, at_zero: float, smoothness: float, row_norm: float, radius: float) -> float:
    """Return Lemma 2's bound on a record's gradient in the ball, which is above the sharp bound.

    Lemma 2's bound is ``2 Y sqrt(H) X + 2 H D X^2``.
    """
    return 2 * at_zero * math.sqrt(smoothness) * row_norm + 2 * smoothness * radius * row_norm**2


def lemma_4(*, at_zero: float, smoothness: float, row_norm: float, radius: float) -> float:
    """Return Lemma 4's bound on a record's loss in the ball, ``3 (Y^2 + H D^2 X^2)``."""
    return 3 * (at_zero**2 + smoothness * radius**2 * row_norm**2)


def lemma_15(*, step_size: float, smoothness: float, drift: float) -> tuple[float, float, float]:
    """Return Lemma 15's ``A``, and the lemma's coefficients of ``L_0 / T`` and of ``tau_1^2``.

    Args:
        step_size: The step size ``eta``.
        smoothness: The smoothness ``H``.
        drift: ``tau_2^2 q``.
    """
    a = step_size / 2 - smoothness * step_size**2 / 2 - step_size**3 * drift / 2
    return a, 2 / a * (1 + drift * step_size**2), step_size / a + 2 + drift * step_size**3 / a


def exponential_probabilities(scores: Sequence[float], *, epsilon: float, sensitivity: float) -> Array:
    """Return the exponential mechanism that selects a *large* score: ``p(c) ~ exp(epsilon s(c) / (2 Delta))``.

    Args:
        scores: The score of each candidate.
        epsilon: The epsilon of pure privacy; the mechanism uses the share `SELECTION_SHARE` of it.
        sensitivity: The sensitivity ``Delta``: the largest change of a score that one record can cause.

    Raises:
        ParameterError: There is no candidate.
    """
    require_positive(epsilon=epsilon, sensitivity=sensitivity)
    return softmax(np.asarray(scores, dtype=np.float64) / sensitivity, epsilon)


def generalised_guarantee(
    losses: Sequence[float], sensitivities: Sequence[float], *, epsilon: float, beta: float
) -> float:
    """Return the upper bound on the selected loss that holds with probability ``1 - beta``."""
    extra = 4 * math.log(len(losses) / beta) / epsilon
    return min(q + extra * g for q, g in zip(losses, sensitivities, strict=True))


def printed_boosting_scale(
    *, at_zero: float, smoothness: float, row_norm: float, radius: float, n: int, epsilon: float
) -> float:
    """Return Algorithm 15's printed scale, ``sqrt(4 (Y^2 + H D^2 X^2) / (n epsilon))``; no noise uses it."""
    return math.sqrt(4 * (at_zero**2 + smoothness * radius**2 * row_norm**2) / (n * epsilon))
