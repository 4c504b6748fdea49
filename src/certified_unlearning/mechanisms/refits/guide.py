"""A guide for the passes that correct the weights of a certified refit: a shared inverse curvature, and earlier steps.

The curvature of a record's loss with respect to its scores is ``diag(p) - p p'``. In the direction in which all scores
change equally, the curvature is 0. In the other ``k - 1`` directions, its trace is ``1 - sum p^2``, so its average is
``omega = (1 - sum p^2) / (k - 1)``. With this average, the Hessian of softmax regression is
``P = (1/n) sum omega x x' + m I`` for differences of classes, and ``m I`` for their mean. So one ``(d, d)`` factor
serves any number of classes. Earlier steps correct the approximation (L-BFGS).

All parts of the guide are secret, like the weights: the factor and the steps were computed with records that have been
removed since. No certified bound depends on the guide. A wrong guide only costs passes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.blas import dtrsm

from certified_unlearning.engine.objectives.float64 import SoftmaxRegression64
from certified_unlearning.mechanisms.newton.secants import Secants
from certified_unlearning.mechanisms.newton.state import Array, factor_of

KEPT = 30
"""Largest number of stored steps.

Storing more steps would not reduce the number of passes.
"""
FEWEST_ROWS, MOST_ROWS = 2, 12
"""Smallest and largest number of rows per column in the sample from which a curvature is computed."""
WORTH = 16
"""Approximate limit, in passes, on the time for computing a curvature."""


@dataclass(frozen=True, eq=False)
class Guide:
    """The information that remains at the end of a fit.

    A guide is never changed in place.

    Attributes:
        gradient: The gradient over all remaining rows, evaluated at the weights, shape ``(classes d,)``.
        factor: Cholesky's lower factor of ``P``, shape ``(d, d)``.
        steps: The last steps, shape ``(count, classes d)``.
        changes: The change of the gradient along each step, shape ``(count, classes d)``.
    """

    gradient: Array
    factor: Array
    steps: Array
    changes: Array

    def secants(self, *, classes: int, strong_convexity: float) -> Secants:
        """Return the state of L-BFGS at the end of the fit."""
        found = secants_of(self.factor, classes=classes, strong_convexity=strong_convexity)
        for step, change in zip(self.steps, self.changes, strict=True):
            found.add(step, change)
        return found


def guide_of(gradient: Array, factor: Array, secants: Secants) -> Guide:
    """Return the guide from which the next request starts."""
    pairs, none = secants.pairs[-KEPT:], np.empty((0, len(gradient)))
    steps = np.stack([step for step, _, _ in pairs]) if pairs else none
    changes = np.stack([change for _, change, _ in pairs]) if pairs else none
    return Guide(gradient, factor, steps, changes)


def secants_of(factor: Array, *, classes: int, strong_convexity: float) -> Secants:
    """Return the initial state of L-BFGS, with no steps; its first matrix comes from the factor of ``P``.

    With many classes, a record is often ambiguous between only a few classes. Then ``P`` is too small, so its inverse
    is scaled by the last step.
    """
    return Secants(inverse(factor, classes=classes, strong_convexity=strong_convexity), scaled=True)


def inverse(factor: Array, *, classes: int, strong_convexity: float) -> Callable[[Array], Array]:
    """Return a function that multiplies gradients, shape ``(classes d,)``, by the inverse of the shared curvature."""

    def multiplied(gradient: Array) -> Array:
        by_class = gradient.reshape(classes, -1)
        mean = by_class.mean(axis=0)
        half = dtrsm(1.0, factor, (by_class - mean).T, lower=1)
        different = dtrsm(1.0, factor, half, lower=1, trans_a=1).T
        solution: Array = (different + mean / strong_convexity).ravel()
        return solution

    return multiplied


def factor_at(objective: SoftmaxRegression64, weights: Array) -> Array:
    """Return the factor of ``P`` at some weights.

    If there are many rows, the factor is computed from a sample.

    Raises:
        AssumptionError: ``P`` is not positive definite in float64.
    """
    records, features = objective.rows.shape
    worth = 4 * WORTH * records * objective.classes / features
    wanted = max(FEWEST_ROWS * features, min(MOST_ROWS * features, int(worth)))
    every = max(1, records // wanted)
    return factor_of(thinned(objective, every).mean_curvature(weights))


def thinned(objective: SoftmaxRegression64, every: int) -> SoftmaxRegression64:
    """Return the loss on a regular sample of the records, with rows of the same type."""
    if every == 1:
        return objective
    labels = np.ascontiguousarray(objective.labels[::every])
    return replace(objective, rows=np.ascontiguousarray(objective.rows[::every]), labels=labels, n=len(labels))
