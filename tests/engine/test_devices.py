import pytest
import torch

from certified_unlearning.engine.devices import WORTH_A_THREAD, device_of_loaded, pick_device, threads_for
from certified_unlearning.errors import ParameterError


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(("numbers", "threads"), [(WORTH_A_THREAD - 1, 1), (WORTH_A_THREAD, 2)])
def test_small_steps_take_one_thread_and_then_all_come_back(numbers: int, threads: int) -> None:
    with threads_for(numbers):
        assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_threads_come_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), threads_for(1):
        raise ZeroDivisionError
    assert torch.get_num_threads() == 2


def test_a_device_that_is_not_there_or_unknown_is_refused() -> None:
    with pytest.raises(ParameterError, match="device must be auto, cpu or cuda, got 'tpu'"):
        pick_device("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(ParameterError, match="torch sees no CUDA device"):
            pick_device("cuda")
        assert pick_device("auto") == torch.device("cpu")


def test_the_state_of_a_model_from_a_machine_with_a_gpu_is_put_on_the_cpu_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for there, device in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert device_of_loaded("cuda") == device_of_loaded("auto") == torch.device(device)
        assert device_of_loaded("cpu") == torch.device("cpu")
    with pytest.raises(ParameterError, match="got 'tpu'"):
        device_of_loaded("tpu")
