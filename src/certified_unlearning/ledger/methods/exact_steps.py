"""Models that unlearn exactly. Every learning step is kept; a removal examines the steps that used a removed record.

The state is secret: it shows which steps used which records, and holds gradients without noise. It is kept next to the
published weights until the next `apply`, which makes a new state and overwrites the old one. Nothing in the new state
shows the cost of a removal, or whether the removal took steps again, because this would tell when a record was used.

The rows of a removed record are zero before its removal begins, so an interrupted `apply` finds them gone. The state
has what the removal needs: the batches that contain the record, and the gradients of these batches with the record. New
gradients are computed from the batches without the record, and all other records of these batches stay.

The seed of a removal is drawn early, namely when the version that precedes the removal is made. The seed is kept in the
secret of that version. So an `apply` that is killed and run again has the result that the first run would have had.
Suppose instead that each `apply` drew a seed. An `apply` that takes steps again takes longer, so it would be killed
more often, and its next run would have another seed. Then the result would not have the
distribution of a model that is learned anew.

A directory that was restored from a backup holds a seed that a lost version has already used, perhaps for other
requests. With the same random numbers, the difference of the two published models would show, without noise, how the
requests differ. So the seed is hashed with the removed and added records. Then different records lead to different
random numbers, even after a restore that the log does not record. If the log records the restore, the name that the log
gives the restore is hashed, too: each restore has its own draw, and every `apply` after the same restore has the same
draw. A restored state has the distribution of learning anew on the records that were present when this state was made.
This holds under one condition: the drawn numbers had no influence on the loss of the directory or on the choice of the
backup. The certificate states this condition (`certificate.lost`).
"""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from certified_unlearning.certificate import ExactCertificate
from certified_unlearning.data.advice.trial import PredictionScores
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact.draws import SEED_BITS, Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.errors import DataError, InfeasibleError
from certified_unlearning.ledger.method import Answered, Method, Outcome, RemovedRows, Secret, added_by
from certified_unlearning.ledger.methods.advice import Advice, Option, Shares
from certified_unlearning.ledger.state import Batch
from certified_unlearning.ledger.training.copies import Waiting
from certified_unlearning.ledger.training.dense import numbers
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.invariants import require_close
from certified_unlearning.mechanisms.exact.plan import ExactPlan
from certified_unlearning.mechanisms.exact.trajectory import Descent, Trajectory
from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.text import counted


class ExactAdvice(Advice[ExactPlan]):
    """Advice to learn longer, and to take steps with less noise."""

    def _against_noise(self, same: PredictionScores) -> str:
        less = " together with a smaller --sigma" if self.plan.sigma is not None else ""
        less = " together with a smaller --quantum" if self.plan.quantum is not None else less
        return f"more --steps{less}"

    def _option(
        self, words: str, *, C: float = 1, epsilon: float = 1, records: int = 1, shares: Shares = None
    ) -> Option | None:
        if shares is not None:
            return None  # This mechanism has no class weights.
        # The error of finitely many steps does not come from the regulariser, and is small when advice is due.
        strength = self.plan.strong_convexity / C / records
        return Option(f"{words} without the noise of its steps,", self.trial.expected(strength), 0.0)


class ExactSteps(Method[ExactPlan]):
    """Sub-sampled, noisy, accelerated or quantized descent. A record's id, its row number in the table, never changes.

    The method computes on the CPU, so that an `apply` that is run again draws the same numbers.
    """

    plans = (ExactPlan,)
    advice = ExactAdvice
    stays_on_the_cpu = True

    def learn(self, device: torch.device) -> Outcome:
        """Learn version 1 from the training copy."""
        return self._version(self._descent(self._plan.n).learn(torch.arange(self._plan.n), Draws.fresh()))

    def plan_after(self, answered: Sequence[Answered]) -> ExactPlan:
        """Return the plan whose ``n`` counts all records that were ever in the model. No constant depends on ``n``."""
        return self._plan.model_copy(update={"n": self._plan.n + added_by(answered)})

    def planned(
        self, answered: Sequence[Answered], rows: Sequence[int], added: int = 0, waiting: Waiting | None = None
    ) -> Removal:
        """Return the removal of records, which takes no noisy steps.

        Raises:
            InfeasibleError: The number of remaining records would not exceed the batch size.
        """
        left = self._plan.n + added_by(answered) + added - sum(batch.records for batch, _ in answered)
        most = left - 1 - self._plan.batch_size
        if len(rows) > most:
            raise InfeasibleError(
                f"{counted(len(rows), 'record')} cannot be removed from {left}: more than batch_size = "
                f"{self._plan.batch_size} records must be left, so at most {most} can be removed; nothing was done: to "
                "remove more, learn a new model without these records"
            )
        return Removal(len(rows), 0)

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
        """Carry out a batch by one edit of the state; see `Method.remove`."""
        state, seed = self._kept(secret)
        first = self.plan_after(answered).n
        added = range(first, first + batch.records_added)
        # The cost of the edit must stay unknown to everybody.
        drawn = address("removal", f"{seed:x}", self._digest_of(added), *rows)
        self._descent(first + len(added)).edit(state, rows, added, Draws(drawn))
        return self._version(state)

    def check(
        self, weights: NDArray[Any], secret: Secret | None, answered: Sequence[Answered], left: Sequence[int]
    ) -> None:
        """Recompute the published weights, and every kept step from the step before; see `Method.check`."""
        state, _ = self._kept(secret)
        if state.alive.ids.sort().values.tolist() != sorted(left):
            raise DataError(f"the state of {self._directory.path} does not hold exactly the remaining records")
        self._descent(self.plan_after(answered).n).check(state)
        require_close("published weights", torch.from_numpy(weights), torch.from_numpy(self._published(state)))

    def certificate(self, answered: Sequence[Answered], data_digest: str, lost: int = 0) -> ExactCertificate:
        """Return the certificate of the version after these batches; it states no digest."""
        plan = self._plan
        return ExactCertificate.of(
            noise_source="system entropy",
            dataset=self._dataset,
            features=self._features,
            mechanism=plan.mechanism,
            loss=plan.loss,
            d=plan.dimension,
            classes=plan.classes,
            strong_convexity=plan.strong_convexity,
            steps=plan.steps,
            batch_size=plan.batch_size,
            step_size=plan.step_size,
            radius=plan.radius,
            sigma=plan.sigma,
            quantum=plan.quantum,
            n_learned=plan.n,
            deleted=sum(batch.records for batch, _ in answered),
            inserted=added_by(answered),
            requests=len(answered),
            lost_releases=lost,
        )

    def _descent(self, count: int) -> ExactDescent[Descent]:
        """Return the descent on the first ``count`` rows of the training copy; it reads only the rows that it needs."""
        plan = self._plan
        rows = np.memmap(self._directory.features, np.float32, mode="c", shape=(count, plan.features))
        labels = torch.from_numpy(numbers(self._directory.labels, np.int8, count))
        if plan.classes == 2:
            # A removed record has no label. The record is never used, so any label will do.
            labels[labels == 0] = 1
        records = LinearRecords(
            torch.from_numpy(rows),
            labels,
            loss=plan.loss,
            classes=plan.classes,
            strong_convexity=plan.strong_convexity,
        )
        return ExactDescent(plan.settings, records, from_batches=True)

    def _digest_of(self, added: range) -> str:
        """Return a digest of the added rows in the training copy."""
        found, width = hashlib.sha256(), self._plan.features
        if added:
            shape, start = (len(added), width), added.start * width * np.dtype(np.float32).itemsize
            found.update(np.memmap(self._directory.features, np.float32, "r", start, shape).tobytes())
            found.update(numbers(self._directory.labels, np.int8, added.stop)[added.start :].tobytes())
        return found.hexdigest()

    def _kept(self, secret: Secret | None) -> tuple[Trajectory[Descent], int]:
        """Return the state that a secret keeps, and the seed of the next removal."""
        tensors, seed = kept_in(secret)
        return Trajectory.from_tensors(tensors, self._plan.settings), seed

    def _version(self, state: Trajectory[Descent]) -> Outcome:
        """Return the version with this state, and with a new seed for the next removal."""
        return outcome_of(self._published(state), state.tensors(), self._plan.step_size)

    def _published(self, state: Trajectory[Descent]) -> NDArray[Any]:
        """Return the published weights: all weights of one score, then all weights of the next."""
        model: NDArray[Any] = state.model()[0].numpy()
        return model.reshape(self._plan.features, -1).T.ravel()


def outcome_of(weights: NDArray[Any], state: Mapping[str, torch.Tensor], step_size: float) -> Outcome:
    """Return the version with these weights. Its secret keeps the state, and a new seed for the next removal.

    Raises:
        DataError: Learning diverged.
    """
    if not np.isfinite(weights).all():
        raise DataError(f"learning diverged with step_size = {step_size:g}; a smaller one may work")
    arrays = {name: each.numpy() for name, each in state.items()}
    return Outcome(weights, None, Secret(arrays, {"seed": f"{secrets.randbits(SEED_BITS):x}"}))


def kept_in(secret: Secret | None) -> tuple[dict[str, torch.Tensor], int]:
    """Return the state that a secret keeps, and the seed of the next removal.

    After every restore from a backup, the seed is a different one.

    Raises:
        DataError: There is no secret.
    """
    if secret is None:
        raise DataError("the secret state is missing; without it, nothing can be removed")
    seed = int(secret.header["seed"], 16)
    tensors = {name: torch.tensor(each) for name, each in secret.arrays.items()}
    return tensors, seed if secret.restored is None else address("restored", f"{seed:x}", secret.restored)
