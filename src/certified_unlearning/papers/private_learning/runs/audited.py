"""The results of X12 as rows."""

from dataclasses import asdict

import pandas as pd

from certified_unlearning.papers.private_learning import audits
from certified_unlearning.papers.private_learning.sweeps import PrivateAudits


def audits_table(sweep: PrivateAudits) -> pd.DataFrame:
    """Return one row for each audit.

    Raises:
        ParameterError: The sweep includes mechanisms on Poisson batches, and dp-accounting is not installed.
    """
    found = audits.gaussian(runs=sweep.runs, seed=sweep.seed, epsilon=sweep.epsilon)
    if sweep.sampling == "audited":
        found += audits.sampled(runs=sweep.runs, seed=sweep.seed, epsilon=sweep.sampled_epsilon)
    found += [*audits.selections(sweep.epsilon), *audits.checks(sweep.epsilon)]
    rows = pd.DataFrame(asdict(each) for each in found)
    return rows.assign(experiment="private_audits", seed=sweep.seed, exact=rows["exact"].astype(float))
