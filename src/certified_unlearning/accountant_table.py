"""One guarantee, several accountants: steps and noise that each asks for, read from plans."""

from collections.abc import Sequence

import pandas as pd

from certified_unlearning.experiments.model import Plan, Run
from certified_unlearning.markdown import table_lines
from certified_unlearning.rounding import rounded_up


def accountant_table(plans: Sequence[Plan]) -> pd.DataFrame:
    """Return what each accountant asks for, one row per quantity, one column per accountant.

    Args:
        plans: Plans of one preset; the Langevin runs of ``fig3a``, ``fig3b`` and ``fig4`` are used.

    Returns:
        Index ``quantity``; cells are texts such as ``4461, 1997, 903, 327``, one number for each epsilon; sigma is
        rounded up, so that it still meets its epsilon. A dash where an experiment does not use the accountant.
    """
    cells: dict[str, dict[str, list[str]]] = {}
    for run in (run for plan in plans for run in plan.of("langevin") if run.experiment in _QUANTITIES):
        cells.setdefault(_quantity(run, plans), {}).setdefault(run.accountant, []).append(_number(run))
    frame = pd.DataFrame({quantity: pd.Series(row).str.join(", ") for quantity, row in cells.items()}).T
    return frame.fillna("–").rename_axis("quantity")


def markdown(table: pd.DataFrame) -> str:
    """Return the table as Markdown, ending with a newline."""
    rows = [[str(quantity), *row] for quantity, row in zip(table.index, table.to_numpy().tolist(), strict=True)]
    return "\n".join(table_lines(["", *table.columns], rows)) + "\n"


_QUANTITIES = ("fig3a", "fig3b", "fig4")


def _quantity(run: Run, plans: Sequence[Plan]) -> str:
    last = run.requests[-1]
    if run.experiment == "fig3b":
        return (
            f"all steps, S = {run.records_per_request} a request until {last.records_removed} are removed: "
            f"sigma = {run.sigma:g}, epsilon = {run.epsilon_target:g}"
        )
    epsilons = dict.fromkeys(
        f"{other.epsilon_target:g}"
        for plan in plans
        for other in plan.of("langevin")
        if other.experiment == run.experiment
    )
    at = f"epsilon = {', '.join(epsilons)}"
    if run.experiment == "fig3a":
        return f"least sigma, S = {run.records_per_request}, K = {last.unlearning_steps}: {at}"
    return f"least K, S = {run.records_per_request} at once: sigma = {run.sigma:g}, {at}"


def _number(run: Run) -> str:
    if run.experiment == "fig3a":
        return rounded_up(run.sigma, 7)
    return str(sum(request.unlearning_steps for request in run.requests))
