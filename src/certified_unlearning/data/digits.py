"""The digits that come with scikit-learn: 1 797 images of 8 x 8 pixels, even against odd."""

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.data.dataset import DataSet
from certified_unlearning.data.prepared import PreparedData, unit_rows


def prepare(raw_root: Path, seed: int) -> PreparedData:
    """Prepare even (+1) against odd (-1): pixels / 16 - 0.5, rows of norm 1, stratified 80/20 split.

    Args:
        raw_root: Not used, because the records come with scikit-learn.
        seed: Seed of the split.
    """
    # Imported here, because it takes seconds and the lists of data sets import this module.
    from sklearn.model_selection import train_test_split

    pixels, digits = _records()
    labels = np.where(digits % 2 == 0, 1, -1).astype(np.int8)
    features = unit_rows(pixels / 16 - 0.5, "digits")
    train_features, test_features, train_labels, test_labels = train_test_split(
        features, labels, test_size=0.2, stratify=labels, random_state=seed
    )
    return PreparedData(
        name="digits",
        features="pixels",
        train_features=train_features,
        train_labels=train_labels,
        test_features=test_features,
        test_labels=test_labels,
        preprocessing=(f"even = +1, odd = -1; pixels / 16 - 0.5; rows of norm 1; stratified 80/20 split, seed {seed}"),
    )


def content_sha256() -> str:
    """Return the SHA-256 of the embedded pixels and digits."""
    pixels, digits = _records()
    return hashlib.sha256(pixels.astype("<f8").tobytes() + digits.astype("<i8").tobytes()).hexdigest()


def _records() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the pixels and the digits. The pixels are numbers from 0 to 16, shape ``(1797, 64)``."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    return pixels, digits


DIGITS = DataSet("digits", "digits even vs odd", prepare, package="scikit-learn", content_sha256=content_sha256)
