"""Measures of parameters, rates and bounds, as printed and as corrected.

Other measures find the number of records at which one bound falls below another.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from certified_unlearning.accounting.core.conversion import mu_from_epsilon
from certified_unlearning.accounting.private.learners import NoisyDescent
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.releases import noise_multiplier
from certified_unlearning.accounting.private.spider import theorem_42
from certified_unlearning.papers.private_learning.theory import counterexamples
from certified_unlearning.papers.private_learning.theory import linear_models as linear
from certified_unlearning.papers.private_learning.theory import stationary_points as stationary
from certified_unlearning.papers.private_learning.theory.privacy import lemma_15
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

BASE = linear.Setting(n=10_000, d=100)
FARTHEST = 10**30


@measure
def under_rescaling(*, quantity: Literal["columns, printed", "columns", "strength"], factor: float) -> float:
    """Return the change of a parameter if rows become longer, and the best weights shorter, by the same factor.

    The change is divided by the correct change: an embedding's columns must not change, and a regulariser's strength
    must change by the square of the factor.
    """
    longer = replace(BASE, row_norm=factor, radius=1 / factor)
    if quantity == "strength":
        return linear.theorem_10_strength(longer) / linear.theorem_10_strength(BASE) / factor**2
    form: Literal["printed", "corrected"] = "printed" if quantity == "columns, printed" else "corrected"
    both = [linear.theorem_9_dimension(each, form=form) for each in (longer, BASE)]
    return both[0] / both[1]


@sweep("n = {n}")
def columns_over_records(*, n: int) -> float:
    """Return the number of columns of Theorem 32's embedding, divided by the number of records."""
    return linear.theorem_32(replace(BASE, n=n)).dimension / n


@sweep("epsilon = {epsilon:g}")
def regret_over_rate(*, printed: bool, epsilon: float, n: int) -> float:
    """Return the regret of Theorem 32's steps divided by ``1 / sqrt(n) + log_1 log_2 / sqrt(n epsilon)``.

    The logarithms are ``log_1 = log(2 n / delta)`` and ``log_2 = log(2 / delta)``. The regret of T steps of size eta is
    ``D^2 / (2 eta T) + eta (G^2 + k sigma^2) / 2``. All norms are 1.
    """
    setting = replace(BASE, n=n, epsilon=epsilon)
    taken = linear.theorem_32(setting)
    step = taken.printed_step_size if printed else taken.step_size
    energy = 1 + taken.dimension * taken.variance
    regret = 1 / (2 * step * taken.steps) + step * energy / 2
    logarithms = math.log(2 * n / setting.delta) * math.log(2 / setting.delta)
    rate = 1 / math.sqrt(n) + logarithms / math.sqrt(setting.budget)
    return regret / rate


@sweep("n = {n}")
def theorem_8_over_trivial(*, n: int, d: int) -> float:
    """Return Theorem 8's bound, with its constants, divided by ``Y^2``, the largest loss of zero weights.

    All norms are 1, and ``H = 2``.
    """
    return _theorem_8(n, d)


@measure
def theorem_8_says_something(*, d: int) -> Quantity:
    """Return the smallest number of records for which Theorem 8's bound, with its constants, is below ``Y^2``."""
    return Quantity(float(_first(lambda n: _theorem_8(n, d) < 1)), f"d = {d}")


@measure
def boosting_condition(*, beta: float) -> float:
    """Return the number of records that Theorem 35 requires if all norms are 1 and ``H = 2``."""
    return linear.theorem_35_condition(BASE, spread=1.0, beta=beta)


@measure
def selection_over_theorem_14(*, candidates: int, beta: float) -> float:
    """Return the selection term as Theorem 14's proof has it, divided by the selection term as the theorem has it.

    The proof has ``5 Delta log(4 K / beta) / (n epsilon)``; the theorem has ``5 Delta / (n epsilon)``.
    """
    return math.log(4 * candidates / beta)


@sweep("Y = {at_zero:g}")
def variance_over_stated(*, at_zero: float) -> float:
    """Return the variance of losses, divided by Theorem 14's ``4 Y^2``.

    Half of the losses are ``Y^2``, and half of the losses are 0.
    """
    return at_zero**4 / 4 / (4 * at_zero**2)


@sweep("n = {n}")
def upper_over_lower(*, case: Literal["few columns", "many columns", "long"], n: int) -> float:
    """Return the upper rate divided by Theorem 11's lower rate, for squared loss, without constants and logarithms.

    ``few columns`` is Theorem 8 at d = 4 and ``many columns`` is Theorem 9 at d = n, both with ``D = 1 / 2``; ``long``
    is Theorem 9 at d = n with ``D = 10``.
    """
    setting = replace(BASE, n=n, d=4 if case == "few columns" else n, radius=10 if case == "long" else 0.5)
    lower = min(linear.theorem_11(setting))
    if case == "few columns":
        upper = setting.reach * setting.at_zero * math.sqrt(setting.d) / setting.budget
    else:
        upper = linear.theorem_9_rates(setting)[1]
    return upper / lower


@measure
def spider_period_over_needed(*, smoothness: float, printed: bool) -> float:
    """Return the ratio of Theorem 42's period to ``1 / (T bar alpha^2)``.

    The period is a whole number. The printed period has an additional factor ``1 / H^2``.
    """
    given = {"n": 100_000, "dimension": 100, "lipschitz": 1.0, "gap": 2.0, "epsilon": 1.0, "delta": 1e-6}
    found = theorem_42(**given, smoothness=smoothness)  # type: ignore[arg-type]
    unit = stationary.rate_unit(n=100_000, d=100, epsilon=1.0, delta=1e-6)
    needed = 1 / (found.steps * unit**2)
    return max(1, math.floor(needed / smoothness**2)) / needed if printed else found.period / needed


@measure
def lemma_15_coefficients() -> dict[str, float]:
    """Return Lemma 15's coefficients of ``L_0 H / T`` and ``tau_1^2`` at ``eta = 1 / (2 H)``, ``q = H^2 / tau_2^2``."""
    _, gap, noise = lemma_15(step_size=0.5, smoothness=1.0, drift=1.0)
    return {"of the gap": gap, "of the noise": noise}


@sweep("n = {n}")
def spider_over_descent(*, n: int, d: int) -> float:
    """Return SpiderBoost's explicit bound divided by the bound of plain noisy descent.

    The constants are ``G = H = L_0 = 1``, epsilon = 1 and delta = 1e-6, under replace-one.
    """
    return _spider(n, d) / _descent(n, d)


@measure
def spider_beats_descent(*, d: int) -> Quantity:
    """Return the smallest number of records for which SpiderBoost's explicit bound is below noisy descent's bound."""
    return Quantity(float(_first(lambda n: _spider(n, d) < _descent(n, d))), f"d = {d}")


@sweep("Q = {queries}")
def barrier_over_rate(*, queries: int) -> float:
    """Return Theorem 43's bound, with Lemma 16's errors of a private oracle, divided by Theorem 42's rate."""
    unit = stationary.rate_unit(n=100_000, d=100, epsilon=1.0, delta=1e-6)
    error = unit * math.sqrt(queries)
    barrier = stationary.oracle_barrier(queries=queries, gap=1.0, gradient=error, difference=error)
    return float(barrier / (unit ** (2 / 3) + unit))


@sweep("n = {n:.0e}")
def tree_guarantee_over_start(*, n: int) -> float:
    """Return Theorem 19's ``3 alpha`` divided by ``G``, which bounds every gradient; d = 1, ``G = H = L_0 = 1``."""
    return 3 * _tree(n)


@measure
def tree_guarantee_says_something() -> float:
    """Return the smallest number of records for which Theorem 19's tree does not stop at its first leaf; d = 1."""
    return float(_first(lambda n: 2 * _tree(n) < 1))


@sweep("D = {depth}")
def leaves_over_counted(*, depth: int) -> float:
    """Return the number of leaves of a tree, divided by the number in the proofs, ``2^(D - 1)``."""
    return float(2.0**depth / 2 ** (depth - 1))


@measure
def recursive_steps_over_records(*, printed: bool) -> float:
    """Return the smallest number of steps of Theorem 20's first stage, divided by n^2; n = 10 000 and d = 10."""
    strength = stationary.strong_convexity(n=10_000, d=10, epsilon=1.0, lipschitz=1.0, smoothness=1.0, radius=1.0)
    if printed:
        strength = min(1 / 10_000, 10 / 10_000**2)
    return stationary.least_steps(1.0, 2 * strength) / 10_000**2


@sweep("|w*| = {radius:g}")
def recursive_strength_over_printed(*, radius: float) -> float:
    """Return Theorem 20's bias ``sqrt(lambda H) |w*|``, with the printed lambda, divided by ``G / sqrt(n)``."""
    return math.sqrt(1 / radius) * radius


@sweep("x = {condition:g}")
def step_size_over_limit(*, factor: float, condition: float) -> float:
    """Return ``log K / (lambda K)`` divided by ``1 / (H + lambda)``, for ``K = factor condition log condition``."""
    steps = factor * condition * math.log(condition)
    return math.log(steps) / steps * condition


@measure
def lemma_21_over_exact(*, records: int, steps: int) -> float:
    """Return Lemma 21's noise divided by the exact noise."""
    printed = stationary.lemma_21_sigma(steps=steps, records=records, epsilon=1.0, delta=1e-6, lipschitz=1.0)
    return printed / (noise_multiplier(1.0, 1e-6) * math.sqrt(steps) * 2 / records)


@sweep("n = {n}")
def lemma_25_deviation_over_bound(*, n: int) -> float:
    """Return the difference of population and empirical gradients, divided by Lemma 25's bound; ``d = 10 n``."""
    return counterexamples.lemma_25_deviation(n=n, d=10 * n) / counterexamples.lemma_25_bound(n=n, d=10 * n, beta=0.05)


@sweep("k = {columns}")
def projection_distance_over_claimed(*, columns: int, features: int) -> float:
    """Return ``|I - [Phi; 0]|`` divided by ``1 / sqrt(k)``, for one random matrix ``Phi``."""
    distance = counterexamples.padded_projection_distance(columns=columns, features=features, seed=columns)
    return distance * math.sqrt(columns)


@measure
def switching_ranks(*, n: int, convex: bool) -> float:
    """Return Corollary 1's rate for few columns, divided by the rate for many columns, at the rank where they meet."""
    rank = n if convex else n**0.8
    few = math.sqrt(rank) / n
    return float(few / n**-0.5 if convex else few ** (2 / 3) / n**-0.4)


@measure
def error_20(*, sharp: bool) -> float:
    """Return Lemma 6's ``c_0``, divided by 8.

    The value of ``c_0`` follows from the sharp self-bounding constant 2 or from Fact 1's constant 4.
    """
    # |a + b|^2 <= 2 |a|^2 + 2 |b|^2, each term is at most c H times a loss, and two records give another factor 2.
    return 2 * 2 * (2 if sharp else 4) / 8


@sweep("n = {n:.0e}, rank = {rank:.0e}")
def lipschitz_upper_over_lower(*, n: int, rank: int) -> float:
    """Return Table 2-I's upper rate of Lipschitz losses divided by Theorem 13's lower bound."""
    setting = replace(BASE, n=n, d=rank)
    return linear.lipschitz_rate(setting) / linear.theorem_13(setting)


@sweep("rank = {rank:.0e}")
def theorem_33_value_over_stated(*, rank: int, printed: bool) -> float:
    """Return the value in Theorem 33's proof divided by the stated value, or by the rate; n = 10 000, epsilon = 1."""
    setting = replace(BASE, d=rank)
    instance = linear.theorem_33_instance(setting, printed=printed)
    return instance.value / (instance.stated if printed else linear.theorem_13(setting))


@sweep("d' = {blocks}")
def squared_over_plain_norm(*, blocks: int) -> float:
    """Return ``|v - mu|^2`` divided by the Euclidean norm ``|v - mu|`` for the farthest pair, 0 and 1."""
    return blocks / math.sqrt(blocks)


def _theorem_8(n: int, d: int) -> float:
    setting = replace(BASE, n=n, d=d)
    problem = LinearProblem(n=n, features=d, row_norm=1.0, loss=ScalarLoss(name="squared"), radius=1.0)
    gradient = 2 * math.sqrt(2) + 4
    sigma = math.sqrt(8 * gradient**2 * n * setting.log) / setting.budget
    step = min(1 / math.sqrt(n * max(2.0, sigma**2 * d)), 1 / 8)
    regret = NoisyDescent(problem=problem, steps=max(2, n), step_size=step * (1 - 1e-12), sigma=sigma).regret_bound
    return linear.theorem_8_bound(regret, setting)


def _spider(n: int, d: int) -> float:
    """Return SpiderBoost's explicit bound at Theorem 42's steps, with calibrated noise and the longest period."""
    steps = theorem_42(n=n, dimension=d, lipschitz=1.0, smoothness=1.0, gap=1.0, epsilon=1.0, delta=1e-6).steps
    unit = 2 * noise_multiplier(1.0, 1e-6) / n * math.sqrt(2 * d)
    # q tau_2^2 <= H^2 with tau_2^2 = unit^2 (T - T / q), which is at most unit^2 T.
    period = max(1.0, 1 / (unit**2 * steps))
    return math.sqrt(40 / steps + 12 * unit**2 * math.ceil(steps / period))


def _descent(n: int, d: int) -> float:
    mu = mu_from_epsilon(1.0, 1e-6)
    return stationary.descent_bound(n=n, d=d, mu=mu, lipschitz=1.0, smoothness=1.0, gap=1.0)


def _tree(n: int) -> float:
    found = stationary.tree_spider(
        n=n, d=1, epsilon=1.0, delta=1e-6, lipschitz=1.0, smoothness=1.0, gap=1.0, failure=0.05
    )
    return found.constant * found.accuracy


def _first(holds: Callable[[int], bool]) -> int:
    """Return the smallest power of 10^(1/20) for which a condition holds, rounded up to a whole number.

    The search starts at 10.
    """
    exponent = 20
    while not holds(math.ceil(10 ** (exponent / 20))) and 10 ** (exponent / 20) < FARTHEST:
        exponent += 1
    return math.ceil(10 ** (exponent / 20))
