"""The interchangeable accountants of Langevin unlearning, by name.

=============  ====================================================================================================
``lsi``        the paper: log-Sobolev inequality, Corollary 3.4 with Hölder exponent 2, conversion of Prop. M.2
``lsi-tight``  the same analysis without slack: exponents optimised at every request, tight conversion
``shifted``    shifted interpolation: exact on quadratic losses for step sizes up to 2 / (L + m), exact conversion
=============  ====================================================================================================

Both ``lsi`` accountants speak of learning run to stationarity (`stationarity` says what a finite run adds to delta) and
compare with a retrained model at stationarity. ``shifted`` compares with the same learning run for as many steps in
all, whatever their number.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

from certified_unlearning.accounting import hoelder, lsi, shifted
from certified_unlearning.accounting.arithmetic import FREE, Price, langevin_floor, triangle_price
from certified_unlearning.accounting.conversion import Conversion, epsilon_of
from certified_unlearning.accounting.curves import GaussianCurve, PrivacyCurve, Schedule
from certified_unlearning.accounting.problem import Problem
from certified_unlearning.accounting.rounding import EXACT
from certified_unlearning.errors import ParameterError

AccountantName = Literal["lsi", "lsi-tight", "shifted"]


@dataclass(frozen=True)
class Accountant:
    """How a schedule of noisy steps becomes a privacy curve, and the curve an epsilon.

    Attributes:
        name: Its name.
        unlearning_curve: The unlearned model, after the last request of a schedule, against the retrained one.
        initial_curve: Learning alone, on data sets that differ in some records.
        contraction_gap: ``1 - c``, where a step multiplies ``mu`` by ``c`` and a Rényi divergence of order ``alpha`` by
            about ``c^(1 / alpha)``.
        conversion: How a Rényi curve is converted.
    """

    name: AccountantName
    unlearning_curve: Callable[[Problem, Schedule], PrivacyCurve]
    initial_curve: Callable[..., PrivacyCurve]
    contraction_gap: Callable[[Problem], float]
    conversion: Conversion


def _lsi_gap(problem: Problem) -> float:
    return problem.step_size * problem.strong_convexity


ACCOUNTANTS: dict[AccountantName, Accountant] = {
    "lsi": Accountant("lsi", lsi.curve, lsi.initial_curve, _lsi_gap, "paper"),
    "lsi-tight": Accountant("lsi-tight", hoelder.curve, lsi.initial_curve, _lsi_gap, "tight"),
    "shifted": Accountant("shifted", shifted.curve, shifted.initial_curve, shifted.contraction_gap, "tight"),
}


def accountant_called(name: str) -> Accountant:
    """Return the accountant of that name.

    Raises:
        ParameterError: There is none.
    """
    if name not in get_args(AccountantName):
        raise ParameterError(f"accountant must be one of {', '.join(get_args(AccountantName))}, got {name!r}")
    return ACCOUNTANTS[name]  # type: ignore[index]


def unlearning_curve(problem: Problem, schedule: Schedule, *, accountant: AccountantName = "lsi") -> PrivacyCurve:
    """Return how well the model after the last request of a schedule can be told from a retrained one.

    It speaks of that model only, not of all published models jointly (`shifted.joint_curve` does), and of requests
    fixed in advance. ``lsi`` and ``lsi-tight`` speak of learning to stationarity, whatever the schedule's learning
    steps: what stopping earlier adds to delta is `stationarity.extra_delta`.

    Args:
        problem: The constants.
        schedule: Noise, learning steps, and the steps of every request.
        accountant: Which analysis.

    Raises:
        ParameterError: A value makes no sense.
        AssumptionError: The analysis needs another step size, or strong convexity.
    """
    return accountant_called(accountant).unlearning_curve(problem, schedule)


def unlearning_epsilon(
    problem: Problem, schedule: Schedule, *, delta: float, accountant: AccountantName = "lsi"
) -> float:
    """Return an upper bound on epsilon between unlearned and retrained model after the last request of a schedule.

    `unlearning_curve`, converted, and what rounding adds; arguments and errors as there.
    """
    return certified(problem, schedule, delta=delta, accountant=accountant).epsilon


class CertifiedRequest(NamedTuple):
    """What holds after a request: epsilon, and ``mu`` of Gaussian DP where the accountant gives one."""

    epsilon: float
    mu: float | None


def certified(problem: Problem, schedule: Schedule, *, delta: float, accountant: AccountantName) -> CertifiedRequest:
    """Return what holds after the last request of a schedule, with the rounding of the problem's arithmetic.

    `shifted` counts it as sensitivity, the others by `arithmetic.triangle_price`; arguments and errors as for
    `unlearning_curve`.
    """
    curve = unlearning_curve(problem, schedule, accountant=accountant)
    epsilon = epsilon_of(curve, delta, conversion=accountant_called(accountant).conversion)
    if isinstance(curve, GaussianCurve):
        return CertifiedRequest(epsilon, curve.mu)
    return CertifiedRequest(
        epsilon + rounding_price(problem, sigma=schedule.sigma, epsilon=epsilon, delta=delta).epsilon, None
    )


def rounding_price(problem: Problem, *, sigma: float, epsilon: float, delta: float) -> Price:
    """Return what computed runs add to an analysis that knows exact ones only, ``lsi`` and ``lsi-tight``."""
    if problem.rounding == EXACT:
        return FREE
    # Each run is one step error a step away from the exact one: half of what two runs are from each other.
    return triangle_price(langevin_floor(problem).mu(sigma) / 2, epsilon=epsilon, delta=delta)


def largest_guarantee(guarantees: Sequence[CertifiedRequest]) -> CertifiedRequest:
    """Return what holds after every request: the largest epsilon, and the largest ``mu`` where all have one.

    Each on its own: epsilons may be equal, 0 above all, where the ``mu`` are not.
    """
    mus = [each.mu for each in guarantees if each.mu is not None]
    return CertifiedRequest(max(each.epsilon for each in guarantees), max(mus) if len(mus) == len(guarantees) else None)


def stream_guarantees(
    problem: Problem, schedule: Schedule, *, delta: float, accountant: AccountantName = "lsi"
) -> list[CertifiedRequest]:
    """Return what holds after each request of a schedule, of the model published then.

    `certified` for the first requests of the schedule; arguments and errors as there.
    """
    return [
        certified(
            problem,
            replace(schedule, records_per_request=schedule.records[:number], steps=schedule.steps[:number]),
            delta=delta,
            accountant=accountant,
        )
        for number in range(1, len(schedule.steps) + 1)
    ]


def initial_epsilon(
    problem: Problem,
    *,
    sigma: float,
    delta: float,
    records: int,
    learning_steps: float = math.inf,
    accountant: AccountantName = "lsi",
) -> float:
    """Return an upper bound on epsilon between models learned on data that differ in ``records``.

    Args:
        problem: The constants.
        sigma: Noise scale.
        delta: Strictly between 0 and 1.
        records: ``S``.
        learning_steps: ``T``; infinite for learning to stationarity.
        accountant: Which analysis.

    Raises:
        ParameterError: A value makes no sense.
        AssumptionError: The analysis needs another step size, or strong convexity.
    """
    method = accountant_called(accountant)
    curve = method.initial_curve(problem, sigma=sigma, records=records, learning_steps=learning_steps)
    epsilon = epsilon_of(curve, delta, conversion=method.conversion)
    if isinstance(curve, GaussianCurve):
        return epsilon
    return epsilon + rounding_price(problem, sigma=sigma, epsilon=epsilon, delta=delta).epsilon
