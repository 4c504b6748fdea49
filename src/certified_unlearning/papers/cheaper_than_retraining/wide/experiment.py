"""The declaration of the experiment ``wide``. Its code is imported only when the experiment runs."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.cheaper_than_retraining.wide.sweep import Wide
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

WIDE_ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "rows"),
        *columns("whole", "point", "n", "d", "classes"),
        column("strength", "number", "point"),
        column("system", "text", "point"),
        column("tolerance", "number", "constant", empty=True),
        *columns("whole", "constant", "data_bytes", "records", "requests", "answers", "seed"),
        *columns("number", "constant", "epsilon", "delta"),
        column("answers_that_moved", "whole", "measure"),
        *columns("number", "measure", "passes", "fit_passes", "accuracy"),
        *columns("number", "measure", "distance_share", "gradient_share", empty=True),
        *columns("number", "cost", "seconds", "seconds_median", "seconds_largest", "fit_seconds"),
        column("memory_bytes", "whole", "cost"),
        *columns("text", "origin", "machine", "code_version"),
    ]
)
"""The columns of the table, which has one row for each table and model.

``answers`` is the number of requests that the model answered; for scikit-learn, it is the number of refits.

``seconds`` is the mean time of an answer, including the time for the certificate. ``passes`` is the mean number of
passes of an answer. The passes of a request are the number of rows read, divided by ``n``. The passes of a refit are
the number of rows read, divided by the number of remaining rows. ``answers_that_moved`` counts the answers after which
any weight had changed. ``distance_share`` is the distance between the noiseless weights and the minimiser after the
last request, divided by the certified distance. It is empty if no solver came close enough to the minimiser.
``gradient_share`` is the norm of the gradient at the secret weights divided by its certified bound: the largest value
over all requests. ``memory_bytes`` is the largest amount of memory during fitting, without ``data_bytes``.
"""


def make(inputs: Inputs) -> pd.DataFrame:
    """Measure the time of requests on every table, and check the certificates of the requests."""
    from certified_unlearning.papers.cheaper_than_retraining.wide.measured import wide_table

    return wide_table(inputs.sweep)


_HERE = "certified_unlearning.papers.cheaper_than_retraining.wide"
WIDE = Experiment(
    name="wide",
    source="",
    sweep=Wide,
    rows=WIDE_ROWS,
    make=make,
    needs_data=False,
    tracked=True,
    draw=f"{_HERE}.figure:draw",
    page=f"{_HERE}.page:page",
    caption=Caption(
        "Hundreds of features, several classes, sparse text: requests compared with scikit-learn’s refits",
        "Left: for certified models, the mean time of a request in seconds, including the time for its certificate; a "
        "horizontal line extends to the longest time. For scikit-learn, the mean time of a refit on the remaining "
        "records. Right: the distance of the weights without noise from the exact minimiser after the last request, "
        "divided by the certified distance. scikit-learn certifies nothing. Among many records, its warm refit at its "
        "own tolerance makes no iteration, so it removes nothing. The rows are synthetic and have norm 1. They are "
        "float32 rows like embeddings, with variance 1/k in the k-th direction, or sparse rows like TF-IDF. Timings "
        "are those of the named machine. The figure does not depend on the preset’s data set.",
        "Two panels with a row for each table and four marks in each row. In the left panel, with two classes, the "
        "marks of requests are to the left of those of refits. In the right panel, the marks of requests are below 1, "
        "and those of refits at scikit-learn’s own tolerance are far above 1.",
    ),
)
