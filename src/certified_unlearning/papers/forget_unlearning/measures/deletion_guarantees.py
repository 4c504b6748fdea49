"""Measures of *Forget Unlearning* that accounting alone computes: the paper's formulas, compared with exact values.

The settings are `C1`, which has small, round numbers, and `C2`, which has the size of MNIST. Exact values are for
linear losses, which satisfy every assumption of the convex theorems. The measures need no results of runs.
"""

import math
from typing import Any, Literal

import numpy as np

from certified_unlearning.accounting.deletion.planning import DeletionPlan, plan_deletion
from certified_unlearning.papers.forget_unlearning.theory.attacks import encode_then_delete_advantage
from certified_unlearning.papers.forget_unlearning.theory.comparison import table_1
from certified_unlearning.papers.forget_unlearning.theory.counting import counting_limits
from certified_unlearning.papers.forget_unlearning.theory.exact import exact_deletion_curve
from certified_unlearning.papers.forget_unlearning.theory.gibbs import BoundedProblem, largest_step_size
from certified_unlearning.papers.forget_unlearning.theory.nonconvex import plan_nonconvex_deletion
from certified_unlearning.papers.forget_unlearning.theory.soundness import least_noise_multiplier
from certified_unlearning.reproduction.claims.registry import changes, measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

Setting = Literal["C1", "C2"]
SETTINGS: dict[Setting, dict[str, Any]] = {
    "C1": {
        "n": 1000,
        "dimension": 10,
        "lipschitz": 1.0,
        "strong_convexity": 0.05,
        "smoothness": 0.30,
        "alpha": 8.0,
        "epsilon_dp": 1.0,
        "epsilon_dd": 0.1,
        "records": 10,
    },
    "C2": {
        "n": 60_000,
        "dimension": 50,
        "lipschitz": 1.0,
        "strong_convexity": 0.01,
        "smoothness": 0.26,
        "alpha": 1 + 2 * math.log(1e5),
        "epsilon_dp": 0.5,
        "epsilon_dd": 0.05,
        "records": 100,
    },
}


def setting_plan(setting: Setting, **changed: Any) -> DeletionPlan:
    """Return Theorem 5.1's plan in a setting, with the given values changed."""
    return plan_deletion(**{**SETTINGS[setting], **changed})


def exact_divergence(plan: DeletionPlan, steps: float, steps_before: float = math.inf) -> float:
    """Return the exact divergence on linear losses, at the plan's order."""
    curve = exact_deletion_curve(plan.problem, sigma=plan.sigma, steps=steps, steps_before=steps_before)
    return float(curve(np.array([plan.alpha]))[0])


@measure
def changes_of_deletion_steps(*, setting: Setting) -> dict[str, float]:
    """Return how the number of deletion steps for privacy changes if one of r, n and d is multiplied by ten."""
    steps = setting_plan(setting, certify_risk=False).deletion_steps
    return {
        f"ten times {name}": setting_plan(
            setting, certify_risk=False, **{name: 10 * SETTINGS[setting][name]}
        ).deletion_steps
        - steps
        for name in ("records", "n", "dimension")
    }


@measure
def exact_over_certified(*, setting: Setting, budget: Literal["epsilon_dp", "epsilon_dd"]) -> Quantity:
    """Return the exact divergence divided by the certified one, for a present or for a deleted record."""
    plan = setting_plan(setting, certify_risk=False)
    present = budget == "epsilon_dp"
    exact = exact_divergence(plan, 0 if present else plan.deletion_steps)
    return Quantity(exact / SETTINGS[setting][budget], f"exact divergence over {budget}")


@sweep("{setting}")
def deletion_saving(*, setting: Setting) -> float:
    """Return the number of single-record gradients that a request saves over retraining, at the certified risk."""
    return setting_plan(setting).gradients_saved


@measure
def divergence_over_figure_1(*, setting: Setting) -> Quantity:
    """Return the exact divergence after infinitely many learning steps, divided by the limit that Fig. 1 prints."""
    plan = setting_plan(setting)
    problem = plan.problem
    printed = plan.alpha * (problem.lipschitz / (problem.n * plan.sigma)) ** 2 / problem.strong_convexity
    return Quantity(exact_divergence(plan, 0) / printed, "exact over printed")


@measure
def lead_in_table_1(*, n: int, dimension: int, epsilon: float, request: int) -> dict[str, float]:
    """Return the lead of noisy gradient descent over each other method of Table 1 that has no secret state.

    The lead is the saving of noisy gradient descent minus the saving of the other method.
    """
    *others, own = table_1(n=n, dimension=dimension, epsilon=epsilon, request=request)
    return {row.source: own.saved - row.saved for row in others if not row.has_secret_state}


@sweep("epsilon = {epsilon:g}")
def counting_limit(*, epsilon: float) -> float:
    """Return an upper bound on the advantage that a test of infinitely many releases can have.

    The releases are those of the counting construction that the proof of Theorem 3.2 prints.
    """
    return counting_limits(epsilon).most


@measure
def multiplier_epsilon(*, epsilon: float, delta: float, steps: int) -> Quantity:
    """Return the epsilon that Theorem G.7 gives for Remark G.8's printed multiplier; it should be ``epsilon``."""
    printed = least_noise_multiplier(epsilon, delta, steps=steps) / 2
    order = 1 - 2 * math.log(delta) / epsilon
    return Quantity(2 * order * steps / printed**2 - math.log(delta) / (order - 1), "epsilon achieved")


@sweep("epsilon_dp = {epsilon_dp:g}, {times} K", then=changes)
def adaptive_advantage(*, setting: Setting, epsilon_dp: float, times: int) -> float:
    """Return how encode-then-delete's exact advantage changes as the deletion steps, or epsilon_dp, change."""
    plan = setting_plan(setting, epsilon_dp=epsilon_dp, epsilon_dd=min(epsilon_dp, 0.1))
    return encode_then_delete_advantage(
        plan.problem,
        sigma=plan.sigma,
        learning_steps=setting_plan(setting).learning_steps,
        deletion_steps=times * setting_plan(setting, certify_risk=False).deletion_steps,
        edits=SETTINGS[setting]["n"] - 1,
    )


# --- Non-convex losses, and clipping ----------------------------------------------------------------------------------


def _bounded(smoothness: float = 1.5, dimension: int = 20) -> BoundedProblem:
    return BoundedProblem(10_000, dimension, 1.0, 1.0, smoothness, 2.0)


@measure
def step_size_over_limit(*, alpha: float, epsilon_dd: float, dimension: int) -> Quantity:
    """Return the step size that Theorem 5.2 prints, divided by the largest step size that Theorem G.22 allows."""
    problem = _bounded(dimension=dimension)
    printed = problem.regularisation * epsilon_dd / (64 * dimension * alpha * problem.boundedness)
    return Quantity(printed / problem.smoothness**2 / largest_step_size(problem, alpha=alpha), "printed over allowed")


@sweep("r / n = {fraction:g}")
def saving_factors(*, fraction: float) -> float:
    """Return ``log(log(B) / (2 (epsilon_dd + (r / n) log(B))))`` at ``epsilon_dd = log(B) / 4``, for each ``r / n``."""
    return math.log(2 / (1 + 4 * fraction))


@measure
def risk_over_zero_model() -> Quantity:
    """Return the certified risk of Theorem 5.2 divided by the risk of the zero model, in one fixed setting."""
    plan = plan_nonconvex_deletion(_bounded(), alpha=2.0, epsilon_dp=1.0, epsilon_dd=0.1, records=100)
    return Quantity(plan.risk_bound / plan.zero_model_risk, "certified over constant model")


@measure
def clipped_curvature() -> Quantity:
    """Return the smallest eigenvalue of the symmetrised Jacobian of a convex quadratic's clipped gradients.

    The quadratic has the curvatures 1 and 10, the clipping length is 1, and the point is ``(sqrt(2), sqrt(2) / 10)``.
    """
    curvature = np.diag([1.0, 10.0])
    gradient = curvature @ np.array([math.sqrt(2), math.sqrt(2) / 10])
    length = np.linalg.norm(gradient)
    jacobian = (np.eye(2) - np.outer(gradient, gradient) / length**2) @ curvature / length
    return Quantity(float(np.linalg.eigvalsh((jacobian + jacobian.T) / 2)[0]), "least eigenvalue")


@measure
def clipped_drift(*, periods: int) -> Quantity:
    """Return the change of a bounded sawtooth if its gradients are clipped to 1.

    In each period, the sawtooth rises with slope 10 over a length of 0.2 and falls with slope 1 over a length of 2.
    """
    return Quantity(periods * (min(10.0, 1.0) * 0.2 - 1.0 * 2.0), f"after {periods} periods")
