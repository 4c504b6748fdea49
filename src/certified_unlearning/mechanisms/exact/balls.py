"""Euclidean balls around the origin that contain the models, and the base class of methods that start at the origin."""

from typing import Generic, TypeVar

import torch
from torch import Tensor

from certified_unlearning.engine.exact.gradients import RecordGradients

Settings = TypeVar("Settings")


class FromOrigin(Generic[Settings]):
    """A method that starts at the origin, and reads records only through the gradients of their losses."""

    def __init__(self, gradients: RecordGradients, settings: Settings) -> None:
        """Store the records' gradients and the settings."""
        self.gradients = gradients
        self.settings = settings

    @property
    def dimension(self) -> int:
        """Number of parameters, ``d``."""
        return self.gradients.dimension

    def start(self) -> Tensor:
        """Return the origin."""
        return torch.zeros(self.dimension, dtype=torch.float64)


def project(points: Tensor, radius: float | None) -> Tensor:
    """Return the nearest points of the ball, shape ``(..., d)``; the same points if there is no ball."""
    if radius is None:
        return points
    norms = torch.linalg.vector_norm(points, dim=-1, keepdim=True)
    return points * torch.clamp(radius / norms, max=1.0)


def least_along(directions: Tensor, radius: float) -> Tensor:
    """Return the ball's points with the smallest inner products with directions; the origin if a direction is 0."""
    norms = torch.linalg.vector_norm(directions, dim=-1, keepdim=True)
    return -radius * directions / torch.where(norms > 0, norms, 1.0)
