"""Certificates of exact unlearning: model and stored state have the law of a run on the records that are left.

There is no epsilon to compute: it is 0 for requests that were chosen obliviously. What a certificate can state beside
that, and what anybody can recompute, is how often a request computes again, at most.
"""

import functools
import math
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.accounting.tv.subsampling import subsampling_tv
from certified_unlearning.certificate.base import TOLERANCE, CertificateError
from certified_unlearning.certificate.preprocessing import GIVEN, possible_features, preprocessing
from certified_unlearning.version import code_version
from certified_unlearning.vocabulary import ExactMechanism, NoiseSource

COMPARATOR = (
    "a run of the same algorithm with the same constants, from nothing, on the records as they are now: model and "
    "stored state together have the same law"
)
NOT_PROMISED = (
    "nothing towards the records that stay: learning is not private",
    "nothing where requests were chosen after seeing a model, a state, or how long a request took",
    "nothing about what was published before a deletion, nor about two states together: two snapshots around a "
    "request give the removed record away",
)


class ExactCertificate(BaseModel):
    """A statement of exact unlearning, with the constants that a comparison with a fresh run needs.

    Attributes:
        kind: ``exact``.
        mechanism: Which algorithm.
        loss: Of a record, with an l2 regulariser of strength ``strong_convexity`` in every record's loss.
        guarantee: ``exact``: equal in law.
        comparator: With what.
        not_promised: What nobody should read into it.
        epsilon: 0.
        delta: 0.
        n_learned: Number of records at the start.
        deleted: Records deleted since.
        inserted: Records inserted since.
        requests: In so many requests.
        n: Number of records now.
        d: Number of weights.
        classes: At least 2.
        strong_convexity: ``lambda``.
        steps: ``T``.
        batch_size: ``m``, of uniform subsets without replacement.
        step_size: ``eta``.
        radius: Of the ball that models are projected on; None for none.
        sigma: Standard deviation of a gradient's noise, of noisy-sgd and accelerated-noisy-sgd.
        quantum: Spacing of the grid, of quantized-sgd.
        recompute_probability: An upper bound for the next deletion: ``1 - (1 - m / n)^T``.
        assumptions: What it rests on.
        noise_source: Where the randomness came from.
        dataset: Name of the data set.
        features: How features were made; ``given`` by an estimator's user.
        code_version: Which code ran.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["exact"] = "exact"
    mechanism: ExactMechanism
    loss: Literal["logistic", "softmax", "hinge"]
    guarantee: Literal["exact"] = "exact"
    comparator: str
    not_promised: tuple[str, ...]
    epsilon: int = Field(default=0, ge=0, le=0, strict=True)
    delta: int = Field(default=0, ge=0, le=0, strict=True)
    n_learned: int = Field(ge=1)
    deleted: int = Field(ge=0)
    inserted: int = Field(ge=0)
    requests: int = Field(ge=0)
    n: int = Field(ge=1)
    d: int = Field(ge=1)
    classes: int = Field(ge=2)
    strong_convexity: float = Field(ge=0, allow_inf_nan=False)
    steps: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    step_size: float = Field(gt=0, allow_inf_nan=False)
    radius: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    sigma: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    quantum: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    recompute_probability: float = Field(ge=0, le=1)
    assumptions: tuple[Assumption, ...]
    noise_source: NoiseSource
    dataset: str = "own"
    features: str = GIVEN
    code_version: str

    @classmethod
    def of(cls, *, noise_source: NoiseSource, dataset: str = "own", features: str = GIVEN, **stated: object) -> Self:
        """Return the certificate of what is stated: mechanism, loss, counts and constants, by their names here."""
        counts = {name: int(str(stated[name])) for name in ("n_learned", "deleted", "inserted", "batch_size", "steps")}
        n = counts["n_learned"] - counts["deleted"] + counts["inserted"]
        return cls.model_validate(
            {
                **stated,
                "n": n,
                "comparator": COMPARATOR,
                "not_promised": NOT_PROMISED,
                "recompute_probability": subsampling_tv(n=n, batch_size=counts["batch_size"], steps=counts["steps"]),
                "assumptions": _assumptions(noise_source, dataset, features),
                "noise_source": noise_source,
                "dataset": dataset,
                "features": features,
                "code_version": code_version(),
            }
        )


def verify(certificate: ExactCertificate) -> None:
    """Recompute what a certificate states, in numbers and in words.

    That the state follows its algorithm cannot be seen from a certificate: whoever holds the state and the records
    checks that, iteration by iteration (`ExactLogisticRegression.check`).

    Raises:
        CertificateError: A number differs (the message has both), constants are impossible, or words are not those of
            the mechanism.
    """
    _verify_scope(certificate)
    computed = subsampling_tv(n=certificate.n, batch_size=certificate.batch_size, steps=certificate.steps)
    if not math.isclose(certificate.recompute_probability, computed, rel_tol=TOLERANCE):
        raise CertificateError(
            f"the certificate states recompute_probability = {certificate.recompute_probability!r}, but its constants "
            f"give {computed!r}"
        )
    words = {
        "comparator": COMPARATOR,
        "not_promised": NOT_PROMISED,
        "assumptions": _assumptions(certificate.noise_source, certificate.dataset, certificate.features),
    }
    for name, right in words.items():
        said = getattr(certificate, name)
        if said != right:
            raise CertificateError(f"the certificate states other {name} than it must: {said!r} instead of {right!r}")


def _verify_scope(certificate: ExactCertificate) -> None:
    """Check that the constants are possible, and fit each other."""
    n = certificate.n_learned - certificate.deleted + certificate.inserted
    edits = certificate.deleted + certificate.inserted
    noisy = certificate.mechanism in ("noisy-sgd", "accelerated-noisy-sgd")
    quantized = certificate.mechanism == "quantized-sgd"
    binary = certificate.classes == 2
    scores = scores_per_record(certificate.classes)
    scope = {
        "n": (certificate.n == n, f"n_learned - deleted + inserted = {n}"),
        "batch_size": (certificate.batch_size < certificate.n, f"below n = {certificate.n}: a batch leaves one out"),
        "n_learned": (
            certificate.n_learned > certificate.batch_size and certificate.n_learned >= certificate.classes,
            f"above batch_size = {certificate.batch_size}, and a record of each of the {certificate.classes} classes",
        ),
        "requests": (
            min(edits, 1) <= certificate.requests <= edits,
            f"{min(edits, 1)} to deleted + inserted = {edits}",
        ),
        "sigma": ((certificate.sigma is not None) == noisy, "given for noisy-sgd and accelerated-noisy-sgd only"),
        "quantum": ((certificate.quantum is not None) == quantized, "given for quantized-sgd only"),
        "loss": (certificate.loss in (("logistic", "hinge") if binary else ("softmax",)), "one for its classes"),
        "d": (certificate.d % scores == 0, f"a multiple of the {scores} scores of a record"),
        "features": possible_features(certificate.features),
    }
    for name, (holds, right) in scope.items():
        if not holds:
            raise CertificateError(f"the certificate states {name} = {getattr(certificate, name)!r}, must be {right}")


@functools.cache
def _assumptions(noise_source: NoiseSource, dataset: str, features: str) -> tuple[Assumption, ...]:
    """Return what exactness rests on."""
    seed = noise_source == "seed"
    return (
        Assumption(
            statement="requests are oblivious: chosen without looking at models, states, or the time of requests",
            status="assumed",
            by="no software can see it; a request that depends on a model voids the statement, with more noise the "
            "more so",
        ),
        Assumption(
            statement="the state is secret, and no older copy of it is kept",
            status="assumed",
            by="it tells who was used when, and holds gradients without noise; what backups keep no software can see",
        ),
        Assumption(
            statement="no constant of the algorithm follows the records",
            status="checked",
            by="steps, batch size, step size, noise and the regulariser's strength were fixed for the first records, "
            "by their number and by what was asked for, and no request changes them",
        ),
        Assumption(
            statement="batches are uniform subsets without replacement, also after a request",
            status="checked",
            by="a batch leaves at least one record out; members are replaced by uniform draws",
        ),
        preprocessing(dataset, features),
        Assumption(
            statement="numbers are real numbers",
            status="assumed",
            by="float64 is computed with: laws are equal up to its rounding, of random numbers of 53 bits as well",
        ),
        Assumption(
            statement="nobody knows the randomness",
            status="assumed" if seed else "checked",
            by="it can be repeated from a seed: whoever knows it, or tries all seeds of 32 bits, and has the records, "
            "knows the state"
            if seed
            else "its seeds come from the operating system's entropy, one for each request, and are overwritten",
        ),
    )
