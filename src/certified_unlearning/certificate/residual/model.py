"""The certificate of an exact refit with noise: made from a plan and its counts, and recomputed from its constants."""

import functools
from collections.abc import Iterable
from typing import Any, Self

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.accounting.residual import release, statements
from certified_unlearning.accounting.residual.rounding import FEWEST_TERMS
from certified_unlearning.certificate.base import Stated, or_nothing
from certified_unlearning.certificate.guesses import Share, so_many_are_right
from certified_unlearning.certificate.ledger import Scope
from certified_unlearning.certificate.preprocessing import GIVEN, preprocessing
from certified_unlearning.certificate.residual.constants import ResidualConstants, losses_of
from certified_unlearning.certificate.residual.limits import limits_of, require_readings
from certified_unlearning.data.tables.declaration import Text
from certified_unlearning.mechanisms.refit_plan import Counts, RefitPlan
from certified_unlearning.text import capitalised, counted, rounded_up
from certified_unlearning.vocabulary import NoiseSource, Reading


class ResidualCertificate(ResidualConstants):
    """A statement that compares unlearning with exact refits; `ResidualConstants` defines its fields."""

    def stated(self) -> Stated:
        """Return the numbers of the statement."""
        return Stated(self.epsilon, self.delta, self.extra_delta, self.epsilon_all_releases, self.adjacency, mu=self.mu)

    @property
    def has_removed(self) -> bool:
        """Whether records were removed."""
        return self.removed > 0

    @property
    def lost(self) -> int:
        """Number of lost releases; the guarantee for all releases includes them."""
        return self.lost_releases

    def of_one_release(self) -> Self:
        """Return the certificate without the numbers that cover all releases together."""
        return self.model_copy(update={"epsilon_all_releases": None, "extra_delta_all_releases": None})

    def details(self) -> str:
        """Return the whole statement in technical terms."""
        return (
            f"epsilon = {rounded_up(self.epsilon)} at delta = {rounded_up(self.delta)} against an exact refit with the "
            f"same {self._public_rows_and}noise; guaranteed epsilon for all {counted(self.releases, 'release')} "
            f"together, and for adaptive requests: {or_nothing(self.epsilon_all_releases)} ({self.guarantee} by "
            f"{self.mechanism}; {self.not_checked})"
        )

    @classmethod
    def scope(cls, stated: Stated, release: str) -> Scope:
        """Return the scope: the last release for fixed requests, and all releases if a number covers them."""
        sentence = (
            f"against an exact refit with the same noise, for requests fixed in advance: {stated.in_words(release)}"
        )
        adaptive = stated.epsilon_all_published is not None
        return Scope(
            compared_with="an exact refit with the same noise",
            adaptive=adaptive,
            sentence=f"{sentence}, also with adaptive requests. No guarantee for the remaining records"
            if adaptive
            else sentence,
        )

    @classmethod
    def removed_by(cls, steps: int, reading: Reading | None) -> str:
        """Return the way in which records were removed from a version."""
        how: dict[Reading | None, str] = {
            "none": "a Newton step",
            "pass": "a step, corrected by passes over the rows",
            "scheduled": "reading the data again, as planned",
            "unscheduled": "reading the data again, earlier than planned",
            "addition": "reading the data again",
        }
        return how[reading]

    def done(self, steps: int, reading: Reading | None) -> str:
        """Return sentences that say whether the model was corrected or learned anew."""
        error = (
            "up to a small error whose limit was fixed beforehand. Random numbers, called noise, were added to "
            "it, so that it does not show exactly what it was made from."
        )
        if reading in ("none", "pass"):
            return f"The model was corrected for what was removed, {error}"
        those = "the remaining records and some new ones" if reading == "addition" else "the remaining records"
        return f"The model was calculated anew from {those}, {error}"

    def with_known_number(self) -> str:
        """Return sentences that say that the exact refit divides by a number that includes the removed records."""
        return (
            "The number of removed records is assumed to be known, so the guesses are not about this number. The model "
            "used for comparison divides by a number that includes the removed records. It uses no other information "
            "about these records."
        )

    def keeps_removed(self, readings: Iterable[Reading | None]) -> bool:
        """Return whether every version came from steps and passes only.

        Steps and passes start from the old secret state.
        """
        return not any(reading in ("scheduled", "unscheduled", "addition") for reading in readings)

    def all_shares(self) -> tuple[Share, ...]:
        """Return the share of right guesses, and the share for a guesser that chose requests after seeing versions."""
        return super().all_shares() if self._of_all is None else (*super().all_shares(), self._of_all)

    @property
    def _of_all(self) -> Share | None:
        """Largest share of right guesses on whether all versions are exact refits; None if not stated."""
        if self.epsilon_all_releases is None or self.extra_delta_all_releases is None:
            return None
        return Share.of_gaussian(self.mu_all_releases, self.extra_delta_all_releases)

    def with_reactions(self) -> str | None:
        """Return sentences that bound the right guesses for requests that depended on earlier versions.

        Return None if there is no bound.
        """
        if self._of_all is None:
            return None
        often = so_many_are_right(self._of_all)
        every = "both" if self.releases == 2 else f"all {self.releases:,}"
        return (
            f"Someone has {every} versions of the model, and may even have chosen which records to "
            "remove or add. This person guesses which of two cases is true. In the first case, this software's "
            "method made the versions, with its small errors. In the second case, each version was calculated exactly "
            "from the records that were left at its time, with the same kind of noise. "
            f"{capitalised(often)}. This does not limit what earlier versions show: this person may already "
            "know that the removed records were in them."
        )

    def limits(self) -> dict[str, tuple[bool, str]]:
        """Return, for each field, whether its value is possible; see `limits.limits_of`."""
        return limits_of(self)

    def recomputed(self) -> dict[str, Any]:
        """Return the numbers that follow from the constants.

        Also check that some stream of requests can have the stated counts.

        Raises:
            CertificateError: No stream of requests has the stated counts.
        """
        require_readings(self)
        mu = release.mu_of(self.budget, strong_convexity=self.least_curvature, sigma=self.sigma)
        epsilon = epsilon_from_mu(mu, self.delta)
        return {
            "mu": mu,
            "epsilon": epsilon,
            "extra_delta": release.noise_delta(epsilon, dimension=self.d, releases=1),
            "noise_resolution": release.noise_resolution(self.sigma, self.d),
            **self.of_all_releases(),
        }

    def of_all_releases(self) -> dict[str, float | None]:
        """Return the numbers that cover all releases."""
        mu = release.mu_of(self.budget, strong_convexity=self.least_curvature, sigma=self.sigma)
        mu_all = release.mu_of_all(mu, self.releases)
        epsilon = epsilon_from_mu(mu_all, self.delta)
        extra = release.noise_delta(epsilon, dimension=self.d, releases=self.releases)
        # Such a large epsilon is meaningless: the tails that the sampler does not draw would use up all of delta.
        says_something = extra <= self.delta
        return {
            "mu_all_releases": mu_all,
            "epsilon_all_releases": epsilon if says_something else None,
            "extra_delta_all_releases": extra if says_something else None,
        }

    def words(self) -> dict[str, Any]:
        """Return the fields that are sentences: the comparator, observers, assumptions, and what is not promised."""
        return {
            "comparator": statements.comparator(
                additions=self.additions > 0, one_vs_rest=self.one_vs_rest, public_records=self.public_records
            ),
            "observers": statements.OBSERVERS,
            "not_promised": statements.not_promised(
                by_passes=self.passes is not None,
                every_request_passes=not self.is_by_newton,
                public_records=self.public_records,
            ),
            "assumptions": statements.assumptions(
                preprocessing=preprocessing(self.dataset, self.features, self.hashed),
                noise_source=self.noise_source,
                noise_resolution=release.noise_resolution(self.sigma, self.d),
                strict=self.strict,
                unscheduled=self.unscheduled_reads > 0,
                by_passes=self.passes is not None,
                every_request_passes=not self.is_by_newton,
                class_weights=self.class_weights is not None,
                targets=self.classes == 1,
                additions=self.additions > 0,
                public_records=self.public_records,
                public_curvature=self.public_curvature,
                restored=self.lost_releases > 0,
            ),
        }

    def check(self) -> None:
        """Compare the statement with what follows from the constants; see `Certificate.check`.

        Three facts are taken as stated: the bound on the gradient, the number of records, and the counts of requests
        and readings. The counts are checked in only one way: some stream of requests must lead to these counts.

        Raises:
            CertificateError: Something differs.
            AssumptionError: float64 is too coarse for the budget.
        """
        super().check()
        release.require_representable(
            n=self.n,
            features=self.d // scores_per_record(self.classes),
            classes=self.classes,
            strong_convexity=self.strong_convexity,
            sigma=self.sigma,
            delta=self.delta,
            budget=self.budget,
            terms=FEWEST_TERMS if self.sparse else None,
            one_vs_rest=self.one_vs_rest,
            public_curvature=self.public_curvature,
        )

    @property
    def _public_rows_and(self) -> str:
        """Return the phrase for the public rows that the exact refit also has; empty without public rows."""
        return f"{counted(self.public_records, 'public row')} and the same " if self.public_records else ""


def of(
    plan: RefitPlan,
    counts: Counts,
    *,
    noise_source: NoiseSource,
    lost: int = 0,
    dataset: str = "own",
    features: str = GIVEN,
    hashed: tuple[Text, ...] = (),
) -> ResidualCertificate:
    """Return the certificate of a model after some requests.

    Args:
        plan: The plan, fixed before anything was learned.
        counts: Counts of requests and readings since the start.
        noise_source: Source of the noise.
        lost: Number of models that were published and then lost by restores; `counts` does not include these models.
        dataset: Name of the data set.
        features: Description of how features were made.
        hashed: Text columns, and how each was hashed.
    """
    # A copy takes less than a millisecond, as a removal does; validation would take longer.
    after = _before_removals(plan, noise_source, dataset, features, hashed).model_copy(
        update={
            "releases": counts.requests + 1 + lost,
            "lost_releases": lost,
            "removed": counts.removed,
            "scheduled_reads": counts.scheduled,
            "unscheduled_reads": counts.unscheduled,
            "passes": counts.passes if plan.by_passes else None,
            "added": counts.added,
            "additions": counts.additions,
        }
    )
    return after.model_copy(update={**after.of_all_releases(), **after.words()})


@functools.lru_cache(maxsize=64)
def _before_removals(
    plan: RefitPlan, noise_source: NoiseSource, dataset: str, features: str, hashed: tuple[Text, ...]
) -> ResidualCertificate:
    """Return the certificate of the first release, from which nothing was removed."""
    return ResidualCertificate.made(
        mechanism="newton-removal" if plan.removes_by_newton else "certified-refit",
        loss="one-vs-rest" if plan.one_vs_rest else losses_of(plan.classes)[0],
        d=plan.dimension,
        **plan.model_dump(include=RefitPlan.model_fields.keys() - {"features", "epsilon", "by_passes", "one_vs_rest"}),
        releases=1,
        removed=0,
        scheduled_reads=0,
        unscheduled_reads=0,
        passes=0 if plan.by_passes else None,
        noise_source=noise_source,
        dataset=dataset,
        features=features,
        hashed=hashed,
    )
