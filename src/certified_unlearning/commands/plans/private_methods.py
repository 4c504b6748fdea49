"""The methods that `unlearn plan private` compares for each goal."""

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
"""Mean number of batches in one pass, if no batch size is given."""
USUAL_BATCHES = 1000
"""Number of batches (steps) of DP-SGD, if no number is given."""


@dataclass(frozen=True)
class Target:
    """The problem and the target that every method is planned for.

    Attributes:
        problem: The bounds of the records.
        epsilon: The target epsilon of all covered records together.
        epsilon_one: The epsilon of one covered record, for methods whose releases have a ``mu``.
        delta: The delta of both epsilons.
        records: The number of deleted records that must be covered.
        steps: The number of steps of descent; None for the usual number.
        batch: The expected size of Poisson batches; None for the usual size.
    """

    problem: LinearProblem
    epsilon: float
    epsilon_one: float
    delta: float
    records: int
    steps: int | None
    batch: int | None


class Method(NamedTuple):
    """A method of private learning, and how to plan it.

    Attributes:
        name: The method's name in certificates.
        plan: A function that makes the method's plan.
        optional: Whether the method is merely left out if it cannot be planned. Otherwise, this case is an error.
    """

    name: str
    plan: Callable[[], PrivatePlan]
    optional: bool = False


def for_loss(target: Target) -> Iterator[Method]:
    """Yield the methods that search for weights with a small loss."""
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
    """Yield those methods that search for stationary points and that the loss allows."""
    problem, one, delta, loss = target.problem, target.epsilon_one, target.delta, target.problem.loss
    # Losses are at least 0, so a loss cannot fall by more than its value at 0.
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
    """Return DP-SGD, with the step size of descent on all records. No gradient of this loss in the ball is clipped."""
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
    """Return an epsilon and a delta for one record that ensure the target for all covered records.

    The computation does not use ``mu``.
    """
    if target.records == 1:
        return target.epsilon, target.delta
    one = target.epsilon / target.records
    return one, delta_of_one(one, target.delta, records=target.records)
