"""The steps and noise that each accountant needs for the same guarantee, from the plans of the runs."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa

from certified_unlearning.mechanisms.run import Run
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs, NoSweep
from certified_unlearning.reproduction.rows import column
from certified_unlearning.reproduction.tabulation import ShownTable
from certified_unlearning.text import counted, rounded_up

ROWS = pa.schema(
    [
        column("quantity", "text", "point"),
        column("epsilon_target", "number", "point"),
        column("accountant", "text", "point"),
        column("value", "number", "measure"),
    ]
)


def make(inputs: Inputs) -> pd.DataFrame:
    """Return the steps and noise that each accountant needs, one row for each quantity, epsilon and accountant."""
    runs = (run for plan in inputs.plans.values() for run in plan.of("langevin"))
    # A stream with one request removes one group at once, as another experiment may do, too.
    return pd.DataFrame([row for run in runs for row in _rows(run)]).drop_duplicates(ignore_index=True)


def page(rows: pd.DataFrame) -> ShownTable:
    """Return the table as shown, with a row for each quantity and epsilon, and a column for each accountant.

    Sigma is rounded up. A dash means that the row's experiment does not use the accountant.
    """
    names = list(dict.fromkeys(rows["accountant"]))
    groups: dict[str, list[list[str]]] = {}
    for quantity, of_quantity in rows.groupby("quantity", sort=False):
        values = of_quantity.set_index(["epsilon_target", "accountant"])["value"].unstack().reindex(columns=names)  # noqa: PD010
        shown = rounded_up if str(quantity).startswith(_LEAST_SIGMA) else lambda value, _: f"{value:,.0f}"
        groups[str(quantity)] = [
            [f"{epsilon:g}", *("–" if pd.isna(value) else shown(float(value), 7) for value in row)]
            for epsilon, row in zip(values.index, values.to_numpy(), strict=True)
        ]
    return ShownTable("", ["epsilon", *names], groups)


_LEAST_SIGMA = "smallest sigma"


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    last, sizes = run.requests[-1], run.records_per_request
    of_request = counted(sizes, "record") if isinstance(sizes, int) else f"{', '.join(map(str, sizes))} records"
    if run.variant == "least-sigma":
        quantity, value = f"{_LEAST_SIGMA} for one request of {of_request} with K = {last.unlearning_steps}", run.sigma
    else:
        value = float(sum(request.unlearning_steps for request in run.requests))
        what = (
            f"total number of steps until {last.records_removed} records are removed, with {of_request} per request and"
            if len(run.requests) > 1
            else f"smallest K for one request of {of_request} with"
        )
        quantity = f"{what} sigma = {run.sigma:g}"
    yield {
        "quantity": quantity,
        "epsilon_target": run.epsilon_target,
        "accountant": run.accountant,
        "value": value,
    }


ACCOUNTANTS = Experiment(
    name="accountants",
    source="",
    sweep=NoSweep,
    rows=ROWS,
    make=make,
    uses=("fig3a", "fig3b", "fig4"),
    page="certified_unlearning.papers.langevin_unlearning.accountants:page",
    caption=Caption(
        "The steps and noise of each accountant, for the same guarantee",
        "Each value is a number of unlearning steps or a noise scale. The accountant lsi is the paper’s analysis. The "
        "accountant lsi-tight is this analysis without slack (optimised Hölder exponents, tight conversion), and "
        "shifted is shifted interpolation, which is exact on quadratic losses.",
    ),
)
