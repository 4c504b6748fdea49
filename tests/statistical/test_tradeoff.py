"""The certified trade-off between errors is never crossed by what a test on 100 000 real models achieves.

Logistic regression in two dimensions, gradients clipped, one record exchanged for its opposite: a worst case for the
sensitivity. The best linear statistic is found on one half of the models; on the other half its errors of both kinds
are bounded from above, exactly (Clopper-Pearson). Where both upper bounds together lie below the certified curve, the
certificate is wrong. False-alarm rate of each check: at most 1e-9, over all thresholds together.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from certified_unlearning.accounting import Problem, Schedule, unlearning_curve
from certified_unlearning.engine import descent, randomness
from certified_unlearning.engine.descent import DescentPhase
from certified_unlearning.engine.objectives.logistic import LogisticObjective

TRIALS = 100_000
THRESHOLDS = np.linspace(0.02, 0.98, 33)
FALSE_ALARM_RATE = 1e-9
N, M, REGULARISATION = 12, 0.3, 0.4
LEARNING, UNLEARNING, SIGMA = 12, 2, 0.012
PROBLEM = Problem(
    n=N, strong_convexity=REGULARISATION, smoothness=0.25 + REGULARISATION, lipschitz=M, step_size=1 / 0.65
)


def simulate(seed: str, learning_removed: int) -> np.ndarray:
    """Return ``TRIALS`` models after learning (with so many removals carried out) and unlearning."""
    random = np.random.default_rng(3)
    features = random.normal(size=(N, 2))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    features[0] = [1.0, 0.0]
    labels = torch.from_numpy(np.sign(random.normal(size=N)))
    labels[0] = 1.0
    rows = torch.from_numpy(features)
    objective = LogisticObjective(
        rows,
        labels,
        strong_convexity=REGULARISATION,
        lipschitz=M,
        replacements=(torch.tensor([0]), rows[:1].clone(), torch.tensor([-1.0]).double()),
    )

    def phase(name: str, removed: int, steps: int) -> DescentPhase:
        keys = [randomness.address(seed, name, trial) for trial in range(TRIALS)]
        return DescentPhase(removed=removed, steps=[steps] * TRIALS, sigma=[SIGMA] * TRIALS, keys=keys)

    todo = [phase("learning", learning_removed, LEARNING), phase("unlearning", 1, UNLEARNING)]
    start = torch.zeros(TRIALS, 2, dtype=torch.float64)
    done = descent.run(objective, start, todo, step_size=PROBLEM.step_size, measure=lambda weights: weights[:, 0])
    return done.weights.numpy()


@pytest.fixture(scope="module")
def errors() -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds on the errors of the best linear test between unlearned and retrained models."""
    unlearned, retrained = simulate("unlearned", 0), simulate("retrained", 1)
    half = TRIALS // 2
    gap = unlearned[:half].mean(axis=0) - retrained[:half].mean(axis=0)
    direction = np.linalg.solve(np.cov(unlearned[:half].T) + np.cov(retrained[:half].T), gap)
    cuts = np.quantile(np.concatenate([unlearned[:half], retrained[:half]]) @ direction, THRESHOLDS)
    false_positives = ((retrained[half:] @ direction)[:, None] > cuts).sum(axis=0)
    false_negatives = ((unlearned[half:] @ direction)[:, None] <= cuts).sum(axis=0)
    level = FALSE_ALARM_RATE / (2 * len(THRESHOLDS))

    def upper(counts: np.ndarray) -> np.ndarray:
        return stats.beta.isf(level, counts + 1, half - counts)

    return upper(false_positives), upper(false_negatives)


def is_crossed(mu: float, errors: tuple[np.ndarray, np.ndarray]) -> bool:
    """Whether some test has smaller errors than any test between N(0, 1) and N(mu, 1)."""
    first, second = errors
    return bool((second < stats.norm.cdf(stats.norm.isf(first) - mu)).any())


def certified_mu(**changes: float) -> float:
    schedule = Schedule(sigma=SIGMA, records_per_request=1, steps=(UNLEARNING,), learning_steps=LEARNING)
    return unlearning_curve(PROBLEM, replace(schedule, **changes), accountant="shifted").mu


def test_no_linear_test_beats_the_certified_trade_off(errors) -> None:
    assert not is_crossed(certified_mu(), errors)


@pytest.mark.parametrize(
    ("fault", "wrong_mu"),
    [
        ("one step more than was run", lambda: certified_mu(steps=(UNLEARNING + 1,))),
        ("noise of 2 sqrt(eta) sigma instead of sqrt(2 eta) sigma", lambda: certified_mu(sigma=math.sqrt(2) * SIGMA)),
        ("c squared instead of c", lambda: certified_mu() * (1 - PROBLEM.step_size * REGULARISATION) ** UNLEARNING),
        ("zero-out instead of replace", lambda: certified_mu() / 2),
    ],
)
def test_a_wrong_accountant_is_caught(fault: str, wrong_mu, errors) -> None:
    assert is_crossed(wrong_mu(), errors), fault
