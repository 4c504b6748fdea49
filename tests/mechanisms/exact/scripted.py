"""Draws that return what they were given, in the order in which they are asked for."""

from collections import defaultdict

import torch
from torch import Tensor


class Scripted:
    """Each kind of draw has a list of numbers; it is an error to ask for another shape, or for more than there is."""

    device = torch.device("cpu")

    def __init__(self, **script: list[object]) -> None:
        self._script = defaultdict(list, {kind: list(numbers) for kind, numbers in script.items()})

    def _next(self, kind: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        numbers = torch.tensor(self._script[kind].pop(0), dtype=dtype)
        assert numbers.shape == shape, f"{kind} was asked for {shape}"
        return numbers

    def normal(self, *shape: int) -> Tensor:
        return self._next("normal", shape, torch.float64)

    def uniform(self, *shape: int) -> Tensor:
        return self._next("uniform", shape, torch.float64)

    def integers(self, below: int, *shape: int) -> Tensor:
        numbers = self._next("integers", shape, torch.int64)
        assert bool((numbers < below).all())
        return numbers

    def subsets(self, members: Tensor, size: int, *shape: int) -> Tensor:
        chosen = self._next("subsets", (*shape, size), torch.int64)
        assert bool(torch.isin(chosen, members).all())
        return chosen

    def is_used_up(self) -> bool:
        return not any(self._script.values())
