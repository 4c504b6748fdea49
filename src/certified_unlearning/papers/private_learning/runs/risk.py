"""All parts of the experiment `private_risk`, one after another."""

import pandas as pd

from certified_unlearning.papers.private_learning.runs import convex, fingerprints, lower_bounds, selections
from certified_unlearning.papers.private_learning.runs.table import timed
from certified_unlearning.papers.private_learning.sweeps import PrivateRisk

PARTS = (
    convex.output_perturbation_rows,
    convex.descent_rows,
    convex.feature_rows,
    convex.absolute_rows,
    selections.search_rows,
    selections.boosting_rows,
    lower_bounds.lower_bound_rows,
    fingerprints.fingerprint_rows,
)


def risk_table(sweep: PrivateRisk) -> pd.DataFrame:
    """Return the rows of all parts."""
    return timed(PARTS, sweep).assign(experiment="private_risk", seed=sweep.seed)
