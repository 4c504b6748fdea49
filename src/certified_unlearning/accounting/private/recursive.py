"""Recursive regularisation: stationary points of convex losses, stage by stage on disjoint chunks of the records.

Source: Ullah (2024), Algorithms 7 and 18 with Theorem 20, corrected. Each stage minimises the loss with regularisers
around 0 and around the results of earlier stages, twice as strong each time, by noisy descent; the last result has a
small gradient. Chunks are disjoint, so every stage may spend all of epsilon, and each record is read by one stage. The
printed noise uses the number of all records in place of a chunk's, so it is too small by a factor of the number of
stages (E8).
"""

import math
from dataclasses import dataclass, replace
from typing import Self

from pydantic import Field

from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.accounting.private.guarantee import require_met
from certified_unlearning.accounting.private.learners import NoisyDescent
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.accounting.private.plan import Calibration, DisjointPlan, PlanConstants, RunConstants, Words
from certified_unlearning.errors import ParameterError

FEWEST_STEPS, MOST_STEPS = 50, 1000
"""Limits on the steps of a stage, in case the analysis gives fewer or more; they do not affect privacy."""


class Stage(RunConstants):
    """The constants of a stage: noisy descent on a chunk of the records.

    Attributes:
        radius: Radius of the ball that weights are projected onto.
        steps: Number of iterates, including the start; there is one noisy gradient less.
        step_size: Step size of descent.
        sigma: Standard deviation of the noise per coordinate, on each mean gradient.
        regulariser: Curvature of the term added to the loss around public weights.
        mu: ``mu`` of the stage alone, as Gaussian differential privacy.
    """

    radius: float = Field(gt=0)
    steps: int = Field(ge=2)
    step_size: float = Field(gt=0)
    sigma: float = Field(gt=0)
    regulariser: float = Field(gt=0)
    mu: float = Field(gt=0)


@dataclass(frozen=True, kw_only=True)
class RecursiveRegularisation(DisjointPlan):
    """Algorithm 7 with noisy descent inside.

    Attributes:
        stages: Runs of descent, each on its own chunk of equal size, with regularisers of ``lambda (2^t - 1)``.
        strength: Strength ``lambda``.
        unused: Number of records left over.

    Raises:
        ParameterError: There is no stage, their bounds or numbers of records differ, a ball is smaller than an earlier
            one, or regularisers are not those of the algorithm.
    """

    name = "recursive-regularisation"
    run_constants = Stage
    words = Words(seen="or the iterates of all stages")
    stages: tuple[NoisyDescent, ...]
    strength: float
    unused: int = 0

    def __post_init__(self) -> None:
        """Check that the stages fit each other."""
        require_positive(strength=self.strength)
        if not self.stages:
            raise ParameterError("recursive regularisation needs at least one stage, got none")
        if len({replace(stage.problem, radius=1.0) for stage in self.stages}) > 1:
            raise ParameterError("the stages must be of one problem, but for the radius")
        radii = [stage.problem.radius for stage in self.stages]
        if radii != sorted(radii):
            # A stage pulls towards points of earlier balls, but its rounding is counted for points of its own ball.
            raise ParameterError(f"the ball of a stage must be no smaller than those before, got radii {radii}")
        for number, stage in enumerate(self.stages, start=1):
            due = self.strength * (2**number - 1)
            if not math.isclose(stage.regulariser, due, rel_tol=1e-12):
                raise ParameterError(f"the regulariser of stage {number} must be {due!r}, got {stage.regulariser!r}")

    @property
    def problem(self) -> LinearProblem:
        """Bounds of a chunk, in the first stage's ball."""
        return self.stages[0].problem

    @property
    def parts(self) -> tuple[NoisyDescent, ...]:
        """The stages: each record is read by one of them."""
        return self.stages

    @property
    def noise_resolution(self) -> float:
        """Largest distance of weights from those with exact noise, over all stages together."""
        return math.fsum(stage.displacement for stage in self.stages)

    @property
    def calibration(self) -> Calibration:
        """The noise of the first stage, and the total number of steps."""
        return Calibration(self.stages[0].sigma, sum(stage.steps for stage in self.stages))

    @classmethod
    def from_constants(cls, constants: PlanConstants) -> Self:
        """Return the plan with these constants."""
        stages = constants.runs_of(Stage)
        chunk, left = divmod(constants.learned_n, len(stages))
        if left:
            raise ParameterError(f"{constants.learned_n} records are no {len(stages)} chunks of as many")
        planned = tuple(
            NoisyDescent(
                problem=constants.problem(records=chunk, radius=each.radius),
                **each.model_dump(exclude={"radius", "mu"}),
            )
            for each in stages
        )
        return cls(stages=planned, strength=stages[0].regulariser, unused=constants.unused)

    @classmethod
    def plan(
        cls,
        problem: LinearProblem,
        *,
        epsilon: float,
        delta: float,
        strength: float | None = None,
        steps: int | None = None,
    ) -> Self:
        """Return the run whose every stage is (epsilon, delta)-private.

        Args:
            problem: Bounds of all records; its radius bounds the best weights' norm, which does not affect privacy.
            epsilon: Target epsilon, above 0.
            delta: Target delta, strictly between 0 and 1.
            strength: Strength ``lambda``; None: Theorem 20's, corrected.
            steps: Number of steps of every stage; None: Lemma 21's, from `FEWEST_STEPS` to `MOST_STEPS`.

        Raises:
            ParameterError: The loss is not convex, or there are fewer records than stages.
        """
        if not problem.loss.convex:
            raise ParameterError(f"recursive regularisation needs a convex loss, the {problem.loss.name} loss is none")
        require_positive(epsilon=epsilon)
        n, smoothness = problem.n, problem.smoothness
        if strength is None:
            noise = max(1 / n, problem.features / (n * epsilon) ** 2)
            strength = problem.gradient_bound**2 / (smoothness * problem.radius**2) * noise
        require_positive(strength=strength)
        # The rounding of the rows' norms must not cause an additional stage.
        count = max(1, math.ceil(math.log2(smoothness / strength) - 1e-9))
        chunk = n // count
        if not chunk:
            raise ParameterError(f"{n} records are fewer than the {count} stages of strength {strength:.3g}")
        stages = []
        for number in range(1, count + 1):
            here = replace(problem, n=chunk, radius=math.pow(2, number / 2) * problem.radius)
            regulariser = strength * (2**number - 1)
            taken = _steps(here, regulariser, epsilon, delta) if steps is None else steps
            step_size = min(math.log(taken) / (regulariser * taken), 1 / (smoothness + regulariser))
            stages.append(
                NoisyDescent.plan(
                    here, epsilon=epsilon, delta=delta, steps=taken, step_size=step_size, regulariser=regulariser
                )
            )
        plan = cls(stages=tuple(stages), strength=strength, unused=n - count * chunk)
        require_met(plan.guarantee, epsilon=epsilon, delta=delta)
        return plan


def _steps(problem: LinearProblem, regulariser: float, epsilon: float, delta: float) -> int:
    """Return Lemma 21's steps of a stage, within limits."""
    condition = (problem.smoothness + regulariser) / regulariser
    bound, pulled = problem.gradient_bound, 2 * problem.radius * regulariser
    noise = (problem.n * epsilon) ** 2 * (bound**2 + pulled**2)
    noise /= problem.features * bound**2 * math.log(1 / delta)
    wanted = max(2 * condition * math.log(condition), noise)
    return math.ceil(min(max(wanted, FEWEST_STEPS), MOST_STEPS))
