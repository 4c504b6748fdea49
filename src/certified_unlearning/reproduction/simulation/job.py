"""A plan and its data on a device, and the groups of phases that a job runs."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import torch
from torch import Tensor

from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.engine import quality
from certified_unlearning.engine.checkpoint import Checkpoint
from certified_unlearning.engine.descent import DescentPhase, DescentResult, run
from certified_unlearning.engine.devices import one_thread, pick_device
from certified_unlearning.engine.objectives import logistic, softmax
from certified_unlearning.engine.progress import Progress
from certified_unlearning.engine.row_shards import ALONE, RowShards, SharedCheckpoint, local_rank
from certified_unlearning.errors import DataError, DivergedError, ParameterError
from certified_unlearning.files import content_key
from certified_unlearning.mechanisms.run import ExperimentPlan, Run
from certified_unlearning.reproduction.simulation.objectives import Objectives
from certified_unlearning.version import source_sha256


def require_runs(plan: ExperimentPlan, mechanism: str, data: PreparedData) -> None:
    """Raise `DataError` if ``data`` is not the data of the plan, or if the plan has no runs of the mechanism."""
    if data.sha256 != plan.constants.data_sha256:
        raise DataError(
            f"the data set {data.name} has digest {data.sha256[:12]}, but the plan was made for "
            f"{str(plan.constants.data_sha256)[:12]}; make the plan again"
        )
    if not plan.of(mechanism):
        raise DataError(f"the plan of {plan.runs[0].experiment} has no runs of {mechanism}")


def require_shards(plan: ExperimentPlan, shards: RowShards, device: torch.device) -> None:
    """Raise `ParameterError` if processes share a job whose plan is for one process, or have too few GPUs."""
    if shards.ranks > 1 and not plan.settings.row_shards:
        raise ParameterError(
            f"{shards.ranks} processes share this job, but its plan was made for a single process, without "
            "`row_shards`: set `processes` or `row_shards` in params.yaml, and make the plan again"
        )
    if shards.ranks > 1 and device.type == "cuda" and local_rank() >= torch.cuda.device_count():
        raise ParameterError(
            f"each process needs a GPU, but there are more processes than GPUs ({torch.cuda.device_count()}) on this "
            "machine: set `processes` to at most the number of GPUs, or `device` to cpu"
        )


class Simulation:
    """One job, which can be resumed: several groups of phases on the same data, with one progress line.

    Args:
        plan: Plan to simulate.
        mechanism: Mechanism of the runs.
        data: Data set of the plan.
        name: Name of the job, for its progress line and its checkpoints.
        output: Main output of the job; until `finish`, its directory also contains the checkpoints.
        shards: The place of this process among the processes of the job, if the plan's settings have `row_shards`.

    Raises:
        DataError: ``data`` is not the data of the plan, or the plan has no runs of the mechanism.
        ParameterError: The plan's device is not available, or several processes share a job that cannot be shared.
    """

    def __init__(
        self,
        plan: ExperimentPlan,
        mechanism: str,
        data: PreparedData,
        name: str,
        output: Path,
        shards: RowShards = ALONE,
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
        self._objectives = Objectives(plan, mechanism, data, self.device, output.parent, shards)
        place, place_labels = self._objectives.place, self._objectives.place_labels
        self._accuracy = logistic.accuracy if plan.constants.classes == 2 else softmax.accuracy
        self._test = place(data.test_features), place_labels(data.test_labels)
        self.no_weights = place([]).new_empty(0, plan.constants.d)

    def measure(self, weights: Tensor) -> Tensor:
        """Return the test accuracy of each trial."""
        return self._accuracy(weights, *self._test)

    def judge(self, weights: Tensor) -> Tensor:
        """Return `quality.MEASURES` of each trial on the test records."""
        return quality.judged(weights, *self._test, classes=self.plan.constants.classes)

    def expect(self, groups: Sequence[Sequence[DescentPhase]]) -> None:
        """Announce all groups, so that the progress line shows the total work."""
        if not self._shards.writes:
            return
        total = sum(sum(phase.steps) for phases in groups for phase in phases)
        self._progress = Progress(self._name, total)

    def run(self, start: Tensor, phases: Sequence[DescentPhase], of: Run) -> DescentResult:
        """Run the next group of phases, with step size, ball and mini-batches from the run in ``of``."""
        number = len(self._checkpoints)
        # With a checkpoint of another code version, records would belong to neither version.
        software = [source_sha256(), torch.__version__, str(self.device)]
        key = content_key([self.plan.model_dump(mode="json"), self._name, number, software])
        path = self._output.with_name(f"{self._output.stem}.group-{number}.checkpoint")
        checkpoint = Checkpoint(path, key)
        if self._shards.ranks > 1:
            checkpoint = SharedCheckpoint(checkpoint, self._shards)
        self._checkpoints.append(checkpoint)
        # One thread computes the gradient of a block of rows, so the number of threads does not change any bit.
        with one_thread() if self.plan.settings.row_shards else nullcontext():
            try:
                return run(
                    self._objectives[of.cycle],
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
                checkpoint.delete()  # The weights in the file may be wrong, as processes' weights differ.
                raise

    def finish(self) -> None:
        """Delete the checkpoints; call this function after the results were stored durably."""
        for checkpoint in self._checkpoints:
            checkpoint.delete()
