"""The certificate of private learning: written from a plan, and recomputed from its constants."""

import math
from dataclasses import fields
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.core.rounding import resolution
from certified_unlearning.accounting.private.guarantee import GROUPS, PrivateGuarantee, extra_delta
from certified_unlearning.accounting.private.learners import NoisyDescent
from certified_unlearning.accounting.private.losses import LossName
from certified_unlearning.accounting.private.phased import PhasedDescent
from certified_unlearning.accounting.private.recursive import RecursiveRegularisation
from certified_unlearning.accounting.private.sampled import SampledDescent, require_dp_accounting
from certified_unlearning.accounting.private.sampled_spider import SampledSpider
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.accounting.private.tree_spider import TreeSpider
from certified_unlearning.certificate.base import TOLERANCE, Certificate, CertificateError, Stated
from certified_unlearning.certificate.preprocessing import GIVEN, possible_features
from certified_unlearning.certificate.private.constants import (
    ESTIMATED,
    Constants,
    Mechanism,
    Plan,
    Selection,
    learners_of,
)
from certified_unlearning.certificate.private.runs import Run
from certified_unlearning.certificate.private.statement import DISJOINT, SAMPLED, Told, words
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.text import counted, rounded_up
from certified_unlearning.version import code_version
from certified_unlearning.vocabulary import NoiseSource, Relation

NUMERICAL_TOLERANCE = 1e-6
"""How far, relatively, epsilons of Poisson batches may differ: other versions of dp-accounting sum up otherwise."""


class Deletions(BaseModel):
    """What an unchanged model is worth when records are deleted.

    Attributes:
        records: How many.
        epsilon: By group privacy, at ``delta + extra_delta``.
        extra_delta: As of the certificate, for this epsilon.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    records: int = Field(ge=1)
    epsilon: float
    extra_delta: float


class PrivateCertificate(Certificate):
    """An (epsilon, delta + extra_delta) statement of differential privacy, and what recomputes it.

    Attributes:
        kind: ``private``.
        mechanism: How it was learned.
        selection: How one of several models was selected, on records that none of them learned from.
        hidden: What is hidden, by the relation.
        observers: From whom.
        comparator: What deletions are compared with.
        not_promised: What nobody should read into it.
        relation: When two data sets are neighbours; an epsilon means nothing without it.
        epsilon: Of one record, at ``delta + extra_delta``.
        mu: Of all noisy releases together, as Gaussian differential privacy; None for Poisson batches, which have none.
        selection_epsilon: Pure, of the selection; 0 without.
        delta: Strictly between 0 and 1.
        extra_delta: For random norms that are larger than supposed, and for selections by so many random bits only.
        deletions: What the unchanged model is worth when records are deleted, for some numbers of them.
        sampling: ``full batch``: every step reads all records, and nothing is claimed of chance. Or which parts read
            which records, or that batches were drawn with which probability, and are secret.
        loss: ``phi`` of a score and a target.
        width: Of its parabola, for absolute and huber.
        target: Targets were clipped to this size; 1 for classes.
        row_norm: Rows were scaled down to this norm, each by itself. Of DP-SGD epsilon does not rest on it, nor on the
            loss.
        n: Number of records.
        d: Columns of a row.
        learned_n: Records that each run of a selection learned from; those that were read at all, of other mechanisms.
        unused: Records that were left over by those.
        learned_d: Columns of a row as learned from: fewer than ``d`` after a random projection, whose rows were scaled
            down to ``sqrt(2)`` times the norm.
        embedded: Whether there was one.
        runs: Constants of each run, stage or phase; of boosting, whose runs are alike, of one.
        chunks: How many runs boosting selected from.
        beta: Of a search's selection; no matter of privacy, but of its probabilities.
        assumptions: What it rests on.
        noise_resolution: How far, in norm, weights as learned may be from those with exact noise; of several stages or
            phases together. Where noise has no bound by weights, that of the noisiest release: a gradient's.
        noise_source: Where the noise came from.
        dataset: Name of the data set.
        features: How features were made; ``given`` by an estimator's user.
        code_version: Which code ran.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seen = "the model"
    bet = "one particular record was in the training data"

    kind: Literal["private"] = "private"
    mechanism: Mechanism
    selection: Selection
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
        plan: Plan,
        *,
        delta: float,
        features: int | None = None,
        row_norm: float | None = None,
        noise_source: NoiseSource,
        dataset: str = "own",
        made: str = GIVEN,
    ) -> Self:
        """Return what is guaranteed of a model.

        Args:
            plan: What was planned and run.
            delta: Strictly between 0 and 1.
            features: Columns of a row before a random projection; None if there was none.
            row_norm: Bound of such rows; None if there was none.
            noise_source: Where the noise came from.
            dataset: Name of the data set.
            made: How features were made.

        Raises:
            ParameterError: A value makes no sense, no epsilon is found, or Poisson batches were used and dp-accounting
                is not installed.
        """
        constants = Constants.of(plan, features=features, row_norm=row_norm)
        numbers = _numbers(plan, constants.n, delta)
        if not math.isfinite(numbers["epsilon"]):
            raise ParameterError(f"no epsilon is found at delta = {delta!r}: give a larger delta, or take more noise")
        return cls(
            **{field.name: getattr(constants, field.name) for field in fields(Constants)},
            **numbers,
            **words(_told(constants, plan, noise_source, dataset, made)),
            delta=delta,
            noise_source=noise_source,
            dataset=dataset,
            features=made,
            code_version=code_version(),
        )

    def stated(self) -> Stated:
        """Return its numbers; nothing is stated of several models together."""
        return Stated(self.epsilon, self.delta, self.extra_delta, None, adjacency=self.relation, mu=self.mu)

    def details(self) -> str:
        """Return the whole statement for people who know its terms."""
        several = "; ".join(f"{each.records}: {rounded_up(each.epsilon, 3)}" for each in self.deletions[1:])
        worth = f"unchanged after deletions of several records, epsilon of {several}" if several else "of one record"
        secret = "" if self.mu is not None else ", as long as batches stay secret"
        return (
            f"epsilon = {rounded_up(self.epsilon)} at delta = {rounded_up(self.delta + self.extra_delta)} under "
            f"{self.relation}, towards everybody who sees the model{secret}; {worth} (private by {self.mechanism}; "
            f"{self.not_checked})"
        )

    def check(self) -> None:
        """See `verify`."""
        verify(self)

    def limits(self) -> dict[str, tuple[bool, str]]:
        """Return nothing: `check` compares."""
        return {}

    def recomputed(self) -> dict[str, Any]:
        """Return nothing: `check` compares."""
        return {}


def verify(certificate: PrivateCertificate) -> None:
    """Recompute what a certificate states, in numbers and in words.

    That the records were as many, and their bounds enforced, is taken as stated: a certificate holds no record.

    Raises:
        CertificateError: A number differs (the message has both), constants are impossible, or words are not those of
            the mechanism.
        ParameterError: It is one of Poisson batches, and dp-accounting is not installed.
    """
    sampled = certificate.mechanism in SAMPLED
    if sampled:
        require_dp_accounting()
    _verify_scope(certificate)
    try:
        plan = plan_of(certificate)
        constants = Constants.of(plan, features=certificate.d, row_norm=certificate.row_norm)
        due = _numbers(plan, constants.n, certificate.delta)
    except (ParameterError, AssumptionError, OverflowError, ZeroDivisionError) as error:
        raise CertificateError(f"the certificate's constants are impossible: {error}") from error
    due |= {"n": constants.n, "learned_n": constants.learned_n, "unused": constants.unused}
    tolerance = NUMERICAL_TOLERANCE if sampled else TOLERANCE
    for name, computed in due.items():
        _compare(name, getattr(certificate, name), computed, tolerance)
    for number, (run, right) in enumerate(zip(certificate.runs, constants.runs, strict=True), start=1):
        for name, computed in right.model_dump().items():
            _compare(f"{name} of run {number}", getattr(run, name), computed, TOLERANCE)
    told = _told(constants, plan, certificate.noise_source, certificate.dataset, certificate.features)
    for name, right_words in words(told).items():
        said = getattr(certificate, name)
        if said != right_words:
            raise CertificateError(
                f"the certificate states other {name} than it must: {said!r} instead of {right_words!r}"
            )


def constants_of(certificate: PrivateCertificate) -> Constants:
    """Return the constants of a certificate, which are those of a plan."""
    return Constants(**{field.name: getattr(certificate, field.name) for field in fields(Constants)})


def plan_of(certificate: PrivateCertificate) -> Plan:
    """Return the plan whose constants a certificate has; what plays no part in privacy may be another than was run.

    Raises:
        ParameterError: There is no such plan.
        AssumptionError: What its privacy needs does not hold.
    """
    return constants_of(certificate).plan


def _told(constants: Constants, plan: Plan, noise_source: NoiseSource, dataset: str, features: str) -> Told:
    return Told(
        mechanism=constants.mechanism,
        selection=constants.selection,
        relation=constants.relation,
        loss=constants.loss,
        share=plan.share if isinstance(plan, SampledDescent | SampledSpider) else None,
        embedded=constants.embedded,
        noise_source=noise_source,
        dataset=dataset,
        features=features,
    )


def _numbers(plan: Plan, records: int, delta: float) -> dict[str, Any]:
    """Return the numbers that follow from the constants, of so many records."""
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
        "mu": guarantee.mu if isinstance(guarantee, PrivateGuarantee) else None,
        "extra_delta": extra_delta(plan.failure, epsilon),
        # Beyond, an epsilon says nothing: what selections leave out would take all of delta.
        "deletions": tuple(each for each in groups if each.extra_delta <= delta),
        "noise_resolution": _resolution(plan),
    }


def _resolution(plan: Plan) -> float:
    """Return how far weights may be from those with exact noise; of descent, of one step, and so of their mean.

    Parts that read disjoint records are added up. Where weights are made of noisy gradients that have no ball, it is
    how far the noisiest of these may be from its exact one.
    """
    if isinstance(plan, RecursiveRegularisation):
        return math.fsum(stage.displacement for stage in plan.stages)
    unit = resolution(plan.problem.features, "float64")
    if isinstance(plan, PhasedDescent):
        return math.fsum(phase.sigma for phase in plan.phases) * unit
    if isinstance(plan, SpiderBoost | SampledSpider):
        return max(plan.sigma_gradient, plan.farthest * plan.sigma_difference) * unit
    if isinstance(plan, TreeSpider):
        return plan.largest_sigma * unit
    if isinstance(plan, SampledDescent):
        return plan.sigma * unit
    return max(each.displacement if isinstance(each, NoisyDescent) else each.sigma * unit for each in learners_of(plan))


def _compare(name: str, stated: Any, computed: Any, tolerance: float) -> None:
    """Raise `CertificateError` where a number is not the one that was computed."""
    if name == "deletions":
        if [each.records for each in stated] != [each.records for each in computed]:
            raise CertificateError(f"the certificate must speak of {[each.records for each in computed]} deletions")
        for said, due in zip(stated, computed, strict=True):
            _compare(f"epsilon of {counted(due.records, 'deletion')}", said.epsilon, due.epsilon, tolerance)
            _compare(f"extra_delta of {counted(due.records, 'deletion')}", said.extra_delta, due.extra_delta, tolerance)
    elif stated != computed and (
        stated is None or computed is None or not math.isclose(stated, computed, rel_tol=tolerance)
    ):
        raise CertificateError(f"the certificate states {name} = {stated!r}, but its constants give {computed!r}")


def _verify_scope(certificate: PrivateCertificate) -> None:
    """Check that the constants fit each other."""
    search, boosting = certificate.selection == "grid search", certificate.selection == "boosting"
    least = certificate.learned_n * (certificate.chunks or 1) + certificate.unused
    several = search or certificate.mechanism in ("recursive-regularisation", "phased-descent")
    scope = {
        "delta": (0 < certificate.delta < 1, "strictly between 0 and 1"),
        "extra_delta": (0 <= certificate.extra_delta <= certificate.delta, f"at most delta = {certificate.delta!r}"),
        "selection": (
            not (search or boosting) or certificate.mechanism in ESTIMATED,
            "none: no model of this mechanism is selected",
        ),
        "runs": (several or len(certificate.runs) == 1, "one"),
        "chunks": ((certificate.chunks is not None) == boosting, "given for boosting only"),
        "beta": ((certificate.beta is not None) == search, "given for a search only"),
        "selection_epsilon": (
            (certificate.selection_epsilon > 0) == (search or boosting),
            "above 0 where a model was selected, and 0 otherwise",
        ),
        "n": (
            certificate.n > least if search or boosting else certificate.n == least,
            f"{'above' if search or boosting else 'equal to'} {least}, what was read",
        ),
        "unused": (
            not certificate.unused or certificate.mechanism in DISJOINT,
            "0: no record is left over by this mechanism",
        ),
        "learned_d": (
            certificate.learned_d < certificate.d if certificate.embedded else certificate.learned_d == certificate.d,
            f"{'below' if certificate.embedded else 'equal to'} d = {certificate.d}",
        ),
        "features": possible_features(certificate.features),
    }
    for name, (holds, right) in scope.items():
        if not holds:
            raise CertificateError(f"the certificate states {name} = {getattr(certificate, name)!r}, must be {right}")
