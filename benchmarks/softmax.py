"""The 10-class learning step at the size of CIFAR-10, against the machine's matrix product and against its own two.

For each number of trials three things are timed in turn in one process, round by round: the engine's step, the two
matrix products alone in the shapes that the step has, and a large square product. The first gap is the softmax and
the noise, the second what narrow products cost. Run: ``python benchmarks/softmax.py`` (``--help`` for sizes).
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from certified_unlearning import dynamics, randomness
from certified_unlearning.files import write_json
from certified_unlearning.objectives.constants import softmax_constants
from certified_unlearning.objectives.softmax import SoftmaxObjective

SIGMA = 0.03


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--trials", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument("--rows-at-once", type=int, default=1024)
    parser.add_argument(
        "--steps", type=int, default=16, help="engine steps in a round; noise is drawn 16 steps at a time"
    )
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
    square = torch.randn(4096, 4096, generator=generator)
    product = torch.empty_like(square)

    def engine(trials: int) -> None:
        phase = dynamics.Phase(
            removed=0,
            steps=[options.steps] * trials,
            sigma=[SIGMA] * trials,
            keys=[randomness.address("benchmark", trial) for trial in range(trials)],
        )
        start = torch.zeros(trials, classes * d)
        step_size = 1 / constants.smoothness
        dynamics.run(objective, start, [phase], step_size=step_size, measure=lambda weights: weights[:, 0])

    def products(trials: int) -> None:
        weights = torch.ones(trials * classes, d)
        gradient = torch.zeros_like(weights)
        for rows in torch.split(features, options.rows_at_once):
            gradient.addmm_(torch.mm(weights, rows.T), rows)

    results = []
    for trials in options.trials:
        timings: dict[str, list[float]] = {"engine": [], "products": [], "peak": []}
        for round_number in range(options.rounds + 1):
            measured = {
                "engine": seconds(lambda trials=trials: engine(trials)) / options.steps,
                "products": seconds(lambda trials=trials: products(trials)),
                "peak": 2 * 4096**3 / seconds(lambda: torch.mm(square, square, out=product)),
            }
            if round_number:
                for name, value in measured.items():
                    timings[name].append(value)
        step, alone, peak = (np.array(timings[name]) for name in ("engine", "products", "peak"))
        operations = 4 * n * d * classes * trials
        results.append(
            {
                "trials": trials,
                "engine_milliseconds_per_step": 1e3 * float(np.median(step)),
                "products_milliseconds_per_step": 1e3 * float(np.median(alone)),
                "peak_gigaflops": float(np.median(peak)) / 1e9,
                "engine_share_of_peak": float(np.median(operations / step / peak)),
                "products_share_of_peak": float(np.median(operations / alone / peak)),
            }
        )
    report = {
        "machine": f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "size": {"records": n, "features": d, "classes": classes, "rows_at_once": options.rows_at_once},
        "results": results,
    }
    write_json(options.output, report)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
