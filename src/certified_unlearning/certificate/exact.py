"""Certificates of exact unlearning: model and stored state have the distribution of a run on the remaining records.

No epsilon is computed: it is 0 if the requests were chosen obliviously. A certificate also states an upper bound on
the probability that the next deletion causes a recomputation. Anybody can check this bound.
"""

import functools
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.accounting.tv.subsampling import subsampling_tv
from certified_unlearning.certificate.base import Certificate, Stated, the_left
from certified_unlearning.certificate.ledger import LedgerCertificate, Scope
from certified_unlearning.certificate.lost import NO_BACKUP_SEEN, NOTHING_OF_LOST_RELEASES, OBLIVIOUS_RESTORE
from certified_unlearning.certificate.preprocessing import GIVEN, possible_features, preprocessing
from certified_unlearning.text import rounded_up
from certified_unlearning.vocabulary import ExactMechanism, NoiseSource, Reading

COMPARATOR = (
    "a run from scratch of the same algorithm with the same constants on the current records: model and stored state "
    "together have the same probability distribution"
)
ANEW = "the same steps from scratch on the remaining records"
"""A short description of the comparator of a release."""
NOT_PROMISED = (
    "the guarantee does not protect the remaining records: learning is not private",
    "the guarantee does not hold if requests were chosen after seeing a model, a state, or the duration of a request",
    "the guarantee covers neither anything published before a deletion, nor two states together: two snapshots, from "
    "before and after a request, reveal the removed record",
)
BY_CHANCE = (
    "The software decided by chance whether the model's training was done again without what was removed, and from "
    "which step on. The rule for this decision is fixed."
)
NOTHING_AGAIN = (
    "If no training was done again, the new version has the same numbers as the old version, up to rounding; this page "
    "does not say which happened. Even then the result holds under the conditions below: the same model was just as "
    "likely to result from a training without what was removed."
)
"""Descriptions of how a request was carried out, for the page that is given to a person."""
OBLIVIOUS = Assumption(
    statement="requests are oblivious: they were chosen without looking at models, states, or the duration of requests",
    status="assumed",
    by="no software can check this; a request that depends on a model voids the guarantee, and more noise makes this "
    "failure of the guarantee worse",
)
SECRET_STATE = "the state is secret, and no older copy of it is kept"
CONSTANTS_FIXED = "no constant of the algorithm depends on the contents of the records or changes with a removal"
REAL_NUMBERS = Assumption(
    statement="numbers are exact real numbers",
    status="assumed",
    by="the software computes in float64: distributions are equal up to its rounding, which includes the rounding of "
    "random numbers to 53 bits",
)
"""Assumptions that are the same for every exact algorithm. `SECRET_STATE` and `CONSTANTS_FIXED` are the statements
of two further assumptions, without the fields ``status`` and ``by``."""


class EqualInLaw(Certificate):
    """The base of certificates of exact unlearning: model and stored state have the distribution of a fresh run."""

    provided = (
        "if no request was made and no record was added because of a model's output, a model's files, or the duration "
        "of a request, "
    )

    if TYPE_CHECKING:  # Each kind declares its own fields, in order.
        epsilon: int
        n_learned: int
        deleted: int
        inserted: int
        requests: int
        n: int
        recompute_probability: float

    @classmethod
    def of(cls, **constants: Any) -> Self:
        """Return the certificate with the given mechanism, counts and constants, by field name.

        ``n`` is computed.
        """
        return cls.made(**constants, n=constants["n_learned"] - constants["deleted"] + constants["inserted"])

    def stated(self) -> Stated:
        """Return the certificate's numbers.

        The certificate states no number for several states together, because several states reveal more than a
        single state.
        """
        return Stated(self.epsilon, 0.0, 0.0, None)

    @property
    def has_removed(self) -> bool:
        """Whether records were removed."""
        return self.deleted > 0

    def details(self) -> str:
        """Return the whole statement, in technical terms."""
        return (
            f"equal in distribution to a run on {the_left(self.n)} ({self.guarantee} by {self.mechanism}; the "
            f"probability that a deletion needs a recomputation is at most {rounded_up(self.recompute_probability)}; "
            f"{self.not_checked})"
        )

    def limits_of_counts(self) -> dict[str, tuple[bool, str]]:
        """Return the `limits` of the numbers of records and requests, which must be consistent with each other."""
        n = self.n_learned - self.deleted + self.inserted
        edits = self.deleted + self.inserted
        return {
            "n": (self.n == n, f"n_learned - deleted + inserted = {n}"),
            "requests": (min(edits, 1) <= self.requests <= edits, f"{min(edits, 1)} to deleted + inserted = {edits}"),
        }


class ExactOfVersions(EqualInLaw, LedgerCertificate):
    """Base class of the certificates of exact unlearning for the versions in a ledger."""

    @classmethod
    def scope(cls, stated: Stated, release: str) -> Scope:
        """Return the scope: an observer of a single release, and requests that do not depend on releases."""
        return Scope(
            compared_with=ANEW,
            adaptive=False,
            sentence=f"exact: epsilon = 0 at delta = 0 for a reader of {release} alone, if no request depended on "
            "a model or on the duration of a request; then this version and its secret state are equal in distribution "
            f"to {ANEW}. No guarantee if a reader kept earlier versions, and none for the remaining records",
        )

    @classmethod
    def removed_by(cls, steps: int, reading: Reading | None) -> str:
        """Return how records were removed from a version."""
        return "exact unlearning"

    def with_known_number(self) -> str:
        """Return sentences saying that the fresh run has the remaining number of records and the original constants."""
        return (
            "The number of removed records is assumed to be known, so the guesses are not about this number. The model "
            "used for comparison is trained on the records that are left. Its settings are those that were chosen for "
            "the number of records at the start."
        )


class ExactCertificate(ExactOfVersions):
    """A statement of exact unlearning, with the constants that a comparison with a fresh run needs.

    Attributes:
        kind: ``exact``.
        mechanism: Name of the algorithm.
        loss: Loss of a record. Every record's loss includes an l2 regulariser of strength ``strong_convexity``.
        guarantee: ``exact``: model and state equal the comparator in distribution.
        comparator: The comparator.
        not_promised: What the certificate does not promise.
        epsilon: 0.
        delta: 0.
        n_learned: Number of records at the start.
        deleted: Number of records that have been deleted since the start.
        inserted: Number of records that have been inserted since the start.
        requests: Number of requests that deleted or inserted records.
        lost_releases: Number of releases that were published and then lost when the directory was restored from a
            backup without them; left out of the file if 0.
        n: Current number of records.
        d: Number of weights.
        classes: Number of classes, at least 2.
        strong_convexity: Strong convexity ``lambda``.
        steps: Number of steps ``T``.
        batch_size: Size ``m`` of the batches, which are uniform subsets drawn without replacement.
        step_size: Step size ``eta``.
        radius: Radius of the ball that models are projected onto; None if there is no projection.
        sigma: Standard deviation of the noise on a gradient, for noisy-sgd and accelerated-noisy-sgd; otherwise None.
        quantum: Spacing of the grid, for quantized-sgd; otherwise None.
        recompute_probability: Upper bound on the probability that the next deletion causes a recomputation:
            ``1 - (1 - m / n)^T``.
        assumptions: The assumptions of the guarantee.
        noise_source: Source of the randomness.
        dataset: Name of the data set.
        features: How the features were made; ``given`` if they come from the user of an estimator.
        code_version: Version of the code that ran.
    """

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
    lost_releases: int = Field(default=0, ge=0, exclude_if=lambda releases: releases == 0)
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

    @property
    def lost(self) -> int:
        """Number of releases that were published and lost."""
        return self.lost_releases

    def done(self, steps: int, reading: Reading | None) -> str:
        """Return sentences on how the software decided whether to train again without the removed records."""
        again = (
            "If a training step had used removed records, the model's training was done again from the first such step "
            "on, without these records."
            if self.mechanism == "subsample-gd"
            else BY_CHANCE
        )
        return f"{again} {NOTHING_AGAIN}"

    def limits(self) -> dict[str, tuple[bool, str]]:
        """Return, for each field, whether its value fits the other fields, and a description of the possible values."""
        noisy = self.mechanism in ("noisy-sgd", "accelerated-noisy-sgd")
        quantized = self.mechanism == "quantized-sgd"
        scores = scores_per_record(self.classes)
        return {
            **self.limits_of_counts(),
            "batch_size": (self.batch_size < self.n, f"below n = {self.n}, so that a batch leaves out a record"),
            "n_learned": (
                self.n_learned > self.batch_size and self.n_learned >= self.classes,
                f"above batch_size = {self.batch_size}, and at least classes = {self.classes}",
            ),
            "sigma": ((self.sigma is not None) == noisy, "given for noisy-sgd and accelerated-noisy-sgd only"),
            "quantum": ((self.quantum is not None) == quantized, "given for quantized-sgd only"),
            "loss": (
                self.loss in (("logistic", "hinge") if self.classes == 2 else ("softmax",)),
                "one for its number of classes",
            ),
            "d": (self.d % scores == 0, f"a multiple of {scores}, the number of scores of a record"),
            "features": possible_features(self.features),
        }

    def recomputed(self) -> dict[str, float]:
        """Return the bound on the probability that the next deletion causes a recomputation.

        A certificate cannot show that the state was computed by the stated algorithm. `ExactLogisticRegression.check`
        verifies this from the state and the records, step by step.
        """
        return {"recompute_probability": subsampling_tv(n=self.n, batch_size=self.batch_size, steps=self.steps)}

    def words(self) -> dict[str, Any]:
        """Return the fields whose text follows from the constants."""
        return words_of(_assumptions(self.noise_source, self.dataset, self.features), self.lost_releases)


def words_of(assumptions: tuple[Assumption, ...], lost_releases: int = 0) -> dict[str, Any]:
    """Return the text fields of a certificate.

    If a restore lost releases, the text contains further limits and assumptions.
    """
    return {
        "comparator": COMPARATOR,
        "not_promised": (*NOT_PROMISED, NOTHING_OF_LOST_RELEASES) if lost_releases else NOT_PROMISED,
        "assumptions": (*assumptions, *((OBLIVIOUS_RESTORE, NO_BACKUP_SEEN) if lost_releases else ())),
    }


@functools.cache
def _assumptions(noise_source: NoiseSource, dataset: str, features: str) -> tuple[Assumption, ...]:
    """Return the assumptions of exactness."""
    return (
        OBLIVIOUS,
        Assumption(
            statement=SECRET_STATE,
            status="assumed",
            by="it shows which records were used when, and contains gradients without noise; no software can check "
            "what backups contain",
        ),
        Assumption(
            statement=CONSTANTS_FIXED,
            status="checked",
            by="the number of steps, batch size, step size, noise and the regulariser's strength were fixed at the "
            "start, from the number of records and the caller's settings, and no request changes them",
        ),
        Assumption(
            statement="batches are uniform subsets, drawn without replacement, also after a request",
            status="checked",
            by="every batch leaves at least one record out, and members of a batch are replaced by uniform draws",
        ),
        preprocessing(dataset, features),
        REAL_NUMBERS,
        unknown_randomness(noise_source),
    )


def unknown_randomness(noise_source: NoiseSource) -> Assumption:
    """Return the assumption that nobody knows the random numbers.

    The wording depends on the source of the random numbers.
    """
    seed = noise_source == "seed"
    return Assumption(
        statement="nobody knows the random numbers",
        status="assumed" if seed else "checked",
        by="the random numbers were drawn from a seed: anybody who has the records, and knows the seed or tries all "
        "32-bit seeds, knows the state"
        if seed
        else "the seeds come from the operating system's entropy, one for each request, and are overwritten",
    )
