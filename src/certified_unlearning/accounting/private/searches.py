"""Learners that select a model on separate records: a search for the radius, and boosting of confidence.

Source: Ullah (2024), Algorithms 4 and 15, corrected. Records are split by position, never by value, so learning and
selecting read disjoint records. Therefore the result is as private as the less private of the two parts, and each part
may use all of epsilon. (The source splits epsilon.) The runs of a search read the same records, so their guarantees
compose. The runs of boosting read disjoint records. Losses are clipped at a public bound, so a selection is purely
epsilon-private for any candidates.
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
"""A function that plans a run of a learner on a problem, given the number of runs that share epsilon and delta."""


class Selection(PrivatePlan):
    """Runs of a learner, and the selection of one of their models on records that no run learned from.

    Attributes:
        stated: Name of a constant that only certificates with this kind of selection contain.
    """

    words = replace(
        Learner.words, order="they were split by position, so that learning and selection read different records"
    )
    run_constants = PrivateRun
    stated: ClassVar[str]
    validated: int
    epsilon: float

    if TYPE_CHECKING:
        # For type checking only, as in the base class.
        @property
        def learners(self) -> tuple[Learner, ...]:
            """The runs. For boosting, this is a single run, because all runs of boosting have equal constants."""

    @property
    def parts(self) -> tuple[object, ...]:
        """The runs that a certificate lists."""
        return tuple(part for each in self.learners for part in each.parts)

    @property
    @abstractmethod
    def read(self) -> int:
        """Number of records from which all runs together learn."""

    @property
    def mechanism(self) -> str:
        """Name of the learning method of the runs."""
        return self.learners[0].name

    @property
    def problem(self) -> LinearProblem:
        """Public bounds of the records of the first run."""
        return self.learners[0].problem

    @property
    def noise_resolution(self) -> float:
        """Largest distance between a run's weights and the weights that exact noise would give."""
        return max(each.noise_resolution for each in self.learners)

    @property
    def calibration(self) -> Calibration:
        """The noise of the first run, and the cost of privacy in the first run."""
        return self.learners[0].calibration

    def constants(self, *, features: int | None = None, row_norm: float | None = None) -> PlanConstants:
        """Return the constants that a certificate of the selection contains.

        The arguments are those of the base class.
        """
        return replace(
            super().constants(features=features, row_norm=row_norm),
            n=self.read + self.validated,
            **{self.stated: getattr(self, self.stated)},
        )


@dataclass(frozen=True, kw_only=True)
class GridSearch(Selection):
    """Algorithm 4: a run for each of several radii on one half of the records, and a selection on the other half.

    Weights of zero are a candidate, too, with their measured loss. The source gives them a constant score far above
    their loss, so the source's search may return a worse model.

    Attributes:
        learners: The runs, which learn from the first records.
        validated: Number of the remaining records, on which candidates are measured.
        epsilon: Pure epsilon of the selection.
        beta: Probability that the selection misses its bound, which does not affect privacy.

    Raises:
        ParameterError: There is no run, or the runs' bounds differ in more than the radius.
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
            raise ParameterError("the runs of a search must have the same problem, except for the radius")

    @property
    def read(self) -> int:
        """Number of records of the first half, from which all runs learn."""
        return self.problem.n

    @property
    def largest_losses(self) -> tuple[float, ...]:
        """The bound at which losses are clipped, for each candidate. The first candidate has weights of zero."""
        return (self.problem.loss.at_zero**2, *(clipped_at(each, len(self.learners)) for each in self.learners))

    @property
    def sensitivities(self) -> tuple[float, ...]:
        """How far one record moves the mean loss, for each candidate."""
        relation = self.problem.relation
        return tuple(mean_score_sensitivity(each, n=self.validated, relation=relation) for each in self.largest_losses)

    @property
    def guarantee(self) -> PrivateGuarantee:
        """The guarantee of the search, which may fail with probability `failure`."""
        return PrivateGuarantee(mu=composed(each.mu for each in self.learners), selection_epsilon=self.epsilon)

    @property
    def failure(self) -> float:
        """Largest probability of an event on which the guarantee fails."""
        return sum(each.failure for each in self.learners) + (len(self.learners) + 1) * DRAWN_FAILURE

    @classmethod
    def plan(
        cls, problem: LinearProblem, radii: Sequence[float], planner: Planner, *, epsilon: float, beta: float = 0.05
    ) -> Self:
        """Return the search that spends all of epsilon on each half of the records.

        Args:
            problem: Public bounds of all records. The radius is not used.
            radii: Public radii, such as a unit times powers of 2.
            planner: Function that plans a run for the same epsilon and some delta.
            epsilon: Epsilon of the selection.
            beta: Probability that the selection misses its bound.
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
    """Algorithm 15: a run on each of several chunks, and the selection of the model with the smallest noisy loss.

    Attributes:
        learner: The run on one chunk. The runs on all chunks have equal constants.
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
        """The public bound at which losses are clipped."""
        return clipped_at(self.learner, self.chunks)

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise on each mean loss."""
        moved = mean_score_sensitivity(self.largest_loss, n=self.validated, relation=self.problem.relation)
        return noisy_minimum_scale(moved, self.epsilon)

    @property
    def guarantee(self) -> PrivateGuarantee:
        """The guarantee of boosting, which may fail with probability `failure`."""
        return PrivateGuarantee(mu=self.learner.mu, selection_epsilon=self.epsilon)

    @property
    def failure(self) -> float:
        """Largest probability of an event on which the guarantee fails."""
        return self.chunks * (self.learner.failure + NOISY_FAILURE)

    @classmethod
    def plan(cls, problem: LinearProblem, planner: Planner, *, epsilon: float, beta: float = 0.05) -> Self:
        """Return the boosted learner that spends all of epsilon on every chunk.

        Args:
            problem: Public bounds of all records.
            planner: Function that plans a run for the same epsilon and some delta.
            epsilon: Epsilon of the selection.
            beta: Target probability of a bad model, which determines the number of chunks.

        Raises:
            ParameterError: There are fewer records than chunks.
        """
        chunks = boosting_chunks(beta)
        size = problem.n // (chunks + 1)
        if not size:
            raise ParameterError(
                f"beta = {beta:g} needs {chunks + 1} chunks, but {problem.n} records cannot be split into so many"
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
    """Return the plan of a learner or of a selection; raises the errors of `PrivatePlan.from_constants`."""
    learner = LEARNERS.get(constants.mechanism)
    if learner is None:
        raise ParameterError(f"{constants.mechanism} is none of {', '.join(LEARNERS)}")
    return SELECTIONS.get(constants.selection, learner).from_constants(constants)


def clipped_at(learner: Learner, candidates: int) -> float:
    """Return the public bound at which losses of a run's model are clipped.

    Weights of descent stay in the ball, so clipping changes none of their losses. Losses of weights with noise rarely
    reach this bound.

    Args:
        learner: The run.
        candidates: Number of candidates of the selection.
    """
    problem = learner.problem
    return problem.loss.largest_value(row_norm=problem.longest_row, radius=learner.longest_published(candidates))
