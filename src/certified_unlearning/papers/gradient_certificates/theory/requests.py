"""How many uniform deletion requests an ensemble of shards takes, and what boxes cost beside retraining."""

import math
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.stats import poisson


def expected_requests(shards: int, hits: int) -> float:
    """Return the expected number of uniform requests until each of the shards has had so many.

    The coupon collector's, with requests as a Poisson process: the maximum of the shards' waiting times, each a gamma.

    Args:
        shards: ``d``.
        hits: ``m``; a shard with a budget of k removals answers until the hit ``k + 1``.
    """

    def waiting(time: float) -> float:
        # A shard has had fewer than m hits; of rare ones 1 - (1 - p)^d without cancellation.
        few = float(poisson.cdf(hits - 1, time / shards))
        return -math.expm1(shards * np.log1p(-few)) if few < 1 else 1.0

    middle = shards * hits
    ends = (0.0, middle, 4.0 * middle + 20.0 * shards, 400.0 * middle)
    pieces = (quad(waiting, low, high, limit=500, epsabs=1e-10)[0] for low, high in pairwise(ends))
    return float(sum(pieces))


def boxes_over_retraining(requests: int, products: float = 4.0) -> float:
    """Return what training with boxes costs over answering so many requests by retraining, in products of matrices.

    Boxes come on top of training itself; both train once before the first request.
    """
    return (1.0 + products) / requests


def advantage_bound(epsilon: float, *, printed: bool = False) -> float:
    """Return the bound of the advantage of membership inference for an epsilon.

    It is ``exp(epsilon) - 1`` (Yeom et al. 2018); appendix C.1 prints ``1 - exp(epsilon)``.
    """
    bound = math.expm1(epsilon)
    return -bound if printed else bound
