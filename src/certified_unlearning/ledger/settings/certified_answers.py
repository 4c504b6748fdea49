"""Settings of ensembles whose answers are certified."""

from typing import TYPE_CHECKING, Any

from certified_unlearning.accounting.core.losses import ClassWeights
from certified_unlearning.ledger.settings.base import Settings, Words, optional, require_no_cuda
from certified_unlearning.text import counted

if TYPE_CHECKING:
    from certified_unlearning.mechanisms.certified_sgd.ensemble_plan import EnsemblePlan


class EnsembleSettings(Settings):
    """Settings of ensembles whose answers are certified; see `EnsemblePlan.make`.

    The layers of the networks have biases, and there is no regulariser.
    """

    steps: int | None = optional("Number of updates in each stage. Default: 5.")
    step_size: float | None = optional("Step size, for rows of norm 1. Default: 4.")
    shards: int | None = optional("Number of shards, each with one vote. Default: 5.")
    slices: int | None = optional("Number of slices of a shard, each with a checkpoint. Default: 2.")
    budgets: tuple[int, ...] | None = optional(
        "Number of records that may leave a shard before it is trained again; repeatable, in increasing order. Small "
        "budgets certify more answers as long as few records have been removed. Default: 1, 2, 4, 8.",
    )
    hidden: tuple[int, ...] | None = optional(
        "Number of units of a hidden layer; repeatable. Default: no hidden layer."
    )
    bound: float | None = optional("Clipping bound for the entries of gradients. Default: 0.1.")

    def check(self, mechanism: str, device: str) -> None:
        """See `Settings.check`."""
        require_no_cuda(mechanism, device)

    def plan(self, mechanism: str, *, weights: ClassWeights, **numbers: Any) -> "EnsemblePlan":
        """See `Settings.plan`."""
        from certified_unlearning.mechanisms.certified_sgd.ensemble_plan import EnsemblePlan

        asked = dict(self)
        return EnsemblePlan.make(epochs=asked.pop("steps"), hidden=asked.pop("hidden") or (), **numbers, **asked)

    def words(self, plan: "EnsemblePlan", weights: ClassWeights) -> Words:
        """Return a line on the number of requests after which shards are trained again."""
        from certified_unlearning.accounting.core.occupancy import requests_until_all, requests_until_first

        hits = plan.budgets[-1] + 1
        return Words(
            f"{counted(plan.shards, 'shard')} of {counted(plan.slices, 'slice')}: if requests name random single "
            f"records, the first shard is trained again after about "
            f"{counted(round(requests_until_first(plan.shards, hits)), 'request')}, and the last one after about "
            f"{requests_until_all(plan.shards, hits):.0f}; a shard that every request hits is trained again "
            f"after {counted(hits, 'request')}"
        )
