"""What a guarantee is, what it compares with, and what it rests on: for each accountant, in words."""

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from certified_unlearning.accounting import Adjacency
from certified_unlearning.experiments.model import Accountant, Guarantee
from certified_unlearning.parameters import DType, Features, Smoothness

CertifiedFeatures = Features | Literal["declared", "given"]
"""Features of images; or a table's, by its declaration; or a matrix as it was given to an estimator."""
NoiseSource = Literal["seed", "system entropy"]
"""Where the noise comes from: a seed that can be repeated, or the operating system's entropy, which is not kept."""


class Arithmetic(NamedTuple):
    """How exact a run was: numbers that a certificate states under the same names."""

    rounding_error: float
    noise_delta: float
    noise_resolution: float


class Assumption(BaseModel):
    """Something the guarantee needs.

    Attributes:
        statement: What must hold.
        status: Whether the software checked it or takes it for granted.
        by: What checked it, or why it is taken for granted.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    statement: str
    status: Literal["checked", "assumed"]
    by: str


def guarantee(accountant: Accountant, smoothness: Smoothness) -> Guarantee:
    """Return what an accountant's epsilon is."""
    if accountant == "none":
        return "exact"
    if smoothness == "spectral":
        # That L depends on the data: without a margin for the removed records it certifies nothing.
        return "heuristic"
    # Descent-to-Delete is stated for adding or removing a record; the paper applies it to replacement unchanged.
    return "as published" if accountant in ("descent-to-delete N.1", "descent-to-delete N.2") else "upper bound"


def comparator(accountant: Accountant, variant: str) -> str:
    """Return what the unlearned model is indistinguishable from."""
    if accountant == "descent-to-delete shifted" and variant == "published-state":
        compared = "a retrained model that is published with the same noise, and continued, at the same times"
    else:
        compared = _COMPARATORS[accountant]
    return f"{compared}; the model published last"


_AT_STATIONARITY = "the same learning run from scratch on the data after the removals"
_PUBLISHED = "a retrained model published with the same noise"
_COMPARATORS: dict[Accountant, str] = {
    "lsi": _AT_STATIONARITY,
    "lsi-tight": _AT_STATIONARITY,
    "shifted": "the same learning run from the same start on the data after the removals, for as many steps in all",
    "descent-to-delete N.1": _PUBLISHED,
    "descent-to-delete N.2": _PUBLISHED,
    "descent-to-delete conditional": "a model retrained from the same start on the data after the removals, published "
    "with the same noise, which is added once",
    "descent-to-delete shifted": "a model retrained from the same start on the data after the removals, for as many "
    "steps in all, published with the same noise",
}


def assumptions(
    accountant: Accountant,
    smoothness: Smoothness,
    dtype: DType,
    dataset: str,
    features: CertifiedFeatures | None,
    classes: int,
    noise_source: NoiseSource,
    adjacency: Adjacency,
    arithmetic: Arithmetic | None,
) -> tuple[Assumption, ...]:
    """Return what a guarantee rests on; ``arithmetic`` is None where rounding was not counted."""
    return (
        Assumption(
            statement="every record has norm at most 1, so its data-loss gradient has norm at most lipschitz",
            status="checked",
            by="every row and every replacement, to 1e-6 (32-bit rounding)",
        ),
        _preprocessing(dataset, features),
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
            by="it can be repeated from a seed: whoever knows it can subtract the noise, and two models made with "
            "one seed cancel each other's"
            if noise_source == "seed"
            else "its keys come from the operating system's entropy and are not kept",
        ),
        *_OWN[accountant],
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
    if arithmetic is None:  # A certificate of before rounding was counted.
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


def _preprocessing(dataset: str, features: CertifiedFeatures | None) -> Assumption:
    statement = "preprocessing does not depend on records that may be removed"
    if dataset == "adult":
        by = "medians, means and scales of the training part are taken for public constants"
        return Assumption(statement=statement, status="assumed", by=by)
    if features == "resnet18":
        by = "the network's weights are taken to have been trained on other records"
        return Assumption(statement=statement, status="assumed", by=by)
    if features == "given":
        by = (
            "the estimator sees its input only: means, scales, vocabularies or components that were computed from the "
            "records before are outside this guarantee, unless they are fixed or public; so is the list of classes, "
            "which is taken from the records"
        )
        return Assumption(statement=statement, status="assumed", by=by)
    if features == "declared":
        by = (
            "each record by itself, as declared; that columns, classes, categories and ranges were not chosen by these "
            "records is the declaration's word"
        )
        return Assumption(statement=statement, status="assumed", by=by)
    return Assumption(
        statement=statement, status="checked", by="fixed features or scaling, then each record by its own norm"
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
    by = f"{'1/4' if classes == 2 else '1/2'} + strong_convexity holds for every data set of such records"
    return Assumption(statement=statement, status="checked", by=by)


_PROJECTION = Assumption(
    statement="projection on a ball",
    status="checked",
    by="not needed: the radius enters none of the strongly convex bounds, and a projection loosens none",
)
_STATIONARITY = (
    Assumption(
        statement="learning has reached its stationary law",
        status="checked",
        by="extra_delta pays for the distance that is left after learning_steps; more than delta is refused",
    ),
    _PROJECTION,
)
_AS_PUBLISHED = (
    Assumption(
        statement="the theorem, stated for adding or removing a record, holds for this adjacency too",
        status="assumed",
        by="the paper applies it unchanged, and so does this baseline",
    ),
)
_OWN: dict[Accountant, tuple[Assumption, ...]] = {
    "lsi": _STATIONARITY,
    "lsi-tight": _STATIONARITY,
    "shifted": (_PROJECTION,),
    "descent-to-delete N.1": _AS_PUBLISHED,
    "descent-to-delete N.2": _AS_PUBLISHED,
    "descent-to-delete conditional": (_PROJECTION,),
    "descent-to-delete shifted": (_PROJECTION,),
}
