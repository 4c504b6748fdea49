"""Federated averaging as linear queries, in which every client is one record.

Source: Ullah (2024), Algorithm 28, corrected: clients start from the current model, not from the previous one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.errors import ParameterError

MOST_NUMBERS = 10_000_000
"""Largest number of weights of clients' models in memory at once.

More clients are summed in blocks.
"""


@dataclass(frozen=True)
class FederatedAveragingSettings:
    """The constants of federated averaging.

    The constants are the same for all edits.

    Attributes:
        clip: Largest norm ``c`` of a client's update of the model. This is the bound ``B`` of a deletion or an
            insertion.
        nominal_clients: The number by which sums are divided, whatever the number of clients is.
    """

    clip: float
    nominal_clients: int

    def __post_init__(self) -> None:
        """Check every value."""
        require_positive(clip=self.clip)
        require_count(least=1, nominal_clients=self.nominal_clients)


class FederatedAveraging:
    """Federated averaging of clipped updates, with noise.

    A step adds up the clipped updates of all clients, adds noise, and divides the sum by ``nominal_clients``. The
    result is added to the model.
    """

    def __init__(
        self, train: Callable[[Tensor, Tensor], Tensor], start: Tensor, settings: FederatedAveragingSettings
    ) -> None:
        """Store the clients and the settings.

        Args:
            train: Function that returns trained models, shape ``(k, m, d)``, given models, shape ``(k, d)``, and
                clients, shape ``(m,)``. Each client trains on its own data, starting from each model. The function must
                be deterministic, because a deletion calls it again to obtain what the client sent.
            start: The first model, shape ``(d,)``, float64. It must not depend on any client.
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
        """Number of entries of each sum, ``d``."""
        return self.dimension

    def start(self) -> Tensor:
        """Return the first model."""
        return self._start

    def sums(self, step: int, models: Tensor, records: Tensor) -> Tensor:
        """Return sums of clipped updates; see `QueryMethod.sums`.

        Raises:
            ParameterError: ``train`` returned models of the wrong shape.
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
