"""Chapter 4's learners with the parameters of their theorems, on data with few distinct records.

The learners run the steps of the exact engine (`mechanisms.exact`), but keep nothing for edits. Instead of a list of
records, the number of copies of each distinct record is drawn for a batch. These numbers have the same distribution as
in a uniform batch, and the time of a run does not depend on the number of records.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from certified_unlearning.accounting.tv import erm
from certified_unlearning.accounting.tv.erm import ConvexProblem
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.exact.quantized_sgd import QuantizedSgd
from certified_unlearning.mechanisms.exact.subsample_gd import SubsampleGd
from certified_unlearning.mechanisms.exact.trajectory import Descent
from certified_unlearning.papers.tv_stability.theory import rates
from certified_unlearning.papers.tv_stability.theory.stability import AMPLIFIABLE

RADIUS = 1.0
"""The radius of the ball of models around the start; its diameter is ``D = 2``."""
LIPSCHITZ, SMOOTHNESS = 2.0, 1.0
"""The constants of ``(w_j - y)^2 / 2`` with ``|w_j| <= 1`` and ``|y| = 1``."""
STEPS_AT_ONCE = 256
"""The number of steps whose batches are drawn together."""


@dataclass(frozen=True)
class Planned:
    """A learner with all its constants.

    Attributes:
        settings: The settings of the steps.
        rate: The theorem's rate for the excess risk, without constants and logarithms.
    """

    settings: Descent
    rate: float


def problem_of(*, n: int, dimension: int, rho: float) -> ConvexProblem:
    """Return the problem for which all these learners are planned."""
    return ConvexProblem(n, dimension, LIPSCHITZ, SMOOTHNESS, 2 * RADIUS, rho)


def proposition_3(problem: ConvexProblem) -> Planned:
    """Return sub-sample-GD (Proposition 3; the first rate of Theorem 22)."""
    planned = erm.proposition_3_whole(problem)
    steps, batch_size = int(planned.steps), int(planned.batch_size)
    settings = SubsampleGd(steps=steps, batch_size=batch_size, step_size=planned.step_size, radius=RADIUS)
    return Planned(settings, planned.excess_risk)


def theorem_22(problem: ConvexProblem) -> Planned:
    """Return accelerated noisy SGD that recomputes for a share ``rho`` of edits (Theorem 22's second rate)."""
    planned = erm.theorem_22(problem)
    steps, batch_size = erm.whole_numbers(planned, n=problem.n)
    return _noisy(erm.theorem_22_at(problem, steps=steps, batch_size=batch_size), planned.excess_risk, True)


def corollary_7(problem: ConvexProblem) -> Planned:
    """Return accelerated noisy SGD that is ``rho``-stable (Proposition 1 at Corollary 7's largest batches)."""
    planned = rates.corollary_7(problem, batch_size=rates.corollary_7_batches(problem)[1])
    steps, batch_size = erm.whole_numbers(planned, n=problem.n)
    return _noisy(erm.proposition_1(problem, steps=steps, batch_size=batch_size), planned.excess_risk, True)


def theorem_44(problem: ConvexProblem) -> Planned:
    """Return noisy SGD that recomputes for a share ``rho`` of edits."""
    planned = erm.theorem_44(problem)
    steps, batch_size = erm.whole_numbers(planned, n=problem.n)
    inner = erm.inner_problem(problem, steps=steps)
    return _noisy(erm.proposition_7(inner, steps=steps, batch_size=batch_size), planned.excess_risk, False)


def corollary_8(problem: ConvexProblem) -> Planned:
    """Return noisy SGD that is ``rho``-stable (Proposition 7 at Corollary 8's largest batches)."""
    planned = rates.corollary_8(problem, batch_size=rates.corollary_8_batches(problem)[1])
    steps, batch_size = erm.whole_numbers(planned, n=problem.n)
    return _noisy(erm.proposition_7(problem, steps=steps, batch_size=batch_size), planned.excess_risk, False)


def theorem_45(problem: ConvexProblem) -> Planned:
    """Return quantized SGD with the parameters of Theorem 45.

    The theorem applies Proposition 8 with the largest batches of Remark 6.
    """
    planned = erm.theorem_45(problem)
    steps, batch_size = erm.whole_numbers(planned, n=problem.n)
    quantum = planned.noise * steps / planned.steps
    step_size = erm.noisy_step_size(problem, steps=steps, batch_size=batch_size, sigma=quantum, accelerated=False)
    settings = QuantizedSgd(steps=steps, batch_size=batch_size, step_size=step_size, quantum=quantum, radius=RADIUS)
    return Planned(settings, planned.excess_risk)


def theorem_48_subsampled(problem: ConvexProblem) -> Planned:
    """Return sub-sample-GD for the population risk, at Proposition 3's parameters (Theorem 48)."""
    return replace(proposition_3(problem), rate=rates.theorem_48_risk(problem))


def theorem_48_noisy(problem: ConvexProblem) -> Planned:
    """Return noisy SGD for the population risk, at the corrected number of steps of Theorem 48.

    Batches are the smallest for which amplification by sub-sampling holds, because the theorem does not state their
    size.
    """
    steps = math.ceil(rates.theorem_48_steps(problem))
    batch_size = max(1, math.ceil(problem.stable_records / math.sqrt(8 * AMPLIFIABLE * steps)))
    sigma = erm.stable_sigma(problem, steps=steps)
    g, d = problem.lipschitz, problem.dimension
    spread = math.sqrt(g**2 * steps / problem.n + 2 * g**2 / batch_size + sigma**2 * d)
    step_size = erm.step_size_of_spread(problem, spread=spread, steps=steps, accelerated=False)
    settings = NoisySgd(steps=steps, batch_size=batch_size, step_size=step_size, sigma=sigma, radius=RADIUS)
    return Planned(settings, rates.theorem_48_risk(problem))


EMPIRICAL: dict[str, Callable[[ConvexProblem], Planned]] = {
    "sub-sample-GD": proposition_3,
    "accelerated noisy SGD": theorem_22,
    "accelerated noisy SGD, stable": corollary_7,
    "noisy SGD": theorem_44,
    "noisy SGD, stable": corollary_8,
    "quantized SGD": theorem_45,
}
"""The learners for empirical risk; the keys are the names of their lines."""
LONG_RUNS = ("noisy SGD, stable",)
"""The learners whose number of steps grows as ``rho n``."""
POPULATION: dict[str, Callable[[ConvexProblem], Planned]] = {
    "sub-sample-GD": theorem_48_subsampled,
    "noisy SGD": theorem_48_noisy,
}
"""The learners for population risk."""


def learned(settings: Descent, counts: np.ndarray, *, dimension: int, draws: Draws, key: int) -> Tensor:
    """Return the models of all trials, shape ``(trials, dimension)``.

    Args:
        settings: The settings of the learner.
        counts: The numbers of copies of every record ``(e_j, 1)`` and ``(e_j, -1)`` in each trial's data, shape
            ``(trials, 2 blocks)``, int64, for squared loss.
        dimension: The dimension of a model, at least the number of blocks. If the dimension is larger, all rows are 0
            in the additional columns, but the noise in these columns is not.
        draws: A fresh source of noise and offsets.
        key: The seed of the batches.
    """
    trials, blocks = len(counts), counts.shape[1] // 2
    now = torch.zeros(trials, dimension, dtype=torch.float64)
    before, total = now, now.clone()
    for step, batch in enumerate(_batches(settings, counts, key)):
        points = now + step / (step + 3) * (now - before) if settings.accelerated else now
        gradients = torch.zeros_like(points)
        positive, negative = batch[:, :blocks], batch[:, blocks:]
        met = (positive + negative) * points[:, :blocks] - (positive - negative)
        gradients[:, :blocks] = met / settings.batch_size
        directions = settings.directions(gradients, settings.randomness(gradients, draws))
        before, now = now, settings.moved(points, directions)
        total += now
    return now if settings.accelerated else total / (settings.steps + 1)


def excess_empirical(weights: Tensor, counts: np.ndarray) -> Tensor:
    """Return the excess empirical risk of models on each trial's data, for squared loss; shape ``(trials,)``."""
    given = torch.as_tensor(counts, dtype=torch.float64)
    positive, negative = given.chunk(2, dim=1)
    met = positive + negative
    best = torch.where(met > 0, (positive - negative) / met.clamp(min=1), 0.0)
    off = weights[:, : best.shape[1]] - best
    return (met * off.square()).sum(dim=1) / (2 * met.sum(dim=1))


def _batches(settings: Descent, counts: np.ndarray, key: int) -> Iterator[Tensor]:
    """Yield each step's batches as counts of every record, shape ``(trials, 2 blocks)``."""
    generator = np.random.default_rng(key)
    same = bool((counts == counts[0]).all())
    for first in range(0, settings.steps, STEPS_AT_ONCE):
        steps = min(STEPS_AT_ONCE, settings.steps - first)
        if same:
            drawn = generator.multivariate_hypergeometric(
                counts[0], settings.batch_size, size=(steps, len(counts)), method="marginals"
            )
        else:
            drawn = np.stack(
                [
                    generator.multivariate_hypergeometric(own, settings.batch_size, size=steps, method="marginals")
                    for own in counts
                ],
                axis=1,
            )
        yield from torch.as_tensor(drawn, dtype=torch.float64)


def _noisy(planned: erm.Parameters, rate: float, accelerated: bool) -> Planned:
    settings = NoisySgd(
        steps=int(planned.steps),
        batch_size=int(planned.batch_size),
        step_size=planned.step_size,
        sigma=planned.noise,
        radius=RADIUS,
        accelerated=accelerated,
    )
    return Planned(settings, rate)
