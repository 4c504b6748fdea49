"""Logistic and softmax regression by the two variants of Descent-to-Delete."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike

from certified_unlearning.accounting.core.losses import regularisation_of
from certified_unlearning.estimators.base import UnlearningClassifier
from certified_unlearning.estimators.class_weights import ClassWeights
from certified_unlearning.estimators.unlearning_model import shown_progress
from certified_unlearning.mechanisms.learners.descent import DescentLearner, DescentVariant
from certified_unlearning.mechanisms.learners.history import History
from certified_unlearning.vocabulary import Delta


class _DescentToDelete(UnlearningClassifier):
    """Logistic regression by gradient descent without noise; noise is added on what is published.

    Source: Neel, Roth, Sharifi-Malvajerdi, Descent-to-Delete (ALT 2021). The objective is that of
    `LangevinLogisticRegression`.

    Args:
        epsilon: The target after every `unlearn`.
        delta: Of the target: a number strictly between 0 and 1; or ``"auto"``, which is ``min(1e-6, 1 / (10 n))``; or
            ``"1/n"``, as in the papers.
        sigma: Standard deviation of the published noise. None: the least with which ``steps`` steps unlearn
            ``records`` records in the first request.
        steps: Steps of that request. Not together with ``sigma``. With neither, as many as it takes for what was
            learned to fade by a factor ``e`` (with ``conditional``: the published noise too).
        C: Inverse strength of the regulariser, as in scikit-learn.
        class_weight: Public weights of the classes' losses, ``{label: weight}``, as in scikit-learn; 1 where a class is
            not named. The largest multiplies ``C``, with all that follows from it. ``"balanced"`` is refused: it is
            counted from the labels, which tells of removed records.
        records: How many records ``steps`` steps shall be able to unlearn at once.
        accountant: ``shifted``: tight distances, and any number of records at once; *with published state it compares
            with a model that is published, noised and continued at the same times, and says nothing of one that is
            retrained and noised once*. ``conditional``, with published state and its default: any number of
            records, compared with retraining noised once. ``as published``: the theorems, stated for adding or
            removing one record and applied to the adjacency unchanged; several records are unlearned one after another.
        adjacency: ``zero-out`` or ``replace``, as in `LangevinLogisticRegression`.
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

    _NEEDED_TO_UNLEARN = (*UnlearningClassifier._NEEDED_TO_UNLEARN, "_state")
    _VARIANT: ClassVar[DescentVariant]

    def _planned(self, n: int, features: int, classes: int, weights: ClassWeights) -> DescentLearner:
        return DescentLearner.plan(
            n=n,
            features=features,
            classes=classes,
            regularisation=regularisation_of(C=self.C * weights.largest, n=n, intercept=self.fit_intercept),
            epsilon=self.epsilon,
            delta=self.delta,
            sigma=self.sigma,
            steps=self.steps,
            records=self.records,
            accountant=self.accountant,
            adjacency=self.adjacency,
            dtype=self.dtype,
            class_weights=weights.shares,
            variant=self._VARIANT,
        )

    def _planned_noise(self, plan: Any) -> tuple[float, float]:
        return plan.sigma, plan.exact_problem.strong_convexity

    @classmethod
    def _read_learner(cls, stated: Mapping[str, Any]) -> DescentLearner:
        return DescentLearner.model_validate(stated)

    def _copy_without(self, indices: Any) -> bool:
        if self._learner.accountant != "as published":
            return super()._copy_without(indices)
        self._places(indices)  # All are checked before the first goes.
        return [super(_DescentToDelete, self)._copy_without([index]) for index in np.atleast_1d(indices)][-1]

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

    def _publish(self, weights: torch.Tensor, history: History) -> None:
        published = self._learner.publish(weights, history, [self._noise_key()])
        self._weights = published.cpu().numpy()
        self._state = (weights if self._learner.variant == "secret-state" else published).cpu().numpy()


class SecretStateDescentToDelete(_DescentToDelete):
    """Descent-to-Delete that keeps the noiseless weights: they must stay secret, in memory and in saved files.

    Leave out ``random_state`` of a model that you publish: two models that were fitted with the same number have the
    same noise, and it cancels in their difference, which then shows the record in which their data differ.
    """

    _VARIANT = "secret-state"


class PublishedStateDescentToDelete(_DescentToDelete):
    """Descent-to-Delete that keeps nothing but what it published, and goes on from there.

    Leave out ``random_state`` of a model that you publish: two models that were fitted with the same number have the
    same noise, and it cancels in their difference, which then shows the record in which their data differ.
    """

    _VARIANT = "published-state"

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: Delta = "auto",
        *,
        sigma: float | None = None,
        steps: int | None = None,
        C: float = 1.0,
        class_weight: Mapping[Any, float] | None = None,
        records: int = 1,
        accountant: str = "conditional",
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
