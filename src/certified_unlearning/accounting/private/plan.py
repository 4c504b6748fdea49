"""The common part of all plans of private learning: the guarantee, the constants, and the wording of a certificate.

Each learning method is a subclass of `PrivatePlan`, in the module of its formulas. `accounting.private.PLANS` lists the
subclasses by name. A certificate contains only the constants of a plan. In a plan that is rebuilt from these constants,
values that do not affect privacy may differ.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from certified_unlearning.accounting.accountant import ROUNDING_INCLUDED, SUMS_OF_PRODUCTS, Assumption
from certified_unlearning.accounting.core.rounding import resolution
from certified_unlearning.accounting.private.guarantee import GaussianPlan, Guarantee, PrivateGuarantee
from certified_unlearning.accounting.private.losses import LinearProblem, LossName, ScalarLoss
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Relation

NO_PART = 1.0
"""Placeholder in a rebuilt plan for a value that does not affect privacy."""
UNKNOWN_NOISE = "nobody who sees the model knows the noise"


class RunConstants(BaseModel):
    """The constants of one run, stage or phase.

    These are exactly the values on which privacy depends. If a value had no effect on privacy, an edit of this value
    could not be detected. So step sizes and radii that do not affect privacy are left out. Error messages about
    unreadable files contain the names of the subclasses.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


RunT = TypeVar("RunT", bound=RunConstants)


@dataclass(frozen=True, kw_only=True)
class PlanConstants:
    """The values of a plan that are stored in a certificate.

    The certificate's fields have the same names as these attributes. `PrivateCertificate` explains the values.
    """

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
            ParameterError: A run has constants of another type.
        """
        found = tuple(run for run in self.runs if isinstance(run, kind))
        if foreign := [run for run in self.runs if not isinstance(run, kind)]:
            names = ", ".join(foreign[0].model_dump())
            raise ParameterError(f"{self.mechanism} has no run with the constants {names}")
        return found

    def problem(self, *, records: int | None = None, radius: float = NO_PART) -> LinearProblem:
        """Return the bounds of a run's records.

        Args:
            records: Number of records that the run learns from; None for all training records.
            radius: Radius of the run's ball.

        Raises:
            ParameterError: A number is invalid, for example because no records are left.
        """
        whole = LinearProblem(
            n=self.learned_n if records is None else records,
            features=self.d,
            row_norm=self.row_norm,
            loss=ScalarLoss(name=self.loss, target=self.target, width=self.width),
            radius=1.0,
            relation=self.relation,
        )
        # With an embedding, the given radius is already the doubled one.
        return replace(whole.embedded(self.learned_d) if self.embedded else whole, radius=radius)


def paid_rounding(by: str) -> Assumption:
    """Return the assumption that the effect of one record includes rounding in gradients.

    Args:
        by: How rounding is accounted for.
    """
    return Assumption(statement=ROUNDING_INCLUDED, status="checked", by=f"{by}; {SUMS_OF_PRODUCTS}")


_COUNTED = paid_rounding("the sensitivity includes bounds on the rounding of sums and products in float64")
_KEY_WAS_GIVEN = Assumption(
    statement=UNKNOWN_NOISE,
    status="assumed",
    by="the caller gave the key of the noise, and states that it came from the operating system's entropy and was not "
    "kept",
)


@dataclass(frozen=True, kw_only=True)
class Words:
    """The wording of certificates for one learning method. `certificate.private.statement` has the common wording.

    Attributes:
        seen: What an observer may see besides the model; empty if the guarantee covers the model alone.
        sampling: Format string with a description of the records that a step reads; the plan is the argument. The
            description is not used if the parts of the plan read disjoint records.
        together: How the privacy of several models of the same records adds up.
        clipped: What was clipped besides the records; empty if nothing else was clipped.
        constants: Names of the public constants.
        order: Why the order of records must not depend on their values; None if the guarantee does not depend on the
            order. The reason is not used if the parts of the plan read disjoint records.
        premises: Assumptions on the gradients and batches of the run, and on the returned model.
        rounding: Assumption on rounding in sums of gradients.
        stored: Whether a step starts from a stored sum whose noise differs slightly from exactly Gaussian noise. This
            difference is not counted.
        noise: Name of the noise.
        unknown: Why the noise is secret, if it does not come from a seed.
    """

    seen: str = ""
    sampling: str = "full batch"
    together: str = "the squares of their mu add up, and so do pure epsilons of selections"
    clipped: str = ""
    constants: str = "constants, sizes of batches and of blocks"
    order: str | None = None
    premises: tuple[Assumption, ...] = ()
    rounding: Assumption = _COUNTED
    stored: bool = False
    noise: str = "noise"
    unknown: Assumption = _KEY_WAS_GIVEN


def returned(by: str) -> Assumption:
    """Return the assumption that states which of several models is returned.

    Args:
        by: The model that is returned.
    """
    return Assumption(
        statement="the choice of the returned model reveals nothing more about the records",
        status="checked",
        by=f"{by}; this choice depends only on chance and on values that the guarantee covers anyway",
    )


class Calibration(NamedTuple):
    """The noise of a plan, and the cost of privacy.

    Attributes:
        sigma: Standard deviation of the first noise that the plan adds, per coordinate.
        steps: Number of steps of descent in all stages; None for output perturbation.
        step_size: Step size of descent with noise on every gradient.
        strong_convexity: Strong convexity of the objective in output perturbation.
        cost: Bound on the increase of the mean loss that privacy causes; infinite if there is no bound.
        gradient: Bound on the root mean square of the gradient's norm; infinite if there is no bound.
    """

    sigma: float
    steps: int | None
    step_size: float | None = None
    strong_convexity: float | None = None
    cost: float = inf
    gradient: float = inf


class PrivatePlan(ABC):
    """A private learning method, with all numbers on which privacy depends.

    Attributes:
        name: Name of the mechanism in certificates.
        selection: Name, in certificates, of the method that selects one of several models.
        words: The wording of certificates.
        run_constants: Class that holds the constants of a run, stage or phase in a certificate.
        several_runs: Whether a certificate contains the constants of several runs.
        disjoint: Whether parts read disjoint records, which are chosen by position. Some records may then be left over.
        numerical: Whether epsilon is computed by dp-accounting.
    """

    name: ClassVar[str]
    selection: ClassVar[str] = "none"
    words: ClassVar[Words]
    run_constants: ClassVar[type[RunConstants]]
    several_runs: ClassVar[bool] = False
    disjoint: ClassVar[bool] = False
    numerical: ClassVar[bool] = False
    if TYPE_CHECKING:
        # For type checking only: data classes would use a property of a base class as a field's default.
        @property
        def problem(self) -> LinearProblem:
            """Public bounds of the records of a run."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The guarantee of the plan, which may fail with probability `failure`."""

    @property
    @abstractmethod
    def failure(self) -> float:
        """Largest probability of an event on which the guarantee fails."""

    @property
    @abstractmethod
    def noise_resolution(self) -> float:
        """Largest distance between the weights and those that exact noise would give.

        For descent, this is the distance after one step, which is also a bound for the mean of the iterates. The
        distances of parts that read disjoint records add up. If weights are sums of noisy gradients and are not
        projected onto a ball, the result refers to gradients: it is the largest distance between the noisiest gradient
        and the same gradient with exact noise.
        """

    @property
    @abstractmethod
    def calibration(self) -> Calibration:
        """The noise of the plan, and the cost of privacy."""

    @property
    def parts(self) -> Sequence[object]:
        """The runs, stages or phases of the plan."""
        return (self,)

    @property
    def mechanism(self) -> str:
        """Name of the learning method; for a selection, the method of its runs."""
        return self.name

    @property
    def learned(self) -> int:
        """Number of records that all parts together learn from; for a selection, the records of one run."""
        return self.problem.n

    @property
    def left_over(self) -> int:
        """Number of records that no part reads."""
        return 0

    def constants(self, *, features: int | None = None, row_norm: float | None = None) -> PlanConstants:
        """Return those constants of the plan that a certificate contains.

        Args:
            features: Number of columns of a row before a random projection; None without a projection.
            row_norm: Bound on rows before a random projection; None without a projection.

        Raises:
            ParameterError: The plan's descent has terms besides the loss, which certificates do not cover.
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
        """Return the plan with these constants. Values that do not affect privacy may differ from the original ones.

        Raises:
            ParameterError: There is no such plan.
            AssumptionError: A condition of the plan's privacy does not hold.
        """

    def resolution(self, sigma: float) -> float:
        """Return how far stored noise with this standard deviation can be from exact noise."""
        return sigma * resolution(self.problem.features, "float64")


class DisjointPlan(PrivatePlan):
    """A learner whose parts read disjoint records.

    Attributes:
        unused: Number of records that no part reads.
    """

    several_runs = True
    disjoint = True
    unused: int

    @property
    @abstractmethod
    def parts(self) -> Sequence[GaussianPlan]:
        """The parts, at least one."""

    @property
    def guarantee(self) -> PrivateGuarantee:
        """The guarantee of the least private part, which may fail with probability `failure`."""
        return PrivateGuarantee(mu=max(part.mu for part in self.parts))

    @property
    def failure(self) -> float:
        """Largest probability of an event on which the guarantee fails."""
        return sum(part.failure for part in self.parts)

    @property
    def learned(self) -> int:
        """Total number of records that the parts read."""
        return sum(part.problem.n for part in self.parts)

    @property
    def left_over(self) -> int:
        """Number of records that no part reads."""
        return self.unused
