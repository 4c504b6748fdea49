"""The wording of certificates of certified refit and Newton removal: comparator, observers, assumptions."""

from dataclasses import replace

from certified_unlearning.accounting.accountant import (
    PUBLIC_CLASS_WEIGHTS,
    PUBLIC_TARGET_RANGE,
    ROUNDING_INCLUDED,
    SEEDED_NOISE,
    SUMS_OF_PRODUCTS,
    Assumption,
)
from certified_unlearning.text import counted
from certified_unlearning.vocabulary import NoiseSource

COMPARATOR = (
    "the exact minimiser of the same objective on the remaining records (a removed record's loss is 0, and the "
    "normaliser does not change), plus the same Gaussian noise"
)
COMPARATOR_WITH_ADDITIONS = (
    "the exact minimiser of the same objective on the remaining records, including added ones (a removed record's loss "
    "is 0, the normaliser counts all records that were ever in the model, and C does not change), plus the same "
    "Gaussian noise"
)
OF_ALL_CLASSES = (
    "; the objective is the sum of the logistic regressions of each class against the rest, and the weights of all "
    "classes are one release"
)
OBSERVERS = (
    "epsilon holds for somebody who sees the model published last, if requests are fixed in advance; "
    "epsilon_all_releases holds for somebody who sees all releases, including the first one, and who may have chosen "
    "requests after seeing earlier releases; epsilon_all_releases compares this interaction with the same interaction "
    "with exact refits"
)
NOT_PROMISED = (
    "the guarantee does not protect the remaining records: the comparator is an exact minimiser with noise, and is not "
    "trained privately",
    "the guarantee does not cover what was published before a deletion: a kept copy is a model of the removed records",
    "the guarantee does not cover the secret state (weights without noise, matrix and factor), which depends on "
    "removed records until the data are read again",
)
NOTHING_OF_PUBLIC_ROWS = (
    "the guarantee does not cover the public rows: every model, including the comparator, is learned from them, and "
    "they are never removed"
)
NOT_PROMISED_BY_PASSES = (
    *NOT_PROMISED[:-1],
    "the guarantee does not cover the secret state (weights without noise, matrix and factor), which depends on "
    "removed records until the model is learned anew: passes only correct the weights",
)
NOT_PROMISED_OF_MORE_CLASSES = (
    *NOT_PROMISED[:-1],
    "the guarantee does not cover the secret state (weights without noise, their gradient, the factor of a matrix, and "
    "steps of earlier requests), which depends on removed records until the model is learned anew: passes only correct "
    "the weights",
)


def not_promised(*, by_passes: bool, every_request_passes: bool, public_records: int) -> tuple[str, ...]:
    """Return what the guarantee does not promise. The arguments are those of `assumptions`."""
    usual = NOT_PROMISED
    if by_passes:
        usual = NOT_PROMISED_OF_MORE_CLASSES if every_request_passes else NOT_PROMISED_BY_PASSES
    return (*usual, NOTHING_OF_PUBLIC_ROWS) if public_records else usual


_NOT_RECOMPUTED = "a check of the certificate's arithmetic alone cannot show this"
_GRADIENT = Assumption(
    statement="the gradient's norm on the remaining records was at most budget at every release",
    status="checked",
    by=f"the norm is evaluated when data are read, and bounded by the mechanism after every request; {_NOT_RECOMPUTED}",
)
_NEAR = (
    "the weights without noise were at most budget / strong_convexity from the exact minimiser on the remaining "
    "records at every release"
)
_GRADIENT_WITH_ADDITIONS = Assumption(
    statement=_NEAR,
    status="checked",
    by="the distance is bounded by the gradient's norm divided by the strong convexity at that time; both numbers "
    "decrease as records are added; the norm is evaluated when data are read, and bounded by the mechanism after every "
    f"request; {_NOT_RECOMPUTED}",
)
_EVALUATED = Assumption(
    statement=_NEAR,
    status="checked",
    by="the distance is bounded by the gradient's norm divided by the strong convexity; the gradient is evaluated at "
    f"every release over all remaining records, however the weights were computed; {_NOT_RECOMPUTED}",
)
_DISTANCE = Assumption(
    statement=_NEAR,
    status="checked",
    by="the distance is at most the least of three bounds: one uses the gradient's norm, one uses the gradient's norm "
    "in the metric of the Hessian, and one uses the Newton step from the weights; this least bound is evaluated at "
    f"readings and passes, and is itself bounded after every request; {_NOT_RECOMPUTED}",
)


def comparator(*, additions: bool, one_vs_rest: bool, public_records: int) -> str:
    """Return the comparator of a release.

    Args:
        additions: Whether records were added.
        one_vs_rest: Whether each of several classes has a model against the rest.
        public_records: Number of public rows.
    """
    compared = COMPARATOR_WITH_ADDITIONS if additions else COMPARATOR
    if public_records:
        compared = (
            "the exact minimiser of the same objective on the remaining records and the same "
            f"{counted(public_records, 'public row')} (a removed record's loss is 0, and the normaliser, which counts "
            "both, does not change), plus the same Gaussian noise"
        )
    return compared + OF_ALL_CLASSES if one_vs_rest else compared


def assumptions(
    *,
    preprocessing: Assumption,
    noise_source: NoiseSource,
    noise_resolution: float,
    strict: bool,
    unscheduled: bool,
    by_passes: bool = False,
    every_request_passes: bool = False,
    class_weights: bool = False,
    targets: bool = False,
    additions: bool = False,
    public_records: int = 0,
    public_curvature: float = 0.0,
    restored: bool = False,
) -> tuple[Assumption, ...]:
    """Return the assumptions of the guarantee.

    Args:
        preprocessing: The assumption on the features.
        noise_source: Source of the noise.
        noise_resolution: Largest distance of the noise from exact noise.
        strict: Whether counts of records alone decide when data are read again.
        unscheduled: Whether data were read at a time that was not planned.
        by_passes: Whether passes over the rows may correct the weights. If so, the distance to the minimiser is
            certified.
        every_request_passes: Whether there are no Newton steps. Every request then makes a pass, unless the model is
            learned anew.
        class_weights: Whether classes have different weights.
        targets: Whether the model predicts targets instead of classes.
        additions: Whether records were added.
        public_records: Number of public rows.
        public_curvature: The curvature that public rows add to the curvature of the regulariser.
        restored: Whether releases were lost, because the model was restored from a backup.
    """
    near = _nearness(by_passes, every_request_passes, additions)
    if public_records:
        near = replace(near, statement=near.statement.replace("records", "records and the public rows"))
    if public_curvature:
        more = "(strong_convexity + public_curvature)"
        near = replace(near, statement=near.statement.replace("strong_convexity", more))
    convex_by = (
        "the l2 regulariser makes it strongly convex; its strength follows from C and from the number of records that "
        "were ever in the model"
        if additions
        else "the l2 regulariser makes it strongly convex; its strength is a constant that a removal does not change"
    )
    if public_curvature:
        convex_by += (
            "; the public rows are never removed; between the exact minimiser and the weights, they add "
            "public_curvature to strong_convexity, whatever the other records are; public_curvature was computed from "
            f"the public rows and rounded down; {_NOT_RECOMPUTED}"
        )
    fixed = "requests and added records" if additions else "requests"
    if restored:
        fixed = f"{fixed.replace(' and', ',')} and restores from backups"
    return (
        Assumption(
            statement="every record has norm at most 1",
            status="checked",
            by="every row was checked, up to 1e-6, and the bounds include this tolerance",
        ),
        preprocessing,
        *((PUBLIC_CLASS_WEIGHTS,) if class_weights else ()),
        *((PUBLIC_TARGET_RANGE,) if targets else ()),
        Assumption(
            statement="the objective is strongly convex",
            status="checked",
            by=convex_by,
        ),
        *((_public(public_records),) if public_records else ()),
        near,
        Assumption(
            statement=ROUNDING_INCLUDED,
            status="checked",
            by="the bound on the gradient includes bounds on the rounding of every sum and product in float64; "
            f"{SUMS_OF_PRODUCTS}",
        ),
        Assumption(
            statement=f"for epsilon, not for epsilon_all_releases: {fixed} are fixed in advance and do not depend on "
            "published models",
            status="assumed",
            by="no software can check this",
        ),
        _timing(strict, unscheduled, by_passes, every_request_passes),
        Assumption(
            statement="nobody infers anything from the last bits of the published weights' noise",
            status="assumed",
            by=f"the noise is within {noise_resolution:.2g} (Euclidean norm) of exact Gaussian noise; its random bits "
            "come from the operating system or from a cipher; attacks that use differences smaller than this distance "
            "(Mironov 2012) are not excluded",
        ),
        Assumption(
            statement="nobody who sees the model knows the noise",
            status="assumed" if noise_source == "seed" else "checked",
            by=SEEDED_NOISE
            if noise_source == "seed"
            else "it comes from the operating system's entropy and is not kept",
        ),
    )


def _nearness(by_passes: bool, every_request_passes: bool, additions: bool) -> Assumption:
    if by_passes:
        return _EVALUATED if every_request_passes else _DISTANCE
    return _GRADIENT_WITH_ADDITIONS if additions else _GRADIENT


def _public(records: int) -> Assumption:
    return Assumption(
        statement=f"{counted(records, 'row')} of public_X and public_y are public: nobody will ask to remove one, and "
        "they do not depend on records that may be removed",
        status="assumed",
        by="the caller of fit states that these rows are public in this sense; a private record among the public rows "
        "stays in every model, and the guarantee does not cover it",
    )


def _timing(strict: bool, unscheduled: bool, by_passes: bool, every_request_passes: bool) -> Assumption:
    statement = "nobody infers anything from the times at which data were read again"
    if strict and not unscheduled:
        by = (
            "these times depend only on the sizes of requests, because the bound that determines them holds for all "
            "data"
        )
        return Assumption(statement=statement, status="checked", by=by)
    if by_passes and not unscheduled:
        by = (
            "the data determine how many passes over the rows a request needed, and whether it needed a reading "
            "earlier than planned (none did)"
            if every_request_passes
            else "the data determine whether a request needed a pass over the rows, and whether it needed a reading "
            "earlier than planned (none did)"
        )
        return Assumption(statement=statement, status="assumed", by=by)
    by = (
        "a reading was not scheduled, and the need for it depends on the data"
        if unscheduled
        else "the number of records between readings is public, but whether it was small enough depends on the data"
    )
    return Assumption(statement=statement, status="assumed", by=by)
