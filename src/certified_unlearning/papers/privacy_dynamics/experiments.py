"""The declaration of the measured experiment of Differential Privacy Dynamics.

Its code is imported only when the experiment runs.
"""

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
"""The columns of the table of divergences by order and number of steps.

The divergences are exact, sampled (with a confidence interval from ``low`` to ``high``), or bounds.
"""


def make_measured(inputs: Inputs) -> pd.DataFrame:
    """Run noisy descent on two neighbouring data sets. Raises the same errors as `measured.measured_table`."""
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
        "Rényi divergence of runs on two neighbouring data sets, with the bounds, against steps",
        "Noisy gradient descent starts from a point, on quadratic losses of two curvatures. The two data sets differ "
        "in one record, in the direction of the smaller curvature. Points are estimates of the divergence from "
        "independent runs on each data set. Bars are confidence intervals, which combine Student’s interval for the "
        "difference of the means with the chi-square interval for the common variance. These intervals are exact, "
        "because the distributions are Gaussians with the same variance. The probability that any bar misses the "
        "exact value is at most one in a million (Bonferroni). Dotted lines are the exact divergence, and solid lines "
        "are Corollary 1. Long dashes show composition, whose line leaves the panel. Each panel is for one order α. "
        "The figure does not depend on any data set.",
        "Panels against steps. Points with error bars lie on the line of the exact divergence, which levels off at "
        "about half of Corollary 1. Composition begins at the exact divergence and grows as a straight line beyond "
        "Corollary 1.",
    ),
)
