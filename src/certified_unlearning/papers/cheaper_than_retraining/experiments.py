"""The declaration of the experiment `cost`. Its code is imported only when the experiment runs."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.cheaper_than_retraining.sweeps import Cost
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

COST_ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "data"),
        column("n", "whole", "point"),
        column("d", "whole", "constant"),
        column("system", "text", "point"),
        column("records", "whole", "point"),
        column("rounds", "whole", "constant"),
        column("strength", "number", "constant"),
        column("seed", "whole", "constant"),
        *columns("text", "constant", "skipped", "guarantee"),
        *columns(
            "number", "constant", "epsilon", "epsilon_all_releases", "epsilon_for_those_who_stay", "delta", empty=True
        ),
        *columns("text", "constant", "comparator", "observers"),
        *columns("flag", "constant", "adaptive", "private_for_those_who_stay"),
        *columns("number", "measure", "passes", "fit_passes", empty=True),
        *columns("whole", "measure", "requests_that_read", "requests_that_moved", empty=True),
        column("accuracy", "number", "measure", empty=True),
        *columns("number", "cost", "seconds", "seconds_low", "seconds_high", "fit_seconds", empty=True),
        *columns("text", "origin", "machine", "code_version"),
    ]
)
"""The columns of the table, which has one row for each data set, size, system and number of records in a request.

``seconds`` is the median over rounds; ``seconds_low`` and ``seconds_high`` are the quartiles. These columns and
``fit_seconds`` are times on the ``machine``. ``passes`` is the mean, over rounds, of the number of rows read divided by
``n``. ``requests_that_read`` counts the rounds that read rows other than the removed ones. ``requests_that_moved``
counts the rounds after which any test score had changed. ``epsilon_for_those_who_stay`` is computed here, for one
remaining record; no certificate states it. If it is empty, nothing is guaranteed for the remaining records. ``skipped``
is the reason why a row is empty.
"""


def make_cost(inputs: Inputs) -> pd.DataFrame:
    """Time the requests of every system. Raises the same errors as `measured.cost_table`."""
    from certified_unlearning.papers.cheaper_than_retraining.measured import cost_table

    return cost_table(inputs.sweep)


_HERE = "certified_unlearning.papers.cheaper_than_retraining"
COST = Experiment(
    name="cost",
    source="",
    sweep=Cost,
    rows=COST_ROWS,
    make=make_cost,
    needs_data=False,
    draw=f"{_HERE}.figure:draw",
    page=f"{_HERE}.page:page",
    caption=Caption(
        "The cost and the guarantee of a request, compared with a new fit",
        "Right: seconds of a request against the number of records, with logarithmic axes. Left, in the same colours: "
        "test accuracy after the last request. Black and grey lines are scikit-learn. Timings are those of the named "
        "machine. All systems use one process and the same number of threads, and they take turns in every round. The "
        "timings are medians, shaded from quartile to quartile. Each line is named at its end. All systems have the "
        "same objective (with the stated C n, and the intercept regularised). A pass is one reading of all rows by a "
        "solver. If a system is not run at a size, the table gives the reason. The figure does not depend on the "
        "preset’s data set.",
        "Two panels against n. Right: the lines of scikit-learn and of full-batch systems rise with n, that of "
        "mini-batches levels off, and that of Newton removal is lowest. Left: accuracies.",
    ),
)
