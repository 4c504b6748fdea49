"""Shifted interpolation (Bok, Su, Altschuler, ICML 2024): Gaussian DP of noisy gradient steps, exact on quadratics.

Two runs make noisy gradient steps. The runs differ only in the data, not in the number and size of the steps, the
noise, or the ball onto which steps may project. Step ``t`` has the weight ``w_t = prod_{u > t} c_u``. The signal and
the noise of step ``t`` that remain at the end are ``p_t = w_t s_t`` and ``q_t = w_t^2 tau_t^2``. If the runs start
``z_0`` apart (``W_infinity``), the first ``p`` is enlarged by ``w_0 z_0``. Noise hides signal of the same step and of
earlier steps, so the least cost is a shortest path. To find it, neighbouring steps are merged into blocks whenever the
ratio ``p/q`` of the earlier one is at least that of the later one. The *pooled* ``mu`` is the square root of the sum of
``p^2/q`` over the blocks. For smooth, strongly convex or convex losses, the final distributions are ``mu``-Gaussian DP
in both directions. If all steps are merged into one block, ``mu`` has the closed form ``sum p / sqrt(sum q)``;
otherwise that closed form is too small. If the maps are only known to be ``c_t``-Lipschitz, no smaller value holds.

The comparator of a guarantee is a run of the same algorithm. A guarantee covers requests that were fixed in advance.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.accounting.core.checks import make_plain, require_count, require_non_negative
from certified_unlearning.accounting.core.search import Array
from certified_unlearning.errors import AssumptionError, ParameterError

MANY = 16
"""Least number of phases for which arrays are faster than a loop."""
RANGE = 280.0
"""Range of scaled ratios, in decimal digits. It is smaller than the range of doubles."""
FAINTEST = -300.0
"""Logarithm of the smallest decay whose square is representable as a double."""
UNSEEN = 1e-18
"""Allowed relative error of a sum."""
FAINTEST_OF_SCALED = -100.0
"""Logarithm of the smallest decay whose square, multiplied by a scaled ratio, is representable as a double."""


@dataclass(frozen=True)
class NoisyPhase:
    """Equal noisy gradient steps of two runs, each on a data set that does not change during the phase.

    Attributes:
        steps: Number of steps; infinite for a run to stationarity.
        contraction_gap: ``1 - c``, where ``c`` is the factor by which a step shrinks the distance of two points.
        sensitivity: ``s``, the largest distance between the updates of one point in the two runs.
        noise_std: ``tau``, standard deviation of a step's noise in every coordinate; 0 for noiseless steps.

    Raises:
        AssumptionError: There are infinitely many steps, and they do not contract.
    """

    steps: float
    contraction_gap: float
    sensitivity: float
    noise_std: float

    def __post_init__(self) -> None:
        # The usual types are tested first, because planners make thousands of phases.
        if self.steps != math.inf and not (type(self.steps) is int and self.steps >= 0):
            require_count(least=0, steps=self.steps)
            make_plain(self, "steps")
        if not 0 <= self.contraction_gap <= 1:
            raise ParameterError(f"contraction_gap must lie between 0 and 1, got {self.contraction_gap}")
        usual = type(self.sensitivity) is type(self.noise_std) is type(self.contraction_gap) is float
        if not (usual and 0 <= self.sensitivity < math.inf and 0 <= self.noise_std < math.inf):
            require_non_negative(sensitivity=self.sensitivity, noise_std=self.noise_std)
            make_plain(self, "sensitivity", "noise_std", "contraction_gap")
        if self.steps == math.inf and self.contraction_gap == 0:
            raise AssumptionError(
                "infinitely many steps need a contraction: strong_convexity above 0 and step_size below "
                "2 / smoothness, got a contraction_gap of 0"
            )

    def lasting(self, steps: float) -> "NoisyPhase":
        """Return the phase with another number of steps. Raises the same errors as the class."""
        return NoisyPhase(steps, self.contraction_gap, self.sensitivity, self.noise_std)

    @property
    def log_decay(self) -> float:
        """``log(c^steps)``, the logarithm of the factor by which the phase shrinks a distance."""
        return log_power(self.steps, self.contraction_gap)


def pooled_mu(phases: Sequence[NoisyPhase], *, starting_distance: float = 0.0) -> float:
    """Return the smallest ``mu`` of Gaussian DP that holds after phases of noisy steps.

    This is the pooled ``mu`` that the module's docstring defines. Within a phase, ``p_t/q_t = s / (w_t tau^2)`` never
    increases, so a phase is one block, and its sums are geometric. Therefore the computing time is linear in the number
    of phases and does not depend on their numbers of steps.

    Args:
        phases: The phases, in order.
        starting_distance: ``z_0``, the distance between the starts of the runs (``W_infinity``).

    Returns:
        ``mu``, with a relative error of about 1e-13; infinite if some signal is not hidden by any noise. A positive
        value that would underflow is rounded up to the least normal double, or to a number a few orders of magnitude
        larger.

    Raises:
        ParameterError: ``starting_distance`` is negative.
    """
    return Pool.of(phases, starting_distance=starting_distance).mu()


@dataclass(frozen=True)
class Pool:
    """Phases merged into blocks. More phases can be added, so that planners can try many endings of one run.

    Attributes:
        signal_unit: Unit of the blocks' signals, chosen so that squares neither overflow nor underflow.
        noise_unit: Unit of the noise's standard deviation. The sums of q in ``blocks`` are in units of
            ``noise_unit^2``.
        blocks: The sum of p, the sum of q and the logarithm of the decay for each block of neighbouring steps. The sums
            are those of a run that ends with the block.
    """

    signal_unit: float
    noise_unit: float
    blocks: tuple[tuple[float, float, float], ...]

    @classmethod
    def of(cls, phases: Sequence[NoisyPhase], *, starting_distance: float = 0.0) -> "Pool":
        """Return the blocks of phases, with the arguments and errors of `pooled_mu`."""
        require_non_negative(starting_distance=starting_distance)
        signal_unit = max([starting_distance, *[phase.sensitivity for phase in phases]]) or 1.0
        noise_unit = max([phase.noise_std for phase in phases], default=0.0) or 1.0
        return cls(signal_unit, noise_unit, ((starting_distance / signal_unit, 0.0, 0.0),)).followed_by(*phases)

    @classmethod
    def of_runs(
        cls,
        steps: Array,
        sensitivities: Array,
        *,
        contraction_gap: float,
        noise_std: float,
        starting_distance: float = 0.0,
    ) -> "Pool":
        """Return the blocks of many phases. All phases have the same contraction and the same noise.

        The result equals that of `of`, but the computation needs no loop. An isotonic regression of the ratios ``p/q``
        with weights ``q`` gives the blocks.

        Args:
            steps: Number of steps of each phase, at least 1; shape ``(phases,)``.
            sensitivities: Sensitivity of each phase, shape ``(phases,)``.
            contraction_gap: Contraction gap of all phases, see `NoisyPhase`.
            noise_std: Noise of all phases, see `NoisyPhase`; above 0.
            starting_distance: ``z_0``, the distance between the starts of the runs.
        """
        log_decay = -math.inf if contraction_gap == 1 else math.log1p(-contraction_gap)
        ends = steps.cumsum()
        total = float(ends[-1]) * log_decay if len(ends) else 0.0
        if len(steps) < MANY or contraction_gap == 0 or total < FAINTEST:
            known = zip(steps.tolist(), sensitivities.tolist(), strict=True)
            phases = [NoisyPhase(int(number), contraction_gap, size, noise_std) for number, size in known]
            return cls.of(phases, starting_distance=starting_distance)
        unit = max(starting_distance, float(sensitivities.max())) or 1.0
        left = np.exp((ends[-1] - ends) * log_decay)  # w at the end of each phase
        signals, noises = _left_of(steps * log_decay, sensitivities / unit, left, contraction_gap)
        signals[0] += starting_distance / unit * math.exp(total)
        blocks = _merged(signals / noises, noises)
        starts, lasts = blocks[:-1], blocks[1:] - 1
        at_end = left[lasts]
        merged = zip(
            (np.add.reduceat(signals, starts) / at_end).tolist(),
            (np.add.reduceat(noises, starts) / (at_end * at_end)).tolist(),
            ((ends[lasts] - ends[starts] + steps[starts]) * log_decay).tolist(),
            strict=True,
        )
        return cls(unit, noise_std, tuple(merged))

    def followed_by(self, *phases: NoisyPhase) -> "Pool":
        """Return the blocks with more phases. New signals and noises should not be much larger than earlier ones."""
        blocks = list(self.blocks)
        for phase in phases:
            signals, noises, log_decay = _sums(phase.steps, phase.contraction_gap)
            noise_std = phase.noise_std / self.noise_unit
            signal, noise = phase.sensitivity / self.signal_unit * signals, noise_std * noise_std * noises
            # A phase that only decays is kept as a block, which the next block absorbs. At the end of the run, such a
            # block changes no ratio.
            while blocks and (signal > 0 or noise > 0 or log_decay == -math.inf):
                earlier_signal, earlier_noise, earlier_log_decay = blocks[-1]
                decay = math.exp(log_decay)
                # Seen from the end of the later block, the earlier ratio is the smaller one.
                if earlier_signal * noise < signal * earlier_noise * decay:
                    break
                blocks.pop()
                left = earlier_signal * decay
                if left < sys.float_info.min and earlier_signal > 0 and log_decay > -math.inf:
                    left = sys.float_info.min
                signal, noise = signal + left, noise + earlier_noise * decay * decay
                log_decay += earlier_log_decay
            blocks.append((signal, noise, log_decay))
        return Pool(self.signal_unit, self.noise_unit, tuple(blocks))

    def mu(self) -> float:
        """Return the `pooled_mu` of all phases so far."""
        mu = math.hypot(*[_block_mu(signal, noise) for signal, noise, _ in self.blocks])
        return max(mu * (self.signal_unit / self.noise_unit), sys.float_info.min) if mu > 0 else 0.0


def mu_of_all(
    steps: Array,
    sensitivities: Array,
    firsts: NDArray[np.int64],
    *,
    contraction_gap: float,
    noise_std: float,
    starting_distances: Array,
) -> float:
    """Return the joint ``mu`` of successive runs: the square root of the sum of each run's ``mu^2``.

    Args:
        steps: Number of steps of each phase, at least 1, for all runs in order; shape ``(phases,)``.
        sensitivities: Sensitivity of each phase, shape ``(phases,)``.
        firsts: Index of each run's first phase, shape ``(runs,)``. Every run has at least one phase.
        contraction_gap: Contraction gap of all phases, see `NoisyPhase`.
        noise_std: Noise of all phases, see `NoisyPhase`; above 0.
        starting_distances: ``z_0`` of each run, shape ``(runs,)``.
    """
    lasts = np.append(firsts[1:], len(steps)) - 1
    log_decay = math.log1p(-contraction_gap) if contraction_gap < 1 else -math.inf
    decays = steps * log_decay
    totals = np.add.reduceat(decays, firsts)
    digits = np.array([math.inf])
    if contraction_gap > 0 and totals.min() >= FAINTEST_OF_SCALED:
        unit = max(float(starting_distances.max()), float(sensitivities.max())) or 1.0
        lengths = lasts + 1 - firsts
        ends = steps.cumsum()  # These are whole numbers, so no digit is lost, even after many steps.
        left = np.exp((np.repeat(ends[lasts], lengths) - ends) * log_decay)
        signals, noises = _left_of(decays, sensitivities / unit, left, contraction_gap)
        signals[firsts] += starting_distances / unit * np.exp(totals)
        # Ratios are scaled so that each run's ratios are above those of the previous run. Then one regression never
        # merges two runs.
        ratios = signals / noises
        if not signals.all():
            # A zero signal is replaced by one too small to change a digit of any sum.
            signalled = np.minimum.reduceat(np.where(signals > 0, signals, np.inf), firsts)
            silent = UNSEEN * np.minimum(signalled, 1.0) / np.add.reduceat(noises, firsts)
            ratios = np.maximum(ratios, np.repeat(silent, lengths))
        largest = np.maximum.reduceat(ratios, firsts)
        digits = 1 + np.log10(largest) - np.log10(np.minimum.reduceat(ratios, firsts))
        ratios /= np.repeat(largest, lengths)
    if not digits.max() < RANGE:
        runs = [slice(low, high) for low, high in zip(firsts.tolist(), (lasts + 1).tolist(), strict=True)]
        return math.hypot(
            *[
                Pool.of_runs(
                    steps[run],
                    sensitivities[run],
                    contraction_gap=contraction_gap,
                    noise_std=noise_std,
                    starting_distance=distance,
                ).mu()
                for run, distance in zip(runs, starting_distances.tolist(), strict=True)
            ]
        )
    squares = 0.0
    for some in _groups(digits):
        low, high = firsts[some.start], lasts[some.stop - 1] + 1
        scale = np.cumsum(digits[some]) - RANGE / 2
        starts = _merged(ratios[low:high] * np.repeat(10.0**scale, lengths[some]), noises[low:high])[:-1]
        merged = np.add.reduceat(signals[low:high], starts) / np.sqrt(np.add.reduceat(noises[low:high], starts))
        squares += float(merged @ merged)
    mu = math.sqrt(squares) * (unit / noise_std)
    return max(mu, sys.float_info.min) if sensitivities.any() or starting_distances.any() else 0.0


def _left_of(decays: Array, sensitivities: Array, left: Array, gap: float) -> tuple[Array, Array]:
    """Return the parts of each phase's signal and noise that remain at the end of the run.

    The remaining noise is a variance, in units of the variance of one step's noise.

    Args:
        decays: Logarithm of each phase's decay.
        sensitivities: Sensitivity of each phase.
        left: The factor by which a distance shrinks between the end of each phase and the end of the run.
        gap: Contraction gap of all phases.
    """
    lost = -np.expm1(decays)  # 1 - c^k, and 1 - c^(2k) = lost (2 - lost)
    # The quotient is computed first, because a product with a tiny gap would lose digits.
    left_of_steps = lost / gap * left
    return sensitivities * left_of_steps, (2 - lost) / (2 - gap) * left_of_steps * left


def _merged(ratios: Array, weights: Array) -> NDArray[np.int64]:
    """Return the indices at which the blocks of merged neighbours start, and the index at which the last block ends."""
    from scipy.optimize import isotonic_regression  # takes half a second to import

    blocks: NDArray[np.int64] = isotonic_regression(ratios, weights=weights).blocks
    return blocks


def _groups(digits: Array) -> Iterator[slice]:
    """Yield groups of runs that fit in one regression, because they need at most `RANGE` digits together."""
    start, taken = 0, 0.0
    for number, wanted in enumerate(digits.tolist()):
        if taken + wanted > RANGE:
            yield slice(start, number)
            start, taken = number, 0.0
        taken += wanted
    yield slice(start, len(digits))


def _sums(steps: float, gap: float) -> tuple[float, float, float]:
    """Return the sums ``(1-c^k)/(1-c)`` and ``(1-c^(2k))/(1-c^2)`` over ``k`` steps, and ``log(c^k)``."""
    log_decay = log_power(steps, gap)
    signals = -math.expm1(log_decay) / gap if gap > 0 else steps
    noises = -math.expm1(2 * log_decay) / (gap * (2 - gap)) if gap > 0 else steps
    return signals, noises, log_decay


def log_power(steps: float, gap: float) -> float:
    """Return ``log(c^steps)`` with ``c = 1 - gap``."""
    if steps == 0:
        return 0.0
    return steps * math.log1p(-gap) if gap < 1 else -math.inf


def _block_mu(signal: float, noise: float) -> float:
    if signal == 0:
        return 0.0
    return max(signal / math.sqrt(noise), sys.float_info.min) if noise > 0 else math.inf
