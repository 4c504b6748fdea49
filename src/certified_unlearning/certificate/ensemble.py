"""Certificates of an ensemble whose answers are those of one that never knew the removed records.

What is certified is every answer, by the rule that gives it: nothing is stated of the parameters, which were learned
with removed records until their shard is trained again. What anybody can recompute is when that happens: it follows
from where the removed records lay, and from nothing that they said.
"""

import functools
from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.certificate.base import CertificateError
from certified_unlearning.certificate.preprocessing import GIVEN, possible_features, preprocessing
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.certified_sgd.shards import Places, Sharding, Standing, replayed
from certified_unlearning.version import code_version

COMPARATOR = (
    "the label of the ensemble that is trained from the same starts on the records as they are now: every record in "
    "the slice that was drawn for its number, in as many updates, with the same constants and type of numbers"
)
NOT_PROMISED = (
    "nothing about parameters: until a shard is trained again they were learned with the records that have left it, "
    "and so were its boxes; both must stay secret",
    "nothing about inputs without an answer, and no differential privacy of the answers: which inputs have none "
    "depends on the records, those that were removed included, and leaks",
    "nothing about probabilities, numbers of votes or of shards that abstain: labels only",
    "nothing about which shard is trained again, and when: that tells in which shards removed records lay, and so does "
    "the time that a request takes; it depends on nothing that the records said",
    "nothing where slices are drawn anew after a removal, or what was published before one was kept",
    "nothing towards the records that stay: learning is not private",
)


class EnsembleCertificate(BaseModel):
    """A statement about the answers of an ensemble, with the constants that a comparison needs.

    Attributes:
        kind: ``ensemble``.
        mechanism: ``certified-ensemble``.
        guarantee: ``exact``: answers are equal, not close.
        comparator: With what.
        not_promised: What nobody should read into it.
        n_learned: Number of records at the start.
        deleted: Records deleted since.
        requests: In so many requests.
        n: Number of records now.
        features_in: Inputs of a network.
        hidden: Units of each hidden layer.
        classes: At least 2.
        loss: Of a record.
        shards: ``S``.
        slices: ``R`` of each shard.
        budgets: ``k`` of each box, in rising order.
        epochs: Updates of each stage.
        step_size: ``alpha``.
        clipping: Of each record's gradient.
        bound: To which.
        rounding: ``outward``; naive bounds are no proof.
        dtype: Of training and of bounds.
        removed: For every request in which slices its records lay (``shard x slices + slice``), and how many in each.
        pending: For every shard how many records have left it since it was trained; none is trained with more than the
            largest budget.
        trained_again: How often a shard was trained again.
        assumptions: What it rests on.
        dataset: Name of the data set.
        features: How features were made; ``given`` by an estimator's user.
        code_version: Which code ran.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["ensemble"] = "ensemble"
    mechanism: Literal["certified-ensemble"] = "certified-ensemble"
    guarantee: Literal["exact"] = "exact"
    comparator: str
    not_promised: tuple[str, ...]
    n_learned: int = Field(ge=1)
    deleted: int = Field(ge=0)
    requests: int = Field(ge=0)
    n: int = Field(ge=1)
    features_in: int = Field(ge=1)
    hidden: tuple[int, ...]
    classes: int = Field(ge=2)
    loss: Literal["cross-entropy", "binary-cross-entropy"]
    shards: int = Field(ge=1)
    slices: int = Field(ge=1)
    budgets: tuple[int, ...] = Field(min_length=1)
    epochs: int = Field(ge=1)
    step_size: float = Field(gt=0, allow_inf_nan=False)
    clipping: Literal["clamp"] = "clamp"
    bound: float = Field(gt=0, allow_inf_nan=False)
    rounding: Literal["outward"] = "outward"
    dtype: Literal["float64"] = "float64"
    removed: tuple[tuple[tuple[int, int], ...], ...]
    pending: tuple[int, ...]
    trained_again: int = Field(ge=0)
    assumptions: tuple[Assumption, ...]
    dataset: str = "own"
    features: str = GIVEN
    code_version: str

    @classmethod
    def of(cls, *, removed: Sequence[Places], dataset: str = "own", features: str = GIVEN, **constants: object) -> Self:
        """Return the certificate after requests: ``constants`` by their names here, ``n_learned`` among them.

        Args:
            removed: For every request where its records lay.
            dataset: Name of the data set.
            features: How features were made.
            constants: All that is fixed.
        """
        stated = {
            **constants,
            "comparator": COMPARATOR,
            "not_promised": NOT_PROMISED,
            "removed": tuple(tuple((place, count) for place, count in places) for places in removed),
            "assumptions": _assumptions(dataset, features),
            "dataset": dataset,
            "features": features,
            "code_version": code_version(),
        }
        sharding = Sharding(*(stated[name] for name in _SHARDING))  # type: ignore[arg-type]
        return cls.model_validate(stated | _standing(replayed(sharding, removed)) | {"requests": len(removed)})


_SHARDING = ("n_learned", "shards", "slices", "budgets")


def verify(certificate: EnsembleCertificate) -> None:
    """Recompute from the requests where the ensemble stands, and check words and constants.

    That parameters and boxes follow from the records cannot be seen from a certificate: whoever holds the model
    directory verifies that (`unlearn verify` of the directory trains again).

    Raises:
        CertificateError: A number differs, constants are impossible, or words are not those of the mechanism.
    """
    try:
        sharding = Sharding(*(getattr(certificate, name) for name in _SHARDING))
        standing = replayed(sharding, certificate.removed)
    except ParameterError as error:
        raise CertificateError(f"the certificate states impossible constants: {error}") from error
    computed = {
        **_standing(standing),
        "requests": len(certificate.removed),
        "loss": "binary-cross-entropy" if certificate.classes == 2 else "cross-entropy",
        "comparator": COMPARATOR,
        "not_promised": NOT_PROMISED,
        "assumptions": _assumptions(certificate.dataset, certificate.features),
    }
    for name, right in computed.items():
        said = getattr(certificate, name)
        if said != right:
            raise CertificateError(f"the certificate states other {name} than it must: {said!r} instead of {right!r}")
    if not all(certificate.removed):
        raise CertificateError("the certificate states a request that removed nothing")
    if any(units < 1 for units in certificate.hidden):
        raise CertificateError(f"the certificate states hidden = {certificate.hidden!r}, must be numbers above 0")
    possible, right = possible_features(certificate.features)
    if not possible:
        raise CertificateError(f"the certificate states features = {certificate.features!r}, must be {right}")


def _standing(standing: Standing) -> dict[str, Any]:
    """Return what a certificate states of where an ensemble stands."""
    n = sum(standing.left)
    return {
        "n": n,
        "deleted": standing.sharding.n - n,
        "pending": tuple(standing.spent(shard) for shard in range(standing.sharding.shards)),
        "trained_again": standing.trainings,
    }


@functools.cache
def _assumptions(dataset: str, features: str) -> tuple[Assumption, ...]:
    """Return what certified answers rest on."""
    return (
        Assumption(
            statement="an answer is given only where no assignment of the votes that are not known could change it",
            status="checked",
            by="the votes that shards may cast after training again are bounded, with bounds that are rounded outward",
        ),
        Assumption(
            statement="a shard that has lost more records than its largest box covers is trained again before it votes",
            status="checked",
            by="recomputed from where the removed records lay; it goes on from the checkpoint before the first slice "
            "that lost one",
        ),
        Assumption(
            statement="boxes and checkpoints follow from the records by the constants named here",
            status="assumed",
            by="a certificate shows neither: whoever holds the records trains again and compares",
        ),
        Assumption(
            statement="constants, starts, slices and the moment of stopping were not chosen by the records",
            status="assumed",
            by="starts and slices are drawn by number here; what was tried before, no software can see",
        ),
        preprocessing(dataset, features),
        Assumption(
            statement="parameters, boxes and checkpoints are secret, and no older copy of them is kept",
            status="assumed",
            by="they were learned with the removed records; what backups keep no software can see",
        ),
        Assumption(
            statement="single operations are rounded to nearest, and exponentials are right to 4 units in the last "
            "place",
            status="assumed",
            by="bounds then hold for training in float64, in any order of sums",
        ),
    )
