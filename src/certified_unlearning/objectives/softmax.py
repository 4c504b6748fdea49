"""l2-regularised softmax regression: one gradient step for all trials is two matrix products, block by block of rows.

A trial's weights are one vector of ``classes * d`` numbers, class after class: weights ``(trials, classes * d)`` are,
without a copy, the matrix ``(trials * classes, d)`` that both products need. Noise, projection, publication and
checkpoints see vectors and need not know of classes.
"""

import math

import torch
from torch import Tensor

from certified_unlearning.errors import AssumptionError, DataError

NORM_TOLERANCE = 1e-6
"""How far a row may be longer than ``lipschitz`` allows: the rounding of float32 stays below."""


class SoftmaxObjective:
    """``f(W) = (1/n) sum_i CE(W x_i, y_i) + (strong_convexity / 2) ||W||^2``, ``W`` of shape ``(classes, d)``.

    With ``CE(s, y) = log(sum_c exp(s_c)) - s_y`` a record's data-loss gradient is ``(softmax(W x) - onehot(y)) x'``,
    of norm at most ``sqrt(2) ||x||``. Clipping it would cost convexity wherever it bites, because a clipped softmax
    gradient is not monotone; so nothing is clipped, and a ``lipschitz`` at which clipping would bite is refused.
    Removed records are replaced in place, hence the normaliser ``1/n`` never changes.

    The onehot part of the gradient does not depend on ``W``: ``sum_i onehot(y_i) x_i'`` is computed once for each data
    set. Scores exist for one block of rows at a time, which is also what keeps them in the processor's cache: all of
    them would be 200 MB for 100 trials, 50 000 records and 10 classes.

    Attributes:
        n: Number of records.
        d: Number of weights of a trial, ``classes`` times the number of features.

    Args:
        features: Rows ``x_i``, shape ``(n, features)``.
        labels: Integers from 0 to ``classes - 1``, shape ``(n,)``.
        classes: Number of classes.
        strong_convexity: The l2 coefficient lambda.
        lipschitz: ``M``, the bound on every record's data-loss gradient.
        replacements: What removed records become: their indices ``(s,)``, features ``(s, features)``, labels ``(s,)``.
        rows_at_once: Rows in a block; by default 1024 on the CPU, where more or fewer were measured no faster, and
            65 536 on CUDA, where small products leave the device idle.

    Raises:
        AssumptionError: ``lipschitz`` is below ``sqrt(2)`` times the norm of the longest row.
        DataError: A label is no integer from 0 to ``classes - 1``.
    """

    def __init__(
        self,
        features: Tensor,
        labels: Tensor,
        *,
        classes: int,
        strong_convexity: float,
        lipschitz: float,
        replacements: tuple[Tensor, Tensor, Tensor] | None = None,
        rows_at_once: int | None = None,
    ) -> None:
        self.strong_convexity = strong_convexity
        self._classes = classes
        self._rows = features.clone()
        self._labels = _checked_labels(labels, classes)
        self.n = features.shape[0]
        self.d = classes * features.shape[1]
        if replacements is None:
            replacements = (labels.new_empty(0, dtype=torch.int64), features[:0], labels[:0])
        indices, new_features, new_labels = replacements
        _check_lipschitz(lipschitz, features, new_features)
        self._indices = indices.to(features.device)
        self._replacements = new_features, _checked_labels(new_labels, classes)
        self._originals = self._rows[self._indices], self._labels[self._indices]
        self._rows_at_once = rows_at_once or (65_536 if features.is_cuda else 1024)
        self._scores = features.new_empty(0)
        self._gradient = features.new_empty(0)
        self.remove(0)

    def remove(self, count: int) -> None:
        """Make this the objective on the data with the first ``count`` replacements carried out."""
        for current, replaced, original in zip(
            (self._rows, self._labels), self._replacements, self._originals, strict=True
        ):
            current[self._indices] = torch.cat([replaced[:count], original[count:]])
        onehot = torch.nn.functional.one_hot(self._labels, self._classes).to(self._rows)
        self._class_sums = onehot.T @ self._rows

    def descend(self, weights: Tensor, step_size: float) -> None:
        """Replace ``weights`` (trials, classes * features) by ``weights - step_size * gradient``, in place."""
        trials = weights.shape[0]
        if self._gradient.shape[0] < trials:
            self._gradient = weights.new_empty(trials, *self._class_sums.shape)
            self._scores = weights.new_empty(trials * self._classes * min(self._rows_at_once, self.n))
        gradient = torch.neg(self._class_sums.expand(trials, -1, -1), out=self._gradient[:trials]).flatten(0, 1)
        by_class = weights.view(gradient.shape)
        for rows in torch.split(self._rows, self._rows_at_once):
            scores = self._scores[: len(by_class) * len(rows)].view(len(by_class), len(rows))
            torch.mm(by_class, rows.T, out=scores)
            _softmax_(scores.view(trials, self._classes, len(rows)))
            gradient.addmm_(scores, rows)
        by_class.mul_(1 - step_size * self.strong_convexity).add_(gradient, alpha=-step_size / self.n)


def accuracy(weights: Tensor, features: Tensor, labels: Tensor) -> Tensor:
    """Return the share of records that each trial classifies rightly.

    Args:
        weights: Shape ``(trials, classes * features)``, class after class.
        features: Shape ``(n_test, features)``.
        labels: Integers from 0, shape ``(n_test,)``.

    Returns:
        Shape ``(trials,)``, float64. Of equal scores the first class counts.
    """
    trials = weights.shape[0]
    by_class = weights.reshape(-1, features.shape[1])
    right = torch.zeros(trials, dtype=torch.float64, device=weights.device)
    for rows, expected in zip(torch.split(features, 1024), torch.split(labels, 1024), strict=True):
        # argmax gives the same indices, but took two and a half times as long.
        predicted = torch.mm(by_class, rows.T).view(trials, -1, len(rows)).max(dim=1).indices
        right += (predicted == expected).sum(dim=1)
    return right / len(labels)


def _softmax_(scores: Tensor) -> None:
    """Replace ``scores`` (trials, classes, rows) by their softmax over the classes, in place."""
    # Without the largest score no exponential overflows, and each sum is at least 1.
    scores.sub_(scores.amax(dim=1, keepdim=True)).exp_()
    scores.div_(scores.sum(dim=1, keepdim=True))


def _checked_labels(labels: Tensor, classes: int) -> Tensor:
    wrong = (labels < 0) | (labels >= classes) | (labels != labels.long())
    if bool(wrong.any()):
        record = int(wrong.nonzero()[0])
        raise DataError(
            f"the label of record {record} is {labels[record]}, expected an integer from 0 to {classes - 1}"
        )
    return labels.long().clone()


def _check_lipschitz(lipschitz: float, *features: Tensor) -> None:
    longest = max(float(torch.linalg.vector_norm(rows, dim=1).max()) for rows in features if len(rows))
    if not lipschitz * (1 + NORM_TOLERANCE) >= math.sqrt(2) * longest:
        raise AssumptionError(
            f"lipschitz is {lipschitz!r}, but the softmax gradient of a record of norm {longest:.7g} has norm up to "
            f"sqrt(2) times that: lipschitz must be at least {math.sqrt(2) * longest:.7g} "
            f"(a clipped softmax gradient is not monotone, so no theorem would hold)"
        )
