"""The experiment ``head``: a small network on fixed features, trained from a random start."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.gradient_certificates.sweeps import Head
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

ROWS = pa.schema(
    [
        column("experiment", "text", "point"),
        *columns("text", "constant", "data", "hidden"),
        *columns("whole", "constant", "parameters", "n", "batch_size"),
        column("gamma", "number", "constant"),
        column("mode", "text", "point"),
        column("epochs", "whole", "point"),
        column("updates", "whole", "constant"),
        column("k", "whole", "point"),
        *columns("whole", "constant", "trials", "seed"),
        *columns(
            "number", "measure", "share", "share_std", "accuracy", "accuracy_std", "least_accuracy", "largest_accuracy"
        ),
        column("seconds", "number", "cost"),
    ]
)
"""The columns of the table, which has one row for each mode, number of epochs and k.

Measured values are means over trials; columns that end in ``_std`` are standard deviations.

``least_accuracy`` and ``largest_accuracy`` bound the accuracy of all networks in the box. ``seconds`` is the total time
for all k and all trials.
"""


def make(inputs: Inputs) -> pd.DataFrame:
    """Train the head, and certify it at several epochs. Raises the same errors as `tables.head.head_table`."""
    from certified_unlearning.papers.gradient_certificates.tables.head import head_table

    return head_table(inputs.sweep)


HEAD = Experiment(
    name="head",
    source="Fig. 4",
    sweep=Head,
    rows=ROWS,
    make=make,
    needs_data=False,
    draw="certified_unlearning.papers.gradient_certificates.figures.head:draw",
    setting="certified_unlearning.papers.gradient_certificates.setting:setting_of_head",
    caption=Caption(
        "A head on fixed features: certified predictions against k, and bounds of the accuracy during training",
        "A network with hidden units learns from features that no record changes. Left: the share of certified test "
        "predictions after all epochs, for removals (unlearning) and for removals and the same number of additions "
        "(privacy). Right: test accuracy during training. For each k, the band contains the accuracies of all "
        "networks that could have resulted from removals (unlearning). Bars are one standard deviation over starts "
        "and batches. The paper’s figure is for GPT-2’s embeddings of 40 000 film reviews (IMDB), with 100 hidden "
        "units, batches of 20 000, 125 epochs and k = 1, 5 and 10. The figure does not depend on the preset’s data "
        "set.",
        "Shares fall with k, and the shares for privacy fall faster than those for unlearning. The accuracy rises "
        "with epochs, and the bands around it widen.",
    ),
)
