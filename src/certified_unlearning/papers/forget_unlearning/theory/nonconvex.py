"""Plans of data deletion by noisy gradient descent on bounded non-convex losses.

Source: Theorem 5.2 of Chourasia and Shah, Forget Unlearning (ICML 2023), with its corrections. The notation is that of
`gibbs`; the start is ``N(0, sigma^2 / lambda)``.

The formulas do not give a useful certificate of risk: ``sigma^2`` shrinks like ``1 / n^2``, and the losses must shrink
with it. With such small losses, the excess risk of the constant model 0 (`NonconvexPlan.zero_model_risk`) is below the
certified risk.
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
    """A plan of learning and answering requests (Theorem 5.2), with the bounds that the plan certifies.

    Attributes:
        problem: The constants of the problem.
        records: The largest number ``r`` of records in one request.
        alpha: The Rényi order.
        step_size: The step size ``eta``.
        sigma: The noise scale.
        learning_steps: The number ``K_A`` of learning steps.
        deletion_steps: The number ``K`` of steps for every request.
        epsilon_dp: A bound on the divergence of every *single call*, for a record that is present. In a chain of calls,
            the bounds add up (Theorem G.7).
        epsilon_dd: A bound on the divergence of every model from the Gibbs distribution of its data, under requests
            that are fixed in advance. The proof compares each model with a Gibbs distribution. This comparison does not
            hold conditionally on an observed model. If requests depend on published models, only the chain of the calls
            that saw the record gives a bound.
        risk_bound: An upper bound on the excess risk of every published model.
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
        """The variance of the Gaussian start in every coordinate, ``sigma^2 / lambda``."""
        return self.sigma**2 / self.problem.regularisation

    @property
    def largest_loss(self) -> float:
        """The largest allowed absolute value of the losses."""
        return self.problem.largest_loss(self.sigma)

    @property
    def zero_model_risk(self) -> float:
        """An upper bound on the excess risk of the constant model 0: twice `largest_loss`."""
        return 2 * self.largest_loss

    @property
    def gradients_saved(self) -> int:
        """``n (K_A - K)``, the single-record gradients saved at every request; negative if retraining is cheaper."""
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
    """Return Theorem 5.2's plan, with its step size lowered to the limit of Theorem G.22.

    The step size is ``eta = lambda / (64 B smoothness^2) min(epsilon_dd / (alpha d), 1 / alpha^2)``. The numbers of
    steps are ``K_A = (2 B / (lambda eta)) log(alpha log(B) / epsilon_dd)`` and ``K = (2 B / (lambda eta)) log(2 alpha
    (epsilon_dd + (r / n) log(B)) / epsilon_dd)``, and numbers below 0 become 0. The noise is ``sigma^2 = alpha L^2 eta
    max(K_A, K) / (epsilon_dp n^2)``.

    Args:
        problem: The constants of the problem.
        alpha: The Rényi order, above 1.
        epsilon_dp: The target for present records at every single call; below ``d``.
        epsilon_dd: The target for deleted records, at most ``epsilon_dp``.
        records: The largest number ``r`` of records in one request.
        gradient_field: The gradients that the steps follow. The theorem covers clipped gradients only in the form
            ``clipped-bounded``.

    Raises:
        AssumptionError: ``epsilon_dd`` exceeds ``epsilon_dp``, ``epsilon_dp`` is not below ``d``, or the theorem does
            not hold with this clipping.
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
    """Return ``eta K_A`` and ``eta K`` before the numbers of steps are rounded.

    The products ``eta K_A`` and ``eta K`` do not depend on the step size ``eta``.
    """
    scale = 2 * math.exp(log_boundedness) / regularisation
    learning = scale * math.log(alpha * log_boundedness / epsilon_dd)
    return learning, scale * math.log(2 * alpha * (1 + fraction * log_boundedness / epsilon_dd))


def _variance_per_time(problem: BoundedProblem, alpha: float, epsilon_dp: float) -> float:
    """Return the value of ``sigma^2 / (eta K)`` for which Theorem G.7 gives ``epsilon_dp``."""
    return alpha * (problem.lipschitz / problem.n) ** 2 / epsilon_dp
