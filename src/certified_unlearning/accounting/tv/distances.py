"""Total variation between Gaussians."""

import math

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_probability
from certified_unlearning.errors import ParameterError


def gaussian_tv(gap: float) -> float:
    """Return the exact total variation between two Gaussians with the same covariance ``sigma^2 I``.

    Args:
        gap: Distance between the means in units of ``sigma``.

    Raises:
        ParameterError: ``gap`` is below 0.
    """
    require_non_negative(gap=gap)
    return math.erf(gap / math.sqrt(8))


def gap_of_tv(tv: float) -> float:
    """Return the gap at which `gaussian_tv` equals ``tv``. The argument ``tv`` must be strictly between 0 and 1."""
    require_probability(tv=tv)
    # Imported here because importing SciPy takes a second, and not every importer of this module needs it.
    from scipy.special import erfinv

    return math.sqrt(8) * float(erfinv(tv))


def require_batch(n: int, batch_size: int) -> None:
    """Raise `ParameterError` unless ``1 <= batch_size <= n``."""
    require_count(least=1, n=n, batch_size=batch_size)
    if batch_size > n:
        raise ParameterError(f"batch_size must be at most n = {n}, got {batch_size}")
