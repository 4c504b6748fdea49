"""MLflow runs that mirror the result files: found by content key, never duplicated, and completed if unfinished."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from certified_unlearning.errors import StorageError
from certified_unlearning.files import write_model
from certified_unlearning.reproduction.experiment import Experiment
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.paper import Paper
from certified_unlearning.reproduction.tracking import store
from certified_unlearning.reproduction.tracking.entries import Dataset, Entry, has_rows, read_entries
from certified_unlearning.reproduction.tracking.histogram import Histogram
from certified_unlearning.reproduction.tracking.store import StoreStatus
from certified_unlearning.reproduction.tracking.view import FigureView

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Run

KEY_TAG = "certified_unlearning.run_key"
DIGEST_TAG = "certified_unlearning.digest"
PARENT_TAG = "mlflow.parentRunId"
_BREAKS = 4
"""Number of times that a server may stop answering while one experiment is tracked."""


class TrackResult(BaseModel):
    """Changes that tracking made in MLflow.

    Attributes:
        added: Number of sweep points that were new to MLflow.
        updated: Number of sweep points that had changed, or that a killed process had left unfinished.
        unchanged: Number of sweep points that needed no change.
        warning: Reason why tracking is incomplete, and what to do, in one sentence; None if it is complete.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    warning: str | None = None

    def write(self, path: str | Path) -> None:
        """Write the result as JSON, atomically."""
        write_model(path, self)


def track_experiment(
    layout: Layout,
    paper: str,
    experiment: Experiment,
    status: StoreStatus,
    *,
    uri: str | None = None,
    artifact_root: str | Path = "mlartifacts",
    patience: float = 0.0,
) -> TrackResult:
    """Update MLflow's runs of one experiment so that they match the experiment's result files.

    Args:
        layout: Paths of the preset's results.
        paper: Name of the paper.
        experiment: The experiment.
        status: Result of `prepare_store`.
        uri: Address of the store; by default MLFLOW_TRACKING_URI, or ``sqlite:///mlflow.db`` if that is not set.
        artifact_root: Directory of the artifacts if the store is a database; a server has its own.
        patience: Number of seconds during which a server is asked again if it does not answer or stops answering.
            Tracking is given up after `_BREAKS` interruptions.

    Returns:
        The changes. A store that does not answer causes a warning, not an error.

    Raises:
        DataError: A result file is missing or damaged.
        StorageError: Artifacts cannot be written to a local directory.
    """
    uri = store.tracking_uri(uri)
    if status.experiment_id is None:
        return TrackResult(warning=status.warning)
    if status.tracking_uri != store.display(uri):
        return TrackResult(warning=store.untracked(uri, f"{status.tracking_uri} was prepared instead"))
    reason = store.why_unreachable(uri, patience)
    if reason:
        return TrackResult(warning=store.untracked(uri, reason))
    parent, sweep_points = read_entries(layout, paper, experiment)
    counts: Counter[str] = Counter()
    done: set[str] = set()
    breaks = 0
    while True:
        try:
            artifacts = store.Artifacts(store.client(uri), uri, Path(artifact_root))
            # After an interruption, ask again, because MLflow may have only a part of what was being logged.
            mirror = _Mirror(artifacts, status.experiment_id, experiment.name)
            parent_id, _ = mirror.put(parent)
            for entry in (each for each in sweep_points if each.key not in done):
                counts[mirror.put(entry, parent_id)[1]] += 1
                done.add(entry.key)
            return _result(counts)
        except store.failures() as error:
            breaks += 1
            if breaks == _BREAKS or not patience or store.why_unreachable(uri, patience):
                return _result(counts, store.untracked(uri, store.first_line(error)))
        except OSError as error:
            raise StorageError(f"cannot write MLflow's artifacts: {error.strerror or error}") from error


def sync(
    papers: Sequence[Paper],
    results: str | Path = "results",
    *,
    uri: str | None = None,
    artifact_root: str | Path = "mlartifacts",
    patience: float = 0.0,
) -> TrackResult:
    """Track everything in the results, and update the presets' status files.

    Args:
        papers: Papers whose experiments are looked for.
        results: Directory of the presets' results.
        uri: Address of the store; by default MLFLOW_TRACKING_URI, or ``sqlite:///mlflow.db`` if that is not set.
        artifact_root: Directory of the artifacts if the store is a database.
        patience: Number of seconds during which a server that does not answer is asked again.

    Returns:
        The sums over all experiments until tracking stops. Tracking stops at the first experiment that cannot be
        tracked.

    Raises:
        DataError: A result file is missing or damaged.
        StorageError: Artifacts or status files cannot be written.
    """
    counts: Counter[str] = Counter()
    presets = sorted({path.parents[2].name for path in Path(results).glob("*/*/*/*.parquet")})
    for preset in presets:
        layout = Layout(Path(results), preset)
        found = [(paper, each) for paper in papers for each in paper.experiments if has_rows(layout, paper.name, each)]
        figures = [FigureView.of(each) for _, each in found if each.mechanisms]
        status = store.prepare_store(preset, figures, uri=uri, patience=patience)
        if status.warning:
            return _result(counts, status.warning)
        status.write(layout.tracking_store)
        for paper, experiment in found:
            result = track_experiment(
                layout, paper.name, experiment, status, uri=uri, artifact_root=artifact_root, patience=patience
            )
            counts.update(result.model_dump(exclude={"warning"}))
            if result.warning:
                return _result(counts, result.warning)
            result.write(layout.tracked(paper.name, experiment.name))
    return _result(counts)


def pages(results: str | Path = "results") -> dict[str, str]:
    """Return the address of each tracked preset's table of sweep points (`StoreStatus.page`)."""
    found = {
        path.parents[1].name: StoreStatus.read(path).page
        for path in sorted(Path(results).glob("*/tracking/store.json"))
    }
    return {preset: page for preset, page in found.items() if page is not None}


def _result(counts: Counter[str], warning: str | None = None) -> TrackResult:
    return TrackResult(added=counts["added"], updated=counts["updated"], unchanged=counts["unchanged"], warning=warning)


class _Mirror:
    """The runs in MLflow for one experiment of a paper."""

    def __init__(self, artifacts: store.Artifacts, experiment_id: str, figure: str) -> None:
        self._artifacts = artifacts
        self._client = client = artifacts.client
        self._experiment_id = experiment_id
        self._histogram = Histogram()
        self._known: dict[str, list[Run]] = defaultdict(list)
        token = None
        while True:
            page = client.search_runs([experiment_id], f"tags.figure = '{figure}'", max_results=1000, page_token=token)
            for run in page:
                self._known[run.data.tags.get(KEY_TAG, "")].append(run)
            token = page.token
            if not token:
                break

    def put(self, entry: Entry, parent_id: str | None = None) -> tuple[str, str]:
        """Make sure that exactly one run has the entry's key, and that this run has the entry's content.

        Returns:
            The run's id, and ``added``, ``updated`` or ``unchanged``.
        """
        known = self._known[entry.key]
        same = [run for run in known if run.data.tags.get(DIGEST_TAG) == entry.digest]
        same.sort(key=lambda run: run.info.status != "FINISHED")
        for run in known:
            if run not in same[:1]:
                self._client.delete_run(run.info.run_id)
        if not same:
            run = self._create(entry, parent_id)
            self._log(run, entry)
            return run.info.run_id, "updated" if known else "added"
        run = same[0]
        if parent_id and run.data.tags.get(PARENT_TAG) != parent_id:
            self._client.set_tag(run.info.run_id, PARENT_TAG, parent_id)
        if run.info.status == "FINISHED":
            return run.info.run_id, "unchanged"
        self._log(run, entry)
        return run.info.run_id, "updated"

    def _create(self, entry: Entry, parent_id: str | None) -> "Run":
        tags = {**entry.tags, **_page_tags(entry), KEY_TAG: entry.key, DIGEST_TAG: entry.digest}
        if parent_id:
            tags[PARENT_TAG] = parent_id
        start = round(1000 * (entry.origin.ended - entry.origin.seconds))
        return self._client.create_run(self._experiment_id, start_time=start, tags=tags, run_name=entry.name)

    def _log(self, run: "Run", entry: Entry) -> None:
        """Log everything, and finish the run; repeating this adds nothing.

        MLflow stores the same number at the same step and time only once, so the time is always the run's start. The
        end of the run is the end of its simulation, even if logging takes longer.
        """
        from mlflow.entities import Metric, Param

        run_id, time = run.info.run_id, run.info.start_time
        params = [Param(name, str(value)) for name, value in entry.params.items()]
        metrics = [Metric(each.name, each.value, time, each.step) for each in entry.metrics]
        self._client.log_batch(run_id, metrics, params)
        if entry.dataset is not None:
            self._log_dataset(run_id, entry.dataset)
        self._log_files(run, entry)
        self._client.set_terminated(run_id, "FINISHED", end_time=time + round(1000 * entry.origin.seconds))

    def _log_dataset(self, run_id: str, dataset: Dataset) -> None:
        from mlflow.exceptions import MlflowException

        recorded = _dataset_input(dataset)
        try:
            self._client.log_inputs(run_id, [recorded])
        except MlflowException as error:
            if error.error_code != "BAD_REQUEST":
                raise
            # If another process recorded the same data set at the same moment, both runs now find it.
            self._client.log_inputs(run_id, [recorded])

    def _log_files(self, run: "Run", entry: Entry) -> None:
        files = dict(entry.files)
        if entry.accuracies:
            files["accuracies.png"] = self._histogram.png(entry.accuracies, entry.name)
        self._artifacts.log(run, files)


def _page_tags(entry: Entry) -> dict[str, str]:
    """Return the tags from which MLflow's page shows a run's origin, its kind, and its colour."""
    _, _, commit = entry.origin.code_version.partition("+")
    return {
        "mlflow.note.content": entry.description,
        "mlflow.source.name": entry.origin.source,
        "mlflow.source.type": "LOCAL",
        # There is no true commit if the working tree was changed, or if rows are from several commits.
        **({"mlflow.source.git.commit": commit} if commit.isalnum() else {}),
        **({"mlflow.runColor": entry.color} if entry.color else {}),
    }


def _dataset_input(dataset: Dataset) -> "DatasetInput":
    from mlflow.entities import Dataset as MlflowDataset
    from mlflow.entities import DatasetInput, InputTag

    return DatasetInput(
        MlflowDataset(
            name=dataset.name,
            digest=dataset.sha256[:36],  # MLflow does not allow a longer digest; the whole one is a param.
            source_type="local",
            source=json.dumps({"uri": dataset.path}),
            profile=json.dumps({"num_rows": dataset.n, "num_elements": dataset.n * dataset.d}),
        ),
        tags=[InputTag("mlflow.data.context", "training")],
    )
