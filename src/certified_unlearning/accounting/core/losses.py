"""The constants of losses that the theorems need: strong convexity m, smoothness L, Lipschitz constant M."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Smoothness


@dataclass(frozen=True)
class LossConstants:
    """Constants of a regularised loss.

    Attributes:
        strong_convexity: Strong convexity ``m``.
        smoothness: Smoothness ``L``, including the regulariser.
        lipschitz: Lipschitz constant ``M``, a bound on the norm of one record's data-loss gradient.
    """

    strong_convexity: float
    smoothness: float
    lipschitz: float


class ClassWeights(NamedTuple):
    """Class weights ``w_i``, split into the largest weight and shares ``s_i`` of at most 1.

    The objective's ``C sum_i w_i loss_i`` equals ``C largest sum_i s_i loss_i``. All bounds on a record's loss also
    hold for the loss times a share. Weights above 1 act only through ``C``, and therefore through ``m``.

    Attributes:
        largest: The largest weight, which multiplies ``C``.
        shares: The weight of each class divided by the largest weight, in the order of the classes; None if no weights
            are given.
    """

    largest: float = 1.0
    shares: tuple[float, ...] | None = None

    @classmethod
    def divided(cls, weights: Sequence[float]) -> "ClassWeights":
        """Return weights as shares of the largest. All weights must be at least 0, and one must be above 0."""
        largest = max(weights)
        return cls(largest, tuple(weight / largest for weight in weights))


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
    largest eigenvalue of ``X'X / n``. That eigenvalue depends on the data, and without a margin it gives no guarantee.
    Every replaced record adds at most one matrix of norm ``1/n``, so ``spectral-with-margin`` adds ``records / n`` to
    the eigenvalue. Then ``L`` holds before and after the removals, and never exceeds the ``L`` of ``bound``.

    Args:
        n: Number of training records.
        regularisation: ``lambda / n``.
        smoothness: The rule for ``L``.
        largest_eigenvalue: Largest eigenvalue of ``X'X / n``; required unless ``smoothness`` is ``bound``.
        records: Total number of removed records; used only for ``spectral-with-margin``.

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
    curvature is ``||x||^2`` times the largest eigenvalue of ``diag(p) - p p'``, which is at most 1/2. The record's
    gradient has norm ``||softmax - onehot|| ||x|| <= sqrt(2)``.

    Args:
        n: Number of training records.
        regularisation: ``lambda / n``.
        smoothness: The rule for ``L``. The spectral rules multiply the bound 1 or 1/2 on a record's curvature by an
            eigenvalue, as in `logistic_constants`.
        largest_eigenvalue: Largest eigenvalue of ``X'X / n``; required unless ``smoothness`` is ``bound``.
        records: Total number of removed records; used only for ``spectral-with-margin``.
        bounds: ``published`` for ``L = 1 + lambda``, ``M = 2`` (Langevin unlearning, Table 1); ``tight`` for
            ``L = 1/2 + lambda``, ``M = sqrt(2)``. Both choices hold for every data set.

    Raises:
        ParameterError: A spectral smoothness without an eigenvalue, or a non-positive ``regularisation``.
    """
    strength = _strength(n, regularisation)
    eigenvalue = _eigenvalue(n, smoothness, largest_eigenvalue, records)
    curvature, lipschitz = (1.0, 2.0) if bounds == "published" else (0.5, math.sqrt(2))
    return LossConstants(strong_convexity=strength, smoothness=curvature * eigenvalue + strength, lipschitz=lipschitz)


def ridge_constants(
    *,
    n: int,
    regularisation: float,
    smoothness: Smoothness = "bound",
    largest_eigenvalue: float | None = None,
    records: int = 0,
) -> LossConstants:
    """Return the constants of ridge regression in a ball, for rows of norm at most 1 and targets from -1 to 1.

    The objective is ``mean_i (1/2) (x_i'w - y_i)^2 + (lambda / 2) ||w||^2`` with ``lambda = regularisation * n``. One
    record's curvature is ``||x||^2``, at most 1. A record's gradient, ``(x'w - y) x``, has no bound on the whole space.
    If every step projects onto the ball of radius ``R`` (`ridge_radius`), the gradient's norm is at most ``M = R + 1``.

    Args:
        n: Number of training records.
        regularisation: ``lambda / n``.
        smoothness: The rule for ``L``. The spectral rules multiply the largest possible curvature of a record, which is
            1, by an eigenvalue, as in `logistic_constants`.
        largest_eigenvalue: Largest eigenvalue of ``X'X / n``; required unless ``smoothness`` is ``bound``.
        records: Total number of removed records; used only for ``spectral-with-margin``.

    Raises:
        ParameterError: A spectral smoothness without an eigenvalue, or a non-positive ``regularisation``.
    """
    strength = _strength(n, regularisation)
    eigenvalue = _eigenvalue(n, smoothness, largest_eigenvalue, records)
    return LossConstants(
        strong_convexity=strength, smoothness=eigenvalue + strength, lipschitz=ridge_radius(strength) + 1
    )


def ridge_radius(strong_convexity: float) -> float:
    """Return the radius ``R`` of a ball around 0 that contains the minimiser of ridge regression for any records.

    The minimiser is ``(A'A + m)^-1 A'b`` with rows ``A = X / sqrt(n)`` of norm at most ``1 / sqrt(n)`` and targets ``b
    = y / sqrt(n)``. Therefore ``||b||`` and the singular values ``s`` of ``A`` are at most 1. The minimiser's norm is
    at most the largest ``s / (s^2 + m)`` over these ``s``. That is ``1 / (2 sqrt(m))``, at ``s = sqrt(m)``; if ``m`` is
    above 1, it is ``1 / (1 + m)``, at ``s = 1``. A single record attains the bound, with ``x`` of norm ``sqrt(m)`` or 1
    and ``y = 1``. The bound is never larger than the bounds that follow from ``m ||w||^2 / 2 <= F(0) <= 1/2`` and
    ``m ||w|| <= ||grad F(0)|| <= 1``. The bound also holds if records are removed, become zeros or are replaced,
    because ``n`` is at least the number of records.

    Args:
        strong_convexity: Strong convexity ``m``, above 0.
    """
    if strong_convexity <= 1:
        return 1 / (2 * math.sqrt(strong_convexity))
    return 1 / (1 + strong_convexity)


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
    """Return the constants of the loss that is used for this number of classes.

    One class means ridge regression (`ridge_constants`), two mean logistic regression (`logistic_constants`), and more
    mean softmax regression (`softmax_constants`). Only `softmax_constants` uses ``bounds``.
    """
    constants_of = {1: ridge_constants, 2: logistic_constants}.get(classes, partial(softmax_constants, bounds=bounds))
    return constants_of(
        n=n,
        regularisation=regularisation,
        smoothness=smoothness,
        largest_eigenvalue=largest_eigenvalue,
        records=records,
    )


def regularisation_of(*, C: float, n: int, intercept: bool) -> float:
    """Return ``lambda / n`` for scikit-learn's ``C``; here the regulariser includes the intercept.

    With an intercept, rows are ``(x, 1) / sqrt(2)``. The weights for such rows are ``sqrt(2)`` times scikit-learn's
    weights, so the regularisation is half as strong.
    """
    return 1 / (C * n * n * (2 if intercept else 1))


def scores_per_record(classes: int) -> int:
    """Return the number of scores that a model computes for a record. Each score has one weight per feature.

    One class means ridge regression, which gives one score.
    """
    return 1 if classes == 2 else classes


def _strength(n: int, regularisation: float) -> float:
    if not regularisation > 0:
        raise ParameterError(f"regularisation must be above 0 for strong convexity, got {regularisation}")
    return regularisation * n


def _eigenvalue(n: int, smoothness: Smoothness, largest_eigenvalue: float | None, records: int) -> float:
    """Return the bound on the largest eigenvalue of ``X'X / n`` that a rule for ``L`` uses."""
    if smoothness == "bound":
        return 1.0
    if largest_eigenvalue is None:
        raise ParameterError(
            f"smoothness = {smoothness!r} needs largest_eigenvalue, the largest eigenvalue of X'X / n, got None"
        )
    if smoothness == "spectral":
        return largest_eigenvalue
    return min(1.0, largest_eigenvalue + records / n)
