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
    return f"{ACCOUNTANTS[accountant].variants[variant]}; the model published last"


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
            by="the l2 regulariser, which clipping leaves alone",
        ),
        Assumption(
            statement="the step size is within the analysis' limit",
            status="checked",
            by="the accountant, at planning and at verification",
        ),
        Assumption(
            statement="requests are fixed in advance and do not depend on published models",
            status="assumed",
            by="the theorems say nothing of adaptive requests",
        ),
        _constants(adjacency),
        *_arithmetic(dtype, arithmetic),
        Assumption(
            statement="nobody who sees the model knows the noise",
            status="assumed" if noise_source == "seed" else "checked",
            by=SEEDED_NOISE
            if noise_source == "seed"
            else "its keys come from the operating system's entropy and are not kept",
        ),
        *(_BALL if squared and each == PROJECTION else each for each in ACCOUNTANTS[accountant].assumptions),
    )


_SHORT_RECORDS = Assumption(
    statement="every record has norm at most 1, so its data-loss gradient has norm at most lipschitz",
    status="checked",
    by="every row and every replacement, to 1e-6 (32-bit rounding)",
)
_SHORT_RECORDS_IN_A_BALL = Assumption(
    statement="every record has norm at most 1 and a target between -1 and 1, and weights are no longer than radius, "
    "so its data-loss gradient has norm at most lipschitz = radius + 1",
    status="checked",
    by="every row and every replacement, to 1e-6 (32-bit rounding); targets are clipped to target_range, and the start "
    "and every step are projected",
)
_BALL = Assumption(
    statement="projection on a ball",
    status="checked",
    by="it bounds the gradients of the squared loss, is part of every step of both runs, and loosens no bound; the "
    "ball holds the minimiser of every data set of such records",
)


def _constants(adjacency: Adjacency) -> Assumption:
    by = "the mechanism runs with the constants of this certificate"
    if adjacency == "remove":
        return Assumption(
            statement="step size and regularisation are constants, not recomputed after a removal; the normaliser is "
            "the number of records that are left, as adjacency remove has it",
            status="checked",
            by=f"{by}, and divides by that number",
        )
    return Assumption(
        statement="step size, regularisation and normaliser are constants, not recomputed after a removal",
        status="checked",
        by=by,
    )


def _arithmetic(dtype: DType, arithmetic: Arithmetic | None) -> tuple[Assumption, ...]:
    if arithmetic is None:  # A certificate made before rounding was counted.
        return (
            Assumption(
                statement="arithmetic and Gaussian noise are exact",
                status="assumed",
                by=f"computed in {dtype} with a pseudo-random generator; noise that rounding would swallow is refused",
            ),
        )
    return (
        Assumption(
            statement="rounding, and the random numbers that no sampler of finite range gives, are paid for",
            status="checked",
            by=f"epsilon counts that a step in {dtype} may end up to {arithmetic.rounding_error:.2g} away from the "
            "exact one, in both runs; extra_delta counts random norms larger than that supposes, "
            f"{arithmetic.noise_delta:.2g}",
        ),
        Assumption(
            statement="nobody concludes anything from the last bits of the published weights' noise",
            status="assumed",
            by=f"it is within {arithmetic.noise_resolution:.2g} (Euclidean norm) of exact Gaussian noise, made of a "
            "cipher's bits on a CPU, of PyTorch's generator's on a GPU; attacks on smaller differences (Mironov 2012) "
            "are not excluded",
        ),
    )


def _curvature(smoothness: Smoothness, classes: int) -> Assumption:
    statement = "smoothness_constant bounds the curvature before and after every removal"
    if smoothness == "spectral":
        by = "computed from this data set, without a margin for removals: no guarantee"
        return Assumption(statement=statement, status="assumed", by=by)
    if smoothness == "spectral-with-margin":
        by = (
            "computed from this data set with a margin of (records removed) / n on the largest eigenvalue; that the "
            "step size, which follows from it, tells nothing of single records is taken for granted"
        )
        return Assumption(statement=statement, status="assumed", by=by)
    largest = {1: "1", 2: "1/4"}.get(classes, "1/2")
    by = f"{largest} + strong_convexity holds for every data set of such records"
    return Assumption(statement=statement, status="checked", by=by)
