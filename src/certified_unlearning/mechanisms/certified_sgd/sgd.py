"""Training with boxes: batches, starts, and what is trained on them.

Nothing is chosen from the data: batches are fixed places drawn by number, the start is drawn by a seed, and the place
of a record that leaves stays empty.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.engine.abstract_training.descent import Descent, Parameters
from certified_unlearning.engine.abstract_training.last_update import last_update
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.abstract_training.poisoning import Poisoning
from certified_unlearning.engine.abstract_training.training import Batch, train
from certified_unlearning.engine.intervals.network import Dense, Network
from certified_unlearning.engine.intervals.propagation import TIGHTEST, Bounding
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.mechanisms.certified_sgd.learned import Learned


@dataclass(frozen=True)
class CertifiedSgd:
    """How a network is trained, and the neighbours that its boxes cover.

    Attributes:
        network: The layers.
        descent: How parameters follow gradients.
        batch_size: Number of places of a batch; places that fill no batch are left out, for every data set.
        epochs: Number of passes over the batches, which are the same in each.
        neighbourhood: The data sets that the boxes cover; only means over present records.
        bounding: How bounds are computed.
    """

    network: Network
    descent: Descent
    batch_size: int
    epochs: int
    neighbourhood: Neighbourhood = field(default_factory=Neighbourhood)
    bounding: Bounding = TIGHTEST

    def __post_init__(self) -> None:
        require_count(least=1, batch_size=self.batch_size, epochs=self.epochs)
        if self.neighbourhood.normaliser != "present" or self.neighbourhood.order_free:
            raise ParameterError("certified SGD averages over the records that are present, in fixed batches")

    def places(self, records: int, generator: torch.Generator) -> Tensor:
        """Draw the places of each batch, by their number alone.

        Returns:
            Shape ``(batches, batch_size)``.

        Raises:
            ParameterError: There are fewer records than a batch has places.
        """
        if records < self.batch_size:
            raise ParameterError(f"batch_size must be at most the number of records, {records}, got {self.batch_size}")
        order = torch.randperm(records, generator=generator)
        return order[: records // self.batch_size * self.batch_size].reshape(-1, self.batch_size)

    def start(self, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> Parameters:
        """Draw where training starts, in the type that everything is then computed in; see `initial_parameters`.

        Boxes of float32 hold what training in float32 becomes whatever the order of its sums, which may be off by the
        number of records times half a unit in the last place. Against those of float64 they are 1.07 times as wide at
        batches of 1,000, and 3 (removals) or 5 times (additions and removals) at 10,000 (20-32-2, k = 1, four updates).
        """
        return tuple(each.to(dtype) for each in initial_parameters(self.network, generator))

    def learn(
        self,
        rows: Tensor,
        labels: Tensor,
        places: Tensor,
        start: Parameters,
        present: Tensor,
        budgets: Sequence[int],
        public: Tensor | None = None,
    ) -> Learned:
        """Train on the records that are present, with a box for each budget.

        Args:
            rows: Shape ``(records, ...)``.
            labels: Shape ``(records,)``.
            places: What `places` drew.
            start: What `start` drew.
            present: Shape ``(records,)``: which records are there.
            budgets: In rising order, at least one; that of 0 certifies nothing.
            public: Shape ``(records,)``: which of them stay in every neighbour; None for none.

        Raises:
            AssumptionError: A budget's removals could empty a batch.
            IntervalError: Bounds overflow.
        """
        if [*budgets] != sorted({*budgets}) or not budgets or budgets[0] < 0:
            raise ParameterError(f"budgets must be whole numbers, at least 0, in rising order, got {tuple(budgets)}")
        batches = _batches(rows, labels, places, present, public)
        trained = train(
            self.network,
            self.descent,
            start,
            _repeated(batches, self.epochs),
            k=budgets,
            neighbourhood=self.neighbourhood,
            bounding=self.bounding,
        )
        assert trained.before is not None
        return Learned(
            self.network,
            self.bounding,
            trained.parameters,
            trained.box,
            tuple(budgets),
            min(len(each.rows) for each in batches),
            last_update(
                self.network,
                self.descent,
                trained.before,
                batches[-1],
                budgets,
                self.neighbourhood,
                self.bounding,
                update=trained.updates - 1,
            ),
        )

    def learn_poisoned(
        self, rows: Tensor, labels: Tensor, places: Tensor, start: Parameters, present: Tensor, poisoning: Poisoning
    ) -> Learned:
        """Train on the records that are present, with one box for all that poisoning does to them.

        Args:
            rows: Shape ``(records, ...)``.
            labels: Shape ``(records,)``.
            places: What `places` drew.
            start: What `start` drew.
            present: Shape ``(records,)``: which records are there.
            poisoning: What may happen to the records of every batch.

        Returns:
            Its only budget is the number of records that suffer something.

        Raises:
            IntervalError: Bounds overflow.
        """
        batches = _batches(rows, labels, places, present, None)
        repeated = _repeated(batches, self.epochs)
        trained = train(self.network, self.descent, start, repeated, k=[0], bounding=self.bounding, poisoning=poisoning)
        smallest = min(len(each.rows) for each in batches)
        budgets = (poisoning.records,)
        return Learned(self.network, self.bounding, trained.parameters, trained.box, budgets, smallest)


def _batches(rows: Tensor, labels: Tensor, places: Tensor, present: Tensor, public: Tensor | None) -> list[Batch]:
    """Return the records of every batch that are present.

    Raises:
        AssumptionError: A batch has none.
    """
    kept = [each[present[each]] for each in places.to(present.device)]
    if min(len(each) for each in kept) == 0:
        raise AssumptionError("a batch has no record left: train anew with other batches")
    return [Batch(rows[each], labels[each], None if public is None else public[each]) for each in kept]


def initial_parameters(network: Network, generator: torch.Generator) -> Parameters:
    """Draw initial parameters: weights as in He et al. (2015) for ReLU, biases 0; shapes ``(1, ...)``."""
    found = []
    for layer in network.affine:
        scale = (2 / layer.inputs) ** 0.5
        found.append(scale * torch.randn(1, *layer.weight_shape, generator=generator, dtype=torch.float64))
        if layer.bias:
            found.append(torch.zeros(1, layer.outputs, dtype=torch.float64))
    return tuple(found)


def dense_network(features: int, hidden: Sequence[int], classes: int) -> Network:
    """Return a network of dense layers for a number of classes; one logit for two."""
    return Network.dense(features, *hidden, 1 if classes == 2 else classes)


def widths(network: Network) -> tuple[int, ...]:
    """Return inputs, hidden units and outputs of a network of dense layers.

    Raises:
        ParameterError: The network has other layers.
    """
    layers = [each for each in network.affine if isinstance(each, Dense)]
    if Network.dense(layers[0].inputs if layers else 1, *(each.outputs for each in layers)) != network:
        raise ParameterError("only networks of dense layers with ReLU between them have widths")
    return (layers[0].inputs, *(each.outputs for each in layers))


def _repeated(batches: Sequence[Batch], epochs: int) -> Iterator[Batch]:
    for _ in range(epochs):
        yield from batches
