"""Logistic and softmax regression by the two variants of Descent-to-Delete."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from certified_unlearning.accounting.core.losses import regularisation_of
from certified_unlearning.errors import AssumptionError
from certified_unlearning.estimators.descent.model import DescentClassifier, shown_progress
from certified_unlearning.estimators.objective import Laws
from certified_unlearning.mechanisms.learners.descent import DescentLearner, DescentVariant
from certified_unlearning.mechanisms.learners.history import History


class _DescentToDelete(DescentClassifier):
    """Logistic regression by gradient descent without noise; noise is added to the published weights.

    Args:
        sigma: Standard deviation of the published noise. None: the smallest value with which ``steps`` steps unlearn
            ``records`` records in the first request.
        steps: Number of steps for the first request. It cannot be combined with ``sigma``. If neither ``steps`` nor
            ``sigma`` is given, the number of steps is that in which the influence of what was learned falls by a factor
            ``e``. With ``conditional``, there may be more steps, because the published noise must fade, too.
        records: Number of records that ``steps`` steps must be able to unlearn at once.
        accountant: ``shifted`` uses tight distances and covers any number of records at once. *With published state,
            its guarantee compares with a model that is published with noise and continued at the same times, and does
            not hold against a model that is retrained and then noised once*. ``conditional`` is available only with
            published state, and is the default there. It covers any number of records, and compares with a model that
            is retrained and then noised once. ``as published`` applies the published theorems unchanged to the chosen
            ``adjacency``, although the theorems are stated for adding or removing one record. It unlearns several
            records one by one.
        adjacency: ``zero-out`` or ``replace``, as in `LangevinLogisticRegression`.
    """

    _VARIANT: ClassVar[DescentVariant]

    def _plan_for(self, C: float, *, n: int, **sizes: Any) -> DescentLearner:
        regularisation = regularisation_of(C=C, n=n, intercept=self.fit_intercept)
        return DescentLearner.plan(n=n, regularisation=regularisation, variant=self._VARIANT, **sizes, **self._asked())

    def _planned_noise(self, plan: Any) -> tuple[float, float]:
        return plan.sigma, plan.exact_problem.strong_convexity

    @classmethod
    def _read_learner(cls, stated: Mapping[str, Any]) -> DescentLearner:
        return DescentLearner.model_validate(stated)

    def _remove(self, named: NDArray[Any]) -> bool:
        if self._learner.accountant != "as published":
            return super()._remove(named)
        with self._all_or_nothing():
            self._store.removable(named)  # All records are checked before the first one is removed.
            for each in named:
                self._remove_by_steps(np.array([each]))
        return not self._class_sizes_of(self._store.labels).all()

    def _learn(self, rows: torch.Tensor, labels: torch.Tensor) -> None:
        progress = shown_progress("fit", self._learner.learning_steps)
        self._publish(self._learner.learn(rows, labels, progress=progress), self._history)

    def _unlearn(self, rows: torch.Tensor, labels: torch.Tensor, records: int) -> None:
        history = self._history.after(self._learner.plan_removal(self._history, records))
        weights = self._learner.unlearn(
            torch.tensor(self._state, device=rows.device),
            rows,
            labels,
            history,
            progress=shown_progress("unlearn", history[-1].steps),
        )
        self._publish(weights, history)
        self._history = history

    def _noise_of_weights(self) -> tuple[float, bool]:
        return self._learner.sigma, False

    def _laws(self, gone: NDArray[np.int64], trials: int) -> Laws:
        if self._learner.accountant == "as published":
            raise AssumptionError(
                f"the comparator of {type(self).__name__} can be drawn only with accountant='shifted' or "
                "'conditional', got 'as published': the published theorems do not say how long the retrained model "
                "learns"
            )
        return super()._laws(gone, trials)

    def _publish(self, weights: torch.Tensor, history: History) -> None:
        published = self._learner.publish(weights, history, [self._noise_key()])
        self._weights = published.cpu().numpy()
        self._state = (weights if self._learner.variant == "secret-state" else published).cpu().numpy()

    def _kept(self) -> dict[str, NDArray[Any] | None]:
        return {**super()._kept(), "_state": self._state}

    def _restore_kept(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super()._restore_kept(arrays)
        self._state = arrays["_state"]


class SecretStateDescentToDelete(_DescentToDelete):
    """Descent-to-Delete that keeps noiseless weights, which must stay secret in memory and in saved files.

    It is logistic regression by gradient descent without noise. Noise is added to the published weights (Neel, Roth,
    Sharifi-Malvajerdi, Descent-to-Delete, ALT 2021). The objective is that of `LangevinLogisticRegression`.

    Do not set ``random_state`` of a model that you publish. Two models that were fitted with the same number have the
    same noise, which cancels in their difference. The difference then shows the record in which their data differ.

    See Also:
        `PublishedStateDescentToDelete`: Keeps no secret state.
        `LangevinLogisticRegression`: Adds noise in every step.

    Examples:
        >>> from certified_unlearning import SecretStateDescentToDelete
        >>> X, y = [[0.0, 1.0], [1.0, 0.2]] * 50, ["no", "yes"] * 50
        >>> model = SecretStateDescentToDelete(epsilon=1, normalize=True).fit(X, y)
        >>> len(model.unlearn([2, 17]).remaining_)
        98
        >>> model.certificate_.epsilon <= 1
        True
    """

    _VARIANT = "secret-state"


@dataclass(repr=False, eq=False)
class PublishedStateDescentToDelete(_DescentToDelete):
    """Descent-to-Delete that keeps only the published weights and continues from them.

    It is logistic regression by gradient descent without noise. Noise is added to the published weights (Neel, Roth,
    Sharifi-Malvajerdi, Descent-to-Delete, ALT 2021). The objective is that of `LangevinLogisticRegression`.

    Do not set ``random_state`` of a model that you publish. Two models that were fitted with the same number have the
    same noise, which cancels in their difference. The difference then shows the record in which their data differ.

    See Also:
        `SecretStateDescentToDelete`: Keeps the weights without noise secret.
        `LangevinLogisticRegression`: Adds noise in every step.

    Examples:
        >>> from certified_unlearning import PublishedStateDescentToDelete
        >>> X, y = [[0.0, 1.0], [1.0, 0.2]] * 50, ["no", "yes"] * 50
        >>> model = PublishedStateDescentToDelete(epsilon=1, normalize=True).fit(X, y)
        >>> len(model.unlearn([2, 17]).remaining_)
        98
        >>> model.certificate_.epsilon <= 1
        True
    """

    _: KW_ONLY
    accountant: str = "conditional"

    _VARIANT = "published-state"
