"""The constants with which claims are checked: those of the published code, and those of a small problem."""

from certified_unlearning.accounting.core.curves import Cycle
from certified_unlearning.accounting.core.problem import Problem

N = 11_264
"""The number of records of MNIST 3 against 8 in the published code.

It is 2^10 times 11, so that 32, 128 and 512 divide it.
"""
SIGMA = 0.03
DELTA = 1 / N


def problem_of(batch_size: int, *, convex: bool = False, n: int = N) -> Problem:
    """Return the constants of a batch: ``lambda = 1e-6 n``, ``L = 1/4 + lambda``, ``M = 1``, ``eta = 1/L``.

    Args:
        batch_size: The batch size ``b``.
        convex: Whether the regulariser is left out.
        n: The number of records.
    """
    curvature = 0.0 if convex else 1e-6 * n
    return Problem(batch_size, curvature, 0.25 + curvature, 1.0, 1 / (0.25 + curvature))


def cycle_of(batch_size: int, *, n: int = N) -> Cycle:
    """Return the batches; ``batch_size`` must divide ``n``."""
    return Cycle(n // batch_size, batch_size)


def small(batches: int) -> tuple[Problem, Cycle]:
    """Return a problem so small that every place can be enumerated: batches of two, and steps that contract by 0.9."""
    return Problem(2, 0.2, 1.0, 1.0, 0.5), Cycle(batches, 2)
