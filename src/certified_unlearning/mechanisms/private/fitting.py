"""Checks that records have the properties for which a plan was made."""

from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.accounting.private.plan import DisjointPlan
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.errors import ParameterError
from certified_unlearning.text import counted


def require_fitting(problem: LinearProblem, records: BoundedRecords) -> None:
    """Raise `ParameterError` unless records have the number, columns, loss and bound for which noise was planned.

    A plan for shorter rows, or for more records, would add too little noise.
    """
    found = {"n": len(records), "features": records.features, "loss": records.loss}
    for name, value in found.items():
        planned = getattr(problem, name)
        if value != planned:
            raise ParameterError(f"the plan is for {name} = {planned}, but the records have {value}")
    if not records.row_norm <= problem.row_norm:
        raise ParameterError(
            f"the plan is for rows of norm at most {problem.row_norm:g}, but the bound of the records is "
            f"{records.row_norm:g}"
        )


def require_count_of(plan: DisjointPlan, records: BoundedRecords) -> None:
    """Raise `ParameterError` unless there are as many records as a plan reads and leaves over together."""
    due = plan.learned + plan.left_over
    if len(records) != due:
        raise ParameterError(f"the plan is for {counted(due, 'record')}, got {len(records)}")
