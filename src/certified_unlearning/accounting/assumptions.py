"""What certificates state in words, for each accountant: the kind of guarantee, the comparator, the assumptions."""

from collections.abc import Sequence
from typing import NamedTuple

from certified_unlearning.accounting.accountant import (
    PROJECTION,
    PUBLIC_CLASS_WEIGHTS,
    PUBLIC_TARGET_RANGE,
    SEEDED_NOISE,
    Assumption,
)
from certified_unlearning.accounting.accountants import ACCOUNTANTS, NO_ACCOUNTANT
from certified_unlearning.vocabulary import Adjacency, DType, Guarantee, NoiseSource, Smoothness


class Arithmetic(NamedTuple):
    """The precision of a run. A certificate states these numbers under the same names."""

    rounding_error: float
    noise_delta: float
    noise_resolution: float


def guarantee(accountant: str, smoothness: Smoothness) -> Guarantee:
    """Return the kind of guarantee that an accountant gives. The accountant ``none`` stands for retraining."""
    if accountant == NO_ACCOUNTANT:
        return "exact"
    if smoothness == "spectral":
        # This L depends on the data. Without a margin for the removed records, L certifies nothing.
        return "heuristic"
    return "as published" if ACCOUNTANTS[accountant].as_published else "upper bound"


def comparator(accountant: str, variant: str) -> str:
    """Return a description of the models from which the unlearned model is indistinguishable."""
    return f"{ACCOUNTANTS[accountant].variants[variant]}; the guarantee covers the model published last"


def assumptions(
    accountant: str,
    smoothness: Smoothness,
    dtype: DType,
    preprocessing: Assumption,
    classes: int,
    noise_source: NoiseSource,
    adjacency: Adjacency,
    arithmetic: Arithmetic | None,
    class_weights: Sequence[float] | None = None,
) -> tuple[Assumption, ...]:
    """Return the assumptions of a guarantee.

    ``preprocessing`` states the assumption on the features. ``classes`` is 1 for ridge regression. ``arithmetic`` is
    None if rounding was not counted, and ``class_weights`` is None if all classes have equal weight.
    """
    squared = classes == 1
    return (
        _SHORT_RECORDS_IN_A_BALL if squared else _SHORT_RECORDS,
        preprocessing,
        *(() if class_weights is None else (PUBLIC_CLASS_WEIGHTS,)),
        *((PUBLIC_TARGET_RANGE,) if squared else ()),
        _curvature(smoothness, classes),
        Assumption(
            statement="the objective is strongly convex",
            status="checked",
            by="the l2 regulariser makes it strongly convex, and clipping does not change the regulariser",
        ),
        Assumption(
            statement="the step size is within the limit of the analysis",
            status="checked",
            by="the accountant checks it when a run is planned and when the certificate is verified",
        ),
        Assumption(
            statement="requests are fixed in advance and do not depend on published models",
            status="assumed",
            by="the theorems do not cover adaptive requests",
        ),
        _constants(adjacency),
        *_arithmetic(dtype, arithmetic),
        Assumption(
            statement="nobody who sees the model knows the noise",
            status="assumed" if noise_source == "seed" else "checked",
            by=SEEDED_NOISE
            if noise_source == "seed"
            else "the keys of the noise come from the operating system's entropy and are not kept",
        ),
        *(_BALL if squared and each == PROJECTION else each for each in ACCOUNTANTS[accountant].assumptions),
    )


_SHORT_RECORDS = Assumption(
    statement="every record has norm at most 1, so its data-loss gradient has norm at most lipschitz",
    status="checked",
    by="every row and every replacement was checked, up to 1e-6 (32-bit rounding)",
)
_SHORT_RECORDS_IN_A_BALL = Assumption(
    statement="every record has norm at most 1 and a target between -1 and 1, and the norm of weights is at most "
    "radius, so a record's data-loss gradient has norm at most lipschitz = radius + 1",
    status="checked",
    by="every row and every replacement was checked, up to 1e-6 (32-bit rounding); targets are clipped to "
    "target_range, and the start and every step are projected",
)
_BALL = Assumption(
    statement=PROJECTION.statement,
    status="checked",
    by="the projection bounds the gradients of the squared loss, is part of every step of both runs, and does not "
    "increase distances; the ball contains the minimiser for every data set of such records",
)


def _constants(adjacency: Adjacency) -> Assumption:
    by = "the mechanism runs with the constants of this certificate"
    if adjacency == "remove":
        return Assumption(
            statement="step size and regularisation are constants and are not recomputed after a removal; the "
            "normaliser is the number of remaining records, as defined by the adjacency remove",
            status="checked",
            by=f"{by}, and divides by the number of remaining records",
        )
    return Assumption(
        statement="step size, regularisation and normaliser are constants and are not recomputed after a removal",
        status="checked",
        by=by,
    )


def _arithmetic(dtype: DType, arithmetic: Arithmetic | None) -> tuple[Assumption, ...]:
    if arithmetic is None:  # A certificate made before rounding was counted.
        return (
            Assumption(
                statement="arithmetic and Gaussian noise are exact",
                status="assumed",
                by=f"computed in {dtype} with a pseudo-random generator; noise is refused if rounding would remove it",
            ),
        )
    return (
        Assumption(
            statement="the guarantee includes rounding errors and the finite range of the noise sampler",
            status="checked",
            by=f"epsilon takes into account that a step in {dtype} may end up to {arithmetic.rounding_error:.2g} away "
            "from the exact step, in both runs; this distance assumes upper limits on random norms, and the part of "
            f"extra_delta that covers larger norms is {arithmetic.noise_delta:.2g}",
        ),
        Assumption(
            statement="nobody infers anything from the last bits of the published weights' noise",
            status="assumed",
            by=f"the noise is within {arithmetic.noise_resolution:.2g} (Euclidean norm) of exact Gaussian noise; its "
            "random bits come from a cipher on a CPU, and from PyTorch's generator on a GPU; attacks that use "
            "differences smaller than this distance (Mironov 2012) are not excluded",
        ),
    )


def _curvature(smoothness: Smoothness, classes: int) -> Assumption:
    statement = "smoothness_constant bounds the curvature before and after every removal"
    if smoothness == "spectral":
        by = "it was computed from this data set without a margin for removals, so nothing is guaranteed"
        return Assumption(statement=statement, status="assumed", by=by)
    if smoothness == "spectral-with-margin":
        by = (
            "it was computed from this data set, with a margin of (records removed) / n on the largest eigenvalue; the "
            "step size follows from it, and is assumed to reveal nothing about single records"
        )
        return Assumption(statement=statement, status="assumed", by=by)
    largest = {1: "1", 2: "1/4"}.get(classes, "1/2")
    by = f"{largest} + strong_convexity is a bound for every data set of such records"
    return Assumption(statement=statement, status="checked", by=by)
