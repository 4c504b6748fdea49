"""The audits, declared; what they run is imported when it is run."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.private_learning.sweeps import PrivateAudits
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column

AUDIT_ROWS = pa.schema(
    [
        column("experiment", "text", "point"),
        column("mechanism", "text", "point"),
        column("planted", "text", "point"),
        column("method", "text", "point"),
        column("unit", "text", "point"),
        column("relation", "text", "constant"),
        column("runs", "whole", "constant"),
        column("seed", "whole", "constant"),
        column("false_alarm", "number", "constant"),
        column("stated", "number", "constant"),
        column("shown", "number", "measure"),
        column("exact", "number", "measure", empty=True),
        column("caught", "flag", "measure"),
    ]
)
"""One row for each audit, as `audits.Audit` says; a mechanism has several, with and without planted faults."""


def make_audits(inputs: Inputs) -> pd.DataFrame:
    """Audit every mechanism; errors as for `audits.gaussian` and `audits.sampled`."""
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
        "least (Clopper and Pearson, or enumerated, or by the exact law); caught: more than is stated. A mechanism "
        "that passes is not proven by it. Depends on no data set of the preset.",
    ),
)
