"""Settings of gradient descents that unlearn exactly."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from certified_unlearning.accounting.core.losses import ClassWeights
from certified_unlearning.errors import ParameterError
from certified_unlearning.ledger.settings.base import BatchSize, LinearSettings, Words, optional, require_no_cuda
from certified_unlearning.text import counted, rounded_up

if TYPE_CHECKING:
    from certified_unlearning.mechanisms.exact.plan import ExactPlan


class ExactSettings(LinearSettings):
    """Settings of descents that unlearn exactly; see `ExactPlan.make`."""

    steps: int | None = optional("Number of learning steps, all of which are kept. Default: 256.")
    batch_size: BatchSize = Field(
        "auto",
        description="Number of records that a step reads. auto: 8, or a quarter of the records if there are few.",
    )
    step_size: float | None = optional("Step size, for rows of norm 1. Default: 8.")
    radius: float | None = optional("Radius of the ball in which models stay. Default: none.")

    def check(self, mechanism: str, device: str) -> None:
        """See `Settings.check`."""
        super().check(mechanism, device)
        require_no_cuda(mechanism, device)
        if self.batch_size is None:
            raise ParameterError(
                f"batch_size must be a number or 'auto': a batch of {mechanism} never holds all records"
            )

    def plan(self, mechanism: str, *, weights: ClassWeights, **numbers: Any) -> "ExactPlan":
        """See `Settings.plan`."""
        from certified_unlearning.mechanisms.exact.plan import ExactPlan

        asked: dict[str, Any] = {name: value for name, value in self if name not in LinearSettings.model_fields}
        asked |= {"mechanism": mechanism, "strong_convexity": self.strong_convexity(numbers["n"], weights)}
        return ExactPlan.make(**asked, **numbers)

    def words(self, plan: "ExactPlan", weights: ClassWeights) -> Words:
        """Return a line on the number of steps of learning, and on how often a removal repeats steps."""
        from certified_unlearning.accounting.tv.subsampling import subsampling_tv

        again = subsampling_tv(n=plan.n, batch_size=plan.batch_size, steps=plan.steps)
        return Words(
            f"{self._about_strength(plan.n, weights)}: learning takes {counted(plan.steps, 'step')} of "
            f"{counted(plan.batch_size, 'record')}, and removing one record repeats steps with probability at "
            f"most {rounded_up(again, 3)} while all {plan.n:,} records are there; with fewer records, this is more "
            "likely"
        )


class NoisySgdSettings(ExactSettings):
    """Settings of descent with noise added to gradients."""

    sigma: float | None = optional("Standard deviation of the noise on a gradient. Default: 0.01.")


class AcceleratedSettings(NoisySgdSettings):
    """Settings of accelerated noisy descent, whose default step size is smaller."""

    step_size: float | None = optional("Step size, for rows of norm 1. Default: 0.05.")


class QuantizedSettings(ExactSettings):
    """Settings of descent with gradients that are rounded to a grid."""

    quantum: float | None = optional("Spacing of the grid to which gradients are rounded. Default: 0.05.")
