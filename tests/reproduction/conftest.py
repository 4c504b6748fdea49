import numpy as np
import pytest

from certified_unlearning.data.prepared import PreparedData, unit_rows


@pytest.fixture(scope="session")
def small_data() -> PreparedData:
    """Two overlapping classes, 200 records of 6 features."""
    generator = np.random.default_rng(0)

    def part(count: int) -> tuple[np.ndarray, np.ndarray]:
        labels = np.where(np.arange(count) % 2, 1, -1).astype(np.int8)
        rows = generator.normal(size=(count, 6)) + 0.8 * labels[:, None] * np.array([1, 1, 0, 0, 0, 0])
        return unit_rows(rows, "test data"), labels

    return PreparedData("digits", "synthetic", *part(200), *part(100), "none")


@pytest.fixture(scope="session")
def three_classes() -> PreparedData:
    """Three overlapping classes, 240 records of 6 features."""
    generator = np.random.default_rng(1)

    def part(count: int) -> tuple[np.ndarray, np.ndarray]:
        labels = (np.arange(count) % 3).astype(np.int8)
        rows = generator.normal(size=(count, 6)) + 1.5 * np.eye(6)[labels]
        return unit_rows(rows, "test data"), labels

    return PreparedData("digits", "synthetic", *part(240), *part(120), "none", classes=("a", "b", "c"))
