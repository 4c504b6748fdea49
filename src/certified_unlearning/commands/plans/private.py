"""The command `unlearn plan private`: noise of differentially private learners, by method, before anything is run."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import get_args

from rich.console import Console
from rich.table import Table

from certified_unlearning.accounting.core.checks import require_count, require_positive, require_probability
from certified_unlearning.accounting.core.conversion import epsilon_from_mu, mu_from_epsilon
from certified_unlearning.accounting.private.guarantee import extra_delta
from certified_unlearning.accounting.private.learners import (
    Learner,
    LinearProblem,
    NoisyDescent,
    OutputPerturbation,
    embedding_dimension,
)
from certified_unlearning.accounting.private.losses import LossName, ScalarLoss
from certified_unlearning.accounting.private.recursive import RecursiveRegularisation
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.accounting.private.tree_spider import TreeSpider
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.text import counted, rounded_up
from certified_unlearning.vocabulary import Relation

WIDTH = 0.05
"""Of the parabola of the absolute and the Huber loss, as in the estimators."""
GOALS = ("loss", "gradient")
Plan = Learner | SpiderBoost | TreeSpider | RecursiveRegularisation
_COMPARED = {
    "replace-one": "replaced by any others",
    "add-remove": "left out, not replaced: their places stay empty, and sums are divided by the same n",
}
_IN_WORDS = {
    "loss": "sigma is on every mean gradient of descent, and once on the minimiser of output perturbation. Cost bounds "
    "what noise, steps and regulariser add to the mean loss on these records; it is far above what is usual.",
    "gradient": "sigma is on the first mean gradient; differences and later stages have noise of their own. Gradient "
    "bounds the root of the mean squared gradient on these records, for the method that has such a bound; it is far "
    "above what is usual.",
}


@dataclass(frozen=True)
class PrivateWish:
    """The flags; those that are needed may be missing.

    Attributes:
        n: Number of records.
        features: Columns of a row of norm at most 1.
        epsilon: For as many deleted records.
        delta: A number, or ``1/n``.
        radius: Of the ball of weights.
        loss: Of a score and a target of size at most 1.
        relation: When data sets are neighbours.
        records: How many deleted records the unchanged model is to cover.
        steps: Of descent.
        goal: ``loss``, or ``gradient`` for stationary points.
    """

    n: int | None
    features: int | None
    epsilon: float | None
    delta: str
    radius: float | None
    loss: str
    relation: str
    records: int
    steps: int | None
    goal: str = "loss"


@dataclass(frozen=True)
class PrivateCalibration:
    """What a method takes.

    Attributes:
        method: As the estimators name it; those for stationary points are in `mechanisms.private` alone.
        relation: Of both epsilons.
        records: Deleted records that it covers.
        epsilon: For these.
        epsilon_one: For one record.
        mu: For one record.
        sigma: Standard deviation of the noise: on each mean gradient, or on the minimiser; of the first stage, where
            there are several.
        columns: That are learned from.
        steps: Of descent, all stages together, or visits to leaves of a tree; None for output perturbation.
        step_size: Of descent.
        strong_convexity: Of output perturbation.
        cost: A bound on what privacy costs in mean loss on these records, where the analysis has one: of descent for
            the mean of its iterates, without what an embedding adds on average.
        gradient: A bound on the root of the mean squared gradient on these records, where the analysis has one.
    """

    method: str
    relation: str
    records: int
    epsilon: float
    epsilon_one: float
    mu: float
    sigma: float
    columns: int
    steps: int | None
    step_size: float | None
    strong_convexity: float | None
    cost: float | None
    gradient: float | None = None


def run(wish: PrivateWish, *, as_json: bool) -> None:
    """Print what every method takes.

    Raises:
        UnlearningError: A flag is missing or makes no sense; the message names it.
    """
    calibrations = private_calibrations(wish)
    if as_json:
        print(json.dumps([asdict(calibration) for calibration in calibrations], indent=2))
    else:
        _print(calibrations, wish.goal)


def private_calibrations(wish: PrivateWish) -> list[PrivateCalibration]:
    """Return what every method takes to cover some deleted records with no work.

    Raises:
        ParameterError: A flag is missing or makes no sense.
        AssumptionError: float64 is too coarse for so little noise, or epsilon so large, or delta so small, that what
            the sampler of noise leaves out would take all of delta.
    """
    needed = {"--n": wish.n, "--features": wish.features, "--epsilon": wish.epsilon, "--radius": wish.radius}
    missing = [name for name, value in needed.items() if value is None]
    if missing or wish.n is None or wish.features is None or wish.epsilon is None or wish.radius is None:
        raise ParameterError(f"give {', '.join(missing)}")
    for option, value, known in (
        ("--loss", wish.loss, get_args(LossName)),
        ("--relation", wish.relation, get_args(Relation)),
        ("--goal", wish.goal, GOALS),
    ):
        if value not in known:
            raise ParameterError(f"{option} must be one of {', '.join(known)}, got {value!r}")
    require_positive(**{"--epsilon": wish.epsilon, "--radius": wish.radius})
    require_count(least=2, **{"--n": wish.n})
    require_count(least=1, **{"--features": wish.features})
    if wish.steps is not None:
        require_count(least=2, **{"--steps": wish.steps})
    delta, records = _delta(wish.delta, wish.n), wish.records
    require_probability(**{"--delta": delta})
    if not 1 <= records <= wish.n:
        raise ParameterError(f"--records must be from 1 to --n = {wish.n}, got {records}")
    one = epsilon_from_mu(mu_from_epsilon(wish.epsilon, delta) / records, delta) if records > 1 else wish.epsilon
    if not one > 0:
        raise ParameterError(
            f"{counted(records, 'record')} within epsilon = {wish.epsilon:g} leave an epsilon of 0 at "
            f"delta = {delta:g} for one: give a smaller --delta"
        )
    loss = ScalarLoss(
        name=wish.loss,  # type: ignore[arg-type]
        width=WIDTH if wish.loss in ("absolute", "huber") else None,
    )
    problem = LinearProblem(
        n=wish.n,
        features=wish.features,
        row_norm=1.0,
        loss=loss,
        radius=wish.radius,
        relation=wish.relation,  # type: ignore[arg-type]
    )
    if wish.goal == "gradient":
        return [
            _calibration(method, plan, records, delta)
            for method, plan in _for_gradients(problem, one, delta, wish.steps)
        ]
    dimension = embedding_dimension(problem, one)
    methods: dict[str, Callable[[], Learner]] = {
        "noisy-gradient-descent": lambda: NoisyDescent.plan(problem, epsilon=one, delta=delta, steps=wish.steps)
    }
    if loss.convex:
        methods["output-perturbation"] = lambda: OutputPerturbation.plan(problem, epsilon=one, delta=delta)
    if dimension < problem.features:
        methods["embedding"] = lambda: NoisyDescent.plan(
            problem.embedded(dimension), epsilon=one, delta=delta, steps=wish.steps
        )
    return [_calibration(method, make(), records, delta) for method, make in methods.items()]


def _for_gradients(
    problem: LinearProblem, epsilon: float, delta: float, steps: int | None
) -> Iterator[tuple[str, Plan]]:
    """Yield the methods for stationary points that a loss allows."""
    loss = problem.loss
    if loss.lipschitz is not None:
        # Losses are at least 0, so none falls by more than its value at 0.
        yield "spider-boost", SpiderBoost.plan(problem, epsilon=epsilon, delta=delta, gap=loss.at_zero**2, steps=steps)
        yield "tree-spider", TreeSpider.plan(problem, epsilon=epsilon, delta=delta)
    if loss.convex:
        yield (
            "recursive-regularisation",
            RecursiveRegularisation.plan(problem, epsilon=epsilon, delta=delta, steps=steps),
        )


def _calibration(method: str, learner: Plan, records: int, delta: float) -> PrivateCalibration:
    descent = learner if isinstance(learner, NoisyDescent) else None
    output = learner if isinstance(learner, OutputPerturbation) else None
    epsilon = learner.guarantee.epsilon(delta, records=records)
    left_out = extra_delta(learner.failure, epsilon)
    if left_out > delta:
        raise AssumptionError(
            f"at --epsilon {epsilon:.6g} and --delta {delta:.3g} nothing is guaranteed: what the sampler of noise "
            f"leaves out would add {left_out:.2g} to delta; give a smaller --epsilon or a larger --delta"
        )
    cost = descent.regret_bound if descent is not None else output.privacy_cost if output is not None else math.inf
    sigma, steps, gradient = _noise(learner)
    return PrivateCalibration(
        method=method,
        relation=learner.problem.relation,
        records=records,
        epsilon=epsilon,
        epsilon_one=learner.guarantee.epsilon(delta),
        mu=learner.guarantee.mu,
        sigma=sigma,
        columns=learner.problem.features,
        steps=steps,
        step_size=None if descent is None else descent.step_size,
        strong_convexity=None if output is None else output.strong_convexity,
        cost=cost if math.isfinite(cost) else None,
        gradient=gradient if math.isfinite(gradient) else None,
    )


def _noise(learner: Plan) -> tuple[float, int | None, float]:
    """Return a plan's first noise, its steps, and its bound on gradients."""
    if isinstance(learner, SpiderBoost):
        return learner.sigma_gradient, learner.steps, learner.stationarity_bound(learner.problem.loss.at_zero**2)
    if isinstance(learner, TreeSpider):
        return learner.root_sigma, learner.releases, math.inf
    if isinstance(learner, RecursiveRegularisation):
        return learner.stages[0].sigma, sum(stage.steps for stage in learner.stages), math.inf
    return learner.sigma, learner.steps if isinstance(learner, NoisyDescent) else None, math.inf


def _delta(given: str, n: int) -> float:
    try:
        return 1 / n if given == "1/n" else float(given)
    except ValueError as error:
        raise ParameterError(f"--delta must be 1/n or a number, got {given!r}") from error


def _print(calibrations: list[PrivateCalibration], goal: str) -> None:
    table = Table()
    last = "gradient" if goal == "gradient" else "cost"
    for name in ("method", "epsilon", "of one record", "sigma", "columns", "steps", last):
        table.add_column(name, justify="left" if name == "method" else "right", no_wrap=True)
    for each in calibrations:
        bound = each.gradient if goal == "gradient" else each.cost
        table.add_row(
            each.method,
            rounded_up(each.epsilon),
            rounded_up(each.epsilon_one),
            rounded_up(each.sigma),
            f"{each.columns:,}",
            "" if each.steps is None else f"{each.steps:,}",
            "" if bound is None else rounded_up(bound, 3),
        )
    console = Console()
    # In less the numbers would be cut.
    console.width = max(console.width, console.measure(table, options=console.options.update(max_width=1000)).maximum)
    console.print(table)
    first = calibrations[0]
    console.print(
        f"Relation {first.relation}. A model that is learned so covers {counted(first.records, 'deleted record')} with "
        f"no work: epsilon compares it with one that the same algorithm learns with these {_COMPARED[first.relation]}. "
        f"{_IN_WORDS[goal]}"
    )
