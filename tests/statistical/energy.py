"""An exact two-sample test by energy distance."""

import torch
from torch import Tensor

FLIPS = 1_000_000


def differ(first: Tensor, second: Tensor, *, seed: int, flips: int = FLIPS) -> bool:
    """Decide whether two samples of equal size come from different laws; wrong about equal ones once in ``flips``.

    The energy distance is the sum over pairs ``(i, j)`` of ``a_ij = |x_i - y_j| + |y_i - x_j| - |x_i - x_j| -
    |y_i - y_j|``. Under equal laws ``x_i`` and ``y_i`` may be swapped, which changes the signs of row and column ``i``
    (not of ``a_ii``): the distance is the largest of itself and so many random sign flips by chance with probability
    ``1 / (1 + flips)``.
    """
    across = torch.cdist(first, second)
    terms = (across + across.T - torch.cdist(first, first) - torch.cdist(second, second)).fill_diagonal_(0)
    observed = float(terms.sum())
    generator = torch.Generator().manual_seed(seed)
    for _ in range(0, flips, 10_000):
        signs = torch.randint(2, (len(terms), 10_000), generator=generator, dtype=torch.int8).to(terms) * 2 - 1
        if float((signs * (terms @ signs)).sum(dim=0).max()) >= observed:
            return False
    return True
