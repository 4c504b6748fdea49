"""Plans of certified refits and Newton removal, made before anything is learned, and counts of events."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from certified_unlearning.accounting.core.checks import (
    require_class_weights,
    require_count,
    require_positive,
    required_delta,
)
from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.accounting.core.rounding import required_sigma
from certified_unlearning.accounting.residual import public, release, schedule
from certified_unlearning.accounting.residual.rounding import FEWEST_TERMS, NARROW, OUTWARD, Terms
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.learners.duration import SECONDS_OF_A_STEP, Work
from certified_unlearning.vocabulary import Delta, Reading

USUAL_SIGMA = 1e-3
"""Default standard deviation of the noise on published weights in the ledger."""
LARGEST_FACTOR = 5000
"""Largest number of columns for which a Hessian is computed and factored.

For sparse rows, the limit is `NARROW`.
"""
LARGEST_FACTORS = 10**8
"""Largest total number of entries in the factors of the models of all classes.

Factors with this many entries, together with the matrices, need 1.6 GB.
"""
STRONGEST = 1e50
"""Largest strong convexity.

The smallest strong convexity is the inverse of this number. Beyond these limits, nothing is learned and numbers may
overflow.
"""
SHARE_LEFT = 10
"""Number ``k``: the data are read again after the removal of one record in ``k``, unless the budget requires it
earlier."""
DEAR = 1e7
"""Models are corrected by passes if learning anew reads at least this many entries.

Reading this many entries takes ten milliseconds.
"""
SELDOM = 10
"""Smallest number of removals between two Hessians of sparse rows, because a Hessian costs many passes."""
LARGEST_DOWNDATE = 1000
"""Largest number of columns for which a downdate of the Hessian costs less than it saves."""
_NEWTON_STEPS = 8
_CORRECTED_STEPS = 30
"""Number of passes of a solver with a guide, including the passes for the guide."""
_REFIT_STEPS = 500
"""Approximate number of single-precision passes that a solver needs if it has no guide."""
_SPARSE_REFIT_STEPS = 60
"""Approximate number of passes of a solver for sparse rows."""


class RefitPlan(BaseModel):
    """The constants fixed before anything is learned.

    The constants depend on the records only through the number of records.

    Attributes:
        n: Number of records at the start, including public rows. The loss is always divided by this number (adjacency
            ``zero-out``).
        features: Number of columns of a row.
        classes: Number of classes, at least 2; 1 for ridge regression, whose targets are numbers from -1 to 1.
        strong_convexity: Strong convexity ``m``.
        epsilon: Target epsilon for the last published model.
        delta: Target delta.
        sigma: Standard deviation of the noise on published weights.
        budget: Upper bound ``tau`` that holds whenever a model is published. It bounds the certified gradient's norm,
            or ``m`` times the certified distance to the minimiser.
        downdate: Whether Newton removal subtracts the contribution of each removed record from the stored matrix.
        strict: Whether a bound that holds for all data determines when the data are read again.
        records_between_reads: Largest number of removals without a reading. The request that exceeds this number reads
            the data again. If every request reads the data, this number is 0, even if another number was given.
        by_passes: Whether a request that would exceed the budget reads the rows to correct the weights, if that
            suffices, instead of learning anew. With three classes or more in one softmax regression, every request
            corrects the weights in this way. Plans of earlier releases have no passes.
        public_records: Number of public rows, which are in the objective and never leave.
        public_curvature: Curvature ``k`` that public rows add to ``m``. It is valid between the exact minimiser and the
            weights, for all possible other records (`accounting.residual.public`). 0 if the use of this curvature is
            not worthwhile.
        class_weights: Factors, at most 1, on the losses of the records of each class; None if all are 1.
        sparse: Whether rows are sparse and every request refits. The reason is that rows have more than `NARROW`
            columns, or that a Hessian would serve fewer than `SELDOM` records. Rounding then depends on the number of
            entries of a row. Plans for other sparse rows are like those for dense rows.
        one_vs_rest: Whether each of three or more classes has its own model against the rest. All models are one
            release, and the budget is for all of them together.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mechanism: ClassVar[str] = "newton-removal"
    """The mechanism's name in the ledger, for any number of classes."""
    n: int
    features: int
    classes: int
    strong_convexity: float
    epsilon: float
    delta: float
    sigma: float
    budget: float
    downdate: bool
    strict: bool
    sparse: bool = Field(default=False, exclude_if=lambda sparse: not sparse)
    one_vs_rest: bool = Field(default=False, exclude_if=lambda one_vs_rest: not one_vs_rest)
    by_passes: bool = Field(default=False, exclude_if=lambda by_passes: not by_passes)
    records_between_reads: int
    class_weights: tuple[float, ...] | None = Field(default=None, exclude_if=lambda weights: weights is None)
    public_records: int = Field(default=0, ge=0, exclude_if=lambda records: records == 0)
    public_curvature: float = Field(default=0.0, ge=0, allow_inf_nan=False, exclude_if=lambda more: more == 0)

    @field_validator("records_between_reads")
    @classmethod
    def _without_newton_and_passes_every_request_reads(cls, records: int, info: ValidationInfo) -> int:
        """Return 0 if the plan has no Newton steps and no passes.

        Stored plans may contain the requested number.
        """
        # Missing values were refused before.
        known = info.data
        newton = takes_newton_steps(
            known.get("classes", 1),
            known.get("features", 1),
            sparse=known.get("sparse", False),
            one_vs_rest=known.get("one_vs_rest", False),
        )
        return records if newton or known.get("by_passes", False) else 0

    @classmethod
    def make(
        cls,
        *,
        n: int,
        features: int,
        classes: int,
        strong_convexity: float,
        epsilon: float,
        delta: Delta,
        sigma: float,
        strict: bool = False,
        records_between_reads: int | None = None,
        downdate: bool | None = None,
        class_weights: tuple[float, ...] | None = None,
        sparse: bool = False,
        by_passes: bool | None = None,
        one_vs_rest: bool = False,
        public_records: int = 0,
        public_curvature: float = 0.0,
    ) -> Self:
        """Return the plan for a target.

        Args:
            n: Number of records, including public rows.
            features: Number of columns of a row.
            classes: Number of classes; 1 for ridge regression.
            strong_convexity: Strong convexity ``m``.
            epsilon: Target epsilon.
            delta: Target delta, strictly between 0 and 1, or ``"auto"`` or ``"1/n"`` (`required_delta`).
            sigma: Standard deviation of the noise on published weights.
            strict: Whether the time of a reading must depend on counts alone.
            records_between_reads: Largest number of removals without a reading. None: `schedule.strict_records` if
                ``strict``, otherwise `schedule.usual_records`. If passes correct weights, the default is at least the
                number of records divided by `SHARE_LEFT`.
            downdate: Whether removals change the Hessian. None: removals change the Hessian if the model is ridge
                regression, if there are at most `LARGEST_DOWNDATE` columns, or if passes correct weights. ``downdate``
                has no effect without Newton steps.
            class_weights: One weight between 0 and 1 for each class; two classes are in the order -1, +1. None: all
                weights are 1.
            sparse: Whether rows are sparse. Their number of entries is known only later (`require_representable`).
            by_passes: Whether weights are corrected by passes over the rows. None: passes correct weights if learning
                anew is expensive (`DEAR`), rows are dense, and the plan is not ``strict``. For three classes or more in
                one softmax regression, there must also be at least as many records as columns.
            one_vs_rest: Whether each class gets a model against the rest. Two classes need only one model, so their
                plan does not depend on this argument.
            public_records: Number of public rows.
            public_curvature: Curvature of the public rows, from `mechanisms.newton.public`.

        Raises:
            AssumptionError: float64 is not precise enough for the budget.
        """
        require_count(least=1, n=n, features=features)
        require_count(least=1, classes=classes)
        if classes == 1 and (strict or downdate is False):
            raise ParameterError(
                "ridge regression always uses downdates and has no strict timing: leave out downdate and strict"
            )
        require_class_weights(class_weights, classes=classes)
        require_positive(strong_convexity=strong_convexity, epsilon=epsilon)
        if not 1 / STRONGEST <= strong_convexity <= STRONGEST:
            raise ParameterError(
                f"strong_convexity, which is 1 / (C n) or alpha / n, must lie between {1 / STRONGEST:g} and "
                f"{STRONGEST:g}, got {strong_convexity:.3g}"
            )
        one_vs_rest = one_vs_rest and classes > 2
        models = classes if one_vs_rest else 1
        narrow, sparse = sparse and features <= NARROW, sparse and features > NARROW
        sigma = required_sigma(sigma)
        delta = required_delta(delta, n)
        require_count(least=0, public_records=public_records)
        if public_curvature and classes == 2:
            shift = release.budget_of(epsilon=float(epsilon), delta=delta, strong_convexity=1.0, sigma=sigma)
            public_curvature = public.curvature_on_the_way(public_curvature, distance=shift * OUTWARD**4)
        least = public.least_curvature(strong_convexity, public_curvature)
        budget = release.budget_of(epsilon=float(epsilon), delta=delta, strong_convexity=least, sigma=sigma)
        release.require_representable(
            n=n,
            features=features,
            classes=classes,
            strong_convexity=strong_convexity,
            sigma=sigma,
            delta=delta,
            budget=budget,
            terms=FEWEST_TERMS if sparse else None,
            one_vs_rest=one_vs_rest,
            public_curvature=public_curvature,
        )
        # For sparse rows, learning anew needs only a few more passes than a correction, and it forgets removed records.
        can_pass = (
            may_pass(classes, features, sparse=sparse or narrow, one_vs_rest=one_vs_rest)
            and not strict
            and records_between_reads != 0
        )
        if by_passes is None:
            dear = n * features * scores_per_record(classes) * (8 + features / 20) >= DEAR
            by_passes = can_pass and dear and (classes == 2 or one_vs_rest or n >= features)
        elif by_passes and not can_pass:
            raise ParameterError(
                f"by_passes=True needs two classes or more, dense rows of at most {LARGEST_FACTOR} columns, "
                "strict=False, and records_between_reads other than 0; with each class against the rest, the matrices "
                f"of all classes together may have at most {LARGEST_FACTORS} entries"
            )
        if downdate is None:
            downdate = classes == 1 or features <= LARGEST_DOWNDATE or by_passes
        newton = takes_newton_steps(classes, features, sparse=sparse, one_vs_rest=one_vs_rest)
        private = n - public_records
        # If every model keeps to its share, all models together keep to the budget.
        of_each = release.share_of_each(budget, models)
        sizes = {"n": n, "strong_convexity": strong_convexity, "budget": of_each, "public_curvature": public_curvature}
        most = cls._most_records(features, classes, downdate, strict, **sizes) if newton else 0
        most = min(most, private)
        if classes == 1 or by_passes:
            most = max(most, private // SHARE_LEFT, 1)
        if records_between_reads is not None:
            require_count(least=0, records_between_reads=records_between_reads)
            if strict and newton and records_between_reads > most:
                raise ParameterError(
                    f"records_between_reads must be at most {most} if strict, got {records_between_reads}: these "
                    "constants bound the gradient for at most that many removed records"
                )
        most = most if records_between_reads is None else records_between_reads
        if narrow and newton and most < SELDOM:
            sparse, most = True, 0
        return cls(
            n=n,
            features=features,
            classes=classes,
            strong_convexity=strong_convexity,
            epsilon=epsilon,
            delta=delta,
            sigma=sigma,
            budget=budget,
            downdate=downdate,
            strict=strict,
            records_between_reads=most,
            class_weights=class_weights,
            sparse=sparse,
            by_passes=by_passes,
            one_vs_rest=one_vs_rest,
            public_records=public_records,
            public_curvature=public_curvature,
        )

    @staticmethod
    def _most_records(features: int, classes: int, downdate: bool, strict: bool, **sizes: Any) -> int:
        if classes == 1:
            return 1
        if strict:
            return schedule.strict_records(downdate=downdate, **sizes)
        return schedule.usual_records(features=features, downdate=downdate, **sizes)

    def with_more(self, records: int) -> Self:
        """Return the plan of the same model with more records: ``n`` grows, while ``C`` and the target stay.

        As ``n`` grows, the strong convexity decreases, and so does the budget. ``mu`` does not change. Neither does the
        number of records after which the data must be read again, if counts alone determine it.

        Args:
            records: Number of added records.

        Raises:
            AssumptionError: float64 is not precise enough for the budget with this number of records.
            ParameterError: Some rows are public.
        """
        if not records:
            return self
        if self.public_records:
            raise ParameterError("records cannot be added to a model with public rows: their guarantee depends on n")
        n = self.n + records
        return self.make(
            n=n,
            features=self.features,
            classes=self.classes,
            strong_convexity=self.strong_convexity * self.n / n,
            epsilon=self.epsilon,
            delta=self.delta,
            sigma=self.sigma,
            strict=self.strict,
            records_between_reads=self.records_between_reads,
            downdate=self.downdate,
            class_weights=self.class_weights,
            sparse=self.sparse,
            by_passes=self.by_passes,
            one_vs_rest=self.one_vs_rest,
        )

    def of_one_class(self) -> Self:
        """Return the plan for the model of one class against the rest.

        Its budget is an equal share of this plan's budget.
        """
        budget = release.share_of_each(self.budget, self.classes)
        return self.model_copy(update={"classes": 2, "one_vs_rest": False, "budget": budget})

    @property
    def work(self) -> Work:
        """The work of learning."""
        if self.one_vs_rest:
            of_one = self.of_one_class().work
            return Work(self.classes * of_one.seconds, self.classes * of_one.passes)
        if self.removes_by_newton:
            # With many records, the matrices come from a sample; their products use a processor well.
            return Work(_NEWTON_STEPS * SECONDS_OF_A_STEP, _NEWTON_STEPS * (8 + self.features / 40))
        steps = _SPARSE_REFIT_STEPS if self.sparse else _CORRECTED_STEPS if self.by_passes else _REFIT_STEPS
        return Work(steps * SECONDS_OF_A_STEP, steps)

    @property
    def dimension(self) -> int:
        """Number of weights, ``d``."""
        return self.features * scores_per_record(self.classes)

    @property
    def least_curvature(self) -> float:
        """The curvature ``m + k``.

        ``budget`` divided by this curvature is the largest distance of the weights from the minimiser.
        """
        return public.least_curvature(self.strong_convexity, self.public_curvature)

    @property
    def private_records(self) -> int:
        """Number of rows that may be removed."""
        return self.n - self.public_records

    @property
    def removes_by_newton(self) -> bool:
        """Whether the plan has Newton steps, so that requests can be answered without reading the data."""
        return takes_newton_steps(self.classes, self.features, sparse=self.sparse, one_vs_rest=self.one_vs_rest)

    @property
    def passes_always(self) -> bool:
        """Whether the plan has passes but no Newton steps.

        A request is then answered by passes, or the model is learned anew.
        """
        return self.by_passes and not self.removes_by_newton

    def require_representable(self, terms: Terms | None) -> None:
        """Raise `AssumptionError` if float64 is not precise enough for the budget.

        ``terms`` is None for dense rows.
        """
        release.require_representable(
            n=self.n,
            features=self.features,
            classes=self.classes,
            strong_convexity=self.strong_convexity,
            sigma=self.sigma,
            delta=self.delta,
            budget=self.budget,
            terms=terms,
            one_vs_rest=self.one_vs_rest,
            public_curvature=self.public_curvature,
        )


def takes_newton_steps(classes: int, features: int, *, sparse: bool, one_vs_rest: bool = False) -> bool:
    """Return whether Hessians are computed and factored, which needs one score per model and few enough columns.

    Args:
        classes: Number of classes, at least 2; 1 for ridge regression.
        features: Number of columns of a row.
        sparse: Value of `RefitPlan.sparse`.
        one_vs_rest: Value of `RefitPlan.one_vs_rest`.
    """
    fits = features <= LARGEST_FACTOR and (not one_vs_rest or classes * features**2 <= LARGEST_FACTORS)
    return (classes <= 2 or one_vs_rest) and fits and not sparse


def may_pass(classes: int, features: int, *, sparse: bool, one_vs_rest: bool = False) -> bool:
    """Return whether passes can correct weights.

    Passes are possible only for classes and dense rows. They need a guide: matrices with one row and one column for
    each feature.

    Args:
        classes: Number of classes, at least 2; 1 for ridge regression.
        features: Number of columns of a row.
        sparse: Whether rows are sparse.
        one_vs_rest: Value of `RefitPlan.one_vs_rest`. If True, every class must have a matrix.
    """
    if one_vs_rest:
        return takes_newton_steps(classes, features, sparse=sparse, one_vs_rest=True)
    return classes >= 2 and features <= LARGEST_FACTOR and not sparse


@dataclass(frozen=True)
class Counts:
    """Counts of past events, which certificates state.

    Attributes:
        removed: Number of removed records.
        requests: Number of answered requests and additions of records. The number of releases is larger by one.
        since_read: Number of records that were removed since the last reading of the data; passes are not readings.
        scheduled: Number of requests that read the data as planned.
        unscheduled: Number of requests that read the data because they would have exceeded the budget.
        additions: Number of additions of records; each addition reads the data.
        added: Number of added records.
        passes: Number of requests that read the rows to correct the weights instead of learning the model anew.
    """

    removed: int = 0
    requests: int = 0
    since_read: int = 0
    scheduled: int = 0
    unscheduled: int = 0
    additions: int = 0
    added: int = 0
    passes: int = 0

    def after(self, records: int, reading: Reading, *, added: int = 0) -> "Counts":
        """Return the counts after one more release, which removes and adds some records."""
        return Counts(
            self.removed + records,
            self.requests + 1,
            self.since_read + records if reading in ("none", "pass") else 0,
            self.scheduled + (reading == "scheduled"),
            self.unscheduled + (reading == "unscheduled"),
            self.additions + (reading == "addition"),
            self.added + added,
            self.passes + (reading == "pass"),
        )
