"""The learning step for 100 trials, compared with a plain loop over trials and with the machine's matrix product.

All of them are timed in turn in one process, round by round. With ``--times``, the engine also runs on that many times
the records; a step should then take that many times as long. With ``--device cuda``, everything runs on a GPU.

Run: ``python benchmarks/engine.py`` (``--help`` for sizes).
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from certified_unlearning.engine import descent, randomness
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.files import write_json
from timing import SQUARE, in_turn, machine, shares, square_product, to_its_end

STRENGTH, SIGMA, CLIP = 0.011982, 0.03, 1.0
STEP_SIZE = 1 / (0.25 + STRENGTH)
STEPS = 4 * randomness.BLOCK_STEPS
LOOPED = 5
"""Number of trials in the loop of a round."""


def per_trial_step(features: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
    """Make one trial's step as research code does, with every record's gradient as a row of an n x d matrix."""
    coefficients = torch.sigmoid(-labels * (features @ weight))
    gradients = -(coefficients * labels)[:, None] * features
    norms = gradients.norm(dim=1, keepdim=True)
    clipped = gradients * (CLIP / norms.clamp(min=CLIP))
    gradient = clipped.mean(dim=0) + STRENGTH * weight
    return weight - STEP_SIZE * gradient + (2 * STEP_SIZE) ** 0.5 * SIGMA * torch.randn_like(weight)


def data(n: int, d: int, device: str) -> tuple[Tensor, Tensor]:
    """Return Gaussian rows of norm 1 and labels, on a device."""
    generator = torch.Generator().manual_seed(0)
    features = torch.nn.functional.normalize(torch.randn(n, d, generator=generator))
    labels = torch.where(torch.rand(n, generator=generator) < 0.5, -1.0, 1.0)
    return features.to(device), labels.to(device)


def engine(features: Tensor, labels: Tensor, trials: int) -> Callable[[], object]:
    """Return a function that makes `STEPS` learning steps of the engine, including noise."""
    objective = LogisticObjective(features, labels, strong_convexity=STRENGTH, lipschitz=CLIP)
    phase = descent.DescentPhase(
        removed=0,
        steps=[STEPS] * trials,
        sigma=[SIGMA] * trials,
        keys=[randomness.address("benchmark", trial) for trial in range(trials)],
    )
    start = torch.zeros(trials, features.shape[1], device=features.device)
    return lambda: descent.run(objective, start, [phase], step_size=STEP_SIZE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=11_982)
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument(
        "--times", type=int, default=10, help="factor for a second measurement with more records; 1 for none"
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/engine.json"))
    options = parser.parse_args()
    n, d, trials = options.records, options.features, options.trials

    features, labels = data(n, d, options.device)
    weight = torch.zeros(d, device=options.device)
    actions = {
        "engine": engine(features, labels, trials),
        "loop": lambda: [per_trial_step(features, labels, weight) for _ in range(LOOPED)],
        "square": square_product(options.device),
    }
    if options.times > 1:
        actions["more"] = engine(*data(options.times * n, d, options.device), trials)
    timings = in_turn({name: to_its_end(action) for name, action in actions.items()}, options.rounds)

    step, loop = timings["engine"] / STEPS, timings["loop"] / LOOPED
    operations = 4 * n * d * trials
    result = machine(options.device) | {
        "size": {"records": n, "features": d, "trials": trials},
        "milliseconds_per_step": {"median": 1e3 * float(np.median(step)), "best": 1e3 * float(step.min())},
        "square_product_gigaflops": 2e-9 * SQUARE**3 / float(timings["square"].min()),
        "share_of_peak": shares(operations, step, timings["square"]),
        "loop_milliseconds_per_trial_and_step": 1e3 * float(np.median(loop)),
        "times_faster_than_loop": float(np.median(loop / (step / trials))),
    }
    if options.times > 1:
        more = timings["more"] / STEPS
        result["more_records"] = {
            "times": options.times,
            "milliseconds_per_step": {"median": 1e3 * float(np.median(more)), "best": 1e3 * float(more.min())},
            "times_slower": {"median": float(np.median(more / step)), "best": float(more.min() / step.min())},
            "share_of_peak": shares(options.times * operations, more, timings["square"]),
        }
    write_json(options.output, result)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
