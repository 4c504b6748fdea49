"""Predictions that are the same for all parameters in a box.

If bounds on the last update are given, parameters that do not satisfy these bounds are ignored.
"""

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
    """Statements that certainly hold for the predictions of all parameters in a box.

    With bounds on the last update, the statements are about the parameters that satisfy these bounds.

    Attributes:
        classes: Class that all parameters in the box predict, if there is one, shape ``(runs, records)``. Otherwise,
            the class whose margin has the largest lower bound.
        certified: Whether all parameters in the box predict the class in ``classes``; False if there may be ties or
            non-finite values.
        margins: Lower bound on the difference between the logit of the class in ``classes`` and the largest other
            logit.
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
    """Return bounds on all differences of logits: ``[..., i, j]`` is logit ``j`` minus logit ``i``.

    Args:
        network: The network. A network with one logit has two classes, and the first class has logit 0.
        box: Parameters, each of shape ``(runs, ...)``.
        rows: Inputs of the records, shape ``(runs or 1, records, ...)``.
        bounding: Method that computes bounds.
        joint: Whether bounds on differences of logits are computed from differences of rows of weights. Otherwise, they
            are computed from bounds on single logits. With exact products, the bounds from differences of rows are
            never wider than the bounds from single logits.
        last: Bounds on the last update, which led to the box; None if there are no such bounds.

    Returns:
        The bounds, shape ``(runs, records, classes, classes)``.
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
    """Return the class that all parameters of a box predict, and whether there is one.

    If ``last`` is given, parameters that do not satisfy the bounds in ``last`` are ignored.

    The arguments are those of `margin_bounds`.
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
    """Return the classes that some parameters of a box may predict.

    If ``last`` is given, parameters that do not satisfy the bounds in ``last`` are ignored.

    The result includes every class that the bounds do not exclude, and all classes if bounds are not finite. The
    arguments are those of `margin_bounds`.

    Returns:
        Whether each class is possible, shape ``(runs, records, classes)``.
    """
    apart = margin_bounds(network, box, rows, bounding, last=last)
    # If logit j minus logit i is certainly below 0, class j is not predicted.
    beaten = (apart.upper < 0).any(dim=-2)
    finite = torch.isfinite(apart.lower).all(dim=(-1, -2)) & torch.isfinite(apart.upper).all(dim=(-1, -2))
    return ~beaten | ~finite[..., None]
