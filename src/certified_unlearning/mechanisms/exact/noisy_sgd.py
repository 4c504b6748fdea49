"""Noisy mini-batch descent, plain (Algorithms 21 and 22) or accelerated (Algorithms 9 and 10).

An iteration descends along its noisy gradient ``xi ~ N(g, sigma^2 I)``. An edit that changes ``g`` keeps ``xi`` or
reflects it (`reflection_step`). The stored value is ``xi``, so the noise of later edits is ``xi - g`` with the *new*
gradient. Algorithm 10 as printed omits this.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_non_negative
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.reflection import reflection_step
from certified_unlearning.mechanisms.exact.trajectory import Descent


@dataclass(frozen=True, kw_only=True)
class NoisySgd(Descent):
    """The constants of noisy descent.

    Attributes:
        sigma: Standard deviation of the noise on a coordinate of a mean gradient, at least 0.
        accelerated: Whether gradients are computed at ``w_t + (t - 1)/(t + 2) (w_t - w_{t-1})``, and the model is the
            last iterate. Otherwise, they are computed at ``w_t``, and the model is the mean of all iterates.
    """

    sigma: float
    accelerated: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_non_negative(sigma=self.sigma)

    def randomness(self, gradients: Tensor, draws: Draws) -> Tensor:
        """Return noisy gradients."""
        return gradients + self.sigma * draws.normal(*gradients.shape)

    def directions(self, gradients: Tensor, randomness: Tensor) -> Tensor:
        """Return the noisy gradients."""
        return randomness

    def couple(self, randomness: Tensor, old: Tensor, new: Tensor, draws: Draws) -> tuple[Tensor, Tensor]:
        """Return the noisy gradients, each kept or reflected, and whether each was kept."""
        return reflection_step(randomness, old, new, self.sigma, draws.uniform(len(randomness)))

    def rejection(self, randomness: Tensor, old: Tensor, change: Tensor) -> Tensor:
        """Return the probability that noisy gradients are reflected: 1 if gradients change and have no noise."""
        if self.sigma == 0:
            return (change != 0).any(dim=1).to(change.dtype)
        log_ratio = ((randomness - old - change / 2) * change).sum(dim=1) / self.sigma**2
        return -torch.expm1(log_ratio.clamp(max=0))
