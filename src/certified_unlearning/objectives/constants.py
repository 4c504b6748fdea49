"""The constants that the theorems need: strong convexity m, smoothness L, Lipschitz constant M."""

import math
from dataclasses import dataclass
from typing import Literal

from certified_unlearning.errors import ParameterError


@dataclass(frozen=True)
class LossConstants:
    """Constants of a regularised loss.

    Attributes:
        strong_convexity: ``m``.
        smoothness: ``L``, regulariser included.
        lipschitz: ``M``, a bound on the norm of one record's data-loss gradient.
    """

    strong_convexity: float
    smoothness: float
    lipschitz: float


def logistic_constants(
    *,
    n: int,
    regularisation: float,
    smoothness: Literal["bound", "spectral"] = "bound",
    largest_eigenvalue: float | None = None,
) -> LossConstants:
    """Return the constants of l2-regularised binary logistic regression on rows of norm at most 1.

    The objective is ``mean_i log(1 + exp(-y_i w'x_i)) + (lambda / 2) ||w||^2`` with ``lambda = regularisation * n``.
    Source: Langevin unlearning, Table 1 (``bound``). ``spectral`` replaces the 1 in ``1/4 + lambda`` by the largest
    eigenvalue of ``X'X / n``; it depends on the data and is no guarantee without a margin.

    Args:
        n: Number of training records.
        regularisation: ``lambda / n``.
        smoothness: Which ``L``.
        largest_eigenvalue: Of ``X'X / n``; needed for ``spectral`` only.

    Raises:
        ParameterError: ``spectral`` without an eigenvalue, or a non-positive ``regularisation``.
    """
    if not regularisation > 0:
        raise ParameterError(f"regularisation must be above 0 for strong convexity, got {regularisation}")
    strength = regularisation * n
    if smoothness == "bound":
        curvature = 0.25
    elif largest_eigenvalue is None:
        raise ParameterError("smoothness 'spectral' needs the largest eigenvalue of X'X / n")
    else:
        curvature = 0.25 * largest_eigenvalue
    return LossConstants(strong_convexity=strength, smoothness=curvature + strength, lipschitz=1.0)


def softmax_constants(
    *, n: int, regularisation: float, bounds: Literal["published", "tight"] = "published"
) -> LossConstants:
    """Return the constants of l2-regularised softmax regression on rows of norm at most 1.

    The objective is ``mean_i CE(W x_i, y_i) + (lambda / 2) ||W||^2`` with ``lambda = regularisation * n``. One record's
    curvature is that of ``diag(p) - p p'`` times ``||x||^2``, at most 1/2, and its gradient has norm
    ``||softmax - onehot|| ||x|| <= sqrt(2)``.

    Args:
        n: Number of training records.
        regularisation: ``lambda / n``.
        bounds: ``published`` for ``L = 1 + lambda``, ``M = 2`` (Langevin unlearning, Table 1); ``tight`` for
            ``L = 1/2 + lambda``, ``M = sqrt(2)``. Both hold for every data set.

    Raises:
        ParameterError: A non-positive ``regularisation``.
    """
    if not regularisation > 0:
        raise ParameterError(f"regularisation must be above 0 for strong convexity, got {regularisation}")
    strength = regularisation * n
    curvature, lipschitz = (1.0, 2.0) if bounds == "published" else (0.5, math.sqrt(2))
    return LossConstants(strong_convexity=strength, smoothness=curvature + strength, lipschitz=lipschitz)
