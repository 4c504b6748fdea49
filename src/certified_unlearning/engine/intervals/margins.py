"""Predictions that no parameters of a box can change; with lines of the last update, only parameters on them count."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.last_update import LastUpdate
from certified_unlearning.engine.intervals.losses import separate_differences
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.engine.intervals.propagation import TIGHTEST, Bounding, differences, forward, single_logit


class CertifiedLabels(NamedTuple):
    """What is certain about predictions of all parameters of a box; with lines, of those that satisfy the lines.

    Attributes:
        classes: Shape ``(runs, records)``: the class that all of them predict, if there is one; otherwise the class
            whose margin has the largest lower bound.
        certified: Whether all predict it; ties and non-finite values do not count.
        margins: Lower bounds of its logit minus any other one.
    """

    classes: Tensor
    certified: Tensor
    margins: Tensor


def margin_bounds(
    network: Network,
    box: Sequence[Interval],
    rows: Tensor,
    bounding: Bounding = TIGHTEST,
    *,
    joint: bool = True,
    last: LastUpdate | None = None,
) -> Interval:
    """Return bounds of all differences of logits, ``[..., i, j]`` of ``j`` minus ``i``.

    Args:
        network: The layers; one logit represents two classes, the first of which has logit 0.
        box: Parameters, each of shape ``(runs, ...)``.
        rows: Shape ``(runs or 1, records, ...)``.
        bounding: How bounds are computed.
        joint: Whether differences are bounded by differences of rows of weights, which is never looser with exact
            products; otherwise by the bounds of single logits.
        last: Lines of the last update that led to the box; None for none.

    Returns:
        Shape ``(runs, records, classes, classes)``.
    """
    bounding.rounding.require_precision(box[0].lower.dtype)
    seen = forward(network, box, rows, bounding)
    logits, rounding = seen.logits, bounding.rounding
    if network.outputs == 1:
        logits = single_logit(network, box, seen, bounding, last)
        logits = Interval(*(torch.cat([torch.zeros_like(end), end], dim=-1) for end in logits))
    if joint and network.outputs > 1:
        return differences(network, box, seen, bounding, last)
    return separate_differences(logits, rounding)


def certify(
    network: Network,
    box: Sequence[Interval],
    rows: Tensor,
    bounding: Bounding = TIGHTEST,
    *,
    joint: bool = True,
    last: LastUpdate | None = None,
) -> CertifiedLabels:
    """Return the class that all parameters of a box, or all that satisfy the lines, predict, and whether it exists.

    Arguments are those of `margin_bounds`.
    """
    apart = margin_bounds(network, box, rows, bounding, joint=joint, last=last)
    itself = torch.eye(apart.lower.shape[-1], dtype=torch.bool, device=apart.lower.device)
    least = apart.lower.masked_fill(itself, torch.inf).amin(dim=-2)
    finite = torch.isfinite(apart.lower).all(dim=(-1, -2)) & torch.isfinite(apart.upper).all(dim=(-1, -2))
    best = torch.where(torch.isnan(least), -torch.inf, least).max(dim=-1)
    return CertifiedLabels(best.indices, finite & (best.values > 0), best.values)


def possible(
    network: Network,
    box: Sequence[Interval],
    rows: Tensor,
    bounding: Bounding = TIGHTEST,
    *,
    last: LastUpdate | None = None,
) -> Tensor:
    """Return the classes that some parameters of a box, or some that satisfy the lines, may predict.

    A class that nothing excludes counts, and so does every class where bounds are not finite. Arguments are those of
    `margin_bounds`.

    Returns:
        Shape ``(runs, records, classes)``.
    """
    apart = margin_bounds(network, box, rows, bounding, last=last)
    # If logit j minus logit i is certainly below 0, j does not win.
    beaten = (apart.upper < 0).any(dim=-2)
    finite = torch.isfinite(apart.lower).all(dim=(-1, -2)) & torch.isfinite(apart.upper).all(dim=(-1, -2))
    return ~beaten | ~finite[..., None]
