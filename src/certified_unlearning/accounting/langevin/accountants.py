"""The interchangeable accountants of Langevin unlearning, by name.

=============  ====================================================================================================
``lsi``        the paper: log-Sobolev inequality, Corollary 3.4 with Hölder exponent 2, conversion of Prop. M.2
``lsi-tight``  the same analysis without slack: exponents optimised at every request, tight conversion
``shifted``    shifted interpolation: exact on quadratic losses for step sizes up to 2 / (L + m), exact conversion
=============  ====================================================================================================

Both ``lsi`` accountants assume learning to stationarity, and their comparator is a retrained model at stationarity.
`stationarity` computes what a finite run adds to delta. The comparator of ``shifted`` is the same learning run for the
same total number of steps, which may be any number.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from certified_unlearning.accounting.accountant import PROJECTION, Accountant, Assumption
from certified_unlearning.accounting.core.conversion import Conversion, epsilon_of
from certified_unlearning.accounting.core.curves import PrivacyCurve, Schedule
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.rounding import EXACT
from certified_unlearning.accounting.langevin import hoelder, lsi
from certified_unlearning.accounting.shifted import interpolation as shifted
from certified_unlearning.accounting.shifted.arithmetic import FREE, RoundingCost, langevin_floor, triangle_price
from certified_unlearning.errors import ParameterError

AccountantName = str
"""The name of an accountant in `ACCOUNTANTS`."""


@dataclass(frozen=True)
class LangevinAccountant(Accountant):
    """An analysis that turns a schedule of noisy steps into a privacy curve, and the curve into an epsilon.

    Attributes:
        unlearning_curve: Curve of the unlearned model after the last request of a schedule, compared with the retrained
            model.
        curve_by_answer: Function that gives `unlearning_curve` for each number of steps of the last request; None if
            each curve is computed separately.
        initial_curve: Curve of learning alone, on data sets that differ in some records.
        contraction_gap: ``1 - c``, where a step multiplies ``mu`` by ``c``, and a Rényi divergence of order ``alpha``
            by about ``c^(1 / alpha)``.
        conversion: The conversion of Rényi curves.
        stationary: Whether the accountant assumes learning to stationarity, so that stopping earlier adds to delta.
        counts_rounding: Whether the curve includes rounding. Otherwise, rounding is added by the triangle inequality.
    """

    noise_in_every_step = True

    unlearning_curve: Callable[[Problem, Schedule], PrivacyCurve] = field(kw_only=True)
    curve_by_answer: Callable[[Problem, Schedule], Callable[[int], PrivacyCurve]] | None = field(
        default=None, kw_only=True
    )
    initial_curve: Callable[..., PrivacyCurve] = field(kw_only=True)
    contraction_gap: Callable[[Problem], float] = field(kw_only=True)
    conversion: Conversion = field(default="tight", kw_only=True)
    stationary: bool = field(default=False, kw_only=True)
    counts_rounding: bool = field(default=False, kw_only=True)

    def after_answers(self, problem: Problem, schedule: Schedule) -> Callable[[int], PrivacyCurve]:
        """Return a function that gives the `unlearning_curve` for each number of steps of the last request."""
        if self.curve_by_answer is not None:
            return self.curve_by_answer(problem, schedule)
        return lambda steps: self.unlearning_curve(problem, schedule.answered_by(steps))

    def certified(self, problem: Problem, curve: PrivacyCurve, *, sigma: float, delta: float) -> "CertifiedRequest":
        """Return the guarantee for computed steps, given a curve of exact steps or one that includes rounding."""
        epsilon = epsilon_of(curve, delta, conversion=self.conversion)
        if not self.counts_rounding:
            epsilon += rounding_price(problem, sigma=sigma, epsilon=epsilon, delta=delta).epsilon
        return CertifiedRequest(epsilon, curve.mu)


def _lsi_gap(problem: Problem) -> float:
    return problem.step_size * problem.strong_convexity


def _both(comparator: str) -> dict[str, str]:
    return dict.fromkeys(("least-sigma", "least-steps"), comparator)


_AT_STATIONARITY = _both("the same learning run from scratch on the data after the removals")
_STATIONARITY = (
    Assumption(
        statement="learning has reached its stationary distribution",
        status="checked",
        by="extra_delta includes the remaining distance after learning_steps; an extra_delta above delta is refused",
    ),
    PROJECTION,
)
ACCOUNTANTS: dict[str, LangevinAccountant] = {
    each.name: each
    for each in (
        LangevinAccountant(
            "lsi",
            "lsi",
            "langevin",
            _AT_STATIONARITY,
            _STATIONARITY,
            "paper",
            bound="paper’s bound",
            unlearning_curve=lsi.curve,
            initial_curve=lsi.initial_curve,
            contraction_gap=_lsi_gap,
            conversion="paper",
            stationary=True,
        ),
        LangevinAccountant(
            "lsi-tight",
            "lsi-tight",
            "langevin",
            _AT_STATIONARITY,
            _STATIONARITY,
            bound="paper’s bound without slack",
            unlearning_curve=hoelder.curve,
            initial_curve=lsi.initial_curve,
            contraction_gap=_lsi_gap,
            stationary=True,
        ),
        LangevinAccountant(
            "shifted",
            "shifted",
            "langevin",
            _both(
                "the same learning run from the same start on the data after the removals, for the same total number "
                "of steps"
            ),
            (PROJECTION,),
            bound="our bound",
            unlearning_curve=shifted.curve,
            curve_by_answer=shifted.curve_by_answer,
            initial_curve=shifted.initial_curve,
            contraction_gap=shifted.contraction_gap,
            counts_rounding=True,
        ),
    )
}
"""All accountants of Langevin unlearning, from loose to tight, in the order of figures and tables."""


def accountant_called(name: str) -> LangevinAccountant:
    """Return the accountant with this name.

    Raises:
        ParameterError: There is no such accountant.
    """
    if name not in ACCOUNTANTS:
        raise ParameterError(f"accountant must be one of {', '.join(ACCOUNTANTS)}, got {name!r}")
    return ACCOUNTANTS[name]


def unlearning_curve(problem: Problem, schedule: Schedule, *, accountant: AccountantName = "lsi") -> PrivacyCurve:
    """Return how well the model after the last request of a schedule can be distinguished from a retrained one.

    The curve covers only the model after the last request. It does not cover all published models jointly (see
    `interpolation.joint_curve`). The curve covers only requests that were fixed in advance. ``lsi`` and ``lsi-tight``
    assume learning to stationarity, whatever the schedule's number of learning steps is. `stationarity.extra_delta` is
    the addition to delta for stopping earlier.

    Args:
        problem: The constants.
        schedule: Noise, learning steps, and the steps of every request.
        accountant: Name of the accountant.

    Raises:
        AssumptionError: The analysis needs another step size, or strong convexity.
    """
    return accountant_called(accountant).unlearning_curve(problem, schedule)


def unlearning_epsilon(
    problem: Problem, schedule: Schedule, *, delta: float, accountant: AccountantName = "lsi"
) -> float:
    """Return an upper bound on epsilon between unlearned and retrained model after the last request of a schedule.

    This epsilon is converted from `unlearning_curve`, and includes rounding. The arguments and errors are those of
    `unlearning_curve`.
    """
    return certified(problem, schedule, delta=delta, accountant=accountant).epsilon


class CertifiedRequest(NamedTuple):
    """The guarantee after a request: epsilon, and ``mu`` of Gaussian DP if the accountant gives one."""

    epsilon: float
    mu: float | None


def certified(problem: Problem, schedule: Schedule, *, delta: float, accountant: AccountantName) -> CertifiedRequest:
    """Return the guarantee after the last request of a schedule, with the rounding of the problem's arithmetic.

    `shifted` counts rounding as sensitivity. The other accountants use `arithmetic.triangle_price`. The arguments and
    errors are those of `unlearning_curve`.
    """
    method = accountant_called(accountant)
    return method.certified(problem, method.unlearning_curve(problem, schedule), sigma=schedule.sigma, delta=delta)


def rounding_price(problem: Problem, *, sigma: float, epsilon: float, delta: float) -> RoundingCost:
    """Return what rounding adds to the guarantee of ``lsi`` or ``lsi-tight``, which analyse exact runs."""
    if problem.rounding == EXACT:
        return FREE
    # A computed run deviates from the exact one by one step error per step, which is half of the deviation of two
    # computed runs.
    return triangle_price(langevin_floor(problem).mu(sigma) / 2, epsilon=epsilon, delta=delta)


def largest_guarantee(guarantees: Sequence[CertifiedRequest]) -> CertifiedRequest:
    """Return a guarantee that holds after every request: the largest epsilon, and the largest ``mu``.

    If a request has no ``mu``, the result has none. The two maxima are taken separately, because epsilons may be equal,
    for example 0, even if the ``mu`` differ.
    """
    mus = [each.mu for each in guarantees if each.mu is not None]
    return CertifiedRequest(max(each.epsilon for each in guarantees), max(mus) if len(mus) == len(guarantees) else None)


def stream_guarantees(
    problem: Problem, schedule: Schedule, *, delta: float, accountant: AccountantName = "lsi"
) -> list[CertifiedRequest]:
    """Return the guarantee after each request of a schedule, for the model published after that request.

    Each guarantee is that of `certified` for the first requests of the schedule. The arguments and errors are those of
    `certified`.
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
    """Return an upper bound on epsilon between models learned on data sets that differ in ``records`` records.

    Args:
        problem: The constants.
        sigma: Noise scale.
        delta: Strictly between 0 and 1.
        records: Number of records, ``S``.
        learning_steps: Number of learning steps, ``T``; infinite for learning to stationarity.
        accountant: Name of the accountant.

    Raises:
        AssumptionError: The analysis needs another step size, or strong convexity.
    """
    method = accountant_called(accountant)
    curve = method.initial_curve(problem, sigma=sigma, records=records, learning_steps=learning_steps)
    return method.certified(problem, curve, sigma=sigma, delta=delta).epsilon
