"""The devices of tensors, and the number of threads."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from certified_unlearning.errors import ParameterError


def pick_device(name: str) -> torch.device:
    """Return the device of this name; ``auto`` is CUDA if PyTorch finds a CUDA device.

    Raises:
        ParameterError: CUDA is requested but missing, or the name is unknown.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise ParameterError(f"device must be auto, cpu or cuda, got {name!r}")
    available = name != "cpu" and torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ParameterError("device is cuda, but torch sees no CUDA device; use cpu or auto")
    return torch.device("cuda" if available else "cpu")


def device_of_loaded(name: str) -> torch.device:
    """Return the device for a model that was loaded from a file: its own device, or the CPU if that device is missing.

    Raises:
        ParameterError: There is no device of this name.
    """
    return pick_device("auto" if name == "cuda" else name)


WORTH_A_THREAD = 250_000
"""Number of values per step above which a second thread is worthwhile."""


@contextmanager
def threads_for(numbers: int) -> Iterator[None]:
    """Use a single thread within the block if a step processes few numbers.

    If a step processes few numbers, waiting for a second thread takes longer than the work itself. On shared cores, it
    took up to 45 times as long.
    """
    if numbers >= WORTH_A_THREAD or torch.get_num_threads() == 1:
        yield
        return
    with one_thread():
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Use a single thread."""
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
