"""Rényi bounds of noisy gradient descent if only the last iterate is published.

Source: Chourasia, Ye, Shokri, Differential privacy dynamics of Langevin diffusion and noisy gradient descent (NeurIPS
2021). A step is ``theta <- theta - eta grad f_D(theta) + sqrt(2 eta) sigma N(0, I)``, then optionally a projection onto
a convex set. Both data sets start from the same distribution, which is independent of the data.

The paper's ``S_g / n`` (the sensitivity of the *sum* of gradients, divided by ``n``) is
``problem.sensitivity(records)``. The paper's ``lambda`` and ``beta`` are ``strong_convexity`` and ``smoothness``, and
its ``T = eta K`` is ``step_size * steps``. Every bound is linear in the order: ``alpha (S_g / (n sigma))^2 factor``,
where the factor is a time. A distribution is ``c``-LSI if ``Ent(f^2) <= (2 / c) E |grad f|^2``. The constant ``c`` is
an inverse variance and damps the divergence at the rate ``2 sigma^2 c``. For each bound, `BOUNDS` gives its source and
whether it is a guarantee.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from certified_unlearning.accounting.core.checks import require_non_negative, require_positive
from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.search import Array, minimise
from certified_unlearning.accounting.deletion.rates import check_steps, lemma_5_rate, linear_curve, sharp_rate
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.privacy_dynamics.theory.gaussians import (
    exact_quadratic,
    lower_bound,
    require_unit_curvature,
    theorem_3,
)


def theorem_1(*, field_sensitivity: float, sigma: float, time: float) -> RenyiCurve:
    """Return Theorem 1, for two diffusions that have the same start and any losses.

    The bound is ``alpha S_v^2 T / (4 sigma^2)``.

    Args:
        field_sensitivity: ``S_v``, the largest distance between the two vector fields.
        sigma: The noise scale; the diffusion is ``d theta = -V dt + sqrt(2) sigma dW``.
        time: The time ``T``.
    """
    require_positive(field_sensitivity=field_sensitivity)
    if time != math.inf:
        require_non_negative(time=time)
    return linear_curve(field_sensitivity, sigma, time / 4)


def composition(problem: Problem, *, sigma: float, steps: float, records: int = 1) -> RenyiCurve:
    """Return the baseline: every step is a Gaussian mechanism, and all steps are published.

    The bound needs no convexity and allows any step size.

    The bound is ``alpha (S_g / (n sigma))^2 eta K / 4``, by the moments accountant of Appendix E and by Theorem 1.

    Args:
        problem: The constants of the problem.
        sigma: The noise scale.
        steps: The number ``K`` of steps; may be infinite.
        records: The number of records in which the two data sets differ.
    """
    return theorem_1(
        field_sensitivity=problem.sensitivity(records),
        sigma=sigma,
        time=_time(problem, steps),
    )


def theorem_2(
    problem: Problem,
    *,
    sigma: float,
    steps: float,
    records: int = 1,
    lsi_constant: float | None = None,
    gamma: float = 0.5,
) -> RenyiCurve:
    """Return the bound of Theorem 2, with the balancing constant of Eq. 68.

    The bound is ``alpha (S_g / (n sigma))^2 (1 - exp(-(1 - gamma) r eta K)) / (4 gamma (1 - gamma) r)`` with ``r = 2
    sigma^2 c``. ``gamma = 1/2`` is Theorem 2 as printed; ``gamma = 1`` is composition.

    Args:
        problem: The constants of the problem.
        sigma: The noise scale.
        steps: The number ``K`` of steps; may be infinite.
        records: The number of records in which the two data sets differ.
        lsi_constant: The constant ``c``, which the caller must guarantee at all times; None for Lemma 5's ``lambda / (2
            sigma^2)``, whose conditions are checked.
        gamma: The balancing constant, above 0 and at most 1.

    Raises:
        AssumptionError: Lemma 5 is used, but its conditions do not hold.
    """
    return _balanced(problem, _rate(problem, sigma, lsi_constant), sigma, steps, records, gamma)


def theorem_2_from(
    initial: RenyiCurve,
    problem: Problem,
    *,
    sigma: float,
    steps: float,
    records: int = 1,
    lsi_constant: float | None = None,
    gamma: float = 0.5,
) -> RenyiCurve:
    """Return Theorem 2 for two distributions that already diverge at the start (Eq. 67, corrected).

    The bound adds ``alpha (R_0(alpha_0) exp(-a T) / alpha_0)`` to Theorem 2, with ``a = (1 - gamma) 2 sigma^2 c`` and
    ``alpha_0 = 1 + (alpha - 1) exp(-a T)``.

    Args:
        initial: The divergence ``R_0`` at the start, known at all orders.
        problem: The constants of the problem; this and all other arguments are those of `theorem_2`.
        sigma: The noise scale.
        steps: The number ``K`` of steps.
        records: The number of records in which the two data sets differ.
        lsi_constant: The constant ``c``.
        gamma: The balancing constant, above 0 and at most 1.

    Raises:
        ParameterError: ``initial`` is known only at some orders.
        AssumptionError: Lemma 5 is used, but its conditions do not hold.
    """
    if initial.orders is not None:
        raise ParameterError("`initial` must be known at all orders, got a curve that is known only at some orders")
    added = theorem_2(
        problem, sigma=sigma, steps=steps, records=records, lsi_constant=lsi_constant, gamma=gamma
    ).log_divergence
    damping = (1 - gamma) * _rate(problem, sigma, lsi_constant)
    decay = damping * _time(problem, steps) if damping else 0.0

    def log_divergence(alpha: Array) -> Array:
        # A divergence grows with its order, so an order that rounds to 1 may be replaced by one just above.
        earlier = np.maximum(1 + (alpha - 1) * math.exp(-decay), math.nextafter(1, 2))
        kept = np.log(alpha) - decay + initial.log_divergence(earlier) - np.log(earlier)
        sums: Array = np.logaddexp(kept, added(alpha))
        return sums

    return RenyiCurve(log_divergence)


def best_gamma(problem: Problem, *, steps: float) -> float:
    """Return the ``gamma`` that minimises Theorem 2 with Lemma 5's constant.

    This ``gamma`` is 1 up to ``lambda eta K = 2``.

    Raises:
        AssumptionError: Lemma 5's conditions do not hold.
    """
    exponent = lemma_5_rate(problem) * _time(problem, steps)

    def factors(undamped: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            damped = -np.expm1(-undamped * exponent) / undamped
        return np.where(undamped > 0, damped, exponent) / (1 - undamped)

    undamped, _ = minimise(factors, 0.0, 0.5)
    return 1 - undamped


def theorem_2_best(problem: Problem, *, sigma: float, steps: float, records: int = 1) -> RenyiCurve:
    """Return Theorem 2 with Lemma 5's constant at `best_gamma`; arguments and errors are those of `corollary_1`."""
    gamma = best_gamma(problem, steps=steps)
    return theorem_2(problem, sigma=sigma, steps=steps, records=records, gamma=gamma)


def corollary_1(problem: Problem, *, sigma: float, steps: float, records: int = 1) -> RenyiCurve:
    """Return Corollary 1, the paper's main result: Theorem 2 with Lemma 5's constant, from any start.

    The bound is ``alpha (S_g / (n sigma))^2 (1 - exp(-lambda eta K / 2)) / lambda``. The paper's start is Gaussian. A
    start from a single point also keeps Lemma 5's constant, and a mixture of starts diverges by at most as much as the
    worst of these starts.

    Args:
        problem: The constants of the problem.
        sigma: The noise scale.
        steps: The number ``K`` of steps; may be infinite.
        records: The number of records in which the two data sets differ.

    Raises:
        AssumptionError: ``strong_convexity`` is 0, or ``step_size`` is not below ``1 / smoothness``.
    """
    return theorem_2(problem, sigma=sigma, steps=steps, records=records)


def accountant(problem: Problem, *, sigma: float, steps: float, records: int = 1) -> RenyiCurve:
    """Return the lower of `corollary_1` and `composition`; arguments and errors are those of `corollary_1`."""
    damped = corollary_1(problem, sigma=sigma, steps=steps, records=records).log_divergence
    composed = composition(problem, sigma=sigma, steps=steps, records=records).log_divergence
    return RenyiCurve(lambda alpha: np.minimum(damped(alpha), composed(alpha)))


def corollary_2(problem: Problem, *, sigma: float, steps: float, records: int = 1) -> RenyiCurve:
    """Return Corollary 2, for descent that starts at a point and has losses ``|theta - x|^2 / 2`` on the whole space.

    The bound is ``alpha (S_g / (n sigma))^2 (1 - exp(-(2 - eta) eta K / 2)) / (2 - eta)``. The paper prints no
    condition on the step size, but its proof needs ``eta < 2``. Arguments are those of `corollary_1`.

    Raises:
        AssumptionError: ``strong_convexity`` or ``smoothness`` is not 1, or ``step_size`` is not below 2.
    """
    require_unit_curvature(problem, "Corollary 2", step_limit=2)
    return _balanced(problem, 2 - problem.step_size, sigma, steps, records)


def envelope(problem: Problem, *, sigma: float, steps: float, records: int = 1) -> RenyiCurve:
    """Return Theorem 2 with the best ``gamma`` at every moment, under Lemma 5's constant.

    With ``a = (S_g / (2 n sigma))^2`` and ``r = lambda``, the bound is ``alpha a eta K`` up to ``r eta K = 1``, and
    then ``alpha (a / r) (2 - exp((1 - r eta K) / 2))^2``. Arguments and errors are those of `corollary_1`.
    """
    return _envelope(problem, lemma_5_rate(problem), sigma, steps, records)


def sharp_envelope(problem: Problem, *, sigma: float, steps: float, records: int = 1) -> RenyiCurve:
    """Return `envelope` with `sharp_rate` in place of Lemma 5's rate.

    Arguments and errors are those of `corollary_1`.
    """
    return _envelope(problem, sharp_rate(problem), sigma, steps, records)


def sharp_lsi(problem: Problem, *, sigma: float, steps: float, records: int = 1) -> RenyiCurve:
    """Return Corollary 1 with `sharp_rate` in place of Lemma 5's rate.

    This bound extends Corollary 2 to every loss. Arguments and errors are those of `corollary_1`.
    """
    return _balanced(problem, sharp_rate(problem), sigma, steps, records)


def time_optimal(problem: Problem, *, sigma: float, steps: float, records: int = 1) -> RenyiCurve:
    """Return Theorem 2 with the best ``gamma`` and the tracked constant at every moment.

    If descent starts from a point, the bound integrates to `exact_quadratic`, so no bound that holds for all these
    losses is lower. The bound holds for any start. Arguments and errors are those of `corollary_1`.
    """
    lemma_5_rate(problem)
    return exact_quadratic(problem, sigma=sigma, steps=steps, records=records)


@dataclass(frozen=True)
class Bound:
    """A bound and its source.

    Attributes:
        curve: The function from ``(problem, *, sigma, steps, records=1)`` to a Rényi curve.
        source: ``paper`` if the paper states the bound; ``derived`` if it follows from the paper's lemmas but the
            paper does not claim it; ``exact`` if it is the divergence itself, for quadratic losses.
        is_guarantee: Whether the divergence is at most the bound for every admissible loss; `corollary_2` admits only
            squared distances as losses.
    """

    curve: Callable[..., RenyiCurve]
    source: Literal["paper", "derived", "exact"]
    is_guarantee: bool = True


BOUNDS: dict[str, Bound] = {
    "composition": Bound(composition, "paper"),
    "theorem-2": Bound(theorem_2, "paper"),
    "theorem-2-best": Bound(theorem_2_best, "derived"),
    "corollary-1": Bound(corollary_1, "paper"),
    "accountant": Bound(accountant, "paper"),
    "corollary-2": Bound(corollary_2, "paper"),
    "envelope": Bound(envelope, "derived"),
    "sharp-envelope": Bound(sharp_envelope, "derived"),
    "sharp-lsi": Bound(sharp_lsi, "derived"),
    "time-optimal": Bound(time_optimal, "derived"),
    "quadratic": Bound(exact_quadratic, "exact", is_guarantee=False),
    "theorem-3": Bound(theorem_3, "paper", is_guarantee=False),
    "lower-bound": Bound(lower_bound, "derived", is_guarantee=False),
}


def _time(problem: Problem, steps: float) -> float:
    check_steps(steps)
    return problem.step_size * steps


def _rate(problem: Problem, sigma: float, lsi_constant: float | None) -> float:
    """Return the damping rate ``2 sigma^2 c``."""
    if lsi_constant is None:
        return lemma_5_rate(problem)
    require_positive(lsi_constant=lsi_constant)
    return 2 * sigma**2 * lsi_constant


def _balanced(
    problem: Problem, rate: float, sigma: float, steps: float, records: int, gamma: float = 0.5
) -> RenyiCurve:
    if not 0 < gamma <= 1:
        raise ParameterError(f"gamma must be above 0 and at most 1, got {gamma}")
    damping, time = (1 - gamma) * rate, _time(problem, steps)
    grown = -math.expm1(-damping * time) / damping if damping else time
    return linear_curve(problem.sensitivity(records), sigma, grown / (4 * gamma))


def _envelope(problem: Problem, rate: float, sigma: float, steps: float, records: int) -> RenyiCurve:
    time = _time(problem, steps)
    grown = time if rate * time <= 1 else (1 - math.expm1((1 - rate * time) / 2)) ** 2 / rate
    return linear_curve(problem.sensitivity(records), sigma, grown / 4)
