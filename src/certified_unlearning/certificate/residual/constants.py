"""The fields of a residual certificate, and the properties of its plan that follow from them."""

from typing import Literal

from pydantic import Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.accounting.residual import public, release, schedule
from certified_unlearning.certificate.ledger import LedgerCertificate
from certified_unlearning.data.tables.declaration import Text
from certified_unlearning.mechanisms.refit_plan import may_pass, takes_newton_steps
from certified_unlearning.vocabulary import NoiseSource

Loss = Literal["logistic", "softmax", "squared", "one-vs-rest"]


class ResidualConstants(LedgerCertificate):
    """An (epsilon, delta + extra_delta) statement of unlearning against exact refits, with its constants.

    Attributes:
        kind: ``residual``; certificates of noisy steps do not have this field.
        mechanism: ``newton-removal``, or ``certified-refit`` if every request reads the data.
        loss: ``logistic``, ``softmax`` or ``squared``, with an l2 regulariser, on rows of norm at most 1; or
            ``one-vs-rest``: the sum over classes of the logistic losses of each class against the rest.
        comparator: What a release is indistinguishable from.
        observers: The observers that each epsilon covers.
        not_promised: What the certificate does not promise.
        adjacency: ``zero-out``: a removed record's loss is 0, and the normaliser ``n`` does not change.
        epsilon: Epsilon of the last published model, with requests fixed in advance, at ``delta + extra_delta``.
        mu: The same guarantee as Gaussian differential privacy:
            ``budget / ((strong_convexity + public_curvature) sigma)``.
        releases: Number of published models, including the first one.
        lost_releases: Number of published models that were lost, because the directory was restored from a backup
            without them; omitted if 0.
        epsilon_all_releases: Epsilon of all published models together, at ``delta + extra_delta_all_releases``, also
            for adaptive requests.
        mu_all_releases: ``mu sqrt(releases)``.
        delta: Target delta, strictly between 0 and 1.
        extra_delta: Addition to delta, for the last release, because norms of the noise may be larger than assumed.
        extra_delta_all_releases: The same addition for all releases together.
        n: Number of records at the start, plus the number of records added since; public rows are included.
        d: Number of weights.
        classes: Number of classes, at least 2; 1 for ridge regression, whose targets are between -1 and 1.
        strong_convexity: Strong convexity ``m``.
        sigma: Standard deviation of the published noise.
        budget: Upper bound ``tau`` on the gradient's norm at every release. With ``passes`` or ``added`` records, it is
            instead ``m`` (plus ``public_curvature``) times an upper bound on the distance to the minimiser.
        public_records: Number of public rows among the ``n``. Public rows are never removed, and the comparator has
            them, too. Omitted if 0.
        public_curvature: Curvature that the public rows add to ``strong_convexity``. They add this curvature between
            the minimiser and the weights, whatever the other records are. It is computed from the public rows. Omitted
            if 0.
        removed: Number of records removed so far.
        added: Number of records added since the start; omitted if 0.
        additions: Number of releases that added records; each of them read the data. Omitted if 0.
        downdate: Whether each removed record's part of the Hessian was subtracted from the stored Hessian.
        strict: Whether the times at which data were read again depended only on counts of records.
        class_weights: Factors, at most 1, by which the losses of the records of each class are multiplied; omitted if
            all are 1.
        records_between_reads: Largest number of records that may be removed before data are read again; 0 if data are
            read for every request.
        scheduled_reads: Number of readings that took place because more than ``records_between_reads`` records had been
            removed.
        unscheduled_reads: Number of readings that took place because the budget would have been exceeded.
        passes: Number of requests for which rows were read to correct the weights, without learning anew; omitted if
            the plan has no passes.
        assumptions: The assumptions of the guarantee.
        dtype: ``float64``.
        noise_resolution: Largest distance, in norm, between published noise and exact Gaussian noise.
        noise_source: Source of the noise.
        dataset: Name of the data set.
        sparse: Whether rows were sparse and every request was answered by a refit. Then the bound on rounding depends
            on the number of entries in a row.
        features: Description of how features were made; ``given`` if they come from the user of an estimator.
        hashed: Text columns that were hashed without a vocabulary, and how each was hashed. Omitted if there are none.
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

    @property
    def requests(self) -> int:
        """Number of answered requests. The first release, additions and lost releases are not counted."""
        return self.releases - 1 - self.additions - self.lost_releases

    @property
    def is_by_newton(self) -> bool:
        """Whether the plan removes records by Newton steps.

        This needs a model with a single score and not too many weights.
        """
        features = self.d // scores_per_record(self.classes) if self.one_vs_rest else self.d
        return takes_newton_steps(self.classes, features, sparse=self.sparse, one_vs_rest=self.one_vs_rest)

    @property
    def one_vs_rest(self) -> bool:
        """Whether each class has a model of its own, against all other classes."""
        return self.loss == "one-vs-rest"

    @property
    def may_pass(self) -> bool:
        """Whether the plan can have passes."""
        features = self.d // scores_per_record(self.classes)
        may = may_pass(self.classes, features, sparse=self.sparse, one_vs_rest=self.one_vs_rest)
        return may and not self.strict and self.records_between_reads > 0

    def passes_fit(self, requests: int) -> bool:
        """Return whether the stated number of passes is possible, given the number of requests without a reading.

        With Newton steps, a request without a reading may need no pass. Without Newton steps, each request without a
        reading has one pass.
        """
        return self.passes is None or (self.passes <= requests if self.is_by_newton else self.passes == requests)

    @property
    def most_records(self) -> int:
        """Largest number of records that may be removed between two readings."""
        if not self.is_by_newton and self.passes is None:
            return 0
        if not self.strict:
            return self.records_between_reads
        most = schedule.strict_records(
            n=self.n,
            strong_convexity=self.strong_convexity,
            budget=release.share_of_each(self.budget, self.classes if self.one_vs_rest else 1),
            downdate=self.downdate,
            public_curvature=self.public_curvature,
        )
        return min(most, self.n - self.public_records)

    @property
    def least_curvature(self) -> float:
        """Strong convexity of the objective, including the curvature of the public rows."""
        return public.least_curvature(self.strong_convexity, self.public_curvature)


def losses_of(classes: int) -> tuple[Loss, ...]:
    """Return the possible losses for a number of classes; the usual loss is the first."""
    few: dict[int, tuple[Loss, ...]] = {1: ("squared",), 2: ("logistic",)}
    return few.get(classes, ("softmax", "one-vs-rest"))
