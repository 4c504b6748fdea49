"""The constants in which claims are checked: those of the published code, and of a small problem."""

from certified_unlearning.accounting.core.curves import Cycle
from certified_unlearning.accounting.core.problem import Problem

N = 11_264
"""MNIST 3 against 8, as the published code cuts it: 2^10 times 11, so that batches of 32, 128 and 512 fill it."""
SIGMA = 0.03
DELTA = 1 / N


def problem_of(batch_size: int, *, convex: bool = False, n: int = N) -> Problem:
    """Return the constants of a batch: ``lambda = 1e-6 n``, ``L = 1/4 + lambda``, ``M = 1``, ``eta = 1/L``.

    Args:
        batch_size: ``b``.
        convex: Whether to leave out the regulariser.
        n: Records.
    """
    curvature = 0.0 if convex else 1e-6 * n
    return Problem(batch_size, curvature, 0.25 + curvature, 1.0, 1 / (0.25 + curvature))


def cycle_of(batch_size: int, *, n: int = N) -> Cycle:
    """Return the batches; ``batch_size`` divides ``n``."""
    return Cycle(n // batch_size, batch_size)


def small(batches: int) -> tuple[Problem, Cycle]:
    """Return a problem small enough for every place to be enumerated: batches of two, steps that contract by 0.9."""
    return Problem(2, 0.2, 1.0, 1.0, 0.5), Cycle(batches, 2)
