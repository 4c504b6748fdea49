"""The experiment ``fine_tuning``: only the dense layers learn a class that pre-training did not see."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.gradient_certificates.sweeps import FineTuning
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

ROWS = pa.schema(
    [
        column("experiment", "text", "point"),
        *columns("text", "constant", "data", "new_class", "channels"),
        *columns("whole", "constant", "n", "units", "parameters", "private", "public", "epochs", "updates"),
        column("mode", "text", "point"),
        column("gamma", "number", "point"),
        column("k", "whole", "point"),
        *columns("whole", "constant", "trials", "seed"),
        *columns(
            "number",
            "measure",
            "share",
            "share_std",
            "others_share",
            "accuracy",
            "accuracy_std",
            "accuracy_before",
            "others_accuracy",
            "others_accuracy_before",
        ),
        column("seconds", "number", "cost"),
    ]
)
"""The columns of the table, which has one row for each mode, clipping level and k.

Measured values are means over trials; columns that end in ``_std`` are standard deviations.

``n`` is the number of training records of the new class. ``channels`` is empty if the rows are not images. Shares and
accuracies are for the test records of the new class; in columns that begin with ``others_``, they are for all other
test records. Columns that end in ``_before`` are for the network before fine-tuning. ``seconds`` is the total time for
all k and all trials, without pre-training.
"""


def make(inputs: Inputs) -> pd.DataFrame:
    """Pre-train, fine-tune and certify; it raises the same errors as `tables.fine_tuning.fine_tuning_table`."""
    from certified_unlearning.papers.gradient_certificates.tables.fine_tuning import fine_tuning_table

    return fine_tuning_table(inputs.sweep)


FINE_TUNING = Experiment(
    name="fine_tuning",
    source="Fig. 3",
    sweep=FineTuning,
    rows=ROWS,
    make=make,
    needs_data=False,
    draw="certified_unlearning.papers.gradient_certificates.figures.fine_tuning:draw",
    setting="certified_unlearning.papers.gradient_certificates.setting:setting_of_fine_tuning",
    caption=Caption(
        "Fine-tuning on a class that pre-training did not see: certified predictions against k, by clipping",
        "Convolutions and dense layers learn without one class. For example, they learn from all digits except one "
        "whether a digit is odd. The dense layers are then fine-tuned in batches, with private records of that class "
        "and public records of the others. The private records may be removed (unlearning), or removed and added "
        "(privacy); the public records stay. Left and middle: the share of test records of the new class whose "
        "prediction is certified. Right: the accuracy on these records; the dotted line is the accuracy before "
        "fine-tuning. Bands and bars are one standard deviation over pre-trainings and batches. The paper’s figure is "
        "for retina scans (OCT-MNIST, normal or not). There, 7 754 scans of Drusen are new, the convolutions have 16 "
        "and 32 channels, there are 100 dense units, batches have 3 000 records of which 30 % are private, and "
        "training takes 2 epochs. The figure does not depend on the preset’s data set.",
        "Shares fall with k; they fall later for small clipping levels. The accuracy on the new class rises with the "
        "clipping level, starting from the accuracy before fine-tuning.",
    ),
)
