"""Learners whose model is selected on records of its own: a search for the radius, and boosting of confidence.

Source: Ullah (2024), Algorithms 4 and 15, corrected. Records are split by their position, never by what they are, so
learning and selecting read disjoint records: the whole is as private as the worse of the two, and each may use all of
epsilon (the source splits it). The runs of a search read the same records and compose; those of boosting do not.
Losses are clipped at a public bound, so a selection is purely private whatever the candidates are.
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
"""Plans a run of a learner on a problem, so many of which share epsilon and delta."""


class Selection(PrivatePlan):
    """Runs of a learner, one of whose models is selected on records that none of them learned from.

    Attributes:
        stated: Which constant of a certificate belongs to this selection alone.
    """

    words = replace(
        Learner.words, order="they were split by position, so that learning and selecting read different ones"
    )
    run_constants = PrivateRun
    stated: ClassVar[str]
    validated: int
    epsilon: float

    if TYPE_CHECKING:
        # As in the base.
        @property
        def learners(self) -> tuple[Learner, ...]:
            """The runs; of boosting, whose runs are alike, one."""

    @property
    def parts(self) -> tuple[object, ...]:
        """The runs, as a certificate states them."""
        return tuple(part for each in self.learners for part in each.parts)

    @property
    @abstractmethod
    def read(self) -> int:
        """Records that runs learn from, all together."""

    @property
    def mechanism(self) -> str:
        """How its runs learn."""
        return self.learners[0].name

    @property
    def problem(self) -> LinearProblem:
        """The bounds of the records of the first run."""
        return self.learners[0].problem

    @property
    def noise_resolution(self) -> float:
        """How far the weights of a run may be from those with exact noise, at most."""
        return max(each.noise_resolution for each in self.learners)

    @property
    def calibration(self) -> Calibration:
        """The noise of the first run, and its cost."""
        return self.learners[0].calibration

    def constants(self, *, features: int | None = None, row_norm: float | None = None) -> PlanConstants:
        """Return what a certificate holds of it, as of the base."""
        return replace(
            super().constants(features=features, row_norm=row_norm),
            n=self.read + self.validated,
            **{self.stated: getattr(self, self.stated)},
        )


@dataclass(frozen=True, kw_only=True)
class GridSearch(Selection):
    """Algorithm 4: a run for each of several radii on one half of the records, the best selected on the other.

    Weights of zero are a candidate, too, with their measured loss; the source's constant score for them is far above
    it, and the search may return something worse.

    Attributes:
        learners: The runs, on the first records.
        validated: Records that candidates are measured on: those that are left.
        epsilon: Pure, of the selection.
        beta: With this probability the selection may miss its bound; no matter of privacy.

    Raises:
        ParameterError: There is no run, or they are not of the same records.
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
        """Records of the first half, which all runs learn from."""
        return self.problem.n

    @property
    def largest_losses(self) -> tuple[float, ...]:
        """What losses of each candidate are clipped at, weights of zero first."""
        return (self.problem.loss.at_zero**2, *(clipped_at(each, len(self.learners)) for each in self.learners))

    @property
    def sensitivities(self) -> tuple[float, ...]:
        """How far one record moves each candidate's mean loss."""
        relation = self.problem.relation
        return tuple(mean_score_sensitivity(each, n=self.validated, relation=relation) for each in self.largest_losses)

    @property
    def guarantee(self) -> PrivateGuarantee:
        """What it guarantees, but with probability `failure`."""
        return PrivateGuarantee(mu=composed(each.mu for each in self.learners), selection_epsilon=self.epsilon)

    @property
    def failure(self) -> float:
        """Probability on which nothing is guaranteed."""
        return sum(each.failure for each in self.learners) + (len(self.learners) + 1) * DRAWN_FAILURE

    @classmethod
    def plan(
        cls, problem: LinearProblem, radii: Sequence[float], planner: Planner, *, epsilon: float, beta: float = 0.05
    ) -> Self:
        """Return the search that spends all of its epsilon on both halves.

        Args:
            problem: Of all records; its radius plays no part.
            radii: Public; such as a unit times powers of 2.
            planner: Plans a run for the same epsilon, and a delta.
            epsilon: Of the selection.
            beta: As of the class.
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
    """Algorithm 15: a run on each of several chunks, of which the one with the least noisy loss is selected.

    Attributes:
        learner: A run on one chunk; all are alike.
        chunks: ``m``, how many runs.
        validated: Records of the last chunk, which candidates are measured on.
        epsilon: Pure, of the selection.
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
        """The run that all are like."""
        return (self.learner,)

    @property
    def read(self) -> int:
        """Records of all chunks but the last."""
        return self.chunks * self.problem.n

    @property
    def largest_loss(self) -> float:
        """What losses are clipped at."""
        return clipped_at(self.learner, self.chunks)

    @property
    def scale(self) -> float:
        """Of the Laplace noise on each mean loss."""
        moved = mean_score_sensitivity(self.largest_loss, n=self.validated, relation=self.problem.relation)
        return noisy_minimum_scale(moved, self.epsilon)

    @property
    def guarantee(self) -> PrivateGuarantee:
        """What it guarantees, but with probability `failure`."""
        return PrivateGuarantee(mu=self.learner.mu, selection_epsilon=self.epsilon)

    @property
    def failure(self) -> float:
        """Probability on which nothing is guaranteed."""
        return self.chunks * (self.learner.failure + NOISY_FAILURE)

    @classmethod
    def plan(cls, problem: LinearProblem, planner: Planner, *, epsilon: float, beta: float = 0.05) -> Self:
        """Return the boosted learner that spends all of its epsilon on every chunk.

        Args:
            problem: Of all records.
            planner: Plans a run for the same epsilon, and a delta.
            epsilon: Of the selection.
            beta: Wanted probability of a bad model, which says how many chunks.

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
    """Return the plan of a learner, or of a selection from its runs; errors as of `PrivatePlan.from_constants`."""
    learner = LEARNERS.get(constants.mechanism)
    if learner is None:
        raise ParameterError(f"{constants.mechanism} is none of {', '.join(LEARNERS)}")
    return SELECTIONS.get(constants.selection, learner).from_constants(constants)


def clipped_at(learner: Learner, candidates: int) -> float:
    """Return the public bound that losses of a run's model are clipped at.

    Weights of descent stay in the ball, so nothing is clipped; those with noise are rarely as far out as this.

    Args:
        learner: The run.
        candidates: How many are selected from.
    """
    problem = learner.problem
    return problem.loss.largest_value(row_norm=problem.longest_row, radius=learner.longest_published(candidates))
