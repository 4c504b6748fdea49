"""Quantities that the project's accountants compute for claims about certified residuals and mini-batches."""

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.core.curves import Cycle, Schedule
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.cyclic.planning import least_steps_after
from certified_unlearning.accounting.residual.release import mu_of, mu_of_all
from certified_unlearning.accounting.streams import Stream
from certified_unlearning.reproduction.claims.registry import measure, sweep


@sweep("releases = {releases}")
def cost_residual_mu(*, residual: float, sigma: float, strong_convexity: float, releases: int) -> float:
    """Return the joint mu of several releases, each with a gradient norm of at most ``residual``."""
    mu = mu_of(residual, strong_convexity=strong_convexity, sigma=sigma)
    return mu_of_all(mu, releases)


@measure
def cost_residual_epsilon(*, residual: float, sigma: float, strong_convexity: float, delta: float) -> float:
    """Return the epsilon of one release with a gradient norm of at most ``residual``."""
    return epsilon_from_mu(mu_of(residual, strong_convexity=strong_convexity, sigma=sigma), delta)


@sweep("{records} records")
def cost_least_steps(
    *, n: int, batch_size: int, epochs: int, sigma: float, strength: float, records: int, epsilon: float, delta: float
) -> float:
    """Return the smallest number of steps that a request needs with cyclic mini-batches.

    The records of the request are in the worst batches. The adjacency is zero-out.
    """
    regulariser, cycle = 1 / strength, Cycle(n // batch_size, batch_size)
    smoothness = 1 / 4 + regulariser
    problem = Problem(batch_size, regulariser, smoothness, 1.0, 1 / smoothness, "zero-out")
    schedule = Schedule(sigma, (), (), epochs * cycle.batches, cycle)
    stream = Stream(problem, schedule, epsilon=epsilon, delta=delta)
    return least_steps_after(stream, records=records)
