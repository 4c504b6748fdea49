"""Where tensors live."""

import torch

from certified_unlearning.errors import ParameterError


def pick_device(name: str) -> torch.device:
    """Return the device that a name means: ``auto`` is CUDA where torch sees it.

    Raises:
        ParameterError: CUDA is asked for and there is none, or the name is another one.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise ParameterError(f"device must be auto, cpu or cuda, got {name!r}")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ParameterError("device is cuda, but torch sees no CUDA device; use cpu or auto")
    return torch.device("cuda" if available and name != "cpu" else "cpu")
