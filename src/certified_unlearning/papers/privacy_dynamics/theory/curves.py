"""Figs. 1 and 2 of Chourasia, Ye, Shokri, Differential privacy dynamics (NeurIPS 2021), as rows of numbers."""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.deletion.rates import check_order
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import BOUNDS


class Row(TypedDict):
    """A point of a curve.

    ``bound`` and ``source`` are those of `dynamics.BOUNDS`. ``strong_convexity`` is None if a bound does not depend on
    it. ``renyi`` is the bound on the divergence at order ``alpha`` after ``steps``.
    """

    figure: int
    bound: str
    source: str
    alpha: float
    strong_convexity: float | None
    steps: int
    renyi: float


def figure_1(
    *,
    steps: Sequence[int],
    curves: Sequence[tuple[float, float]],
    smoothness: float,
    sensitivity: float,
    n: int,
    step_size: float,
    sigma: float,
) -> list[Row]:
    """Return Fig. 1: Corollary 1's bound against the number of steps, and one line of composition for each order.

    Args:
        steps: The numbers ``K`` of steps on the horizontal axis.
        curves: The pair ``(alpha, lambda)`` of every curve of Corollary 1; the paper's are (30, 1), (20, 1), (10, 1),
            (10, 2), (10, 4).
        smoothness: The smoothness ``beta``.
        sensitivity: The sensitivity ``S_g`` of the *sum* of gradients.
        n: The number of records.
        step_size: The step size ``eta``.
        sigma: The noise scale.

    Raises:
        AssumptionError: ``strong_convexity`` exceeds ``smoothness``, or ``step_size`` is not below the inverse of
            ``smoothness``.
    """
    require_positive(sensitivity=sensitivity)
    rows: list[Row] = []
    composed = set()
    for alpha, strong_convexity in curves:
        problem = Problem(n, strong_convexity, smoothness, sensitivity / 2, step_size)
        rows += _rows(1, "corollary-1", problem, alpha, strong_convexity, steps, sigma)
        if alpha not in composed:
            rows += _rows(1, "composition", problem, alpha, None, steps, sigma)
            composed.add(alpha)
    return rows


def figure_2(
    *,
    steps: Sequence[int],
    alphas: Sequence[float],
    sensitivity: float,
    n: int,
    step_size: float,
    sigma: float,
) -> list[Row]:
    """Return Fig. 2 for squared distances: Corollary 2, Theorem 3, composition, and the exact value.

    The paper does not plot the exact value. Arguments and errors are those of `figure_1`, with ``lambda = beta = 1``.
    """
    require_positive(sensitivity=sensitivity)
    problem = Problem(n, 1, 1, sensitivity / 2, step_size)
    rows: list[Row] = []
    for alpha in alphas:
        for bound in ("corollary-2", "quadratic", "theorem-3"):
            rows += _rows(2, bound, problem, alpha, 1, steps, sigma)
        rows += _rows(2, "composition", problem, alpha, None, steps, sigma)
    return rows


def _rows(
    figure: int,
    bound: str,
    problem: Problem,
    alpha: float,
    strong_convexity: float | None,
    steps: Sequence[int],
    sigma: float,
) -> list[Row]:
    check_order(alpha)
    return [
        {
            "figure": figure,
            "bound": bound,
            "source": BOUNDS[bound].source,
            "alpha": alpha,
            "strong_convexity": strong_convexity,
            "steps": count,
            "renyi": float(BOUNDS[bound].curve(problem, sigma=sigma, steps=count)(np.array([alpha]))[0]),
        }
        for count in steps
    ]
