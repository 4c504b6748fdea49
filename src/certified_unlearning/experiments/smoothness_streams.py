"""Fig. 3b under every rule for the smoothness L: steps of a stream of requests. Nothing is simulated."""

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any, get_args

import pandas as pd

from certified_unlearning.experiments.model import Experiment, Plan
from certified_unlearning.experiments.plan import make_plan
from certified_unlearning.parameters import Common, Figure3b, Smoothness, Sweep


def plans_by_smoothness(
    settings: Common, experiment: Experiment, sweep: Sweep, data: Mapping[str, Any]
) -> Iterator[Plan]:
    """Yield the plan of one experiment under every rule for ``L``, each with its own step size 1/L.

    Args:
        settings: The preset's settings; their own smoothness and step size do not matter.
        experiment: The experiment's name.
        sweep: What it sweeps over.
        data: Summary of the prepared data set (`data.prepared.PreparedData.summary`).

    Raises:
        ParameterError: More removals than records, or another value that makes no sense.
        AssumptionError: A theorem's assumption does not hold.
        InfeasibleError: A target cannot be met.
    """
    for rule in get_args(Smoothness):
        changed = settings.model_copy(update={"smoothness": rule, "step_size": "1/L"})
        # The preset's name is part of records only, and there will be none.
        yield make_plan(settings.dataset, changed, experiment, sweep, data, exact_arithmetic=True)


def smoothness_table(settings: Common, sweep: Figure3b, data: Mapping[str, Any]) -> pd.DataFrame:
    """Return steps against records removed under every rule for ``L`` (`results.STREAM_SCHEMA`).

    Langevin unlearning by every accountant of the sweep, for requests of every size, beside Descent-to-Delete without
    secret state (Theorem N.2 as printed, and tightened).

    Args:
        settings: The preset's settings.
        sweep: What to sweep over.
        data: Summary of the prepared data set.

    Raises:
        ParameterError: More removals than records, or another value that makes no sense.
        AssumptionError: A theorem's assumption does not hold.
        InfeasibleError: A target cannot be met.
    """
    plans = plans_by_smoothness(settings, "fig3b", sweep, data)
    return pd.DataFrame([row for plan in plans for row in _rows(plan)])


def _rows(plan: Plan) -> Iterator[dict[str, Any]]:
    for run in (*plan.of("langevin"), *plan.of("descent-to-delete")):
        steps = accumulate(request.unlearning_steps for request in run.requests)
        for number, (request, accumulated) in enumerate(zip(run.requests, steps, strict=True), start=1):
            yield {
                "experiment": "smoothness",
                "dataset": plan.settings.dataset,
                "features": plan.features,
                "mechanism": run.mechanism,
                "variant": run.variant,
                "accountant": run.accountant,
                "guarantee": run.guarantee,
                "adjacency": plan.settings.adjacency,
                "smoothness": plan.settings.smoothness,
                "epsilon_target": run.epsilon_target,
                "epsilon": request.epsilon,
                "mu": request.mu,
                "delta": plan.constants.delta,
                "n": plan.constants.n,
                "d": plan.constants.d,
                "strong_convexity": plan.constants.strong_convexity,
                "smoothness_constant": plan.constants.smoothness_constant,
                "lipschitz": plan.constants.lipschitz,
                "step_size": run.step_size,
                "sigma": run.sigma,
                "unlearning_steps": request.unlearning_steps,
                "accumulated_steps": accumulated,
                "records_per_request": run.records_per_request,
                "request": number,
                "records_removed": request.records_removed,
            }
