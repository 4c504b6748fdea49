"""Noise on values that one record moves by a bounded amount: sensitivity, exact calibration, composition.

Source: Ullah (2024), chapters 1 to 3. Gaussian noise is calibrated exactly (Balle and Wang, 2018). The source has
closed forms, and some of them are too small. Releases with Gaussian noise compose exactly, even if each release depends
on earlier ones: together they are ``mu``-Gaussian DP, where ``mu^2`` is the sum of the squared ``mu`` of all releases
(Dong, Roth and Su, 2022). Every ``mu`` and every sigma is rounded up, which is the safe direction.

Every epsilon refers to a *relation*. Under ``replace-one``, the source's relation, data sets are neighbours if they
have the same number of records and differ in one record. Then one record moves a sum by twice the bound on a summand.
Under ``add-remove``, data sets are neighbours if one of them has one more record. Then one record moves a sum by the
bound itself. Under ``add-remove``, the number ``n`` by which sums are divided is a public constant, which is the same
for both data sets. A comparison of epsilons under different relations must name the relations.
"""

import math
from collections.abc import Iterable

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.core.conversion import mu_from_epsilon
from certified_unlearning.accounting.residual.rounding import OUTWARD
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Relation

MOVES: dict[Relation, int] = {"replace-one": 2, "add-remove": 1}
"""The effect of one record on a sum, in units of the bound on a summand."""


def mean_sensitivity(bound: float, *, n: int, relation: Relation) -> float:
    """Return how far one record moves a mean of ``n`` vectors of norm at most ``bound``, rounded up."""
    require_non_negative(bound=bound)
    require_count(least=1, n=n)
    return _moves(relation) * bound / n * OUTWARD


def noise_multiplier(epsilon: float, delta: float) -> float:
    """Return ``z``, the least noise for one release in units of the sensitivity, exact except for rounding up.

    ``z`` solves ``delta = Phi(-epsilon z + 1 / (2 z)) - e^epsilon Phi(-epsilon z - 1 / (2 z))``.

    Raises:
        ParameterError: ``epsilon`` is not above 0, or ``delta`` is not strictly between 0 and 1.
    """
    return 1 / mu_from_epsilon(epsilon, delta) * OUTWARD


def mu_of(sensitivity: float, *, sigma: float, releases: int = 1) -> float:
    """Return the ``mu`` of releases with equal noise, rounded up. Each release may depend on earlier ones.

    Args:
        sensitivity: How far one record moves a release, in Euclidean norm.
        sigma: Standard deviation of the noise, per coordinate.
        releases: Number of releases, at least 0.
    """
    require_non_negative(sensitivity=sensitivity)
    require_positive(sigma=sigma)
    require_count(least=0, releases=releases)
    return math.sqrt(releases) * sensitivity / sigma * OUTWARD


def composed(mus: Iterable[float]) -> float:
    """Return the joint ``mu`` of successive releases of the same records, rounded up."""
    return math.hypot(*mus) * OUTWARD


def sigma_for(sensitivity: float, *, epsilon: float, delta: float, releases: int = 1) -> float:
    """Return the least noise, rounded up, for which the given number of releases is (epsilon, delta)-private."""
    require_positive(sensitivity=sensitivity)
    require_count(least=1, releases=releases)
    return noise_multiplier(epsilon, delta) * math.sqrt(releases) * sensitivity * OUTWARD**3


def _moves(relation: Relation) -> int:
    if relation not in MOVES:
        raise ParameterError(f"relation must be one of {', '.join(MOVES)}, got {relation!r}")
    return MOVES[relation]
