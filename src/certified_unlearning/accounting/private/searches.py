"""Learners whose model is selected on records of its own: a search for the radius, and boosting of confidence.

Source: Ullah (2024), Algorithms 4 and 15, corrected. Records are split by their position, never by what they are, so
learning and selecting read disjoint records: the whole is as private as the worse of the two, and each may use all of
epsilon (the source splits it). The runs of a search read the same records and compose; those of boosting do not.
Losses are clipped at a public bound, so a selection is purely private whatever the candidates are.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from certified_unlearning.accounting.core.checks import require_count, require_positive, require_probability
from certified_unlearning.accounting.private.guarantee import PrivateGuarantee
from certified_unlearning.accounting.private.learners import Learner, LinearProblem, OutputPerturbation
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


@dataclass(frozen=True, kw_only=True)
class GridSearch:
    """Algorithm 4: a run for each of several radii on one half of the records, the best selected on the other.

    Weights of zero are a candidate, too, with their measured loss; the source's constant score for them is far above
    it, and the search may return something worse.

    Attributes:
        learners: The runs, on the first records.
        validated: Records that candidates are measured on: those that are left.
        epsilon: Pure, of the selection.
        beta: With this probability the selection may miss its bound; no matter of privacy.

    Raises:
        ParameterError: There is no run, they are not of the same records, or a value makes no sense.
    """

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
    def problem(self) -> LinearProblem:
        """Of the first run."""
        return self.learners[0].problem

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

        Raises:
            ParameterError: A value makes no sense.
        """
        require_count(least=2, n=problem.n)
        learned = problem.n // 2
        runs = tuple(planner(replace(problem, n=learned, radius=radius), len(radii)) for radius in radii)
        return cls(learners=runs, validated=problem.n - learned, epsilon=epsilon, beta=beta)


@dataclass(frozen=True, kw_only=True)
class Boosting:
    """Algorithm 15: a run on each of several chunks, of which the one with the least noisy loss is selected.

    Attributes:
        learner: A run on one chunk; all are alike.
        chunks: ``m``, how many runs.
        validated: Records of the last chunk, which candidates are measured on.
        epsilon: Pure, of the selection.

    Raises:
        ParameterError: A value makes no sense.
    """

    learner: Learner
    chunks: int
    validated: int
    epsilon: float

    def __post_init__(self) -> None:
        """Check every value."""
        require_count(least=1, chunks=self.chunks, validated=self.validated)
        require_positive(epsilon=self.epsilon)

    @property
    def problem(self) -> LinearProblem:
        """Of a chunk."""
        return self.learner.problem

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
            ParameterError: A value makes no sense, or there are fewer records than chunks.
        """
        chunks = boosting_chunks(beta)
        size = problem.n // (chunks + 1)
        if not size:
            raise ParameterError(
                f"{problem.n} records cannot be split into {chunks + 1} chunks, as beta = {beta:g} needs"
            )
        learner = planner(replace(problem, n=size), 1)
        return cls(learner=learner, chunks=chunks, validated=problem.n - chunks * size, epsilon=epsilon)


PrivateLearner = Learner | GridSearch | Boosting


def clipped_at(learner: Learner, candidates: int) -> float:
    """Return the public bound that losses of a run's model are clipped at.

    Weights of descent stay in the ball, so nothing is clipped; those with noise are rarely as far out as this.

    Args:
        learner: The run.
        candidates: How many are selected from.
    """
    problem, reach = learner.problem, learner.problem.longest_weights
    if isinstance(learner, OutputPerturbation):
        reach += learner.sigma * math.sqrt(2 * math.log(8 * candidates / 0.05))
    return problem.loss.largest_value(row_norm=problem.longest_row, radius=reach)
