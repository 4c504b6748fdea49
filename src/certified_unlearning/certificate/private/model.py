"""The certificate of private learning: written from a plan, and recomputed from its constants."""

import math
from collections.abc import Mapping
from dataclasses import fields
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.private import PLANS, plan_of
from certified_unlearning.accounting.private.guarantee import GROUPS, extra_delta
from certified_unlearning.accounting.private.learners import LEARNERS
from certified_unlearning.accounting.private.losses import LossName
from certified_unlearning.accounting.private.plan import PlanConstants, PrivatePlan, RunConstants
from certified_unlearning.accounting.private.sampled import require_dp_accounting
from certified_unlearning.accounting.private.searches import SELECTIONS
from certified_unlearning.certificate.base import TOLERANCE, Certificate, CertificateError, Stated, bet_on_one
from certified_unlearning.certificate.preprocessing import GIVEN, possible_features
from certified_unlearning.certificate.private.statement import words
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.text import counted, rounded_up
from certified_unlearning.vocabulary import NoiseSource, Relation

NUMERICAL_TOLERANCE = 1e-6
"""Relative tolerance for epsilons of Poisson batches. It is needed because versions of dp-accounting sum in different
orders."""
if TYPE_CHECKING:
    MechanismName = str
    SelectionName = str
    Run = RunConstants
else:  # The values that a file may contain are the names in the tables of plans.
    MechanismName = Literal[tuple(PLANS)]
    SelectionName = Literal[("none", *SELECTIONS)]
    Run = reduce(or_, (kind.run_constants for kind in PLANS.values()))


class Deletions(BaseModel):
    """The epsilon of an unchanged model after deletions.

    Attributes:
        records: Number of deleted records.
        epsilon: Epsilon by group privacy, at ``delta + extra_delta``.
        extra_delta: Addition to delta for this epsilon, as in `PrivateCertificate`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    records: int = Field(ge=1)
    epsilon: float
    extra_delta: float


class PrivateCertificate(Certificate):
    """An (epsilon, delta + extra_delta) statement of differential privacy, with the constants to recompute it.

    Attributes:
        kind: ``private``.
        mechanism: Name of the mechanism that learned the model.
        selection: How one of several models was selected; the selection reads records that no model learned from.
        hidden: Description of the facts that the neighbouring relation hides.
        observers: Description of the people from whom the neighbouring relation hides the facts that ``hidden``
            describes.
        comparator: What deletions are compared with.
        not_promised: What the certificate does not promise.
        relation: Neighbouring relation of data sets; an epsilon is meaningless without it.
        epsilon: Epsilon of one record, at ``delta + extra_delta``.
        mu: ``mu`` of all noisy releases together, as Gaussian differential privacy; None for Poisson batches, which
            have no ``mu``.
        selection_epsilon: Pure epsilon of the selection; 0 without a selection.
        delta: Target delta, strictly between 0 and 1.
        extra_delta: Addition to delta for random norms larger than assumed, and for selections that use finitely many
            random bits.
        deletions: Epsilon of the unchanged model, for several numbers of deleted records.
        sampling: ``full batch`` if every step reads all records; then no amplification is claimed. Otherwise the field
            states which parts read which records, or the probability with which batches were drawn. Drawn batches are
            secret.
        loss: Loss ``phi`` of a score and a target.
        width: Width of the parabola of the losses ``absolute`` and ``huber``.
        target: Largest absolute value of a target; larger targets were clipped. 1 for classes.
        row_norm: Largest norm of a row; longer rows were scaled down. The epsilon of DP-SGD depends neither on this
            norm nor on the loss.
        n: Number of records.
        d: Number of columns of a row.
        learned_n: Number of records that each run of a selection learned from; for other mechanisms, the number of
            records that were read.
        unused: Number of records that no run, stage or phase read.
        learned_d: Number of columns of a row during learning. It is below ``d`` after a random projection. Projected
            rows were scaled down to ``sqrt(2) row_norm``.
        embedded: Whether rows were projected at random.
        runs: Constants of each run, stage or phase; constants of a single run for boosting, because its runs are equal.
        chunks: Number of runs that boosting selected from; otherwise None.
        beta: Parameter of a search's selection. It affects the probabilities of the selection, but not privacy.
        assumptions: The assumptions of the guarantee.
        noise_resolution: Largest distance, in norm, between the learned weights and those with exact noise, over all
            stages or phases together. For mechanisms whose noise on the weights has no such bound, this is the
            resolution of the noisiest release, which is a gradient.
        noise_source: Source of the noise.
        dataset: Name of the data set.
        features: How the features were made; ``given`` if they come from the user of an estimator.
        code_version: Version of the code that ran.
    """

    seen = "the model"
    known = "what all other records say"
    unknown = "the random numbers of the model"

    kind: Literal["private"] = "private"
    mechanism: MechanismName
    selection: SelectionName
    guarantee: Literal["upper bound"] = "upper bound"
    hidden: str
    observers: str
    comparator: str
    not_promised: tuple[str, ...]
    relation: Relation
    epsilon: float
    mu: float | None
    selection_epsilon: float = Field(ge=0, allow_inf_nan=False)
    delta: float
    extra_delta: float
    deletions: tuple[Deletions, ...]
    sampling: str
    loss: LossName
    width: float | None
    target: float = Field(gt=0, allow_inf_nan=False)
    row_norm: float = Field(gt=0, allow_inf_nan=False)
    n: int = Field(ge=1)
    d: int = Field(ge=1)
    learned_n: int = Field(ge=1)
    unused: int = Field(default=0, ge=0)
    learned_d: int = Field(ge=1)
    embedded: bool
    runs: tuple[Run, ...] = Field(min_length=1)
    chunks: int | None = Field(default=None, ge=1)
    beta: float | None = Field(default=None, gt=0, lt=1)
    assumptions: tuple[Assumption, ...]
    noise_resolution: float
    noise_source: NoiseSource
    dataset: str = "own"
    features: str = GIVEN
    code_version: str

    @classmethod
    def of(
        cls,
        plan: PrivatePlan,
        *,
        delta: float,
        features: int | None = None,
        row_norm: float | None = None,
        noise_source: NoiseSource,
        dataset: str = "own",
        made: str = GIVEN,
    ) -> Self:
        """Return the certificate of a model.

        Args:
            plan: The plan that was run.
            delta: Target delta, strictly between 0 and 1.
            features: Number of columns of a row before a random projection; None without a projection.
            row_norm: Largest norm of the rows before a random projection; None without a projection.
            noise_source: Source of the noise.
            dataset: Name of the data set.
            made: How the features were made.

        Raises:
            ParameterError: No finite epsilon is found at this delta, or Poisson batches were used and dp-accounting is
                not installed.
        """
        constants = plan.constants(features=features, row_norm=row_norm)
        numbers = _numbers(plan, constants.n, delta)
        if not math.isfinite(numbers["epsilon"]):
            raise ParameterError(f"no epsilon is found at delta = {delta!r}: give a larger delta, or use more noise")
        return cls.made(
            numbers, **vars(constants), delta=delta, noise_source=noise_source, dataset=dataset, features=made
        )

    @property
    def constants(self) -> PlanConstants:
        """The constants of the certificate's plan."""
        return PlanConstants(**{field.name: getattr(self, field.name) for field in fields(PlanConstants)})

    @property
    def plan(self) -> PrivatePlan:
        """The plan with the certificate's constants.

        Values that do not affect privacy may differ from the values of the run.

        Raises:
            ParameterError: No plan has these constants.
            AssumptionError: A condition for the plan's privacy does not hold.
        """
        return plan_of(self.constants)

    @property
    def bet(self) -> str:
        """The statement whose truth the guesser tries to guess."""
        return bet_on_one(self.relation)

    def stated(self) -> Stated:
        """Return the certificate's numbers.

        The certificate states no number for several models together. ``mu`` covers only the Gaussian releases. A
        selection is not a Gaussian release and has its own epsilon, so ``mu`` is None with a selection.
        """
        mu = None if self.selection_epsilon else self.mu
        return Stated(self.epsilon, self.delta, self.extra_delta, None, adjacency=self.relation, mu=mu)

    def details(self) -> str:
        """Return the whole statement, in technical terms."""
        several = "; ".join(f"{each.records}: {rounded_up(each.epsilon, 3)}" for each in self.deletions[1:])
        worth = f"unchanged after deletions of several records, epsilon of {several}" if several else "of one record"
        secret = "" if self.mu is not None else ", as long as batches stay secret"
        return (
            f"epsilon = {rounded_up(self.epsilon)} at delta = {rounded_up(self.delta + self.extra_delta)} under "
            f"{self.relation}, with respect to everybody who sees the model{secret}; {worth} (private by "
            f"{self.mechanism}; {self.not_checked})"
        )

    def limits(self) -> dict[str, tuple[bool, str]]:
        """Return, for each field, whether its value is possible given the other fields, and the possible values."""
        kind, selection = PLANS[self.mechanism], SELECTIONS.get(self.selection)
        several = kind.several_runs or (selection is not None and selection.several_runs)
        stated = None if selection is None else selection.stated
        least = self.learned_n * (self.chunks or 1) + self.unused
        return {
            "delta": (0 < self.delta < 1, "strictly between 0 and 1"),
            "extra_delta": (0 <= self.extra_delta <= self.delta, f"at most delta = {self.delta!r}"),
            "selection": (
                selection is None or self.mechanism in LEARNERS,
                "none: no model of this mechanism is selected",
            ),
            "runs": (several or len(self.runs) == 1, "one"),
            "chunks": ((self.chunks is not None) == (stated == "chunks"), "given for boosting only"),
            "beta": ((self.beta is not None) == (stated == "beta"), "given for a search only"),
            "selection_epsilon": (
                (self.selection_epsilon > 0) == (selection is not None),
                "above 0 where a model was selected, and 0 otherwise",
            ),
            "n": (
                self.n == least if selection is None else self.n > least,
                f"{'equal to' if selection is None else 'above'} {least}, what was read",
            ),
            "unused": (not self.unused or kind.disjoint, "0: this mechanism leaves no record unused"),
            "learned_d": (
                self.learned_d < self.d if self.embedded else self.learned_d == self.d,
                f"{'below' if self.embedded else 'equal to'} d = {self.d}",
            ),
            "features": possible_features(self.features),
        }

    def recomputed(self) -> dict[str, Any]:
        """Return the numbers that follow from the constants, keyed by the names of their fields.

        The number of records and the enforcement of the bounds on records are taken as stated, because a certificate
        contains no records.

        Raises:
            CertificateError: The constants are impossible.
        """
        try:
            plan = self.plan
            constants = plan.constants(features=self.d, row_norm=self.row_norm)
            numbers = _numbers(plan, constants.n, self.delta)
        except (ParameterError, AssumptionError, OverflowError, ZeroDivisionError) as error:
            raise CertificateError(f"the certificate's constants are impossible: {error}") from error
        whole = {name: getattr(constants, name) for name in ("n", "learned_n", "unused", "runs")}
        return numbers | whole

    def words(self) -> Mapping[str, Any]:
        """Return the fields whose text follows from the constants."""
        return words(
            self.plan,
            embedded=self.embedded,
            noise_source=self.noise_source,
            dataset=self.dataset,
            features=self.features,
        )

    def check(self) -> None:
        """Compare the statement with what follows from the constants; see `Certificate.check`.

        Raises:
            ParameterError: The certificate is for Poisson batches, and dp-accounting is not installed.
        """
        tolerance = TOLERANCE
        if PLANS[self.mechanism].numerical:
            require_dp_accounting()
            tolerance = NUMERICAL_TOLERANCE
        self.require(self.limits())
        due = self.recomputed()
        deletions, runs = due.pop("deletions"), due.pop("runs")
        for name, computed in due.items():
            self.require_number(name, getattr(self, name), computed, tolerance)
        self._check_deletions(deletions, tolerance)
        for number, (run, right) in enumerate(zip(self.runs, runs, strict=True), start=1):
            for name, computed in right.model_dump().items():
                self.require_number(f"{name} of run {number}", getattr(run, name), computed)
        self.require_words(self.words())

    def _check_deletions(self, due: tuple[Deletions, ...], tolerance: float) -> None:
        if [each.records for each in self.deletions] != [each.records for each in due]:
            raise CertificateError(
                f"the certificate must state epsilons for {[each.records for each in due]} deletions"
            )
        for said, right in zip(self.deletions, due, strict=True):
            several = counted(right.records, "deletion")
            self.require_number(f"epsilon of {several}", said.epsilon, right.epsilon, tolerance)
            self.require_number(f"extra_delta of {several}", said.extra_delta, right.extra_delta, tolerance)


def _numbers(plan: PrivatePlan, records: int, delta: float) -> dict[str, Any]:
    """Return the numbers that follow from the plan.

    ``records`` is the number of records of the plan.
    """
    guarantee = plan.guarantee
    epsilon = guarantee.epsilon(delta)
    groups = [
        Deletions(records=count, epsilon=each, extra_delta=extra_delta(plan.failure, each))
        for count in GROUPS
        if count <= records
        for each in [guarantee.epsilon(delta, records=count)]
    ]
    return {
        "epsilon": epsilon,
        "mu": guarantee.mu,
        "extra_delta": extra_delta(plan.failure, epsilon),
        # With a larger addition, an epsilon is meaningless: the part that selections leave out would use up all of
        # delta.
        "deletions": tuple(each for each in groups if each.extra_delta <= delta),
        "noise_resolution": plan.noise_resolution,
    }
