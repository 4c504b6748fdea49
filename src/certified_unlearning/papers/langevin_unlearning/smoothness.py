"""Fig. 3b under every rule for the smoothness L: the steps of a stream of requests. Nothing is simulated."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any, get_args

import pandas as pd
import pyarrow as pa

from certified_unlearning.mechanisms.run import ExperimentPlan
from certified_unlearning.papers.langevin_unlearning import fig3b
from certified_unlearning.papers.langevin_unlearning.captions import ANEW
from certified_unlearning.papers.langevin_unlearning.sweeps import Figure3b
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs, NoSweep
from certified_unlearning.reproduction.rows import RUN_ROWS, fields_of_run
from certified_unlearning.vocabulary import Smoothness

ROWS = pa.schema(
    [
        RUN_ROWS.field(name)
        for name in (
            "experiment", "dataset", "features", "mechanism", "variant", "accountant", "guarantee", "method", "member",
            "line", "adjacency", "smoothness", "epsilon_target", "epsilon", "mu", "delta", "n", "d",
            "strong_convexity", "smoothness_constant", "lipschitz", "step_size", "sigma", "unlearning_steps",
            "accumulated_steps", "records_per_request", "request", "records_removed",
        )
    ]
)  # fmt: skip
"""The columns of streams of requests that were planned and not run: one row for each request."""


def plans_by_smoothness(plan: Callable[..., ExperimentPlan], inputs: Inputs) -> Iterator[ExperimentPlan]:
    """Yield an experiment's plan under every rule for ``L``, with the step size 1/L, in exact arithmetic.

    Args:
        plan: The function that plans the experiment, such as `fig3b.plan`.
        inputs: The inputs; the smoothness and the step size of their settings are ignored.

    Raises:
        ParameterError: More records are removed than there are.
        AssumptionError: A theorem's assumption does not hold.
        InfeasibleError: A target cannot be met.
    """
    for rule in get_args(Smoothness):
        settings = inputs.settings.model_copy(update={"smoothness": rule, "step_size": "1/L"})
        yield plan(replace(inputs, settings=settings), exact_arithmetic=True)


def make(inputs: Inputs) -> pd.DataFrame:
    """Return the number of steps against the number of removed records, under every rule for ``L``.

    The sweep is that of ``fig3b``. The rows are Langevin unlearning with every accountant, for requests of every size,
    and Descent-to-Delete without secret state (Theorem N.2 as printed, and tightened). Raises the same errors as
    `plans_by_smoothness`.
    """
    sweep = Figure3b.model_validate(inputs.plans[fig3b.FIG3B.name].sweep)
    plans = plans_by_smoothness(fig3b.plan, replace(inputs, sweep=sweep))
    return pd.DataFrame([row for plan in plans for row in _rows(plan)])


def _rows(plan: ExperimentPlan) -> Iterator[Mapping[str, Any]]:
    for run in (run for run in plan.runs if run.mechanism not in ANEW):
        steps = accumulate(request.unlearning_steps for request in run.requests)
        for number, (request, accumulated) in enumerate(zip(run.requests, steps, strict=True), start=1):
            yield {
                **fields_of_run(plan, run, ROWS),
                "experiment": SMOOTHNESS.name,
                "epsilon": request.epsilon,
                "mu": request.mu,
                "unlearning_steps": request.unlearning_steps,
                "accumulated_steps": accumulated,
                "request": number,
                "records_removed": request.records_removed,
            }


SMOOTHNESS = Experiment(
    name="smoothness",
    source="Fig. 3b",
    sweep=NoSweep,
    rows=ROWS,
    make=make,
    uses=("fig3b",),
    draw="certified_unlearning.papers.langevin_unlearning.figures.smoothness:draw",
    caption=Caption(
        "Unlearning steps of a stream of requests under each smoothness rule",
        "The same requests are planned with three values of L: from the bound that holds for every data set, from "
        "the spectrum of this data set, and from the spectrum with a margin for the removed records. Nothing is "
        "simulated. The bound is 1/4 + λ, or 1 + λ for more than two classes. The spectral L without margin gives "
        "the step counts that the authors’ code stored, whereas the paper states the bound and prints no counts. "
        "This L is no guarantee, because removals may raise the spectrum. The figure has a column for each rule, "
        "and a row for each number S of records per request of Langevin unlearning. Descent-to-Delete removes one "
        "record per request and is the same in all rows. The axes of steps are linear, as in the paper, and differ "
        "from row to row.",
        "A grid of panels with a column for each smoothness rule and a row for each S. Lines show accumulated "
        "unlearning steps against the number of removed records.",
    ),
)
