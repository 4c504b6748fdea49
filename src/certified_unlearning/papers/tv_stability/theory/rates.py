"""Rates, bounds and printed forms of chapter 4, for comparison in claims; rates omit constants and logarithms."""

import math
from dataclasses import replace

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.accounting.tv.erm import (
    ConvexProblem,
    Parameters,
    noise_floor,
    noisy_step_size,
    proposition_1,
    proposition_3,
    proposition_7,
    step_size_of_spread,
    theorem_22,
)
from certified_unlearning.papers.tv_stability.theory.stability import AMPLIFIABLE


def proposition_1_steps(problem: ConvexProblem, *, batch_size: float, printed: bool = False) -> float:
    """Return the smallest ``T`` for which amplification by sub-sampling holds as Propositions 1 and 7 use it.

    It is ``(n rho)^2 / (10.048 m^2)`` by the proof's own inequality; the printed form has 16 instead of 10.048.
    """
    require_positive(batch_size=batch_size)
    return (problem.stable_records / batch_size) ** 2 / (16 if printed else 8 * AMPLIFIABLE)


def proof_step_size(
    problem: ConvexProblem, *, steps: float, batch_size: float, sigma: float, accelerated: bool
) -> float:
    """Return `noisy_step_size` with the proofs' spread of a noisy gradient, ``sqrt(2 G^2 / m + sigma^2 d)``."""
    require_positive(steps=steps, batch_size=batch_size)
    spread = math.sqrt(2 * problem.lipschitz**2 / batch_size + sigma**2 * problem.dimension)
    return step_size_of_spread(problem, spread=spread, steps=steps, accelerated=accelerated)


def printed_step_size(
    problem: ConvexProblem, *, steps: float, batch_size: float, sigma: float, accelerated: bool
) -> float:
    """Return `noisy_step_size` as Propositions 1 and 7 print it, without ``sqrt(d)``; only for comparison."""
    return noisy_step_size(
        replace(problem, dimension=1), steps=steps, batch_size=batch_size, sigma=sigma, accelerated=accelerated
    )


def corollary_7_batches(problem: ConvexProblem) -> tuple[float, float]:
    """Return the smallest batch size of Corollary 7 (accelerated noisy SGD), and the largest useful one (Remark 3)."""
    stable, root, condition = problem.stable_records, problem.root_dimension, problem.condition
    least = min(problem.dimension / 16, (stable**3 * root / condition) ** 0.25 / 4)
    return least, math.sqrt(stable**3 / (problem.dimension**1.5 * condition))


def corollary_7(problem: ConvexProblem, *, batch_size: float) -> Parameters:
    """Return accelerated noisy SGD's parameters at its best rate, ``G D sqrt(d) / (rho n)``.

    The number of steps is ``T = max((rho n)^2 / (m d), sqrt(H D rho n / (G sqrt(d))))``.
    """
    require_positive(batch_size=batch_size)
    stable = problem.stable_records
    steps = max(
        stable**2 / (batch_size * problem.dimension), math.sqrt(problem.condition * stable / problem.root_dimension)
    )
    return replace(proposition_1(problem, steps=steps, batch_size=batch_size), excess_risk=noise_floor(problem))


def corollary_8_batches(problem: ConvexProblem) -> tuple[float, float]:
    """Return the smallest batch size of Corollary 8 (noisy SGD), and the largest useful one."""
    stable, root, condition = problem.stable_records, problem.root_dimension, problem.condition
    least = min(problem.dimension / 16, math.sqrt(stable * root / condition) / 4)
    return least, stable / (root * condition)


def corollary_8(problem: ConvexProblem, *, batch_size: float) -> Parameters:
    """Return noisy SGD's parameters at its best rate: ``T = max((rho n)^2 / (m d), H D rho n / (G sqrt(d)))``."""
    require_positive(batch_size=batch_size)
    stable = problem.stable_records
    steps = max(stable**2 / (batch_size * problem.dimension), problem.condition * stable / problem.root_dimension)
    return replace(proposition_7(problem, steps=steps, batch_size=batch_size), excess_risk=noise_floor(problem))


def theorem_22_risk(problem: ConvexProblem) -> float:
    """Return Theorem 22's rate, the smaller of its two branches."""
    return min(proposition_3(problem).excess_risk, theorem_22(problem).excess_risk)


def theorem_23_risk(problem: ConvexProblem) -> float:
    """Return the rate ``G D min(1 / sqrt(rho n), sqrt(d) / (rho n))`` of stable learners without a fast unlearner."""
    return min(problem.lipschitz * problem.diameter / math.sqrt(problem.stable_records), noise_floor(problem))


def theorem_24_risk(problem: ConvexProblem) -> float:
    """Return the lower bound's rate ``G D min(1, 1 / (rho n))``, for ``0 < rho < 1``."""
    return problem.lipschitz * problem.diameter * min(1.0, 1 / problem.stable_records)


def theorem_48_risk(problem: ConvexProblem) -> float:
    """Return the rate of the population risk, ``G D / sqrt(n)`` plus Theorem 23's rate."""
    return problem.lipschitz * problem.diameter / math.sqrt(problem.n) + theorem_23_risk(problem)


def theorem_48_steps(problem: ConvexProblem, *, printed: bool = False) -> float:
    """Return noisy SGD's ``T`` for the population risk.

    The number of steps is ``max(min(n, (rho n)^2 / d), H D / G min(sqrt(n), rho n / sqrt(d)))``. In the printed
    formula, the first argument of ``max`` is the square root of ``min(n, (rho n)^2 / d)``, and ``G D / sqrt(T)`` then
    exceeds the claimed rate.
    """
    least = min(math.sqrt(problem.n), problem.stable_records / problem.root_dimension)
    return max(least if printed else least**2, problem.condition * least)
