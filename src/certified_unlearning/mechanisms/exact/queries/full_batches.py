"""Gradient descent on full batches, in the form of linear queries.

Mini-batch methods (Ullah 2024, Algorithms 10 and 22) replace a deleted record by one outside the batch. So they cannot
use batches of all records, but linear queries can (Algorithm 26).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.mechanisms.exact.balls import FromOrigin, project

MOST_NUMBERS = 10_000_000
"""Largest number of row entries in memory at once.

If the rows have more entries, the records are summed in blocks.
"""


@dataclass(frozen=True)
class FullBatchSettings:
    """The constants of gradient descent.

    The constants are the same for all edits.

    Attributes:
        step_size: Step size ``eta``, for a mean of ``nominal_records`` gradients.
        nominal_records: The number by which sums are divided, whatever the number of records is.
        radius: Radius of the ball of models around the origin, where learning starts; None if there is no ball.
    """

    step_size: float
    nominal_records: int
    radius: float | None = None

    def __post_init__(self) -> None:
        """Check every value."""
        require_positive(step_size=self.step_size)
        require_count(least=1, nominal_records=self.nominal_records)
        if self.radius is not None:
            require_positive(radius=self.radius)


class FullBatches(FromOrigin[FullBatchSettings]):
    """``w_(t + 1) = projection of w_t - eta (noisy sum of all gradients) / nominal_records``.

    A record contributes its gradient, so the bound ``B`` of an edit is the loss's Lipschitz constant.
    """

    @property
    def answers(self) -> int:
        """Number of entries of each sum, ``d``."""
        return self.gradients.dimension

    def sums(self, step: int, models: Tensor, records: Tensor) -> Tensor:
        """Return sums of gradients; see `QueryMethod.sums`."""
        size = max(1, MOST_NUMBERS // (len(models) * self.dimension))
        total = torch.zeros_like(models)
        for block in torch.split(records, size):
            total += self.gradients.sums(models, block.expand(len(models), -1))
        return total

    def parts(self, models: Tensor, records: Tensor) -> Tensor:
        """Return the gradient of each record's loss at its own model, shape ``(k, d)``."""
        return self.gradients.sums(models, records[:, None])

    def updates(self, step: int, models: Tensor, answers: Tensor) -> Tensor:
        """Return the next models; see `QueryMethod.updates`."""
        steps = self.settings.step_size / self.settings.nominal_records * answers
        return project(models - steps, self.settings.radius)
