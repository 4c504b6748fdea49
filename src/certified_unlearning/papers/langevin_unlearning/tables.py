"""Tables 1, 2 and 3 of Langevin unlearning, recomputed for one data set under every rule for the smoothness L."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, get_args

import pandas as pd
import pyarrow as pa

from certified_unlearning.mechanisms.constants import constants_and_problem
from certified_unlearning.mechanisms.run import ExperimentPlan
from certified_unlearning.papers.langevin_unlearning import fig3a
from certified_unlearning.papers.langevin_unlearning.smoothness import plans_by_smoothness
from certified_unlearning.papers.langevin_unlearning.sweeps import Figure3a
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs, NoSweep
from certified_unlearning.reproduction.rows import column, columns
from certified_unlearning.vocabulary import Smoothness

CONSTANT_ROWS = pa.schema(
    [
        *columns("text", "constant", "dataset", "features"),
        *columns("whole", "constant", "n", "n_test", "d", "classes"),
        *columns("number", "constant", "largest_eigenvalue", "strong_convexity", "lipschitz", "delta"),
        column("smoothness", "text", "point"),
        column("records", "whole", "point", empty=True),
        *columns("number", "measure", "smoothness_constant", "step_size"),
    ]
)
NOISE_ROWS = pa.schema(
    [
        *columns("text", "constant", "dataset", "features", "mechanism"),
        column("smoothness", "text", "point"),
        column("smoothness_constant", "number", "constant"),
        column("accountant", "text", "point"),
        column("guarantee", "text", "constant"),
        column("unlearning_steps", "whole", "point"),
        column("epsilon_target", "number", "point"),
        column("delta", "number", "constant"),
        column("sigma", "number", "measure"),
    ]
)
REMOVED_ONCE = 1
"""The number of records that ``fig3a`` removes."""


def table1(inputs: Inputs) -> pd.DataFrame:
    """Return the data set's constants: one row for each rule for ``L`` and, if the rule has margins, for each margin.

    ``records`` is the number of removed records in the other experiments, which determines the margin of
    ``spectral-with-margin``. The column is empty if the rule does not depend on this number. ``d`` is the number of
    parameters.
    """
    most = {max(run.requests[-1].records_removed for run in plan.runs) for plan in inputs.plans.values()}
    return constants_by_rule(inputs, {REMOVED_ONCE, *most})


def constants_by_rule(inputs: Inputs, records: Collection[int]) -> pd.DataFrame:
    """Return `table1` for the given numbers of removed records."""
    margins: dict[Smoothness, Collection[int | None]] = dict.fromkeys(get_args(Smoothness), (None,))
    margins["spectral-with-margin"] = sorted(records)
    rows = [_constants(inputs, rule, count) for rule, counts in margins.items() for count in counts]
    return pd.DataFrame(rows).astype({"records": "Int64"})


def table2(inputs: Inputs) -> pd.DataFrame:
    """Return the noise of Descent-to-Delete with secret state.

    There is one row for each combination of a rule for ``L``, an accountant, a number ``I`` of steps and an epsilon.

    ``descent-to-delete N.1`` is the paper's Table 2; ``descent-to-delete shifted`` is the smallest noise for the
    distance after one request.

    Raises:
        AssumptionError: A theorem's assumption does not hold.
        InfeasibleError: A target cannot be met.
    """
    return _noise(inputs, "descent-to-delete")


def table3(inputs: Inputs) -> pd.DataFrame:
    """Return the smallest sigma of Langevin unlearning for the sweep's ``K``.

    There is one row for each combination of a rule for ``L``, an accountant and an epsilon. Raises the same errors as
    `table2`.
    """
    return _noise(inputs, "langevin")


def _constants(inputs: Inputs, rule: Smoothness, records: int | None) -> dict[str, Any]:
    changed = inputs.settings.model_copy(update={"smoothness": rule, "step_size": "1/L"})
    constants, problem = constants_and_problem(changed, inputs.data, records=records or 0)
    return {
        "dataset": inputs.settings.dataset,
        "features": inputs.data["features"],
        "n": constants.n,
        "n_test": int(inputs.data["n_test"]),
        "d": constants.d,
        "classes": constants.classes,
        "largest_eigenvalue": constants.largest_eigenvalue,
        "strong_convexity": constants.strong_convexity,
        "lipschitz": constants.lipschitz,
        "delta": constants.delta,
        "smoothness": rule,
        "records": records,
        "smoothness_constant": constants.smoothness_constant,
        "step_size": problem.step_size,
    }


def _noise(inputs: Inputs, mechanism: str) -> pd.DataFrame:
    sweep = Figure3a.model_validate(inputs.plans[fig3a.FIG3A.name].sweep)
    plans = plans_by_smoothness(fig3a.plan, replace(inputs, sweep=sweep))
    return pd.DataFrame([row for plan in plans for row in _noise_rows(plan, mechanism)])


def _noise_rows(plan: ExperimentPlan, mechanism: str) -> Iterator[dict[str, Any]]:
    for run in sorted(plan.of(mechanism), key=lambda run: run.accountant):
        (request,) = run.requests
        yield {
            "dataset": plan.settings.dataset,
            "features": plan.features,
            "mechanism": mechanism,
            "smoothness": plan.settings.smoothness,
            "smoothness_constant": plan.constants.smoothness_constant,
            "accountant": run.accountant,
            "guarantee": run.guarantee,
            "unlearning_steps": request.unlearning_steps,
            "epsilon_target": run.epsilon_target,
            "delta": plan.constants.delta,
            "sigma": run.sigma,
        }


_ROUNDED = (
    "One record is removed, and each column has one epsilon. Noise is rounded up: with less noise, the "
    "guarantee would not hold."
)
TABLE1 = Experiment(
    name="table1",
    source="Table 1",
    sweep=NoSweep,
    rows=CONSTANT_ROWS,
    make=table1,
    uses=("fig3b", "fig3c", "fig4", "fig5a"),
    caption=Caption(
        "Constants, by the rule for the smoothness L",
        "The rule “bound” is valid no matter which records are removed. The rule “spectral-with-margin” has a margin "
        "for as many removed records as its row states. The rule “spectral” is no guarantee, because removals may "
        "raise the spectrum.",
    ),
)
TABLE2 = Experiment(
    name="table2",
    source="Table 2",
    sweep=NoSweep,
    rows=NOISE_ROWS,
    make=table2,
    uses=("fig3a",),
    caption=Caption("Noise of Descent-to-Delete with secret state, at each epsilon", _ROUNDED),
)
TABLE3 = Experiment(
    name="table3",
    source="Table 3",
    sweep=NoSweep,
    rows=NOISE_ROWS,
    make=table3,
    uses=("fig3a",),
    caption=Caption("Smallest sigma of Langevin unlearning, at each epsilon", _ROUNDED),
)
