"""The objectives of a job: the loss of all records, or the losses of mini-batches.

Rows are in memory or on disk. The processes of a job can share all rows except mini-batches of rows on disk.
"""

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certified_unlearning.accounting.core.curves import Cycle
from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.data.requests import draw_removals
from certified_unlearning.data.stored_rows import StoredRows, in_order
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.descent import Objective
from certified_unlearning.engine.minibatch import CyclicObjective, dealt_order, places_in
from certified_unlearning.engine.objectives import logistic, softmax
from certified_unlearning.engine.objectives.linear import LinearObjective
from certified_unlearning.engine.objectives.rows import Replacements, StreamedRows
from certified_unlearning.engine.objectives.sharded import ShardedCycle, ShardedObjective
from certified_unlearning.engine.row_shards import RowShards
from certified_unlearning.errors import DataError
from certified_unlearning.mechanisms.run import ExperimentPlan


class Objectives:
    """The objectives of a job's runs on its device; each is built when it is first used.

    Args:
        plan: Plan to simulate.
        mechanism: Mechanism of the runs.
        data: Data set of the plan.
        device: Device of the job.
        directory: Directory for a file of rows on disk that are sorted into batches; the file has no name, and vanishes
            when the job ends.
        shards: The place of this process among the processes that share the job.
    """

    def __init__(
        self,
        plan: ExperimentPlan,
        mechanism: str,
        data: PreparedData,
        device: torch.device,
        directory: Path,
        shards: RowShards,
    ) -> None:
        self._plan, self._data, self._directory, self._shards = plan, data, directory, shards
        self._on = {"dtype": getattr(torch, plan.of(mechanism)[0].dtype), "device": device}
        self._built: dict[Cycle | None, Objective] = {}
        removals = draw_removals(
            data,
            records=max(each.requests[-1].records_removed for each in plan.runs),
            adjacency=plan.settings.adjacency,
            seed=plan.settings.seed,
        )
        self._removed = removals.indices
        self._others = self.place(removals.features), self.place_labels(removals.labels)

    def __getitem__(self, cycle: Cycle | None) -> Objective:
        """Return the objective of a cycle of mini-batches, or of all records.

        Raises:
            DataError: Processes would share mini-batches of rows on disk, which is impossible.
        """
        if cycle not in self._built:
            self._built[cycle] = self._all_records() if cycle is None else self._mini_batches(cycle)
        return self._built[cycle]

    def place(self, array: object) -> Tensor:
        """Return an array as a tensor on the device, in the type of the runs."""
        return torch.as_tensor(array, **self._on)

    def place_labels(self, labels: object) -> Tensor:
        """Return labels on the device: signs for two classes, numbers for more."""
        if self._binary:
            return self.place(labels)
        return torch.as_tensor(labels, dtype=torch.int64, device=self._on["device"])

    @property
    def _binary(self) -> bool:
        return self._plan.constants.classes == 2

    def _loss(self, rows: Tensor | StreamedRows, labels: Tensor, replacements: Replacements) -> LinearObjective:
        constants = self._plan.constants
        softmax_objective = partial(softmax.SoftmaxObjective, classes=constants.classes)
        objective = logistic.LogisticObjective if self._binary else softmax_objective
        return objective(
            self.place(rows) if isinstance(rows, Tensor) else rows,
            labels,
            strong_convexity=constants.strong_convexity,
            lipschitz=constants.lipschitz,
            replacements=replacements,
        )

    def _all_records(self) -> Objective:
        rows = self._data.train_features
        labels = self.place_labels(self._data.train_labels)
        read = torch.from_numpy(rows) if isinstance(rows, np.ndarray) else StreamedRows(rows, **self._on)
        replacements = torch.as_tensor(self._removed), *self._others
        if not self._plan.settings.row_shards:
            return self._loss(read, labels, replacements)
        return ShardedObjective(
            read,
            labels,
            loss=self._loss,
            d=self._plan.constants.d,
            strong_convexity=self._plan.constants.strong_convexity,
            replacements=replacements,
            shards=self._shards,
        )

    def _mini_batches(self, cycle: Cycle) -> Objective:
        shared = self._plan.settings.row_shards
        if shared and not isinstance(self._data.train_features, np.ndarray):
            raise DataError(
                f"the rows of {self._data.name} are on disk, but processes can share only mini-batches in memory: "
                "leave out `processes` and `row_shards`"
            )
        others, their_labels = self._others
        cyclic: Callable[..., Objective] = partial(ShardedCycle, shards=self._shards) if shared else CyclicObjective
        return cyclic(
            self._dealt_rows(),
            self.place_labels(self._data.train_labels[self._order]),
            classes=self._plan.constants.classes,
            batch_size=cycle.batch_size,
            strong_convexity=self._plan.constants.strong_convexity,
            replacements=(
                torch.as_tensor(places_in(self._order)[self._removed]),
                -their_labels[:, None] * others if self._binary else others,
                their_labels,
            ),
        )

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        settings = self._plan.settings
        return dealt_order(self._data.n, address(settings.seed, settings.dataset, "deal"))

    def _dealt_rows(self) -> Tensor | StreamedRows:
        """Return rows in the order of their batches, with a copy for each cycle.

        For two classes, rows are multiplied by their negated labels.
        """
        if isinstance(self._data.train_features, np.ndarray):
            return self.place(self._data.train_features[self._order] * self._factors[self._order, None])
        return StreamedRows(self._dealt_on_disk, **self._on)

    @cached_property
    def _dealt_on_disk(self) -> StoredRows:
        rows = self._data.train_features
        assert isinstance(rows, StoredRows)
        return in_order(rows, places_in(self._order), self._directory, factors=self._factors)

    @property
    def _factors(self) -> NDArray[np.float32]:
        return -self._data.train_labels.astype(np.float32) if self._binary else np.ones(self._data.n, np.float32)
