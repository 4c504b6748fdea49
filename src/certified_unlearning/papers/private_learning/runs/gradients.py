"""All parts of the experiment `private_gradients`, one after another."""

import pandas as pd

from certified_unlearning.papers.private_learning.runs import linear_time, population, reduction, stationary
from certified_unlearning.papers.private_learning.runs.table import timed
from certified_unlearning.papers.private_learning.sweeps import PrivateGradients

PARTS = (
    stationary.spider_rows,
    population.tree_rows,
    population.recursive_rows,
    stationary.embedding_rows,
    linear_time.linear_time_rows,
    reduction.reduction_rows,
    reduction.reduction_records_rows,
)


def gradients_table(sweep: PrivateGradients) -> pd.DataFrame:
    """Return the rows of all parts."""
    return timed(PARTS, sweep).assign(experiment="private_gradients", seed=sweep.seed)
