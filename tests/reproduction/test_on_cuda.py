"""The jobs of the pipeline on a GPU that is not there (`tests.support.fake_cuda`)."""

import pandas as pd
import pytest

from tests.reproduction.test_jobs import plan, run_all
from tests.support.fake_cuda import as_a_gpu_draws, fake_cuda

pytestmark = pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")  # By safetensors.
OF_THE_DEVICE = ["device", "seconds", "code_version"]
FEW = {"trials": 2, "dtype": "float64", "regularisation": 1e-2}
Tables = tuple[pd.DataFrame, pd.DataFrame]


def assert_same_rows(on_gpu: Tables, on_cpu: Tables, *, device: str, rtol: float) -> None:
    """Compare the tables that jobs wrote on both devices; all steps of the first must be of a device of this name."""
    by_steps = on_gpu[0]["mechanism"] != "scikit-learn"
    assert set(on_gpu[0]["device"][by_steps]) == {device}
    for one, other in zip(on_gpu, on_cpu, strict=True):
        columns = [each for each in OF_THE_DEVICE if each in one]
        pd.testing.assert_frame_equal(one.drop(columns=columns), other.drop(columns=columns), rtol=rtol)


@pytest.mark.parametrize("experiment", ["fig3c", "batch_sizes"])
@pytest.mark.parametrize("classes", [2, 3])
def test_jobs_on_a_gpu_write_the_rows_of_those_on_the_cpu(
    experiment: str, classes: int, small_data, three_classes, tmp_path
) -> None:
    data = small_data if classes == 2 else three_classes
    with fake_cuda():
        found = run_all(plan(data, experiment, **FEW, device="cuda"), data, tmp_path / "cuda")
    with as_a_gpu_draws():
        expected = run_all(plan(data, experiment, **FEW, device="cpu"), data, tmp_path / "cpu")
    assert_same_rows(found, expected, device="cuda:0", rtol=1e-9)
