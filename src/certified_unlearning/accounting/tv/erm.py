"""Parameters and rates of chapter 4's learners, which minimise the empirical risk of smooth convex losses.

The learners take steps on mini-batches. Numbers of steps and batch sizes are real numbers, as in the theorems. Rates
omit constants and logarithms. If a printed statement and its proof differ, a keyword or a name says which one is used.
"""

import math
from dataclasses import dataclass, replace

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.errors import ParameterError


@dataclass(frozen=True)
class ConvexProblem:
    """A smooth convex problem, and the required stability of a learner.

    Attributes:
        n: Number of records.
        dimension: Number of parameters, ``d``.
        lipschitz: Lipschitz constant ``G``.
        smoothness: Smoothness ``H``.
        diameter: Diameter ``D`` of the set of models.
        rho: Target stability. Up to constants, it is the share of edits that may cause a recomputation.
    """

    n: int
    dimension: int
    lipschitz: float
    smoothness: float
    diameter: float
    rho: float

    def __post_init__(self) -> None:
        """Check every value."""
        require_count(least=2, n=self.n)
        require_count(least=1, dimension=self.dimension)
        require_positive(lipschitz=self.lipschitz, smoothness=self.smoothness, diameter=self.diameter, rho=self.rho)

    @property
    def condition(self) -> float:
        """The ratio ``H D / G``."""
        return self.smoothness * self.diameter / self.lipschitz

    @property
    def root_dimension(self) -> float:
        """The square root of the dimension, ``sqrt(d)``."""
        return math.sqrt(self.dimension)

    @property
    def stable_records(self) -> float:
        """The product ``rho n``."""
        return self.rho * self.n


@dataclass(frozen=True)
class Parameters:
    """The parameters of a run of a learner.

    Attributes:
        steps: Number of steps ``T``.
        batch_size: Batch size ``m``.
        step_size: Step size ``eta``.
        noise: Standard deviation ``sigma`` of the noise per coordinate; for quantised SGD, the grid's spacing ``tau``;
            0 for sub-sample-GD.
        excess_risk: Excess risk according to the theorem's rate.
    """

    steps: float
    batch_size: float
    step_size: float
    noise: float
    excess_risk: float


def whole_numbers(parameters: Parameters, *, n: int) -> tuple[int, int]:
    """Return the number of steps and the batch size, rounded up.

    A batch leaves out at least one record, which can serve as a replacement. Noise and step size depend on the number
    of steps, so call `theorem_22_at` or `proposition_7` again with the rounded numbers. For sub-sample-GD, whose
    stability is ``T m / n``, use `proposition_3_whole` instead.
    """
    require_count(least=2, n=n)
    return math.ceil(parameters.steps), min(max(math.ceil(parameters.batch_size), 1), n - 1)


def proposition_3(problem: ConvexProblem) -> Parameters:
    """Return the parameters of sub-sample-GD (Algorithm 19), for which ``T m = rho n``.

    Proposition 3 prints ``m >= 1`` together with a fixed ``T``. This would violate stability if
    ``G sqrt(rho n) < D H``. In that case, ``T = rho n`` is used.
    """
    root = math.sqrt(problem.stable_records)
    batch_size = max(root / problem.condition, 1.0)
    steps = problem.stable_records / batch_size
    step_size = min(1 / (2 * problem.smoothness), problem.diameter * root / (problem.lipschitz * steps))
    return Parameters(steps, batch_size, step_size, 0.0, problem.lipschitz * problem.diameter / root)


def proposition_3_whole(problem: ConvexProblem) -> Parameters:
    """Return the parameters of `proposition_3`, with whole numbers of steps and records such that ``T m <= rho n``.

    Raises:
        ParameterError: ``rho n`` is below 1, so not even one record may be used.
    """
    if problem.stable_records < 1:
        raise ParameterError(f"rho must be at least 1 / n = {1 / problem.n}, got {problem.rho}")
    real = proposition_3(problem)
    steps = max(math.floor(real.steps), 1)
    batch_size = min(math.floor(problem.stable_records / steps), problem.n - 1)
    return replace(real, steps=steps, batch_size=batch_size)


def proposition_1(problem: ConvexProblem, *, steps: float, batch_size: float) -> Parameters:
    """Return the parameters of accelerated noisy SGD (Algorithm 9) for a given number of steps and batch size.

    The noise is ``sigma = 8 sqrt(T) G / (n rho)``, and the step size is `noisy_step_size`. Amplification by
    sub-sampling requires ``T >= (n rho)^2 / (10.048 m^2)``.
    """
    sigma = stable_sigma(problem, steps=steps)
    g, diameter = problem.lipschitz, problem.diameter
    risk = (
        problem.smoothness * diameter**2 / steps**2
        + g * diameter / math.sqrt(steps * batch_size)
        + noise_floor(problem)
    )
    step_size = noisy_step_size(problem, steps=steps, batch_size=batch_size, sigma=sigma, accelerated=True)
    return Parameters(steps, batch_size, step_size, sigma, risk)


def proposition_7(problem: ConvexProblem, *, steps: float, batch_size: float) -> Parameters:
    """Return the parameters of noisy SGD (Algorithm 21), like `proposition_1` but without acceleration."""
    sigma = stable_sigma(problem, steps=steps)
    g, diameter = problem.lipschitz, problem.diameter
    risk = (
        problem.smoothness * diameter**2 / steps + g * diameter / math.sqrt(steps * batch_size) + noise_floor(problem)
    )
    step_size = noisy_step_size(problem, steps=steps, batch_size=batch_size, sigma=sigma, accelerated=False)
    return Parameters(steps, batch_size, step_size, sigma, risk)


def stable_sigma(problem: ConvexProblem, *, steps: float) -> float:
    """Return the noise ``8 sqrt(T) G / (n rho)``, with which a run is ``rho``-stable (Propositions 1 and 7)."""
    require_positive(steps=steps)
    return 8 * math.sqrt(steps) * problem.lipschitz / problem.stable_records


def noisy_step_size(
    problem: ConvexProblem, *, steps: float, batch_size: float, sigma: float, accelerated: bool
) -> float:
    """Return the step size ``min(1 / (2 H), D / ((G / sqrt(m) + sigma sqrt(d)) T^p))``.

    ``p`` is 3/2 with acceleration, and 1/2 without. Propositions 1 and 7 print no ``sqrt(d)``, which their proofs need.
    """
    require_positive(steps=steps, batch_size=batch_size)
    spread = problem.lipschitz / math.sqrt(batch_size) + sigma * problem.root_dimension
    return step_size_of_spread(problem, spread=spread, steps=steps, accelerated=accelerated)


def theorem_22(problem: ConvexProblem) -> Parameters:
    """Return the parameters with which accelerated noisy SGD recomputes for a share ``rho`` of edits.

    The parameters are those of the second branch of the theorem. This branch applies Proposition 1 with stability
    ``rho / sqrt(T)``: ``sigma = 8 T G / (n rho)``, ``T = (H D n rho / (G sqrt(d)))^(2/5)`` and
    ``m = (G / (H D))^2 T^3``. The rate is ``H D^2 / T^2``. The first branch of the theorem is `proposition_3`. The
    rates do not show which branch is better for actual numbers of records.
    """
    steps = (problem.condition * problem.stable_records / problem.root_dimension) ** 0.4
    return theorem_22_at(problem, steps=steps, batch_size=steps**3 / problem.condition**2)


def theorem_22_at(problem: ConvexProblem, *, steps: float, batch_size: float) -> Parameters:
    """Return the parameters of `theorem_22` for a given number of steps and batch size."""
    inner = inner_problem(problem, steps=steps)
    risk = problem.smoothness * problem.diameter**2 / steps**2
    return replace(proposition_1(inner, steps=steps, batch_size=batch_size), excess_risk=risk)


def inner_problem(problem: ConvexProblem, *, steps: float) -> ConvexProblem:
    """Return the problem at stability ``rho / sqrt(T)``.

    At this stability, the share of edits that cause a recomputation is about ``rho``.
    """
    require_positive(steps=steps)
    return replace(problem, rho=problem.rho / math.sqrt(steps))


def theorem_44(problem: ConvexProblem, *, printed_risk: bool = False) -> Parameters:
    """Return the parameters with which noisy SGD recomputes for a share ``rho`` of edits.

    ``T = (H D rho n / (G sqrt(d)))^(2/3)`` and ``m = (G / (H D))^2 T``. The rate is
    ``(sqrt(H) G D^2 sqrt(d) / (rho n))^(2/3)``.

    Args:
        problem: The constants.
        printed_risk: Whether the rate has ``G`` in the denominator, as printed; ``H D^2 / T`` has ``G`` in the
            numerator.
    """
    steps = (problem.condition * problem.stable_records / problem.root_dimension) ** (2 / 3)
    inner = inner_problem(problem, steps=steps)
    risk = problem.smoothness * problem.diameter**2 / steps
    if printed_risk:
        risk /= problem.lipschitz ** (4 / 3)
    return replace(proposition_7(inner, steps=steps, batch_size=steps / problem.condition**2), excess_risk=risk)


def proposition_8(problem: ConvexProblem, *, batch_size: float) -> Parameters:
    """Return the parameters of quantised SGD (Algorithm 23, Theorem 45).

    ``noise`` is the grid's spacing, ``tau = 4 G d T / (rho n)``, and
    ``T = max(rho n / (d^(3/2) sqrt(m)), (H D rho n / (G d^(3/2)))^(2/3))``.
    """
    require_positive(batch_size=batch_size)
    stable, power = problem.stable_records, problem.dimension**1.5
    steps = max(stable / (power * math.sqrt(batch_size)), (problem.condition * stable / power) ** (2 / 3))
    resolution = 4 * problem.lipschitz * problem.dimension * steps / stable
    risk = (math.sqrt(problem.smoothness) * problem.lipschitz * problem.diameter**2 * power / stable) ** (2 / 3)
    step_size = noisy_step_size(problem, steps=steps, batch_size=batch_size, sigma=resolution, accelerated=False)
    return Parameters(steps, batch_size, step_size, resolution, risk)


def theorem_45(problem: ConvexProblem) -> Parameters:
    """Return the parameters of `proposition_8` at the largest useful batch size, ``(G / (H D))^2 T`` (Remark 6)."""
    steps = (problem.condition * problem.stable_records / problem.dimension**1.5) ** (2 / 3)
    return proposition_8(problem, batch_size=steps / problem.condition**2)


def noise_floor(problem: ConvexProblem) -> float:
    """Return ``G D sqrt(d) / (rho n)``, the part of a rate that is due to noise, for any number of steps."""
    return problem.lipschitz * problem.diameter * problem.root_dimension / problem.stable_records


def step_size_of_spread(problem: ConvexProblem, *, spread: float, steps: float, accelerated: bool) -> float:
    """Return the step size ``min(1 / (2 H), D / (spread T^p))``.

    ``p`` is 3/2 with acceleration, and 1/2 without.
    """
    horizon = math.pow(steps, 1.5 if accelerated else 0.5)
    return min(1 / (2 * problem.smoothness), problem.diameter / (spread * horizon))
