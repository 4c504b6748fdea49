"""The experiment ``batches``: the smallest batch with which enough predictions are certified, by depth."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.gradient_certificates.sweeps import Batches
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

ROWS = pa.schema(
    [
        column("experiment", "text", "point"),
        column("data", "text", "constant"),
        column("n", "whole", "constant"),
        column("depth", "whole", "point"),
        column("units", "whole", "constant"),
        column("mode", "text", "point"),
        column("k", "whole", "constant"),
        *columns("number", "constant", "gamma", "wanted"),
        column("batch_size", "whole", "point"),
        *columns("whole", "constant", "updates", "trials", "seed"),
        *columns("number", "measure", "share", "share_std", "accuracy", "accuracy_std"),
        column("seconds", "number", "cost"),
    ]
)
"""The columns of the table, which has one row for each depth, mode and batch size.

Measured values are means over trials; columns that end in ``_std`` are standard deviations.

Training takes one epoch, so smaller batches make more updates. ``seconds`` is the time of all trials together.
"""


def make(inputs: Inputs) -> pd.DataFrame:
    """Train with every batch size. Raises the same errors as `tables.batches.batches_table`."""
    from certified_unlearning.papers.gradient_certificates.tables.batches import batches_table

    return batches_table(inputs.sweep)


BATCHES = Experiment(
    name="batches",
    source="Fig. 2",
    sweep=Batches,
    rows=ROWS,
    make=make,
    needs_data=False,
    draw="certified_unlearning.papers.gradient_certificates.figures.batches:draw",
    setting="certified_unlearning.papers.gradient_certificates.setting:setting_of_batches",
    caption=Caption(
        "Share of certified predictions against the batch size, by depth, and the smallest batch with a large enough "
        "share",
        "Training takes one epoch. Left and middle: the share of certified test predictions against the batch size, "
        "for removals alone (unlearning) and for removals with equally many additions (privacy); there is one line "
        "for each depth. Bands are one standard deviation over starts and batches. Right: the smallest batch of the "
        "sweep whose mean share reaches the dotted line. A network that does not reach this share with any batch has "
        "no point. The paper’s figure is for 5.5 million credit-card records (AMEX), with 128 units in each layer and "
        "k = 50. The figure does not depend on the preset’s data set.",
        "Shares rise with the batch size. For deeper networks and for privacy, shares begin to rise at larger batches. "
        "The smallest batch rises with depth.",
    ),
)
