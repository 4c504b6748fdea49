"""Experiments that need no simulation: privacy bounds against the number of steps."""

from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from certified_unlearning.accounting import dynamics_figures
from certified_unlearning.experiments.plan import constants_and_problem
from certified_unlearning.offers import recuperation
from certified_unlearning.parameters import Common, Dynamics, Recuperation

POINTS = 120
"""Numbers of steps at which a bound is evaluated at most, 0 and the last among them."""


def recuperation_table(settings: Common, sweep: Recuperation, data: Mapping[str, Any]) -> pd.DataFrame:
    """Return certified epsilon against unlearning steps by every accountant (`results.BOUND_SCHEMA`).

    Args:
        settings: The preset's settings.
        sweep: What to sweep over.
        data: Summary of the prepared data set.

    Raises:
        ParameterError: More removals than records, or another value that makes no sense.
        AssumptionError: A theorem's assumption does not hold.
    """
    constants, problem = constants_and_problem(settings, data)
    steps = sorted({0, *(round(float(step)) for step in np.geomspace(1, sweep.steps, POINTS))})
    rows = recuperation(
        problem, sweep.accountants, sigma=sweep.sigma, records=sweep.records, delta=constants.delta, steps=steps
    )
    return pd.DataFrame(rows).assign(
        experiment="recuperation",
        n=problem.n,
        strong_convexity=problem.strong_convexity,
        smoothness_constant=problem.smoothness,
        lipschitz=problem.lipschitz,
        step_size=problem.step_size,
        sigma=sweep.sigma,
        records_removed=sweep.records,
        delta=constants.delta,
        alpha=None,
        renyi=None,
    )


def dynamics_table(figure: int, sweep: Dynamics) -> pd.DataFrame:
    """Return Fig. 1 or 2 of *Differential Privacy Dynamics* (`results.BOUND_SCHEMA`).

    Args:
        figure: 1 or 2.
        sweep: The paper's parameters, or others.

    Raises:
        AssumptionError: A theorem's assumption does not hold.
    """
    steps = sorted({0, *(round(float(step)) for step in np.linspace(1, sweep.steps, POINTS))})
    common = _Common(
        steps=steps, sensitivity=sweep.gradient_sensitivity, n=sweep.n, step_size=sweep.step_size, sigma=sweep.sigma
    )
    first, *others = sweep.strong_convexity
    if figure == 1:
        curves = [(alpha, first) for alpha in sweep.alpha] + [(min(sweep.alpha), other) for other in others]
        rows = dynamics_figures.figure_1(curves=curves, smoothness=sweep.smoothness, **common)
    else:
        rows = dynamics_figures.figure_2(alphas=sweep.alpha, **common)
    table = pd.DataFrame(rows).drop(columns="figure").replace({"bound": {"quadratic": "exact"}})
    return table.assign(
        experiment=f"dynamics{figure}",
        guarantee=[_GUARANTEES.get(bound, "upper bound") for bound in table["bound"]],
        n=sweep.n,
        smoothness_constant=sweep.smoothness if figure == 1 else 1.0,
        lipschitz=sweep.gradient_sensitivity / 2,
        step_size=sweep.step_size,
        sigma=sweep.sigma,
        records_removed=1,
        delta=None,
        epsilon=None,
        mu=None,
    )


class _Common(TypedDict):
    steps: list[int]
    sensitivity: float
    n: int
    step_size: float
    sigma: float


_GUARANTEES = {"exact": "exact", "theorem-3": "lower bound"}
