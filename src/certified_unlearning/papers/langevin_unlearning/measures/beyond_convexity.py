"""Measures of Theorems 3.2 and 3.3 without strong convexity, of learning that stops early, and of Gibbs distributions.

The theorems are evaluated at the constants of MNIST: n, M, delta and Table 1's L with the step size 1/L, for the
logistic loss without its regulariser. The gradient of this loss is at most M = 1 everywhere, and its curvature is at
most 1/4, which is below this L. `convex` says whether the bound uses the convexity of the loss, or only L and M. One
record is removed.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from certified_unlearning import accounting
from certified_unlearning.accounting import Problem, Schedule
from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.papers.langevin_unlearning.constants import PAPER, Dataset, paper_problem
from certified_unlearning.papers.langevin_unlearning.theory import general
from certified_unlearning.papers.langevin_unlearning.theory.training import (
    after_finite_learning,
    exact_gibbs_divergence,
    exact_stationary_divergence,
    gibbs_divergence,
    remaining_curve,
)
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import composition
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.registry import changes, last_over_first, sweep

_ORDER = 2.0
"""The Rényi order at which bounds are divided.

If two bounds are linear in the order, their quotient is the same at every order.
"""


def _mnist(evidence: Sequence[Evidence]) -> Problem:
    return replace(paper_problem(evidence, "mnist-3-vs-8", "bound"), strong_convexity=0.0)


def _log_bound(problem: Problem, *, sigma: float, radius: float, convex: bool, learning_steps: float) -> float:
    initial = general.initial_curve(
        problem, sigma=sigma, records=1, learning_steps=learning_steps, radius=radius, convex=convex
    )
    return float(initial.log_divergence(np.array([_ORDER]))[0])


@sweep("sigma = {sigma:g}, R = {radius:g}")
def log10_epsilon_without_end(evidence: Sequence[Evidence], *, convex: bool, sigma: float, radius: float) -> float:
    """Return the decimal logarithm of epsilon before unlearning, for infinitely many learning steps (Theorem 3.3)."""
    problem = _mnist(evidence)
    log_epsilon = general.initial_log_epsilon(
        problem,
        delta=1 / problem.n,
        sigma=sigma,
        records=1,
        learning_steps=math.inf,
        radius=radius,
        convex=convex,
    )
    return log_epsilon / math.log(10)


@sweep("sigma = {sigma:g}, R = {radius:g}, T = {steps}")
def general_over_composition(
    evidence: Sequence[Evidence], *, convex: bool, sigma: float, radius: float, steps: int
) -> float:
    """Return Theorem 3.3's bound after T steps from a point, divided by the bound of T Gaussian mechanisms."""
    problem = _mnist(evidence)
    composed = float(composition(problem, sigma=sigma, steps=steps).log_divergence(np.array([_ORDER]))[0])
    bound = _log_bound(problem, sigma=sigma, radius=radius, convex=convex, learning_steps=steps)
    return math.exp(bound - composed)


@sweep("T = {steps}")
def general_over_its_limit(
    evidence: Sequence[Evidence], *, convex: bool, sigma: float, radius: float, steps: int
) -> float:
    """Return Theorem 3.3's bound after T steps from a point, divided by the limit of the bound."""
    problem = _mnist(evidence)
    bound, limit = (
        _log_bound(problem, sigma=sigma, radius=radius, convex=convex, learning_steps=count)
        for count in (steps, math.inf)
    )
    return math.exp(bound - limit)


@sweep("T = {learning_steps}, K = {steps}")
def general_epsilon(
    evidence: Sequence[Evidence], *, convex: bool, sigma: float, radius: float, learning_steps: int, steps: int
) -> float:
    """Return epsilon after K unlearning steps, compared with retraining for the same total number of steps.

    This is our extension to finite T.
    """
    problem = _mnist(evidence)
    schedule = Schedule(sigma, 1, (steps,), learning_steps)
    curve = general.curve(problem, schedule, radius=radius, convex=convex)
    return accounting.epsilon_from_renyi(curve, 1 / problem.n, conversion="paper").epsilon


@sweep("K = {steps}", then=last_over_first)
def general_epsilon_kept(
    evidence: Sequence[Evidence], *, convex: bool, sigma: float, radius: float, learning_steps: int, steps: int
) -> float:
    """Return epsilon for the last number in ``steps``, divided by epsilon for the first number in ``steps``.

    The numbers in ``steps`` are numbers of unlearning steps.
    """
    point = {"learning_steps": [learning_steps], "steps": [steps]}
    (epsilon,) = general_epsilon(evidence, convex=convex, sigma=sigma, radius=radius, **point)
    return epsilon.value


@sweep("K = {steps}", then=changes)
def changes_of_general_recuperation(
    evidence: Sequence[Evidence], *, convex: bool, sigma: float, radius: float, steps: int
) -> float:
    """Return how much the sum of Theorem 3.2's rates changes between each K and the next.

    The steps start from the stationary distribution. They divide the divergence of order ``alpha`` by ``exp(sum /
    alpha)``.
    """
    problem = _mnist(evidence)
    log_constant = general.log_stationary_constant(problem, sigma=sigma, radius=radius, convex=convex)
    return general.recuperation(
        problem, sigma=sigma, steps=steps, log_constant=log_constant, radius=radius, convex=convex
    )


@sweep("sigma = {sigma:g}, R = {radius:g}")
def log10_steps_to_halve(evidence: Sequence[Evidence], *, convex: bool, sigma: float, radius: float) -> float:
    """Return the decimal logarithm of the steps after which Theorem 3.2 halves a divergence of order 2.

    The value is a lower bound on this logarithm, because ``log(1 + x) <= x``. The steps start from the stationary
    distribution.
    """
    problem = _mnist(evidence)
    log_rate = math.log(2 * problem.step_size * sigma**2)
    log_rate -= 0.0 if convex else 2 * math.log1p(problem.step_size * problem.smoothness)
    log_rate -= general.log_stationary_constant(problem, sigma=sigma, radius=radius, convex=convex)
    return (math.log(_ORDER * math.log(2)) - log_rate) / math.log(10)


@sweep("R = {radius:g}")
def step_noise_over_radius(evidence: Sequence[Evidence], *, convex: bool, epsilon: float, radius: float) -> float:
    """Return the norm of a step's noise divided by the ball's radius.

    The noise scale is the smallest sigma at which the limit of the bound is ``epsilon``.

    The norm is ``sqrt(2 eta d) sigma``, where d is the number of pixels.
    """
    from scipy.optimize import brentq

    problem = _mnist(evidence)

    def excess(log_sigma: float) -> float:
        log_epsilon = general.initial_log_epsilon(
            problem,
            delta=1 / problem.n,
            sigma=math.exp(log_sigma),
            records=1,
            learning_steps=math.inf,
            radius=radius,
            convex=convex,
        )
        return log_epsilon - math.log(epsilon)

    sigma = math.exp(brentq(excess, math.log(1e-3), math.log(1e4)))
    return math.sqrt(2 * problem.step_size * PAPER["mnist-3-vs-8"].dimension) * sigma / radius


# --- Learning that stopped early, and Gibbs distributions -------------------------------------------------------------

_QUADRATIC = Problem(n=100, strong_convexity=1.0, smoothness=1.0, lipschitz=1.0, step_size=0.1)
_QUADRATIC_SIGMA = 0.1


@sweep("alpha = {alpha:g}, T = {learning_steps}, K = {steps}")
def exact_over_insufficient_training(*, alpha: float, learning_steps: int, steps: int) -> float:
    """Return the ratio of the exact divergence on quadratic losses to the bound of Section 3.3.

    The terms of the bound are exact values, too. Gradients of the two data sets differ by ``2 M / n``. The start is a
    Gaussian with the stationary variance, so all distributions have this variance. The mean of the start is about 1
    away from both minimisers.
    """
    problem, sigma = _QUADRATIC, _QUADRATIC_SIGMA
    kept = 1 - problem.step_size * problem.strong_convexity
    variance = 2 * problem.step_size * sigma**2 / (1 - kept**2)
    # The minimiser with the record; the minimiser without it is 0, and the start is -1.
    minimiser = problem.sensitivity(1) / problem.strong_convexity
    left = kept**learning_steps

    def between(gap: float) -> RenyiCurve:
        return RenyiCurve(lambda order: np.log(order) + 2 * math.log(gap) - math.log(2 * variance))

    bound = after_finite_learning(between(left * (1 + minimiser)), between(kept**steps * minimiser))
    learned, retrained = minimiser - left * (1 + minimiser), -left
    exact = between(abs(kept**steps * learned - retrained))
    orders = np.array([alpha])
    return float(exact(orders)[0] / bound(orders)[0])


@sweep("T = {learning_steps}")
def epsilon_after_finite_learning(
    evidence: Sequence[Evidence], *, dataset: Dataset, sigma: float, learning_steps: int, distance: float
) -> float:
    """Return epsilon after one unlearning step for one record if learning stops early, by Eq. 6 and Section 3.3.

    The mean of the start is ``distance`` away from the mean of the stationary distribution.
    """
    problem = paper_problem(evidence, dataset, "bound")
    unlearned = accounting.unlearning_curve(problem, Schedule(sigma, 1, (1,)))
    assert isinstance(unlearned, RenyiCurve)
    remaining = remaining_curve(problem, sigma=sigma, learning_steps=learning_steps, distance=distance)
    curve = after_finite_learning(remaining, unlearned)
    return accounting.epsilon_from_renyi(curve, 1 / problem.n, conversion="paper").epsilon


@sweep("T = {learning_steps}")
def mu_after_finite_learning(
    evidence: Sequence[Evidence], *, dataset: Dataset, sigma: float, learning_steps: int, distance: float
) -> float:
    """Return how far learning still is from a stationary run, as a mu of Gaussian DP.

    The mu is computed by shifted interpolation, which is exact on quadratic losses. The two starts are ``distance``
    apart.
    """
    problem = paper_problem(evidence, dataset, "bound")
    return accounting.residual_mu(problem, sigma=sigma, distance=distance, steps=learning_steps)


@sweep("F = {loss_range:g}, n = {n}, alpha = {alpha:g}")
def gibbs_over_proposition_e_1(*, loss_range: float, n: int, alpha: float) -> float:
    """Return the exact divergence of two Gibbs distributions on the line, divided by the bound of Proposition E.1."""
    exact = exact_gibbs_divergence(alpha=alpha, loss_range=loss_range, n=n)
    return exact / gibbs_divergence(loss_range=loss_range, n=n)


@sweep("eta = {step_size:g}")
def stationary_over_proposition_e_1(*, loss_range: float, alpha: float, step_size: float) -> float:
    """Return the divergence of noisy descent's stationary distributions, divided by the bound of Proposition E.1.

    The divergence is exact.
    """
    exact = exact_stationary_divergence(alpha=alpha, loss_range=loss_range, step_size=step_size)
    return exact / gibbs_divergence(loss_range=loss_range, n=1)
