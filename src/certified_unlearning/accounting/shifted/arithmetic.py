"""How rounding weakens a guarantee, which arithmetic a run needs, and how much noise rounding requires.

The derivation is in `rounding`. `shifted` and the results of `pooling` count a step error as sensitivity. Analyses of
exact steps use the triangle inequality. There is a computed run and an exact run on each of the two data sets. Three
pairs of runs are indistinguishable: the two runs on the first data set, the two exact runs, and the two runs on the
second data set.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from certified_unlearning.accounting.core.conversion import epsilon_from_mu, mu_from_epsilon
from certified_unlearning.accounting.core.pooling import NoisyPhase, pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.rounding import SHARE, Noise, rounding
from certified_unlearning.accounting.shifted.interpolation import contraction_gap
from certified_unlearning.errors import AssumptionError
from certified_unlearning.text import rounded_up

TRIANGLE_SHARE = 1e-6
"""Share of delta that the comparison of a computed run with the exact one may use."""


class RoundingFloor(NamedTuple):
    """The ``mu`` that is due to rounding alone, for any number of steps: ``per_precision / sigma + relative``."""

    per_precision: float
    relative: float

    def mu(self, sigma: float) -> float:
        """Return the ``mu`` that is due to rounding at a noise scale."""
        return self.per_precision / sigma + self.relative

    def least_sigma(self, epsilon: float, delta: float) -> float:
        """Return the least noise scale at which rounding uses at most `SHARE` of a target's ``mu``, or infinity."""
        room = SHARE * mu_from_epsilon(epsilon, delta) - self.relative
        return self.per_precision / room if room > 0 else math.inf


def computed(
    problem: Problem,
    *,
    features: int,
    classes: int,
    dtype: str,
    start_norm: float = 0.0,
    noise: Noise = "every step",
    projects: bool = False,
) -> Problem:
    """Return a problem with linear scores, including its rounding errors.

    The arguments are those of `rounding.rounding`.
    """
    counted = rounding(
        n=problem.n,
        features=features,
        classes=classes,
        strong_convexity=problem.strong_convexity,
        lipschitz=problem.lipschitz,
        step_size=problem.step_size,
        dtype=dtype,
        start_norm=start_norm,
        noise=noise,
        projects=projects,
    )
    return replace(problem, rounding=counted)


FloorOf = Callable[[Problem], RoundingFloor]
TRIANGLE_FACTOR = 10.0
"""Factor on the rounding in analyses of exact steps. In these analyses, rounding also adds to delta."""


def triangle_floor(floor_of: FloorOf) -> FloorOf:
    """Return a function whose results are `TRIANGLE_FACTOR` times the results of ``floor_of``.

    Analyses of exact steps need this function.
    """

    def floor(problem: Problem) -> RoundingFloor:
        per_precision, relative = floor_of(problem)
        return RoundingFloor(TRIANGLE_FACTOR * per_precision, TRIANGLE_FACTOR * relative)

    return floor


def langevin_floor(problem: Problem) -> RoundingFloor:
    """Return the floor of noisy steps, ``2 rho / tau sqrt((1 + c) / (1 - c))``."""
    problem.require_strong_convexity()
    noise_std = math.sqrt(2 * problem.step_size)  # for sigma = 1
    of_unit_error = pooled_mu([NoisyPhase(math.inf, contraction_gap(problem), 2.0, noise_std)])
    return RoundingFloor(problem.rounding.fixed * of_unit_error, problem.rounding.per_noise * noise_std * of_unit_error)


def descent_floor(problem: Problem) -> RoundingFloor:
    """Return the `RoundingFloor` of noiseless steps if noise is added on publication.

    The floor holds both if the published noise is fed back to later steps and if it is not.

    Both runs end within ``rho / (1 - c)`` of the ends of the exact runs. If the noise is fed back and every request
    takes ``I`` steps, the errors of all requests add up to ``sqrt((1 + c^I) (1 - c^I)) mu``. Here, ``mu`` is computed
    from the error and the noise of a single phase. The total is at most ``sqrt(2) mu``.
    """
    problem.require_strong_convexity()
    of_unit_error = math.sqrt(2) * 2 / contraction_gap(problem)
    noise_std = math.sqrt(2 * problem.step_size)
    return RoundingFloor(problem.rounding.fixed * of_unit_error, problem.rounding.per_noise * noise_std * of_unit_error)


def chosen_arithmetic(
    candidates: dict[str, Problem], floor_of: FloorOf, *, sigma: float, may_rise: bool, epsilon: float, delta: float
) -> str:
    """Return the first type in which rounding uses at most `SHARE` of the target's ``mu``.

    Args:
        candidates: The problem in each type, with the rounding of that type, from the coarsest type to the finest.
        floor_of: `langevin_floor` or `descent_floor`.
        sigma: The noise scale, or the least noise scale that suffices without rounding.
        may_rise: Whether a larger noise scale may be used with the finest type.
        epsilon: Target epsilon.
        delta: Target delta.

    Raises:
        AssumptionError: Rounding would use more than the share `SHARE` in every type. The message names the noise that
            would be enough.
    """
    for dtype, problem in candidates.items():
        least = floor_of(problem).least_sigma(epsilon, delta)
        if sigma >= least:
            return dtype
    if least == math.inf:
        raise AssumptionError(
            f"epsilon = {epsilon} at delta = {delta:.6g} is too small for {dtype}: rounding would take more than "
            f"{SHARE:.0%} of it at every sigma; raise epsilon, delta or the regularisation"
        )
    if may_rise:
        return dtype
    raise AssumptionError(
        f"with sigma = {sigma:.6g}, rounding in {dtype} would take more than {SHARE:.0%} of epsilon = {epsilon} at "
        f"delta = {delta:.6g}; sigma = {rounded_up(least)} is enough"
    )


class RoundingCost(NamedTuple):
    """Additions to epsilon and to delta."""

    epsilon: float
    delta: float


FREE = RoundingCost(0.0, 0.0)


def triangle_price(mu: float, *, epsilon: float, delta: float, sides: int = 2) -> RoundingCost:
    """Return what must be added to the guarantee of exact runs, so that the guarantee holds for computed runs.

    Each computed run is within ``mu``-Gaussian DP of its exact run.

    Let the exact runs satisfy ``P'(E) <= exp(epsilon) Q'(E) + delta``, and let each computed run be ``(e, d)``-close to
    its exact run, so ``P(E) <= exp(e) P'(E) + d``. Together, these give ``epsilon + 2 e`` and
    ``exp(e) delta + d (1 + exp(epsilon + e))``. ``d`` is chosen so small that it hardly changes the result.

    Args:
        mu: ``mu`` between a computed run and the exact one.
        epsilon: Epsilon of the exact runs.
        delta: Delta of the exact runs.
        sides: Number of runs with inexact arithmetic.
    """
    if mu == 0:
        return FREE
    own_delta = max(TRIANGLE_SHARE * delta * math.exp(-min(epsilon, 600.0)), 1e-300)
    own = epsilon_from_mu(mu, own_delta)
    grown = own_delta * math.exp(min(epsilon + own, 700.0))
    return RoundingCost(sides * own, min(1.0, math.expm1(min(own, 700.0)) * delta + own_delta + grown))


def failure_delta(problem: Problem, *, steps: float, epsilon: float) -> float:
    """Return the addition to delta for the event that, in one of two runs, a random norm is larger than assumed."""
    failure = problem.rounding.failure_of(steps)
    return min(1.0, failure + failure * math.exp(min(epsilon, 700.0)))
