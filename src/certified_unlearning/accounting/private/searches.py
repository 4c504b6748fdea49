"""Learners whose model is selected on separate records: a search for the radius, and boosting of confidence.

Source: Ullah (2024), Algorithms 4 and 15, corrected. Records are split by position, never by value, so learning and
selecting read disjoint records. Therefore the whole is as private as the less private part, and each part may use all
of epsilon (the source splits it). The runs of a search read the same records and compose; those of boosting do not.
Losses are clipped at a public bound, so a selection is purely private for any candidates.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from certified_unlearning.accounting.core.checks import require_count, require_positive, require_probability
from certified_unlearning.accounting.private.guarantee import PrivateGuarantee
from certified_unlearning.accounting.private.learners import LEARNERS, Learner, PrivateRun
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.accounting.private.plan import Calibration, PlanConstants, PrivatePlan
from certified_unlearning.accounting.private.releases import composed
from certified_unlearning.accounting.private.selections import (
    DRAWN_FAILURE,
    NOISY_FAILURE,
    boosting_chunks,
    mean_score_sensitivity,
    noisy_minimum_scale,
)
from certified_unlearning.errors import ParameterError

Planner = Callable[[LinearProblem, int], Learner]
"""Function that plans a run of a learner on a problem, given the number of runs that share epsilon and delta."""


class Selection(PrivatePlan):
    """Runs of a learner; one of their models is selected on records that no run learned from.

    Attributes:
        stated: The constant of a certificate that belongs to this selection alone.
    """

    words = replace(
        Learner.words, order="they were split by position, so that learning and selecting read different ones"
    )
    run_constants = PrivateRun
    stated: ClassVar[str]
    validated: int
    epsilon: float

    if TYPE_CHECKING:
        # Has the same meaning as in the base class.
        @property
        def learners(self) -> tuple[Learner, ...]:
            """The runs; for boosting, only one, because all of its runs are equal."""

    @property
    def parts(self) -> tuple[object, ...]:
        """The runs, in the form that a certificate states."""
        return tuple(part for each in self.learners for part in each.parts)

    @property
    @abstractmethod
    def read(self) -> int:
        """Number of records that all runs together learn from."""

    @property
    def mechanism(self) -> str:
        """Name of how its runs learn."""
        return self.learners[0].name

    @property
    def problem(self) -> LinearProblem:
        """The bounds of the records of the first run."""
        return self.learners[0].problem

    @property
    def noise_resolution(self) -> float:
        """Largest distance of the weights of a run from those with exact noise."""
        return max(each.noise_resolution for each in self.learners)

    @property
    def calibration(self) -> Calibration:
        """The noise of the first run, and its cost."""
        return self.learners[0].calibration

    def constants(self, *, features: int | None = None, row_norm: float | None = None) -> PlanConstants:
        """Return what a certificate holds of the selection; see the base class."""
        return replace(
            super().constants(features=features, row_norm=row_norm),
            n=self.read + self.validated,
            **{self.stated: getattr(self, self.stated)},
        )


@dataclass(frozen=True, kw_only=True)
class GridSearch(Selection):
    """Algorithm 4: a run for each of several radii on one half of the records; the best is selected on the other half.

    Weights of zero are a candidate, too, with their measured loss; the source gives them a constant score far above
    their loss, so its search may return a worse model.

    Attributes:
        learners: The runs, on the first records.
        validated: Number of records on which candidates are measured: the remaining ones.
        epsilon: Pure epsilon of the selection.
        beta: Probability that the selection misses its bound; it does not affect privacy.

    Raises:
        ParameterError: There is no run, or runs do not use the same records.
    """

    selection = "grid search"
    stated = "beta"
    several_runs = True
    learners: tuple[Learner, ...]
    validated: int
    epsilon: float
    beta: float = 0.05

    def __post_init__(self) -> None:
        """Check every value."""
        require_count(least=1, validated=self.validated)
        require_positive(epsilon=self.epsilon)
        require_probability(beta=self.beta)
        if not self.learners:
            raise ParameterError("a search needs at least one radius, got none")
        if len({replace(each.problem, radius=1.0) for each in self.learners}) > 1:
            raise ParameterError("the runs of a search must be of one problem, but for the radius")

    @property
    def read(self) -> int:
        """Number of records of the first half, which all runs learn from."""
        return self.problem.n

    @property
    def largest_losses(self) -> tuple[float, ...]:
        """The bounds at which each candidate's losses are clipped, starting with those of zero weights."""
        return (self.problem.loss.at_zero**2, *(clipped_at(each, len(self.learners)) for each in self.learners))

    @property
    def sensitivities(self) -> tuple[float, ...]:
        """How far one record moves each candidate's mean loss."""
        relation = self.problem.relation
        return tuple(mean_score_sensitivity(each, n=self.validated, relation=relation) for each in self.largest_losses)

    @property
    def guarantee(self) -> PrivateGuarantee:
        """What it guarantees, except with probability `failure`."""
        return PrivateGuarantee(mu=composed(each.mu for each in self.learners), selection_epsilon=self.epsilon)

    @property
    def failure(self) -> float:
        """Probability of an event on which nothing is guaranteed."""
        return sum(each.failure for each in self.learners) + (len(self.learners) + 1) * DRAWN_FAILURE

    @classmethod
    def plan(
        cls, problem: LinearProblem, radii: Sequence[float], planner: Planner, *, epsilon: float, beta: float = 0.05
    ) -> Self:
        """Return the search that spends all of its epsilon on both halves.

        Args:
            problem: Bounds of all records; the radius is not used.
            radii: Public radii, such as a unit times powers of 2.
            planner: Plans a run for the same epsilon, and a delta.
            epsilon: Epsilon of the selection.
            beta: As for the class.
        """
        require_count(least=2, n=problem.n)
        learned = problem.n // 2
        runs = tuple(planner(replace(problem, n=learned, radius=radius), len(radii)) for radius in radii)
        return cls(learners=runs, validated=problem.n - learned, epsilon=epsilon, beta=beta)

    @classmethod
    def from_constants(cls, constants: PlanConstants) -> Self:
        """Return the search with these constants."""
        return cls(
            learners=LEARNERS[constants.mechanism].of_runs(constants),
            validated=constants.n - constants.learned_n,
            epsilon=constants.selection_epsilon,
            beta=constants.beta or 0.0,
        )


@dataclass(frozen=True, kw_only=True)
class Boosting(Selection):
    """Algorithm 15: a run on each of several chunks; the one with the least noisy loss is selected.

    Attributes:
        learner: A run on one chunk; all runs are equal.
        chunks: Number of runs, ``m``.
        validated: Number of records of the last chunk, on which candidates are measured.
        epsilon: Pure epsilon of the selection.
    """

    selection = "boosting"
    stated = "chunks"
    learner: Learner
    chunks: int
    validated: int
    epsilon: float

    def __post_init__(self) -> None:
        """Check every value."""
        require_count(least=1, chunks=self.chunks, validated=self.validated)
        require_positive(epsilon=self.epsilon)

    @property
    def learners(self) -> tuple[Learner]:
        """The run that represents all runs."""
        return (self.learner,)

    @property
    def read(self) -> int:
        """Number of records of all chunks except the last."""
        return self.chunks * self.problem.n

    @property
    def largest_loss(self) -> float:
        """The bound at which losses are clipped."""
        return clipped_at(self.learner, self.chunks)

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise on each mean loss."""
        moved = mean_score_sensitivity(self.largest_loss, n=self.validated, relation=self.problem.relation)
        return noisy_minimum_scale(moved, self.epsilon)

    @property
    def guarantee(self) -> PrivateGuarantee:
        """What it guarantees, except with probability `failure`."""
        return PrivateGuarantee(mu=self.learner.mu, selection_epsilon=self.epsilon)

    @property
    def failure(self) -> float:
        """Probability of an event on which nothing is guaranteed."""
        return self.chunks * (self.learner.failure + NOISY_FAILURE)

    @classmethod
    def plan(cls, problem: LinearProblem, planner: Planner, *, epsilon: float, beta: float = 0.05) -> Self:
        """Return the boosted learner that spends all of its epsilon on every chunk.

        Args:
            problem: Bounds of all records.
            planner: Plans a run for the same epsilon, and a delta.
            epsilon: Epsilon of the selection.
            beta: Target probability of a bad model, which determines the number of chunks.

        Raises:
            ParameterError: There are fewer records than chunks.
        """
        chunks = boosting_chunks(beta)
        size = problem.n // (chunks + 1)
        if not size:
            raise ParameterError(
                f"{problem.n} records cannot be split into {chunks + 1} chunks, as beta = {beta:g} needs"
            )
        learner = planner(replace(problem, n=size), 1)
        return cls(learner=learner, chunks=chunks, validated=problem.n - chunks * size, epsilon=epsilon)

    @classmethod
    def from_constants(cls, constants: PlanConstants) -> Self:
        """Return the boosted learner with these constants."""
        chunks = constants.chunks or 0
        return cls(
            learner=LEARNERS[constants.mechanism].from_constants(constants),
            chunks=chunks,
            validated=constants.n - chunks * constants.learned_n,
            epsilon=constants.selection_epsilon,
        )


PrivateLearner = Learner | Selection
SELECTIONS: dict[str, type[Selection]] = {kind.selection: kind for kind in (GridSearch, Boosting)}
"""All selections, by name."""


def learner_of(constants: PlanConstants) -> PrivateLearner:
    """Return the plan of a learner, or of a selection from its runs; see `PrivatePlan.from_constants` for errors."""
    learner = LEARNERS.get(constants.mechanism)
    if learner is None:
        raise ParameterError(f"{constants.mechanism} is none of {', '.join(LEARNERS)}")
    return SELECTIONS.get(constants.selection, learner).from_constants(constants)


def clipped_at(learner: Learner, candidates: int) -> float:
    """Return the public bound at which losses of a run's model are clipped.

    Weights of descent stay in the ball, so nothing is clipped; weights with noise rarely reach this bound.

    Args:
        learner: The run.
        candidates: Number of candidates of the selection.
    """
    problem = learner.problem
    return problem.loss.largest_value(row_norm=problem.longest_row, radius=learner.longest_published(candidates))
