"""Noise on numbers that one record moves by a bounded amount: sensitivity, exact calibration, composition.

Source: Ullah (2024), chapters 1 to 3, with Gaussian noise calibrated exactly (Balle and Wang, 2018) where the source
has closed forms, some of them too small (`PRINTED`). Releases of Gaussian noise compose exactly: they are together
``mu``-Gaussian DP with ``mu^2`` the sum of the single ones (Dong, Roth and Su, 2022), also where each depends on those
before. What is returned here is on the safe side of rounding: a ``mu`` or a sigma is rounded up.

Every epsilon speaks of a *relation*. Data sets are neighbours under ``replace-one`` (the source's) if they have the
same number of records and differ in one: a record moves a sum by twice its bound. They are under ``add-remove`` if one
has a record more; then a record moves a sum by its bound, and the number ``n`` that sums are divided by is a public
constant, the same for both. Figures of the two are never to be compared without saying so.
"""

import math
from collections.abc import Iterable

from certified_unlearning.accounting.core.checks import (
    require_count,
    require_non_negative,
    require_positive,
    require_probability,
)
from certified_unlearning.accounting.core.conversion import epsilon_from_mu, mu_from_epsilon
from certified_unlearning.accounting.residual.rounding import OUTWARD
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Relation

MOVES: dict[Relation, int] = {"replace-one": 2, "add-remove": 1}
"""How many bounds one record moves a sum by."""


def mean_sensitivity(bound: float, *, n: int, relation: Relation) -> float:
    """Return how far one record moves a mean of ``n`` vectors of norm at most ``bound``; rounded up.

    Raises:
        ParameterError: A value makes no sense.
    """
    require_non_negative(bound=bound)
    require_count(least=1, n=n)
    return _moves(relation) * bound / n * OUTWARD


def noise_multiplier(epsilon: float, delta: float) -> float:
    """Return ``z``, the least noise in units of the sensitivity for one release, exactly but for rounding it up.

    ``delta = Phi(-epsilon z + 1 / (2 z)) - e^epsilon Phi(-epsilon z - 1 / (2 z))``.

    Raises:
        ParameterError: ``epsilon`` is not above 0, or ``delta`` not strictly between 0 and 1.
    """
    return 1 / mu_from_epsilon(epsilon, delta) * OUTWARD


def mu_of(sensitivity: float, *, sigma: float, releases: int = 1) -> float:
    """Return the ``mu`` of as many releases with the same noise, each of which may depend on those before; rounded up.

    Args:
        sensitivity: How far one record moves what is released, in Euclidean norm.
        sigma: Standard deviation of the noise, per coordinate.
        releases: How many; 0 release nothing.

    Raises:
        ParameterError: A value makes no sense.
    """
    require_non_negative(sensitivity=sensitivity)
    require_positive(sigma=sigma)
    require_count(least=0, releases=releases)
    return math.sqrt(releases) * sensitivity / sigma * OUTWARD


def composed(mus: Iterable[float]) -> float:
    """Return the ``mu`` of releases of the same records, one after another; rounded up."""
    return math.hypot(*mus) * OUTWARD


def sigma_for(sensitivity: float, *, epsilon: float, delta: float, releases: int = 1) -> float:
    """Return the least noise with which as many releases are (epsilon, delta)-private; rounded up.

    Raises:
        ParameterError: A value makes no sense.
    """
    require_positive(sensitivity=sensitivity)
    require_count(least=1, releases=releases)
    return noise_multiplier(epsilon, delta) * math.sqrt(releases) * sensitivity * OUTWARD**3


def zcdp_of(sensitivity: float, *, sigma: float, releases: int = 1) -> float:
    """Return the ``rho`` of zero-concentrated DP, ``mu^2 / 2``: it adds up over releases (Bun and Steinke, 2016)."""
    return mu_of(sensitivity, sigma=sigma, releases=releases) ** 2 / 2 * OUTWARD


def epsilon_from_zcdp(rho: float, delta: float) -> float:
    """Return the usual conversion ``rho + 2 sqrt(rho log(1 / delta))``: above that of the ``mu`` of Gaussian noise.

    Raises:
        ParameterError: ``rho`` is below 0, or ``delta`` not strictly between 0 and 1.
    """
    require_non_negative(rho=rho)
    require_probability(delta=delta)
    return (rho + 2 * math.sqrt(rho * -math.log(delta))) * OUTWARD


def advanced_composition(epsilon: float, delta: float, *, releases: int, slack: float) -> tuple[float, float]:
    """Return Theorem 6: the epsilon and delta of as many (epsilon, delta)-private releases, with the constant printed.

    ``min{k epsilon, 2 epsilon sqrt(k log(1 / slack)) + k epsilon (e^epsilon - 1) / (e^epsilon + 1)}`` at
    ``k delta + slack``. The usual constant is ``sqrt(2)``, so it holds.

    Raises:
        ParameterError: A value makes no sense.
    """
    require_non_negative(epsilon=epsilon, delta=delta)
    require_count(least=1, releases=releases)
    require_probability(slack=slack)
    advanced = 2 * epsilon * math.sqrt(releases * -math.log(slack)) + releases * epsilon * math.tanh(epsilon / 2)
    return min(releases * epsilon, advanced) * OUTWARD, (releases * delta + slack) * OUTWARD


def subsampled(epsilon: float, delta: float, *, share: float) -> tuple[float, float]:
    """Return what a private learner guarantees on a uniform subset of the records, in the tight form of Theorem 7.

    ``(log(1 + q (e^epsilon - 1)), q delta)`` for a share ``q``. Theorem 7 prints ``q (e^epsilon - 1)``, which is more.

    Raises:
        ParameterError: A value makes no sense.
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
"""Noise multipliers as printed. That of Theorem 12 is too small for every usual epsilon, and nothing here uses it."""


def printed_epsilon(rule: str, *, epsilon: float, delta: float) -> float:
    """Return the epsilon that a printed multiplier gives in truth, by its name in `PRINTED`."""
    return epsilon_from_mu(1 / PRINTED[rule](epsilon, delta), delta)


def _moves(relation: Relation) -> int:
    if relation not in MOVES:
        raise ParameterError(f"relation must be one of {', '.join(MOVES)}, got {relation!r}")
    return MOVES[relation]
