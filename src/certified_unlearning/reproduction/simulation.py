"""A plan and its data on a device, and the groups of phases that a job runs there."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certified_unlearning.accounting.core.curves import Cycle
from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.data.requests import draw_removals
from certified_unlearning.data.stored_rows import StoredRows, in_order
from certified_unlearning.engine import quality
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.checkpoint import Checkpoint
from certified_unlearning.engine.descent import Objective, Phase, Trajectory, run
from certified_unlearning.engine.devices import one_thread, pick_device
from certified_unlearning.engine.minibatch import CyclicObjective, dealt_order, places_in
from certified_unlearning.engine.objectives import logistic, softmax
from certified_unlearning.engine.objectives.linear import LinearObjective
from certified_unlearning.engine.objectives.rows import Replacements, StreamedRows
from certified_unlearning.engine.objectives.sharded import ShardedCycle, ShardedObjective
from certified_unlearning.engine.progress import Progress
from certified_unlearning.engine.row_shards import ALONE, RowShards, SharedCheckpoint, local_rank
from certified_unlearning.errors import DataError, DivergedError, ParameterError
from certified_unlearning.files import content_key
from certified_unlearning.mechanisms.run import Plan, Run
from certified_unlearning.version import source_sha256


def require_runs(plan: Plan, mechanism: str, data: PreparedData) -> None:
    """Raise `DataError` unless ``data`` is what a plan was made for and the plan has runs of the mechanism."""
    if data.sha256 != plan.constants.data_sha256:
        raise DataError(
            f"the data set {data.name} has digest {data.sha256[:12]}, but the plan was made for "
            f"{str(plan.constants.data_sha256)[:12]}; make the plan again"
        )
    if not plan.of(mechanism):
        raise DataError(f"the plan of {plan.runs[0].experiment} has no runs of {mechanism}")


def require_shards(plan: Plan, shards: RowShards, device: torch.device) -> None:
    """Raise `ParameterError` where processes share a job whose plan is for a single one, or have no GPU each."""
    if shards.ranks > 1 and not plan.settings.row_shards:
        raise ParameterError(
            f"{shards.ranks} processes share this job, but its plan was made without row_shards, for a single one: "
            "set processes or row_shards in params.yaml and make the plan again"
        )
    if shards.ranks > 1 and device.type == "cuda" and local_rank() >= torch.cuda.device_count():
        raise ParameterError(
            f"this machine has {torch.cuda.device_count()} GPUs for more processes than that, which need one each: "
            "set processes to at most their number, or device to cpu"
        )


class Simulation:
    """One job: several groups of phases on the same data, with one progress line and resumable.

    Args:
        plan: What to simulate.
        mechanism: Whose runs.
        data: The plan's data set.
        name: The job's name, for its progress line and its checkpoints.
        output: The job's main output; checkpoints lie beside it until `finish`.
        shards: Which of the processes that share the job this is, if the plan's settings have `row_shards`.

    Raises:
        DataError: ``data`` is not what the plan was made for, or the plan has no such runs.
        ParameterError: The plan's device is not there, or several processes share a job that cannot be shared.
    """

    def __init__(
        self, plan: Plan, mechanism: str, data: PreparedData, name: str, output: Path, shards: RowShards = ALONE
    ) -> None:
        require_runs(plan, mechanism, data)
        self.plan = plan
        self.device = pick_device(plan.settings.device)
        require_shards(plan, shards, self.device)
        self._shards = shards
        self._name = f"{plan.runs[0].experiment} {mechanism} {name}"
        self._output = output
        self._checkpoints: list[Checkpoint] = []
        self._progress: Progress | None = None
        dtype = getattr(torch, plan.of(mechanism)[0].dtype)
        binary = plan.constants.classes == 2

        def place(array: object) -> Tensor:
            return torch.as_tensor(array, dtype=dtype, device=self.device)

        def place_labels(labels: object) -> Tensor:
            return place(labels) if binary else torch.as_tensor(labels, dtype=torch.int64, device=self.device)

        removals = draw_removals(
            data,
            records=max(each.requests[-1].records_removed for each in plan.runs),
            adjacency=plan.settings.adjacency,
            seed=plan.settings.seed,
        )
        replacements = torch.as_tensor(removals.indices), place(removals.features), place_labels(removals.labels)
        loss = logistic.LogisticObjective if binary else partial(softmax.SoftmaxObjective, classes=len(data.classes))
        rows = data.train_features

        def on_device(stored: NDArray[Any] | StoredRows) -> Tensor | StreamedRows:
            if isinstance(stored, np.ndarray):
                return place(stored)
            return StreamedRows(stored, dtype=dtype, device=self.device)

        def all_records() -> Objective:
            if plan.settings.row_shards:
                return shared_records()
            return loss(
                on_device(rows),
                place_labels(data.train_labels),
                strong_convexity=plan.constants.strong_convexity,
                lipschitz=plan.constants.lipschitz,
                replacements=replacements,
            )

        def shared_records() -> Objective:
            def of_block(own: Tensor | StreamedRows, labels: Tensor, of_block: Replacements) -> LinearObjective:
                return loss(
                    place(own) if isinstance(own, Tensor) else own,
                    labels,
                    strong_convexity=plan.constants.strong_convexity,
                    lipschitz=plan.constants.lipschitz,
                    replacements=of_block,
                )

            return ShardedObjective(
                torch.from_numpy(rows)
                if isinstance(rows, np.ndarray)
                else StreamedRows(rows, dtype=dtype, device=self.device),
                place_labels(data.train_labels),
                loss=of_block,
                d=plan.constants.d,
                strong_convexity=plan.constants.strong_convexity,
                replacements=replacements,
                shards=shards,
            )

        signs = -data.train_labels.astype(np.float32) if binary else np.ones(data.n, np.float32)

        @cache
        def order() -> NDArray[np.int64]:
            return dealt_order(data.n, address(plan.settings.seed, plan.settings.dataset, "deal"))

        @cache
        def dealt_on_disk(stored: StoredRows) -> StoredRows:
            return in_order(stored, places_in(order()), output.parent, factors=signs)

        def mini_batches(cycle: Cycle) -> Objective:
            others, their_labels = replacements[1:]
            dealt = rows[order()] * signs[order(), None] if isinstance(rows, np.ndarray) else dealt_on_disk(rows)
            placed = on_device(dealt)
            cyclic: Callable[..., Objective] = CyclicObjective
            if plan.settings.row_shards:
                if isinstance(placed, StreamedRows):
                    raise DataError(
                        f"the rows of {data.name} lie on disk, and processes share mini-batches in memory only: leave "
                        "out processes and row_shards"
                    )
                cyclic = partial(ShardedCycle, shards=shards)
            return cyclic(
                placed,
                place_labels(data.train_labels[order()]),
                classes=plan.constants.classes,
                batch_size=cycle.batch_size,
                strong_convexity=plan.constants.strong_convexity,
                replacements=(
                    torch.as_tensor(places_in(order())[removals.indices]),
                    -their_labels[:, None] * others if binary else others,
                    their_labels,
                ),
            )

        self._objective = cache(lambda cycle: all_records() if cycle is None else mini_batches(cycle))
        self._accuracy = logistic.accuracy if binary else softmax.accuracy
        self._test = place(data.test_features), place_labels(data.test_labels)
        self.no_weights = place([]).new_empty(0, plan.constants.d)

    def measure(self, weights: Tensor) -> Tensor:
        """Return the test accuracy of each trial."""
        return self._accuracy(weights, *self._test)

    def judge(self, weights: Tensor) -> Tensor:
        """Return `quality.MEASURES` of each trial, on the test records."""
        return quality.judged(weights, *self._test, classes=self.plan.constants.classes)

    def expect(self, groups: Sequence[Sequence[Phase]]) -> None:
        """Announce all groups, so that the progress line knows the whole."""
        if not self._shards.writes:
            return
        total = sum(sum(phase.steps) for phases in groups for phase in phases)
        self._progress = Progress(self._name, total)

    def run(self, start: Tensor, phases: Sequence[Phase], of: Run) -> Trajectory:
        """Run the next group of phases, with the step size, the ball and the mini-batches of one of its runs."""
        number = len(self._checkpoints)
        # A checkpoint of other code would give records that belong to neither version.
        software = [source_sha256(), torch.__version__, str(self.device)]
        key = content_key([self.plan.model_dump(mode="json"), self._name, number, software])
        path = self._output.with_name(f"{self._output.stem}.group-{number}.checkpoint")
        checkpoint = Checkpoint(path, key)
        if self._shards.ranks > 1:
            checkpoint = SharedCheckpoint(checkpoint, self._shards)
        self._checkpoints.append(checkpoint)
        # Of a block of rows one thread computes the gradient: then the number of threads changes no bit either.
        with one_thread() if self.plan.settings.row_shards else nullcontext():
            try:
                return run(
                    self._objective(of.cycle),
                    start,
                    phases,
                    step_size=of.step_size,
                    radius=of.radius,
                    measure=self.measure,
                    judge=self.judge,
                    progress=self._progress,
                    checkpoint=checkpoint,
                )
            except DivergedError:
                checkpoint.delete()  # Nobody knows whose weights it holds.
                raise

    def finish(self) -> None:
        """Remove the checkpoints: the results are durable."""
        for checkpoint in self._checkpoints:
            checkpoint.delete()
