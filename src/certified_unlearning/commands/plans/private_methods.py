"""The methods that `unlearn plan private` compares, by goal, and what their plans have to say."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from certified_unlearning.accounting.private.learners import (
    NoisyDescent,
    OutputPerturbation,
    embedding_dimension,
    usual_step_size,
)
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.accounting.private.phased import PhasedDescent
from certified_unlearning.accounting.private.plan import PrivatePlan
from certified_unlearning.accounting.private.recursive import RecursiveRegularisation
from certified_unlearning.accounting.private.sampled import SampledDescent, delta_of_one
from certified_unlearning.accounting.private.sampled_spider import SampledSpider
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.accounting.private.tree_spider import TreeSpider

BATCHES = 100
"""Batches that make one pass, on average, where nobody says how large they are."""
USUAL_BATCHES = 1000
"""Batches of DP-SGD, where nobody says how many."""


@dataclass(frozen=True)
class Target:
    """What every method is planned for.

    Attributes:
        problem: Bounds of the records.
        epsilon: Epsilon of all records that are to be covered together.
        epsilon_one: Epsilon of one of them, where releases have a ``mu``.
        delta: Delta of both epsilons.
        records: How many are to be covered.
        steps: Steps of descent; None for the usual number.
        batch: Expected size of Poisson batches; None for what is usual.
    """

    problem: LinearProblem
    epsilon: float
    epsilon_one: float
    delta: float
    records: int
    steps: int | None
    batch: int | None


class Method(NamedTuple):
    """A way to learn.

    Attributes:
        name: The name in certificates.
        plan: Makes its plan.
        optional: Whether the others are shown where it cannot be planned.
    """

    name: str
    plan: Callable[[], PrivatePlan]
    optional: bool = False


def for_loss(target: Target) -> Iterator[Method]:
    """Yield the methods that look for weights of small loss."""
    problem, one, delta = target.problem, target.epsilon_one, target.delta
    yield Method(
        "noisy-gradient-descent", lambda: NoisyDescent.plan(problem, epsilon=one, delta=delta, steps=target.steps)
    )
    if problem.loss.convex:
        yield Method("output-perturbation", lambda: OutputPerturbation.plan(problem, epsilon=one, delta=delta))
    dimension = embedding_dimension(problem, one)
    if dimension < problem.features:
        few = problem.embedded(dimension)
        yield Method("embedding", lambda: NoisyDescent.plan(few, epsilon=one, delta=delta, steps=target.steps))
    if problem.loss.convex:
        yield Method("phased-descent", lambda: PhasedDescent.plan(problem, epsilon=one, delta=delta), optional=True)
    yield Method("sampled-descent", lambda: _sampled_descent(target), optional=True)


def for_gradients(target: Target) -> Iterator[Method]:
    """Yield the methods for stationary points that a loss allows."""
    problem, one, delta, loss = target.problem, target.epsilon_one, target.delta, target.problem.loss
    # Losses are at least 0, so none falls by more than its value at 0.
    gap = loss.at_zero**2
    if loss.lipschitz is not None:
        yield Method(
            "spider-boost", lambda: SpiderBoost.plan(problem, epsilon=one, delta=delta, gap=gap, steps=target.steps)
        )
        yield Method("tree-spider", lambda: TreeSpider.plan(problem, epsilon=one, delta=delta))
    if loss.convex:
        yield Method(
            "recursive-regularisation",
            lambda: RecursiveRegularisation.plan(problem, epsilon=one, delta=delta, steps=target.steps),
        )
    if loss.lipschitz is not None:
        epsilon, its_delta = _numerical(target)
        yield Method(
            "sampled-spider",
            lambda: SampledSpider.plan(
                problem, epsilon=epsilon, delta=its_delta, gap=gap, steps=target.steps, batch=target.batch
            ),
            optional=True,
        )


def _sampled_descent(target: Target) -> SampledDescent:
    """Return DP-SGD that clips no gradient of this loss in the ball, with the step size of descent on all records."""
    problem = target.problem
    steps = USUAL_BATCHES if target.steps is None else target.steps
    batch = max(1, problem.n // BATCHES) if target.batch is None else target.batch
    epsilon, delta = _numerical(target)
    plan = SampledDescent.plan(
        problem,
        epsilon=epsilon,
        delta=delta,
        steps=steps,
        share=batch / problem.n,
        clip=problem.gradient_bound,
        step_size=1.0,
    )
    return replace(plan, step_size=usual_step_size(problem, steps, plan.sigma))


def _numerical(target: Target) -> tuple[float, float]:
    """Return the epsilon and delta of one record that are enough for all, where there is no ``mu``."""
    if target.records == 1:
        return target.epsilon, target.delta
    one = target.epsilon / target.records
    return one, delta_of_one(one, target.delta, records=target.records)
