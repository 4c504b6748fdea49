"""Privacy recuperation: the certified epsilon against the number of unlearning steps. Nothing is simulated."""

import pandas as pd

from certified_unlearning.accounting.langevin.calibration import recuperation, steps_up_to
from certified_unlearning.mechanisms.constants import constants_and_problem
from certified_unlearning.papers.langevin_unlearning.sweeps import Recuperation
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import BOUND_ROWS

POINTS = 120
"""The largest number of step counts at which a bound is evaluated, including 0 and the last one."""


def make(inputs: Inputs) -> pd.DataFrame:
    """Return the certified epsilon against the number of unlearning steps, for every accountant.

    Raises:
        ParameterError: More records are removed than there are.
        AssumptionError: A theorem's assumption does not hold.
    """
    sweep = inputs.sweep
    constants, problem = constants_and_problem(inputs.settings, inputs.data, records=sweep.records)
    rows = recuperation(
        problem,
        inputs.settings.accountants,
        sigma=sweep.sigma,
        records=sweep.records,
        delta=constants.delta,
        steps=steps_up_to(sweep.steps, points=POINTS),
    )
    return pd.DataFrame(rows)


RECUPERATION = Experiment(
    name="recuperation",
    source="",
    sweep=Recuperation,
    rows=BOUND_ROWS,
    make=make,
    draw="certified_unlearning.papers.langevin_unlearning.figures.recuperation:draw",
    caption=Caption(
        "Privacy recuperation: ε against unlearning steps, by every accountant",
        "All lines have the same noise, and the same number of records is removed at once. All lines are upper "
        "bounds against retraining. The line “exact on quadratics” is the true value for quadratic losses that differ "
        "as much as allowed, so no accountant can be below it without further assumptions. The ε axis starts at 0.008 "
        "or above; lines with smaller values leave the panel at the bottom. Nothing is simulated.",
        "Falling lines of ε against unlearning steps; the paper’s bound falls most slowly, and our bound meets the "
        "exact value.",
    ),
)
