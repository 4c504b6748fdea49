"""Euclidean balls around the origin, the sets of models."""

import torch
from torch import Tensor


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
