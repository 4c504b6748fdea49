"""The numbers that a certificate of Langevin unlearning states."""

from typing import NamedTuple

from certified_unlearning import accounting
from certified_unlearning.accounting import shifted
from certified_unlearning.accounting.accountants import AccountantName
from certified_unlearning.mechanisms.learning_start import extra_delta


class Guaranteed(NamedTuple):
    """Numbers of a certificate that its constants give."""

    epsilon: float
    mu: float | None
    extra_delta: float


NOTHING = Guaranteed(0.0, 0.0, 0.0)
"""What is guaranteed before anything was removed."""


def langevin_guarantee(
    problem: accounting.Problem,
    schedule: accounting.Schedule,
    *,
    delta: float,
    accountant: AccountantName,
    dimension: int,
    start: float,
) -> Guaranteed:
    """Return what a certificate of Langevin unlearning states.

    Args:
        problem: The constants.
        schedule: Noise, learning steps, and the steps of every request; 0 requests guarantee 0.
        delta: Strictly between 0 and 1.
        accountant: Which analysis.
        dimension: ``d``.
        start: Mean of every coordinate of the start.
    """
    if not schedule.steps:
        return NOTHING
    guarantees = accounting.stream_guarantees(problem, schedule, delta=delta, accountant=accountant)
    largest = accounting.largest_guarantee(guarantees)
    if accountant == "shifted":
        return Guaranteed(largest.epsilon, largest.mu, extra_delta=0.0)
    extra = extra_delta(
        problem,
        sigma=schedule.sigma,
        dimension=dimension,
        start=start,
        learning_steps=int(schedule.learning_steps),
        epsilon=largest.epsilon,
    )
    return Guaranteed(largest.epsilon, largest.mu, extra)


def epsilon_all_published(problem: accounting.Problem, schedule: accounting.Schedule, *, delta: float) -> float:
    """Return the epsilon for whoever kept every published model, the learned one included; 0 without requests."""
    if not schedule.steps:
        return 0.0
    return accounting.epsilon_from_mu(shifted.joint_curve(problem, schedule, learned_published=True).mu, delta)
