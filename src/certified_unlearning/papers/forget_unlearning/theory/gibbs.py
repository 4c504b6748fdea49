"""Bounded non-convex losses: the distance of noisy gradient descent from its Gibbs distribution, and the excess risk.

Source: Theorems G.22, G.24 and 5.2 and Lemma G.23 of Chourasia and Shah, Forget Unlearning (ICML 2023). A record's loss
without its regulariser ``lambda |theta|^2 / 2`` is ``L``-Lipschitz and within ``sigma^2 log(B) / 4`` of 0. The Gibbs
distribution ``pi`` is proportional to ``exp(-f_D / sigma^2)``. Divergences from ``pi`` are one-sided: the model is the
first argument.
"""

import math
from dataclasses import dataclass

from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.deletion.rates import check_order, check_steps
from certified_unlearning.errors import AssumptionError, ParameterError


@dataclass(frozen=True)
class BoundedProblem:
    """The mean of ``n`` bounded losses with a regulariser.

    Attributes:
        n: The number of records.
        dimension: The dimension ``d``.
        lipschitz: The Lipschitz constant ``L`` of each record's loss without its regulariser.
        regularisation: The coefficient ``lambda``.
        smoothness: The paper's ``lambda + beta``, the smoothness of each record's loss with its regulariser.
        boundedness: The constant ``B``, above 1.

    Raises:
        AssumptionError: ``regularisation`` exceeds ``smoothness``.
    """

    n: int
    dimension: int
    lipschitz: float
    regularisation: float
    smoothness: float
    boundedness: float

    def __post_init__(self) -> None:
        require_count(least=1, n=self.n, dimension=self.dimension)
        require_positive(lipschitz=self.lipschitz, regularisation=self.regularisation, smoothness=self.smoothness)
        if not 1 < self.boundedness < math.inf:
            raise ParameterError(f"boundedness must be a finite number above 1, got {self.boundedness}")
        if self.regularisation > self.smoothness:
            raise AssumptionError(
                "smoothness is that of the loss with its regulariser, so it must be at least regularisation = "
                f"{self.regularisation}, got smoothness = {self.smoothness}"
            )

    def largest_loss(self, sigma: float) -> float:
        """Return the bound on the losses, ``sigma^2 log(B) / 4``."""
        return sigma**2 * math.log(self.boundedness) / 4


def largest_step_size(problem: BoundedProblem, *, alpha: float) -> float:
    """Return Theorem G.22's limit on the step size, ``lambda / (64 B alpha^2 smoothness^2)``.

    Raises:
        ParameterError: ``alpha`` is not above 1.
    """
    check_order(alpha)
    return problem.regularisation / (64 * problem.boundedness * (alpha * problem.smoothness) ** 2)


def divergence_from_gibbs(
    problem: BoundedProblem, *, step_size: float, alpha: float, steps: float, start: float
) -> float:
    """Return Theorem G.22's bound on the divergence of the model from its Gibbs distribution ``pi`` after some steps.

    The bound is ``alpha exp(-lambda eta K / (2 B)) start + 32 d eta alpha B smoothness^2 / lambda``.

    Args:
        problem: The constants of the problem.
        step_size: The step size ``eta``.
        alpha: The Rényi order, above 1.
        steps: The number ``K`` of steps; may be infinite.
        start: The divergence before these steps; it is at most ``log(B) / 2`` at the start of learning.

    Raises:
        AssumptionError: ``step_size`` is above `largest_step_size`.
    """
    _check_step_size(problem, step_size, alpha)
    require_non_negative(start=start)
    check_steps(steps)
    decay = problem.regularisation * step_size * steps / (2 * problem.boundedness)
    floor = 32 * problem.dimension * step_size * alpha * problem.boundedness
    return alpha * math.exp(-decay) * start + floor * problem.smoothness**2 / problem.regularisation


def gibbs_risk(problem: BoundedProblem, *, sigma: float) -> float:
    """Return Theorem G.24's bound on the excess risk of a Gibbs distribution.

    The bound is ``(d sigma^2 / 2) (log(smoothness / lambda) + sqrt(B))``.
    """
    require_positive(sigma=sigma)
    condition = math.log(problem.smoothness / problem.regularisation)
    return problem.dimension * sigma**2 / 2 * (condition + math.sqrt(problem.boundedness))


def nonconvex_risk(problem: BoundedProblem, *, sigma: float, epsilon_dd: float) -> float:
    """Return Theorem 5.2's bound on the excess risk (Eq. 162) of every model of the stream.

    The bound is ``L sigma sqrt(2 epsilon_dd B / lambda) + epsilon_dd B sigma^2 (lambda + smoothness) / lambda + (d
    sigma^2 / 2) (log(smoothness / lambda) + 2 sqrt(B))``.
    """
    require_positive(sigma=sigma, epsilon_dd=epsilon_dd)
    weight, bound = problem.regularisation, problem.boundedness
    near = problem.lipschitz * sigma * math.sqrt(2 * epsilon_dd * bound / weight)
    near += epsilon_dd * bound * sigma**2 * (weight + problem.smoothness) / weight
    return near + gibbs_risk(problem, sigma=sigma) + problem.dimension * sigma**2 / 2 * math.sqrt(bound)


def _check_step_size(problem: BoundedProblem, step_size: float, alpha: float) -> None:
    require_positive(step_size=step_size)
    limit = largest_step_size(problem, alpha=alpha)
    if step_size > limit:
        raise AssumptionError(f"Theorem G.22 needs step_size <= {limit}, got step_size = {step_size}")
