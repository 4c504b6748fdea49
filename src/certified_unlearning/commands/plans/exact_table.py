"""The command `unlearn plan exact`: it prints plans of exact unlearning as a table."""

import json
import math
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from certified_unlearning.commands.plans.exact import MECHANISMS, ExactFlags, ExactPlan, exact_plans
from certified_unlearning.text import counted, rounded_up


def run(flags: ExactFlags, *, as_json: bool) -> None:
    """Print the plan with constants that suffice, and the plan with published constants.

    Raises:
        UnlearningError: A flag is missing or invalid; the message names it.
    """
    plans = exact_plans(flags)
    if as_json:
        print(json.dumps([asdict(plan) for plan in plans], indent=2))
    else:
        _print(plans, flags)


def _shown(gradients: float | None) -> str:
    if gradients is None:
        return ""
    return rounded_up(gradients, 3) if gradients < 100 else f"{math.ceil(gradients):,}"


def _print(plans: list[ExactPlan], flags: ExactFlags) -> None:
    table = Table()
    first, mechanism = plans[0], MECHANISMS[flags.mechanism]
    timed = first.step_size is not None
    for name in (
        "constants",
        "steps T",
        *(["batch m"] if first.batch_size else []),
        *(["step size"] if timed else []),
        *([mechanism.noise] if mechanism.noise else []),
        "computes again",
        "as printed",
        "learning",
        "a deletion",
    ):
        table.add_column(name, justify="left" if name == "constants" else "right", no_wrap=True)
    for plan in plans:
        table.add_row(
            plan.constants if plan.constants == "sharp" else plan.source,
            f"{plan.steps:,}",
            *([f"{plan.batch_size:,}"] if first.batch_size else []),
            *([f"{plan.step_size:.4g}"] if timed else []),
            *([rounded_up(plan.noise)] if mechanism.noise else []),
            rounded_up(plan.recompute_probability, 4),
            "" if plan.constants == "sharp" else rounded_up(plan.stated_probability, 4),
            f"{plan.learning_gradients:,}",
            _shown(plan.deletion_gradients),
        )
    console = Console()
    # A narrower console would cut the numbers off.
    console.width = max(console.width, console.measure(table, options=console.options.update(max_width=1000)).maximum)
    console.print(table)
    bounded = "" if flags.lipschitz is None else f" and {mechanism.bounded.format(flags)}"
    console.print(
        f"Unlearning is exact, whatever these numbers are. They determine what edits of {flags.mechanism} cost while "
        f"there are at {mechanism.records} {counted(flags.n, 'record')}{bounded}. Computes again: an upper bound on "
        "the probability that a deletion repeats part of learning. As printed: the source's bound on this probability. "
        "Learning: the number of gradients of single records' losses. A deletion: an upper bound on the mean number of "
        "such gradients, including tests. Keep steps, batches and noise the same over all edits."
    )
