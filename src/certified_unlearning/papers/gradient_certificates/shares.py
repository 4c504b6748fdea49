"""The experiment ``shares``: how many predictions are certified, by k, clipping level and bounding method."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.gradient_certificates.sweeps import Shares
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "case"),
        *columns("text", "constant", "data", "hidden"),
        *columns("whole", "constant", "parameters", "n", "batch_size", "updates"),
        column("step_size", "number", "constant"),
        column("mode", "text", "point"),
        column("gamma", "number", "point"),
        column("bounds", "text", "point"),
        column("k", "whole", "point"),
        *columns("whole", "constant", "trials", "seed"),
        *columns("number", "measure", "share", "share_std", "accuracy", "accuracy_std", "certain_accuracy"),
        column("seconds", "number", "cost"),
    ]
)
"""The columns of the table, which has one row for each case, clipping level, bounding method and k.

Measured values are means over trials; columns that end in ``_std`` are standard deviations.

``share`` is the share of certified test predictions, and ``certain_accuracy`` is the share of test predictions that are
both certified and correct. ``seconds`` is the total time of all trials, for training with all k at once and for
certifying.
"""


def make(inputs: Inputs) -> pd.DataFrame:
    """Train and certify every case. Raises the same errors as `tables.shares.shares_table`."""
    from certified_unlearning.papers.gradient_certificates.tables.shares import shares_table

    return shares_table(inputs.sweep)


SHARES = Experiment(
    name="shares",
    source="",
    sweep=Shares,
    rows=ROWS,
    make=make,
    needs_data=False,
    tracked=True,
    draw="certified_unlearning.papers.gradient_certificates.figures.shares:draw",
    caption=Caption(
        "Certified predictions against k, by clipping, for several networks",
        "The lines show the share of test predictions that stay the same if any k records of every batch are removed "
        "(unlearning), or if any k records are removed and as many are added (privacy). Each line has one level γ to "
        "which the entries of gradients are clamped. Dashed lines use the paper’s bounds, which come from midpoints "
        "and radii of matrices and treat each logit separately. Bands are one standard deviation over starts and "
        "batches; for blobs, also over records. The figure does not depend on the preset’s data set.",
        (
            "Shares fall with k, first slowly and then fast; shares for small γ fall later, and dashed lines are below "
            "solid ones."
        ),
    ),
)
