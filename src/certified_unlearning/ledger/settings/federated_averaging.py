"""Settings of federated averaging that forgets clients exactly."""

from typing import TYPE_CHECKING, Any, ClassVar

from certified_unlearning.accounting.core.losses import ClassWeights
from certified_unlearning.ledger.settings.base import (
    LinearSettings,
    Words,
    inverse_strength_field,
    optional,
    require_no_cuda,
)
from certified_unlearning.text import counted, rounded_up

if TYPE_CHECKING:
    from certified_unlearning.mechanisms.exact.queries.federated_plan import FederatedPlan


LOUD = 0.4
"""Limit for the standard deviation of the noise in a score; above this limit, `init` warns."""


class FederatedSettings(LinearSettings):
    """Settings of federated averaging whose clients can be removed exactly; see `FederatedPlan.make`."""

    records_are_clients: ClassVar[bool] = True

    C: float | None = inverse_strength_field("1000 / n")
    steps: int | None = optional(
        "Number of rounds. In each round, every client sends its change of the model. Default: 10."
    )
    local_steps: int | None = optional(
        "Number of steps that a client takes in a round. Each step uses all rows of the client. Default: 10."
    )
    step_size: float | None = optional("Step size, for rows of norm 1. Default: 8.")
    clip: float | None = optional("Length to which a client's change of the model in a round is clipped. Default: 3.")
    recompute: float | None = optional(
        "Probability that rounds are computed again when one client is removed. A smaller probability needs more "
        "noise. By default it follows from the noise, which follows from the number of clients; `init` prints it."
    )

    def check(self, mechanism: str, device: str) -> None:
        """See `Settings.check`."""
        super().check(mechanism, device)
        require_no_cuda(mechanism, device)

    def inverse_strength(self, n: int, weights: ClassWeights) -> float:
        """Return ``C``: the given value, or else ten times the usual value of other linear models.

        The usual value is multiplied by ten because learning stops long before the minimum, which also regularises the
        model.
        """
        return 10 * super().inverse_strength(n, weights) if self.C is None else self.C

    def plan(self, mechanism: str, *, weights: ClassWeights, **numbers: Any) -> "FederatedPlan":
        """See `Settings.plan`."""
        from certified_unlearning.mechanisms.exact.queries.federated_plan import FederatedPlan

        asked: dict[str, Any] = {name: value for name, value in self if name not in LinearSettings.model_fields}
        return FederatedPlan.make(**asked, **numbers, strong_convexity=self.strong_convexity(numbers["n"], weights))

    def words(self, plan: "FederatedPlan", weights: ClassWeights) -> Words:
        """Return a line on how often a removal repeats rounds, and a warning if there is much noise in scores."""
        from certified_unlearning.accounting.tv.recomputation import query_recompute_probability

        again = query_recompute_probability(queries=plan.steps, sigma=plan.sigma, bound=plan.clip)
        line = (
            f"{self._about_strength(plan.n, weights)}: learning takes {counted(plan.steps, 'round')} of "
            f"{counted(plan.local_steps, 'step')} by each of {counted(plan.clients, 'client')} (all clients count the "
            "same, whatever their numbers of rows), and removing one client repeats rounds with probability at "
            f"most {rounded_up(again, 3)}"
        )
        noise = plan.noise_in_scores
        if noise <= LOUD:
            return Words(line)
        return Words(
            line,
            f"with {counted(plan.clients, 'client')} the noise in a score has a standard deviation of about "
            f"{noise:.2g}, which changes predictions: a --recompute nearer to 1 needs less noise, and without "
            "--recompute the noise hardly matters",
        )
