"""Models whose removals are certified by comparison with an exact refit: Newton removal, and certified refit.

The minimiser is secret, and so is the matrix of the next Newton step. Both are kept next to the published weights until
the next `apply`. They depend on removed records until the data are read again. The plan limits the number of removals
until that reading. Each reading trains the model from scratch, and uses nothing of the earlier secret state.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse

from certified_unlearning.certificate import ResidualCertificate
from certified_unlearning.certificate import residual as certificates
from certified_unlearning.data.advice.trial import Noise, PredictionScores
from certified_unlearning.engine.normal_numbers import normal_numbers
from certified_unlearning.errors import DataError
from certified_unlearning.ledger.method import (
    Answered,
    Method,
    Outcome,
    RemovedRows,
    Secret,
    added_by,
    current_of,
)
from certified_unlearning.ledger.methods.advice import Advice, Option, Shares
from certified_unlearning.ledger.state import Batch
from certified_unlearning.ledger.training.copies import Waiting
from certified_unlearning.ledger.training.forms import copy_of
from certified_unlearning.mechanisms.certified_refit import Fitted
from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.mechanisms.newton.state import Curvature, Model, left_of
from certified_unlearning.mechanisms.newton_removal import NewtonRemoval
from certified_unlearning.mechanisms.refit_plan import Counts, RefitPlan
from certified_unlearning.mechanisms.refits import requests as refits
from certified_unlearning.vocabulary import Reading


class RefitAdvice(Advice[RefitPlan]):
    """Advice to use less noise, at the price of reading the data again more often."""

    def _against_noise(self, same: PredictionScores) -> str:
        sigmas = [self.plan.sigma / times for times in (10, 100, 1000, 10_000)]
        options = [self._with(f"--sigma {sigma:.2g}", self.plan.strong_convexity, Noise(sigma)) for sigma in sigmas]
        first = next((each for each in options if not same.is_better_than(each.expected)), options[-1])
        return f"{first.words} ({first.expected.in_words()}), but then the data are read again more often"

    def _option(
        self, words: str, *, C: float = 1, epsilon: float = 1, records: int = 1, shares: Shares = None
    ) -> Option:
        return self._with(words, self.plan.strong_convexity / C / records, Noise(self.plan.sigma), shares)


class ExactRefit(Method[RefitPlan]):
    """Newton removal for two classes and for regression; certified refits for more classes.

    A certified refit corrects the weights by passes over the data, or learns from zero.
    """

    plans = (RefitPlan,)
    advice = RefitAdvice
    needs_what_it_removes = True
    stays_on_the_cpu = True

    def noise(self) -> tuple[float, bool]:
        """Return the standard deviation of the noise on publication."""
        return self._plan.sigma, False

    def learn(self, device: torch.device) -> Outcome:
        """Learn version 1 from the training copy."""
        return self._learned(self._plan, None, 1)

    def plan_after(self, answered: Sequence[Answered]) -> RefitPlan:
        """Return the plan that includes all added records; see `RefitPlan.with_more`."""
        return self._plan.with_more(added_by(answered))

    def planned(
        self, answered: Sequence[Answered], rows: Sequence[int], added: int = 0, waiting: Waiting | None = None
    ) -> Removal:
        """Check that the added records can be added, and return the removal, which takes no noisy steps.

        Raises:
            AssumptionError: float64 is too coarse for the budget of that many records, or for the sums over the waiting
                rows.
        """
        plan = self._plan.with_more(added_by(answered) + added)
        if waiting is not None:
            # Checked now, because a planned batch must be carried out.
            copy = copy_of(self._directory, plan.features, current_of(answered))
            plan.require_representable(copy.terms_with(waiting))
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
        """Carry out a batch by a Newton step, or by reading the data; see `Method.remove`."""
        if batch.addition is not None:
            # The model is learned from zero: neither the old weights nor their matrix are used.
            return self._learned(self.plan_after([*answered, Answered(batch, None)]), "addition", batch.version)
        if secret is None:
            raise DataError("the secret weights are missing; without them, nothing can be removed")
        plan, since = self.plan_after(answered), _counts(answered).since_read
        model, (left, labels) = _model_of(secret, plan), self._training(plan, batch.version)
        if not isinstance(model, Model):
            # If the removed records are gone, one more pass is made.
            gone, after = None if taken is None else (taken.rows, taken.labels), since + batch.records
            return self._released(*refits.without(plan, model, gone, left, labels, since_read=after))
        if taken is None:
            # The removed records are gone, and the step needs them. Only a reading of all data does without them.
            model.curvature.usable = False
            taken = RemovedRows(np.zeros((batch.records, plan.features), np.float32), np.zeros(batch.records, np.int8))
        gone = taken.rows.toarray() if issparse(taken.rows) else taken.rows  # There are few rows, and few columns.
        answer = NewtonRemoval(plan).remove(
            model,
            gone.astype(np.float64),
            taken.labels.astype(np.float64),
            left,
            labels,
            since_read=since,
        )
        return self._released(answer.model, answer.reading)

    def certificate(self, answered: Sequence[Answered], data_digest: str, lost: int = 0) -> ResidualCertificate:
        """Return the certificate of the version after these batches; it states no digest."""
        return certificates.of(
            self.plan_after(answered),
            _counts(answered),
            lost=lost,
            noise_source="system entropy",
            dataset=self._dataset,
            features=self._features,
            hashed=self._hashed,
        )

    def _learned(self, plan: RefitPlan, reading: Reading | None, version: int) -> Outcome:
        """Learn from the whole training copy of a version, and use nothing else."""
        rows, labels = self._training(plan, version)
        if plan.removes_by_newton:
            return self._released(NewtonRemoval(plan).fit(rows, labels), reading)
        return self._released(refits.learned(plan, rows, labels), reading)

    def _training(self, plan: RefitPlan, version: int) -> tuple[Any, NDArray[Any]]:
        """Return rows and labels for the solvers. Dense rows stay in their file until they are read."""
        copy = copy_of(self._directory, plan.features, version)
        rows, labels = copy.rows(plan.n), copy.labels(plan.n)
        return rows, labels.astype(np.float64 if plan.classes <= 2 else np.int64)

    def _released(self, model: Model | Fitted, reading: Reading | None) -> Outcome:
        """Return a version whose weights get fresh noise."""
        published = model.weights + self._plan.sigma * normal_numbers(len(model.weights), None)
        arrays: dict[str, NDArray[Any]] = {"weights": model.weights}
        header: dict[str, Any] = {"residual": model.residual}
        if isinstance(model, Model):
            curvature = model.curvature
            arrays |= {"at": curvature.at, "matrix": curvature.matrix, "factor": curvature.factor}
            header["curvature"] = [curvature.error, curvature.not_downdated]
            if self._plan.by_passes:
                header["left"] = vars(model.left)
        else:
            arrays |= refits.packed(model)
        return Outcome(published, reading, Secret(arrays, header))


def _model_of(secret: Secret, plan: RefitPlan) -> Model | Fitted:
    arrays: Mapping[str, NDArray[Any]] = secret.arrays
    if "matrix" not in arrays:
        return refits.unpacked(secret.header, arrays, arrays["weights"])
    matrix, factor = np.asfortranarray(arrays["matrix"]), np.asfortranarray(arrays["factor"])
    curvature = Curvature(arrays["at"], matrix, factor, *secret.header["curvature"])
    return Model(arrays["weights"], left_of(secret.header, strong_convexity=plan.strong_convexity), curvature)


def _counts(answered: Sequence[Answered]) -> Counts:
    def after(counts: Counts, one: Answered) -> Counts:
        return counts.after(one.batch.records, one.reading or "none", added=one.batch.records_added)

    return functools.reduce(after, answered, Counts())
