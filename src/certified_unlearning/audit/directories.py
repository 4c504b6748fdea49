"""Audits of model directories: the model's own mechanism runs on a scratch copy, which is deleted at the end.

The audit reads the ledger and writes nothing to it. Each canary that is learned replaces a record, so the number of
records stays the same. The plan's constants follow from this number, so the plan stays the same, too.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.audit.canaries import Array, Known
from certified_unlearning.audit.claims import Claim
from certified_unlearning.audit.guessers import Guess, Published, from_weights, guess_by_scores, scores_of
from certified_unlearning.audit.one_run import VERDICT, audit
from certified_unlearning.audit.result import AuditResult
from certified_unlearning.audit.scratch import scratch_beside
from certified_unlearning.data.tables.targets import TargetScale
from certified_unlearning.engine.devices import pick_device
from certified_unlearning.errors import AssumptionError, DataError, ParameterError, StorageError
from certified_unlearning.estimators.objective import PublicObjective
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.method import Answered, Outcome, RemovedRows
from certified_unlearning.ledger.method import Method as LedgerMethod
from certified_unlearning.ledger.model import StoredModel, method_of, read_stored
from certified_unlearning.ledger.state import Batch, read_state
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.training.forms import copy_of
from certified_unlearning.mechanisms.learners.duration import seconds_to_learn

COPIES = 2
"""Number of training copies for which the disk needs room. An audit writes one copy, and further files while the copy's
rows are reordered."""


def audit_directory(
    path: Path,
    *,
    canaries: int = 50,
    removed: int | None = None,
    request_size: int = 1,
    runs: int = 1,
    alpha: float = VERDICT,
    device: str | None = None,
    announce: Callable[[float], None] | None = None,
) -> AuditResult:
    """Audit the model in a directory as `audit` audits an estimator.

    Nothing in the directory changes.

    Args:
        path: The model directory.
        canaries: Number of canaries.
        removed: Number of canaries that are drawn, learned and removed. None: half of them.
        request_size: Number of canaries that one request removes; it should be as large as real requests to the model.
            The canaries' order is drawn in advance.
        runs: Number of times the model is learned again.
        alpha: Largest probability that an honest model is called ``violated``.
        device: ``auto``, ``cpu`` or ``cuda``. None: the device that `init` recorded.
        announce: Function that is called at the start with the approximate number of seconds that all learning takes.

    Raises:
        DataError: The path is not a model directory, or the model has too few records.
        ParameterError: A number is invalid.
        AssumptionError: The model certifies its predictions instead of its weights, or it learned from text or from
            clients.
        StorageError: An `apply` is running or was interrupted, or the disk has too little space.
    """
    require_count(least=2, canaries=canaries)
    require_count(least=1, request_size=request_size, runs=runs)
    members = canaries // 2 if removed is None else removed
    with ModelDirectory(path).locked(shared=True):
        model, X, y = _read(ModelDirectory(path), members)
    if announce is not None:
        announce(runs * seconds_to_learn(X, model.learner))
    _require_room(path.resolve().parent, X)
    with scratch_beside(path) as scratch:
        method = DirectoryMethod(scratch, model, request_size, device)
        return audit(method, X, y, canaries=canaries, removed=members, runs=runs, alpha=alpha)


def _read(directory: ModelDirectory, members: int) -> tuple[StoredModel, Array, NDArray[Any]]:
    """Return the part of the model that never changes, and the rows and labels of the records that stay."""
    with Ledger.opened(directory.ledger, read_only=True) as ledger:
        state = read_state(ledger)
        model = read_stored(directory, state)
        if not state.current.certificate.publishes_weights:
            raise AssumptionError(
                f"{directory.path} certifies answers, which are bounded and have no distribution to compare with; an "
                "audit needs a certificate of the model's distribution"
            )
        if model.table.text:
            raise AssumptionError(
                f"{directory.path} learned from text, and models that learned from text cannot be audited yet"
            )
        why = method_of(directory, model).no_audits
        if why is not None:
            raise AssumptionError(
                f"{directory.path} is a model of {model.learner.mechanism}, and such models cannot be audited: {why}"
            )
        if state.planned is not None:
            raise StorageError(f"an `apply` of {directory.path} was interrupted; finish it first")
        left = np.fromiter(ledger.owners.rows(), np.int64)
    plan = model.learner
    wanted, rng = plan.n - members, np.random.default_rng()
    if min(wanted, len(left)) < members:
        raise DataError(
            f"{directory.path} has {len(left)} records, too few for {members} canaries, which would take the places of "
            "records; use fewer canaries"
        )
    # If records were removed, some remaining ones are used twice: the audited plan was made for the original number of
    # records.
    chosen = rng.permutation(left)[:wanted]
    chosen = np.concatenate([chosen, rng.choice(left, wanted - len(chosen))])
    rows, labels = copy_of(directory, plan.features, state.current.version).take(chosen.tolist())
    if directory.places.exists() and plan.classes == 2:
        rows *= -labels[:, None].astype(np.float32)  # This undoes the signs of `dense.deal`.
    return model, rows.astype(np.float64), labels


def _require_room(parent: Path, X: Array) -> None:
    needed, free = COPIES * X.size * 4, shutil.disk_usage(parent).free
    if needed > free:
        raise StorageError(
            f"an audit needs {needed / 1e9:.3g} GB for a copy of the records beside the model, but {parent} has only "
            f"{free / 1e9:.3g} GB left"
        )


@dataclass
class _Learned:
    """A learned model in a scratch directory.

    Attributes:
        method: The method by which the model learned and unlearns.
        version: The last published version, with its secret state.
        answered: The requests that have been answered so far.
    """

    method: LedgerMethod[Any]
    version: Outcome
    answered: list[Answered] = field(default_factory=list)


@dataclass
class DirectoryMethod:
    """The model of a directory. A copy of it learns and unlearns in a scratch directory.

    Attributes:
        scratch: The scratch directory. Learning a new model empties it.
        model: The part of the model that never changes.
        request_size: Number of records that one request removes.
        device: Device on which noisy steps run. None: the device that `init` recorded.
    """

    scratch: Path
    model: StoredModel
    request_size: int
    device: str | None
    certified: bool = True

    @property
    def name(self) -> str:
        """The mechanism's name, for reports."""
        return str(self.model.learner.mechanism)

    @property
    def assumed(self) -> tuple[str, ...]:
        """The assumptions of the audit, in sentences without full stops."""
        return (
            "the comparator's law does not depend on which canaries were drawn: according to the source code, noise, "
            "steps and places follow from counts and settings",
            "the declarations of the table (ranges, words, classes) were not taken from the records",
        )

    def long_rows(self, directions: Array) -> Array:
        """Return rows in these directions as the model sees them, with a column for the intercept if there is one."""
        if not self.model.intercept:
            return directions
        shorter = directions[:, :-1] / np.linalg.norm(directions[:, :-1], axis=1, keepdims=True)
        rows: Array = np.column_stack([shorter, np.ones(len(shorter))]) / np.sqrt(2)
        return rows

    @property
    def target_range(self) -> tuple[float, float] | None:
        """The range of targets in the training copy's scale; None for classes."""
        declared = self.model.table.target_range
        if declared is None:
            return None
        low, high = TargetScale.of(declared, "target_range", intercept=self.model.intercept).scaled(declared)
        return float(low), float(high)

    def learn(self, X: Array, y: NDArray[Any]) -> Any:
        """Return a model that learned from rows and their labels or targets, in the training copy's scale."""
        plan = self.model.learner
        if len(X) != plan.n:
            raise ParameterError(f"the model was planned for {plan.n} records, got {len(X)}")
        directory = ModelDirectory(self.scratch)
        if directory.features.parent.exists():
            shutil.rmtree(directory.features.parent)
        directory.places.unlink(missing_ok=True)
        directory.features.parent.mkdir()
        X.astype(np.float32).tofile(directory.features)
        if self.target_range is None:
            y.astype(np.int8).tofile(directory.labels)
        else:
            y.astype(np.float64).tofile(directory.targets)
        method = method_of(directory, self.model)
        method.deal()
        return _Learned(method, method.learn(self._place()))

    def unlearn(self, model: Any, X: Array, y: NDArray[Any], gone: NDArray[np.int64]) -> Any:
        """Return the model without some rows.

        The rows leave in requests of `request_size` rows, as with `apply`.
        """
        for start in range(0, len(gone), self.request_size):
            self._answer(model, gone[start : start + self.request_size].tolist())
        return model

    def _answer(self, model: _Learned, rows: Sequence[int]) -> None:
        directory, method, features = ModelDirectory(self.scratch), model.method, self.model.learner.features
        rows = sorted(rows)
        removal = method.planned(model.answered, rows)
        number = len(model.answered) + 1
        batch = Batch(
            version=number + 1, after=number - 1, up_to=number, requests=1, records=removal.records,
            steps=removal.steps, training_digest="", places=removal.places,
        )  # fmt: skip
        copy = copy_of(directory, features, number)
        taken = RemovedRows(*copy.take(rows)) if method.needs_what_it_removes else None
        copy.changed(batch.version, rows, None)
        last = model.version
        model.version = method.remove(
            last.weights.ravel(), last.secret, model.answered, batch, rows, taken, self._place()
        )
        model.answered.append(Answered(batch, model.version.reading))

    def published(self, model: Any, known: Known) -> Published:
        """Return the published weights.

        If no guesser can use the weights, return the canaries' scores instead.
        """
        if self._objective() is not None:
            return {"coef_": np.array(model.version.weights, dtype=np.float64).ravel()}
        return {"scores": self._scores(model, known)}

    def claim(self, model: Any) -> Claim:
        """Return the claim of the certificate that covers all answered requests."""
        return Claim.of(model.method.certificate(model.answered, "0" * 64).stated())

    def guess(self, known: Known, rng: np.random.Generator) -> Guess:
        """Return the guess from weights if the model minimises a known objective; otherwise, the guess from scores."""
        objective = self._objective()
        if objective is not None:
            return from_weights(objective, known)
        if 2 * known.members != len(known.rows):
            raise ParameterError(
                f"half of the {len(known.rows)} canaries must be removed, because the guesser for {self.name} learns "
                f"models from halves of the canaries; got {known.members} removed canaries"
            )
        return guess_by_scores(lambda X, y: self._scores(self.learn(X, y), known), known, rng)

    def _scores(self, model: _Learned, known: Known) -> Array:
        weights = np.array(model.version.weights, dtype=np.float64).ravel()
        return scores_of(_Scorer(weights, self.model.learner.classes, np.unique(known.y)), known)

    def _objective(self) -> PublicObjective | None:
        plan, noise = self.model.learner, method_of(ModelDirectory(self.scratch), self.model).noise()
        if noise is None or plan.classes > 2:
            return None
        low, high = plan.class_weights or (1.0, 1.0)  # type: ignore[attr-defined]
        return PublicObjective(
            loss="logistic" if plan.classes == 2 else "squared",
            class_weights=(low, high),
            strength=plan.n * float(plan.strong_convexity),  # type: ignore[attr-defined]
            targets=lambda labels: np.asarray(labels, dtype=np.float64),
            seen=lambda X: X,
            intercept=False,
            noise=noise[0],
            by_curvature=noise[1],
        )

    def _place(self) -> torch.device:
        return pick_device(self.device or self.model.device)


@dataclass(frozen=True)
class _Scorer:
    """Published weights of one or more scores, with the methods that a guesser needs to score rows."""

    weights: Array
    classes: int
    classes_: NDArray[Any]

    def decision_function(self, X: Array) -> Array:
        """Return scores, shape ``(records,)`` for two classes, otherwise ``(records, classes)``."""
        scores: Array = X @ self.weights.reshape(scores_per_record(self.classes), -1).T
        return scores[:, 0] if self.classes == 2 else scores
