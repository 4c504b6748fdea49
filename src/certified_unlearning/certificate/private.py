"""Certificates of differentially private learning: a model that never depended much on any record.

What is hidden is whether a record was learned from, and what it said, from everybody who sees the model, whatever else
they know. A deletion needs no work: the certificate states what the model, unchanged, is worth against one that was
learned with the deleted records replaced, for several numbers of them.
"""

import functools
import math
from dataclasses import replace
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning.accounting.accountant import PUBLIC_TARGET_RANGE, SEEDED_NOISE, Assumption
from certified_unlearning.accounting.core.rounding import resolution
from certified_unlearning.accounting.private.arithmetic import displaced
from certified_unlearning.accounting.private.guarantee import GROUPS, extra_delta
from certified_unlearning.accounting.private.learners import Learner, LinearProblem, NoisyDescent, OutputPerturbation
from certified_unlearning.accounting.private.losses import LossName, ScalarLoss
from certified_unlearning.accounting.private.searches import Boosting, GridSearch, PrivateLearner
from certified_unlearning.certificate.preprocessing import DECLARED, GIVEN, preprocessing
from certified_unlearning.certificate.verification import TOLERANCE, CertificateError
from certified_unlearning.errors import ParameterError
from certified_unlearning.version import code_version
from certified_unlearning.vocabulary import NoiseSource, Relation

Selection = Literal["none", "grid search", "boosting"]

HIDDEN = {
    "replace-one": "which record stood in any one place: the law of the model hardly changes when one record is "
    "replaced by any other; how many there are is public",
    "add-remove": "whether any one record was there: the law of the model hardly changes when one record is added or "
    "left out, where sums are divided by the same public n, and the place of a record that is left out stays empty, as "
    "a row of zeros",
}
OBSERVERS = "everybody who sees the model, and may know all other records and the algorithm with its constants"
COMPARATOR = (
    "the same algorithm with the same constants, run on the records with the deleted ones replaced by any others; "
    "under add-remove not that, but with their places left empty: towards that, doing nothing satisfies the epsilons "
    "of `deletions`"
)
NOT_PROMISED = (
    "nothing about a model retrained with another n, or by another algorithm",
    "nothing about several models learned from the same records together: their mu add up in squares, and pure "
    "epsilons of selections add up",
    "nothing about deletions that were chosen after seeing the model, beyond what holds for every record at once",
    "nothing about what the population has in common: what can be learned without a record may be learned",
)


class PrivateRun(BaseModel):
    """The constants of one run of a learner; a search has several.

    Attributes:
        radius: Of the ball that weights are projected on, or a minimiser lies in.
        sigma: Standard deviation of the noise per coordinate: on each mean gradient, or on the minimiser.
        steps: Iterates of noisy gradient descent, the start included; one noisy gradient less.
        step_size: Of noisy gradient descent.
        strong_convexity: Of output perturbation.
        inexactness: Of output perturbation: how far the computed minimiser may be from the exact one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    radius: float = Field(gt=0, allow_inf_nan=False)
    sigma: float = Field(gt=0, allow_inf_nan=False)
    steps: int | None = Field(default=None, ge=2)
    step_size: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    strong_convexity: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    inexactness: float | None = Field(default=None, gt=0, allow_inf_nan=False)


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


class PrivateCertificate(BaseModel):
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
        mu: Of all noisy releases together, as Gaussian differential privacy.
        selection_epsilon: Pure, of the selection; 0 without.
        delta: Strictly between 0 and 1.
        extra_delta: For random norms that are larger than supposed, and for selections by so many random bits only.
        deletions: What the unchanged model is worth when records are deleted, for some numbers of them.
        sampling: ``full batch``: every step reads all records, and nothing is claimed of chance.
        loss: ``phi`` of a score and a target.
        width: Of its parabola, for absolute and huber.
        target: Targets were clipped to this size; 1 for classes.
        row_norm: Rows were scaled down to this norm, each by itself.
        n: Number of records.
        d: Columns of a row.
        learned_n: Records that each run learned from.
        learned_d: Columns of a row as learned from: fewer than ``d`` after a random projection, whose rows were scaled
            down to ``sqrt(2)`` times the norm.
        embedded: Whether there was one.
        runs: Constants of each run; of boosting, whose runs are alike, of one.
        chunks: How many runs boosting selected from.
        beta: Of a search's selection; no matter of privacy, but of its probabilities.
        assumptions: What it rests on.
        noise_resolution: How far, in norm, weights as learned may be from those with exact noise.
        noise_source: Where the noise came from.
        dataset: Name of the data set.
        features: How features were made; ``given`` by an estimator's user.
        code_version: Which code ran.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["private"] = "private"
    mechanism: Literal["noisy-gradient-descent", "output-perturbation"]
    selection: Selection
    guarantee: Literal["upper bound"] = "upper bound"
    hidden: str
    observers: str
    comparator: str
    not_promised: tuple[str, ...]
    relation: Relation
    epsilon: float
    mu: float
    selection_epsilon: float = Field(ge=0, allow_inf_nan=False)
    delta: float
    extra_delta: float
    deletions: tuple[Deletions, ...]
    sampling: Literal["full batch"] = "full batch"
    loss: LossName
    width: float | None
    target: float = Field(gt=0, allow_inf_nan=False)
    row_norm: float = Field(gt=0, allow_inf_nan=False)
    n: int = Field(ge=1)
    d: int = Field(ge=1)
    learned_n: int = Field(ge=1)
    learned_d: int = Field(ge=1)
    embedded: bool
    runs: tuple[PrivateRun, ...] = Field(min_length=1)
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
        plan: PrivateLearner,
        *,
        delta: float,
        features: int,
        row_norm: float,
        noise_source: NoiseSource,
        dataset: str = "own",
        made: str = GIVEN,
    ) -> Self:
        """Return what is guaranteed of a model.

        Args:
            plan: What was planned and run.
            delta: Strictly between 0 and 1.
            features: Columns of a row before a random projection, if there was one.
            row_norm: Bound of such rows.
            noise_source: Where the noise came from.
            dataset: Name of the data set.
            made: How features were made.

        Raises:
            ParameterError: A value makes no sense.
        """
        problem, embedded = plan.problem, plan.problem.row_norm != row_norm
        runs = _runs(plan)
        learners = plan.learners if isinstance(plan, GridSearch) else (_learner(plan),)
        if any(isinstance(each, NoisyDescent) and each.regulariser for each in learners):
            raise ParameterError("a certificate speaks of descent on the loss alone: the regulariser must be 0")
        return cls(
            mechanism="noisy-gradient-descent" if isinstance(learners[0], NoisyDescent) else "output-perturbation",
            selection=_selection(plan),
            **_numbers(plan, delta),
            **_words(problem.relation, problem.loss, noise_source, dataset, made, embedded, _selection(plan)),
            relation=problem.relation,
            delta=delta,
            selection_epsilon=plan.guarantee.selection_epsilon,
            loss=problem.loss.name,
            width=problem.loss.width,
            target=problem.loss.target,
            row_norm=row_norm,
            n=_all_records(plan),
            d=features,
            learned_n=problem.n,
            learned_d=problem.features,
            embedded=embedded,
            runs=runs,
            chunks=plan.chunks if isinstance(plan, Boosting) else None,
            beta=plan.beta if isinstance(plan, GridSearch) else None,
            noise_source=noise_source,
            dataset=dataset,
            features=made,
            code_version=code_version(),
        )


def verify(certificate: PrivateCertificate) -> None:
    """Recompute what a certificate states, in numbers and in words.

    That the records were as many, and their bounds enforced, is taken as stated: a certificate holds no record.

    Raises:
        CertificateError: A number differs (the message has both), constants are impossible, or words are not those of
            the mechanism.
    """
    _verify_scope(certificate)
    try:
        plan = plan_of(certificate)
        due = _numbers(plan, certificate.delta)
    except (ParameterError, OverflowError, ZeroDivisionError) as error:
        raise CertificateError(f"the certificate's constants are impossible: {error}") from error
    due["n"] = _all_records(plan)
    for name, computed in due.items():
        _compare(name, getattr(certificate, name), computed)
    words = _words(
        certificate.relation,
        plan.problem.loss,
        certificate.noise_source,
        certificate.dataset,
        certificate.features,
        certificate.embedded,
        certificate.selection,
    )
    for name, right in words.items():
        said = getattr(certificate, name)
        if said != right:
            raise CertificateError(f"the certificate states other {name} than it must: {said!r} instead of {right!r}")


def plan_of(certificate: PrivateCertificate) -> PrivateLearner:
    """Return the plan whose constants a certificate has.

    Raises:
        ParameterError: There is no such plan.
    """
    loss = ScalarLoss(name=certificate.loss, target=certificate.target, width=certificate.width)
    whole = LinearProblem(
        n=certificate.learned_n,
        features=certificate.d,
        row_norm=certificate.row_norm,
        loss=loss,
        radius=1.0,
        relation=certificate.relation,
    )
    problem = whole.embedded(certificate.learned_d) if certificate.embedded else whole
    learners = tuple(_learner_of(certificate.mechanism, problem, run) for run in certificate.runs)
    if certificate.selection == "grid search":
        return GridSearch(
            learners=learners,
            validated=certificate.n - certificate.learned_n,
            epsilon=certificate.selection_epsilon,
            beta=certificate.beta or 0.0,
        )
    if certificate.selection == "boosting":
        chunks = certificate.chunks or 0
        return Boosting(
            learner=learners[0],
            chunks=chunks,
            validated=certificate.n - chunks * certificate.learned_n,
            epsilon=certificate.selection_epsilon,
        )
    return learners[0]


def _learner_of(mechanism: str, problem: LinearProblem, run: PrivateRun) -> Learner:
    of_radius = replace(problem, radius=run.radius)
    others = ("strong_convexity", "inexactness") if mechanism == "noisy-gradient-descent" else ("steps", "step_size")
    if foreign := [name for name in others if getattr(run, name) is not None]:
        raise ParameterError(f"{mechanism} has no {' and no '.join(foreign)}")
    if mechanism == "noisy-gradient-descent":
        if run.steps is None or run.step_size is None:
            raise ParameterError("noisy gradient descent needs steps and step_size")
        return NoisyDescent(problem=of_radius, steps=run.steps, step_size=run.step_size, sigma=run.sigma)
    if run.strong_convexity is None or run.inexactness is None:
        raise ParameterError("output perturbation needs strong_convexity and inexactness")
    return OutputPerturbation(
        problem=of_radius, strong_convexity=run.strong_convexity, sigma=run.sigma, inexactness=run.inexactness
    )


def _learner(plan: PrivateLearner) -> Learner:
    if isinstance(plan, GridSearch):
        return plan.learners[0]
    return plan.learner if isinstance(plan, Boosting) else plan


def _runs(plan: PrivateLearner) -> tuple[PrivateRun, ...]:
    learners = plan.learners if isinstance(plan, GridSearch) else (_learner(plan),)
    return tuple(
        PrivateRun(radius=each.problem.radius, sigma=each.sigma, steps=each.steps, step_size=each.step_size)
        if isinstance(each, NoisyDescent)
        else PrivateRun(
            radius=each.problem.radius,
            sigma=each.sigma,
            strong_convexity=each.strong_convexity,
            inexactness=each.inexactness,
        )
        for each in learners
    )


def _selection(plan: PrivateLearner) -> Selection:
    if isinstance(plan, GridSearch):
        return "grid search"
    return "boosting" if isinstance(plan, Boosting) else "none"


def _all_records(plan: PrivateLearner) -> int:
    if isinstance(plan, GridSearch):
        return plan.problem.n + plan.validated
    return plan.chunks * plan.problem.n + plan.validated if isinstance(plan, Boosting) else plan.problem.n


def _numbers(plan: PrivateLearner, delta: float) -> dict[str, Any]:
    """Return the numbers that follow from the constants."""
    guarantee, records = plan.guarantee, _all_records(plan)
    epsilon = guarantee.epsilon(delta)
    learners = plan.learners if isinstance(plan, GridSearch) else (_learner(plan),)
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
        # Beyond, an epsilon says nothing: what selections leave out would take all of delta.
        "deletions": tuple(each for each in groups if each.extra_delta <= delta),
        "noise_resolution": max(_resolution(each) for each in learners),
    }


def _resolution(learner: Learner) -> float:
    """Return how far weights may be from those with exact noise; of descent, of one step, and so of their mean."""
    features = learner.problem.features
    if isinstance(learner, NoisyDescent):
        reach = learner.problem.longest_weights + learner.step_size * learner.problem.gradient_bound
        return displaced(features=features, noise_std=learner.step_size * learner.sigma, weight_norm=reach)
    return learner.sigma * resolution(features, "float64")


def _compare(name: str, stated: Any, computed: Any) -> None:
    """Raise `CertificateError` where a number is not the one that was computed."""
    if name == "deletions":
        if [each.records for each in stated] != [each.records for each in computed]:
            raise CertificateError(f"the certificate must speak of {[each.records for each in computed]} deletions")
        for said, due in zip(stated, computed, strict=True):
            _compare(f"epsilon of {due.records} deletions", said.epsilon, due.epsilon)
            _compare(f"extra_delta of {due.records} deletions", said.extra_delta, due.extra_delta)
    elif stated != computed and not math.isclose(stated, computed, rel_tol=TOLERANCE):
        raise CertificateError(f"the certificate states {name} = {stated!r}, but its constants give {computed!r}")


def _verify_scope(certificate: PrivateCertificate) -> None:
    """Check that the constants fit each other."""
    search, boosting = certificate.selection == "grid search", certificate.selection == "boosting"
    least = certificate.learned_n * (certificate.chunks or 1)
    scope = {
        "delta": (0 < certificate.delta < 1, "strictly between 0 and 1"),
        "extra_delta": (0 <= certificate.extra_delta <= certificate.delta, f"at most delta = {certificate.delta!r}"),
        "runs": (search or len(certificate.runs) == 1, "one"),
        "chunks": ((certificate.chunks is not None) == boosting, "given for boosting only"),
        "beta": ((certificate.beta is not None) == search, "given for a search only"),
        "selection_epsilon": (
            (certificate.selection_epsilon > 0) == (search or boosting),
            "above 0 where a model was selected, and 0 otherwise",
        ),
        "n": (
            certificate.n > least if search or boosting else certificate.n == least,
            f"{'above' if search or boosting else 'equal to'} {least}, what was learned from",
        ),
        "learned_d": (
            certificate.learned_d < certificate.d if certificate.embedded else certificate.learned_d == certificate.d,
            f"{'below' if certificate.embedded else 'equal to'} d = {certificate.d}",
        ),
        "features": (certificate.features in (DECLARED, GIVEN), f"{DECLARED!r} or {GIVEN!r}"),
    }
    for name, (holds, right) in scope.items():
        if not holds:
            raise CertificateError(f"the certificate states {name} = {getattr(certificate, name)!r}, must be {right}")


def _words(
    relation: Relation,
    loss: ScalarLoss,
    noise_source: NoiseSource,
    dataset: str,
    features: str,
    embedded: bool,
    selection: Selection,
) -> dict[str, Any]:
    return {
        "hidden": HIDDEN[relation],
        "observers": OBSERVERS,
        "comparator": COMPARATOR,
        "not_promised": NOT_PROMISED,
        "assumptions": _assumptions(loss.name != "logistic", noise_source, dataset, features, embedded, selection),
    }


@functools.cache
def _assumptions(
    targets: bool, noise_source: NoiseSource, dataset: str, features: str, embedded: bool, selection: Selection
) -> tuple[Assumption, ...]:
    """Return what privacy rests on."""
    seed = noise_source == "seed"
    return (
        Assumption(
            statement="every record keeps to its bounds",
            status="checked",
            by="a row that is too long was scaled down, a target clipped, each by itself; rows after a random "
            "projection once more"
            if embedded
            else "a row that is too long was scaled down, a target clipped, each by itself",
        ),
        Assumption(
            statement="radius, strength, steps, norm and number of records do not depend on the records",
            status="assumed",
            by="they were given, or follow from what was given and from the number of records: read off the records, "
            "they would tell of them",
        ),
        *((PUBLIC_TARGET_RANGE,) if targets else ()),
        preprocessing(dataset, features),
        *(
            (
                Assumption(
                    statement="the order of records does not depend on what they are",
                    status="assumed",
                    by="they were split by position, so that learning and selecting read different ones",
                ),
            )
            if selection != "none"
            else ()
        ),
        Assumption(
            statement="learning ended, and nobody concludes anything from that",
            status="assumed",
            by="an error, such as that of records of one class only, or of a solver that did not get near enough, "
            "tells of the records",
        ),
        Assumption(
            statement="rounding is paid for",
            status="checked",
            by="bounds of sums and products in float64 are part of the sensitivity; products of matrices are taken to "
            "be made by sums of products, as all usual libraries do",
        ),
        Assumption(
            statement="nobody concludes anything from the last bits of the weights' noise",
            status="assumed",
            by="it is within noise_resolution of exact Gaussian noise, made of the operating system's or a cipher's "
            "bits; attacks on smaller differences (Mironov 2012) are not excluded, nor those on how long learning took",
        ),
        Assumption(
            statement="nobody who sees the model knows the noise",
            status="assumed" if seed else "checked",
            by=SEEDED_NOISE if seed else "it comes from the operating system's entropy and is not kept",
        ),
    )
