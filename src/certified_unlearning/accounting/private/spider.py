"""Private SpiderBoost, which finds stationary points of losses that need not be convex.

The batches are full, and the accounting is exact.

Source: Ullah (2024), Algorithm 5 with Theorem 42 and Lemma 15, corrected. At regular intervals, SpiderBoost uses a
noisy mean gradient. In between, it uses noisy mean *differences* of gradients, whose noise shrinks with the step: a
record's difference is at most ``min(H |w_t - w_(t-1)|, 2 G)``, and the weights are already public. On full batches, the
guarantee does not depend on sampling. Gradients and differences each get half of ``mu^2`` (derived). With Poisson
batches (`sampled_spider`), the formulas have a constant ``c`` that the source does not specify. For epsilon 1 and delta
1e-6, it is about 1.61 under ``add-remove`` and twice as large under ``replace-one``. With full batches,
`equivalent_constant` gives ``c``.

The error is ``(sqrt(d) / (n epsilon))^(2/3)``, which falls faster than the error of plain noisy descent, whose exponent
is 1/2. According to the explicit bounds, the advantage begins only at a few hundred million records.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from pydantic import Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.core.checks import require_count, require_positive, require_probability
from certified_unlearning.accounting.core.conversion import mu_from_epsilon
from certified_unlearning.accounting.core.rounding import required_sigma
from certified_unlearning.accounting.private.guarantee import GaussianPlan, require_met
from certified_unlearning.accounting.private.learners import ROUNDING_SHARE
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.accounting.private.plan import (
    NO_PART,
    Calibration,
    PlanConstants,
    PrivatePlan,
    RunConstants,
    Words,
    paid_rounding,
    returned,
)
from certified_unlearning.accounting.private.releases import composed, mean_sensitivity, mu_of, noise_multiplier
from certified_unlearning.accounting.residual.rounding import OUTWARD
from certified_unlearning.errors import ParameterError

BOUNDED_GRADIENTS = Assumption(
    statement="no gradient, and no difference of two gradients, is longer than planned",
    status="checked",
    by="the loss has a bounded slope and is smooth, and rows are within their norm; so a record's gradients are "
    "bounded for all weights, and the difference of two gradients is bounded by means of the weights' distance",
)
SHARE_OF_ROUNDING = paid_rounding(
    "a share of the sensitivity is reserved for the rounding of gradients in float64, and a run in which rounding "
    "could exceed this share ends with an error"
)


class StationaryPlan(PrivatePlan):
    """A plan for stationary points. Weights are not projected onto a ball, so the loss must have a bounded slope.

    A record's gradient has norm at most ``G``. The difference of its gradients at two points has norm at most
    ``min(H |w - w'|, 2 G)``. The rounding of gradients may use a fixed share of each sensitivity. Runs enforce this
    limit.
    """

    problem: LinearProblem

    def _require_bounded_slope(self, learner: str) -> None:
        """Raise `ParameterError` unless the loss has a bound on its slope."""
        if self.problem.loss.lipschitz is None:
            raise ParameterError(
                f"{learner} needs a loss of bounded slope, but the {self.problem.loss.name} loss has none"
            )

    @property
    def gradient_bound(self) -> float:
        """``G``, the largest norm of a record's gradient at any weights."""
        return self.problem.steepest

    @property
    def farthest(self) -> float:
        """``2 G / H``. The gradients at points farther apart still differ by at most ``2 G``."""
        return 2 * self.gradient_bound / self.problem.smoothness

    def moved(self, bound: float, records: int) -> float:
        """Return how far one record moves a computed mean, including the share that is reserved for rounding."""
        exact = mean_sensitivity(bound, n=records, relation=self.problem.relation)
        return exact * (1 + ROUNDING_SHARE) * OUTWARD


class SpiderConstants(RunConstants):
    """The constants of SpiderBoost, in which every gradient uses all records.

    Attributes:
        gradients: Number of noisy mean gradients.
        differences: Number of means of gradient differences to which noise is added.
        batch: Expected size of a Poisson batch of differences; None if differences use all records.
        sigma_gradient: Standard deviation of a gradient's noise, per coordinate.
        sigma_difference: Standard deviation of a difference's noise, divided by the distance between the two points of
            the difference.
    """

    gradients: int = Field(ge=1)
    differences: int = Field(ge=0)
    batch: int | None = Field(default=None, ge=1)
    sigma_gradient: float = Field(gt=0)
    sigma_difference: float = Field(gt=0)


class VarianceReduced(StationaryPlan):
    """Base class of SpiderBoost on full batches and on Poisson batches: the order of releases, and Lemma 15's bound.

    Attributes:
        batch: Expected size of a Poisson batch of differences; None if differences use all records.
    """

    run_constants = SpiderConstants
    words = Words(
        seen="or all iterates from which the model was drawn",
        premises=(
            BOUNDED_GRADIENTS,
            returned("the model is any iterate except the start, drawn beforehand with equal probabilities"),
        ),
        rounding=SHARE_OF_ROUNDING,
        stored=True,
    )
    steps: int
    period: int
    batch: int | None
    step_size: float
    sigma_gradient: float
    sigma_difference: float

    @property
    def gradients(self) -> int:
        """Number of noisy gradients, ``N_f``."""
        return -(-self.steps // self.period)

    @property
    def differences(self) -> int:
        """Number of noisy differences, ``N_v``."""
        return self.steps - self.gradients

    @property
    def gradient_error(self) -> float:
        """``tau_1^2 = d sigma_1^2``, the mean squared error of a noisy gradient."""
        return self.problem.features * self.sigma_gradient**2

    @property
    @abstractmethod
    def difference_error(self) -> float:
        """``tau_2^2``: mean squared error of a noisy difference, divided by the squared distance of the two points."""

    def stationarity_bound(self, gap: float) -> float:
        """Return Lemma 15's bound, with its constants, on the root mean square of the gradient's norm at the model.

        The bound is ``sqrt(40 L_0 H / T + 12 tau_1^2)`` for ``eta = 1 / (2 H)`` and ``q <= H^2 / tau_2^2``, and
        infinite otherwise.

        Args:
            gap: Bound ``L_0`` on the difference between the loss at 0 and its minimum.
        """
        smoothness = self.problem.smoothness
        rounding = 1 + 1e-9
        if self.step_size > 1 / (2 * smoothness) * rounding:
            return math.inf
        if self.period * self.difference_error > smoothness**2 * rounding:
            return math.inf
        return math.sqrt(40 * gap * smoothness / self.steps + 12 * self.gradient_error)

    @property
    def noise_resolution(self) -> float:
        """Largest distance of the noisiest release from the release with exact noise."""
        return self.resolution(max(self.sigma_gradient, self.farthest * self.sigma_difference))

    @property
    def calibration(self) -> Calibration:
        """The noise of the first release, the number of steps, and a bound on the gradient for non-negative losses."""
        bound = self.stationarity_bound(self.problem.loss.at_zero**2)
        return Calibration(self.sigma_gradient, self.steps, gradient=bound)

    @classmethod
    def from_constants(cls, constants: PlanConstants) -> Self:
        """Return the plan with these constants, the shortest period and an arbitrary step size."""
        run = constants.runs_of(SpiderConstants)[0]
        if (run.batch is not None) != cls.numerical:
            raise ParameterError(f"{cls.name} {'needs a' if cls.numerical else 'has no'} batch")
        steps = run.gradients + run.differences
        planned: Callable[..., Self] = cls
        plan = planned(
            problem=constants.problem(),
            steps=steps,
            # The shortest period with this number of gradients.
            period=-(-steps // run.gradients),
            step_size=NO_PART,
            **run.model_dump(exclude={"gradients", "differences"}, exclude_none=True),
        )
        if plan.gradients != run.gradients:
            raise ParameterError(f"{steps} steps cannot contain {run.gradients} gradients at regular intervals")
        return plan


@dataclass(frozen=True, kw_only=True)
class SpiderBoost(GaussianPlan, VarianceReduced):
    """Algorithm 5 on full batches.

    Attributes:
        problem: Public bounds of the records. The radius is not used, so the loss must have a bounded slope.
        steps: Number ``T`` of noisy releases, at steps 0 to ``T - 1``.
        period: Period ``q``. Every ``q``-th release is a gradient, and the others are differences.
        step_size: Step size ``eta``.
        sigma_gradient: Standard deviation ``sigma_1`` of a mean gradient's noise, per coordinate.
        sigma_difference: Standard deviation ``sigma_2`` of a difference's noise, divided by the distance between the
            two points of the difference.

    Raises:
        ParameterError: The loss has no bound on its slope.
    """

    name = "spider-boost"
    batch = None
    problem: LinearProblem
    steps: int
    period: int
    step_size: float
    sigma_gradient: float
    sigma_difference: float

    def __post_init__(self) -> None:
        """Check every value."""
        require_count(least=1, steps=self.steps, period=self.period)
        require_positive(step_size=self.step_size)
        required_sigma(self.sigma_gradient)
        required_sigma(self.sigma_difference)
        self._require_bounded_slope("SpiderBoost")

    @property
    def mu(self) -> float:
        """``mu`` of all releases together.

        The sensitivities include a share for rounding. A run in which rounding could exceed this share ends with an
        error.
        """
        gradient = self.moved(self.gradient_bound, self.problem.n)
        difference = self.moved(self.problem.smoothness, self.problem.n)
        return composed(
            (
                mu_of(gradient, sigma=self.sigma_gradient, releases=self.gradients),
                mu_of(difference, sigma=self.sigma_difference, releases=self.differences),
            )
        )

    @property
    def releases(self) -> int:
        """Number of noisy gradients and differences."""
        return self.steps

    @property
    def difference_error(self) -> float:
        """``tau_2^2 = d sigma_2^2``: a difference's mean squared error, divided by the points' squared distance."""
        return self.problem.features * self.sigma_difference**2

    @classmethod
    def plan(
        cls, problem: LinearProblem, *, epsilon: float, delta: float, gap: float, steps: int | None = None
    ) -> "SpiderBoost":
        """Return the (epsilon, delta)-private run with the longest period that its noise allows.

        Args:
            problem: Bounds of the records.
            epsilon: Target epsilon, above 0.
            delta: Target delta, strictly between 0 and 1.
            gap: Bound ``L_0`` on the difference between the loss at 0 and the minimum of the loss. The bound does not
                affect privacy.
            steps: Number of steps ``T``; None for that of Theorem 42.
        """
        smoothness = problem.smoothness
        given = cls(
            problem=problem, steps=1, period=1, step_size=0.5 / smoothness, sigma_gradient=1, sigma_difference=1
        )
        if steps is None:
            steps = theorem_42(
                n=problem.n,
                dimension=problem.features,
                lipschitz=given.gradient_bound,
                smoothness=smoothness,
                gap=gap,
                epsilon=epsilon,
                delta=delta,
            ).steps
        given = replace(given, steps=steps)
        # A longer period has more differences, and therefore more noise on each. So there is a longest allowed period,
        # and all shorter periods are allowed, too.
        period, too_long = 1, steps + 1
        while too_long - period > 1:
            middle = (period + too_long) // 2
            allowed = middle * _calibrated(given, middle, epsilon, delta).difference_error <= smoothness**2
            period, too_long = (middle, too_long) if allowed else (period, middle)
        plan = _calibrated(given, period, epsilon, delta)
        require_met(plan.guarantee, epsilon=epsilon, delta=delta)
        return plan


@dataclass(frozen=True)
class Theorem42:
    """The parameters of Theorem 42, for Poisson batches, with erratum E21 corrected.

    Attributes:
        steps: Number of steps ``T``.
        batch_size: Batch size ``b_2`` of differences.
        period: Period ``q``.
        rate: The two terms of the claimed rate, without constants.
    """

    steps: int
    batch_size: int
    period: int
    rate: tuple[float, float]


def theorem_42(
    *, n: int, dimension: int, lipschitz: float, smoothness: float, gap: float, epsilon: float, delta: float
) -> Theorem42:
    """Return the parameters of Theorem 42. As in the theorem's proof, the period has no factor ``H^2``."""
    require_count(least=1, n=n, dimension=dimension)
    require_positive(lipschitz=lipschitz, smoothness=smoothness, gap=gap, epsilon=epsilon)
    require_probability(delta=delta)
    bar = math.sqrt(dimension * math.log(1 / delta)) / (n * epsilon)
    steps = math.ceil(max(math.cbrt(gap * smoothness) * lipschitz ** (-2 / 3) * bar ** (-4 / 3), 1 / bar))
    first = math.pow(lipschitz / (math.sqrt(gap * smoothness) * bar), 2 / 3)
    second = n * math.cbrt(lipschitz) * bar ** (2 / 3) / math.pow(smoothness * gap, 1 / 6)
    rate = math.pow(math.sqrt(gap * smoothness * lipschitz) * bar, 2 / 3)
    return Theorem42(
        steps=steps,
        batch_size=min(n, math.ceil(max(first, second))),
        period=max(1, math.floor(1 / (steps * bar**2))),
        rate=(rate, lipschitz * bar),
    )


def equivalent_constant(epsilon: float, delta: float) -> float:
    """Return Theorem 41's ``c`` for full batches under replace-one, ``2 sqrt(2) z epsilon / sqrt(log(1/delta))``."""
    return 2 * math.sqrt(2) * noise_multiplier(epsilon, delta) * epsilon / math.sqrt(math.log(1 / delta))


def _calibrated(given: SpiderBoost, period: int, epsilon: float, delta: float) -> SpiderBoost:
    """Return the plan with this period. Gradients and differences each get half of ``mu^2``."""
    plan = replace(given, period=period)
    half = mu_from_epsilon(epsilon, delta) / (math.sqrt(2) if plan.differences else 1) / OUTWARD**3
    records = plan.problem.n
    gradient = plan.moved(plan.gradient_bound, records) * math.sqrt(plan.gradients) / half
    difference = plan.moved(plan.problem.smoothness, records) * math.sqrt(max(1, plan.differences)) / half
    return replace(plan, sigma_gradient=gradient * OUTWARD, sigma_difference=difference * OUTWARD)
