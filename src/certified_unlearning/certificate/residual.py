"""Certificates of certified refit and Newton removal: noise on weights whose gradient is certified to be small.

Their guarantee and constants differ from those of noisy steps: `ResidualCertificate` has its own ``kind``. Certificates
never contain the realised bound on the gradient, because it depends on the records.
"""

import functools
from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.accounting.core.rounding import LARGEST_SIGMA
from certified_unlearning.accounting.residual import public, release, schedule, statements
from certified_unlearning.accounting.residual.rounding import FEWEST_TERMS
from certified_unlearning.certificate.base import (
    Certificate,
    CertificateError,
    Scope,
    Stated,
    or_nothing,
)
from certified_unlearning.certificate.guesses import Share, so_many_are_right
from certified_unlearning.certificate.preprocessing import (
    GIVEN,
    possible_class_weights,
    possible_features,
    possible_text,
    preprocessing,
)
from certified_unlearning.data.tables.declaration import Text
from certified_unlearning.mechanisms.refit_plan import Counts, RefitPlan, may_pass, takes_newton_steps
from certified_unlearning.text import counted, rounded_up
from certified_unlearning.vocabulary import NoiseSource, Reading

Loss = Literal["logistic", "softmax", "squared", "one-vs-rest"]


class ResidualCertificate(Certificate):
    """An (epsilon, delta + extra_delta) statement of unlearning against exact refits, with its constants.

    Attributes:
        kind: ``residual``; certificates of noisy steps have none.
        mechanism: ``newton-removal``, or ``certified-refit`` if every request reads the data.
        loss: ``logistic``, ``softmax`` or ``squared``, with an l2 regulariser, on rows of norm at most 1; or
            ``one-vs-rest``: the sum over classes of the logistic losses of each class against the rest.
        comparator: What a release is indistinguishable from.
        observers: The observers that each epsilon covers.
        not_promised: What the certificate does not promise.
        adjacency: ``zero-out``: a removed record's loss is 0, the normaliser ``n`` stays.
        epsilon: Epsilon of the last published model, with requests fixed in advance, at ``delta + extra_delta``.
        mu: The same guarantee as Gaussian differential privacy:
            ``budget / ((strong_convexity + public_curvature) sigma)``.
        releases: Number of published models, including the first.
        lost_releases: Number of these that were lost, because the directory was restored from a backup without them;
            omitted if 0.
        epsilon_all_releases: Epsilon of all of them together, at ``delta + extra_delta_all_releases``, also for
            adaptive requests.
        mu_all_releases: ``mu sqrt(releases)``.
        delta: Strictly between 0 and 1.
        extra_delta: Addition to delta for random norms larger than assumed.
        extra_delta_all_releases: The same, for all releases.
        n: Number of records at the start, and of those added since; public rows are counted, too.
        d: Number of weights.
        classes: Number of classes, at least 2; 1 for ridge regression, whose targets are between -1 and 1.
        strong_convexity: Strong convexity ``m``.
        sigma: Standard deviation of the published noise.
        budget: Upper bound ``tau`` on the gradient's norm at every release; with ``passes`` or ``added`` records, ``m``
            (plus ``public_curvature``) times the upper bound on the distance to the minimiser.
        public_records: Number of the ``n`` rows that are public: they stay, also in the comparator; omitted if 0.
        public_curvature: Addition of the public rows to ``strong_convexity`` between the minimiser and the weights,
            whatever the other records are, as computed from the public rows; omitted if 0.
        removed: Number of records removed so far.
        added: Number of records added since the start; omitted if 0.
        additions: Number of releases that added records, for each of which the data were read; omitted if 0.
        downdate: Whether each removed record's part was taken out of the matrix.
        strict: Whether counts alone decided when data were read again.
        class_weights: Factors, at most 1, on the losses of records of each class; omitted if 1.
        records_between_reads: Number of removed records after which data are read again at the latest; 0: for every
            request.
        scheduled_reads: Number of readings for this reason.
        unscheduled_reads: Number of readings because the budget would have been exceeded.
        passes: Number of other requests for which rows were read to correct the weights, without learning anew; omitted
            if the plan has no passes.
        assumptions: The assumptions of the guarantee.
        dtype: ``float64``.
        noise_resolution: Largest distance, in norm, of published noise from exact Gaussian noise.
        noise_source: Source of the noise.
        dataset: Name of the data set.
        sparse: Whether rows were sparse and every request refitted: then rounding was bounded by their entries.
        features: How features were made; ``given`` by an estimator's user.
        hashed: How each text column became numbers, without a vocabulary; omitted if there was none.
        code_version: Version of the code that ran.
    """

    kind: Literal["residual"] = "residual"
    mechanism: Literal["newton-removal", "certified-refit"]
    loss: Loss
    guarantee: Literal["upper bound"] = "upper bound"
    comparator: str
    observers: str
    not_promised: tuple[str, ...]
    adjacency: Literal["zero-out"] = "zero-out"
    epsilon: float
    mu: float
    releases: int = Field(ge=1)
    lost_releases: int = Field(default=0, ge=0, exclude_if=lambda releases: releases == 0)
    epsilon_all_releases: float | None
    mu_all_releases: float
    delta: float
    extra_delta: float
    extra_delta_all_releases: float | None
    n: int = Field(ge=1)
    d: int = Field(ge=1)
    classes: int = Field(ge=1)
    strong_convexity: float = Field(gt=0, allow_inf_nan=False)
    sigma: float = Field(gt=0, allow_inf_nan=False)
    budget: float = Field(gt=0, allow_inf_nan=False)
    public_records: int = Field(default=0, ge=0, exclude_if=lambda records: records == 0)
    public_curvature: float = Field(default=0.0, ge=0, allow_inf_nan=False, exclude_if=lambda more: more == 0)
    removed: int = Field(ge=0)
    added: int = Field(default=0, ge=0, exclude_if=lambda records: records == 0)
    additions: int = Field(default=0, ge=0, exclude_if=lambda releases: releases == 0)
    downdate: bool
    strict: bool
    class_weights: tuple[float, ...] | None = Field(default=None, exclude_if=lambda weights: weights is None)
    records_between_reads: int = Field(ge=0)
    scheduled_reads: int = Field(ge=0)
    unscheduled_reads: int = Field(ge=0)
    passes: int | None = Field(default=None, ge=0, exclude_if=lambda passes: passes is None)
    assumptions: tuple[Assumption, ...]
    dtype: Literal["float64"] = "float64"
    noise_resolution: float
    noise_source: NoiseSource
    dataset: str
    sparse: bool = Field(default=False, exclude_if=lambda sparse: not sparse)
    features: str
    hashed: tuple[Text, ...] = Field(default=(), exclude_if=lambda columns: not columns)
    code_version: str

    def stated(self) -> Stated:
        """Return its numbers."""
        return Stated(self.epsilon, self.delta, self.extra_delta, self.epsilon_all_releases, self.adjacency, mu=self.mu)

    @property
    def has_removed(self) -> bool:
        """Whether records were removed."""
        return self.removed > 0

    @property
    def lost(self) -> int:
        """Number of lost releases, which the number for all releases counts."""
        return self.lost_releases

    def of_one_release(self) -> Self:
        """Return the same without a number for all releases."""
        return self.model_copy(update={"epsilon_all_releases": None, "extra_delta_all_releases": None})

    @property
    def _requests(self) -> int:
        """Number of requests that the last release has answered; other releases were additions, or lost."""
        return self.releases - 1 - self.additions - self.lost_releases

    def details(self) -> str:
        """Return the whole statement, in technical terms."""
        return (
            f"epsilon = {rounded_up(self.epsilon)} at delta = {rounded_up(self.delta)} against an exact refit with the "
            f"same {self._public_rows_and}noise, {or_nothing(self.epsilon_all_releases)} for all "
            f"{counted(self.releases, 'release')} or adaptive requests ({self.guarantee} by {self.mechanism}; "
            f"{self.not_checked})"
        )

    @classmethod
    def scope(cls, stated: Stated, release: str) -> Scope:
        """Return the scope: one release if requests were fixed in advance, and all releases if anything is stated."""
        sentence = f"against an exact refit with the same noise, requests fixed in advance: {stated.in_words(release)}"
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
        """Return how records were removed from a version."""
        how: dict[Reading | None, str] = {
            "none": "a Newton step",
            "pass": "a step, and passes over the rows, which correct it",
            "scheduled": "reading the data again, as planned",
            "unscheduled": "reading the data again, earlier than planned",
            "addition": "reading the data again",
        }
        return how[reading]

    def done(self, steps: int, reading: Reading | None) -> str:
        """Return whether the model was corrected or learned anew."""
        error = (
            "up to a small error with a limit that was fixed beforehand. Random numbers, called noise, were added to "
            "it, so that it does not show exactly what it was made from."
        )
        if reading in ("none", "pass"):
            return f"The model was corrected for what was removed, {error}"
        those = "the remaining records and some new ones" if reading == "addition" else "the remaining records"
        return f"The model was calculated anew from {those}, {error}"

    def with_known_number(self) -> str:
        """Return the sentence that the exact refit has the same normaliser."""
        return (
            "How many records were removed counts as known, and is not what is guessed. The model compared with "
            "divides by a number that counts the removed records, too, and uses nothing else of them."
        )

    def keeps_removed(self, readings: Iterable[Reading | None]) -> bool:
        """Return whether nothing was learned anew; steps and passes start from the old secret state."""
        return not any(reading in ("scheduled", "unscheduled", "addition") for reading in readings)

    def all_shares(self) -> tuple[Share, ...]:
        """Return also the share of a guesser that chose requests after seeing versions."""
        return super().all_shares() if self._of_all is None else (*super().all_shares(), self._of_all)

    @property
    def _of_all(self) -> Share | None:
        """Largest share of right guesses whether all versions were made like this or exactly; None if not stated."""
        if self.epsilon_all_releases is None or self.extra_delta_all_releases is None:
            return None
        return Share.of_gaussian(self.mu_all_releases, self.extra_delta_all_releases)

    def with_reactions(self) -> str | None:
        """Return the bound for a guesser that chose requests after seeing versions, against the same with refits."""
        if self._of_all is None:
            return None
        often = so_many_are_right(self._of_all)
        every = "both" if self.releases == 2 else f"all {self.releases:,}"
        return (
            f"Someone has {every} versions of the model, and may even have chosen which records to "
            "remove or add. This person guesses whether the versions were made by this software's method, with its "
            "small errors, or each was calculated exactly from the records that were left at its time, with the same "
            f"kind of noise. {often[0].upper()}{often[1:]}. This does not limit what earlier versions show: this "
            "person may already know that the removed records were in them."
        )

    def limits(self) -> dict[str, tuple[bool, str]]:
        """Return for each field whether its value is possible and fits the others."""
        scores = scores_per_record(self.classes)
        mechanism = "newton-removal" if self._is_by_newton else "certified-refit"
        losses = _losses(self.classes)
        squared = losses == ("squared",)
        requests = self._requests
        reads = self.scheduled_reads + self.unscheduled_reads
        extra_delta = self.extra_delta_all_releases
        private = self.n - self.public_records
        most_curvature = public.most_curvature(
            self.public_records, n=self.n, features=max(1, self.d // scores), classes=self.classes
        )
        return {
            "mechanism": (self.mechanism == mechanism, f"{mechanism!r}"),
            "loss": (self.loss in losses, " or ".join(map(repr, losses))),
            "delta": (0 < self.delta < 1, "strictly between 0 and 1"),
            "extra_delta_all_releases": (
                extra_delta is None or 0 <= extra_delta <= self.delta,
                f"at most delta = {self.delta!r}",
            ),
            "sigma": (self.sigma <= LARGEST_SIGMA, f"at most {LARGEST_SIGMA:g}, or weights may overflow"),
            "class_weights": possible_class_weights(self.class_weights, self.classes),
            "d": (self.d % scores == 0, f"a multiple of the {scores} scores of a record"),
            "strict": (not (squared and self.strict), "false for ridge regression"),
            "downdate": (self.downdate or not squared, "true for ridge regression"),
            "added": (
                self.additions <= self.added < self.n and (self.added > 0) == (self.additions > 0),
                f"{self.additions} to {self.n - 1}, and 0 only if additions = 0",
            ),
            "additions": (
                requests >= 0,
                f"at most {self.releases - 1 - self.lost_releases}, for each of them was a release",
            ),
            "public_records": (self.public_records < self.n, f"at most {self.n - 1}, for public rows are counted in n"),
            "public_curvature": (
                self.public_curvature <= most_curvature,
                f"at most {most_curvature:.3g}, what so many public rows can have",
            ),
            "removed": (requests <= self.removed < private, f"{requests} to {private - 1}"),
            "scheduled_reads": (reads <= requests, f"at most {requests}, with those unscheduled"),
            "passes": (
                self.passes is None or (self._may_pass and self._passes_fit(requests - reads)),
                f"{'at most ' if self._is_by_newton else ''}{requests - reads}, beside the readings; left out of other "
                "plans than those of classes that need not be strict",
            ),
            "features": possible_features(self.features),
            "hashed": possible_text(self.hashed, self.features, self.d // scores),
        }

    def recomputed(self) -> dict[str, Any]:
        """Return the numbers that follow from the constants, if some stream of requests has these counts.

        Raises:
            CertificateError: No stream has these counts.
        """
        self.require_readings()
        mu = release.mu_of(self.budget, strong_convexity=self._least_curvature, sigma=self.sigma)
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
        mu = release.mu_of(self.budget, strong_convexity=self._least_curvature, sigma=self.sigma)
        mu_all = release.mu_of_all(mu, self.releases)
        epsilon = epsilon_from_mu(mu_all, self.delta)
        extra = release.noise_delta(epsilon, dimension=self.d, releases=self.releases)
        # An epsilon this large is meaningless: what the sampler leaves out would use up all of delta.
        says_something = extra <= self.delta
        return {
            "mu_all_releases": mu_all,
            "epsilon_all_releases": epsilon if says_something else None,
            "extra_delta_all_releases": extra if says_something else None,
        }

    def words(self) -> dict[str, Any]:
        """Return what must be stated in words."""
        return {
            "comparator": statements.comparator(
                additions=self.additions > 0, one_vs_rest=self._one_vs_rest, public_records=self.public_records
            ),
            "observers": statements.OBSERVERS,
            "not_promised": statements.not_promised(
                by_passes=self.passes is not None,
                every_request_passes=not self._is_by_newton,
                public_records=self.public_records,
            ),
            "assumptions": statements.assumptions(
                preprocessing=preprocessing(self.dataset, self.features, self.hashed),
                noise_source=self.noise_source,
                noise_resolution=release.noise_resolution(self.sigma, self.d),
                strict=self.strict,
                unscheduled=self.unscheduled_reads > 0,
                by_passes=self.passes is not None,
                every_request_passes=not self._is_by_newton,
                class_weights=self.class_weights is not None,
                targets=self.classes == 1,
                additions=self.additions > 0,
                public_records=self.public_records,
                public_curvature=self.public_curvature,
                restored=self.lost_releases > 0,
            ),
        }

    def check(self) -> None:
        """Compare the statement with what the constants give; see `Certificate.check`.

        That the gradient was within the budget, the number of records and the counts of requests and readings are taken
        as stated, provided that some stream of requests has these counts.

        Raises:
            CertificateError: Something differs.
            AssumptionError: float64 cannot keep to the budget.
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
            one_vs_rest=self._one_vs_rest,
            public_curvature=self.public_curvature,
        )

    def require_readings(self) -> None:
        """Check that some stream of requests has the stated number of readings under its plan.

        Cut the stream after every reading: a piece that ends with a scheduled reading has more than
        ``records_between_reads`` records, but no more without its last request, and every other piece, the rest after
        the last reading included, has at most that many; each request has one record or more, so the sums over all
        pieces give the three bounds below. Counts within these bounds are those of a stream: the last request before a
        scheduled reading may be of any size, and without one the pieces have from one record to
        ``records_between_reads`` each. Where records are added, data are read whatever was removed, so a piece that
        ends there has at most ``records_between_reads`` records before that release, which may remove any number.

        Raises:
            CertificateError: There is no such stream.
        """
        most, removed, additions = self.records_between_reads, self.removed, self.additions
        requests = self._requests
        if most > self._most_records:
            raise CertificateError(
                f"the certificate states records_between_reads = {most}, but its constants allow {self._most_records} "
                f"{'where reading depends on counts alone' if self._is_by_newton else 'where every request reads'}"
            )
        scheduled, reads = self.scheduled_reads, self.scheduled_reads + self.unscheduled_reads
        stated = (
            f"the certificate states records_between_reads = {most}, scheduled_reads = {scheduled} and "
            f"unscheduled_reads = {self.unscheduled_reads}, with which"
        )
        least_removed = scheduled * (most + 1) + self.unscheduled_reads
        if removed < least_removed:
            raise CertificateError(
                f"{stated} at least {counted(least_removed, 'record')} must have been removed, but removed = {removed}"
            )
        most_requests = scheduled + most * (reads + additions + 1)
        if requests > most_requests:
            raise CertificateError(
                f"{stated} at most {counted(most_requests, 'request')} can have been answered, but releases = "
                f"{self.releases} says {requests}"
            )
        pieces = reads + (requests > reads)
        if not scheduled and not additions and removed > most * pieces:
            raise CertificateError(
                f"{stated} at most {counted(most * pieces, 'record')} can have been removed in "
                f"{counted(requests, 'request')}, but removed = {removed}"
            )

    @property
    def _is_by_newton(self) -> bool:
        """Whether a removal is a Newton step where possible: for one score of not too many weights."""
        features = self.d // scores_per_record(self.classes) if self._one_vs_rest else self.d
        return takes_newton_steps(self.classes, features, sparse=self.sparse, one_vs_rest=self._one_vs_rest)

    @property
    def _one_vs_rest(self) -> bool:
        """Whether each class has a model against the rest."""
        return self.loss == "one-vs-rest"

    @property
    def _may_pass(self) -> bool:
        """Whether its plan can have passes."""
        features = self.d // scores_per_record(self.classes)
        may = may_pass(self.classes, features, sparse=self.sparse, one_vs_rest=self._one_vs_rest)
        return may and not self.strict and self.records_between_reads > 0

    def _passes_fit(self, requests: int) -> bool:
        """Whether the requests that did not learn anew may have had these passes; with Newton steps, not all have."""
        return self.passes is None or (self.passes <= requests if self._is_by_newton else self.passes == requests)

    @property
    def _most_records(self) -> int:
        """Largest number of records removed between two readings."""
        if not self._is_by_newton and self.passes is None:
            return 0
        if not self.strict:
            return self.records_between_reads
        most = schedule.strict_records(
            n=self.n,
            strong_convexity=self.strong_convexity,
            budget=release.share_of_each(self.budget, self.classes if self._one_vs_rest else 1),
            downdate=self.downdate,
            public_curvature=self.public_curvature,
        )
        return min(most, self.n - self.public_records)

    @property
    def _least_curvature(self) -> float:
        return public.least_curvature(self.strong_convexity, self.public_curvature)

    @property
    def _public_rows_and(self) -> str:
        """Return what an exact refit has in common, besides the noise."""
        return f"{counted(self.public_records, 'public row')} and the same " if self.public_records else ""


def _losses(classes: int) -> tuple[Loss, ...]:
    """Return the possible losses for a number of classes, the usual one first."""
    few: dict[int, tuple[Loss, ...]] = {1: ("squared",), 2: ("logistic",)}
    return few.get(classes, ("softmax", "one-vs-rest"))


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
        counts: Counts of requests and readings since.
        noise_source: Source of the noise.
        lost: Number of models published besides those of the counts, and lost by restores.
        dataset: Name of the data set.
        features: How features were made.
        hashed: How each text column became numbers.
    """
    # A copy, because certificates, like removals, take a fraction of a millisecond.
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
    """Return the certificate of the first release."""
    return ResidualCertificate.made(
        mechanism="newton-removal" if plan.removes_by_newton else "certified-refit",
        loss="one-vs-rest" if plan.one_vs_rest else _losses(plan.classes)[0],
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
