"""The maximal coupling of two Gaussians with the same covariance: keep a value, or reflect it through the midpoint.

Source: Ullah (2024), Lemmas 26 and 27. Section 1.2.4 prints a translation instead of the reflection, and Algorithms 13
    and 27 print the inverse of the ratio. With either, the result does not have the new distribution.
"""

import torch
from torch import Tensor


def log_density_ratio(values: Tensor, old: Tensor, new: Tensor, sigma: Tensor | float) -> Tensor:
    """Return the logarithm of the density of ``N(new, sigma^2 I)`` divided by that of ``N(old, sigma^2 I)``.

    Args:
        values: Points, shape ``(k, d)``.
        old: Old means, shape ``(k, d)``.
        new: New means, shape ``(k, d)``.
        sigma: Standard deviation of a coordinate, above 0.

    Returns:
        Shape ``(k,)``.
    """
    scale = torch.as_tensor(sigma, dtype=values.dtype, device=values.device)[..., None]
    # Divide before multiplying, because squares of very small deviations are 0, and those of very large ones are
    # infinite.
    return ((values - (old + new) / 2) / scale * ((new - old) / scale)).sum(dim=-1)


def reflection_step(
    values: Tensor, old_means: Tensor, new_means: Tensor, sigma: Tensor | float, uniforms: Tensor
) -> tuple[Tensor, Tensor]:
    """Turn values of law ``N(old_mean, sigma^2 I)`` into ``N(new_mean, sigma^2 I)``, changing as few as possible.

    A value stays with the probability ``min(1, ratio)`` of densities, new over old; otherwise it becomes
    ``old_mean + new_mean - value``. On average over the values, one stays with probability ``1 - TV``, with the total
    variation of the two distributions.

    Args:
        values: Shape ``(..., d)``.
        old_means: Shape ``(..., d)``.
        new_means: Shape ``(..., d)``.
        sigma: Standard deviation per coordinate, one for all or shape ``(...)``. If it is 0, a value stays if the means
            are equal, and becomes the new mean otherwise.
        uniforms: Shape ``(...)``: fresh and uniform on [0, 1), never used for anything else.

    Returns:
        The new values, shape ``(..., d)``, and which of them stayed, shape ``(...)``.
    """
    scale = torch.as_tensor(sigma, dtype=values.dtype, device=values.device)
    ratios = log_density_ratio(values, old_means, new_means, scale)
    accepted = torch.where(scale > 0, torch.log(uniforms) <= ratios, (old_means == new_means).all(dim=-1))
    reflected = torch.where(scale[..., None] > 0, old_means + new_means - values, new_means)
    return torch.where(accepted[..., None], values, reflected), accepted
