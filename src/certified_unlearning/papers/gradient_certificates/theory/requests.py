"""What boxes cost beside retraining, and what membership inference gains."""

import math


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
