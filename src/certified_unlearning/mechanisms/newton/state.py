"""The state of Newton removal between requests, which is secret, and the solution of equations with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.blas import dsymv, dtrsv

from certified_unlearning.accounting.residual.distance import Left
from certified_unlearning.errors import AssumptionError
from certified_unlearning.vocabulary import Reading

Array = NDArray[np.float64]
REFINEMENTS = 8
"""Largest number of refinements of a solution."""


@dataclass
class Curvature:
    """A Hessian that was computed when the data were read.

    Attributes:
        at: Weights ``w_B`` at which the Hessian was computed, shape ``(d,)``.
        matrix: The lower half of the Hessian, shape ``(d, d)`` in Fortran order. Downdates change it in place.
        factor: Cholesky's lower factor of the matrix, before any downdate.
        error: Largest distance, caused by rounding, between the matrix and the Hessian over the remaining rows.
        not_downdated: Number ``S_B`` of removed records that are still in the matrix.
        usable: False while the curvature is being changed, and after a change that was interrupted. Then the data must
            be read.
    """

    at: Array
    matrix: Array
    factor: Array
    error: float
    not_downdated: int = 0
    usable: bool = True


class Removed(NamedTuple):
    """The contribution of some records to a model.

    Attributes:
        gradient: The change ``ghat`` of the gradient when the records leave, shape ``(d,)``.
        curved: Rows ``A``, shape ``(records, d)``. The records' part of the Hessian is ``A'A / n``.
    """

    gradient: Array
    curved: Array


class Model(NamedTuple):
    """A fitted model.

    All its fields are secret.

    Attributes:
        weights: ``w``, without noise, shape ``(d,)``.
        left: Bounds on the gradient at these weights.
        curvature: Hessian from which the next request starts.
    """

    weights: Array
    left: Left
    curvature: Curvature

    @property
    def residual(self) -> float:
        """An upper bound on the norm of the gradient."""
        return self.left.residual


class Answer(NamedTuple):
    """A model after the removal of some records, and the way in which the data were read."""

    model: Model
    reading: Reading


def left_of(header: Mapping[str, Any], *, strong_convexity: float) -> Left:
    """Read the bounds on the gradient from a stored header.

    The header of a plan without passes contains only the bound on the gradient's norm.
    """
    if "left" in header:
        return Left(**header["left"])
    return Left.of_residual(header["residual"], strong_convexity=strong_convexity)


def factor_of(hessian: Array) -> Array:
    """Return Cholesky's lower factor.

    Raises:
        AssumptionError: The Hessian is not positive definite in float64.
    """
    try:
        return np.asfortranarray(cholesky(hessian, lower=True, check_finite=False))
    except LinAlgError as error:
        raise AssumptionError(
            "the regulariser is too weak for float64: the Hessian is not positive definite; use a smaller C"
        ) from error


def solve(factor: Array, right: Array) -> Array:
    """Return an approximation of ``B^-1 right``, computed with the factor of ``B``."""
    # LAPACK's routine for both solutions is three times slower for a single right-hand side.
    return np.asarray(dtrsv(factor, dtrsv(factor, right, lower=1), lower=1, trans=1))


def solved(curvature: Curvature, gradient: Array, enough: float) -> tuple[Array, Array, Array]:
    """Return an approximate solution ``v`` of ``B v = -gradient``, the evaluated ``B v``, and the remainder.

    The remainder is ``gradient + B v``. Refinement of ``v`` ends when the norm of the remainder is at most ``enough``,
    or after `REFINEMENTS` rounds.
    """
    step = np.zeros_like(gradient)
    left = gradient
    for _ in range(REFINEMENTS):
        # The factor is that of the matrix before downdates. The size of the downdates determines how fast the remainder
        # decreases.
        step = step - solve(curvature.factor, left)
        image = dsymv(1.0, curvature.matrix, step, lower=1)
        left = gradient + image
        if left @ left <= enough**2:
            break
    return step, image, left
