"""scikit-learn estimators that can unlearn: call `fit`, later `unlearn(indices)`, and read what is certified.

>>> from certified_unlearning.estimators import LangevinLogisticRegression
>>> model = LangevinLogisticRegression(epsilon=1, C=0.1, normalize=True, random_state=0)
>>> model.fit([[0.0, 1.0], [1.0, 0.2], [0.1, 0.9], [0.8, 0.1]], ["no", "yes", "no", "yes"]).unlearn([2]).remaining_
array([0, 1, 3])
"""

from certified_unlearning.estimators.descent.descent_to_delete import (
    PublishedStateDescentToDelete,
    SecretStateDescentToDelete,
)
from certified_unlearning.estimators.descent.langevin import LangevinLogisticRegression
from certified_unlearning.estimators.descent.ridge import LangevinRidge
from certified_unlearning.estimators.exact.classifier import ExactLogisticRegression
from certified_unlearning.estimators.exact.clusters import ExactKMeans
from certified_unlearning.estimators.network.classifier import CertifiedMLPClassifier
from certified_unlearning.estimators.private.classifier import PrivateLogisticRegression
from certified_unlearning.estimators.private.regressor import PrivateLinearRegression
from certified_unlearning.estimators.refit.classifier import CertifiedLogisticRegression
from certified_unlearning.estimators.refit.ridge import CertifiedRidge

__all__ = [
    "CertifiedLogisticRegression",
    "CertifiedMLPClassifier",
    "CertifiedRidge",
    "ExactKMeans",
    "ExactLogisticRegression",
    "LangevinLogisticRegression",
    "LangevinRidge",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PublishedStateDescentToDelete",
    "SecretStateDescentToDelete",
]
