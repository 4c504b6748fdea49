"""The model in a directory: what never changes of it, and each version's weights and certificate."""

import hashlib
import math
import os
import secrets
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import safetensors.numpy
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from certified_unlearning import certificate
from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.data.stored_rows import StoredRows
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.engine.objectives.rows import StreamedRows
from certified_unlearning.errors import DataError
from certified_unlearning.files import atomic_path, read_model
from certified_unlearning.ledger import training
from certified_unlearning.ledger.directory import ModelDirectory, file_sha256
from certified_unlearning.ledger.state import State, Version
from certified_unlearning.ledger.store import LedgerError
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.mechanisms.learners.learner import Removal
from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner


class StoredModel(BaseModel):
    """`model.json`: everything that is fixed when the directory is made.

    Attributes:
        format: Of the directory.
        dataset: What certificates call the data.
        table: How a table became rows, labels and identifiers, with the names of columns and classes.
        intercept: Whether rows ``x`` became ``(x, 1) / sqrt(2)``.
        learner: The learner.
        device: Where noisy steps are taken: auto, cpu or cuda.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1]
    dataset: str
    table: Table
    intercept: bool
    learner: LangevinLearner | MiniBatchLearner
    device: Literal["auto", "cpu", "cuda"]


def with_intercept(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows ``(x, 1) / sqrt(2)``: their norm is at most 1 where that of ``x`` is."""
    one = np.ones((len(rows), 1), np.float32)
    return np.hstack([rows, one]) * np.float32(math.sqrt(0.5))


def read_stored(directory: ModelDirectory, state: State) -> StoredModel:
    """Read `model.json`.

    Raises:
        DataError: It cannot be read.
        LedgerError: It is not what was recorded.
    """
    if file_sha256(directory.model) != state.start.model_sha256:
        raise LedgerError(f"{directory.model} was tampered with: it is not what `unlearn init` recorded")
    return read_model(directory.model, StoredModel, "a model")


def read_weights(directory: ModelDirectory, version: Version) -> NDArray[Any]:
    """Read a version's weights, shape ``(scores of a record, features)``.

    Raises:
        DataError: They cannot be read.
        LedgerError: They are not what was recorded.
    """
    path = directory.weights(version.version)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest() != version.weights_sha256:
        raise LedgerError(f"{path} was tampered with: it is not the model that the ledger recorded")
    return safetensors.numpy.load(content)["weights"]


def write_version(
    directory: ModelDirectory,
    model: StoredModel,
    version: int,
    weights: NDArray[Any],
    history: Sequence[Removal],
    data_digest: str,
) -> dict[str, Any]:
    """Write a version's weights and certificate; return what the ledger records of them.

    Args:
        directory: Where.
        model: What never changes.
        version: The version's number.
        weights: Shape ``(d,)``.
        history: The removals that it has behind it.
        data_digest: Keyed digest of the records that are left.
    """
    by_score = weights.reshape(scores_per_record(model.learner.classes), -1)
    with atomic_path(directory.weights(version)) as temporary:
        safetensors.numpy.save_file({"weights": by_score}, temporary, {"version": str(version)})
    certified = certificate.of(
        model.learner.run(history, dataset=model.dataset, features="declared", data_digest=data_digest),
        key=model.learner.run_key(history, data_digest),
        noise_source="system entropy",
        all_published=model.learner.all_published_is_known,
    )
    certificate.write(certified, directory.certificate(version))
    return {
        "version": version,
        "weights_sha256": file_sha256(directory.weights(version)),
        "certificate_sha256": file_sha256(directory.certificate(version)),
        **certified.model_dump(include={"epsilon", "delta", "extra_delta", "epsilon_all_published"}),
    }


def place_training(
    directory: ModelDirectory, model: StoredModel, device: torch.device
) -> tuple[Tensor | StreamedRows, Tensor]:
    """Return the rows and labels of the training copy as the learner takes them.

    Mini-batches stay in their file, a step reads its own; so do other rows that would fill more than a quarter of the
    memory. Removed records are rows of zeros; their label, 0, counts for nothing.
    """
    learner = model.learner
    dtype = getattr(torch, learner.dtype)
    if isinstance(learner, MiniBatchLearner):
        stored = StoredRows(directory.features, 0, (learner.n, learner.features))
        batches = torch.from_numpy(np.memmap(directory.labels, np.int8, mode="c"))
        return StreamedRows(stored, dtype=dtype, device=device), batches.to(device)
    labels = torch.from_numpy(np.fromfile(directory.labels, np.int8))
    labels = labels.to(device, dtype if learner.classes == 2 else torch.int64)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if directory.features.stat().st_size > memory // 4:
        stored = StoredRows(directory.features, 0, (learner.n, learner.features))
        return StreamedRows(stored, dtype=dtype, device=device), labels
    # The objective makes a copy of its own; until then the pages that the digests have read are memory enough.
    rows = np.memmap(directory.features, np.float32, mode="c", shape=(learner.n, learner.features))
    return torch.from_numpy(rows).to(device, dtype), labels


def history_of(state: State) -> list[Removal]:
    """Return the removals that the current version has behind it."""
    return [Removal.read(batch.records, batch.steps, batch.places) for batch in state.batches]


def planned_removal(
    directory: ModelDirectory,
    learner: LangevinLearner | MiniBatchLearner,
    history: Sequence[Removal],
    rows: Sequence[int],
) -> Removal:
    """Return the steps that remove rows of the table, given what was removed before; errors as the learner's."""
    if isinstance(learner, LangevinLearner):
        return learner.plan_removal(history, len(rows))
    return learner.plan_removal(history, len(rows), learner.places_of(training.positions(directory, rows)))


def noise_key() -> int:
    """Draw the key of a run's noise: from the operating system, used once, kept nowhere."""
    return secrets.randbits(128)
