"""Quality measures on test records, for the models of many trials.

Some of these measures show what accuracy hides if a class is rare. Balanced accuracy is the mean over classes of the
share of a class's records that are classified correctly. The AUC of a class is the probability that a record of this
class has a higher score than a record of another class; a tie counts as one half. With more than two classes, the
measure ``auc`` is the mean of all classes' AUCs. Log loss is the mean of ``-log p(right class)``.
"""

import torch
from torch import Tensor

MEASURES = ("accuracy", "balanced_accuracy", "auc", "log_loss")
SCORES_AT_ONCE = 1 << 24
"""Approximate number of scores that are in memory at once; in float64, they take 128 MB."""


def judged(weights: Tensor, features: Tensor, labels: Tensor, *, classes: int) -> Tensor:
    """Return the `MEASURES` of each trial's model.

    Args:
        weights: Weights, shape ``(trials, d)``. With more than two classes, ``d`` is ``classes * features``, class by
            class.
        features: Rows, shape ``(n_test, features)``.
        labels: Labels, shape ``(n_test,)``: -1 or +1 for two classes, and integers from 0 for more. Each class must
            have a record.
        classes: Number of classes.

    Returns:
        The measures, shape ``(trials, 4)``, float64.
    """
    at_once = max(1, SCORES_AT_ONCE // (len(labels) * classes))
    rate = _of_two if classes == 2 else _of_many
    return torch.cat([rate(some, features, labels, classes) for some in torch.split(weights, at_once)])


def _of_two(weights: Tensor, features: Tensor, labels: Tensor, classes: int) -> Tensor:
    scores, positive = torch.mm(weights, features.T), labels > 0
    # A score of exactly 0 counts as +1, as in `logistic.accuracy`.
    right = (scores >= 0) == positive
    shares = torch.stack([right[:, each].double().mean(dim=1) for each in (positive, ~positive)])
    losses = torch.nn.functional.softplus(-labels.double() * scores.double())
    return torch.stack(
        [right.double().mean(dim=1), shares.mean(dim=0), _auc(scores, positive), losses.mean(dim=1)], dim=1
    )


def _of_many(weights: Tensor, features: Tensor, labels: Tensor, classes: int) -> Tensor:
    by_class = weights.reshape(len(weights) * classes, -1)
    scores = torch.mm(by_class, features.T).view(len(weights), classes, -1)
    right = scores.max(dim=1).indices == labels
    members = [labels == each for each in range(classes)]
    shares = torch.stack([right[:, each].double().mean(dim=1) for each in members])
    areas = torch.stack([_auc(scores[:, each], members[each]) for each in range(classes)])
    logs = torch.log_softmax(scores.double(), dim=1)
    losses = -logs.gather(1, labels.long().expand(len(weights), 1, -1))[:, 0]
    return torch.stack([right.double().mean(dim=1), shares.mean(dim=0), areas.mean(dim=0), losses.mean(dim=1)], dim=1)


def _auc(scores: Tensor, members: Tensor) -> Tensor:
    """Return each trial's probability that a member's score is higher than a non-member's (Mann and Whitney)."""
    inside, outside = scores[:, members].contiguous(), scores[:, ~members].sort(dim=1).values
    below = torch.searchsorted(outside, inside, right=False)
    tied_or_below = torch.searchsorted(outside, inside, right=True)
    wins = (below + tied_or_below).double().sum(dim=1) / 2
    return wins / (inside.shape[1] * outside.shape[1])
