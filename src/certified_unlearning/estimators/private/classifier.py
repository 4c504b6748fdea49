"""Differentially private logistic regression."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray
from sklearn.utils import Tags

from certified_unlearning.accounting.private.losses import ScalarLoss
from certified_unlearning.errors import DataError
from certified_unlearning.estimators.classifier import LinearClassifier
from certified_unlearning.estimators.private.model import PrivateModel


@dataclass(repr=False, eq=False)
class PrivateLogisticRegression(PrivateModel, LinearClassifier):
    """Differentially private logistic regression of two classes: every record is hidden from the start.

    The other estimators protect removed records. This estimator protects all records, before anybody asks for a
    removal: the model's distribution hardly changes when one record is replaced by any other record. So a deletion
    needs no computation: `unlearn` counts the deleted records and changes nothing else. `epsilon_after` is the
    guarantee of the unchanged model compared with a model that is learned after the deleted records were replaced. This
    epsilon grows with the number of deletions. `deletions_within` returns how many deletions a given epsilon covers. If
    that number is too small, learn anew or use another estimator.

    ``output-perturbation`` publishes a regularised minimiser with noise. The amount of noise does not depend on the
    number of features. ``noisy-gradient-descent`` uses all records in every step, and suits few features. Its error
    shrinks faster with the number of records than the error of output perturbation. ``embedding``, for many features,
    runs noisy gradient descent on rows that are projected to a small number of random columns.

    The estimator keeps no records. Every bound is public: rows longer than ``data_norm`` are scaled down to it, and
    weights stay in a ball. The ball's ``radius`` is given, or selected privately from several given values.

    Args:
        radius: Largest norm of coefficients and intercept together, for scaled features. If several values are given,
            half of the records are used to learn one model for each. The other half is used to select one of these
            models, or a model of zeros.

    Attributes:
        classes_: The two classes, sorted. They are read from the records without noise.

    See Also:
        `PrivateLinearRegression`: The same for regression.
        `CertifiedLogisticRegression`: Protects only removed records.

    Examples:
        >>> from certified_unlearning import PrivateLogisticRegression
        >>> X, y = [[0.0, 1.0], [1.0, 0.2]] * 50, ["no", "yes"] * 50
        >>> model = PrivateLogisticRegression(epsilon=1).fit(X, y)
        >>> model.certificate_.epsilon <= 1
        True
        >>> model.deletions_within(3)
        2
    """

    radius: float | Sequence[float] = field(default=5.0, kw_only=True)

    def _validated(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        X, labels = super()._validated(X, y)
        if len(self.classes_) > 2:
            raise DataError(
                "Only binary classification is supported. The type of the target is multiclass: y holds "
                f"{len(self.classes_)} classes"
            )
        return X, labels

    def _loss(self) -> ScalarLoss:
        return ScalarLoss(name="logistic")

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
