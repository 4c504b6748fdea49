"""The command `unlearn plan private`: the noise of each differentially private learner, before anything is run."""

import json
import math
import sys
from dataclasses import asdict, dataclass
from typing import get_args

from rich.console import Console
from rich.table import Table

from certified_unlearning.accounting.core.checks import require_count, require_positive, required_delta
from certified_unlearning.accounting.core.conversion import epsilon_from_mu, mu_from_epsilon
from certified_unlearning.accounting.private.guarantee import extra_delta
from certified_unlearning.accounting.private.losses import LinearProblem, LossName, ScalarLoss
from certified_unlearning.accounting.private.plan import PrivatePlan
from certified_unlearning.commands.plans.private_methods import Target, for_gradients, for_loss
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.text import counted, rounded_up
from certified_unlearning.vocabulary import Delta, Relation

WIDTH = 0.05
"""Width of the parabola in the absolute and the Huber loss, as in the estimators."""
GOALS = ("loss", "gradient")
LARGEST_COUNT = 10**15
"""Largest number of records, columns or steps. Up to about this number, float64 distinguishes all whole numbers."""
_COMPARED = {
    "replace-one": "replaced by any others",
    "add-remove": "left out, not replaced (their places stay empty, and sums are divided by the same n)",
}
_IN_WORDS = {
    "loss": "sigma is the noise on every mean gradient of descent, on the minimiser of output perturbation, and on the "
    "result of the first phase of phased descent. Cost is an upper bound on what the noise, the steps and the "
    "regulariser add to the mean loss on these records, for methods that have such a bound; the typical cost is far "
    "smaller.",
    "gradient": "sigma is the noise on the first mean gradient; differences and later stages have separate noise. "
    "Gradient is an upper bound on the root of the mean squared gradient on these records, for methods that have such "
    "a bound; the typical gradient is far smaller.",
}
_SAMPLED = (
    " Methods whose names begin with sampled take Poisson batches. dp-accounting computes their epsilon, which holds "
    "only if batches stay secret."
)


@dataclass(frozen=True)
class PrivateFlags:
    """The flags of a private plan; a flag that was left out is None, even if it is needed.

    Attributes:
        n: The number of records.
        features: The number of columns of a row of norm at most 1.
        epsilon: The target epsilon for ``records`` deleted records together.
        delta: The delta of the guarantee: a number, ``auto`` or ``1/n``.
        radius: The radius of the ball of weights.
        loss: The loss as a function of a score and of a target whose absolute value is at most 1.
        relation: The relation that makes two data sets neighbours.
        records: The number of deleted records that the unchanged model must cover.
        steps: The number of steps of descent.
        goal: ``loss`` for a small loss, ``gradient`` for stationary points.
        batch: The expected size of Poisson batches. If it is None, SPIDER takes the size of Theorem 42, and descent
            takes a hundredth of the records.
    """

    n: int | None
    features: int | None
    epsilon: float | None
    delta: Delta
    radius: float | None
    loss: str
    relation: str
    records: int
    steps: int | None
    goal: str = "loss"
    batch: int | None = None


@dataclass(frozen=True)
class PrivateCalibration:
    """The noise and steps that one method needs, and what they guarantee.

    Attributes:
        method: The method's name in certificates. Estimators run the first three methods; `mechanisms.private` runs all
            methods.
        relation: The relation that makes two data sets neighbours, for both epsilons.
        records: The number of deleted records that the model covers.
        epsilon: The epsilon for ``records`` deleted records together.
        epsilon_one: The epsilon for one record.
        mu: The ``mu`` for one record; None for methods with Poisson batches, which have none.
        sigma: Standard deviation of the noise on each mean gradient, or on the minimiser. With several stages or
            phases, the standard deviation in the first one.
        columns: The number of columns that the method learns from.
        steps: The number of descent steps in all stages or phases, or the number of visits to leaves of a tree; None
            for output perturbation.
        step_size: The step size of descent.
        strong_convexity: The strong convexity of output perturbation's objective.
        cost: An upper bound on how much privacy adds to the mean loss on these records, if the analysis has such a
            bound. For descent it concerns the mean of the iterates. It leaves out what an embedding adds on average.
        gradient: An upper bound on the root of the mean squared gradient on these records, if the analysis has such a
            bound.
    """

    method: str
    relation: str
    records: int
    epsilon: float
    epsilon_one: float
    mu: float | None
    sigma: float
    columns: int
    steps: int | None
    step_size: float | None
    strong_convexity: float | None
    cost: float | None
    gradient: float | None = None


def run(flags: PrivateFlags, *, as_json: bool) -> None:
    """Print the noise and steps that each method needs.

    Raises:
        UnlearningError: A flag is missing or invalid; the message names it.
    """
    calibrations, left_out = private_calibrations(flags)
    if as_json:
        print(json.dumps([asdict(calibration) for calibration in calibrations], indent=2))
    else:
        _print(calibrations, flags.goal)
    for sentence in left_out:
        print(sentence, file=sys.stderr if as_json else sys.stdout)


def private_calibrations(flags: PrivateFlags) -> tuple[list[PrivateCalibration], list[str]]:
    """Calibrate each method whose models need no further work for the covered deletions.

    Also return why other methods are left out.

    Raises:
        ParameterError: A flag is missing or invalid.
        AssumptionError: float64 is too coarse for so little noise. Or epsilon is too large or delta too small: the
            noise sampler leaves out rare outcomes, and their probability would use up all of delta.
    """
    try:
        return _calibrations(flags)
    except (OverflowError, ZeroDivisionError) as error:
        raise ParameterError(
            f"float64 cannot plan with numbers so large or so small ({error}): give an --epsilon, a --delta and a "
            "--radius nearer to 1"
        ) from error


def _calibrations(flags: PrivateFlags) -> tuple[list[PrivateCalibration], list[str]]:
    needed = {"--n": flags.n, "--features": flags.features, "--epsilon": flags.epsilon, "--radius": flags.radius}
    missing = [name for name, value in needed.items() if value is None]
    if missing or flags.n is None or flags.features is None or flags.epsilon is None or flags.radius is None:
        raise ParameterError(f"give {', '.join(missing)}")
    for option, value, known in (
        ("--loss", flags.loss, get_args(LossName)),
        ("--relation", flags.relation, get_args(Relation)),
        ("--goal", flags.goal, GOALS),
    ):
        if value not in known:
            raise ParameterError(f"{option} must be one of {', '.join(known)}, got {value!r}")
    require_positive(**{"--epsilon": flags.epsilon, "--radius": flags.radius})
    require_count(least=2, **{"--n": flags.n})
    require_count(least=1, **{"--features": flags.features})
    if flags.steps is not None:
        require_count(least=2, **{"--steps": flags.steps})
    for option, count in (("--n", flags.n), ("--features", flags.features), ("--steps", flags.steps or 2)):
        if count > LARGEST_COUNT:
            raise ParameterError(
                f"{option} must be at most {LARGEST_COUNT:,}, got a number of {len(str(count))} digits"
            )
    if flags.batch is not None and not 1 <= flags.batch <= flags.n:
        raise ParameterError(f"--batch-size must be from 1 to --n = {flags.n}, got {flags.batch}")
    delta, records = required_delta(flags.delta, flags.n, "--delta"), flags.records
    if not 1 <= records <= flags.n:
        raise ParameterError(f"--records must be from 1 to --n = {flags.n}, got {records}")
    one = epsilon_from_mu(mu_from_epsilon(flags.epsilon, delta) / records, delta) if records > 1 else flags.epsilon
    if not one > 0:
        raise ParameterError(
            f"epsilon = {flags.epsilon:g} for {counted(records, 'record')} leaves an epsilon of 0 for one record at "
            f"delta = {delta:g}: give a smaller --delta"
        )
    loss = ScalarLoss(
        name=flags.loss,  # type: ignore[arg-type]
        width=WIDTH if flags.loss in ("absolute", "huber") else None,
    )
    problem = LinearProblem(
        n=flags.n,
        features=flags.features,
        row_norm=1.0,
        loss=loss,
        radius=flags.radius,
        relation=flags.relation,  # type: ignore[arg-type]
    )
    asked = Target(
        problem=problem,
        epsilon=flags.epsilon,
        epsilon_one=one,
        delta=delta,
        records=records,
        steps=flags.steps,
        batch=flags.batch,
    )
    calibrations, left_out = [], []
    for method in for_gradients(asked) if flags.goal == "gradient" else for_loss(asked):
        try:
            calibrations.append(_calibration(method.name, method.plan(), records, delta))
        except (ParameterError, AssumptionError) as error:
            if not method.optional:
                raise
            left_out.append(f"{method.name} is left out: {error}.")
    return calibrations, left_out


def _calibration(method: str, plan: PrivatePlan, records: int, delta: float) -> PrivateCalibration:
    guarantee, found = plan.guarantee, plan.calibration
    epsilon = guarantee.epsilon(delta, records=records)
    left_out = extra_delta(plan.failure, epsilon)
    if left_out > delta:
        raise AssumptionError(
            f"at --epsilon {epsilon:.6g} and --delta {delta:.3g} nothing is guaranteed: the noise "
            f"sampler never draws some values, whose probability would add {left_out:.2g} to delta; give a smaller "
            "--epsilon or a larger --delta"
        )
    return PrivateCalibration(
        method=method,
        relation=plan.problem.relation,
        records=records,
        epsilon=epsilon,
        epsilon_one=guarantee.epsilon(delta),
        mu=guarantee.mu,
        sigma=found.sigma,
        columns=plan.problem.features,
        steps=found.steps,
        step_size=found.step_size,
        strong_convexity=found.strong_convexity,
        cost=found.cost if math.isfinite(found.cost) else None,
        gradient=found.gradient if math.isfinite(found.gradient) else None,
    )


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
    # A narrower console would cut the numbers off.
    console.width = max(console.width, console.measure(table, options=console.options.update(max_width=1000)).maximum)
    console.print(table)
    first = calibrations[0]
    console.print(
        f"Relation {first.relation}. Each model covers {counted(first.records, 'deleted record')} without further "
        f"work: epsilon compares the model with one that the same algorithm learns when deleted records are "
        f"{_COMPARED[first.relation]}. "
        f"{_IN_WORDS[goal]}{_SAMPLED if any(each.mu is None for each in calibrations) else ''}"
    )
