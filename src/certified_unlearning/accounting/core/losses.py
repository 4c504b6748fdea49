"""The constants that the theorems need: strong convexity m, smoothness L, Lipschitz constant M."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Smoothness


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
    smoothness: Smoothness = "bound",
    largest_eigenvalue: float | None = None,
    records: int = 0,
) -> LossConstants:
    """Return the constants of l2-regularised binary logistic regression on rows of norm at most 1.

    The objective is ``mean_i log(1 + exp(-y_i w'x_i)) + (lambda / 2) ||w||^2`` with ``lambda = regularisation * n``.
    Source: Langevin unlearning, Table 1 (``bound``: ``L = 1/4 + lambda``). ``spectral`` multiplies the 1/4 by the
    largest eigenvalue of ``X'X / n``; it depends on the data and is no guarantee without a margin. Every replaced
    record adds at most one matrix of norm ``1/n``, so ``spectral-with-margin`` adds ``records / n`` to the eigenvalue:
    then ``L`` holds before and after the removals (and is never above that of ``bound``).

    Args:
        n: Number of training records.
        regularisation: ``lambda / n``.
        smoothness: Which ``L``.
        largest_eigenvalue: Of ``X'X / n``; needed unless ``smoothness`` is ``bound``.
        records: How many records are removed in all; matters for ``spectral-with-margin`` only.

    Raises:
        ParameterError: A spectral smoothness without an eigenvalue, or a non-positive ``regularisation``.
    """
    strength = _strength(n, regularisation)
    eigenvalue = _eigenvalue(n, smoothness, largest_eigenvalue, records)
    return LossConstants(strong_convexity=strength, smoothness=eigenvalue / 4 + strength, lipschitz=1.0)


def softmax_constants(
    *,
    n: int,
    regularisation: float,
    smoothness: Smoothness = "bound",
    largest_eigenvalue: float | None = None,
    records: int = 0,
    bounds: Literal["published", "tight"] = "published",
) -> LossConstants:
    """Return the constants of l2-regularised softmax regression on rows of norm at most 1.

    The objective is ``mean_i CE(W x_i, y_i) + (lambda / 2) ||W||^2`` with ``lambda = regularisation * n``. One record's
    curvature is that of ``diag(p) - p p'`` times ``||x||^2``, at most 1/2, and its gradient has norm
    ``||softmax - onehot|| ||x|| <= sqrt(2)``.

    Args:
        n: Number of training records.
        regularisation: ``lambda / n``.
        smoothness: Which ``L``: the spectral ones multiply the 1 or 1/2 as in `logistic_constants`.
        largest_eigenvalue: Of ``X'X / n``; needed unless ``smoothness`` is ``bound``.
        records: How many records are removed in all; matters for ``spectral-with-margin`` only.
        bounds: ``published`` for ``L = 1 + lambda``, ``M = 2`` (Langevin unlearning, Table 1); ``tight`` for
            ``L = 1/2 + lambda``, ``M = sqrt(2)``. Both hold for every data set.

    Raises:
        ParameterError: A spectral smoothness without an eigenvalue, or a non-positive ``regularisation``.
    """
    strength = _strength(n, regularisation)
    eigenvalue = _eigenvalue(n, smoothness, largest_eigenvalue, records)
    curvature, lipschitz = (1.0, 2.0) if bounds == "published" else (0.5, math.sqrt(2))
    return LossConstants(strong_convexity=strength, smoothness=curvature * eigenvalue + strength, lipschitz=lipschitz)


def loss_constants(
    *,
    classes: int,
    n: int,
    regularisation: float,
    smoothness: Smoothness = "bound",
    largest_eigenvalue: float | None = None,
    records: int = 0,
    bounds: Literal["published", "tight"] = "published",
) -> LossConstants:
    """Return `logistic_constants` for two classes (where ``bounds`` are the same) and `softmax_constants` for more."""
    constants_of = logistic_constants if classes == 2 else partial(softmax_constants, bounds=bounds)
    return constants_of(
        n=n,
        regularisation=regularisation,
        smoothness=smoothness,
        largest_eigenvalue=largest_eigenvalue,
        records=records,
    )


def regularisation_of(*, C: float, n: int, intercept: bool) -> float:
    """Return ``lambda / n`` of the rows for scikit-learn's ``C``, whose regulariser includes the intercept here.

    The weights of rows ``(x, 1) / sqrt(2)`` are scikit-learn's times ``sqrt(2)``, so its regulariser is halved.
    """
    return 1 / (C * n * n * (2 if intercept else 1))


def scores_per_record(classes: int) -> int:
    """Return how many scores a model gives a record, each by as many weights as there are features.

    One class stands for ridge regression, which gives one.
    """
    return 1 if classes == 2 else classes


def _strength(n: int, regularisation: float) -> float:
    if not regularisation > 0:
        raise ParameterError(f"regularisation must be above 0 for strong convexity, got {regularisation}")
    return regularisation * n


def _eigenvalue(n: int, smoothness: Smoothness, largest_eigenvalue: float | None, records: int) -> float:
    """Return the bound on the largest eigenvalue of ``X'X / n`` that a rule for ``L`` takes."""
    if smoothness == "bound":
        return 1.0
    if largest_eigenvalue is None:
        raise ParameterError(f"smoothness {smoothness!r} needs the largest eigenvalue of X'X / n")
    if smoothness == "spectral":
        return largest_eigenvalue
    return min(1.0, largest_eigenvalue + records / n)
