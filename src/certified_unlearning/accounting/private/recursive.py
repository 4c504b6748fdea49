"""Recursive regularisation: stationary points of convex losses, in stages on disjoint chunks of the records.

Source: Ullah (2024), Algorithms 7 and 18 with Theorem 20, corrected. Each stage uses noisy descent to minimise the loss
plus regularisers around 0 and around the results of earlier stages. Each regulariser is twice as strong as the previous
one. The last result has a small gradient. Chunks are disjoint, so each record is read by at most one stage, and every
stage may spend all of epsilon. The printed noise uses the number of all records in place of the number of records of a
chunk. So the printed noise is too small by a factor of the number of stages (E8).
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
"""Smallest and largest number of steps of a stage, whatever the analysis gives. They do not affect privacy."""


class Stage(RunConstants):
    """The constants of a stage, which is noisy descent on a chunk of the records.

    Attributes:
        radius: Radius of the ball onto which weights are projected.
        steps: Number of iterates, including the start. The number of noisy gradients is one less.
        step_size: Step size of descent.
        sigma: Standard deviation of the noise on each mean gradient, per coordinate.
        regulariser: Total curvature of the regularisers that are added to the loss. Their centres are public weights.
        mu: ``mu`` of Gaussian differential privacy of the stage alone.
    """

    radius: float = Field(gt=0)
    steps: int = Field(ge=2)
    step_size: float = Field(gt=0)
    sigma: float = Field(gt=0)
    regulariser: float = Field(gt=0)
    mu: float = Field(gt=0)


@dataclass(frozen=True, kw_only=True)
class RecursiveRegularisation(DisjointPlan):
    """Algorithm 7, whose stages use noisy descent.

    Attributes:
        stages: Runs of descent, on chunks of equal size. Stage ``t`` has regularisers of total curvature
            ``lambda (2^t - 1)``.
        strength: Strength ``lambda`` of the first regulariser.
        unused: Number of records that no stage reads.

    Raises:
        ParameterError: There is no stage, the stages' bounds or numbers of records differ, a ball is smaller than an
            earlier one, or the regularisers are not those of the algorithm.
    """

    name = "recursive-regularisation"
    run_constants = Stage
    words = Words(seen="or the iterates of all stages")
    stages: tuple[NoisyDescent, ...]
    strength: float
    unused: int = 0

    def __post_init__(self) -> None:
        """Check that there is at least one stage, and that the stages are consistent with each other."""
        require_positive(strength=self.strength)
        if not self.stages:
            raise ParameterError("recursive regularisation needs at least one stage, got none")
        if len({replace(stage.problem, radius=1.0) for stage in self.stages}) > 1:
            raise ParameterError("the stages must have the same problem, except for the radius")
        radii = [stage.problem.radius for stage in self.stages]
        if radii != sorted(radii):
            # A stage's regularisers pull towards points of earlier balls, but rounding is counted for the stage's own
            # ball.
            raise ParameterError(f"no stage may have a smaller ball than an earlier stage, got radii {radii}")
        for number, stage in enumerate(self.stages, start=1):
            due = self.strength * (2**number - 1)
            if not math.isclose(stage.regulariser, due, rel_tol=1e-12):
                raise ParameterError(f"the regulariser of stage {number} must be {due!r}, got {stage.regulariser!r}")

    @property
    def problem(self) -> LinearProblem:
        """Public bounds of a chunk's records, with the ball of the first stage."""
        return self.stages[0].problem

    @property
    def parts(self) -> tuple[NoisyDescent, ...]:
        """The stages, which read disjoint chunks of the records."""
        return self.stages

    @property
    def noise_resolution(self) -> float:
        """Largest distance between a stage's weights and those that exact noise would give, summed over all stages."""
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
            raise ParameterError(f"{constants.learned_n} records cannot be split into {len(stages)} equal chunks")
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
        """Return the plan in which every stage is (epsilon, delta)-private.

        Args:
            problem: Public bounds of all records. The radius bounds the norm of the best weights, and does not affect
                privacy.
            epsilon: Target epsilon, above 0.
            delta: Target delta, strictly between 0 and 1.
            strength: Strength ``lambda``; None for the corrected strength of Theorem 20.
            steps: Number of steps of every stage. If None, the number of Lemma 21 is used, limited to the range from
                `FEWEST_STEPS` to `MOST_STEPS`.

        Raises:
            ParameterError: The loss is not convex, or there are fewer records than stages.
        """
        if not problem.loss.convex:
            raise ParameterError(
                f"recursive regularisation needs a convex loss, but the {problem.loss.name} loss is not convex"
            )
        require_positive(epsilon=epsilon)
        n, smoothness = problem.n, problem.smoothness
        if strength is None:
            noise = max(1 / n, problem.features / (n * epsilon) ** 2)
            strength = problem.gradient_bound**2 / (smoothness * problem.radius**2) * noise
        require_positive(strength=strength)
        # Rounding in the rows' norms must not cause an additional stage.
        count = max(1, math.ceil(math.log2(smoothness / strength) - 1e-9))
        chunk = n // count
        if not chunk:
            raise ParameterError(
                f"strength = {strength:.3g} needs {count} stages, each with at least one record, but there are only "
                f"{n} records"
            )
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
    """Return the number of steps of a stage by Lemma 21, within `FEWEST_STEPS` and `MOST_STEPS`."""
    condition = (problem.smoothness + regulariser) / regulariser
    bound, pulled = problem.gradient_bound, 2 * problem.radius * regulariser
    noise = (problem.n * epsilon) ** 2 * (bound**2 + pulled**2)
    noise /= problem.features * bound**2 * math.log(1 / delta)
    wanted = max(2 * condition * math.log(condition), noise)
    return math.ceil(min(max(wanted, FEWEST_STEPS), MOST_STEPS))
