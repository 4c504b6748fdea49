"""What every plan of private learning says of itself: its guarantee, its constants, and its words in a certificate.

A way to learn is one class, `PrivatePlan`, beside its formulas. `accounting.private.PLANS` lists them by name. A
certificate holds the constants of a plan and nothing else of it, so a plan that was rebuilt from them has other values
where privacy does not depend on them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.core.rounding import resolution
from certified_unlearning.accounting.private.guarantee import GaussianPlan, Guarantee, PrivateGuarantee
from certified_unlearning.accounting.private.losses import LinearProblem, LossName, ScalarLoss
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Relation

NO_PART = 1.0
"""Stands for a value that a plan needs and that plays no part in privacy, where a plan is rebuilt."""
UNKNOWN_NOISE = "nobody who sees the model knows the noise"
_SUMS = "products of matrices are taken to be made by sums of products, as all usual libraries do"


class RunConstants(BaseModel):
    """The constants of one run, stage or phase.

    They are what privacy follows from, and nothing else of a plan: a number that changes nothing could be edited
    unseen. So step sizes that privacy does not rest on, and a radius that plays no part, are not among them. Messages
    on files that cannot be read name its subclasses.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


RunT = TypeVar("RunT", bound=RunConstants)


@dataclass(frozen=True, kw_only=True)
class PlanConstants:
    """What a certificate holds of a plan, under the names it has there; `PrivateCertificate` says what each is."""

    mechanism: str
    selection: str
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
    runs: tuple[RunConstants, ...]
    chunks: int | None
    beta: float | None

    def runs_of(self, kind: type[RunT]) -> tuple[RunT, ...]:
        """Return the constants of the runs.

        Raises:
            ParameterError: Those of a run are of another kind.
        """
        found = tuple(run for run in self.runs if isinstance(run, kind))
        if foreign := [run for run in self.runs if not isinstance(run, kind)]:
            names = ", ".join(foreign[0].model_dump())
            raise ParameterError(f"{self.mechanism} has no run with the constants {names}")
        return found

    def problem(self, *, records: int | None = None, radius: float = NO_PART) -> LinearProblem:
        """Return the bounds of a run's records.

        Args:
            records: How many the run learns from; None for as many as are learned from at all.
            radius: Of its ball.

        Raises:
            ParameterError: There are no such records.
        """
        whole = LinearProblem(
            n=self.learned_n if records is None else records,
            features=self.d,
            row_norm=self.row_norm,
            loss=ScalarLoss(name=self.loss, target=self.target, width=self.width),
            radius=1.0,
            relation=self.relation,
        )
        # The radius of an embedding is larger already.
        return replace(whole.embedded(self.learned_d) if self.embedded else whole, radius=radius)


def paid_rounding(by: str) -> Assumption:
    """Return the assumption that rounding in gradients is part of what one record moves.

    Args:
        by: How it is paid for.
    """
    return Assumption(statement="rounding is paid for", status="checked", by=f"{by}; {_SUMS}")


_COUNTED = paid_rounding("bounds of sums and products in float64 are part of the sensitivity")
_KEY_WAS_GIVEN = Assumption(
    statement=UNKNOWN_NOISE,
    status="assumed",
    by="its key was given by whoever learned, who says that it came from the operating system's entropy and was not "
    "kept",
)


@dataclass(frozen=True, kw_only=True)
class Words:
    """What a certificate says of one way to learn; `certificate.private.statement` has what it says of all.

    Attributes:
        seen: What is covered besides the model; empty for the model alone.
        sampling: Which records a step reads, where parts do not read disjoint ones; a format of the plan.
        together: How the privacy of several models of the same records adds up.
        clipped: What was clipped besides the records; empty for nothing.
        constants: Which constants are public.
        order: Why the order of records must not depend on what they are, where parts do not read disjoint ones; None
            where nothing rests on it.
        premises: What is assumed of the run: its gradients, its batches, and which model is returned.
        rounding: What is assumed of rounding in sums of gradients.
        stored: Whether a step goes on from a stored sum, whose distance from exactly Gaussian noise is not counted.
        noise: What the noise is called.
        unknown: Why nobody knows the noise, where it does not come from a seed.
    """

    seen: str = ""
    sampling: str = "full batch"
    together: str = "their mu add up in squares, and pure epsilons of selections add up"
    clipped: str = ""
    constants: str = "constants, sizes of batches and of blocks"
    order: str | None = None
    premises: tuple[Assumption, ...] = ()
    rounding: Assumption = _COUNTED
    stored: bool = False
    noise: str = "noise"
    unknown: Assumption = _KEY_WAS_GIVEN


def returned(by: str) -> Assumption:
    """Return the assumption on which of several models is returned.

    Args:
        by: Which it is.
    """
    return Assumption(
        statement="which model is returned tells nothing more of the records",
        status="checked",
        by=f"{by}: that follows from chance and from what is covered anyway",
    )


class Calibration(NamedTuple):
    """How much noise a plan has, and what that costs.

    Attributes:
        sigma: Standard deviation of its first noise, per coordinate.
        steps: Of descent, all stages together; None for output perturbation.
        step_size: Of descent with noise on every gradient.
        strong_convexity: Of output perturbation.
        cost: Bound on what privacy costs in mean loss; infinite without.
        gradient: Bound on the root of the mean squared gradient; infinite without.
    """

    sigma: float
    steps: int | None
    step_size: float | None = None
    strong_convexity: float | None = None
    cost: float = inf
    gradient: float = inf


class PrivatePlan(ABC):
    """A way to learn privately, with all numbers that its privacy follows from.

    Attributes:
        name: Of the mechanism, as certificates have it.
        selection: How one of several models is selected, as certificates have it.
        words: What certificates say of it.
        run_constants: What a certificate holds of each run, stage or phase.
        several_runs: Whether a certificate holds the constants of several runs.
        disjoint: Whether parts read disjoint records by their position, so that some may be left over.
        numerical: Whether epsilon is found by dp-accounting.
    """

    name: ClassVar[str]
    selection: ClassVar[str] = "none"
    words: ClassVar[Words]
    run_constants: ClassVar[type[RunConstants]]
    several_runs: ClassVar[bool] = False
    disjoint: ClassVar[bool] = False
    numerical: ClassVar[bool] = False
    if TYPE_CHECKING:
        # For types only: dataclasses take a property of a base for the default of a field.
        @property
        def problem(self) -> LinearProblem:
            """Bounds of the records of a run."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What it guarantees, but with probability `failure`."""

    @property
    @abstractmethod
    def failure(self) -> float:
        """Probability on which nothing is guaranteed."""

    @property
    @abstractmethod
    def noise_resolution(self) -> float:
        """How far weights may be from those with exact noise; of descent, of one step, and so of their mean.

        Parts that read disjoint records are added up. Where weights are made of noisy gradients that have no ball, it
        is how far the noisiest of these may be from its exact one.
        """

    @property
    @abstractmethod
    def calibration(self) -> Calibration:
        """How much noise it has, and what that costs."""

    @property
    def parts(self) -> Sequence[object]:
        """Its runs, stages or phases."""
        return (self,)

    @property
    def mechanism(self) -> str:
        """How it learns; of a selection, how its runs do."""
        return self.name

    @property
    def learned(self) -> int:
        """Records that each run of a selection learns from, or all parts together."""
        return self.problem.n

    @property
    def left_over(self) -> int:
        """Records that nothing reads."""
        return 0

    def constants(self, *, features: int | None = None, row_norm: float | None = None) -> PlanConstants:
        """Return what a certificate holds of it.

        Args:
            features: Columns of a row before a random projection; None if there was none.
            row_norm: Bound of such rows; None if there was none.

        Raises:
            ParameterError: It is descent on more than the loss, of which a certificate does not speak.
        """
        problem, loss = self.problem, self.problem.loss
        whole = problem.row_norm if row_norm is None else row_norm
        return PlanConstants(
            mechanism=self.mechanism,
            selection=self.selection,
            selection_epsilon=self.guarantee.selection_epsilon,
            relation=problem.relation,
            loss=loss.name,
            width=loss.width,
            target=loss.target,
            row_norm=whole,
            n=self.learned + self.left_over,
            d=problem.features if features is None else features,
            learned_n=self.learned,
            unused=self.left_over,
            learned_d=problem.features,
            embedded=problem.row_norm != whole,
            runs=tuple(self.run_constants.model_validate(part, from_attributes=True) for part in self.parts),
            chunks=None,
            beta=None,
        )

    @classmethod
    @abstractmethod
    def from_constants(cls, constants: PlanConstants) -> Self:
        """Return the plan with these constants; what plays no part in privacy may be another than was run.

        Raises:
            ParameterError: There is no such plan.
            AssumptionError: What its privacy needs does not hold.
        """

    def resolution(self, sigma: float) -> float:
        """Return how far stored noise of this standard deviation may be from exact noise, in norm."""
        return sigma * resolution(self.problem.features, "float64")


class DisjointPlan(PrivatePlan):
    """A learner whose parts read disjoint records: a record meets one of them.

    Attributes:
        unused: Records that are left over.
    """

    several_runs = True
    disjoint = True
    unused: int

    @property
    @abstractmethod
    def parts(self) -> Sequence[GaussianPlan]:
        """The parts; at least one."""

    @property
    def guarantee(self) -> PrivateGuarantee:
        """What it guarantees, but with probability `failure`: that of its least private part."""
        return PrivateGuarantee(mu=max(part.mu for part in self.parts))

    @property
    def failure(self) -> float:
        """Probability on which nothing is guaranteed."""
        return sum(part.failure for part in self.parts)

    @property
    def learned(self) -> int:
        """Records of all parts."""
        return sum(part.problem.n for part in self.parts)

    @property
    def left_over(self) -> int:
        """Records that nothing reads."""
        return self.unused
