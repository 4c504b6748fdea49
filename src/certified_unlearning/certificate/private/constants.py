"""Between a plan of private learning and the constants that a certificate holds of it: there, and back.

What plays no part in privacy (`runs` says what) is not held: a plan that was read back has other values there.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeVar

from certified_unlearning.accounting.private.guarantee import PrivateGuarantee
from certified_unlearning.accounting.private.learners import Learner, LinearProblem, NoisyDescent, OutputPerturbation
from certified_unlearning.accounting.private.losses import LossName, ScalarLoss
from certified_unlearning.accounting.private.phased import OnePass, PhasedDescent
from certified_unlearning.accounting.private.recursive import RecursiveRegularisation
from certified_unlearning.accounting.private.sampled import SampledDescent
from certified_unlearning.accounting.private.sampled_spider import SampledSpider
from certified_unlearning.accounting.private.searches import Boosting, GridSearch, PrivateLearner
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.accounting.private.tree_spider import TreeSpider
from certified_unlearning.certificate.private.runs import (
    Phase,
    PrivateRun,
    Run,
    RunConstants,
    SampledSteps,
    SpiderConstants,
    Stage,
    TreeConstants,
)
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Relation

Mechanism = Literal[
    "noisy-gradient-descent",
    "output-perturbation",
    "spider-boost",
    "tree-spider",
    "recursive-regularisation",
    "phased-descent",
    "sampled-descent",
    "sampled-spider",
]
Selection = Literal["none", "grid search", "boosting"]
Plan = (
    PrivateLearner | SpiderBoost | TreeSpider | RecursiveRegularisation | PhasedDescent | SampledDescent | SampledSpider
)
ESTIMATED: tuple[Mechanism, ...] = ("noisy-gradient-descent", "output-perturbation")
"""Mechanisms that estimators run, and selections select from."""
_NO_PART = 1.0
"""For what a plan needs, and privacy does not."""
Kind = TypeVar("Kind", bound=RunConstants)


@dataclass(frozen=True, kw_only=True)
class Constants:
    """What a certificate holds of a plan, under the names it has there; `PrivateCertificate` says what each is."""

    mechanism: Mechanism
    selection: Selection
    selection_epsilon: float
    relation: Relation
    loss: LossName
    width: float | None
    target: float
    row_norm: float
    n: int
    d: int
    learned_n: int
    unused: int
    learned_d: int
    embedded: bool
    runs: tuple[Run, ...]
    chunks: int | None
    beta: float | None

    @classmethod
    def of(cls, plan: Plan, *, features: int | None = None, row_norm: float | None = None) -> Self:
        """Return those of a plan.

        Args:
            plan: What was planned and run.
            features: Columns of a row before a random projection; None if there was none.
            row_norm: Bound of such rows; None if there was none.

        Raises:
            ParameterError: It is descent on more than the loss, of which a certificate does not speak.
        """
        problem, loss, guarantee = plan.problem, plan.problem.loss, plan.guarantee
        whole = problem.row_norm if row_norm is None else row_norm
        runs = _runs(plan)
        learned, unused = _read(plan)
        return cls(
            mechanism=_mechanism(plan),
            selection=_selection(plan),
            selection_epsilon=guarantee.selection_epsilon if isinstance(guarantee, PrivateGuarantee) else 0.0,
            relation=problem.relation,
            loss=loss.name,
            width=loss.width,
            target=loss.target,
            row_norm=whole,
            n=_all_records(plan),
            d=problem.features if features is None else features,
            learned_n=learned,
            unused=unused,
            learned_d=problem.features,
            embedded=problem.row_norm != whole,
            runs=runs,
            chunks=plan.chunks if isinstance(plan, Boosting) else None,
            beta=plan.beta if isinstance(plan, GridSearch) else None,
        )

    @property
    def plan(self) -> Plan:
        """The plan; what plays no part in privacy may be another than was run.

        Raises:
            ParameterError: There is no such plan.
            AssumptionError: What its privacy needs does not hold.
        """
        if self.mechanism in ESTIMATED:
            return self.learner
        if self.mechanism == "recursive-regularisation":
            return self._recursive()
        if self.mechanism == "phased-descent":
            return self._phased()
        if self.mechanism == "tree-spider":
            tree = self._only(TreeConstants)
            problem = self._problem(self.n, _NO_PART)
            return TreeSpider(problem=problem, step=_NO_PART, tolerance=_NO_PART, **tree.model_dump())
        if self.mechanism == "sampled-descent":
            return self._sampled_descent()
        return self._spider()

    @property
    def learner(self) -> PrivateLearner:
        """The plan of noisy gradient descent or output perturbation, such as an estimator's; errors as of `plan`."""
        learners = tuple(self._learner(self._of_kind(each, PrivateRun)) for each in self.runs)
        if self.selection == "grid search":
            return GridSearch(
                learners=learners,
                validated=self.n - self.learned_n,
                epsilon=self.selection_epsilon,
                beta=self.beta or 0.0,
            )
        if self.selection == "boosting":
            chunks = self.chunks or 0
            return Boosting(
                learner=learners[0],
                chunks=chunks,
                validated=self.n - chunks * self.learned_n,
                epsilon=self.selection_epsilon,
            )
        return learners[0]

    def _problem(self, records: int, radius: float) -> LinearProblem:
        whole = LinearProblem(
            n=records,
            features=self.d,
            row_norm=self.row_norm,
            loss=ScalarLoss(name=self.loss, target=self.target, width=self.width),
            radius=1.0,
            relation=self.relation,
        )
        # The radius of an embedding is larger already.
        return replace(whole.embedded(self.learned_d) if self.embedded else whole, radius=radius)

    def _of_kind(self, run: Run, kind: type[Kind]) -> Kind:
        if not isinstance(run, kind):
            raise ParameterError(f"{self.mechanism} has no run with the constants {', '.join(type(run).model_fields)}")
        return run

    def _only(self, kind: type[Kind]) -> Kind:
        return self._of_kind(self.runs[0], kind)

    def _learner(self, run: PrivateRun) -> Learner:
        problem = self._problem(self.learned_n, run.radius)
        descent = self.mechanism == "noisy-gradient-descent"
        others = ("strong_convexity", "inexactness") if descent else ("steps", "step_size")
        if foreign := [name for name in others if getattr(run, name) is not None]:
            raise ParameterError(f"{self.mechanism} has no {' and no '.join(foreign)}")
        if descent:
            if run.steps is None or run.step_size is None:
                raise ParameterError("noisy gradient descent needs steps and step_size")
            return NoisyDescent(problem=problem, steps=run.steps, step_size=run.step_size, sigma=run.sigma)
        if run.strong_convexity is None or run.inexactness is None:
            raise ParameterError("output perturbation needs strong_convexity and inexactness")
        return OutputPerturbation(
            problem=problem, strong_convexity=run.strong_convexity, sigma=run.sigma, inexactness=run.inexactness
        )

    def _spider(self) -> SpiderBoost | SampledSpider:
        run, sampled = self._only(SpiderConstants), self.mechanism == "sampled-spider"
        if (run.batch is not None) != sampled:
            raise ParameterError(f"{self.mechanism} {'needs a' if sampled else 'has no'} batch")
        steps = run.gradients + run.differences
        shared: dict[str, Any] = {
            "problem": self._problem(self.learned_n, _NO_PART),
            "steps": steps,
            # The shortest with as many gradients.
            "period": -(-steps // run.gradients),
            "step_size": _NO_PART,
            "sigma_gradient": run.sigma_gradient,
            "sigma_difference": run.sigma_difference,
        }
        plan = SpiderBoost(**shared) if run.batch is None else SampledSpider(**shared, batch=run.batch)
        if plan.gradients != run.gradients:
            raise ParameterError(f"no period of {steps} steps has {run.gradients} gradients")
        return plan

    def _sampled_descent(self) -> SampledDescent:
        run, problem = self._only(SampledSteps), self._problem(self.learned_n, _NO_PART)
        return SampledDescent(
            problem=problem,
            steps=run.steps,
            share=run.share,
            clip=run.clip,
            multiplier=run.sigma * run.share * problem.n / run.clip,
            step_size=_NO_PART,
        )

    def _recursive(self) -> RecursiveRegularisation:
        stages = [self._of_kind(each, Stage) for each in self.runs]
        chunk, left = divmod(self.learned_n, len(stages))
        if left:
            raise ParameterError(f"{self.learned_n} records are no {len(stages)} chunks of as many")
        planned = tuple(
            NoisyDescent(
                problem=self._problem(chunk, each.radius),
                steps=each.steps,
                step_size=each.step_size,
                sigma=each.sigma,
                regulariser=each.regulariser,
            )
            for each in stages
        )
        return RecursiveRegularisation(stages=planned, strength=stages[0].regulariser, unused=self.unused)

    def _phased(self) -> PhasedDescent:
        phases = [self._of_kind(each, Phase) for each in self.runs]
        planned = tuple(
            OnePass(problem=self._problem(each.records, each.radius), step_size=each.step_size, sigma=each.sigma)
            for each in phases
        )
        return PhasedDescent(phases=planned, unused=self.unused)


def learners_of(plan: PrivateLearner) -> tuple[Learner, ...]:
    """Return the runs of a plan of noisy gradient descent or output perturbation; of boosting, one."""
    if isinstance(plan, GridSearch):
        return plan.learners
    return (plan.learner,) if isinstance(plan, Boosting) else (plan,)


def _mechanism(plan: Plan) -> Mechanism:
    named: dict[type, Mechanism] = {
        SpiderBoost: "spider-boost",
        TreeSpider: "tree-spider",
        RecursiveRegularisation: "recursive-regularisation",
        PhasedDescent: "phased-descent",
        SampledDescent: "sampled-descent",
        SampledSpider: "sampled-spider",
        NoisyDescent: "noisy-gradient-descent",
        OutputPerturbation: "output-perturbation",
    }
    return named[type(learners_of(plan)[0] if isinstance(plan, GridSearch | Boosting) else plan)]


def _selection(plan: Plan) -> Selection:
    if isinstance(plan, GridSearch):
        return "grid search"
    return "boosting" if isinstance(plan, Boosting) else "none"


def _read(plan: Plan) -> tuple[int, int]:
    """Return how many records each run of a selection, or all parts together, learn from, and how many are left."""
    if isinstance(plan, RecursiveRegularisation):
        return len(plan.stages) * plan.problem.n, plan.unused
    if isinstance(plan, PhasedDescent):
        return sum(phase.problem.n for phase in plan.phases), plan.unused
    if isinstance(plan, TreeSpider):
        return plan.used, plan.problem.n - plan.used
    return plan.problem.n, 0


def _all_records(plan: Plan) -> int:
    if isinstance(plan, GridSearch):
        return plan.problem.n + plan.validated
    return plan.chunks * plan.problem.n + plan.validated if isinstance(plan, Boosting) else sum(_read(plan))


def _runs(plan: Plan) -> tuple[Run, ...]:
    if isinstance(plan, SpiderBoost | SampledSpider):
        return (
            SpiderConstants(
                gradients=plan.gradients,
                differences=plan.differences,
                batch=plan.batch if isinstance(plan, SampledSpider) else None,
                sigma_gradient=plan.sigma_gradient,
                sigma_difference=plan.sigma_difference,
            ),
        )
    if isinstance(plan, TreeSpider):
        return (TreeConstants(batch=plan.batch, depth=plan.depth, rounds=plan.rounds, multiplier=plan.multiplier),)
    if isinstance(plan, SampledDescent):
        return (SampledSteps(steps=plan.steps, share=plan.share, clip=plan.clip, sigma=plan.sigma),)
    if isinstance(plan, RecursiveRegularisation):
        return tuple(
            Stage(
                radius=stage.problem.radius,
                steps=stage.steps,
                step_size=stage.step_size,
                sigma=stage.sigma,
                regulariser=stage.regulariser,
                mu=stage.mu,
            )
            for stage in plan.stages
        )
    if isinstance(plan, PhasedDescent):
        return tuple(
            Phase(
                records=phase.problem.n,
                radius=phase.problem.radius,
                step_size=phase.step_size,
                sigma=phase.sigma,
                mu=phase.mu,
            )
            for phase in plan.phases
        )
    return tuple(_run(learner) for learner in learners_of(plan))


def _run(learner: Learner) -> PrivateRun:
    shared: dict[str, Any] = {"radius": learner.problem.radius, "sigma": learner.sigma}
    if isinstance(learner, OutputPerturbation):
        return PrivateRun(**shared, strong_convexity=learner.strong_convexity, inexactness=learner.inexactness)
    if learner.regulariser:
        raise ParameterError("a certificate speaks of descent on the loss alone: the regulariser must be 0")
    return PrivateRun(**shared, steps=learner.steps, step_size=learner.step_size)
