"""Ullah (2024), chapter 2: parameters, rates and lower bounds of private linear models, as printed and as corrected.

Notation: rows of norm at most ``X``, ``phi_y(0) <= Y^2``, smoothness ``H`` and slope ``G`` of the scalar loss, a bound
``D`` on the best weights, and ``d`` features. Constants of rates are 1. Errors of the source are named ``E``
followed by a number, as in this project's notes. Formulas on which privacy depends are only in `accounting.private`.
"""

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The constants of the theorems of chapter 2.

    Attributes:
        n: The number of records.
        d: The number of features.
        epsilon: The epsilon under replace-one.
        delta: The delta under replace-one.
        smoothness: The smoothness ``H``.
        lipschitz: The slope ``G`` of Lipschitz losses.
        row_norm: The bound ``X`` on the norm of rows.
        at_zero: ``Y``, the root of the bound on losses at zero.
        radius: The bound ``D`` on the best weights.
    """

    n: int
    d: int
    epsilon: float = 1.0
    delta: float = 1e-5
    smoothness: float = 2.0
    lipschitz: float = 1.0
    row_norm: float = 1.0
    at_zero: float = 1.0
    radius: float = 1.0

    @property
    def budget(self) -> float:
        """``n epsilon``."""
        return self.n * self.epsilon

    @property
    def reach(self) -> float:
        """``sqrt(H) D X``."""
        return math.sqrt(self.smoothness) * self.radius * self.row_norm

    @property
    def log(self) -> float:
        """``log(1 / delta)``."""
        return math.log(1 / self.delta)


def theorem_8_bound(regret: float, setting: Setting, *, stability: int = 8) -> float:
    """Return Theorem 8's bound with its constants: ``18 R + 17 sqrt(H) X D Y / sqrt(n)``.

    Args:
        regret: The regret ``R`` of Lemma 7.
        setting: The constants.
        stability: The constant ``c_0`` of Lemma 6: 8 with the sharp self-bounding constant, or 16 with the printed one
            (E20). For ``c_0 = 16``, the theorem's constants are 34 and 33.
    """
    first, second = (18, 17) if stability == 8 else (34, 33)
    return first * regret + second * setting.reach * setting.at_zero / math.sqrt(setting.n)


def theorem_9_dimension(setting: Setting, *, form: Literal["corrected", "printed", "proof"] = "corrected") -> float:
    """Return the number of columns of an embedding for smooth losses, with ``C = 1``.

    Args:
        setting: The constants.
        form: ``corrected``; ``printed``, whose numerator lacks a factor ``X`` (E18); or ``proof``, which is like
            ``printed`` with another factor 2 in the denominator.
    """
    reach = setting.reach if form == "corrected" else setting.reach / setting.row_norm
    top = reach * math.log(2 * setting.n / setting.delta) * setting.budget
    bottom = (setting.at_zero + setting.reach) * (2 if form == "proof" else 1)
    return math.pow(top / bottom, 2 / 3)


def theorem_9_rates(setting: Setting) -> tuple[float, float]:
    """Return the two terms of Theorem 9; Theorem 10 also has them, but adds ``Y^2 / sqrt(n)`` to the first."""
    private = setting.reach ** (4 / 3) * setting.at_zero ** (2 / 3) + setting.reach**2
    return setting.reach * setting.at_zero / math.sqrt(setting.n), private / math.pow(setting.budget, 2 / 3)


def theorem_10_strength(setting: Setting, *, gradient: float | None = None) -> float:
    """Return Theorem 10's ``lambda = (G_w sqrt(H) X sqrt(log(1 / delta)) / (D n epsilon))^(2/3)``.

    Args:
        setting: The constants.
        gradient: The bound ``G_w`` on gradients; None for ``2 sqrt(H) Y X + H D X^2``. The bound in the theorem's
            statement, ``Y + H D X^2``, has a wrong unit (E16). The bound in its proof, ``(sqrt(H) Y + H D X) X``, is
            too small (E42).
    """
    if gradient is None:
        gradient = 2 * math.sqrt(setting.smoothness) * setting.at_zero * setting.row_norm
        gradient += setting.smoothness * setting.radius * setting.row_norm**2
    scale = gradient * math.sqrt(setting.smoothness) * setting.row_norm * math.sqrt(setting.log)
    return math.pow(scale / (setting.radius * setting.budget), 2 / 3)


def theorem_12_strength(setting: Setting) -> float:
    """Return Theorem 12's ``lambda``."""
    top = setting.lipschitz * setting.row_norm * math.pow(setting.log, 0.25)
    return top / (setting.radius * math.sqrt(setting.budget))


@dataclass(frozen=True)
class Theorem32:
    """The parameters of Theorem 32, an embedding for Lipschitz losses, with ``C = 1``.

    Attributes:
        dimension: The number ``k`` of columns.
        steps: The number ``T`` of steps.
        variance: The variance ``sigma^2`` as stated; the proof doubles the slope (E3).
        step_size: The step size ``eta``, corrected (E40).
        printed_step_size: The printed step size, with which the claimed rate fails for a small epsilon.
    """

    dimension: float
    steps: int
    variance: float
    step_size: float
    printed_step_size: float


def theorem_32(setting: Setting) -> Theorem32:
    """Return the parameters of Theorem 32."""
    slope = setting.lipschitz * setting.row_norm
    dimension, steps = math.log(2 * setting.n / setting.delta) * setting.budget, setting.n**2
    noise = math.sqrt(dimension * math.log(2 / setting.delta))
    unit = setting.radius / (slope * math.pow(steps, 0.75))
    return Theorem32(
        dimension=dimension,
        steps=steps,
        variance=8 * steps * slope**2 * math.log(2 / setting.delta) / setting.budget**2,
        step_size=unit / (1 + noise / (math.sqrt(setting.n) * setting.epsilon)),
        printed_step_size=unit / (1 + noise / setting.budget),
    )


def theorem_11(setting: Setting) -> tuple[float, float, float]:
    """Return the three terms whose smallest is a lower bound on the excess empirical risk of smooth losses."""
    long, at_zero = setting.radius * setting.row_norm, setting.at_zero
    few = math.pow(long, 4 / 3) * math.pow(setting.smoothness * at_zero, 2 / 3) / math.pow(setting.budget, 2 / 3)
    many = math.sqrt(setting.d * setting.smoothness) * long * at_zero / setting.budget
    return at_zero**2, few, many


@dataclass(frozen=True)
class HardInstance:
    """Theorem 11's instance of squared loss, with ``H = 2``.

    Attributes:
        share: The share ``p`` of records that are not zero.
        blocks: The number ``d'`` of blocks.
        bias: The bias ``b`` of labels.
        minimiser: The norm of the minimiser.
        differing: The number of records that differ when one block's sign flips.
        value: The lower bound with its constant.
    """

    share: float
    blocks: float
    bias: float
    minimiser: float
    differing: float
    value: float


def theorem_11_instance(setting: Setting) -> HardInstance:
    """Return the hard instance."""
    long, at_zero, budget = setting.row_norm * setting.radius, setting.at_zero, setting.budget
    share = min(1.0, math.pow(setting.d, 1.5) * at_zero / (long * budget))
    blocks = math.pow(share * long * budget / at_zero, 2 / 3)
    bias = math.pow(long / (at_zero * math.sqrt(share * budget)), 2 / 3)
    return HardInstance(
        share=share,
        blocks=blocks,
        bias=bias,
        minimiser=math.sqrt(blocks) * at_zero * bias / setting.row_norm,
        differing=share * bias * setting.n / blocks,
        value=math.pow(long, 4 / 3) * math.pow(at_zero, 2 / 3) * math.cbrt(share) / (128 * math.pow(budget, 2 / 3)),
    )


def theorem_35_condition(setting: Setting, *, spread: float, beta: float) -> float:
    """Return the number of records that Theorem 35 on boosting requires, ``16 gamma^2 log^8(4 / beta) H X^2 / Y^2``."""
    smooth = setting.smoothness * setting.row_norm**2
    return 16 * spread**2 * math.log(4 / beta) ** 8 * smooth / setting.at_zero**2


@dataclass(frozen=True)
class FingerprintInstance:
    """Theorem 13's instance of absolute loss (Theorem 33 with ``p = 2``): blocks whose labels follow secret shares.

    Attributes:
        blocks: The number ``d'`` of blocks.
        share: The share ``alpha`` of records that are not zero.
        value: The lower bound by the proof's expression; if it is below 0, it is void.
        stated: The lower bound that the proof states.
    """

    blocks: int
    share: float
    value: float
    stated: float


FINGERPRINT = 1 / 16
"""The parameter ``beta``: shares have the distribution Beta(beta, beta)."""


def theorem_33_instance(setting: Setting, *, printed: bool = False) -> FingerprintInstance:
    """Return the instance, with ``d`` as the rank.

    Its value is ``G D X alpha / ((1 + 2 beta) sqrt(d')) (1/4 - 3 alpha (1 + 2 beta) n epsilon / (beta d') - 2 beta)``.
    In the last display of the proof, the ``1 / beta`` of (A.19) is lost, and ``alpha`` and ``d'`` are chosen without
    it.

    Args:
        setting: The constants.
        printed: Whether to use the printed number of blocks and the printed share. Otherwise, there are ``(1 + 2 beta)
            / beta`` times as many blocks for a large rank, and the share is ``beta`` times as large for a small rank.
    """
    spread = 1 + 2 * FINGERPRINT
    scale = setting.lipschitz * setting.radius * setting.row_norm
    needed = 48 * setting.budget * (1 if printed else spread / FINGERPRINT)
    if setting.d <= needed:
        blocks = setting.d
        share = min(1.0, blocks / (48 * spread * setting.budget) * (1 if printed else FINGERPRINT))
        stated = scale * math.sqrt(blocks) / (1024 * setting.budget)
    else:
        blocks, share = math.floor(needed), 1.0
        stated = min(scale / (16 * math.sqrt(setting.budget)), scale)
    told = 3 * share * spread * setting.budget / (FINGERPRINT * blocks)
    value = scale * share / (spread * math.sqrt(blocks)) * (1 / 4 - told - 2 * FINGERPRINT)
    return FingerprintInstance(blocks, share, value, stated)


def theorem_13(setting: Setting) -> float:
    """Return Theorem 13's lower bound ``G D X min(1, 1 / sqrt(n epsilon), sqrt(rank) / (n epsilon))``."""
    scale = setting.lipschitz * setting.radius * setting.row_norm
    return scale * min(1.0, 1 / math.sqrt(setting.budget), math.sqrt(setting.d) / setting.budget)


def lipschitz_rate(setting: Setting) -> float:
    """Return Table 2-I's upper rate for Lipschitz losses.

    For a small rank, the rate is that of prior work; for a large rank, the rate is that of Theorems 12 and 32.
    """
    scale = setting.lipschitz * setting.radius * setting.row_norm
    return scale * (math.sqrt(setting.d) / setting.budget if setting.d <= setting.budget else setting.budget**-0.5)
