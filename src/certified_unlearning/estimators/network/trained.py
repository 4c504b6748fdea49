"""The network of a `CertifiedMLPClassifier` with its history: the records that it learned from, and removals since."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.errors import AssumptionError, DataError
from certified_unlearning.estimators.records import RecordStore
from certified_unlearning.mechanisms.certified_sgd.learned import LINES, Learned
from certified_unlearning.mechanisms.certified_sgd.sgd import CertifiedSgd


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A network as it was last trained. Removals and later training runs return new objects.

    All training runs use the same batches and the same initial parameters. The records themselves are in the
    `RecordStore` of the estimator. Methods that need the records have the argument ``store``.

    Attributes:
        settings: The settings of training.
        n: Number of fitted records, including public records, which come last.
        public_records: Number of public records.
        learned: The parameters and boxes.
        places: Positions of the records of each batch, shape ``(batches, batch size)``. If the estimator was saved
            without its training data, ``places``, ``start`` and ``learned_from`` are empty.
        start: The initial parameters.
        learned_from: Whether each fitted record was present in the last training, shape ``(n,)``.
        trainings: Number of training runs so far.
        pending: Number of records that were removed since the last training.
    """

    settings: CertifiedSgd
    n: int
    public_records: int
    learned: Learned
    places: torch.Tensor
    start: tuple[torch.Tensor, ...]
    learned_from: torch.Tensor
    trainings: int = 1
    pending: int = 0

    @classmethod
    def first(
        cls,
        settings: CertifiedSgd,
        store: RecordStore,
        budgets: Sequence[int],
        *,
        public_records: int,
        generator: torch.Generator,
    ) -> Self:
        """Draw batches and initial parameters, and train on all records.

        Args:
            settings: The settings of training.
            store: The records, none of which was removed.
            budgets: The budgets of the boxes, in ascending order.
            public_records: Number of public records.
            generator: Generator of the random numbers.
        """
        n, device = len(store.labels), store.labels.device
        places = settings.places(n, generator).to(device)
        start = tuple(each.to(device) for each in settings.start(generator))
        present = torch.ones(n, dtype=torch.bool, device=device)
        public = _is_public(places, n, public_records)
        learned = settings.learn(store.rows, store.labels, places, start, present, budgets, public)
        return cls(settings, n, public_records, learned, places, start, present)

    @classmethod
    def restored(cls, settings: CertifiedSgd, header: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> Self:
        """Return the network from the results of `saved`.

        Args:
            settings: The settings of training.
            header: Entries of the file's header, which include the numbers.
            tensors: Tensors of the file, which include the arrays.
        """
        network, bounding = settings.network, settings.bounding
        of_budgets = {"budgets": tuple(header["budgets"]), "smallest_batch": header["smallest_batch"]}
        layers = range(len(network.shapes))
        # Files that were written before there were public rows lack their number.
        known = {"n": header["n"], "public_records": header.get("public_records", 0)}
        known |= {"trainings": header["trainings"], "pending": header["pending"]}
        if "rows" not in tensors:
            parameters = network.checked([tensors[f"parameters/{layer}"] for layer in layers])
            box = tuple(Interval.point(each) for each in parameters)
            learned = Learned(network, bounding, parameters, box, **of_budgets)
            nothing = torch.empty(0, dtype=torch.int64)
            return cls(settings, learned=learned, places=nothing, start=(), learned_from=nothing, **known)
        return cls(
            settings,
            learned=Learned.of(tensors, network, bounding, **of_budgets),
            places=tensors["places"],
            start=tuple(tensors[f"start/{layer}"] for layer in layers),
            learned_from=tensors["learned_from"],
            **known,
        )

    def saved(self, training_data: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
        """Return the numbers and arrays for a file.

        Args:
            training_data: Whether the file will also contain the records. If not, only the parameters are returned.
        """
        header = {
            "budgets": self.learned.budgets,
            "smallest_batch": self.learned.smallest_batch,
            "n": self.n,
            "public_records": self.public_records,
            "trainings": self.trainings,
            "pending": self.pending,
        }
        arrays: dict[str, NDArray[Any] | None] = {
            name: each.cpu().numpy()
            for name, each in self.learned.tensors.items()
            if training_data or name.startswith("parameters/")
        }
        if training_data:
            arrays |= {f"start/{layer}": values.cpu().numpy() for layer, values in enumerate(self.start)}
            arrays |= {"learned_from": self.learned_from.cpu().numpy(), "places": self.places.cpu().numpy()}
        return header, arrays

    def present(self, store: RecordStore) -> torch.Tensor:
        """Return whether each fitted record remains, shape ``(n,)``; public records always remain."""
        left = torch.ones(self.n, dtype=torch.bool)
        left[: self.n - self.public_records] = torch.as_tensor(~store.removed)
        return left.to(self.places.device)

    def spent(self, store: RecordStore) -> int:
        """Return the largest number of records that one batch has lost since the last training."""
        if not self.pending:
            return 0
        gone = self.learned_from & ~self.present(store)
        return int(gone[self.places].sum(dim=1).max())

    def budget_left(self, store: RecordStore) -> int:
        """Return the number of further records that can be removed from any batch without retraining."""
        return self.learned.budgets[-1] - self.spent(store)

    def learned_records(self, store: RecordStore) -> NDArray[np.int64]:
        """Return the positions of the remaining private records that are in a batch, in order."""
        places = self.places.flatten().sort().values
        private = places[(places < self.n - self.public_records) & self.present(store)[places]]
        return private.cpu().numpy()

    def after_removal(self, store: RecordStore, records: int) -> Self:
        """Return the same network, with more removals since its last training.

        Args:
            store: The records, without the removed records.
            records: Number of records that were removed.

        Raises:
            AssumptionError: A batch has no records left.
        """
        if not bool(self.present(store)[self.places].any(dim=1).all()):
            raise AssumptionError(
                "the request names all records that are left in a batch, and an empty batch has no mean: fit anew on "
                "the remaining records"
            )
        return replace(self, pending=self.pending + records)

    def trained_again(self, store: RecordStore, budgets: Sequence[int]) -> Self:
        """Return the network trained on the remaining records.

        If removals must be covered, only budgets below the number of records of the smallest batch are used. If there
        is no such budget, because a batch has one record left, the only budget is 0: then nothing is certified, and
        every request makes the network train anew.

        Args:
            store: The remaining records.
            budgets: The budgets of the boxes, in ascending order.
        """
        if self.settings.neighbourhood.changes == "removals":
            smallest = self._smallest_that_may_be_emptied(store)
            budgets = [each for each in budgets if each < smallest] or [0]
        return replace(
            self,
            learned=self._learn(store, budgets),
            learned_from=self.present(store),
            trainings=self.trainings + 1,
            pending=0,
        )

    def check(self, store: RecordStore) -> None:
        """Repeat the last training, and compare its parameters and boxes with the stored ones.

        Raises:
            DataError: The results differ, or records were removed since the last training.
        """
        if self.pending:
            raise DataError("records were removed since the last training, so the training cannot be repeated")
        found = self._learn(store, self.learned.budgets).tensors
        for name, kept in self.learned.tensors.items():
            # Files written before lines existed have none, and certify without them.
            if name not in found or not torch.allclose(found[name], kept, rtol=1e-9, atol=1e-12):
                what = "lines of the last update" if name.startswith(LINES) else "parameters or boxes"
                raise DataError(f"training again on the records gives {what} that differ from the stored ones")

    def _learn(self, store: RecordStore, budgets: Sequence[int]) -> Learned:
        public = _is_public(self.places, self.n, self.public_records)
        return self.settings.learn(
            store.rows, store.labels, self.places, self.start, self.present(store), budgets, public
        )

    def _smallest_that_may_be_emptied(self, store: RecordStore) -> float:
        """Return the number of records left in the smallest batch that has no public records.

        If every batch has public records, the number is infinity.
        """
        left = self.present(store)[self.places].sum(dim=1)
        public = _is_public(self.places, self.n, self.public_records)
        if public is not None:
            left = left[~public[self.places].any(dim=1)]
        return int(left.min()) if len(left) else math.inf


def _is_public(places: torch.Tensor, n: int, public_records: int) -> torch.Tensor | None:
    """Return, for each of ``n`` fitted records, whether the record is public; None if no record is public."""
    if not public_records:
        return None
    return torch.arange(n, device=places.device) >= n - public_records
