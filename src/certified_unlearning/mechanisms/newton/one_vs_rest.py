"""Each class against the rest: one model of two classes for each class.

All models are unlearned and released together. The objective is the sum, over classes, of the logistic losses against
the rest. So it separates into one objective for each class, with weights of its own. The weights of all classes are
published together, each with independent noise. Together, they form one Gaussian vector, and the shift of its mean is
the root of the sum of the classes' squared shifts (`accounting.residual.release.together`). The budget bounds this
shift. Each class gets the share of the budget that it needs.

A removed record leaves all models. It is a positive record for the model of its own class, and a negative record for
the other models. One product computes the contribution of the removed rows for all classes. If a request would exceed
the budget, a pass reads the rows once, for all classes whose share of the budget is not small. If this does not help,
or if the number of removed records requires it, all classes are fitted from scratch. If no Hessian is computed, every
request refits all classes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.accounting.residual import release, schedule
from certified_unlearning.engine.objectives.float64 import gradients, removed_gradients, root_curvatures
from certified_unlearning.mechanisms.certified_refit import Fitted, objective_of, refit
from certified_unlearning.mechanisms.newton.state import Array, Removed
from certified_unlearning.mechanisms.newton_removal import NewtonRemoval
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from certified_unlearning.vocabulary import Reading


class ClassModels(NamedTuple):
    """The models of all classes, each against the rest.

    All models are secret.

    Attributes:
        of_class: The models in the order of classes; without Newton steps, they are `Fitted`.
    """

    of_class: Sequence[Any]

    @property
    def weights(self) -> Array:
        """All weights, class by class, shape ``(classes d,)``."""
        return np.concatenate([each.weights for each in self.of_class])

    @property
    def residual(self) -> float:
        """An upper bound on the norm of the vector of the gradients of all classes' objectives."""
        return release.together(each.residual for each in self.of_class)


@dataclass(frozen=True)
class OneVsRest:
    """A mechanism that fits the models of each class against the rest and removes records from them.

    Attributes:
        plan: The plan, with `RefitPlan.one_vs_rest`.
    """

    plan: RefitPlan

    def fit(self, rows: Any, numbers: NDArray[np.int64]) -> ClassModels:
        """Fit all classes from scratch.

        Args:
            rows: Rows of norm at most 1 (to within 1e-6), shape ``(n, d)``.
            numbers: Class indices of the records, shape ``(n,)``.

        Raises:
            InfeasibleError: The solver did not reach the budget.
            AssumptionError: A Hessian is not positive definite in float64, or float64 is not precise enough for the
                budget.
        """
        if self.plan.removes_by_newton:
            return ClassModels([each.fit(rows, numbers) for each in self._classes])
        return ClassModels([self._refitted(positive, rows, numbers) for positive in range(self.plan.classes)])

    def remove(
        self,
        models: ClassModels,
        gone: Any,
        gone_numbers: NDArray[np.int64],
        rows: Any,
        numbers: NDArray[np.int64],
        *,
        since_read: int,
    ) -> tuple[ClassModels, Reading]:
        """Remove some records; return the new models, and a description of how the data were read.

        Args:
            models: The models before the removal. If the request does not read the data, the curvatures of these models
                become those of the new models, and are changed in place.
            gone: Rows of the removed records, shape ``(S, d)``. Rows in float32 are not converted. If every request
                reads the data, ``gone`` is not used.
            gone_numbers: Class indices of the removed records, shape ``(S,)``.
            rows: All rows; those of all removed records are already zero. ``rows`` is used only if the request reads
                the data.
            numbers: Class indices of all records, shape ``(n,)``.
            since_read: Number of records that were removed since the last reading, not counting those of this request.

        Raises:
            InfeasibleError: The solver did not reach the budget.
            AssumptionError: A Hessian is not positive definite in float64.
        """
        plan = self.plan
        if not plan.removes_by_newton or since_read + len(gone_numbers) > plan.records_between_reads:
            return self.fit(rows, numbers), "scheduled"
        if all(each.curvature.usable for each in models.of_class):
            before, models = self._certified_by_class(models), self._step_without(models, gone, gone_numbers)
            after = self._certified_by_class(models)
            if release.together(after) <= plan.budget:
                return models, "none"
            if plan.by_passes:
                # The increase by this request, as if the budget had been unused before.
                of_request = math.dist(before, after)
                corrected = self._corrected(models, after, rows, numbers, of_request=of_request)
                if corrected is not None:
                    return corrected, "pass"
        return self.fit(rows, numbers), "unscheduled"

    def certified(self, models: ClassModels) -> float:
        """Return an upper bound on ``m |W - W*_R|`` for the weights of all classes together, rounded up."""
        return release.together(self._certified_by_class(models))

    def _certified_by_class(self, models: ClassModels) -> list[float]:
        return [each.certified(model) for each, model in zip(self._classes, models.of_class, strict=True)]

    def _step_without(self, models: ClassModels, gone: Array, gone_numbers: NDArray[np.int64]) -> ClassModels:
        """Return the models after one step each, however large their residuals are."""
        plan, gone = self.plan, gone.astype(np.float64, copy=False)
        weights = np.stack([each.weights for each in models.of_class])
        at = np.stack([each.curvature.at for each in models.of_class])
        ghat = removed_gradients(gone, gone_numbers, weights, plan.n, plan.class_weights)
        roots = root_curvatures(gone, gone_numbers, at, plan.class_weights)
        return ClassModels(
            [
                # The curved rows of one class at a time, because those of all classes would multiply the memory of the
                # removed rows.
                each.after(model, Removed(of_class, root[:, None] * gone))
                for each, model, of_class, root in zip(self._classes, models.of_class, ghat, roots, strict=True)
            ]
        )

    def _corrected(
        self,
        models: ClassModels,
        certified: list[float],
        rows: Any,
        numbers: NDArray[np.int64],
        *,
        of_request: float,
    ) -> ClassModels | None:
        """Return the models after passes that correct the weights; None if passes do not suffice.

        Passes end when the bound is small enough, or when a pass does not halve it. The method is that of
        `NewtonRemoval`. A pass leaves out classes whose bounds are already small enough.

        Args:
            models: The models after the steps of a request.
            certified: The certified bound of each class's model.
            rows: All rows; those of removed records are zero.
            numbers: Class indices of all records, shape ``(n,)``.
            of_request: The increase of the certified bound by those steps.
        """
        plan, of_class, before = self.plan, list(models.of_class), math.inf
        target = (schedule.START_SHARE if of_request <= plan.budget else 1.0) * plan.budget
        enough = release.share_of_each(target, plan.classes)
        objective = objective_of(plan.of_one_class(), rows, numbers, positive=0)
        while True:
            those = [positive for positive, bound in enumerate(certified) if bound > enough]
            found = gradients(objective, np.stack([of_class[each].weights for each in those]), those)
            for each, gradient in zip(those, found, strict=True):
                weights, _, curvature = of_class[each]
                of_class[each] = self._classes[each].corrected(weights, gradient, curvature)
            certified = self._certified_by_class(ClassModels(of_class))
            after = release.together(certified)
            if after <= target or after > before / 2:
                return ClassModels(of_class) if after <= plan.budget else None
            before = after

    def _refitted(self, positive: int, rows: Any, numbers: NDArray[np.int64]) -> Fitted:
        objective = objective_of(self.plan.of_one_class(), rows, numbers, positive)
        self.plan.require_representable(objective.terms)
        return refit(self.plan.of_one_class(), objective)

    @cached_property
    def _classes(self) -> list[NewtonRemoval]:
        """The method by which each class's model is fitted and changed."""
        plan = self.plan.of_one_class()
        return [NewtonRemoval(plan, positive=positive) for positive in range(self.plan.classes)]
