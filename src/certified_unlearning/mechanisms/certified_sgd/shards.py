"""The places of records in an ensemble of shards, and the repeated training of shards.

Everything is computed from counts, without PyTorch.

Sources: Bourtoule et al., *Machine unlearning* (IEEE S&P 2021), for shards and slices; Wicker et al., *Certificates of
Differential Privacy and Unlearning for Gradient-Based Training*, for shards that answer while a budget lasts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from certified_unlearning.accounting.core.checks import require_count, require_counts
from certified_unlearning.errors import ParameterError

Places = Sequence[tuple[int, int]]
"""The slices of removed records, as numbers ``shard x slices + slice``, each with its number of removed records."""


@dataclass(frozen=True)
class Sharding:
    """The numbers of shards and slices, and the numbers of records that a shard may lose before it is trained again.

    Attributes:
        n: Number of records at the start.
        shards: Number of shards ``S``.
        slices: Number of slices of each shard, ``R``. Stage ``r`` learns from slices 0 to ``r`` and starts from the end
            of the previous stage.
        budgets: The budget ``k`` of each box, in ascending order. A shard answers until it has lost more records than
            the largest budget.
    """

    n: int
    shards: int
    slices: int
    budgets: tuple[int, ...]

    def __post_init__(self) -> None:
        require_count(least=1, n=self.n, shards=self.shards, slices=self.slices)
        require_counts("budgets", self.budgets, least=1)
        if [*self.budgets] != sorted({*self.budgets}):
            raise ParameterError(f"budgets must be in rising order, without duplicates, got {self.budgets}")
        if self.shards * self.slices > self.n:
            raise ParameterError(
                f"shards x slices must be at most the number of records, {self.n}, got {self.shards} x {self.slices}"
            )

    def slice_of(self, position: int) -> int:
        """Return the slice of a position in the drawn order, ``shard x slices + slice``.

        Sizes differ by at most 1.
        """
        return position % self.shards * self.slices + position // self.shards % self.slices

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of records of each slice at the start."""
        whole, rest = divmod(self.n, self.shards * self.slices)
        sizes = [whole] * (self.shards * self.slices)
        for position in range(rest):
            sizes[self.slice_of(position)] += 1
        return tuple(sizes)


@dataclass
class ShardState:
    """The numbers of records in every slice, and the removals since each shard was last trained.

    The state depends on the places of removed records, not on their values.

    Attributes:
        sharding: The shards, slices and budgets.
        left: Number of present records in each slice.
        pending: Number of records that left each slice after the shard with this slice was last trained.
        trainings: Number of times that a shard was trained again.
        stages: Total number of stages that were trained again.
        gradients: Total number of gradients of single records in the stages that were trained again, counting one pass
            for each stage.
    """

    sharding: Sharding
    left: list[int] = field(init=False)
    pending: list[int] = field(init=False)
    trainings: int = 0
    stages: int = 0
    gradients: int = 0

    def __post_init__(self) -> None:
        self.left = [*self.sharding.sizes]
        self.pending = [0] * len(self.left)

    def remove(self, places: Places) -> None:
        """Update the state for records that leave.

        Raises:
            ParameterError: A slice has fewer records than are to be removed from it.
        """
        for place, count in places:
            if not 0 <= place < len(self.left) or not 0 < count <= self.left[place]:
                raise ParameterError(
                    f"places must be pairs of a slice and the number of its present records to remove, got "
                    f"{place, count}"
                )
            self.left[place] -= count
            self.pending[place] += count

    def spent(self, shard: int) -> int:
        """Return the number of records that left a shard after it was last trained."""
        return sum(self.pending[self._of(shard)])

    def usable(self, shard: int) -> int:
        """Return the number of budgets that got boxes in the shard's last training.

        These are the budgets that are smaller than the number of records in the shard's smallest batch.

        A stage learns from all records of its slices at once. So the smallest batch is that of the first slice that had
        a record. More removals would leave a batch empty, and an empty batch has no mean to bound.
        """
        sizes = [left + pending for left, pending in zip(self.left, self.pending, strict=True)][self._of(shard)]
        smallest = next((size for size in sizes if size), 0)
        return sum(budget < smallest for budget in self.sharding.budgets)

    def largest(self, shard: int) -> int:
        """Return the largest budget for which a shard has a box; 0 if there is none."""
        usable = self.usable(shard)
        return self.sharding.budgets[usable - 1] if usable else 0

    @property
    def offline(self) -> list[int]:
        """The shards whose budget is spent.

        The votes of a shard whose budget is spent are unknown until the shard is trained again.
        """
        return [shard for shard in range(self.sharding.shards) if self.spent(shard) > self.largest(shard)]

    def first_stage(self, shard: int) -> int | None:
        """Return the first stage that must be trained again; None if there is none."""
        pending = self.pending[self._of(shard)]
        return next((stage for stage, count in enumerate(pending) if count), None)

    def retrain(self, shards: Iterable[int]) -> None:
        """Update the state for shards that are trained again, from the first slice that lost a record."""
        for shard in shards:
            first = self.first_stage(shard)
            if first is None:
                continue
            read = [sum(self.left[self._of(shard)][: stage + 1]) for stage in range(self.sharding.slices)]
            self.trainings += 1
            self.stages += self.sharding.slices - first
            self.gradients += sum(read[first:])
            self.pending[self._of(shard)] = [0] * self.sharding.slices

    def _of(self, shard: int) -> slice:
        return slice(shard * self.sharding.slices, (shard + 1) * self.sharding.slices)


def replayed(sharding: Sharding, history: Sequence[Places]) -> ShardState:
    """Return the state of an ensemble after requests.

    After each request, all shards whose budget was spent by then were trained again.

    Raises:
        ParameterError: More records left a slice than it had.
    """
    standing = ShardState(sharding)
    for places in history:
        standing.remove(places)
        standing.retrain(standing.offline)
    return standing
