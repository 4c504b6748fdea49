"""Models without a Newton step: how they are learned, how records leave them, and how they are stored."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from certified_unlearning.engine.objectives.float64 import Rows, SoftmaxRegression64
from certified_unlearning.mechanisms.certified_refit import Fitted, objective_of, refit
from certified_unlearning.mechanisms.refit_plan import RefitPlan, may_pass
from certified_unlearning.mechanisms.refits import softmax
from certified_unlearning.mechanisms.refits.guide import Guide
from certified_unlearning.vocabulary import Reading

Arrays = Mapping[str, NDArray[Any]]
RECORDS_A_COLUMN = 2
"""Smallest number of records per column for which a guiding matrix saves more than it costs."""


def learned(plan: RefitPlan, rows: Rows, labels: NDArray[Any]) -> Fitted:
    """Learn a model from these rows alone.

    Args:
        plan: A plan whose removals are not Newton steps.
        rows: All rows; those of removed records are zero.
        labels: Labels of all rows, as for `objective_of`.

    Raises:
        AssumptionError: float64 is not precise enough for the budget.
        InfeasibleError: The solver did not reach the budget.
    """
    objective = objective_of(plan, rows, labels)
    plan.require_representable(objective.terms)
    may = plan.classes > 2 and may_pass(plan.classes, plan.features, sparse=issparse(rows))
    if plan.by_passes or (may and plan.n >= RECORDS_A_COLUMN * plan.features):
        return softmax.fit(plan, cast(SoftmaxRegression64, objective))
    return refit(plan, objective)


def without(
    plan: RefitPlan,
    fitted: Fitted,
    gone: tuple[NDArray[Any], NDArray[Any]] | None,
    rows: Rows,
    labels: NDArray[Any],
    *,
    since_read: int,
) -> tuple[Fitted, Reading]:
    """Return the model after the removal of some records, and the way in which the rows were read.

    Args:
        plan: The plan.
        fitted: The model with these records; it is not changed.
        gone: Rows and labels of these records; None if they are lost.
        rows: All rows; those of all removed records are already zero.
        labels: All labels.
        since_read: Number of records that were removed since the model was last learned anew, including those of this
            request.

    Raises:
        AssumptionError: float64 is not precise enough for the budget.
        InfeasibleError: The solver did not reach the budget.
    """
    if not plan.by_passes or since_read > plan.records_between_reads:
        return learned(plan, rows, labels), "scheduled"
    objective, removed = cast(SoftmaxRegression64, objective_of(plan, rows, labels)), None
    if gone is not None:
        own = np.asarray(gone[0], np.float64), np.asarray(gone[1], np.int64)
        removed = SoftmaxRegression64(*own, plan.n, 0.0, plan.classes, plan.class_weights)
    corrected = softmax.corrected(plan, fitted, removed, objective)
    if corrected is None:
        return learned(plan, rows, labels), "unscheduled"
    return corrected, "pass"


def packed(fitted: Fitted) -> dict[str, NDArray[Any]]:
    """Return the arrays that a file stores in addition to the weights."""
    return {} if fitted.guide is None else dict(vars(fitted.guide))


def unpacked(header: Mapping[str, Any], arrays: Arrays, weights: NDArray[np.float64]) -> Fitted:
    """Return the model from a file.

    Models of earlier releases have no guide.
    """
    if "gradient" not in arrays:
        return Fitted(weights, header["residual"])
    # Files store arrays in C order; the factor needs Fortran order.
    guide = {name: arrays[name] for name in ("gradient", "steps", "changes")}
    return Fitted(weights, header["residual"], Guide(factor=np.asfortranarray(arrays["factor"]), **guide))
