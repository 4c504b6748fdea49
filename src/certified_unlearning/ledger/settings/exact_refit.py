"""Settings of Newton removal and certified refits."""

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from certified_unlearning.accounting.core.losses import ClassWeights
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.ledger.settings.base import (
    TargetRange,
    TargetSettings,
    Words,
    inverse_strength_field,
    optional,
)
from certified_unlearning.text import counted

if TYPE_CHECKING:
    from certified_unlearning.mechanisms.refit_plan import RefitPlan


_MOST_POWERS = 9
"""The largest ``k`` for which the usual ``C`` may be divided by ``10^k`` when numbers are predicted."""


class RefitSettings(TargetSettings):
    """Settings of Newton removal and certified refits; see `RefitPlan.make`."""

    weighs_classes: ClassVar[bool] = True
    takes_text: ClassVar[bool] = True

    C: float | None = inverse_strength_field(
        "1. With --regression, 1 / C is Ridge's alpha, and the default is smaller if there are many records"
    )
    sigma: float | None = optional("Standard deviation of the noise on published weights. Default: 0.001.")
    records_between_reads: int | None = optional(
        "Number of removed records after which all data are read again. Default: planned."
    )
    strict_timing: bool = Field(
        False,
        description="Decide by counts alone when the data are read again, so that the times of reading do not depend "
        "on records.",
    )

    def inverse_strength(self, n: int, weights: ClassWeights) -> float:
        """Return ``C``: the given value, or else 1."""
        return 1.0 if self.C is None else self.C

    def check_regression(self, mechanism: str) -> None:
        """See `Settings.check_regression`."""
        if self.strict_timing:
            raise ParameterError(
                "strict_timing must be left out with --regression: no bound is known that makes it possible to "
                "decide by counts alone when the data are read again"
            )

    def plan(
        self, mechanism: str, *, weights: ClassWeights, target_range: TargetRange = None, **numbers: Any
    ) -> "RefitPlan":
        """See `Settings.plan`."""
        from certified_unlearning.mechanisms.refit_plan import USUAL_SIGMA, RefitPlan

        def planned(strength: float) -> RefitPlan:
            assert self.epsilon is not None
            return RefitPlan.make(
                **numbers,
                class_weights=weights.shares,
                strong_convexity=strength * self.strong_convexity(numbers["n"], weights),
                epsilon=self.epsilon,
                delta=self.delta,
                sigma=USUAL_SIGMA if self.sigma is None else self.sigma,
                strict=self.strict_timing,
                records_between_reads=self.records_between_reads,
            )

        if target_range is None or self.C is not None:
            return planned(1)
        # Bounds on rounding grow with the weights that numbers may need, so many records need a smaller C.
        for power in range(_MOST_POWERS):
            try:
                return planned(10.0**power)
            except AssumptionError:
                continue
        return planned(10.0**_MOST_POWERS)

    @classmethod
    def score_noise(cls, plan: "RefitPlan") -> float:
        """See `Settings.score_noise`."""
        return plan.sigma

    def words(self, plan: "RefitPlan", weights: ClassWeights) -> Words:
        """Return a line on the number of removals after which the data are read again."""
        reads = plan.records_between_reads
        often = f"after {counted(reads, 'removed record')} at the latest" if reads else "for every request"
        strength = self.strong_convexity(plan.n, weights) / plan.strong_convexity
        C = strength * self.inverse_strength(plan.n, weights)
        again = "every request passes over the rows, and the model is learned anew" if plan.passes_always else None
        return Words(f"{self._about_strength(plan.n, weights, C)}: {again or 'data are read again'} {often}")
