"""Reflection steps as they should not be: those that texts print, and those that come to mind."""

import torch
from torch import Tensor

from certified_unlearning.engine.exact.reflection import log_density_ratio, reflection_step

_FRESH = torch.Generator().manual_seed(11)


def _decided(stays: Tensor, values: Tensor, otherwise: Tensor) -> tuple[Tensor, Tensor]:
    return torch.where(stays[:, None], values, otherwise), stays


def _stays(values: Tensor, old: Tensor, new: Tensor, sigma: float, uniforms: Tensor) -> Tensor:
    return uniforms.log() <= log_density_ratio(values, old, new, sigma)


def inverted_ratio(values: Tensor, old: Tensor, new: Tensor, sigma: float, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    return _decided(_stays(values, new, old, sigma, uniforms), values, old + new - values)


def moved_away(values: Tensor, old: Tensor, new: Tensor, sigma: float, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    return _decided(_stays(values, old, new, sigma, uniforms), values, values + old - new)


def moved_along(values: Tensor, old: Tensor, new: Tensor, sigma: float, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    return _decided(_stays(values, old, new, sigma, uniforms), values, values + new - old)


def redrawn(values: Tensor, old: Tensor, new: Tensor, sigma: float, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    fresh = new + sigma * torch.randn(values.shape, generator=_FRESH, dtype=values.dtype)
    return _decided(_stays(values, old, new, sigma, uniforms), values, fresh)


def never_rejecting(values: Tensor, old: Tensor, new: Tensor, sigma: float, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    return values, torch.ones(len(values), dtype=torch.bool)


def stale_noise(values: Tensor, old: Tensor, new: Tensor, sigma: float, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """What stays keeps its noise and not its value, as if ``xi`` were always the gradient plus the noise once drawn."""
    stepped, stays = reflection_step(values, old, new, sigma, uniforms)
    return _decided(stays, values + new - old, stepped)
