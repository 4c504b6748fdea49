"""The clients of federated averaging: each runs some steps on its own rows, from the model that it receives.

The model is linear, with two classes or more. A client descends along the gradient of the mean loss of all its rows. So
its result is a deterministic function of the model and its rows, as exact unlearning requires.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.accounting.core.losses import scores_per_record

NUMBERS_AT_ONCE = 1 << 22
"""Largest number of row entries, or of scores, in memory at once.

Clients are processed in blocks.
"""


@dataclass(frozen=True)
class LocalTraining:
    """The constants of a client's steps.

    Attributes:
        steps: Number of steps.
        step_size: Step size, for the mean loss of a client's rows.
        strong_convexity: Strength ``lambda`` of the regulariser ``lambda / 2 |w|^2``, which is part of the mean loss.
        classes: Number of classes, at least 2.
    """

    steps: int
    step_size: float
    strong_convexity: float
    classes: int


class Clients:
    """The rows and labels of all clients.

    The name of a client is a whole number, at least 0.
    """

    def __init__(self, rows: Tensor, labels: Tensor, owners: Tensor, training: LocalTraining) -> None:
        """Store the rows, ordered by client.

        Args:
            rows: Rows, shape ``(n, features)``, floating-point; they may be in a file, and are read when needed.
            labels: Labels, shape ``(n,)``: above 0 for the second of two classes; with more classes, the number of the
                class.
            owners: The client of each row, shape ``(n,)``, int64; -1 for a row that belongs to no client.
            training: The constants of a client's steps.
        """
        self._rows, self._training = rows, training
        self._labels = (labels > 0).long() if training.classes == 2 else labels.long()
        # Rows that belong to no client come first.
        self._order = owners.argsort(stable=True)[int((owners < 0).sum()) :]
        self.names, self._sizes = torch.unique(owners[self._order], return_counts=True)
        self._starts = self._sizes.cumsum(0) - self._sizes

    def train(self, models: Tensor, clients: Tensor) -> Tensor:
        """Start each client from each given model, and return the models after the clients' steps.

        Args:
            models: Models, whose weights are in the order of scores, shape ``(k, d)``.
            clients: Names of clients, shape ``(m,)``.

        Returns:
            The models after the steps, shape ``(k, m, d)``.
        """
        places = torch.searchsorted(self.names, clients)
        trained = models.new_empty(len(models), len(clients), models.shape[1])
        # Clients of similar size are processed together, so that little padding is needed.
        for some in self._blocks(self._sizes[places], len(models)):
            trained[:, some] = self._train(models, places[some])
        return trained

    def _blocks(self, sizes: Tensor, trials: int) -> list[Tensor]:
        """Return clients in blocks that fit into memory.

        Small clients come first.
        """
        ordered, order = sizes.sort(stable=True)
        width = max(self._rows.shape[1], trials * scores_per_record(self._training.classes))
        blocks, start = [], 0
        while start < len(order):
            # As many clients as would fit if all were as large as the largest of them.
            counts = torch.arange(1, len(order) - start + 1)
            fitting = int((counts * ordered[start:] * width <= NUMBERS_AT_ONCE).sum())
            end = start + max(1, fitting)
            blocks.append(order[start:end])
            start = end
        return blocks

    def _train(self, models: Tensor, places: Tensor) -> Tensor:
        """Return the models of some clients after their steps, shape ``(k, m, d)``."""
        training, sizes = self._training, self._sizes[places]
        within = torch.arange(int(sizes.max()))
        is_own = within < sizes[:, None]
        named = self._order[(self._starts[places, None] + within).where(is_own, 0)]
        # Padding consists of rows of zeros, which add nothing to a gradient.
        rows = self._rows[named].to(models.dtype) * is_own[..., None]
        labels = self._labels[named]
        weights = models.view(len(models), 1, -1, rows.shape[2]).expand(-1, len(places), -1, -1)
        for _ in range(training.steps):
            scores = rows @ weights.transpose(2, 3)
            if training.classes == 2:
                slopes = torch.sigmoid(scores) - labels[..., None]
            else:
                slopes = torch.softmax(scores, dim=-1) - torch.nn.functional.one_hot(labels, training.classes)
            gradients = slopes.transpose(2, 3) @ rows / sizes[:, None, None]
            weights = weights - training.step_size * (gradients + training.strong_convexity * weights)
        return weights.flatten(2)
