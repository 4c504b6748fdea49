"""The measured experiment of Differential Privacy Dynamics, declared; what it runs is imported when it is run."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.privacy_dynamics.sweeps import Measured
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

MEASURED_ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "bound"),
        *columns("text", "constant", "guarantee", "source"),
        column("n", "whole", "constant"),
        *columns("number", "constant", "strong_convexity", "smoothness_constant", "lipschitz", "step_size", "sigma"),
        column("records_removed", "whole", "constant"),
        column("steps", "whole", "point"),
        column("alpha", "number", "point"),
        column("renyi", "number", "measure"),
        *columns("number", "measure", "low", "high", empty=True),
        *columns("whole", "constant", "trials", "seed"),
    ]
)
"""Divergences by order and number of steps: of the two laws, sampled (from ``low`` to ``high``), and bounded."""


def make_measured(inputs: Inputs) -> pd.DataFrame:
    """Run noisy gradient descent on two neighbouring data sets; errors as for `measured.measured_table`."""
    from certified_unlearning.papers.privacy_dynamics.measured import measured_table

    return measured_table(inputs.sweep)


MEASURED = Experiment(
    name="measured",
    source="",
    sweep=Measured,
    rows=MEASURED_ROWS,
    make=make_measured,
    needs_data=False,
    draw="certified_unlearning.papers.privacy_dynamics.measured_figure:draw",
    caption=Caption(
        "Rényi divergence of runs on two neighbouring data sets, beside the bounds, against steps",
        "Noisy gradient descent on quadratic losses of two curvatures, from a point, on two data sets that differ"
        " in one record in the direction of the smaller. Points: the divergence estimated from independent runs "
        "on either data set. Bars: confidence intervals from Student’s interval of the gap of means and the chi-"
        "square interval of the common variance, exact because the laws are Gaussians of one variance; all bars "
        "hold together except with a probability of one in a million (Bonferroni). Dotted: the exact divergence. "
        "Solid: Corollary 1. Long dashes: composition, which leaves the panel. One panel for each order α. "
        "Depends on no data set.",
        "Panels against steps: points with bars lie on the exact divergence, which levels off at about half of "
        "Corollary 1, while composition begins at the exact divergence and grows as a straight line across both.",
    ),
)
