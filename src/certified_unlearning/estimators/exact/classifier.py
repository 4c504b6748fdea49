"""Logistic and softmax regression by mini-batch descent that removes and inserts records exactly."""

import copy
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.accounting.core.losses import regularisation_of
from certified_unlearning.certificate import ExactCertificate
from certified_unlearning.engine.devices import device_of_loaded, pick_device
from certified_unlearning.engine.exact.alive import Alive
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.errors import DataError
from certified_unlearning.estimators.classifier import LinearClassifier
from certified_unlearning.estimators.exact.model import ExactModel
from certified_unlearning.estimators.records import RecordStore
from certified_unlearning.estimators.requests import FrameIndex
from certified_unlearning.estimators.scaling import dense
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.plan import (
    USUAL_QUANTUM,
    USUAL_SIGMA,
    USUAL_STEPS,
    descent_of,
    require_stable_steps,
    usual_batch,
    usual_step_size,
)
from certified_unlearning.mechanisms.exact.trajectory import Descent, Trajectory
from certified_unlearning.mechanisms.learners.learner import require_one_of
from certified_unlearning.vocabulary import ExactMechanism, NoiseSource


@dataclass(repr=False, eq=False)
class ExactLogisticRegression(ExactModel, LinearClassifier):
    """Logistic regression that removes records exactly, with epsilon 0, and can insert new ones.

    It learns by mini-batch descent, and stores every step. A request examines the steps whose batches it changes. For
    each of these steps, a random test decides whether the step may keep its direction. This test makes the
    distributions below equal. From the first step that fails the test, all steps are recomputed. After any stream of
    deletions and insertions, model and state together have the distribution of the same algorithm run from scratch on
    the present records. That run has the constants of the `fit`: requests change neither the regulariser's strength nor
    the batch size. Exactness needs no regulariser, no bound on rows and no convexity. It requires that requests are
    chosen without looking at the model, and that the state stays secret. Differences smaller than the rounding of
    float64 are ignored.

    The guarantee covers deletions only. It does not protect the remaining records. `LangevinLogisticRegression` has an
    epsilon above 0, but suits models that are published and that keep no secret state.

    For the fitted records, the objective is that of scikit-learn with the same ``C`` (see `LinearClassifier` on the
    intercept). The fixed number of steps does not minimise the objective fully. A failed or interrupted call does not
    change the estimator. Exactness covers a single state, but not several states together. So overwrite the file of the
    previous state when you save.

    Args:
        mechanism: How steps become stable under edits. ``noisy-sgd`` adds Gaussian noise to gradients.
            ``accelerated-noisy-sgd`` adds it to gradients at the points of Nesterov's method. ``quantized-sgd`` rounds
            gradients to a grid with a random offset. ``subsample-gd`` leaves gradients unchanged; if a removed record
            was used, it recomputes from the first step that used the record.
        steps: Number of steps, ``T``. This and all parameters below stay fixed over all requests.
        batch_size: Number of records in the batch of a step, ``m``; always smaller than the current number of records.
            ``auto``: 8, or a quarter of the records if a quarter is fewer than 8.
        step_size: Step size ``eta``, for rows of norm 1. ``auto``: 8, or 0.05 for ``accelerated-noisy-sgd``.
        sigma: Standard deviation of the noise on a batch's mean gradient, in every coordinate, for noisy mechanisms.
            With more noise, fewer steps are recomputed.
        quantum: Spacing of the grid of ``quantized-sgd``.
        radius: Radius of the ball onto which models are projected; None for no projection.
        C: Inverse strength of the regulariser, as in scikit-learn.
        random_state: None: random numbers come from the operating system, and their seeds are overwritten. A number
            makes results repeatable, but it is a secret: anybody who has it and the records can compute the state. Two
            models that were fitted with the same number have the same batches and noise. The noise cancels in their
            difference, which then shows the record in which their data differ, even to somebody who does not know the
            number.
        device: Device for computations: ``auto``, ``cpu`` or ``cuda``.

    Attributes:
        classes_: Classes, sorted; the classes of inserted records must be among them.

    See Also:
        `CertifiedLogisticRegression`: Covers requests that depend on published models.

    Examples:
        >>> from certified_unlearning import ExactLogisticRegression
        >>> X, y = [[0.0, 1.0], [1.0, 0.2]] * 50, ["no", "yes"] * 50
        >>> model = ExactLogisticRegression(steps=20, normalize=True).fit(X, y)
        >>> model.insert([[0.1, 0.9]], ["no"])
        array([100])
        >>> len(model.unlearn([2, 17]).remaining_)
        99
        >>> model.certificate_.epsilon
        0
    """

    mechanism: ExactMechanism = "noisy-sgd"
    _: KW_ONLY
    steps: int = USUAL_STEPS
    batch_size: int | Literal["auto"] = "auto"
    step_size: float | Literal["auto"] = "auto"
    sigma: float = USUAL_SIGMA
    quantum: float = USUAL_QUANTUM
    radius: float | None = None
    C: float = 1.0
    device: str = "cpu"

    _MADE_BY = (*ExactModel._MADE_BY, "fit_intercept")
    _NEEDS_SHORT_ROWS = "step_size assumes norms of at most 1"

    def _planned(self, n: int) -> Descent:
        """Return the constants of learning from ``n`` records."""
        require_one_of(get_args(ExactMechanism), mechanism=self.mechanism)
        require_positive(C=self.C)
        settings = descent_of(
            self.mechanism,
            steps=self.steps,
            batch_size=usual_batch(n) if self.batch_size == "auto" else self.batch_size,
            step_size=usual_step_size(self.mechanism) if self.step_size == "auto" else self.step_size,
            radius=self.radius,
            sigma=self.sigma,
            quantum=self.quantum,
        )
        require_stable_steps(settings.step_size, self._strong_convexity(n))
        return settings

    def _strong_convexity(self, n: int) -> float:
        return n * regularisation_of(C=self.C, n=n, intercept=self.fit_intercept)

    def _learn_from(self, plan: Descent, X: NDArray[Any], labels: NDArray[Any]) -> None:
        device = pick_device(self.device)
        rows = torch.as_tensor(self._rows(X), device=device)
        self._store.keep(np.arange(len(rows)))
        self._records = self._records_of(rows, torch.as_tensor(labels, device=device), self._strong_convexity(len(X)))
        self._noise_source: NoiseSource = "system entropy" if self.random_state is None else "seed"
        counts = {"n_learned": len(rows), "deleted": 0, "inserted": 0, "requests": 0}
        self._seed = self._next_seed()
        self._scaled_by = self._scaling_parameters()
        descent = ExactDescent(plan, self._records)
        state = descent.learn(torch.arange(len(rows), device=device), Draws(self._seed, device=device))
        self._publish(state, counts, self._store, [])

    def _records_of(self, rows: torch.Tensor, labels: torch.Tensor, strong_convexity: float) -> LinearRecords:
        """Return the records in the form that the engine needs."""
        return LinearRecords(
            rows, labels, loss=self._loss, classes=len(self.classes_), strong_convexity=strong_convexity
        )

    @property
    def _loss(self) -> Literal["logistic", "softmax"]:
        return "logistic" if len(self.classes_) == 2 else "softmax"

    def insert(self, X: Any, y: Any) -> NDArray[np.int64]:
        """Insert records in one request.

        Args:
            X: Features, shape ``(records, features)``.
            y: Classes of these records, among `classes_`.

        Returns:
            Positions of the inserted records, by which `unlearn` names them. They continue the positions of the fitted
            ``X``. The index labels of a data frame can also name the inserted records, unless the index of the fitted
            data frame only numbered its rows.

        Raises:
            DataError: A row's norm is above 1, a class is unknown, or the estimator was saved without its records.
        """
        self._require_records()
        self._erase()
        self._require_same_scaling()
        index = FrameIndex.of(X, y)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        unknown = np.setdiff1d(y, self.classes_).tolist()
        if unknown:
            raise DataError(
                f"y holds {unknown[0]!r}, which is not one of the learned classes, {self.classes_.tolist()}"
            )
        labels = np.searchsorted(self.classes_, y)
        features = dense(X)
        self._require_short(features)
        rows = torch.as_tensor(self._rows(features), device=self._records.rows.device)
        first = len(self._records)
        positions = np.arange(first, first + len(rows))
        store = self._store.extended(index, len(rows))
        numbered = torch.as_tensor(self._labels_of(labels), device=rows.device)
        try:
            self._records.append(rows, numbered)
            self._edit([], positions.tolist(), store)
        except BaseException:
            if self._store is not store:
                self._records.truncate(first)
            raise
        return positions

    def check(self) -> None:
        """Recompute every stored step from the previous one, and compare; only the owner of the state can do this.

        Raises:
            DataError: A step is not the result of the records and the previous step.
        """
        self._require_records()
        ExactDescent(self._state.settings, self._records).check(self._state)

    @property
    def certificate_(self) -> ExactCertificate:
        """Certificate of the current model; `certificate.write` writes it to a file for ``unlearn verify``."""
        self._require_fitted()
        settings: dict[str, Any] = self._kept
        return ExactCertificate.of(
            noise_source=self._noise_source,
            mechanism=settings["mechanism"],
            loss=self._loss,
            d=self._weights.size,
            classes=len(self.classes_),
            strong_convexity=settings["strong_convexity"],
            **(settings["constants"] | self._counts),
        )

    def _saved(self, training_data: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
        self._erase()
        header = {"kept": self._kept, "counts": self._counts, "noise_source": self._noise_source}
        arrays: dict[str, NDArray[Any] | None] = {"_weights": self._weights}
        if training_data:
            header["seed"] = f"{self._seed:x}"
            arrays |= {"rows": _array(self._records.rows), "labels": _array(self._records.labels)}
            # Everything that these tensors determine is recomputed when the file is read, because its last bits would
            # reveal which steps were edited.
            arrays |= {f"state/{name}": _array(each) for name, each in self._state.least_tensors().items()}
        return header, arrays

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(header, arrays)
        self._kept, self._counts = header["kept"], header["counts"]
        self._noise_source = header["noise_source"]
        self._weights = arrays["_weights"]
        self._unerased: list[int] = []
        if "rows" in arrays:
            self._restore_state(header, arrays)

    def _restore_state(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set the records and the state from a file."""
        device = device_of_loaded(self.device)
        tensors = {name: torch.as_tensor(each, device=device) for name, each in arrays.items()}
        self._seed = int(header["seed"], 16)
        self._scaled_by = self._scaling_parameters()
        labels = tensors["labels"]
        if len(self.classes_) == 2:
            # An erased record has no label; any value will do, because it is never used.
            labels = torch.where(labels == 0, 1, labels)
        self._records = self._records_of(tensors["rows"], labels, self._kept["strong_convexity"])
        kept = {name.removeprefix("state/"): each for name, each in tensors.items() if name.startswith("state/")}
        constants = {"sigma": None, "quantum": None} | self._kept["constants"]
        settings = descent_of(self._kept["mechanism"], **constants)
        self._state: Any = ExactDescent(settings, self._records).restored(kept)
        places = np.full(len(labels), -1)
        alive = _array(self._state.alive.ids)
        places[alive] = alive
        self._store.keep(places)

    def _remove(self, named: NDArray[Any]) -> bool:
        self._erase()
        gone = self._store.removable(named)
        labels = _array(self._records.labels)
        lost = self._class_sizes_of(labels[gone])
        try:
            self._edit(gone.tolist(), [], self._store.without(gone))
        finally:
            self._erase()
        left = self._class_sizes_of(labels[self._store.remaining])
        return bool(((lost > 0) & (left == 0)).any())

    def _edit(self, deleted: list[int], inserted: list[int], store: RecordStore) -> None:
        """Carry out a request on a copy of the state, then replace the state in one assignment."""
        counts = self._counts_after(deleted, inserted)
        state, device = copy.deepcopy(self._state), self._records.rows.device
        # Records are put into the order of a file. So a request gives the same result whether or not the state was read
        # from a file.
        state.alive = Alive(state.alive.ids.sort().values, next_id=state.alive.next_id)
        # The seed was drawn before the request, so an interrupted request gives the same result when it is repeated.
        # Otherwise, interruptions would change the distribution, because they are more likely in long requests.
        ExactDescent(state.settings, self._records).edit(state, deleted, inserted, Draws(self._seed, device=device))
        self._publish(state, counts, store, deleted)

    def _erase(self) -> None:
        """Overwrite the rows of removed records; after an interruption, the next call does this first."""
        if self._unerased:
            self._records.erase(torch.tensor(self._unerased, device=self._records.rows.device))
            self._unerased = []

    def _publish(self, state: Trajectory[Any], counts: dict[str, int], store: RecordStore, deleted: list[int]) -> None:
        """Set a state, its model and the seed of the next request, all at once."""
        model = state.model()[0].cpu().numpy()
        if not np.isfinite(model).all():
            raise DataError(
                f"learning diverged with step_size = {state.settings.step_size:g}; a smaller step_size may help"
            )
        constants = {name: each for name, each in asdict(state.settings).items() if name != "accelerated"}
        self.__dict__.update(
            _state=state,
            _counts=counts,
            _weights=model.reshape(-1, self._outputs).T.ravel(),
            _kept={
                "mechanism": self._kept["mechanism"] if counts["requests"] else self.mechanism,
                "strong_convexity": self._records.strong_convexity,
                "constants": constants,
            },
            _seed=self._next_seed(counts["requests"] + 1),
            _store=store,
            _unerased=deleted,
            # ``random_state`` may have been set after `fit`.
            _noise_source=self._noise_source if self.random_state is None else "seed",
        )


def _array(tensor: torch.Tensor) -> NDArray[Any]:
    """Return a tensor as an array for safetensors."""
    return tensor.cpu().numpy()
