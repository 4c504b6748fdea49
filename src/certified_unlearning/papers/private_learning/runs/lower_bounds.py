"""X11: private methods on the worst cases from the proofs of lower bounds.

If a method's error, divided by the lower bound, falls as n grows, there is a fault in the privacy of this method.
"""

import pandas as pd
import torch
from torch import Tensor

from certified_unlearning.accounting.private.learners import NoisyDescent, OutputPerturbation
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.accounting.private.releases import noise_multiplier
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.randomness import normal_rows
from certified_unlearning.mechanisms.private import noisy_descent
from certified_unlearning.papers.private_learning.runs.convex import SQUARED
from certified_unlearning.papers.private_learning.runs.records import StackedMoments
from certified_unlearning.papers.private_learning.runs.table import trial_rows
from certified_unlearning.papers.private_learning.sweeps import PrivateRisk
from certified_unlearning.papers.private_learning.theory.linear_models import Setting, theorem_11_instance
from certified_unlearning.papers.private_learning.theory.stationary_points import rate_unit

RADIUS = 0.5
"""The radius ``D`` of the instance of Theorem 11."""
MEAN_SIZES = ((1_000, 10), (16_000, 10), (1_000, 160))
"""The numbers of records and features of the instance of Theorem 17."""
MEAN_TRIALS = 1_000


def lower_bound_rows(sweep: PrivateRisk) -> pd.DataFrame:
    """Return the rows of X11: three methods on the instance of Theorem 11, and a noisy mean on that of Theorem 17."""
    tables = [_blocks(n, sweep) for n in sweep.lower_bound_n]
    return pd.concat([*tables, *(_noisy_mean(n, features, sweep) for n, features in MEAN_SIZES)])


def blocks(n: int, epsilon: float, delta: float, generator_key: int) -> tuple[int, float, Tensor]:
    """Return the number of blocks, the bias, and the signs for Theorem 11's instance.

    Both signs are equally likely. The instance is the variant without records of zeros.
    """
    instance = theorem_11_instance(Setting(n=n, d=n, epsilon=epsilon, delta=delta, radius=RADIUS))
    count = max(1, round(instance.blocks))
    signs = normal_rows([generator_key], torch.zeros(1, count, dtype=torch.float64)).sign()[0]
    return count, instance.bias, signs


def _blocks(n: int, sweep: PrivateRisk) -> pd.DataFrame:
    """Return excess risks on rows ``e_j`` and labels +-1; a share ``(1 + b) / 2`` of the labels has the block's sign.

    The excess risk is ``L(w) - L(w*) = |w - b s|^2 / d'``, and the minimiser has norm ``D``. Squared loss depends on
    the records only through their moments.
    """
    count, bias, _ = blocks(n, sweep.epsilon, sweep.delta, 0)
    signs = torch.stack(
        [
            blocks(n, sweep.epsilon, sweep.delta, address(sweep.seed, "X11", n, trial))[2]
            for trial in range(sweep.trials)
        ]
    )
    value = theorem_11_instance(Setting(n=n, d=n, epsilon=sweep.epsilon, delta=sweep.delta, radius=RADIUS)).value
    problem = LinearProblem(n=n, features=count, row_norm=1.0, loss=SQUARED, radius=RADIUS)
    records = StackedMoments(
        torch.full_like(signs, 1 / count), bias * signs / count, n=n, features=count, loss=SQUARED, row_norm=1.0
    )
    perturb = OutputPerturbation.plan(problem, epsilon=sweep.epsilon, delta=sweep.delta)
    shrunk = bias * signs / (1 + perturb.strong_convexity * count / 2)
    keys = [address(sweep.seed, "X11", "noise", n, trial) for trial in range(sweep.trials)]
    found = {
        "zero": torch.zeros_like(signs),
        "output perturbation": shrunk + perturb.sigma * normal_rows(keys, shrunk),
        "noisy descent": noisy_descent.learn(
            NoisyDescent.plan(problem, epsilon=sweep.epsilon, delta=sweep.delta, steps=n), records, keys
        ),
    }
    return pd.concat(
        trial_rows(
            "X11", method, n=n, features=count, errors=(weights - bias * signs).square().sum(dim=1) / count,
            bound=value, at_zero=bias**2,
        )
        for method, weights in found.items()
    )  # fmt: skip


def _noisy_mean(n: int, features: int, sweep: PrivateRisk) -> pd.DataFrame:
    """Return ``|gradient|`` at a noisy mean of points in a ball of radius ``G / (4 H)``, with ``G = H = 1``.

    At this mean, the gradient of the Huber loss is ``H`` times the mean's distance from the true mean. This distance is
    the norm of the noise, whatever the points are.
    """
    sigma = noise_multiplier(sweep.epsilon, sweep.delta) * 2 * 0.25 / n
    keys = [address(sweep.seed, "X11", "mean", n, features, trial) for trial in range(MEAN_TRIALS)]
    noise = sigma * normal_rows(keys, torch.zeros(MEAN_TRIALS, features, dtype=torch.float64))
    bound = rate_unit(n=n, d=features, epsilon=sweep.epsilon, delta=sweep.delta)
    return trial_rows(
        "X11", "noisy mean", n=n, features=features, errors=torch.linalg.vector_norm(noise, dim=1), bound=bound
    )
