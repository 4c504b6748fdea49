"""Parameters and rates of chapter 5's learners, which read every record once: population risk, noisy prefix sums.

Constants and logarithms are dropped in the rates. ``B``, the largest move of a prefix sum by replacing a record, is
``2 (H D + G)`` for variance-reduced Frank-Wolfe and ``2 G`` for dual averaging; Theorems 26 and 27 print the noise of
Theorem 25 with half of that, which its slack allows.
"""

import math

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive


def frank_wolfe_sensitivity(*, lipschitz: float, smoothness: float, diameter: float) -> float:
    """Return ``B = 2 (H D + G)``, of increments ``(t + 1) grad(w_t) - t grad(w_(t - 1))`` with ``w_0 = w_1``."""
    require_positive(lipschitz=lipschitz, smoothness=smoothness, diameter=diameter)
    return 2 * (smoothness * diameter + lipschitz)


def dual_averaging_sensitivity(*, lipschitz: float) -> float:
    """Return ``B = 2 G``, of increments that are gradients."""
    require_positive(lipschitz=lipschitz)
    return 2 * lipschitz


def balanced_step_size(*, n: int, dimension: int, lipschitz: float, diameter: float, sigma: float) -> float:
    """Return dual averaging's step size ``D / sqrt(2 n (G^2 + G sigma sqrt(d log2 n)))``, which balances its regret.

    Derived from the regret bound that Theorem 27 rests on (Kairouz et al., 2021), which is about the average of the
    models.

    Args:
        n: Number of records.
        dimension: ``d``.
        lipschitz: ``G``.
        diameter: ``D`` of the set of models.
        sigma: Noise of a node, per coordinate; 0 for none.
    """
    require_count(least=1, n=n, dimension=dimension)
    require_positive(lipschitz=lipschitz, diameter=diameter)
    require_non_negative(sigma=sigma)
    noise = lipschitz * sigma * math.sqrt(dimension * math.log2(n))
    return diameter / math.sqrt(2 * n * (lipschitz**2 + noise))
