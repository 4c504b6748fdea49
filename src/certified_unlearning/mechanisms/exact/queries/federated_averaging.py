"""Federated averaging as linear queries: records are clients.

Source: Ullah (2024), Algorithm 28, corrected: clients start from the present model, not from the previous one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.errors import ParameterError

MOST_NUMBERS = 10_000_000
"""Number of weights of clients' models that are held at once; more clients are summed in blocks."""


@dataclass(frozen=True)
class FederatedAveragingSettings:
    """Constants of federated averaging, fixed for all edits.

    Attributes:
        clip: Largest norm ``c`` of a client's move of the model: the bound ``B`` of a deletion or an insertion.
        nominal_clients: Divisor of sums, whatever the number of clients.
    """

    clip: float
    nominal_clients: int

    def __post_init__(self) -> None:
        """Check every value."""
        require_positive(clip=self.clip)
        require_count(least=1, nominal_clients=self.nominal_clients)


class FederatedAveraging:
    """Each step adds the clipped moves of all clients, with noise, over the nominal number of clients to the model."""

    def __init__(
        self, train: Callable[[Tensor, Tensor], Tensor], start: Tensor, settings: FederatedAveragingSettings
    ) -> None:
        """Take the clients and the settings.

        Args:
            train: Given models, shape ``(k, d)``, and clients, ``(m,)``, returns each client's model after training on
                its own data from each of those, ``(k, m, d)``. It must be deterministic, because a deletion asks again
                for what the client sent.
            start: Shape ``(d,)``, float64: depends on no client.
            settings: The settings.
        """
        self.train = train
        self.settings = settings
        self._start = start

    @property
    def dimension(self) -> int:
        """Number of parameters, ``d``."""
        return len(self._start)

    @property
    def answers(self) -> int:
        """Number of values of a sum, ``d``."""
        return self.dimension

    def start(self) -> Tensor:
        """Return the first model."""
        return self._start

    def sums(self, step: int, models: Tensor, records: Tensor) -> Tensor:
        """Return sums of clipped moves; see `QueryMethod.sums`.

        Raises:
            ParameterError: Training returned another shape.
        """
        total = torch.zeros_like(models)
        for block in torch.split(records, max(1, MOST_NUMBERS // models.numel())):
            total += self._sums(models, block)
        return total

    def _sums(self, models: Tensor, records: Tensor) -> Tensor:
        trained = self.train(models, records)
        if trained.shape != (len(models), len(records), self.dimension):
            raise ParameterError(
                f"trained models must have shape (k, clients, d) = {(len(models), len(records), self.dimension)}, got "
                f"{tuple(trained.shape)}"
            )
        moves = trained - models[:, None]
        norms = torch.linalg.vector_norm(moves, dim=-1, keepdim=True)
        return (moves * torch.clamp(self.settings.clip / norms, max=1.0)).sum(dim=1)

    def updates(self, step: int, models: Tensor, answers: Tensor) -> Tensor:
        """Return the next models; see `QueryMethod.updates`."""
        return models + answers / self.settings.nominal_clients
