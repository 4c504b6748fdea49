"""Newton removal: requests are answered in time ``O(S d + d^2)``, whatever the number of remaining records.

The mechanism is for logistic regression with two classes and for ridge regression. In ridge regression, a step is exact
up to rounding. A request takes one step against the removed records' contribution to the gradient. The step uses a
factor of the Hessian that was computed when the data were last read. Then the request bounds the remaining gradient
(`accounting.residual.newton`). If the bound stays within the budget, no row is read. Otherwise, the data are read and
the model is fitted anew. The data are also read after more removals than the plan allows.

All parts of a model are secret. Until the data are read again, these parts are functions of removed records. With
downdates, the matrix depends, up to rounding, only on the remaining rows, but its weights ``w_B`` depend on removed
records. The factor only guides the solver; the residual of the solver's solution is evaluated with the matrix. A
reading starts from scratch, so no trace of the removed records remains.

If a reading is expensive (`RefitPlan.by_passes`), a request that would exceed the budget takes a *pass* first. A pass
evaluates the whole gradient over the remaining rows. Then the pass takes one more step against this gradient, with the
existing matrix. The earlier bound on the gradient is then obsolete. The pass also measures the largest change of any
remaining row's score since ``w_B``. Without a pass, ``|w - w_B|`` is used instead, which is often many times larger. A
pass keeps ``w_B``, the matrix and the factor, so the secret state still depends on the removed records. Only readings
end this dependence. With and without passes, a reading takes place when more than `RefitPlan.records_between_reads`
records have been removed. A request that would exceed the budget also causes a reading, unless passes correct the
weights. Plans with passes certify the distance to the minimiser, by the smallest of three bounds
(`accounting.residual.distance`), not by the gradient's norm alone.
"""

import functools
import math
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsymv

from certified_unlearning.accounting.residual import rounding, schedule
from certified_unlearning.accounting.residual.distance import Left, change_by_counts, distance, left_after
from certified_unlearning.accounting.residual.newton import Step, residual_after
from certified_unlearning.engine.objectives.float64 import (
    LogisticRegression64,
    RidgeRegression64,
    curved_rows,
    downdate,
    removed_gradient,
)
from certified_unlearning.errors import InfeasibleError
from certified_unlearning.mechanisms.certified_refit import gradient_error, norm_above, objective_of, sampled
from certified_unlearning.mechanisms.newton.change import change_of
from certified_unlearning.mechanisms.newton.secants import Secants
from certified_unlearning.mechanisms.newton.state import (
    Answer,
    Array,
    Curvature,
    Model,
    Removed,
    factor_of,
    solve,
    solved,
)
from certified_unlearning.mechanisms.refit_plan import RefitPlan

Objective = LogisticRegression64 | RidgeRegression64
Labels = NDArray[np.float64] | NDArray[np.int64]
_ROUNDS = 60
SAMPLE_SHARE = 0.01
"""A fit on a sample stops when the norm of the gradient is at most this share of the first gradient's norm.

A smaller gradient would not help, because the records outside the sample change the solution by more.
"""
LEAST_NARROW = 256
"""Smallest number of columns for which products take most of the time that computing a Hessian takes."""
NARROW_SHARE = 0.01
"""Largest share of the budget that float32 products of the Hessian may use in a step for one record.

Only plans with passes use float32 products of the Hessian.
"""
NEAR = 0.1
"""Largest ``|w - w_B|`` at which a pass does not evaluate the change of scores.

Evaluating the change of scores makes a pass slower by 20 %, and improves the bounds only a little.
"""
SHARE_OF_A_STEP = 0.02
"""Share of `schedule.REMAINDER_SHARE` that the remainder of a request may use, in a plan with passes."""


@dataclass(frozen=True)
class NewtonRemoval:
    """A mechanism that fits the models of one plan and removes records from them.

    Attributes:
        plan: The plan. It is for two classes, for ridge regression, or for one class against the rest.
        largest_eigenvalue: Certified upper bound ``rho`` on the largest eigenvalue of ``X'X / n``; None: the bound for
            rows of norm 1.
        positive: The class that is compared with the rest, if labels are class numbers; otherwise None.
    """

    plan: RefitPlan
    largest_eigenvalue: float | None = field(default=None)
    positive: int | None = field(default=None)

    def fit(self, rows: Array, labels: Labels) -> Model:
        """Fit from scratch: read the data until the gradient is small, compute the Hessian there, and take a last step.

        Args:
            rows: Rows of norm at most 1 (to within 1e-6), shape ``(n, d)``.
            labels: Labels -1.0 or 1.0; targets from -1 to 1 for ridge regression; class numbers if one class is
                compared with the rest. Shape ``(n,)``.

        Raises:
            InfeasibleError: The solver did not reach the budget.
            AssumptionError: The Hessian is not positive definite in float64.
        """
        plan, objective = self.plan, self._objective(rows, labels)
        start, every = np.zeros(plan.features), 1 if self._is_quadratic else sampled(*rows.shape)
        if every > 1:
            # A sample's Hessian only guides the start.
            some = objective.sample(every)
            start, _, hessian = self._newton(some, start, share=SAMPLE_SHARE, narrow=self._narrow_guides)
            start = self._by_secants(objective, start, factor_of(hessian))
        weights, gradient, hessian = self._newton(objective, start, narrow=self._narrow)
        error = self._hessian_error(plan.n, weights, narrow=self._narrow)
        curvature = Curvature(weights, hessian, factor_of(hessian), error)
        model = self.corrected(weights, gradient, curvature)
        if model.residual > schedule.START_SHARE * plan.budget:
            raise InfeasibleError(
                f"after the data were read, the gradient's norm is {model.residual:.3g}, but it must be at most a "
                f"tenth of the budget, {plan.budget:.3g}; a larger sigma or a smaller C makes the budget larger"
            )
        return model

    def remove(
        self,
        model: Model,
        gone: Array,
        gone_labels: Array,
        rows: Array,
        labels: Array,
        *,
        since_read: int,
    ) -> Answer:
        """Return the model without some records, in time ``O(S d + d^2)`` unless the data are read.

        Args:
            model: The model. Unless the data are read, the new model takes over this model's curvature and changes it
                in place.
            gone: Rows of the removed records, shape ``(S, d)``. Rows in float32 are not converted.
            gone_labels: Labels of the removed records, shape ``(S,)``.
            rows: All rows; those of all removed records are already zero. ``rows`` is used only if the request reads
                the data.
            labels: All labels.
            since_read: Number of records that were removed since the last reading, not counting those of this request.

        Raises:
            InfeasibleError: The solver did not reach the budget.
            AssumptionError: The Hessian is not positive definite in float64.
        """
        if since_read + len(gone) > self.plan.records_between_reads:
            return Answer(self.fit(rows, labels), "scheduled")
        if model.curvature.usable:
            before, model = self.certified(model), self._step_without(model, gone, gone_labels)
            after = self.certified(model)
            if after <= self.plan.budget:
                return Answer(model, "none")
            if self.plan.by_passes:
                corrected = self._corrected(model, rows, labels, of_request=after - before)
                if corrected is not None:
                    return Answer(corrected, "pass")
        return Answer(self.fit(rows, labels), "unscheduled")

    def certified(self, model: Model) -> float:
        """Return an upper bound on ``m |w - w*_R|``, rounded up.

        If the plan has no passes, the result is the bound on the gradient's norm. If the plan has passes, the result is
        the smaller of this bound and a bound that uses curvature.

        The budget limits the result. Public rows make ``m`` larger (`RefitPlan.least_curvature`).
        """
        if not self.plan.by_passes:
            return model.residual
        strong_convexity = self.plan.strong_convexity
        moved = min(norm_above(model.weights - model.curvature.at) * rounding.OUTWARD, model.left.moved)
        away = distance(model.left, moved=moved, strong_convexity=strong_convexity)
        return min(model.residual, self.plan.least_curvature * away * rounding.OUTWARD)

    def _corrected(self, model: Model, rows: Array, labels: Array, *, of_request: float) -> Model | None:
        """Return the model after passes that correct the weights; None if passes do not suffice.

        Passes end when the certified bound is small enough, or when a pass does not halve it.

        Args:
            model: The model after the step of a request.
            rows: All rows; those of removed records are zero.
            labels: All labels.
            of_request: The increase of the certified bound by that step. If this increase alone exceeds the budget, the
                next request reads the rows anyway, so a bound within the budget suffices.
        """
        plan, objective = self.plan, self._objective(rows, labels)
        target = (schedule.START_SHARE if of_request <= plan.budget else 1.0) * plan.budget
        before = math.inf
        while True:
            gradient, farthest = self._read(objective, model.weights, model.curvature.at)
            model = self.corrected(model.weights, gradient, model.curvature, farthest=farthest)
            after = self.certified(model)
            if after <= target or after > before / 2:
                return model if after <= plan.budget else None
            before = after

    def _read(self, objective: Objective, weights: Array, at: Array) -> tuple[Array, float]:
        """Return the gradient, and the largest change of a row's score since ``at``.

        If the change is not evaluated, infinity is returned instead of the change.
        """
        if norm_above(weights - at) <= NEAR:
            return objective.gradient(weights), math.inf
        # A plan of ridge regression uses no passes.
        return cast(LogisticRegression64, objective).gradient_and_farthest(weights, at)

    def _step_without(self, model: Model, gone: Array, gone_labels: Array) -> Model:
        """Return the model after one step, however large its residual is."""
        plan, squared = self.plan, self._is_quadratic
        gone = gone.astype(np.float64, copy=False)
        ghat = removed_gradient(gone, gone_labels, model.weights, plan.n, plan.class_weights, squared=squared)
        curved = gone if squared else curved_rows(gone, gone_labels, model.curvature.at, plan.class_weights)
        return self.after(model, Removed(ghat, curved))

    def after(self, model: Model, removed: Removed) -> Model:
        """Return the model after the step for the removal of some records.

        The given curvature is changed in place.
        """
        plan, (weights, left, curvature), (ghat, curved) = self.plan, model, removed
        records = len(curved)
        ghat_error = rounding.gradient_error(
            records=records,
            n=plan.n,
            features=plan.features,
            classes=plan.classes,
            weight_norm=norm_above(weights),
            strong_convexity=0.0,
        )
        curvature.usable = False
        if plan.by_passes:
            left = self._changed(left, curved, curvature)
        error, not_downdated = curvature.error, curvature.not_downdated + records
        if plan.downdate:
            downdate(curvature.matrix, curved, plan.n)
            error += self._hessian_error(records, curvature.at, downdated=True)
            error, not_downdated = error * rounding.OUTWARD, 0
        changed = Curvature(curvature.at, curvature.matrix, curvature.factor, error, not_downdated)
        # With passes, no plan fixes how many records leave before the remaining gradient is evaluated again.
        share = SHARE_OF_A_STEP if plan.by_passes else records / max(plan.records_between_reads, records)
        enough = min(schedule.REMAINDER * math.sqrt(float(ghat @ ghat)), schedule.REMAINDER_SHARE * plan.budget * share)
        before = left.plus(ghat_error, strong_convexity=plan.strong_convexity)
        return self._step(weights, before, ghat, changed, enough)

    def corrected(self, weights: Array, gradient: Array, curvature: Curvature, *, farthest: float = math.inf) -> Model:
        """Return the model after a step against the whole gradient at the given weights.

        Args:
            weights: ``w``, shape ``(d,)``.
            gradient: The gradient over all rows, shape ``(d,)``.
            curvature: ``B``, with its factor and error.
            farthest: The largest evaluated ``|a.(w - w_B)|`` over all rows ``a``; infinite if it was not evaluated.
        """
        plan = self.plan
        rounded = Left.of_residual(gradient_error(plan, weights), strong_convexity=plan.strong_convexity)
        moved = rounding.score_move(farthest, features=plan.features, moved=norm_above(weights - curvature.at))
        rounded = replace(rounded, moved=moved)
        enough = schedule.REMAINDER * schedule.START_SHARE * plan.budget
        return self._step(weights, rounded, gradient, curvature, enough)

    def _changed(self, left: Left, curved: Array, curvature: Curvature) -> Left:
        """Return the bounds before some records leave the Hessian.

        The metric of the returned bounds still includes the records that leave.
        """
        plan, records = self.plan, len(curved)
        change = change_of(
            curved / math.sqrt(plan.n),
            curvature,
            part_error=self._hessian_error(records, curvature.at, downdated=True),
            product_error=self._product_error,
            strong_convexity=plan.strong_convexity,
            exact=plan.downdate,
        )
        removed = left.records + records
        by_counts = change_by_counts(removed, n=plan.n, strong_convexity=plan.strong_convexity)
        return replace(left, change=min((left.change + change) * rounding.OUTWARD, by_counts), records=removed)

    def _step(self, weights: Array, before: Left, gradient: Array, curvature: Curvature, enough: float) -> Model:
        """Return the model after the step ``v`` with ``B v = -gradient``, and bound the remaining gradient.

        Args:
            weights: ``w``, shape ``(d,)``.
            before: Bounds on the part of the gradient at these weights that is not in ``gradient``, including the
                rounding of ``gradient``.
            gradient: ``ghat``, or the whole gradient if the data were read; shape ``(d,)``.
            curvature: ``B``, with its factor and error.
            enough: Norm of ``gradient + B v`` that is small enough.
        """
        plan = self.plan
        step, image, left = solved(curvature, gradient, enough)
        there = weights + step
        length, moved = norm_above(step), weights - curvature.at
        moved_length = norm_above(moved)
        off = self._product_error
        # Adding `weights` and `step` moves the weights by a unit roundoff, and the gradient by at most L times that.
        smoothness = rounding.curvature(plan.classes) + plan.strong_convexity
        there_length = norm_above(there)
        left_above = norm_above(left) + off * length
        left_above += 2 * rounding.UNIT * smoothness * there_length
        moved_image = dsymv(1.0, curvature.matrix, moved, lower=1) if moved_length else moved
        rounded = 2 * rounding.UNIT * there_length
        moved_after = norm_above(there - curvature.at) + rounded
        taken = Step(
            length,
            min(moved_length, before.moved),
            min(moved_after, (before.moved + length + rounded) * rounding.OUTWARD),
            self._seminorm(step, image, length, curvature.error + 2 * off),
            self._seminorm(moved, moved_image, moved_length, curvature.error + 2 * off),
        )
        residual = residual_after(
            before.residual,
            taken,
            left=left_above,
            n=plan.n,
            not_downdated=curvature.not_downdated,
            matrix_error=curvature.error,
            largest_eigenvalue=self.largest_eigenvalue,
            quadratic=self._is_quadratic,
        )
        if not plan.by_passes:
            return Model(there, Left.of_residual(residual, strong_convexity=plan.strong_convexity), curvature)
        still_in_it = curvature.not_downdated * rounding.ROW_NORM**2 / (4 * plan.n)
        remainder = (left_above + (curvature.error + still_in_it) * length) * rounding.OUTWARD
        after = left_after(before, residual, taken, remainder=remainder, strong_convexity=plan.strong_convexity)
        return Model(there, after, curvature)

    def _seminorm(self, vector: Array, image: Array, length: float, error: float) -> float:
        """Return an upper bound on ``|x|_H``, given ``x`` and its image ``B x``.

        The evaluated image is wrong by at most ``error |x|``.
        """
        data_part = float(vector @ image) - self.plan.strong_convexity * float(vector @ vector)
        rounded = rounding.gamma(len(vector) + 4) * rounding.hessian_norm(
            features=self.plan.features, strong_convexity=self.plan.strong_convexity, classes=self.plan.classes
        )
        return math.sqrt(max(data_part, 0.0) + (error + 4 * rounded) * length**2) * rounding.OUTWARD

    def _by_secants(self, objective: Objective, weights: Array, factor: Array) -> Array:
        """Take L-BFGS steps until they no longer help, and return the weights.

        A sample's Hessian is the first matrix.
        """
        secants, before, enough = Secants(functools.partial(solve, factor)), math.inf, self._start_gradient
        gradient = objective.gradient(weights)
        for _ in range(_ROUNDS):
            size = float(np.linalg.norm(gradient))
            if size <= enough:
                break
            there = weights - secants.solved(gradient)
            if before < math.inf and size * size / before <= enough / 10:
                return there  # `_newton` will find the gradient small enough, and computes the Hessian anyway.
            found = objective.gradient(there)
            if not float(np.linalg.norm(found)) <= 2 * size:
                break
            secants.add(there - weights, found - gradient)
            weights, gradient, before = there, found, size
        return weights

    def _newton(
        self, objective: Objective, weights: Array, share: float = 0.0, *, narrow: bool
    ) -> tuple[Array, Array, Array]:
        """Return weights with a small gradient, and the gradient and the Hessian at these weights.

        Args:
            objective: The loss.
            weights: Weights at which to start.
            share: Norm of a small enough gradient, as a share of the norm of the first gradient. A gradient that
                suffices for the last step of a reading is always small enough.
            narrow: Whether Hessians are computed from float32 products.
        """
        enough = self._start_gradient
        for attempt in range(_ROUNDS):
            gradient, hessian = objective.gradient_and_hessian(weights, narrow=narrow)
            size = float(np.linalg.norm(gradient))
            enough = max(enough, share * size) if attempt == 0 else enough
            if self._is_quadratic or size <= enough:
                return weights, gradient, hessian
            step, before = -solve(factor_of(hessian), gradient), objective.value(weights)
            length, slope = 1.0, float(gradient @ step)
            # Near the minimum, the loss cannot distinguish weights, and whole steps are correct.
            while length > 1e-9 and objective.value(weights + length * step) > before + 1e-4 * length * slope + 1e-14:
                length /= 2
            weights = weights + length * step
        raise InfeasibleError(f"{_ROUNDS} Newton steps did not make the gradient smaller than {enough:.3g}")

    @property
    def _product_error(self) -> float:
        """Upper bound on the rounding error of the matrix times a vector of norm 1."""
        plan = self.plan
        return rounding.product_error(
            features=plan.features, strong_convexity=plan.strong_convexity, norm=1.0, classes=plan.classes
        )

    @property
    def _start_gradient(self) -> float:
        return schedule.start_gradient(strong_convexity=self.plan.strong_convexity, budget=self.plan.budget)

    @property
    def _narrow_guides(self) -> bool:
        """Whether a Hessian from float32 products can guide fits.

        Such a Hessian takes half the time, but must be positive definite in spite of its error.
        """
        plan = self.plan
        return plan.by_passes and plan.features >= LEAST_NARROW and self._narrow_error <= plan.strong_convexity

    @property
    def _narrow(self) -> bool:
        """Whether a float32 Hessian is accurate enough for requests.

        The bounds of requests include the Hessian's error, multiplied by the norm of the step.
        """
        plan = self.plan
        longest = rounding.ROW_NORM / (plan.n * plan.strong_convexity)
        return self._narrow_guides and self._narrow_error * longest <= NARROW_SHARE * plan.budget

    @property
    def _narrow_error(self) -> float:
        return self._hessian_error(self.plan.n, np.zeros(self.plan.features), narrow=True)

    def _hessian_error(self, records: int, at: Array, *, downdated: bool = False, narrow: bool = False) -> float:
        return rounding.hessian_error(
            records=records,
            n=self.plan.n,
            features=self.plan.features,
            weight_norm=norm_above(at),
            strong_convexity=self.plan.strong_convexity,
            classes=self.plan.classes,
            downdated=downdated,
            narrow=narrow,
        )

    def _objective(self, rows: Array, labels: Labels) -> Objective:
        # Plans for more classes use no Newton steps.
        return cast(Objective, objective_of(self.plan, rows, labels, self.positive))

    @property
    def _is_quadratic(self) -> bool:
        """Whether a Newton step is exact. Then one pass suffices for a fit, and curvature is constant."""
        return self.plan.classes == 1
