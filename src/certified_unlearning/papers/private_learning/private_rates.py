"""The declarations of the experiments on excess risk and on gradients; their code is imported only when they run."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.private_learning.sweeps import PrivateGradients, PrivateRisk
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

_HERE = "certified_unlearning.papers.private_learning"

RATE_ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "part", "method"),
        *columns("whole", "point", "n", "features"),
        *columns("number", "point", "epsilon", "level"),
        column("trial", "whole", "trial"),
        column("seed", "whole", "constant"),
        column("error", "number", "measure"),
        *columns("number", "constant", "bound", "at_zero", empty=True),
        *columns("number", "measure", "noiseless", "estimate_error", empty=True),
        column("seconds", "number", "cost"),
    ]
)
"""The columns of the table, which has one row for each part, method, setting and trial; each trial has its own records.

``error`` is the excess risk, or the norm of a gradient. ``bound`` is the theoretical bound, with all constants, on the
mean of ``error``; it is empty if there is no bound. For X1 and X4, the bound is on the increase of the risk by
regularisation and noise; for X2 and X3, the bound is on the regret. ``at_zero`` is the error of zero weights, and
``noiseless`` is the error of the same method without noise. ``level`` is the remaining constant that distinguishes
settings: the columns of an embedding, the length of rows, or the radius of a run. ``seconds`` is the row's share of the
time of its part.
"""


def make_risk(inputs: Inputs) -> pd.DataFrame:
    """Run the parts of the experiments that measure excess risk.

    Raises the same errors as `runs.risk.risk_table`.
    """
    from certified_unlearning.papers.private_learning.runs.risk import risk_table

    return risk_table(inputs.sweep)


def make_gradients(inputs: Inputs) -> pd.DataFrame:
    """Run the parts of the experiments that measure gradients.

    Raises the same errors as `runs.gradients.gradients_table`.
    """
    from certified_unlearning.papers.private_learning.runs.gradients import gradients_table

    return gradients_table(inputs.sweep)


PRIVATE_RISK = Experiment(
    name="private_risk",
    source="",
    sweep=PrivateRisk,
    rows=RATE_ROWS,
    make=make_risk,
    needs_data=False,
    draw=f"{_HERE}.figures:draw_risk",
    caption=Caption(
        "Excess risk of private linear models, with fitted slopes",
        "The records are synthetic, and their best weights are known. Privacy is replace-one. Points are means over "
        "trials, each with its own records and noise, and bars are 95 % bootstrap intervals. The legend shows slopes "
        "fitted on logarithmic axes, with their intervals in parentheses and the slopes of the theorems in square "
        "brackets. Dotted lines show the errors of zero weights. X11 and X13 show errors divided by lower bounds; "
        "the error of X13 without privacy is mostly below 0. The figure does not depend on the preset’s data set.",
        "Lines that fall with the number of records, at about the slope that theory states or faster; with added "
        "columns of zeros, noisy descent rises, and the other two lines are constant.",
    ),
)
PRIVATE_GRADIENTS = Experiment(
    name="private_gradients",
    source="",
    sweep=PrivateGradients,
    rows=RATE_ROWS,
    make=make_gradients,
    needs_data=False,
    draw=f"{_HERE}.figures:draw_gradients",
    caption=Caption(
        "Gradients of private models, with fitted slopes",
        "X7, X8 and X10 learn a tanh neuron, and the others learn logistic regression, with replace-one privacy. "
        "Points are means over trials, and bars are 95 % bootstrap intervals. X7 shows the root mean square error of "
        "the gradients that the steps of a run use. X8, X9 and X14 show the gradient of the population risk, on "
        "fresh records, at ε = 1000. X10, X15 and X16 show the gradient of the empirical risk, for rows with "
        "only 10 columns that are not zero. The legend shows slopes fitted on logarithmic axes, with their intervals "
        "in parentheses and the slopes of the theorems in square brackets. Dotted lines show the errors of zero "
        "weights. The figure does not depend on the preset’s data set.",
        "Lines that fall with the number of records at about the stated slopes; the error of the embedding is lowest "
        "at several dozen columns, and the error with all columns rises.",
    ),
)
