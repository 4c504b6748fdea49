"""Dual averaging on noisy prefix sums: one pass, for losses that need not be smooth.

Source: Ullah (2024), Algorithm 34 and Theorem 27, corrected in three points. The increments are single gradients. The
output is the average of the models, to which the regret bound behind the theorem applies; the last model is many times
worse. The step size balances the terms of that bound (`accounting.tv.one_pass.balanced_step_size`). In a stream of
unknown size, steps must depend only on the position (section 5.6).
"""

from dataclasses import dataclass

from torch import Tensor

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.mechanisms.exact.balls import FromOrigin, project


@dataclass(frozen=True)
class DualAveragingSettings:
    """The constants of dual averaging.

    The constants are the same for all edits.

    Attributes:
        step_size: Step size ``eta``, for a nominal number of records.
        radius: Radius of the ball of models around the origin, where learning starts; None if there is no ball.
        anytime: Whether the step size after position ``t`` is ``eta / sqrt(t)``, for streams.
    """

    step_size: float
    radius: float | None = None
    anytime: bool = False

    def __post_init__(self) -> None:
        """Check every value."""
        require_positive(step_size=self.step_size)
        if self.radius is not None:
            require_positive(radius=self.radius)


class DualAveraging(FromOrigin[DualAveragingSettings]):
    """``w_(t + 1) = projection of -eta (noisy sum of the gradients at w_1 to w_t)``.

    The output is the average of the models.
    """

    gradients_per_increment = 1

    def increments(self, positions: Tensor, models: Tensor, previous: Tensor, records: Tensor) -> Tensor:
        """Return gradients of records' losses at the current models; see `PrefixMethod.increments`."""
        return self.gradients.sums(models, records[:, None])

    def updates(self, positions: Tensor, models: Tensor, prefixes: Tensor) -> Tensor:
        """Return the next models; see `PrefixMethod.updates`."""
        steps = (
            self.settings.step_size / positions[:, None].sqrt() if self.settings.anytime else self.settings.step_size
        )
        return project(-steps * prefixes, self.settings.radius)

    def output(self, models: Tensor) -> Tensor:
        """Return the average of ``w_1`` to ``w_n``, shape ``(trials, d)``."""
        return models[:, :-1].mean(dim=1)
