"""`ExactKMeans` compared with scikit-learn's `KMeans`: the quality of the clusters, and the cost of a request.

Inertia is divided by that of scikit-learn (best of ten starts), so 1 is equally good. The number in brackets is for one
centre for all records, which is useless. The median and the range of five fits are printed. A request removes one
record, or ten. Its time is the mean of many requests, including those that recompute steps. Refits are scikit-learn's,
from k-means++ (``n_init=1``). Times are processor time, measured in turn in one process with one thread:
``OMP_NUM_THREADS=1 python benchmarks/k_means.py``. MNIST needs UNLEARNING_DATA.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs

from certified_unlearning.data.sets import load
from certified_unlearning.estimators import ExactKMeans
from certified_unlearning.files import write_json
from timing import machine, seconds

SINGLE, IN_TENS = 40, 10
"""Number of requests for one record, and for ten records."""


def blobs(n: int) -> NDArray[np.float64]:
    """Return ten overlapping groups in ten dimensions, in [-1, 1] divided by the square root of 10."""
    rows, _ = make_blobs(n, 10, centers=10, cluster_std=2.5, random_state=0)
    return np.clip(rows / 16, -1, 1) / np.sqrt(10)


def digits() -> NDArray[np.float64]:
    """Return scikit-learn's digits, scaled from the range 0 to 16 as ``feature_ranges`` does."""
    return (load_digits().data / 8 - 1) / 8


def mnist(n: int) -> NDArray[np.float64]:
    """Return MNIST's images as rows of norm 1, reduced to 7 x 7 means of 4 x 4 pixels."""
    images = np.asarray(load("mnist-10", seed=0).train_features, dtype=np.float64)[:n]
    rows = images.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(len(images), 49)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def compared(name: str, rows: NDArray[np.float64], clusters: int, chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the inertias and milliseconds for one setting."""
    best = KMeans(clusters, n_init=10, random_state=0).fit(rows).inertia_
    ours = [ExactKMeans(clusters, random_state=seed, **chosen).fit(rows).inertia_ / best for seed in range(5)]
    theirs = [KMeans(clusters, n_init=1, random_state=seed).fit(rows).inertia_ / best for seed in range(5)]
    model, clock = ExactKMeans(clusters, random_state=0, **chosen), time.process_time
    fits, refits, single, tens = [], [], [], []
    for seed in range(3):
        fits.append(seconds(lambda: model.fit(rows), clock))
        refits.append(seconds(lambda seed=seed: KMeans(clusters, n_init=1, random_state=seed).fit(rows), clock))
    for each in range(SINGLE):
        single.append(seconds(lambda each=each: model.unlearn([each]), clock))
    for each in range(IN_TENS):
        few = range(SINGLE + 10 * each, SINGLE + 10 * (each + 1))
        tens.append(seconds(lambda few=few: model.unlearn([*few]), clock))
    return {
        "data": name,
        "n": len(rows),
        "chosen": chosen,
        "inertia": [float(np.median(ours)), min(ours), max(ours)],
        "scikit-learn, one start": [float(np.median(theirs)), min(theirs), max(theirs)],
        "one centre": float(((rows - rows.mean(axis=0)) ** 2).sum() / best),
        "ms": {
            "fit": 1e3 * float(np.median(fits)),
            "refit": 1e3 * float(np.median(refits)),
            "one": 1e3 * float(np.mean(single)),
            "one, median": 1e3 * float(np.median(single)),
            "ten": 1e3 * float(np.mean(tens)),
        },
    }


def main() -> None:
    """Measure, print one line for each setting, and write all numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="use only up to 5000 records, without MNIST")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/k_means.json"))
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", "little can be learned")
    settings: list[dict[str, Any]] = [{}, {"recompute_probability": 0.1}, {"recompute_probability": None}]
    tables = [("digits", digits()), *(("blobs", blobs(n)) for n in (2000, 5000))]
    if not arguments.quick:
        tables += [("blobs", blobs(n)) for n in (20_000, 200_000)]
        tables += [("mnist 7 x 7", mnist(n)) for n in (5000, 20_000, 60_000)]
    found = []
    for name, rows in tables:
        for chosen in settings:
            one = compared(name, rows, 10, chosen)
            found.append(one)
            median, least, most = one["inertia"]
            ms, theirs = one["ms"], one["scikit-learn, one start"][0]
            print(
                f"{name} {len(rows)} {chosen}: inertia {median:.3f} ({least:.3f} to {most:.3f}), one start "
                f"{theirs:.3f}, one centre {one['one centre']:.2f}; ms: fit {ms['fit']:.1f}, refit {ms['refit']:.1f}, "
                f"one {ms['one']:.1f} (median {ms['one, median']:.1f}), ten {ms['ten']:.1f}",
                flush=True,
            )
    write_json(arguments.output, {"machine": machine(), "found": found})
    print(json.dumps(machine()))


if __name__ == "__main__":
    main()
