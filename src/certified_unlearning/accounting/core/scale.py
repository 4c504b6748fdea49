"""What a noise scale means in practice: how large weights can be, and how much of a score is noise."""

import math

from certified_unlearning.accounting.core.problem import Problem

QUICK_CONDITION = 100
"""The value of ``C n`` at which a model needs few steps to learn and to unlearn."""


def weights_bound(*, strong_convexity: float, classes: int) -> float:
    """Return a bound on the norm of the weights that minimise logistic or softmax regression on rows of norm at most 1.

    Two bounds hold, and the smaller one is returned. With the objective ``F`` and ``k`` classes, the first bound is
    ``||w|| <= ||grad F(0)|| / m``. The gradient of a record at 0 has norm at most 1/2 (two classes) or ``sqrt(1
    - 1/k)``. The second bound follows from ``m ||w||^2 / 2 <= F(0)``, where ``F(0)`` is ``log k``.
    """
    gradient = 0.5 if classes == 2 else math.sqrt(1 - 1 / classes)
    return min(gradient / strong_convexity, math.sqrt(2 * math.log(classes) / strong_convexity))


def score_noise(problem: Problem, *, sigma: float) -> float:
    """Return a bound on the noise's standard deviation in any direction of the weights, for any number of steps.

    A step contracts by ``1 - step_size m`` and adds variance ``2 step_size sigma^2``. The Poincaré constant of the
    weights' distribution follows the same recursion. The bound also holds for the noise in the score of a row of norm
    1.
    """
    contraction = 1 - problem.step_size * problem.strong_convexity
    return sigma * math.sqrt(2 * problem.step_size / (1 - contraction**2))
