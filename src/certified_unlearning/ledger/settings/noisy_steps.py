"""Settings of noisy steps."""

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from certified_unlearning.accounting import ACCOUNTANTS
from certified_unlearning.accounting.core.losses import ClassWeights
from certified_unlearning.accounting.core.scale import QUICK_CONDITION, score_noise
from certified_unlearning.errors import ParameterError
from certified_unlearning.ledger.settings.base import BatchSize, TargetSettings, Words, inverse_strength_field, optional
from certified_unlearning.text import counted
from certified_unlearning.vocabulary import DType

if TYPE_CHECKING:
    from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
    from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner


SLOW = 3
"""Limit for ``C n``, as a multiple of the advised value; above this limit, `init` warns that learning is slow."""


class LangevinSettings(TargetSettings):
    """Settings of noisy steps on all rows or on mini-batches; see `LangevinLearner.plan`."""

    weighs_classes: ClassVar[bool] = True

    C: float | None = inverse_strength_field(
        "100 / n, divided by the largest weight of a class. If C n is 30 to 100, removals are short and noise is small"
    )
    sigma: float | None = optional("Noise scale. Default: the least that suffices for --steps and --records.")
    steps: int | None = optional(
        "Number of steps in which --records records are removed; cannot be combined with --sigma."
    )
    records: int = Field(1, description="Number of records that --steps steps can remove at once.")
    accountant: str = Field(
        "shifted", description=f"Accountant, the analysis that computes epsilon: {', '.join(ACCOUNTANTS)}."
    )
    batch_size: BatchSize = Field(
        "auto",
        description="Number of records that a step reads. auto: a mini-batch if there are enough records; all: all "
        "records.",
    )
    dtype: DType = Field("float32", description="Type of the weights. float64 rounds less, and takes longer.")

    def check_regression(self, mechanism: str) -> None:
        """See `Settings.check_regression`."""
        if self.batch_size not in ("auto", None):
            raise ParameterError(
                "batch_size must be auto or all with --regression, whose steps read all records, got "
                f"{self.batch_size!r}"
            )

    def plan(self, mechanism: str, *, weights: ClassWeights, **numbers: Any) -> "LangevinLearner | MiniBatchLearner":
        """See `Settings.plan`."""
        from certified_unlearning.mechanisms.learners.minibatch import plan_learner

        asked = dict(self) | {"C": self.inverse_strength(numbers["n"], weights) * weights.largest}
        return plan_learner(adjacency="zero-out", class_weights=weights.shares, **asked, **numbers)

    @classmethod
    def score_noise(cls, plan: "LangevinLearner | MiniBatchLearner") -> float:
        """See `Settings.score_noise`."""
        return score_noise(plan.exact_problem, sigma=plan.sigma)

    def words(self, plan: "LangevinLearner | MiniBatchLearner", weights: ClassWeights) -> Words:
        """Return a line on the number of steps of learning, and a warning if this number is large."""
        C, steps = self.inverse_strength(plan.n, weights), counted(plan.learning_steps, "step")
        of = f" of {counted(plan.cycle.batch_size, 'record')}" if plan.cycle is not None else ""
        line = f"{self._about_strength(plan.n, weights)}: learning takes {steps}{of}"
        condition = C * plan.n * weights.largest
        if condition <= SLOW * QUICK_CONDITION:
            return Words(line)
        weighed = "" if weights.shares is None else f" times the largest weight of a class, {weights.largest:g},"
        divided = "" if weights.shares is None else f" / {weights.largest:g}"
        return Words(
            line,
            f"with C = {C:.4g}, C n{weighed} is {condition:,.0f} and learning takes {steps}; "
            f"C = {QUICK_CONDITION / plan.n / weights.largest:.4g} ({QUICK_CONDITION} / n{divided}) would be quick",
        )
