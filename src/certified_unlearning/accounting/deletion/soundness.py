"""The attack advantage that a bound on deletion allows.

Source: Theorem 4.1 of Chourasia and Shah, Forget Unlearning (ICML 2023), with its corrections. The advantage of a test
is ``P[it says 1 | one record] - P[it says 1 | the other record]``. Divergences are one-sided, from the model to its
reference.
"""

import math

from certified_unlearning.accounting.core.checks import require_non_negative
from certified_unlearning.accounting.deletion.rates import check_order


def largest_advantage(epsilon: float, *, alpha: float) -> float:
    """Return Theorem 4.1's bound (Eq. 10) on the advantage of any test of the model that is released at the deletion.

    The bound is ``min(1, sqrt(2 epsilon), a / (a - 1) exp(epsilon (a - 1) / a) (2 (a - 1))^(1 / a) - 1)`` with ``a =
    alpha``. In general, it holds only for the *first* release after the deletion. The bound also holds for later
    releases in either of two cases. In the first case, requests were fixed in advance. In the second case, ``epsilon``
    is a joint bound for the release and all models on which requests depended. `planning.adaptive_deletion_curve` gives
    such a joint bound.

    Args:
        epsilon: The deletion bound; 0 for perfect deletion.
        alpha: Rényi order of the deletion bound, above 1, possibly infinite.
    """
    require_non_negative(epsilon=epsilon)
    if alpha == math.inf:
        exponent = epsilon
    else:
        check_order(alpha)
        # log(a / (a - 1)) = -log(1 - 1 / a)
        exponent = math.log(alpha / (alpha - 1)) + (epsilon * (alpha - 1) + math.log(2 * (alpha - 1))) / alpha
    by_conversion = math.expm1(exponent) if exponent < 1 else 1.0
    return min(1.0, math.sqrt(2 * epsilon), by_conversion)
