"""Bounds on the derivatives of losses with respect to the logits.

For cross-entropy, softmax is bounded in two ways: *tight* uses bounds on single logits, and *pairwise* uses bounds on
their differences. The source is Wicker et al., *Certificates of Differential Privacy and Unlearning for Gradient-Based
Training*, Appendix B. In the sum of a class's softmax, the class's own term is counted once here; the printed formula
counts it twice.
"""

import functools
import math
from typing import get_args

import torch
from torch import Tensor

from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.rounding import EXPONENTIAL, OUTWARD, Rounding
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.vocabulary import NetworkLoss

UNDERFLOWS = 800.0
"""The exponential of a number below ``-UNDERFLOWS`` is 0."""


def require_loss(loss: str, outputs: int) -> None:
    """Raise `ParameterError` if the loss does not fit the number of logits."""
    if loss not in get_args(NetworkLoss):
        raise ParameterError(f"loss must be one of {', '.join(get_args(NetworkLoss))}, got {loss!r}")
    if loss == "cross-entropy" and outputs < 2:
        raise ParameterError(f"cross-entropy needs at least 2 logits, got {outputs}; use binary-cross-entropy")
    if loss == "binary-cross-entropy" and outputs != 1:
        raise ParameterError(f"binary-cross-entropy needs 1 logit, got {outputs}; use cross-entropy")


def require_labels(labels: Tensor, loss: str, outputs: int) -> None:
    """Raise `DataError` if the labels do not suit the loss.

    Labels of the squared loss must be finite numbers. Labels of any other loss must be classes counted from 0.
    """
    if loss == "squared":
        if not bool(torch.isfinite(labels).all()):
            raise DataError("labels of the squared loss must be finite numbers")
        return
    classes = max(2, outputs)
    known = torch.isin(labels, torch.arange(classes, device=labels.device).to(labels.dtype))
    if not bool(known.all()):
        raise DataError(f"labels must be whole numbers from 0 to {classes - 1}, got {labels[~known][0].item()!r}")


def derivatives(logits: Tensor, labels: Tensor, loss: NetworkLoss) -> Tensor:
    """Return the derivatives of each record's loss with respect to its logits, as training computes them.

    Args:
        logits: Logits, shape ``(runs, records, outputs)``.
        labels: Labels, shape ``(records,)`` or ``(runs, records)``: classes counted from 0; 0 and 1 for binary
            cross-entropy; numbers for the squared loss ``(logit - y)^2``.
        loss: The loss.
    """
    if loss == "cross-entropy":
        shifted = (logits - logits.amax(dim=-1, keepdim=True)).exp()
        return shifted / shifted.sum(dim=-1, keepdim=True) - _one_hot(labels, logits)
    targets = _targets(labels, logits)
    return torch.sigmoid(logits) - targets if loss == "binary-cross-entropy" else 2 * (logits - targets)


def loss_bounds(
    logits: Interval,
    labels: Tensor,
    loss: NetworkLoss,
    *,
    pairs: Interval | None = None,
    rounding: Rounding = OUTWARD,
) -> Interval:
    """Return bounds on the result of `derivatives`.

    Args:
        logits: Bounds on the logits, shape ``(runs, records, outputs)``.
        labels: Labels, as for `derivatives`.
        loss: The loss.
        pairs: Bounds on the differences of all `pairs_of` logits, shape ``(runs, records, pairs)``. Cross-entropy uses
            these instead of the bounds on single logits.
        rounding: Rounding of the bounds.
    """
    if loss == "cross-entropy":
        shares, wanted = softmax_bounds(logits, pairs, rounding), _one_hot(labels, logits.lower)
        return _less_target(shares, wanted, rounding)
    targets = _targets(labels, logits.lower)
    if loss == "binary-cross-entropy":
        return _less_target(sigmoid_bounds(logits, rounding), targets, rounding)
    return Interval(
        2 * rounding.down(logits.lower - targets),
        2 * rounding.up(logits.upper - targets),
    )


def any_label_bounds(
    logits: Interval,
    loss: NetworkLoss,
    rounding: Rounding = OUTWARD,
    *,
    labels: Tensor | None = None,
    to: int | None = None,
    shift: float = 0.0,
) -> Interval:
    """Return bounds on the result of `derivatives`, both for changed and for unchanged labels.

    Args:
        logits: Bounds on the logits, shape ``(runs, records, outputs)``.
        loss: The loss.
        rounding: Rounding of the bounds.
        labels: The unchanged labels; needed with ``to`` and with the squared loss.
        to: The only class that labels can change to; None for any class.
        shift: Largest change of a label, if the loss is the squared loss.

    Raises:
        ParameterError: There is no class ``to``, the loss has no classes, ``labels`` is missing, or ``shift`` does not
            fit the loss.
    """
    if loss == "squared":
        if to is not None or not shift or labels is None:
            raise ParameterError(
                "with the squared loss, labels are numbers, so their changes need a limit: `shift` must be above 0, "
                "and `to`, which names a class, must not be given"
            )
        # The targets are rounded to the type of the logits, as in training.
        targets = _targets(labels, logits.lower)
        least, most = rounding.down(rounding.down(targets) - shift), rounding.up(rounding.up(targets) + shift)
        return Interval(2 * rounding.down(logits.lower - most), 2 * rounding.up(logits.upper - least))
    if shift:
        raise ParameterError(f"`shift` must be 0 for the loss {loss}, whose labels are classes, got {shift!r}")
    shares = softmax_bounds(logits, rounding=rounding) if loss == "cross-entropy" else sigmoid_bounds(logits, rounding)
    if to is None:
        return Interval(rounding.down(shares.lower - 1).clamp_min(-1), shares.upper)
    classes = max(2, logits.lower.shape[-1])
    if to >= classes or labels is None:
        raise ParameterError(f"`to` must be the number of a class, from 0 to {classes - 1}, got {to!r}")
    own, other = (
        _one_hot(each, logits.lower) if loss == "cross-entropy" else _targets(each, logits.lower)
        for each in (labels, torch.full_like(labels, to))
    )
    ends = [_less_target(shares, target, rounding) for target in (own, other)]
    return Interval(torch.minimum(ends[0].lower, ends[1].lower), torch.maximum(ends[0].upper, ends[1].upper))


def softmax_bounds(logits: Interval, pairs: Interval | None = None, rounding: Rounding = OUTWARD) -> Interval:
    """Return bounds on softmax.

    They are computed from ``pairs``, the bounds on the differences of all pairs of logits. If ``pairs`` is None, they
    are computed from the bounds on single logits. The share of class ``i`` is ``1 / sum_j exp(logit_j - logit_i)``. The
    term ``j = i`` of this sum is exactly 1.
    """
    classes, numbers = logits.lower.shape[-1], torch.finfo(logits.lower.dtype)
    apart = separate_pairs(logits, rounding) if pairs is None else pairs
    # Exponents are limited so that no exponential is infinite or 0: such an exponential would give NaN when multiplied
    # by 0 or used as divisor. For larger exponents, and for the limit itself, `lost` reduces the lower bound on the
    # share to 0. The reciprocal of the limit's exponential is above the smallest float of full precision.
    most = math.log(numbers.max) - 2
    terms = torch.cat([apart.upper, -apart.lower], dim=-1).clamp_(-most, most).exp_()
    one, other = _incidence(classes, logits.lower.dtype, logits.lower.device)
    lower = (terms @ one + 1).reciprocal()
    upper = (terms.reciprocal_() @ other + 1).reciprocal()
    if not rounding.is_outward:
        return Interval(lower, upper).ordered()
    # The error of exponents of that size, exponentials and sums. It includes the errors of training, which subtracts
    # the largest logit.
    widest = (logits.upper.amax(dim=-1, keepdim=True) - logits.lower.amin(dim=-1, keepdim=True)).clamp_max(UNDERFLOWS)
    off = 2 * numbers.eps * (widest + 4 * classes + 8 * EXPONENTIAL + 32)
    lost = classes * rounding.smallest(logits.lower.dtype)
    return Interval(
        (lower * (1 - off) - lost).clamp_min(0),
        (upper * (1 + off) + lost).clamp_max(1),
    )


@functools.cache
def _incidence(classes: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return two matrices that map differences of logits to classes.

    The first matrix maps each difference to the class whose logit is subtracted, and the second matrix maps it to the
    other class. The differences are those of all pairs of logits, followed by their negatives. The softmax of a class
    has one term for each difference in which the logit of this class is subtracted.
    """
    pairs = pairs_of(classes, device)
    one, other = (torch.nn.functional.one_hot(torch.cat(each), classes).to(dtype) for each in (pairs, pairs[::-1]))
    return one, other


@functools.cache
def pairs_of(classes: int, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Return the two classes of each pair; a pair's difference is the second's logit minus the first's."""
    first, second = torch.triu_indices(classes, classes, 1, device=device)
    return first, second


def separate_pairs(logits: Interval, rounding: Rounding = OUTWARD) -> Interval:
    """Return bounds on the differences of all pairs of logits, computed from the bounds on single logits."""
    first, second = pairs_of(logits.lower.shape[-1], logits.lower.device)
    return Interval(
        rounding.down(logits.lower[..., second] - logits.upper[..., first]),
        rounding.up(logits.upper[..., second] - logits.lower[..., first]),
    )


def separate_differences(logits: Interval, rounding: Rounding = OUTWARD) -> Interval:
    """Return bounds on all differences of logits: ``[..., i, j]`` is logit ``j`` minus logit ``i``.

    They are computed from the bounds on single logits.
    """
    return Interval(
        rounding.down(logits.lower[..., None, :] - logits.upper[..., :, None]),
        rounding.up(logits.upper[..., None, :] - logits.lower[..., :, None]),
    )


def sigmoid_bounds(logits: Interval, rounding: Rounding = OUTWARD) -> Interval:
    """Return bounds on the logistic function."""
    lower, upper = torch.sigmoid(logits.lower), torch.sigmoid(logits.upper)
    if not rounding.is_outward:
        return Interval(lower, upper)
    off = torch.finfo(lower.dtype).eps * (4 * EXPONENTIAL + 16)
    lost = rounding.smallest(lower.dtype)
    return Interval((lower * (1 - off) - lost).clamp_min(0), (upper * (1 + off) + lost).clamp_max(1))


def _less_target(shares: Interval, targets: Tensor, rounding: Rounding) -> Interval:
    """Return shares minus targets of 0 or 1.

    Shares are between 0 and 1, even after rounding, so the signs of the results are known.
    """
    return Interval(
        rounding.down(shares.lower - targets).clamp_min(-targets),
        rounding.up(shares.upper - targets).clamp_max(1 - targets),
    )


def _one_hot(labels: Tensor, like: Tensor) -> Tensor:
    classes = torch.arange(like.shape[-1], device=like.device)
    return (labels[..., None] == classes).to(like.dtype)


def _targets(labels: Tensor, like: Tensor) -> Tensor:
    return labels[..., None].to(like.dtype)
