"""Plans of exact unlearning: steps, batches and noise for a target probability that an edit causes a recomputation.

Exactness depends on none of these numbers: they determine only what edits cost. One plan holds for all edits. Each plan
is computed twice: with constants that suffice, and with those printed in the dissertation (Ullah, Johns Hopkins, 2024).
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.tv import erm, planning, recomputation, tree
from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.accounting.tv.one_pass import (
    balanced_step_size,
    dual_averaging_sensitivity,
    frank_wolfe_sensitivity,
)
from certified_unlearning.accounting.tv.subsampling import probability_each, subsampling_tv, subsampling_tv_bound
from certified_unlearning.errors import InfeasibleError, ParameterError, UnlearningError

_COUNTS = ("steps", "batch_size", "dimension")
_ABOVE_0 = ("lipschitz", "smoothness", "diameter")
_TOO_FAR_APART = "the numbers of this plan are too far apart for floating point"
LARGEST_TREE = 10_000_000
"""Largest number of records for which the mean cost of a deletion from prefix sums is computed.

The memory that this computation needs grows in proportion to the number of records.
"""


@dataclass(frozen=True, kw_only=True)
class ExactFlags:
    """The flags of a plan of exact unlearning; a flag that was left out is None.

    Attributes:
        mechanism: A key of `MECHANISMS`.
        n: The number of records. For prefix sums, never more records than this are present. For other mechanisms, at
            least this number of records is present before every deletion.
        steps: The number of learning steps, ``T``.
        batch_size: The number of records of a mini-batch, ``m``.
        sigma: Standard deviation of the noise per coordinate.
        quantum: The spacing of the grid of quantized SGD, ``tau``.
        recompute: The target probability that one edit causes a recomputation.
        lipschitz: The Lipschitz constant of each record's loss, ``G``. For linear queries, the most that one record
            adds to a sum, ``B``.
        smoothness: The smoothness of each record's loss, ``H``.
        diameter: The diameter of the set of models, ``D``.
        dimension: The number of parameters of a model, ``d``.
    """

    mechanism: str
    n: int
    steps: int | None = None
    batch_size: int | None = None
    sigma: float | None = None
    quantum: float | None = None
    recompute: float | None = None
    lipschitz: float | None = None
    smoothness: float | None = None
    diameter: float | None = None
    dimension: int | None = None


@dataclass(frozen=True, kw_only=True)
class ExactPlan:
    """One row of the printed table: constants, their cost, and their source.

    Attributes:
        mechanism: The mechanism that is planned.
        constants: `sharp` for constants that suffice, `published` for those of the dissertation.
        source: The theorem that states the published constant; `derived` for the sharp one.
        n: The number of records.
        steps: The number of learning steps, ``T``; for prefix sums, one for each record.
        batch_size: The number of records of a mini-batch, ``m``; 0 if there are no batches.
        step_size: The step size of descent; None if the constants that determine it were not given.
        noise: Standard deviation per coordinate, or the grid's spacing; 0 for no noise.
        recompute_probability: Upper bound on the probability that one edit causes a recomputation.
        stated_probability: The probability of a recomputation that the source states for these constants.
        learning_gradients: The number of per-record gradients that learning computes.
        deletion_gradients: Upper bound on the mean number of per-record gradients that a deletion computes,
            including its tests; None if it was not computed.
    """

    mechanism: str
    constants: str
    source: str
    n: int
    steps: int
    batch_size: int
    step_size: float | None
    noise: float
    recompute_probability: float
    stated_probability: float
    learning_gradients: int
    deletion_gradients: float | None


def exact_plans(flags: ExactFlags) -> list[ExactPlan]:
    """Return two plans: with the constants that suffice, and with the published ones.

    Raises:
        ParameterError: A flag is missing, superfluous or invalid.
        InfeasibleError: Not even one step is possible.
    """
    if flags.mechanism not in MECHANISMS:
        raise ParameterError(f"MECHANISM must be one of {', '.join(MECHANISMS)}, got {flags.mechanism!r}")
    try:
        require_count(least=3, n=flags.n)
        require_count(least=1, **{name: value for name in _COUNTS if (value := getattr(flags, name)) is not None})
        require_positive(**{name: value for name in _ABOVE_0 if (value := getattr(flags, name)) is not None})
        if flags.batch_size is not None and flags.batch_size > flags.n - 2:
            raise ParameterError(
                f"batch_size must be at most n - 2 = {flags.n - 2}, got {flags.batch_size}: even after a deletion, a "
                "batch must leave a record out"
            )
        return MECHANISMS[flags.mechanism].plan(flags)
    except UnlearningError as error:
        raise type(error)(_with_flags(str(error))) from error
    except ArithmeticError as error:
        raise ParameterError(_TOO_FAR_APART) from error


def _subsample(flags: ExactFlags) -> list[ExactPlan]:
    _refuse(flags, "sigma", "quantum")
    n, wanted = flags.n, flags.recompute
    if flags.steps is None and flags.batch_size is None:
        _refuse(flags, "dimension")
        # Proposition 3 does not use the dimension.
        problem = _problem(replace(flags, dimension=1))
        real = erm.proposition_3_whole(problem)
        published, size = int(real.steps), int(real.batch_size)
        sharp = planning.most_steps(n=n, batch_size=size, recompute_probability=problem.rho)
        shapes = [(sharp, size), (published, size)]
        step_size: float | None = real.step_size
    else:
        _refuse(flags, "lipschitz", "smoothness", "diameter", "dimension")
        _one_left_out(flags, "steps", "batch_size", "recompute")
        step_size = None
        if flags.steps is None:
            assert flags.batch_size is not None
            assert wanted is not None
            sharp = planning.most_steps(n=n, batch_size=flags.batch_size, recompute_probability=wanted)
            shapes = [
                (sharp, flags.batch_size),
                (_published(Fraction(wanted) * n / flags.batch_size), flags.batch_size),
            ]
        elif flags.batch_size is None:
            assert wanted is not None
            size = planning.largest_batch(n=n, steps=flags.steps, recompute_probability=wanted)
            shapes = [(flags.steps, size), (flags.steps, _published(Fraction(wanted) * n / flags.steps))]
        else:
            shapes = [(flags.steps, flags.batch_size)] * 2

    def plan(constants: str, source: str, steps: int, size: int) -> ExactPlan:
        _require_a_step(flags, steps, size)
        case = {"n": n, "batch_size": size, "steps": steps}
        probability = subsampling_tv(**case)
        again = recomputation.iterations_run_again(steps=steps, rejection=size / n)
        stated = probability if constants == "sharp" else subsampling_tv_bound(**case)
        return _row(flags, constants, source, steps, size, 0.0, probability, stated, size * again, step_size)

    return [plan("sharp", "derived", *shapes[0]), plan("published", "Claim 4", *shapes[1])]


def _noisy(flags: ExactFlags, *, accelerated: bool) -> list[ExactPlan]:
    _refuse(flags, "quantum")
    theorem = "Theorem 22" if accelerated else "Theorem 44"
    flags, problem = _with_published_shape(flags, erm.theorem_22 if accelerated else erm.theorem_44)
    n, size, g = flags.n, _given(flags, "batch_size"), _given(flags, "lipschitz")
    _one_left_out(flags, "steps", "sigma", "recompute")
    case: dict[str, Any] = {"n": n, "batch_size": size}
    if flags.sigma is None:
        steps, wanted = _given(flags, "steps"), _given(flags, "recompute")
        found = planning.plan_noisy_sgd(**case, steps=steps, lipschitz=g, recompute_probability=wanted)
        rows = [(steps, found.noise), (steps, found.published_noise)]
    elif flags.steps is None:
        wanted = _given(flags, "recompute")
        most = planning.most_noisy_steps(**case, sigma=flags.sigma, lipschitz=g, recompute_probability=wanted)
        rows = [(most, flags.sigma), (_published(flags.sigma * n * wanted / (8 * g)), flags.sigma)]
    else:
        rows = [(flags.steps, flags.sigma)] * 2

    def plan(constants: str, source: str, steps: int, sigma: float) -> ExactPlan:
        _require_a_step(flags, steps, size)
        probability = recomputation.noisy_recompute_probability(**case, steps=steps, sigma=sigma, gap=2 * g / size)
        stated = probability if constants == "sharp" else min(1.0, 8 * steps * g / (n * sigma)) if sigma else 1.0
        step_size = None
        if problem is not None:
            step_size = erm.noisy_step_size(problem, steps=steps, batch_size=size, sigma=sigma, accelerated=accelerated)
        cost = _of_tests(n, steps, size, probability)
        return _row(flags, constants, source, steps, size, sigma, probability, stated, cost, step_size)

    return [plan("sharp", "derived", *rows[0]), plan("published", theorem, *rows[1])]


def _quantized(flags: ExactFlags) -> list[ExactPlan]:
    _refuse(flags, "sigma")
    flags, problem = _with_published_shape(flags, erm.theorem_45)
    n, size, g, d = flags.n, _given(flags, "batch_size"), _given(flags, "lipschitz"), _given(flags, "dimension")
    _one_left_out(flags, "steps", "quantum", "recompute")
    case: dict[str, Any] = {"n": n, "batch_size": size, "dimension": d}
    if flags.quantum is None:
        steps, wanted = _given(flags, "steps"), _given(flags, "recompute")
        found = planning.plan_quantised_sgd(**case, steps=steps, lipschitz=g, recompute_probability=wanted)
        rows = [(steps, found.noise), (steps, found.published_noise)]
    elif flags.steps is None:
        wanted = _given(flags, "recompute")
        most = planning.most_quantised_steps(
            **case, resolution=flags.quantum, lipschitz=g, recompute_probability=wanted
        )
        rows = [(most, flags.quantum), (_published(flags.quantum * n * wanted / (4 * g * d)), flags.quantum)]
    else:
        rows = [(flags.steps, flags.quantum)] * 2

    def plan(constants: str, source: str, steps: int, quantum: float) -> ExactPlan:
        _require_a_step(flags, steps, size)
        probability = recomputation.quantised_recompute_probability(
            **case, steps=steps, resolution=quantum, gap=2 * g / size
        )
        stated = probability if constants == "sharp" else min(1.0, 4 * g * d * steps / (n * quantum))
        step_size = None
        if problem is not None:
            step_size = erm.noisy_step_size(problem, steps=steps, batch_size=size, sigma=quantum, accelerated=False)
        cost = _of_tests(n, steps, size, probability)
        return _row(flags, constants, source, steps, size, quantum, probability, stated, cost, step_size)

    return [plan("sharp", "derived", *rows[0]), plan("published", "Theorem 45", *rows[1])]


def _queries(flags: ExactFlags) -> list[ExactPlan]:
    _refuse(flags, "quantum", "batch_size", "smoothness", "diameter", "dimension")
    n, bound = flags.n, _given(flags, "lipschitz")
    _one_left_out(flags, "steps", "sigma", "recompute")
    if flags.sigma is None:
        steps, wanted = _given(flags, "steps"), _given(flags, "recompute")
        found = planning.plan_queries(queries=steps, bound=bound, recompute_probability=wanted)
        rows = [(steps, found.noise), (steps, found.published_noise)]
    elif flags.steps is None:
        wanted = _given(flags, "recompute")
        most = planning.most_queries(sigma=flags.sigma, bound=bound, recompute_probability=wanted)
        rows = [(most, flags.sigma), (_published(flags.sigma * wanted / (8 * bound)), flags.sigma)]
    else:
        rows = [(flags.steps, flags.sigma)] * 2

    def plan(constants: str, source: str, steps: int, sigma: float) -> ExactPlan:
        _require_a_step(flags, steps, n)
        probability = recomputation.query_recompute_probability(queries=steps, sigma=sigma, bound=bound)
        stated = probability if constants == "sharp" else min(1.0, 8 * steps * bound / sigma)
        again = recomputation.iterations_run_again(
            steps=steps, rejection=probability_each(_below_one(probability), steps), reflected_counts=False
        )
        cost = steps + (n - 1) * again
        row = _row(flags, constants, source, steps, 0, sigma, probability, stated, cost, None)
        return replace(row, learning_gradients=n * steps)

    return [plan("sharp", "derived", *rows[0]), plan("published", "Theorem 51, T restored", *rows[1])]


def _prefix_sums(flags: ExactFlags, *, frank_wolfe: bool) -> list[ExactPlan]:
    _refuse(flags, "quantum", "batch_size", "steps")
    _one_left_out(flags, "sigma", "recompute")
    n, g = flags.n, _given(flags, "lipschitz")
    if flags.sigma is not None:
        require_positive(sigma=flags.sigma)
    if frank_wolfe:
        _refuse(flags, "dimension")
        h, diameter = _given(flags, "smoothness"), _given(flags, "diameter")
        bound = frank_wolfe_sensitivity(lipschitz=g, smoothness=h, diameter=diameter)
    else:
        _refuse(flags, "smoothness")
        bound = dual_averaging_sensitivity(lipschitz=g)
        if (flags.dimension is None) != (flags.diameter is None):
            raise ParameterError("give both dimension and diameter, which determine the step size, or neither")
    if flags.sigma is None:
        found = planning.plan_tree(n=n, sensitivity=bound, recompute_probability=_given(flags, "recompute"))
        noises = [found.noise, found.published_noise]
    else:
        noises = [flags.sigma] * 2

    def plan(constants: str, source: str, sigma: float) -> ExactPlan:
        probability = tree.recompute_probability_up_to(n, gaussian_tv(bound / sigma))
        # Theorem 25 calibrates the noise to this rho. Lemma 38 says how many edits then cause a recomputation.
        rho = tree.theorem_25_sigma(n=n, rho=1.0, sensitivity=bound) / sigma
        stated = probability if constants == "sharp" else tree.lemma_38(n=n, rho=rho)
        each, cost, step_size = (2 if frank_wolfe else 1), None, None
        if n <= LARGEST_TREE:
            cost = each * tree.deletion_queries(n=n, sigma=sigma, sensitivity=bound)
        if flags.dimension is not None and flags.diameter is not None:
            step_size = balanced_step_size(
                n=n, dimension=flags.dimension, lipschitz=g, diameter=flags.diameter, sigma=sigma
            )
        row = _row(flags, constants, source, n, 0, sigma, probability, stated, cost, step_size)
        return replace(row, learning_gradients=each * n)

    return [plan("sharp", "derived", noises[0]), plan("published", "Theorem 25, Lemma 38", noises[1])]


class ExactMechanism(NamedTuple):
    """A function that plans a mechanism, and the texts that are printed with its plans.

    Attributes:
        plan: A function that returns two plans: with the constants that suffice, and with the published ones.
        noise: The name of the mechanism's noise; empty if it has none.
        bounded: The assumed bound on records, as a format string into which the flags are inserted.
        records: ``least`` if n is the smallest number of records, ``most`` if it is the largest number.
    """

    plan: Callable[[ExactFlags], list[ExactPlan]]
    noise: str = "sigma"
    bounded: str = "gradients of records have norm at most {0.lipschitz:g}"
    records: str = "least"


MECHANISMS: Mapping[str, ExactMechanism] = {
    "subsample-gd": ExactMechanism(_subsample, noise=""),
    "noisy-sgd": ExactMechanism(partial(_noisy, accelerated=False)),
    "accelerated-noisy-sgd": ExactMechanism(partial(_noisy, accelerated=True)),
    "quantized-sgd": ExactMechanism(_quantized, noise="quantum"),
    "linear-queries": ExactMechanism(
        _queries, bounded="a record's contribution to a sum has norm at most {0.lipschitz:g}"
    ),
    "dual-averaging": ExactMechanism(partial(_prefix_sums, frank_wolfe=False), records="most"),
    "frank-wolfe": ExactMechanism(
        partial(_prefix_sums, frank_wolfe=True),
        bounded="gradients of records have norm at most {0.lipschitz:g} and are {0.smoothness:g}-Lipschitz in a set "
        "of diameter {0.diameter:g}",
        records="most",
    ),
}


def _with_published_shape(
    flags: ExactFlags, theorem: Callable[[erm.ConvexProblem], erm.Parameters]
) -> tuple[ExactFlags, erm.ConvexProblem | None]:
    """Return the flags and the convex problem, if known.

    If steps, batch size and noise are all missing, the flags get the theorem's steps and batch size.
    """
    noise = flags.quantum if flags.sigma is None else flags.sigma
    if flags.steps is None and flags.batch_size is None and noise is None:
        problem = _problem(flags)
        steps, size = erm.whole_numbers(theorem(problem), n=flags.n)
        return replace(flags, steps=steps, batch_size=size), problem
    if flags.smoothness is None and flags.diameter is None:
        return flags, None
    # The flags that are still missing are planned later. The step size does not depend on rho, so any rho will do here.
    return flags, _problem(flags if flags.recompute is not None else replace(flags, recompute=0.5))


def _problem(flags: ExactFlags) -> erm.ConvexProblem:
    """Return the convex problem for which the theorems choose steps and batches."""
    names = ("recompute", "lipschitz", "smoothness", "diameter", "dimension")
    if missing := [name for name in names if getattr(flags, name) is None]:
        chosen = "" if flags.steps or flags.batch_size else ", or steps and batch_size"
        raise ParameterError(f"{', '.join(missing)} must be given{chosen}")
    rho, lipschitz, smoothness, diameter, dimension = (getattr(flags, name) for name in names)
    return erm.ConvexProblem(flags.n, dimension, lipschitz, smoothness, diameter, rho)


def _given(flags: ExactFlags, name: str) -> Any:
    value = getattr(flags, name)
    if value is None:
        raise ParameterError(f"{name} must be given for {flags.mechanism}")
    return value


def _refuse(flags: ExactFlags, *names: str) -> None:
    if superfluous := [name for name in names if getattr(flags, name) is not None]:
        raise ParameterError(f"leave out {', '.join(superfluous)}: {flags.mechanism} has no use for it here")


def _one_left_out(flags: ExactFlags, *names: str) -> None:
    left_out = [name for name in names if getattr(flags, name) is None]
    if len(left_out) != 1:
        found = f"{', '.join(left_out)} are left out" if left_out else "none is left out"
        raise ParameterError(f"leave out exactly one of {', '.join(names)}: the command plans that one; {found}")


def _require_a_step(flags: ExactFlags, steps: int, batch_size: int) -> None:
    require_count(least=0, steps=steps)
    if steps > planning.MOST_STEPS:
        raise ParameterError(f"steps must be at most {planning.MOST_STEPS:,}, got {steps:,}")
    if steps < 1 or batch_size < 1:
        raise InfeasibleError(
            f"recompute = {flags.recompute} allows no step with this batch_size and this noise for n = {flags.n}: "
            "choose a larger recompute, smaller batches or more noise"
        )


def _published(real: float | Fraction) -> int:
    """Return published steps, or a published batch size, as a whole number; if that is below 1, return 1."""
    if math.isnan(real):
        raise ParameterError(_TOO_FAR_APART)
    return max(1, math.floor(min(real, planning.MOST_STEPS)))


def _of_tests(n: int, steps: int, batch_size: int, probability: float) -> float:
    """Bound a deletion's mean number of gradients from above: two per batch that holds the record, plus reruns."""
    each = probability_each(_below_one(probability), steps)
    again = recomputation.iterations_run_again(steps=steps, rejection=each, reflected_counts=False)
    return 2 * steps * batch_size / n + batch_size * again


def _below_one(probability: float) -> float:
    return min(probability, planning.BELOW_ONE)


def _row(
    flags: ExactFlags,
    constants: str,
    source: str,
    steps: int,
    batch_size: int,
    noise: float,
    probability: float,
    stated: float,
    deletion_gradients: float | None,
    step_size: float | None,
) -> ExactPlan:
    return ExactPlan(
        mechanism=flags.mechanism,
        constants=constants,
        source=source,
        n=flags.n,
        steps=steps,
        batch_size=batch_size,
        step_size=step_size,
        noise=noise,
        recompute_probability=probability,
        stated_probability=stated,
        learning_gradients=steps * batch_size,
        deletion_gradients=deletion_gradients,
    )


def _with_flags(message: str) -> str:
    """Replace parameters in a message by the flags that set them."""
    message = message.replace("recompute_probability", "recompute").replace("resolution", "quantum")
    message = re.sub(r"\brho\b", "recompute", message)
    names = "batch_size|diameter|dimension|lipschitz|n|quantum|recompute|sigma|smoothness|steps"
    as_names = r"(?= must| =|,| are| instead| and |[:;]|$)"  # In "of 8 steps", the word is not a name.
    return re.sub(rf"(?<!-)(?<!\d )\b(?:{names}){as_names}", lambda match: "--" + match[0].replace("_", "-"), message)
