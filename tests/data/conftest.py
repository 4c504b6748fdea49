"""Small synthetic data, and the directory with the real one where there is one."""

import os
from pathlib import Path

import numpy as np
import pytest

from certified_unlearning.data.adult import ADULT
from certified_unlearning.data.fetch import fetch
from certified_unlearning.data.mnist import THREE_AGAINST_EIGHT
from certified_unlearning.data.prepared import PreparedData, unit_rows


@pytest.fixture
def small() -> PreparedData:
    """40 training and 10 test records with 5 features."""
    generator = np.random.default_rng(0)
    features = unit_rows(generator.standard_normal((50, 5)), "small")
    labels = np.tile(np.array([1, -1], np.int8), 25)
    return PreparedData("small", "noise", features[:40], labels[:40], features[40:], labels[40:], "none")


@pytest.fixture
def three_classes() -> PreparedData:
    """30 training and 9 test records with 5 features and labels 0, 1, 2."""
    features = unit_rows(np.random.default_rng(1).standard_normal((39, 5)), "three")
    labels = np.tile(np.array([0, 1, 2], np.int8), 13)
    parts = features[:30], labels[:30], features[30:], labels[30:]
    return PreparedData("three", "noise", *parts, "none", classes=("ant", "bee", "cow"))


@pytest.fixture(scope="session")
def real_raw_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A raw root with real MNIST and Adult files."""
    if "UNLEARNING_DATA" not in os.environ:
        pytest.skip("UNLEARNING_DATA is not set: no real MNIST and Adult here")
    root = tmp_path_factory.mktemp("raw")
    for data_set in (THREE_AGAINST_EIGHT, ADULT):
        fetch(data_set, root)
    return root
