"""Certificates of exact unlearning of k-means: centres and state are distributed as in a run on the remaining records.

As for `ExactCertificate`, no epsilon is computed. The certificate states two upper bounds that anybody can check: on
the probability that the next deletion causes a recomputation, and on the mean number of steps that it recomputes.
"""

from typing import Any, Literal

from pydantic import Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.accounting.tv.planning import MOST_STEPS
from certified_unlearning.accounting.tv.recomputation import iterations_run_again
from certified_unlearning.accounting.tv.subsampling import probability_of_any
from certified_unlearning.certificate.exact import (
    CONSTANTS_FIXED,
    OBLIVIOUS,
    REAL_NUMBERS,
    SECRET_STATE,
    EqualInLaw,
    unknown_randomness,
    words_of,
)
from certified_unlearning.certificate.preprocessing import GIVEN, possible_features, preprocessing
from certified_unlearning.vocabulary import NoiseSource

CONTRIBUTION = 2**0.5
"""Largest norm of a record's contribution to a query, for records of norm at most 1.

A record adds its row to one sum, and the number 1 to the count of members of one cluster.
"""


class ExactClustersCertificate(EqualInLaw):
    """A statement of exact unlearning of k-means, with the constants that a comparison with a fresh run needs.

    Attributes:
        kind: ``exact-clusters``.
        mechanism: ``k-means``: Lloyd's algorithm on noisy sums and noisy numbers of members.
        guarantee: ``exact``: centres and state equal the comparator in distribution.
        comparator: The comparator.
        not_promised: What the certificate does not promise.
        epsilon: 0.
        delta: 0.
        n_learned: Number of records at the start.
        deleted: Number of records that were deleted since then.
        inserted: Number of records that were inserted since then.
        requests: Number of requests that deleted or inserted records.
        n: Number of records now.
        d: Number of coordinates of all centres.
        clusters: Number of centres.
        start: How the first centres were chosen: ``mean``, around the noisy mean of all records; ``given``, by the
            caller.
        steps: Number of steps ``T``. In each step, one noisy query reads all records.
        sigma: Standard deviation of the noise on each coordinate of a sum and on each number of members; 0 for no
            noise.
        recompute_probability: Upper bound on the probability that the next deletion of one record causes a
            recomputation: ``1 - (1 - tv)^T``, with the total variation ``tv`` of a query's two Gaussians.
        steps_again: Upper bound on the mean number of steps that the next deletion of one record recomputes.
        assumptions: The assumptions of the guarantee.
        noise_source: Source of the randomness.
        dataset: Name of the data set.
        features: How the features were made; ``given`` if they come from the user of an estimator.
        code_version: Version of the code that ran.
    """

    kind: Literal["exact-clusters"] = "exact-clusters"
    mechanism: Literal["k-means"] = "k-means"
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
    clusters: int = Field(ge=1)
    start: Literal["mean", "given"]
    steps: int = Field(ge=1)
    sigma: float = Field(ge=0, allow_inf_nan=False)
    recompute_probability: float = Field(ge=0, le=1)
    steps_again: float = Field(ge=0, allow_inf_nan=False)
    assumptions: tuple[Assumption, ...]
    noise_source: NoiseSource
    dataset: str = "own"
    features: str = GIVEN
    code_version: str

    def limits(self) -> dict[str, tuple[bool, str]]:
        """Return, for each field, whether its value is possible given the other fields, and the possible values."""
        return {
            **self.limits_of_counts(),
            "n_learned": (
                self.n_learned >= self.clusters,
                f"at least one record for each of the {self.clusters} clusters",
            ),
            "d": (self.d % self.clusters == 0, f"a multiple of the {self.clusters} centres"),
            "steps": (self.steps <= MOST_STEPS, f"at most {MOST_STEPS:,}"),
            "features": possible_features(self.features),
        }

    def recomputed(self) -> dict[str, float]:
        """Return two bounds for the next deletion.

        The bounds are on the probability that the deletion recomputes steps, and on the mean number of recomputed
        steps.

        A certificate cannot show that the state was computed by the stated algorithm. `ExactKMeans.check` verifies this
        from the state and the records, step by step.
        """
        rejection = gaussian_tv(CONTRIBUTION / self.sigma) if self.sigma else 1.0
        return {
            "recompute_probability": probability_of_any(rejection, self.steps),
            # The mean grows with the probability that one step rejects: after an earlier rejection, more steps are
            # recomputed.
            "steps_again": iterations_run_again(steps=self.steps, rejection=rejection, reflected_counts=False),
        }

    def words(self) -> dict[str, Any]:
        """Return the fields whose text follows from the constants."""
        fixed = "the number of steps and the noise were fixed before records were read, and no request changes them; "
        given = self.start == "given"
        return words_of(
            (
                OBLIVIOUS,
                Assumption(
                    statement=SECRET_STATE,
                    status="assumed",
                    by="it contains the records, and sums without noise; no software can check what backups contain",
                ),
                Assumption(
                    statement=CONSTANTS_FIXED,
                    status="assumed" if given else "checked",
                    by=f"{fixed}the first centres were given, and are assumed to come from other knowledge"
                    if given
                    else f"{fixed}the first centres are in random directions around a noisy mean, which is part of the "
                    "run",
                ),
                Assumption(
                    statement="rows have norm at most 1",
                    status="checked",
                    by="longer rows are refused or scaled down; of the statements in this certificate, only the "
                    "bounds on recomputation depend on this limit",
                ),
                preprocessing(self.dataset, self.features),
                REAL_NUMBERS,
                unknown_randomness(self.noise_source),
            )
        )
