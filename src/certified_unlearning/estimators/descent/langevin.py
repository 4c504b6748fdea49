"""Logistic and softmax regression by Langevin unlearning, with all records in every step or with mini-batches."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from certified_unlearning.accounting.core.scale import score_noise
from certified_unlearning.engine.devices import pick_device
from certified_unlearning.engine.minibatch import dealt_order, places_in
from certified_unlearning.estimators.descent.model import DescentClassifier, LangevinModel, shown_progress
from certified_unlearning.estimators.linear import ROWS_AT_ONCE
from certified_unlearning.estimators.records import Positions, RecordStore
from certified_unlearning.mechanisms.learners.history import History
from certified_unlearning.mechanisms.learners.minibatch import learner_of, plan_learner


@dataclass(repr=False, eq=False)
class LangevinLogisticRegression(LangevinModel, DescentClassifier):
    """Binary or multinomial logistic regression that can unlearn records with an (epsilon, delta) certificate.

    It learns by noisy gradient descent, and unlearns by continuing the descent on the remaining records (Chien, Wang,
    Chen, Li, Langevin unlearning, NeurIPS 2024). The noise is planned before anything is learned. Each `unlearn` plans
    its own number of steps, for any number of records.

    The objective is that of scikit-learn with the same ``C``, except that the intercept is regularised, as in the
    solver ``liblinear``. Its strong convexity is about ``1 / (C n)``. So with a large ``C``, learning takes many steps
    and unlearning needs much noise. ``C n`` of 30 to 100 is a good first choice.

    With mini-batches, removals modify arrays in place, so a copy of the estimator must be a deep copy.

    Args:
        batch_size: Number of records in a mini-batch. Each step reads one batch. Learning takes one or a few epochs.
            Unlearning also reads one batch in each of its steps, whatever ``n`` is. ``"auto"`` uses mini-batches if
            there are so many records that mini-batches are cheaper at about equal accuracy. ``"auto"`` also halves the
            step size if the shorter steps need less than half as many records in a batch. None: every step uses all
            records. With mini-batches, ``sigma=None`` without ``steps`` selects a noise scale that lowers accuracy only
            a little. The number of steps of a request then also depends on the batches of the removed records, but
            never on the data.

    See Also:
        `CertifiedLogisticRegression`: Compares with an exact refit, and keeps a secret state.
        `LangevinRidge`: The same for regression.

    Examples:
        >>> from certified_unlearning import LangevinLogisticRegression
        >>> X, y = [[0.0, 1.0], [1.0, 0.2]] * 50, ["no", "yes"] * 50
        >>> model = LangevinLogisticRegression(epsilon=1, normalize=True).fit(X, y)
        >>> len(model.unlearn([2, 17]).remaining_)
        98
        >>> model.certificate_.epsilon <= 1
        True
    """

    batch_size: int | Literal["auto"] | None = field(default="auto", kw_only=True)

    def _plan_for(self, C: float, *, n: int, **sizes: Any) -> Any:
        return plan_learner(self.batch_size, C=C, intercept=self.fit_intercept, n=n, **sizes, **self._asked())

    def _planned_noise(self, plan: Any) -> tuple[float, float]:
        problem = plan.exact_problem
        return score_noise(problem, sigma=plan.sigma), problem.strong_convexity

    def _learn_from(self, plan: Any, X: NDArray[Any], labels: NDArray[np.int64]) -> None:
        if plan.cycle is None:
            super()._learn_from(plan, X, labels)
            return
        self._begin(plan)
        X = np.ascontiguousarray(X)
        order = dealt_order(len(X), self._noise_key())
        labels = labels[order]
        rows = np.empty((len(X), plan.features), dtype=self._dtype)
        # Rows are processed in pieces that fit in the processor's cache, because each scattered row is read and written
        # at once.
        for start in range(0, len(X), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            rows[some] = self._signed(self._rows(np.take(X, order[some], axis=0)), labels[some])
        self._class_sizes = self._class_sizes_of(labels)
        self._learn(*self._placed(rows, labels))
        self._store.keep(places_in(order), rows, labels)

    def _remove(self, named: NDArray[Any]) -> bool:
        if self._learner.cycle is None:
            return super()._remove(named)
        self._store.make_writeable()
        store, learner, done = self._store, self._learner, self._history
        gone = store.removable(named)
        places = learner.places_of(store.known_places[gone])
        history = done.after(learner.plan_removal(done, len(gone), places))
        others = self._others(len(gone))

        def carry_on(_rows: NDArray[Any], labels: NDArray[Any]) -> dict[str, Any]:
            return {
                "_weights": self._after_steps_on(store.rows, store.labels, history),
                "_history": history,
                "_class_sizes": self._class_sizes - self._class_sizes_of(labels),
                # ``random_state`` may have been set after `fit`.
                "_noise_source": self._noise_source if self.random_state is None else "seed",
            }

        self._remove_in_place(gone, carry_on, others)
        return not self._class_sizes.all()

    def _others(self, records: int) -> tuple[Any, Any]:
        """Return rows and labels to replace removed records, in the order of the batches: zeros, or other records."""
        if self._learner.adjacency != "replace":
            return 0, 0
        rows, labels = self._replacements(records)
        return self._signed(rows, labels), labels

    def _store_without(self, gone: Positions) -> RecordStore:
        if self._learner.cycle is None:
            return super()._store_without(gone)
        return self._store.with_others(gone, *self._others(len(gone)))

    def _as_tensors(self, rows: NDArray[Any], labels: NDArray[Any]) -> tuple[torch.Tensor, torch.Tensor]:
        return self._tensors(rows, labels) if self._learner.cycle is None else self._placed(rows, labels)

    def _signed(self, rows: NDArray[Any], labels: NDArray[np.int64]) -> NDArray[Any]:
        """Convert rows in place to the signed form that `engine.minibatch` needs, and return them."""
        if len(self.classes_) == 2:
            np.multiply(rows, -labels[:, None], out=rows, casting="same_kind")
        return rows

    def _after_steps_on(self, rows: NDArray[Any], labels: NDArray[Any], history: History) -> NDArray[Any]:
        """Return the weights after the last removal of a history; rows are in the order of the batches."""
        # The compiled kernel makes these steps without PyTorch, whose code is no longer in the caches.
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

    def _kept(self) -> dict[str, NDArray[Any] | None]:
        if self._learner.cycle is None:
            return super()._kept()
        return {**super()._kept(), "_position": self._store.places, "_records_of_class": self._class_sizes}

    def _restore_kept(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        if self._learner.cycle is None:
            super()._restore_kept(arrays)
            return
        self._store.keep(*(arrays[name] for name in ("_position", "_training_rows", "_training_labels")))
        self._class_sizes = arrays["_records_of_class"]

    @classmethod
    def _read_learner(cls, stated: Mapping[str, Any]) -> Any:
        return learner_of(stated)
