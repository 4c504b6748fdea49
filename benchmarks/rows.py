"""A data set larger than memory: it is written, and then learned from with its rows on disk, in separate processes.

It prints each process's peak memory and the time of a step, and whether rows in memory give the same bits. Run:
``python benchmarks/rows.py`` (``--help`` for sizes). The file is deleted at the end.
"""

import argparse
import hashlib
import json
import resource
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from certified_unlearning.data.prepared import PreparedData
from certified_unlearning.data.requests import draw_removals
from certified_unlearning.engine import descent, randomness
from certified_unlearning.engine.objectives.logistic import LogisticObjective, accuracy
from certified_unlearning.engine.objectives.rows import StreamedRows
from certified_unlearning.files import write_json
from timing import machine, seconds

STRENGTH, SIGMA, REMOVED = 0.01, 0.03, 10


class GaussianRows:
    """Gaussian rows of norm 1, drawn when they are read; equal slices give equal rows."""

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(self, n: int, d: int) -> None:
        self.shape = (n, d)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> NDArray[np.float32]:
        start, stop, _ = rows.indices(len(self))
        drawn = np.random.default_rng(start).standard_normal((stop - start, self.shape[1]), dtype=np.float32)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def write(path: Path, n: int, d: int) -> dict[str, Any]:
    """Write a data set that is never in memory as a whole."""
    labels = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), n)
    test = GaussianRows(1000, d)[:], labels[:1000]
    # `save` only needs the shape and slices of the rows.
    PreparedData("rows", "gaussian", GaussianRows(n, d), labels, *test, "none").save(path)  # type: ignore[arg-type]
    return {}


def learn(path: Path, trials: int, steps: int, in_memory: bool) -> dict[str, Any]:
    """Learn, unlearn a few records, and return the digest of the weights."""
    data = PreparedData.load(path, in_memory=in_memory)
    removals = draw_removals(data, records=REMOVED, adjacency="replace", seed=0)
    rows = data.train_features
    objective = LogisticObjective(
        torch.from_numpy(rows)
        if isinstance(rows, np.ndarray)
        else StreamedRows(rows, dtype=torch.float32, device=torch.device("cpu")),
        torch.from_numpy(data.train_labels),
        strong_convexity=STRENGTH,
        lipschitz=1.0,
        replacements=tuple(map(torch.from_numpy, (removals.indices, removals.features, removals.labels))),
    )
    test = torch.from_numpy(data.test_features), torch.from_numpy(data.test_labels)
    phases = [
        descent.DescentPhase(
            removed=removed,
            steps=[steps] * trials,
            sigma=[SIGMA] * trials,
            keys=[randomness.address("rows", removed, trial) for trial in range(trials)],
        )
        for removed in (0, REMOVED)
    ]
    trajectory = descent.run(
        objective,
        torch.zeros(trials, data.d),
        phases,
        step_size=1 / (0.25 + STRENGTH),
        measure=lambda weights: accuracy(weights, *test),
    )
    digest = hashlib.sha256(trajectory.weights.numpy().tobytes()).hexdigest()
    return {"seconds_per_step": trajectory.seconds / (2 * steps), "weights_sha256": digest}


def measured(action: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Run ``action`` in a separate process, and return its result, its time and its peak resident memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_with_usage, action, *arguments).result()


def _with_usage(action: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = {}
    result["seconds"] = seconds(lambda: result.update(action(*arguments)))
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return result | {"peak_gigabytes": kibibytes * 1024 / 1e9}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--steps", type=int, default=2, help="number of steps of learning, and of unlearning")
    parser.add_argument(
        "--in-memory", action="store_true", help="also time rows in memory, which needs twice their size"
    )
    parser.add_argument("--directory", type=Path, help="temporary directory for the data set")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/rows.json"))
    options = parser.parse_args()

    size = {"records": options.records, "features": options.features, "trials": options.trials}
    result = machine() | {"size": size}
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        path = Path(directory) / "data.safetensors"
        result["writing"] = measured(write, path, options.records, options.features)
        result["file_gigabytes"] = path.stat().st_size / 1e9
        result["streamed"] = measured(learn, path, options.trials, options.steps, False)
        if options.in_memory:
            result["in_memory"] = measured(learn, path, options.trials, options.steps, True)
            result["same_bits"] = result["in_memory"]["weights_sha256"] == result["streamed"]["weights_sha256"]
    write_json(options.output, result)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
