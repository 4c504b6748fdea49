"""Jobs whose training rows stay on disk end with the same bits."""

from pathlib import Path

import numpy as np
import pytest

from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.data.stored_rows import StoredRows, in_order
from certified_unlearning.errors import StorageError
from certified_unlearning.mechanisms.langevin import LANGEVIN
from certified_unlearning.mechanisms.minibatch_langevin import MINIBATCH_LANGEVIN
from certified_unlearning.reproduction import jobs
from certified_unlearning.reproduction.rows import RUN_ROWS, read_table
from tests.reproduction.test_jobs import plan


@pytest.mark.parametrize("classes", [2, 3])
def test_jobs_on_streamed_rows_end_with_the_same_bits(classes: int, small_data, three_classes, tmp_path: Path) -> None:
    data = small_data if classes == 2 else three_classes
    data.save(tmp_path / "data.safetensors")
    whole = plan(data, "fig3b")
    learned, accuracies = [], []
    for in_memory in (True, False):
        loaded = PreparedData.load(tmp_path / "data.safetensors", in_memory=in_memory)
        assert isinstance(loaded.train_features, StoredRows) != in_memory
        directory = tmp_path / str(in_memory)
        directory.mkdir()
        jobs.learn(LANGEVIN, whole, loaded, directory / "learned.safetensors")
        learned.append((directory / "learned.safetensors").read_bytes())
        files = (directory / name for name in ("learned.safetensors", "r.parquet", "c.parquet"))
        jobs.unlearn(LANGEVIN, whole, loaded, *files)
        accuracies.append(read_table(directory / "r.parquet", RUN_ROWS)["accuracy"].to_list())
    assert learned[0] == learned[1]
    assert accuracies[0] == accuracies[1]


@pytest.mark.parametrize("classes", [2, 3])
def test_mini_batches_of_streamed_rows_are_dealt_alike(classes: int, small_data, three_classes, tmp_path: Path) -> None:
    data = small_data if classes == 2 else three_classes
    data.save(tmp_path / "data.safetensors")
    whole = plan(data, "batch_sizes")
    accuracies = []
    for in_memory in (True, False):
        loaded = PreparedData.load(tmp_path / "data.safetensors", in_memory=in_memory)
        directory = tmp_path / str(in_memory)
        directory.mkdir()
        jobs.unlearn(MINIBATCH_LANGEVIN, whole, loaded, None, directory / "r.parquet", directory / "c.parquet")
        assert sorted(path.name for path in directory.iterdir()) == ["c.parquet", "r.parquet"]
        accuracies.append(read_table(directory / "r.parquet", RUN_ROWS)[["accuracy", "run_key", "trial"]])
    assert accuracies[0].equals(accuracies[1])


def test_rows_are_put_in_order_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(5)
    rows = draw.standard_normal((1000, 7)).astype(np.float32)
    (tmp_path / "rows").write_bytes(b"head" + rows.tobytes())
    stored, places = StoredRows(tmp_path / "rows", 4, rows.shape), draw.permutation(1000)
    signs = draw.choice(np.array([-1, 1], np.float32), 1000)
    monkeypatch.setattr("certified_unlearning.data.stored_rows._NUMBERS_AT_ONCE", 300)
    expected = np.empty_like(rows)
    expected[places] = rows * signs[:, None]
    moved = in_order(stored, places, tmp_path, factors=signs)
    np.testing.assert_array_equal(moved[0:1000], expected)
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_a_full_disk_is_named_before_anything_is_dealt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "rows").write_bytes(bytes(80))
    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(StorageError, match=r"cannot write 10 rows in another order to .*: No space left on device"):
        in_order(StoredRows(tmp_path / "rows", 0, (10, 2)), np.arange(10), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
