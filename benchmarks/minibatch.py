"""One request compared with fitting again: `LangevinLogisticRegression` on mini-batches and scikit-learn; rows on disk.

Every round fits scikit-learn's `LogisticRegression` from scratch and from its old weights, as in `newton_removal.py`,
and fits our model. Then it unlearns ten records, including planning and the certificate, and ten more three times. At
the first request, the processor's caches are full of the fits' data and code. The other requests follow each other, as
they do in a service. With ``--disk N``, it instead learns in one pass from N rows of 20 numbers in a file, and prints
the largest memory of the process. Run it on an idle machine with one thread:
``OMP_NUM_THREADS=1 python benchmarks/minibatch.py``. MNIST's 3 against 8 needs UNLEARNING_DATA.
"""

import argparse
import json
import resource
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from certified_unlearning.accounting.core.losses import regularisation_of
from certified_unlearning.data.stored_rows import StoredRows
from certified_unlearning.engine.objectives.rows import StreamedRows
from certified_unlearning.estimators import LangevinLogisticRegression
from certified_unlearning.files import write_json
from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner
from newton_removal import DELTA, STRENGTH, Table, tables
from timing import in_turn, machine, seconds

FOLLOWING = 3
"""Number of requests in a round after its first one."""


def measure(train: Table, test: Table, *, records: int, rounds: int) -> dict[str, Any]:
    """Return the medians of all times in seconds, their ratios, and the accuracies."""
    rows, labels = train
    n = len(rows)
    C = STRENGTH / n
    requests = iter(
        np.random.default_rng(1).permutation(n)[: (1 + FOLLOWING) * records * (rounds + 1)].reshape(-1, records)
    )
    leaving = iter(range(records, n, records))
    warm = LogisticRegression(C=C, warm_start=True).fit(rows, labels)
    ours = LangevinLogisticRegression(1, DELTA, C=C).fit(rows, labels)
    accuracies = []

    def unlearn() -> None:
        ours.unlearn(next(requests)).certificate_  # noqa: B018

    def unlearn_on() -> None:
        for _ in range(FOLLOWING):
            unlearn()

    def refit() -> None:
        left = next(leaving)
        warm.fit(rows[left:], labels[left:])

    def score() -> None:
        accuracies.append(ours.score(*test))

    actions = {
        "cold": lambda: LogisticRegression(C=C).fit(rows, labels),
        "warm": refit,
        "fit": lambda: LangevinLogisticRegression(1, DELTA, C=C).fit(rows, labels),
        "unlearn": unlearn,
        "next": unlearn_on,
        "score": score,
    }
    timings = in_turn(actions, rounds)
    timings["next"] /= FOLLOWING
    return {
        "n": n,
        "features": rows.shape[1],
        "records": records,
        "batch_size": ours._learner.cycle and ours._learner.cycle.batch_size,
        "steps": float(np.median([removal.steps for removal in ours.removals_])),
        "seconds": {name: float(np.median(each)) for name, each in timings.items()},
        "cold_over_unlearn": float(np.median(timings["cold"] / timings["unlearn"])),
        "warm_over_unlearn": float(np.median(timings["warm"] / timings["unlearn"])),
        "cold_over_next": float(np.median(timings["cold"] / timings["next"])),
        "warm_over_next": float(np.median(timings["warm"] / timings["next"])),
        "fit_over_cold": float(np.median(timings["fit"] / timings["cold"])),
        "accuracy": {"ours": float(np.mean(accuracies)), "scikit-learn": warm.score(*test)},
    }


def learn_from_disk(n: int, features: int = 20) -> None:
    """Learn in one pass from rows in a file, answer a request, and print time and memory."""
    draw = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rows.float32"
        with path.open("wb") as file:
            for start in range(0, n, 100_000):
                rows = draw.standard_normal((min(100_000, n - start), features), dtype=np.float32)
                rows /= np.linalg.norm(rows, axis=1, keepdims=True)
                signs = np.where(rows[:, 0] + 0.1 * draw.standard_normal(len(rows)) > 0, 1, -1).astype(np.float32)
                file.write((-signs[:, None] * rows).data)
        learner = MiniBatchLearner.plan(
            n=n,
            features=features,
            classes=2,
            regularisation=regularisation_of(C=STRENGTH / n, n=n, intercept=False),
            epsilon=1.0,
            delta=DELTA,
            batch_size=2000,
        )
        stored = StreamedRows(StoredRows(path, 0, (n, features)), dtype=torch.float64, device=torch.device("cpu"))
        weights: list[torch.Tensor] = []
        took = seconds(lambda: weights.append(learner.learn(stored, torch.empty(0), [1])))
        passes = learner.learning_steps / learner.cycle.batches
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{n} x {features} on disk: {took:.1f} s for {passes:g} passes, at most {peak:.2f} GB of memory")


def main() -> None:
    """Measure, print a table, and write it to a file if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[30_000, 300_000, 1_000_000])
    parser.add_argument("--records", type=int, default=10, help="number of records in a request")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--disk", type=int, help="number of rows in a file, from which to learn instead")
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.disk is not None:
        learn_from_disk(arguments.disk)
        return
    results = []
    print("| n x d | batch | K | cold, ms | warm, ms | fit / cold | first, next, ms | cold, warm / first ", end="")
    print("| cold, warm / next | accuracy |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for train, test in tables(arguments.sizes):
        found = measure(train, test, records=arguments.records, rounds=arguments.rounds)
        results.append(found)
        names = ("cold", "warm", "unlearn", "next")
        cold, warm, *requests = (1000 * found["seconds"][name] for name in names)
        print(
            f"| {found['n']} x {found['features']} | {found['batch_size']} | {found['steps']:g} | {cold:.1f} | "
            f"{warm:.1f} | {found['fit_over_cold']:.2f} | {', '.join(f'{each:.2f}' for each in requests)} | "
            f"{found['cold_over_unlearn']:.3g}, {found['warm_over_unlearn']:.3g} | "
            f"{found['cold_over_next']:.3g}, {found['warm_over_next']:.3g} | "
            f"{found['accuracy']['ours']:.4f} / {found['accuracy']['scikit-learn']:.4f} |",
            flush=True,
        )
    if arguments.output is not None:
        write_json(arguments.output, {**machine(), "delta": DELTA, "strength": STRENGTH, "tables": results})
    print(json.dumps(machine()))


if __name__ == "__main__":
    main()
