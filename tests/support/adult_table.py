"""UCI Adult as a scikit-learn user would prepare it without looking at the records: public centres and scales."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from certified_unlearning.data.adult import COLUMNS

PUBLIC = {
    "age": (40, 15),
    "education-num": (10, 2.5),
    "capital-gain": (0, 5_000),
    "capital-loss": (0, 500),
    "hours-per-week": (40, 12),
}
"""Centre and scale of a column, as anybody would choose them."""


def adult():
    """Return training rows (norm 1) and labels, test rows and labels; skip without the data."""
    directory = os.environ.get("UNLEARNING_DATA")
    if not directory or not (Path(directory) / "adult" / "adult.data").exists():
        pytest.skip("UNLEARNING_DATA names no directory with adult/adult.data")
    table = pd.read_csv(Path(directory) / "adult" / "adult.data", names=COLUMNS, skipinitialspace=True)
    numbers = [(table[column] - centre) / scale for column, (centre, scale) in PUBLIC.items()]
    rows = normalize(np.column_stack([*numbers, np.where(table["sex"] == "Male", 1, -1)]))
    labels = (table["income"] == ">50K").to_numpy()
    rows, test_rows, labels, test_labels = train_test_split(rows, labels, test_size=0.1, random_state=0)
    return rows, labels, test_rows, test_labels
