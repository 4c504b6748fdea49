"""The maximal coupling of two Gaussians with the same covariance: a value is kept, or reflected through the midpoint.

Source: Ullah (2024), Lemmas 26 and 27. Section 1.2.4 prints a translation instead of the reflection. Algorithms 13 and
27 print the inverse of the ratio. With either of these formulas, the result does not have the new distribution.
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
        The logarithms, shape ``(k,)``.
    """
    scale = torch.as_tensor(sigma, dtype=values.dtype, device=values.device)[..., None]
    # The division comes before the product, because squares of very small deviations are 0, and those of very large
    # ones are infinite.
    return ((values - (old + new) / 2) / scale * ((new - old) / scale)).sum(dim=-1)


def reflection_step(
    values: Tensor, old_means: Tensor, new_means: Tensor, sigma: Tensor | float, uniforms: Tensor
) -> tuple[Tensor, Tensor]:
    """Turn values from ``N(old_mean, sigma^2 I)`` into values from ``N(new_mean, sigma^2 I)``.

    As few values as possible change.

    A value is kept with probability ``min(1, ratio)``, where the ratio is the new density divided by the old density.
    Otherwise it becomes ``old_mean + new_mean - value``. The average probability of keeping a value is ``1 - TV``,
    where TV is the total variation of the two distributions.

    Args:
        values: Values, shape ``(..., d)``.
        old_means: Means of the old distributions, shape ``(..., d)``.
        new_means: Means of the new distributions, shape ``(..., d)``.
        sigma: Standard deviation per coordinate: one number, or shape ``(...)``. If the standard deviation is 0, a
            value is kept if the means are equal, and otherwise becomes the new mean.
        uniforms: Fresh numbers, uniform on [0, 1) and used for nothing else, shape ``(...)``.

    Returns:
        The new values, shape ``(..., d)``, and which of them were kept, shape ``(...)``.
    """
    scale = torch.as_tensor(sigma, dtype=values.dtype, device=values.device)
    ratios = log_density_ratio(values, old_means, new_means, scale)
    accepted = torch.where(scale > 0, torch.log(uniforms) <= ratios, (old_means == new_means).all(dim=-1))
    reflected = torch.where(scale[..., None] > 0, old_means + new_means - values, new_means)
    return torch.where(accepted[..., None], values, reflected), accepted
