"""L-BFGS with a first matrix that is better than a multiple of the identity: a Hessian's factor."""

from collections.abc import Callable
from dataclasses import dataclass, field

from certified_unlearning.mechanisms.newton.state import Array

FAR = 0.5
"""A first matrix is scaled if the correct one along the last step is less than this share of it."""


@dataclass
class Secants:
    """An approximation of an inverse Hessian, from another one and from earlier steps.

    Attributes:
        first: Multiplies by the first matrix: an inverse Hessian's, or one like it.
        scaled: Whether the first matrix is corrected along the last step if it is far too large there (`FAR`).
        pairs: Steps, changes of the gradient along them, and their products' inverses.
    """

    first: Callable[[Array], Array]
    scaled: bool = False
    pairs: list[tuple[Array, Array, float]] = field(default_factory=list)

    def add(self, step: Array, change: Array) -> None:
        """Add a step and the gradient's change along it, if the loss has visible curvature there."""
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
