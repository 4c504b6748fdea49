"""Noisy descent on Poisson batches (DP-SGD), the usual alternative to full batches, with a numerical accountant.

In every step, each record is in the batch with probability ``q``, independently of other records and steps. The
gradient of every record in the batch is clipped to norm ``C``, and noise of standard deviation ``z C`` is added to the
sum. The library dp-accounting composes the privacy loss distribution, rounded up bin by bin. The result is a numerical
bound. It assumes that batches are drawn in this way and stay secret, and a certificate states this assumption.
dp-accounting is optional: the extra ``private`` installs it.
"""

import functools
import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from pydantic import Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.core.checks import require_count, require_positive, require_probability
from certified_unlearning.accounting.private.arithmetic import failure
from certified_unlearning.accounting.private.guarantee import LARGEST_EXPONENT, Guarantee
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.accounting.private.plan import (
    NO_PART,
    Calibration,
    PlanConstants,
    PrivatePlan,
    RunConstants,
    Words,
)
from certified_unlearning.accounting.private.releases import MOVES
from certified_unlearning.accounting.residual.rounding import OUTWARD
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Relation

LARGEST_MULTIPLIER = 1e4
"""The largest noise multiplier that a search considers."""
SEARCH_TOLERANCE = 1e-4
"""A search ends when the noise exceeds the least sufficient noise by at most this share."""
LEAST_MULTIPLIER, MOST_SUMS, LARGEST_MEAN_LOSS = 0.2, 10**6, 1000.0
"""Limits on the noise, the number of sums and the mean loss. Beyond these limits, the accountant would need minutes and
too much memory to compute a meaningless epsilon."""
MOST_NOISE = 1e12
"""The largest noise multiplier that the accountant gets, because numbers would overflow with more noise. Larger
multipliers are treated as this value."""
DRAWN = 2.0**-53
"""Spacing of the random numbers that decide which records are in a batch. A record is in a batch if its random number,
a multiple of the spacing, is below the share. Shares are rounded up to multiples of the spacing."""
ROUNDED = 2.0**-50
"""The amount that is subtracted from delta for each sum, to cover rounding in dp-accounting's Fourier transforms. The
largest measured error is 2^-55. It was measured on up to 10^6 Gaussian sums of all records, because their exact
distribution is known."""
_START, _STRIDE = 3.0, 0.5
_MOST_ROUNDS, _AGREED, _SLACK = 200, 1e-9, 1e-6
"""The search for a group's epsilon: largest number of rounds, relative change at which it ends, relative addition to
the result."""


class NoisySums(NamedTuple):
    """Sums over Poisson batches with Gaussian noise.

    Attributes:
        multiplier: Noise multiplier ``z``, in units of the bound on a record's summand. The units are the same under
            both neighbouring relations.
        share: Sampling probability ``q``; 1 for sums over all records.
        times: Number of sums; if it is 0, nothing is published.
    """

    multiplier: float
    share: float
    times: int

    @property
    def drawn(self) -> float:
        """The probability that 53 random bits put a record into a batch: ``q``, rounded up."""
        return math.ceil(self.share / DRAWN) * DRAWN


@dataclass(frozen=True, kw_only=True)
class SampledGuarantee(Guarantee):
    """The joint guarantee of noisy sums over Poisson batches, as a numerical bound.

    Attributes:
        sums: The published sums.
        relation: Neighbouring relation of data sets.
    """

    sums: tuple[NoisySums, ...]
    relation: Relation
    mu = None

    def epsilon(self, delta: float, *, records: int = 1) -> float:
        """Return the epsilon of a group of records, or infinity if no finite one is found.

        A change of ``k`` records is ``k`` successive changes of one record. If each of these changes is (x,
        delta_1)-private, all changes together are (k x, delta)-private for ``delta_1 = delta / (1 + e^x + .. + e^((k -
        1) x))``. The least such ``x`` is used.

        Args:
            delta: Strictly between 0 and 1.
            records: Number ``k`` of records in which two data sets differ.

        Raises:
            ParameterError: There is no sum, or dp-accounting is not installed.
        """
        require_count(least=1, records=records)
        require_probability(delta=delta)
        one = self._of_one(delta)
        if records == 1:
            return one
        # The search starts below the least solution, so that it cannot miss this solution.
        for _ in range(_MOST_ROUNDS):
            if not records * one < LARGEST_EXPONENT:
                return math.inf
            found = self._of_one(delta_of_one(one, delta, records=records))
            if found <= one * (1 + _AGREED):
                break
            one = found
        enough = one * (1 + _SLACK)
        if self._of_one(delta_of_one(enough, delta, records=records)) > enough:
            return math.inf
        return records * enough * OUTWARD

    def _of_one(self, delta: float) -> float:
        return _epsilon_of(self._distribution, self.sums, delta)

    @functools.cached_property
    def _distribution(self) -> Any:
        return composed_distribution(self.sums, relation=self.relation)


def delta_of_one(epsilon: float, delta: float, *, records: int) -> float:
    """Return the delta for one record, rounded down, that implies ``delta`` for a group of records.

    ``epsilon`` is the epsilon for one record.
    """
    return delta / (math.fsum(math.exp(each * epsilon) for each in range(records)) * OUTWARD)


POISSON_PREMISES = (
    Assumption(
        statement="every record is drawn into every batch independently and at random",
        status="checked",
        by="each record is drawn anew for each batch with the stated probability, to 53 random bits",
    ),
    Assumption(
        statement="nobody learns which records were in which batch",
        status="assumed",
        by="batches follow from the key of the noise; batches, their sizes and the duration of steps must not be "
        "published",
    ),
    Assumption(
        statement="the epsilon by dp-accounting is not too small",
        status="assumed",
        by="dp-accounting rounds the privacy loss up, bin by bin; to cover its own rounding errors in float64, more "
        "than the largest measured error is subtracted from delta, but no bound on these errors is proven",
    ),
)
"""The assumptions of certificates with Poisson batches."""
SECRET_BATCHES = "but not which records were in which batch"
LOSSES_ADD_UP = "their privacy losses add up"
POISSON_BATCHES = (
    "Poisson batches, which are secret: each record is in each batch with probability {0.share!r}, independently of "
    "all others"
)
"""How batches are drawn, as a format string for the plan."""


class SampledPlan(PrivatePlan):
    """A learner that publishes noisy sums over Poisson batches, one per step."""

    problem: LinearProblem
    steps: int
    numerical = True

    @property
    @abstractmethod
    def sums(self) -> tuple[NoisySums, ...]:
        """The sums that the learner publishes."""

    @property
    def guarantee(self) -> SampledGuarantee:
        """The guarantee of the plan, which may fail with probability `failure`."""
        return SampledGuarantee(sums=self.sums, relation=self.problem.relation)

    @property
    def failure(self) -> float:
        """Largest probability of an event on which the guarantee fails."""
        return failure(self.problem.features, self.steps)

    def epsilon(self, delta: float) -> float:
        """Return the epsilon of one record under the problem's relation; see `SampledGuarantee.epsilon` for errors."""
        return self.guarantee.epsilon(delta)


class SampledSteps(RunConstants):
    """The constants of DP-SGD.

    Attributes:
        steps: Number of batches.
        share: Probability that a record is in a batch.
        clip: Norm to which gradients of records are clipped.
        sigma: Standard deviation of the noise on a batch's mean, per coordinate. The mean is the batch's sum divided by
            the expected batch size.
    """

    steps: int = Field(ge=1)
    share: float = Field(gt=0, le=1)
    clip: float = Field(gt=0)
    sigma: float = Field(gt=0)


@dataclass(frozen=True, kw_only=True)
class SampledDescent(SampledPlan):
    """The plan of DP-SGD.

    Attributes:
        problem: Public bounds of the records. Only the number of records and the bound on rows have an effect.
        steps: Number of batches.
        share: Probability ``q`` that a record is in a batch.
        clip: Norm ``C`` to which gradients of records are clipped.
        multiplier: Noise multiplier ``z``: the noise of a batch's sum has standard deviation ``z C``.
        step_size: Step size for the mean gradient: the batch's sum, divided by the constant ``q n``.
    """

    name = "sampled-descent"
    run_constants = SampledSteps
    words = Words(
        seen=f"or the weights after every step, {SECRET_BATCHES}",
        sampling=POISSON_BATCHES,
        together=LOSSES_ADD_UP,
        clipped="every gradient of a record was clipped; of all bounds on records, epsilon needs only this one",
        premises=POISSON_PREMISES,
        rounding=Assumption(
            statement="rounding errors of sums of gradients in float64 reveal nothing",
            status="assumed",
            by="the sensitivity of a sum does not include these rounding errors",
        ),
        stored=True,
    )
    problem: LinearProblem
    steps: int
    share: float
    clip: float
    multiplier: float
    step_size: float

    def __post_init__(self) -> None:
        """Check every value."""
        require_count(least=1, steps=self.steps)
        require_positive(clip=self.clip, multiplier=self.multiplier, step_size=self.step_size)
        if not 0 < self.share <= 1:
            raise ParameterError(f"share must be above 0 and at most 1, got {self.share!r}")

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on a batch's mean gradient, per coordinate."""
        return self.multiplier * self.clip / (self.share * self.problem.n)

    @property
    def sums(self) -> tuple[NoisySums]:
        """The noisy sums that are published."""
        return (NoisySums(multiplier=self.multiplier, share=self.share, times=self.steps),)

    @property
    def noise_resolution(self) -> float:
        """Largest distance of the noise of a batch from exact noise."""
        return self.resolution(self.sigma)

    @property
    def calibration(self) -> Calibration:
        """The noise and the number of steps of the plan."""
        return Calibration(self.sigma, self.steps, step_size=self.step_size)

    @classmethod
    def from_constants(cls, constants: PlanConstants) -> Self:
        """Return the plan with these constants and an arbitrary step size."""
        problem, (run, *_) = constants.problem(), constants.runs_of(SampledSteps)
        return cls(
            problem=problem,
            **run.model_dump(exclude={"sigma"}),
            multiplier=run.sigma * run.share * problem.n / run.clip,
            step_size=NO_PART,
        )

    @classmethod
    def plan(
        cls,
        problem: LinearProblem,
        *,
        epsilon: float,
        delta: float,
        steps: int,
        share: float,
        clip: float = 1.0,
        step_size: float,
    ) -> Self:
        """Return the (epsilon, delta)-private run with the least noise, up to a relative `SEARCH_TOLERANCE`.

        Args:
            problem: Public bounds of the records.
            epsilon: Target epsilon, above 0.
            delta: Target delta, strictly between 0 and 1.
            steps: Number of batches.
            share: Probability ``q`` that a record is in a batch.
            clip: Norm ``C`` to which gradients are clipped.
            step_size: Step size for the mean gradient.

        Raises:
            ParameterError: No noise suffices, or dp-accounting is not installed.
        """
        require_positive(epsilon=epsilon)
        plan = cls(problem=problem, steps=steps, share=share, clip=clip, multiplier=1.0, step_size=step_size)

        def enough(log_multiplier: float) -> bool:
            return replace(plan, multiplier=math.exp(log_multiplier)).epsilon(delta) <= epsilon

        # The search goes from more noise to less noise, because the accountant takes longer with less noise.
        high = _START
        while not enough(high):
            high += 2
            if high > math.log(LARGEST_MULTIPLIER):
                raise ParameterError(f"no noise is enough for epsilon = {epsilon:g} at delta = {delta:g}")
        low = high - _STRIDE
        while enough(low):
            low, high = low - _STRIDE, low
        while high - low > SEARCH_TOLERANCE:
            middle = (low + high) / 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return replace(plan, multiplier=math.exp(high))


def _epsilon_of(distribution: Any, sums: Iterable[NoisySums], delta: float) -> float:
    """Return the epsilon of a composed distribution, or infinity if delta is not above the allowance for rounding."""
    left = delta - ROUNDED * sum(each.times for each in sums)
    return float(distribution.get_epsilon_for_delta(left)) if left > 0 else math.inf


def composed_distribution(sums: Sequence[NoisySums], *, relation: Relation, interval: float = 1e-4) -> Any:
    """Return dp-accounting's privacy loss distribution for several kinds of noisy sums of the same records.

    Raises:
        ParameterError: There is no sum, or dp-accounting is not installed.
    """
    distribution, neighbours = _dp_accounting()
    given = {"replace-one": neighbours.REPLACE_ONE, "add-remove": neighbours.ADD_OR_REMOVE_ONE}
    if relation not in given:
        raise ParameterError(f"relation must be one of {', '.join(given)}, got {relation!r}")
    published = [each for each in sums if each.times]
    if not published:
        raise ParameterError("there must be a noisy sum to account for, got none")
    for each in published:
        require_count(least=1, times=each.times)
        require_positive(multiplier=each.multiplier)
        if not 0 < each.share <= 1:
            raise ParameterError(f"share must be above 0 and at most 1, got {each.share!r}")
    composed: Any = None
    for each in published:
        multiplier, share, times = each
        if multiplier < LEAST_MULTIPLIER or times > MOST_SUMS:
            raise ParameterError(
                f"the noise of a sum must be at least {LEAST_MULTIPLIER:g} times the bound on a record, and there "
                f"must be at most {MOST_SUMS:,} sums, got noise of {multiplier:.3g} times the bound and {times} sums"
            )
        if (loss := times * _mean_loss(multiplier, share, relation)) > LARGEST_MEAN_LOSS:
            raise ParameterError(
                f"{times} sums with noise of {multiplier:.3g} times the bound on a record may have a mean privacy "
                f"loss of {loss:.3g}, but at most {LARGEST_MEAN_LOSS:g} is allowed, because no privacy is left beyond "
                "this limit: use more noise or fewer sums"
            )
        several = distribution.from_gaussian_mechanism(
            min(multiplier, MOST_NOISE),
            sampling_prob=each.drawn,
            neighboring_relation=given[relation],
            value_discretization_interval=interval,
            pessimistic_estimate=True,
        ).self_compose(times)
        composed = several if composed is None else composed.compose(several)
    return composed


def _mean_loss(multiplier: float, share: float, relation: Relation) -> float:
    """Return a bound on a sum's mean privacy loss: the smaller of the bounds by convexity and by chi squared."""
    square = (1 / multiplier) ** 2
    convex = share * MOVES[relation] ** 2 * square / 2
    if share == 1:
        return convex
    return min(
        convex, share**2 * (math.expm1(square) if relation == "add-remove" else 4 * math.sinh(square) / (1 - share))
    )


def require_dp_accounting() -> None:
    """Raise a `ParameterError`, which names the extra to install, unless dp-accounting is installed."""
    _dp_accounting()


def _dp_accounting() -> tuple[Any, Any]:
    """Return dp-accounting's module of distributions and its enumeration of relations."""
    try:
        from dp_accounting import NeighboringRelation
        from dp_accounting.pld import privacy_loss_distribution
    except ImportError as error:
        raise ParameterError(
            "Poisson batches need the package dp-accounting, which is not installed: install the extra `private`"
        ) from error
    return privacy_loss_distribution, NeighboringRelation
