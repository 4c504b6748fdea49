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
    """Audit every mechanism; the errors are those of `audits.gaussian` and `audits.sampled`."""
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
        "Audits of private mechanisms, and of faults planted in them",
        "X12: each mechanism runs on two data sets that differ in one record. Shown is what its outputs give away at "
        "least (Clopper and Pearson, or enumerated, or by the exact law). A mechanism is caught if that is more than "
        "is stated; one that passes is not proven by it. The table depends on no data set of the preset.",
    ),
)
