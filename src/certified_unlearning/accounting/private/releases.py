"""Noise on numbers that one record moves by a bounded amount: sensitivity, exact calibration, composition.

Source: Ullah (2024), chapters 1 to 3, with Gaussian noise calibrated exactly (Balle and Wang, 2018) where the source
has closed forms, some of them too small. Releases of Gaussian noise compose exactly: they are together
``mu``-Gaussian DP with ``mu^2`` the sum of the single ones (Dong, Roth and Su, 2022), also where each depends on those
before. What is returned here is on the safe side of rounding: a ``mu`` or a sigma is rounded up.

Every epsilon speaks of a *relation*. Data sets are neighbours under ``replace-one`` (the source's) if they have the
same number of records and differ in one: a record moves a sum by twice its bound. They are under ``add-remove`` if one
has a record more; then a record moves a sum by its bound, and the number ``n`` that sums are divided by is a public
constant, the same for both. Figures of the two are never to be compared without saying so.
"""

import math
from collections.abc import Iterable

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.core.conversion import mu_from_epsilon
from certified_unlearning.accounting.residual.rounding import OUTWARD
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Relation

MOVES: dict[Relation, int] = {"replace-one": 2, "add-remove": 1}
"""How many bounds one record moves a sum by."""


def mean_sensitivity(bound: float, *, n: int, relation: Relation) -> float:
    """Return how far one record moves a mean of ``n`` vectors of norm at most ``bound``; rounded up."""
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
    """
    require_non_negative(sensitivity=sensitivity)
    require_positive(sigma=sigma)
    require_count(least=0, releases=releases)
    return math.sqrt(releases) * sensitivity / sigma * OUTWARD


def composed(mus: Iterable[float]) -> float:
    """Return the ``mu`` of releases of the same records, one after another; rounded up."""
    return math.hypot(*mus) * OUTWARD


def sigma_for(sensitivity: float, *, epsilon: float, delta: float, releases: int = 1) -> float:
    """Return the least noise with which as many releases are (epsilon, delta)-private; rounded up."""
    require_positive(sensitivity=sensitivity)
    require_count(least=1, releases=releases)
    return noise_multiplier(epsilon, delta) * math.sqrt(releases) * sensitivity * OUTWARD**3


def _moves(relation: Relation) -> int:
    if relation not in MOVES:
        raise ParameterError(f"relation must be one of {', '.join(MOVES)}, got {relation!r}")
    return MOVES[relation]
