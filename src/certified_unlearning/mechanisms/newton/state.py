"""The state of Newton removal between requests, all of it secret, and the solution of equations with it."""

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
"""Largest number of rounds of a solution."""


@dataclass
class Curvature:
    """A Hessian, made when data were read.

    Attributes:
        at: Weights ``w_B`` where it was made; shape ``(d,)``.
        matrix: Its lower half, shape ``(d, d)`` in Fortran's order; downdated in place.
        factor: Cholesky's lower factor of the matrix when it was made.
        error: Largest distance of the matrix from the Hessian over the remaining rows, by rounding.
        not_downdated: Number of records ``S_B``.
        usable: False while it is being changed, and if that was interrupted: data must then be read.
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
        gradient: Change ``ghat`` of the gradient when they leave, shape ``(d,)``.
        curved: Rows whose squares, over ``n``, are their part of the Hessian, shape ``(records, d)``.
    """

    gradient: Array
    curved: Array


class Model(NamedTuple):
    """A fitted model: all of it is secret.

    Attributes:
        weights: ``w``, without noise.
        left: Bounds on the gradient there.
        curvature: Starting information of the next request.
    """

    weights: Array
    left: Left
    curvature: Curvature

    @property
    def residual(self) -> float:
        """A bound on the gradient's norm."""
        return self.left.residual


class Answer(NamedTuple):
    """A model without some records, and whether data were read for it."""

    model: Model
    reading: Reading


def left_of(header: Mapping[str, Any], *, strong_convexity: float) -> Left:
    """Return the bounds on the gradient from a stored header; plans without passes store its norm alone."""
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
            "the regulariser is too weak for float64: the Hessian is not positive definite; a smaller C helps"
        ) from error


def solve(factor: Array, right: Array) -> Array:
    """Return an approximation of ``B^-1 right``, by ``B``'s factor."""
    # LAPACK's routine for both takes three times as long with one right-hand side.
    return np.asarray(dtrsv(factor, dtrsv(factor, right, lower=1), lower=1, trans=1))


def solved(curvature: Curvature, gradient: Array, enough: float) -> tuple[Array, Array, Array]:
    """Return ``v`` with ``B v`` within ``enough`` of ``-gradient``, the evaluated ``B v``, and their evaluated sum."""
    step = np.zeros_like(gradient)
    left = gradient
    for _ in range(REFINEMENTS):
        # The factor is that of the matrix before downdates, whose change determines how fast the remainder shrinks.
        step = step - solve(curvature.factor, left)
        image = dsymv(1.0, curvature.matrix, step, lower=1)
        left = gradient + image
        if left @ left <= enough**2:
            break
    return step, image, left
