"""X5 and X6: private search for an unknown radius, and boosting of confidence."""

from dataclasses import replace

import pandas as pd
import torch

from certified_unlearning.accounting.private.learners import OutputPerturbation
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.accounting.private.searches import Boosting, GridSearch, Planner
from certified_unlearning.engine.addresses import address
from certified_unlearning.mechanisms.private import searches
from certified_unlearning.papers.private_learning.runs.convex import SQUARED, at_zero, perturbed, squared_records
from certified_unlearning.papers.private_learning.runs.instances import SignInstance, sign_instance
from certified_unlearning.papers.private_learning.runs.table import trial_rows
from certified_unlearning.papers.private_learning.sweeps import PrivateRisk

TOGETHER = 20
"""The number of noise draws of X6 for each data set."""


def search_rows(sweep: PrivateRisk) -> pd.DataFrame:
    """Return the rows of X5: the search for the radius, and single runs on all records, for several lengths of rows."""
    tables = []
    for scale in sweep.scales:
        instance = sign_instance().scaled(scale)
        data = [squared_records(instance, sweep.search_n, sweep.seed, "X5", trial) for trial in range(sweep.trials)]
        problem = LinearProblem(n=sweep.search_n, features=50, row_norm=1.0, loss=SQUARED, radius=1.0)
        radii = [2.0**power for power in range(1, sweep.candidates + 1)]
        plan = GridSearch.plan(problem, radii, _planner(sweep), epsilon=sweep.epsilon)
        found = [
            searches.learn(plan, records, [address(sweep.seed, "X5", "search", scale, trial)]).weights
            for trial, records in enumerate(data)
        ]
        common = {"n": sweep.search_n, "features": 50, "at_zero": float(at_zero(instance))}
        tables.append(trial_rows("X5", "search", errors=instance.excess(torch.cat(found)), level=scale, **common))
        for radius in radii:
            one = OutputPerturbation.plan(replace(problem, radius=radius), epsilon=sweep.epsilon, delta=sweep.delta)
            single, _ = perturbed(one, data, (sweep.seed, "X5", "single", scale, radius))
            tables.append(trial_rows("X5", f"radius {radius:g}", errors=instance.excess(single), level=scale, **common))
    return pd.concat(tables)


def boosting_rows(sweep: PrivateRisk) -> pd.DataFrame:
    """Return the rows of X6: one run on all records, one run on a chunk, and boosting.

    The records have one feature.
    """
    instance = SignInstance(torch.ones(1, dtype=torch.float64), torch.tensor([0.7], dtype=torch.float64))
    problem = LinearProblem(n=sweep.boosting_n, features=1, row_norm=1.0, loss=SQUARED, radius=0.7)
    plan = Boosting.plan(problem, _planner(sweep), epsilon=sweep.epsilon)
    whole, chunk = _planner(sweep)(problem, 1), plan.learner
    errors: dict[str, list[torch.Tensor]] = {"all records": [], "one chunk": [], "boosted": []}
    for number in range(-(-sweep.boosting_trials // TOGETHER)):
        records = squared_records(instance, sweep.boosting_n, sweep.seed, "X6", number)
        for method, found in errors.items():
            keys = [address(sweep.seed, "X6", method, number, draw) for draw in range(TOGETHER)]
            if method == "boosted":
                learned = searches.learn(plan, records, keys)
            elif method == "one chunk":
                learned = searches.learn(chunk, records.part(0, chunk.problem.n), keys)
            else:
                learned = searches.learn(whole, records, keys)
            found.append(instance.excess(learned.weights))
    return pd.concat(
        trial_rows(
            "X6", method, n=sweep.boosting_n, features=1, errors=torch.cat(found)[: sweep.boosting_trials],
            at_zero=float(at_zero(instance)),
        )
        for method, found in errors.items()
    )  # fmt: skip


def _planner(sweep: PrivateRisk) -> Planner:
    def plan(problem: LinearProblem, runs: int) -> OutputPerturbation:
        return OutputPerturbation.plan(problem, epsilon=sweep.epsilon, delta=sweep.delta, runs=runs)

    return plan
