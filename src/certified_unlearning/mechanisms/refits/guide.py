"""What guides a certified refit by passes: an inverse curvature that all classes share, and steps taken before.

A record's curvature in its scores is ``diag(p) - p p'``: 0 along equal scores, and of trace ``1 - sum p^2`` in the
other ``k - 1`` directions, ``omega = (1 - sum p^2) / (k - 1)`` each on average. With that average the Hessian of
softmax regression is ``P = (1/n) sum omega x x' + m I`` for differences of classes, and ``m I`` for their mean: one
``(d, d)`` factor for any number of classes. What it misses, steps that were taken before tell (L-BFGS).

All of it is secret, as the weights are: factor and steps were made when records were still there that were removed
since. Nothing that is certified rests on it: wrong numbers cost passes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.blas import dtrsm

from certified_unlearning.engine.objectives.float64 import SoftmaxRegression64
from certified_unlearning.mechanisms.newton.secants import Secants
from certified_unlearning.mechanisms.newton.state import Array, factor_of

KEPT = 30
"""Steps that are kept: more of them save no pass."""
FEWEST_ROWS, MOST_ROWS = 2, 12
"""Rows a column that a curvature is made of."""
WORTH = 16
"""A curvature may take as long as so many passes, more or less."""


@dataclass(frozen=True, eq=False)
class Guide:
    """What is known where a fit ended; nothing in it is ever changed in place.

    Attributes:
        gradient: Evaluated at the weights over all remaining rows; shape ``(classes d,)``.
        factor: Cholesky's lower factor of ``P``, shape ``(d, d)``.
        steps: The last steps, shape ``(count, classes d)``.
        changes: How the gradient changed along each of them.
    """

    gradient: Array
    factor: Array
    steps: Array
    changes: Array

    def secants(self, *, classes: int, strong_convexity: float) -> Secants:
        """Return L-BFGS as it stood when the fit ended."""
        found = secants_of(self.factor, classes=classes, strong_convexity=strong_convexity)
        for step, change in zip(self.steps, self.changes, strict=True):
            found.add(step, change)
        return found


def guide_of(gradient: Array, factor: Array, secants: Secants) -> Guide:
    """Return what the next request starts from."""
    pairs, none = secants.pairs[-KEPT:], np.empty((0, len(gradient)))
    steps = np.stack([step for step, _, _ in pairs]) if pairs else none
    changes = np.stack([change for _, change, _ in pairs]) if pairs else none
    return Guide(gradient, factor, steps, changes)


def secants_of(factor: Array, *, classes: int, strong_convexity: float) -> Secants:
    """Return L-BFGS that knows no step yet, only the factor of ``P``.

    Of many classes a record often decides between a few: then ``P`` is too small, and its inverse is scaled by the last
    step.
    """
    return Secants(inverse(factor, classes=classes, strong_convexity=strong_convexity), scaled=True)


def inverse(factor: Array, *, classes: int, strong_convexity: float) -> Callable[[Array], Array]:
    """Return what multiplies gradients, shape ``(classes d,)``, by the inverse of the curvature that classes share."""

    def multiplied(gradient: Array) -> Array:
        by_class = gradient.reshape(classes, -1)
        mean = by_class.mean(axis=0)
        half = dtrsm(1.0, factor, (by_class - mean).T, lower=1)
        different = dtrsm(1.0, factor, half, lower=1, trans_a=1).T
        solution: Array = (different + mean / strong_convexity).ravel()
        return solution

    return multiplied


def factor_at(objective: SoftmaxRegression64, weights: Array) -> Array:
    """Return the factor of ``P`` at some weights, made of a sample where there are many rows.

    Raises:
        AssumptionError: ``P`` is not positive definite in float64.
    """
    records, features = objective.rows.shape
    worth = 4 * WORTH * records * objective.classes / features
    wanted = max(FEWEST_ROWS * features, min(MOST_ROWS * features, int(worth)))
    every = max(1, records // wanted)
    return factor_of(thinned(objective, every).mean_curvature(weights))


def thinned(objective: SoftmaxRegression64, every: int) -> SoftmaxRegression64:
    """Return the loss over every so-many-th record, rows of the same type."""
    if every == 1:
        return objective
    labels = np.ascontiguousarray(objective.labels[::every])
    return replace(objective, rows=np.ascontiguousarray(objective.rows[::every]), labels=labels, n=len(labels))
