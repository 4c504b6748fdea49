"""scikit-learn's own checks. They feed rows of any norm, which only `normalize=True` takes."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from certified_unlearning.estimators import (
    CertifiedLogisticRegression,
    LangevinLogisticRegression,
    PublishedStateDescentToDelete,
    SecretStateDescentToDelete,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")


@parametrize_with_checks(
    [
        CertifiedLogisticRegression(normalize=True),
        CertifiedLogisticRegression(normalize=True, C=0.1, strict_timing=True, fit_intercept=False),
        LangevinLogisticRegression(normalize=True, C=0.1),
        LangevinLogisticRegression(normalize=True, accountant="lsi", adjacency="replace", epsilon=10),
        SecretStateDescentToDelete(normalize=True, C=0.1),
        PublishedStateDescentToDelete(normalize=True, C=0.1),
    ]
)
def test_it_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)
