"""Noisy gradient descent (Algorithm 1) compared with the Langevin engine: steps on the same records, both in float64.

Both use all records in every step, for the same number of trials, with noise in every step. In addition, descent adds
up its iterates and projects each onto a ball. Run: ``OMP_NUM_THREADS=1 python benchmarks/private_learning.py``
(``--help`` for sizes). Use ``--processor-time`` if other programs keep the machine busy.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from certified_unlearning.accounting.private.learners import NoisyDescent
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.engine import descent, randomness
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.files import write_json
from certified_unlearning.mechanisms.private import noisy_descent
from engine import data
from timing import in_turn, machine

STRENGTH, SIGMA = 0.011982, 0.03
STEPS = 2 * randomness.BLOCK_STEPS


def langevin(features: Tensor, labels: Tensor, trials: int) -> Callable[[], object]:
    """Return a function that makes `STEPS` steps of the Langevin engine."""
    objective = LogisticObjective(features, labels, strong_convexity=STRENGTH, lipschitz=1.0)
    keys = [randomness.address("benchmark", trial) for trial in range(trials)]
    phase = descent.DescentPhase(removed=0, steps=[STEPS] * trials, sigma=[SIGMA] * trials, keys=keys)
    start = torch.zeros(trials, features.shape[1], dtype=features.dtype)
    step_size = 1 / (0.25 + STRENGTH)
    return lambda: descent.run(objective, start, [phase], step_size=step_size)


def private(features: Tensor, labels: Tensor, trials: int) -> Callable[[], object]:
    """Return a function that makes `STEPS` steps of noisy gradient descent."""
    n, d = features.shape
    loss = ScalarLoss(name="logistic")
    records = BoundedRecords(features, labels, loss=loss, row_norm=1.0)
    problem = LinearProblem(n=n, features=d, row_norm=1.0, loss=loss, radius=5.0)
    plan = NoisyDescent(problem=problem, steps=STEPS + 1, step_size=0.5, sigma=SIGMA)
    keys = [randomness.address("benchmark", trial) for trial in range(trials)]
    return lambda: noisy_descent.learn(plan, records, keys)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=11_982)
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/private_learning.json"))
    options = parser.parse_args()

    features, labels = data(options.records, options.features)
    features, labels = features.double(), labels.double()
    actions = {
        "langevin": langevin(features, labels, options.trials),
        "private": private(features, labels, options.trials),
    }
    clock = time.process_time if options.processor_time else time.perf_counter
    timings = {name: each / STEPS for name, each in in_turn(actions, options.rounds, clock).items()}
    ratios = timings["langevin"] / timings["private"]
    result = machine() | {
        "size": {"records": options.records, "features": options.features, "trials": options.trials},
        "clock": clock.__name__,
        "milliseconds_per_step": {name: 1e3 * float(np.median(each)) for name, each in timings.items()},
        "throughput_of_langevin": {
            "median": float(np.median(ratios)),
            "best": float(timings["langevin"].min() / timings["private"].min()),
        },
    }
    write_json(options.output, result)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
