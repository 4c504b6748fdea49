"""Base class of the classifiers that learn by noisy steps."""

from collections.abc import Mapping
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certified_unlearning.accounting.core.scale import QUICK_CONDITION
from certified_unlearning.engine.devices import pick_device
from certified_unlearning.estimators.advice import warn_if_slow
from certified_unlearning.estimators.class_weights import ClassWeights
from certified_unlearning.estimators.classifier import NoisyClassifier
from certified_unlearning.estimators.linear import without_sample_weight
from certified_unlearning.estimators.unlearning_model import UnlearningModel
from certified_unlearning.mechanisms.learners.duration import Stepwise
from certified_unlearning.mechanisms.learners.learner import require_one_of
from certified_unlearning.vocabulary import Delta, DType


class UnlearningClassifier(NoisyClassifier, UnlearningModel):
    """A linear classifier that learns by noisy steps and keeps its training records, so that it can unlearn some."""

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
        self.epsilon = epsilon
        self.delta = delta
        self.sigma = sigma
        self.steps = steps
        self.C = C
        self.class_weight = class_weight
        self.records = records
        self.accountant = accountant
        self.adjacency = adjacency
        self.normalize = normalize
        self.feature_ranges = feature_ranges
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.device = device
        self.dtype = dtype

    @without_sample_weight
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from records.

        There is no ``sample_weight``: a weight of its own would change how much a record can move the model.

        Args:
            X: Features, shape ``(n, features)``; an array, a data frame, or a sparse matrix, whose rows become dense.
                Rows have norm at most 1, unless ``normalize``, ``feature_ranges`` or ``data_norm`` see to it.
            y: Classes, shape ``(n,)``, of any type.

        Returns:
            The fitted estimator. `unlearn` names records by their position in this ``X``, or by its index.

        Raises:
            DataError: A row is longer than 1 (the message names the longest), or there is only one class, or sparse
                rows do not fit in memory as dense ones.
            ParameterError: A parameter makes no sense.
            AssumptionError: The noise would drown in rounding.
            InfeasibleError: The target cannot be met.
        """
        with self._all_or_nothing():
            self._fit(X, y)
        return self

    def _fit(self, X: Any, y: Any) -> None:
        X, classes, labels = self._validated(X, y)
        require_one_of(get_args(DType), dtype=self.dtype)
        sizes = self._sizes(X, classes)
        learner = self._planned(**sizes)
        self._warn_if_drowned(learner, **sizes, stacklevel=6)
        if pick_device(self.device).type == "cpu":
            self._warn_if_slow(learner, X, sizes["weights"])
        self.classes_ = classes
        self._begin(learner)
        self._learn_from(X, labels.astype(np.int64, copy=False))

    def _warn_if_slow(self, learner: Stepwise, X: NDArray[Any], weights: ClassWeights) -> None:
        n = len(X)
        quick = QUICK_CONDITION / (n * weights.largest)
        warn_if_slow(
            learner,
            X,
            given=f"C = {self.C:.3g} (C n = {self.C * n:,.0f})",
            quicker=f"C n of 30 to 100, such as C = {quick:.2g}," if quick < self.C else None,
            instead="CertifiedLogisticRegression needs no small C",
        )

    def _drawn_labels(self, generator: np.random.Generator, records: int) -> NDArray[np.int64]:
        labels = generator.integers(len(self.classes_), size=records)
        return 2 * labels - 1 if len(self.classes_) == 2 else labels

    def _has_an_empty_class(self) -> bool:
        return len(np.unique(self._training_labels)) < len(self.classes_)
