"""The declaration of the audits; the code that they run is imported only when they run."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.private_learning.sweeps import PrivateAudits
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

AUDIT_ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "mechanism", "planted", "method", "unit"),
        column("relation", "text", "constant"),
        *columns("whole", "constant", "runs", "seed"),
        *columns("number", "constant", "false_alarm", "stated"),
        column("shown", "number", "measure"),
        column("exact", "number", "measure", empty=True),
        column("caught", "flag", "measure"),
    ]
)
"""The columns of the table, which has one row for each audit (see `audits.Audit`).

A mechanism has several audits, with and without planted faults.
"""


def make_audits(inputs: Inputs) -> pd.DataFrame:
    """Audit every mechanism.

    Raises the same errors as `audits.gaussian` and `audits.sampled`.
    """
    from certified_unlearning.papers.private_learning.runs.audited import audits_table

    return audits_table(inputs.sweep)


PRIVATE_AUDITS = Experiment(
    name="private_audits",
    source="",
    sweep=PrivateAudits,
    rows=AUDIT_ROWS,
    make=make_audits,
    needs_data=False,
    caption=Caption(
        "Audits of private mechanisms, and of mechanisms with planted faults",
        "X12: each mechanism runs on two data sets that differ in one record. The shown value is a lower bound on "
        "the privacy loss, computed from the outputs (by Clopper and Pearson, by enumeration, or by the exact "
        "distribution). A mechanism is caught if the shown value exceeds the stated one; a mechanism that is not "
        "caught is not proven to be private. The table does not depend on the preset’s data set.",
    ),
)
