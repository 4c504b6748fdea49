"""The three accountants of Descent-to-Delete.

One is the published accountant, one is tighter, and one compares with retraining that is noised once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from certified_unlearning.accounting.accountant import PROJECTION, Accountant, Assumption
from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.core.curves import Schedule
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.descent import shifted as descent_shifted
from certified_unlearning.accounting.descent.conditional import conditional_epsilon, conditions_of
from certified_unlearning.accounting.descent.published import (
    published_state_epsilon,
    published_state_price,
    secret_state_epsilon,
)
from certified_unlearning.accounting.guaranteed import Guaranteed

Analysis = Callable[[Problem, Schedule, float, int], Guaranteed]
"""Guarantee after all requests of a schedule, computed from the problem, the schedule, delta and the dimension."""


@dataclass(frozen=True)
class DescentAccountant(Accountant):
    """An analysis of Descent-to-Delete.

    Attributes:
        analyses: One analysis for each variant.
    """

    analyses: Mapping[str, Analysis] = field(kw_only=True)


def _secret_state(problem: Problem, schedule: Schedule, delta: float, dimension: int) -> Guaranteed:
    epsilon = secret_state_epsilon(problem, sigma=schedule.sigma, delta=delta, steps=min(schedule.steps))
    return Guaranteed(epsilon, None, 0.0)


def _published_state(problem: Problem, schedule: Schedule, delta: float, dimension: int) -> Guaranteed:
    epsilon = published_state_epsilon(
        problem, sigma=schedule.sigma, delta=delta, dimension=dimension, steps_per_request=schedule.steps
    )
    price = published_state_price(problem, sigma=schedule.sigma, epsilon=epsilon, delta=delta)
    return Guaranteed(epsilon, None, price.delta)


def _conditional(problem: Problem, schedule: Schedule, delta: float, dimension: int) -> Guaranteed:
    given = conditions_of(problem, sigma=schedule.sigma, dimension=dimension, learning_steps=schedule.learning_steps)
    epsilon = max(
        conditional_epsilon(
            problem,
            sigma=schedule.sigma,
            records_per_request=schedule.records[:number],
            steps_per_request=schedule.steps[:number],
            delta=delta,
            **given,
        )
        for number in range(1, len(schedule.steps) + 1)
    )
    return Guaranteed(epsilon, None, 0.0)


def _tightened(of_history: Callable[..., float]) -> Analysis:
    def analysis(problem: Problem, schedule: Schedule, delta: float, dimension: int) -> Guaranteed:
        mu = max(
            of_history(
                problem,
                sigma=schedule.sigma,
                records_per_request=schedule.records[:number],
                steps_per_request=schedule.steps[:number],
            )
            for number in range(1, len(schedule.steps) + 1)
        )
        return Guaranteed(epsilon_from_mu(mu, delta), mu, 0.0)

    return analysis


def _published_state_mu(
    problem: Problem, *, sigma: float, records_per_request: Sequence[int], steps_per_request: Sequence[int]
) -> float:
    """Return the ``mu`` of `descent.shifted.published_state_curve`."""
    return descent_shifted.published_state_curve(
        problem, sigma=sigma, steps_per_request=steps_per_request, records_per_request=tuple(records_per_request)
    ).mu


_NOISED_ALIKE = "a retrained model published with the same noise"
_AS_PUBLISHED = (
    Assumption(
        statement="the theorem, which is stated for adding or removing a record, also holds for this adjacency",
        status="assumed",
        by="the paper applies the theorem unchanged, and so does this baseline",
    ),
)
ACCOUNTANTS: dict[str, DescentAccountant] = {
    each.name: each
    for each in (
        DescentAccountant(
            "descent-to-delete N.1",
            "printed",
            "descent-to-delete",
            {"secret-state": _NOISED_ALIKE},
            _AS_PUBLISHED,
            "paper",
            as_published=True,
            bound="its theorem",
            analyses={"secret-state": _secret_state},
        ),
        DescentAccountant(
            "descent-to-delete N.2",
            "printed",
            "descent-to-delete",
            {"published-state": _NOISED_ALIKE},
            _AS_PUBLISHED,
            "paper",
            as_published=True,
            bound="its theorem",
            analyses={"published-state": _published_state},
        ),
        DescentAccountant(
            "descent-to-delete shifted",
            "tightened",
            "descent-to-delete",
            {
                "secret-state": "a model retrained from the same start on the data after the removals, for the "
                "same total number of steps, and published with the same noise",
                "published-state": "a retrained model that is published with the same noise at the same times, and "
                "continues from each published model",
            },
            (PROJECTION,),
            bound="our bound",
            analyses={
                "secret-state": _tightened(descent_shifted.secret_state_history_mu),
                "published-state": _tightened(_published_state_mu),
            },
        ),
        DescentAccountant(
            "descent-to-delete conditional",
            "against retraining noised once",
            "descent-to-delete",
            {
                "published-state": "a model retrained from the same start on the data after the removals, published "
                "with the same noise, which is added once"
            },
            (PROJECTION,),
            bound="our bound",
            analyses={"published-state": _conditional},
        ),
    )
}
"""All accountants of Descent-to-Delete, in the order of figures and tables."""
