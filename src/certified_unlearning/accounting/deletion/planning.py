"""Data deletion by noisy gradient descent on convex losses: the guarantees, and the numbers of steps they need.

Source: Chourasia and Shah, Forget Unlearning: Towards True Data-Deletion in Machine Learning (ICML 2023). A model is
learned by ``K_A`` steps ``theta <- theta - eta grad f_D(theta) + sqrt(2 eta) sigma N(0, I)`` from a Gaussian start.
Every request replaces up to ``r`` records and is answered by ``K`` such steps on the new data, from the published
model. Only the model is kept between requests. There are two guarantees. Both are bounds on Rényi divergences of the
same order ``alpha`` (the paper's ``q``). ``epsilon_dp`` bounds the divergence between models on two data sets that
differ in one *present* record. ``epsilon_dd`` bounds the divergence between the model and one that never saw a
*deleted* record. The comparator of every bound here is not retraining, but the same run on data in which that record
was replaced at the start.

In a `Problem`, ``strong_convexity`` is the weight ``lambda`` of the regulariser. ``smoothness`` is the paper's ``lambda
+ beta``, ``lipschitz`` is its ``L`` (without the regulariser), and ``sensitivity(records)`` is its ``2 L m / n``. Every
bound holds for two data sets that differ in ``records`` records. In the paper's bounds, ``records`` is 1.
`dynamics.corollary_1` is Theorem G.9, which bounds the divergence for a remaining record after any chain of calls.
`dynamics.composition` is Theorem G.7, which needs no convexity.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np

from certified_unlearning.accounting.core.checks import require_count, require_counts, require_positive
from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.accounting.core.pooling import pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.rounding import EXACT
from certified_unlearning.accounting.core.search import least_whole
from certified_unlearning.accounting.deletion.conditions import (
    GradientField,
    require_budgets,
    require_observable,
    require_survival,
)
from certified_unlearning.accounting.deletion.rates import (
    check_order,
    check_steps,
    least_sigma,
    lemma_5_rate,
    linear_curve,
    sharp_rate,
)
from certified_unlearning.accounting.deletion.utility import certified_risk, steps_for_risk
from certified_unlearning.accounting.shifted import interpolation as shifted
from certified_unlearning.accounting.shifted.arithmetic import computed, langevin_floor
from certified_unlearning.errors import AssumptionError, ParameterError

# `simplified`: Theorem G.15 as stated. `tight`: the last line of that theorem's proof. `doubled` and `shifted` are not
# claims of the paper. `doubled`: while both runs see the same data, their drifts coincide, and the divergence falls
# twice as fast. `shifted`: shifted interpolation of the same two phases. No bound that covers all these losses and
# starts can be smaller than `shifted`.
DeletionForm = Literal["simplified", "tight", "doubled", "shifted"]


def start_variance(problem: Problem, sigma: float) -> float:
    """Return the variance of the paper's start, ``sigma^2 / (lambda (1 - eta lambda / 2))``.

    Noisy steps preserve this variance if the objective is only the regulariser.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    require_positive(sigma=sigma)
    return 2 * sigma**2 / sharp_rate(problem)


def deletion_curve(
    problem: Problem,
    *,
    sigma: float,
    steps: float,
    steps_before: float = math.inf,
    records: int = 1,
    form: DeletionForm = "simplified",
) -> RenyiCurve:
    """Return Theorem G.15's bound on the divergence of the model from one that never saw the deleted records.

    The bound is ``alpha (s / sigma)^2 (1 - exp(-c eta steps_before)) exp(-c' eta steps) / (2 c)`` with the sensitivity
    ``s``. `simplified` has ``c = c' = lambda / 2``. `tight` has ``c = c' = lambda (1 - eta lambda / 2)``. `doubled` has
    the ``c`` of `tight` and ``c' = 2 c``. `shifted` uses `pooling.pooled_mu` instead. The bound holds for every start
    that does not depend on data. There may be any number of earlier requests of any sizes, if those requests were fixed
    in advance. The bound is symmetric in the two distributions. If the problem includes rounding errors, `shifted` with
    these errors is a bound that holds for computed runs. In this case, every form returns at least this bound.

    Args:
        problem: The constants.
        sigma: Noise scale.
        steps: Number ``K`` of steps since the deletion, possibly infinite.
        steps_before: Number of steps of learning and of all requests while the records were present, possibly infinite.
        records: Number of deleted records, which the bound protects jointly.
        form: The form of the bound.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    exact = linear_curve(problem.sensitivity(records), sigma, _factor(problem, steps, steps_before, form))
    return _computed(problem, exact, [_mu(problem, sigma, records, steps, steps_before)])


def adaptive_deletion_curve(
    problem: Problem,
    *,
    sigma: float,
    learning_steps: int,
    request_steps: Sequence[int],
    observed: Sequence[int],
    records: int = 1,
    form: DeletionForm = "simplified",
) -> RenyiCurve:
    """Return the bound of a corrected Theorem 4.3 for convex losses. Requests may depend on observed models.

    Between observed models, requests are fixed. So `deletion_curve` (Theorem G.9 if no step follows the deletion) holds
    for the steps that follow *each* observed model, and the divergences add up. Their sum is at most the printed
    ``epsilon_dd + p epsilon_dp``. The sum bounds the observed models and the released one jointly. Therefore it also
    bounds all later releases, which Theorem 4.1 does not. For `shifted`, a stronger statement holds: no test has an
    advantage above the `soundness.gaussian_advantage` of this bound.

    Args:
        problem: The constants.
        sigma: Noise scale.
        learning_steps: Number of learning steps, ``K_A``. If a request added the records, counting starts with the
            steps of that request.
        request_steps: Number of steps of each request. The last request deletes the records.
        observed: The models on which requests may depend, in increasing order: 0 is the learned model, and ``j`` is the
            model after request ``j``.
        records: Number of deleted records, which the bound protects jointly.
        form: The form of the bound.

    Raises:
        ParameterError: An observed model comes after the deletion.
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    require_count(least=0, learning_steps=learning_steps)
    require_counts("request_steps", request_steps, least=0)
    require_observable(observed, request=len(request_steps))
    present = [learning_steps, *request_steps[:-1]]
    parts, since = [], 0
    for model in observed:
        parts.append((0, sum(present[since : model + 1])))
        since = model + 1
    parts.append((request_steps[-1], sum(present[since:])))
    factor = sum(_factor(problem, steps, before, form) for steps, before in parts)
    exact = linear_curve(problem.sensitivity(records), sigma, factor)
    return _computed(problem, exact, [_mu(problem, sigma, records, steps, before) for steps, before in parts])


@dataclass(frozen=True)
class DeletionPlan:
    """A plan for learning and for answering requests (Theorem 5.1): whole numbers of steps, and the certified bounds.

    Attributes:
        problem: The constants, with step size ``1 / (2 smoothness)`` and adjacency ``replace``.
        sigma: Noise scale.
        start_variance: Variance of the Gaussian start in every coordinate.
        alpha: Rényi order.
        learning_steps: Number of learning steps, ``K_A``.
        deletion_steps: Number of steps of every request, ``K``.
        epsilon_dp: Bound on the divergence for a present record, after any number of requests.
        epsilon_dd: Bound on the divergence for a deleted record, under requests fixed in advance.
        risk_bound: Upper bound on the excess risk of every published model; None if the steps were planned for privacy
            alone.
        gradient_field: The gradients that the steps follow.
    """

    problem: Problem
    sigma: float
    start_variance: float
    alpha: float
    learning_steps: int
    deletion_steps: int
    epsilon_dp: float
    epsilon_dd: float
    risk_bound: float | None
    gradient_field: GradientField = "lipschitz"

    @property
    def step_size(self) -> float:
        """The step size ``eta``."""
        return self.problem.step_size

    @property
    def gradients_saved(self) -> int:
        """``n (K_A - K)``, the per-record gradients that each request saves; negative if retraining is cheaper."""
        return self.problem.n * (self.learning_steps - self.deletion_steps)


def plan_deletion(
    *,
    n: int,
    dimension: int,
    lipschitz: float,
    strong_convexity: float,
    smoothness: float,
    alpha: float,
    epsilon_dp: float,
    epsilon_dd: float,
    records: int = 1,
    certify_risk: bool = True,
    gradient_field: GradientField = "lipschitz",
    form: DeletionForm = "simplified",
    dtype: str | None = None,
) -> DeletionPlan:
    """Return Theorem 5.1's plan: the fewest steps that certify deletion and, if requested, the excess risk.

    The plan has ``eta = 1 / (2 smoothness)``, ``sigma^2 = 4 alpha L^2 / (lambda epsilon_dp n^2)`` and ``K_A = 4 kappa
    log(epsilon_dp n^2 / (4 alpha d))``. In the form `simplified`, ``K = 4 kappa log(max(epsilon_dp / epsilon_dd, 5
    kappa, 8 epsilon_dp r^2 / (alpha d)))``; only the risk needs the last two terms. Numbers of steps below 0 become 0.

    Args:
        n: Number of records.
        dimension: Number of parameters, ``d``.
        lipschitz: Lipschitz constant ``L`` of each record's loss *without* its regulariser.
        strong_convexity: Weight ``lambda`` of the regulariser ``lambda |theta|^2 / 2``.
        smoothness: Smoothness ``lambda + beta`` of each record's loss with its regulariser.
        alpha: Rényi order, above 1.
        epsilon_dp: Target for present records.
        epsilon_dd: Target for deleted records, at most ``epsilon_dp``.
        records: Largest number of records of one request, ``r``. The deletion steps of a privacy-only plan do not
            depend on ``r``.
        certify_risk: Whether the steps must also suffice for the risk bound.
        gradient_field: The gradients that the steps follow. Among clipped gradients, only ``clipped-convex`` ones are
            covered. The certified risk is then that of the convex function with these gradients, not that of the loss.
        form: The bound by which the deletion steps are planned.
        dtype: ``float32`` or ``float64``, the type in which logistic regression is computed on rows of norm
            ``lipschitz``. The plan then accounts for rounding errors in this type. The guarantees hold except for a
            total variation of ``problem.rounding.failure`` per step. None means exact arithmetic, as in the theorem.

    Raises:
        AssumptionError: ``strong_convexity`` is 0 or exceeds ``smoothness``, ``epsilon_dd`` exceeds ``epsilon_dp``, the
            theorem does not survive the clipping, or the noise is so small that rounding breaks a guarantee.
    """
    require_survival("Theorem 5.1", gradient_field)
    require_positive(smoothness=smoothness)
    require_budgets(epsilon_dp, epsilon_dd)
    check_order(alpha)
    problem = Problem(n, strong_convexity, smoothness, lipschitz, 1 / (2 * smoothness))
    sigma = least_sigma(problem, alpha=alpha, epsilon=epsilon_dp)
    if dtype is not None:
        if gradient_field != "lipschitz":
            raise AssumptionError(
                "rounding is bounded only for gradients that are not clipped, on rows of norm at most lipschitz: leave "
                f"out dtype, or set gradient_field to 'lipschitz', got gradient_field = {gradient_field!r}"
            )
        problem = _computed_on_rows(problem, dimension, dtype)
        present = _mu(problem, sigma, 1, 0, math.inf)
        if alpha * present**2 / 2 > epsilon_dp or alpha * langevin_floor(problem).mu(sigma) ** 2 / 2 > epsilon_dd:
            raise AssumptionError(
                f"the noise that epsilon_dp = {epsilon_dp} requires, sigma = {sigma:.6g}, is too small for {dtype}: "
                "with rounding, the guarantees do not hold; lower epsilon_dp, raise epsilon_dd, or use dtype float64"
            )
    learning, deletion = steps_for_risk(problem, alpha=alpha, dimension=dimension, epsilon=epsilon_dp, records=records)

    def epsilon_after(steps: int) -> float:
        return float(deletion_curve(problem, sigma=sigma, steps=steps, form=form)(np.array([alpha]))[0])

    estimate = math.log(epsilon_dp / epsilon_dd) / (_rate(problem, form) * problem.step_size)
    for_privacy = least_whole(estimate, lambda steps: epsilon_after(steps) <= epsilon_dd, minimum=0)
    risk_bound = certified_risk(problem, alpha=alpha, dimension=dimension, epsilon=epsilon_dp)
    deletion_steps = max(for_privacy, math.ceil(deletion)) if certify_risk else for_privacy
    return DeletionPlan(
        problem,
        sigma=sigma,
        start_variance=start_variance(problem, sigma),
        alpha=alpha,
        learning_steps=math.ceil(learning),
        deletion_steps=deletion_steps,
        epsilon_dp=epsilon_dp,
        epsilon_dd=epsilon_after(deletion_steps),
        risk_bound=risk_bound if certify_risk else None,
        gradient_field=gradient_field,
    )


def _rate(problem: Problem, form: DeletionForm) -> float:
    """Return ``c``, the rate at which the divergence falls while the runs' drifts may differ."""
    if form not in get_args(DeletionForm):
        raise ParameterError(f"form must be one of {', '.join(get_args(DeletionForm))}, got {form!r}")
    return lemma_5_rate(problem) / 2 if form == "simplified" else sharp_rate(problem) / 2


def _factor(problem: Problem, steps: float, steps_before: float, form: DeletionForm) -> float:
    """Return the factor for `linear_curve`, which turns ``alpha (sensitivity / sigma)^2`` into the divergence."""
    check_steps(steps)
    check_steps(steps_before)
    rate = _rate(problem, form)
    if form == "shifted":
        # The number of records and the noise cancel, so the factor does not depend on them.
        exact = replace(problem, rounding=EXACT)
        return _mu(exact, problem.sensitivity(1), 1, steps, steps_before) ** 2 / 2
    since = 2 * rate if form == "doubled" else rate
    grown = -math.expm1(-rate * problem.step_size * steps_before) / (2 * rate)
    return grown * math.exp(-since * problem.step_size * steps)


def _computed_on_rows(problem: Problem, dimension: int, dtype: str) -> Problem:
    """Return the problem, with the rounding errors that logistic regression has on rows of norm ``L``.

    The rounding is that of an equivalent problem: rows have norm 1, all weights are ``L`` times as large, and step
    size, regulariser and noise are changed accordingly.
    """
    norm = problem.lipschitz
    unit = Problem(
        problem.n,
        problem.strong_convexity / norm**2,
        problem.smoothness / norm**2,
        1.0,
        problem.step_size * norm**2,
    )
    of_unit = computed(unit, features=dimension, classes=2, dtype=dtype).rounding
    return replace(problem, rounding=replace(of_unit, fixed=of_unit.fixed / norm))


def _mu(problem: Problem, sigma: float, records: int, steps: float, steps_before: float) -> float:
    """Return the ``mu`` of a deletion by shifted interpolation, including the rounding errors of the problem."""
    phase = partial(shifted.phase, problem, sigma=sigma)
    return pooled_mu([phase(records=records, steps=steps_before), phase(records=0, steps=steps)])


def _computed(problem: Problem, exact: RenyiCurve, mus: Sequence[float]) -> RenyiCurve:
    """Return the bound for computed runs.

    The bound is the larger of two bounds: the bound for exact runs, and the bound of `shifted`, which includes rounding
    errors. Without rounding errors, the result is the bound for exact runs.
    """
    if problem.rounding == EXACT:
        return exact
    log_slope = 2 * math.log(math.hypot(*mus)) - math.log(2)
    return RenyiCurve(lambda alpha: np.maximum(exact.log_divergence(alpha), np.log(alpha) + log_slope))
