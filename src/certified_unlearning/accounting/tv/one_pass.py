"""Parameters of chapter 5's learners, which minimise the population risk by noisy prefix sums.

The learners read every record once.

``B`` is the largest distance by which replacing a record moves a prefix sum. It is ``2 (H D + G)`` for variance-reduced
Frank-Wolfe and ``2 G`` for dual averaging. Theorems 26 and 27 print the noise of Theorem 25 with half of this ``B``,
which the slack of Theorem 25 allows.
"""

import math

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive


def frank_wolfe_sensitivity(*, lipschitz: float, smoothness: float, diameter: float) -> float:
    """Return ``B = 2 (H D + G)`` for the increments ``(t + 1) grad(w_t) - t grad(w_(t - 1))`` with ``w_0 = w_1``."""
    require_positive(lipschitz=lipschitz, smoothness=smoothness, diameter=diameter)
    return 2 * (smoothness * diameter + lipschitz)


def dual_averaging_sensitivity(*, lipschitz: float) -> float:
    """Return ``B = 2 G`` for increments that are gradients."""
    require_positive(lipschitz=lipschitz)
    return 2 * lipschitz


def balanced_step_size(*, n: int, dimension: int, lipschitz: float, diameter: float, sigma: float) -> float:
    """Return dual averaging's step size ``D / sqrt(2 n (G^2 + G sigma sqrt(d log2 n)))``, which balances its regret.

    The step size is derived from the regret bound that Theorem 27 uses (Kairouz et al., 2021). The regret bound holds
    for the average of the models.

    Args:
        n: Number of records.
        dimension: Number of parameters, ``d``.
        lipschitz: Lipschitz constant ``G``.
        diameter: Diameter ``D`` of the set of models.
        sigma: Standard deviation of a node's noise per coordinate; 0 for no noise.
    """
    require_count(least=1, n=n, dimension=dimension)
    require_positive(lipschitz=lipschitz, diameter=diameter)
    require_non_negative(sigma=sigma)
    noise = lipschitz * sigma * math.sqrt(dimension * math.log2(n))
    return diameter / math.sqrt(2 * n * (lipschitz**2 + noise))
