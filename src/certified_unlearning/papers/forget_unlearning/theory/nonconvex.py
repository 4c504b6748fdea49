"""Data deletion by noisy gradient descent on bounded non-convex losses, planned.

Source: Theorem 5.2 of Chourasia and Shah, Forget Unlearning (ICML 2023), with its corrections. Notation as in
`gibbs`; the start is ``N(0, sigma^2 / lambda)``.

Formulae rather than a useful certificate of risk: ``sigma^2`` shrinks like ``1 / n^2``, and so must the losses; then
the constant model 0 has a smaller excess risk (`NonconvexPlan.zero_model_risk`) than the one certified.
"""

import math
from dataclasses import dataclass

from certified_unlearning.accounting.core.search import least_whole
from certified_unlearning.accounting.deletion.conditions import (
    GradientField,
    require_budgets,
    require_request_size,
    require_survival,
)
from certified_unlearning.accounting.deletion.rates import check_order
from certified_unlearning.errors import AssumptionError
from certified_unlearning.papers.forget_unlearning.theory.gibbs import (
    BoundedProblem,
    divergence_from_gibbs,
    largest_step_size,
    nonconvex_risk,
)


@dataclass(frozen=True)
class NonconvexPlan:
    """How to learn and to answer requests (Theorem 5.2), and what is then certified, at the planned whole steps.

    Attributes:
        problem: The constants.
        records: ``r``, the most records of one request.
        alpha: Rényi order.
        step_size: ``eta``.
        sigma: Noise scale.
        learning_steps: ``K_A``.
        deletion_steps: ``K``, of every request.
        epsilon_dp: Bounds the divergence for a present record of every *single call*: over a chain of calls the
            bounds add up (Theorem G.7).
        epsilon_dd: Bounds the divergence of every model from the Gibbs law of its data, under requests fixed in
            advance. Given an observed model the argument by Gibbs laws says nothing: where requests depend on published
            models, the chain of the calls that saw the record is what bounds.
        risk_bound: The excess risk of every published model is at most this.
    """

    problem: BoundedProblem
    records: int
    alpha: float
    step_size: float
    sigma: float
    learning_steps: int
    deletion_steps: int
    epsilon_dp: float
    epsilon_dd: float
    risk_bound: float

    @property
    def start_variance(self) -> float:
        """Variance of the Gaussian start in every coordinate, ``sigma^2 / lambda``."""
        return self.sigma**2 / self.problem.regularisation

    @property
    def largest_loss(self) -> float:
        """The losses must not exceed it in absolute value."""
        return self.problem.largest_loss(self.sigma)

    @property
    def zero_model_risk(self) -> float:
        """Upper bound on the excess risk of the constant model 0: twice `largest_loss`."""
        return 2 * self.largest_loss

    @property
    def gradients_saved(self) -> int:
        """``n (K_A - K)``, gradients of single records at every request; negative where retraining is cheaper."""
        return self.problem.n * (self.learning_steps - self.deletion_steps)


def plan_nonconvex_deletion(
    problem: BoundedProblem,
    *,
    alpha: float,
    epsilon_dp: float,
    epsilon_dd: float,
    records: int = 1,
    gradient_field: GradientField = "lipschitz",
) -> NonconvexPlan:
    """Return Theorem 5.2's plan, its step size lowered to what Theorem G.22 needs.

    ``eta = lambda / (64 B smoothness^2) min(epsilon_dd / (alpha d), 1 / alpha^2)``,
    ``K_A = (2 B / (lambda eta)) log(alpha log(B) / epsilon_dd)``,
    ``K = (2 B / (lambda eta)) log(2 alpha (epsilon_dd + (r / n) log(B)) / epsilon_dd)``, counts below 0 become 0, and
    ``sigma^2 = alpha L^2 eta max(K_A, K) / (epsilon_dp n^2)``.

    Args:
        problem: The constants.
        alpha: Rényi order, above 1.
        epsilon_dp: Target for present records, at every single call; below ``d``.
        epsilon_dd: Target for deleted records, at most ``epsilon_dp``.
        records: ``r``, the most records of one request.
        gradient_field: What the steps follow. The only clipped gradients that are covered are ``clipped-bounded``.

    Raises:
        AssumptionError: ``epsilon_dd`` exceeds ``epsilon_dp``, that is not below ``d``, or the theorem does not survive
            the clipping.
    """
    require_survival("Theorem 5.2", gradient_field)
    require_budgets(epsilon_dp, epsilon_dd)
    require_request_size(records, problem.n)
    check_order(alpha)
    if epsilon_dp >= problem.dimension:
        raise AssumptionError(
            f"Theorem 5.2 needs epsilon_dp < dimension = {problem.dimension}, got epsilon_dp = {epsilon_dp}"
        )
    step_size = largest_step_size(problem, alpha=alpha) * min(1.0, alpha * epsilon_dd / problem.dimension)
    fraction, log_boundedness = records / problem.n, math.log(problem.boundedness)

    def after(steps: int, start: float) -> float:
        return divergence_from_gibbs(problem, step_size=step_size, alpha=alpha, steps=steps, start=start)

    def least_steps(time: float, start: float) -> int:
        return least_whole(max(time, 0.0) / step_size, lambda steps: after(steps, start) <= epsilon_dd, minimum=0)

    times = _times(problem.regularisation, log_boundedness, alpha, epsilon_dd, fraction)
    starts = log_boundedness / 2, epsilon_dd + fraction * log_boundedness
    learning, deletion = map(least_steps, times, starts)
    sigma = math.sqrt(_variance_per_time(problem, alpha, epsilon_dp) * step_size * max(learning, deletion))
    return NonconvexPlan(
        problem,
        records=records,
        alpha=alpha,
        step_size=step_size,
        sigma=sigma,
        learning_steps=learning,
        deletion_steps=deletion,
        epsilon_dp=epsilon_dp,
        epsilon_dd=max(map(after, (learning, deletion), starts)),
        risk_bound=nonconvex_risk(problem, sigma=sigma, epsilon_dd=epsilon_dd),
    )


def _times(
    regularisation: float, log_boundedness: float, alpha: float, epsilon_dd: float, fraction: float
) -> tuple[float, float]:
    """Return ``eta K_A`` and ``eta K`` before rounding; the step size cancels."""
    scale = 2 * math.exp(log_boundedness) / regularisation
    learning = scale * math.log(alpha * log_boundedness / epsilon_dd)
    return learning, scale * math.log(2 * alpha * (1 + fraction * log_boundedness / epsilon_dd))


def _variance_per_time(problem: BoundedProblem, alpha: float, epsilon_dp: float) -> float:
    """Return what ``sigma^2`` is divided by ``eta K`` where Theorem G.7 gives ``epsilon_dp``."""
    return alpha * (problem.lipschitz / problem.n) ** 2 / epsilon_dp
