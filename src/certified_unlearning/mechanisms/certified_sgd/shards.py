"""Where records lie in an ensemble of shards, and which shards are trained again when: by numbers alone, without torch.

Sources: Bourtoule et al., *Machine unlearning* (IEEE S&P 2021), for shards and slices; Wicker et al., *Certificates of
Differential Privacy and Unlearning for Gradient-Based Training*, for shards that answer while a budget lasts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from certified_unlearning.accounting.core.checks import require_count, require_counts
from certified_unlearning.errors import ParameterError

Places = Sequence[tuple[int, int]]
"""In which slices removed records lie, as the number ``shard x slices + slice``, and how many in each."""


@dataclass(frozen=True)
class Sharding:
    """How many shards and slices there are, and what a shard may lose before it is trained again.

    Attributes:
        n: Number of records at the start.
        shards: ``S``.
        slices: ``R`` of each shard. Stage ``r`` learns from slices 0 to ``r``, from where the stage before ended.
        budgets: ``k`` of the boxes, in rising order: a shard answers until more than the largest have left it.
    """

    n: int
    shards: int
    slices: int
    budgets: tuple[int, ...]

    def __post_init__(self) -> None:
        require_count(least=1, n=self.n, shards=self.shards, slices=self.slices)
        require_counts("budgets", self.budgets, least=1)
        if [*self.budgets] != sorted({*self.budgets}):
            raise ParameterError(f"budgets must be in rising order, each once, got {self.budgets}")
        if self.shards * self.slices > self.n:
            raise ParameterError(
                f"shards x slices must be at most the number of records, {self.n}, got {self.shards} x {self.slices}"
            )

    def slice_of(self, position: int) -> int:
        """Return the slice of a position in the drawn order, ``shard x slices + slice``: sizes differ by 1 at most."""
        return position % self.shards * self.slices + position // self.shards % self.slices

    @property
    def sizes(self) -> tuple[int, ...]:
        """Records of each slice at the start."""
        whole, rest = divmod(self.n, self.shards * self.slices)
        sizes = [whole] * (self.shards * self.slices)
        for position in range(rest):
            sizes[self.slice_of(position)] += 1
        return tuple(sizes)


@dataclass
class ShardState:
    """What has left every slice, and what of it the shard was not trained without yet.

    It depends on where removed records lay and on nothing that they said.

    Attributes:
        sharding: How records lie.
        left: Records of each slice that are there.
        pending: Records of each slice that have left since its shard was trained.
        trainings: How often a shard was trained again.
        stages: How many stages that took.
        gradients: How many gradients of records that took, in one pass of each stage.
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
        """Note that records leave.

        Raises:
            ParameterError: A slice has fewer.
        """
        for place, count in places:
            if not 0 <= place < len(self.left) or not 0 < count <= self.left[place]:
                raise ParameterError(f"places must name slices and how many of their records leave, got {place, count}")
            self.left[place] -= count
            self.pending[place] += count

    def spent(self, shard: int) -> int:
        """Return how many records have left a shard since it was trained."""
        return sum(self.pending[self._of(shard)])

    def usable(self, shard: int) -> int:
        """Return how many budgets had boxes when the shard was trained: those below its smallest batch.

        A stage learns from all records of its slices at once; the smallest batch is that of the first slice that had
        any. More removals would leave a batch empty, which has no mean to bound.
        """
        sizes = [left + pending for left, pending in zip(self.left, self.pending, strict=True)][self._of(shard)]
        smallest = next((size for size in sizes if size), 0)
        return sum(budget < smallest for budget in self.sharding.budgets)

    def largest(self, shard: int) -> int:
        """Return the largest budget that a shard's boxes have; 0 for none."""
        usable = self.usable(shard)
        return self.sharding.budgets[usable - 1] if usable else 0

    @property
    def offline(self) -> list[int]:
        """Shards whose budget is spent: their votes are not known until they are trained again."""
        return [shard for shard in range(self.sharding.shards) if self.spent(shard) > self.largest(shard)]

    def first_stage(self, shard: int) -> int | None:
        """Return the first stage that has to be trained again; None for none."""
        pending = self.pending[self._of(shard)]
        return next((stage for stage, count in enumerate(pending) if count), None)

    def retrain(self, shards: Iterable[int]) -> None:
        """Note that shards are trained again, from the first slice on that has lost a record."""
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
    """Return where an ensemble stands after requests, each of which had the shards trained again that it spent.

    Raises:
        ParameterError: More records left a slice than it had.
    """
    standing = ShardState(sharding)
    for places in history:
        standing.remove(places)
        standing.retrain(standing.offline)
    return standing
