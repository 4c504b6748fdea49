"""The declaration of the experiment on covered deletions; the code that it runs is imported only when it runs."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.private_learning.sweeps import GroupPrivacy
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

_HERE = "certified_unlearning.papers.private_learning"

GROUP_ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "data"),
        column("epsilon", "number", "point"),
        column("system", "text", "point"),
        column("deletions", "whole", "point"),
        *columns("whole", "constant", "n", "d"),
        column("delta", "number", "constant"),
        *columns("whole", "constant", "trials", "seed"),
        *columns("number", "measure", "accuracy", "accuracy_error", "gradients", "learning_gradients"),
        column("seconds", "number", "cost"),
    ]
)
"""The columns of the table, which has one row for each data set, epsilon, system and number of deletions.

``gradients`` is the number of single-record gradients for a request with this number of deletions; it is 0 for a
private model that covers them. The renewed private model is learned again whenever the deletions that it covers are
used up. This model covers the largest number of deletions at which its accuracy is at least that of Langevin unlearning
minus 0.01.
"""


def make_groups(inputs: Inputs) -> pd.DataFrame:
    """Measure every system.

    Raises the same errors as `runs.groups.groups_table`.
    """
    from certified_unlearning.papers.private_learning.runs.groups import groups_table

    return groups_table(inputs.sweep)


GROUP_PRIVACY = Experiment(
    name="group_privacy",
    source="",
    sweep=GroupPrivacy,
    rows=GROUP_ROWS,
    make=make_groups,
    needs_data=False,
    tracked=True,
    draw=f"{_HERE}.group_figure:draw_groups",
    caption=Caption(
        "How many deletions until it pays to unlearn",
        "All systems promise the same epsilon and delta after one request to delete k records; exact systems keep "
        "a stronger promise. Left: test accuracy. Right: the number of single-record gradients for the request. Bars "
        "are two standard errors of the mean over runs. A private model that covers k deletions has k times the "
        "noise, and needs no work for these deletions. The private model on the right covers the largest number of "
        "deletions for which it is at most one percentage point less accurate than Langevin unlearning. It is learned "
        "anew when these deletions are used up; until then, it needs no gradients. Retraining is plain SGD. Constants "
        "are chosen on held-out records. The figure does not depend on the preset’s data set.",
        "Left: beyond some number of deletions, the line of the private model falls, whereas the other lines stay "
        "constant. Right: the line of the private model begins beyond the number of deletions that the model "
        "covers, and rises above the other lines.",
    ),
)
