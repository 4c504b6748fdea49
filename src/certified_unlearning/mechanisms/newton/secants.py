"""L-BFGS whose first matrix is better than a multiple of the identity: it comes from a Hessian's factor."""

from collections.abc import Callable
from dataclasses import dataclass, field

from certified_unlearning.mechanisms.newton.state import Array

FAR = 0.5
"""Threshold for scaling the first matrix down.

The first matrix is scaled down if it is far too large along the last step. This is the case if ``s'y / y'H y`` is below
the threshold, where ``s`` is the last step, ``y`` is the change of the gradient along this step, and ``H`` is the first
matrix. For the correct matrix, the quotient is 1.
"""


@dataclass
class Secants:
    """An approximation of an inverse Hessian, from a first matrix and from earlier steps.

    Attributes:
        first: Function that multiplies a vector by the first matrix, an approximate inverse Hessian.
        scaled: Whether the first matrix is scaled if it is far too large along the last step (`FAR`).
        pairs: The steps, the changes of the gradient along them, and the inverses of their inner products.
    """

    first: Callable[[Array], Array]
    scaled: bool = False
    pairs: list[tuple[Array, Array, float]] = field(default_factory=list)

    def add(self, step: Array, change: Array) -> None:
        """Add a step and the change of the gradient along it, unless rounding hides the curvature along the step."""
        product = float(step @ change)
        if product > 0:
            self.pairs.append((step, change, 1 / product))

    def solved(self, gradient: Array) -> Array:
        """Return the approximate inverse Hessian times a gradient (Nocedal and Wright, Numerical Optimization, 7.4)."""
        right, shares = gradient, []
        for step, change, inverse in reversed(self.pairs):
            shares.append(inverse * float(step @ right))
            right = right - shares[-1] * change
        solution = self.first(right)
        if self.scaled and self.pairs:
            _, change, inverse = self.pairs[-1]
            right_share = 1 / (inverse * float(change @ self.first(change)))
            solution = solution * right_share if right_share < FAR else solution
        for (step, change, inverse), share in zip(self.pairs, reversed(shares), strict=True):
            solution = solution + (share - inverse * float(change @ solution)) * step
        return solution
