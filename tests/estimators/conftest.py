import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from certified_unlearning.estimators import (
    CertifiedLogisticRegression,
    LangevinLogisticRegression,
    PublishedStateDescentToDelete,
    SecretStateDescentToDelete,
)

CLASSIFIERS = (
    LangevinLogisticRegression,
    SecretStateDescentToDelete,
    PublishedStateDescentToDelete,
    CertifiedLogisticRegression,
)


@pytest.fixture(scope="session")
def digits():
    """Digits as rows of norm 1 in float64, and their ten labels; 600 records."""
    images, labels = load_digits(return_X_y=True)
    return normalize(images[:600] - 8), labels[:600]


@pytest.fixture(scope="session")
def parity(digits):
    """The same, even against odd."""
    rows, labels = digits
    return rows, np.where(labels % 2, "odd", "even")
