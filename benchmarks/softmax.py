"""The learning step with 10 classes at the size of CIFAR-10, compared with matrix products.

For each number of trials, three things are timed in turn in one process, round by round: the engine's step; its two
matrix products alone, in the same shapes; and a large square product. The difference between the first two is the time
of softmax and noise. The difference between the last two is the cost of narrow products. Run:
``python benchmarks/softmax.py`` (``--help`` for sizes).
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from certified_unlearning.accounting.core.losses import softmax_constants
from certified_unlearning.engine import descent, randomness
from certified_unlearning.engine.objectives.softmax import SoftmaxObjective
from certified_unlearning.files import write_json
from timing import SQUARE, in_turn, machine, shares, square_product

SIGMA = 0.03
STEPS = randomness.BLOCK_STEPS


def products(features: Tensor, trials: int, classes: int, rows_at_once: int) -> None:
    """Run only the two matrix products of a step."""
    weights = torch.ones(trials * classes, features.shape[1])
    gradient = torch.zeros_like(weights)
    for rows in torch.split(features, rows_at_once):
        gradient.addmm_(torch.mm(weights, rows.T), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--trials", type=int, nargs="+", default=[10, 20, 50, 100])
    parser.add_argument("--rows-at-once", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/softmax.json"))
    options = parser.parse_args()
    n, d, classes = options.records, options.features, options.classes

    generator = torch.Generator().manual_seed(0)
    features = torch.nn.functional.normalize(torch.randn(n, d, generator=generator))
    labels = torch.randint(0, classes, (n,), generator=generator)
    constants = softmax_constants(n=n, regularisation=1e-6)
    objective = SoftmaxObjective(
        features,
        labels,
        classes=classes,
        strong_convexity=constants.strong_convexity,
        lipschitz=constants.lipschitz,
        rows_at_once=options.rows_at_once,
    )

    def engine(trials: int) -> None:
        phase = descent.DescentPhase(
            removed=0,
            steps=[STEPS] * trials,
            sigma=[SIGMA] * trials,
            keys=[randomness.address("benchmark", trial) for trial in range(trials)],
        )
        start = torch.zeros(trials, classes * d)
        step_size = 1 / constants.smoothness
        descent.run(objective, start, [phase], step_size=step_size)

    def measured(trials: int) -> dict[str, Any]:
        actions = {
            "engine": lambda: engine(trials),
            "products": lambda: products(features, trials, classes, options.rows_at_once),
            "square": square_product(),
        }
        timings = in_turn(actions, options.rounds)
        step, alone, square = timings["engine"] / STEPS, timings["products"], timings["square"]
        operations = 4 * n * d * classes * trials
        return {
            "trials": trials,
            "milliseconds_per_step": {"median": 1e3 * float(np.median(step)), "best": 1e3 * float(step.min())},
            "square_product_gigaflops": 2e-9 * SQUARE**3 / float(square.min()),
            "share_of_peak": shares(operations, step, square),
            "share_of_peak_products_alone": shares(operations, alone, square),
        }

    result = machine() | {
        "size": {"records": n, "features": d, "classes": classes, "rows_at_once": options.rows_at_once},
        "results": [measured(trials) for trials in options.trials],
    }
    write_json(options.output, result)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
