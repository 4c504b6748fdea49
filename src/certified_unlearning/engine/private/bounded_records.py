"""Records with enforced bounds, and a linear model's mean gradients and losses for many trials at once.

Nothing is estimated from the records: each row that is too long is scaled down to the bound, independently of all
others, and each target is clipped to its range. So the largest effect of one record is known before any record is read.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from certified_unlearning.accounting.private.losses import ScalarLoss
from certified_unlearning.errors import DataError, ParameterError

NUMBERS_AT_ONCE = 1 << 20
"""Number of scores that are in memory at once, over all trials."""


class BoundedRecords:
    """Rows of norm at most ``row_norm``, and targets of absolute value at most ``loss.target``, in float64."""

    def __init__(self, rows: Tensor, targets: Tensor, *, loss: ScalarLoss, row_norm: float) -> None:
        """Store the records, after enforcing their bounds.

        Args:
            rows: Rows, shape ``(n, features)``, of a floating type.
            targets: Targets, shape ``(n,)``; -1 and 1 for the logistic loss.
            loss: Loss of a score and a target.
            row_norm: Largest norm of a row, ``X``.

        Raises:
            ParameterError: The shapes do not fit together.
            DataError: A number is not finite, or a label of the logistic loss is neither -1 nor 1.
        """
        if rows.ndim != 2 or targets.shape != rows.shape[:1] or not rows.numel():
            raise ParameterError(
                "rows must have shape (n, features) and targets must have shape (n,), got shapes "
                f"{tuple(rows.shape)} and {tuple(targets.shape)}"
            )
        rows, targets = rows.to(torch.float64), targets.to(torch.float64)
        if not bool(torch.isfinite(rows).all()) or not bool(torch.isfinite(targets).all()):
            raise DataError("rows and targets must be finite numbers")
        if loss.name == "logistic" and not bool((targets.abs() == 1).all()):
            raise DataError("labels of the logistic loss must be -1 or 1")
        self.loss, self.row_norm = loss, row_norm
        self.rows = shortened(rows, row_norm)
        self.targets = targets.clamp(-loss.target, loss.target)
        self._squares: tuple[Tensor, Tensor] | None = None
        self._folded: Tensor | None = None

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.rows)

    @property
    def features(self) -> int:
        """Number of columns of the rows."""
        return int(self.rows.shape[1])

    def part(self, start: int, stop: int) -> "BoundedRecords":
        """Return the records from ``start`` to ``stop``; their bounds are already enforced."""
        some = object.__new__(BoundedRecords)
        some.loss, some.row_norm = self.loss, self.row_norm
        some.rows, some.targets = self.rows[start:stop], self.targets[start:stop]
        some._squares, some._folded = None, None
        return some

    def mean_gradients(self, weights: Tensor) -> Tensor:
        """Return the mean of the records' gradients, shape ``(trials, features)``.

        Args:
            weights: Weights, shape ``(trials, features)``, float64.
        """
        if self.loss.name == "squared" and self.features < len(self):
            squares, moments = self._moments()
            return (weights @ squares - moments).mul_(2)
        total = torch.zeros_like(weights)
        if self.loss.name == "logistic":
            for rows in self._folded_rows().split(self._at_once(len(weights))):  # type: ignore[no-untyped-call]
                total += (weights @ rows.T).sigmoid_() @ rows
            return total.div_(len(self))
        for rows, targets in self._blocks(len(weights)):
            total += self._slopes(weights @ rows.T, targets) @ rows
        return total.div_(len(self))

    def clipped_sums(self, weights: Tensor, members: Sequence[Tensor], clip: float) -> Tensor:
        """Return the sum of the gradients of some records, each clipped to a norm, shape ``(trials, features)``.

        Args:
            weights: Weights, shape ``(trials, features)``, float64.
            members: Positions of the records of each trial, each of shape ``(members,)``; a trial may have no records.
            clip: Largest norm of a clipped gradient.
        """
        sums = torch.zeros_like(weights)
        for trial, positions in enumerate(members):
            rows = self.rows[positions]
            slopes = self._slopes(rows @ weights[trial], self.targets[positions])
            norms = slopes.abs() * torch.linalg.vector_norm(rows, dim=1)
            sums[trial] = (slopes * (clip / norms.clamp_(min=clip))) @ rows
        return sums

    def mean_losses(self, weights: Tensor, largest: float) -> Tensor:
        """Return the mean of the records' losses, shape ``(trials,)``; ``largest`` replaces all losses above it."""
        total = weights.new_zeros(len(weights))
        for rows, targets in self._blocks(len(weights)):
            total += self._values(weights @ rows.T, targets).clamp_(max=largest).sum(dim=1)
        return total.div_(len(self))

    def _moments(self) -> tuple[Tensor, Tensor]:
        """Return ``X'X / n`` and ``X'y / n``, from which the gradients of the squared loss are computed."""
        if self._squares is None:
            self._squares = self.rows.T @ self.rows / len(self), self.targets @ self.rows / len(self)
        return self._squares

    def _folded_rows(self) -> Tensor:
        """Return ``-y x``: a logistic gradient is this row times the sigmoid of its score.

        Changing the sign of a number changes none of its other bits.
        """
        if self._folded is None:
            self._folded = self.rows * -self.targets[:, None]
        return self._folded

    def _at_once(self, trials: int) -> int:
        """Return the number of rows that are processed together."""
        return max(256, NUMBERS_AT_ONCE // trials)

    def _blocks(self, trials: int) -> "list[tuple[Tensor, Tensor]]":
        at_once = self._at_once(trials)
        starts = range(0, len(self), at_once)
        return [(self.rows[start : start + at_once], self.targets[start : start + at_once]) for start in starts]

    def _slopes(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Return the derivatives of losses with respect to their scores."""
        name, width = self.loss.name, self.loss.width or 1.0
        if name == "squared":
            return scores.sub_(targets).mul_(2)
        if name == "absolute":
            return scores.sub_(targets).div_(width).clamp_(-1, 1)
        if name == "huber":
            return scores.sub_(targets).clamp_(-width, width)
        if name == "logistic":
            return torch.sigmoid(scores.mul_(-targets)).mul_(-targets)
        bent = torch.tanh(scores)
        return (bent - targets).mul_(2).mul_(1 - bent * bent)

    def _values(self, scores: Tensor, targets: Tensor) -> Tensor:
        name, width = self.loss.name, self.loss.width or 1.0
        if name == "squared":
            return scores.sub_(targets).square_()
        if name == "logistic":
            return torch.nn.functional.softplus(scores.mul_(-targets), threshold=40)
        if name == "tanh":
            return scores.tanh_().sub_(targets).square_()
        off = scores.sub_(targets).abs_()
        parabola, line = off.square() / 2, width * (off - width / 2)
        huber = torch.where(off <= width, parabola, line)
        return huber / width if name == "absolute" else huber


def shortened(rows: Tensor, row_norm: float) -> Tensor:
    """Return the rows after scaling down those that are longer than ``row_norm``; other rows are unchanged."""
    # Rows are divided by their largest value first, because squares of very large numbers overflow, and those of very
    # small ones are 0.
    largest = rows.abs().amax(dim=1, keepdim=True).clamp_(min=min(1.0, row_norm))
    norms = torch.linalg.vector_norm(rows / largest, dim=1, keepdim=True)
    longer = norms > row_norm / largest
    return torch.where(longer, rows / largest / norms * row_norm, rows)
