"""Phased descent: one pass over consecutive disjoint blocks, with noise on each block's result (Algorithms 16, 17).

Source: Ullah (2024), Lemmas 23 and 24. A step on one record's convex loss never moves two paths farther apart if the
step is short enough. Each record is read once, so it moves a block's result by at most twice the bound on gradients
times the step size. Short steps are a condition of *privacy*: with longer steps, two paths may move apart, and clipping
vectors does not prevent this. So the condition is checked, and steps that are too long are refused.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

from pydantic import Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.core.checks import require_positive
from certified_unlearning.accounting.core.rounding import required_sigma
from certified_unlearning.accounting.private.arithmetic import gradient_error, moved
from certified_unlearning.accounting.private.guarantee import GaussianPlan, require_met
from certified_unlearning.accounting.private.learners import ROUNDING_SHARE
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.accounting.private.plan import Calibration, DisjointPlan, PlanConstants, RunConstants, Words
from certified_unlearning.accounting.private.releases import mean_sensitivity, mu_of, sigma_for
from certified_unlearning.accounting.residual.rounding import UNIT
from certified_unlearning.errors import AssumptionError, ParameterError


class BlockPhase(RunConstants):
    """The constants of a phase, which is one pass over a block of the records.

    Attributes:
        records: Number of records of the block.
        radius: Radius of the ball onto which weights are projected.
        step_size: Step size of descent.
        sigma: Standard deviation of the noise on the mean of the iterates, per coordinate.
        mu: ``mu`` of Gaussian differential privacy of the phase alone.
    """

    records: int = Field(ge=1)
    radius: float = Field(gt=0)
    step_size: float = Field(gt=0)
    sigma: float = Field(gt=0)
    mu: float = Field(gt=0)


@dataclass(frozen=True, kw_only=True)
class OnePass(GaussianPlan):
    """Algorithm 17: descent that reads each record of a block once, with noise on the mean of the iterates.

    Attributes:
        problem: Public bounds of the block's records.
        step_size: Step size ``eta``.
        sigma: Standard deviation of the noise, per coordinate.

    Raises:
        ParameterError: The loss is not convex.
        AssumptionError: A step is longer than ``2 / H``, so two paths could move apart.
    """

    problem: LinearProblem
    step_size: float
    sigma: float

    def __post_init__(self) -> None:
        """Check every value, and the condition on which privacy depends."""
        require_positive(step_size=self.step_size)
        required_sigma(self.sigma)
        if not self.problem.loss.convex:
            raise ParameterError(
                f"a pass with noise on its result needs a convex loss, but the {self.problem.loss.name} loss is not "
                "convex"
            )
        longest = 2 / self.problem.smoothness
        if self.step_size > longest:
            raise AssumptionError(
                f"step_size must be at most 2 / H = {longest:.6g}, because longer steps may move two paths apart, and "
                f"then the noise is not enough; got {self.step_size:.6g}"
            )

    @property
    def records(self) -> int:
        """Number of records of the block."""
        return self.problem.n

    @property
    def radius(self) -> float:
        """The radius of the ball."""
        return self.problem.radius

    @property
    def sensitivity(self) -> float:
        """How far one record moves the computed mean of the iterates.

        In exact arithmetic, the sensitivity is ``2 eta G``, or ``eta G`` under ``add-remove``.
        """
        problem = self.problem
        bound = problem.gradient_bound
        step = gradient_error(
            n=1,
            features=problem.features,
            row_norm=problem.row_norm,
            slope=bound / problem.row_norm,
            smoothness=problem.loss.smoothness,
            weight_norm=problem.longest_weights,
        )
        stored = (problem.features + 8) * UNIT * (problem.longest_weights + self.step_size * bound)
        # Steps on equal records do not move two paths apart, except for rounding errors, which add up.
        rounded = problem.n * (self.step_size * step + 2 * stored)
        return moved(self.step_size * mean_sensitivity(bound, n=1, relation=problem.relation), rounded)

    @property
    def mu(self) -> float:
        """``mu`` of the published mean."""
        return mu_of(self.sensitivity, sigma=self.sigma)


@dataclass(frozen=True, kw_only=True)
class PhasedDescent(DisjointPlan):
    """Algorithm 16: phases on blocks. Each block is half as long as the previous one, with a quarter of the step size.

    Attributes:
        phases: The phases in order. The blocks of records follow each other in this order.
        unused: Number of records that no phase reads.

    Raises:
        ParameterError: There is no phase, or the phases' bounds differ.
    """

    name = "phased-descent"
    run_constants = BlockPhase
    words = Words(
        seen="or what every phase published, but not the iterates of a phase",
        premises=(
            Assumption(
                statement="no step moves two paths farther apart",
                status="checked",
                by="the loss is convex, and no step size is larger than 2 / H; other plans are refused, because for "
                "them, noise at the end of a phase would not be enough",
            ),
        ),
    )
    phases: tuple[OnePass, ...]
    unused: int = 0

    def __post_init__(self) -> None:
        """Check that there is a phase, and that all phases have the same bounds."""
        if not self.phases:
            raise ParameterError("there must be at least one phase, got none")
        if len({replace(phase.problem, n=1, radius=1.0) for phase in self.phases}) > 1:
            raise ParameterError(
                "the phases must have the same problem, except for the number of records and the radius"
            )

    @property
    def problem(self) -> LinearProblem:
        """Public bounds of the first block's records."""
        return self.phases[0].problem

    @property
    def parts(self) -> tuple[OnePass, ...]:
        """The phases, which read disjoint blocks of the records."""
        return self.phases

    @property
    def noise_resolution(self) -> float:
        """Largest distance between a phase's weights and those that exact noise would give, summed over all phases."""
        return self.resolution(math.fsum(phase.sigma for phase in self.phases))

    @property
    def calibration(self) -> Calibration:
        """The noise of the first phase, and the total number of steps."""
        return Calibration(self.phases[0].sigma, self.learned)

    @classmethod
    def from_constants(cls, constants: PlanConstants) -> Self:
        """Return the plan with these constants."""
        planned = tuple(
            OnePass(
                problem=constants.problem(records=each.records, radius=each.radius),
                step_size=each.step_size,
                sigma=each.sigma,
            )
            for each in constants.runs_of(BlockPhase)
        )
        return cls(phases=planned, unused=constants.unused)

    @classmethod
    def plan(cls, problem: LinearProblem, *, epsilon: float, delta: float, step_size: float | None = None) -> Self:
        """Return the plan in which every phase is (epsilon, delta)-private.

        Phases are added as long as the next block has records and rounding is a small share of a record's effect.

        Args:
            problem: Bounds of all records.
            epsilon: Target epsilon, above 0.
            delta: Target delta, strictly between 0 and 1.
            step_size: The step size ``eta``, which is four times the step size of the first phase. None for the smaller
                of ``4 D / (G sqrt(n))`` and four times the largest step size that privacy allows.

        Raises:
            ParameterError: There is only one record.
            AssumptionError: The step of the first phase is too long.
        """
        if step_size is None:
            usual = problem.radius / (problem.gradient_bound * math.sqrt(problem.n))
            step_size = min(4 * usual, 4 * 2 / problem.smoothness)
        require_positive(step_size=step_size)
        phases: list[OnePass] = []
        left, number = problem.n, 1
        while size := min(left, problem.n >> number):
            block = replace(problem, n=size)
            phase = OnePass(problem=block, step_size=step_size / 4**number, sigma=1.0)
            exact = phase.step_size * mean_sensitivity(problem.gradient_bound, n=1, relation=problem.relation)
            if phase.sensitivity > (1 + ROUNDING_SHARE) * exact:
                break
            sigma = sigma_for(phase.sensitivity, epsilon=epsilon, delta=delta)
            phases.append(replace(phase, sigma=sigma))
            left, number = left - size, number + 1
        if not phases:
            raise ParameterError(f"no phase is possible with {problem.n} records and step_size = {step_size:.3g}")
        plan = cls(phases=tuple(phases), unused=left)
        require_met(plan.guarantee, epsilon=epsilon, delta=delta)
        return plan
