"""A small learner of prefix sums whose law is wide enough to tell faults, and draws that return what they are given."""

from collections.abc import Sequence

import torch
from torch import Tensor

from certified_unlearning.engine.exact.draws import Draws


class ClippedMeans:
    """``p_t = clip(w_t - z_t)``, ``w_(t + 1) = clip(-step (noisy sum))``, one coordinate."""

    dimension = 1
    gradients_per_increment = 1

    def __init__(self, values: Sequence[float], *, step: float, largest: float, radius: float) -> None:
        self.values = torch.tensor(values, dtype=torch.float64)
        self.step, self.largest, self.radius = step, largest, radius

    def start(self) -> Tensor:
        return torch.zeros(1, dtype=torch.float64)

    def increments(self, positions: Tensor, models: Tensor, previous: Tensor, records: Tensor) -> Tensor:
        return (models - self.values[records][:, None]).clamp(-self.largest, self.largest)

    def updates(self, positions: Tensor, models: Tensor, prefixes: Tensor) -> Tensor:
        return (-self.step * prefixes).clamp(-self.radius, self.radius)

    def output(self, models: Tensor) -> Tensor:
        return models[:, -1]


def example(extra: Sequence[float] = (-0.3,)) -> ClippedMeans:
    """Seven records, and more that may be inserted; record 5, 2.5, is the one that matters most."""
    return ClippedMeans([0.2, -0.7, 1.5, 0.9, -1.8, 2.5, 0.4, *extra], step=0.6, largest=1.5, radius=2)


class Given(Draws):
    """Draws for one trial in one dimension: noise and uniforms from lists, orders as they stand."""

    def __init__(
        self, noise: Sequence[float] = (), uniforms: Sequence[float] = (), integers: Sequence[int] = ()
    ) -> None:
        super().__init__(0)
        self.noise, self.uniforms, self.whole = list(noise), list(uniforms), list(integers)

    def normal(self, *shape: int) -> Tensor:
        return self._next(self.noise, *shape)

    def uniform(self, *shape: int) -> Tensor:
        return self._next(self.uniforms, *shape)

    def integers(self, below: int, *shape: int) -> Tensor:
        drawn = self._next(self.whole, *shape).long()
        assert bool((drawn < below).all())
        return drawn

    def orders(self, members: Tensor, trials: int) -> Tensor:
        return members.repeat(trials, 1)

    @property
    def left(self) -> int:
        return len(self.noise) + len(self.uniforms) + len(self.whole)

    @staticmethod
    def _next(numbers: list, *shape: int) -> Tensor:
        count = torch.Size(shape).numel()
        taken, numbers[:] = numbers[:count], numbers[count:]
        return torch.tensor(taken, dtype=torch.float64).reshape(shape)
