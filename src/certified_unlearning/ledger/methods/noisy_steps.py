"""Models that learn and unlearn by noisy steps, on all rows or on mini-batches."""

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certified_unlearning import certificate
from certified_unlearning.certificate import StepsCertificate
from certified_unlearning.certificate.base import Certificate
from certified_unlearning.data.advice.trial import Noise, PredictionScores
from certified_unlearning.data.stored_rows import StoredRows
from certified_unlearning.engine.objectives.rows import StreamedRows
from certified_unlearning.engine.progress import Progress
from certified_unlearning.errors import UnlearningError
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.method import Answered, Method, Outcome, RemovedRows, Secret, noise_key
from certified_unlearning.ledger.methods.advice import MORE, Advice, Option, Shares
from certified_unlearning.ledger.state import Batch
from certified_unlearning.ledger.training import dense
from certified_unlearning.ledger.training.copies import Waiting
from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner, plan_learner
from certified_unlearning.mechanisms.refit_plan import USUAL_SIGMA

WITHOUT = " without --sigma and --steps"
STRONGER = (10, 100)
"""Factors by which ``C`` is decreased in trials if the problem is the noise."""


class NoisyAdvice(Advice[LangevinLearner | MiniBatchLearner]):
    """Advice that helps against noise.

    The advice is to use less noise, a larger epsilon, more records, a stronger regulariser, or Newton removal with less
    noise.
    """

    def _against_noise(self, same: PredictionScores) -> str:
        learner = self.plan
        usual = self._option(f"the usual noise{WITHOUT}")
        without = self._left_out(usual)
        same_weights = [
            usual,
            self._option(f"--epsilon {MORE * learner.epsilon:g}{without}", epsilon=MORE),
            self._option(f"{MORE} times as many records{without}", C=1 / MORE, records=MORE),
        ]
        options = [each for each in same_weights if each is not None and each.noise < learner.sigma / 2]
        weaker = [self._option(f"--C {self._C(1 / times):.2g}{without}", C=1 / times) for times in STRONGER]
        options += [each for each in weaker if each is not None]
        options.append(self._refit(f"--mechanism newton-removal --C {self._C(1):.2g}"))
        # This version may have had bad luck, so an option must also be better than the average version with its noise.
        own = self._expected_again()
        helpful = [
            each for each in options if each.expected.is_better_than(self.worth) and each.expected.is_better_than(own)
        ]
        return (
            ", ".join(f"{each.words} ({each.expected.in_words()})" for each in helpful)
            or "many more records (no other change that was tried helps)"
        )

    def _expected_again(self) -> PredictionScores:
        return self.trial.expected(
            self.plan.strong_convexity, Noise(self.plan.sigma, self.plan.exact_problem.step_size)
        )

    def _left_out(self, usual: Option | None) -> str:
        return WITHOUT if usual is None or not math.isclose(usual.noise, self.plan.sigma, rel_tol=0.01) else ""

    def _other_mechanisms(self, flag: str) -> Sequence[Option]:
        return (self._refit(f"{flag} and --mechanism newton-removal", C=MORE),)

    def _option(
        self, words: str, *, C: float = 1, epsilon: float = 1, records: int = 1, shares: Shares = None
    ) -> Option | None:
        learner = self.plan
        try:
            plan = plan_learner(
                None if learner.cycle is None else "auto",
                C=self._largest_C(C),
                class_weights=learner.class_weights if shares is None else shares,
                intercept=self.intercept,
                n=records * learner.n,
                features=learner.features,
                classes=learner.classes,
                epsilon=epsilon * learner.epsilon,
                delta=learner.delta,
                accountant=learner.accountant,
                adjacency=learner.adjacency,
            )
        except UnlearningError:
            return None
        strength = self.plan.strong_convexity / C / records
        return self._with(words, strength, Noise(plan.sigma, plan.exact_problem.step_size), shares)

    def _refit(self, words: str, *, C: float = 1) -> Option:
        """Return a model by Newton removal, with the present ``C`` multiplied by the argument ``C``."""
        return self._with(words, self.plan.strong_convexity / C, Noise(USUAL_SIGMA))


class NoisySteps(Method[LangevinLearner | MiniBatchLearner]):
    """Langevin learning and unlearning. A request starts from the published weights alone."""

    plans = (LangevinLearner, MiniBatchLearner)
    advice = NoisyAdvice
    no_additions = (
        "its noise and its steps were planned for the records at `unlearn init`, and its certificates "
        "add up one stream of removals from these records"
    )

    def noise(self) -> tuple[float, bool]:
        """Return the noise of the steps, whose effect on the weights depends on the curvature."""
        return self._plan.sigma, True

    def deal(self) -> None:
        """Put the training copy into the order in which it is read."""
        learner = self._plan
        if learner.cycle is not None:
            dense.deal(self._directory, learner.features, classes=learner.classes, key=noise_key())

    def learn(self, device: torch.device) -> Outcome:
        """Learn version 1 from the training copy."""
        rows, labels = place_training(self._directory, self._plan, device)
        progress = Progress("init", self._plan.learning_steps)
        return Outcome(self._plan.learn(rows, labels, [noise_key()], progress=progress)[0].cpu().numpy())

    def planned(
        self, answered: Sequence[Answered], rows: Sequence[int], added: int = 0, waiting: Waiting | None = None
    ) -> Removal:
        """Return the steps that remove rows of the table, given the earlier removals; raise the learner's errors."""
        places = self._plan.places_of(dense.positions(self._directory, rows))
        return self._plan.plan_removal(removals(answered), len(rows), places)

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
        """Carry out a batch by its noisy steps; see `Method.remove`."""
        left, labels = place_training(self._directory, self._plan, device)
        unlearned = self._plan.unlearn(
            torch.from_numpy(weights).reshape(1, -1).to(device),
            left,
            labels,
            removals([*answered, Answered(batch, None)]),
            [noise_key()],
            progress=Progress("apply", batch.steps),
        )
        return Outcome(unlearned[0].cpu().numpy())

    def certificate(self, answered: Sequence[Answered], data_digest: str, lost: int = 0) -> StepsCertificate:
        """Return the certificate of the version after these batches."""
        learner = self._plan
        history = learner.history(removals(answered))
        return certificate.of(
            learner.run(history, dataset=self._dataset, features=self._features, data_digest=data_digest),
            key=learner.run_key(history, data_digest),
            noise_source="system entropy",
            all_published=learner.all_published_is_known,
            lost_releases=lost,
            stream=learner.stream(history),
        )

    def is_of(self, certificate: Certificate, answered: Sequence[Answered], lost: int = 0) -> bool:
        """Return whether a certificate agrees with these batches, the lost versions and the origin of the classes."""
        schedule = self._plan.schedule(removals(answered))
        return (certificate.features, certificate.schedule, certificate.lost) == (self._features, schedule, lost)


def place_training(
    directory: ModelDirectory, learner: LangevinLearner | MiniBatchLearner, device: torch.device
) -> tuple[Tensor | StreamedRows, Tensor]:
    """Return the rows and labels of the training copy in the form that the learner reads.

    Mini-batches stay in their file, and each step reads its own mini-batch. Other rows stay in their file, too, if they
    would fill more than a quarter of the memory. Removed records are rows of zeros; their label, 0, has no effect.
    """
    dtype = getattr(torch, learner.dtype)
    if learner.cycle is not None:
        stored = StoredRows(directory.features, 0, (learner.n, learner.features))
        batches = torch.from_numpy(np.memmap(directory.labels, np.int8, mode="c"))
        return StreamedRows(stored, dtype=dtype, device=device), batches.to(device)
    labels = torch.from_numpy(np.fromfile(*dense.labels_of(directory)))
    labels = labels.to(device, dtype if learner.classes <= 2 else torch.int64)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if directory.features.stat().st_size > memory // 4:
        stored = StoredRows(directory.features, 0, (learner.n, learner.features))
        return StreamedRows(stored, dtype=dtype, device=device), labels
    # The objective makes its own copy. Until then, the pages of the file that were read for the digests suffice.
    rows = np.memmap(directory.features, np.float32, mode="c", shape=(learner.n, learner.features))
    return torch.from_numpy(rows).to(device, dtype), labels


def removals(answered: Sequence[Answered]) -> list[Removal]:
    """Return batches in the form that a learner reads."""
    return [Removal.read(batch.records, batch.steps, batch.places) for batch, _ in answered]
