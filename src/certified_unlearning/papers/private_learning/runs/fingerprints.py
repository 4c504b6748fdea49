"""X13: methods on the instance of Theorem 13's lower bound, for smaller and smaller epsilon.

There are ``d'`` blocks. In block ``j``, a secret share ``mu_j`` of the labels is ``D / sqrt(d')``, and the other labels
are 0. A block has ``1 / (864 epsilon)`` records on average. Without privacy, a few of these records determine ``mu_j``,
which has the distribution Beta(1/16, 1/16) and is near 0 or 1. The error is the risk minus that of the weights ``mu D /
sqrt(d')``, as in the bound; the error may be below 0.
"""

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from certified_unlearning.accounting.private.learners import NoisyDescent
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.mechanisms.private import noisy_descent
from certified_unlearning.papers.private_learning.runs.convex import ABSOLUTE
from certified_unlearning.papers.private_learning.runs.table import trial_rows
from certified_unlearning.papers.private_learning.sweeps import PrivateRisk
from certified_unlearning.papers.private_learning.theory.linear_models import (
    FINGERPRINT,
    Setting,
    theorem_33_instance,
)

RADIUS = 1.0
STEPS = 200
UNBOUNDED = 10**9
"""A rank above that of every instance; with this rank, an instance has as many blocks as in the proof."""


class BlockLabels(BoundedRecords):
    """Records ``e_j`` with the labels 0 or ``high``, one data set for each trial; only their counts are stored."""

    def __init__(self, low: Tensor, high: Tensor, *, label: float) -> None:
        """Take, for each label, the number of records in each block, shapes ``(trials, blocks)``."""
        self.loss, self.row_norm = ABSOLUTE, 1.0
        self.rows = low.new_zeros(0, low.shape[1])
        self._low, self._high, self._label = low, high, label
        self._n = int(low[0].sum() + high[0].sum())

    def __len__(self) -> int:
        """Return the number of records of each data set."""
        return self._n

    def mean_gradients(self, weights: Tensor) -> Tensor:
        """Return each trial's mean gradient on its own records, shape ``(trials, blocks)``."""
        label = torch.full_like(weights, self._label)
        low = self._low * self._slopes(weights.clone(), torch.zeros_like(weights))
        return (low + self._high * self._slopes(weights.clone(), label)) / self._n

    def medians(self) -> Tensor:
        """Return the minimisers without noise: each block's more frequent label, or 0 for a block without records."""
        return self._label * (self._high > self._low).to(torch.float64)


def fingerprint_rows(sweep: PrivateRisk) -> pd.DataFrame:
    """Return the rows of X13: weights of zero, noisy descent, and the minimiser without privacy."""
    return pd.concat([_of_epsilon(epsilon, sweep) for epsilon in sweep.fingerprint_epsilon])


def _of_epsilon(epsilon: float, sweep: PrivateRisk) -> pd.DataFrame:
    n = sweep.fingerprint_n
    setting = Setting(n=n, d=UNBOUNDED, epsilon=epsilon, delta=sweep.delta, radius=RADIUS)
    instance = theorem_33_instance(setting)
    label = RADIUS / instance.blocks**0.5
    generator = np.random.default_rng(address(sweep.seed, "X13", n, epsilon))
    shares = generator.beta(FINGERPRINT, FINGERPRINT, size=(sweep.trials, instance.blocks))
    members = generator.multinomial(n, np.full(instance.blocks, 1 / instance.blocks), size=sweep.trials)
    high = generator.binomial(members, shares)
    records = BlockLabels(
        torch.as_tensor(members - high, dtype=torch.float64), torch.as_tensor(high, dtype=torch.float64), label=label
    )
    problem = LinearProblem(n=n, features=instance.blocks, row_norm=1.0, loss=ABSOLUTE, radius=RADIUS)
    plan = NoisyDescent.plan(problem, epsilon=epsilon, delta=sweep.delta, steps=STEPS)
    keys = [address(sweep.seed, "X13", "descent", n, epsilon, trial) for trial in range(sweep.trials)]
    mu = torch.as_tensor(shares)
    found = {
        "zero": torch.zeros_like(mu),
        "noisy descent": noisy_descent.learn(plan, records, keys),
        "no privacy": records.medians(),
    }
    return pd.concat(
        trial_rows(
            "X13", method, n=n, features=instance.blocks, epsilon=epsilon, errors=excess(weights, mu, label),
            bound=instance.value,
        )
        for method, weights in found.items()
    )  # fmt: skip


def excess(weights: Tensor, mu: Tensor, label: float) -> Tensor:
    """Return the mean absolute loss of ``weights`` over all labels, minus that of the weights ``mu label``."""
    lost = mu * (label - weights).abs() + (1 - mu) * weights.abs()
    return (lost - 2 * label * mu * (1 - mu)).mean(dim=1)
