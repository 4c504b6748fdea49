"""Measures of Fig. 3b that need only accounting.

In Fig. 3b, a stream of requests removes 100 records, and every request must meet epsilon = 1.
"""

from collections.abc import Sequence
from functools import cache

from certified_unlearning import accounting
from certified_unlearning.accounting import Problem
from certified_unlearning.papers.langevin_unlearning.constants import PAPER, Dataset, Smoothness, paper_problem
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

SIGMA, EPSILON, RECORDS = 0.03, 1.0, 100


@measure
def stream_steps(
    evidence: Sequence[Evidence],
    *,
    dataset: Dataset,
    smoothness: Smoothness,
    records_per_request: int,
    requests: list[int] | None = None,
) -> list[Quantity]:
    """Return the fewest steps for all requests of Fig. 3b, or for the listed requests, which are numbered from 1."""
    steps = _stream(paper_problem(evidence, dataset, smoothness), records_per_request)
    return [Quantity(steps[number - 1], f"request {number}") for number in requests or range(1, len(steps) + 1)]


@measure
def stream_total(
    evidence: Sequence[Evidence], *, dataset: Dataset, smoothness: Smoothness, records_per_request: int
) -> float:
    """Return the accumulated steps of Langevin unlearning in Fig. 3b."""
    return sum(_stream(paper_problem(evidence, dataset, smoothness), records_per_request))


@measure
def stream_saving(
    evidence: Sequence[Evidence], *, dataset: Dataset, smoothness: Smoothness, records_per_request: int
) -> float:
    """Return the share of Descent-to-Delete's accumulated steps that Langevin unlearning saves in Fig. 3b."""
    problem = paper_problem(evidence, dataset, smoothness)
    descent = sum(_published_state(problem, PAPER[dataset].dimension).steps_per_request)
    return 1 - sum(_stream(problem, records_per_request)) / descent


@sweep("request {requests}")
def descent_steps(
    evidence: Sequence[Evidence],
    *,
    dataset: Dataset,
    smoothness: Smoothness,
    requests: int,
    parameters: int | None = None,
) -> float:
    """Return the steps of Descent-to-Delete without internal state (Theorem N.2) in one request.

    Requests are counted from 1. ``I`` and the extra steps are rounded up separately, as the paper's numbers are.
    ``parameters`` is ``d``; its default is the number of features.
    """
    plan = _published_state(paper_problem(evidence, dataset, smoothness), parameters or PAPER[dataset].dimension)
    return plan.steps_per_request[requests - 1]


@measure
def descent_total(evidence: Sequence[Evidence], *, dataset: Dataset, smoothness: Smoothness) -> float:
    """Return the accumulated steps of Descent-to-Delete without internal state."""
    plan = _published_state(paper_problem(evidence, dataset, smoothness), PAPER[dataset].dimension)
    return sum(plan.steps_per_request)


@cache
def _stream(problem: Problem, records_per_request: int) -> tuple[int, ...]:
    planned = accounting.least_stream_steps(
        problem,
        sigma=SIGMA,
        epsilon=EPSILON,
        delta=1 / problem.n,
        records_per_request=records_per_request,
        requests=RECORDS // records_per_request,
        minimum_steps=1,
    )
    return tuple(request.steps for request in planned)


@cache
def _published_state(problem: Problem, parameters: int) -> accounting.PublishedStatePlan:
    return accounting.published_state_plan(
        accounting.descent_problem(problem),
        epsilon=EPSILON,
        delta=1 / problem.n,
        dimension=parameters,
        request_count=RECORDS,
    )
