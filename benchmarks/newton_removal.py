"""One request compared with fitting again: `CertifiedLogisticRegression.unlearn` and scikit-learn, cold and
warm-started.

Every round fits scikit-learn's `LogisticRegression` from scratch, and again from its old weights without the records of
the round. It also fits our model, and unlearns the same number of records, including the certificate. Run it on an idle
machine with one thread: ``OMP_NUM_THREADS=1 python benchmarks/newton_removal.py``. MNIST's 3 against 8 needs
UNLEARNING_DATA.
"""

import argparse
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from certified_unlearning.data.sets import built_in
from certified_unlearning.estimators import CertifiedLogisticRegression
from certified_unlearning.files import write_json
from timing import in_turn, machine

DELTA = 1e-6
STRENGTH = 80
"""Value of ``C n``."""
Table = tuple[NDArray[np.float64], NDArray[np.int64]]


def clouds(n: int, d: int) -> tuple[Table, Table]:
    """Return rows of norm 1 whose labels depend on the first column, with noise, for training and for testing."""
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((n + 10_000, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = (rows[:, 0] + 0.1 * draw.standard_normal(len(rows)) > 0).astype(np.int64)
    return (rows[:n], labels[:n]), (rows[n:], labels[n:])


def mnist() -> tuple[Table, Table]:
    """Return MNIST's digits 3 and 8."""
    data = built_in("mnist-3-vs-8").prepare(Path(os.environ["UNLEARNING_DATA"]), 0)
    train = data.train_features.astype(np.float64), data.train_labels.astype(np.int64)
    return train, (data.test_features.astype(np.float64), data.test_labels.astype(np.int64))


def measure(train: Table, test: Table, *, records: int, rounds: int) -> dict[str, Any]:
    """Return the medians of all times in seconds, their ratios, and the accuracies at the end."""
    rows, labels = train
    n = len(rows)
    C = STRENGTH / n
    requests = iter(np.random.default_rng(1).permutation(n).reshape(-1)[: records * (rounds + 1)].reshape(-1, records))
    leaving = iter(range(records, n, records))
    warm = LogisticRegression(C=C, warm_start=True).fit(rows, labels)
    ours = CertifiedLogisticRegression(1, DELTA, C=C).fit(rows, labels)

    def unlearn() -> None:
        ours.unlearn(next(requests)).certificate_  # noqa: B018

    def refit() -> None:
        left = next(leaving)
        warm.fit(rows[left:], labels[left:])

    actions = {
        "cold": lambda: LogisticRegression(C=C).fit(rows, labels),
        "warm": refit,
        "fit": lambda: CertifiedLogisticRegression(1, DELTA, C=C).fit(rows, labels),
        "unlearn": unlearn,
    }
    timings = in_turn(actions, rounds)
    median = {name: float(np.median(each)) for name, each in timings.items()}
    stated = ours.certificate_
    return {
        "n": n,
        "features": rows.shape[1],
        "records": records,
        "seconds": median,
        "unlearn_mean_seconds": float(timings["unlearn"].mean()),
        "cold_over_unlearn": float(np.median(timings["cold"] / timings["unlearn"])),
        "warm_over_unlearn": float(np.median(timings["warm"] / timings["unlearn"])),
        "fit_over_cold": float(np.median(timings["fit"] / timings["cold"])),
        "requests": stated.releases - 1,
        "reads": {"scheduled": stated.scheduled_reads, "unscheduled": stated.unscheduled_reads},
        "accuracy": {"ours": ours.score(*test), "scikit-learn": warm.score(*test)},
    }


def tables(sizes: list[int]) -> Iterator[tuple[Table, Table]]:
    """Yield the data, one table after another."""
    for n in sizes:
        yield clouds(n, 20)
    if "UNLEARNING_DATA" in os.environ:
        yield mnist()


def main() -> None:
    """Measure, print a table, and write it to a file if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[30_000, 300_000, 1_000_000])
    parser.add_argument("--records", type=int, default=10, help="number of records in a request")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results = []
    print("| n x d | cold, ms | warm, ms | fit, ms | unlearn, ms (mean) | cold / it | warm / it | reads | accuracy |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for train, test in tables(arguments.sizes):
        found = measure(train, test, records=arguments.records, rounds=arguments.rounds)
        results.append(found)
        cold, warm, fit, unlearn = (1000 * found["seconds"][name] for name in ("cold", "warm", "fit", "unlearn"))
        print(
            f"| {found['n']} x {found['features']} | {cold:.1f} | {warm:.1f} | {fit:.1f} | {unlearn:.2f} "
            f"({1000 * found['unlearn_mean_seconds']:.2f}) | {found['cold_over_unlearn']:.0f} | "
            f"{found['warm_over_unlearn']:.0f} | {sum(found['reads'].values())} of {found['requests']} | "
            f"{found['accuracy']['ours']:.4f} / {found['accuracy']['scikit-learn']:.4f} |"
        )
    if arguments.output is not None:
        write_json(arguments.output, {**machine(), "delta": DELTA, "strength": STRENGTH, "tables": results})
    print(json.dumps(machine()))


if __name__ == "__main__":
    main()
