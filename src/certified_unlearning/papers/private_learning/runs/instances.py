"""The instances of the experiments: distributions whose best weights and excess risks are known exactly.

Features of a sign instance are ``x_j = +-sqrt(lambda_j)`` with fair signs and ``lambda_j`` proportional to ``1 / j``,
so every row has norm 1. The excess risk of weights is ``sum lambda_j (w_j - w*_j)^2``.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.engine.exact.draws import Draws


@dataclass(frozen=True, eq=False)
class SignInstance:
    """Rows of fair signs, and a linear score from which targets are made.

    Attributes:
        scales: The scales ``sqrt(lambda_j)``, shape ``(features,)``.
        best: The best weights ``w*``, shape ``(features,)``.
    """

    scales: Tensor
    best: Tensor

    @property
    def features(self) -> int:
        """The number of columns of a row."""
        return len(self.best)

    @property
    def radius(self) -> float:
        """``D``: the norm of the best weights."""
        return float(torch.linalg.vector_norm(self.best))

    def rows(self, count: int, draws: Draws) -> Tensor:
        """Return ``count`` rows, shape ``(count, features)``."""
        signs = draws.uniform(count, self.features).sub_(0.5).sign_()
        return signs.mul_(self.scales)

    def targets(self, rows: Tensor, draws: Draws, *, noise: float) -> Tensor:
        """Return the scores of the best weights, plus or minus ``noise``; both signs are equally likely."""
        scores = rows @ self.best
        return scores + noise * (draws.uniform(len(rows)) - 0.5).sign() if noise else scores

    def excess(self, weights: Tensor) -> Tensor:
        """Return the excess risk of weights under squared loss.

        Args:
            weights: The weights, shape ``(trials, features)``. They may have further columns, in which the rows of
                records are zero.
        """
        off = (weights[:, : self.features] - self.best) * self.scales
        return off.square().sum(dim=1)

    def scaled(self, factor: float) -> "SignInstance":
        """Return the instance with rows longer by a factor, and with best weights shorter by the same factor."""
        return SignInstance(self.scales * factor, self.best / factor)


def sign_instance(features: int = 50, *, score: float = 0.7) -> SignInstance:
    """Return the instance with ``w*_j`` proportional to ``j^(-0.6)`` and ``sum w*_j sqrt(lambda_j) = score``."""
    number = torch.arange(1, features + 1, dtype=torch.float64)
    scales = (1 / number / (1 / number).sum()).sqrt()
    best = number.pow(-0.6)
    return SignInstance(scales, best * (score / float(best @ scales)))


def neuron_instance(features: int) -> SignInstance:
    """Return the instance of a tanh neuron: ``w_j = 2 j^(-0.1)``."""
    number = torch.arange(1, features + 1, dtype=torch.float64)
    return SignInstance((1 / number / (1 / number).sum()).sqrt(), 2 * number.pow(-0.1))


def neuron_records(instance: SignInstance, count: int, draws: Draws) -> tuple[Tensor, Tensor]:
    """Return rows and targets ``clip(tanh <w, x> +- 0.2)``."""
    rows = instance.rows(count, draws)
    noise = 0.2 * (draws.uniform(count) - 0.5).sign()
    return rows, (torch.tanh(rows @ instance.best) + noise).clamp_(-1, 1)


def sphere_rows(count: int, features: int, draws: Draws) -> Tensor:
    """Return rows that are uniform on the unit sphere."""
    rows = draws.normal(count, features)
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / norms


def logistic_labels(rows: Tensor, best: Tensor, draws: Draws) -> Tensor:
    """Return labels -1 and 1 of a logistic model."""
    return torch.where(draws.uniform(len(rows)) < torch.sigmoid(rows @ best), 1.0, -1.0).to(torch.float64)


def gaussian_matrix(columns: int, features: int, draws: Draws) -> Tensor:
    """Return a random projection of variance ``1 / columns``, shape ``(columns, features)``."""
    return draws.normal(columns, features) / math.sqrt(columns)
