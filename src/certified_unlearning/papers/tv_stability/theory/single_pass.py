"""Printed noise and rates of chapter 5, for comparison in claims; rates have neither constants nor logarithms."""

import math
from dataclasses import dataclass

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.tv.erm import ConvexProblem
from certified_unlearning.accounting.tv.tree import Logarithm, theorem_25_sigma


def theorem_26_sigma(problem: ConvexProblem, *, logarithm: Logarithm = "2") -> float:
    """Return the printed noise of Frank-Wolfe's nodes, ``8 (H D + G) log(n) / rho``."""
    half = problem.smoothness * problem.diameter + problem.lipschitz
    return theorem_25_sigma(n=problem.n, rho=problem.rho, sensitivity=half, logarithm=logarithm)


def theorem_26_risk(problem: ConvexProblem) -> float:
    """Return Frank-Wolfe's rate ``(G + H D) D (1 / sqrt(n) + sqrt(d) / (n rho))``."""
    scale = (problem.lipschitz + problem.smoothness * problem.diameter) * problem.diameter
    return scale * (1 / math.sqrt(problem.n) + problem.root_dimension / problem.stable_records)


def theorem_27_sigma(problem: ConvexProblem, *, logarithm: Logarithm = "2") -> float:
    """Return the printed noise of dual averaging's nodes, ``8 G log(n) / rho``."""
    return theorem_25_sigma(n=problem.n, rho=problem.rho, sensitivity=problem.lipschitz, logarithm=logarithm)


def theorem_27_risk(problem: ConvexProblem) -> float:
    """Return dual averaging's rate ``G D (1 / sqrt(n) + sqrt(sqrt(d) / (n rho)))``; losses need not be smooth."""
    noise = math.sqrt(problem.root_dimension / problem.stable_records)
    return problem.lipschitz * problem.diameter * (1 / math.sqrt(problem.n) + noise)


def theorem_27_printed_step_size(problem: ConvexProblem) -> float:
    """Return Theorem 27's ``D d^(1/4) sqrt(ln n) / (G sqrt(n rho))``, for comparison with `balanced_step_size`.

    The printed form exchanges ``d`` and ``rho`` by mistake. With the printed form, more noise would require longer
    steps.
    """
    root = math.sqrt(math.log(problem.n) / problem.stable_records)
    return problem.diameter * math.sqrt(problem.root_dimension) * root / problem.lipschitz


@dataclass(frozen=True)
class GeneralisedLinearProblem:
    """A generalised linear model: losses ``phi_y(<w, x>)``.

    Attributes:
        n: The number of records.
        lipschitz: The Lipschitz constant ``G`` of ``phi_y``.
        smoothness: The smoothness ``H`` of ``phi_y``; 0 if only Lipschitz losses are used.
        row_norm: The largest norm ``|X|`` of a row.
        model_norm: The norm ``|w*|`` of the best model, known or guessed.
        rho: The required stability.
    """

    n: int
    lipschitz: float
    smoothness: float
    row_norm: float
    model_norm: float
    rho: float

    def __post_init__(self) -> None:
        """Check every value."""
        require_count(least=2, n=self.n)
        require_non_negative(smoothness=self.smoothness)
        require_positive(lipschitz=self.lipschitz, row_norm=self.row_norm, model_norm=self.model_norm, rho=self.rho)

    @property
    def projected_smoothness(self) -> float:
        """``4 H |X|^2``, as in the proof; Algorithm 14 prints ``2 H |X|^2``."""
        return 4 * self.smoothness * self.row_norm**2


def theorem_28_risk(problem: GeneralisedLinearProblem) -> float:
    """Return the dimension-free rate of projection and Frank-Wolfe on smooth generalised linear models."""
    g, h, x, w = problem.lipschitz, problem.smoothness, problem.row_norm, problem.model_norm
    statistical = (g * x + h * x**2 * w) * w / math.sqrt(problem.n)
    noise = h ** (1 / 3) * g ** (2 / 3) * (w * x) ** (4 / 3) + h * x**2 * w**2
    return float(statistical + noise / (problem.n * problem.rho) ** (2 / 3))


def theorem_29_dimension(problem: GeneralisedLinearProblem, *, printed: bool = False) -> float:
    """Return the projected dimension of Lipschitz models, ``(n rho)^(2/3)``.

    Theorem 29 prints ``sqrt(n rho)``, with which its rate would be ``(n rho)^(-1/4)``.
    """
    return float((problem.n * problem.rho) ** (1 / 2 if printed else 2 / 3))


def theorem_29_errors(problem: GeneralisedLinearProblem, *, dimension: float) -> tuple[float, float]:
    """Return dual averaging's errors from noise and from projection if rows are projected to ``dimension`` columns."""
    require_positive(dimension=dimension)
    scale = _scale(problem)
    return scale * math.sqrt(math.sqrt(dimension) / (problem.n * problem.rho)), scale / math.sqrt(dimension)


def _scale(problem: GeneralisedLinearProblem) -> float:
    return problem.lipschitz * problem.row_norm * problem.model_norm
