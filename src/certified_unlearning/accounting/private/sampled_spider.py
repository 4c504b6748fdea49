"""Private SpiderBoost on Poisson batches, as in Theorem 42, with a numerical accountant.

Source: Ullah (2024), Algorithm 5 with Theorems 41 and 42, corrected. Gradients use all records. Differences use batches
that each record enters with probability ``b_2 / n``, independently in every step. Sums are divided by the constant
``b_2``, whatever the size of the batch. The source does not give the constant ``c`` of the noise. Here the accountant
computes ``c`` from epsilon and delta. For epsilon 1 and delta 1e-6, ``c`` is about 3.21 under ``replace-one``, the
source's relation, and half of this under ``add-remove``. As for DP-SGD (`sampled`), the guarantee is numerical. It
assumes that batches are drawn in this way and stay secret.
"""

import math
from dataclasses import dataclass, replace

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.core.rounding import required_sigma
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.accounting.private.releases import MOVES
from certified_unlearning.accounting.private.sampled import (
    LARGEST_MULTIPLIER,
    LOSSES_ADD_UP,
    POISSON_BATCHES,
    POISSON_PREMISES,
    SEARCH_TOLERANCE,
    SECRET_BATCHES,
    NoisySums,
    SampledPlan,
)
from certified_unlearning.accounting.private.spider import VarianceReduced, equivalent_constant, theorem_42
from certified_unlearning.errors import ParameterError

_START, _STRIDE = 1.05, 0.15
"""The multiple of the usual ``c`` at which a search starts, and the length of its first steps in ``log c``."""
_SMALLEST = 1e-9
"""The least epsilon in a search, as a share of the target. Smaller epsilons are treated as this value."""


@dataclass(frozen=True, kw_only=True)
class SampledSpider(VarianceReduced, SampledPlan):
    """Algorithm 5 with gradients on all records and differences on Poisson batches.

    Attributes:
        problem: Public bounds of the records. The radius is not used, so the loss must have a bounded slope.
        steps: Number ``T`` of noisy releases, at steps 0 to ``T - 1``.
        period: Period ``q``. Every ``q``-th release is a gradient, and the others are differences.
        batch: Expected size ``b_2`` of a batch, by which sums are divided.
        step_size: Step size ``eta``.
        sigma_gradient: Standard deviation ``sigma_1`` of a mean gradient's noise, per coordinate.
        sigma_difference: Standard deviation ``sigma_2`` of a difference's noise, divided by the distance between the
            two points of the difference.

    Raises:
        ParameterError: The loss has no bound on its slope.
    """

    name = "sampled-spider"
    words = replace(
        VarianceReduced.words,
        seen=f"{VarianceReduced.words.seen}, {SECRET_BATCHES}",
        sampling=f"full batch for gradients; for their differences, {POISSON_BATCHES}",
        together=LOSSES_ADD_UP,
        premises=(*VarianceReduced.words.premises, *POISSON_PREMISES),
    )
    problem: LinearProblem
    steps: int
    period: int
    batch: int
    step_size: float
    sigma_gradient: float
    sigma_difference: float

    def __post_init__(self) -> None:
        """Check every value."""
        require_count(least=1, steps=self.steps, period=self.period, batch=self.batch)
        if self.batch > self.problem.n:
            raise ParameterError(f"batch must be at most n = {self.problem.n}, got {self.batch}")
        require_positive(step_size=self.step_size)
        required_sigma(self.sigma_gradient)
        required_sigma(self.sigma_difference)
        self._require_bounded_slope("SpiderBoost")

    @property
    def share(self) -> float:
        """``b_2 / n``, the probability that a record is in a batch."""
        return self.batch / self.problem.n

    @property
    def difference_error(self) -> float:
        """``tau_2^2``: the mean squared error of a difference, divided by the squared distance of the two points.

        It is ``H^2 / b_2 + d sigma_2^2``, including the error of sampling.
        """
        return self.problem.smoothness**2 / self.batch + self.problem.features * self.sigma_difference**2

    @property
    def sums(self) -> tuple[NoisySums, NoisySums]:
        """The published sums. The unit of their noise is the bound on a record's summand, including rounding."""
        moves = MOVES[self.problem.relation]
        gradient = self.moved(self.gradient_bound, self.problem.n) / moves
        difference = self.moved(self.problem.smoothness, self.batch) / moves
        return (
            NoisySums(multiplier=self.sigma_gradient / gradient, share=1.0, times=self.gradients),
            NoisySums(multiplier=self.sigma_difference / difference, share=self.share, times=self.differences),
        )

    @classmethod
    def plan(
        cls,
        problem: LinearProblem,
        *,
        epsilon: float,
        delta: float,
        gap: float,
        steps: int | None = None,
        batch: int | None = None,
    ) -> "SampledSpider":
        """Return the (epsilon, delta)-private run with the least ``c``, up to a relative `SEARCH_TOLERANCE`.

        The period is the longest that Lemma 15 allows for this noise, ``H^2 / tau_2^2``. The source's formula for the
        period assumes less noise than the run needs.

        Args:
            problem: Bounds of the records.
            epsilon: Target epsilon, above 0.
            delta: Target delta, strictly between 0 and 1.
            gap: Bound ``L_0`` on the difference between the loss at 0 and the minimum of the loss. The bound does not
                affect privacy.
            steps: Number of steps ``T``; None for the number in Theorem 42.
            batch: Batch size ``b_2``; None for the size in Theorem 42.

        Raises:
            ParameterError: The package dp-accounting is not installed.
        """
        require_positive(epsilon=epsilon)
        smoothness = problem.smoothness
        theorem = theorem_42(
            n=problem.n,
            dimension=problem.features,
            lipschitz=problem.steepest,
            smoothness=smoothness,
            gap=gap,
            epsilon=epsilon,
            delta=delta,
        )
        given = cls(
            problem=problem,
            steps=theorem.steps if steps is None else steps,
            period=1,
            batch=theorem.batch_size if batch is None else batch,
            step_size=0.5 / smoothness,
            sigma_gradient=1.0,
            sigma_difference=1.0,
        )

        def with_constant(log_c: float) -> SampledSpider:
            return _with_constant(given, math.exp(log_c) * math.sqrt(math.log(1 / delta)) / epsilon)

        def excess(log_c: float) -> float:
            # With much noise and a large delta, epsilon is 0.
            return math.log(max(with_constant(log_c).epsilon(delta) / epsilon, _SMALLEST))

        # The search starts near the noise of full batches. It goes from more noise to less noise, because the
        # accountant takes longer with less noise.
        usual = equivalent_constant(epsilon, delta) * MOVES[problem.relation] / 2
        high = math.log(usual * _START)
        above = excess(high)
        while above > 0:
            high += _STRIDE
            above = excess(high)
            if high > math.log(LARGEST_MULTIPLIER):
                raise ParameterError(f"no noise is enough for epsilon = {epsilon:g} at delta = {delta:g}")
        low = high - _STRIDE
        while (below := excess(low)) <= 0:
            low, high, above = low - _STRIDE, low, below
        while high - low > SEARCH_TOLERANCE:
            # Epsilon is nearly a power of c, except for jumps where the period changes, which need bisection.
            guess = low + (high - low) * below / (below - above)
            points = guess + SEARCH_TOLERANCE / 2, guess - SEARCH_TOLERANCE / 2, (low + high) / 2
            for point in points:
                if low < point < high and high - low > SEARCH_TOLERANCE:
                    found = excess(point)
                    if found > 0:
                        low, below = point, found
                    else:
                        high, above = point, found
        return with_constant(high)


def _theorem_41(batch: int, steps: int, n: int) -> float:
    """Return ``max{1 / b, sqrt(T) / n}``, the factor of Theorem 41's noise."""
    return max(1 / batch, math.sqrt(steps) / n)


def _with_constant(given: SampledSpider, scale: float) -> SampledSpider:
    """Return the plan with noise of scale ``c sqrt(log(1 / delta)) / epsilon`` and the longest allowed period."""
    n, steps, smoothness = given.problem.n, given.steps, given.problem.smoothness
    noisy = replace(given, sigma_difference=scale * smoothness * _theorem_41(given.batch, steps, n))
    period = max(1, min(steps, math.floor(smoothness**2 / noisy.difference_error)))
    gradient = scale * given.gradient_bound * max(1 / n, math.sqrt(steps / period) / n)
    return replace(noisy, period=period, sigma_gradient=gradient)
