"""Measures of formulas: what certified residuals and mini-batches are worth, by the project's accountants."""

from collections.abc import Sequence

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.core.curves import Cycle, Schedule
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.cyclic.planning import least_steps_after
from certified_unlearning.accounting.residual.release import mu_of, mu_of_all
from certified_unlearning.accounting.streams import Stream
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import measure
from certified_unlearning.reproduction.claims.relations import Quantity


@measure
def cost_residual_mu(
    evidence: Sequence[Evidence], *, residual: float, sigma: float, strong_convexity: float, releases: list[int]
) -> list[Quantity]:
    """Return mu of so many releases together whose gradients are within a residual."""
    mu = mu_of(residual, strong_convexity=strong_convexity, sigma=sigma)
    return [Quantity(mu_of_all(mu, count), f"releases = {count}") for count in releases]


@measure
def cost_residual_epsilon(
    evidence: Sequence[Evidence], *, residual: float, sigma: float, strong_convexity: float, delta: float
) -> list[Quantity]:
    """Return epsilon of one release whose gradient is within a residual."""
    return [Quantity(epsilon_from_mu(mu_of(residual, strong_convexity=strong_convexity, sigma=sigma), delta))]


@measure
def cost_least_steps(
    evidence: Sequence[Evidence],
    *,
    n: int,
    batch_size: int,
    epochs: int,
    sigma: float,
    strength: float,
    records: list[int],
    epsilon: float,
    delta: float,
) -> list[Quantity]:
    """Return the least steps of a request on cyclic mini-batches, its records in the worst places; zero-out."""
    regulariser, cycle = 1 / strength, Cycle(n // batch_size, batch_size)
    smoothness = 1 / 4 + regulariser
    problem = Problem(batch_size, regulariser, smoothness, 1.0, 1 / smoothness, "zero-out")
    schedule = Schedule(sigma, (), (), epochs * cycle.batches, cycle)
    stream = Stream(problem, schedule, epsilon=epsilon, delta=delta)
    return [Quantity(least_steps_after(stream, records=count), f"{count} records") for count in records]
