"""The experiment ``wide``, declared; what it runs is imported when it is run."""

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
"""One row for each table and model; ``answers`` are those of the model, a request or scikit-learn's refit.

``seconds`` is the mean over answers, the certificate included, ``passes`` rows read over rows that are left, the mean,
too. ``answers_that_moved`` counts those after which any weight was another. ``distance_share`` is how far the weights
without noise are from the minimiser after the last request, over the certified distance; empty where no solver came
near enough to the minimiser to say. ``gradient_share`` is the largest norm of the gradient at the secret weights over
its certified bound, of all requests. ``memory_bytes`` is the most that fitting took at once besides ``data_bytes``.
"""


def make(inputs: Inputs) -> pd.DataFrame:
    """Time and check requests on every table."""
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
        "Hundreds of features, several classes, sparse text: requests beside scikit-learn’s refits",
        "Left: mean seconds of a request, its certificate included, with a line to the longest; for scikit-learn, of "
        "a refit on what is left. Right: how far the weights without noise are from the exact minimiser after the "
        "last request, over the distance that is certified. Nothing is certified by scikit-learn. Its warm refit at "
        "its own tolerance makes no iteration among many records: it removes nothing. The rows are made, with norm "
        "1: float32 like embeddings, the k-th variance 1/k, or sparse like TF-IDF. Timings are those of the machine "
        "that is named. The figure depends on no data set of the preset.",
        "Two panels with a row for each table and four marks in each. Left: requests lie left of refits where there "
        "are two classes. Right: requests lie left of 1, refits at scikit-learn’s own tolerance far to the right.",
    ),
)
