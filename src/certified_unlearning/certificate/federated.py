"""Certificates of federated averaging that unlearns clients exactly; see `certificate.exact`.

All counts are counts of clients. A client leaves with all its rows.
"""

import functools
from typing import Any, Literal, Self

from pydantic import Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.accounting.tv.recomputation import query_recompute_probability
from certified_unlearning.certificate.exact import (
    BY_CHANCE,
    CONSTANTS_FIXED,
    NOTHING_AGAIN,
    OBLIVIOUS,
    REAL_NUMBERS,
    SECRET_STATE,
    ExactOfVersions,
    unknown_randomness,
    words_of,
)
from certified_unlearning.certificate.preprocessing import GIVEN, possible_features, preprocessing
from certified_unlearning.text import counted, rounded_up
from certified_unlearning.vocabulary import NoiseSource, Reading


class FederatedCertificate(ExactOfVersions):
    """A statement of exact unlearning of clients, with the constants that a comparison with a fresh run needs.

    Attributes:
        kind: ``federated``.
        mechanism: ``federated-averaging``.
        loss: Loss of a row. The mean loss of a client's rows includes an l2 regulariser of strength
            ``strong_convexity``.
        guarantee: ``exact``: model and state equal the comparator in distribution.
        comparator: The comparator.
        not_promised: What the certificate does not promise.
        epsilon: 0.
        delta: 0.
        n_learned: Number of clients at the start. All sums are divided by this number, even after removals.
        deleted: Number of clients that have been removed since the start.
        requests: Number of batches of requests that removed clients.
        lost_releases: Number of releases that were published and then lost when the directory was restored from a
            backup without them; left out of the file if 0.
        n: Current number of clients.
        d: Number of weights.
        classes: Number of classes, at least 2.
        strong_convexity: Strong convexity ``lambda``.
        steps: Number of rounds ``T``.
        local_steps: Number of steps that a client takes in a round.
        step_size: Step size of a client's steps.
        clip: Largest norm of a client's update in a round; longer updates are clipped.
        sigma: Standard deviation of the noise on a round's sum, per coordinate.
        recompute_probability: Upper bound on the probability that the next removal of one client causes a
            recomputation: ``1 - (1 - TV)^T``, with the total variation ``TV`` of two Gaussians at the distance
            ``clip / sigma``.
        assumptions: The assumptions of the guarantee.
        noise_source: Source of the randomness.
        dataset: Name of the data set.
        features: How the features were made.
        code_version: Version of the code that ran.
    """

    kind: Literal["federated"] = "federated"
    mechanism: Literal["federated-averaging"] = "federated-averaging"
    loss: Literal["logistic", "softmax"]
    guarantee: Literal["exact"] = "exact"
    comparator: str
    not_promised: tuple[str, ...]
    epsilon: int = Field(default=0, ge=0, le=0, strict=True)
    delta: int = Field(default=0, ge=0, le=0, strict=True)
    n_learned: int = Field(ge=1)
    deleted: int = Field(ge=0)
    requests: int = Field(ge=0)
    lost_releases: int = Field(default=0, ge=0, exclude_if=lambda releases: releases == 0)
    n: int = Field(ge=1)
    d: int = Field(ge=1)
    classes: int = Field(ge=2)
    strong_convexity: float = Field(ge=0, allow_inf_nan=False)
    steps: int = Field(ge=1)
    local_steps: int = Field(ge=1)
    step_size: float = Field(gt=0, allow_inf_nan=False)
    clip: float = Field(gt=0, allow_inf_nan=False)
    sigma: float = Field(gt=0, allow_inf_nan=False)
    recompute_probability: float = Field(ge=0, le=1)
    assumptions: tuple[Assumption, ...]
    noise_source: NoiseSource
    dataset: str = "own"
    features: str = GIVEN
    code_version: str

    @classmethod
    def of(cls, **constants: Any) -> Self:
        """Return the certificate with the given loss, counts and constants.

        The arguments have the names of the fields. ``n`` is computed.
        """
        return cls.made(**constants, n=constants["n_learned"] - constants["deleted"])

    @property
    def lost(self) -> int:
        """Number of releases that were published and lost."""
        return self.lost_releases

    def done(self, steps: int, reading: Reading | None) -> str:
        """Return sentences on how the software decided whether to train again without the removed clients."""
        return f"{BY_CHANCE} {NOTHING_AGAIN}"

    def details(self) -> str:
        """Return the whole statement, in technical terms."""
        left = "the one client that is left" if self.n == 1 else f"the {counted(self.n, 'client')} that are left"
        return (
            f"equal in distribution to a run on {left} ({self.guarantee} by {self.mechanism}; the removal of one "
            f"client recomputes with probability at most {rounded_up(self.recompute_probability)}; {self.not_checked})"
        )

    def limits(self) -> dict[str, tuple[bool, str]]:
        """Return, for each field, whether its value is possible given the other fields, and the possible values."""
        n, least, scores = self.n_learned - self.deleted, min(self.deleted, 1), scores_per_record(self.classes)
        return {
            "n": (self.n == n, f"n_learned - deleted = {n}"),
            "requests": (least <= self.requests <= self.deleted, f"{least} to deleted = {self.deleted}"),
            "loss": (
                self.loss == ("logistic" if self.classes == 2 else "softmax"),
                "the loss for this number of classes",
            ),
            "d": (self.d % scores == 0, f"a multiple of {scores}, the number of scores of a record"),
            "features": possible_features(self.features),
        }

    def recomputed(self) -> dict[str, float]:
        """Return the bound on the probability that the next removal of a client causes a recomputation.

        A certificate cannot show that the state was computed by the stated algorithm. `unlearn verify`
        checks this from the state and the records, round by round.
        """
        bound = query_recompute_probability(queries=self.steps, sigma=self.sigma, bound=self.clip)
        return {"recompute_probability": bound}

    def words(self) -> dict[str, Any]:
        """Return the fields whose text follows from the constants."""
        return words_of(_assumptions(self.noise_source, self.dataset, self.features), self.lost_releases)


@functools.cache
def _assumptions(noise_source: NoiseSource, dataset: str, features: str) -> tuple[Assumption, ...]:
    """Return the assumptions of exactness."""
    return (
        OBLIVIOUS,
        Assumption(
            statement=SECRET_STATE,
            status="assumed",
            by="it contains sums of the clients' updates without noise; no software can check what backups contain",
        ),
        Assumption(
            statement=CONSTANTS_FIXED,
            status="checked",
            by="the number of rounds, the number and size of a client's steps, the largest norm of an update, the "
            "divisor of sums, the noise and the regulariser's strength were fixed at the start, and no request "
            "changes them; they depend only on the numbers of clients and of their rows, and on the caller's settings",
        ),
        Assumption(
            statement="a client's update depends only on the model and on the client's own rows",
            status="checked",
            by="from the model, a client takes gradient steps on the mean loss of its rows, without randomness, and "
            "the resulting update is clipped",
        ),
        preprocessing(dataset, features),
        REAL_NUMBERS,
        unknown_randomness(noise_source),
    )
