"""Wrong variants of `reflect`: an exact unlearner that uses one of them must be told apart from learning afresh."""

from collections.abc import Callable

import torch
from torch import Tensor

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.reflection import reflection_step

Coupling = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def inverted(values: Tensor, old: Tensor, new: Tensor, sigma: Tensor | float, uniforms: Tensor):
    """The ratio of densities old over new, as Algorithms 13 and 27 print it."""
    ratios = ((values - (old + new) / 2) * (new - old)).sum(dim=-1) / torch.as_tensor(sigma) ** 2
    accepted = torch.log(uniforms) <= -ratios
    return torch.where(accepted[:, None], values, old + new - values), accepted


def translated(values: Tensor, old: Tensor, new: Tensor, sigma: Tensor | float, uniforms: Tensor):
    """A translation away from the new mean, as section 1.2.4 prints it."""
    _, accepted = reflection_step(values, old, new, sigma, uniforms)
    return torch.where(accepted[:, None], values, values + old - new), accepted


def translated_to(values: Tensor, old: Tensor, new: Tensor, sigma: Tensor | float, uniforms: Tensor):
    """A translation towards the new mean."""
    _, accepted = reflection_step(values, old, new, sigma, uniforms)
    return torch.where(accepted[:, None], values, values + new - old), accepted


def drawn_again(values: Tensor, old: Tensor, new: Tensor, sigma: Tensor | float, uniforms: Tensor):
    """A rejected value is drawn afresh."""
    _, accepted = reflection_step(values, old, new, sigma, uniforms)
    noise = torch.as_tensor(sigma)[..., None] * Draws.at("drawn again", len(values)).normal(*values.shape)
    return torch.where(accepted[:, None], values, new + noise), accepted


def never_rejected(values: Tensor, old: Tensor, new: Tensor, sigma: Tensor | float, uniforms: Tensor):
    """Everything is kept."""
    return values, torch.ones(len(values), dtype=torch.bool)


def noise_kept(values: Tensor, old: Tensor, new: Tensor, sigma: Tensor | float, uniforms: Tensor):
    """Where a value is accepted its noise is kept instead."""
    out, accepted = reflection_step(values, old, new, sigma, uniforms)
    return torch.where(accepted[:, None], values + new - old, out), accepted


WRONG: tuple[Coupling, ...] = (inverted, translated, translated_to, drawn_again, never_rejected, noise_kept)
