"""Variance-reduced Frank-Wolfe on noisy prefix sums: one pass, for smooth losses.

Source: Ullah (2024), Algorithm 33 and Theorem 26, corrected: increments, not running sums, are added to the tree. If
``w_0 = w_1``, the norm of an increment is at most ``H D + G``. All step sizes depend only on the position.
"""

from dataclasses import dataclass

from torch import Tensor

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.mechanisms.exact.balls import FromOrigin, least_along


@dataclass(frozen=True)
class FrankWolfeSettings:
    """The constants of Frank-Wolfe.

    The constants are the same for all edits.

    Attributes:
        radius: Radius of the ball of models around the origin, where learning starts.

    Raises:
        ParameterError: The radius is not a finite number above 0.
    """

    radius: float

    def __post_init__(self) -> None:
        """Check the radius."""
        require_positive(radius=self.radius)


class FrankWolfe(FromOrigin[FrankWolfeSettings]):
    """``w_(t + 1) = (1 - e) w_t + e v_t`` with ``e = 1 / (t + 1)``.

    ``v_t`` is the ball's point with the smallest inner product with the noisy sum. The sum of
    ``(t + 1) grad(w_t; z_t) - t grad(w_(t - 1); z_t)`` is ``t + 1`` times an estimate of the population's gradient at
    ``w_t``. The variance of this estimate decreases as ``1 / t``. The output is the last model.
    """

    gradients_per_increment = 2

    def increments(self, positions: Tensor, models: Tensor, previous: Tensor, records: Tensor) -> Tensor:
        """Return recursive differences of gradients; see `PrefixMethod.increments`."""
        at = positions[:, None]
        here = self.gradients.sums(models, records[:, None])
        before = self.gradients.sums(previous, records[:, None])
        return (at + 1) * here - at * before

    def updates(self, positions: Tensor, models: Tensor, prefixes: Tensor) -> Tensor:
        """Return the next models; see `PrefixMethod.updates`."""
        share = 1 / (positions[:, None] + 1)
        return (1 - share) * models + share * least_along(prefixes, self.settings.radius)

    def output(self, models: Tensor) -> Tensor:
        """Return ``w_(n + 1)``, shape ``(trials, d)``."""
        return models[:, -1]
