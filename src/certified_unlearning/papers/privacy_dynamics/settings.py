"""The constants of Figures 1 and 2, with which claims are checked, and the values of bounds at these constants."""

import numpy as np

from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import BOUNDS
from certified_unlearning.papers.privacy_dynamics.theory.gaussians import exact_quadratic

Steps = int | float
"""A number of steps, which may be infinite."""

SIGMA = 0.02
_SMOOTHNESS = 4.0


def figure_1(strong_convexity: float) -> Problem:
    """Return the constants of Fig. 1; the records' gradients differ by ``S_g = 4``."""
    return Problem(n=5000, strong_convexity=strong_convexity, smoothness=_SMOOTHNESS, lipschitz=2.0, step_size=0.02)


def figure_2(step_size: float = 0.02) -> Problem:
    """Return the constants of Fig. 2, for squared distances, which have curvature 1."""
    return Problem(n=5000, strong_convexity=1.0, smoothness=1.0, lipschitz=2.0, step_size=step_size)


def known(bound: str) -> str:
    """Return the name of a bound after checking that the bound exists.

    Raises:
        ParameterError: `dynamics.BOUNDS` has no such bound.
    """
    if bound not in BOUNDS:
        raise ParameterError(f"bound must be one of {', '.join(BOUNDS)}, got {bound!r}")
    return bound


def bounded(bound: str, problem: Problem, *, steps: float, alpha: float = 10.0, sigma: float = SIGMA) -> float:
    """Return a bound on the divergence of order ``alpha`` after the given number of steps.

    Raises:
        ParameterError: The bound is unknown.
        AssumptionError: The bound's conditions do not hold.
    """
    return float(BOUNDS[known(bound)].curve(problem, sigma=sigma, steps=steps)(np.array([alpha]))[0])


def exact(problem: Problem, *, steps: float, alpha: float = 10.0, start_variance: float = 0.0) -> float:
    """Return the exact divergence on quadratic losses, for descent that starts from a point or a Gaussian.

    Raises:
        AssumptionError: The step is too large.
    """
    curve = exact_quadratic(problem, sigma=SIGMA, steps=steps, start_variance=start_variance)
    return float(curve(np.array([alpha]))[0])
