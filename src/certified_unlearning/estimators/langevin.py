"""Logistic and softmax regression by Langevin unlearning, with all records in every step or with mini-batches."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from certified_unlearning.accounting.core.scale import score_noise
from certified_unlearning.engine.devices import pick_device
from certified_unlearning.engine.minibatch import dealt_order, places_in
from certified_unlearning.estimators.base import UnlearningClassifier
from certified_unlearning.estimators.class_weights import ClassWeights
from certified_unlearning.estimators.linear import ROWS_AT_ONCE, writeable
from certified_unlearning.estimators.requests import distinct, require_removable
from certified_unlearning.estimators.unlearning_model import LangevinModel, shown_progress
from certified_unlearning.mechanisms.learners.history import History
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner, plan_learner
from certified_unlearning.vocabulary import Delta


class LangevinLogisticRegression(UnlearningClassifier, LangevinModel):
    """Logistic regression, binary or multinomial, that can unlearn records with an (epsilon, delta) certificate.

    It learns by noisy gradient descent and unlearns by going on with it on the records that are left (Chien, Wang,
    Chen, Li, Langevin unlearning, NeurIPS 2024). The noise is planned before anything is learned; each `unlearn` plans
    its own number of steps, for any number of records.

    The objective is scikit-learn's with the same ``C`` (see `UnlearningClassifier` on the intercept). Its strong
    convexity is about ``1 / (C n)``: with a large ``C`` learning takes many steps and unlearning much noise. ``C n``
    of 30 to 100 is a good first choice.

    With mini-batches removals work in place, so a copy must be a deep one.

    Args:
        epsilon: The target after every `unlearn`.
        delta: Of the target: a number strictly between 0 and 1; or ``"auto"``, which is ``min(1e-6, 1 / (10 n))``; or
            ``"1/n"``, as in the papers.
        sigma: Noise scale: a step adds noise of standard deviation ``sqrt(2 step_size) sigma``. None: the least with
            which ``steps`` steps unlearn ``records`` records.
        steps: Steps that unlearning ``records`` records at once shall take. Not together with ``sigma``. With neither,
            as many as it takes for what was learned to fade by a factor ``e``.
        C: Inverse strength of the regulariser, as in scikit-learn.
        class_weight: Public weights of the classes' losses, ``{label: weight}``, as in scikit-learn; 1 where a class is
            not named. The largest multiplies ``C``, with all that follows from it. ``"balanced"`` is refused: it is
            counted from the labels, which tells of removed records.
        batch_size: Records of a mini-batch: a step reads one batch, learning takes an epoch or a few, and unlearning
            reads as many batches as it takes steps, whatever ``n`` is. ``"auto"``: mini-batches where there are enough
            records for them to be cheaper at about equal accuracy, with steps half as long where batches can then be
            less than half as large. None: every step uses all records. With mini-batches ``sigma=None`` without
            ``steps`` is a noise that costs little accuracy, and the records of a request are where they were dealt: how
            many steps it takes depends on that too, never on the data.
        records: How many records ``steps`` steps shall be able to unlearn at once. Any number can be unlearned
            later, by more steps or fewer.
        accountant: ``shifted`` (exact on quadratics), ``lsi`` (the paper's) or ``lsi-tight``.
        adjacency: What retraining is compared with: on data where a removed record's loss is 0 (``zero-out``:
            scikit-learn's objective with the same ``C`` on the remaining records), where another record stands in its
            place (``replace``), or on the mean over the remaining records (``remove``).
        normalize: Whether every row is divided by its own norm. Otherwise a row longer than 1 is an error, unless one
            of the next two makes it shorter.
        feature_ranges: Public bounds of the features: a pair ``(low, high)`` for all, or one for each, shape
            ``(features, 2)``. Values outside are clipped, the ranges are mapped to [-1, 1], and rows are then divided
            by ``sqrt(features)``, or by their own norm if ``normalize``, or by ``data_norm``. What is known of such
            data in general, *not* the smallest and largest values of these: that would tell of removed records, which
            the certificate excludes.
        data_norm: A public number, not taken from the data either: rows longer than it are scaled down to it, then all
            are divided by it. With ``feature_ranges``, of the rows that these make. Not together with ``normalize``.
        fit_intercept: Whether there is an intercept, which is regularised.
        random_state: None: noise from the operating system's entropy, which is not kept. A number makes results
            repeatable, but it is a secret: anybody who knows it, or tries all 2^32, can subtract the noise. Two models
            that were fitted with the same number have the same noise, and it cancels in their difference, which then
            shows the record in which their data differ; nobody needs to know the number for that.
        device: ``auto``, ``cpu`` or ``cuda``.
        dtype: ``float32``, or ``float64`` where rounding would take more than a tenth of epsilon; or ``float64``.
    """

    _NEEDED_TO_UNLEARN = (*UnlearningClassifier._NEEDED_TO_UNLEARN, "_position", "_records_of_class")

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: Delta = "auto",
        *,
        sigma: float | None = None,
        steps: int | None = None,
        C: float = 1.0,
        class_weight: Mapping[Any, float] | None = None,
        batch_size: int | Literal["auto"] | None = "auto",
        records: int = 1,
        accountant: str = "shifted",
        adjacency: str = "zero-out",
        normalize: bool = False,
        feature_ranges: ArrayLike | None = None,
        data_norm: float | None = None,
        fit_intercept: bool = True,
        random_state: int | np.random.RandomState | None = None,
        device: str = "cpu",
        dtype: str = "float32",
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            sigma=sigma,
            steps=steps,
            C=C,
            class_weight=class_weight,
            records=records,
            accountant=accountant,
            adjacency=adjacency,
            normalize=normalize,
            feature_ranges=feature_ranges,
            data_norm=data_norm,
            fit_intercept=fit_intercept,
            random_state=random_state,
            device=device,
            dtype=dtype,
        )
        self.batch_size = batch_size

    def _planned(
        self, n: int, features: int, classes: int, weights: ClassWeights
    ) -> LangevinLearner | MiniBatchLearner:
        return plan_learner(
            self.batch_size,
            C=self.C * weights.largest,
            intercept=self.fit_intercept,
            accountant=self.accountant,
            adjacency=self.adjacency,
            n=n,
            features=features,
            classes=classes,
            epsilon=self.epsilon,
            delta=self.delta,
            sigma=self.sigma,
            steps=self.steps,
            records=self.records,
            dtype=self.dtype,
            class_weights=weights.shares,
        )

    def _planned_noise(self, plan: Any) -> tuple[float, float]:
        problem = plan.exact_problem
        return score_noise(problem, sigma=plan.sigma), problem.strong_convexity

    @property
    def remaining_(self) -> NDArray[np.int64]:
        """Positions in the fitted ``X`` of the records that are left."""
        return self._remaining if self._position is None else np.flatnonzero(self._position >= 0)

    @remaining_.setter
    def remaining_(self, remaining: NDArray[np.int64]) -> None:
        self._remaining = remaining

    def _learn_from(self, X: NDArray[Any], labels: NDArray[np.int64]) -> None:
        self._position: NDArray[np.int64] | None = None
        self._records_of_class: NDArray[np.int64] | None = None
        if not isinstance(self._learner, MiniBatchLearner):
            super()._learn_from(X, labels)
            return
        self._require_short(X)
        self._warn_if_a_column_drowns(X)
        X = np.ascontiguousarray(X)
        order = dealt_order(len(X), self._noise_key())
        labels = labels[order]
        rows = np.empty((len(X), self._learner.features), dtype=self._dtype)
        # By pieces that stay in the processor's cache: what is read here and there is written at once.
        for start in range(0, len(X), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            rows[some] = self._signed(self._mapped(np.take(X, order[some], axis=0)), labels[some])
        self._position = places_in(order)
        self._records_of_class = np.bincount(self._numbered(labels), minlength=len(self.classes_))
        self._learn(*self._placed(rows, labels))
        self.remaining_ = np.empty(0, dtype=np.int64)
        self._keep(rows, labels)

    def _remove(self, indices: Any) -> bool:
        if self._position is None:
            return super()._remove(indices)
        return self._remove_in_place(indices, self._position)

    def _remove_in_place(self, indices: Any, position: NDArray[np.int64]) -> bool:
        """Put zeros, or others, in the places of records and carry on with the cycle: nothing else is touched."""
        self._position = position = writeable(position)
        self._training_rows, self._training_labels = writeable(self._training_rows), writeable(self._training_labels)
        removed, learner, done = distinct(indices, self._learner.n), self._learner, self._history
        places = position[removed]
        require_removable(removed, places < 0, left=learner.n - sum(done.records))
        rows, labels = self._training_rows, self._training_labels
        history = done.after(learner.plan_removal(done, len(removed), learner.places_of(places)))
        before, names = (rows[places], labels[places]), self._labels_at(removed)
        assert self._records_of_class is not None
        left = self._records_of_class - np.bincount(self._numbered(before[1]), minlength=len(self.classes_))
        try:
            rows[places], labels[places] = 0, 0
            if learner.adjacency == "replace":
                others, labels[places] = self._replacements(len(places))
                rows[places] = self._signed(others, labels[places])
            position[removed] = -1
            self._label(removed, None)
            weights = self._after_steps_on(rows, labels, history)
            # At once: whatever interrupts, what is kept of the records and what is said of them agree.
            self.__dict__.update(
                _weights=weights,
                _history=history,
                _records_of_class=left,
                _known_digest=None,
                # It may have been set after `fit`.
                _noise_source=self._noise_source if self.random_state is None else "seed",
            )
        except BaseException:
            if self._history is done:
                rows[places], labels[places] = before
                position[removed] = places
                self._label(removed, names)
            raise
        return not left.all()

    def _numbered(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        return (labels + 1) // 2 if len(self.classes_) == 2 else labels

    def _signed(self, rows: NDArray[Any], labels: NDArray[np.int64]) -> NDArray[Any]:
        """Return rows as `engine.minibatch` takes them, in the same memory."""
        if len(self.classes_) == 2:
            np.multiply(rows, -labels[:, None], out=rows, casting="same_kind")
        return rows

    def _after_steps_on(self, rows: NDArray[Any], labels: NDArray[Any], history: History) -> NDArray[Any]:
        """Return the weights after the last removal of a history, of rows in dealt order."""
        # Where the kernel takes them without PyTorch: that one's code has long left the caches.
        if self.device != "cpu" and pick_device(self.device).type != "cpu":
            return self._after_steps(*self._placed(rows, labels), history)
        progress = shown_progress("unlearn", history[-1].steps)
        weights: NDArray[Any] = self._learner.unlearn_one(
            self._weights, rows, labels, history, self._noise_key(), progress=progress
        )
        return weights

    def _placed(self, *arrays: NDArray[Any]) -> tuple[torch.Tensor, torch.Tensor]:
        device = pick_device(self.device)
        rows, labels = (torch.as_tensor(array, device=device) for array in arrays)
        return rows, labels

    @classmethod
    def _read_learner(cls, stated: Mapping[str, Any]) -> LangevinLearner | MiniBatchLearner:
        learner: type[LangevinLearner] | type[MiniBatchLearner] = (
            MiniBatchLearner if "batch_size" in stated else LangevinLearner
        )
        return learner.model_validate(stated)
