"""Training with boxes: the batches, the starts, and the training itself.

Nothing is chosen from the data. Batches consist of fixed places. The draw of the places depends only on the number of
records. The start is drawn from a seed. If a record leaves, its place stays empty.
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
    """The settings for training a network, and the neighbouring data sets that its boxes cover.

    Attributes:
        network: The layers.
        descent: The rule by which parameters follow gradients.
        batch_size: Number of places in a batch. For every data set, places that do not fill a batch are left out.
        epochs: Number of passes over the batches, which are the same in every pass.
        neighbourhood: The data sets that the boxes cover. Its means must be over present records.
        bounding: Method of computing bounds.
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
            raise ParameterError(
                "neighbourhood must describe fixed batches, with means over their present records, got normaliser="
                f"{self.neighbourhood.normaliser!r} and order_free={self.neighbourhood.order_free}"
            )

    def places(self, records: int, generator: torch.Generator) -> Tensor:
        """Draw the places of each batch.

        The draw depends only on the number of records.

        Returns:
            The places, shape ``(batches, batch_size)``.

        Raises:
            ParameterError: There are fewer records than places in a batch.
        """
        if records < self.batch_size:
            raise ParameterError(f"batch_size must be at most the number of records, {records}, got {self.batch_size}")
        order = torch.randperm(records, generator=generator)
        return order[: records // self.batch_size * self.batch_size].reshape(-1, self.batch_size)

    def start(self, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> Parameters:
        """Draw the start of training, in the floating-point type of all computations; see `initial_parameters`.

        Boxes in float32 contain the results of training in float32 for any order of its sums. These sums may be wrong
        by the number of records times half a unit in the last place. Compared with boxes in float64, such boxes are
        1.07 times as wide for batches of 1,000. For batches of 10,000 they are 3 times (removals) or 5 times (additions
        and removals) as wide (20-32-2, k = 1, four updates).
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
        """Train on the present records, with a box for each budget.

        Args:
            rows: Rows of all records, shape ``(records, ...)``.
            labels: Labels of all records, shape ``(records,)``.
            places: The places that `places` drew.
            start: The parameters that `start` drew.
            present: Whether each record is present, shape ``(records,)``.
            budgets: At least one budget, in rising order; a budget of 0 certifies nothing.
            public: Whether each record stays in every neighbouring data set, shape ``(records,)``. None: no record
                stays in all of them.

        Raises:
            AssumptionError: The removals of a budget could empty a batch.
            IntervalError: Bounds overflow.
        """
        if [*budgets] != sorted({*budgets}) or not budgets or budgets[0] < 0:
            raise ParameterError(
                f"budgets must be whole numbers of at least 0 in increasing order, got {tuple(budgets)}"
            )
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
        """Train on the present records, with one box that covers everything that poisoning can do to them.

        Args:
            rows: Rows of all records, shape ``(records, ...)``.
            labels: Labels of all records, shape ``(records,)``.
            places: The places that `places` drew.
            start: The parameters that `start` drew.
            present: Whether each record is present, shape ``(records,)``.
            poisoning: The changes that poisoning can make to the records of every batch.

        Returns:
            The trained network. Its only budget is the number of records that poisoning can change.

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
    """Return the present records of every batch.

    Raises:
        AssumptionError: A batch has no present record.
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
    """Return a network of dense layers for the given number of classes.

    The network for two classes has one logit.
    """
    return Network.dense(features, *hidden, 1 if classes == 2 else classes)


def widths(network: Network) -> tuple[int, ...]:
    """Return the numbers of inputs, hidden units and outputs of a network of dense layers.

    Raises:
        ParameterError: A layer of the network is not dense.
    """
    layers = [each for each in network.affine if isinstance(each, Dense)]
    if Network.dense(layers[0].inputs if layers else 1, *(each.outputs for each in layers)) != network:
        raise ParameterError("only networks of dense layers with ReLU between them have widths")
    return (layers[0].inputs, *(each.outputs for each in layers))


def _repeated(batches: Sequence[Batch], epochs: int) -> Iterator[Batch]:
    for _ in range(epochs):
        yield from batches
