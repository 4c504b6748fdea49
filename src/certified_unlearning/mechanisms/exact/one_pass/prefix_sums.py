"""Learning from noisy prefix sums of records in random order, and exact unlearning, one record per edit.

Source: Ullah (2024), chapter 5: Algorithms 12 and 13, section D.6.2 for insertions, section 5.6 for streams of unknown
size. The edit must be chosen without looking at models. Then order, sums, noise and models have the distribution of a
fresh run on the edited records. This holds for any increments and updates. Bounds on them only determine how often an
edit causes a recomputation (`accounting.tv.tree`).

A state contains increments without noise, so it reveals gradients of single records. Two states, before and after an
edit, reveal the edited record. Exactness concerns each single state, not pairs of states. So old states must be erased,
and so must the uniform draws and the list of edits that caused recomputations.
"""

import math
from dataclasses import dataclass
from typing import Literal, Protocol, Self, get_args

import torch
from torch import Tensor

from certified_unlearning.accounting.tv.tree import Budget, height_sigmas
from certified_unlearning.accounting.tv.tree import heights as count_heights
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.prefix_tree import PrefixMethod, PrefixTree, TreeWork, lowest_bit
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.mechanisms.exact.invariants import require_close, require_names
from certified_unlearning.mechanisms.exact.work import Work

# `random`: each trial has a uniform order. A deletion or an insertion leaves it uniform, so unlearning is exact.
# `arrival`: records stay in the order of arrival, and insertions append. After a deletion, the distribution is that of
# a run in which the last record takes the deleted record's place (weak unlearning, section 5.6.1), not that of the
# original order without the deleted record. So the order must be secret, and the guarantee does not cover it.
Order = Literal["random", "arrival"]


class PrefixLearner(PrefixMethod, Protocol):
    """A `PrefixMethod` that also has an output."""

    @property
    def gradients_per_increment(self) -> int:
        """Number of gradients of single records' losses in an increment."""

    def output(self, models: Tensor) -> Tensor:
        """Return the published model.

        Args:
            models: The models ``w_1`` to ``w_(n + 1)``, shape ``(trials, n + 1, d)``.

        Returns:
            The published models, shape ``(trials, d)``.
        """


@dataclass(frozen=True)
class PrefixSumSettings:
    """The noise and the order. They are the same for all edits: an edit reproduces the distribution of this algorithm.

    Attributes:
        sigmas: Standard deviations of the noise on nodes, per coordinate, for each height, leaves first. The number of
            heights limits the number of records to ``2^heights - 1``.
        order: The order of records; see `Order`.

    Raises:
        ParameterError: There are no sigmas, one is negative or not finite, or the order is unknown.
    """

    sigmas: tuple[float, ...]
    order: Order = "random"

    def __post_init__(self) -> None:
        """Check every value."""
        if not self.sigmas or not all(0 <= sigma < math.inf for sigma in self.sigmas):
            raise ParameterError(f"sigmas must hold a finite number, at least 0, for each height, got {self.sigmas!r}")
        if self.order not in get_args(Order):
            raise ParameterError(f"order must be one of {', '.join(get_args(Order))}, got {self.order!r}")

    @classmethod
    def equal(cls, sigma: float, *, most_records: int, order: Order = "random") -> Self:
        """Return settings with the same noise at every height.

        Args:
            sigma: Standard deviation of the noise per coordinate.
            most_records: Largest number of records that the run will ever have.
            order: The order of records; see `Order`.
        """
        return cls((float(sigma),) * count_heights(most_records), order)

    @classmethod
    def anytime(
        cls, budget: Budget, *, rho: float, sensitivity: float, most_records: int, order: Order = "random"
    ) -> Self:
        """Return settings for a stream: at every size, an edit causes a recomputation with probability at most ``rho``.

        Args:
            budget: Division of ``rho`` among heights: `accounting.tv.tree.Budget`. Except for `equal`, ``most_records``
                may be as large as 2^40 at no cost.
            rho: Target stability.
            sensitivity: Largest change of a sum if one record is replaced.
            most_records: Largest number of records that the run will ever have.
            order: The order of records; see `Order`.
        """
        count = count_heights(most_records)
        return cls(tuple(height_sigmas(budget, rho=rho, sensitivity=sensitivity, count=count)), order)


class PrefixSums:
    """A learner that can unlearn: a method of prefix sums with its settings. Its state is a `PrefixTree`."""

    def __init__(self, learner: PrefixLearner, settings: PrefixSumSettings) -> None:
        """Store a method and its settings."""
        self.learner = learner
        self.settings = settings

    def learn(self, records: Tensor, trials: int, draws: Draws) -> tuple[PrefixTree, Work]:
        """Learn from each record once.

        Args:
            records: Distinct names of the records, shape ``(n,)``, int64. With the order ``arrival``, they must be in
                the order of arrival.
            trials: Number of independent runs.
            draws: Fresh randomness.

        Returns:
            The state, and the work of learning.

        Raises:
            ParameterError: There are no records, a name is a duplicate, or there are more records than ``sigmas``
                allow.
        """
        require_names(records)
        order = draws.orders(records, trials) if self.settings.order == "random" else records.repeat(trials, 1)
        sigmas = torch.tensor(self.settings.sigmas, dtype=torch.float64, device=records.device)
        tree, work = PrefixTree.learn(self.learner, sigmas, order, draws)
        return tree, self._work(work)

    def delete(self, tree: PrefixTree, record: int, draws: Draws) -> Work:
        """Delete a record in all trials, and return the work. The state changes in place.

        Raises:
            ParameterError: The record is absent, or it is the only one.
        """
        return self._work(tree.delete(record, draws))

    def insert(self, tree: PrefixTree, record: int, draws: Draws) -> Work:
        """Insert a record in all trials, and return the work. The state changes in place.

        Raises:
            ParameterError: The record is already present, or ``sigmas`` do not allow another record.
        """
        return self._work(tree.insert(record, self._places(tree, draws), draws))

    def model(self, tree: PrefixTree) -> Tensor:
        """Return the published models, shape ``(trials, d)``."""
        return self.learner.output(tree.models[:, 1 : tree.size + 2])

    def restore(self, tensors: dict[str, Tensor]) -> PrefixTree:
        """Return the state from the tensors that `PrefixTree.tensors` returned.

        Raises:
            ParameterError: The state has other settings, or tensors are missing or have other shapes.
        """
        tree = PrefixTree.from_tensors(self.learner, tensors)
        if tuple(tree.sigmas.tolist()) != self.settings.sigmas:
            raise ParameterError(
                f"sigmas are {self.settings.sigmas}, but the stored state was learned with "
                f"{tuple(tree.sigmas.tolist())}: an edit must use the settings of learning"
            )
        return tree

    def _places(self, tree: PrefixTree, draws: Draws) -> Tensor:
        """Return the position of a new record.

        The end is a possible position; otherwise, new records would never be last.
        """
        if self.settings.order == "arrival":
            return torch.full_like(tree.order[:, 0], tree.size + 1)
        return draws.integers(tree.size + 1, tree.trials) + 1

    def _work(self, work: TreeWork) -> Work:
        counts = (
            work.queries * self.learner.gradients_per_increment,
            work.tests,
            work.rejections,
            work.learned_again,
        )
        return Work(*(count.cpu() for count in counts))


def check_invariants(tree: PrefixTree) -> None:
    """Check that learning the records of a state gives this state, for some values of the noise.

    Every record must occur once in each order. Increments must be those of the stored models, nodes must be the sums of
    their increments, and each model must follow from the noisy sums before it. Everything that is not random is
    recomputed.

    Raises:
        DataError: A stored value differs by more than `invariants.TOLERANCE` allows.
    """
    size, trials = tree.size, tree.trials
    order = tree.order[:, 1 : size + 1].sort(dim=1).values
    if bool((order[:, 1:] == order[:, :-1]).any()) or bool((order != order[:1]).any()):
        raise DataError("every trial must have the same records, and its order must contain each of them once")
    positions = torch.arange(1, size + 1, device=order.device)
    summed = tree.increments[:, : size + 1].cumsum(dim=1)
    below = summed[:, positions] - summed[:, positions - lowest_bit(positions)]
    require_close("sums of nodes", tree.sums[:, 1 : size + 1], below)
    everywhere = positions.repeat(trials)
    models, previous = tree.models[:, 1 : size + 1].flatten(0, 1), tree.models[:, :size].flatten(0, 1)
    records = tree.order[:, 1 : size + 1].flatten()
    increments = tree.method.increments(everywhere, models, previous, records)
    require_close("increments", tree.increments[:, 1 : size + 1].flatten(0, 1), increments)
    prefixes = tree.noisy[:, : size + 1].clone()
    for position in range(1, size + 1):
        prefixes[:, position] += prefixes[:, position & (position - 1)]
    updated = tree.method.updates(everywhere, models, prefixes[:, 1:].flatten(0, 1))
    require_close("models", tree.models[:, 2 : size + 2].flatten(0, 1), updated)
    start = tree.method.start().to(order.device).expand(trials, 2, -1)
    require_close("first models", tree.models[:, :2], start)
