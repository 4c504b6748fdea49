"""Euclidean balls around the origin, the sets of models, and what methods that start at the origin share."""

from typing import Generic, TypeVar

import torch
from torch import Tensor

from certified_unlearning.engine.exact.gradients import RecordGradients

Settings = TypeVar("Settings")


class FromOrigin(Generic[Settings]):
    """A method that starts at the origin, and sees records by the gradients of their losses alone."""

    def __init__(self, gradients: RecordGradients, settings: Settings) -> None:
        """Take the records' gradients and the settings."""
        self.gradients = gradients
        self.settings = settings

    @property
    def dimension(self) -> int:
        """Numbers of a model, ``d``."""
        return self.gradients.dimension

    def start(self) -> Tensor:
        """Return the origin."""
        return torch.zeros(self.dimension, dtype=torch.float64)


def project(points: Tensor, radius: float | None) -> Tensor:
    """Return the nearest points of the ball, shape ``(..., d)``; the points themselves where there is none."""
    if radius is None:
        return points
    norms = torch.linalg.vector_norm(points, dim=-1, keepdim=True)
    return points * torch.clamp(radius / norms, max=1.0)


def least_along(directions: Tensor, radius: float) -> Tensor:
    """Return the points of the ball whose inner products with directions are least; the origin for direction 0."""
    norms = torch.linalg.vector_norm(directions, dim=-1, keepdim=True)
    return -radius * directions / torch.where(norms > 0, norms, 1.0)
