"""How much removed records change a Hessian, relative to it: `accounting.residual.distance` calls it ``Theta``.

``B_0 - B`` is a sum ``R'R`` over removed rows, ``R`` of rows ``sqrt(s'(a.w_B) / n) a``. Relative to any Hessian that it
is taken out of, its largest eigenvalue is at most ``|R R'| / (|R R'| + m)``, whatever the data; and that of ``R B^-1
R'``, for which the solution ``X`` of ``B X = R'`` is evaluated, with what it leaves: ``R B^-1 R' = R X + R B^-1 (R' - B
X)``, the second part at most ``|R| |R' - B X| / m``. All norms are Frobenius'. Of several requests the changes add up:
what is relative to a matrix is no larger relative to one from which less was taken.
"""

import numpy as np
from scipy.linalg.blas import dsymm, dtrsm

from certified_unlearning.accounting.residual import rounding
from certified_unlearning.accounting.residual.distance import share_of
from certified_unlearning.mechanisms.newton.state import REFINEMENTS, Array, Curvature

LARGEST_GRAM = 256
"""Number of records up to which products of all pairs are worthwhile."""
LARGEST_SOLUTION = 256
"""Number of columns up to which a solution is worthwhile."""
ENOUGH = 0.01
"""A change that needs no better bound."""


def change_of(
    roots: Array, curvature: Curvature, *, part_error: float, product_error: float, strong_convexity: float, exact: bool
) -> float:
    """Return a bound on how much some records change a Hessian.

    Args:
        roots: ``R``, evaluated; shape ``(records, d)``.
        curvature: The Hessian that still includes these records.
        part_error: Largest distance of ``R'R`` from the records' exact part.
        product_error: Error of the evaluated matrix times a vector of norm 1.
        strong_convexity: ``m``.
        exact: Whether the matrix is the Hessian, up to rounding; otherwise it is not used for a solution.
    """
    records, features = roots.shape
    # The rounding of a product and of the norm of the result, whose numbers may be added in any order.
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
