"""The ledger with a million records: the time of `request`, `status` and `apply`, as users run them.

It writes a table, makes a model directory from it, requests removals a thousand at a time, and applies them. Then it
repeats only the noisy steps that `apply` had planned. Every command is a process of its own, and its time includes the
start of the process. Run: ``python benchmarks/ledger.py`` (``--help`` for sizes). The files are deleted at the end.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch

from certified_unlearning.files import write_json
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.method import answered_of
from certified_unlearning.ledger.methods.noisy_steps import place_training, removals
from certified_unlearning.ledger.model import read_stored
from timing import machine, seconds

REQUESTS_AT_ONCE = 1000
START = """
import gc
gc.set_threshold(100_000)
import certified_unlearning.cli, certified_unlearning.ledger.application
gc.freeze()
"""
"""The start of a command that needs PyTorch, as in `cli.main`."""


def write_table(path: Path, n: int, d: int) -> None:
    """Write Gaussian features, a label that depends on the first feature, and an identifier for every row."""
    draw = np.random.default_rng(0)
    features = draw.standard_normal((n, d))
    columns: dict[str, Any] = {f"x{column}": features[:, column] for column in range(d)}
    columns["label"] = features[:, 0] + draw.standard_normal(n) > 0
    columns["customer"] = draw.permutation(n)
    pa.parquet.write_table(pa.table(columns), path)


def python(script: str, *arguments: object) -> float:
    """Run Python, and return the time in seconds."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def unlearn(*arguments: object) -> float:
    """Run a command, and return the time in seconds."""
    return python("from certified_unlearning.cli import main; main()", *arguments)


def steps_alone(model: Path) -> float:
    """Return the seconds of the last batch's noisy steps alone, on rows that are already in memory."""
    directory = ModelDirectory(model)
    state = requests.status(model).state
    stored = read_stored(directory, state)
    rows, labels = place_training(directory, stored.learner, torch.device("cpu"))
    weights = torch.zeros(1, stored.learner.dimension, dtype=rows.dtype)
    return seconds(lambda: stored.learner.unlearn(weights, rows, labels, removals(answered_of(state)), [1]))


def measure(root: Path, n: int, d: int, people: int, regularisation: float) -> dict[str, Any]:
    """Return all times."""
    data, model, ids = root / "d.parquet", root / "model", root / "ids.csv"
    write_table(data, n, d)
    init = unlearn(
        *("init", model, "--data", data, "--label", "label", "--id", "customer"),
        *("--mechanism", "langevin", "--epsilon", 1, "--C", 1 / (regularisation * n), "--device", "cpu"),
    )
    request = []
    for first in range(0, people, REQUESTS_AT_ONCE):
        ids.write_text("\n".join(map(str, range(first, first + REQUESTS_AT_ONCE))))
        request.append(unlearn("request", model, "--file", ids))
    status = [unlearn("status", model) for _ in range(3)]
    started = min(python(START) for _ in range(3))
    applied = unlearn("apply", model)
    verified = unlearn("verify", model)
    steps = min(steps_alone(model) for _ in range(2))
    return {
        "init_seconds": init,
        "request_seconds": {"median": float(np.median(request)), "largest": max(request)},
        "status_seconds": {"median": float(np.median(status)), "largest": max(status)},
        "apply_seconds": applied,
        "apply_start_seconds": started,
        "verify_seconds": verified,
        "planned_steps": requests.status(model).state.batches[-1].steps,
        "steps_seconds": steps,
        "apply_to_steps": {"without_start": (applied - started) / steps, "with_start": applied / steps},
    }


def main() -> None:
    """Measure, print the results, and write them to a file if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--requests", type=int, default=10_000, help=f"a multiple of {REQUESTS_AT_ONCE}")
    parser.add_argument(
        "--regularisation", type=float, default=0.01, help="1 / (C n); a smaller value needs more steps"
    )
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        measured = measure(
            Path(root), arguments.records, arguments.features, arguments.requests, arguments.regularisation
        )
    sizes: dict[str, float] = {
        "records": arguments.records,
        "features": arguments.features,
        "requests": arguments.requests,
        "regularisation": arguments.regularisation,
    }
    results = machine() | sizes | measured
    print(json.dumps(results, indent=2))
    if arguments.output is not None:
        write_json(arguments.output, results)


if __name__ == "__main__":
    main()
