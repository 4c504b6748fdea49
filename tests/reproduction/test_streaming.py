"""Jobs whose training rows stay on disk end with the same bits."""

from pathlib import Path

import pytest

from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.data.stored_rows import StoredRows
from certified_unlearning.mechanisms.langevin import LANGEVIN
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
