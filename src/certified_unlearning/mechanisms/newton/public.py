"""The curvature that public rows guarantee, evaluated from the rows and rounded down (`accounting.residual.public`).

A Cholesky factor certifies a lower bound on the smallest eigenvalue. If Cholesky's algorithm completes for a symmetric
matrix ``A`` in floating point, ``A`` has no eigenvalue below ``-gamma_{d+1} / (1 - gamma_{d+1})`` times its trace
(Rump, Verification of Positive Definiteness, BIT 2006; Demmel, 1989). So ``A`` is shifted by slightly less than its
evaluated smallest eigenvalue, which is only a guess, and then factored. Twice the bound is used, because some libraries
multiply by reciprocals.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, eigvalsh
from scipy.sparse import issparse

from certified_unlearning.accounting.residual import public, rounding
from certified_unlearning.engine.objectives.float64 import LogisticRegression64, RidgeRegression64, Rows
from certified_unlearning.mechanisms.certified_refit import damped, norm_above
from certified_unlearning.mechanisms.newton.state import Array, factor_of, solve
from certified_unlearning.mechanisms.refit_plan import takes_newton_steps

WORTH = 0.1
"""Smallest useful increase of ``m`` by public rows, as a share of ``m``.

Smaller increases are not computed, because the computation needs many passes.
"""
SHARES = (1 - 1e-6, 0.999, 0.9, 0.5)
"""Shifts that are tried, as fractions of the computed smallest eigenvalue."""
ENOUGH = 1e-3
"""Newton's method stops at gradients of at most this norm, relative to the private records' largest contribution."""
_ROUNDS = 60


def public_curvature(
    rows: Rows,
    labels: NDArray[np.float64],
    *,
    n: int,
    strong_convexity: float,
    classes: int,
    class_weights: tuple[float, ...] | None = None,
) -> float:
    """Return the curvature that public rows guarantee: ``k`` for ridge regression, ``k_1`` for two classes.

    The result is 0 if the curvature is too small to be worth its computation (`WORTH`), if there are more than two
    classes, or if no Hessian is computed for such rows.

    Args:
        rows: Public rows of norm at most 1 (to within 1e-6), shape ``(p, d)``.
        labels: Labels of the public rows, or targets from -1 to 1, shape ``(p,)``.
        n: Number of all rows.
        strong_convexity: Strong convexity ``m``.
        classes: Number of classes, at least 2; 1 for ridge regression.
        class_weights: Factors, at most 1, on the losses of each class; None if all are 1.
    """
    records, features = rows.shape
    share = (n - records) / n * rounding.OUTWARD

    def hopeless(curvature: float) -> bool:
        """Return whether public rows with at most this curvature cannot add much to ``m``."""
        best = (
            curvature
            if classes == 1
            else public.curvature_at_minimisers(
                curvature, gradient=0.0, weight_norm=0.0, private_share=share, strong_convexity=strong_convexity
            )
        )
        return best < WORTH * strong_convexity

    most = public.most_curvature(records, n=n, features=features, classes=classes)
    wide = issparse(rows) and features > rounding.NARROW  # Sums over such rows have other lengths than assumed.
    if not takes_newton_steps(classes, features, sparse=wide) or records < features or hopeless(most):
        return 0.0
    sizes = {"n": n, "features": features, "strong_convexity": strong_convexity, "classes": classes}
    if classes == 1:
        squared = RidgeRegression64(rows, labels, n, strong_convexity, classes)
        _, hessian = squared.gradient_and_hessian(np.zeros(features))
        off = rounding.hessian_error(records=records, weight_norm=0.0, **sizes)
        return _beside(least_eigenvalue(hessian) - off, strong_convexity)
    logistic = LogisticRegression64(rows, labels, n, strong_convexity, classes, class_weights)
    weights = np.zeros(features)
    gradient, hessian = logistic.gradient_and_hessian(weights)
    # Curvature is largest at the origin.
    if hopeless(max(0.0, _guess(_whole(hessian)) - strong_convexity)):
        return 0.0
    # The bounds hold from any weights. So they stay valid if Newton's method does not get near the minimiser.
    for _ in range(_ROUNDS):
        if np.linalg.norm(gradient) <= ENOUGH * share:
            break
        weights, _ = damped(logistic, weights, gradient, -solve(factor_of(hessian), gradient))
        gradient, hessian = logistic.gradient_and_hessian(weights)
    length = norm_above(weights)
    off = rounding.hessian_error(records=records, weight_norm=length, **sizes)
    return public.curvature_at_minimisers(
        _beside(least_eigenvalue(hessian) - off, strong_convexity),
        gradient=norm_above(gradient) + rounding.gradient_error(records=records, weight_norm=length, **sizes),
        weight_norm=length,
        private_share=share,
        strong_convexity=strong_convexity,
    )


def least_eigenvalue(matrix: Array) -> float:
    """Return a lower bound on the eigenvalues of a positive semidefinite matrix; 0 if none is certified.

    Args:
        matrix: A symmetric matrix, shape ``(d, d)``; only its lower half is used.
    """
    whole = _whole(matrix)
    size, trace, guess = len(whole), float(np.trace(whole)), _guess(whole)
    # The error of the factor, and the error of the shift, which rounds the diagonal.
    off = (2 * rounding.gamma(size + 2) + 2 * rounding.UNIT) * trace + 8 * size**2 * rounding.LEAST
    for share in SHARES:
        shift = share * guess - 2 * off
        if shift <= 0:
            break
        shifted = whole.copy()
        shifted[np.diag_indices(size)] -= shift
        try:
            cholesky(shifted, lower=True, check_finite=False)
        except LinAlgError:
            continue
        return float(max(0.0, shift - off * rounding.OUTWARD) / rounding.OUTWARD)
    return 0.0


def _beside(eigenvalue: float, strong_convexity: float) -> float:
    """Return a lower bound on the data's part of an eigenvalue.

    The bound is the eigenvalue minus the regulariser's part, ``strong_convexity``, rounded down.
    """
    return max(0.0, eigenvalue / rounding.OUTWARD - strong_convexity * rounding.OUTWARD) / rounding.OUTWARD


def _whole(lower: Array) -> Array:
    """Return the full symmetric matrix from its lower half."""
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


def _guess(matrix: Array) -> float:
    """Return the evaluated smallest eigenvalue, which is not a bound."""
    return float(eigvalsh(matrix, subset_by_index=[0, 0], check_finite=False)[0])
