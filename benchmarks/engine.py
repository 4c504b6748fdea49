"""The learning step for 100 trials, against a plain loop over trials and against the machine's matrix product.

All three are timed in turn in one process, round by round, so that a machine whose speed drifts distorts the ratios
as little as it can. Run: ``python benchmarks/engine.py`` (``--help`` for sizes).
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from certified_unlearning import dynamics, randomness
from certified_unlearning.files import write_json
from certified_unlearning.objectives.logistic import LogisticObjective

STRENGTH, SIGMA, CLIP = 0.011982, 0.03, 1.0
STEP_SIZE = 1 / (0.25 + STRENGTH)


def per_trial_step(features: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
    """One trial's step as research code writes it: every record's gradient as a row of an n x d matrix."""
    coefficients = torch.sigmoid(-labels * (features @ weight))
    gradients = -(coefficients * labels)[:, None] * features
    norms = gradients.norm(dim=1, keepdim=True)
    clipped = gradients * (CLIP / norms.clamp(min=CLIP))
    gradient = clipped.mean(dim=0) + STRENGTH * weight
    return weight - STEP_SIZE * gradient + (2 * STEP_SIZE) ** 0.5 * SIGMA * torch.randn_like(weight)


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=11_982)
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--steps", type=int, default=64, help="engine steps in a round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/engine.json"))
    options = parser.parse_args()
    n, d, trials = options.records, options.features, options.trials

    generator = torch.Generator().manual_seed(0)
    features = torch.nn.functional.normalize(torch.randn(n, d, generator=generator))
    labels = torch.where(torch.rand(n, generator=generator) < 0.5, -1.0, 1.0)
    objective = LogisticObjective(features, labels, strong_convexity=STRENGTH, lipschitz=CLIP)
    phase = dynamics.Phase(
        removed=0,
        steps=[options.steps] * trials,
        sigma=[SIGMA] * trials,
        keys=[randomness.address("benchmark", trial) for trial in range(trials)],
    )
    start = torch.zeros(trials, d)
    square = torch.randn(4096, 4096, generator=generator)
    product = torch.empty_like(square)

    def engine() -> None:
        dynamics.run(objective, start, [phase], step_size=STEP_SIZE, measure=lambda weights: weights[:, 0])

    timings: dict[str, list[float]] = {"engine": [], "loop": [], "peak": []}
    for round_number in range(options.rounds + 1):
        measured = {
            "engine": seconds(engine) / options.steps,
            "loop": np.mean([seconds(lambda: per_trial_step(features, labels, start[0])) for _ in range(5)]),
            "peak": 2 * 4096**3 / seconds(lambda: torch.mm(square, square, out=product)),
        }
        if round_number:
            for name, value in measured.items():
                timings[name].append(float(value))

    step, loop, peak = (np.array(timings[name]) for name in ("engine", "loop", "peak"))
    speed = 4 * n * d * trials / step
    result = {
        "machine": f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "size": {"records": n, "features": d, "trials": trials},
        "engine_milliseconds_per_step": 1e3 * float(np.median(step)),
        "loop_milliseconds_per_trial_and_step": 1e3 * float(np.median(loop)),
        "engine_gigaflops": float(np.median(speed)) / 1e9,
        "peak_gigaflops": float(np.median(peak)) / 1e9,
        "times_faster_than_loop": float(np.median(loop / (step / trials))),
        "share_of_peak": float(np.median(speed / peak)),
    }
    write_json(options.output, result)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
