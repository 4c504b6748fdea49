"""Figs. 1 and 2 of *Differential Privacy Dynamics*: Rényi bounds against steps. Nothing is simulated."""

from typing import TypedDict

import numpy as np
import pandas as pd

from certified_unlearning.accounting import dynamics_figures
from certified_unlearning.parameters import Dynamics

POINTS = 120
"""Numbers of steps at which a bound is evaluated at most, 0 and the last among them."""


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
