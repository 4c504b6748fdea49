"""Figs. 1 and 2 of *Differential Privacy Dynamics*: Rényi bounds against steps. Nothing is simulated."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from certified_unlearning.papers.privacy_dynamics.sweeps import Figure1, Figure2
from certified_unlearning.papers.privacy_dynamics.theory import curves
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import BOUND_ROWS

POINTS = 120
"""The largest number of step counts at which a bound is evaluated, including 0 and the last one."""


def _table(sweep: Figure2, name: str, rows: Sequence[Mapping[str, Any]], smoothness: float) -> pd.DataFrame:
    table = pd.DataFrame(rows).drop(columns="figure").replace({"bound": {"quadratic": "exact"}})
    return table.assign(
        experiment=name,
        guarantee=[_GUARANTEES.get(bound, "upper bound") for bound in table["bound"]],
        n=sweep.n,
        smoothness_constant=smoothness,
        lipschitz=sweep.gradient_sensitivity / 2,
        step_size=sweep.step_size,
        sigma=sweep.sigma,
        records_removed=1,
        delta=None,
        epsilon=None,
        mu=None,
    )


def _common(sweep: Figure2) -> "_Common":
    steps = sorted({0, *(round(float(step)) for step in np.linspace(1, sweep.steps, POINTS))})
    return _Common(
        steps=steps, sensitivity=sweep.gradient_sensitivity, n=sweep.n, step_size=sweep.step_size, sigma=sweep.sigma
    )


class _Common(TypedDict):
    steps: list[int]
    sensitivity: float
    n: int
    step_size: float
    sigma: float


_GUARANTEES = {"exact": "exact", "theorem-3": "lower bound"}


def make_first(inputs: Inputs) -> pd.DataFrame:
    """Return Fig. 1: the bound of Corollary 1, for every order and strong convexity, and composition's bound.

    Raises:
        AssumptionError: A theorem's assumption does not hold.
    """
    sweep: Figure1 = inputs.sweep
    first, *others = sweep.strong_convexity
    chosen = [(alpha, first) for alpha in sweep.alpha] + [(min(sweep.alpha), other) for other in others]
    rows = curves.figure_1(curves=chosen, smoothness=sweep.smoothness, **_common(sweep))
    return _table(sweep, DYNAMICS1.name, rows, sweep.smoothness)


def make_second(inputs: Inputs) -> pd.DataFrame:
    """Return Fig. 2: upper and lower bounds, composition, and the exact divergence, on quadratics of curvature 1.

    Raises:
        AssumptionError: A theorem's assumption does not hold.
    """
    sweep: Figure2 = inputs.sweep
    return _table(sweep, DYNAMICS2.name, curves.figure_2(alphas=sweep.alpha, **_common(sweep)), 1.0)


DYNAMICS1 = Experiment(
    name="dynamics1",
    source="Fig. 1",
    sweep=Figure1,
    rows=BOUND_ROWS,
    make=make_first,
    needs_data=False,
    draw="certified_unlearning.papers.privacy_dynamics.figures:draw_first",
    caption=Caption(
        "Rényi divergence of noisy gradient descent against its steps, if only the last iterate is published",
        "Colours are orders α, and markers are values of the strong convexity λ. Solid lines are Corollary 1, which "
        "levels off; dashed lines are composition, which grows with every step. The figure does not depend on any "
        "data set.",
        "Solid lines that level off, and dashed straight lines that do not, against steps.",
    ),
)
DYNAMICS2 = Experiment(
    name="dynamics2",
    source="Fig. 2",
    sweep=Figure2,
    rows=BOUND_ROWS,
    make=make_second,
    needs_data=False,
    draw="certified_unlearning.papers.privacy_dynamics.figures:draw_second",
    caption=Caption(
        "Upper and lower bounds of Rényi divergence on quadratic losses, against steps",
        "The curvature is 1, and each panel is for one order α. The exact divergence (dotted) is between the upper "
        "bound (Corollary 2) and the lower bound (Theorem 3). Long dashes show composition. The figure does not "
        "depend on any data set.",
        "Three panels with steps on the horizontal axis. The exact divergence is between a lower and an upper bound, "
        "and both bounds level off.",
    ),
)
