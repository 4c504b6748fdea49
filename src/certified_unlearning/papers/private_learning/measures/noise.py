"""Measures of the noise and the sensitivities on which a claim of privacy depends: printed and necessary values."""

import math
from itertools import product
from typing import Literal

import numpy as np

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.private.losses import ScalarLoss
from certified_unlearning.accounting.private.releases import noise_multiplier
from certified_unlearning.accounting.private.selections import generalised_probabilities
from certified_unlearning.accounting.private.spider import equivalent_constant
from certified_unlearning.papers.private_learning.theory.counterexamples import one_pass_distance
from certified_unlearning.papers.private_learning.theory.privacy import (
    PRINTED,
    advanced_composition,
    exponential_probabilities,
    generalised_guarantee,
    lemma_2,
    lemma_4,
    printed_boosting_scale,
    printed_epsilon,
    subsampled,
)
from certified_unlearning.papers.private_learning.theory.stationary_points import (
    least_steps,
    lemma_23_sigma,
    tree_batches,
)
from certified_unlearning.papers.private_learning.theory.stationary_points import stages as stage_count
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

SQUARED = ScalarLoss(name="squared")
DELTA = 1e-6


@sweep("epsilon = {epsilon:g}")
def printed_epsilon_over_target(*, rule: str, epsilon: float, delta: float) -> float:
    """Return the true epsilon of one release with printed noise, divided by the target."""
    return printed_epsilon(rule, epsilon=epsilon, delta=delta) / epsilon


@sweep("delta = {delta:g}")
def largest_epsilon_of_rule(*, rule: str, delta: float) -> float:
    """Return the largest epsilon up to which a printed noise is enough."""
    low, high = 1e-3, 1e3
    for _ in range(200):
        middle = math.sqrt(low * high)
        enough = PRINTED[rule](middle, delta) >= noise_multiplier(middle, delta)
        low, high = (middle, high) if enough else (low, middle)
    return low


@sweep("epsilon = {epsilon:g}")
def exact_noise_over_classical(*, epsilon: float, delta: float) -> float:
    """Return the exact noise of a Gaussian release divided by the classical ``sqrt(2 log(1.25 / delta)) / epsilon``."""
    return float(noise_multiplier(epsilon, delta) / PRINTED["classical"](epsilon, delta))


@measure
def embedded_epsilon(*, theorem: Literal["9", "32"], length: float, epsilon: float = 1.0, delta: float = 1e-5) -> float:
    """Return the true epsilon of the printed noise on rows that an embedding lengthens, divided by the target epsilon.

    For Theorem 9, the loss is squared, all norms are 1, and the ball has radius 2. For Theorem 32, slopes are 1, and
    the true epsilon is computed at half of delta.
    """
    if theorem == "9":
        sigma = PRINTED["theorem 8"](epsilon, delta) * lemma_2(at_zero=1, smoothness=2, row_norm=1, radius=1)
        reached = SQUARED.ball_lipschitz(row_norm=length, radius=2)
        return epsilon_from_mu(reached / sigma, delta) / epsilon
    mu = 2 * epsilon / math.sqrt(8 * math.log(2 / delta))
    return epsilon_from_mu(length * mu, delta / 2) / epsilon


@sweep("D = {radius:g}")
def gradient_over_bound(*, bound: Literal["lemma 2", "theorem 10", "ours"], radius: float) -> float:
    """Return the largest norm of a gradient of squared loss in the ball, divided by its stated bound.

    All norms except the radius are 1.
    """
    reached = 2 * (1 + radius)  # The gradient is at the record (1, -1) and weights of norm D.
    stated = {
        "lemma 2": lemma_2(at_zero=1, smoothness=2, row_norm=1, radius=radius),
        "theorem 10": math.sqrt(2) + 2 * radius,
        "ours": SQUARED.ball_lipschitz(row_norm=1, radius=radius),
    }[bound]
    return reached / stated


@sweep("D = {radius:g}")
def loss_over_bound(*, bound: Literal["lemma 4", "lemma 10", "ours"], radius: float) -> float:
    """Return the largest squared loss in the ball divided by its stated bound; all norms except the radius are 1."""
    lemma = lemma_4(at_zero=1, smoothness=2, row_norm=1, radius=radius)
    stated = {"lemma 4": lemma, "lemma 10": lemma / 3, "ours": SQUARED.largest_value(row_norm=1, radius=radius)}
    return (1 + radius) ** 2 / stated[bound]


@sweep("lambda = {strength:g}")
def minimiser_movement_over_bound(*, n: int, strength: float) -> float:
    """Return how far one replaced record moves the regularised minimiser, divided by ``2 G / (lambda n)``.

    The losses are linear with slopes 1 and -1 in equal numbers. Minimisers are minus the mean slope divided by lambda,
    so they are near 0, and the ball does not matter.
    """
    slopes = np.tile([1.0, -1.0], n // 2)
    replaced = slopes.copy()
    replaced[0] = -1.0
    return float(abs(slopes.mean() - replaced.mean()) / strength / (2 / (strength * n)))


@measure
def exponential_mechanism_epsilon(*, printed: bool, epsilon: float) -> float:
    """Return the largest change of an exponential mechanism's log probabilities between neighbours, divided by epsilon.

    Three candidates have scores 0 or 1, of sensitivity 1; the check uses all pairs of score vectors. The printed form
    is ``exp(-2 epsilon s / Delta)``.
    """
    laws = []
    for scores in product((0.0, 1.0), repeat=3):
        if printed:
            weights = np.exp(-2 * epsilon * np.array(scores))
            laws.append(np.log(weights / weights.sum()))
        else:
            laws.append(np.log(exponential_probabilities(scores, epsilon=epsilon, sensitivity=1.0)))
    return max(float(np.abs(one - other).max()) for one, other in product(laws, repeat=2)) / epsilon


@measure
def selection_within_bound(*, printed: bool) -> float:
    """Return the probability that Algorithm 4 selects a loss within Theorem 34's bound.

    There are six radii and 5 000 records. A record's losses are at most Delta, so their mean moves by
    ``Delta / 5 000``; the bound uses this sensitivity. In the printed version, Delta itself is passed as the
    sensitivity of the mean.
    """
    losses, largest = [1, 0.62, 0.40, 0.35, 0.38, 0.52], [0.0, 9, 13, 25, 73, 265]
    moves = [each / 5_000 for each in largest]
    bound = generalised_guarantee(losses, moves, epsilon=0.5, beta=0.05)
    chosen = generalised_probabilities(losses, largest if printed else moves, epsilon=0.5, beta=0.05)
    return float(chosen[np.array(losses) <= bound].sum())


@sweep("n = {n}")
def boosting_scale_over_needed(*, n: int) -> float:
    """Return Theorem 35's printed Laplace scale divided by the smallest scale that is private, at epsilon = 1.

    The loss is squared and all norms are 1, so losses are at most 4. Four chunks are for learning, and one chunk is for
    the selection, which has all of epsilon.
    """
    printed = printed_boosting_scale(at_zero=1.0, smoothness=2.0, row_norm=1.0, radius=1.0, n=n, epsilon=1.0)
    return printed / (2 * 4 * 5 / n)


@measure
def recursive_pass_epsilon(*, corrected: bool) -> float:
    """Return the true epsilon of one pass with Theorem 20's noise, for 11 stages and a target epsilon of 1.

    The printed noise uses the number of all records; the corrected noise uses the number of records in a chunk, as
    in Lemma 23.
    """
    sigma = lemma_23_sigma(step_size=1.0, epsilon=1.0, delta=DELTA, lipschitz=1.0)
    return epsilon_from_mu(2 / (sigma if corrected else sigma / 11), DELTA)


@measure
def recursive_descent_epsilon() -> float:
    """Return the true epsilon of Theorem 20's noise on a stage of noisy descent; the target is 1, and n = 10 000."""
    steps, _, chunk = _printed_recursion(10_000)
    sigma = 8 * steps * math.sqrt(math.log(1 / DELTA)) / 10_000
    return epsilon_from_mu(math.sqrt(steps) * 2 / chunk / sigma, DELTA)


@measure
def recursive_variance_over_lemma_21() -> Quantity:
    """Return the noise variance that Theorem 20 prints, divided by the noise variance of Lemma 21.

    The number of steps is the printed one, and there are 10 000 records.
    """
    steps, stages, _ = _printed_recursion(10_000)
    return Quantity(steps / stages**2, f"K = {steps:.3g}")


def _printed_recursion(n: int) -> tuple[float, int, int]:
    """Return the numbers of steps, stages, and records per stage, as printed in Theorem 20.

    Epsilon and all constants are 1, and d = 10.
    """
    strength = min(1 / n, 10 / n**2)
    stages = stage_count(1.0, strength)
    accurate = n**2 * (strength + 1) / (stages**2 * strength * 10 * math.log(1 / DELTA))
    return max(least_steps(1.0, 2 * strength), accurate), stages, n // stages


@measure
def tree_sensitivity_over_printed(*, batch: int, depth: int, drawn: bool) -> dict[str, float]:
    """Return how far one record moves a right child's mean difference, divided by the printed bound, for each level.

    There are ``2^(D - s)`` steps between a right child and its parent. The sum is divided by ``b / 2^s``, as printed,
    or by the number of drawn records, which is ``b / 2^s`` rounded down.
    """
    return {
        f"level {level}": 2 ** (depth - level) / (size if drawn else batch / 2**level) / (2**depth / batch)
        for level, size in enumerate(tree_batches(batch, depth), start=1)
    }


@measure
def one_pass_sensitivity(*, step_size: float, records: int) -> float:
    """Return how far the first record moves the result of one pass, divided by Lemma 23's ``2 eta G``; ``H = 1``."""
    return one_pass_distance(records=records, step_size=step_size, smoothness=1.0)


@sweep("k = {releases}")
def gaussian_composition_over_theorem_6(*, epsilon: float, delta: float, slack: float, releases: int) -> float:
    """Return the epsilon of the exact composition of several Gaussian releases, divided by Theorem 6's epsilon."""
    mu = 1 / noise_multiplier(epsilon, delta)
    stated, total = advanced_composition(epsilon, delta, releases=releases, slack=slack)
    return epsilon_from_mu(math.sqrt(releases) * mu, total) / stated


@sweep("m / n = {share:g}")
def subsampled_over_theorem_7(*, epsilon: float, share: float) -> float:
    """Return the tight epsilon of a learner on a uniform subset, divided by Theorem 7's epsilon."""
    return subsampled(epsilon, 1e-6, share=share)[0] / (math.expm1(epsilon) * share)


@measure
def spider_constant(*, epsilon: float, delta: float) -> float:
    """Return the ``c`` of Theorem 41 with which SpiderBoost on full batches is private under replace-one."""
    return equivalent_constant(epsilon, delta)
