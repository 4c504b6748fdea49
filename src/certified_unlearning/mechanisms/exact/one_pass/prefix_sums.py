"""Learning from noisy prefix sums of records in random order, and exact unlearning, one record per edit.

Source: Ullah (2024), chapter 5: Algorithms 12 and 13, section D.6.2 for insertions, section 5.6 for streams whose size
is not known. After an edit that was chosen without looking at models, order, sums, noise and models have the law of a
run that learned the edited records afresh. That holds for any increments and updates; their bounds only determine how
often an edit causes a recomputation (`accounting.tv.tree`).

A state contains increments without noise, so it reveals gradients of single records. Two states, before and after an
edit, reveal the edited record. Exactness is about each state, not about pairs: old states, uniforms and the recomputing
edits must be forgotten.
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

# `random`: a uniform order for each trial; a deletion or an insertion leaves it uniform, so unlearning is exact.
# `arrival`: records stay in the order in which they came, insertions append. After a deletion the law is that of a run
# on the order in which the last record stands in the deleted one's place (weak unlearning, section 5.6.1), not on the
# original order without it; so the order must be secret, and is not covered by the guarantee.
Order = Literal["random", "arrival"]


class PrefixLearner(PrefixMethod, Protocol):
    """A `PrefixMethod` with an output."""

    @property
    def gradients_per_increment(self) -> int:
        """Number of gradients of single records' losses per increment."""

    def output(self, models: Tensor) -> Tensor:
        """Return the published model.

        Args:
            models: Shape ``(trials, n + 1, d)``: ``w_1`` to ``w_(n + 1)``.

        Returns:
            Shape ``(trials, d)``.
        """


@dataclass(frozen=True)
class PrefixSumSettings:
    """Noise and order, fixed for all edits: they are part of the algorithm whose law an edit reproduces.

    Attributes:
        sigmas: Standard deviations of nodes' noise per coordinate by height, leaves first. Their number limits the
            number of records to ``2^heights - 1``.
        order: See `Order`.

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
            sigma: Standard deviation per coordinate.
            most_records: The largest number of records ever.
            order: See `Order`.
        """
        return cls((float(sigma),) * count_heights(most_records), order)

    @classmethod
    def anytime(
        cls, budget: Budget, *, rho: float, sensitivity: float, most_records: int, order: Order = "random"
    ) -> Self:
        """Return settings for a stream, whose edits each compute again with probability at most ``rho`` at every size.

        Args:
            budget: How ``rho`` is shared among heights: `accounting.tv.tree.Budget`. Except for `equal`,
                ``most_records`` may be as large as 2^40 at no cost.
            rho: Target stability.
            sensitivity: Largest move of a sum by replacing a record.
            most_records: The largest number of records ever.
            order: See `Order`.
        """
        count = count_heights(most_records)
        return cls(tuple(height_sigmas(budget, rho=rho, sensitivity=sensitivity, count=count)), order)


class PrefixSums:
    """The learner and the unlearner: a method of prefix sums with its settings. A state is a `PrefixTree`."""

    def __init__(self, learner: PrefixLearner, settings: PrefixSumSettings) -> None:
        """Combine a learner and settings."""
        self.learner = learner
        self.settings = settings

    def learn(self, records: Tensor, trials: int, draws: Draws) -> tuple[PrefixTree, Work]:
        """Learn from each record once.

        Args:
            records: Shape ``(n,)``, int64: the records' names, all different. They are in this order if the order is
                that of arrival.
            trials: Number of independent runs.
            draws: Fresh randomness.

        Returns:
            The state, and its cost.

        Raises:
            ParameterError: There are no records, a name is a duplicate, or there are more records than noise is set
                for.
        """
        require_names(records)
        order = draws.orders(records, trials) if self.settings.order == "random" else records.repeat(trials, 1)
        sigmas = torch.tensor(self.settings.sigmas, dtype=torch.float64, device=records.device)
        tree, work = PrefixTree.learn(self.learner, sigmas, order, draws)
        return tree, self._work(work)

    def delete(self, tree: PrefixTree, record: int, draws: Draws) -> Work:
        """Delete a record in all trials, and return the cost. The state changes in place.

        Raises:
            ParameterError: There is no such record, or it is the only one.
        """
        return self._work(tree.delete(record, draws))

    def insert(self, tree: PrefixTree, record: int, draws: Draws) -> Work:
        """Insert a record in all trials, and return the cost. The state changes in place.

        Raises:
            ParameterError: The record is already present, or noise is set for fewer records.
        """
        return self._work(tree.insert(record, self._places(tree, draws), draws))

    def model(self, tree: PrefixTree) -> Tensor:
        """Return the published models, shape ``(trials, d)``."""
        return self.learner.output(tree.models[:, 1 : tree.size + 2])

    def restore(self, tensors: dict[str, Tensor]) -> PrefixTree:
        """Return the state from its stored `PrefixTree.tensors`.

        Raises:
            ParameterError: The state has other settings, or tensors are missing or have other shapes.
        """
        tree = PrefixTree.from_tensors(self.learner, tensors)
        if tuple(tree.sigmas.tolist()) != self.settings.sigmas:
            raise ParameterError(
                f"sigmas are {self.settings.sigmas}, the stored state was learned with {tuple(tree.sigmas.tolist())}: "
                "an edit must keep to the settings that were learned with"
            )
        return tree

    def _places(self, tree: PrefixTree, draws: Draws) -> Tensor:
        """Return the place of a new record: the end is one of the places, or it would never be last."""
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
    """Check that learning its records could have led to a state, with some noise.

    Every record is once in each order, increments are those of the stored models, nodes are the sums of their
    increments, and each model follows from the noisy sums before it: everything that is not random is recomputed.

    Raises:
        DataError: An invariant does not hold within the relative `invariants.TOLERANCE`.
    """
    size, trials = tree.size, tree.trials
    order = tree.order[:, 1 : size + 1].sort(dim=1).values
    if bool((order[:, 1:] == order[:, :-1]).any()) or bool((order != order[:1]).any()):
        raise DataError("every trial must have the same records, each once in its order")
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
