"""Noise on numbers that one record moves by a bounded amount: sensitivity, exact calibration, composition.

Source: Ullah (2024), chapters 1 to 3. Gaussian noise is calibrated exactly (Balle and Wang, 2018); the source has
closed forms, some of which are too small. Releases with Gaussian noise compose exactly: together they are
``mu``-Gaussian DP, where ``mu^2`` is the sum of their squared ``mu`` (Dong, Roth and Su, 2022), even if each depends on
earlier ones. Results are on the safe side of rounding: a ``mu`` or a sigma is rounded up.

Every epsilon refers to a *relation*. Data sets are neighbours under ``replace-one`` (the source's relation) if they
have the same number of records and differ in one: a record moves a sum by twice its bound. They are neighbours under
``add-remove`` if one has one more record; then a record moves a sum by its bound, and the number ``n`` that sums are
divided by is a public constant, the same for both. Never compare figures of the two relations without saying so.
"""

import math
from collections.abc import Iterable

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.core.conversion import mu_from_epsilon
from certified_unlearning.accounting.residual.rounding import OUTWARD
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Relation

MOVES: dict[Relation, int] = {"replace-one": 2, "add-remove": 1}
"""The effect of one record on a sum, in units of its bound."""


def mean_sensitivity(bound: float, *, n: int, relation: Relation) -> float:
    """Return how far one record moves a mean of ``n`` vectors of norm at most ``bound``; rounded up."""
    require_non_negative(bound=bound)
    require_count(least=1, n=n)
    return _moves(relation) * bound / n * OUTWARD


def noise_multiplier(epsilon: float, delta: float) -> float:
    """Return ``z``, the least noise for one release in units of the sensitivity; exact except for rounding up.

    ``delta = Phi(-epsilon z + 1 / (2 z)) - e^epsilon Phi(-epsilon z - 1 / (2 z))``.

    Raises:
        ParameterError: ``epsilon`` is not above 0, or ``delta`` not strictly between 0 and 1.
    """
    return 1 / mu_from_epsilon(epsilon, delta) * OUTWARD


def mu_of(sensitivity: float, *, sigma: float, releases: int = 1) -> float:
    """Return the ``mu`` of a number of releases with equal noise, each of which may depend on earlier ones; rounded up.

    Args:
        sensitivity: How far one record moves a release, in Euclidean norm.
        sigma: Standard deviation of the noise, per coordinate.
        releases: Number of releases; 0 releases nothing.
    """
    require_non_negative(sensitivity=sensitivity)
    require_positive(sigma=sigma)
    require_count(least=0, releases=releases)
    return math.sqrt(releases) * sensitivity / sigma * OUTWARD


def composed(mus: Iterable[float]) -> float:
    """Return the ``mu`` of successive releases of the same records; rounded up."""
    return math.hypot(*mus) * OUTWARD


def sigma_for(sensitivity: float, *, epsilon: float, delta: float, releases: int = 1) -> float:
    """Return the least noise with which a number of releases is (epsilon, delta)-private; rounded up."""
    require_positive(sensitivity=sensitivity)
    require_count(least=1, releases=releases)
    return noise_multiplier(epsilon, delta) * math.sqrt(releases) * sensitivity * OUTWARD**3


def _moves(relation: Relation) -> int:
    if relation not in MOVES:
        raise ParameterError(f"relation must be one of {', '.join(MOVES)}, got {relation!r}")
    return MOVES[relation]
