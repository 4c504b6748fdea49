"""Ensembles whose answers are certified. Each shard has a budget, and is trained again when the budget is used up.

No parameters are published, because they depend on removed records until their shard is trained again. Together with
boxes and checkpoints, they are a version's secret; the version's weights are empty. The certificate covers the answers
of `unlearn predict`.

The rows of removed records are zero before a removal begins, and no removal reads them: a shard that is trained again
reads the remaining records. Training draws nothing at random, so an `apply` that was killed and is run again ends with
the same bits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from certified_unlearning.certificate.ensemble import EnsembleCertificate
from certified_unlearning.errors import DataError, InfeasibleError, ParameterError
from certified_unlearning.ledger.method import Answered, Method, Outcome, RemovedRows, Secret
from certified_unlearning.ledger.state import Batch
from certified_unlearning.ledger.training.copies import Waiting
from certified_unlearning.ledger.training.dense import numbers
from certified_unlearning.mechanisms.certified_sgd.ensemble import CertifiedShards
from certified_unlearning.mechanisms.certified_sgd.ensemble_plan import EnsemblePlan
from certified_unlearning.mechanisms.certified_sgd.shards import ShardState, replayed
from certified_unlearning.mechanisms.learners.history import Removal


class CertifiedAnswers(Method[EnsemblePlan]):
    """An ensemble of certified networks.

    The number of a record is the number of its row in the table, and never changes.
    """

    plans = (EnsemblePlan,)
    stays_on_the_cpu = True
    no_additions = (
        "its slices were drawn for the records at `unlearn init`, and the bounds of its certified answers "
        "allow for records that leave a shard, not for new records"
    )

    def learn(self, device: torch.device) -> Outcome:
        """Learn version 1 from the training copy."""
        rows, labels = self._training()
        everyone = torch.ones(self._plan.n, dtype=torch.bool)
        return _version(self._plan.settings.learn(rows, labels, everyone, self._plan.generator))

    def planned(
        self, answered: Sequence[Answered], rows: Sequence[int], added: int = 0, waiting: Waiting | None = None
    ) -> Removal:
        """Plan the removal of records, and count them by slice.

        Raises:
            InfeasibleError: No record would be left.
        """
        if len(rows) + sum(batch.records for batch, _ in answered) >= self._plan.n:
            raise InfeasibleError("no record would be left; nothing was done: delete the model directory instead")
        found = self._plan.settings.slices(self._plan.generator)[torch.tensor([*rows])].tolist()
        return Removal(len(rows), 0, tuple((place, found.count(place)) for place in sorted({*found})))

    def remove(
        self,
        weights: NDArray[Any],
        secret: Secret | None,
        answered: Sequence[Answered],
        batch: Batch,
        rows: Sequence[int],
        taken: RemovedRows | None,
        device: torch.device,
    ) -> Outcome:
        """Take records out, and retrain the shards whose budget is then used up; see `Method.remove`."""
        shards = self.shards(secret)
        shards.forget(rows)
        return _version(shards)

    def check(
        self, weights: NDArray[Any], secret: Secret | None, answered: Sequence[Answered], left: Sequence[int]
    ) -> None:
        """Train again on the remaining records, and compare the result with the trained shards; see `Method.check`."""
        shards = self.shards(secret)
        if shards.present.nonzero()[:, 0].tolist() != sorted(left):
            raise DataError(f"the state of {self._directory.path} does not hold exactly the remaining records")
        counts = shards.slices[shards.present].bincount(minlength=len(shards.standing.left)).tolist()
        if counts != shards.standing.left:
            raise DataError(f"the state of {self._directory.path} has wrong counts of the remaining records")
        due = self._standing(answered)
        if (due.left, due.pending) != (shards.standing.left, shards.standing.pending):
            raise DataError(f"the state of {self._directory.path} has budgets that do not follow from its requests")
        shards.check(self._plan.settings.learn(shards.rows, shards.labels, shards.present, self._plan.generator))

    def certificate(self, answered: Sequence[Answered], data_digest: str, lost: int = 0) -> EnsembleCertificate:
        """Return the certificate of the version after these batches; it states no digest."""
        plan = self._plan
        return EnsembleCertificate.of(
            removed=[[(place, count) for place, count in batch.places or ()] for batch, _ in answered],
            lost_releases=lost,
            dataset=self._dataset,
            features=self._features,
            n_learned=plan.n,
            features_in=plan.features,
            hidden=plan.hidden,
            classes=plan.classes,
            loss=plan.loss,
            shards=plan.shards,
            slices=plan.slices,
            budgets=plan.budgets,
            epochs=plan.epochs,
            step_size=plan.step_size,
            bound=plan.bound,
        )

    def shards(self, secret: Secret | None) -> CertifiedShards:
        """Return the ensemble that is stored in a secret. Its rows and labels come from the training copy."""
        if secret is None:
            raise DataError("the secret state is missing; without it, nothing can be answered or removed")
        header, (rows, labels) = secret.header, self._training()
        standing = ShardState(self._plan.sharding)
        standing.left, standing.pending = header["left"], header["pending"]
        tensors = {name: torch.tensor(each) for name, each in secret.arrays.items()}
        return CertifiedShards.from_tensors(self._plan.settings, rows, labels, standing, tensors)

    def _standing(self, answered: Sequence[Answered]) -> ShardState:
        """Return the state of the shards after these batches.

        Raises:
            DataError: A batch does not record the slices of all its records, or records impossible slices.
        """
        places = [batch.places or () for batch, _ in answered]
        for (batch, _), each in zip(answered, places, strict=True):
            if sum(count for _, count in each) != batch.records:
                raise DataError(f"version {batch.version} does not state the slices of all its records")
        try:
            return replayed(self._plan.sharding, [[(place, count) for place, count in each] for each in places])
        except ParameterError as error:
            raise DataError(f"versions of {self._directory.path} state impossible slices: {error}") from error

    def _training(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the rows as networks read them, and the classes as numbers; both are zero for removed records.

        Raises:
            DataError: A file cannot be read, or its size is not the same as at `unlearn init`.
        """
        plan = self._plan
        rows = numbers(self._directory.features, np.float32, plan.n * plan.features).reshape(plan.n, plan.features)
        labels = numbers(self._directory.labels, np.int8, plan.n)
        classes = labels > 0 if plan.classes == 2 else labels
        return torch.from_numpy(rows.astype(np.float64)), torch.from_numpy(classes.astype(np.int64))


def _version(shards: CertifiedShards) -> Outcome:
    """Return a version from an ensemble. All of the ensemble is secret."""
    arrays = {name: each.numpy() for name, each in shards.tensors().items()}
    standing = shards.standing
    return Outcome(np.zeros(0), None, Secret(arrays, {"left": standing.left, "pending": standing.pending}))
