"""Bounds on how much removed records change a Hessian, relative to it (``Theta`` in `accounting.residual.distance`).

``B_0 - B`` is a sum ``R'R`` over removed rows. The rows of ``R`` are ``sqrt(s'(a.w_B) / n) a``. Relative to a Hessian
from which ``R'R`` is subtracted, the largest eigenvalue of ``R'R`` has two upper bounds. The first is
``|R R'| / (|R R'| + m)``, for any data. The second is the largest eigenvalue of ``R B^-1 R'``. For the second, the
solution ``X`` of ``B X = R'`` is evaluated with its remainder: ``R B^-1 R' = R X + R B^-1 (R' - B X)``, whose second
part is at most ``|R| |R' - B X| / m``. All norms are Frobenius norms. The bounds on the changes by several requests add
up to a bound on the total change. The reason is that subtracting from a matrix makes any given change larger relative
to this matrix.
"""

import numpy as np
from scipy.linalg.blas import dsymm, dtrsm

from certified_unlearning.accounting.residual import rounding
from certified_unlearning.accounting.residual.distance import share_of
from certified_unlearning.mechanisms.newton.state import REFINEMENTS, Array, Curvature

LARGEST_GRAM = 256
"""Largest number of records for which products of all pairs are worthwhile."""
LARGEST_SOLUTION = 256
"""Largest number of columns for which a solution is worthwhile."""
ENOUGH = 0.01
"""If the bound on a change is at most this value, no better bound is computed."""


def change_of(
    roots: Array, curvature: Curvature, *, part_error: float, product_error: float, strong_convexity: float, exact: bool
) -> float:
    """Return an upper bound on how much some records change a Hessian.

    Args:
        roots: The evaluated ``R``, shape ``(records, d)``.
        curvature: The Hessian that still includes these records.
        part_error: Largest distance of ``R'R`` from the records' exact part of the Hessian.
        product_error: Error of the evaluated product of the matrix and a vector of norm 1.
        strong_convexity: Strong convexity ``m``.
        exact: Whether the matrix is the Hessian, up to rounding; if not, no solution is computed with this matrix.
    """
    records, features = roots.shape
    # The rounding of a product and of the norm of its result, for sums in any order.
    rounded = rounding.gamma(records * max(records, features) + features + 16)
    size = float(np.sum(roots * roots)) * (1 + rounded)
    part = size
    if records <= LARGEST_GRAM:
        part = float(np.linalg.norm(roots @ roots.T)) * (1 + rounded) + rounded * size
    share = share_of((part + part_error) * rounding.OUTWARD, strong_convexity=strong_convexity)
    if share <= ENOUGH or not exact or max(records, features) > LARGEST_SOLUTION:
        return share
    right = np.asfortranarray(roots.T)
    solution, left = np.zeros_like(right), right
    off = (curvature.error + 2 * product_error) * rounding.OUTWARD
    for _ in range(REFINEMENTS):
        half = dtrsm(1.0, curvature.factor, left, lower=1)
        solution = solution + dtrsm(1.0, curvature.factor, half, lower=1, trans_a=1)
        left = right - dsymm(1.0, curvature.matrix, solution, lower=1)
        length = float(np.linalg.norm(solution)) * (1 + rounded)
        remainder = float(np.linalg.norm(left)) * (1 + rounded) + rounding.UNIT * size**0.5 + off * length
        beside = size**0.5 * remainder / strong_convexity
        inside = float(np.linalg.norm(roots @ solution)) * (1 + rounded) + rounded * size**0.5 * length
        if beside <= ENOUGH * inside:
            break
    return float(min(share, (inside + beside + part_error / strong_convexity) * rounding.OUTWARD))
