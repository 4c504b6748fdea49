"""Exact laws: an experiment is run once for every way in which its draws can fall, and fractions are added."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import combinations
from typing import TypeVar

import torch
from torch import Tensor

Outcome = TypeVar("Outcome", bound=Hashable)


class ScriptedDraws:
    """Draws that follow a script and then always fall the first way; it notes what else could have been.

    Uniform numbers are told apart by the cuts only: their exact values must not matter otherwise. A row of them, such
    as decides on reflections, is 1/2: without noise it decides nothing.
    """

    device = torch.device("cpu")

    def __init__(self, script: tuple[int, ...], cuts: tuple[Fraction, ...]) -> None:
        self._script, self._taken = script, list[int]()
        self._ends = sorted({Fraction(0), *cuts, Fraction(1)})
        self.probability, self.others = Fraction(1), list[tuple[int, ...]]()

    def _choose(self, weights: list[Fraction]) -> int:
        place = len(self._taken)
        chosen = self._script[place] if place < len(self._script) else 0
        if place >= len(self._script):
            self.others += [(*self._taken, other) for other in range(1, len(weights))]
        self._taken.append(chosen)
        self.probability *= weights[chosen]
        return chosen

    def _uniformly(self, options: int) -> int:
        return self._choose([Fraction(1, options)] * options)

    def integers(self, below: int, *shape: int) -> Tensor:
        return torch.tensor([self._uniformly(below) for _ in range(math.prod(shape))]).reshape(shape).long()

    def uniform(self, *shape: int) -> Tensor:
        if len(shape) == 1:
            return torch.full(shape, 0.5, dtype=torch.float64)
        low, high = self._ends[:-1], self._ends[1:]
        widths = [end - start for start, end in zip(low, high, strict=True)]
        middles = [float(start + end) / 2 for start, end in zip(low, high, strict=True)]
        drawn = [middles[self._choose(widths)] for _ in range(math.prod(shape))]
        return torch.tensor(drawn, dtype=torch.float64).reshape(shape)

    def normal(self, *shape: int) -> Tensor:
        """Nothing: only descent without noise is enumerated."""
        return torch.zeros(shape, dtype=torch.float64)

    def subsets(self, members: Tensor, size: int, *shape: int) -> Tensor:
        options = list(combinations(members.tolist(), size))
        drawn = [options[self._uniformly(len(options))] for _ in range(math.prod(shape))]
        return torch.tensor(drawn).reshape(*shape, size).long()


def law(experiment: Callable[[ScriptedDraws], Outcome], *cuts: Fraction) -> dict[Outcome, Fraction]:
    """The exact law of what an experiment returns."""
    found: dict[Outcome, Fraction] = defaultdict(Fraction)
    todo: list[tuple[int, ...]] = [()]
    while todo:
        draws = ScriptedDraws(todo.pop(), cuts)
        outcome = experiment(draws)
        found[outcome] += draws.probability
        todo += draws.others
    assert sum(found.values()) == 1
    return dict(found)


def uniform_law(outcomes: list[Outcome]) -> dict[Outcome, Fraction]:
    return dict.fromkeys(outcomes, Fraction(1, len(outcomes)))
