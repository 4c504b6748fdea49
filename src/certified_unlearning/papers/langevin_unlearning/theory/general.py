"""Langevin unlearning's bounds for convex and non-convex losses, from log-Sobolev constants after each step.

Source: Theorems 3.2 and 3.3 of Chien, Wang, Chen, Li, Langevin unlearning (NeurIPS 2024), cases 1 and 2, and Corollary
3.4. The notation and the assumptions are those of `lsi`. Every step must project onto the ball of radius ``R`` around
0, and the start must be in this ball. Constants are stored as logarithms: with ``R = 100`` and ``eta sigma^2 = 1e-3``,
they reach ``exp(2e7)``.

The noise of a step is split into two halves, of variance ``h = eta sigma^2`` each. Let ``g = (1 + eta L)^2``, or ``g =
1`` for convex losses and ``eta <= 2/L``. From a ``C_0``-LSI start, the distribution after ``t`` steps is ``C_t``-LSI,
and the distribution half-way through the next step is ``C_{t,1}``-LSI:

    ``C_{t,1} = min(g C_t + h, Cbar)``, ``C_{t+1} = min(C_{t,1} + h, Ctilde)``,

where ``Cbar`` and ``Ctilde`` hold for any distribution on the ball of radius ``R + eta M`` with added noise of variance
``h`` (``Cbar``) or ``2 h`` (``Ctilde``). Theorem 3.3 prints ``Cbar`` for ``C_{t+1}``, too; its proof (eq. 44) has
``Ctilde``, which is smaller unless the noise of a step is about as large as the ball.

The certified guarantee depends on ``learning_steps``:

- Finite ``T``: the unlearned model is compared with one that was retrained for the same total number of steps, ``T +
  K_1 + ... + K_r``. This is derived here: both models take a request's ``K`` steps on the same data, both have the
  constants ``C_t`` with ``t >= T``, and the proof of Theorem 3.2 needs only these properties.
- Infinite ``T``: the distributions are stationary, as in the paper, with the saturated constant as ``C_LSI``. The sum
  in Theorem 3.3 converges to the geometric sum at saturation, ``C_{t,1} / h``, and no longer depends on the steps
  before saturation. In realistic cases, this limit is astronomically large, and the gain of a step is too small for a
  double.
"""

import math
from dataclasses import dataclass

import numpy as np

from certified_unlearning.accounting.core.checks import (
    require_count,
    require_non_negative,
    require_positive,
    require_probability,
)
from certified_unlearning.accounting.core.curves import RenyiCurve, Schedule
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.search import Array
from certified_unlearning.accounting.langevin import lsi
from certified_unlearning.errors import AssumptionError, ParameterError

# The constants of all steps are in memory.
MOST_FINITE_STEPS = 10**7
LARGEST_LOG = 709.0


def curve(
    problem: Problem, schedule: Schedule, *, radius: float, convex: bool, start_constant: float = 0.0
) -> RenyiCurve:
    """Return bounds on the Rényi divergence between the unlearned and the retrained model after the last request.

    The bound is Theorem 3.2 for the first request, then Corollary 3.4 (Hölder exponent 2). The module's docstring says
    which retrained model the bound compares with.

    Args:
        problem: The constants of the problem.
        schedule: The noise, the records, the learning steps and the steps of the requests.
        radius: The radius ``R`` of the ball onto which every step projects.
        convex: Whether every record's loss is convex.
        start_constant: The constant ``C_0`` of the start; 0 for a point, which is ``C_0``-LSI for every ``C_0 > 0``.
            The constant is only used if ``learning_steps`` is finite.

    Raises:
        ParameterError: The number of steps is finite, but above 10^7.
        AssumptionError: ``step_size`` exceeds ``2 / smoothness`` for convex losses, or non-convex losses have
            ``strong_convexity`` above 0.
    """
    require_non_negative(start_constant=start_constant)
    descent = _ProjectedDescent(problem, schedule.sigma, radius, convex)
    if schedule.learning_steps == math.inf:
        log_sums = np.full(len(schedule.steps), descent.log_limit_of_sums)
        exponents = descent.recuperation(1, descent.log_full_cap) * np.array(schedule.steps, dtype=np.float64)
    else:
        total = int(schedule.learning_steps) + sum(schedule.steps)
        if total > MOST_FINITE_STEPS:
            raise ParameterError(
                f"learning_steps and steps must add up to at most {MOST_FINITE_STEPS}, or learning_steps must be "
                f"infinite; got {total} in all"
            )
        starts = np.cumsum((int(schedule.learning_steps), *schedule.steps))[:-1]
        with np.errstate(divide="ignore"):
            log_constants = descent.log_constants(total, float(np.log(start_constant)))
        log_sums = descent.log_sums(log_constants)[starts]
        exponents = np.array(
            [
                descent.recuperation(steps, float(log_constants[start]))
                for start, steps in zip(starts, schedule.steps, strict=True)
            ]
        )
    sensitivities = lsi.stream_sensitivities(problem, schedule.records, len(schedule.steps))
    # A step on other data costs alpha (eta s)^2 / (2 h), for which the first half of its noise pays.
    log_cost = np.log(problem.step_size / 2) + 2 * np.log(sensitivities / schedule.sigma)
    return lsi.sequential_curve(log_cost + log_sums, exponents)


def initial_curve(
    problem: Problem,
    *,
    sigma: float,
    records: int,
    learning_steps: float,
    radius: float,
    convex: bool,
    start_constant: float = 0.0,
) -> RenyiCurve:
    """Return bounds on the Rényi divergence between models learned on data that differ in ``records`` records.

    The bound is the convex or non-convex case of Theorem 3.3, for a group of ``records`` records:

    ``eps0(alpha) = (alpha eta s^2 / (2 sigma^2)) sum_{t < T} prod_{t' = t}^{T - 1} (1 + h / C_{t',1})^-1``,

    with the sensitivity ``s``, which is ``2 M S / n`` for ``replace``. Arguments and errors are those of `curve`.
    """
    schedule = Schedule(sigma=sigma, records_per_request=records, steps=(0,), learning_steps=learning_steps)
    return curve(problem, schedule, radius=radius, convex=convex, start_constant=start_constant)


def initial_log_epsilon(
    problem: Problem,
    *,
    delta: float,
    sigma: float,
    records: int,
    learning_steps: float,
    radius: float,
    convex: bool,
) -> float:
    """Return the logarithm of epsilon before unlearning, from `initial_curve`; epsilon may be too large for a double.

    If the bound is ``A alpha``, the smallest epsilon that Proposition M.2 gives at any order is ``A + 2 sqrt(A log(1 /
    delta))``. The start is a point. Arguments and errors are those of `curve`.
    """
    require_probability(delta=delta)
    curve_of_order = initial_curve(
        problem, sigma=sigma, records=records, learning_steps=learning_steps, radius=radius, convex=convex
    )
    log_slope = float(curve_of_order.log_divergence(np.array([2.0]))[0]) - math.log(2)
    return float(np.logaddexp(log_slope, math.log(2) + (log_slope + math.log(-math.log(delta))) / 2))


def log_stationary_constant(problem: Problem, *, sigma: float, radius: float, convex: bool) -> float:
    """Return ``log C_LSI`` of the stationary distribution, at which the constants ``C_t`` of Theorem 3.3 saturate.

    Raises:
        AssumptionError: The conditions are those of `curve`.
    """
    return _ProjectedDescent(problem, sigma, radius, convex).log_full_cap


def recuperation(
    problem: Problem, *, sigma: float, steps: int, log_constant: float, radius: float, convex: bool
) -> float:
    """Return ``sum_{k < K} R_k`` of Theorem 3.2: ``K`` steps multiply a divergence by ``exp(-sum / alpha)``.

    The rates are ``R_k = log(1 + 2 h / (g C_k))``, in cases 1 and 2.

    Args:
        problem: The constants of the problem.
        sigma: The noise scale.
        steps: The number ``K`` of steps, at most 10^7.
        log_constant: ``log C_0`` of the distribution from which the steps start (``C_LSI``).
        radius: The radius ``R``.
        convex: Whether every record's loss is convex.

    Raises:
        AssumptionError: The conditions are those of `curve`.
    """
    require_count(least=0, steps=steps)
    if steps > MOST_FINITE_STEPS:
        raise ParameterError(f"steps must be at most {MOST_FINITE_STEPS}, got {steps}")
    return _ProjectedDescent(problem, sigma, radius, convex).recuperation(steps, log_constant)


@dataclass(frozen=True)
class _ProjectedDescent:
    """Noisy gradient steps that project onto a ball, with the symbols of the module's docstring."""

    problem: Problem
    sigma: float
    radius: float
    convex: bool

    def __post_init__(self) -> None:
        require_positive(sigma=self.sigma, radius=self.radius)
        limit = 2 / self.problem.smoothness
        if self.convex and self.problem.step_size > math.nextafter(limit, math.inf):
            raise AssumptionError(
                "Langevin unlearning's theorems for convex losses need step_size <= 2 / smoothness = "
                f"{limit}, got step_size = {self.problem.step_size}"
            )
        if not self.convex and self.problem.strong_convexity > 0:
            raise AssumptionError(
                "non-convex losses must have strong_convexity = 0, got strong_convexity = "
                f"{self.problem.strong_convexity}"
            )

    @property
    def log_half(self) -> float:
        """``log h``, the logarithm of half the variance of a step's noise."""
        return math.log(self.problem.step_size) + 2 * math.log(self.sigma)

    @property
    def log_full(self) -> float:
        """``log(2 h)``, the logarithm of the variance of a step's noise."""
        return self.log_half + math.log(2)

    @property
    def log_expansion(self) -> float:
        """``log g``; a gradient step maps a ``C``-LSI distribution to a ``g C``-LSI one."""
        return 0.0 if self.convex else 2 * math.log1p(self.problem.step_size * self.problem.smoothness)

    @property
    def log_half_cap(self) -> float:
        """``log Cbar``."""
        return self._log_cap(self.log_half)

    @property
    def log_full_cap(self) -> float:
        """``log min(Ctilde, Cbar + h)``, the logarithm at which ``C_t`` saturates."""
        return min(self._log_cap(self.log_full), float(np.logaddexp(self.log_half_cap, self.log_half)))

    @property
    def log_limit_of_sums(self) -> float:
        """The limit of `log_sums`: ``1/q + 1/q^2 + ...`` with ``q = 1 + h / C_{t,1}`` at saturation."""
        return float(self._log_half_constants(np.array(self.log_full_cap))) - self.log_half

    def log_constants(self, steps: int, log_start: float) -> Array:
        """Return ``log C_0, ..., log C_T``.

        Below saturation, ``C_t = g^t (C_0 + 2 h (1 + 1/g + ... + 1/g^(t-1)) / g)``.
        """
        times = np.arange(steps + 1, dtype=np.float64)
        growth = self.log_expansion
        geometric = times if self.convex else np.expm1(-growth * times) / -math.expm1(growth)
        with np.errstate(divide="ignore"):
            logs: Array = growth * times + np.logaddexp(log_start, self.log_full + np.log(geometric))
        logs[1:] = np.minimum(logs[1:], self.log_full_cap)
        return logs

    def log_sums(self, log_constants: Array) -> Array:
        """Return the logarithms of Theorem 3.3's sums for ``0, ..., T`` learning steps.

        Each sum is ``(P_0 + ... + P_{T-1}) / P_T``, where ``P_t`` is the product of the first ``t`` factors ``1 + h /
        C_{t',1}``.
        """
        factors = np.log1p(np.exp(self.log_half - self._log_half_constants(log_constants[:-1])))
        log_products = np.append(0.0, np.cumsum(factors))
        log_sums: Array = np.append(-np.inf, np.logaddexp.accumulate(log_products[:-1]) - log_products[1:])
        return log_sums

    def recuperation(self, steps: int, log_start: float) -> float:
        """Return ``sum_{k < K} R_k`` from a distribution with the constant ``C_0``."""
        log_constants = self.log_constants(steps, log_start)[:-1]
        with np.errstate(over="ignore"):
            rates = np.log1p(np.exp(self.log_full - self.log_expansion - log_constants))
        return float(rates.sum())

    def _log_half_constants(self, log_constants: Array) -> Array:
        """Return ``log C_{t,1}`` from ``log C_t``."""
        logs: Array = np.minimum(np.logaddexp(self.log_expansion + log_constants, self.log_half), self.log_half_cap)
        return logs

    def _log_cap(self, log_variance: float) -> float:
        """Return the logarithm of ``6 (4 rho^2 + v) exp(4 rho^2 / v)`` with ``rho = R + eta M``."""
        log_square = 2 * math.log(2 * (self.radius + self.problem.step_size * self.problem.lipschitz))
        # The value is capped where no double could represent the constant, or even its logarithm.
        exponent = math.exp(min(log_square - log_variance, LARGEST_LOG))
        return math.log(6) + float(np.logaddexp(log_square, log_variance)) + exponent
