"""Models that learn and forget by noisy steps, on all rows or on mini-batches."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certified_unlearning import certificate
from certified_unlearning.certificate import Certificate
from certified_unlearning.certificate.kinds import AnyCertificate
from certified_unlearning.data.stored_rows import StoredRows
from certified_unlearning.engine.objectives.rows import StreamedRows
from certified_unlearning.engine.progress import Progress
from certified_unlearning.ledger import training
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.method import Answered, Method, Outcome, Secret, Taken, noise_key
from certified_unlearning.ledger.state import Batch
from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner


class NoisySteps(Method):
    """Langevin learning and unlearning; what is published is all that a request starts from."""

    def __init__(
        self, directory: ModelDirectory, learner: LangevinLearner | MiniBatchLearner, dataset: str, features: str
    ) -> None:
        self._directory, self._learner, self._dataset, self._features = directory, learner, dataset, features

    def deal(self) -> None:
        """Bring the training copy into the order in which it is read."""
        learner = self._learner
        if isinstance(learner, MiniBatchLearner):
            training.deal(self._directory, learner.features, classes=learner.classes, key=noise_key())

    def learn(self, device: torch.device) -> Outcome:
        """Learn version 1 from the training copy."""
        rows, labels = place_training(self._directory, self._learner, device)
        progress = Progress("init", self._learner.learning_steps)
        return Outcome(self._learner.learn(rows, labels, [noise_key()], progress=progress)[0].cpu().numpy())

    def planned(self, answered: Sequence[Answered], rows: Sequence[int]) -> Removal:
        """Return the steps that remove rows of the table, given what was removed before; errors as the learner's."""
        learner, history = self._learner, removals(answered)
        if isinstance(learner, LangevinLearner):
            return learner.plan_removal(history, len(rows))
        return learner.plan_removal(history, len(rows), learner.places_of(training.positions(self._directory, rows)))

    def remove(
        self,
        weights: NDArray[Any],
        secret: Secret | None,
        answered: Sequence[Answered],
        batch: Batch,
        rows: Sequence[int],
        taken: Taken | None,
        device: torch.device,
    ) -> Outcome:
        """Carry out a batch by its noisy steps; see `Method.remove`."""
        left, labels = place_training(self._directory, self._learner, device)
        unlearned = self._learner.unlearn(
            torch.from_numpy(weights).reshape(1, -1).to(device),
            left,
            labels,
            removals([*answered, Answered(batch, None)]),
            [noise_key()],
            progress=Progress("apply", batch.steps),
        )
        return Outcome(unlearned[0].cpu().numpy())

    def check(
        self, weights: NDArray[Any], secret: Secret | None, answered: Sequence[Answered], left: Sequence[int]
    ) -> None:
        """Compare nothing: without the noise, which nobody keeps, weights follow from no records."""

    def certificate(self, answered: Sequence[Answered], data_digest: str) -> Certificate:
        """Return the certificate of the version that these batches led to."""
        learner = self._learner
        history = learner.history(removals(answered))
        return certificate.of(
            learner.run(history, dataset=self._dataset, features=self._features, data_digest=data_digest),
            key=learner.run_key(history, data_digest),
            noise_source="system entropy",
            all_published=learner.all_published_is_known,
            stream=learner.stream(history),
        )

    def is_of(self, certificate: AnyCertificate, answered: Sequence[Answered]) -> bool:
        """Return whether a certificate speaks of these batches, and of where the classes come from."""
        return (
            isinstance(certificate, Certificate)
            and certificate.features == self._features
            and certificate.schedule == self._learner.schedule(removals(answered))
        )


def place_training(
    directory: ModelDirectory, learner: LangevinLearner | MiniBatchLearner, device: torch.device
) -> tuple[Tensor | StreamedRows, Tensor]:
    """Return the rows and labels of the training copy as the learner takes them.

    Mini-batches stay in their file, a step reads its own; so do other rows that would fill more than a quarter of the
    memory. Removed records are rows of zeros; their label, 0, counts for nothing.
    """
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


def removals(answered: Sequence[Answered]) -> list[Removal]:
    """Return batches as a learner knows them."""
    return [Removal.read(batch.records, batch.steps, batch.places) for batch, _ in answered]
