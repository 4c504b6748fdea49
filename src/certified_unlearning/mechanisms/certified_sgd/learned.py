"""A trained network with its boxes, and the predictions that no neighbouring data set would change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from certified_unlearning.engine.abstract_training.descent import Parameters, logits
from certified_unlearning.engine.abstract_training.training import Box
from certified_unlearning.engine.intervals.interval import Interval, IntervalError
from certified_unlearning.engine.intervals.last_update import NAMES, LastUpdate
from certified_unlearning.engine.intervals.margins import certify, possible
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.engine.intervals.propagation import Bounding
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.vocabulary import Differences

ROWS_AT_ONCE = 4096
"""Number of records whose predictions are certified together."""
LINES = "last/"
"""Prefix of the names of the tensors that describe lines of the last update."""


@dataclass(frozen=True)
class Learned:
    """A trained network and its boxes.

    Attributes:
        network: The layers.
        bounding: How bounds are computed.
        parameters: The parameters, each of shape ``(1, ...)``.
        box: Nested boxes, one for each budget. The bounds of every parameter have shape ``(budgets, ...)``.
        budgets: Budget of each box, in ascending order.
        smallest_batch: Number of records in the smallest batch.
        last: Lines of the last update; None if there are no lines. The lines cannot be computed from the boxes.
    """

    network: Network
    bounding: Bounding
    parameters: Parameters
    box: Box
    budgets: tuple[int, ...]
    smallest_batch: int
    last: LastUpdate | None = None

    @classmethod
    def of(
        cls,
        tensors: Mapping[str, Tensor],
        network: Network,
        bounding: Bounding,
        *,
        budgets: Sequence[int],
        smallest_batch: int,
    ) -> Self:
        """Return the network from the tensors that `tensors` returned.

        Args:
            tensors: The tensors by name, such as from a file.
            network: The layers.
            bounding: Method of computing bounds. Lines of the last update are used only if this method requests them
                and they exist.
            budgets: Budget of each box.
            smallest_batch: Number of records in the smallest batch.

        Raises:
            DataError: A tensor is missing, contains an invalid bound, or does not match the others.
        """
        places = range(len(network.shapes))
        needed = [f"{name}/{place}" for name in ("parameters", "lower", "upper") for place in places]
        missing = next((name for name in needed if name not in tensors), None)
        if missing is not None:
            raise DataError(f"{missing} is missing")
        parameters, lower, upper = (
            network.checked([tensors[f"{name}/{place}"] for place in places])
            for name in ("parameters", "lower", "upper")
        )
        if len(parameters[0]) != 1 or len(lower[0]) != len(budgets) or len(upper[0]) != len(budgets):
            raise DataError(
                f"there must be one model and {len(budgets)} boxes, got {len(parameters[0])} models, {len(lower[0])} "
                f"lower ends of boxes and {len(upper[0])} upper ends"
            )
        try:
            box = tuple(Interval(*ends).checked("parameters") for ends in zip(lower, upper, strict=True))
        except IntervalError as error:
            raise DataError(
                "bounds of parameters must be finite, and no lower bound may exceed its upper bound"
            ) from error
        for each, values in zip(box, parameters, strict=True):
            if not bool(each.holds(values).all()):
                raise DataError("parameters lie outside their box")
            if not bool((each.lower[1:] <= each.lower[:-1]).all() and (each.upper[:-1] <= each.upper[1:]).all()):
                raise DataError("boxes are not nested: a larger budget must have a larger box")
        lines = {name: tensors[LINES + name] for name in NAMES if LINES + name in tensors}
        updated = bounding.differences == "updated" and bool(lines)
        last = LastUpdate.of(lines, parameters, len(budgets)) if updated else None
        return cls(network, bounding, parameters, box, tuple(budgets), smallest_batch, last)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The parameters, the boxes and any lines of the last update, as a mapping from their names in a file."""
        found: dict[str, Tensor] = {}
        for place, (values, box) in enumerate(zip(self.parameters, self.box, strict=True)):
            found |= {f"parameters/{place}": values, f"lower/{place}": box.lower, f"upper/{place}": box.upper}
        if self._lines is not None:
            found |= {LINES + name: each for name, each in self._lines.tensors.items()}
        return found

    @property
    def differences(self) -> Differences:
        """Method of bounding differences of logits.

        The value is the method in ``bounding``, except if that method needs lines of the last update and there are
        none. Then the value is ``relaxed``.
        """
        differences = self.bounding.differences
        return "relaxed" if differences == "updated" and self.last is None else differences

    @property
    def draws_lines(self) -> bool:
        """Whether predictions are certified by lines. With lines, a larger box may have narrower bounds."""
        return self.differences == "updated" or self.bounding.draws_lines(self.network)

    @property
    def _lines(self) -> LastUpdate | None:
        return self.last if self.differences == "updated" else None

    def logits(self, rows: Tensor) -> Tensor:
        """Return the logits of records, shape ``(records, outputs)``."""
        return logits(self.network, self.parameters, rows[None])[0]

    def classes(self, rows: Tensor) -> Tensor:
        """Return the classes that the parameters predict, shape ``(records,)``."""
        scores = self.logits(rows)
        return (scores[:, 0] > 0).long() if scores.shape[1] == 1 else scores.argmax(dim=1)

    def certified(self, rows: Tensor) -> Tensor:
        """Return a mask of the predictions that are the same for all neighbours within a budget.

        The shape of the mask is ``(budgets, records)``.

        A prediction is certified if it is the same for all parameters of the budget's box, or for all parameters of the
        box that satisfy the lines of the last update. A prediction that is certified for a budget is also certified for
        all smaller budgets, because these have fewer neighbours.
        """
        if not len(rows):
            return torch.zeros(len(self.budgets), 0, dtype=torch.bool, device=rows.device)
        found = []
        for piece in _pieces(rows):
            one = certify(self.network, self.box, piece[None], self.bounding, last=self._lines)
            # The box and the lines contain the parameters, so a common prediction is their prediction.
            found.append(one.certified & (one.classes == self.classes(piece)))
        sure = torch.cat(found, dim=1)
        if not self.draws_lines:
            return sure  # Without lines, bounds of a larger box are not narrower.
        return sure.flip(0).long().cummax(dim=0).values.flip(0).bool()

    def certified_at(self, rows: Tensor, k: int) -> Tensor:
        """Return a mask of the predictions that are certified for ``k`` changes.

        The mask is the result of `certified_by` for the smallest budget that covers ``k``.

        Raises:
            ParameterError: No budget covers ``k``.
        """
        return self.certified_by(self.budget_for(k), rows)

    def certified_by(self, run: int, rows: Tensor) -> Tensor:
        """Return a mask of the predictions that are certified for budget number ``run``.

        If predictions are certified by lines, larger boxes are tried, too: they may certify further predictions.
        """
        end = len(self.budgets) if self.draws_lines else run + 1
        box = tuple(Interval(each.lower[run:end], each.upper[run:end]) for each in self.box)
        last = None if self.last is None else self.last.of_runs(slice(run, end))
        return replace(self, box=box, budgets=self.budgets[run:end], last=last).certified(rows)[0]

    def budget_for(self, k: int) -> int:
        """Return the place of the smallest budget that covers ``k``.

        Raises:
            ParameterError: No budget covers ``k``.
        """
        for run, budget in enumerate(self.budgets):
            if k <= budget:
                return run
        raise ParameterError(f"k must be at most the largest budget, {self.budgets[-1]}, got {k}")

    def radii(self, rows: Tensor) -> Tensor:
        """Return the largest budget that certifies each prediction, by bisection over nested boxes; 0 if none does."""
        low = torch.full((len(rows),), -1, device=rows.device)
        high = torch.full_like(low, len(self.budgets))
        while bool((high - low > 1).any()):
            middle = (low + high) // 2
            for run in _distinct(middle[high - low > 1]):
                asked = (middle == run) & (high - low > 1)
                sure = self.certified_by(run, rows[asked])
                low[asked] = torch.where(sure, run, low[asked])
                high[asked] = torch.where(sure, high[asked], run)
        return torch.tensor((0, *self.budgets), device=rows.device)[low + 1]

    def accuracy_bounds(self, rows: Tensor, labels: Tensor) -> list[tuple[float, float]]:
        """Return bounds on the share of right predictions for each budget.

        The bounds are valid for all neighbours within the budget.
        """
        sure = self.certified(rows) & (self.classes(rows) == labels)
        may = torch.cat(
            [possible(self.network, self.box, piece[None], self.bounding, last=self._lines) for piece in _pieces(rows)],
            dim=1,
        )
        right = may.gather(2, labels.expand(len(self.budgets), -1)[..., None])[..., 0]
        return [
            (low, high)
            for low, high in zip(sure.double().mean(dim=1).tolist(), right.double().mean(dim=1).tolist(), strict=True)
        ]


def _pieces(rows: Tensor) -> list[Tensor]:
    return [rows[start : start + ROWS_AT_ONCE] for start in range(0, len(rows), ROWS_AT_ONCE)]


def _distinct(values: Tensor) -> list[int]:
    return sorted({*values.tolist()})
