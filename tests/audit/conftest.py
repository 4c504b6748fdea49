"""Records to audit with."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits


class Records(NamedTuple):
    """Rows of norm 1 with their labels."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]


@pytest.fixture(scope="session")
def digits() -> Records:
    """Odd against even."""
    X, y = load_digits(return_X_y=True)
    return Records(X / np.linalg.norm(X, axis=1, keepdims=True), y % 2)
