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
        radius: Largest norm of coefficients and intercept together, as the model sees features. Several: half of the
            records learn with each of them, the other half selects one, or a model of zeros.

    Attributes:
        classes_: The two classes, sorted; that there are these two is taken from the records.
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
