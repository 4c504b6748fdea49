"""Differentially private logistic regression."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from certified_unlearning.accounting.private.losses import ScalarLoss
from certified_unlearning.errors import DataError
from certified_unlearning.estimators.classifier import LinearClassifier
from certified_unlearning.estimators.linear import without_sample_weight
from certified_unlearning.estimators.private.model import Method, PrivateModel
from certified_unlearning.vocabulary import Delta, Relation


class PrivateLogisticRegression(LinearClassifier, PrivateModel):
    """Logistic regression of two classes that is differentially private: every record is hidden from the start.

    Where the other estimators promise something of removed records, this one promises it of all, before anybody asks:
    the model's law hardly changes when one record is replaced by any other. So a deletion needs no work. `unlearn`
    notes it and changes nothing; what the unchanged model is worth then, against one learned with the deleted records
    replaced, is `epsilon_after`, which grows with their number. `deletions_within` says how many it covers. Where
    that is too few, learn anew or use another estimator.

    ``output-perturbation`` publishes a regularised minimiser with noise; how much there is does not depend on the
    number of features, but the error it makes does not shrink as fast with more records as that of
    ``noisy-gradient-descent``, which takes all records in every step and suits few features. ``embedding`` does that on
    rows of few random columns, for many features.

    It keeps no record. Every bound is public: rows are scaled down to ``data_norm`` if they are longer, weights stay in
    a ball whose ``radius`` is given, or selected privately from several that are.

    Args:
        method: How it is made private.
        epsilon: Of one record.
        delta: Of the same: a number strictly between 0 and 1; or ``"auto"``, which is ``min(1e-6, 1 / (10 n))``; or
            ``"1/n"``, as in the papers.
        relation: What epsilon is of: ``replace-one``, where a record is replaced by any other, or ``add-remove``, where
            its place is left empty, with half of the noise. The one is no epsilon of the other.
        radius: Largest norm of coefficients and intercept together, as the model sees features. Several: half of the
            records learn with each of them, the other half selects one, or a model of zeros.
        boosting: With a number, several chunks of the records learn a model each, and one is selected privately on a
            chunk of its own. The smaller the number, the more chunks, and the rarer a bad model is meant to be; that
            they are smaller costs accuracy. None: all records learn one model.
        strong_convexity: ``lambda`` of output perturbation; None for the one whose bound is best.
        steps: Of descent; None for as many as there are records, at most 1000.
        dimension: Columns of an embedding; None for the analysis' choice.
        normalize: Whether every row is divided by its own norm; then ``data_norm`` is None.
        feature_ranges: Public bounds of the features, as in `LangevinLogisticRegression`.
        data_norm: Rows that are longer are scaled down to this norm; all are divided by it.
        fit_intercept: Whether there is an intercept, which is in the ball as well.
        random_state: None: noise from the operating system's entropy, which is not kept. A number makes results
            repeatable, but it is a secret: anybody who knows it, or tries all 2^32, can subtract the noise. Two models
            that were fitted with the same number have the same noise, and it cancels in their difference, which then
            shows the record in which their data differ; nobody needs to know the number for that.

    Attributes:
        classes_: The two classes, sorted; that there are these two is taken from the records.
        n_features_in_: Number of features.
        feature_names_in_: Their names, if ``X`` was a data frame.
    """

    def __init__(
        self,
        method: Method = "output-perturbation",
        *,
        epsilon: float = 1.0,
        delta: Delta = "auto",
        relation: Relation = "replace-one",
        radius: float | Sequence[float] = 5.0,
        boosting: float | None = None,
        strong_convexity: float | None = None,
        steps: int | None = None,
        dimension: int | None = None,
        normalize: bool = False,
        feature_ranges: ArrayLike | None = None,
        data_norm: float | None = 1.0,
        fit_intercept: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.method = method
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.radius = radius
        self.boosting = boosting
        self.strong_convexity = strong_convexity
        self.steps = steps
        self.dimension = dimension
        self.normalize = normalize
        self.feature_ranges = feature_ranges
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    @without_sample_weight
    def fit(self, X: Any, y: Any) -> Self:
        """Learn from records.

        There is no ``sample_weight``: a weight of its own would change how much a record can move the model.

        Args:
            X: Features, shape ``(n, features)``; an array, a data frame, or a sparse matrix, whose rows become dense.
            y: Classes, shape ``(n,)``, of any type; two of them.

        Returns:
            The fitted estimator.

        Raises:
            DataError: There are not two classes.
            ParameterError: A parameter makes no sense.
            AssumptionError: float64 is too coarse for so little noise.
            InfeasibleError: A minimiser was not found.
        """
        with self._all_or_nothing():
            X, self.classes_, labels = self._validated(X, y)
            if len(self.classes_) > 2:
                raise DataError(
                    "Only binary classification is supported. The type of the target is multiclass: y holds "
                    f"{len(self.classes_)} classes"
                )
            self._learn_from(X.astype(np.float64, copy=False), labels)
        return self

    def _check_strength(self) -> None:
        """There is no ``C``."""

    def _loss(self) -> ScalarLoss:
        return ScalarLoss(name="logistic")

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
