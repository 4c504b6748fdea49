"""Where tensors live, and by how many threads they are worked on."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from certified_unlearning.errors import ParameterError


def pick_device(name: str) -> torch.device:
    """Return the device that a name means: ``auto`` is CUDA where torch sees it.

    Raises:
        ParameterError: CUDA is asked for and there is none, or the name is another one.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise ParameterError(f"device must be auto, cpu or cuda, got {name!r}")
    available = name != "cpu" and torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ParameterError("device is cuda, but torch sees no CUDA device; use cpu or auto")
    return torch.device("cuda" if available else "cpu")


def device_of_loaded(name: str) -> torch.device:
    """Return where the state of a model is put that comes from a file: on its device, or the CPU where that is missing.

    Raises:
        ParameterError: The name is no device's.
    """
    return pick_device("auto" if name == "cuda" else name)


WORTH_A_THREAD = 250_000
"""Numbers that a step must handle before a second thread pays."""


@contextmanager
def threads_for(numbers: int) -> Iterator[None]:
    """Work with a single thread while steps handle few numbers.

    To wait for a second one takes longer than the work: 45 times as long was measured on cores that others used too.
    """
    if numbers >= WORTH_A_THREAD or torch.get_num_threads() == 1:
        yield
        return
    with one_thread():
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Work with a single thread."""
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
