"""How often a guess about removed records can be right under a guarantee.

The guesser knows everything except whether the records were unlearned from the model or the model was made without
them. Both cases are equally likely. The best guess is right with probability ``(1 + TV) / 2``, where ``TV`` is the
total variation distance of the two distributions, and every guarantee bounds ``TV``.
"""

import math

from certified_unlearning.accounting.core.checks import require_non_negative
from certified_unlearning.errors import ParameterError

ROUNDING = 1e-12
"""Relative margin by which results are rounded up. It is far above the numerical error of the functions below."""


def right_guesses(*, epsilon: float, delta: float) -> float:
    """Return the largest probability of a right guess that an (epsilon, delta) guarantee allows, rounded up.

    The probability is ``1/2 + (e^epsilon - 1 + 2 delta) / (2 (e^epsilon + 1))``, and some pair of distributions attains
    it (Kairouz, Oh, Viswanath, "The Composition Theorem for Differential Privacy", 2015, Section 2).

    Args:
        epsilon: Epsilon of the guarantee, at least 0.
        delta: Delta of the guarantee, from 0 to 1.
    """
    require_non_negative(epsilon=epsilon)
    _require_share(delta=delta)
    ratio = math.tanh(epsilon / 2)  # (e^epsilon - 1) / (e^epsilon + 1)
    return _rounded_up((1 + ratio + delta * (1 - ratio)) / 2) if epsilon or delta else 0.5


def right_guesses_of_gaussian(mu: float, *, extra_delta: float = 0.0) -> float:
    """Return the largest probability of a right guess that Gaussian differential privacy allows, rounded up.

    The probability is ``Phi(mu / 2)``, as in the test of N(0, 1) against N(mu, 1) (Dong, Roth, Su, "Gaussian
    Differential Privacy", 2022, Definition 2.6). If every delta is increased by some amount, the probability is
    increased by half of that amount.

    Args:
        mu: The parameter of the guarantee, at least 0.
        extra_delta: Addition to delta, from 0 to 1.
    """
    require_non_negative(mu=mu)
    _require_share(extra_delta=extra_delta)
    return _rounded_up(math.erfc(-mu / math.sqrt(8)) / 2 + extra_delta / 2) if mu or extra_delta else 0.5


def _require_share(**values: float) -> None:
    for name, value in values.items():
        if not 0 <= value <= 1:
            raise ParameterError(f"{name} must lie between 0 and 1, got {value!r}")


def _rounded_up(share: float) -> float:
    return min(share * (1 + ROUNDING), 1.0)
