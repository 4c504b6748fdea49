"""Problems of means, each run with data of its own: squared distances (smooth) and distances (Lipschitz)."""

import torch
from torch import Tensor

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import GivenRecords

CENTRE = torch.tensor([0.5, 0, 0, 0, 0], dtype=torch.float64)


def rows(count: int, draws: Draws) -> Tensor:
    """Records around `CENTRE`, shape ``(count, 5)``."""
    return CENTRE + 0.3 * draws.normal(count, 5).clamp(-2, 2)


def squared_distances(given: Tensor) -> GivenRecords:
    """Losses ``|w - z|^2 / 2``."""
    return GivenRecords(lambda weights, records: weights[:, None] - records, given, dimension=given.shape[1])


def distances(given: Tensor) -> GivenRecords:
    """Losses ``|w - z|``."""

    def gradients(weights: Tensor, records: Tensor) -> Tensor:
        difference = weights[:, None] - records
        return difference / torch.linalg.vector_norm(difference, dim=-1, keepdim=True)

    return GivenRecords(gradients, given, dimension=given.shape[1])


def own_orders(runs: int, n: int) -> Tensor:
    """Each run's own records, shape ``(runs, n)``."""
    return torch.arange(runs * n).view(runs, n)
